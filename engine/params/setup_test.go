package params

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"golang.org/x/sys/unix"

	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
)

const vectors = "../../tests/vectors/"

var tinyNames = []string{"tiny-16", "tiny-64", "tiny-128", "tiny-1024"}

// listed is a circuit whose rows stand in memory.
type listed struct {
	inputs, aux int
	rows        [][3][]circuit.Term
}

func (l *listed) InputCount() int      { return l.inputs }
func (l *listed) AuxCount() int        { return l.aux }
func (l *listed) ConstraintCount() int { return len(l.rows) }
func (l *listed) Rows(from, to int, visit func(row int, a, b, c []circuit.Term)) {
	for i := from; i < to; i++ {
		visit(i, l.rows[i][0], l.rows[i][1], l.rows[i][2])
	}
}

// readListed reads the "canonical" form of an oracle r1cs.json.
func readListed(t testing.TB, path string) *listed {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Inputs    int `json:"inputs"`
		Aux       int `json:"aux"`
		Canonical []map[string][][2]any
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	l := &listed{inputs: file.Inputs, aux: file.Aux}
	for _, r := range file.Canonical {
		var row [3][]circuit.Term
		for m, name := range []string{"a", "b", "c"} {
			for _, term := range r[name] {
				row[m] = append(row[m], circuit.Term{
					Key:   circuit.Key(term[0].(float64)),
					Coeff: scalarOf(t, term[1].(string)),
				})
			}
		}
		l.rows = append(l.rows, row)
	}
	return l
}

// scalarOf reads 32 bytes, little-endian, in hex.
func scalarOf(t testing.TB, text string) (e fr.Element) {
	t.Helper()
	raw, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(raw)
	e.SetBigInt(new(big.Int).SetBytes(raw))
	return e
}

// sameReport compares a report with the oracle's, for every field that does not name a time or a place.
func sameReport(t *testing.T, result *SetupResult, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var want, got map[string]any
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(encoded, &got); err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"shape", "scalar_rule", "g1", "g2", "alpha", "beta", "gamma", "delta", "tau", "vk", "blocks", "params_file", "vk_file"} {
		if want[field] == nil {
			t.Errorf("%s: no field %s", path, field)
		}
		if w, g := fmt.Sprint(want[field]), fmt.Sprint(got[field]); w != g {
			t.Errorf("%s: %s: want %s, got %s", path, field, w, g)
		}
	}
}

