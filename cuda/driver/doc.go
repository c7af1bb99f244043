// Package driver is the CUDA driver API as sealc2 uses it: libcuda.so.1, opened at run time, behind typed handles
// for devices, streams, events, kernels and memory.
//
// Nothing links against the driver, so a program that contains this package starts anywhere; where there is no
// driver, no device, or one that is too old, Load and Candidates say so by value. Every call goes through one
// place (API.call), which counts it by class, can make it fail on purpose, and knows which calls stall a whole
// device. The table of entries behind that place is replaceable: package sim supplies one that needs no GPU.
//
// Two rules come from the driver. A context is current to an operating system thread: whoever uses a Device
// does so between Enter and the leave that it returns, on that goroutine. And queued work is asynchronous: host
// memory handed to a copy must stay as it is, and in place, until the stream has passed it.
//
// It refuses what it cannot do with status errors whose cause is a *Failure: the entry, the driver's number, name and
// text. Callers are package cuda, its algorithms, and their tests. Sources: the CUDA driver API reference and
// cuda.h 13.0 for names, numbers and layouts; docs/measurements.md for which calls stall.
package driver
