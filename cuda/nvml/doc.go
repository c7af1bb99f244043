// Package nvml asks NVIDIA's management library about devices: the driver's release, and what each device is doing. It is
// for logs and metrics, never for the way of a proof, which goes on without it.
//
// It wraps go-nvml. The stubs in stubs.c define all the functions that go-nvml leaves undefined, so that a shared library
// with this package in it loads with every symbol bound; zz_names.h is made from go-nvml's header. A build without cgo
// has no NVML and says so by value.
//
//go:generate go run gen.go
package nvml

// Health is a device at one moment. What the device does not tell is 0.
type Health struct {
	FreeBytes, TotalBytes int64
	PowerMilliwatts       uint32
	LimitMilliwatts       uint32
	Celsius               uint32
	ClockMHz              uint32 // of the multiprocessors
	Uncorrected           uint64 // ECC errors since the driver was loaded
	Throttle              []string
}
