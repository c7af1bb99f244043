package cuda

import (
	"context"
	"fmt"

	"github.com/sealc2/sealc2/cuda/setup"
	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/status"
)

// Preload brings a program's parameters to where proofs of so many partitions find them: on the device, or in pinned memory. It
// takes its turn with the copies of proofs that run. Errors: as a proof's.
func (b *Backend) Preload(ctx context.Context, p *circuit.Program, partitions int, srs groth16.SRS) (err error) {
	known, _, err := b.planned(p)
	if err != nil {
		return err
	}
	plan, err := b.planFor(known.shape, known.cut, partitions)
	if err != nil {
		return err
	}
	made := &batch{backend: b, plan: plan, srs: srs}
	if plan.streams() {
		made.feeder = newFeeder(made)
	}
	defer made.Close()
	// The batch has a session from its first request on.
	if err := made.do(ctx, copying, "cuda.Preload", func(context.Context, *session) error { return nil }); err != nil {
		return err
	}
	if made.feeder != nil {
		if err := made.feeder.prepare(ctx); err != nil {
			return err
		}
	}
	if plan.vectors == 1 {
		if err := made.pinVectors(ctx); err != nil {
			return err
		}
	}
	for block := range groth16.BlockCount {
		if plan.blocks[block].resident {
			err = made.load(ctx, block)
		} else {
			err = made.pinPoints(ctx, block)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Evict gives back the device memory of parameters that no proof uses, by the ID of their SRS; those that are in use stay.
// Pinned copies in host memory stay too: giving them back would stall the device.
func (b *Backend) Evict(ctx context.Context, id string) error {
	return b.owner.do(ctx, computing, "cuda.Evict", func(_ context.Context, s *session) error {
		s.memory.unpinMade(id)
		return s.memory.evict(func(key any) bool { k, ok := key.(blockKey); return ok && k.id == id })
	})
}

// Release gives back all device memory that no proof uses, for other programs: parameters, tables, workspaces. The next proof brings up
// again what it needs.
func (b *Backend) Release(ctx context.Context) error {
	return b.owner.do(ctx, computing, "cuda.Release", func(_ context.Context, s *session) error {
		b.grow(s)
		return s.memory.evict(func(any) bool { return true })
	})
}

// MakeSRS makes development parameters straight in device memory, where they stay until Evict: no file has them. ReadG1 and
// ReadG2 copy from there. Errors: NoMemory where the points, and what making them takes, do not fit the device; the driver's.
func (b *Backend) MakeSRS(ctx context.Context, spec *setup.Spec) (groth16.SRS, error) {
	const op = "cuda.MakeSRS"
	var key *groth16.VerifyingKey
	err := b.owner.do(ctx, computing, op, func(ctx context.Context, s *session) (err error) {
		maker, err := setup.New(s.library.Kernel)
		if err != nil {
			return err
		}
		if err := s.library.Warm(maker.Kernels()...); err != nil {
			return err
		}
		scratch, err := s.memory.hold(spec.ScratchBytes(s.device))
		if err != nil {
			return err
		}
		// At rest before it is given back, also after an error.
		defer func() {
			if s.drain(computing) == nil {
				s.memory.release(scratch)
			}
		}()
		making, err := spec.Begin(ctx, maker, s.compute, scratch.Base())
		if err != nil {
			return err
		}
		var made []*resident
		defer func() {
			if err != nil && s.drain(computing) == nil {
				for _, r := range made {
					_ = s.memory.drop(r) // what cannot be unmapped is tried again at the end
				}
			}
		}()
		for block := range groth16.BlockCount {
			count := spec.Len(block)
			r, err := s.memory.keep(blockKey{spec.ID(), block}, max(1, int64(count)*group(block).PointBytes()))
			if err != nil {
				return err
			}
			made = append(made, r)
			if err := making.Points(block, 0, count, r.arena.Base()); err != nil {
				return err
			}
			if err := s.compute.Synchronize(ctx); err != nil {
				return err
			}
		}
		key = making.Key()
		for _, r := range made {
			s.memory.fill(r, madeHere{})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return spec.SRS(key, b.fetchPoints(spec.ID())), nil
}

// madeHere marks points that no file has: they are pinned once for good.
type madeHere struct{}

// unpinMade lets go of points that MakeSRS made.
func (m *memory) unpinMade(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.kept {
		if k, ok := r.key.(blockKey); ok && k.id == id && r.value == (madeHere{}) {
			r.value = nil
			r.pins--
		}
	}
}

// fetchPoints copies points of the device to the host, through pinned memory.
func (b *Backend) fetchPoints(id string) setup.Fetch {
	return func(ctx context.Context, block groth16.Block, offset int64, into []byte) error {
		const op = "cuda.fetch"
		return b.owner.do(ctx, copying, op, func(ctx context.Context, s *session) error {
			r := s.memory.find(blockKey{id, block})
			if r == nil {
				return status.New(status.Params, op, fmt.Sprintf("%s: %s", id, block), "points on the device", "none any more")
			}
			defer s.memory.unpin(r)
			for len(into) > 0 {
				n := min(len(into), downBytes)
				if err := fetch(ctx, s.up, s.arrived, r.arena.Base().Add(offset), into[:n]); err != nil {
					return err
				}
				into, offset = into[n:], offset+int64(n)
			}
			return nil
		})
	}
}
