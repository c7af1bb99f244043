package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"

	"github.com/sealc2/sealc2/engine/circuit/porep"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/params"
	"github.com/sealc2/sealc2/engine/status"
	"github.com/sealc2/sealc2/tests/support"
)

// wrongPoint is a point that a block cannot hold, encoded as files have it.
type wrongPoint struct {
	name string
	text string // what the prover says on reading it; "" where only the proof can tell
	g1   []byte
	g2   []byte
}

func wrongPoints() []wrongPoint {
	outside1, outside2 := bls.GeneratePointNotInG1(fp.NewElement(5)), bls.GeneratePointNotInG2(bls.E2{A0: fp.NewElement(3)})
	var p1 bls.G1Affine
	var p2 bls.G2Affine
	p1.FromJacobian(&outside1)
	p2.FromJacobian(&outside2)
	_, _, g1, g2 := bls.Generators()
	raw1, raw2, good1, good2 := p1.RawBytes(), p2.RawBytes(), g1.RawBytes(), g2.RawBytes()
	one := func(size int) []byte { b := make([]byte, size); b[size-1] = 1; return b }
	infinity := func(size int) []byte { b := make([]byte, size); b[0] = 0x40; return b }
	return []wrongPoint{
		{"a hole of zeros", "hole", make([]byte, len(raw1)), make([]byte, len(raw2))},
		{"a point off the curve", "off the curve", one(len(raw1)), one(len(raw2))},
		{"infinity", "infinity", infinity(len(raw1)), infinity(len(raw2))},
		{"a point outside the subgroup", "", raw1[:], raw2[:]},
		{"another point", "", good1[:], good2[:]},
	}
}

func (w *wrongPoint) of(b groth16.Block) []byte {
	if b == groth16.BlockB2 {
		return w.g2
	}
	return w.g1
}

// spots are the indexes of a block at which tests do damage.
func spots(n int) []int { return []int{0, n / 2, n - 1} }

// Goal: whatever lies in a parameter file, no wrong proof comes out: what reading can find is an error of kind Params with
// block and index, what only the proof shows is one of kind SelfCheck, and where the prover has no use for the point
// the proof is right. Then the next proof works.
func TestProveProgram_DamagedPoints(t *testing.T) {
	c := loadTiny(t, "tiny-16")
	data, err := os.ReadFile(vectors + "tiny/tiny-16/params.bin")
	if err != nil {
		t.Fatal(err)
	}
	e := open(t, Config{}, nil)
	path := filepath.Join(t.TempDir(), "x.params")
	prove := func(data []byte) (*ProveResult, error) {
		t.Helper()
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		srs, err := params.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer srs.Close()
		request := c.request(1)
		request.SRS = srs
		return e.ProveProgram(context.Background(), request)
	}
	for b := groth16.Block(0); b < groth16.BlockCount; b++ {
		found := 0
		for _, i := range spots(c.srs.Len(b)) {
			at := int(c.srs.Counts().Offset(b)) + i*params.PointBytes(b)
			for _, w := range wrongPoints() {
				bad := bytes.Clone(data)
				copy(bad[at:], w.of(b))
				result, err := prove(bad)
				switch {
				case w.text != "":
					if status.KindOf(err) != status.Params || !strings.Contains(err.Error(), fmt.Sprintf("%s[%d]", b, i)) || !strings.Contains(err.Error(), w.text) {
						t.Errorf("%s in %s[%d]: %v", w.name, b, i, err)
					}
				case err == nil:
					if !bytes.Equal(result.Proof, c.proof) {
						t.Errorf("%s in %s[%d]: another proof", w.name, b, i)
					}
				case status.KindOf(err) == status.SelfCheck:
					found++
				default:
					t.Errorf("%s in %s[%d]: %v", w.name, b, i, err)
				}
			}
			bad := bytes.Clone(data)
			bad[at+params.PointBytes(b)/2+5] ^= 0x10
			if _, err := prove(bad); status.KindOf(err) != status.Params || !strings.Contains(err.Error(), fmt.Sprintf("%s[%d]", b, i)) {
				t.Errorf("a flipped bit in %s[%d]: %v", b, i, err)
			}
		}
		if found == 0 {
			t.Errorf("%s: the proof has no use for any of its points: the test shows nothing", b)
		}
		if result, err := prove(data); err != nil || !bytes.Equal(result.Proof, c.proof) {
			t.Errorf("the next proof: %v", err)
		}
	}
}

