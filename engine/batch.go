package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/sched"
	"github.com/sealc2/sealc2/engine/status"
)

// batch is partitions that a backend proves together: inputs, the backend's stages, assemble, verify. A partition whose proof does not
// verify begins once more.
type batch struct {
	*proof
	device  *device
	plan    groth16.Plan
	first   int
	parts   []part
	arena   *host.Arena
	backend groth16.Batch
	left    int // partitions whose sums are not assembled yet; under closing

	closing sync.Mutex
	reading sync.Mutex // of failed, and of what parts say of their rows
	failed  error      // what a stage lacked memory with, or one of the whole batch lost the device with: all partitions begin once more
}

// part is one partition of a batch.
type part struct {
	public []fr.Element
	inputs *circuit.Inputs // from "inputs" to "expand"
	proof  groth16.Proof

	read   bool // its rows were read for the last time, and their owner may have been told
	redone bool // it begins once more, and reads them again
}

// begin starts partitions [first, first+count) on a device.
func (p *proof) begin(device *device, first, count int) (_ sched.Batch, err error) {
	w := p.work
	b := &batch{proof: p, device: device, first: first, parts: make([]part, count), left: count}
	// What was admitted is begun, unless the device has less memory since; more is for jobs that reserve it.
	b.plan = p.planned[device].plan
	if device.planBytes() < p.planned[device].bytes {
		if b.plan, err = w.values.plan(device.backend, w.partitions); err != nil {
			return nil, err
		}
	}
	if count > b.plan.Batch {
		return scattered(count), nil
	}
	if b.arena, err = host.NewArenaNear(b.plan.HostBytes, device.node); err != nil {
		return nil, err
	}
	if b.backend, err = w.values.begin(b); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// scattered is as many partitions as no longer fit a device together, since it has less memory than when the job was planned: each begins once
// more, by itself.
type scattered int

func (s scattered) Stages() (all []host.Stage) {
	for k := range int(s) {
		all = append(all, host.Stage{Name: "plan", Partition: k, Needs: host.Needs{Threads: 1}, Run: func(context.Context) error { return sched.ErrAlone }})
	}
	return all
}

func (scattered) Close() {}

// Stages are those of the backend, with each partition's inputs before its expand, and its proof put together and verified
// behind the last one.
func (b *batch) Stages() (all []host.Stage) {
	given := b.backend.Stages()
	place := make([]int, len(given)) // in all
	last := make([]int, len(b.parts))
	read := make([]int, len(b.parts)) // the last stage that reads a partition's rows
	for i, s := range given {
		for k := range last {
			if s.Partition == k || s.Partition == host.WholeBatch {
				last[k] = i
				if s.Name == "evaluate" || s.Rereads {
					read[k] = i
				}
			}
		}
	}
	for i, s := range given {
		after := make([]int, 0, len(s.After)+1)
		for _, earlier := range s.After {
			after = append(after, place[earlier])
		}
		k := s.Partition
		switch s.Name {
		case "expand":
			after = append(after, len(all))
			// With as many threads as expand, so that a partition gets through both before the next one begins.
			all = append(all, host.Stage{Name: "inputs", Partition: k, Lane: s.Lane, Keep: s.Keep, Needs: s.Needs, Run: func(context.Context) error { return b.inputs(k) }})
			s.Run = b.expand(k, s.Run)
		case "evaluate":
			s.Run = b.evaluate(k, s.Run)
		}
		if k >= 0 && read[k] == i {
			s.Run = b.readRows(k, s.Run)
		}
		if len(b.parts) == 1 {
			s.Partition = 0
		}
		s.Run = b.onceMore(s.Partition, s.Run)
		s.After = after
		place[i] = len(all)
		all = append(all, s)
		for k := range last {
			if last[k] == i {
				all = append(all,
					host.Stage{Name: "assemble", Partition: k, After: []int{place[i]}, Needs: host.Needs{Threads: 1}, Run: func(context.Context) error { return b.assemble(k) }},
					host.Stage{Name: "verify", Partition: k, After: []int{len(all)}, Needs: host.Needs{Threads: 1}, Run: func(context.Context) error { return b.verify(k) }})
			}
		}
	}
	return all
}

// Close gives back the backend's batch and its memory.
func (b *batch) Close() {
	b.closing.Lock()
	defer b.closing.Unlock()
	if b.backend != nil {
		b.backend.Close()
		b.backend = nil
	}
	if b.arena != nil {
		b.arena.Close()
		b.arena = nil
	}
}

// inputs derives a partition's public inputs and lays out the circuit's.
func (b *batch) inputs(k int) (err error) {
	q := &b.parts[k]
	if q.public, err = b.work.public(b.first + k); err != nil {
		return err
	}
	q.inputs, err = b.work.values.inputs(b.first + k)
	return err
}

// expand lets go of the inputs, and compares what the circuit computed from them with what follows from the statement, which the
// check does too where there is one.
func (b *batch) expand(k int, run func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		err := run(ctx)
		b.parts[k].inputs = nil
		if err != nil {
			return err
		}
		return samePublic("engine.Expand", b.parts[k].public, b.backend.Inputs(k))
	}
}

func (b *batch) evaluate(k int, run func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := run(ctx); err != nil {
			return status.Place(err, fmt.Sprintf("partition %d", b.first+k))
		}
		return nil
	}
}

