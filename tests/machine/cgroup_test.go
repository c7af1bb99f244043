package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// layouts are machines with control groups as kernels show them: the lines of /proc/self/mountinfo and
// /proc/self/cgroup, and the folder below /sys/fs/cgroup with the files of our group.
var layouts = map[string]struct{ mountinfo, cgroup, memory, cpu string }{
	"v2": {
		mountinfo: "41 31 0:38 / /sys/fs/cgroup rw,nosuid,nodev shared:4 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n",
		cgroup:    "0::/system.slice/prover.service\n",
		memory:    "system.slice/prover.service", cpu: "system.slice/prover.service",
	},
	"v2, in a container": {
		mountinfo: "41 31 0:38 / /sys/fs/cgroup ro,nosuid,nodev - cgroup2 cgroup rw\n",
		cgroup:    "0::/\n",
		memory:    ".", cpu: ".",
	},
	"v1": {
		mountinfo: "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
		cgroup:    "4:memory:/jobs/prover\n2:cpu,cpuacct:/jobs/prover\n",
		memory:    "memory/jobs/prover", cpu: "cpu,cpuacct/jobs/prover",
	},
	"v1, in a container": {
		mountinfo: "32 31 0:29 /docker/abc /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
		cgroup:    "4:memory:/docker/abc\n2:cpu:/docker/abc\n0::/\n",
		memory:    "memory", cpu: "cpu",
	},
	"hybrid": {
		mountinfo: "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n" +
			"41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
		cgroup: "4:memory:/jobs\n1:cpu:/\n0::/\n",
		memory: "memory/jobs", cpu: "cpu",
	},
}

// inside starts a program in a mount namespace of its own, in which files stand for what the kernel says. The first
// argument is a folder with them; the program keeps the process id that its files are mounted on.
const inside = `dir=$1; shift
mount --bind "$dir/cgroup" /proc/$$/cgroup && mount --bind "$dir/mountinfo" /proc/$$/mountinfo &&
mount --bind "$dir/meminfo" /proc/meminfo && mount --bind "$dir/fs" /sys/fs/cgroup && exec "$@"`

// isolate is how to get that namespace here, or why there is none.
var isolate = sync.OnceValues(func() ([]string, error) {
	ways := [][]string{{"unshare", "-m"}, {"unshare", "-r", "-m"}}
	var last error
	for _, way := range ways {
		if last = build(way[0], append(way[1:], "sh", "-c", "mount --bind /proc/self/cgroup /proc/$$/cgroup")...); last == nil {
			return way, nil
		}
	}
	return nil, last
})

