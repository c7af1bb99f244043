// Package sched runs jobs: it admits them under the budget, takes their partitions one after the other to
// a device, stage by stage, and keeps the timeline.
//
// It knows no mathematics. A stage is a name, needs and a function; clock and devices are interfaces, so
// that the whole package runs in a simulator. Its rules:
//
//   - Jobs are admitted whole or not at all, first in first out. One job at a time stands at the desk: it
//     runs its Prepare stages (their bytes are reserved before each and kept to the job's end), states its
//     plan, and waits until that fits too. Only the job at the desk ever holds a part while it waits for
//     the rest, so jobs cannot block each other for ever.
//   - A device runs at most Slots stages at a time; of the jobs that wait for it, the oldest goes first,
//     also ahead of the job whose stage has just ended.
//   - A partition's result is delivered before the next partition begins, so results come in order.
//   - The first failure ends its job and nothing else. A panic is a failure of kind Internal. The end of
//     the caller's context takes effect at the next stage border, or earlier where the stage looks at it.
//
// engine is its only caller.
package sched
