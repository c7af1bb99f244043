package host

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/sys/unix"

	"github.com/sealc2/sealc2/engine/status"
)

// set reads a list that is right.
func set(t testing.TB, list string) CPUSet {
	t.Helper()
	s, ok := parseCPUs(list)
	if !ok {
		t.Fatalf("bad list %q", list)
	}
	return s
}

// The trees below say what the kernel writes on machines of these kinds, in the forms of Documentation/ABI/stable.
// A file is a line "path: text", with ; for newlines inside.

// oneNode is a desktop: one node, two cores of two threads, a shared last cache.
const oneNode = `
node/online: 0
node/node0/cpulist: 0-3
node/node0/distance: 10
node/node0/meminfo: Node 0 MemTotal:       16303428 kB;Node 0 MemFree:         9012344 kB
cpu/online: 0-3
cpu/cpu0/topology/core_cpus_list: 0,2
cpu/cpu1/topology/core_cpus_list: 1,3
cpu/cpu2/topology/core_cpus_list: 0,2
cpu/cpu3/topology/core_cpus_list: 1,3
cpu/cpu0/cache/index0/type: Data
cpu/cpu0/cache/index0/level: 1
cpu/cpu0/cache/index0/size: 48K
cpu/cpu0/cache/index0/shared_cpu_list: 0,2
cpu/cpu0/cache/index1/type: Instruction
cpu/cpu0/cache/index2/type: Unified
cpu/cpu0/cache/index2/level: 2
cpu/cpu0/cache/index2/size: 1280K
cpu/cpu0/cache/index2/shared_cpu_list: 0,2
cpu/cpu0/cache/index3/type: Unified
cpu/cpu0/cache/index3/level: 3
cpu/cpu0/cache/index3/size: 12288K
cpu/cpu0/cache/index3/shared_cpu_list: 0-3
cpu/cpu1/cache/index0/type: Data
cpu/cpu1/cache/index0/level: 1
cpu/cpu1/cache/index0/size: 48K
cpu/cpu1/cache/index0/shared_cpu_list: 1,3
cpu/cpu1/cache/index1/type: Instruction
cpu/cpu1/cache/index2/type: Unified
cpu/cpu1/cache/index2/level: 2
cpu/cpu1/cache/index2/size: 1280K
cpu/cpu1/cache/index2/shared_cpu_list: 1,3
`

// twoNodes is a server with two sockets of four cores, without SMT, on a kernel that has only the older name.
const twoNodes = `
node/online: 0-1
node/node0/cpulist: 0-3
node/node0/distance: 10 21
node/node0/meminfo: Node 0 MemTotal:       67108864 kB
node/node1/cpulist: 4-7
node/node1/distance: 21 10
node/node1/meminfo: Node 1 MemTotal:       33554432 kB
cpu/online: 0-7
cpu/cpu0/topology/thread_siblings_list: 0
cpu/cpu1/topology/thread_siblings_list: 1
cpu/cpu2/topology/thread_siblings_list: 2
cpu/cpu3/topology/thread_siblings_list: 3
cpu/cpu4/topology/thread_siblings_list: 4
cpu/cpu5/topology/thread_siblings_list: 5
cpu/cpu6/topology/thread_siblings_list: 6
cpu/cpu7/topology/thread_siblings_list: 7
`

// eightNodes is two sockets cut into four nodes each, four cores of two threads a node: the second threads are CPUs
// 32 to 63. Another node has memory alone.
func eightNodes() string {
	var b strings.Builder
	b.WriteString("node/online: 0-8\ncpu/online: 0-63\n")
	for n := range 9 {
		var distance []string
		for m := range 9 {
			d := 32
			switch {
			case m == n:
				d = 10
			case m == 8 || n == 8:
				d = 17
			case m/4 == n/4:
				d = 12
			}
			distance = append(distance, fmt.Sprint(d))
		}
		cpus, kib := fmt.Sprintf("%d-%d,%d-%d", 4*n, 4*n+3, 32+4*n, 32+4*n+3), 16<<20
		if n == 8 {
			cpus, kib = "", 128<<20
		}
		fmt.Fprintf(&b, "node/node%d/cpulist: %s\nnode/node%d/distance: %s\nnode/node%d/meminfo: Node %d MemTotal: %d kB\n",
			n, cpus, n, strings.Join(distance, " "), n, n, kib)
	}
	for cpu := range 64 {
		fmt.Fprintf(&b, "cpu/cpu%d/topology/core_cpus_list: %d,%d\n", cpu, cpu%32, cpu%32+32)
	}
	return b.String()
}

