package main

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/sealc2/sealc2/engine"
	"github.com/sealc2/sealc2/engine/circuit/porep"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/sched"
	"github.com/sealc2/sealc2/engine/status"
)

// benchProver is the engine as `bench prove` uses it.
type benchProver interface {
	prover
	ProveProgram(ctx context.Context, request *engine.ProgramRequest) (*engine.ProveResult, error)
	ProveAssignments(ctx context.Context, request *engine.AssignmentRequest) (*engine.ProveResult, error)
	OpenSRS(ctx context.Context, source engine.ParamSource) (*engine.SRS, error)
	MakeSRS(ctx context.Context, shapeName, text string) (groth16.SRS, error)
	Timeline() []sched.Entry
}

// maxJobs bounds --jobs: each is a goroutine that holds a parsed sector.
const maxJobs = 64

// proveOptions are the flags of `bench prove`.
type proveOptions struct {
	c1, statement string // files; or
	shape         *porep.Shape
	seed          uint64
	params        string
	makeParams    bool // in a GPU's memory, in place of a file
	partitions    int  // of a job; 0: all of the sector
	explicit      bool
	rounds        int // jobs that are measured
	warmup        int // jobs before them
	jobs          int // at once
	csv           string
	chart         string
	timeline      string
}

// proveBench is a run of `bench prove`.
type proveBench struct {
	app     *app
	options *proveOptions
	threads int
	source  *benchSource
	engine  benchProver
	job     benchJob
	release func()        // nil before there is a job
	began   time.Time     // the process, without what making source and parameters took
	making  time.Duration // of parameters
	gpus    *gpuWatch     // nil where there are none, or nobody tells

	mu      sync.Mutex // guards what the jobs at once write
	rounds  []benchRound
	entries []sched.Entry
	known   map[sched.Entry]struct{}
	cold    time.Duration
	calls   engine.DriverCalls // when the first measured job began
}

