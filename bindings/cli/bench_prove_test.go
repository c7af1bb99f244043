package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine"
	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/circuit/porep"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/sched"
	"github.com/sealc2/sealc2/engine/status"
	"github.com/sealc2/sealc2/engine/synthetic"
	"github.com/sealc2/sealc2/tests/support"
)

// fakeBench stands for an engine: each job has two partitions, whose stages go into its timeline.
type fakeBench struct {
	mu       sync.Mutex
	requests []*engine.ProveRequest
	programs []*engine.ProgramRequest
	made     []string // sizes of parameters
	failAt   int      // number of the job that fails, from 1; 0: none
	entries  []sched.Entry
	closed   int
}

func (f *fakeBench) Prove(_ context.Context, request *engine.ProveRequest) (*engine.ProveResult, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, request)
	job := len(f.requests)
	if job == f.failAt {
		return nil, status.New(status.Unsatisfied, "engine.Check", "partition 1", "a row", "another")
	}
	f.entries = append(f.entries, twoPartitions(uint64(job), "cuda:3 <Card> & Co")...)
	return &engine.ProveResult{Proof: make([]byte, 2*groth16.ProofBytes), Device: f.Device()}, nil
}

func (f *fakeBench) ProveProgram(_ context.Context, request *engine.ProgramRequest) (*engine.ProveResult, error) {
	f.programs = append(f.programs, request)
	return &engine.ProveResult{Proof: make([]byte, groth16.ProofBytes*len(request.Inputs)), Device: f.Device()}, nil
}

func (f *fakeBench) ProveAssignments(context.Context, *engine.AssignmentRequest) (*engine.ProveResult, error) {
	return nil, status.New(status.Internal, "fake", "", "", "not used")
}

func (f *fakeBench) OpenSRS(context.Context, engine.ParamSource) (*engine.SRS, error) {
	return nil, status.New(status.Internal, "fake", "", "", "not used")
}

// MakeSRS hands out none: its jobs do not use it.
func (f *fakeBench) MakeSRS(_ context.Context, shapeName, _ string) (groth16.SRS, error) {
	f.made = append(f.made, shapeName)
	return nil, nil
}

func (f *fakeBench) VerifyC1(context.Context, *engine.VerifyC1Request) (bool, error) {
	return false, status.New(status.Internal, "fake", "", "", "not used")
}

func (f *fakeBench) Timeline() []sched.Entry {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]sched.Entry(nil), f.entries...)
}

func (f *fakeBench) Device() string { return "cpu" }

func (f *fakeBench) Close() error { f.closed++; return nil }

// twoPartitions are the stages of a job of two, with sums of both at once: 1000 ms, of which the device computes 800.
func twoPartitions(job uint64, device string) (all []sched.Entry) {
	at := time.Duration(job) * time.Second
	add := func(partition int, device string, lane host.Lane, stage string, from, to int) {
		all = append(all, sched.Entry{
			Job: job, Name: "seal", Partition: partition, Device: device, Lane: lane, Stage: stage,
			Start: at + time.Duration(from)*time.Millisecond, End: at + time.Duration(to)*time.Millisecond,
		})
	}
	add(sched.WholeJob, "", host.LaneHost, "parse", 0, 50)
	for k := range 2 {
		add(k, device, host.LaneHost, "expand", 50+50*k, 150+50*k) // of both at the same time
		add(k, device, host.LaneCopy, "upload", 150+50*k, 180+50*k)
		add(k, device, host.LaneDevice, "msm_h", 180+300*k, 480+300*k)
	}
	add(sched.WholeJob, device, host.LaneDevice, "msm_l", 780, 980)
	for k := range 2 {
		add(k, device, host.LaneHost, "verify", 980, 1000)
	}
	return all
}

