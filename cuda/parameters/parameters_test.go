package parameters_test

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/cuda/parameters"
	"github.com/sealc2/sealc2/cuda/points"
	"github.com/sealc2/sealc2/cuda/setup"
	"github.com/sealc2/sealc2/cuda/sim"
	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/status"
)

// The bytes that Setup and CheckPoints give are compared with the CPU's in packages engine and engine/params. Here is what
// happens on a device that does not do its work, with kernels that do nothing.

type idle struct{}

func (idle) Has(string) bool { return true }
func (idle) Launch(string, driver.Dim, driver.Dim, uint32, []unsafe.Pointer, uint64) error {
	return nil
}

// stamping kernels leave the number of the launch in each point that they encode.
type stamping struct {
	idle
	count uint64
}

func (s *stamping) Launch(name string, _, _ driver.Dim, _ uint32, args []unsafe.Pointer, _ uint64) error {
	if name == "points_encode_g1" {
		to, count := *(*unsafe.Pointer)(args[1]), *(*uint32)(args[2])
		for i := range count {
			*(*uint64)(unsafe.Add(to, 96*int(i))) = s.count
		}
		s.count++
	}
	return nil
}

// Goal: points are not copied before they are made, nor made where others have not been copied yet, and arrive in order. Method: a
// device with small batches, of which the ring holds some; its streams run in orders drawn from seeds, its kernels leave the
// number of the batch.
func TestSetup_Turns(t *testing.T) {
	const smCount = 1
	batch := points.BatchCount(&driver.Device{Info: driver.Info{SMCount: smCount}})
	big := spec(t, 12*batch)
	for seed := range uint64(20) {
		double := sim.New(sim.Config{Version: 13000, Kernels: &stamping{}, Seed: seed, Devices: []sim.GPU{{MemoryBytes: 8 << 30, Capability: 90, SMCount: smCount}}})
		api, err := driver.New(double)
		if err != nil {
			t.Fatal(err)
		}
		d, err := open(api, 0)
		if err != nil {
			t.Fatal(err)
		}
		s, err := d.Begin(t.Context(), big)
		if err != nil {
			t.Fatal(err)
		}
		at, wrong := 0, 0
		if err := s.Block(t.Context(), groth16.BlockH, func(piece []byte, done func()) error {
			for ; len(piece) > 0; piece = piece[96:] {
				if binary.LittleEndian.Uint64(piece) != uint64(at/batch) {
					wrong++
				}
				at++
			}
			done()
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if at != big.Len(groth16.BlockH) || wrong != 0 {
			t.Errorf("seed %d: want %d points, got %d, and %d of another batch", seed, big.Len(groth16.BlockH), at, wrong)
		}
		if err := errors.Join(s.Close(), d.Close()); err != nil {
			t.Error(err)
		}
		double.Close()
	}
}

// spec is that of a program with some rows.
func spec(t *testing.T, rows int) *setup.Spec {
	t.Helper()
	one := []circuit.Term{{Key: circuit.AuxKey(0), Coeff: fr.One()}}
	p, err := circuit.FromR1CS("square", 1, []bool{true}, slices.Repeat([]circuit.Constraint{{A: one, B: one, C: one}}, rows))
	if err != nil {
		t.Fatal(err)
	}
	s, err := setup.NewSpec(p, &setup.Secrets{Alpha: fr.NewElement(2), Beta: fr.NewElement(3), Gamma: fr.NewElement(5), Delta: fr.NewElement(7), Tau: fr.NewElement(11)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func machine(t *testing.T) (*sim.Driver, *driver.API) {
	t.Helper()
	double := sim.New(sim.Small(idle{}, 1))
	t.Cleanup(double.Close)
	api, err := driver.New(double)
	if err != nil {
		t.Fatal(err)
	}
	return double, api
}

// open opens the device; limit ends its waits, 0: as long as they take on the slowest device.
func open(api *driver.API, limit time.Duration) (*parameters.Device, error) {
	return parameters.Open(parameters.Config{API: api, Images: [][]byte{{1}}, PinnedBytes: parameters.MinPinnedBytes, WaitLimit: limit})
}

// Goal: a device that hangs ends a wait with an error, is asked nothing more, and refuses the next job; so does one that is lost.
func TestDevice_Hangs(t *testing.T) {
	for what, c := range map[string]struct {
		fail func(*sim.Driver)
		kind status.Kind
	}{
		"hangs":   {func(d *sim.Driver) { d.Hang(0) }, status.Timeout},
		"is lost": {func(d *sim.Driver) { d.Lose(0, driver.ECCUncorrectable) }, status.NoDevice},
	} {
		double, api := machine(t)
		d, err := open(api, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		s, err := d.Begin(t.Context(), spec(t, 2))
		if err != nil {
			t.Fatal(err)
		}
		c.fail(double)
		put := func([]byte, func()) error { t.Error("points from a device that " + what); return nil }
		if err := s.Block(t.Context(), groth16.BlockH, put); status.KindOf(err) != c.kind {
			t.Errorf("%s: %v", what, err)
		}
		if err := s.Block(t.Context(), groth16.BlockL, put); status.KindOf(err) != status.NoDevice {
			t.Errorf("%s, again: %v", what, err)
		}
		if _, err := d.Begin(t.Context(), spec(t, 2)); status.KindOf(err) != status.NoDevice {
			t.Errorf("%s, another job: %v", what, err)
		}
		asked := api.Counts().Total
		left := s.Close()
		left2 := d.Close()
		if what == "hangs" && (left != nil || left2 != nil || api.Counts().Total != asked) {
			t.Errorf("%s: %v, %v, %d calls", what, left, left2, api.Counts().Total-asked)
		}
	}
}

// Goal: pieces come in order, are of the memory of the ring, and what put fails with ends the block, which returns only when all are
// done; then the next block works.
func TestSetup_Put(t *testing.T) {
	double, api := machine(t)
	d, err := open(api, 0)
	if err != nil {
		t.Fatal(err)
	}
	s, err := d.Begin(t.Context(), spec(t, 2))
	if err != nil {
		t.Fatal(err)
	}
	refused := status.New(status.Params, "test", "", "", "full")
	if err := s.Block(t.Context(), groth16.BlockH, func([]byte, func()) error { return refused }); err != refused {
		t.Errorf("want what put said, got %v", err)
	}
	over := false
	if err := s.Block(t.Context(), groth16.BlockB2, func(piece []byte, done func()) error {
		go func() {
			defer func() { _ = recover() }()
			time.Sleep(20 * time.Millisecond)
			over = true
			done()
		}()
		if len(piece) != spec(t, 2).Len(groth16.BlockB2)*192 {
			t.Errorf("%d bytes", len(piece))
		}
		return nil
	}); err != nil || !over {
		t.Errorf("%v; returned before the piece was done: %v", err, !over)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Block(cancelled, groth16.BlockL, func([]byte, func()) error { return nil }); status.KindOf(err) != status.Cancelled {
		t.Errorf("cancelled: %v", err)
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if live := double.Live(); live != (sim.Live{}) {
		t.Errorf("left on the device: %+v", live)
	}
}

// Goal: what can never work is refused with both numbers.
func TestOpen_Refuses(t *testing.T) {
	_, api := machine(t)
	for _, config := range []parameters.Config{
		{API: api, Images: [][]byte{{1}}, PinnedBytes: parameters.MinPinnedBytes - 1},
		{API: api, Images: [][]byte{{1}}, MemoryBytes: -1},
	} {
		if _, err := parameters.Open(config); status.KindOf(err) != status.Caller {
			t.Errorf("%+v: %v", config, err)
		}
	}
	d, err := parameters.Open(parameters.Config{API: api, Images: [][]byte{{1}}, PinnedBytes: parameters.MinPinnedBytes, MemoryBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := d.Begin(t.Context(), spec(t, 2)); status.KindOf(err) != status.NoMemory || !strings.Contains(err.Error(), "1 bytes") && !strings.Contains(err.Error(), "1 B") {
		t.Errorf("%v", err)
	}
}
