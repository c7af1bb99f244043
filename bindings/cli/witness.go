package main

import (
	"context"
	"encoding/hex"
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"github.com/sealc2/sealc2/engine/c1"
	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/circuit/porep"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
)

// witnessJSON is the form of witness.json in tests/vectors/c1.
type witnessJSON struct {
	Name       string             `json:"name"` // the statement file's, or the circuit's
	ChunkSize  int                `json:"chunk_size"`
	Partitions []partitionWitness `json:"partitions"`
}

// partitionWitness adds to a digest what the statement says.
type partitionWitness struct {
	Partition int `json:"partition"`
	*circuit.WitnessDigest
	PublicInputs []string `json:"public_inputs_generated"` // without the one, from the statement alone
}

// witnessCommand is `witness digest`.
func (a *app) witnessCommand() *cobra.Command {
	var sector sectorFlags
	digest := &cobra.Command{
		Use:   "digest --c1 FILE [--statement FILE]",
		Short: "Digests of a sector's witness, in the JSON form of witness.json",
		Long: "Expands and evaluates each partition of a sector and writes the digests of inputs, aux and the three\n" +
			"evaluation vectors. The form is that of witness.json in tests/vectors/c1. A witness that does not\n" +
			"satisfy the circuit is refused with the first failing row. A C1 output with only the first partitions of a\n" +
			"sector is taken too.",
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			document, statement, err := sector.read(c.Context(), a)
			if err != nil {
				return err
			}
			d, err := a.witnessDigest(c.Context(), document, statement)
			if err != nil {
				return err
			}
			return a.write(d)
		},
	}
	sector.register(digest)
	return group("witness", "Look at witnesses", digest)
}

func (a *app) witnessDigest(ctx context.Context, document, statement []byte) (*witnessJSON, error) {
	sector, err := c1.Parse(document, c1.Options{Statement: statement, AllowPartial: true})
	if err != nil {
		return nil, err
	}
	limits, err := a.limits()
	if err != nil {
		return nil, err
	}
	program := porep.Program(sector.Statement.Shape)
	words := circuit.BitWords(program.AuxCount())
	witnessBytes := host.SliceBytes[uint64](words) + host.SliceBytes[fr.Element](program.NumCount())
	if err := fits("cli.WitnessDigest", limits, witnessBytes+int64(len(document))); err != nil {
		return nil, err
	}
	blank, err := program.Digest(ctx, limits.Threads)
	if err != nil {
		return nil, err
	}
	out := &witnessJSON{Name: program.Name(), ChunkSize: blank.ChunkSize}
	if statement != nil {
		var named struct {
			Name string `json:"name"`
		}
		if json.Unmarshal(statement, &named) == nil && named.Name != "" {
			out.Name = named.Name
		}
	}

	arena, err := host.NewArena(witnessBytes)
	if err != nil {
		return nil, err
	}
	defer arena.Close()
	witness := &circuit.Witness{
		Inputs: make([]fr.Element, program.InputCount()),
		Bits:   circuit.Bits{Words: host.Alloc[uint64](arena, words), Len: program.AuxCount()},
		Nums:   host.Alloc[fr.Element](arena, program.NumCount()),
	}
	for k := range sector.Partitions {
		p, err := partitionDigest(ctx, program, &sector.Statement, k, sector.Partitions[k], witness, blank.Total, limits.Threads)
		if err != nil {
			return nil, status.Wrap(status.KindOf(err), "cli.WitnessDigest", "", status.Place(err, fmt.Sprintf("partition %d", k)))
		}
		sector.Partitions[k] = nil // a partition owns its memory
		out.Partitions = append(out.Partitions, *p)
	}
	return out, nil
}

func partitionDigest(ctx context.Context, program *circuit.Program, st *porep.Statement, k int, challenges []porep.Challenge,
	witness *circuit.Witness, r1csTotal string, threads int) (*partitionWitness, error) {
	inputs, err := porep.CircuitInputs(st, challenges)
	if err != nil {
		return nil, err
	}
	if err := program.Expand(ctx, inputs, witness, threads); err != nil {
		return nil, err
	}
	d, err := program.DigestWitness(ctx, witness, r1csTotal, threads)
	if err != nil {
		return nil, err
	}
	public, err := st.PublicInputs(k)
	if err != nil {
		return nil, err
	}
	p := &partitionWitness{Partition: k, WitnessDigest: d}
	for _, x := range public {
		p.PublicInputs = append(p.PublicInputs, scalarHex(&x))
	}
	for i := range p.PublicInputs {
		if i >= len(d.PublicInputs) || p.PublicInputs[i] != d.PublicInputs[i] {
			return nil, status.New(status.Input, "cli.WitnessDigest", fmt.Sprintf("public input %d", i+1),
				p.PublicInputs[i]+", which follows from the statement", "another one from the vanilla proofs")
		}
	}
	return p, nil
}

// scalarHex writes a scalar as the reference vectors do.
func scalarHex(x *fr.Element) string {
	var b [fr.Bytes]byte
	fr.LittleEndian.PutElement(&b, *x)
	return hex.EncodeToString(b[:])
}
