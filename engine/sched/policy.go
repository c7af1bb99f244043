package sched

import (
	"fmt"
	"math"
	"strings"

	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
)

// Policy is an interlock rule: when a batch may stage, which is to copy what it needs to its device before it computes, and when
// it may compute there. The stages and the classes are the same under each; only the order differs. A right that others
// have is waited for in the order of the jobs' priorities, and held to the end of what it is for: a higher class goes before all
// that wait, and takes it from nobody. Policies have no state.
type Policy interface {
	// Name is what configurations call it.
	Name() string
	// Workers is how many batches of all jobs a device has under way at once where nobody configured it; 0: as many as the
	// jobs' plans let it have.
	Workers() int
	// background says that a worker is free once the device's part of its batch is over, and not only when all of it is.
	background() bool
	// staging is the right that a batch has from the first to the last copy before it computes.
	staging() right
	// computing is the one that it has from its first stage on the device, or from staging where that is the same right, to its
	// last one there.
	computing() right
}

// right is one to a device, which a batch has for some of its stages.
type right uint8

const (
	workerRight right = iota // to be under way
	memoryRight              // to stage
	computeRight
	rightCount
	noRight = rightCount
)

// rightState is who has a right. It belongs to the scheduler's mutex.
type rightState struct {
	slots, busy int
	waiting     queue[*batch]
}

// Policies are all there are, the default first.
func Policies() []Policy { return []Policy{Reservation{}, Single{}, TwoLock{}, Split{}} }

// PolicyNamed finds a policy; the empty name is the default's. Errors: Caller, with all names.
func PolicyNamed(name string) (Policy, error) {
	var names []string
	for _, p := range Policies() {
		if name == p.Name() || name == "" {
			return p, nil
		}
		names = append(names, p.Name())
	}
	return nil, status.New(status.Caller, "sched.PolicyNamed", "policy", strings.Join(names, ", "), fmt.Sprintf("%q", name))
}

// newLanes makes the lanes of a device and the rights to it.
func newLanes(d Device, p Policy, workers int) *lanes {
	all := &lanes{copy: newLane(host.LaneCopy, 1), compute: newLane(host.LaneDevice, d.Slots())}
	if workers == 0 {
		workers = p.Workers()
	}
	if workers == 0 {
		workers = math.MaxInt
	}
	for k := range all.rights {
		all.rights[k] = rightState{slots: 1, waiting: newQueue((*batch).before)}
	}
	all.rights[workerRight].slots = workers
	return all
}

// phase is what a stage is to its device.
type phase uint8

const (
	besides   phase = iota // the host's work
	staging                // copies before the first stage that computes
	computing              // all other
	phaseCount
)

// phase tells it of a stage.
func (b *batch) phase(i int) phase {
	switch l := b.stages[i].Lane; {
	case l == host.LaneHost:
		return besides
	case l == host.LaneCopy && i < b.computes:
		return staging
	}
	return computing
}

// permitted says whether a stage whose turn has come may be offered to its lane, and takes the rights that it needs for that. Where
// it may not, the batch waits in the queue of a right, or for room, and is asked again. Rights are taken in the order worker, memory, compute, and memory
// is given up before compute is asked for, so that none waits for another for ever. The caller holds the scheduler's mutex.
func (b *batch) permitted(i int) bool {
	policy := b.run.policy
	if !b.holds[workerRight] && !b.claim(workerRight) {
		return false
	}
	want := policy.computing()
	switch b.phase(i) {
	case besides:
		return true
	case staging:
		if policy.staging() != want && !b.inside {
			want = policy.staging()
		}
	case computing:
		if policy.staging() != want && b.left[staging] > 0 {
			return false
		}
	}
	if want != noRight && !b.holds[want] && !b.claim(want) {
		return false
	}
	if b.takeRoom() {
		return true
	}
	if want == memoryRight {
		// Nothing is tried, and nobody is made to wait for it: the batch stages when it may compute.
		b.inside = true
		b.free(memoryRight)
		return b.permitted(i)
	}
	return false // until a batch of the job leaves the device
}

// claim takes a right where it is free and nobody goes before, or queues up for it.
func (b *batch) claim(k right) bool {
	r := &b.lanes.rights[k]
	switch {
	case b.place != nil: // grant comes back to it
	case r.busy < r.slots && b.fits(k):
		b.have(k)
		return true
	default:
		b.place, b.waitsFor = r.waiting.push(b), k
	}
	return false
}

// have books a right.
func (b *batch) have(k right) {
	r := &b.lanes.rights[k]
	status.Check(r.busy < r.slots && !b.holds[k], op, "a right that is free")
	r.busy++
	b.holds[k] = true
}

// fits says whether there is room for a batch that would compute: who has staged already goes before one that cannot.
func (b *batch) fits(k right) bool { return k != computeRight || b.room || b.run.rooms(b.share) > 0 }

// free gives a right up, and lets those on that it was in the way of.
func (b *batch) free(k right) {
	if !b.holds[k] {
		return
	}
	b.holds[k] = false
	b.lanes.rights[k].busy--
	b.lanes.grant(k)
}

// grant hands a right to those that wait for it and can use it.
func (d *lanes) grant(k right) {
	r := &d.rights[k]
	var without []*batch
	for r.busy < r.slots && r.waiting.len() > 0 {
		b := r.waiting.first().value
		r.waiting.remove(b.place)
		b.place = nil
		if !b.fits(k) {
			without = append(without, b)
			continue
		}
		b.have(k)
		b.offer()
	}
	for _, b := range without {
		b.place = r.waiting.push(b)
	}
}

// takeRoom takes room on the device for the batch, and says whether it has it.
func (b *batch) takeRoom() bool {
	if !b.room && b.run.rooms(b.share) > 0 {
		b.room = true
	}
	return b.room
}

// rooms is for how many more batches of the job there is room on a share's device.
func (r *run) rooms(share int) int {
	s := r.plan.Shares[share]
	n := s.Rooms
	if n == 0 {
		n = math.MaxInt
	}
	for _, b := range r.batches {
		if b.room && b.share == share {
			n--
		}
	}
	return n
}

// settle gives up the rights whose last stage has ended.
func (b *batch) settle() {
	if b.left[staging] > 0 {
		return
	}
	b.free(memoryRight)
	if b.left[computing] > 0 {
		return
	}
	b.vacate()
	if b.run.policy.background() {
		b.free(workerRight)
	}
}

// vacate leaves the device to others.
func (b *batch) vacate() {
	was := b.room
	b.room = false
	b.free(computeRight)
	if was && !b.run.stopped {
		// First who may compute now, and does not wait for room alone.
		b.lanes.grant(computeRight)
		for _, other := range b.run.batches {
			if other.share == b.share {
				other.offer()
			}
		}
	}
}

// giveUp leaves the queue of a right.
func (b *batch) giveUp() {
	if b.place != nil {
		b.lanes.rights[b.waitsFor].waiting.remove(b.place)
		b.place = nil
	}
}

// dismiss gives up all that the batch has: it is closed.
func (b *batch) dismiss() {
	b.giveUp()
	b.vacate()
	for k := range rightCount {
		b.free(k)
	}
	for l := range host.LaneCount {
		lane := b.lane(l)
		if lane.kept == b {
			lane.kept = nil
		}
		b.run.startReady(lane)
	}
}
