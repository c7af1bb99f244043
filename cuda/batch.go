package cuda

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/cuda/msm"
	"github.com/sealc2/sealc2/cuda/ntt"
	"github.com/sealc2/sealc2/cuda/rows"
	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
)

// values is where a partition's values come from: a program and its inputs, or vectors made elsewhere.
type values interface {
	// expand makes the witness, in memory from the arena.
	expand(ctx context.Context, p *partition) error
	// upload copies the witness to the partition's own block, and what stays on the device between partitions to where it stays.
	upload(ctx context.Context, p *partition) error
	// check has checked every row when it returns, and evaluated them where the partition has three vectors for them.
	check(ctx context.Context, p *partition) error
	// fill evaluates some of the vectors, the others being 0.
	fill(ctx context.Context, p *partition, to rows.Vectors) error
	// publicInputs are the inputs with the leading one.
	publicInputs() []fr.Element
	// sections are the variables of a block other than H.
	sections(p *partition, b groth16.Block) []msm.Section
}

// batch is partitions under way on the device.
type batch struct {
	backend *Backend
	plan    *plan // shared: not written
	srs     groth16.SRS
	arena   *host.Arena
	mark    int64
	parts   []*partition
	feeder  *feeder // nil where nothing comes up in pieces

	// mu guards what the stages of several lanes take and Close gives back.
	mu         sync.Mutex
	session    *session // that all device memory lies in; nil before the first upload
	pins       []*resident
	hostBlocks []*hostBlock
	points     [groth16.BlockCount]*driver.Pinned // of blocks that come up from pinned memory
	vectorsAt  *driver.Pinned                     // of hosted quotients
	work       *driver.Arena
	closed     bool

	transforms *ntt.Transforms
	hosted     *ntt.Hosted // where the plan has one vector
}

// partition is one proof of a batch.
type partition struct {
	*batch
	values values
	own    *driver.Arena
	sums   groth16.Sums
	known  *[groth16.BlockCount]msm.Plan // of an assignment whose kinds are known; else those of the plan
	left   int                           // blocks not summed
}

// stageList collects stages.
type stageList struct {
	batch *batch
	all   []host.Stage
}

// add appends a stage and returns its number.
func (l *stageList) add(name string, partition int, lane host.Lane, keep bool, after []int, run func(context.Context) error) int {
	b, ran := l.batch, false
	threads := b.backend.threads
	if lane == host.LaneDevice {
		threads = 1
	}
	op := "cuda." + name
	l.all = append(l.all, host.Stage{Name: name, Partition: partition, Lane: lane, Keep: keep, After: after, Needs: host.Needs{Threads: threads},
		Run: func(ctx context.Context) (err error) {
			defer status.Recover(op, &err)
			status.Check(!ran && !b.isClosed(), op, "stages each once, before Close")
			ran = true
			if err = run(ctx); err != nil && lane == host.LaneDevice && b.feeder != nil {
				b.feeder.stop() // the lane is for other batches now
			}
			return err
		}})
	return len(l.all) - 1
}

// blockNames are what stages call the blocks.
var blockNames = [groth16.BlockCount]string{"h", "l", "a", "b1", "b2"}

// Stages lists the steps. Points that are to be resident come up behind the first partition's witness, beside what is computed.
func (b *batch) Stages() []host.Stage {
	l := &stageList{batch: b}
	var loaded [groth16.BlockCount][]int
	for k, p := range b.parts {
		last := k == len(b.parts)-1
		expanded := l.add("expand", k, host.LaneHost, false, nil, func(ctx context.Context) error { return p.values.expand(ctx, p) })
		uploaded := l.add("upload", k, host.LaneCopy, false, []int{expanded}, p.upload)
		ready := []int{uploaded}
		if k == 0 {
			if b.plan.vectors == 1 {
				ready = append(ready, l.add("pin_vectors", host.WholeBatch, host.LaneCopy, false, []int{uploaded}, b.pinVectors))
			}
			for block := range groth16.BlockCount {
				if !b.plan.blocks[block].resident {
					ready = append(ready, l.add("pin_"+blockNames[block], host.WholeBatch, host.LaneCopy, false, []int{uploaded}, func(ctx context.Context) error {
						return b.pinPoints(ctx, block)
					}))
				} else {
					loaded[block] = []int{l.add("load_"+blockNames[block], host.WholeBatch, host.LaneCopy, false, []int{uploaded}, func(ctx context.Context) error {
						return b.load(ctx, block)
					})}
				}
			}
		}
		l.add("evaluate", k, host.LaneDevice, true, ready, p.evaluate)
		divided := l.add("quotient", k, host.LaneDevice, true, nil, p.quotient)
		l.all[divided].Rereads = b.plan.rereads()
		l.add("msm_h", k, host.LaneDevice, true, loaded[groth16.BlockH], func(ctx context.Context) error { return b.sum(ctx, groth16.BlockH, k, last) })
	}
	for block := groth16.BlockL; block < groth16.BlockCount; block++ {
		if b.plan.batch == 1 { // else sums are planned for a piece at a time, also in a batch of one
			l.add("msm_"+blockNames[block], 0, host.LaneDevice, block < groth16.BlockB2, loaded[block], func(ctx context.Context) error {
				return b.sum(ctx, block, 0, true)
			})
			continue
		}
		l.add("msm_"+blockNames[block], host.WholeBatch, host.LaneDevice, block < groth16.BlockB2, loaded[block], func(ctx context.Context) error {
			return b.sumAll(ctx, block)
		})
	}
	return l.all
}

