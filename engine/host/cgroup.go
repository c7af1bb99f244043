package host

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// cgroupLimits are the tightest limits of our control group and its ancestors. math.MaxInt64 and +Inf
// stand for none.
type cgroupLimits struct {
	memory     int64
	memoryFrom string // the file that says so, without the root
	cpus       float64
	cpusFrom   string
	cpuset     CPUSet // empty: none is told
	cpusetFrom string
}

// hierarchy is one mounted cgroup tree: where it is mounted and which group its top directory is.
type hierarchy struct {
	mount, top string
	version    int
	controller string // version 1: the controller we look for in it
}

// readCgroup finds our groups by /proc/self/cgroup and /proc/self/mountinfo below root. A machine without
// control groups, or a file that is not as documented, limits nothing: these files are advice about the
// surroundings, and a prover must start where they are missing.
func readCgroup(root string) cgroupLimits {
	limits := cgroupLimits{memory: math.MaxInt64, cpus: math.Inf(1)}
	groups, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return limits
	}
	mounts, err := os.ReadFile(filepath.Join(root, "proc/self/mountinfo"))
	if err != nil {
		return limits
	}
	all := parseMounts(string(mounts))
	for line := range strings.Lines(string(groups)) {
		// "4:memory:/a/b", version 2 as "0::/a/b". The path itself may hold colons.
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) != 3 {
			continue
		}
		for _, h := range all {
			if h.version == 2 && parts[0] == "0" && parts[1] == "" {
				h.walk(root, parts[2], limits.unified)
			}
			if h.version == 1 && hasWord(parts[1], h.controller) {
				h.walk(root, parts[2], limits.legacy)
			}
		}
	}
	return limits
}

// parseMounts picks the cgroup mounts out of mountinfo: "36 35 98:0 /top /mount opts fields - type source superopts".
func parseMounts(text string) []hierarchy {
	var all []hierarchy
	for line := range strings.Lines(text) {
		before, after, found := strings.Cut(line, " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if !found || len(left) < 5 || len(right) < 3 {
			continue
		}
		top, mount := unescape(left[3]), unescape(left[4])
		switch right[0] {
		case "cgroup2":
			all = append(all, hierarchy{mount: mount, top: top, version: 2})
		case "cgroup":
			for _, controller := range []string{"memory", "cpu", "cpuset"} {
				if hasWord(right[2], controller) {
					all = append(all, hierarchy{mount: mount, top: top, version: 1, controller: controller})
				}
			}
		}
	}
	return all
}

// hasWord looks for word in a comma-separated list.
func hasWord(list, word string) bool {
	for w := range strings.SplitSeq(list, ",") {
		if w == word {
			return true
		}
	}
	return false
}

// unescape undoes mountinfo's octal form of space, tab, newline and backslash.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// walk visits our group's directory and its ancestors up to the mount: a limit anywhere on the way holds
// for us. In a container the path may be seen from outside the mount; then the mount itself is our group.
func (h hierarchy) walk(root, group string, visit func(root, dir string)) {
	inside := "/"
	switch {
	case h.top == "/":
		inside = group
	case group == h.top || strings.HasPrefix(group, h.top+"/"):
		inside = group[len(h.top):]
	}
	inside = path.Clean("/" + inside)
	if _, err := os.Stat(filepath.Join(root, h.mount, inside)); errors.Is(err, fs.ErrNotExist) {
		inside = "/"
	}
	for {
		visit(root, path.Join(h.mount, inside))
		if inside == "/" {
			return
		}
		inside = path.Dir(inside)
	}
}

// unified reads the files of a version 2 group. memory.high counts as well: above it the kernel throttles
// a process until it hardly runs.
func (l *cgroupLimits) unified(root, dir string) {
	l.takeMemory(root, path.Join(dir, "memory.max"))
	l.takeMemory(root, path.Join(dir, "memory.high"))
	file := path.Join(dir, "cpu.max") // "max 100000" or "150000 100000"
	if fields := strings.Fields(readText(root, file)); len(fields) == 2 {
		l.takeCPU(fields[0], fields[1], file)
	}
	l.takeSet(root, path.Join(dir, "cpuset.cpus.effective"))
}

// legacy reads the files of a version 1 group; only those of the hierarchy's controller exist.
func (l *cgroupLimits) legacy(root, dir string) {
	l.takeMemory(root, path.Join(dir, "memory.limit_in_bytes"))
	file := path.Join(dir, "cpu.cfs_quota_us") // -1: none
	l.takeCPU(readText(root, file), readText(root, path.Join(dir, "cpu.cfs_period_us")), file)
	l.takeSet(root, path.Join(dir, "cpuset.effective_cpus"))
}

func (l *cgroupLimits) takeMemory(root, file string) {
	n, err := strconv.ParseInt(readText(root, file), 10, 64)
	if err == nil && n > 0 && n < l.memory {
		l.memory, l.memoryFrom = n, file
	}
}

func (l *cgroupLimits) takeCPU(quota, period, file string) {
	q, errQ := strconv.ParseInt(quota, 10, 64)
	p, errP := strconv.ParseInt(period, 10, 64)
	if errQ == nil && errP == nil && q > 0 && p > 0 && float64(q)/float64(p) < l.cpus {
		l.cpus, l.cpusFrom = float64(q)/float64(p), file
	}
}

// takeSet narrows the set of CPUs. A group without its own has its parent's.
func (l *cgroupLimits) takeSet(root, file string) {
	text, err := readSmall(os.DirFS(root), strings.TrimPrefix(file, "/"))
	set, ok := parseCPUs(text)
	if err != nil || !ok || set.Empty() {
		return
	}
	if l.cpusetFrom != "" {
		if set = set.And(&l.cpuset); set == l.cpuset || set.Empty() {
			return
		}
	}
	l.cpuset, l.cpusetFrom = set, file
}

// readText is a file's first kilobyte without surrounding space; empty where it cannot be read.
func readText(root, file string) string {
	f, err := os.Open(filepath.Join(root, file))
	if err != nil {
		return ""
	}
	defer f.Close()
	var buf [1024]byte
	n, _ := f.Read(buf[:])
	return strings.TrimSpace(string(buf[:n]))
}
