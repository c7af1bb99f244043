package sched

import (
	"cmp"
	"slices"
)

// hostSlots is how many host stages of batches run at once: one that takes all threads, and a short one beside it.
const hostSlots = 2

// lane lets so many stages run at once, of those that are ready the first in order. It belongs to the scheduler's mutex.
type lane struct {
	slots int
	busy  int
	heavy int      // of these, stages that keep several threads busy
	ready []*ready // first to go first
	kept  *batch   // has the next turn, whoever else is ready
}

// lanes are a device's own.
type lanes struct{ copy, compute lane }

// ready is a stage of a batch whose turn in its lane has come.
type ready struct {
	batch *batch
	stage int
}

// heavy is 1 for a stage that keeps several threads busy, else 0.
func (r *ready) heavy() int {
	if r.batch.stages[r.stage].Needs.Threads > 1 {
		return 1
	}
	return 0
}

// leave gives back the slot of a stage that take took.
func (l *lane) leave(r *ready) {
	l.busy--
	l.heavy -= r.heavy()
}

// before orders what waits for a lane: the oldest job first, and of one job the first batch. Priorities will be one
// more comparison.
func (a *ready) before(b *ready) int {
	return cmp.Or(cmp.Compare(a.batch.run.id, b.batch.run.id), cmp.Compare(a.batch.number, b.batch.number))
}

// offer puts a stage into the queue.
func (l *lane) offer(r *ready) {
	at, _ := slices.BinarySearchFunc(l.ready, r, (*ready).before)
	l.ready = slices.Insert(l.ready, at, r)
}

// take takes the stage that may start now and a slot for it; nil where none may.
func (l *lane) take() *ready {
	if l.busy >= l.slots {
		return nil
	}
	for i, r := range l.ready {
		// Two stages that could each use all threads would take twice as long, and the first in order would end last.
		heavy := r.heavy()
		if (l.kept == nil || l.kept == r.batch) && (heavy == 0 || l.heavy == 0) {
			l.ready = slices.Delete(l.ready, i, i+1)
			l.busy++
			l.heavy += heavy
			l.kept = nil
			return r
		}
	}
	return nil
}

// withdraw takes back what a job has in the queue, and its hold on the lane.
func (l *lane) withdraw(r *run) {
	l.ready = slices.DeleteFunc(l.ready, func(x *ready) bool { return x.batch.run == r })
	if l.kept != nil && l.kept.run == r {
		l.kept = nil
	}
}
