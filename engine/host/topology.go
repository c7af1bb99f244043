package host

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/sealc2/sealc2/engine/status"
)

// Topology is where the CPUs that the process may use stand, and near which memory. It is fixed once read.
type Topology struct {
	// CPUs are those that are online and that the process may use; From says what decided so: "affinity mask" or
	// the cgroup file.
	CPUs CPUSet
	From string
	// Nodes are all NUMA nodes that are online, in rising order, also those without CPUs of ours or without memory.
	// CPUs that no node claims stand in a last one with number -1; so do all on a machine without NUMA.
	Nodes  []Node
	Caches []Cache // of CPUs, small ones first
	// Faults are files that were missing or not as documented, 8 at most. What they should have said is not known; the rest
	// counts.
	Faults []string
	// MemoryUnbound says why memory cannot be put near a node; nil where it can, and where nobody tried.
	MemoryUnbound error
}

// Node is one NUMA node.
type Node struct {
	Number      int
	CPUs        CPUSet // those that we may use
	Cores       CPUSet // of them the first of each physical core; the others are SMT siblings
	MemoryBytes int64  // 0: none, or not known
	// Distances to the nodes of the topology, in their order, 10 to itself; nil where not known.
	Distances []int
}

// Cache is a kind of data cache.
type Cache struct {
	Level  int
	Bytes  int64
	Shared int // how many of our CPUs one serves
	Count  int // how many there are
}

const (
	systemNodes = "sys/devices/system/node"
	systemCPUs  = "sys/devices/system/cpu"
	// smallFile bounds what is read of a file: a list of every second of 8192 CPUs is 20 KB.
	smallFile = 1 << 16
	maxFaults = 8
	// maxCaches bounds the cache folders that are looked at for a CPU: there are four or five.
	maxCaches = 8
)

// readSmall is a file's text without surrounding space. A file that is larger than any should be is an error.
func readSmall(tree fs.FS, name string) (string, error) {
	f, err := tree.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // only read
	text, err := io.ReadAll(io.LimitReader(f, smallFile+1))
	if err == nil && len(text) > smallFile {
		err = fmt.Errorf("more than %d bytes", smallFile)
	}
	return strings.TrimSpace(string(text)), err
}

// Topology finds out where our CPUs are. Fails with Internal where the machine does not tell its affinity mask; files
// that are missing or wrong make it less exact and are no error.
func (m Machine) Topology() (*Topology, error) {
	mask, err := m.Affinity()
	if err != nil {
		return nil, status.Wrap(status.Internal, "host.Topology", "affinity mask", err)
	}
	from := "affinity mask"
	// The kernel keeps masks within the cpuset. Where it could not be asked for the mask, the file has the rest.
	if group := readCgroup(m.Root); group.cpusetFrom != "" {
		if both := mask.And(&group.cpuset); both != mask && !both.Empty() {
			mask, from = both, group.cpusetFrom
		}
	}
	t := ReadTopology(os.DirFS(m.Root), mask, from)
	if i := slices.IndexFunc(t.Nodes, func(n Node) bool { return n.Number >= 0 && !n.CPUs.Empty() }); i >= 0 && m.BindMemory != nil {
		t.MemoryUnbound = m.BindMemory(t.Nodes[i].Number)
	}
	return t, nil
}

// ReadTopology reads /sys/devices/system in a tree whose top is "/", for a process that may use the allowed CPUs; from
// says what allows them. It takes some tens of milliseconds on a machine with hundreds of CPUs. Sources: Linux
// Documentation/ABI/stable/sysfs-devices-node, .../sysfs-devices-system-cpu, admin-guide/cputopology.rst.
func ReadTopology(tree fs.FS, allowed CPUSet, from string) *Topology {
	r := &topologyReader{tree: tree, t: &Topology{CPUs: allowed, From: from}}
	if online, ok := r.list(systemCPUs + "/online"); ok {
		// A list without any of our CPUs is of another machine.
		if both := online.And(&allowed); !both.Empty() {
			r.t.CPUs = both
		} else {
			r.fault(systemCPUs+"/online", "one of the CPUs "+allowed.String(), online.String())
		}
	}
	r.nodes()
	r.cores()
	r.caches()
	return r.t
}

type topologyReader struct {
	tree fs.FS
	t    *Topology
}

// fault notes a file that is not as documented.
func (r *topologyReader) fault(name, want, got string) {
	if len(r.t.Faults) < maxFaults {
		r.t.Faults = append(r.t.Faults, fmt.Sprintf("/%s: want %s, got %.60q", name, want, got))
	}
}

