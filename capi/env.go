package main

// #include <stdlib.h>
import "C"

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sealc2/sealc2/engine"
	"github.com/sealc2/sealc2/engine/params"
	"github.com/sealc2/sealc2/engine/status"
)

// How a caller answers whether development parameters are accepted; sealc2_dev_params of sealc2.h.
const (
	devParamsEnv = iota
	devParamsAllow
	devParamsRefuse
	devParamsCount
)

// environment reads a variable as it is now, not as it was when the library loaded. Unset reads as empty.
func environment(name string) string {
	key := C.CString(name)
	defer C.free(unsafe.Pointer(key))
	if value := C.getenv(key); value != nil {
		return C.GoString(value)
	}
	return ""
}

// paramSource joins what a call says with what the environment says. An empty dir means the environment's.
func paramSource(getenv func(string) string, dir string, dev uint32) engine.ParamSource {
	from := params.Dir{Path: dir, Origin: "the call"}
	if dir == "" {
		from = params.EnvironmentDir(getenv(params.EnvDir))
	}
	return engine.ParamSource{
		Dir:              from.Path,
		Origin:           from.Origin,
		AllowDev:         dev == devParamsAllow || dev == devParamsEnv && getenv("SEALC2_ALLOW_DEV_PARAMS") == "1",
		VerifyProduction: params.IsOn(getenv(params.EnvVerifyProduction)),
	}
}

// deviceEnv names the device for callers who cannot say, as engine.Config's Device; unset: "auto".
const deviceEnv = "SEALC2_DEVICE"

// gpuLockFile is the file by which engines take turns on GPUs with other programs; "" for none.
func gpuLockFile() string {
	return engine.GPULockFile(environment(engine.EnvGPULock), environment("TMPDIR"))
}

// Log levels in order of detail.
var logLevels = [...]string{"off", "error", "warn", "info", "debug", "trace"}

// logLevel is the index in logLevels that RUST_LOG asked for at the latest call.
var logLevel atomic.Int32

func levelIndex(name string) (int, bool) {
	for i, level := range logLevels {
		if strings.EqualFold(level, name) {
			return i, true
		}
	}
	return 0, false
}

// parseLogLevel reads RUST_LOG: directives by comma, each a level, a target, or target=level. A directive
// for sealc2 goes before a general one; those for other targets are not for us.
func parseLogLevel(text string) int {
	general, own, hasOwn := 0, 0, false
	filters, _, _ := strings.Cut(text, "/") // a pattern on the text may follow
	for _, directive := range strings.Split(filters, ",") {
		target, name, split := strings.Cut(strings.TrimSpace(directive), "=")
		level, known := levelIndex(name)
		switch {
		case !split:
			if level, known = levelIndex(target); known {
				general = level
			} else if target == "sealc2" {
				own, hasOwn = len(logLevels)-1, true
			}
		case target == "sealc2" && known:
			own, hasOwn = level, true
		}
	}
	if hasOwn {
		return own
	}
	return general
}

// logging is where log lines go.
var logging struct {
	started atomic.Bool  // lines may have been written
	fd      atomic.Int32 // the descriptor plus one; 0: stderr
}

// logTo sends all lines to a descriptor, which is then owned here, before the first line was written.
func logTo(op string, fd int) error {
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0); err != nil {
		return status.Wrap(status.Caller, op, fmt.Sprintf("log_fd %d", fd), err)
	}
	if !logging.started.CompareAndSwap(false, true) {
		return status.New(status.Caller, op, "log_fd", "the first call of all", "a logger that is active already")
	}
	logging.fd.Store(int32(fd) + 1)
	return nil
}

// logLine writes one event to stderr, in the form that miners' tools know: time LEVEL module > text.
func logLine(level, text string) {
	if index, known := levelIndex(level); known && index > int(logLevel.Load()) {
		return
	}
	fd := unix.Stderr
	if own := logging.fd.Load(); own != 0 {
		fd = int(own) - 1
	}
	line := fmt.Sprintf("%s %s sealc2 > %s\n", time.Now().UTC().Format("2006-01-02T15:04:05.000"), strings.ToUpper(level), text)
	writeAll(fd, []byte(line))
}

// writeAll writes to a descriptor of the host's, and drops what it cannot take. It is not an os.File: one that is
// stdout or stderr ends the process when nobody reads the pipe behind it, also where the host ignores SIGPIPE.
func writeAll(fd int, data []byte) {
	for len(data) > 0 {
		n, err := unix.Write(fd, data)
		switch {
		case err == nil:
			data = data[n:]
		case errors.Is(err, unix.EAGAIN): // the host made it non-blocking
			if _, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, -1); err != nil && !errors.Is(err, unix.EINTR) {
				return
			}
		case !errors.Is(err, unix.EINTR):
			return
		}
	}
}
