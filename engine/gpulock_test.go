package engine

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
)

// otherProgram holds a file's lock as another program would; the function lets go of it.
func otherProgram(t *testing.T, path string) func() {
	t.Helper()
	f, err := host.TryLock(path, host.Exclusive)
	if err != nil || f == nil {
		t.Fatalf("%s: %v, %v", path, f, err)
	}
	return func() { f.Close() }
}

// isFree says whether another program could have a lock now.
func isFree(t *testing.T, path string) bool {
	t.Helper()
	f, err := host.TryLock(path, host.Exclusive)
	if err != nil {
		t.Fatal(err)
	}
	if f == nil {
		return false
	}
	f.Close()
	return true
}

// entering is a job that enters in a goroutine of its own.
type entering struct {
	done  chan struct{}
	leave func()
	err   error
}

func enters(t *testing.T, l *gpuLock, class Class) *entering {
	e := &entering{done: make(chan struct{})}
	go func() {
		defer close(e.done)
		defer status.Recover("test", &e.err)
		e.leave, e.err = l.enter(t.Context(), class)
	}()
	return e
}

// waits says that it has not got in while others looked several times.
func (e *entering) waits(t *testing.T) {
	t.Helper()
	select {
	case <-e.done:
		t.Error("it did not wait")
	case <-time.After(5 * gpuPoll):
	}
}

func (e *entering) in(t *testing.T) func() {
	t.Helper()
	<-e.done
	if e.err != nil {
		t.Fatal(e.err)
	}
	return e.leave
}

