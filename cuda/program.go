package cuda

import (
	"context"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/cuda/msm"
	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/host"
)

// programHostBytes is what a partition of a program takes from its arena: the compact witness.
func programHostBytes(p *circuit.Program) int64 {
	return host.SliceBytes[fr.Element](p.InputCount()+p.NumCount()) + host.SliceBytes[uint64](circuit.BitWords(p.AuxCount())) +
		3*host.SliceBytes[fr.Element](p.Domain())
}

// programValues are the compact witness of a program's inputs.
type programValues struct {
	program *circuit.Program
	in      *circuit.Inputs
	scalars []fr.Element // inputs, then the field elements among the aux
	witness circuit.Witness
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
	return v.program.Expand(ctx, v.in, &v.witness, p.backend.threads)
}

// residents uploads the program's bitmaps.
func (v *programValues) residents(ctx context.Context, p *partition) error {
	const op = "cuda.program"
	var r *resident
	fresh := false
	var c cut
	var d densities
	d.place(&c, v.program.InputCount(), v.program.AuxCount())
	err := p.do(ctx, op, func(_ context.Context, s *session) (err error) {
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
	base := r.arena.Base()
	v.places = places{kinds: base.Add(d.kinds), aAux: base.Add(d.aAux), bAux: base.Add(d.bAux), bInput: base.Add(d.bInput), bInputs: v.program.Density().BInput.Count()}
	if !fresh {
		return nil
	}
	density := v.program.Density()
	for _, m := range []struct {
		at   int64
		from circuit.Bits
	}{{d.kinds, v.program.Kinds()}, {d.aAux, density.AAux}, {d.bAux, density.BAux}, {d.bInput, density.BInput}} {
		words := m.from.Words[:circuit.BitWords(m.from.Len)]
		if err = uploadSlice(ctx, p.backend.owner, op, p.session, base.Add(m.at), words, p.backend.threads); err != nil {
			break
		}
	}
	if err != nil {
		p.pins = p.pins[:len(p.pins)-1]
		p.drop(ctx, r)
	}
	return err
}

func (v *programValues) upload(ctx context.Context, p *partition) error {
	const op = "cuda.upload"
	if err := uploadSlice(ctx, p.backend.owner, op, p.session, p.at(p.layout.scalars), v.scalars, p.backend.threads); err != nil {
		return err
	}
	return uploadSlice(ctx, p.backend.owner, op, p.session, p.at(p.layout.bits), v.witness.Bits.Words, p.backend.threads)
}

func (v *programValues) evaluate(ctx context.Context, p *partition) error {
	n := p.shape.domain()
	var rows [3][]fr.Element
	for i := range rows {
		rows[i] = host.Alloc[fr.Element](p.arena, n)
	}
	if err := v.program.Evaluate(ctx, &v.witness, rows[0], rows[1], rows[2], p.backend.threads); err != nil {
		return err
	}
	return p.uploadRows(ctx, rows)
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
