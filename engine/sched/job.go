package sched

import (
	"context"
	"time"

	"github.com/sealc2/sealc2/engine/host"
)

// Clock tells the time; tests bring their own.
type Clock interface{ Now() time.Time }

// SystemClock is the clock of the machine.
type SystemClock struct{}

// Now returns the time with its monotonic reading.
func (SystemClock) Now() time.Time { return time.Now() }

// Device is where the stages of partitions run.
type Device interface {
	Name() string
	// Slots is the number of stages that run at the same time, at least 1. It never changes.
	Slots() int
}

// Stage is one step of a job or a partition.
type Stage struct {
	Name  string
	Needs host.Needs
	// Run does the work. It may return early when ctx ends, and must leave nothing running behind.
	Run func(ctx context.Context) error
}

// Plan is what a job needs once it is prepared.
type Plan struct {
	Partitions int
	Device     Device // one of the scheduler's
	// Needs is reserved before the first partition and held to the job's end: whatever a partition keeps
	// between its stages. Partitions run one at a time, so it is that of one partition.
	Needs host.Needs
	// Stage is the most that any single stage needs beyond Needs.
	Stage host.Needs
	// First are stages of the whole job that run on the device before the first partition.
	First []Stage
}

// Partition is one partition under way. All calls come from one goroutine.
type Partition interface {
	// Next returns the stage to run now; nil when the partition's result is there. It is called again
	// only after that stage succeeded, so it may decide by what the stage found.
	Next() *Stage
	// Close gives back what the partition holds, whatever has run.
	Close()
}

// Job is what a caller wants done. All functions are called from the goroutine of Run.
type Job struct {
	Name    string  // for the timeline
	Op      string  // the operation that errors name, as "engine.Prove"
	Prepare []Stage // of the whole job, at the desk, before the plan is known
	Plan    func() (Plan, error)
	// Begin makes partition index ready. It must be quick: work belongs into stages.
	Begin func(index int) (Partition, error)
	// Deliver is called for each partition in order, after its Close and before the next Begin.
	Deliver func(index int) error
	// Observe is told each stage that ended; may be nil.
	Observe func(Entry)
}
