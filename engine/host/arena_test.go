package host

import (
	"testing"
	"unsafe"

	"github.com/sealc2/sealc2/engine/status"
)

func kindOfPanic(f func()) (kind status.Kind) {
	var err error
	func() {
		defer status.Recover("test", &err)
		f()
	}()
	return status.KindOf(err)
}

func TestArena(t *testing.T) {
	plan := SliceBytes[uint64](5) + SliceBytes[byte](1) + SliceBytes[[3]uint32](7)
	a, err := NewArena(plan)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	words := Alloc[uint64](a, 5)
	bytes := Alloc[byte](a, 1)
	mark := a.Mark()
	triples := Alloc[[3]uint32](a, 7)
	if a.Used() != plan || a.Size() != plan {
		t.Errorf("used %d of %d, planned %d", a.Used(), a.Size(), plan)
	}
	for i := range words {
		if words[i] != 0 {
			t.Fatal("fresh memory is not zero")
		}
		words[i] = ^uint64(0)
	}
	bytes[0] = 1
	for _, p := range []unsafe.Pointer{unsafe.Pointer(&words[0]), unsafe.Pointer(&bytes[0]), unsafe.Pointer(&triples[0])} {
		if uintptr(p)%arenaAlign != 0 {
			t.Errorf("slice at %p is not aligned", p)
		}
	}
	if triples[0] != [3]uint32{} {
		t.Error("slices overlap")
	}
	a.Release(mark)
	again := Alloc[[3]uint32](a, 7)
	if &again[0] != &triples[0] {
		t.Error("released memory is not handed out again")
	}
}

func TestArena_PlanTooSmall(t *testing.T) {
	a, err := NewArena(64)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	for name, f := range map[string]func(){
		"one byte over": func() { Alloc[byte](a, 65) },
		"negative":      func() { Alloc[byte](a, -1) },
		"overflow":      func() { Alloc[[64]uint64](a, 1<<55) },
		"mark ahead":    func() { a.Release(1) },
	} {
		if kind := kindOfPanic(f); kind != status.Internal {
			t.Errorf("%s: kind %v", name, kind)
		}
	}
	if Alloc[byte](a, 64) == nil || Alloc[byte](a, 0) != nil {
		t.Error("the arena does not hold what it was made for")
	}
}

func TestArena_Sizes(t *testing.T) {
	a, err := NewArena(0)
	if err != nil || Alloc[uint64](a, 0) != nil {
		t.Errorf("empty arena: %v", err)
	}
	a.Close()
	a.Close()
	if _, err := NewArena(-1); status.KindOf(err) != status.Internal {
		t.Errorf("negative size: %v", err)
	}
	if _, err := NewArena(1 << 60); status.KindOf(err) != status.NoMemory {
		t.Errorf("absurd size: %v", err)
	}
}

// TestArena_ReturnsMemory: after Close the pages are the system's again, however often it happens.
func TestArena_ReturnsMemory(t *testing.T) {
	const size = 64 << 20
	touch := func() {
		a, err := NewArena(size)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		block := Alloc[byte](a, size)
		for i := 0; i < size; i += 4096 {
			block[i] = 1
		}
	}
	touch()
	before := ownStatus("VmRSS:")
	for range 4 {
		touch()
	}
	if grown := ownStatus("VmRSS:") - before; grown > size/2 {
		t.Errorf("resident set grew by %s", FormatBytes(grown))
	}
	if peak := PeakRSS(); peak < before || peak < size {
		t.Errorf("peak %s below what was touched", FormatBytes(peak))
	}
}
