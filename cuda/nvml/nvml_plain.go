//go:build !cgo

package nvml

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/sealc2/sealc2/engine/status"
)

// Session is NVML in use. All methods may be called from several goroutines at once.
type Session struct{ *library }

// symbol is a function of NVML.
type symbol int

// The functions that are called, by the names of symbols.
const (
	start symbol = iota
	shutdown
	driverVersion
	deviceByBus
	memoryInfo
	powerUsage
	powerLimit
	temperature
	clock
	eccErrors
	clockReasons
	symbolCount
)

// symbols are their names in nvml.h, the better ones first. Those behind memoryInfo may be missing.
var symbols = [symbolCount][]string{
	start:         {"nvmlInit_v2"},
	shutdown:      {"nvmlShutdown"},
	driverVersion: {"nvmlSystemGetDriverVersion"},
	deviceByBus:   {"nvmlDeviceGetHandleByPciBusId_v2"},
	memoryInfo:    {"nvmlDeviceGetMemoryInfo"},
	powerUsage:    {"nvmlDeviceGetPowerUsage"},
	powerLimit:    {"nvmlDeviceGetEnforcedPowerLimit"},
	temperature:   {"nvmlDeviceGetTemperature"},
	clock:         {"nvmlDeviceGetClockInfo"},
	eccErrors:     {"nvmlDeviceGetTotalEccErrors"},
	clockReasons:  {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"},
}

// Numbers of enumerations in nvml.h.
const (
	sensorGPU          = 0
	clockSM            = 1
	uncorrectedErrors  = 1
	sinceDriverLoaded  = 0
	driverVersionBytes = 80 // with the 0 at the end
)

// library is libnvidia-ml with the addresses of what is called.
type library struct {
	address [symbolCount]uintptr
}

// load opens the library once. It is never closed: its threads would not survive that.
var load = sync.OnceValues(func() (*library, error) { return openLibrary("libnvidia-ml.so.1") })

func openLibrary(name string) (*library, error) {
	const op = "nvml.Open"
	handle, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, status.New(status.NoDevice, op, "", "libnvidia-ml.so.1", "none: "+err.Error())
	}
	l := &library{}
	for s := range symbolCount {
		for _, called := range symbols[s] {
			if l.address[s], err = purego.Dlsym(handle, called); err == nil {
				break
			}
			l.address[s] = 0
		}
		if l.address[s] == 0 && s <= memoryInfo {
			return nil, status.New(status.NoDevice, op, name, symbols[s][0], "a library without it")
		}
	}
	return l, nil
}

// call makes one call, and says whether it succeeded. Pointers among the arguments are converted in the caller's argument list, which keeps
// what they point to in place.
//
//go:uintptrescapes
func (l *library) call(s symbol, args ...uintptr) error {
	if l.address[s] == 0 {
		return fmt.Errorf("%s is missing", symbols[s][0])
	}
	r, _, _ := purego.SyscallN(l.address[s], args...)
	if code := int32(r); code != 0 {
		return fmt.Errorf("%s returned %d", symbols[s][0], code)
	}
	return nil
}

// Open loads NVML. Errors: NoDevice, where there is no library or where it does not start.
func Open() (*Session, error) {
	l, err := load()
	if err != nil {
		return nil, err
	}
	return l.start()
}

func (l *library) start() (*Session, error) {
	if err := l.call(start); err != nil {
		return nil, status.New(status.NoDevice, "nvml.Open", "", "NVML to start", err.Error())
	}
	return &Session{l}, nil
}

// Close gives NVML back.
func (s *Session) Close() error {
	if err := s.call(shutdown); err != nil {
		return status.New(status.Internal, "nvml.Close", "", "success", err.Error())
	}
	return nil
}

// Release is the driver's, as "580.159.04".
func (s *Session) Release() (string, error) {
	text := make([]byte, driverVersionBytes)
	if err := s.call(driverVersion, uintptr(unsafe.Pointer(unsafe.SliceData(text))), driverVersionBytes); err != nil {
		return "", status.New(status.NoDevice, "nvml.Release", "", "the driver's release", err.Error())
	}
	text, _, _ = bytes.Cut(text, []byte{0})
	return string(text), nil
}

// Health asks about the device with a PCI bus id, as driver.Info has it. Errors: NoDevice.
func (s *Session) Health(pciBusID string) (h Health, err error) {
	const op = "nvml.Health"
	id := append([]byte(strings.ToUpper(pciBusID)), 0)
	var device uintptr
	if err := s.call(deviceByBus, uintptr(unsafe.Pointer(unsafe.SliceData(id))), uintptr(unsafe.Pointer(&device))); err != nil {
		return Health{}, status.New(status.NoDevice, op, pciBusID, "a device", err.Error())
	}
	var memory struct{ total, free, used uint64 } // nvmlMemory_t
	if err := s.call(memoryInfo, device, uintptr(unsafe.Pointer(&memory))); err != nil {
		return Health{}, status.New(status.NoDevice, op, pciBusID, "its memory", err.Error())
	}
	h = Health{FreeBytes: int64(memory.free), TotalBytes: int64(memory.total)}
	// Not every device tells the rest.
	var word uint32
	if s.call(powerUsage, device, uintptr(unsafe.Pointer(&word))) == nil {
		h.PowerMilliwatts = word
	}
	if s.call(powerLimit, device, uintptr(unsafe.Pointer(&word))) == nil {
		h.LimitMilliwatts = word
	}
	if s.call(temperature, device, sensorGPU, uintptr(unsafe.Pointer(&word))) == nil {
		h.Celsius = word
	}
	if s.call(clock, device, clockSM, uintptr(unsafe.Pointer(&word))) == nil {
		h.ClockMHz = word
	}
	var wide uint64
	if s.call(eccErrors, device, uncorrectedErrors, sinceDriverLoaded, uintptr(unsafe.Pointer(&wide))) == nil {
		h.Uncorrected = wide
	}
	if s.call(clockReasons, device, uintptr(unsafe.Pointer(&wide))) == nil {
		h.Throttle = throttled(wide)
	}
	return h, nil
}