func (b *batch) isClosed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

// Inputs are a partition's public inputs with the leading one.
func (b *batch) Inputs(k int) []fr.Element { return b.parts[k].values.publicInputs() }

// Sums returns a partition's result after its last stage. Errors: Internal before that.
func (b *batch) Sums(k int) (*groth16.Sums, error) {
	if left := b.parts[k].left; left != 0 {
		return nil, status.New(status.Internal, "cuda.Sums", fmt.Sprintf("partition %d of a batch", k), "all stages done", fmt.Sprintf("%d sums missing", left))
	}
	return &b.parts[k].sums, nil
}

// Close gives the device's memory and the arena back. The sums stay valid.
func (b *batch) Close() {
	b.mu.Lock()
	over, mine := b.closed, b.session
	b.closed = true
	b.mu.Unlock()
	if over {
		return
	}
	if b.feeder != nil {
		b.feeder.stop()
	}
	if mine != nil {
		// Where the session is gone, so is what it held.
		err := b.backend.owner.do(context.Background(), copying, "cuda.Close", func(_ context.Context, s *session) error {
			if s != mine {
				return nil
			}
			return b.giveBack(s)
		})
		if err != nil && status.KindOf(err) != status.NoDevice {
			b.backend.owner.config.log("warn", "device %s: %v", b.backend.name, err)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.arena != nil { // none where only parameters are brought up
		b.arena.Release(b.mark)
	}
	b.pins, b.work, b.hostBlocks, b.hosted = nil, nil, nil, nil
	for _, p := range b.parts {
		p.own = nil
	}
}

// giveBack gives back what the batch has of its session's, in which nothing of it is queued. It goes on after errors.
func (b *batch) giveBack(s *session) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []error
	for _, r := range b.pins {
		s.memory.unpin(r)
	}
	for _, p := range b.parts {
		if p.own != nil {
			s.memory.release(p.own)
		}
	}
	if b.work != nil {
		s.memory.release(b.work)
	}
	if b.hosted != nil {
		all = append(all, s.dropHosted(b.hosted))
	}
	for _, block := range b.hostBlocks {
		all = append(all, s.host.let(block))
	}
	return errors.Join(all...)
}

// do lets a lane run something in the batch's session. Where that is gone, the error has what it died of, and is made here: the lane
// would take it for a death of the session that it has now.
func (b *batch) do(ctx context.Context, lane laneID, op string, run func(ctx context.Context, s *session) error) error {
	var gone *session
	err := b.backend.owner.do(ctx, lane, op, func(ctx context.Context, s *session) error {
		b.mu.Lock()
		if b.session == nil {
			b.session = s
		}
		mine := b.session
		b.mu.Unlock()
		if s != mine {
			gone = mine
			return nil
		}
		return run(ctx, s)
	})
	if gone != nil {
		return gone.gone()
	}
	return err
}

// pin remembers what Close, or unpin, lets go of.
func (b *batch) pin(r *resident) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pins = append(b.pins, r)
}

// unpin lets go of a resident that the batch has pinned.
func (b *batch) unpin(s *session, r *resident) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.pins, r); i >= 0 {
		b.pins = slices.Delete(b.pins, i, i+1)
		s.memory.unpin(r)
	}
}