// Goal: jobs are proved as often as asked for, and the files tell of them.
func TestBenchProve(t *testing.T) {
	dir := t.TempDir()
	csvPath, chart, lines := filepath.Join(dir, "jobs.csv"), filepath.Join(dir, "chart.svg"), filepath.Join(dir, "lines")
	f := &fakeBench{}
	w := world{stdin: []byte(`{"C1": 1}`), open: func(engine.Config) (prover, error) { return f, nil }}
	args := []string{"bench", "prove", "--c1", "-", "--params", "somewhere", "--device", "cpu", "--threads", "1", "--warmup", "2", "--rounds", "4", "--jobs", "3",
		"--csv", csvPath, "--chart", chart, "--timeline", lines}
	code, stdout, stderr := w.run(t.Context(), append(args, "--json")...)
	if code != exitDone {
		t.Fatal(code, stdout, stderr)
	}
	if len(f.requests) != 6 || string(f.requests[5].C1) != `{"C1": 1}` || f.requests[0].Params != (engine.ParamSource{Dir: "somewhere", Origin: "--params", AllowDev: true}) || f.closed != 1 {
		t.Errorf("%d jobs, closed %d times, the first %+v", len(f.requests), f.closed, f.requests[0])
	}
	v := object(t, stdout)
	for key, want := range map[string]any{
		"partitions": 2.0, "warmup": 2.0, "rounds": 4.0, "jobs": 3.0, "proofs": 12.0, "threads": 1.0, "device": "cpu", "source_s": 0.0, "driver_calls": nil,
	} {
		if v[key] != want {
			t.Errorf("%s: want %v, got %v", key, want, v[key])
		}
	}
	if v["cold_s"].(float64) <= 0 || v["wall_s"].(map[string]any)["median"].(float64) <= 0 {
		t.Errorf("got %s", stdout)
	}
	if busy := v["device_busy_per_partition_s"].(map[string]any); busy["min"] != 0.4 || busy["max"] != 0.4 {
		t.Errorf("busy %v, want 0.4 s a partition", busy)
	}
	memory := v["host"].(map[string]any)
	if memory["peak_rss_bytes"].(float64) <= 0 || memory["caller_bytes"] != 9.0 || len(v["gpus"].([]any)) != 0 {
		t.Errorf("memory %v", memory)
	}
	records, err := csv.NewReader(bytes.NewReader(readFile(t, csvPath))).ReadAll()
	if err != nil || len(records) != 7 || records[1][1] != "true" || records[3][1] != "false" || records[6][4] != "2" {
		t.Errorf("%v: %v", err, records)
	}
	if n := strings.Count(string(readFile(t, lines)), ",GPU_END,"); n != 6*3 {
		t.Errorf("%d ends of work on a GPU, want two partitions' and one of both, six times", n)
	}
	if bars := checkChart(t, readFile(t, chart)); bars != 10 {
		t.Errorf("%d bars, want those of one job", bars)
	}
	if !strings.Contains(stderr, "job 6 of 6") || !strings.Contains(stderr, "warm-up 2 of 6") {
		t.Errorf("progress: %s", stderr)
	}

	f = &fakeBench{}
	code, stdout, stderr = w.run(t.Context(), args...)
	if code != exitDone || !strings.Contains(stdout, "12, all verified") || !strings.Contains(stdout, "msm_l") {
		t.Errorf("%d: %s%s", code, stdout, stderr)
	}
}

// Goal: parameters that are made in memory serve all jobs.
func TestBenchProve_MakeParams(t *testing.T) {
	f := &fakeBench{}
	w := world{open: func(engine.Config) (prover, error) { return f, nil }}
	code, stdout, stderr := w.run(t.Context(), "bench", "prove", "--shape", "2KiB", "--make-params", "--rounds", "1", "--device", "cpu", "--json")
	if code != exitDone {
		t.Fatal(code, stdout, stderr)
	}
	if len(f.made) != 1 || f.made[0] != "2KiB" || len(f.programs) != 2 || len(f.programs[1].Inputs) != 1 || len(f.programs[1].Public) != 1 {
		t.Errorf("made %v, %d jobs", f.made, len(f.programs))
	}
	if v := object(t, stdout); v["proofs"] != 2.0 || v["partitions"] != 1.0 || v["params_s"].(float64) <= 0 || v["device_busy_per_partition_s"] != nil {
		t.Errorf("got %s", stdout)
	}
}