// Goal: a file that shrinks, grows or is written while a proof reads it ends that proof with an error, never with
// other points, and the next one works.
// Method: the change at the start of a stage before any is read, of the first that reads, and of the last.
func TestProveProgram_FileChangesMeanwhile(t *testing.T) {
	c := loadTiny(t, "tiny-16")
	data, err := os.ReadFile(vectors + "tiny/tiny-16/params.bin")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "x.params")
	later := time.Now().Add(time.Hour)
	other := bytes.Clone(data) // as good a file as any: points of one block in another order
	at, size := int(c.srs.Counts().Offset(groth16.BlockH)), params.PointBytes(groth16.BlockH)
	copy(other[at:], data[at+size:at+2*size])
	copy(other[at+size:], data[at:at+size])
	stages := []string{"expand", "msm_h", "msm_b2"}
	if os.Getenv("SEALC2_LONG") == "1" {
		stages = []string{"expand", "evaluate", "quotient", "msm_h", "msm_l", "msm_a", "msm_b1", "msm_b2"}
	}
	for name, change := range map[string]func() error{
		"empty":              func() error { return os.Truncate(path, 0) },
		"cut in the middle":  func() error { return os.Truncate(path, int64(len(data)/2)) },
		"shorter by a byte":  func() error { return os.Truncate(path, int64(len(data)-1)) },
		"longer by a byte":   func() error { return os.Truncate(path, int64(len(data)+1)) },
		"written over":       func() error { return errors.Join(os.WriteFile(path, other, 0o600), os.Chtimes(path, later, later)) },
		"touched":            func() error { return os.Chtimes(path, later, later) },
		"replaced by rename": func() error { return replaceFile(path, other) },
		"unlinked":           func() error { return os.Remove(path) },
	} {
		// An open file outlives its name.
		harmless := name == "replaced by rename" || name == "unlinked"
		for _, stage := range stages {
			changed := false
			e := open(t, Config{}, func(b groth16.Backend) groth16.Backend {
				return &faulty{Backend: b, stage: func(_ context.Context, at string) error {
					if at != stage || changed {
						return nil
					}
					changed = true
					return change()
				}}
			})
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			srs, err := params.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			request := c.request(1)
			request.SRS = srs
			result, err := e.ProveProgram(context.Background(), request)
			srs.Close()
			switch {
			case !changed:
				t.Errorf("no stage %s", stage)
			case harmless:
				if err != nil || !bytes.Equal(result.Proof, c.proof) {
					t.Errorf("%s at %s: %v", name, stage, err)
				}
			case status.KindOf(err) != status.Params || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "while open"):
				t.Errorf("%s at %s: %v", name, stage, err)
			}
			if result, err := e.ProveProgram(context.Background(), c.request(1)); err != nil || !bytes.Equal(result.Proof, c.proof) {
				t.Errorf("%s at %s: the next proof: %v", name, stage, err)
			}
		}
	}
}

func replaceFile(path string, data []byte) error {
	return errors.Join(os.WriteFile(path+".new", data, 0o600), os.Rename(path+".new", path))
}