// resident pins what is resident under a key, if need be once another batch has filled it, and lets fill make it where it is not, in so many bytes.
func (b *batch) resident(ctx context.Context, op string, key any, bytes int64, fill func(ctx context.Context, r *resident) error) (r *resident, err error) {
	fresh := false
	for r == nil {
		var filling <-chan struct{}
		err = b.do(ctx, copying, op, func(_ context.Context, s *session) (err error) {
			if r, filling = s.memory.find(key); filling != nil {
				return nil
			}
			if r == nil {
				fresh = true
				if r, err = s.memory.keep(key, bytes); err != nil {
					return err
				}
			}
			b.pin(r)
			return nil
		})
		if err == nil && r == nil {
			err = wait(ctx, op, filling)
		}
		if err != nil {
			return nil, err
		}
	}
	if !fresh {
		return r, nil
	}
	defer r.end()
	err = fill(ctx, r)
	// After an error it is unmapped. That it cannot be is said in the log: the error that led there goes first.
	done := b.do(context.WithoutCancel(ctx), copying, op, func(_ context.Context, s *session) error {
		if err == nil {
			s.memory.fill(r, nil)
			return nil
		}
		b.unpin(s, r)
		return s.memory.drop(r)
	})
	if err == nil {
		err = done
	} else if done != nil {
		b.backend.owner.config.log("warn", "device %s: %v", b.backend.name, done)
	}
	return r, err
}

// upload brings everything up that the partition needs before its points.
func (p *partition) upload(ctx context.Context) error {
	if p.feeder != nil {
		if err := p.feeder.prepare(ctx); err != nil {
			return err
		}
	}
	err := p.do(ctx, copying, "cuda.upload", func(_ context.Context, s *session) (err error) {
		own, err := s.memory.hold(p.plan.own.bytes)
		p.mu.Lock()
		p.own = own
		p.mu.Unlock()
		return err
	})
	if err != nil {
		return err
	}
	return p.values.upload(ctx, p)
}

// at is an address in the partition's own block, and in is one in the workspace.
func (p *partition) at(offset int64) driver.Ptr { return p.own.Base().Add(offset) }
func (b *batch) in(offset int64) driver.Ptr     { return b.work.Base().Add(offset) }

// vectors are where rows lie; c is 0 where there are but two, and a too where there is but one.
func (p *partition) vectors() (v rows.Vectors) {
	switch w := &p.plan.work; p.plan.vectors {
	case 0:
		o := &p.plan.own
		return rows.Vectors{A: p.at(o.rows[0]), B: p.at(o.rows[1]), C: p.at(o.rows[2])}
	case 1:
		return rows.Vectors{B: p.in(w.b)}
	case 2:
		return rows.Vectors{A: p.in(w.a), B: p.in(w.b)}
	default:
		return rows.Vectors{A: p.in(w.a), B: p.in(w.b), C: p.in(w.c)}
	}
}

// checked are the vectors that rows fill while they are checked: none where there is no room for all at once.
func (p *partition) checked() rows.Vectors {
	if p.plan.vectors == 1 || p.plan.vectors == 2 {
		return rows.Vectors{}
	}
	return p.vectors()
}

