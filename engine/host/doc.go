// Package host is the machine: CPU threads that we may use and where they run, memory limits, the one budget, and arenas.
//
// What it reports is what the process may use, not what the machine has: the affinity mask and the cgroup
// (version 1 or 2, with all ancestors) count as well as a configured ceiling, and the smallest wins. It
// refuses nothing but reservations that can never fit. engine, sched, circuit and the backends call it.
//
// Topology says where CPUs and memory stand; Do is the one way in which loops are spread over threads, and a Pool has
// threads for it that are bound to NUMA nodes.
//
// Sources: proc(5), cgroups(7), cpuset(7), sched_setaffinity(2), mbind(2), Linux Documentation/admin-guide/cputopology.rst,
// cgroup-v1/memory.rst and cgroup-v2.rst there, and Documentation/ABI/stable/sysfs-devices-{node,system-cpu}.
package host