// Goal: for the tiny circuits both files are the reference's, byte for byte, with any number of threads.
func TestSetup_Tiny(t *testing.T) {
	for _, name := range tinyNames {
		for _, threads := range []int{1, 3} {
			dir := t.TempDir()
			c := readListed(t, vectors+"tiny/"+name+"/r1cs.json")
			last := 0.0
			result, err := Setup(context.Background(), c, SetupScalars(DefaultSetupText, name), SetupOptions{
				Dir: dir, BaseName: "dev-" + name, Shape: name, Threads: threads,
				Progress: func(done float64, what string) {
					if done < last || done > 1 {
						t.Errorf("%s: progress went from %v to %v at %s", name, last, done, what)
					}
					last = done
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			if last != 1 {
				t.Errorf("%s: progress ended at %v", name, last)
			}
			sameReport(t, result, vectors+"tiny/"+name+"/setup.json")
			for path, reference := range map[string]string{result.ParamsPath: "params.bin", result.VKPath: "vk.bin"} {
				got, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				want, err := os.ReadFile(vectors + "tiny/" + name + "/" + reference)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got, want) {
					t.Errorf("%s differs from %s/%s", filepath.Base(path), name, reference)
				}
			}
			if files := list(t, dir); len(files) != 2 {
				t.Errorf("want two files, got %v", files)
			}
		}
	}
}

func list(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// Goal: the oracle's scalars of the larger shapes follow from their names.
func TestSetupScalars(t *testing.T) {
	for _, name := range []string{"porep-2k", "porep-16k", "porep-32k"} {
		data, err := os.ReadFile(vectors + "setup/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var want struct{ Alpha, Beta, Gamma, Delta, Tau string }
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatal(err)
		}
		s := SetupScalars(DefaultSetupText, name)
		got := [5]fr.Element{s.Alpha, s.Beta, s.Gamma, s.Delta, s.Tau}
		for i, text := range []string{want.Alpha, want.Beta, want.Gamma, want.Delta, want.Tau} {
			if e := scalarOf(t, text); !e.Equal(&got[i]) {
				t.Errorf("%s: scalar %d differs", name, i)
			}
		}
	}
}

// Goal: the domain's root is the reference's, 7^((r-1)/2^32) to the power 2^(32-k), and the basis is the
// Lagrange basis: at tau = a point outside the domain it adds up to one and interpolates X.
func TestLagrange(t *testing.T) {
	exponent := new(big.Int).Rsh(new(big.Int).Sub(fr.Modulus(), big.NewInt(1)), 32)
	for _, k := range []uint{0, 1, 4, 13} {
		n := 1 << k
		var want, tau fr.Element
		want.SetUint64(7)
		want.Exp(want, new(big.Int).Lsh(exponent, 32-k))
		tau.MustSetRandom()
		l, err := newLagrange(&tau, n)
		if err != nil {
			t.Fatal(err)
		}
		if !l.omega.Equal(&want) {
			t.Errorf("2^%d: want ω = %v, got %v", k, &want, &l.omega)
		}
		var values []fr.Element
		for from := 0; from < n; from += rowRun {
			part := make([]fr.Element, min(rowRun, n-from))
			l.fill(from, part)
			values = append(values, part...)
		}
		var ones, x, term fr.Element
		root := fr.One()
		for i := range values {
			ones.Add(&ones, &values[i])
			x.Add(&x, term.Mul(&values[i], &root))
			root.Mul(&root, &l.omega)
		}
		if !ones.IsOne() || (n > 1 && !x.Equal(&tau)) {
			t.Errorf("2^%d: the basis does not interpolate", k)
		}
		root.Exp(l.omega, big.NewInt(int64(n/2)))
		if _, err := newLagrange(&root, n); status.KindOf(err) != status.Caller {
			t.Errorf("2^%d: tau in the domain: want Caller, got %v", k, err)
		}
	}
	var tau fr.Element
	tau.SetUint64(5)
	if _, err := newLagrange(&tau, 1<<33); status.KindOf(err) != status.Unsupported {
		t.Errorf("2^33: want Unsupported, got %v", err)
	}
}

// Goal: sums by several goroutines equal plain sums, where rows share variables across the whole circuit.
func TestEvaluateQAP_Shared(t *testing.T) {
	const rows, aux, inputs = 3*rowRun + 5, 5 * stripeVariables / 2, 3
	c := &listed{inputs: inputs, aux: aux}
	for i := range rows {
		var row [3][]circuit.Term
		for m := range row {
			for _, key := range []circuit.Key{0, circuit.InputKey(i % inputs), circuit.AuxKey(i * 7 % aux), circuit.AuxKey(i * i % aux), circuit.AuxKey(aux - 1)} {
				var k fr.Element
				k.SetUint64(uint64(i + m + 1))
				row[m] = append(row[m], circuit.Term{Key: key, Coeff: k})
			}
		}
		c.rows = append(c.rows, row)
	}
	s := SetupScalars("test", "shared")
	q, err := evaluateQAP(context.Background(), c, &s, 4)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	var want [3][]fr.Element
	values := make([]fr.Element, rows+inputs)
	for from := 0; from < len(values); from += rowRun {
		q.fill(from, values[from:min(from+rowRun, len(values))])
	}
	for m := range want {
		want[m] = make([]fr.Element, inputs+aux)
		for i := range c.rows {
			for _, term := range c.rows[i][m] {
				at := term.Key.Index()
				if term.Key.IsAux() {
					at += inputs
				}
				var p fr.Element
				p.Mul(&term.Coeff, &values[i])
				want[m][at].Add(&want[m][at], &p)
			}
		}
	}
	for i := range inputs {
		want[0][i].Add(&want[0][i], &values[rows+i])
	}
	for m, got := range [][]fr.Element{q.a, q.b, q.c} {
		for v := range got {
			if !got[v].Equal(&want[m][v]) {
				t.Fatalf("matrix %d, variable %d differs", m, v)
			}
		}
	}
}

// broken is a circuit whose rows panic.
type broken struct{ listed }

func (b *broken) ConstraintCount() int { return 3 * rowRun }
func (b *broken) Rows(int, int, func(int, []circuit.Term, []circuit.Term, []circuit.Term)) {
	panic("rows")
}

// Goal: whatever goes wrong is an error of the right kind that names its place, leaves no file behind,
// and keeps the files that were there.
func TestSetup_Refuses(t *testing.T) {
	good := readListed(t, vectors+"tiny/tiny-16/r1cs.json")
	unbound := *good
	unbound.aux++
	outside := *good
	outside.rows = append(slices.Clone(good.rows), [3][]circuit.Term{{{Key: circuit.AuxKey(1 << 20)}}})
	scalars := SetupScalars(DefaultSetupText, "tiny-16")
	zero, root := scalars, scalars
	zero.Delta.SetZero()
	root.Tau.SetOne()
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	for _, c := range []struct {
		name    string
		ctx     context.Context
		circuit R1CS
		scalars Scalars
		base    string
		subdir  string
		kind    status.Kind
		text    string
	}{
		{"unbound", nil, &unbound, scalars, "x", "", status.Caller, "aux[10]"},
		{"key outside", nil, &outside, scalars, "x", "", status.Internal, ""},
		{"panic", nil, &broken{*good}, scalars, "x", "", status.Internal, "rows"},
		{"delta zero", nil, good, zero, "x", "", status.Caller, "delta"},
		{"tau in domain", nil, good, root, "x", "", status.Caller, "tau"},
		{"no directory", nil, good, scalars, "x", "missing", status.Params, "missing/x.vk"},
		{"base name", nil, good, scalars, "../x", "", status.Caller, "base name"},
		{"no base name", nil, good, scalars, "", "", status.Caller, "base name"},
		{"cancelled", cancelled, good, scalars, "x", "", status.Cancelled, ""},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "x.params"), []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
		if c.ctx == nil {
			c.ctx = context.Background()
		}
		_, err := Setup(c.ctx, c.circuit, c.scalars, SetupOptions{Dir: filepath.Join(dir, c.subdir), BaseName: c.base, Threads: 2})
		if status.KindOf(err) != c.kind || err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: want %v with %q, got %v", c.name, c.kind, c.text, err)
		}
		if files := list(t, dir); len(files) != 1 {
			t.Errorf("%s: files left behind: %v", c.name, files)
		}
		if old, _ := os.ReadFile(filepath.Join(dir, "x.params")); string(old) != "old" {
			t.Errorf("%s: the old file was touched", c.name)
		}
	}
}

// Goal: a name that cannot be taken is refused with its path before the work; nothing stays, the key neither.
func TestSetup_NameTaken(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "x.params"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := Setup(context.Background(), readListed(t, vectors+"tiny/tiny-16/r1cs.json"), SetupScalars(DefaultSetupText, "tiny-16"), SetupOptions{Dir: dir, BaseName: "x"})
	if status.KindOf(err) != status.Params || !strings.Contains(err.Error(), filepath.Join(dir, "x.params")) {
		t.Errorf("want Params with the path, got %v", err)
	}
	if files := list(t, dir); len(files) != 1 {
		t.Errorf("left behind: %v", files)
	}
}

// Goal: a full disk is an error with the path of the file that was to be written.
func TestSetupFile_DiskFull(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("the system has no /dev/full")
	}
	defer full.Close()
	f, err := createSetupFile(filepath.Join(t.TempDir(), "x.params"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.file.Close()
	temporary := f.file
	f.file = full
	defer temporary.Close()
	if err := f.beginBlock(1); status.KindOf(err) != status.Params || !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), f.path) {
		t.Errorf("want Params with ENOSPC and the path, got %v", err)
	}
}

