package ntt

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/cuda/kerneltest"
	"github.com/sealc2/sealc2/engine/status"
)

// hostedRig is a hosted quotient on streams and memory of its own.
type hostedRig struct {
	*Hosted
	bytes int64 // of a vector
}

func newHosted(tb testing.TB, tr *Transforms, q Queues, log int) hostedRig {
	tb.Helper()
	pinned, err := kerneltest.Open(tb).NewPinned(HostedBytes(log), 4)
	if err != nil {
		tb.Fatal(err)
	}
	bytes := int64(elementBytes) << log
	h, err := tr.NewHosted(q, log, kerneltest.Memory(tb, bytes), kerneltest.Memory(tb, HostedScratchBytes(log)), pinned.Pointer())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := errors.Join(q.Compute.Synchronize(context.Background()), h.Close(), pinned.Close()); err != nil {
			tb.Error(err)
		}
	})
	return hostedRig{h, bytes}
}

// run queues a quotient of rows that lie elsewhere on the device.
func (h hostedRig) run(a, b, c driver.Ptr) error {
	s := h.queues.Compute
	return errors.Join(
		s.CopyDevice(h.vector, c, h.bytes), h.TakeC(),
		s.CopyDevice(h.vector, a, h.bytes), h.TakeA(),
		s.CopyDevice(h.vector, b, h.bytes), h.Finish(),
	)
}

// Goal: a hosted quotient is the quotient, bit for bit, for sizes of one piece and of several, with either table, on one stream and on three.
// Method: two quotients are queued one behind the other, so that a missing wait lets one spoil the other's pieces.
func TestHosted_Sizes(t *testing.T) {
	compute := kerneltest.Stream(t)
	queues := []Queues{{compute, compute, compute}, {kerneltest.Stream(t), compute, kerneltest.Stream(t)}}
	rng := rand.New(rand.NewPCG(5, 6))
	for _, log := range []int{0, 1, 6, 10, 11, 13, 14} {
		n := 1 << log
		tables, queues := forms, queues
		if log >= hostedFrom { // takes the emulator long
			tables, queues = forms[1:], queues[1:]
		}
		var in [2][3]driver.Ptr
		var want [2][]fr.Element
		var whole *Transforms
		for _, f := range tables {
			tr := newTransforms(t, compute, max(log, 3), f)
			if whole == nil {
				whole = tr
				for i := range in {
					a, b, c := rows(rng, n)
					in[i] = [3]driver.Ptr{kerneltest.Put(t, a), kerneltest.Put(t, b), kerneltest.Put(t, c)}
					out := [3]driver.Ptr{kerneltest.Put(t, a), kerneltest.Put(t, b), kerneltest.Put(t, c)}
					if err := errors.Join(tr.Quotient(compute, out[0], out[1], out[2], log), compute.Synchronize(context.Background())); err != nil {
						t.Fatal(err)
					}
					want[i] = kerneltest.Get[fr.Element](t, out[1], n)
				}
			}
			for _, q := range queues {
				h := newHosted(t, tr, q, log)
				first := kerneltest.Memory(t, h.bytes)
				err := errors.Join(h.run(in[0][0], in[0][1], in[0][2]), compute.CopyDevice(first, h.vector, h.bytes), h.run(in[1][0], in[1][1], in[1][2]))
				if err = errors.Join(err, compute.Synchronize(context.Background())); err != nil {
					t.Fatal(err)
				}
				what := fmt.Sprintf("2^%d, %s, one stream %v", log, f, q.Upload == compute)
				same(t, what, kerneltest.Get[fr.Element](t, first, n), want[0])
				same(t, what+", again", kerneltest.Get[fr.Element](t, h.vector, n), want[1])
			}
		}
	}
}

// Goal: steps out of order and sizes beyond the table are refused by value, and the right order works afterwards.
func TestHosted_Refused(t *testing.T) {
	s := kerneltest.Stream(t)
	tr := newTransforms(t, s, 3, compact)
	q := Queues{s, s, s}
	if _, err := tr.NewHosted(q, 4, 0, 0, unsafe.Pointer(tr)); status.KindOf(err) != status.Internal {
		t.Fatalf("want an internal error, got %v", err)
	}
	h := newHosted(t, tr, q, 3)
	zero := kerneltest.Put(t, make([]fr.Element, 8))
	if err := h.TakeA(); status.KindOf(err) != status.Internal {
		t.Fatalf("a before c: want an internal error, got %v", err)
	}
	if err := errors.Join(s.CopyDevice(h.vector, zero, h.bytes), h.TakeC()); err != nil {
		t.Fatal(err)
	}
	if err := h.Finish(); status.KindOf(err) != status.Internal {
		t.Fatalf("no a: want an internal error, got %v", err)
	}
	if err := errors.Join(h.run(zero, zero, zero), s.Synchronize(context.Background())); err != nil {
		t.Fatal(err)
	}
}

// Goal: the sizes that plans are made of.
func TestHosted_Bytes(t *testing.T) {
	for _, c := range []struct {
		log           int
		scratch, host int64
	}{{0, 64, 32}, {13, 512 << 10, 256 << 10}, {14, 128 << 10, 896 << 10}, {27, 1 << 30, 7 << 30}, {28, 2 << 30, 14 << 30}} {
		if got := HostedScratchBytes(c.log); got != c.scratch {
			t.Errorf("2^%d: want %d bytes of scratch, got %d", c.log, c.scratch, got)
		}
		if got := HostedBytes(c.log); got != c.host {
			t.Errorf("2^%d: want %d bytes of host memory, got %d", c.log, c.host, got)
		}
	}
	for log := hostedFrom; log <= MaxLog; log++ {
		if p := passesOf(log)[0]; p.levels() < hostedLog {
			t.Errorf("2^%d: the first pass has %d levels", log, p.levels())
		}
		for _, p := range []pass{passesOf(log)[0], naturalPassesOf(log)[0]} {
			if 1<<(p.stride-p.columns)%hostedRanges != 0 {
				t.Errorf("2^%d: %+v has no %d ranges", log, p, hostedRanges)
			}
		}
	}
}
