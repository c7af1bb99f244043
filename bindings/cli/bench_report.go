package main

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/sealc2/sealc2/engine"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/sched"
)

// proveBenchJSON is the result of `bench prove --json`.
type proveBenchJSON struct {
	Name       string `json:"name"`
	Device     string `json:"device"`
	Explicit   bool   `json:"explicit"`
	Partitions int    `json:"partitions"` // of a job
	Warmup     int    `json:"warmup"`
	Rounds     int    `json:"rounds"` // jobs that were measured
	Jobs       int    `json:"jobs"`   // at once
	Proofs     int    `json:"proofs"` // of all jobs, each verified
	Threads    int    `json:"threads"`

	SourceSeconds float64 `json:"source_s"` // that making the sector or the vectors took
	ParamsSeconds float64 `json:"params_s"` // that making parameters took; 0 where files have them
	ColdSeconds   float64 `json:"cold_s"`   // from the start of the process, without the above, to the end of its first job
	Wall          *spread `json:"wall_s"`   // of a job
	SteadySeconds float64 `json:"steady_s"` // from the first measured job's start to the last one's end
	PerJob        float64 `json:"steady_per_job_s"`

	// Busy is how long stages held the devices' computing lanes, for each partition; a job's is shared out evenly.
	Busy      *spread      `json:"device_busy_per_partition_s"`
	BusyShare float64      `json:"device_busy_share"` // of the steady time, mean of all devices
	Stages    []stageBench `json:"stages"`

	Memory      memoryFigures   `json:"host"`
	GPUs        []*gpuFigures   `json:"gpus"`         // empty where there are none or nobody tells
	DriverCalls *driverCallJSON `json:"driver_calls"` // while jobs were measured; null on the CPU
	EveryRound  []benchRound    `json:"jobs_in_order"`
}

// spread are the extremes of some figures and their median.
type spread struct {
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	Max    float64 `json:"max"`
}

// stageBench is one stage in all measured jobs.
type stageBench struct {
	Stage  string  `json:"stage"`
	Lane   string  `json:"lane"`
	Count  int     `json:"count"` // in all measured jobs
	Each   *spread `json:"each_s"`
	PerJob float64 `json:"per_job_s"` // median of the jobs' sums
}

// memoryFigures are what the process had of the host. Slopes are what each measured job added, by least squares.
type memoryFigures struct {
	Peak         int64   `json:"peak_rss_bytes"` // since the source was made
	Caller       int64   `json:"caller_bytes"`   // of which the caller's own: C1 output or vectors
	RSSSlope     float64 `json:"rss_bytes_per_job"`
	ThreadsSlope float64 `json:"threads_per_job"`
	FilesSlope   float64 `json:"files_per_job"`
	VRAMSlope    float64 `json:"vram_bytes_per_job"`
}

// driverCallJSON are numbers of calls of the GPU driver.
type driverCallJSON struct {
	Total    int64 `json:"total"`
	Plain    int64 `json:"plain"`
	Queue    int64 `json:"queue"`
	Wait     int64 `json:"wait"`
	Stalling int64 `json:"stalling"`
	Unwarmed int64 `json:"first_launches"`
	Beside   int64 `json:"stalls_beside_queued_work"`
}

// benchRound is one job, and what the process had when it ended.
type benchRound struct {
	Round        int     `json:"job"`
	Warmup       bool    `json:"warmup"`
	StartSeconds float64 `json:"start_s"` // since the process began, without making the source
	WallSeconds  float64 `json:"wall_s"`
	Proofs       int     `json:"proofs"`
	RSS          int64   `json:"rss_bytes"`
	PeakRSS      int64   `json:"peak_rss_bytes"`
	Threads      int     `json:"threads"`
	Files        int     `json:"open_files"`
	VRAM         int64   `json:"vram_used_bytes"` // on the engine's devices, by all processes
}

