package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sealc2/sealc2/engine/status"
)

// Memory is the machine's memory in bytes, whatever the process may use of it.
type Memory struct {
	Total     int64
	Available int64 // what could be used without swapping
}

// Memory reads /proc/meminfo, or asks the kernel where there is no /proc. Fails with NoMemory where the process
// has no descriptor left to read it with, and with Internal where it is not as proc(5) says.
func (m Machine) Memory() (Memory, error) {
	const op = "host.Memory"
	file := filepath.Join(m.Root, "proc/meminfo")
	text, err := os.ReadFile(file)
	switch {
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE):
		return Memory{}, status.Wrap(status.NoMemory, op, file, err)
	case err != nil && m.Sysinfo != nil:
		return m.Sysinfo()
	case err != nil:
		return Memory{}, status.Wrap(status.Internal, op, file, err)
	}
	total, ok := kilobytes(string(text), "MemTotal:")
	if !ok {
		return Memory{}, status.New(status.Internal, op, file, "a line MemTotal in kB", "none")
	}
	available, ok := kilobytes(string(text), "MemAvailable:")
	if !ok { // kernels before 3.14
		available, _ = kilobytes(string(text), "MemFree:")
	}
	return Memory{Total: total, Available: available}, nil
}

// sysinfo asks the kernel for what /proc/meminfo tells better: it counts no cache as available.
func sysinfo() (Memory, error) {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return Memory{}, status.Wrap(status.Internal, "host.Memory", "sysinfo", err)
	}
	return Memory{Total: int64(info.Totalram) * int64(info.Unit), Available: int64(info.Freeram) * int64(info.Unit)}, nil
}

// PeakRSS is the largest resident set that the process ever had, in bytes; 0 where the system does not tell.
func PeakRSS() int64 { return ownStatus("VmHWM:") }

// RSS is the resident set of the process, in bytes; 0 where the system does not tell.
func RSS() int64 { return ownStatus("VmRSS:") }

func ownStatus(key string) int64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	n, _ := kilobytes(string(text), key)
	return n
}

// kilobytes finds the line "key  123 kB" and returns bytes.
func kilobytes(text, key string) (int64, bool) {
	for line := range strings.Lines(text) {
		rest, found := strings.CutPrefix(line, key)
		if !found {
			continue
		}
		fields := strings.Fields(rest)
		if len(fields) != 2 || fields[1] != "kB" {
			return 0, false
		}
		n, err := strconv.ParseInt(fields[0], 10, 64)
		if err != nil || n < 0 || n > 1<<52 {
			return 0, false
		}
		return n << 10, true
	}
	return 0, false
}

// FormatBytes writes a size for people: three digits and a binary unit.
func FormatBytes(n int64) string {
	if n > -1024 && n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	value, units := float64(n), "KMGTPE"
	for i := range units {
		value /= 1024
		if value > -1023.5 && value < 1023.5 || i == len(units)-1 {
			return fmt.Sprintf("%.3g %ciB", value, units[i])
		}
	}
	return ""
}
