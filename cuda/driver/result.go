package driver

import (
	"errors"
	"fmt"

	"github.com/sealc2/sealc2/engine/status"
)

// Result is the driver's number for how a call went; 0 is success.
type Result int32

// The results that sealc2 tells apart. Names and numbers: cuda.h.
const (
	Success             Result = 0
	InvalidValue        Result = 1
	OutOfMemory         Result = 2
	NotInitialized      Result = 3
	DeviceUnavailable   Result = 46
	NoDevice            Result = 100
	InvalidDevice       Result = 101
	InvalidContext      Result = 201
	MapFailed           Result = 205
	NoBinaryForGPU      Result = 209
	ECCUncorrectable    Result = 214
	NVLinkUncorrectable Result = 220
	NotFound            Result = 500
	NotReady            Result = 600
	IllegalAddress      Result = 700
	LaunchTimeout       Result = 702
	HardwareStackError  Result = 714
	IllegalInstruction  Result = 715
	LaunchFailed        Result = 719
	Unknown             Result = 999
)

// lost tells results after which a context answers nothing else any more.
func (r Result) lost() bool {
	switch r {
	case ECCUncorrectable, NVLinkUncorrectable, IllegalAddress, LaunchTimeout, LaunchFailed, Unknown:
		return true
	}
	return r >= HardwareStackError && r < LaunchFailed
}

// Failure is a driver call that failed: the cause in the errors of this package.
type Failure struct {
	Entry  Entry
	Result Result
	Name   string // as the driver says it, "CUDA_ERROR_ILLEGAL_ADDRESS"; empty where it does not know
	Text   string // the driver's sentence; may be empty
}

// Error is the text for the operator.
func (f *Failure) Error() string {
	switch {
	case f.Name == "":
		return fmt.Sprintf("%s: error %d", f.Entry, f.Result)
	case f.Text == "":
		return fmt.Sprintf("%s: %s (%d)", f.Entry, f.Name, f.Result)
	}
	return fmt.Sprintf("%s: %s (%d): %s", f.Entry, f.Name, f.Result, f.Text)
}

// IsLost says whether an error means that the context is dead: nothing on the device can be trusted or used until
// the context has been given up.
func IsLost(err error) bool {
	var f *Failure
	return errors.As(err, &f) && f.Result.lost()
}

// kind says whose fault a result is.
func (r Result) kind() status.Kind {
	switch {
	case r == Success:
		return status.OK
	case r == OutOfMemory || r == MapFailed:
		return status.NoMemory
	case r.lost(), r == NoDevice, r == DeviceUnavailable, r == NoBinaryForGPU, r == InvalidDevice, r == NotInitialized:
		return status.NoDevice
	}
	// The rest are calls that must not have been made so, or states that this version does not know. Both end a
	// job and say what the driver said.
	return status.Internal
}
