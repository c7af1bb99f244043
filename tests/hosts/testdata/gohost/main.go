// Command gohost is a Go program with libsealc2.so as its guest, and so with two Go runtimes.
//
//	gohost LIBRARY CASE C1 KEYS PROOF
//
// Exit code 0 and a last line "ok" mean that every check held.
package main

/*
#cgo CFLAGS: -D_GNU_SOURCE -I../../../../include -I..
#cgo LDFLAGS: -ldl -lpthread
#include "guest.h"

static void guest_load(const char *path) { load(path, RTLD_NOW | RTLD_LOCAL); }
static int guest_failures(void) { return failures; }
static void guest_verify(sealc2_engine engine, int good) { verify_once(engine, good); }
static void guest_refuse(sealc2_engine engine) { refuse_ids(engine); }
static int guest_fault(void) { return *(volatile int *)8; }
*/
import "C"

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

func main() {
	path, name := C.CString(os.Args[1]), os.Args[2]
	C.read_sector(C.CString(os.Args[3]), C.CString(os.Args[4]), C.CString(os.Args[5]))
	key, value := C.CString("FIL_PROOFS_PARAMETER_CACHE"), C.CString(os.Args[4])
	C.setenv(key, value, 1)
	C.setenv(C.CString("SEALC2_ALLOW_DEV_PARAMS"), C.CString("1"), 1)
	var err error
	switch name {
	case "pause":
		err = pause(path)
	case "stress":
		err = stress(path, 3*time.Second)
	case "stress-long":
		err = stress(path, 10*time.Minute)
	case "panics":
		err = panics(path)
	default:
		err = fmt.Errorf("no case %s", name)
	}
	if err == nil && C.guest_failures() != 0 {
		err = errors.New("a check of the calls failed")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		os.Exit(1)
	}
	fmt.Println("ok")
}

var sink atomic.Uint64

// spin is a loop without a call, so that only a signal can preempt it. It ends by itself, so that a lost
// preemption shows as a pause of seconds and not as a hang.
func spin(stop *atomic.Bool) {
	for !stop.Load() {
		x := uint64(1)
		for i := 0; i < 1_000_000_000; i++ {
			x = x*6364136223846793005 + 1
		}
		sink.Add(x)
	}
}

// collections times garbage collections against a tight loop.
func collections(n int, between func()) []time.Duration {
	var stop atomic.Bool
	var spinning sync.WaitGroup
	spinning.Go(func() { spin(&stop) })
	time.Sleep(50 * time.Millisecond)
	var took []time.Duration
	for range n {
		between()
		start := time.Now()
		runtime.GC()
		took = append(took, time.Since(start))
	}
	stop.Store(true)
	spinning.Wait() // a second loop would be measured too
	return took
}

// pause: the host's collections wait for a tight loop no longer than 50 ms, before loading, after it, and while
// the guest works. On a machine with other work single ones may; lost preemption costs seconds at each.
func pause(path *C.char) error {
	const most = 50 * time.Millisecond
	before := collections(10, func() {})
	C.guest_load(path)
	engine := C.open_engine(1)
	after := collections(20, func() {})
	during := collections(20, func() { C.guest_verify(engine, 1); C.guest_refuse(engine) })
	C.close_engine(engine)
	var err error
	for name, took := range map[string][]time.Duration{"before loading": before, "after": after, "between calls": during} {
		slices.Sort(took)
		fmt.Printf("%s: collections of %v to %v, median %v\n", name, took[0], took[len(took)-1], took[len(took)/2])
		if took[len(took)/2] > most || took[len(took)-1] > 20*most {
			err = fmt.Errorf("%s: collections of up to %v, median %v", name, took[len(took)-1], took[len(took)/2])
		}
	}
	return err
}

// nilPointer makes this runtime turn a fault into a panic.
func nilPointer() (err error) {
	defer func() {
		if p, ok := recover().(runtime.Error); ok {
			err = p
		}
	}()
	var p *int
	return errors.New(strconv.Itoa(*p))
}

// stress: for a while, 32 goroutines call while both runtimes collect, the host takes a CPU profile, gets
// signals, recovers from faults of its own, and starts and ends threads.
func stress(path *C.char, for_ time.Duration) error {
	signals := make(chan os.Signal, 100)
	signal.Notify(signals, syscall.SIGUSR1)
	var profile bytes.Buffer
	if err := pprof.StartCPUProfile(&profile); err != nil {
		return err
	}
	C.guest_load(path)
	engine := C.open_engine(2)
	debug.SetGCPercent(20)
	var stop atomic.Bool
	var calls, faults, heard, ended atomic.Int64
	var running sync.WaitGroup
	for i := range 32 {
		running.Go(func() {
			for !stop.Load() {
				if i%2 == 0 {
					C.guest_verify(engine, C.int(i/2%2))
				} else {
					C.guest_refuse(engine)
				}
				calls.Add(1)
			}
		})
	}
	running.Go(func() {
		for !stop.Load() {
			if nilPointer() != nil {
				faults.Add(1)
			}
			runtime.GC()
		}
	})
	running.Go(func() {
		for !stop.Load() {
			_ = syscall.Kill(os.Getpid(), syscall.SIGUSR1)
			select {
			case <-signals:
				heard.Add(1)
			case <-time.After(10 * time.Second):
				return
			}
		}
	})
	running.Go(func() { // a goroutine that ends locked ends its thread
		for !stop.Load() {
			var one sync.WaitGroup
			one.Go(func() {
				runtime.LockOSThread()
				C.guest_refuse(engine)
				ended.Add(1)
			})
			one.Wait()
		}
	})
	time.Sleep(for_)
	stop.Store(true)
	running.Wait()
	pprof.StopCPUProfile()
	C.close_engine(engine)
	fmt.Printf("%d calls, %d faults, %d signals, %d threads ended, profile of %d bytes\n", calls.Load(), faults.Load(), heard.Load(), ended.Load(), profile.Len())
	if calls.Load() < 32 || faults.Load() < 10 || heard.Load() < 10 || ended.Load() < 5 || profile.Len() < 200 {
		return errors.New("something stood still")
	}
	return nil
}

// panics: faults and panics of the host stay its own after loading, on a thread that has called too.
func panics(path *C.char) error {
	C.guest_load(path)
	engine := C.open_engine(1)
	for range 1000 {
		if nilPointer() == nil {
			return errors.New("a nil pointer was no panic")
		}
	}
	runtime.LockOSThread()
	for range 20 {
		C.guest_verify(engine, 1)
		if nilPointer() == nil {
			return errors.New("a nil pointer was no panic")
		}
	}
	C.close_engine(engine)
	return nil
}
