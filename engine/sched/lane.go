package sched

import (
	"cmp"

	"github.com/sealc2/sealc2/engine/host"
)

// hostSlots is how many host stages of batches run at once where nobody configured it: one that takes all threads, and a short
// one beside it.
const hostSlots = 2

// lane lets so many stages run at once, of those that are ready the first in order. It belongs to the scheduler's mutex.
//
// A batch that keeps the lane has the next turn, whoever else is ready, and of whatever class: between the stages of a batch
// that keeps it a device's memory is full of what the next one needs, and nobody else could start there. A device that high classes must not
// wait for has a region of its memory set apart and offers it as a Device of its own, whose lanes nobody else keeps.
type lane struct {
	kind  host.Lane
	slots int
	busy  int
	heavy int              // of these, stages that keep several threads busy
	ready [2]queue[*ready] // light stages and heavy ones
	kept  *batch           // has the next turn
	owed  *run             // is between two batches: meanwhile nobody of a lower class starts
}

func newLane(kind host.Lane, slots int) lane {
	l := lane{kind: kind, slots: max(1, slots)}
	for i := range l.ready {
		l.ready[i] = newQueue((*ready).before)
	}
	return l
}

// lanes are a device's own, with the rights to it.
type lanes struct {
	copy, compute lane
	rights        [rightCount]rightState
}

// ready is a stage of a batch whose turn in its lane has come.
type ready struct {
	batch  *batch
	stage  int
	weight int // 1 for a stage that keeps several threads busy, else 0
}

func newReady(b *batch, stage int) *ready {
	r := &ready{batch: b, stage: stage}
	if b.stages[stage].Needs.Threads > 1 {
		r.weight = 1
	}
	return r
}

// before orders what waits for a lane: by the priority of the job, and of one job the first batch.
func (a *ready) before(b *ready) bool { return a.batch.before(b.batch) }

// before orders batches.
func (b *batch) before(c *batch) bool {
	return cmp.Or(b.run.priority.Compare(c.run.priority), cmp.Compare(b.number, c.number)) < 0
}

// offer puts a stage into the queue.
func (l *lane) offer(r *ready) { r.batch.places[l.kind] = l.ready[r.weight].push(r) }

// take takes the stage that may start now and a slot for it; nil where none may.
func (l *lane) take() *ready {
	if l.busy >= l.slots {
		return nil
	}
	var place *item[*ready]
	if l.kept != nil {
		place = l.kept.places[l.kind]
	} else {
		for weight := range l.ready {
			// Two stages that could each use all threads would take twice as long, and the first in order would end last.
			if q := &l.ready[weight]; q.len() > 0 && (weight == 0 || l.heavy == 0) && (place == nil || q.first().value.before(place.value)) {
				place = q.first()
			}
		}
	}
	if place == nil || place.value.weight > 0 && l.heavy > 0 {
		return nil
	}
	if l.owed != nil && l.kept == nil && place.value.batch.run.priority.Class < l.owed.priority.Class {
		return nil
	}
	next := place.value
	l.ready[next.weight].remove(place)
	next.batch.places[l.kind] = nil
	l.busy++
	l.heavy += next.weight
	l.kept = nil
	return next
}

// withdraw takes back what a batch has in the queue.
func (l *lane) withdraw(b *batch) {
	if place := b.places[l.kind]; place != nil {
		l.ready[place.value.weight].remove(place)
		b.places[l.kind] = nil
	}
}
