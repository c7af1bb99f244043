// Command tinywork does pieces of the engine's work on circuits so tiny that it can be done hundreds of times.
//
//	tinywork passed|passed2|hit|hit2|first WORK ROOT SCRATCH CIRCUIT [POINT ...]
//	tinywork flat WORK ROOT SCRATCH CIRCUIT ROUNDS
//
// In the first form it is built with points of fault (instrument_test.go) and driven as the C host faults.c is. In
// the second it does the work and compares what the process holds after a half, one and a half, and two and a half
// times ROUNDS.
package main

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine"
	"github.com/sealc2/sealc2/engine/c1"
	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/circuit/porep"
	"github.com/sealc2/sealc2/engine/params"
	"github.com/sealc2/sealc2/engine/status"
	"github.com/sealc2/sealc2/engine/synthetic"
)

const threads = 3

// bench is what the works share.
type bench struct {
	vectors, scratch string
	circuit          string // of tests/vectors/tiny
	engine           *engine.Engine
	tiny             tiny
	c1               []byte
	sector           *c1.Output
}

// tiny is a small circuit of the reference with its parameters and proof.
type tiny struct {
	program *circuit.Program
	request engine.ProgramRequest
	proof   []byte
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		os.Exit(1)
	}
	fmt.Println("ok")
}

func run(args []string) error {
	mode, name := args[0], args[1]
	b := &bench{vectors: filepath.Join(args[2], "tests/vectors"), scratch: args[3]}
	if err := b.prepare(args); err != nil {
		return err
	}
	work, ok := map[string]func() error{
		"prove": b.prove, "setup": b.setup, "check": b.check, "parse": b.parse, "witness": b.witness, "digest": b.digest, "synthetic": b.synthetic,
	}[name]
	if !ok {
		return fmt.Errorf("no work %s", name)
	}
	// What the work comes to, under a watch: whoever waits for ever ends the process.
	do := func() (err error) {
		defer status.Recover("tinywork", &err) // as the exports and the command line
		watch := time.AfterFunc(20*time.Second, func() {
			fmt.Fprintln(os.Stderr, "hangs")
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // Go ignores gentler ones
		})
		defer watch.Stop()
		return work()
	}
	if mode == "flat" {
		rounds, err := strconv.Atoi(args[5])
		if err != nil {
			return err
		}
		return flat(do, rounds)
	}
	shared, err := mapBoard(os.Getenv("SEALC2_TEST_FAULTS"))
	if err != nil {
		return err
	}
	if mode == "first" {
		point, _ := strconv.Atoi(args[5])
		fmt.Println("arm", point)
		shared[1] = 1
		atomic.StoreUint32(&shared[0], uint32(point))
		first := do()
		atomic.StoreUint32(&shared[0], 0)
		fmt.Println("usual", 0)
		report(shared, first)
		return do()
	}
	clear(shared[16:])
	if err := do(); err != nil {
		return err
	}
	fmt.Println("usual", 0)
	switch mode {
	case "passed":
		return nil
	case "passed2":
		clear(shared[16:])
		return do()
	}
	goroutines, files := runtime.NumGoroutine(), openFiles()
	turns := 1
	if mode == "hit2" {
		turns = 2
	}
	points := args[5:]
	for i, arg := range points {
		point, _ := strconv.Atoi(arg)
		for turn := range turns {
			fmt.Println("arm", point)
			shared[1], shared[2] = uint32(1-turn), 0
			atomic.StoreUint32(&shared[0], uint32(point))
			hit := do()
			atomic.StoreUint32(&shared[0], 0)
			report(shared, hit)
			fired := shared[2] > 0
			if turns == 2 || i%8 == 0 || i == len(points)-1 {
				if err := do(); err != nil {
					return fmt.Errorf("point %d: the next call: %w", point, err)
				}
			}
			if !fired {
				break
			}
		}
	}
	runtime.GC() // closes the files of those whom a panic kept from doing so
	time.Sleep(100 * time.Millisecond)
	if n := runtime.NumGoroutine(); n > goroutines {
		return fmt.Errorf("goroutines grew from %d to %d", goroutines, n)
	}
	if n := openFiles(); n > files {
		return fmt.Errorf("open files grew from %d to %d", files, n)
	}
	return nil
}

