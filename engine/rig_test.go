package engine

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/params"
	"github.com/sealc2/sealc2/tests/support"
)

const vectors = "../tests/vectors/"

func readJSON(t testing.TB, path string, into any) {
	t.Helper()
	support.ReadJSON(t, vectors+path, into)
}

// tinyCase is a small circuit of the reference with its parameters and proof.
type tinyCase struct {
	program *circuit.Program
	inputs  *circuit.Inputs
	public  []fr.Element
	srs     *params.File
	r, s    fr.Element
	proof   []byte // with r and s
	bare    []byte // with zeros
	aux     int    // index in inputs.Fields of the first private variable
}

func loadTiny(t testing.TB, name string) *tinyCase {
	t.Helper()
	from := support.LoadTiny(t, vectors+"tiny/"+name)
	c := &tinyCase{
		inputs: &circuit.Inputs{}, public: from.Public, r: from.R, s: from.S, proof: from.Proof, bare: from.Bare,
		aux: len(from.Assignment.Inputs) - 1,
	}
	c.inputs.Fields = append(slices.Clone(from.Assignment.Inputs[1:]), from.Assignment.Aux...)
	var err error
	if c.program, err = circuit.FromR1CS(name, from.InputCount, make([]bool, from.AuxCount), from.Rows); err != nil {
		t.Fatal(err)
	}
	if c.srs, err = params.Open(vectors + "tiny/" + name + "/params.bin"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.srs.Close() })
	return c
}

// request proves n copies of the case with its scalars.
func (c *tinyCase) request(n int) *ProgramRequest {
	r := &ProgramRequest{Program: c.program, SRS: c.srs}
	for range n {
		r.Inputs, r.Public = append(r.Inputs, c.inputs), append(r.Public, c.public)
		r.R, r.S = append(r.R, c.r), append(r.S, c.s)
	}
	return r
}

// spoiled is a copy of the inputs whose first private variable is another one.
func (c *tinyCase) spoiled() *circuit.Inputs {
	in := &circuit.Inputs{Fields: append([]fr.Element(nil), c.inputs.Fields...), Words: c.inputs.Words}
	one := fr.One()
	for i := c.aux; i < len(in.Fields); i++ {
		in.Fields[i].Add(&in.Fields[i], &one)
	}
	return in
}

// logBook collects log lines.
type logBook struct {
	mu    sync.Mutex
	lines []string
}

func (l *logBook) add(level, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, level+": "+text)
}

func (l *logBook) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if strings.Contains(line, text) {
			return true
		}
	}
	return false
}

// open opens an engine for a test, with wrap (may be nil) around its backend.
func open(t testing.TB, config Config, wrap func(groth16.Backend) groth16.Backend) *Engine {
	t.Helper()
	e, err := Open(config)
	if err != nil {
		t.Fatal(err)
	}
	if wrap != nil {
		e.devices[0].backend = wrap(e.devices[0].backend)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if u := e.budget.Usage(); u.Used != u.Kept || u.Waiting != 0 {
			t.Errorf("budget is not as before: %+v", u)
		}
	})
	return e
}

// faulty is a backend with a fault: each nil function means none.
type faulty struct {
	groth16.Backend
	plan   func(*groth16.Plan)
	begin  func() error
	stage  func(ctx context.Context, name string) error // before the stage
	sums   func(*groth16.Sums)
	inputs func([]fr.Element)
	mu     sync.Mutex
	open   *int // batches that were begun and not closed
}

func (f *faulty) Plan(p *circuit.Program, partitions int) (groth16.Plan, error) {
	plan, err := f.Backend.Plan(p, partitions)
	if f.plan != nil {
		f.plan(&plan)
	}
	return plan, err
}

func (f *faulty) Begin(p *circuit.Program, plan groth16.Plan, count int, inputs func(int) (*circuit.Inputs, error), srs groth16.SRS, arena *host.Arena) (groth16.Batch, error) {
	if f.begin != nil {
		if err := f.begin(); err != nil {
			return nil, err
		}
	}
	batch, err := f.Backend.Begin(p, plan, count, inputs, srs, arena)
	if err != nil {
		return nil, err
	}
	if f.open != nil {
		f.mu.Lock()
		*f.open++
		f.mu.Unlock()
	}
	return &faultyBatch{Batch: batch, f: f}, nil
}

type faultyBatch struct {
	groth16.Batch
	f      *faulty
	closed bool
}

func (p *faultyBatch) Stages() []host.Stage {
	stages := p.Batch.Stages()
	for i := range stages {
		name, run := stages[i].Name, stages[i].Run
		stages[i].Run = func(ctx context.Context) error {
			if p.f.stage != nil {
				if err := p.f.stage(ctx, name); err != nil {
					return err
				}
			}
			return run(ctx)
		}
	}
	return stages
}

func (p *faultyBatch) Inputs(k int) []fr.Element {
	inputs := p.Batch.Inputs(k)
	if p.f.inputs != nil {
		p.f.inputs(inputs)
	}
	return inputs
}

func (p *faultyBatch) Sums(k int) (*groth16.Sums, error) {
	sums, err := p.Batch.Sums(k)
	if err == nil && p.f.sums != nil {
		p.f.sums(sums)
	}
	return sums, err
}

func (p *faultyBatch) Close() {
	if !p.closed && p.f.open != nil {
		p.f.mu.Lock()
		*p.f.open--
		p.f.mu.Unlock()
	}
	p.closed = true
	p.Batch.Close()
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within a minute", what)
		}
	}
}