// Goal: a job that fails ends the bench with its error, and no file is left.
func TestBenchProve_Fails(t *testing.T) {
	for _, failAt := range []int{1, 3} {
		dir := t.TempDir()
		f := &fakeBench{failAt: failAt}
		w := world{stdin: []byte("{}"), open: func(engine.Config) (prover, error) { return f, nil }}
		code, stdout, _ := w.run(t.Context(), "bench", "prove", "--c1", "-", "--device", "cpu", "--chart", filepath.Join(dir, "x.svg"), "--json")
		names, err := os.ReadDir(dir)
		if v := object(t, stdout); code != exitRefused || v["kind"] != "unsatisfied" || !strings.Contains(v["message"].(string), "job ") || f.closed != 1 || err != nil || len(names) != 0 {
			t.Errorf("job %d: %d, %s, closed %d times, left %v", failAt, code, stdout, f.closed, names)
		}
	}
}

func TestBenchProve_Refuses(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"", exitUsage, "one of --c1 and --shape, got none"},
		{"--c1 x --shape 2KiB", exitUsage, "got both"},
		{"--shape 2KiB --statement x", exitUsage, "--statement"},
		{"--shape 3KiB", exitUsage, "--shape: want one of 2KiB"},
		{"--shape 2KiB --make-params --params x", exitUsage, "no --params"},
		{"--shape 2KiB --make-params --explicit", exitUsage, "--make-params"},
		{"--shape 2KiB --make-params --device cpu", exitRefused, "a GPU, in whose memory"},
		{"--shape 2KiB --rounds 0", exitUsage, "--rounds"},
		{"--shape 2KiB --warmup -1", exitUsage, "--warmup"},
		{"--shape 2KiB --jobs 65", exitUsage, "1 to 64"},
		{"--shape 2KiB --partitions 2", exitUsage, "1 to 1"},
		{"--shape 2KiB --partitions -1", exitUsage, "--partitions"},
		{"--shape 2KiB --csv /dev/null --chart /dev/null", exitUsage, "different files"},
		{"--shape 2KiB --csv /nowhere/x", exitRefused, "--csv"},
		{"--shape 2KiB --chart /nowhere/x", exitRefused, "/nowhere"},
		{"--c1 /nowhere/x --partitions 1", exitRefused, "/nowhere"},
		{"--shape 2KiB --explicit --memory 20MiB", exitRefused, "host memory"},
		{"--shape 2KiB --explicit --device cpu --params /nowhere", exitRefused, "/nowhere"},
		{"--shape 32GiB --partitions 1 --device cpu --params /nowhere", exitRefused, "/nowhere"},
	} {
		code, _, stderr := (world{}).run(t.Context(), append([]string{"bench", "prove"}, strings.Fields(c.args)...)...)
		if code != c.code || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit code %d, %q, want %d and %q", c.args, code, stderr, c.code, c.want)
		}
	}
}

