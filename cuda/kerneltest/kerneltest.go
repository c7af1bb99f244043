// Package kerneltest gives tests a device with the project's kernels.
//
// Without a GPU it is a simulated one (cuda/sim), whose kernels are the same source compiled by g++: compiled once
// for each state of the sources and kept in the user's cache. With SEALC2_TEST_DEVICE=cuda it is the first card,
// with the kernels of the file that SEALC2_TEST_FATBIN names, or the embedded ones. SEALC2_TEST_SEED draws another
// order of threads and streams for the simulated one.
//
// All tests of a process share the device. Only tests import this package.
package kerneltest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"unsafe"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/cuda/kernels"
	"github.com/sealc2/sealc2/cuda/sim"
)

// device is the one of this process.
var device = sync.OnceValues(open)

type opened struct {
	*driver.Device
	libraries []*driver.Library
	left      string // units that do not compile, for the error of a missing kernel
	seed      uint64
}

// seedTold are the tests that have logged the seed.
var seedTold sync.Map

// OnCard tells whether tests run on a real card, where sizes may be large.
func OnCard() bool { return os.Getenv("SEALC2_TEST_DEVICE") == "cuda" }

// Large tells whether tests take sizes for a card, not the emulator's: on a card, unless -short asks for small ones, as it does
// under tools that slow kernels down.
func Large() bool { return OnCard() && !testing.Short() }

// NeedCard skips a test or benchmark that is too large for the emulator, or for -short.
func NeedCard(tb testing.TB) {
	tb.Helper()
	if !Large() {
		tb.Skip("needs a card, SEALC2_TEST_DEVICE=cuda, and no -short")
	}
}

// emulated is the library of this process's sources.
type emulated struct {
	*sim.Emulator
	left string // what the compiler said of units that do not compile
}

var emulator = sync.OnceValues(func() (*emulated, error) {
	path, left, err := buildEmulator()
	if err != nil {
		return nil, err
	}
	e, err := sim.OpenEmulator(path)
	return &emulated{e, left}, err
})

// Emulator is the library under the simulated devices, for tests that launch without a driver. Units that do not
// compile are missing.
func Emulator(tb testing.TB) *sim.Emulator {
	tb.Helper()
	e, err := emulator()
	if err != nil {
		tb.Fatal(err)
	}
	return e.Emulator
}

func open() (*opened, error) {
	if OnCard() {
		return openCard()
	}
	e, err := emulator()
	if err != nil {
		return nil, err
	}
	seed := uint64(1)
	if text := os.Getenv("SEALC2_TEST_SEED"); text != "" {
		if seed, err = strconv.ParseUint(text, 0, 64); err != nil {
			return nil, fmt.Errorf("SEALC2_TEST_SEED: want a number, got %q", text)
		}
	}
	api, err := driver.New(sim.New(sim.Small(e, seed)))
	if err != nil {
		return nil, err
	}
	d, err := load(api, [][]byte{make([]byte, 8)})
	if err != nil {
		return nil, err
	}
	d.left, d.seed = e.left, seed
	return d, nil
}

// cardImages are the kernels for a card.
func cardImages() ([][]byte, error) {
	file := kernels.File()
	if path := os.Getenv("SEALC2_TEST_FATBIN"); path != "" {
		var err error
		if file, err = os.ReadFile(path); err != nil {
			return nil, err
		}
	}
	return kernels.Split(file)
}

func openCard() (*opened, error) {
	images, err := cardImages()
	if err != nil {
		return nil, err
	}
	api, err := driver.Load()
	if err != nil {
		return nil, err
	}
	return load(api, images)
}

func load(api *driver.API, images [][]byte) (*opened, error) {
	d, err := api.Open(0)
	if err != nil {
		return nil, err
	}
	o := &opened{Device: d}
	err = d.In(func() error {
		for _, image := range images {
			library, err := d.Load(image)
			if err != nil {
				return err
			}
			o.libraries = append(o.libraries, library)
		}
		return nil
	})
	return o, err
}

