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
	inputs  func(k int) (*circuit.Inputs, error)
	scalars []fr.Element // inputs, then the field elements among the aux
	witness circuit.Witness
	tables  *rows.Tables
	image   driver.Ptr // of the tables
	places  places
}

func (v *programValues) expand(ctx context.Context, p *partition) error {
	inputs := v.program.InputCount()
	v.scalars = host.Alloc[fr.Element](p.arena, inputs+v.program.NumCount())
	v.witness = circuit.Witness{
		Inputs: v.scalars[:inputs:inputs],
		Bits:   circuit.Bits{Words: host.Alloc[uint64](p.arena, circuit.BitWords(v.program.AuxCount())), Len: v.program.AuxCount()},
		Nums:   v.scalars[inputs:],
	}
	in, err := v.inputs(0)
	if err != nil {
		return err
	}
	return v.program.Expand(ctx, in, &v.witness, p.backend.threads)
}

// residents uploads the program's tables and bitmaps, where they are not on the device already.
func (v *programValues) residents(ctx context.Context, p *partition) error {
	const op = "cuda.program"
	known, image, err := p.backend.planned(v.program)
	if err != nil {
		return err
	}
	var r *resident
	fresh := false
	var c cut
	tables, d := programPlaces(&c, v.program, known.tables)
	err = p.do(ctx, op, func(_ context.Context, s *session) (err error) {
		if r = s.memory.find(v.program); r == nil {
			fresh = true
			if r, err = s.memory.keep(v.program, c.at); err != nil {
				return err
			}
		}
		p.pins = append(p.pins, r)
		return nil
	})
	if err != nil {
		return err
	}
	base, density := r.arena.Base(), v.program.Density()
	v.tables, v.image = known.tables, base.Add(tables)
	v.places = places{kinds: base.Add(d.kinds), aAux: base.Add(d.aAux), bAux: base.Add(d.bAux), bInput: base.Add(d.bInput), bInputs: density.BInput.Count()}
	if !fresh {
		return nil
	}
	if image == nil {
		_, image, err = rows.Build(v.program)
	}
	if err == nil {
		err = uploadSlice(ctx, p.backend.owner, op, p.session, v.image, image, p.backend.threads)
	}
	for _, m := range []struct {
		at   driver.Ptr
		from circuit.Bits
	}{{v.places.kinds, v.program.Kinds()}, {v.places.aAux, density.AAux}, {v.places.bAux, density.BAux}, {v.places.bInput, density.BInput}} {
		if err == nil {
			err = uploadSlice(ctx, p.backend.owner, op, p.session, m.at, m.from.Words[:circuit.BitWords(m.from.Len)], p.backend.threads)
		}
	}
	return p.filled(ctx, r, err)
}

func (v *programValues) upload(ctx context.Context, p *partition) error {
	const op = "cuda.upload"
	if err := uploadSlice(ctx, p.backend.owner, op, p.session, p.at(p.layout.scalars), v.scalars, p.backend.threads); err != nil {
		return err
	}
	return uploadSlice(ctx, p.backend.owner, op, p.session, p.at(p.layout.bits), v.witness.Bits.Words, p.backend.threads)
}

func (v *programValues) evaluate(ctx context.Context, p *partition) error {
	failed := [1]uint32{}
	err := p.do(ctx, "cuda.evaluate", func(ctx context.Context, s *session) error {
		l := p.layout
		scalars := p.at(l.scalars)
		w := rows.Witness{Bits: p.at(l.bits), Inputs: scalars, Nums: scalars.Add(elementBytes * int64(p.shape.inputs))}
		if err := s.rows.Clear(s.compute, p.at(l.failed)); err != nil {
			return err
		}
		if err := s.rows.Evaluate(s.compute, v.tables, v.image, w, p.rows(), p.shape.log, p.at(l.failed)); err != nil {
			return err
		}
		return fetch(ctx, s, p.at(l.failed), failed[:])
	})
	if err != nil || failed[0] == rows.None {
		return err
	}
	if err := v.program.RowError(&v.witness, int(failed[0])); err != nil {
		return err
	}
	return wrongRow("cuda.evaluate", failed[0])
}

func (v *programValues) publicInputs() []fr.Element { return v.witness.Inputs }

func (v *programValues) sections(p *partition, b groth16.Block) []msm.Section {
	scalars := p.at(p.layout.scalars)
	inputs := msm.Section{Count: p.shape.inputs, Points: p.shape.inputs, Scalars: scalars, Full: true}
	aux := msm.Section{
		Count: p.shape.aux, Points: p.shape.aux, Kind: v.places.kinds, Bits: p.at(p.layout.bits),
		Scalars: scalars.Add(elementBytes * int64(p.shape.inputs)),
	}
	return blockSections(b, p.shape, &v.places, inputs, aux)
}
