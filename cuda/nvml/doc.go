// Package nvml asks NVIDIA's management library about devices: the driver's release, and what each device is doing. It is
// for logs and metrics, never for the way of a proof, which goes on without it.
//
// It wraps go-nvml. The stubs in stubs.c define all the functions that go-nvml leaves undefined, so that a shared library
// with this package in it loads with every symbol bound; zz_names.h is made from go-nvml's header. In a build without cgo
// there is no go-nvml: there the few functions that are needed are called through purego, as the driver's are.
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

// throttles are the reasons that an operator wants to hear of, by nvml.h's bits nvmlClocksEventReason... and nvmlClocksThrottleReason...
var throttles = []struct {
	bit  uint64
	name string
}{
	{0x04, "power cap"},
	{0x08, "hardware slowdown"},
	{0x20, "temperature"},
	{0x40, "temperature, hardware"},
	{0x80, "power brake"},
}

// throttled names the reasons in a set of bits.
func throttled(bits uint64) (names []string) {
	for _, t := range throttles {
		if bits&t.bit != 0 {
			names = append(names, t.name)
		}
	}
	return names
}
