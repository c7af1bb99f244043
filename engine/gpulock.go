package engine

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
)

// The files by which bellperson's programs take turns on a machine's GPUs (bellperson, src/gpu/locks.rs): each holds an exclusive flock of the first
// while it uses one, and who is in a hurry holds the second, whereupon the others let go of the first.
const (
	gpuLockName      = "bellman.gpu.lock"
	priorityLockName = "bellman.priority.lock"
)

const (
	// gpuTurn is how long an engine with work without end keeps the GPUs: then no job begins until those that have begun are over and
	// whoever else waits had his chance.
	gpuTurn = time.Minute
	// gpuPoll is how often a job that waits looks again. A wait in flock could not be cancelled; it also goes first, whatever we do.
	gpuPoll = 20 * time.Millisecond
)

// gpuLock is an engine's part in that arrangement. Its jobs hold the lock together, from the first one's start to the last one's end. Then the
// devices' memory is given back too: who takes the lock counts on it.
type gpuLock struct {
	path, priority string
	turn           time.Duration
	release        func() // gives the devices' memory back

	mu    sync.Mutex
	held  *os.File  // nil: not ours
	users int       // jobs that hold it
	busy  bool      // the last one is giving it back
	since time.Time // when it became ours, or when it was given back
}

// EnvGPULock is the environment variable that callers of the engine read a Config's GPULock from, by GPULockFile.
const EnvGPULock = "SEALC2_GPU_LOCK"

// GPULockFile is the Config's GPULock that a user asks for: "" or "0" is none, "1" is bellperson's file, which is in the folder for temporary
// files (tempDir; "" is /tmp), and anything else a path.
func GPULockFile(wish, tempDir string) string {
	switch wish {
	case "", "0":
		return ""
	case "1":
		return filepath.Join(cmp.Or(tempDir, "/tmp"), gpuLockName)
	}
	return wish
}

// newGPULock looks whether the lock can be had at all. Errors: Caller.
func newGPULock(path string, release func()) (*gpuLock, error) {
	l := &gpuLock{path: path, priority: filepath.Join(filepath.Dir(path), priorityLockName), turn: gpuTurn, release: release}
	for _, path := range []string{l.path, l.priority} {
		f, err := host.OpenLock(path)
		if err != nil {
			return nil, err
		}
		_ = f.Close() // nothing was written
	}
	return l, nil
}

// enter waits until a job may use the GPUs, and returns what it has to call when it is over. A job of the highest class tells other programs that
// it is in a hurry, and other jobs make way for those of other programs that are. Errors: Cancelled; Caller where the file cannot be locked.
func (l *gpuLock) enter(ctx context.Context, class Class) (leave func(), err error) {
	var hurry *os.File
	defer func() {
		if hurry != nil {
			err = errors.Join(err, hurry.Close())
		}
	}()
	poll := time.NewTicker(gpuPoll)
	defer poll.Stop()
	for {
		ok := true
		switch {
		case class < ClassWinning:
			ok, err = l.unhurried()
		case hurry == nil:
			hurry, err = host.TryLock(l.priority, host.Exclusive)
		}
		if ok && err == nil {
			ok, err = l.try(class)
		}
		switch {
		case err != nil:
			return nil, err
		case ok:
			return sync.OnceFunc(l.leave), nil
		}
		select {
		case <-ctx.Done():
			return nil, status.Wrap(status.Cancelled, "engine.GPULock", "", ctx.Err())
		case <-poll.C:
		}
	}
}

// unhurried says that no program is in a hurry.
func (l *gpuLock) unhurried() (bool, error) {
	f, err := host.TryLock(l.priority, host.SharedLock)
	if f == nil {
		return false, err
	}
	return true, f.Close()
}

// try joins the jobs that hold the lock, or takes it for the first of them.
func (l *gpuLock) try(class Class) (ok bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.busy, l.users == 0 && time.Since(l.since) < gpuPoll: // whoever waits for it goes first
		return false, nil
	case l.users > 0:
		// A turn that is over is no reason to wait for the highest class, which would be next.
		if class < ClassWinning && time.Since(l.since) > l.turn {
			return false, nil
		}
		l.users++
		return true, nil
	}
	if l.held, err = host.TryLock(l.path, host.Exclusive); err != nil || l.held == nil {
		return false, err
	}
	l.users, l.since = 1, time.Now()
	return true, nil
}

// leave ends a job's use. The last one gives back memory and lock.
func (l *gpuLock) leave() {
	l.mu.Lock()
	l.users--
	last := l.users == 0
	l.busy = last
	l.mu.Unlock()
	if !last {
		return
	}
	l.release()
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.held.Close() // nothing was written; with its last descriptor the lock goes
	l.held, l.busy, l.since = nil, false, time.Now()
}

// shareGPUs makes ready for taking turns with other programs, where the config says so and there is a GPU.
func (e *Engine) shareGPUs() (err error) {
	if e.config.GPULock == "" || e.devices[0].api == nil {
		return nil
	}
	e.gpuLock, err = newGPULock(e.config.GPULock, func() {
		if err := e.releaseDevices(context.WithoutCancel(e.ctx)); err != nil {
			e.log("warn", "device memory is not given back: %v", err)
		}
	})
	return err
}

// gpuUse is a job's use of shared GPUs.
type gpuUse struct{ leave func() }

// begin waits for it. Errors: as enter's.
func (u *gpuUse) begin(ctx context.Context, l *gpuLock, class Class) (err error) {
	u.leave, err = l.enter(ctx, class)
	return err
}

// end ends it, where it has begun. A job that is sent back to its desk ends it too: whoever has the desk may wait for all uses to end.
func (u *gpuUse) end() {
	if leave := u.leave; leave != nil {
		u.leave = nil
		leave()
	}
}
