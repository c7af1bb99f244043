package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sealc2/sealc2/engine"
)

// logLevels are the words of --log, from quiet to talkative.
var logLevels = []string{"error", "warn", "info", "debug"}

// progressStep is how much of the whole gets done between two lines about one stage.
const progressStep = 0.1

// console writes logs and progress to stderr. On a terminal progress is one bar that is drawn again and
// again; elsewhere it is a line for each finished stage, or for each tenth of a long one.
type console struct {
	w        io.Writer
	terminal bool

	mu    sync.Mutex
	level int  // index in logLevels up to which lines are written
	drawn bool // a bar stands in the current line
	last  struct {
		what string
		done float64
	} // of the line written last, so that fine steps of one stage do not flood a log
}

// isTerminal tells whether a file is an interactive terminal.
func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// log is the engine's log sink.
func (c *console) log(level, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, name := range logLevels {
		if name == level && i > c.level {
			return
		}
	}
	c.clear()
	fmt.Fprintf(c.w, "%s: %s\n", level, text)
}

// progress shows a finished stage, or a step within one (Elapsed is zero then).
func (c *console) progress(p engine.Progress) {
	c.mu.Lock()
	defer c.mu.Unlock()
	done := min(max(p.Done, 0), 1)
	what := p.Stage
	if p.Partitions > 0 && p.Partition >= 0 {
		what = fmt.Sprintf("partition %d of %d: %s", p.Partition+1, p.Partitions, p.Stage)
	}
	if !c.terminal {
		if p.Elapsed == 0 && what == c.last.what && done < min(c.last.done+progressStep, 1) {
			return
		}
		c.last.what, c.last.done = what, done
		if p.Elapsed > 0 {
			what += "  " + seconds(p.Elapsed)
		}
		fmt.Fprintf(c.w, "%3.0f%%  %s\n", 100*done, what)
		return
	}
	const width = 32
	full := int(done*width + 0.5)
	fmt.Fprintf(c.w, "\r\x1b[K[%s%s] %3.0f%%  %s", strings.Repeat("#", full), strings.Repeat(".", width-full), 100*done, what)
	c.drawn = true
}

// finish ends a bar, so that what follows starts in a fresh line.
func (c *console) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clear()
}

func (c *console) clear() {
	if c.drawn {
		fmt.Fprint(c.w, "\r\x1b[K")
		c.drawn = false
	}
}

// seconds writes a duration for people.
func seconds(d time.Duration) string { return fmt.Sprintf("%.3f s", d.Seconds()) }
