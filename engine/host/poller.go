package host

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/sealc2/sealc2/engine/status"
)

// StartPoller makes the Go runtime's poller, which serves its files and timers, while there are descriptors
// for it. The runtime makes it at the first use, and ends the whole process where that fails. Whoever runs as
// a guest calls this before anything else; once is enough, more does no harm.
// Fails with NoMemory where the process may not open two more files.
func StartPoller(op string) error {
	poll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err == nil {
		var event int
		if event, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err == nil {
			err = unix.Close(event)
		}
		_ = unix.Close(poll)
	}
	if err != nil {
		e := status.Wrap(status.NoMemory, op, "open files", err)
		e.Want, e.Got = "room for two more (RLIMIT_NOFILE)", "none"
		return e
	}
	time.AfterFunc(0, func() {}) // any timer takes the poller into use
	return nil
}
