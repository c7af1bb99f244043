package msm

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/engine/status"
)

// windowsStruct is Windows of cuda/kernels/msm/sort.cuh.
type windowsStruct struct {
	count, low uint32
	bias       [8]uint32
	window     [maxWindows]struct {
		offset, bits uint16
		bucket       uint32
	}
}

// bucketsStruct is Buckets.
type bucketsStruct struct{ first, count, odd driver.Ptr }

// sectionStruct is Section.
type sectionStruct struct {
	bits, kind, density        driver.Ptr
	count, point, scalar, full uint32
}

// structWindows fills the struct; bias is that of all windows, whichever are in it.
func (r *run) structWindows(windows []window, low int) (w windowsStruct) {
	w.count, w.low, w.bias = uint32(len(windows)), uint32(low), r.bias
	bucket := 0
	for i := range windows {
		w.window[i].offset, w.window[i].bits, w.window[i].bucket = uint16(windows[i].offset), uint16(windows[i].bits), uint32(bucket)
		bucket += windows[i].partitions(low) << low
	}
	return w
}

// begin checks the plan and the scratch memory.
func (m *Summer) begin(p *Plan, scratch driver.Ptr) (*run, error) {
	const op = "msm.Sum"
	if p.target != m.card {
		return nil, status.New(status.Internal, op, "plan", fmt.Sprintf("one for %+v", m.card), fmt.Sprintf("%+v", p.target))
	}
	if scratch%alignment != 0 {
		return nil, status.New(status.Internal, op, "scratch", fmt.Sprintf("an address that is a multiple of %d", alignment), fmt.Sprintf("%#x", scratch))
	}
	return &run{Summer: m, Plan: *p, scratch: scratch}, nil
}

// add adds an input to what is under way.
func (r *run) add(ctx context.Context, s *driver.Stream, in Input) error {
	const op = "msm.Sum"
	if r.added++; r.added > max(1, r.Pieces) {
		return status.New(status.Internal, op, "input", fmt.Sprintf("at most %d, as planned", max(1, r.Pieces)), fmt.Sprintf("number %d", r.added))
	}
	r.ctx, r.stream, r.in = ctx, s, in
	if r.added == 1 && r.merges() {
		// The area's last slots are infinity, for buckets that get nothing in a part.
		each := 2 * r.Curve.elementBytes()
		if err := s.Fill32(r.at(r.Plan.at.pool).Add(each*int64(r.slots+r.area-32)), 0, 32*each/4); err != nil {
			return err
		}
	}
	count := in.Count
	if r.listed() {
		err := s.Fill32(r.at(r.Plan.at.control), 0, controlWords)
		if err != nil {
			return err
		}
		if count, err = r.choose(); err != nil {
			return err
		}
	} else if len(in.Sections) > 0 || count < 0 || count > r.Scalars {
		return status.New(status.Internal, op, "input", fmt.Sprintf("at most %d scalars and no sections, as planned", r.Scalars), fmt.Sprintf("%d and %d", count, len(in.Sections)))
	}
	if count == 0 {
		return r.onesAlone()
	}
	for from := 0; from < count; from += r.part {
		r.n = min(r.part, count-from)
		r.points, r.index, r.choice = in.Points, 0, 0
		r.scalars = in.Scalars
		if r.listed() {
			r.index, r.choice = r.at(r.Plan.at.fieldPoints).Add(int64(from)*4), r.at(r.Plan.at.fieldScalars).Add(int64(from)*4)
			r.scalars = r.base()
		} else {
			r.points, r.scalars = in.Points.Add(int64(from)*r.Curve.PointBytes()), in.Scalars.Add(int64(from)*32)
		}
		if err := r.sumPart(); err != nil {
			return err
		}
	}
	return nil
}

// end folds what is left in the area and returns the parts of the result.
func (r *run) end(ctx context.Context, s *driver.Stream) ([]total, error) {
	r.ctx, r.stream = ctx, s
	err := r.fold()
	return r.result, err
}

// base is the lowest address of sections' scalars, from which their places are counted.
func (r *run) base() driver.Ptr {
	var base driver.Ptr
	for _, s := range r.in.Sections {
		if s.Scalars != 0 && (base == 0 || s.Scalars < base) {
			base = s.Scalars
		}
	}
	return base
}