// text reads a file that should be there.
func (r *topologyReader) text(name, want string) (string, bool) {
	text, err := readSmall(r.tree, name)
	switch {
	case err == nil:
		return text, true
	case errors.Is(err, fs.ErrNotExist):
		r.fault(name, want, "no file")
	default:
		r.fault(name, want, err.Error())
	}
	return "", false
}

// list reads a file with a list of CPUs or nodes.
func (r *topologyReader) list(name string) (CPUSet, bool) {
	const want = "a list of numbers"
	text, ok := r.text(name, want)
	if !ok {
		return CPUSet{}, false
	}
	set, ok := parseCPUs(text)
	if !ok {
		r.fault(name, want, text)
	}
	return set, ok
}

// nodes fills t.Nodes but for Cores.
func (r *topologyReader) nodes() {
	left := r.t.CPUs
	if _, err := fs.Stat(r.tree, systemNodes); err == nil {
		online, _ := r.list(systemNodes + "/online")
		for number := range online.All() {
			if number >= maxNodes {
				r.fault(systemNodes+"/online", fmt.Sprintf("nodes below %d", maxNodes), strconv.Itoa(number))
				break
			}
			dir := fmt.Sprintf("%s/node%d", systemNodes, number)
			node := Node{Number: number, MemoryBytes: r.memory(dir + "/meminfo")}
			if cpus, ok := r.list(dir + "/cpulist"); ok {
				node.CPUs = cpus.And(&left)
				for i := range left {
					left[i] &^= node.CPUs[i]
				}
			}
			r.t.Nodes = append(r.t.Nodes, node)
		}
		for i := range r.t.Nodes {
			n := &r.t.Nodes[i]
			n.Distances = r.distances(fmt.Sprintf("%s/node%d/distance", systemNodes, n.Number), len(r.t.Nodes))
		}
	}
	if !left.Empty() {
		r.t.Nodes = append(r.t.Nodes, Node{Number: -1, CPUs: left})
	}
}

// memory is a node's memory, from the line "Node 0 MemTotal:  123 kB".
func (r *topologyReader) memory(name string) int64 {
	const want = "a line MemTotal in kB"
	text, ok := r.text(name, want)
	if !ok {
		return 0
	}
	for line := range strings.Lines(text) {
		if _, rest, found := strings.Cut(line, "MemTotal:"); found {
			if n, ok := kilobytes("MemTotal:"+rest, "MemTotal:"); ok {
				return n
			}
		}
	}
	r.fault(name, want, text)
	return 0
}

// distances reads "10 21", a number for each of count nodes.
func (r *topologyReader) distances(name string, count int) []int {
	want := fmt.Sprintf("%d distances", count)
	text, ok := r.text(name, want)
	if !ok {
		return nil
	}
	fields := strings.Fields(text)
	if len(fields) != count {
		r.fault(name, want, text)
		return nil
	}
	out := make([]int, count)
	for i, f := range fields {
		n, err := strconv.ParseUint(f, 10, 8)
		if err != nil {
			r.fault(name, want, text)
			return nil
		}
		out[i] = int(n)
	}
	return out
}

// cores fills Cores of the nodes. Each CPU is in one core, whatever the files say.
func (r *topologyReader) cores() {
	var siblings CPUSet // CPUs of cores that have their first
	for i := range r.t.Nodes {
		n := &r.t.Nodes[i]
		for cpu := range n.CPUs.All() {
			if siblings.Has(cpu) {
				continue
			}
			n.Cores.Add(cpu)
			// The older name of the same file is on kernels before 5.3.
			name := fmt.Sprintf("%s/cpu%d/topology/core_cpus_list", systemCPUs, cpu)
			if _, err := fs.Stat(r.tree, name); err != nil {
				name = fmt.Sprintf("%s/cpu%d/topology/thread_siblings_list", systemCPUs, cpu)
			}
			core, ok := r.list(name)
			if ok && !core.Has(cpu) {
				r.fault(name, fmt.Sprintf("CPU %d in its own core", cpu), core.String())
				continue
			}
			// What is shared between nodes is no core.
			core = core.And(&n.CPUs)
			for j := range siblings {
				siblings[j] |= core[j]
			}
		}
	}
}

