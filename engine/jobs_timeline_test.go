package engine

import (
	"bufio"
	"bytes"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/sched"
	"github.com/sealc2/sealc2/engine/status"
)

// drawn is a job's way: two partitions in a batch on a GPU, the second begins once more on another one.
func drawn(name string) []sched.Entry {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	entry := func(partition int, device string, lane host.Lane, stage string, from, to int) sched.Entry {
		return sched.Entry{Job: 7, Name: name, Partition: partition, Device: device, Lane: lane, Stage: stage, Start: ms(from), End: ms(to)}
	}
	failed := entry(1, "cuda:0 A", host.LaneHost, "verify", 90, 91)
	failed.Failed = true
	return []sched.Entry{
		entry(sched.WholeJob, "", host.LaneHost, "parse", 0, 5),
		entry(0, "cuda:0 A", host.LaneHost, "inputs", 5, 6), entry(0, "cuda:0 A", host.LaneHost, "expand", 6, 10),
		entry(1, "cuda:0 A", host.LaneHost, "inputs", 10, 11),
		entry(0, "cuda:0 A", host.LaneCopy, "upload", 10, 12), entry(0, "cuda:0 A", host.LaneDevice, "evaluate", 12, 20),
		entry(1, "cuda:0 A", host.LaneHost, "expand", 11, 15), entry(1, "cuda:0 A", host.LaneDevice, "evaluate", 20, 30),
		entry(sched.WholeJob, "cuda:0 A", host.LaneDevice, "msm_l", 30, 60),
		entry(0, "cuda:0 A", host.LaneHost, "verify", 60, 61), failed,
		entry(1, "cuda:1 B", host.LaneHost, "inputs", 95, 96), entry(1, "cuda:1 B", host.LaneHost, "expand", 96, 99),
		entry(1, "cuda:1 B", host.LaneDevice, "evaluate", 100, 140),
	}
}

// Goal: lines of cuzk's form, in the order of time, one pair of synthesis and device a partition's attempt.
func TestWriteTimeline_Text(t *testing.T) {
	var out bytes.Buffer
	if err := WriteTimeline(&out, TimelineText, drawn("porep,1")); err != nil {
		t.Fatal(err)
	}
	want := `TIMELINE,5,SYNTH_START,porep_1,partition=0
TIMELINE,10,SYNTH_END,porep_1,partition=0,synth_ms=5
TIMELINE,10,GPU_QUEUE,porep_1,partition=0
TIMELINE,10,GPU_PICKUP,porep_1,worker=0,partition=0
TIMELINE,10,GPU_START,porep_1,worker=0,partition=0
TIMELINE,10,SYNTH_START,porep_1,partition=1
TIMELINE,15,SYNTH_END,porep_1,partition=1,synth_ms=5
TIMELINE,15,GPU_QUEUE,porep_1,partition=1
TIMELINE,20,GPU_END,porep_1,worker=0,partition=0,gpu_ms=8
TIMELINE,20,GPU_PICKUP,porep_1,worker=0,partition=1
TIMELINE,20,GPU_START,porep_1,worker=0,partition=1
TIMELINE,30,GPU_END,porep_1,worker=0,partition=1,gpu_ms=10
TIMELINE,30,GPU_PICKUP,porep_1,worker=0
TIMELINE,30,GPU_START,porep_1,worker=0
TIMELINE,60,GPU_END,porep_1,worker=0,gpu_ms=30
TIMELINE,95,SYNTH_START,porep_1,partition=1
TIMELINE,99,SYNTH_END,porep_1,partition=1,synth_ms=4
TIMELINE,99,GPU_QUEUE,porep_1,partition=1
TIMELINE,100,GPU_PICKUP,porep_1,worker=1,partition=1
TIMELINE,100,GPU_START,porep_1,worker=1,partition=1
TIMELINE,140,GPU_END,porep_1,worker=1,partition=1,gpu_ms=40
`
	if out.String() != want {
		t.Errorf("got\n%s", out.String())
	}
}

