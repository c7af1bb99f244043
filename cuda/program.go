package cuda

import (
	"context"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/cuda/msm"
	"github.com/sealc2/sealc2/cuda/rows"
	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/host"
)

// programHostBytes is what a partition of a program takes from its arena: the compact witness.
func programHostBytes(p *circuit.Program) int64 {
	return host.SliceBytes[fr.Element](p.InputCount()+p.NumCount()) + host.SliceBytes[uint64](circuit.BitWords(p.AuxCount()))
}

// programValues are the compact witness of a program's inputs.
type programValues struct {
	program *circuit.Program
	inputs  func() (*circuit.Inputs, error)
	scalars []fr.Element // inputs, then the field elements among the aux
	witness circuit.Witness
	tables  *rows.Tables
	image   driver.Ptr // of the tables
	places  places
}

func (v *programValues) expand(ctx context.Context, p *partition) error {
	in, err := v.inputs()
	if err != nil {
		return err
	}
	inputs := v.program.InputCount()
	p.mu.Lock() // partitions of a batch share its arena
	v.scalars = host.Alloc[fr.Element](p.arena, inputs+v.program.NumCount())
	bits := host.Alloc[uint64](p.arena, circuit.BitWords(v.program.AuxCount()))
	p.mu.Unlock()
	v.witness = circuit.Witness{
		Inputs: v.scalars[:inputs:inputs],
		Bits:   circuit.Bits{Words: bits, Len: v.program.AuxCount()},
		Nums:   v.scalars[inputs:],
	}
	return v.program.Expand(ctx, in, &v.witness, p.backend.threads)
}

func (v *programValues) upload(ctx context.Context, p *partition) error {
	const op = "cuda.upload"
	if err := v.useProgram(ctx, p); err != nil {
		return err
	}
	if err := sendSlice(ctx, p.batch, op, p.at(p.plan.own.scalars), v.scalars); err != nil {
		return err
	}
	return sendSlice(ctx, p.batch, op, p.at(p.plan.own.bits), v.witness.Bits.Words)
}

// useProgram pins the program's tables and bitmaps, and copies them up where they are not on the device already.
func (v *programValues) useProgram(ctx context.Context, p *partition) error {
	const op = "cuda.program"
	known, err := p.backend.planned(v.program)
	if err != nil {
		return err
	}
	var c cut
	tables, d := programPlaces(&c, v.program, known.tables)
	density := v.program.Density()
	r, err := p.resident(ctx, op, v.program, c.at, func(ctx context.Context, r *resident) error {
		_, image, err := rows.Build(v.program)
		if err != nil {
			return err
		}
		base := r.block.Base()
		if err := sendSlice(ctx, p.batch, op, base.Add(tables), image); err != nil {
			return err
		}
		for _, m := range []struct {
			at   int64
			from circuit.Bits
		}{{d.kinds, v.program.Kinds()}, {d.aAux, density.AAux}, {d.bAux, density.BAux}, {d.bInput, density.BInput}} {
			if err := sendSlice(ctx, p.batch, op, base.Add(m.at), m.from.Words[:circuit.BitWords(m.from.Len)]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	base := r.block.Base()
	v.tables, v.image = known.tables, base.Add(tables)
	v.places = places{kinds: base.Add(d.kinds), aAux: base.Add(d.aAux), bAux: base.Add(d.bAux), bInput: base.Add(d.bInput), bInputs: density.BInput.Count()}
	return nil
}

// compact is the witness on the device.
func (v *programValues) compact(p *partition) rows.Witness {
	scalars := p.at(p.plan.own.scalars)
	return rows.Witness{Bits: p.at(p.plan.own.bits), Inputs: scalars, Nums: scalars.Add(elementBytes * int64(p.plan.shape.inputs))}
}

func (v *programValues) check(ctx context.Context, p *partition) error {
	failed := [1]uint32{}
	err := p.do(ctx, computing, "cuda.evaluate", func(ctx context.Context, s *session) error {
		to := p.checked()
		status := p.in(p.plan.work.status)
		if err := s.rows.Clear(s.compute, status); err != nil {
			return err
		}
		if err := s.rows.Evaluate(s.compute, v.tables, v.image, v.compact(p), to, p.plan.shape.log, status); err != nil {
			return err
		}
		return fetch(ctx, s.compute, s.down, status, failed[:])
	})
	if err != nil || failed[0] == rows.None {
		return err
	}
	if err := v.program.RowError(&v.witness, int(failed[0])); err != nil {
		return err
	}
	return wrongRow("cuda.evaluate", failed[0])
}

func (v *programValues) fill(ctx context.Context, p *partition, to rows.Vectors) error {
	return p.do(ctx, computing, "cuda.fill", func(ctx context.Context, s *session) error {
		return s.rows.Evaluate(s.compute, v.tables, v.image, v.compact(p), to, p.plan.shape.log, 0)
	})
}

func (v *programValues) publicInputs() []fr.Element { return v.witness.Inputs }

func (v *programValues) sections(p *partition, b groth16.Block) []msm.Section {
	w, s := v.compact(p), p.plan.shape
	inputs := msm.Section{Count: s.inputs, Points: s.inputs, Scalars: w.Inputs, Full: true}
	aux := msm.Section{Count: s.aux, Points: s.aux, Kind: v.places.kinds, Bits: w.Bits, Scalars: w.Nums}
	return blockSections(b, s, &v.places, inputs, aux)
}