// caches fills Caches. Virtual machines often tell none, which is no fault.
func (r *topologyReader) caches() {
	type kind struct {
		level  int
		bytes  int64
		shared int
	}
	var known [maxCaches]CPUSet // by folder: CPUs whose cache has been counted
	counts := map[kind]int{}
	for cpu := range r.t.CPUs.All() {
		for i := range known {
			if known[i].Has(cpu) {
				continue
			}
			dir := fmt.Sprintf("%s/cpu%d/cache/index%d", systemCPUs, cpu, i)
			what, err := readSmall(r.tree, dir+"/type")
			if err != nil {
				break
			}
			if what != "Data" && what != "Unified" {
				continue
			}
			level, _ := readSmall(r.tree, dir+"/level")
			size, _ := readSmall(r.tree, dir+"/size")
			list, _ := readSmall(r.tree, dir+"/shared_cpu_list")
			shared, ok := parseCPUs(list)
			l, errLevel := strconv.ParseUint(level, 10, 4)
			kib, errSize := strconv.ParseUint(strings.TrimSuffix(size, "K"), 10, 32)
			if !ok || !shared.Has(cpu) || errLevel != nil || errSize != nil {
				r.fault(dir, "level, size in K, and a list with this CPU", strings.Join([]string{level, size, list}, " "))
				continue
			}
			shared = shared.And(&r.t.CPUs)
			for j := range shared {
				known[i][j] |= shared[j]
			}
			counts[kind{int(l), int64(kib) << 10, shared.Count()}]++
		}
	}
	for k, n := range counts {
		r.t.Caches = append(r.t.Caches, Cache{Level: k.level, Bytes: k.bytes, Shared: k.shared, Count: n})
	}
	slices.SortFunc(r.t.Caches, func(a, b Cache) int {
		return cmp.Or(cmp.Compare(a.Level, b.Level), cmp.Compare(a.Bytes, b.Bytes), cmp.Compare(a.Shared, b.Shared))
	})
}

// String is one line for a log, without the faults.
func (t *Topology) String() string {
	var parts []string
	for i := range t.Nodes {
		n := &t.Nodes[i]
		name := "no NUMA node"
		if n.Number >= 0 {
			name = fmt.Sprintf("node %d", n.Number)
		}
		part := name + " without CPUs"
		if cpus := n.CPUs.Count(); cpus > 0 {
			part = fmt.Sprintf("%s with %d CPUs of %d cores", name, cpus, n.Cores.Count())
		}
		if n.MemoryBytes > 0 {
			part += ", " + FormatBytes(n.MemoryBytes)
		}
		parts = append(parts, part)
	}
	for _, c := range t.Caches {
		if c.Level > 1 {
			parts = append(parts, fmt.Sprintf("%d L%d of %s", c.Count, c.Level, FormatBytes(c.Bytes)))
		}
	}
	if t.MemoryUnbound != nil {
		parts = append(parts, "memory lies where it is touched first: "+t.MemoryUnbound.Error())
	}
	return strings.Join(parts, "; ") + fmt.Sprintf("; CPUs %s (%s)", t.CPUs.String(), t.From)
}

// DeviceNode is the node of a PCI device, by its bus id ("0000:3b:00.0", in either case; the driver's form and that of
// tools, with eight digits of domain): -1 where the id is none, and where the machine does not tell.
func (m Machine) DeviceNode(busID string) int { return deviceNode(os.DirFS(m.Root), busID) }

func deviceNode(tree fs.FS, busID string) int {
	id := strings.ToLower(busID)
	// Kernels write domains with four digits, or more where they need them.
	for len(id) > len("0000:00:00.0") && id[0] == '0' {
		id = id[1:]
	}
	if !isBusID(id) {
		return -1
	}
	text, err := readSmall(tree, path.Join("sys/bus/pci/devices", id, "numa_node"))
	n, errNumber := strconv.ParseUint(text, 10, 10) // -1: none
	if err != nil || errNumber != nil {
		return -1
	}
	return int(n)
}

// isBusID tells "0000:3b:00.0" from what must not become a part of a path.
func isBusID(id string) bool {
	form := "xxxx:xx:xx.x"
	if extra := len(id) - len(form); extra < 0 || extra > 4 {
		return false
	} else if extra > 0 {
		form = "xxxx"[:extra] + form
	}
	for i := range len(form) {
		if form[i] == 'x' {
			if !strings.ContainsRune("0123456789abcdef", rune(id[i])) {
				return false
			}
		} else if id[i] != form[i] {
			return false
		}
	}
	return true
}