// benchProveCommand is `bench prove`.
func (a *app) benchProveCommand() *cobra.Command {
	shape := shapeChoice()
	o := &proveOptions{}
	c := &cobra.Command{
		Use:   "prove (--c1 FILE | --shape SHAPE) [--params DIR] [--rounds N] [--warmup W] [--jobs J] [--partitions K] [--explicit]",
		Short: "How long whole proofs take, and what they take",
		Long: "Proves a sector again and again in one process, verifies every proof, and reports how long jobs and their stages\n" +
			"took, how long the devices were busy, and what host and devices had to give. The sector is a C1 output, or one that\n" +
			"nobody sealed, made in memory from --shape and --seed.\n\n" +
			"The first job shows what a cold start costs: from the start of the process to its last verified proof, loading\n" +
			"parameters included, and without the time that making the sector took. All but the --warmup jobs are measured.\n\n" +
			"--partitions K proves the first K partitions: the C1 output is cut behind them before anything is measured, and each\n" +
			"job reads and proves what is left. --explicit proves from whole vectors of field elements, as callers that synthesise\n" +
			"on their own hand them over: those of the first partition are made once, 12.5 GB and aux 4.2 GB for 32GiB, in plain\n" +
			"memory, and each job has them once for each partition.\n\n" +
			"--params accepts development keys with a warning, as `prove` does. --make-params needs no files: it makes development\n" +
			"parameters in the GPU's memory first, which the cold start does not count.",
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			var err error
			if shape.value != "" {
				if o.shape, err = porep.ShapeByName(shape.value); err != nil {
					return err
				}
			}
			if err := o.check(c.CommandPath()); err != nil {
				return err
			}
			return a.benchProve(c.Context(), o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.c1, "c1", "", "C1 output: its JSON or lotus-bench's wrapping of it; - is standard input")
	f.StringVar(&o.statement, "statement", "", "statement file of --c1, for sizes without a registered proof type")
	f.Var(&shape, "shape", "size of a sector to make, in place of --c1")
	f.Uint64Var(&o.seed, "seed", 1, "number that the sector of --shape is made of")
	f.StringVar(&o.params, "params", "", paramsUsage)
	f.BoolVar(&o.makeParams, "make-params", false, "make development parameters in the GPU's memory, in place of --params")
	f.IntVar(&o.rounds, "rounds", 3, "jobs that are measured")
	f.IntVar(&o.warmup, "warmup", 1, "jobs before them, one after the other")
	f.IntVar(&o.jobs, "jobs", 1, "jobs at once")
	f.IntVar(&o.partitions, "partitions", 0, "partitions of a job, from the first on; 0: all")
	f.BoolVar(&o.explicit, "explicit", false, "prove from whole vectors, the first partition's as often as a job has partitions")
	f.StringVar(&o.csv, "csv", "", "file for a line a job: times, and what the process had after it")
	f.StringVar(&o.chart, "chart", "", "file for a chart of the last job's stages, as SVG")
	f.StringVar(&o.timeline, "timeline", "", "file for the stages of all jobs, as cuzk's TIMELINE lines")
	f.Var(&a.device, "device", "where to prove")
	a.policyFlags(c)
	return c
}

// check refuses options that make no sense, or contradict each other.
func (o *proveOptions) check(command string) error {
	switch {
	case (o.c1 == "") == (o.shape == nil):
		return usage(command, "one of --c1 and --shape", map[bool]string{true: "none", false: "both"}[o.c1 == ""])
	case o.statement != "" && o.c1 == "":
		return usage("--statement", "--c1 with it", "--shape")
	case o.makeParams && o.params != "":
		return usage("--make-params", "no --params", o.params)
	case o.makeParams && o.explicit:
		return usage("--make-params", "--params, which --explicit proves under", "--explicit")
	case o.rounds < 1:
		return usage("--rounds", "1 or more", strconv.Itoa(o.rounds))
	case o.warmup < 0:
		return usage("--warmup", "0 or more", strconv.Itoa(o.warmup))
	case o.jobs < 1 || o.jobs > maxJobs:
		return usage("--jobs", fmt.Sprintf("1 to %d", maxJobs), strconv.Itoa(o.jobs))
	case o.partitions < 0:
		return usage("--partitions", "1 or more, or 0 for all", strconv.Itoa(o.partitions))
	case o.shape != nil && o.partitions > o.shape.Partitions:
		return usage("--partitions", fmt.Sprintf("1 to %d, the partitions of %s, or 0 for all", o.shape.Partitions, o.shape.Name), strconv.Itoa(o.partitions))
	}
	return nil
}

// benchProve runs the bench and writes its results.
func (a *app) benchProve(ctx context.Context, o *proveOptions) (err error) {
	began := processStart()
	b := &proveBench{app: a, options: o, known: map[sched.Entry]struct{}{}}
	files, err := openOutputs([]flagged{{"--csv", o.csv}, {"--chart", o.chart}, {"--timeline", o.timeline}})
	if err != nil {
		return err
	}
	defer discardAll(files)

	limits, err := a.limits()
	if err != nil {
		return err
	}
	b.threads = limits.Threads
	making := time.Now()
	if b.source, err = a.makeBenchSource(ctx, o, limits); err != nil {
		return err
	}
	defer b.source.close()
	made := time.Duration(0)
	if b.source.made {
		// What making it left behind is neither the engine's nor held by the caller.
		debug.FreeOSMemory()
		resetPeakRSS()
		made = time.Since(making)
	}
	b.began = began.Add(made)

	if a.device.value != "cpu" {
		b.gpus = watchGPUs(a.con.log)
		defer b.gpus.close()
	}
	if err := b.open(ctx); err != nil {
		return err
	}
	defer b.close()
	if err := b.run(ctx); err != nil {
		return err
	}
	v := b.figures(made)
	a.con.finish()
	if err := b.close(); err != nil {
		return err
	}
	b.gpus.closed(v.GPUs)

	lines, err := timelineLines(b.entries)
	if err != nil {
		return err
	}
	for path, content := range map[string][]byte{
		o.csv: roundsCSV(b.rounds), o.chart: drawChart(fmt.Sprintf("%s on %s", v.Name, v.Device), lastJob(b.entries)), o.timeline: lines,
	} {
		if file := files[path]; file != nil {
			if err := file.commit(content); err != nil {
				return err
			}
		}
	}
	return a.result(v, v.text)
}

// flagged is a path with the flag that named it.
type flagged struct{ flag, path string }

// openOutputs opens the files that are asked for before the work starts, by their paths.
func openOutputs(paths []flagged) (map[string]*output, error) {
	files := map[string]*output{}
	for _, p := range paths {
		if p.path == "" {
			continue
		}
		if files[p.path] != nil {
			discardAll(files)
			return nil, usage("--csv, --chart, --timeline", "different files", strconv.Quote(p.path)+" twice")
		}
		file, err := createOutput(p.flag, p.path)
		if err != nil {
			discardAll(files)
			return nil, err
		}
		files[p.path] = file
	}
	return files, nil
}

func discardAll(files map[string]*output) {
	for _, f := range files {
		f.discard()
	}
}

// open opens the engine, and makes the function that proves a job.
func (b *proveBench) open(ctx context.Context) error {
	const op = "cli.BenchProve"
	e, err := b.app.engine()
	if err != nil {
		return err
	}
	whole, ok := e.(benchProver)
	status.Check(ok, op, "an engine that proves programs and assignments")
	b.engine = whole
	making := time.Now()
	if b.job, b.release, err = b.source.job(ctx, b.app, whole, b.options); err != nil {
		b.close()
		return err
	}
	if b.options.makeParams {
		b.making = time.Since(making)
		b.began = b.began.Add(b.making)
	}
	return nil
}

// close gives back what open took. The second time it does nothing.
func (b *proveBench) close() error {
	if b.engine == nil {
		return nil
	}
	if b.release != nil {
		b.release()
	}
	e := b.engine
	b.engine = nil
	return e.Close()
}

// run proves the jobs: those of the warm-up one by one, the others as many at once as is asked for. The first error ends it.
func (b *proveBench) run(ctx context.Context) error {
	for i := range b.options.warmup {
		if err := b.round(ctx, i); err != nil {
			return err
		}
	}
	b.calls, _ = b.driverCalls()
	b.gpus.measure()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next, total := b.options.warmup, b.options.warmup+b.options.rounds
	var wg sync.WaitGroup
	for range min(b.options.jobs, b.options.rounds) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			var err error
			defer func() {
				if err != nil {
					cancel(err)
				}
			}()
			defer status.Recover("cli.BenchProve", &err)
			for err == nil {
				b.mu.Lock()
				i := next
				next++
				b.mu.Unlock()
				if i >= total {
					return
				}
				err = b.round(ctx, i)
			}
		}()
	}
	wg.Wait()
	return context.Cause(ctx)
}

