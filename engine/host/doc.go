// Package host is the machine: CPU threads that we may use, memory limits, the one budget, and arenas.
//
// What it reports is what the process may use, not what the machine has: the affinity mask and the cgroup
// (version 1 or 2, with all ancestors) count as well as a configured ceiling, and the smallest wins. It
// refuses nothing but reservations that can never fit. engine, sched and the backends call it.
//
// Sources: proc(5), cgroups(7), Linux Documentation/admin-guide/cgroup-v1/memory.rst and cgroup-v2.rst.
package host