// Goal: sets that are no set for the sector are refused in the params stage, each with its own words.
// Method: files of the reference put together in the wrong way under the right names.
func TestProve_WrongSets(t *testing.T) {
	shape := support.Shape(t, "porep-2k")
	sector := loadSector(t, "porep-2k-a")
	read := func(path string) []byte {
		data, err := os.ReadFile(vectors + path)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	tiny16, key16 := read("tiny/tiny-16/params.bin"), read("tiny/tiny-16/vk.bin")
	tiny64, key2k := read("tiny/tiny-64/params.bin"), read("setup/porep-2k.vk")
	v28, dev := params.ReferenceStem(shape.ParamsBaseName()), params.DevStem(shape.Name, shape.ParamsBaseName())
	e := open(t, Config{}, nil)
	for _, c := range []struct {
		name  string
		files map[string][]byte
		parts []string
	}{
		{"another circuit's set", map[string][]byte{v28 + ".params": tiny16, v28 + ".vk": key16}, []string{v28 + ".params: ic", "want 40 points for circuit porep-2k, got 3"}},
		{"the key of another file", map[string][]byte{v28 + ".params": tiny64, v28 + ".vk": key16}, []string{v28 + ".params", "alpha_g1", v28 + ".vk", "two parameter sets"}},
		{"the right key, another file", map[string][]byte{dev + ".params": tiny64, dev + ".vk": key2k}, []string{dev + ".params", "two parameter sets"}},
		{"no key", map[string][]byte{v28 + ".params": tiny16}, []string{v28 + ".vk", "does not exist", params.EnvDir}},
		{"no parameters", map[string][]byte{v28 + ".vk": key2k}, []string{v28 + ".params", "does not exist", params.EnvDir}},
		{"nothing", nil, []string{v28 + ".params", dev + ".params", "none of them", params.EnvDir}},
		{"two sets", map[string][]byte{v28 + ".params": tiny16, v28 + ".vk": key16, dev + ".params": tiny16, dev + ".vk": key16}, []string{"one parameter set for 2KiB", "two: ", v28, dev}},
		{"a set and a key", map[string][]byte{v28 + ".params": tiny16, v28 + ".vk": key16, dev + ".vk": key2k}, []string{"two: "}},
		{"an empty file", map[string][]byte{v28 + ".params": nil, v28 + ".vk": key16}, []string{v28 + ".params: verifying key", "truncated"}},
		{"an empty key", map[string][]byte{v28 + ".params": tiny16, v28 + ".vk": nil}, []string{v28 + ".vk", "truncated"}},
		{"a file with more", map[string][]byte{v28 + ".params": append(bytes.Clone(tiny16), 0), v28 + ".vk": key16}, []string{"1 more bytes"}},
		{"a key with more", map[string][]byte{v28 + ".params": tiny16, v28 + ".vk": append(bytes.Clone(key16), 0)}, []string{v28 + ".vk", "end of the file"}},
	} {
		dir := t.TempDir()
		for name, data := range c.files {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, err := e.Prove(context.Background(), &ProveRequest{C1: sector.c1, Params: ParamSource{Dir: dir, Origin: params.EnvDir, AllowDev: true}})
		if status.KindOf(err) != status.Params || !strings.Contains(err.Error(), "stage params") {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for _, part := range c.parts {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q is not in: %v", c.name, part, err)
			}
		}
	}
	tiny := loadTiny(t, "tiny-16")
	if result, err := e.ProveProgram(context.Background(), tiny.request(1)); err != nil || !bytes.Equal(result.Proof, tiny.proof) {
		t.Errorf("the next proof: %v", err)
	}
}

// copyOf copies the real parameter set of a shape, so that a test may damage it: a gigabyte.
func copyOf(t *testing.T, shape *porep.Shape) (dir string, file *os.File, counts params.Counts) {
	t.Helper()
	set, err := findSet(ParamSource{Dir: paramDir(t, shape.OracleName)}, shape, true)
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	for _, from := range []string{set.VK, set.Params} {
		in, err := os.Open(from)
		if err != nil {
			t.Fatal(err)
		}
		if file, err = os.Create(filepath.Join(dir, filepath.Base(from))); err == nil {
			_, err = io.Copy(file, in)
		}
		if in.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { file.Close() })
	open, err := params.Open(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	return dir, file, open.Counts()
}

// damage writes over a part of a file and returns the function that puts back what was there.
func damage(t *testing.T, file *os.File, at int64, with []byte) (undo func()) {
	t.Helper()
	old := make([]byte, len(with))
	if _, err := file.ReadAt(old, at); err != nil {
		t.Fatal(err)
	}
	write := func(data []byte) {
		if _, err := file.WriteAt(data, at); err != nil {
			t.Fatal(err)
		}
	}
	write(with)
	return func() { write(old) }
}

// Goal: a damaged parameter file of a real sector is an error of kind Params that leads to the place, and the engine
// goes on with the file once it is whole again.
// Method: one bad point in h, and a run that gets beyond it. With SEALC2_LONG every block, first, middle and last, a
// file that shrinks and grows under the prover, and the whole proof afterwards: each takes what comes before its block.
func TestProve_DamagedFile(t *testing.T) {
	shape := support.Shape(t, "porep-2k")
	dir, file, counts := copyOf(t, shape)
	e := open(t, Config{}, nil)
	s := loadSector(t, "porep-2k-a")
	request := func() *ProveRequest {
		return &ProveRequest{
			C1: s.c1, IDs: s.ids(t), Params: ParamSource{Dir: dir, AllowDev: true}, OnChain: true,
			R: support.Scalars(t, s.proof.R), S: support.Scalars(t, s.proof.S),
		}
	}
	size := counts.Bytes()
	isLong := os.Getenv("SEALC2_LONG") == "1"
	for b := groth16.Block(0); b < groth16.BlockCount && (isLong || b == 0); b++ {
		for k, i := range spots(counts.Blocks[b]) {
			if !isLong && k != 1 {
				continue
			}
			w := wrongPoints()[k]
			undo := damage(t, file, counts.Offset(b)+int64(i)*int64(params.PointBytes(b)), w.of(b))
			_, err := e.Prove(context.Background(), request())
			if undo(); status.KindOf(err) != status.Params {
				t.Fatalf("%s in %s[%d]: %v", w.name, b, i, err)
			}
			for _, part := range []string{"partition 0, stage msm_", filepath.Base(file.Name()), fmt.Sprintf("%s[%d] at byte", b, i), w.text} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%s in %s[%d]: %q is not in: %v", w.name, b, i, part, err)
				}
			}
		}
	}

	// It shrinks and grows under the prover: told of the last stage before reading, and put right again.
	changes := map[string]int64{}
	var tail []byte
	if isLong {
		changes = map[string]int64{"shrinks": size - 1, "is cut": size / 4, "grows": size + 1}
		tail = make([]byte, size-size/4)
		if _, err := file.ReadAt(tail, size/4); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range changes {
		r := request()
		r.Progress = func(p Progress) {
			if p.Stage == "quotient" {
				if err := file.Truncate(to); err != nil {
					t.Error(err)
				}
			}
		}
		_, err := e.Prove(context.Background(), r)
		if status.KindOf(err) != status.Params || !strings.Contains(err.Error(), "while open") {
			t.Errorf("the file %s: %v", name, err)
		}
		// Before the next proof begins, the same is found at once, by its length.
		if _, err := e.Prove(context.Background(), request()); status.KindOf(err) != status.Params || !strings.Contains(err.Error(), "stage params") {
			t.Errorf("the file %s, the next proof: %v", name, err)
		}
		if err := file.Truncate(size); err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteAt(tail, size/4); err != nil {
			t.Fatal(err)
		}
	}

	// The same engine, the same file, whole again. A short run is content to see that it gets as far as before.
	r := request()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var last string
	r.Progress = func(p Progress) {
		if last = p.Stage; !isLong && last == "msm_h" {
			cancel()
		}
	}
	result, err := e.Prove(ctx, r)
	if isLong && (err != nil || !bytes.Equal(result.Proof, s.proofBytes(t))) {
		t.Errorf("the whole file: %v", err)
	}
	if !isLong && (status.KindOf(err) != status.Cancelled || last != "msm_h") {
		t.Errorf("the whole file: after %s, %v", last, err)
	}
}
