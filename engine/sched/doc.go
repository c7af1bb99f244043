// Package sched runs jobs: it admits them under the budget, deals their partitions out to devices in batches, runs the
// stages of each batch in lanes, and keeps the timeline.
//
// It knows no mathematics. A stage is a name, a lane, needs and a function; clock and devices are interfaces, so
// that the whole package runs in a simulator. Its rules:
//
//   - Jobs are admitted whole or not at all, first in first out. One job at a time stands at the desk: it
//     runs its Prepare stages (their bytes are reserved before each and kept to the job's end), states its
//     plan, and waits until that fits too. Only the job at the desk ever holds a part while it waits for
//     the rest, so jobs cannot block each other for ever.
//   - A device has a lane for what it computes and one for copies; all devices share the lane of the host. A stage is ready when
//     those that it names have ended, and those before it in its lane. Of the batches whose stages are
//     ready for a lane, that of the oldest job goes first, also ahead of the one whose stage has just ended, unless
//     that one keeps the lane.
//   - Of each job a device has a few batches at once, so that the host's part of the next one overlaps the device's of this one.
//   - Results are delivered in the order of the partitions.
//   - The first failure ends its job and nothing else. A panic is a failure of kind Internal. The end of
//     the caller's context takes effect at the next stage border, or earlier where the stage looks at it.
//
// engine is its only caller.
package sched