// round proves one job and notes what it took.
func (b *proveBench) round(ctx context.Context, index int) error {
	begin := time.Now()
	result, err := b.job(ctx)
	if err != nil {
		return status.Wrap(status.KindOf(err), "cli.BenchProve", fmt.Sprintf("job %d", index+1), err)
	}
	end := time.Now()
	r := benchRound{
		Round: index + 1, Warmup: index < b.options.warmup, StartSeconds: begin.Sub(b.began).Seconds(), WallSeconds: end.Sub(begin).Seconds(),
		Proofs: len(result.Proof) / groth16.ProofBytes, RSS: host.RSS(), PeakRSS: host.PeakRSS(), VRAM: b.gpus.used(b.engine.Device()),
	}
	r.Threads, r.Files = ownThreads(), ownFiles()
	latest := b.engine.Timeline()

	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.rounds) == 0 {
		b.cold = end.Sub(b.began)
	}
	b.rounds = append(b.rounds, r)
	// The engine keeps but the latest ones.
	for _, e := range latest {
		if _, seen := b.known[e]; !seen {
			b.known[e] = struct{}{}
			b.entries = append(b.entries, e)
		}
	}
	what := "job"
	if r.Warmup {
		what = "warm-up"
	}
	total := b.options.warmup + b.options.rounds
	b.app.con.progress(engine.Progress{
		Partition: -1, Stage: fmt.Sprintf("%s %d of %d", what, r.Round, total), Elapsed: end.Sub(begin), Done: float64(len(b.rounds)) / float64(total),
	})
	return nil
}

// driverCalls counts where GPUs prove.
func (b *proveBench) driverCalls() (engine.DriverCalls, bool) {
	if !strings.HasPrefix(b.engine.Device(), "cuda") {
		return engine.DriverCalls{}, false
	}
	return engine.CountDriverCalls()
}

// processStart is when the process began, to a hundredth of a second; where the system does not tell, now.
func processStart() time.Time {
	now := time.Now()
	text, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return now
	}
	// Behind the program's name, which stands in brackets and may hold anything: the state is field 3, the start field 22.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	var up unix.Timespec
	if len(fields) < 20 || unix.ClockGettime(unix.CLOCK_BOOTTIME, &up) != nil {
		return now
	}
	ticks, err := strconv.ParseInt(fields[19], 10, 64)
	if err != nil {
		return now
	}
	const tick = time.Second / 100 // USER_HZ
	return now.Add(-max(0, time.Duration(up.Nano())-time.Duration(ticks)*tick))
}

// resetPeakRSS lets the peak of the resident set begin anew. Where the system does not allow it, the old one stays.
func resetPeakRSS() { _ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0o200) }

// ownThreads is how many threads the process has; 0 where the system does not tell.
func ownThreads() int {
	list, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return 0
	}
	return len(list)
}

// ownFiles is how many files the process has open, but for the list of them; 0 where the system does not tell.
func ownFiles() int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return max(0, len(list)-1)
}