// recorded returns the words before a command line that put it on a recorded machine of 64 GiB with the limits of the
// files. A test without such a namespace is skipped.
func recorded(t *testing.T, layout string, files map[string]string) []string {
	t.Helper()
	way, err := isolate()
	if err != nil {
		t.Skipf("needs root or user namespaces, to mount recorded control groups: %v", err)
	}
	l := layouts[layout]
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "cgroup"), []byte(l.cgroup))
	writeFile(t, filepath.Join(dir, "mountinfo"), []byte(l.mountinfo))
	writeFile(t, filepath.Join(dir, "meminfo"), []byte("MemTotal:       67108864 kB\nMemFree:        33554432 kB\nMemAvailable:   33554432 kB\n"))
	for name, text := range files {
		group := l.memory
		if strings.HasPrefix(name, "cpu.") {
			group = l.cpu
		}
		writeFile(t, filepath.Join(dir, "fs", group, name), []byte(text+"\n"))
	}
	if len(files) == 0 {
		if err := os.MkdirAll(filepath.Join(dir, "fs"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return append(append([]string(nil), way...), "sh", "-c", inside, "sh", dir)
}

// Goal: processes find the limits of their control groups, in every layout that kernels and containers have.
func TestCgroup_Recorded(t *testing.T) {
	n := cpus(t)
	for layout, l := range layouts {
		half := map[string]string{"memory.max": "8589934592", "cpu.max": "50000 100000"}
		if strings.HasPrefix(layout, "v1") || layout == "hybrid" {
			half = map[string]string{"memory.limit_in_bytes": "8589934592", "cpu.cfs_quota_us": "50000", "cpu.cfs_period_us": "100000"}
		}
		free := limits{fmt.Sprint(n), "affinity mask", "62 GiB", "machine memory"}
		tight := limits{"1", "", "7.5 GiB", ""}
		for name := range half {
			switch name {
			case "memory.max", "memory.limit_in_bytes":
				tight.memoryFrom = filepath.Join("/sys/fs/cgroup", l.memory, name)
			case "cpu.max", "cpu.cfs_quota_us":
				tight.threadsFrom = filepath.Join("/sys/fs/cgroup", l.cpu, name)
			}
		}
		if n == 1 {
			tight.threadsFrom = free.threadsFrom // no less than there are
		}
		for name, c := range map[string]struct {
			files map[string]string
			want  limits
		}{"limited": {half, tight}, "free": {nil, free}} {
			t.Run(layout+", "+name, func(t *testing.T) {
				for face, got := range faces(t, []string{"RAYON_NUM_THREADS="}, recorded(t, layout, c.files)...) {
					if got != c.want {
						t.Errorf("%s: want %+v, got %+v", face, c.want, got)
					}
				}
			})
		}
	}
}

// Goal: the same with the kernel's own files. Method: a group with half a CPU below ours, for as long as one process
// runs.
func TestCgroup_Kernel(t *testing.T) {
	group, controller, version := ownGroup(t)
	dir := filepath.Join(group, fmt.Sprintf("sealc2-test-%d", os.Getpid()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skipf("needs leave to make a control group: %v", err)
	}
	defer func() {
		// The kernel lets go of a group a moment after its last process.
		for range 100 {
			if os.Remove(dir) == nil {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
		t.Errorf("%s stays", dir)
	}()
	file := filepath.Join(dir, "cpu.max")
	err := os.WriteFile(file, []byte("50000 100000"), 0)
	if version == 1 {
		file = filepath.Join(dir, "cpu.cfs_quota_us")
		err = os.WriteFile(file, []byte("50000"), 0)
	}
	if err != nil {
		t.Skipf("the group %s has no CPU limit to set: %v", dir, err)
	}
	want := limits{threads: "1", threadsFrom: file}
	if cpus(t) == 1 {
		want.threadsFrom = "affinity mask"
	}
	for face, got := range faces(t, []string{"RAYON_NUM_THREADS="}, "sh", "-c", `echo $$ > "$0/cgroup.procs" && exec "$@"`, dir) {
		if got.threads != want.threads || got.threadsFrom != want.threadsFrom {
			t.Errorf("%s in %s (%s): want %+v, got %+v", face, dir, controller, want, got)
		}
	}
}

// ownGroup finds the folder of our control group for CPU time. A group that is not the top of what we see belongs to
// whoever made it, so no test makes groups in it.
func ownGroup(t *testing.T) (dir, controller string, version int) {
	t.Helper()
	for line := range strings.Lines(string(readFile(t, "/proc/self/cgroup"))) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		for mount := range strings.Lines(string(readFile(t, "/proc/self/mountinfo"))) {
			left, right, _ := strings.Cut(mount, " - ")
			l, r := strings.Fields(left), strings.Fields(right)
			if len(l) < 5 || len(r) < 3 {
				continue
			}
			v1 := r[0] == "cgroup" && parts[1] != "" && has(r[2], "cpu") && has(parts[1], "cpu")
			v2 := r[0] == "cgroup2" && parts[1] == "" && strings.Contains(readOrEmpty(filepath.Join(l[4], "cgroup.subtree_control")), "cpu")
			if !v1 && !v2 {
				continue
			}
			if parts[2] != "/" {
				t.Skipf("this process is in the group %s, which is somebody else's to divide", parts[2])
			}
			version = 2
			if v1 {
				version = 1
			}
			return l[4], parts[1], version
		}
	}
	t.Skip("no control groups for CPU time on this machine")
	return "", "", 0
}

func has(list, word string) bool { return strings.Contains(","+list+",", ","+word+",") }

func readOrEmpty(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(data)
}