// spreadOf is the spread of some figures; nil of none.
func spreadOf(values []float64) *spread {
	if len(values) == 0 {
		return nil
	}
	s := slices.Sorted(slices.Values(values))
	n := len(s)
	return &spread{s[0], (s[(n-1)/2] + s[n/2]) / 2, s[n-1]}
}

// text writes a spread for people.
func (s *spread) text(format, unit string) string {
	if s == nil {
		return "unknown"
	}
	return fmt.Sprintf(format+" (min "+format+", max "+format+") %s", s.Median, s.Min, s.Max, unit)
}

// slope is by how much values rise from one to the next, by least squares; 0 of fewer than two.
func slope(values []float64) float64 {
	n := float64(len(values))
	if n < 2 {
		return 0
	}
	mean := 0.0
	for _, v := range values {
		mean += v / n
	}
	above, below := 0.0, 0.0
	for i, v := range values {
		d := float64(i) - (n-1)/2
		above += d * (v - mean)
		below += d * d
	}
	return above / below
}

// busyTime is for how long at least one of the entries ran.
func busyTime(entries []sched.Entry) (sum time.Duration) {
	list := slices.SortedFunc(slices.Values(entries), func(a, b sched.Entry) int { return cmp.Compare(a.Start, b.Start) })
	var end time.Duration
	for _, e := range list {
		if e.End > end {
			sum += e.End - max(e.Start, end)
			end = e.End
		}
	}
	return sum
}

// computes tells the stages that keep a device's computing lane busy.
func computes(e sched.Entry) bool { return e.Device != "" && e.Lane == host.LaneDevice }

// laneName is the lane of a stage for people. Those of a job before its first partition have none: they run on the host.
func laneName(e sched.Entry) string {
	if e.Device == "" {
		return host.LaneHost.String()
	}
	return e.Lane.String()
}

// devicesOf names the devices of entries.
func devicesOf(entries []sched.Entry) (names []string) {
	for _, e := range entries {
		if e.Device != "" && !slices.Contains(names, e.Device) {
			names = append(names, e.Device)
		}
	}
	slices.Sort(names)
	return names
}

// jobsOf sorts entries by job, oldest first.
func jobsOf(entries []sched.Entry) (jobs [][]sched.Entry) {
	list := slices.Clone(entries)
	slices.SortStableFunc(list, func(a, b sched.Entry) int { return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Start, b.Start)) })
	for len(list) > 0 {
		n := slices.IndexFunc(list, func(e sched.Entry) bool { return e.Job != list[0].Job })
		if n < 0 {
			n = len(list)
		}
		jobs, list = append(jobs, list[:n:n]), list[n:]
	}
	return jobs
}

// lastJob are the entries of the job that began last.
func lastJob(entries []sched.Entry) []sched.Entry {
	jobs := jobsOf(entries)
	if len(jobs) == 0 {
		return nil
	}
	return jobs[len(jobs)-1]
}

// stageFigures are the stages of jobs, in the order in which they first began.
func stageFigures(jobs [][]sched.Entry) []stageBench {
	type key struct{ stage, lane string }
	var order []key
	each, sums := map[key][]float64{}, map[key][]float64{}
	for _, job := range jobs {
		sum := map[key]float64{}
		for _, e := range job {
			k := key{e.Stage, laneName(e)}
			if each[k] == nil {
				order = append(order, k)
			}
			seconds := (e.End - e.Start).Seconds()
			each[k] = append(each[k], seconds)
			sum[k] += seconds
		}
		for k, s := range sum {
			sums[k] = append(sums[k], s)
		}
	}
	out := []stageBench{}
	for _, k := range order {
		out = append(out, stageBench{k.stage, k.lane, len(each[k]), spreadOf(each[k]), spreadOf(sums[k]).Median})
	}
	return out
}