// choose makes the lists of the sections' ones and field elements and returns the number of the latter. The ones become
// the head of the pairs.
func (r *run) choose() (count int, err error) {
	const op = "msm.Sum"
	points, base := 0, r.base()
	control := r.at(r.Plan.at.control)
	for i, s := range r.in.Sections {
		where := fmt.Sprintf("section %d", i)
		if s.Count < 0 || s.Count > r.Variables || s.Points < 0 || s.Points > s.Count || (s.Density == 0 && s.Points != s.Count) {
			return 0, status.New(status.Internal, op, where, fmt.Sprintf("at most %d variables, and points for no more than these", r.Variables), fmt.Sprintf("%+v", s))
		}
		if s.Count == 0 {
			continue
		}
		c := sectionStruct{bits: s.Bits, kind: s.Kind, density: s.Density, count: uint32(s.Count), point: uint32(points)}
		if s.Full {
			c.full = 1
		}
		if s.Scalars != 0 {
			c.scalar = uint32((s.Scalars - base) / 32)
		}
		if (s.Scalars-base)%32 != 0 || (s.Scalars-base)/32+driver.Ptr(s.Count) > 1<<32-1 {
			return 0, status.New(status.Internal, op, where, "scalars within 128 GiB of the others, a multiple of 32 bytes apart", fmt.Sprintf("%#x and %#x", base, s.Scalars))
		}
		points += s.Points
		blocks := (s.Count + sectionBlock - 1) / sectionBlock
		// Rows of points and of field elements begin at 0 in each section; those of the lists go on.
		if err := r.stream.Fill32(control.Add(4*(controlOnes-2)), 0, 2); err != nil {
			return 0, err
		}
		lists := r.at(r.Plan.at.lists)
		r.args.Reset().Struct(unsafe.Pointer(&c), int(unsafe.Sizeof(c))).Ptr(lists)
		if err := r.launch(r.sort.countWords, blocks, sectionBlock/32, 0); err != nil {
			return 0, err
		}
		r.args.Reset().Ptr(lists).Ptr(0).U32(uint32(blocks)).Ptr(control.Add(4 * (controlOnes - 2)))
		if err := r.launch(r.sort.scanRows, 4, blockFor(blocks), 0); err != nil {
			return 0, err
		}
		r.args.Reset().Struct(unsafe.Pointer(&c), int(unsafe.Sizeof(c))).Ptr(lists).Ptr(r.at(r.Plan.at.pairs)).U32(uint32(r.Ones)).
			Ptr(r.at(r.Plan.at.fieldPoints)).Ptr(r.at(r.Plan.at.fieldScalars)).U32(uint32(r.Scalars)).Ptr(control)
		if err := r.launch(r.sort.writeLists, blocks, sectionBlock/32, 0); err != nil {
			return 0, err
		}
	}
	if points > r.Points {
		return 0, status.New(status.Internal, op, "sections", fmt.Sprintf("at most %d points", r.Points), fmt.Sprint(points))
	}
	words, err := r.control("lists")
	if err != nil {
		return 0, err
	}
	r.ones, count = int(words[controlOnes]), int(words[controlFields])
	r.trace("lists")
	return count, nil
}

// onesAlone sums up the ones where there is no scalar.
func (r *run) onesAlone() error {
	if r.ones == 0 {
		return nil
	}
	r.points = r.in.Points
	if err := r.setOnes(0, r.ones); err != nil {
		return err
	}
	if err := r.rounds(1, r.ones, nil); err != nil {
		return err
	}
	if err := r.gatherOnes(0); err != nil || r.together {
		return err
	}
	return r.fold()
}

func (r *run) buckets() bucketsStruct {
	return bucketsStruct{r.at(r.Plan.at.first), r.at(r.Plan.at.count), r.at(r.Plan.at.odd)}
}

// setOnes makes the ones, whose numbers are the head of the pairs, a bucket.
func (r *run) setOnes(bucket, ones int) error {
	b := r.buckets()
	r.args.Reset().Ptr(r.at(r.Plan.at.pairs)).U32(uint32(ones)).U32(r.number(0)).Struct(unsafe.Pointer(&b), int(unsafe.Sizeof(b))).U32(uint32(bucket))
	return r.launch(r.sort.setOnes, 1, 32, 0)
}

// sumPart adds r.n scalars times points to the result, and the ones once.
func (r *run) sumPart() error {
	all := r.groups()
	for i := range all {
		g := &all[i]
		if err := r.digits(g); err != nil {
			return err
		}
		ones := r.ones
		r.ones = 0 // once
		if err := r.sumGroup(g, ones); err != nil {
			return err
		}
		if !r.together {
			if err := r.fold(); err != nil {
				return err
			}
		}
	}
	r.gathered = r.together
	return nil
}

// digits writes the digits of the group's windows, or of all with the first group.
func (r *run) digits(g *windowGroup) error {
	first, windows := g.first, r.windows[:g.first+len(g.windows)]
	if r.ahead {
		if first > 0 {
			return nil
		}
		windows = r.windows
	}
	w := r.structWindows(windows, g.low)
	r.args.Reset().Ptr(r.scalars).Ptr(r.choice).U32(uint32(r.n)).Struct(unsafe.Pointer(&w), int(unsafe.Sizeof(w))).U32(uint32(first)).Ptr(r.at(r.Plan.at.digits))
	err := r.launch(r.sort.writeDigits, r.spread(r.n, 256*digitItems, 8), 256, 0)
	r.trace("digits")
	return err
}

