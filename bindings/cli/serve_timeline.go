package main

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/sealc2/sealc2/engine"
	"github.com/sealc2/sealc2/engine/sched"
	"github.com/sealc2/sealc2/engine/status"
)

// followStep is how often an engine is asked for its stages. It keeps thousands, and a proof has some twenty a partition.
const followStep = time.Second

// toldEngine is the engine as a timeline follows it.
type toldEngine interface {
	Timeline() []sched.Entry
	Jobs() []engine.JobProgress
	Devices() []string
}

// follower appends the stages of an engine's submitted jobs to a file while it works: those of a job together, once it has ended, since
// TIMELINE lines tell of a partition as a whole. What does not get there is said there and in the log.
type follower struct {
	engine toldEngine
	out    io.Writer
	log    func(level, text string)
	stop   chan struct{}
	ended  chan struct{}

	// These are the goroutine's, and close's when that has ended.
	last    *sched.Entry   // the latest stage that was seen; nil before the first
	jobs    []*followedJob // that have not been written, by their first stages
	gap     bool           // stages were never seen, which the file does not say yet
	lost    int            // jobs that could not be written, which it does not say yet
	broken  bool           // the last write failed
	partial bool           // and left a line without its end
}

// followedJob is a job and what has run of it. One of the same name may come again under another number.
type followedJob struct {
	number  uint64
	name    string
	entries []sched.Entry
	old     bool // it had begun when the engine was last asked for its jobs
}

// followTimeline begins to write. close ends it; the file stays open, and the caller's.
func followTimeline(e toldEngine, out io.Writer, log func(level, text string)) (*follower, error) {
	f := &follower{engine: e, out: out, log: log, stop: make(chan struct{}), ended: make(chan struct{})}
	if _, err := fmt.Fprintf(out, "# sealc2 %s, milliseconds since %s\n", engine.Version, time.Now().UTC().Format("2006-01-02T15:04:05.000Z07:00")); err != nil {
		return nil, fileError("cli.Follow", "--timeline", err)
	}
	go func() {
		defer close(f.ended)
		var err error
		defer func() {
			if err != nil {
				log("error", "--timeline ends: "+err.Error())
			}
		}()
		defer status.Recover("cli.Follow", &err)
		for tick := time.NewTicker(followStep); ; {
			select {
			case <-tick.C:
				f.look()
			case <-f.stop:
				tick.Stop()
				return
			}
		}
	}()
	return f, nil
}

// close writes what is left. The engine's jobs have ended.
func (f *follower) close() {
	close(f.stop)
	<-f.ended
	f.take()
	f.write(f.jobs)
	f.jobs = nil
}

// look takes in what ended since the last time, and writes the jobs that have. A job that had begun before the engine is asked for its
// jobs, and is over then, has all its stages in a timeline that is read afterwards.
func (f *follower) look() {
	live := map[string]bool{}
	for _, j := range f.engine.Jobs() {
		if !j.State.Ended() {
			live[string(j.ID)] = true
		}
	}
	f.take()
	var over, rest []*followedJob
	for _, j := range f.jobs {
		if j.old && !live[j.name] {
			over = append(over, j)
			continue
		}
		j.old = true
		rest = append(rest, j)
	}
	f.jobs = rest
	f.write(over)
}

// take sorts the stages that are new by their jobs.
func (f *follower) take() {
	all := f.engine.Timeline()
	fresh := all
	if f.last != nil {
		seen := len(all) - 1
		for seen >= 0 && all[seen] != *f.last {
			seen--
		}
		fresh = all[seen+1:]
		if seen < 0 {
			f.gap = true
			f.log("warn", fmt.Sprintf("--timeline lacks stages: more than the %d that the engine keeps ended since it was asked last", len(all)))
		}
	}
	for i := range fresh {
		e := &fresh[i]
		at := slices.IndexFunc(f.jobs, func(j *followedJob) bool { return j.number == e.Job })
		if at < 0 {
			at = len(f.jobs)
			f.jobs = append(f.jobs, &followedJob{number: e.Job, name: e.Name})
		}
		f.jobs[at].entries = append(f.jobs[at].entries, *e)
	}
	if len(fresh) > 0 {
		last := fresh[len(fresh)-1]
		f.last = &last
	}
}

// write appends the lines of jobs, in the order of their first stages.
func (f *follower) write(jobs []*followedJob) {
	if len(jobs) == 0 && !f.gap && f.lost == 0 {
		return
	}
	devices := f.engine.Devices()
	var text bytes.Buffer
	if f.lost > 0 {
		fmt.Fprintf(&text, "# %d jobs are missing here: the file could not be written\n", f.lost)
	}
	if f.gap {
		text.WriteString("# stages are missing here: more ended at once than the engine keeps\n")
	}
	for _, j := range jobs {
		// A device's number is its place among all of the engine's, also where a job ran on some of them, or in the part of one that
		// is kept for urgent jobs. An entry of the host's lane names a device and makes no line.
		entries := make([]sched.Entry, 0, len(devices)+len(j.entries))
		for _, d := range devices {
			entries = append(entries, sched.Entry{Device: d})
		}
		for _, e := range j.entries {
			if i := slices.IndexFunc(devices, func(d string) bool { return strings.HasPrefix(e.Device, d+" ") }); i >= 0 {
				e.Device = devices[i]
			}
			entries = append(entries, e)
		}
		err := engine.WriteTimeline(&text, engine.TimelineText, entries)
		status.Check(err == nil, "cli.Follow", "a form of the timeline and room in memory for it")
	}
	if f.append(text.Bytes()) {
		f.gap, f.lost = false, 0
	} else {
		f.lost += len(jobs)
	}
}

// append writes whole lines, and tells whether it did.
func (f *follower) append(text []byte) bool {
	if f.partial {
		text = append([]byte{'\n'}, text...)
	}
	n, err := f.out.Write(text)
	switch {
	case err != nil && !f.broken:
		f.log("error", "--timeline is not written: "+err.Error())
	case err == nil && f.broken:
		f.log("warn", "--timeline is written again; it says what it lacks")
	}
	f.broken = err != nil
	f.partial = err != nil && (n > 0 || f.partial)
	return err == nil
}
