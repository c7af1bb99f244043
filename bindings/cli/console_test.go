package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/sealc2/sealc2/engine"
)

func TestConsole_Levels(t *testing.T) {
	var b bytes.Buffer
	c := &console{w: &b, level: 1}
	for _, level := range logLevels {
		c.log(level, "text")
	}
	if got, want := b.String(), "error: text\nwarn: text\n"; got != want {
		t.Errorf("want %q, got %q", want, got)
	}
}

func TestConsole_Lines(t *testing.T) {
	var b bytes.Buffer
	c := &console{w: &b}
	for i := range 101 { // a stage in fine steps: a line each tenth
		c.progress(engine.Progress{Partition: -1, Stage: "h", Done: float64(i) / 100})
	}
	if got := strings.Count(b.String(), "\n"); got < 10 || got > 12 {
		t.Errorf("want about 11 lines, got %d:\n%s", got, b.String())
	}
	b.Reset()
	for _, stage := range []string{"expand", "evaluate"} { // finished stages: a line each
		c.progress(engine.Progress{Partition: 1, Partitions: 3, Stage: stage, Elapsed: 1500 * time.Millisecond, Done: 7})
	}
	if got, want := b.String(), "100%  partition 2 of 3: expand  1.500 s\n100%  partition 2 of 3: evaluate  1.500 s\n"; got != want {
		t.Errorf("want %q, got %q", want, got)
	}
}

func TestConsole_Bar(t *testing.T) {
	var b bytes.Buffer
	c := &console{w: &b, terminal: true, level: 1}
	c.progress(engine.Progress{Partition: -1, Stage: "h", Done: 0.5})
	c.log("warn", "text")
	c.progress(engine.Progress{Partition: -1, Stage: "h", Done: -1})
	c.finish()
	c.finish()
	want := "\r\x1b[K[" + strings.Repeat("#", 16) + strings.Repeat(".", 16) + "]  50%  h" +
		"\r\x1b[Kwarn: text\n" +
		"\r\x1b[K[" + strings.Repeat(".", 32) + "]   0%  h" +
		"\r\x1b[K"
	if b.String() != want {
		t.Errorf("want %q, got %q", want, b.String())
	}
}
