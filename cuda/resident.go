package cuda

import (
	"context"
	"fmt"
	"maps"

	"github.com/sealc2/sealc2/cuda/setup"
	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
)

// Preload brings a program's parameters to where proofs of so many partitions find them: on the device, or in pinned memory. It
// takes its turn with the copies of proofs that run. Errors: as a proof's.
func (b *Backend) Preload(ctx context.Context, p *circuit.Program, partitions int, srs groth16.SRS) (err error) {
	known, err := b.planned(p)
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
		b.forgetMade(s, func(made string) bool { return made == id })
		s.memory.unpinMade(id)
		return s.memory.evict(func(key any) bool { k, ok := key.(blockKey); return ok && k.id == id })
	})
}

// Forget lets go of a program's tables and plans, and of the program, which no proof uses; one that is in use stays on the device.
func (b *Backend) Forget(ctx context.Context, p *circuit.Program) error {
	b.programs.forget(p)
	return b.owner.do(ctx, copying, "cuda.Forget", func(_ context.Context, s *session) error {
		return s.memory.evict(func(key any) bool { return key == p })
	})
}

// Release gives back all device memory that no proof uses, for other programs: parameters, tables, workspaces. The next proof brings up
// again what it needs.
func (b *Backend) Release(ctx context.Context) error {
	return b.owner.do(ctx, computing, "cuda.Release", func(_ context.Context, s *session) error {
		b.limit(s, func(int64) int64 { return b.whole })
		return s.memory.evict(func(any) bool { return true })
	})
}

// madeSRS is parameters whose points were made in device memory, and stay there: no file has them.
type madeSRS struct {
	srs     groth16.SRS
	name    string // of the circuit
	points  [groth16.BlockCount]int
	bytes   int64
	session *session
}

// cardFor is the card that partitions of a shape are planned for: with what made points leave of it, but for one set of its own, which they are taken to be proved with.
func (b *Backend) cardFor(s *shape) card {
	b.mu.Lock()
	defer b.mu.Unlock()
	on := b.card
	for _, m := range b.made {
		if !on.made && m.name == s.name && m.points == s.points {
			on.made = true
		} else {
			on.held += m.bytes
		}
	}
	return on
}

// SRSNeeds is what MakeSRS takes of a budget: the points, which stay, under the key that plans for them have, and memory to make them in; none where they are there
// already.
func (b *Backend) SRSNeeds(ctx context.Context, spec *setup.Spec) (points host.Shared, scratch int64, err error) {
	key := pointsKey{backend: b}
	for block := range groth16.BlockCount {
		key.points[block], key.resident[block] = spec.Len(block), true
	}
	err = b.owner.do(ctx, computing, "cuda.MakeSRS", func(_ context.Context, s *session) error {
		points = host.Shared{Key: key, Needs: host.Needs{DeviceBytes: madeBytes(spec, s)}}
		if b.madeIn(s, spec.ID()) == nil {
			scratch = s.memory.mapped(spec.ScratchBytes(s.device))
		}
		return nil
	})
	return points, scratch, err
}

// madeBytes is what a spec's points take.
func madeBytes(spec *setup.Spec, s *session) (bytes int64) {
	for block := range groth16.BlockCount {
		bytes += s.memory.mapped(specBytes(spec, block))
	}
	return bytes
}

func specBytes(spec *setup.Spec, block groth16.Block) int64 {
	return max(1, int64(spec.Len(block))*group(block).PointBytes())
}

// madeIn is what was made in a session under an ID; nil where nothing was.
func (b *Backend) madeIn(s *session, id string) *madeSRS {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m := b.made[id]; m != nil && m.session == s {
		return m
	}
	return nil
}

// forgetMade is for points that are gone with their session, or by Evict.
func (b *Backend) forgetMade(s *session, gone func(id string) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.made, func(id string, m *madeSRS) bool { return m.session == s && gone(id) })
}

// MakeSRS makes development parameters straight in device memory, where they stay until Evict: no file has them. Made once more, they are the same. ReadG1 and
// ReadG2 copy from there. Errors: NoMemory where the points, and what making them takes, do not fit the device; the driver's.
func (b *Backend) MakeSRS(ctx context.Context, spec *setup.Spec) (srs groth16.SRS, err error) {
	const op = "cuda.MakeSRS"
	err = b.owner.do(ctx, computing, op, func(ctx context.Context, s *session) (err error) {
		if m := b.madeIn(s, spec.ID()); m != nil {
			srs = m.srs
			return nil
		}
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
		m := &madeSRS{name: spec.Name(), bytes: madeBytes(spec, s), session: s}
		for block := range groth16.BlockCount {
			m.points[block] = spec.Len(block)
			r, err := s.memory.keep(blockKey{spec.ID(), block}, specBytes(spec, block))
			if err != nil {
				return err
			}
			made = append(made, r)
			if err := making.Points(block, 0, m.points[block], r.block.Base()); err != nil {
				return err
			}
			if err := s.compute.Synchronize(ctx); err != nil {
				return err
			}
		}
		for _, r := range made {
			s.memory.fill(r, madeHere{})
		}
		m.srs = spec.SRS(making.Key(), b.fetchPoints(spec.ID()))
		srs = m.srs
		s.closed = func() { b.forgetMade(s, func(string) bool { return true }) }
		b.mu.Lock()
		defer b.mu.Unlock()
		b.made[spec.ID()] = m
		return nil
	})
	if err != nil {
		return nil, err
	}
	return srs, nil
}

// madeHere marks points that no file has: they are pinned once for good.
type madeHere struct{}

// unpinMade lets go of points that MakeSRS made.
func (m *memory) unpinMade(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.kept.all {
		if k, ok := r.key.(blockKey); ok && k.id == id && r.value == (madeHere{}) {
			r.value = nil
			r.users--
		}
	}
}

// fetchPoints copies points of the device to the host, through pinned memory.
func (b *Backend) fetchPoints(id string) setup.Fetch {
	return func(ctx context.Context, block groth16.Block, offset int64, into []byte) error {
		const op = "cuda.fetch"
		return b.owner.do(ctx, copying, op, func(ctx context.Context, s *session) error {
			r, _ := s.memory.find(blockKey{id, block})
			if r == nil {
				return status.New(status.Params, op, fmt.Sprintf("%s: %s", id, block), "points on the device", "none any more")
			}
			defer s.memory.unpin(r)
			for len(into) > 0 {
				n := min(len(into), downBytes)
				if err := fetch(ctx, s.up, s.arrived, r.block.Base().Add(offset), into[:n]); err != nil {
					return err
				}
				into, offset = into[n:], offset+int64(n)
			}
			return nil
		})
	}
}
