package setup_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/cuda/kerneltest"
	"github.com/sealc2/sealc2/cuda/points"
	"github.com/sealc2/sealc2/cuda/setup"
	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/circuit/porep"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/params"
)

// vectors is the folder of the reference's reports.
const vectors = "../../tests/vectors/setup"

func program(tb testing.TB, name string) *circuit.Program {
	tb.Helper()
	for _, shape := range porep.Shapes() {
		if shape.OracleName == name {
			return porep.Program(shape)
		}
	}
	tb.Fatalf("no shape %q", name)
	return nil
}

func secretsOf(name string) *setup.Secrets {
	s := params.SetupScalars(params.DefaultSetupText, name)
	return &setup.Secrets{Alpha: s.Alpha, Beta: s.Beta, Gamma: s.Gamma, Delta: s.Delta, Tau: s.Tau}
}

// Goal: parameters of real circuits are the reference's. Method: digests of the blocks and the key's bytes, as
// bellperson's generator gave them.
func TestMake_Reference(t *testing.T) {
	kerneltest.NeedCard(t)
	for _, name := range []string{"porep-2k", "porep-16k", "porep-32k"} {
		text, err := os.ReadFile(filepath.Join(vectors, name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		var want struct {
			Blocks map[string]struct {
				Count  int    `json:"count"`
				SHA256 string `json:"sha256"`
			} `json:"blocks"`
		}
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		r := newRig(t, program(t, name))
		begun := time.Now()
		vk := r.make(t, secretsOf(name))
		t.Logf("%s: %v", name, time.Since(begun))
		key, err := os.ReadFile(filepath.Join(vectors, name+".vk"))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(groth16.AppendVK(nil, vk), key) {
			t.Errorf("%s: another key", name)
		}
		for _, b := range r.encoded(t) {
			sum := sha256.Sum256(b.bytes)
			if w := want.Blocks[b.name]; w.Count != b.count || w.SHA256 != hex.EncodeToString(sum[:]) {
				t.Errorf("%s: %s: want %d points with digest %s, got %d with %x", name, b.name, w.Count, w.SHA256, b.count, sum)
			}
		}
	}
}

// Goal: the time of a 32 GiB partition's parameters (SEALC2_TEST_SHAPE names another shape), in device memory. Method: made
// whole; single points of h against their exponents.
func BenchmarkMake(b *testing.B) {
	kerneltest.NeedCard(b)
	name := "porep-32g"
	if s := os.Getenv("SEALC2_TEST_SHAPE"); s != "" {
		name = s
	}
	begun := time.Now()
	p := program(b, name)
	recorded := time.Since(begun)
	begun = time.Now()
	r := newRig(b, p)
	built := time.Since(begun)
	secrets := secretsOf(name)
	var times []float64
	for b.Loop() {
		begun := time.Now()
		r.make(b, secrets)
		times = append(times, 1e3*time.Since(begun).Seconds())
	}
	slices.Sort(times)
	median, c := times[len(times)/2], r.tables.Counts()
	// 11 additions a point in G1, 12 in G2, at 4.6 and 1.5 G/s.
	floor := 11*float64(c.H+c.L+c.A+c.B)/4.6e6 + 12*float64(c.B)/1.5e6
	fmt.Printf("RESULT development SRS of %s: median %.0f ms [%.0f, %.0f] of %d; floor %.0f ms, ratio %.2f; tables of the program before %.2f s\n",
		name, median, times[0], times[len(times)-1], len(times), floor, median/floor, built.Seconds())
	b.ReportMetric(float64(setup.ScratchBytes(r.tables, r.s.Device()))/1e9, "GB-scratch")
	b.Logf("%s: program %v, tables and memory %v, counts %+v", name, recorded, built, r.tables.Counts())

	n := p.Domain()
	var z, one fr.Element
	z.Exp(secrets.Tau, big.NewInt(int64(n)))
	one.SetOne()
	z.Sub(&z, &one).Div(&z, &secrets.Delta)
	for _, i := range []int{0, 1, n / 3, n - 2} {
		var e fr.Element
		e.Exp(secrets.Tau, big.NewInt(int64(i))).Mul(&e, &z)
		var want bls.G1Affine
		want.ScalarMultiplicationBase(e.BigInt(new(big.Int)))
		if got := kerneltest.Get[bls.G1Affine](b, r.blocks.H.Add(int64(i)*points.G1.PointBytes()), 1)[0]; got != want {
			b.Fatalf("h[%d]: want %v, got %v", i, want, got)
		}
	}
}
