package host

import (
	"fmt"
	"math"
	"runtime"
	"strconv"
	"strings"

	"github.com/sealc2/sealc2/engine/status"
)

// Limits is what the process may use, and what decided so.
type Limits struct {
	Threads     int
	ThreadsFrom string // "configured", "affinity mask" or the cgroup file
	HostBytes   int64
	HostFrom    string // "configured", "machine memory" or the cgroup file
}

// String is one line for a log.
func (l Limits) String() string {
	return fmt.Sprintf("%d threads (%s), %s of host memory (%s)", l.Threads, l.ThreadsFrom, FormatBytes(l.HostBytes), l.HostFrom)
}

// headroom is the part of a memory limit that the budget leaves alone when nobody configured one: the Go
// runtime, programs, code and page tables live there. A sixteenth, at least 64 MiB, at most 2 GiB.
func headroom(limit int64) int64 {
	return min(max(limit/16, 64<<20), 2<<30, limit/2)
}

// EnvThreads is the variable that miners set as the cap of CPU threads.
const EnvThreads = "RAYON_NUM_THREADS"

// ThreadCap reads a value of EnvThreads, which the caller has looked up: 0, as unset or malformed text, is no cap.
func ThreadCap(value string) int {
	n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 16)
	if err != nil {
		return 0
	}
	return int(n)
}

// Machine is where facts about the machine are read from. Tests set Root to a recorded tree.
type Machine struct {
	Root     string                 // "/" or the top of a tree with proc and sys below it
	Affinity func() (CPUSet, error) // the affinity mask
	// Sysinfo is asked for the memory where Root has no proc/meminfo; nil: that is an error.
	Sysinfo func() (Memory, error)
	// BindMemory tries whether memory can be put near a node and says why not; nil: nobody tries.
	BindMemory func(node int) error
}

// ThisMachine is the machine that we run on.
func ThisMachine() Machine {
	return Machine{Root: "/", Affinity: affinity, Sysinfo: sysinfo, BindMemory: tryBinding}
}

// affinity is the set of CPUs that the calling thread may run on, which is the process's: no thread of ours that calls
// this is bound. Where the kernel does not say, the number that the Go runtime counted at the start stands in.
func affinity() (CPUSet, error) {
	mask, err := threadMask(0)
	if err != nil || mask.Empty() {
		return firstCPUs(runtime.NumCPU()), nil
	}
	return mask, nil
}

// Limits is the smallest of the configured ceilings (0 = none), the affinity mask, the cgroup limits and
// the machine's memory. A CPU quota of a fraction counts as the next whole thread. A configured
// hostBytes is taken as it is where it is smallest; the other limits keep some headroom.
// Fails with Caller for a negative ceiling, NoMemory or Internal where the machine does not tell its memory.
func (m Machine) Limits(threads int, hostBytes int64) (Limits, error) {
	const op = "host.Limits"
	if threads < 0 {
		return Limits{}, status.New(status.Caller, op, "threads", "0 or more", strconv.Itoa(threads))
	}
	if hostBytes < 0 {
		return Limits{}, status.New(status.Caller, op, "host bytes", "0 or more", strconv.FormatInt(hostBytes, 10))
	}
	mask, err := m.Affinity()
	if err != nil {
		return Limits{}, status.Wrap(status.Internal, op, "affinity mask", err)
	}
	memory, err := m.Memory()
	if err != nil {
		return Limits{}, err
	}
	group := readCgroup(m.Root)

	l := Limits{Threads: mask.Count(), ThreadsFrom: "affinity mask", HostBytes: memory.Total, HostFrom: "machine memory"}
	if group.cpus < float64(l.Threads) {
		l.Threads, l.ThreadsFrom = max(1, int(math.Ceil(group.cpus))), group.cpusFrom
	}
	if threads > 0 && threads < l.Threads {
		l.Threads, l.ThreadsFrom = threads, "configured"
	}
	if group.memory < l.HostBytes {
		l.HostBytes, l.HostFrom = group.memory, group.memoryFrom
	}
	l.HostBytes -= headroom(l.HostBytes)
	if hostBytes > 0 && hostBytes < l.HostBytes {
		l.HostBytes, l.HostFrom = hostBytes, "configured"
	}
	return l, nil
}
