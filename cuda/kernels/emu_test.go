package kernels_test

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/cuda/kernels"
	"github.com/sealc2/sealc2/cuda/kerneltest"
	"github.com/sealc2/sealc2/cuda/sim"
)

// emulator is the library under the simulated device: its tests launch with seeds of their own, and faults do not
// end the device that others use.
func emulator(t *testing.T) *sim.Emulator {
	t.Helper()
	if kerneltest.OnCard() {
		t.Skip("tests the emulator")
	}
	return kerneltest.Emulator(t)
}

// run launches an emulated kernel; each of args is a pointer to Go memory that the kernel gets, or a number.
func run(e *sim.Emulator, name string, grid, block driver.Dim, shared uint32, seed uint64, args ...any) error {
	var pins runtime.Pinner
	defer pins.Unpin()
	var list []unsafe.Pointer
	for _, a := range args {
		value := new(uint64)
		pins.Pin(value)
		switch v := a.(type) {
		case int:
			*value = uint64(v)
		case unsafe.Pointer:
			pins.Pin(v)
			*value = uint64(uintptr(v))
		}
		list = append(list, unsafe.Pointer(value))
	}
	return e.Launch(name, driver.Dim{X: grid.X, Y: max(1, grid.Y), Z: max(1, grid.Z)}, driver.Dim{X: block.X, Y: max(1, block.Y), Z: max(1, block.Z)}, shared, list, seed)
}

func at[T any](values []T) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(values)) }

// Goal: barriers and shuffles order what they must, whatever the order of threads. Method: a sum over a block for
// many seeds; without its barrier some seed must give another result.
func TestEmulator_Barriers(t *testing.T) {
	e := emulator(t)
	const blocks, threads = 3, 256
	values := make([]uint32, blocks*threads)
	want := make([]uint32, blocks)
	for i := range values {
		values[i] = uint32(i*i + 1)
		want[i/threads] += values[i]
	}
	wrong := 0
	for seed := range uint64(20) {
		for barrier := range 2 {
			sums := make([]uint32, blocks)
			if err := run(e, "emu_block_sum", driver.Dim{X: blocks}, driver.Dim{X: threads}, 0, seed, at(values), at(sums), barrier); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(sums, want) {
				if barrier == 1 {
					t.Fatalf("seed %d: want %v, got %v", seed, want, sums)
				}
				wrong++
			}
		}
	}
	if wrong < 10 {
		t.Errorf("without its barrier the sum is wrong for %d seeds of 20: want the race to show in most", wrong)
	}
}

// Goal: a warp's operations give what the programming guide says. Method: all lanes' answers against the rule.
func TestEmulator_Warps(t *testing.T) {
	e := emulator(t)
	out := make([]uint32, 64*8)
	if err := run(e, "emu_warp", driver.Dim{X: 1}, driver.Dim{X: 64}, 0, 5, at(out)); err != nil {
		t.Fatal(err)
	}
	for i := range uint32(64) {
		lane, first := i%32, i/32*32
		up, down := i, i
		if lane >= 3 {
			up = i - 3
		}
		if lane%8+3 < 8 {
			down = i + 3
		}
		half := uint32(0xaaaa)
		if lane >= 16 {
			half = 0x55550000
		}
		want := []uint32{first + (lane+5)%32, up, down, i ^ 1, 0x49249249, 3, 0xf << (lane / 4 * 4), half}
		if got := out[8*i : 8*i+8]; !slices.Equal(got, want) {
			t.Errorf("thread %d: want %x, got %x", i, want, got)
		}
	}
	votes := make([]uint32, 33)
	if err := run(e, "emu_barrier_votes", driver.Dim{X: 1}, driver.Dim{X: 33}, 0, 5, at(votes)); err != nil {
		t.Fatal(err)
	}
	if votes[0] != 16|1<<16 || votes[32] != votes[0] {
		t.Errorf("want 16 odd threads, some and not all, got %x", votes)
	}
}

// Goal: an asynchronous copy arrives when it is waited for and not before.
func TestEmulator_CopyAsync(t *testing.T) {
	e := emulator(t)
	from := make([][2]uint64, 64)
	for i := range from {
		from[i] = [2]uint64{uint64(i), ^uint64(i)}
	}
	for waits := range 2 {
		to := make([][2]uint64, 64)
		if err := run(e, "emu_copy_async", driver.Dim{X: 1}, driver.Dim{X: 64}, 64*16, 1, at(from), at(to), waits); err != nil {
			t.Fatal(err)
		}
		if got := slices.Equal(to, from); got != (waits == 1) {
			t.Errorf("waits %d: arrived %v", waits, got)
		}
	}
}

