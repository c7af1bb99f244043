package host

import "context"

// Lane is what a stage keeps busy. Stages of one lane of a batch run one after the other; those of different lanes run at
// the same time.
type Lane uint8

// The lanes. A backend on the CPU computes in LaneDevice with all threads; LaneHost is for what runs beside a device.
const (
	LaneHost   Lane = iota // CPU threads
	LaneCopy               // copies to the device
	LaneDevice             // what computes
	LaneCount
)

// String names the lane, for timelines.
func (l Lane) String() string { return [...]string{"host", "copy", "device"}[l] }

// WholeBatch stands for the partition of a stage that serves all of its batch.
const WholeBatch = -1

// Stage is one step of a job, or of a batch of partitions that are proved together.
type Stage struct {
	Name      string
	Partition int // of the batch, from 0; or WholeBatch
	Lane      Lane
	// After are the numbers of stages of the same batch, all smaller than its own, that end before this one starts.
	After []int
	// Keep gives the batch's next stage in the lane the next turn, whoever else is ready.
	Keep  bool
	Needs Needs
	// Rereads says that the stage reads once more what an earlier one of its partition has read, which else nobody does.
	Rereads bool
	// Run does the work. It may return early when ctx ends, and must leave nothing running behind.
	Run func(ctx context.Context) error
}