// sumGroup sorts a group's digits, sums its buckets and copies their sums to the area.
func (r *run) sumGroup(g *windowGroup, ones int) error {
	job := sortJob{windowGroup: g, table: r.structWindows(g.windows, g.low), digits: r.at(r.Plan.at.digits), onePairs: ones / 2}
	if r.ahead {
		job.digits = job.digits.Add(4 * int64(r.n) * int64(g.first))
	}
	buckets := g.buckets
	if ones > 0 {
		// Before the sort, whose first pair takes the place of an odd one.
		if err := r.setOnes(buckets, ones); err != nil {
			return err
		}
		buckets++
	}
	words, err := r.sortGroup(&job)
	if err != nil {
		return err
	}
	r.trace("sort")
	var perRound [maxRounds + 1]int
	for i := range perRound {
		perRound[i] = int(words[controlRounds+i])
	}
	if err := r.rounds(buckets, ones, perRound[:]); err != nil {
		return err
	}
	if err := r.gather(g); err != nil {
		return err
	}
	if ones > 0 {
		if err := r.gatherOnes(g.buckets); err != nil {
			return err
		}
	}
	r.trace("collect")
	return nil
}

// rounds sums up the buckets. perRound has the pairs of each round from 1, without those of the ones.
func (r *run) rounds(buckets, ones int, perRound []int) error {
	at, b := &r.Plan.at, r.buckets()
	control, pairs, large := r.at(at.control), r.at(at.pairs), r.at(at.large)
	slot := 0
	for round := 1; ; round++ {
		count := ones / 2
		ones -= count
		if round < len(perRound) {
			count += perRound[round]
		}
		if count == 0 {
			return nil
		}
		if round > 1 {
			if err := r.stream.Fill32(control.Add(4*controlPairs), 0, 2); err != nil {
				return err
			}
			r.args.Reset().Struct(unsafe.Pointer(&b), int(unsafe.Sizeof(b))).U32(uint32(buckets)).U32(r.number(slot)).Ptr(pairs).U32(uint32(r.pairs)).Ptr(large).Ptr(control)
			if err := r.launch(r.sort.nextPairs, (buckets+pairBuckets-1)/pairBuckets, pairThreads, 0); err != nil {
				return err
			}
			if count > pairLimit {
				r.args.Reset().Ptr(pairs).U32(uint32(r.pairs)).Ptr(large).Ptr(control)
				if err := r.launch(r.sort.largePairs, r.spread(count, 256*16, 4), 256, 0); err != nil {
					return err
				}
			}
			r.trace("pairs")
		}
		if err := r.addPairs(count, slot, round == 1); err != nil {
			return err
		}
		slot = roundUp(slot+count, 32)
	}
}

// addPairs adds `count` pairs into slots from slot on.
func (r *run) addPairs(count, slot int, first bool) error {
	at, t := &r.Plan.at, &r.tree[r.Curve]
	block := r.target.treeThreads(r.Curve)
	// Whole waves of threads, each with at most maxSteps pairs.
	waves := (count + r.wave()*maxSteps - 1) / (r.wave() * maxSteps)
	steps := (count + r.wave()*waves - 1) / (r.wave() * waves)
	threads := roundUp((count+steps-1)/steps, block)
	end := r.slots // a round's slots, or the area's
	if slot >= r.slots {
		end += r.area
	}
	status.Check(count <= r.pairs && threads <= r.threads && slot+count <= end, "msm.Sum", "a round within the plan's bounds")
	r.additions += int64(count)
	share := 1
	for share < maxShare && threads/share > r.target.SMs*invertRoom {
		share *= 2
	}
	pool, pairs, prefixes, totals, kept := r.at(at.pool), r.at(at.pairs), r.at(at.prefixes), r.at(at.totals), r.at(at.kept)
	r.args.Reset().Ptr(r.points).Ptr(pool).U32(uint32(r.Points)).Ptr(pairs).U32(uint32(count)).Ptr(prefixes).Ptr(totals).U32(uint32(steps)).U32(uint32(threads))
	if err := r.launch(t.forward, threads/block, block, 0); err != nil {
		return err
	}
	if first {
		r.trace("forward 1")
	} else {
		r.trace("forward")
	}
	r.args.Reset().Ptr(totals).Ptr(kept).U32(uint32(threads)).U32(uint32(share))
	if err := r.launch(t.invert, (threads/share+invertThreads-1)/invertThreads, invertThreads, 0); err != nil {
		return err
	}
	r.trace("invert")
	r.args.Reset().Ptr(r.points).Ptr(pool).U32(uint32(r.Points)).Ptr(pairs).U32(uint32(count)).Ptr(prefixes).Ptr(totals).
		U32(uint32(slot)).U32(uint32(steps)).U32(uint32(threads))
	if err := r.launch(t.backward, threads/block, block, int(r.target.backwardShared(r.Curve))); err != nil {
		return err
	}
	if first {
		r.trace("backward 1")
	} else {
		r.trace("backward")
	}
	return nil
}
