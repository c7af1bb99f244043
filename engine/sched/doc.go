// Package sched runs jobs: it admits them under the budget, deals their partitions out to devices in batches, runs the
// stages of each batch in lanes, and keeps the timeline.
//
// It knows no mathematics. A stage is a name, a lane, needs and a function; clock and devices are interfaces, so
// that the whole package runs in a simulator (sched/simulate). Its rules:
//
//   - Whatever jobs wait for, they wait in one order: class, then deadline, then age (host.Priority). In a class
//     nobody waits for ever.
//   - Jobs are admitted whole or not at all. One job of each class at a time stands at its desk: it
//     runs its Prepare stages (their bytes are reserved before each and kept to the job's end), states its
//     plan, and waits until that fits too. Where jobs at several desks hold what the others want, the last in order
//     gives back what it has and begins once more, so jobs cannot block each other for ever.
//   - A device has a lane for what it computes and one for copies; all devices share the lane of the host. A stage is ready when
//     those that it names have ended, and those before it in its lane. Of the batches whose stages are
//     ready for a lane, the first in order goes first, also ahead of the one whose stage has just ended, unless
//     that one keeps the lane: then nobody else has it, of whatever class, until the batch gives it up or is closed.
//   - Of each job a device has a few batches at once, so that the host's part of the next one overlaps the device's of this one.
//   - A Policy says which rights to its device a batch must have to be under way, to stage and to compute. The default has none.
//   - Results are delivered in the order of the partitions.
//   - The first failure ends its job and nothing else. A panic is a failure of kind Internal. The end of
//     the caller's context takes effect at the next stage border, or earlier where the stage looks at it.
//
// engine is its only caller.
package sched
