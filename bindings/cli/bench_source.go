package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine"
	"github.com/sealc2/sealc2/engine/c1"
	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/circuit/porep"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/params"
	"github.com/sealc2/sealc2/engine/synthetic"
)

// benchSource is what the jobs of `bench prove` prove: a C1 output, whole or cut, or vectors.
type benchSource struct {
	name       string
	document   []byte // C1 output; nil with vectors
	statement  []byte
	shape      *porep.Shape // nil: known to the C1 output alone
	cut        bool         // the document holds but the first partitions
	made       bool         // in time that is no part of a prover's
	assignment *groth16.Assignment
	partitions int // of a job of vectors
	arena      *host.Arena
}

// bytes is what the source holds while jobs run, which a prover's caller would.
func (s *benchSource) bytes() int64 {
	n := int64(len(s.document) + len(s.statement))
	if s.arena != nil {
		n += s.arena.Size()
	}
	return n
}

func (s *benchSource) close() {
	if s.arena != nil {
		s.arena.Close()
	}
}

// makeBenchSource reads or makes what the jobs prove.
func (a *app) makeBenchSource(ctx context.Context, o *proveOptions, limits host.Limits) (s *benchSource, err error) {
	const op = "cli.BenchProve"
	s = &benchSource{shape: o.shape}
	var sector *c1.Output
	if o.shape != nil {
		options := synthetic.Options{Shape: o.shape, Version: porep.V1_1, Seed: o.seed, Partitions: o.partitions, Threads: limits.Threads}
		if o.explicit {
			options.Partitions = 1
		}
		made, err := synthetic.Make(ctx, options)
		if err != nil {
			return nil, err
		}
		s.made, s.name, sector, s.cut = true, made.Name, made.Output, !made.Complete()
		if !o.explicit {
			if err := fits(op, limits, int64(made.MaxDocumentBytes())); err != nil {
				return nil, err
			}
			s.document = sector.AppendJSON(nil)
			if sector.Bare {
				if s.statement, err = made.StatementJSON(s.document); err != nil {
					return nil, err
				}
			}
		}
	} else {
		flags := sectorFlags{c1: o.c1, statement: o.statement}
		if s.document, s.statement, err = flags.read(ctx, a); err != nil {
			return nil, err
		}
		s.name = filepath.Base(o.c1)
		if !o.explicit && o.partitions == 0 && !o.makeParams {
			return s, nil
		}
		s.made = true
		if sector, err = c1.Parse(s.document, c1.Options{Statement: s.statement, AllowPartial: true}); err != nil {
			return nil, err
		}
		if n := len(sector.Partitions); o.partitions > n {
			return nil, usage("--partitions", fmt.Sprintf("1 to %d, the partitions of --c1, or 0 for all", n), strconv.Itoa(o.partitions))
		}
		s.shape = sector.Statement.Shape
		if s.cut = o.partitions > 0 && o.partitions < sector.Statement.PartitionCount(); s.cut && !o.explicit {
			sector.Partitions = sector.Partitions[:o.partitions]
			s.document = sector.AppendJSON(nil)
		}
	}
	if !o.explicit {
		return s, nil
	}
	s.document, s.statement = nil, nil
	s.partitions = o.partitions
	if s.partitions == 0 {
		s.partitions = sector.Statement.PartitionCount()
	}
	s.assignment, s.arena, err = makeAssignment(ctx, limits, &sector.Statement, sector.Partitions[0])
	return s, err
}

// makeAssignment makes the first partition's values as whole vectors, in plain memory that the arena owns.
func makeAssignment(ctx context.Context, limits host.Limits, st *porep.Statement, challenges []porep.Challenge) (_ *groth16.Assignment, _ *host.Arena, err error) {
	const op = "cli.MakeAssignment"
	program := porep.Program(st.Shape)
	inputs, aux, rows := program.InputCount(), program.AuxCount(), program.RowCount()
	words := circuit.BitWords(aux)
	vectorBytes := host.SliceBytes[fr.Element](inputs) + host.SliceBytes[fr.Element](aux) + 3*host.SliceBytes[fr.Element](rows)
	witnessBytes := host.SliceBytes[uint64](words) + host.SliceBytes[fr.Element](program.NumCount())
	if err := fits(op, limits, vectorBytes+witnessBytes); err != nil {
		return nil, nil, err
	}
	scratch, err := host.NewArena(witnessBytes)
	if err != nil {
		return nil, nil, err
	}
	defer scratch.Close()
	arena, err := host.NewArena(vectorBytes)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			arena.Close()
		}
	}()
	in, err := porep.CircuitInputs(st, challenges)
	if err != nil {
		return nil, nil, err
	}
	a := &groth16.Assignment{
		Inputs: host.Alloc[fr.Element](arena, inputs), Aux: host.Alloc[fr.Element](arena, aux),
		A: host.Alloc[fr.Element](arena, rows), B: host.Alloc[fr.Element](arena, rows), C: host.Alloc[fr.Element](arena, rows),
		Density: *program.Density(),
	}
	w := &circuit.Witness{
		Inputs: a.Inputs, Bits: circuit.Bits{Words: host.Alloc[uint64](scratch, words), Len: aux}, Nums: host.Alloc[fr.Element](scratch, program.NumCount()),
	}
	if err := program.Expand(ctx, in, w, limits.Threads); err != nil {
		return nil, nil, err
	}
	if err := program.Evaluate(ctx, w, a.A, a.B, a.C, limits.Threads); err != nil {
		return nil, nil, err
	}
	one := fr.One()
	err = host.Do(ctx, op, aux, 1<<16, limits.Threads, func(_, from, to int) error {
		num := program.NumRank(from)
		for i := from; i < to; i++ {
			switch {
			case program.IsNum(i):
				a.Aux[i] = w.Nums[num]
				num++
			case w.Bits.Get(i):
				a.Aux[i] = one
			}
		}
		return nil
	})
	return a, arena, err
}

