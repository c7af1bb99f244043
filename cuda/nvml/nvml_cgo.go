//go:build cgo

package nvml

/*
#cgo linux LDFLAGS: -ldl
int sealc2_nvml_resolve(void);
*/
import "C"

import (
	"strings"
	"sync"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/sealc2/sealc2/engine/status"
)

// Session is NVML in use. All methods may be called from several goroutines at once.
type Session struct{}

// resolve fills the stubs once; before that no function of go-nvml may be called.
var resolve = sync.OnceValue(func() int { return int(C.sealc2_nvml_resolve()) })

// Open loads NVML. Errors: NoDevice, where there is no library or where it does not start.
func Open() (*Session, error) {
	const op = "nvml.Open"
	if resolve() < 0 {
		return nil, status.New(status.NoDevice, op, "", "libnvidia-ml.so.1", "none")
	}
	if r := nvml.Init(); r != nvml.SUCCESS {
		return nil, status.New(status.NoDevice, op, "", "NVML to start", nvml.ErrorString(r))
	}
	return &Session{}, nil
}

// Close gives NVML back.
func (s *Session) Close() error {
	if r := nvml.Shutdown(); r != nvml.SUCCESS {
		return status.New(status.Internal, "nvml.Close", "", "success", nvml.ErrorString(r))
	}
	return nil
}

// Release is the driver's, as "580.159.04".
func (s *Session) Release() (string, error) {
	text, r := nvml.SystemGetDriverVersion()
	if r != nvml.SUCCESS {
		return "", status.New(status.NoDevice, "nvml.Release", "", "the driver's release", nvml.ErrorString(r))
	}
	return text, nil
}

// Health asks about the device with a PCI bus id, as driver.Info has it. Errors: NoDevice.
func (s *Session) Health(pciBusID string) (Health, error) {
	const op = "nvml.Health"
	device, r := nvml.DeviceGetHandleByPciBusId(strings.ToUpper(pciBusID))
	if r != nvml.SUCCESS {
		return Health{}, status.New(status.NoDevice, op, pciBusID, "a device", nvml.ErrorString(r))
	}
	memory, r := device.GetMemoryInfo()
	if r != nvml.SUCCESS {
		return Health{}, status.New(status.NoDevice, op, pciBusID, "its memory", nvml.ErrorString(r))
	}
	h := Health{FreeBytes: int64(memory.Free), TotalBytes: int64(memory.Total)}
	// Not every device tells the rest.
	if v, r := device.GetPowerUsage(); r == nvml.SUCCESS {
		h.PowerMilliwatts = v
	}
	if v, r := device.GetEnforcedPowerLimit(); r == nvml.SUCCESS {
		h.LimitMilliwatts = v
	}
	if v, r := device.GetTemperature(nvml.TEMPERATURE_GPU); r == nvml.SUCCESS {
		h.Celsius = v
	}
	if v, r := device.GetClockInfo(nvml.CLOCK_SM); r == nvml.SUCCESS {
		h.ClockMHz = v
	}
	if v, r := device.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC); r == nvml.SUCCESS {
		h.Uncorrected = v
	}
	if v, r := device.GetCurrentClocksEventReasons(); r == nvml.SUCCESS {
		h.Throttle = throttled(v)
	}
	return h, nil
}