// Goal: figures of a real engine's jobs add up.
func TestBenchProve_Engine(t *testing.T) {
	e, err := engine.Open(engine.Config{Device: "cpu"})
	if err != nil {
		t.Fatal(err)
	}
	tiny := support.LoadTiny(t, vectors+"tiny/tiny-1024").Assignment
	o := &proveOptions{params: vectors + "tiny/tiny-1024/params.bin", warmup: 1, rounds: 3, jobs: 2}
	a := &app{con: &console{w: io.Discard}, getenv: func(string) string { return "" }}
	srs, err := e.OpenSRS(t.Context(), a.paramSource(o.params))
	if err != nil {
		t.Fatal(err)
	}
	b := &proveBench{
		app: a, options: o, source: &benchSource{name: "tiny"}, engine: e, release: srs.Close, began: time.Now(), known: map[sched.Entry]struct{}{},
		job: func(ctx context.Context) (*engine.ProveResult, error) {
			return e.ProveAssignments(ctx, &engine.AssignmentRequest{SRS: srs, AllowDev: true, Assignments: []*groth16.Assignment{tiny, tiny}})
		},
	}
	defer b.close()
	if err := b.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	v := b.figures(0)
	if v.Proofs != 8 || v.Partitions != 2 || v.ColdSeconds < b.rounds[0].WallSeconds || v.SteadySeconds < v.Wall.Max || v.BusyShare <= 0 || v.BusyShare > 1 {
		t.Errorf("got %+v", v)
	}
	counts, sum := map[string]int{}, 0.0
	for _, s := range v.Stages {
		counts[s.Stage] += s.Count
		if s.Lane == "device" {
			sum += s.Each.Median
		}
	}
	if counts["msm_h"] != 6 || counts["verify"] != 6 || counts["evaluate"] != 6 {
		t.Errorf("stages %v, want 6 of each partition's", counts)
	}
	if v.Busy.Max < sum/4 {
		t.Errorf("a partition's device is busy for %v s, its stages take %v", v.Busy.Max, sum)
	}
	// The end of a context ends the bench.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.run(ctx); status.KindOf(err) != status.Cancelled {
		t.Errorf("cancelled: %v", err)
	}
}