func report(shared []uint32, err error) {
	text := ""
	if err != nil {
		text = strings.ReplaceAll(err.Error(), "\n", " ")
	}
	fmt.Println("fired", shared[2], int(status.KindOf(err)), text)
}

func mapBoard(path string) ([]uint32, error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	data, err := syscall.Mmap(int(file.Fd()), 0, int(info.Size()), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*uint32)(unsafe.Pointer(&data[0])), len(data)/4), nil
}

func openFiles() int { return entriesOf("/proc/self/fd") }

func entriesOf(dir string) int {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return -1
	}
	return len(entries)
}

// held is what a process holds.
type held struct{ residentKiB, threads, goroutines, files int }

func holds() (h held, err error) {
	runtime.GC()
	debug.FreeOSMemory()
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return h, err
	}
	_, after, _ := strings.Cut(string(data), "VmRSS:")
	if _, err := fmt.Sscan(after, &h.residentKiB); err != nil {
		return h, err
	}
	h.threads, h.goroutines, h.files = entriesOf("/proc/self/task"), runtime.NumGoroutine(), openFiles()
	return h, nil
}

func flat(do func() error, rounds int) error {
	var at []held
	for _, n := range []int{rounds / 2, rounds, rounds} {
		for range n {
			if err := do(); err != nil {
				return err
			}
		}
		h, err := holds()
		if err != nil {
			return err
		}
		fmt.Printf("%+v\n", h)
		at = append(at, h)
	}
	first, last := at[1], at[2]
	if last.residentKiB > first.residentKiB+4096 || last.threads > first.threads+1 || last.goroutines > first.goroutines || last.files > first.files {
		return fmt.Errorf("grew from %+v to %+v", first, last)
	}
	return nil
}

// ---- the works ----