func newTestLock(t *testing.T, release func()) *gpuLock {
	t.Helper()
	l, err := newGPULock(GPULockFile("1", t.TempDir()), release)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Goal: jobs hold the lock together, wait while another program has it, give memory back before it, and can be cancelled while they wait.
func TestGPULock_Turns(t *testing.T) {
	var l *gpuLock
	released := 0
	l = newTestLock(t, func() {
		released++
		if isFree(t, l.path) {
			t.Error("the lock is gone before the memory")
		}
	})
	other := otherProgram(t, l.path)
	first := enters(t, l, ClassPoRep)
	first.waits(t)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(gpuPoll, cancel)
	if _, err := l.enter(ctx, ClassWinning); status.KindOf(err) != status.Cancelled {
		t.Errorf("cancelled: %v", err)
	}
	if !isFree(t, l.priority) {
		t.Error("a job that was cancelled is in a hurry still")
	}
	other()
	leave := first.in(t)
	leaveToo := enters(t, l, ClassPoRep).in(t)
	if isFree(t, l.path) {
		t.Error("not locked")
	}
	leave()
	leave() // of no effect
	if isFree(t, l.path) || released != 0 {
		t.Error("given back under a job")
	}
	leaveToo()
	if !isFree(t, l.path) || released != 1 {
		t.Errorf("not given back; memory %d times", released)
	}
	enters(t, l, ClassPoRep).in(t)()
}

// Goal: an engine whose jobs follow each other without end lets others in between; a job of the highest class need not wait for that.
func TestGPULock_TurnEnds(t *testing.T) {
	l := newTestLock(t, func() {})
	l.turn = 0
	leave := enters(t, l, ClassPoRep).in(t)
	second := enters(t, l, ClassPoRep)
	second.waits(t)
	leaveUrgent := enters(t, l, ClassWinning).in(t)
	// Another program waits as bellperson does, in the call.
	got := make(chan *os.File)
	go func() {
		var err error
		defer status.Recover("test", &err)
		f, err := host.OpenLock(l.path)
		if err == nil {
			err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		}
		if err != nil {
			t.Error(err)
		}
		got <- f
	}()
	time.Sleep(2 * gpuPoll)
	leave()
	leaveUrgent()
	f := <-got
	second.waits(t)
	f.Close()
	second.in(t)()
}

// Goal: a job that is sent back to its desk is in nobody's way: who has the desk may wait for all uses to end.
func TestGPULock_SentBack(t *testing.T) {
	l := newTestLock(t, func() {})
	l.turn = 0
	var use gpuUse
	use.end() // has not begun
	if err := use.begin(t.Context(), l, ClassPoRep); err != nil {
		t.Fatal(err)
	}
	atDesk := enters(t, l, ClassPoRep)
	atDesk.waits(t)
	use.end()
	atDesk.in(t)()
	if err := use.begin(t.Context(), l, ClassPoRep); err != nil || isFree(t, l.path) {
		t.Errorf("once more: %v", err)
	}
	use.end()
	use.end()
	if !isFree(t, l.path) {
		t.Error("not given back")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	other := otherProgram(t, l.path)
	if err := use.begin(ctx, l, ClassPoRep); status.KindOf(err) != status.Cancelled {
		t.Errorf("cancelled: %v", err)
	}
	use.end()
	other()
}

// Goal: jobs make way for other programs' that are in a hurry, and one of the highest class says that it is.
func TestGPULock_Hurry(t *testing.T) {
	l := newTestLock(t, func() {})
	other := otherProgram(t, l.priority)
	usual := enters(t, l, ClassWindow)
	usual.waits(t)
	enters(t, l, ClassWinning).in(t)()
	other()
	usual.in(t)()

	other = otherProgram(t, l.path)
	urgent := enters(t, l, ClassWinning)
	for isFree(t, l.priority) {
		time.Sleep(time.Millisecond)
	}
	other()
	leave := urgent.in(t)
	if !isFree(t, l.priority) {
		t.Error("in a hurry still")
	}
	leave()
}

// Goal: what a user says names the file.
func TestGPULockFile(t *testing.T) {
	for wish, want := range map[string]string{"": "", "0": "", "1": "/tmp/bellman.gpu.lock", "/run/gpu": "/run/gpu"} {
		if got := GPULockFile(wish, ""); got != want {
			t.Errorf("%q: %q, want %q", wish, got, want)
		}
	}
	if got := GPULockFile("1", "/scratch"); got != "/scratch/bellman.gpu.lock" {
		t.Errorf("in a folder of its own: %q", got)
	}
}

// Goal: files that cannot be locked are an error that names them, at once; another user's, which only may be read, can be locked.
func TestGPULock_Files(t *testing.T) {
	dir := t.TempDir()
	fifo, file := filepath.Join(dir, "fifo"), filepath.Join(dir, "file")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("kept"), 0o444); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, fifo, filepath.Join(file, "under"), filepath.Join(dir, "none", "file")} {
		if _, err := newGPULock(path, nil); status.KindOf(err) != status.Caller || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
	l, err := newGPULock(file, func() {})
	if err != nil {
		t.Fatal(err)
	}
	enters(t, l, ClassPoRep).in(t)()
	if text, err := os.ReadFile(file); string(text) != "kept" {
		t.Errorf("the file has %q now, %v", text, err)
	}
	from, _ := idleGPUs(t, 8<<30)
	if _, err := Open(Config{Device: "cuda", gpus: from, GPULock: fifo}); status.KindOf(err) != status.Caller {
		t.Errorf("an engine: %v", err)
	}
	// Where no GPU is used there is nothing to share.
	e := open(t, Config{Device: "cpu", GPULock: fifo}, nil)
	if _, err := e.ProveProgram(t.Context(), loadTiny(t, "tiny-16").request(1)); err != nil {
		t.Error(err)
	}
}

// Goal: engines that share a lock never prove at the same time, each proof is right, and behind each turn nothing is left on the devices.
func TestGPULock_Engines(t *testing.T) {
	c := loadTiny(t, "tiny-16")
	path := filepath.Join(t.TempDir(), "lock")
	var inTurn [2]atomic.Bool
	prove := func(e *Engine, m, partitions int) error {
		request := c.request(partitions)
		first := true
		request.Progress = func(p Progress) {
			if first != (p.Stage == "gpu_lock") {
				t.Errorf("engine %d: stage %s, the first one: %v", m, p.Stage, first)
			}
			first = false
			inTurn[m].Store(true)
			if inTurn[1-m].Load() || isFree(t, path) {
				t.Errorf("engine %d: stage %s, in the other's turn: %v", m, p.Stage, inTurn[1-m].Load())
			}
		}
		request.Partition = func(index int, _ [192]byte) {
			if index == partitions-1 {
				inTurn[m].Store(false)
			}
		}
		job, err := submitTiny(t.Context(), e, request, 1, SubmitOptions{Class: Class(partitions-1) % ClassCount})
		if err != nil {
			return err
		}
		result, err := job.Wait(t.Context())
		if err == nil && !bytes.Equal(result.Proof, bytes.Repeat(c.proof, partitions)) {
			t.Errorf("engine %d: another proof", m)
		}
		return err
	}
	done := make(chan error)
	var devices []func()
	for m := range inTurn {
		from, double := idleGPUs(t, 8<<30)
		e := open(t, Config{Device: "cuda", gpus: from, GPULock: path, UrgentBytes: 64 << 20, HostBytes: 3 << 30, QueueBytes: 1 << 20}, nil)
		giveSums(t, e, c)
		idle := double.Live()
		devices = append(devices, func() {
			if now := double.Live(); now.Mapped != idle.Mapped || now.Created != idle.Created {
				t.Errorf("engine %d: %+v on the device, before %+v", m, now, idle)
			}
		})
		go func() {
			var err error
			defer func() { done <- err }()
			defer status.Recover("test", &err)
			for n := range 4 {
				if err = prove(e, m, 1+n); err != nil {
					return
				}
			}
		}()
	}
	for range inTurn {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	for _, same := range devices {
		same()
	}
	if !isFree(t, path) {
		t.Error("the lock is not given back")
	}
}