// benchJob proves a source once.
type benchJob func(ctx context.Context) (*engine.ProveResult, error)

// job opens what all jobs share. release gives it back, when the last job has ended; after an error it is nil.
func (s *benchSource) job(ctx context.Context, a *app, e benchProver, o *proveOptions) (job benchJob, release func(), err error) {
	source := a.paramSource(o.params)
	switch {
	case s.assignment != nil:
		set, err := benchSet(source, s.shape)
		if err != nil {
			return nil, nil, err
		}
		source.Dir = set.Params
		srs, err := e.OpenSRS(ctx, source)
		if err != nil {
			return nil, nil, err
		}
		request := &engine.AssignmentRequest{SRS: srs, AllowDev: source.AllowDev, Assignments: slices.Repeat([]*groth16.Assignment{s.assignment}, s.partitions)}
		return func(ctx context.Context) (*engine.ProveResult, error) { return e.ProveAssignments(ctx, request) }, srs.Close, nil
	case o.makeParams:
		srs, err := e.MakeSRS(ctx, s.shape.Name, params.DefaultSetupText)
		if err != nil {
			return nil, nil, err
		}
		return s.programJob(e, srs), func() {}, nil
	case s.cut:
		set, err := benchSet(source, s.shape)
		if err != nil {
			return nil, nil, err
		}
		file, err := params.Load(ctx, set, params.Policy{AllowDev: source.AllowDev, VerifyProduction: source.VerifyProduction, Log: a.con.log})
		if err != nil {
			return nil, nil, err
		}
		if err := file.Fits(porep.Program(s.shape)); err != nil {
			file.Close()
			return nil, nil, err
		}
		return s.programJob(e, file), func() { file.Close() }, nil
	}
	request := &engine.ProveRequest{C1: s.document, Statement: s.statement, Params: source}
	return func(ctx context.Context) (*engine.ProveResult, error) { return e.Prove(ctx, request) }, func() {}, nil
}

// programJob proves what a C1 output has of its sector, from reading it on: engine.Prove takes whole sectors and parameters of files.
func (s *benchSource) programJob(e benchProver, srs groth16.SRS) benchJob {
	return func(ctx context.Context) (*engine.ProveResult, error) {
		request := &engine.ProgramRequest{Program: porep.Program(s.shape), SRS: srs}
		if err := s.layOut(request); err != nil {
			return nil, err
		}
		return e.ProveProgram(ctx, request)
	}
}

// layOut reads the partitions of a cut C1 output, as engine.Prove does with a whole one.
func (s *benchSource) layOut(request *engine.ProgramRequest) error {
	sector, err := c1.Parse(s.document, c1.Options{Statement: s.statement, AllowPartial: true})
	if err != nil {
		return err
	}
	st := &sector.Statement
	if err := st.Validate(); err != nil {
		return err
	}
	for k, challenges := range sector.Partitions {
		in, err := porep.CircuitInputs(st, challenges)
		if err != nil {
			return err
		}
		public, err := st.PublicInputs(k)
		if err != nil {
			return err
		}
		request.Inputs, request.Public = append(request.Inputs, in), append(request.Public, public)
	}
	return nil
}

// benchSet finds the parameter set of a shape.
func benchSet(source engine.ParamSource, shape *porep.Shape) (params.Set, error) {
	if info, err := os.Stat(source.Dir); err == nil && !info.IsDir() {
		return params.SetAt(source.Dir, source.Origin)
	}
	return params.Find(params.Dir{Path: source.Dir, Origin: source.Origin}, shape.Name, shape.ParamsBaseName())
}
