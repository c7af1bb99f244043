package engine

import (
	"context"
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/c1"
	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/circuit/porep"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
)

// Prove proves a sector and returns the proofs of all partitions, each verified against public inputs that
// follow from the statement. It blocks; jobs run in the order in which Prove was called, as the budget
// allows. The end of ctx takes effect at the next stage border or earlier.
//
// Errors: Caller (no C1, wrong number of scalars, a closed engine), Input (a C1 or statement that is
// malformed or of another sector), Unsatisfied (naming partition, template, path and row; found before any
// partition is proved), Params, Unsupported, NoMemory (with both numbers), Cancelled, SelfCheck, Internal.
func (e *Engine) Prove(ctx context.Context, request *ProveRequest) (result *ProveResult, err error) {
	const op = "engine.Prove"
	defer status.Recover(op, &err)
	if request == nil || len(request.C1) == 0 {
		return nil, status.New(status.Caller, op, "C1", "the output of Commit phase 1", "nothing")
	}
	ctx, leave, err := e.begin(ctx, op)
	if err != nil {
		return nil, err
	}
	defer leave()

	p := &proof{Engine: e, op: op, job: request.job, progress: request.Progress, deliver: request.Partition}
	var sector *c1.Output
	release := func() {}
	defer func() { release() }()
	p.drop = func() {
		release()
		release, sector = func() {}, nil
	}
	parse := func(ctx context.Context) (err error) {
		if sector, err = e.parse(ctx, request.C1, request.Statement, request.IDs); err != nil {
			return err
		}
		st := &sector.Statement
		if err := st.Validate(); err != nil {
			return err
		}
		if request.OnChain && st.Kind == porep.NonInteractive {
			return aggregation(op)
		}
		p.meter.partitions = st.PartitionCount()
		return checkScalars(op, p.meter.partitions, request.R, request.S)
	}
	load := func(ctx context.Context) error {
		st := &sector.Statement
		set, done, err := e.useSet(ctx, request.Params, st.Shape)
		if err != nil {
			return err
		}
		release = done
		program := porep.Program(st.Shape)
		if err := set.file.Fits(program); err != nil {
			return err
		}
		p.work = &work{
			name: st.Shape.OracleName, srs: set.file, key: set.key, keyName: set.set.VK,
			partitions: st.PartitionCount(), attempts: 2, r: request.R, s: request.S,
			values: &programValues{program, e.circuit(program), func(k int) (*circuit.Inputs, error) { return porep.CircuitInputs(st, sector.Partitions[k]) }},
			public: st.PublicInputs,
			// Each partition owns its memory, which is not needed once its proof is out.
			finished: func(k int) { sector.Partitions[k] = nil },
		}
		return nil
	}
	return p.run(ctx, "seal", []host.Stage{
		{Name: "parse", Needs: host.Needs{HostBytes: parseBytes(len(request.C1)), Threads: 1}, Run: parse},
		{Name: "params", Needs: host.Needs{Threads: 1}, Run: load},
	})
}

// parse reads a C1 output on all threads, those of the context's pool.
func (e *Engine) parse(ctx context.Context, document, statement []byte, ids *SectorIDs) (*c1.Output, error) {
	return c1.ParseContext(ctx, document, c1.Options{Statement: statement, IDs: (*c1.IDs)(ids), Threads: e.limits.Threads})
}

// parseBytes bounds what a C1 output of n bytes takes in memory: a third of its size, or in the wrapper three
// quarters of it unpacked and a third of that.
func parseBytes(n int) int64 { return int64(n) }

// aggregation is the answer to whoever asks for what only an aggregate proof can give.
func aggregation(op string) error {
	return status.New(status.Unsupported, op, "non-interactive PoRep", "", "aggregation is not supported yet")
}

// ProgramRequest is a circuit of any kind to prove: the lower entry, below which nothing knows of sectors.
type ProgramRequest struct {
	Program *circuit.Program
	SRS     groth16.SRS
	Inputs  []*circuit.Inputs // one a partition
	Public  [][]fr.Element    // one vector a partition, without the constant one: what is verified against
	R, S    []fr.Element      // as in ProveRequest

	Progress  func(Progress)                   // may be nil
	Partition func(index int, proof [192]byte) // may be nil

	job *Job // as in ProveRequest
}

// ProveProgram proves partitions of a program through the same scheduler, backend, assembly and
// verification as Prove. The caller answers for the SRS: no guard looks at its key. Errors: as Prove.
func (e *Engine) ProveProgram(ctx context.Context, request *ProgramRequest) (result *ProveResult, err error) {
	const op = "engine.ProveProgram"
	defer status.Recover(op, &err)
	if request == nil || request.Program == nil || request.SRS == nil || len(request.Inputs) != len(request.Public) {
		return nil, status.New(status.Caller, op, "request", "a program, an SRS, and as many inputs as public inputs", "something missing")
	}
	if err := checkScalars(op, len(request.Inputs), request.R, request.S); err != nil {
		return nil, err
	}
	ctx, leave, err := e.begin(ctx, op)
	if err != nil {
		return nil, err
	}
	defer leave()
	p := &proof{Engine: e, op: op, job: request.job, progress: request.Progress, deliver: request.Partition}
	p.meter.partitions = len(request.Inputs)
	load := func(context.Context) error {
		key, err := groth16.Prepare(request.SRS.VerifyingKey())
		if err != nil {
			return err
		}
		if want, got := request.Program.InputCount()-1, key.InputCount(); got != want {
			return status.New(status.Params, op, "verifying key", fmt.Sprintf("%d public inputs", want), fmt.Sprint(got))
		}
		p.work = &work{
			name: request.Program.Name(), srs: request.SRS, key: key, keyName: "the key of " + request.SRS.ID(),
			partitions: len(request.Inputs), attempts: 2, r: request.R, s: request.S,
			values: &programValues{request.Program, circuitMemory(request.Program), func(k int) (*circuit.Inputs, error) { return request.Inputs[k], nil }},
			public: func(k int) ([]fr.Element, error) { return request.Public[k], nil },
		}
		return nil
	}
	return p.run(ctx, request.Program.Name(), []host.Stage{{Name: "params", Needs: host.Needs{Threads: 1}, Run: load}})
}
