package host

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/sealc2/sealc2/engine/status"
)

// LockKind says who may hold a lock of a file besides.
type LockKind int

// The kinds.
const (
	Exclusive  LockKind = unix.LOCK_EX // nobody
	SharedLock LockKind = unix.LOCK_SH // those of the same kind
)

// OpenLock opens a file that programs lock, and makes it where there is none, without a look at what it holds. Another user's will do, which may only be
// read: to open it as if to make it is refused where the kernel protects files in shared folders. Errors: Caller, which names the file.
func OpenLock(path string) (*os.File, error) {
	const op = "host.OpenLock"
	const flags = unix.O_CLOEXEC | unix.O_NOCTTY | unix.O_NONBLOCK
	f, err := os.OpenFile(path, os.O_RDONLY|flags, 0)
	if errors.Is(err, os.ErrNotExist) {
		f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|flags, 0o666)
	}
	if err != nil {
		return nil, status.Wrap(status.Caller, op, path, err)
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		err = status.Wrap(status.Caller, op, path, err)
	case !info.Mode().IsRegular():
		err = status.New(status.Caller, op, path, "a regular file", fmt.Sprintf("one of mode %v", info.Mode()))
	default:
		return f, nil
	}
	_ = f.Close() // nothing was written
	return nil, err
}

// TryLock takes the lock of a file (flock), which goes when the file is closed; nil where somebody else has it. Errors: as OpenLock's.
func TryLock(path string, kind LockKind) (*os.File, error) {
	f, err := OpenLock(path)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(f.Fd()), int(kind)|unix.LOCK_NB)
		switch err {
		case nil:
			return f, nil
		case unix.EINTR:
			continue
		}
		_ = f.Close() // nothing was written
		if err == unix.EWOULDBLOCK {
			return nil, nil
		}
		return nil, status.Wrap(status.Caller, "host.TryLock", path, err)
	}
}
