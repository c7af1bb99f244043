package engine

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/c1"
	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/circuit/porep"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
	"github.com/sealc2/sealc2/tests/support"
)

// loadAssignment reads a tiny circuit's vectors. Bits behind the ends of its densities are garbage.
func loadAssignment(t testing.TB, name string) *groth16.Assignment {
	t.Helper()
	a := support.LoadTiny(t, vectors+"tiny/"+name).Assignment
	for _, b := range []circuit.Bits{a.Density.AAux, a.Density.BInput, a.Density.BAux} {
		if rest := b.Len & 63; rest != 0 {
			b.Words[len(b.Words)-1] |= ^uint64(0) << rest
		}
	}
	return a
}

func openSRS(t testing.TB, e *Engine, path string) *SRS {
	t.Helper()
	srs, err := e.OpenSRS(context.Background(), ParamSource{Dir: path, AllowDev: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srs.Close)
	return srs
}

func spoil(v []fr.Element) {
	for i := range v {
		v[i] = fr.Element{0xdead, 0xbeef, 0xdead, ^uint64(0)}
	}
}

// assignments are n circuits of one case.
func assignments(srs *SRS, c *tinyCase, a *groth16.Assignment, n int) *AssignmentRequest {
	r := &AssignmentRequest{SRS: srs, AllowDev: true, R: []fr.Element{}, S: []fr.Element{}}
	for range n {
		r.Assignments, r.R, r.S = append(r.Assignments, a), append(r.R, c.r), append(r.S, c.s)
	}
	return r
}

// TestProveAssignments_EqualsReference: any number of circuits, with and without blinding, gives the
// reference's bytes; what the interface says may go once the rows were read is gone.
func TestProveAssignments_EqualsReference(t *testing.T) {
	e := open(t, Config{}, nil)
	for _, name := range []string{"tiny-16", "tiny-64", "tiny-128", "tiny-1024"} {
		c, srs := loadTiny(t, name), openSRS(t, e, vectors+"tiny/"+name+"/params.bin")
		counts := []int{1, 2}
		if name == "tiny-16" {
			counts = []int{0, 1, 10, 16}
		}
		for _, n := range counts {
			a := loadAssignment(t, name)
			request := assignments(srs, c, a, n)
			calls := 0
			request.Evaluated = func() {
				calls++
				spoil(a.A)
				spoil(a.B)
				spoil(a.C)
			}
			result, err := e.ProveAssignments(context.Background(), request)
			if err != nil {
				t.Fatalf("%s x %d: %v", name, n, err)
			}
			if calls != 1 || len(result.Points) != n || !bytes.Equal(result.Proof, bytes.Repeat(c.proof, n)) {
				t.Errorf("%s x %d: another proof (evaluated called %d times, %d points)", name, n, calls, len(result.Points))
			}
		}
		bare := assignments(srs, c, loadAssignment(t, name), 1)
		bare.R, bare.S = make([]fr.Element, 1), make([]fr.Element, 1)
		if result, err := e.ProveAssignments(context.Background(), bare); err != nil || !bytes.Equal(result.Proof, c.bare) {
			t.Errorf("%s, r = s = 0: %v", name, err)
		}
		free := assignments(srs, c, loadAssignment(t, name), 1)
		free.R, free.S = nil, nil
		if result, err := e.ProveAssignments(context.Background(), free); err != nil || bytes.Equal(result.Proof, c.proof) {
			t.Errorf("%s, random r and s: %v", name, err)
		}
	}
}

// TestProveAssignments_Refused: each mismatch is an error that names it with both numbers, and the next call
// works.
func TestProveAssignments_Refused(t *testing.T) {
	e := open(t, Config{}, nil)
	c, srs := loadTiny(t, "tiny-128"), openSRS(t, e, vectors+"tiny/tiny-128/params.bin")
	one := fr.One()
	for _, x := range []struct {
		name   string
		change func(a *groth16.Assignment)
		kind   status.Kind
		text   string
	}{
		{"fewer b", func(a *groth16.Assignment) { a.B = a.B[1:] }, status.Input, "65, 64, 65"},
		{"more c", func(a *groth16.Assignment) { a.C = append(a.C, one) }, status.Input, "65, 65, 66"},
		{"too many rows", func(a *groth16.Assignment) {
			a.A, a.B, a.C = make([]fr.Element, 129), make([]fr.Element, 129), make([]fr.Element, 129)
		}, status.Input, "at most 128"},
		{"too few rows", func(a *groth16.Assignment) { a.A, a.B, a.C = a.A[:64], a.B[:64], a.C[:64] }, status.Input, "more than 64"},
		{"no rows", func(a *groth16.Assignment) { a.A, a.B, a.C = nil, nil, nil }, status.Input, "rows"},
		{"no inputs", func(a *groth16.Assignment) { a.Inputs = nil }, status.Input, "input 0"},
		{"input 0 is not one", func(a *groth16.Assignment) { a.Inputs[0].SetUint64(2) }, status.Input, "input 0"},
		{"one input more", func(a *groth16.Assignment) {
			a.Inputs = append(a.Inputs, one)
			a.Density.BInput = circuit.Bits{Words: a.Density.BInput.Words, Len: len(a.Inputs)}
		}, status.Input, "ic"},
		{"one aux less", func(a *groth16.Assignment) { a.Aux = a.Aux[1:] }, status.Input, "density of aux in A"},
		{"aux and densities less", func(a *groth16.Assignment) {
			a.Aux = a.Aux[1:]
			a.Density.AAux.Len--
			a.Density.BAux.Len--
		}, status.Input, "aux"},
		{"another density of A", func(a *groth16.Assignment) { a.Density.AAux.Words[0] ^= 1 }, status.Input, "points in a"},
		{"another density of B", func(a *groth16.Assignment) { a.Density.BAux.Words[0] ^= 1 }, status.Input, "points in b_g1"},
		{"a short bitmap", func(a *groth16.Assignment) { a.Density.BAux.Words = nil }, status.Input, "words"},
		{"a row that does not hold", func(a *groth16.Assignment) { a.C[7].Add(&a.C[7], &one) }, status.Unsatisfied, "row 7 of 65"},
		{"the first of two rows", func(a *groth16.Assignment) {
			a.C[64].Add(&a.C[64], &one)
			a.C[9].Add(&a.C[9], &one)
		}, status.Unsatisfied, "row 9 of 65"},
		{"a number not reduced in a", func(a *groth16.Assignment) { spoil(a.A[3:4]) }, status.Input, "a[3]"},
		{"the order itself in b", func(a *groth16.Assignment) {
			for i, w := range fr.Modulus().Bits() {
				a.B[5][i] = uint64(w)
			}
		}, status.Input, "b[5]"},
		{"not reduced in aux", func(a *groth16.Assignment) { spoil(a.Aux[2:3]) }, status.Input, "aux[2]"},
		{"not reduced in inputs", func(a *groth16.Assignment) { spoil(a.Inputs[1:2]) }, status.Input, "input[1]"},
		{"rows of another witness", func(a *groth16.Assignment) { a.Aux[0].Add(&a.Aux[0], &one) }, status.SelfCheck, "does not verify"},
		{"another public input", func(a *groth16.Assignment) { a.Inputs[1].Add(&a.Inputs[1], &one) }, status.SelfCheck, "does not verify"},
	} {
		a := loadAssignment(t, "tiny-128")
		x.change(a)
		request := assignments(srs, c, a, 1)
		request.Assignments = append([]*groth16.Assignment{loadAssignment(t, "tiny-128")}, request.Assignments...)
		request.R, request.S = append(request.R, c.r), append(request.S, c.s)
		for _, r := range []*AssignmentRequest{assignments(srs, c, a, 1), request} { // alone, and behind a good one
			_, err := e.ProveAssignments(context.Background(), r)
			if status.KindOf(err) != x.kind || !strings.Contains(err.Error(), x.text) {
				t.Errorf("%s: %v", x.name, err)
			}
		}
	}
	wrong := assignments(srs, c, loadAssignment(t, "tiny-128"), 1)
	wrong.R = nil
	if _, err := e.ProveAssignments(context.Background(), wrong); status.KindOf(err) != status.Caller {
		t.Errorf("r without s: %v", err)
	}
	if _, err := e.ProveAssignments(context.Background(), &AssignmentRequest{}); status.KindOf(err) != status.Caller {
		t.Errorf("no parameters: %v", err)
	}
	if _, err := e.ProveAssignments(context.Background(), assignments(srs, c, loadAssignment(t, "tiny-128"), 1)); err != nil {
		t.Errorf("the next proof: %v", err)
	}
}

// TestOpenSRS: what a reference is, whom it survives, and what the guard says.
func TestOpenSRS(t *testing.T) {
	e := open(t, Config{}, nil)
	dir := t.TempDir()
	path := tinySet(t, dir, "set", "tiny-16")
	link := filepath.Join(dir, "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(dir, "missing.params")
	_, err := e.OpenSRS(context.Background(), ParamSource{Dir: missing, AllowDev: true})
	var errno syscall.Errno
	if status.KindOf(err) != status.Params || !errors.As(err, &errno) || errno != syscall.ENOENT || !strings.Contains(err.Error(), missing) {
		t.Errorf("missing file: %v", err)
	}
	if _, err := e.OpenSRS(context.Background(), ParamSource{Dir: path}); status.KindOf(err) != status.Params || !strings.Contains(err.Error(), "SEALC2_ALLOW_DEV_PARAMS") {
		t.Errorf("development key without leave: %v", err)
	}
	if _, err := e.OpenSRS(context.Background(), ParamSource{}); status.KindOf(err) != status.Caller {
		t.Errorf("no path: %v", err)
	}
	a, b := openSRS(t, e, path), openSRS(t, e, link)
	if a.set != b.set || a.Path() != b.Path() {
		t.Error("one file by two paths is loaded twice")
	}
	// The file is replaced: a new reference sees the new one, old ones keep theirs.
	other, err := os.ReadFile(vectors + "tiny/tiny-64/params.bin")
	if err == nil {
		err = os.Rename(path, path+".old")
	}
	if err == nil {
		err = os.WriteFile(path, other, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	d := openSRS(t, e, path)
	if d.ID() == a.ID() {
		t.Error("a replaced file gives the old parameters")
	}
	clone, err := a.Clone()
	if err != nil {
		t.Fatal(err)
	}
	a.Close()
	a.Close()
	b.Close()
	c16, c64 := loadTiny(t, "tiny-16"), loadTiny(t, "tiny-64")
	if _, err := e.ProveAssignments(context.Background(), assignments(a, c16, loadAssignment(t, "tiny-16"), 1)); status.KindOf(err) != status.Caller {
		t.Errorf("closed reference: %v", err)
	}
	if _, err := a.Clone(); status.KindOf(err) != status.Caller {
		t.Errorf("clone of a closed reference: %v", err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	next := open(t, Config{}, nil)
	for _, x := range []struct {
		srs  *SRS
		c    *tinyCase
		name string
	}{{clone, c16, "tiny-16"}, {d, c64, "tiny-64"}} {
		result, err := next.ProveAssignments(context.Background(), assignments(x.srs, x.c, loadAssignment(t, x.name), 1))
		if err != nil || !bytes.Equal(result.Proof, x.c.proof) {
			t.Errorf("%s through another engine: %v", x.name, err)
		}
	}
	refused := assignments(clone, c16, loadAssignment(t, "tiny-16"), 1)
	refused.AllowDev = false
	if _, err := next.ProveAssignments(context.Background(), refused); status.KindOf(err) != status.Params {
		t.Errorf("leave taken back: %v", err)
	}
	file := clone.set.file
	clone.Close()
	if err := file.ReadG1(context.Background(), groth16.BlockH, 0, make([]bls.G1Affine, 1)); err == nil {
		t.Error("the file is still open after the last reference")
	}
}

// TestProveAssignments_Concurrent: open, prove and close from many goroutines.
func TestProveAssignments_Concurrent(t *testing.T) {
	e := open(t, Config{}, nil)
	c := loadTiny(t, "tiny-16")
	path := vectors + "tiny/tiny-16/params.bin"
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 3 {
				srs, err := e.OpenSRS(context.Background(), ParamSource{Dir: path, AllowDev: true})
				if err != nil {
					t.Error(err)
					return
				}
				request := assignments(srs, c, loadAssignment(t, "tiny-16"), 1)
				request.Evaluated = srs.Close // the proof has its own reference
				result, err := e.ProveAssignments(context.Background(), request)
				if err != nil || !bytes.Equal(result.Proof, c.proof) {
					t.Errorf("%v", err)
				}
			}
		})
	}
	all.Wait()
}

// explicit expands a sector's partition into the vectors that bellperson's prover would hand over.
func explicit(t testing.TB, program *circuit.Program, in *circuit.Inputs) *groth16.Assignment {
	t.Helper()
	arena, err := host.NewArena(witnessBytes(program))
	if err != nil {
		t.Fatal(err)
	}
	defer arena.Close()
	w := newWitness(program, arena)
	if err := program.Expand(context.Background(), in, w, 2); err != nil {
		t.Fatal(err)
	}
	a := &groth16.Assignment{Inputs: slices.Clone(w.Inputs), Aux: make([]fr.Element, program.AuxCount()), Density: *program.Density()}
	num := 0
	for i := range a.Aux {
		switch {
		case program.IsNum(i):
			a.Aux[i] = w.Nums[num]
			num++
		case w.Bits.Get(i):
			a.Aux[i].SetOne()
		}
	}
	rows := [3][]fr.Element{}
	for i := range rows {
		rows[i] = make([]fr.Element, program.Domain())
	}
	if err := program.Evaluate(context.Background(), w, rows[0], rows[1], rows[2], 2); err != nil {
		t.Fatal(err)
	}
	n := program.RowCount()
	a.A, a.B, a.C = rows[0][:n], rows[1][:n], rows[2][:n]
	return a
}

// TestProveAssignments_Sector: a 2 KiB sector given as vectors gives the reference's proof, and what the
// vectors cost (classify, copy, check) is little beside the proof.
func TestProveAssignments_Sector(t *testing.T) {
	if testing.Short() {
		t.Skip("a whole proof takes minutes under the race detector")
	}
	dir := paramDir(t, "porep-2k")
	s := loadSector(t, "porep-2k-a")
	sector, err := c1.Parse(s.c1, c1.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var want struct{ R, S, Proofs []string }
	readJSON(t, "c1/porep-2k-a/proof.json", &want)
	st := &sector.Statement
	set, err := findSet(ParamSource{Dir: dir}, st.Shape, true)
	if err != nil {
		t.Fatal(err)
	}
	in, err := porep.CircuitInputs(st, sector.Partitions[0])
	if err != nil {
		t.Fatal(err)
	}
	e := open(t, Config{}, nil)
	a := explicit(t, porep.Program(st.Shape), in)
	measure := func(prove func() (*ProveResult, error)) time.Duration {
		var before, after syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &before)
		result, err := prove()
		if err != nil {
			t.Fatal(err)
		}
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
		if !bytes.Equal(result.Proof, support.Hex(t, want.Proofs[0])) {
			t.Error("another proof than the reference's")
		}
		used := func(r *syscall.Rusage) time.Duration { return time.Duration(r.Utime.Nano() + r.Stime.Nano()) }
		for _, stage := range result.Stages {
			t.Logf("%-10s %v", stage.Stage, stage.Elapsed.Round(time.Millisecond))
		}
		return used(&after) - used(&before)
	}
	r, z := support.Scalars(t, want.R), support.Scalars(t, want.S)
	vectors := measure(func() (*ProveResult, error) {
		return e.ProveAssignments(context.Background(), &AssignmentRequest{
			SRS: openSRS(t, e, set.Params), AllowDev: true, Assignments: []*groth16.Assignment{a}, R: r, S: z,
		})
	})
	program := measure(func() (*ProveResult, error) {
		return e.Prove(context.Background(), &ProveRequest{C1: s.c1, IDs: s.ids(t), Params: ParamSource{Dir: dir, AllowDev: true}, R: r, S: z})
	})
	t.Logf("CPU time: %v from vectors, %v from the C1", vectors, program)
	if vectors > program*3/2 { // the same work; the rest is the noise of shared machines
		t.Errorf("from vectors a proof took %v of CPU time, from the C1 %v", vectors, program)
	}
}
