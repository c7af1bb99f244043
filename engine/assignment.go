package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/params"
	"github.com/sealc2/sealc2/engine/status"
)

// SRS is a reference to an open parameter file of any circuit, without a statement or a .vk file beside it.
// References to one state of one file share what is kept of it. A reference outlives the Engine that made it
// and serves any other.
type SRS struct {
	set  *residentSet
	home *residency

	mu     sync.Mutex
	closed bool
}

// OpenSRS opens the parameter file that source.Dir names, checks its layout, decodes its key, and asks the
// guard; points are checked as they are read. Errors: Params, with the system's error as the root cause where
// the file cannot be opened; Caller for an empty path or a closed engine; Cancelled.
func (e *Engine) OpenSRS(ctx context.Context, source ParamSource) (srs *SRS, err error) {
	const op = "engine.OpenSRS"
	defer status.Recover(op, &err)
	if source.Dir == "" {
		return nil, status.New(status.Caller, op, "path", "that of a parameter file", "empty text")
	}
	ctx, leave, err := e.begin(ctx, op)
	if err != nil {
		return nil, err
	}
	defer leave()
	path := CanonicalPath(source.Dir)
	policy := e.policy(source)
	s := e.resident.takeSet(params.Set{Params: path})
	if s == nil {
		file, err := params.Open(path)
		if err != nil {
			return nil, err
		}
		key, err := groth16.Prepare(file.VerifyingKey())
		if err != nil {
			return nil, errors.Join(err, file.Close())
		}
		s = &residentSet{set: params.Set{Params: path}, file: file, key: key, users: 1}
		e.resident.addSet(s)
	}
	one, admitted := &SRS{set: s, home: e.resident}, false
	defer func() {
		if !admitted {
			one.Close()
		}
	}()
	if err := s.admit(ctx, "", policy); err != nil {
		return nil, err
	}
	admitted = true
	return one, nil
}

// CanonicalPath is the absolute path of a file without links, or the path as it is where there is none.
func CanonicalPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	return path
}

// Path is the canonical path of the file.
func (s *SRS) Path() string { return s.set.set.Params }

// ID tells this state of the file from all others.
func (s *SRS) ID() string { return s.set.file.ID() }

// Clone is one more reference. Errors: Caller for a closed one.
func (s *SRS) Clone() (*SRS, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, status.New(status.Caller, "engine.SRS", "parameters", "an open reference", "a closed one")
	}
	s.home.mu.Lock()
	s.set.users++
	s.home.mu.Unlock()
	return &SRS{set: s.set, home: s.home}, nil
}

// Close gives the reference back. Closing twice is legal.
func (s *SRS) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		s.home.putSet(s.set)
	}
}

// AssignmentRequest is circuits to prove whose values were made elsewhere.
type AssignmentRequest struct {
	SRS         *SRS
	AllowDev    bool                  // as in ParamSource; asked again at every use
	Assignments []*groth16.Assignment // one a circuit; borrowed until ProveAssignments returns
	R, S        []fr.Element          // one a circuit, zero is legal; nil: crypto/rand
	// Evaluated is called once, from any goroutine, when A, B and C of all assignments will not be read again; may be nil. With it a
	// proof that does not verify is not tried a second time, since the rows may be gone.
	Evaluated func()
	Progress  func(Progress) // may be nil
}

// ProveAssignments proves circuits from explicit assignments through the same scheduler, budget, backend and
// assembly as Prove. Every row is checked, and every proof is verified with the key at the head of the
// parameter file and the given inputs. No assignments are no work.
//
// Errors: Caller (a missing SRS, wrong number of scalars, a closed engine), Input (lengths or densities that do
// not fit the parameters, a number that is not reduced), Unsatisfied (naming circuit and row), Params, NoMemory,
// Cancelled, SelfCheck, Internal.
func (e *Engine) ProveAssignments(ctx context.Context, request *AssignmentRequest) (result *ProveResult, err error) {
	const op = "engine.ProveAssignments"
	defer status.Recover(op, &err)
	if request == nil || request.SRS == nil {
		return nil, status.New(status.Caller, op, "request", "one with parameters", "none")
	}
	count := len(request.Assignments)
	if err := checkScalars(op, count, request.R, request.S); err != nil {
		return nil, err
	}
	srs, err := request.SRS.Clone()
	if err != nil {
		return nil, err
	}
	defer srs.Close()
	ctx, leave, err := e.begin(ctx, op)
	if err != nil {
		return nil, err
	}
	defer leave()
	set := srs.set
	if err := set.admit(ctx, "", params.Policy{AllowDev: request.AllowDev, Log: e.config.Log}); err != nil {
		return nil, err
	}
	for k, a := range request.Assignments {
		if err := a.Fits(set.file); err != nil {
			return nil, status.Wrap(status.KindOf(err), op, srs.Path(), status.Place(err, fmt.Sprintf("circuit %d", k)))
		}
	}
	if count == 0 {
		if request.Evaluated != nil {
			request.Evaluated()
		}
		return &ProveResult{Device: e.Device()}, nil
	}
	p := &proof{Engine: e, op: op, progress: request.Progress}
	p.meter.partitions = count
	p.work = &work{
		name: "assignments", srs: set.file, key: set.key, keyName: "the key of " + srs.Path(),
		partitions: count, attempts: 2, r: request.R, s: request.S,
		values: assignmentValues(request.Assignments),
		public: func(k int) ([]fr.Element, error) { return request.Assignments[k].Inputs[1:], nil },
	}
	if request.Evaluated != nil {
		p.work.attempts = 1
		var evaluated atomic.Int64
		p.work.evaluated = func() {
			if evaluated.Add(1) == int64(count) {
				request.Evaluated()
			}
		}
	}
	return p.run(ctx, "assignments", nil)
}

// assignmentValues are given as vectors. All have passed Fits, so they have one shape.
type assignmentValues []*groth16.Assignment

func (v assignmentValues) plan(backend groth16.Backend, partitions int) (groth16.Plan, error) {
	return backend.PlanAssignment(v[0], partitions)
}

func (v assignmentValues) hostBytes() (beside, check int64) { return 0, 0 }

func (v assignmentValues) shared() []host.Shared { return nil }

func (v assignmentValues) inputs(int) (*circuit.Inputs, error) { return nil, nil }

func (v assignmentValues) begin(b *batch) (groth16.Batch, error) {
	return b.device.backend.BeginAssignment(v[b.first:b.first+len(b.parts)], b.plan, b.work.srs, b.arena)
}

// check looks at the rows of all circuits but the first, whose own evaluate stage comes next.
func (v assignmentValues) check(ctx context.Context, p *proof) error {
	for k := 1; k < len(v); k++ {
		if err := v[k].CheckRows(ctx, p.limits.Threads); err != nil {
			return status.Wrap(status.KindOf(err), checkOp, "", status.Place(err, fmt.Sprintf("circuit %d", k)))
		}
	}
	return nil
}
