package driver_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"testing"
	"time"
	"unsafe"

	"github.com/sealc2/sealc2/cuda/driver"
	fatbins "github.com/sealc2/sealc2/cuda/kernels"
	"github.com/sealc2/sealc2/engine/status"
)

// Goal: what the simulated driver is taken for holds for the real one: layouts, flags, symbols, error texts, and that the calls which are
// called harmless work while a stream is busy.
func TestCard(t *testing.T) {
	if os.Getenv("SEALC2_TEST_DEVICE") != "cuda" {
		t.Skip("needs a card: SEALC2_TEST_DEVICE=cuda")
	}
	api := must[*driver.API](t)(driver.Load())
	all := must[[]driver.Candidate](t)(api.Candidates(driver.Requirements{Version: 12040, Capability: 75}))
	for _, c := range all {
		t.Logf("driver %d: %v, %d bytes, %d bytes of shared memory, L2 %d, %v", api.Version(), c.Info, c.MemoryBytes, c.SharedBytes, c.L2Bytes, c.Reason)
	}
	d := opened(t, api)
	if d.SMCount < 1 || d.PCIBusID == "" || d.UUID == [16]byte{} || d.SharedBytes < 48<<10 {
		t.Errorf("%+v", d.Info)
	}
	free, total, err := d.Memory()
	check(t, err)
	if free <= 0 || free > total {
		t.Errorf("memory: %d of %d", free, total)
	}
	// Images are looked at when the first kernel is wanted.
	junk, err := d.Load([]byte("no image at all"))
	if err == nil {
		_, err = junk.Kernel("add1")
		check(t, junk.Close())
	}
	if status.KindOf(err) == status.OK {
		t.Error("a kernel was found in an image that is none")
	}
	t.Logf("no image: %v", err)
	_, err = d.MapArena(total + 1<<40)
	wantError(t, err, status.NoMemory, "CUDA_ERROR_OUT_OF_MEMORY")

	const size = 64 << 20
	api.SetStrict(true)
	defer api.SetStrict(false)
	pinned := must[*driver.Pinned](t)(d.NewPinned(size, 4))
	s := must[*driver.Stream](t)(d.NewStream("compute", driver.Normal))
	other := must[*driver.Stream](t)(d.NewStream("urgent", driver.Urgent))
	first, last := must[*driver.Event](t)(d.NewEvent(true)), must[*driver.Event](t)(d.NewEvent(true))
	for i := range pinned.Bytes() {
		pinned.Bytes()[i] = byte(i * 7)
	}
	want := bytes.Clone(pinned.Bytes())
	a := must[*driver.Arena](t)(d.MapArena(2*size + 1))
	p := a.Base()
	check(t, s.Record(first))
	check(t, s.CopyToDevice(p, pinned.Pointer(), size))
	check(t, s.CopyDevice(p.Add(size), p, size))
	check(t, s.Record(last))
	check(t, other.Wait(last))
	check(t, other.Fill8(p, 0xab, 16))
	check(t, other.Fill32(p.Add(16), 0x01020304, 4))
	check(t, other.CopyToHost(pinned.Pointer(), p, 64))
	check(t, other.CopyToHost(unsafe.Add(pinned.Pointer(), 64), p.Add(size+64), size-64))
	// Mapping and unmapping beside queued work.
	beside := must[*driver.Arena](t)(d.MapArena(1))
	check(t, beside.Close())
	check(t, other.Synchronize(context.Background()))
	copy(want, bytes.Repeat([]byte{0xab}, 16))
	copy(want[16:], bytes.Repeat([]byte{4, 3, 2, 1}, 4))
	if !bytes.Equal(pinned.Bytes(), want) {
		t.Error("copies: other bytes came back")
	}
	ms, err := last.Since(first)
	check(t, err)
	t.Logf("64 MiB up and copied: %.2f ms", ms)
	if ms <= 0 || ms > 1000 {
		t.Errorf("%v ms", ms)
	}
	check(t, errors.Join(s.Synchronize(context.Background()), first.Close(), last.Close(), s.Close(), other.Close(), a.Close(), pinned.Close()))

}

// Goal: a kernel that was looked up is launched behind queued work without waiting for it, though it never ran, with Warm and
// without.
func TestCard_Warm(t *testing.T) {
	path := os.Getenv("SEALC2_TEST_FATBIN")
	if os.Getenv("SEALC2_TEST_DEVICE") != "cuda" || path == "" {
		t.Skip("needs a card and a file of kernels: SEALC2_TEST_DEVICE=cuda, SEALC2_TEST_FATBIN")
	}
	file, err := os.ReadFile(path)
	check(t, err)
	images, err := fatbins.Split(file)
	check(t, err)
	d := opened(t, must[*driver.API](t)(driver.Load()))
	l := must[*driver.Library](t)(d.Load(images...))
	warm, cold := must[driver.Kernel](t)(l.Kernel("unit_g1_add_affine")), must[driver.Kernel](t)(l.Kernel("unit_g2_add_affine"))
	begin := time.Now()
	check(t, l.Warm(warm))
	t.Logf("Warm took %v", time.Since(begin))
	s := must[*driver.Stream](t)(d.NewStream("busy", driver.Normal))
	other := must[*driver.Stream](t)(d.NewStream("other", driver.Normal))
	const size, times = 1 << 30, 200 // some 0.25 ms each
	a := must[*driver.Arena](t)(d.MapArena(size))
	check(t, s.Fill8(a.Base(), 1, size))
	check(t, s.Synchronize(t.Context()))
	took := map[string]time.Duration{}
	var args driver.Args
	for _, k := range []driver.Kernel{warm, cold} {
		for range times {
			check(t, s.Fill8(a.Base(), 1, size))
		}
		begin := time.Now()
		check(t, other.Launch(k, driver.Dim{X: 1}, driver.Dim{X: 32}, 0, args.Reset().Ptr(0).Ptr(0).Ptr(0).Ptr(0).U32(0)))
		took[k.Name()] = time.Since(begin)
		begin = time.Now()
		check(t, s.Synchronize(t.Context()))
		t.Logf("launch of %s: %v, the queue went on for %v", k.Name(), took[k.Name()], time.Since(begin))
		check(t, other.Synchronize(t.Context()))
	}
	for name, d := range took {
		if d > 2*time.Millisecond {
			t.Errorf("the first launch of %s took %v", name, d)
		}
	}
	check(t, errors.Join(s.Close(), other.Close(), a.Close(), l.Close()))
}