func scalarsOf(texts ...string) ([]fr.Element, error) {
	out := make([]fr.Element, len(texts))
	for i, text := range texts {
		raw, err := hex.DecodeString(text)
		if err != nil || len(raw) != fr.Bytes {
			return nil, fmt.Errorf("scalar %q: %v", text, err)
		}
		if out[i], err = fr.LittleEndian.Element((*[fr.Bytes]byte)(raw)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func readJSON(path string, into any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

func (b *bench) prepare(args []string) error {
	var err error
	if b.engine, err = engine.Open(engine.Config{Threads: threads}); err != nil {
		return err
	}
	if b.c1, err = os.ReadFile(filepath.Join(b.vectors, "c1/porep-2k-a/c1.json")); err != nil {
		return err
	}
	if b.sector, err = c1.Parse(b.c1, c1.Options{}); err != nil {
		return err
	}
	b.circuit = args[4]
	return b.tiny.load(filepath.Join(b.vectors, "tiny", b.circuit), b.circuit)
}

func (c *tiny) load(dir, name string) error {
	var r1cs struct {
		Inputs, Aux, Constraints int
		Canonical                []map[string][][2]any
	}
	var witness struct {
		Inputs []string `json:"input_assignment"`
		Aux    []string `json:"aux_assignment"`
	}
	var proof struct {
		Public []string `json:"public_inputs"`
		R, S   string
		Proof  string
	}
	for name, into := range map[string]any{
		"r1cs": &r1cs, "witness": &witness, "proof": &proof,
	} {
		if err := readJSON(filepath.Join(dir, name+".json"), into); err != nil {
			return err
		}
	}
	rows := make([]circuit.Constraint, r1cs.Constraints)
	for i := range rows {
		for m, into := range map[string]*[]circuit.Term{"a": &rows[i].A, "b": &rows[i].B, "c": &rows[i].C} {
			for _, x := range r1cs.Canonical[i][m] {
				coeff, err := scalarsOf(x[1].(string))
				if err != nil {
					return err
				}
				*into = append(*into, circuit.Term{Key: circuit.Key(x[0].(float64)), Coeff: coeff[0]})
			}
		}
	}
	var err error
	if c.program, err = circuit.FromR1CS(name, r1cs.Inputs, make([]bool, r1cs.Aux), rows); err != nil {
		return err
	}
	srs, err := params.Open(filepath.Join(dir, "params.bin"))
	if err != nil {
		return err
	}
	fields, err := scalarsOf(slices.Concat(witness.Inputs[1:], witness.Aux)...)
	if err != nil {
		return err
	}
	public, err := scalarsOf(proof.Public...)
	if err != nil {
		return err
	}
	rs, err := scalarsOf(proof.R, proof.S)
	if err != nil {
		return err
	}
	c.proof, err = hex.DecodeString(proof.Proof)
	c.request = engine.ProgramRequest{
		Program: c.program, SRS: srs, Inputs: []*circuit.Inputs{{Fields: fields}}, Public: [][]fr.Element{public}, R: rs[:1], S: rs[1:],
	}
	return err
}

// prove proves two partitions of the tiny circuit.
func (b *bench) prove() error {
	r := b.tiny.request
	r.Inputs, r.Public = append(r.Inputs[:1:1], r.Inputs[0]), append(r.Public[:1:1], r.Public[0])
	r.R, r.S = append(r.R[:1:1], r.R[0]), append(r.S[:1:1], r.S[0])
	result, err := b.engine.ProveProgram(context.Background(), &r)
	if err != nil {
		return err
	}
	if string(result.Proof) != string(b.tiny.proof)+string(b.tiny.proof) {
		return status.New(status.SelfCheck, "tinywork", "proof", "the reference's", "another")
	}
	return nil
}

// setup makes the tiny circuit's parameters; where it fails it must leave no file behind.
func (b *bench) setup() error {
	dir := filepath.Join(b.scratch, "setup")
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	_, err := params.Setup(context.Background(), b.tiny.program, params.SetupScalars("faults", b.circuit),
		params.SetupOptions{Dir: dir, BaseName: "tiny", Shape: b.circuit, Threads: threads, HostBytes: 64 << 20, Progress: func(float64, string) {}})
	left, other := os.ReadDir(dir)
	if other != nil {
		return other
	}
	for _, entry := range left {
		if err != nil && !strings.HasSuffix(entry.Name(), params.VKExt) && !strings.HasSuffix(entry.Name(), params.ParamsExt) {
			return status.Wrap(status.Caller, "tinywork", entry.Name()+" was left", err)
		}
	}
	return err
}

// check checks and digests the reference's parameters of the tiny circuit.
func (b *bench) check() error {
	f, err := params.Open(filepath.Join(b.vectors, "tiny", b.circuit, "params.bin"))
	if err != nil {
		return err
	}
	defer f.Close()
	for _, exact := range []bool{false, true} {
		if _, err := params.Check(context.Background(), f, params.CheckOptions{Threads: threads, Exact: exact, Progress: func(float64) {}}); err != nil {
			return err
		}
	}
	_, err = f.Digest(context.Background(), func(float64) {})
	return err
}

func (b *bench) parse() error {
	_, err := c1.Parse(b.c1, c1.Options{IDs: &c1.IDs{SectorID: 1, ProverID: [32]byte{0xe8, 0x07}}})
	return err
}

// witness expands the 2 KiB sector on several goroutines and checks every row.
func (b *bench) witness() error {
	st := &b.sector.Statement
	in, err := porep.CircuitInputs(st, b.sector.Partitions[0])
	if err != nil {
		return err
	}
	p := porep.Program(st.Shape)
	w := &circuit.Witness{
		Inputs: make([]fr.Element, p.InputCount()), Bits: circuit.NewBits(p.AuxCount()), Nums: make([]fr.Element, p.NumCount()),
	}
	if err := p.Expand(context.Background(), in, w, threads); err != nil {
		return err
	}
	if err := p.Check(context.Background(), w, threads); err != nil {
		return err
	}
	public, err := st.PublicInputs(0)
	if err != nil {
		return err
	}
	if !slices.Equal(public, w.Inputs[1:]) {
		return status.New(status.SelfCheck, "tinywork", "public inputs", "those of the statement", "others")
	}
	return nil
}

func (b *bench) digest() error {
	_, err := b.tiny.program.Digest(context.Background(), threads)
	return err
}

func (b *bench) synthetic() error {
	shape, err := porep.ShapeByName("2KiB")
	if err != nil {
		return err
	}
	sector, err := synthetic.Make(context.Background(), synthetic.Options{Shape: shape, Version: porep.V1_1, Seed: 1, Threads: threads})
	if err != nil {
		return err
	}
	if !sector.Complete() || binary.LittleEndian.Uint64(sector.CommC[:]) == 0 {
		return status.New(status.SelfCheck, "tinywork", "sector", "a whole one", "an empty one")
	}
	return nil
}