// Goal: a ceiling that is too low is refused before anything is written, with both numbers; at the lowest one that
// fits, the files are the same.
func TestSetup_Ceiling(t *testing.T) {
	c := readListed(t, vectors+"tiny/tiny-1024/r1cs.json")
	const threads = 2
	least := 3*host.SliceBytes[fr.Element](c.inputs+c.aux) + threads*setupThreadBytes + setupLeastTableBytes
	dir := t.TempDir()
	options := SetupOptions{Dir: dir, BaseName: "x", Shape: "tiny-1024", Threads: threads, HostBytes: least - 1}
	_, err := Setup(context.Background(), c, SetupScalars(DefaultSetupText, "tiny-1024"), options)
	if text := fmt.Sprint(err); status.KindOf(err) != status.NoMemory || !strings.Contains(text, fmt.Sprint(least)) || !strings.Contains(text, fmt.Sprint(least-1)) {
		t.Errorf("a byte too little: %v", err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 0 {
		t.Errorf("left behind: %v, %v", files, err)
	}
	options.HostBytes = least
	result, err := Setup(context.Background(), c, SetupScalars(DefaultSetupText, "tiny-1024"), options)
	if err != nil {
		t.Fatal(err)
	}
	sameReport(t, result, vectors+"tiny/tiny-1024/setup.json")

	// Tables grow with what is left, up to their bound.
	for extra, want := range map[int64]int64{0: setupLeastTableBytes, 100 << 20: setupLeastTableBytes + 100<<20, 1 << 40: setupTableBytes} {
		options.HostBytes = least + extra
		if got, err := setupTables(c, &options); err != nil || got != want {
			t.Errorf("%d more: want tables of %d bytes, got %d, %v", extra, want, got, err)
		}
	}
}
