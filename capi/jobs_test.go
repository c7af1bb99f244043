package main

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sealc2/sealc2/engine"
	"github.com/sealc2/sealc2/engine/status"
)

// The header's numbers are the engine's.
func TestNumbersOfTheHeader(t *testing.T) {
	for i, want := range []engine.Class{engine.ClassPoRep, engine.ClassSnap, engine.ClassWindow, engine.ClassWinning} {
		if int(want) != i || engine.ClassCount != 4 {
			t.Errorf("class %d is %s", i, want)
		}
	}
	for i, want := range []engine.JobState{engine.JobQueued, engine.JobRunning, engine.JobDone, engine.JobFailed, engine.JobCancelled} {
		if int(want) != i {
			t.Errorf("state %d is %s", i, want)
		}
	}
	for i, want := range []engine.TimelineFormat{engine.TimelineText, engine.TimelineJSON, engine.TimelineChrome} {
		if int(want) != i || engine.TimelineFormatCount != 3 {
			t.Errorf("form %d is %d", i, want)
		}
	}
}

// Handles of submitted jobs and those that only cancel are told apart.
func TestJobs_Submitted(t *testing.T) {
	plain, submitted := addJob(nil), addJob(&engine.Job{})
	if _, err := submittedOf("capi.test", plain); status.KindOf(err) != status.Caller || !strings.Contains(err.Error(), "sealc2_submit") {
		t.Errorf("a plain job: %v", err)
	}
	if _, err := jobOf("capi.test", submitted); status.KindOf(err) != status.Caller || !strings.Contains(err.Error(), "sealc2_job_open") {
		t.Errorf("a submitted job: %v", err)
	}
	if _, err := submittedOf("capi.test", 0); status.KindOf(err) != status.Caller {
		t.Errorf("job 0: %v", err)
	}
	for _, handle := range []uint64{plain, submitted} {
		if err := removeJob("capi.test", handle); err != nil {
			t.Error(err)
		}
	}
}

func TestMilliseconds(t *testing.T) {
	for ms, want := range map[uint64]time.Duration{0: 0, 7: 7 * time.Millisecond, 1<<64 - 2: 9223372036854 * time.Millisecond} {
		if got := milliseconds(ms); got != want {
			t.Errorf("%d ms: %v", ms, got)
		}
	}
}

// Goal: whatever RUST_LOG is, it is read as a level, and what stands for other targets never opens ours.
func FuzzParseLogLevel(f *testing.F) {
	for _, text := range []string{"", "info", "sealc2=debug,warn", "a=b=c", ",,=,", "warn/x,sealc2=debug", "SEALC2=info", "sealc2", "filecoin_proofs=trace"} {
		f.Add(text)
	}
	ours := regexp.MustCompile(`(?i)(^|,)\s*((off|error|warn|info|debug|trace)\s*(,|$)|sealc2\s*(=|,|$))`)
	f.Fuzz(func(t *testing.T, text string) {
		level := parseLogLevel(text)
		if level < 0 || level >= len(logLevels) {
			t.Fatalf("RUST_LOG=%q: level %d", text, level)
		}
		filters, _, _ := strings.Cut(text, "/")
		if level > 0 && !ours.MatchString(filters) {
			t.Fatalf("RUST_LOG=%q speaks of others and gives %s", text, logLevels[level])
		}
		if got := parseLogLevel(filters + ",sealc2=debug"); logLevels[got] != "debug" {
			t.Fatalf("RUST_LOG=%q: %s", filters+",sealc2=debug", logLevels[got])
		}
	})
}