// files turns a tree's text into files.
func files(text string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(text) {
		name, content, found := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		if found {
			out["sys/devices/system/"+name] = strings.ReplaceAll(strings.TrimPrefix(content, " "), ";", "\n") + "\n"
		}
	}
	return out
}

func tree(files map[string]string) fstest.MapFS {
	fs := fstest.MapFS{}
	for name, text := range files {
		fs[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fs
}

// brief writes a topology in one line for tables: nodes as number:CPUs/cores@GiB.
func brief(t *Topology) string {
	parts := []string{t.CPUs.String()}
	for i := range t.Nodes {
		n := &t.Nodes[i]
		parts = append(parts, fmt.Sprintf("%d:%s/%s@%d%v", n.Number, n.CPUs.String(), n.Cores.String(), n.MemoryBytes>>30, n.Distances))
	}
	return strings.Join(parts, " ")
}

func TestReadTopology(t *testing.T) {
	// without a file, and with another text in one
	edit := func(text string, changes ...string) map[string]string {
		out := files(text)
		for _, c := range changes {
			name, content, found := strings.Cut(c, ":")
			if found {
				out["sys/devices/system/"+name] = content
			} else {
				maps.DeleteFunc(out, func(file, _ string) bool { return strings.HasPrefix(file, "sys/devices/system/"+name) })
			}
		}
		return out
	}
	for _, c := range []struct {
		name    string
		files   map[string]string
		allowed string
		want    string
		faults  []string // what each names
	}{
		{"one node", files(oneNode), "0-3", "0-3 0:0-3/0-1@15[10]", nil},
		{"two nodes", files(twoNodes), "0-7", "0-7 0:0-3/0-3@64[10 21] 1:4-7/4-7@32[21 10]", nil},
		{"a container with a part of one node", files(twoNodes), "5-6", "5-6 0:/@64[10 21] 1:5-6/5-6@32[21 10]", nil},
		{"second threads alone are cores", files(oneNode), "2-3", "2-3 0:2-3/2-3@15[10]", nil},
		{"no NUMA in the kernel", edit(oneNode, "node"), "0-3", "0-3 -1:0-3/0-1@0[]", nil},
		{"an offline CPU", edit(oneNode, "cpu/online:0-2\n", "node/node0/cpulist:0-2\n", "cpu/cpu1/topology/core_cpus_list:1\n", "cpu/cpu3"), "0-3",
			"0-2 0:0-2/0-1@15[10]", nil},
		{"a mask with CPUs that there are not", files(oneNode), "0-63", "0-3 0:0-3/0-1@15[10]", nil},
		{"nothing at all", nil, "0-1", "0-1 -1:0-1/0-1@0[]", []string{"cpu/online", "cpu0/topology", "cpu1/topology"}},
		{"no file of a node", edit(twoNodes, "node/node1"), "0-7", "0-7 0:0-3/0-3@64[10 21] 1:/@0[] -1:4-7/4-7@0[]",
			[]string{"node1/meminfo", "node1/cpulist", "node1/distance"}},
		{"a node without memory", edit(twoNodes, "node/node0/meminfo:Node 0 MemTotal: 0 kB\n"), "0-7",
			"0-7 0:0-3/0-3@0[10 21] 1:4-7/4-7@32[21 10]", nil},
		{"broken memory", edit(oneNode, "node/node0/meminfo:Node 0 MemTotal: lots\n"), "0-3", "0-3 0:0-3/0-1@0[10]", []string{"node0/meminfo"}},
		{"broken lists", edit(oneNode, "cpu/online:0-\n", "node/node0/cpulist:3-0\n"), "0-3", "0-3 0:/@15[10] -1:0-3/0-1@0[]", []string{"cpu/online", "cpulist"}},
		{"online CPUs of another machine", edit(oneNode, "cpu/online:8-9\n"), "0-3", "0-3 0:0-3/0-1@15[10]", []string{"cpu/online"}},
		{"no list of nodes", edit(oneNode, "node/online"), "0-3", "0-3 -1:0-3/0-1@0[]", []string{"node/online"}},
		{"a CPU of two nodes", edit(twoNodes, "node/node1/cpulist:0-7\n"), "0-7", "0-7 0:0-3/0-3@64[10 21] 1:4-7/4-7@32[21 10]", nil},
		{"too few distances", edit(twoNodes, "node/node0/distance:10\n"), "0-7", "0-7 0:0-3/0-3@64[] 1:4-7/4-7@32[21 10]", []string{"node0/distance"}},
		{"distances above a byte", edit(twoNodes, "node/node0/distance:10 256\n"), "0-7", "0-7 0:0-3/0-3@64[] 1:4-7/4-7@32[21 10]", []string{"node0/distance"}},
		{"a node number that Linux has not", edit(oneNode, "node/online:0,5000\n"), "0-3", "0-3 0:0-3/0-1@15[10]", []string{"node/online"}},
		{"siblings that do not name the CPU", edit(oneNode, "cpu/cpu0/topology/core_cpus_list:1,3\n"), "0-3", "0-3 0:0-3/0-2@15[10]", []string{"cpu0/topology"}},
		{"siblings on another node", edit(twoNodes, "cpu/cpu0/topology/thread_siblings_list:0,4\n"), "0-7",
			"0-7 0:0-3/0-3@64[10 21] 1:4-7/4-7@32[21 10]", nil},
		{"a file larger than any", edit(oneNode, "node/node0/cpulist:"+strings.Repeat("0,", smallFile)), "0-3", "0-3 0:/@15[10] -1:0-3/0-1@0[]", []string{"cpulist"}},
		{"faults without end", map[string]string{}, "0-99", "0-99 -1:0-99/0-99@0[]", []string{"online", "cpu0", "cpu1", "cpu2", "cpu3", "cpu4", "cpu5", "cpu6"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ReadTopology(tree(c.files), set(t, c.allowed), "affinity mask")
			if brief(got) != c.want {
				t.Errorf("want %s\n got %s", c.want, brief(got))
			}
			if len(got.Faults) != len(c.faults) {
				t.Fatalf("want %d faults, got %q", len(c.faults), got.Faults)
			}
			for i, f := range got.Faults {
				if !strings.Contains(f, c.faults[i]) || len(f) > 400 {
					t.Errorf("want a fault of %s, got %q", c.faults[i], f)
				}
			}
			if line := got.String(); strings.ContainsAny(line, "\n") {
				t.Errorf("not a line: %q", line)
			}
		})
	}
}

func TestReadTopology_EightNodes(t *testing.T) {
	got := ReadTopology(tree(files(eightNodes())), set(t, "0-63"), "affinity mask")
	if len(got.Faults) > 0 || len(got.Nodes) != 9 || got.CPUs.Count() != 64 {
		t.Fatalf("%s, faults %q", got, got.Faults)
	}
	for i := range got.Nodes[:8] {
		n := &got.Nodes[i]
		cpus, cores := fmt.Sprintf("%d-%d,%d-%d", 4*i, 4*i+3, 32+4*i, 32+4*i+3), fmt.Sprintf("%d-%d", 4*i, 4*i+3)
		if n.CPUs.String() != cpus || n.Cores.String() != cores || n.MemoryBytes != 16<<30 {
			t.Errorf("node %d: %s", i, got)
		}
	}
	if n := got.Nodes[8]; !n.CPUs.Empty() || n.MemoryBytes != 128<<30 {
		t.Errorf("the node of memory: %+v", n)
	}
}

func TestReadTopology_Caches(t *testing.T) {
	broken := files(oneNode)
	broken["sys/devices/system/cpu/cpu1/cache/index2/size"] = "2M\n"
	broken["sys/devices/system/cpu/cpu0/cache/index3/shared_cpu_list"] = "7\n"
	for _, c := range []struct {
		name    string
		files   map[string]string
		allowed string
		want    []Cache
		faults  int
	}{
		{"one node", files(oneNode), "0-3", []Cache{{1, 48 << 10, 2, 2}, {2, 1280 << 10, 2, 2}, {3, 12 << 20, 4, 1}}, 0},
		{"a part of it", files(oneNode), "0-1", []Cache{{1, 48 << 10, 1, 2}, {2, 1280 << 10, 1, 2}, {3, 12 << 20, 2, 1}}, 0},
		{"none told", files(twoNodes), "0-7", nil, 0},
		{"broken", broken, "0-3", []Cache{{1, 48 << 10, 2, 2}, {2, 1280 << 10, 2, 1}}, 2},
	} {
		got := ReadTopology(tree(c.files), set(t, c.allowed), "affinity mask")
		if !reflect.DeepEqual(got.Caches, c.want) || len(got.Faults) != c.faults {
			t.Errorf("%s: want %v, got %v, faults %q", c.name, c.want, got.Caches, got.Faults)
		}
	}
	want := "node 0 with 4 CPUs of 2 cores, 15.5 GiB; 2 L2 of 1.25 MiB; 1 L3 of 12 MiB; CPUs 0-3 (affinity mask)"
	if got := ReadTopology(tree(files(oneNode)), set(t, "0-3"), "affinity mask").String(); got != want {
		t.Errorf("want %s\n got %s", want, got)
	}
}

// Goal: what the cgroup's cpuset takes away is not used, whoever told the mask.
func TestMachine_Topology(t *testing.T) {
	const v1 = "35 31 0:32 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
	for _, c := range []struct {
		name       string
		cpus       int
		files      map[string]string
		want, from string
	}{
		{"no cgroup", 8, nil, "0-7", "affinity mask"},
		{"v2", 8, map[string]string{
			"proc/self/mountinfo": v2Mounts, "proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/cpuset.cpus.effective":   "0-7\n",
			"sys/fs/cgroup/a/cpuset.cpus.effective": "4-6\n",
			"sys/fs/cgroup/a/b/cpu.max":             "max 100000\n",
		}, "4-6", "/sys/fs/cgroup/a/cpuset.cpus.effective"},
		{"v2, the mask is narrower", 2, map[string]string{
			"proc/self/mountinfo": v2Mounts, "proc/self/cgroup": "0::/\n",
			"sys/fs/cgroup/cpuset.cpus.effective": "0-7\n",
		}, "0-1", "affinity mask"},
		{"v1", 8, map[string]string{
			"proc/self/mountinfo": v1, "proc/self/cgroup": "3:cpuset:/c\n",
			"sys/fs/cgroup/cpuset/c/cpuset.effective_cpus": "2-3\n",
		}, "2-3", "/sys/fs/cgroup/cpuset/c/cpuset.effective_cpus"},
		{"a cpuset of none of our CPUs", 2, map[string]string{
			"proc/self/mountinfo": v2Mounts, "proc/self/cgroup": "0::/\n",
			"sys/fs/cgroup/cpuset.cpus.effective": "4-7\n",
		}, "0-1", "affinity mask"},
		{"nonsense", 8, map[string]string{
			"proc/self/mountinfo": v2Mounts, "proc/self/cgroup": "0::/\n",
			"sys/fs/cgroup/cpuset.cpus.effective": "all\n",
		}, "0-7", "affinity mask"},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := files(twoNodes)
			maps.Copy(all, c.files)
			m := machine(t, c.cpus, all)
			tried := -2
			m.BindMemory = func(node int) error { tried = node; return unix.EPERM }
			got, err := m.Topology()
			if err != nil {
				t.Fatal(err)
			}
			if got.CPUs.String() != c.want || got.From != c.from {
				t.Errorf("want %s (%s), got %s", c.want, c.from, got)
			}
			if first := got.CPUs.First() / 4; tried != first || !errors.Is(got.MemoryUnbound, unix.EPERM) || !strings.Contains(got.String(), "touched first: operation not permitted") {
				t.Errorf("tried to bind memory to node %d of %s", tried, got)
			}
		})
	}
	m := machine(t, 1, map[string]string{})
	m.Affinity = func() (CPUSet, error) { return CPUSet{}, unix.EPERM }
	if _, err := m.Topology(); status.KindOf(err) != status.Internal {
		t.Errorf("no mask: %v", err)
	}
}