// Open is the device, entered for the test's goroutine until the test ends.
func Open(tb testing.TB) *driver.Device {
	tb.Helper()
	d, err := device()
	if err != nil {
		tb.Fatal(err)
	}
	leave, err := d.Enter()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(leave)
	if _, told := seedTold.LoadOrStore(tb.Name(), nil); !told && !OnCard() {
		tb.Logf("SEALC2_TEST_SEED=%d", d.seed) // shows where the test fails
	}
	return d.Device
}

// Kernel finds a kernel by its name.
func Kernel(tb testing.TB, name string) driver.Kernel {
	tb.Helper()
	k, err := Find(name)
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

// Find is Kernel for code that wants a function from names to kernels.
func Find(name string) (k driver.Kernel, err error) {
	d, err := device()
	if err != nil {
		return k, err
	}
	var all []error
	for _, library := range d.libraries {
		if err = d.In(func() (err error) {
			k, err = library.Kernel(name)
			return err
		}); err == nil {
			return k, nil
		}
		all = append(all, err)
	}
	if d.left != "" {
		all = append(all, errors.New(d.left))
	}
	return k, errors.Join(all...)
}

// Stream is a new stream, closed when the test ends.
func Stream(tb testing.TB) *driver.Stream {
	tb.Helper()
	s, err := Open(tb).NewStream(tb.Name(), driver.Normal)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := errors.Join(s.Synchronize(context.Background()), s.Close()); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// Memory maps device memory until the test ends: at least 1 byte, aligned to 2 MiB on a card and to a page in the emulator.
// Its content is anything. On a card under -short it is aligned to 256 bytes and ends, but for those, where its mapping ends,
// so that compute-sanitizer sees accesses behind it.
func Memory(tb testing.TB, bytes int64) driver.Ptr {
	tb.Helper()
	arena, err := Open(tb).MapArena(max(bytes, 1))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := arena.Close(); err != nil {
			tb.Error(err)
		}
	})
	if OnCard() && testing.Short() {
		return arena.Base().Add(arena.Size() - (max(bytes, 1)+255)&^255)
	}
	return arena.Base()
}

// Put copies values into new device memory, and has done so when it returns.
func Put[T any](tb testing.TB, values []T) driver.Ptr {
	tb.Helper()
	p := Memory(tb, int64(len(values))*int64(unsafe.Sizeof(*new(T))))
	Copy(tb, p, values)
	return p
}

// Copy copies values to device memory, and has done so when it returns.
func Copy[T any](tb testing.TB, to driver.Ptr, values []T) {
	tb.Helper()
	if len(values) == 0 {
		return
	}
	s := Stream(tb)
	err := s.CopyToDevice(to, unsafe.Pointer(&values[0]), int64(len(values))*int64(unsafe.Sizeof(values[0])))
	if err = errors.Join(err, s.Synchronize(context.Background())); err != nil {
		tb.Fatal(err)
	}
}

// Get copies count values back. All work on other streams must be over.
func Get[T any](tb testing.TB, from driver.Ptr, count int) []T {
	tb.Helper()
	values := make([]T, count)
	GetInto(tb, from, values)
	return values
}

// GetInto is Get into memory that is there: at gigabytes, getting new memory from the system takes longer than the copy.
func GetInto[T any](tb testing.TB, from driver.Ptr, values []T) {
	tb.Helper()
	if len(values) == 0 {
		return
	}
	s := Stream(tb)
	err := s.CopyToHost(unsafe.Pointer(&values[0]), from, int64(len(values))*int64(unsafe.Sizeof(values[0])))
	if err = errors.Join(err, s.Synchronize(context.Background())); err != nil {
		tb.Fatal(err)
	}
}

// Run launches a kernel and waits until it has run.
func Run(tb testing.TB, name string, grid, block driver.Dim, sharedBytes uint32, args *driver.Args) {
	tb.Helper()
	s := Stream(tb)
	err := s.Launch(Kernel(tb, name), grid, block, sharedBytes, args)
	if err = errors.Join(err, s.Synchronize(context.Background())); err != nil {
		tb.Fatalf("%s: %v", name, err)
	}
}
