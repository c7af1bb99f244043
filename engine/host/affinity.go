package host

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The masks of x/sys hold 1024 CPUs, and on a machine with more the kernel refuses to fill them: these calls take ours.

// threadMask is the set of CPUs that a thread may run on; 0 is the calling one. Source: sched_getaffinity(2).
func threadMask(thread int) (mask CPUSet, err error) {
	_, _, errno := unix.RawSyscall(unix.SYS_SCHED_GETAFFINITY, uintptr(thread), unsafe.Sizeof(mask), uintptr(unsafe.Pointer(&mask)))
	if errno != 0 {
		return CPUSet{}, errno
	}
	return mask, nil
}

// bindThread binds the calling thread to a set of CPUs, which must not be empty.
func bindThread(mask *CPUSet) error {
	if _, _, errno := unix.RawSyscall(unix.SYS_SCHED_SETAFFINITY, 0, unsafe.Sizeof(*mask), uintptr(unsafe.Pointer(mask))); errno != 0 {
		return errno
	}
	return nil
}

// maxNodes bounds node numbers: the largest MAX_NUMNODES of Linux on x86-64.
const maxNodes = 1 << 10

// preferPolicy is MPOL_PREFERRED of linux/mempolicy.h: memory of the node while it has some, then of others.
const preferPolicy = 1

// preferNode asks for memory of a node behind the pages of block that nobody has touched. Source: mbind(2).
func preferNode(block []byte, node int) error {
	if node >= maxNodes {
		return unix.EINVAL
	}
	var mask [maxNodes / 64]uint64
	mask[node>>6] |= 1 << (node & 63)
	// The kernel takes one bit less than it is told.
	_, _, errno := unix.Syscall6(unix.SYS_MBIND, uintptr(unsafe.Pointer(unsafe.SliceData(block))), uintptr(len(block)), preferPolicy,
		uintptr(unsafe.Pointer(&mask)), maxNodes+1, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// tryBinding asks for a page of a node: container runtimes forbid the call, and kernels without NUMA lack it.
func tryBinding(node int) error {
	page, err := unix.Mmap(-1, 0, 1<<12, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return err
	}
	refused := preferNode(page, node)
	if err := unix.Munmap(page); err != nil {
		return err
	}
	return refused
}

// CPUTime is what all threads of the process have used so far, in user and kernel mode; 0 where the system does not tell.
func CPUTime() time.Duration {
	var used unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &used) != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
