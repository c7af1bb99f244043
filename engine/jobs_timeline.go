package engine

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/sched"
	"github.com/sealc2/sealc2/engine/status"
)

// TimelineFormat is a form in which the timeline is written.
type TimelineFormat uint8

// The forms.
const (
	// TimelineText is a line an event, "TIMELINE,<ms>,<event>,<job>,<detail>", in the order of time, as cuzk writes it and its tools read it:
	// SYNTH_START and SYNTH_END around a partition's inputs and expand, GPU_QUEUE when they have ended, GPU_PICKUP and GPU_START at the begin of
	// what follows on the device (worker: the device's number), GPU_END at its end, with the time in stages that compute. A stage that serves
	// several partitions stands alone, without one. Commas in a job's name become underscores.
	TimelineText TimelineFormat = iota
	// TimelineJSON is a JSON object a line and stage.
	TimelineJSON
	// TimelineChrome is one JSON document in Chrome's trace format, for chrome://tracing and Perfetto: a process a device, a thread a lane.
	TimelineChrome
	TimelineFormatCount
)

// WriteTimeline writes the latest stages of all jobs. Errors: Caller for an unknown form; w's.
func (e *Engine) WriteTimeline(w io.Writer, format TimelineFormat) error {
	return WriteTimeline(w, format, e.Timeline())
}

// WriteTimeline writes stages that an engine's Timeline gave. Errors: Caller for an unknown form; w's.
func WriteTimeline(w io.Writer, format TimelineFormat, entries []sched.Entry) error {
	switch format {
	case TimelineText:
		return writeText(w, entries)
	case TimelineJSON:
		return writeJSONLines(w, entries)
	case TimelineChrome:
		return writeChrome(w, entries)
	}
	return status.New(status.Caller, "engine.WriteTimeline", "format", fmt.Sprintf("at most %d", TimelineFormatCount-1), fmt.Sprint(uint8(format)))
}