func TestThisMachine_Topology(t *testing.T) {
	got, err := ThisMachine().Topology()
	if err != nil {
		t.Fatal(err)
	}
	if n := got.CPUs.Count(); n < 1 || n > runtime.NumCPU() {
		t.Errorf("%d CPUs of %d", n, runtime.NumCPU())
	}
	var all CPUSet
	for i := range got.Nodes {
		n := &got.Nodes[i]
		for cpu := range n.CPUs.All() {
			if all.Has(cpu) {
				t.Errorf("CPU %d stands twice", cpu)
			}
			all.Add(cpu)
		}
		if n.Cores.And(&n.CPUs) != n.Cores {
			t.Errorf("node %d: cores %s of CPUs %s", n.Number, n.Cores.String(), n.CPUs.String())
		}
	}
	if all != got.CPUs {
		t.Errorf("nodes have CPUs %s of %s", all.String(), got.CPUs.String())
	}
	t.Log(got, got.Faults)
}

func TestDeviceNode(t *testing.T) {
	at := func(id, text string) map[string]string {
		return map[string]string{"sys/bus/pci/devices/" + id + "/numa_node": text}
	}
	for _, c := range []struct {
		id    string
		files map[string]string
		want  int
	}{
		{"0000:3b:00.0", at("0000:3b:00.0", "1\n"), 1},
		{"0000:3B:00.0", at("0000:3b:00.0", "1\n"), 1},
		{"00000000:3B:00.0", at("0000:3b:00.0", "3\n"), 3},
		{"00010000:3b:00.0", at("10000:3b:00.0", "2\n"), 2},
		{"0000:3b:00.0", at("0000:3b:00.0", "-1\n"), -1},
		{"0000:3b:00.0", at("0000:3b:00.0", "1024\n"), -1},
		{"0000:3b:00.0", at("0000:3b:00.0", ""), -1},
		{"0000:3b:00.1", at("0000:3b:00.0", "1\n"), -1},
		{"3b:00.0", at("3b:00.0", "1\n"), -1},
		{"0000:../00.0", at("0000:../00.0", "1\n"), -1},
		{"", at("", "1\n"), -1},
		{"../../../etc", nil, -1},
	} {
		if got := deviceNode(tree(c.files), c.id); got != c.want {
			t.Errorf("%s: want node %d, got %d", c.id, c.want, got)
		}
	}
	root := t.TempDir()
	if err := os.MkdirAll(root+"/sys/bus/pci/devices/0000:00:06.0", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(root+"/sys/bus/pci/devices/0000:00:06.0/numa_node", []byte("0\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := (Machine{Root: root}).DeviceNode("00000000:00:06.0"); got != 0 {
		t.Errorf("got node %d", got)
	}
}

func TestParseCPUs(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "0": "0", "0-3,8,10-12": "0-3,8,10-12", "7-7": "7", "0-1,2,3-8191": "0-8191", "8191": "8191", "007": "7",
	} {
		s, ok := parseCPUs(text)
		if !ok || s.String() != want {
			t.Errorf("%q: want %q, got %q, %v", text, want, s.String(), ok)
		}
	}
	for _, text := range []string{",", "0,", "-", "-1", "1-", "3-1", "1,1", "2,1", "0-3,3", "8192", "0-8192", "99999999999999999999", "a", "0x1", " 1", "1 ", "1\n2", "+1", "1_0", "0-3:1/2"} {
		if s, ok := parseCPUs(text); ok || !s.Empty() {
			t.Errorf("%q: taken as %q", text, s.String())
		}
	}
}

func TestCPUSet(t *testing.T) {
	var s CPUSet
	for _, i := range []int{-1, maxCPUs, 1 << 40} {
		s.Add(i)
		if s.Has(i) || !s.Empty() {
			t.Errorf("%d is in the set", i)
		}
	}
	if s.First() != -1 {
		t.Errorf("first of none: %d", s.First())
	}
	s.Add(130)
	s.Add(63)
	if s.First() != 63 || s.Count() != 2 || !s.Has(130) || s.Has(64) {
		t.Errorf("got %s", s.String())
	}
	for n, want := range map[int]string{-1: "", 0: "", 70: "0-69", 1 << 20: "0-8191"} {
		if f := firstCPUs(n); f.String() != want {
			t.Errorf("first %d: got %s", n, f.String())
		}
	}
	for range s.All() {
		break // an early end is no fault
	}
}

// FuzzParseCPUs: what is taken is written so that it reads the same, and holds no number out of range.
func FuzzParseCPUs(f *testing.F) {
	for _, text := range []string{"0-3,8,10-12", "", "8191", "0-8191", "1,0", "0-"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, ok := parseCPUs(text)
		if !ok {
			return
		}
		again, ok := parseCPUs(s.String())
		if !ok || again != s {
			t.Errorf("%q is written %q, which reads %q", text, s.String(), again.String())
		}
		n := 0
		for i := range s.All() {
			if !s.Has(i) {
				t.Errorf("%d is and is not in the set", i)
			}
			n++
		}
		if n != s.Count() {
			t.Errorf("%d numbers, counted as %d", n, s.Count())
		}
	})
}

