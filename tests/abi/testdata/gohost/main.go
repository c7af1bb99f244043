// Command gohost is a Go program that loads libsealc2.so, and so has two Go runtimes. It prints the longest
// time, in milliseconds, that a garbage collection of its own took against a tight loop: before loading and
// after.
//
//	gohost LIBRARY
package main

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdlib.h>

static int run(const char *path) {
	void *handle = dlopen(path, RTLD_NOW);
	if (handle == NULL) return 1;
	int (*open_engine)(const void *, unsigned long long *, void *);
	int (*close_engine)(unsigned long long, void *);
	*(void **)&open_engine = dlsym(handle, "sealc2_open");
	*(void **)&close_engine = dlsym(handle, "sealc2_close");
	unsigned long long engine = 0;
	if (open_engine == NULL || open_engine(NULL, &engine, NULL) != 0) return 2;
	return close_engine(engine, NULL) != 0 ? 3 : 0;
}
*/
import "C"

import (
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"time"
)

var sink, turns atomic.Uint64

// spin is a loop without a call, so that only a signal can preempt it. It ends by itself, so that a lost
// preemption shows as a long pause and not as a hang.
func spin(stop *atomic.Bool) {
	for !stop.Load() {
		x := uint64(1)
		for i := 0; i < 3_000_000_000; i++ {
			x = x*6364136223846793005 + 1
		}
		sink.Add(x)
		turns.Add(1)
	}
}

func longest() time.Duration {
	var stop atomic.Bool
	go spin(&stop)
	time.Sleep(50 * time.Millisecond)
	var worst time.Duration
	for range 10 {
		start := time.Now()
		runtime.GC()
		worst = max(worst, time.Since(start))
	}
	stop.Store(true)
	return worst
}

func main() {
	runtime.GOMAXPROCS(4)
	before := longest()
	path := C.CString(os.Args[1])
	if code := C.run(path); code != 0 {
		fmt.Fprintln(os.Stderr, "loading failed:", code)
		os.Exit(1)
	}
	after := longest()
	fmt.Println(before.Milliseconds(), after.Milliseconds())
}