// Goal: what would hang or corrupt a GPU is an error by value, with kernel and block, and the next launch works.
func TestEmulator_Faults(t *testing.T) {
	e := emulator(t)
	out := make([]uint32, 64)
	for _, c := range []struct {
		name   string
		block  uint32
		shared uint32
		arg    any
		want   string
	}{
		{"emu_bad_barrier", 32, 0, at(out), "emu_bad_barrier: block (0, 0, 0), thread 0: waits at a block's barrier that others never reach"},
		{"emu_bad_mask", 16, 0, at(out), "mask of a warp's operation does not hold the caller"},
		{"emu_bad_shared", 1, 64, 16, "a write behind the dynamic shared memory"},
		{"emu_bad_shared", 1, 228 << 10, 0, "at most 227 KiB"},
		{"emu_bad_shared", 1025, 0, 0, "blocks of 1 to 1024 threads"},
	} {
		err := run(e, c.name, driver.Dim{X: 1}, driver.Dim{X: c.block}, c.shared, 0, c.arg)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: want %q, got %v", c.name, c.want, err)
		}
		if err := run(e, "emu_bad_shared", driver.Dim{X: 2}, driver.Dim{X: 1}, 68, 0, 16); err != nil {
			t.Fatalf("after %s: %v", c.name, err)
		}
	}
}

// Goal: threads that wait by looking let others run. Goal: coordinates and parameters of each size arrive.
func TestEmulator_Places(t *testing.T) {
	e := emulator(t)
	word, seen := make([]uint32, 1), make([]uint32, 4)
	if err := run(e, "emu_spin", driver.Dim{X: 1}, driver.Dim{X: 4}, 0, 9, at(word), at(seen)); err != nil || seen[0] != 7 {
		t.Errorf("want thread 0 to see 7, got %v, %v", seen, err)
	}
	grid, block := driver.Dim{X: 3, Y: 2, Z: 2}, driver.Dim{X: 5, Y: 3, Z: 2}
	count := int(grid.X * grid.Y * grid.Z * block.X * block.Y * block.Z)
	for seed := range uint64(3) {
		out := make([][2]driver.Dim, count)
		if err := run(e, "emu_places", grid, block, 0, seed, at(out), 3, 1<<40); err != nil {
			t.Fatal(err)
		}
		i := 0
		for _, b := range places(grid) {
			for _, w := range places(block) {
				if out[i] != [2]driver.Dim{b, w} {
					t.Fatalf("seed %d, thread %d: want %v, got %v", seed, i, [2]driver.Dim{b, w}, out[i])
				}
				i++
			}
		}
	}
}

// places lists all coordinates below d.
func places(d driver.Dim) (all []driver.Dim) {
	for z := range d.Z {
		for y := range d.Y {
			for x := range d.X {
				all = append(all, driver.Dim{X: x, Y: y, Z: z})
			}
		}
	}
	return all
}

// Goal: Split refuses what is not whole fatbins. Method: lengths and headers that lie.
func TestSplit(t *testing.T) {
	fatbin := func(body int) []byte {
		b := make([]byte, 16+body)
		copy(b, []byte{0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0, byte(body)})
		return b
	}
	all, err := kernels.Split(slices.Concat(fatbin(8), fatbin(0), fatbin(24)))
	if err != nil || len(all) != 3 || len(all[0]) != 24 || len(all[1]) != 16 || len(all[2]) != 40 {
		t.Errorf("want fatbins of 24, 16 and 40 bytes, got %d, %v", len(all), err)
	}
	huge := fatbin(8)
	copy(huge[8:], []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	short := fatbin(8)
	short[6] = 15
	for name, data := range map[string][]byte{
		"nothing": nil, "half a header": fatbin(8)[:9], "a cut body": fatbin(8)[:20], "a huge body": huge, "a short header": short,
		"something behind": append(fatbin(8), 1), "not a fatbin": make([]byte, 64),
	} {
		if _, err := kernels.Split(data); err == nil {
			t.Errorf("%s: want an error", name)
		}
	}
}

// Goal: what is embedded is whole. Method: one fatbin for each unit that is not for tests alone.
func TestFile(t *testing.T) {
	file := kernels.File()
	if file == nil {
		t.Skip("built without CUDA code")
	}
	images, err := kernels.Split(file)
	if err != nil {
		t.Fatal(err)
	}
	units := 0
	err = filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".cu" && !strings.HasPrefix(entry.Name(), "unit_") {
			units++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(images) != units && units > 0 { // on a card's machine there are no sources
		t.Errorf("want a fatbin for each of %d units, got %d: make builds them", units, len(images))
	}
}

// Goal: a launch that fails on the simulated device is an error of the stream. Method: its own device, lost afterwards.
func TestEmulator_ThroughDriver(t *testing.T) {
	e := emulator(t)
	s := sim.New(sim.Small(e, 3))
	defer s.Close()
	api, err := driver.New(s)
	if err != nil {
		t.Fatal(err)
	}
	d, err := api.Open(0)
	if err != nil {
		t.Fatal(err)
	}
	err = d.In(func() error {
		library, err := d.Load(make([]byte, 8))
		if err != nil {
			return err
		}
		k, err := library.Kernel("emu_bad_shared")
		if err != nil {
			return err
		}
		stream, err := d.NewStream("test", driver.Normal)
		if err != nil {
			return err
		}
		var args driver.Args
		return errors.Join(stream.Launch(k, driver.Dim{X: 1}, driver.Dim{X: 1}, 64, args.U32(16)), stream.Synchronize(context.Background()))
	})
	if !driver.IsLost(err) {
		t.Errorf("want a lost device, got %v", err)
	}
	if want := "a write behind the dynamic shared memory"; !strings.Contains(s.Fault(), want) {
		t.Errorf("want a fault with %q, got %q", want, s.Fault())
	}
}