// FuzzReadTopology: whatever stands in the files, each CPU is in one node and in one core at most, and lines stay short.
func FuzzReadTopology(f *testing.F) {
	f.Add("0-1", "0", "0-1", "10", "Node 0 MemTotal: 5 kB", "0-1", "32K")
	f.Add("0-", "0-8191", "5", "1 2 3", "", "1", "-1K")
	f.Fuzz(func(t *testing.T, online, nodes, cpus, distance, memory, siblings, size string) {
		fs := map[string]string{"sys/devices/system/cpu/online": online, "sys/devices/system/node/online": nodes}
		for _, n := range []string{"0", "1", "5"} {
			fs["sys/devices/system/node/node"+n+"/cpulist"] = cpus
			fs["sys/devices/system/node/node"+n+"/distance"] = distance
			fs["sys/devices/system/node/node"+n+"/meminfo"] = memory
			for _, file := range []string{"topology/core_cpus_list", "cache/index0/shared_cpu_list"} {
				fs["sys/devices/system/cpu/cpu"+n+"/"+file] = siblings
			}
			fs["sys/devices/system/cpu/cpu"+n+"/cache/index0/type"] = "Data"
			fs["sys/devices/system/cpu/cpu"+n+"/cache/index0/level"] = "1"
			fs["sys/devices/system/cpu/cpu"+n+"/cache/index0/size"] = size
		}
		allowed := firstCPUs(9)
		got := ReadTopology(tree(fs), allowed, "affinity mask")
		var all CPUSet
		for i := range got.Nodes {
			n := &got.Nodes[i]
			if both := n.CPUs.And(&all); !both.Empty() || n.Cores.And(&n.CPUs) != n.Cores || n.CPUs.Empty() != n.Cores.Empty() {
				t.Fatalf("%s", brief(got))
			}
			for cpu := range n.CPUs.All() {
				all.Add(cpu)
			}
		}
		if all != got.CPUs || all.Empty() || all.And(&allowed) != all || len(got.Faults) > maxFaults {
			t.Errorf("%s, %q", brief(got), got.Faults)
		}
		for _, fault := range got.Faults {
			if len(fault) > 600 || strings.Contains(fault, "\n") {
				t.Errorf("a fault of %d bytes: %.80q", len(fault), fault)
			}
		}
		for _, threads := range []int{1, 4, 20} {
			if seats := got.seats(threads, 1); len(seats) != threads || seats[0].mask.Empty() {
				t.Errorf("%d seats of %d on %s", len(seats), threads, brief(got))
			}
		}
	})
}
