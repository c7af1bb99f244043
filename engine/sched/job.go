package sched

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/sealc2/sealc2/engine/host"
)

// Class is what a job is for. A higher class goes first wherever jobs wait for the same thing.
type Class uint8

// The classes, lowest first. A winning proof is wanted within an epoch of 30 seconds, a window's within half an hour; the others
// have days.
const (
	PoRep Class = iota
	SnapDeals
	WindowPoSt
	WinningPoSt
	classCount
)

// String names the class as configurations do.
func (c Class) String() string {
	if c >= classCount {
		return "class " + strconv.Itoa(int(c))
	}
	return [...]string{"porep", "snap-deals", "window-post", "winning-post"}[c]
}

// patience is after what time a job is taken to be due that has no deadline, or a later one: of those the older goes first, and one
// that has a nearer deadline goes before those that came less than patience before it. So the order is a total one, nobody waits
// for ever in his class, and a deadline never makes a job wait longer. It is the length of a proving deadline, 60 epochs.
const patience = 30 * time.Minute

// PriorityOf is the place of a job in the order that holds wherever jobs wait: when it came, and its number among those that came at once.
func PriorityOf(class Class, deadline, came time.Time, serial uint64) host.Priority {
	due := came.Add(patience)
	if !deadline.IsZero() && deadline.Before(due) {
		due = deadline
	}
	return host.Priority{Class: uint8(class), Due: due, Serial: serial}
}

// Clock tells the time; tests bring their own.
type Clock interface{ Now() time.Time }

// SystemClock is the clock of the machine.
type SystemClock struct{}

// Now returns the time with its monotonic reading.
func (SystemClock) Now() time.Time { return time.Now() }

// Device is where the stages of batches run.
type Device interface {
	Name() string
	// Slots is the number of stages that compute at the same time, at least 1. It never changes.
	Slots() int
}

// WholeJob stands for the partition in entries of stages that serve several.
const WholeJob = -1

// ErrAgain, returned or wrapped by a stage of one partition, ends that partition without a result: it begins once more, in a
// batch of its own, and where there are several devices on another one if that is soon free. How often is up to the job.
var ErrAgain = errors.New("the partition is to be proved once more")

// ErrAlone is ErrAgain for a partition that lacked room beside others: from then on its device has one batch of the job at once.
var ErrAlone = fmt.Errorf("%w, alone on its device", ErrAgain)

// Plan is what a job needs once it is prepared.
type Plan struct {
	Partitions int
	Shares     []Share // of the devices that take part, at least one
	// Needs is reserved before the first partition and held to the job's end: whatever its batches keep
	// between their stages, of as many as the shares have at once.
	Needs host.Needs
	// Shared is reserved with it, once for all jobs that have it.
	Shared []host.Shared
	// Stage is the most that any single stage needs beyond Needs.
	Stage host.Needs
	// First are stages of the whole job that run on the first share's device before the first partition.
	First []host.Stage
}

// Share is a device's part in a job.
type Share struct {
	Device Device // one of the scheduler's
	Batch  int    // partitions that it proves together, at most; at least 1
	Ahead  int    // batches that it has at once; at least 1
	Rooms  int    // of them that have room on the device at once, from their first copy to their last stage there; 0: all
}

// Batch is some partitions under way on a device.
type Batch interface {
	// Stages lists the steps; their order is one in which they may run one by one. It is called once.
	Stages() []host.Stage
	// Close gives back what the batch holds, whatever has run.
	Close()
}

// Job is what a caller wants done. All functions are called from the goroutine of Run, but for those of stages of batches.
type Job struct {
	Name     string // for the timeline
	Op       string // the operation that errors name, as "engine.Prove"
	Class    Class
	Deadline time.Time    // orders the jobs of a class; that it passes ends nothing, the context does. Zero: none
	Came     time.Time    // as far as its place among others goes; zero: when Run is called
	Queued   func()       // called when the job is at its desk or has its place in the queue there, at least once unless it fails first; may be nil
	Prepare  []host.Stage // of the whole job, at the desk, before the plan is known
	// Drop lets go of what Prepare made, which then begins once more: a job of a higher class needs the memory. Nil: the
	// job fails with NoMemory instead.
	Drop func()
	Plan func() (Plan, error)
	// Begin makes partitions [first, first+count) ready on a share's device. It must be quick: work belongs into stages.
	Begin func(share, first, count int) (Batch, error)
	// Deliver is called for each partition, in order.
	Deliver func(index int) error
	// Observe is told each stage that ended; may be nil.
	Observe func(Entry)
}