// Goal: the vectors of --explicit are the circuit's: each row is what its terms make of the variables.
func TestMakeAssignment(t *testing.T) {
	shape, err := porep.ShapeByName("2KiB")
	if err != nil {
		t.Fatal(err)
	}
	sector, err := synthetic.Make(t.Context(), synthetic.Options{Shape: shape, Version: porep.V1_1, Seed: 3, Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	limits := host.Limits{Threads: 2, HostBytes: 1 << 30}
	st := &sector.Output.Statement
	a, arena, err := makeAssignment(t.Context(), limits, st, sector.Output.Partitions[0])
	if err != nil {
		t.Fatal(err)
	}
	defer arena.Close()
	if err := a.CheckRows(t.Context(), 2); err != nil {
		t.Error(err)
	}
	public, err := st.PublicInputs(0)
	if err != nil || len(public)+1 != len(a.Inputs) || !public[0].Equal(&a.Inputs[1]) {
		t.Errorf("%d inputs of the statement, %d in the circuit: %v", len(public), len(a.Inputs), err)
	}
	program := porep.Program(shape)
	value := func(terms []circuit.Term) (sum fr.Element) {
		for _, term := range terms {
			x := &a.Inputs
			if term.Key.IsAux() {
				x = &a.Aux
			}
			var t fr.Element
			t.Mul(&term.Coeff, &(*x)[term.Key.Index()])
			sum.Add(&sum, &t)
		}
		return sum
	}
	bad := 0
	for from := 0; from+100 < program.ConstraintCount(); from += program.ConstraintCount() / 50 {
		program.Rows(from, from+100, func(row int, x, y, z []circuit.Term) {
			va, vb, vc := value(x), value(y), value(z)
			if !va.Equal(&a.A[row]) || !vb.Equal(&a.B[row]) || !vc.Equal(&a.C[row]) {
				bad++
			}
		})
	}
	if bad > 0 {
		t.Errorf("%d rows are not what their terms make", bad)
	}
}

// Goal: --partitions cuts a C1 output behind them, and what is left is read as a whole one is.
func TestBenchSource_Cut(t *testing.T) {
	shape, err := porep.ShapeByName("32GiB")
	if err != nil {
		t.Fatal(err)
	}
	limits := host.Limits{Threads: 2, HostBytes: 1 << 30}
	a := &app{}
	made, err := a.makeBenchSource(t.Context(), &proveOptions{shape: shape, seed: 1, partitions: 2}, limits)
	if err != nil {
		t.Fatal(err)
	}
	path := writeFile(t, filepath.Join(t.TempDir(), "c1.json"), made.document)
	read, err := a.makeBenchSource(t.Context(), &proveOptions{c1: path, partitions: 1}, limits)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.makeBenchSource(t.Context(), &proveOptions{c1: path, partitions: 3}, limits); err == nil || !strings.Contains(err.Error(), "1 to 2") {
		t.Errorf("three of two partitions: %v", err)
	}
	var two, one engine.ProgramRequest
	if err := made.layOut(&two); err != nil {
		t.Fatal(err)
	}
	if err := read.layOut(&one); err != nil {
		t.Fatal(err)
	}
	if !made.cut || !read.cut || read.bytes() >= made.bytes() || len(two.Inputs) != 2 || len(two.Public) != 2 || len(one.Inputs) != 1 {
		t.Errorf("cut %t and %t, %d and %d partitions", made.cut, read.cut, len(two.Inputs), len(one.Inputs))
	}
	if x, y := two.Public[0], one.Public[0]; len(x) != len(y) || !x[0].Equal(&y[0]) || !two.Inputs[0].Fields[0].Equal(&one.Inputs[0].Fields[0]) {
		t.Error("the first partition differs")
	}
}

func TestSpread(t *testing.T) {
	if spreadOf(nil) != nil {
		t.Error("a spread of nothing")
	}
	for _, c := range []struct {
		values []float64
		want   spread
	}{
		{[]float64{3}, spread{3, 3, 3}},
		{[]float64{5, 1, 2}, spread{1, 2, 5}},
		{[]float64{4, 1, 3, 2}, spread{1, 2.5, 4}},
	} {
		if got := spreadOf(c.values); *got != c.want {
			t.Errorf("%v: %+v", c.values, *got)
		}
	}
}

func TestSlope(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{
		{nil, 0}, {[]float64{7}, 0}, {[]float64{2, 5}, 3}, {[]float64{4, 4, 4}, 0}, {[]float64{0, 1, 2, 3}, 1}, {[]float64{0, 0, 3}, 1.5},
	} {
		if got := slope(c.values); got != c.want {
			t.Errorf("%v: %v, want %v", c.values, got, c.want)
		}
	}
}

func TestBusyTime(t *testing.T) {
	entry := func(from, to int) sched.Entry {
		return sched.Entry{Start: time.Duration(from), End: time.Duration(to)}
	}
	for _, c := range []struct {
		entries []sched.Entry
		want    time.Duration
	}{
		{nil, 0},
		{[]sched.Entry{entry(20, 30), entry(0, 10)}, 20},
		{[]sched.Entry{entry(0, 10), entry(2, 5), entry(8, 15), entry(15, 20)}, 20},
	} {
		if got := busyTime(c.entries); got != c.want {
			t.Errorf("%v: %v", c.entries, got)
		}
	}
}

func TestProves(t *testing.T) {
	const devices = "cuda:1 NVIDIA H200, cuda:12 NVIDIA H200"
	for gpu, want := range map[string]bool{"cuda:1": true, "cuda:12": true, "cuda:0": false, "cuda:2": false, "cuda": false} {
		if proves(gpu, devices) != want {
			t.Errorf("%s: %t", gpu, !want)
		}
	}
}

// Goal: the process began before now, and not before the machine did.
func TestProcessStart(t *testing.T) {
	if age := time.Since(processStart()); age < 0 || age > time.Hour {
		t.Errorf("%v ago", age)
	}
	if ownThreads() < 1 || ownFiles() < 3 {
		t.Errorf("%d threads, %d files", ownThreads(), ownFiles())
	}
}