// figures sums up what was measured, while the engine is open.
func (b *proveBench) figures(made time.Duration) *proveBenchJSON {
	o := b.options
	slices.SortFunc(b.rounds, func(x, y benchRound) int { return cmp.Compare(x.Round, y.Round) })
	v := &proveBenchJSON{
		Name: b.source.name, Device: b.engine.Device(), Explicit: o.explicit, Warmup: o.warmup, Rounds: o.rounds, Jobs: o.jobs, Threads: b.threads,
		SourceSeconds: made.Seconds(), ParamsSeconds: b.making.Seconds(), ColdSeconds: b.cold.Seconds(), EveryRound: b.rounds,
		Memory: memoryFigures{Peak: host.PeakRSS(), Caller: b.source.bytes()}, GPUs: b.gpus.figures(b.engine.Device()),
	}
	measured := b.rounds[o.warmup:]
	var walls, rss, threads, files, vram []float64
	first, last := measured[0].StartSeconds, 0.0
	for _, r := range measured {
		walls, rss, vram = append(walls, r.WallSeconds), append(rss, float64(r.RSS)), append(vram, float64(r.VRAM))
		threads, files = append(threads, float64(r.Threads)), append(files, float64(r.Files))
		first, last = min(first, r.StartSeconds), max(last, r.StartSeconds+r.WallSeconds)
	}
	for _, r := range b.rounds {
		v.Proofs += r.Proofs
	}
	v.Partitions = measured[0].Proofs
	v.Wall, v.SteadySeconds = spreadOf(walls), last-first
	v.PerJob = v.SteadySeconds / float64(len(measured))
	v.Memory.RSSSlope, v.Memory.ThreadsSlope, v.Memory.FilesSlope, v.Memory.VRAMSlope = slope(rss), slope(threads), slope(files), slope(vram)

	// The jobs of the warm-up were the engine's first ones.
	jobs := jobsOf(b.entries)
	jobs = jobs[min(len(jobs), o.warmup):]
	v.Stages = stageFigures(jobs)
	busy, devices := v.busy(jobs)
	if devices > 0 && v.SteadySeconds > 0 {
		v.BusyShare = busy / float64(devices) / v.SteadySeconds
	}
	if now, ok := b.driverCalls(); ok {
		d := driverCallJSON(now.Sub(b.calls))
		v.DriverCalls = &d
	}
	return v
}

// busy finds how long devices computed: for each partition, and in all.
func (v *proveBenchJSON) busy(jobs [][]sched.Entry) (total float64, devices int) {
	var each []float64
	var all []sched.Entry
	for _, job := range jobs {
		sum := 0.0
		for _, e := range job {
			if computes(e) {
				sum += (e.End - e.Start).Seconds()
				all = append(all, e)
			}
		}
		each = append(each, sum/float64(max(1, v.Partitions)))
	}
	v.Busy = spreadOf(each)
	names := devicesOf(all)
	for _, name := range names {
		total += busyTime(slices.DeleteFunc(slices.Clone(all), func(e sched.Entry) bool { return e.Device != name })).Seconds()
	}
	return total, len(names)
}

