package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sealc2/sealc2/engine"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/sched"
)

// told is an engine that tells what a test makes up; it keeps the latest keep stages. The test has mu while it makes something up.
type told struct {
	mu      sync.Mutex
	entries []sched.Entry
	keep    int
	live    []string
}

func (e *told) Timeline() []sched.Entry {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.entries[max(0, len(e.entries)-e.keep):])
}

func (e *told) Jobs() []engine.JobProgress {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := []engine.JobProgress{{ID: "over", State: engine.JobDone}}
	for _, id := range e.live {
		all = append(all, engine.JobProgress{ID: engine.JobID(id), State: engine.JobRunning})
	}
	return all
}

func (e *told) Devices() []string { return []string{"cuda:0 X", "cuda:1 X"} }

// proves adds the stages of a partition: synthesis, and a kernel on a device, each of a millisecond, that end one after the other.
func (e *told) proves(number uint64, name, device string, partition int) {
	for i, stage := range []string{"inputs", "expand", "msm_h"} {
		at := time.Duration(len(e.entries)) * time.Millisecond
		lane := host.LaneHost
		if i == 2 {
			lane = host.LaneDevice
		}
		e.entries = append(e.entries, sched.Entry{
			Job: number, Name: name, Partition: partition, Device: device, Lane: lane, Stage: stage, Start: at, End: at + time.Millisecond,
		})
	}
}

// file is one that fails when it is told to, after so many bytes.
type file struct {
	bytes.Buffer
	err   error
	after int
}

func (f *file) Write(p []byte) (int, error) {
	if f.err != nil {
		f.Buffer.Write(p[:f.after])
		return f.after, f.err
	}
	return f.Buffer.Write(p)
}

// lines of a partition that proves made, from a millisecond on.
func lines(at, worker int, name string, partition int) string {
	behind := fmt.Sprintf("partition=%d", partition)
	var b strings.Builder
	for _, l := range []struct {
		at     int
		event  string
		detail string
	}{
		{at, "SYNTH_START", behind}, {at + 2, "SYNTH_END", behind + ",synth_ms=2"}, {at + 2, "GPU_QUEUE", behind},
		{at + 2, "GPU_PICKUP", fmt.Sprintf("worker=%d,%s", worker, behind)}, {at + 2, "GPU_START", fmt.Sprintf("worker=%d,%s", worker, behind)},
		{at + 3, "GPU_END", fmt.Sprintf("worker=%d,%s,gpu_ms=1", worker, behind)},
	} {
		fmt.Fprintf(&b, "TIMELINE,%d,%s,%s,%s\n", l.at, l.event, name, l.detail)
	}
	return b.String()
}

// Goal: a job's lines are in the file once, whole, soon after it has ended; what runs is written at the end; a device has the same number
// in each job's lines; and what the file lacks, for a ring that was too small or a disk that was full, it says, and so does the log.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, out, logged := &told{keep: 8}, &file{}, &bytes.Buffer{}
		f, err := followTimeline(e, out, func(level, text string) { fmt.Fprintf(logged, "%s: %s\n", level, text) })
		if err != nil {
			t.Fatal(err)
		}
		e.mu.Lock()
		pass := func(d time.Duration) {
			e.mu.Unlock()
			defer e.mu.Lock()
			time.Sleep(d)
			synctest.Wait()
		}
		want := "# sealc2 " + engine.Version + ", milliseconds since 2000-01-01T00:00:00.000Z\n"
		step := func(what string, more ...string) {
			t.Helper()
			pass(followStep)
			want += strings.Join(more, "")
			if got := out.String(); got != want {
				t.Fatalf("%s: got\n%s\nwant\n%s", what, got, want)
			}
		}
		step("nothing yet")
		e.live = []string{"a", "b"}
		e.proves(1, "a", "cuda:1 X", 0)
		step("a runs")
		e.proves(2, "b", "cuda:0 X (urgent)", 0)
		e.proves(1, "a", "cuda:1 X", 1)
		e.live = []string{"b"}
		step("a is over", lines(0, 1, "a", 0), lines(6, 1, "a", 1))
		step("b runs")
		e.live = nil
		step("b is over", lines(3, 0, "b", 0))
		step("nothing more")

		// A job that came and went between two looks; one of the same name behind it.
		e.proves(3, "b", "cuda:0 X", 0)
		step("seen for the first time")
		e.live = []string{"b"}
		e.proves(4, "b", "cuda:1 X", 0)
		step("whose name is under way again")
		e.live = nil
		step("both are over", lines(9, 0, "b", 0), lines(12, 1, "b", 0))

		// Three partitions are more than the ring holds.
		for i := range 3 {
			e.proves(5, "c", "cuda:0 X", i)
		}
		step("a gap", "# stages are missing here: more ended at once than the engine keeps\n")
		if !strings.Contains(logged.String(), "warn: --timeline lacks stages: more than the 8 that") {
			t.Errorf("log: %s", logged)
		}
		rest := strings.SplitAfterN(lines(15, 0, "c", 0), "\n", 2)[1] // its first stage is lost, so it begins a millisecond later
		rest = "TIMELINE,16,SYNTH_START,c,partition=0\n" + strings.Replace(rest, "synth_ms=2", "synth_ms=1", 1)
		step("what was seen of it", rest, lines(18, 0, "c", 1), lines(21, 0, "c", 2))

		// A full disk.
		logged.Reset()
		out.err, out.after = errors.New("no space"), 5
		e.proves(6, "d", "cuda:0 X", 0)
		e.proves(7, "e", "cuda:0 X", 0)
		pass(2 * followStep)
		out.err = nil
		out.Truncate(len(want) + 5)
		step("it has room again", "TIMEL\n# 2 jobs are missing here: the file could not be written\n")
		if got, want := logged.String(), "error: --timeline is not written: no space\nwarn: --timeline is written again; it says what it lacks\n"; got != want {
			t.Errorf("log %q, want %q", got, want)
		}
		e.live = []string{"f"}
		e.proves(8, "f", "cuda:1 X", 0)
		e.mu.Unlock()
		f.close()
		if want += lines(30, 1, "f", 0); out.String() != want {
			t.Errorf("at the end: got\n%s\nwant\n%s", out, want)
		}
	})
}

// Goal: a file that cannot be written from the start is refused.
func TestFollow_Refused(t *testing.T) {
	if _, err := followTimeline(&told{}, &file{err: errors.New("no space")}, nil); err == nil || !strings.Contains(err.Error(), "--timeline") {
		t.Errorf("got %v", err)
	}
}