// readRows tells the owner of a partition's rows, behind the stage that reads them last, that they may go.
func (b *batch) readRows(k int, run func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := run(ctx); err != nil || b.work.evaluated == nil {
			return err
		}
		q := &b.parts[k]
		b.reading.Lock()
		tell := !q.redone
		q.read = true
		b.reading.Unlock()
		if tell {
			b.work.evaluated()
		}
		return nil
	}
}

// mayRedo says whether a partition's rows are still there to begin it once more, and holds on to them.
func (b *batch) mayRedo(k int) bool {
	b.reading.Lock()
	defer b.reading.Unlock()
	q := &b.parts[k]
	if q.read && b.work.evaluated != nil {
		return false
	}
	q.redone = true
	return true
}

// shrinkLimit bounds how often a partition begins once more for lack of memory.
const shrinkLimit = 3

// onceMore lets a partition begin once more where its device was lost (afterLoss), and those of a batch, by a smaller plan, where other programs have taken memory that this one counted on. All of
// them, since a backend proves those of a batch together: the stages that are left do nothing. k is the stage's partition.
func (b *batch) onceMore(k int, run func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if over, err := b.over(k); over {
			return err
		}
		err := run(ctx)
		switch kind := status.KindOf(err); {
		case ctx.Err() != nil:
			return err
		case kind == status.NoDevice:
			return b.afterLoss(k, err)
		case kind != status.NoMemory:
			return err
		}
		device, ok := b.device.backend.(groth16.Shrinker)
		if !ok || b.shrink(b.first+max(k, 0)) > shrinkLimit || !device.Shrink(ctx, err) {
			return err
		}
		b.resize(b.device)
		b.reading.Lock()
		b.failed = err
		b.reading.Unlock()
		left := b.leave(k, err)
		if left == nil || errors.Is(left, sched.ErrAlone) {
			b.log("warn", "partition %d: %v; trying again with less", b.first+max(k, 0), err)
		}
		return left
	}
}

// over says whether a partition's stage has nothing to do any more, and what it ends with.
func (b *batch) over(k int) (bool, error) {
	b.reading.Lock()
	err := b.failed
	b.reading.Unlock()
	switch {
	case err == nil:
		return false, nil
	case status.KindOf(err) == status.NoDevice:
		return true, b.afterLoss(k, err)
	}
	return true, b.leave(k, err)
}

// leave is what a stage of a batch that lacks memory ends with; those of the whole batch leave it to its partitions'.
func (b *batch) leave(k int, err error) error {
	switch {
	case k == host.WholeBatch:
		return nil
	case b.mayRedo(k):
		return sched.ErrAlone
	}
	return err
}

// assemble puts a proof together; behind the last one the backend's memory is let go of.
func (b *batch) assemble(k int) error {
	if over, err := b.over(k); over {
		return err
	}
	sums, err := b.backend.Sums(k)
	if err != nil {
		return err
	}
	var r, s fr.Element
	if w := b.work; w.r != nil {
		r, s = w.r[b.first+k], w.s[b.first+k]
	} else if r, s, err = groth16.Blinding(); err != nil {
		return err
	}
	b.parts[k].proof = groth16.Assemble(b.work.srs.VerifyingKey(), sums, &r, &s)
	// Expand saw these agree: by now a difference is as good as a proof that does not verify.
	if err := samePublic("engine.Assemble", b.parts[k].public, b.backend.Inputs(k)); err != nil {
		return b.again(k, err)
	}
	b.closing.Lock()
	b.left--
	last := b.left == 0
	b.closing.Unlock()
	if last {
		b.Close()
	}
	return nil
}

// verify checks a proof against the public inputs that follow from the statement.
func (b *batch) verify(k int) error {
	ok, err := groth16.Verify(b.work.key, &b.parts[k].proof, b.parts[k].public)
	if err != nil {
		return err
	}
	if !ok {
		return b.again(k, nil)
	}
	b.finish(b.first+k, &b.parts[k].proof)
	return nil
}

// afterLoss lets a partition begin once more, on another device where there is one, after an error of the device: the hardware's, or a context that is
// made anew. A stage of the whole batch leaves that to its partitions'. It is one attempt, whichever of a partition's stages notice.
func (b *batch) afterLoss(k int, err error) error {
	if k == host.WholeBatch {
		b.reading.Lock()
		defer b.reading.Unlock()
		b.failed = err
		return nil
	}
	index := b.first + k
	b.reading.Lock()
	redone := b.parts[k].redone
	b.reading.Unlock()
	if redone { // stages of two lanes may both find it lost
		return sched.ErrAgain
	}
	if b.attempt(index) >= b.work.attempts || !b.mayRedo(k) {
		return err
	}
	b.log("warn", "partition %d: %s: %v; trying again", index, b.device.name, err)
	return sched.ErrAgain
}

// again lets a partition begin once more, or gives up with SelfCheck after the last attempt.
func (b *batch) again(k int, cause error) error {
	what := "a proof that does not verify though every row of the circuit holds"
	if cause != nil {
		what = "other public inputs than before: " + cause.Error()
	}
	index := b.first + k
	attempt := b.attempt(index)
	if attempt < b.work.attempts {
		b.log("warn", "partition %d: %s gave %s; trying again", index, b.device.name, what)
		return sched.ErrAgain
	}
	return status.New(status.SelfCheck, "engine.Verify", fmt.Sprintf("partition %d on %s", index, b.device.name),
		"a proof that verifies under "+b.work.keyName,
		fmt.Sprintf("%s, in %d of %d attempts: parameters of another circuit, or failing hardware", what, attempt, b.work.attempts))
}