// text writes the figures for people.
func (v *proveBenchJSON) text(w io.Writer) {
	from := "from its C1 output"
	if v.Explicit {
		from = "from whole vectors"
	}
	fmt.Fprintf(w, "%s %s on %s: %s a job, %d jobs after %d, %d at once\n", v.Name, from, v.Device, partitionCount(v.Partitions), v.Rounds, v.Warmup, v.Jobs)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(what, format string, args ...any) { fmt.Fprintf(t, "%s\t%s\n", what, fmt.Sprintf(format, args...)) }
	row("proofs", "%d, all verified", v.Proofs)
	if v.SourceSeconds > 0 {
		row("source made", "%.3f s, not counted", v.SourceSeconds)
	}
	if v.ParamsSeconds > 0 {
		row("parameters made", "%.3f s, not counted", v.ParamsSeconds)
	}
	row("cold, first job", "%.3f s", v.ColdSeconds)
	row("job", "%s", v.Wall.text("%.3f", "s"))
	row("steady", "%.3f s, %.3f s a job, %.3f s a partition", v.SteadySeconds, v.PerJob, v.PerJob/float64(max(1, v.Partitions)))
	row("device busy, a partition", "%s", v.Busy.text("%.3f", "s"))
	row("device busy", "%.1f%% of the steady time", 100*v.BusyShare)
	row("host memory, peak", "%s, of which the caller's %s", host.FormatBytes(v.Memory.Peak), host.FormatBytes(v.Memory.Caller))
	end := v.EveryRound[len(v.EveryRound)-1]
	row("host after the last job", "%s, %d threads, %d files", host.FormatBytes(end.RSS), end.Threads, end.Files)
	row("each job adds", "%s of host memory, %s of the devices', %.2f threads, %.2f files",
		host.FormatBytes(int64(v.Memory.RSSSlope)), host.FormatBytes(int64(v.Memory.VRAMSlope)), v.Memory.ThreadsSlope, v.Memory.FilesSlope)
	for _, g := range v.GPUs {
		row(g.Name+" memory", "%s before, %s peak, %s after, %s when closed, of %s", host.FormatBytes(g.Before), host.FormatBytes(g.Peak),
			host.FormatBytes(g.After), host.FormatBytes(g.Closed), host.FormatBytes(g.Total))
		row(g.Name+" power, clock", "%s, %s %s", g.PowerWatts.text("%.0f", "W"), g.ClockMHz.text("%.0f", "MHz"), strings.Join(g.Throttle, ", "))
	}
	if c := v.DriverCalls; c != nil {
		row("driver calls", "%d: %d queue, %d wait, %d stalling (%d beside queued work), %d first launches", c.Total, c.Queue, c.Wait, c.Stalling, c.Beside, c.Unwarmed)
	}
	t.Flush()
	fmt.Fprintln(w)
	fmt.Fprintln(t, "stage\tlane\tcount\tmedian s\tmin\tmax\ta job, s")
	for _, s := range v.Stages {
		fmt.Fprintf(t, "%s\t%s\t%d\t%.4f\t%.4f\t%.4f\t%.4f\n", s.Stage, s.Lane, s.Count, s.Each.Median, s.Each.Min, s.Each.Max, s.PerJob)
	}
	t.Flush()
}

// roundsCSV is a line a job, under a head.
func roundsCSV(rounds []benchRound) []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	// A buffer takes all that is written to it.
	_ = w.Write([]string{"job", "warmup", "start_s", "wall_s", "proofs", "rss_bytes", "peak_rss_bytes", "threads", "open_files", "vram_used_bytes"})
	for _, r := range rounds {
		_ = w.Write([]string{
			strconv.Itoa(r.Round), strconv.FormatBool(r.Warmup), strconv.FormatFloat(r.StartSeconds, 'f', 3, 64), strconv.FormatFloat(r.WallSeconds, 'f', 3, 64),
			strconv.Itoa(r.Proofs), strconv.FormatInt(r.RSS, 10), strconv.FormatInt(r.PeakRSS, 10), strconv.Itoa(r.Threads), strconv.Itoa(r.Files), strconv.FormatInt(r.VRAM, 10),
		})
	}
	w.Flush()
	return b.Bytes()
}

// timelineLines writes stages as cuzk's engine does, with a name of its own for each job.
func timelineLines(entries []sched.Entry) ([]byte, error) {
	list := slices.Clone(entries)
	for i := range list {
		list[i].Name = fmt.Sprintf("%s-%d", list[i].Name, list[i].Job)
	}
	var b bytes.Buffer
	err := engine.WriteTimeline(&b, engine.TimelineText, list)
	return b.Bytes(), err
}

// extent is when the first of some stages began and the last one ended.
func extent(entries []sched.Entry) (begin, end time.Duration) {
	begin = entries[0].Start
	for _, e := range entries {
		begin, end = min(begin, e.Start), max(end, e.End)
	}
	return begin, end
}