// Goal: in Chrome's form stages of one thread do not overlap, and each has its place.
func TestWriteTimeline_Chrome(t *testing.T) {
	var out bytes.Buffer
	if err := WriteTimeline(&out, TimelineChrome, drawn("a")); err != nil {
		t.Fatal(err)
	}
	var trace struct {
		Events []struct {
			Name     string         `json:"name"`
			Phase    string         `json:"ph"`
			At       float64        `json:"ts"`
			Duration float64        `json:"dur"`
			Process  int            `json:"pid"`
			Thread   int            `json:"tid"`
			Args     map[string]any `json:"args"`
		} `json:"traceEvents"`
	}
	if err := json.Unmarshal(out.Bytes(), &trace); err != nil {
		t.Fatal(err)
	}
	end, names, stages := map[[2]int]float64{}, map[int]string{}, 0
	for _, e := range trace.Events {
		if e.Phase == "M" {
			if e.Name == "process_name" {
				names[e.Process] = e.Args["name"].(string)
			}
			continue
		}
		stages++
		at := [2]int{e.Process, e.Thread}
		if e.At < end[at] || e.Args["job"] != "a" {
			t.Errorf("%+v overlaps what ends at %g", e, end[at])
		}
		end[at] = e.At + e.Duration
		if wantDevice := map[string]int{"upload": 1, "msm_l": 1, "parse": 0, "verify": 0}; wantDevice[e.Name] != e.Process && e.Name != "evaluate" && e.Process != 0 {
			t.Errorf("%s in process %d", e.Name, e.Process)
		}
	}
	if stages != len(drawn("a")) || names[0] != "host" || names[1] != "cuda:0 A" || names[2] != "cuda:1 B" {
		t.Errorf("%d stages, processes %v", stages, names)
	}
}

type broken struct{ after int }

func (b *broken) Write(p []byte) (int, error) {
	if b.after--; b.after < 0 {
		return 0, errors.New("full")
	}
	return len(p), nil
}

func TestWriteTimeline_Errors(t *testing.T) {
	if err := WriteTimeline(&bytes.Buffer{}, TimelineFormatCount, nil); status.KindOf(err) != status.Caller {
		t.Errorf("an unknown form: %v", err)
	}
	for format := range TimelineFormatCount {
		if err := WriteTimeline(&broken{0}, format, drawn("a")); err == nil {
			t.Errorf("form %d: a full disk is no error", format)
		}
		var out bytes.Buffer
		if err := WriteTimeline(&out, format, nil); err != nil || format == TimelineChrome != (out.Len() > 0) {
			t.Errorf("form %d of nothing: %q, %v", format, out.String(), err)
		}
	}
}

// Goal: whatever a job is called, each line has its five fields, and JSON gives the name back.
func FuzzTimeline_Names(f *testing.F) {
	f.Add("porep-1000-1")
	f.Add(`a,b "c" \`)
	f.Add("\u2028é<&>")
	f.Fuzz(func(t *testing.T, name string) {
		if JobID(name).check("test") != nil {
			return
		}
		var out bytes.Buffer
		if err := WriteTimeline(&out, TimelineText, drawn(name)); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(&out)
		for lines.Scan() {
			fields := strings.SplitN(lines.Text(), ",", 5)
			if len(fields) != 5 || fields[0] != "TIMELINE" || fields[3] != strings.ReplaceAll(name, ",", "_") {
				t.Fatalf("%q of %q", lines.Text(), name)
			}
			if _, err := strconv.Atoi(fields[1]); err != nil {
				t.Fatal(err)
			}
		}
		out.Reset()
		if err := WriteTimeline(&out, TimelineJSON, drawn(name)); err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(out.Bytes()) {
			var s stageLine
			if err := json.Unmarshal(line, &s); err != nil || s.Job != name || s.Number != 7 {
				t.Fatalf("%s of %q: %v", line, name, err)
			}
		}
	})
}