// evaluate fills the vectors of rows and has checked every row when it returns.
func (p *partition) evaluate(ctx context.Context) error {
	err := p.do(ctx, computing, "cuda.evaluate", func(ctx context.Context, s *session) (err error) {
		if p.work == nil {
			work, err := s.memory.hold(p.plan.work.bytes)
			p.mu.Lock()
			p.work = work
			p.mu.Unlock()
			if err != nil {
				return err
			}
		}
		if p.transforms == nil {
			return s.useRoots(ctx, p.batch)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if p.feeder != nil {
		if err := p.feeder.start(ctx); err != nil {
			return err
		}
	}
	return p.settled(p.values.check(ctx, p))
}

// settled waits, after an error, for what is still queued in the workspace: where the other lane failed, this one has not waited.
func (b *batch) settled(err error) error {
	if err != nil {
		_ = b.do(context.Background(), computing, "cuda.settle", func(_ context.Context, s *session) error { return s.drain(computing) })
	}
	return err
}

// quotient makes h, in the place of b.
func (p *partition) quotient(ctx context.Context) error {
	return p.settled(p.divide(ctx))
}

// quotientStep is rows filled, and what is queued behind them.
type quotientStep struct {
	fill  rows.Vectors
	queue func(s *driver.Stream) error
}

func (p *partition) divide(ctx context.Context) error {
	v, log := p.vectors(), p.plan.shape.log
	var steps []quotientStep
	switch p.plan.vectors {
	case 1:
		if err := p.useHosted(ctx); err != nil {
			return err
		}
		h := p.hosted
		steps = []quotientStep{
			{rows.Vectors{C: v.B}, func(*driver.Stream) error { return h.TakeC() }},
			{rows.Vectors{A: v.B}, func(*driver.Stream) error { return h.TakeA() }},
			{rows.Vectors{B: v.B}, func(*driver.Stream) error { return h.Finish() }},
		}
	case 2:
		steps = []quotientStep{
			{rows.Vectors{A: v.A}, func(s *driver.Stream) error { return p.transforms.CosetValues(s, v.A, 0, log) }},
			{rows.Vectors{B: v.B}, func(s *driver.Stream) error { return p.transforms.CosetValues(s, v.B, v.A, log) }},
			{rows.Vectors{C: v.A}, func(s *driver.Stream) error { return p.transforms.Divide(s, v.B, v.A, log) }},
		}
	default:
		steps = []quotientStep{{rows.Vectors{}, func(s *driver.Stream) error { return p.transforms.Quotient(s, v.A, v.B, v.C, log) }}}
	}
	for i, step := range steps {
		if step.fill != (rows.Vectors{}) {
			if err := p.values.fill(ctx, p, step.fill); err != nil {
				return err
			}
		}
		err := p.do(ctx, computing, "cuda.quotient", func(ctx context.Context, s *session) error {
			if err := step.queue(s.compute); err != nil || i < len(steps)-1 {
				return err
			}
			if err := s.compute.Synchronize(ctx); err != nil || p.plan.vectors != 1 {
				return err
			}
			// The streams beside it have nothing left by now; asked, they let go of the host memory.
			return errors.Join(s.aside[0].Synchronize(ctx), s.aside[1].Synchronize(ctx))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// useHosted makes the batch's hosted quotient, once it has a workspace.
func (b *batch) useHosted(ctx context.Context) error {
	if b.hosted != nil {
		return nil
	}
	return b.do(ctx, computing, "cuda.quotient", func(_ context.Context, s *session) error {
		h, err := s.newHosted(b.transforms, b.plan.shape.log, b.in(b.plan.work.b), b.in(b.plan.work.hosted), b.vectorsAt.Pointer())
		b.mu.Lock()
		defer b.mu.Unlock()
		b.hosted = h
		return err
	})
}

// whole is the input of a block's sum, without its points.
func (p *partition) whole(b groth16.Block) msm.Input {
	if b != groth16.BlockH {
		return msm.Input{Sections: p.values.sections(p, b)}
	}
	return msm.Input{Scalars: p.vectors().B, Count: p.plan.shape.points[b]}
}

// sumPlan is how the block is summed.
func (p *partition) sumPlan(b groth16.Block) *msm.Plan {
	if p.known != nil {
		return &p.known[b]
	}
	return &p.plan.blocks[b].sum
}

// keepSum books a block's sum, or adds to it that of a piece.
func (p *partition) keepSum(ctx context.Context, s *session, b groth16.Block, r *msm.Running) error {
	if b == groth16.BlockB2 {
		sum, err := r.G2(ctx, s.compute)
		p.sums.B2.AddAssign(&sum)
		return err
	}
	sum, err := r.G1(ctx, s.compute)
	to := [...]*bls.G1Jac{&p.sums.H, &p.sums.L, &p.sums.A, &p.sums.B1}[b]
	to.AddAssign(&sum)
	return err
}

// sum sums up a block for partition k. last says that none of the batch uses the block's points again.
func (b *batch) sum(ctx context.Context, block groth16.Block, k int, last bool) error {
	p, plan := b.parts[k], &b.plan.blocks[block]
	op := "cuda.msm_" + blockNames[block]
	scratch := b.in(b.plan.work.sumAt[min(1, block)])
	whole := p.whole(block)
	if plan.resident {
		return b.do(ctx, computing, op, func(ctx context.Context, s *session) error {
			points := b.pinned(blockKey{b.srs.ID(), block})
			whole.Points = points.block.Base()
			r, err := s.msm.Begin(p.sumPlan(block), scratch)
			if err == nil {
				err = r.Add(ctx, s.compute, whole)
			}
			if err == nil {
				err = p.keepSum(ctx, s, block, r)
			}
			if last {
				b.unpin(s, points)
			}
			if err == nil {
				b.booked(s, p, block)
			}
			return err
		})
	}
	var r *msm.Running
	for i := range plan.pieces {
		points, err := b.feeder.take(ctx)
		if err != nil {
			return err
		}
		err = b.do(ctx, computing, op, func(ctx context.Context, s *session) (err error) {
			if i == 0 {
				if r, err = s.msm.Begin(p.sumPlan(block), scratch); err != nil {
					return err
				}
			}
			if err = r.Add(ctx, s.compute, plan.pieces[i].Input(whole, points)); err != nil {
				return err
			}
			if i == len(plan.pieces)-1 {
				if err = p.keepSum(ctx, s, block, r); err == nil {
					b.booked(s, p, block)
				}
			}
			return err
		})
		if err != nil {
			return err
		}
		b.feeder.give(points)
	}
	if len(plan.pieces) == 0 { // no points, an empty sum
		return b.do(ctx, computing, op, func(_ context.Context, s *session) error { b.booked(s, p, block); return nil })
	}
	return nil
}

// sumAll sums up a block for all partitions, each piece of points for each of them before it gives way.
func (b *batch) sumAll(ctx context.Context, block groth16.Block) error {
	plan := &b.plan.blocks[block]
	if plan.resident {
		for k := range b.parts {
			if err := b.sum(ctx, block, k, k == len(b.parts)-1); err != nil {
				return err
			}
		}
		return nil
	}
	op := "cuda.msm_" + blockNames[block]
	scratch := b.in(b.plan.work.sumAt[1])
	for i := range plan.pieces {
		points, err := b.feeder.take(ctx)
		if err != nil {
			return err
		}
		for _, p := range b.parts {
			err := b.do(ctx, computing, op, func(ctx context.Context, s *session) error {
				r, err := s.msm.Begin(p.sumPlan(block), scratch)
				if err == nil {
					err = r.Add(ctx, s.compute, plan.pieces[i].Input(p.whole(block), points))
				}
				if err == nil {
					err = p.keepSum(ctx, s, block, r)
				}
				return err
			})
			if err != nil {
				return err
			}
		}
		b.feeder.give(points)
	}
	return b.do(ctx, computing, op, func(_ context.Context, s *session) error {
		for _, p := range b.parts {
			b.booked(s, p, block)
		}
		return nil
	})
}

// booked notes that a partition has a block's sum. Behind the last of the batch the workspace is for the next one.
func (b *batch) booked(s *session, p *partition, block groth16.Block) {
	p.left--
	if block != groth16.BlockB2 || p != b.parts[len(b.parts)-1] {
		return
	}
	b.backend.owner.losses.Store(0) // a whole batch went through
	if b.feeder != nil {
		b.feeder.stop()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	s.memory.release(b.work)
	b.work = nil
}

// pinned is a resident that the batch has pinned.
func (b *batch) pinned(key any) *resident {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.pins, func(r *resident) bool { return r.key == key })
	status.Check(i >= 0, "cuda.pinned", "points that were loaded")
	return b.pins[i]
}

// blockSections chooses the variables that have points in a block, as bellperson's prover does: L all aux; A all inputs,
// then aux by density; B inputs and aux by density.
func blockSections(b groth16.Block, s *shape, d *places, inputs, aux msm.Section) []msm.Section {
	switch b {
	case groth16.BlockA:
		aux.Density, aux.Points = d.aAux, s.points[b]-s.inputs
	case groth16.BlockB1, groth16.BlockB2:
		inputs.Density, inputs.Points = d.bInput, d.bInputs
		aux.Density, aux.Points = d.bAux, s.points[b]-d.bInputs
	default:
		return []msm.Section{aux}
	}
	return []msm.Section{inputs, aux}
}

// knownSections is what is known of them before there are values.
func knownSections(b groth16.Block, d *circuit.Density, inputs, aux msm.Known) []msm.Known {
	switch b {
	case groth16.BlockA:
		aux.Density = d.AAux
	case groth16.BlockB1, groth16.BlockB2:
		inputs.Density, aux.Density = d.BInput, d.BAux
	default:
		return []msm.Known{aux}
	}
	return []msm.Known{inputs, aux}
}

// places are the addresses of the bitmaps that say which variables have points, and how many inputs have one in B.
type places struct {
	kinds, aAux, bAux, bInput driver.Ptr
	bInputs                   int
}
