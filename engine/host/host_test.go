package host

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sealc2/sealc2/engine/status"
)

// machine writes a recorded tree and returns a Machine over it with the given affinity count.
func machine(t *testing.T, cpus int, files map[string]string) Machine {
	t.Helper()
	root := t.TempDir()
	if _, ok := files["proc/meminfo"]; !ok {
		files["proc/meminfo"] = "MemTotal:       33554432 kB\nMemFree:        11111 kB\nMemAvailable:   16777216 kB\n"
	}
	for name, text := range files {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return Machine{Root: root, Affinity: func() (CPUSet, error) { return firstCPUs(cpus), nil }}
}

const (
	v1Mounts = `31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
`
	v2Mounts  = "41 31 0:38 / /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw\n"
	unlimited = "9223372036854771712\n"
)

func TestLimits(t *testing.T) {
	const gib = int64(1) << 30
	room := func(n int64) int64 { return n - headroom(n) }
	for _, c := range []struct {
		name      string
		cpus      int
		threads   int
		hostBytes int64
		files     map[string]string
		want      Limits
	}{
		{"bare machine", 6, 0, 0, map[string]string{},
			Limits{6, "affinity mask", room(32 * gib), "machine memory"}},
		{"configured below", 6, 4, gib, map[string]string{},
			Limits{4, "configured", gib, "configured"}},
		{"configured above", 6, 9, 64 * gib, map[string]string{},
			Limits{6, "affinity mask", room(32 * gib), "machine memory"}},
		{"v1, limit on an ancestor", 8, 0, 0, map[string]string{
			"proc/self/mountinfo":                             v1Mounts,
			"proc/self/cgroup":                                "9:name=systemd:/\n4:memory:/a/b\n2:cpu,cpuacct:/a/b\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":      unlimited,
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes":    "4294967296\n",
			"sys/fs/cgroup/memory/a/b/memory.limit_in_bytes":  unlimited,
			"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us":      "-1\n",
			"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us":     "100000\n",
			"sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us":  "250000\n",
			"sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_period_us": "100000\n",
		}, Limits{3, "/sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us", room(4 * gib), "/sys/fs/cgroup/memory/a/memory.limit_in_bytes"}},
		{"v1 in a container: the mount is our group", 8, 0, 0, map[string]string{
			"proc/self/mountinfo":                        "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
			"proc/self/cgroup":                           "4:memory:/docker/abc\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "2147483648\n",
		}, Limits{8, "affinity mask", room(2 * gib), "/sys/fs/cgroup/memory/memory.limit_in_bytes"}},
		{"v1, path seen from outside", 8, 0, 0, map[string]string{
			"proc/self/mountinfo":                        v1Mounts,
			"proc/self/cgroup":                           "4:memory:/kubepods/pod1/xyz\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "2147483648\n",
		}, Limits{8, "affinity mask", room(2 * gib), "/sys/fs/cgroup/memory/memory.limit_in_bytes"}},
		{"v2", 8, 0, 0, map[string]string{
			"proc/self/mountinfo":                     v2Mounts,
			"proc/self/cgroup":                        "0::/user.slice/job\n",
			"sys/fs/cgroup/user.slice/cpu.max":        "max 100000\n",
			"sys/fs/cgroup/user.slice/job/cpu.max":    "50000 100000\n",
			"sys/fs/cgroup/user.slice/job/memory.max": "max\n",
			"sys/fs/cgroup/user.slice/memory.max":     "8589934592\n",
			"sys/fs/cgroup/user.slice/memory.high":    "6442450944\n",
		}, Limits{1, "/sys/fs/cgroup/user.slice/job/cpu.max", room(6 * gib), "/sys/fs/cgroup/user.slice/memory.high"}},
		{"v1 beside an empty v2, as systemd's hybrid has it", 8, 0, 0, map[string]string{
			"proc/self/mountinfo":                             v1Mounts + "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
			"proc/self/cgroup":                                "4:memory:/job\n2:cpu,cpuacct:/job\n0::/job\n",
			"sys/fs/cgroup/memory/job/memory.limit_in_bytes":  "4294967296\n",
			"sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us":  "400000\n",
			"sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us": "100000\n",
			"sys/fs/cgroup/unified/job/cgroup.procs":          "1\n",
		}, Limits{4, "/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", room(4 * gib), "/sys/fs/cgroup/memory/job/memory.limit_in_bytes"}},
		{"v1, the ancestor is the tighter", 8, 0, 0, map[string]string{
			"proc/self/mountinfo":                             v1Mounts,
			"proc/self/cgroup":                                "2:cpu,cpuacct:/a/b\n",
			"sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us":    "150000\n",
			"sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us":   "100000\n",
			"sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us":  "700000\n",
			"sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_period_us": "100000\n",
		}, Limits{2, "/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", room(32 * gib), "machine memory"}},
		{"v2 in a container: our group is the mount", 8, 0, 0, map[string]string{
			"proc/self/mountinfo":      "41 31 0:38 /../../abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n",
			"proc/self/cgroup":         "0::/\n",
			"sys/fs/cgroup/cpu.max":    "350000 100000\n",
			"sys/fs/cgroup/memory.max": "1073741824\n",
		}, Limits{4, "/sys/fs/cgroup/cpu.max", room(gib), "/sys/fs/cgroup/memory.max"}},
		{"v2, above the top of its namespace", 8, 0, 0, map[string]string{
			"proc/self/mountinfo":      v2Mounts,
			"proc/self/cgroup":         "0::/../../other\n",
			"sys/fs/cgroup/memory.max": "1073741824\n",
		}, Limits{8, "affinity mask", room(gib), "/sys/fs/cgroup/memory.max"}},
		{"v2, names with colons and spaces", 8, 0, 0, map[string]string{
			"proc/self/mountinfo":              "41 31 0:38 / /sys/fs/my\\040groups rw - cgroup2 cgroup2 rw\n",
			"proc/self/cgroup":                 "0::/a:b:c d\n",
			"sys/fs/my groups/a:b:c d/cpu.max": "100000 100000\n",
		}, Limits{1, "/sys/fs/my groups/a:b:c d/cpu.max", room(32 * gib), "machine memory"}},
		{"limits above the machine's", 2, 0, 0, map[string]string{
			"proc/self/mountinfo":      v2Mounts,
			"proc/self/cgroup":         "0::/\n",
			"sys/fs/cgroup/cpu.max":    "6400000 100000\n",
			"sys/fs/cgroup/memory.max": "1099511627776\n",
		}, Limits{2, "affinity mask", room(32 * gib), "machine memory"}},
		{"configured above the group's", 8, 6, 8 * gib, map[string]string{
			"proc/self/mountinfo":      v2Mounts,
			"proc/self/cgroup":         "0::/\n",
			"sys/fs/cgroup/cpu.max":    "200000 100000\n",
			"sys/fs/cgroup/memory.max": "1073741824\n",
		}, Limits{2, "/sys/fs/cgroup/cpu.max", room(gib), "/sys/fs/cgroup/memory.max"}},
		{"configured below the group's", 8, 1, gib / 2, map[string]string{
			"proc/self/mountinfo":      v2Mounts,
			"proc/self/cgroup":         "0::/\n",
			"sys/fs/cgroup/cpu.max":    "200000 100000\n",
			"sys/fs/cgroup/memory.max": "1073741824\n",
		}, Limits{1, "configured", gib / 2, "configured"}},
		{"a group of a few pages", 8, 0, 0, map[string]string{
			"proc/self/mountinfo":      v2Mounts,
			"proc/self/cgroup":         "0::/\n",
			"sys/fs/cgroup/cpu.max":    "1000 100000\n",
			"sys/fs/cgroup/memory.max": "8192\n",
		}, Limits{1, "/sys/fs/cgroup/cpu.max", 4096, "/sys/fs/cgroup/memory.max"}},
		{"a mount that we see no files of", 8, 0, 0, map[string]string{
			"proc/self/mountinfo": v1Mounts + v2Mounts,
			"proc/self/cgroup":    "4:memory:/a\n0::/a\n",
		}, Limits{8, "affinity mask", room(32 * gib), "machine memory"}},
		{"nonsense limits nothing", 8, 0, 0, map[string]string{
			"proc/self/mountinfo":       v2Mounts + "broken line\n1 2 3\n",
			"proc/self/cgroup":          "0::/\nnonsense\n\n",
			"sys/fs/cgroup/cpu.max":     "many\n",
			"sys/fs/cgroup/memory.max":  "-5\n",
			"sys/fs/cgroup/memory.high": "99999999999999999999999\n",
		}, Limits{8, "affinity mask", room(32 * gib), "machine memory"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := machine(t, c.cpus, c.files).Limits(c.threads, c.hostBytes)
			if err != nil {
				t.Fatal(err)
			}
			if got != c.want {
				t.Errorf("want %v, got %v", c.want, got)
			}
		})
	}
}

func TestLimits_Refused(t *testing.T) {
	m := machine(t, 2, map[string]string{})
	if _, err := m.Limits(-1, 0); status.KindOf(err) != status.Caller {
		t.Errorf("negative threads: %v", err)
	}
	if _, err := m.Limits(0, -1); status.KindOf(err) != status.Caller {
		t.Errorf("negative bytes: %v", err)
	}
	m = machine(t, 2, map[string]string{"proc/meminfo": "MemTotal: lots\n"})
	if _, err := m.Limits(0, 0); status.KindOf(err) != status.Internal {
		t.Errorf("no memory figure: %v", err)
	}
}

func TestThreadCap(t *testing.T) {
	for text, want := range map[string]int{"": 0, "0": 0, "7": 7, " 12 ": 12, "-1": 0, "many": 0, "99999999999": 0, "1e3": 0, "0x8": 0, "65535": 65535} {
		if got := ThreadCap(text); got != want {
			t.Errorf("%q: want %d, got %d", text, want, got)
		}
	}
}

// Goal: a process without /proc still knows its memory, and one without descriptors is told so.
func TestMemory_NoProc(t *testing.T) {
	m := ThisMachine()
	m.Root = t.TempDir()
	got, err := m.Memory()
	want, wantErr := ThisMachine().Memory()
	if err != nil || wantErr != nil || got.Total != want.Total || got.Available <= 0 || got.Available > got.Total {
		t.Errorf("sysinfo %+v %v, /proc/meminfo %+v %v", got, err, want, wantErr)
	}
	m.Sysinfo = nil
	if _, err := m.Memory(); status.KindOf(err) != status.Internal {
		t.Errorf("nobody to ask: %v", err)
	}
}

func TestNoDescriptors(t *testing.T) {
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 0, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	_, memory := ThisMachine().Memory()
	poller := StartPoller("test")
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{"memory": memory, "poller": poller} {
		if status.KindOf(err) != status.NoMemory || !errors.Is(err, unix.EMFILE) {
			t.Errorf("%s: want NoMemory by EMFILE, got %v", name, err)
		}
	}
	if err := StartPoller("test"); err != nil {
		t.Error(err)
	}
}

func TestThisMachine(t *testing.T) {
	l, err := ThisMachine().Limits(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if l.Threads < 1 || l.HostBytes < 16<<20 {
		t.Errorf("limits %v", l)
	}
	m, err := ThisMachine().Memory()
	if err != nil || m.Available <= 0 || m.Available > m.Total || l.HostBytes > m.Total {
		t.Errorf("memory %+v %v, limits %v", m, err, l)
	}
	if line := CPU(); line == "" || strings.Contains(line, "\n") {
		t.Errorf("CPU line %q", line)
	}
	t.Log(l.String() + "; " + CPU())
}

func TestMemory_OldKernel(t *testing.T) {
	m, err := machine(t, 1, map[string]string{"proc/meminfo": "MemTotal: 2048 kB\nMemFree: 1024 kB\n"}).Memory()
	if err != nil || m != (Memory{2 << 20, 1 << 20}) {
		t.Errorf("got %+v %v", m, err)
	}
}

func TestFormatBytes(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1 KiB", 1536: "1.5 KiB", 47 << 30: "47 GiB",
		1<<20 - 1: "1 MiB", -2048: "-2 KiB", 1 << 62: "4 EiB"} {
		if got := FormatBytes(n); got != want {
			t.Errorf("%d: want %s, got %s", n, want, got)
		}
	}
}

func FuzzCgroup(f *testing.F) {
	f.Add("4:memory:/a/b\n0::/x\n", v1Mounts, "100")
	f.Add("0::/../../..\n", v2Mounts, "max 1")
	f.Fuzz(func(t *testing.T, groups, mounts, limit string) {
		root := t.TempDir()
		for name, text := range map[string]string{"proc/self/cgroup": groups, "proc/self/mountinfo": mounts,
			"sys/fs/cgroup/memory.max": limit, "sys/fs/cgroup/cpu.max": limit} {
			_ = os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755)
			_ = os.WriteFile(filepath.Join(root, name), []byte(text), 0o644)
		}
		l := readCgroup(root)
		if l.memory <= 0 || !(l.cpus > 0) {
			t.Errorf("limits %+v", l)
		}
	})
}

func TestCPUTime(t *testing.T) {
	before := CPUTime()
	for begin := time.Now(); CPUTime()-before < 20*time.Millisecond; {
		if time.Since(begin) > time.Minute {
			t.Fatal("a busy process uses no CPU time")
		}
	}
}