// devicesOf numbers the devices by name, and leaves the host out.
func devicesOf(entries []sched.Entry) []string {
	var names []string
	for _, e := range entries {
		if e.Device != "" {
			names = append(names, e.Device)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// attempt is one way of a partition through a device.
type attempt struct {
	job       uint64
	partition int
	worker    int
	name      string
	synthesis span // inputs and expand
	device    span
	busy      time.Duration
}

// span is a time that may not be there.
type span struct {
	start, end time.Duration
	there      bool
}

func (s *span) add(e *sched.Entry) {
	if !s.there {
		*s = span{e.Start, e.End, true}
	}
	s.start, s.end = min(s.start, e.Start), max(s.end, e.End)
}

// attempts sorts the stages by the partition that they serve. A partition that begins once more is another attempt.
func attempts(entries []sched.Entry) (all []*attempt) {
	devices := devicesOf(entries)
	ordered := slices.Clone(entries)
	slices.SortStableFunc(ordered, func(a, b sched.Entry) int { return cmp.Compare(a.Start, b.Start) })
	type key struct {
		job       uint64
		partition int
	}
	open := map[key]*attempt{}
	for i := range ordered {
		e := &ordered[i]
		if e.Device == "" {
			continue
		}
		synthesis := e.Stage == "inputs" || e.Stage == "expand"
		if !synthesis && e.Lane == host.LaneHost {
			continue
		}
		k := key{e.Job, e.Partition}
		a := open[k]
		if a == nil || e.Partition == sched.WholeJob || e.Stage == "inputs" {
			worker, _ := slices.BinarySearch(devices, e.Device)
			a = &attempt{job: e.Job, partition: e.Partition, worker: worker, name: e.Name}
			open[k] = a
			all = append(all, a)
		}
		if synthesis {
			a.synthesis.add(e)
			continue
		}
		a.device.add(e)
		if e.Lane == host.LaneDevice {
			a.busy += e.End - e.Start
		}
	}
	return all
}

func writeText(w io.Writer, entries []sched.Entry) error {
	type line struct {
		at   time.Duration
		text string
	}
	var lines []line
	for _, a := range attempts(entries) {
		job := strings.ReplaceAll(a.name, ",", "_")
		partition, behind := "", ""
		if a.partition != sched.WholeJob {
			partition = fmt.Sprintf("partition=%d", a.partition)
			behind = "," + partition
		}
		add := func(at time.Duration, event, format string, args ...any) {
			lines = append(lines, line{at, fmt.Sprintf("TIMELINE,%d,%s,%s,%s\n", at.Milliseconds(), event, job, fmt.Sprintf(format, args...))})
		}
		if s := a.synthesis; s.there {
			add(s.start, "SYNTH_START", "%s", partition)
			add(s.end, "SYNTH_END", "%s,synth_ms=%d", partition, (s.end - s.start).Milliseconds())
			add(s.end, "GPU_QUEUE", "%s", partition)
		}
		if d := a.device; d.there {
			add(d.start, "GPU_PICKUP", "worker=%d%s", a.worker, behind)
			add(d.start, "GPU_START", "worker=%d%s", a.worker, behind)
			add(d.end, "GPU_END", "worker=%d%s,gpu_ms=%d", a.worker, behind, a.busy.Milliseconds())
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(a.at, b.at) })
	for _, l := range lines {
		if _, err := io.WriteString(w, l.text); err != nil {
			return err
		}
	}
	return nil
}

// stageLine is a stage as a JSON object.
type stageLine struct {
	Job       string `json:"job"`
	Number    uint64 `json:"number"`    // of the job, in the order in which the engine got them
	Partition int    `json:"partition"` // -1: of the whole job, or of several
	Device    string `json:"device"`    // empty: none
	Lane      string `json:"lane"`
	Stage     string `json:"stage"`
	StartNs   int64  `json:"start_ns"` // since the engine was opened
	EndNs     int64  `json:"end_ns"`
	Failed    bool   `json:"failed"`
}

func writeJSONLines(w io.Writer, entries []sched.Entry) error {
	for i := range entries {
		e := &entries[i]
		line, err := json.Marshal(stageLine{e.Name, e.Job, e.Partition, e.Device, e.Lane.String(), e.Stage, int64(e.Start), int64(e.End), e.Failed})
		if err != nil {
			return status.Wrap(status.Internal, "engine.WriteTimeline", e.Stage, err)
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return nil
}

// traceEvent is an event of Chrome's format; times are in microseconds.
type traceEvent struct {
	Name     string         `json:"name"`
	Category string         `json:"cat,omitzero"`
	Phase    string         `json:"ph"`
	At       float64        `json:"ts"`
	Duration float64        `json:"dur"`
	Process  int            `json:"pid"`
	Thread   int            `json:"tid"`
	Args     map[string]any `json:"args,omitzero"`
}

func writeChrome(w io.Writer, entries []sched.Entry) error {
	devices := devicesOf(entries)
	events := []traceEvent{}
	meta := func(kind, name string, process, thread int) {
		events = append(events, traceEvent{Name: kind, Phase: "M", Process: process, Thread: thread, Args: map[string]any{"name": name}})
	}
	meta("process_name", "host", 0, 0)
	for i, name := range devices {
		meta("process_name", name, i+1, 0)
	}
	ordered := slices.Clone(entries)
	slices.SortStableFunc(ordered, func(a, b sched.Entry) int { return cmp.Compare(a.Start, b.Start) })
	// Stages of a lane that overlap get threads of their own.
	type track struct{ process, lane int }
	free := map[track][]time.Duration{} // when each thread of a track is free again
	for i := range ordered {
		e := &ordered[i]
		t := track{0, int(host.LaneHost)}
		if e.Device != "" && e.Lane != host.LaneHost {
			process, _ := slices.BinarySearch(devices, e.Device)
			t = track{process + 1, int(e.Lane)}
		}
		row := slices.IndexFunc(free[t], func(end time.Duration) bool { return end <= e.Start })
		if row < 0 {
			row = len(free[t])
			free[t] = append(free[t], 0)
			meta("thread_name", e.Lane.String(), t.process, t.lane*1000+row)
		}
		free[t][row] = e.End
		event := traceEvent{
			Name: e.Stage, Category: e.Lane.String(), Phase: "X", Process: t.process, Thread: t.lane*1000 + row,
			At: float64(e.Start) / 1e3, Duration: float64(e.End-e.Start) / 1e3,
			Args: map[string]any{"job": e.Name, "failed": e.Failed},
		}
		if e.Partition != sched.WholeJob {
			event.Args["partition"] = e.Partition
		}
		events = append(events, event)
	}
	text, err := json.Marshal(map[string]any{"traceEvents": events, "displayTimeUnit": "ms"}, json.Deterministic(true))
	if err != nil {
		return status.Wrap(status.Internal, "engine.WriteTimeline", "", err)
	}
	_, err = w.Write(append(text, '\n'))
	return err
}
