// Package conformance compares whole circuits and sectors of every size with the reference, and proves large
// synthetic partitions satisfied, on a small machine. `make conformance` runs it; the small shapes are compared
// by the rooms' own tests on every run.
package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"golang.org/x/sys/unix"

	"github.com/sealc2/sealc2/engine/c1"
	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/circuit/porep"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/synthetic"
	"github.com/sealc2/sealc2/tests/support"
)

const vectors = "../vectors/"

func TestMain(m *testing.M) {
	if os.Getenv("SEALC2_LONG") != "1" {
		fmt.Println("conformance takes minutes: run make conformance (SEALC2_LONG=1)")
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// watch counts wall time, and the CPU time of all threads, which other work on the machine does not stretch.
type watch struct {
	begin time.Time
	cpu   time.Duration
}

func cpuTime() time.Duration {
	var use unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &use); err != nil {
		panic(err) // only a bad argument fails
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

func start() watch { return watch{time.Now(), cpuTime()} }

func (w watch) String() string {
	return fmt.Sprintf("%.2f s (%.2f CPU-s)", time.Since(w.begin).Seconds(), (cpuTime() - w.cpu).Seconds())
}

// Goal: every circuit has the reference's variables, constraints and order, up to 64 GiB.
func TestCircuits(t *testing.T) {
	files, err := filepath.Glob(vectors + "shapes/*.json")
	if err != nil || len(files) < 7 {
		t.Fatalf("want the digests of at least 7 shapes, got %v %v", files, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) {
			var want circuit.ProgramDigest
			data, err := os.ReadFile(file)
			if err == nil {
				err = json.Unmarshal(data, &want)
			}
			if err != nil {
				t.Fatal(err)
			}
			shape := support.Shape(t, name)
			begin := start()
			p := porep.Program(shape)
			built := begin.String()
			begin = start()
			got, err := p.Digest(context.Background(), runtime.GOMAXPROCS(0))
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(*got, want) {
				t.Fatalf("the digest differs: total %s, want %s", got.Total, want.Total)
			}
			t.Logf("%d constraints equal; program built in %s, digested in %s", got.Constraints, built, begin)
		})
	}
}

// Goal: a partition of the production sizes, made by nobody's drives, passes every row on a small machine.
// Method: a synthetic sector written as C1 JSON, parsed again, expanded, evaluated as a stream of rows, and its
// public inputs compared with those of the statement.
func TestSyntheticPartitions(t *testing.T) {
	for _, name := range []string{"32GiB", "64GiB"} {
		t.Run(name, func(t *testing.T) {
			shape, err := porep.ShapeByName(name)
			if err != nil {
				t.Fatal(err)
			}
			threads := runtime.GOMAXPROCS(0)
			begin := start()
			sector, err := synthetic.Make(context.Background(), synthetic.Options{Shape: shape, Version: porep.V1_1, Seed: 1, Threads: threads})
			if err != nil {
				t.Fatal(err)
			}
			document := sector.Output.AppendJSON(nil)
			t.Logf("C1 of %d bytes made in %s", len(document), begin)
			begin = start()
			out, err := c1.Parse(document, c1.Options{IDs: &sector.IDs})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("parsed in %s", begin)
			const partition = 4
			begin = start()
			p := porep.Program(shape)
			t.Logf("program of %d constraints built in %s", p.ConstraintCount(), begin)
			begin = start()
			in, err := porep.CircuitInputs(&out.Statement, out.Partitions[partition])
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("inputs laid out in %s", begin)
			w := &circuit.Witness{Inputs: make([]fr.Element, p.InputCount()), Bits: circuit.NewBits(p.AuxCount()), Nums: make([]fr.Element, p.NumCount())}
			begin = start()
			if err := p.Expand(context.Background(), in, w, 1); err != nil {
				t.Fatal(err)
			}
			t.Logf("expanded on one core in %s: %d aux, %d of them field elements", begin, p.AuxCount(), p.NumCount())
			begin = start()
			if err := p.Expand(context.Background(), in, w, threads); err != nil {
				t.Fatal(err)
			}
			if err := p.Check(context.Background(), w, threads); err != nil {
				t.Fatal(err)
			}
			t.Logf("expanded and every row evaluated and checked on %d cores in %s; peak memory %s", threads, begin, host.FormatBytes(host.PeakRSS()))
			public, err := out.Statement.PublicInputs(partition)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(public, w.Inputs[1:]) {
				t.Error("the circuit's public inputs are not the statement's")
			}
		})
	}
}
