package msm

import (
	"slices"
	"unsafe"

	"github.com/sealc2/sealc2/engine/status"
)

// foldStruct is Fold of cuda/kernels/msm/reduce.cuh, and listStruct is List.
type (
	foldStruct struct{ from, pairs, start, half uint32 }
	listStruct struct{ from, count, weight uint32 }
)

// gather brings a group's bucket sums to the area: where it has sums of an earlier part these become the sums of both.
func (r *run) gather(g *windowGroup) error {
	if r.gathered {
		return r.merge(g)
	}
	bucket := 0
	for i := range g.windows {
		w, slot := &g.windows[i], r.slots+r.taken
		r.pending = append(r.pending, collected{window: w, slot: slot})
		r.taken += w.slots()
		if err := r.copySums(bucket, w.buckets, w.slots(), slot); err != nil {
			return err
		}
		bucket += w.partitions(g.low) << g.low
	}
	return nil
}

// merge adds a group's bucket sums to those in the area, in their places: a thread reads a pair before it writes the sum.
func (r *run) merge(g *windowGroup) error {
	first, pairs, bucket := r.pending[g.first].slot, 0, 0
	for i := range g.windows {
		w := &g.windows[i]
		if err := r.mergePairs(bucket, w.buckets, w.slots(), first+pairs, pairs); err != nil {
			return err
		}
		pairs += w.slots()
		bucket += w.partitions(g.low) << g.low
	}
	return r.addPairs(pairs, first, false)
}

// mergePairs writes pairs of the slots from slot on and the sums of buckets.
func (r *run) mergePairs(bucket, count, slots, slot, pair int) error {
	status.Check(pair+slots <= r.pairs && slot+slots <= r.slots+r.area, "msm.Sum", "buckets' pairs within the plan's bounds")
	b := r.buckets()
	r.args.Reset().Struct(unsafe.Pointer(&b), int(unsafe.Sizeof(b))).U32(uint32(bucket)).U32(uint32(count)).U32(uint32(slots)).
		U32(r.number(slot)).U32(r.number(r.slots + r.area - 32)).Ptr(r.at(r.Plan.at.pairs).Add(pairBytes * int64(pair)))
	return r.launch(r.sort.mergePairs, r.spread(slots, 256, 16), 256, 0)
}

// gatherOnes does the same with the sum of the ones.
func (r *run) gatherOnes(bucket int) error {
	slot := r.slots + r.area - 64
	if !r.haveOnes {
		r.haveOnes = true
		return r.copySums(bucket, 1, 1, slot)
	}
	if err := r.mergePairs(bucket, 1, 1, slot, 0); err != nil {
		return err
	}
	return r.addPairs(1, slot, false)
}

// copySums copies buckets' sums to slots of the area, of which those behind the last bucket become infinity.
func (r *run) copySums(bucket, count, padded, slot int) error {
	status.Check(slot+padded <= r.slots+r.area, "msm.Sum", "buckets' sums within the area")
	b := r.buckets()
	r.args.Reset().Ptr(r.points).Ptr(r.at(r.Plan.at.pool)).U32(uint32(r.Points)).Struct(unsafe.Pointer(&b), int(unsafe.Sizeof(b))).
		U32(uint32(bucket)).U32(uint32(count)).U32(uint32(padded)).U32(uint32(slot))
	return r.launch(r.tree[r.Curve].collect, r.spread(padded*int(r.Curve.PointBytes()/16), 256, 16), 256, 0)
}

// side is the rows or the columns of a window that is being folded: `count` lists of `length` slots, from slot on. In the
// rows' each list's slots are neighbours, in the columns' lists they are `count` slots apart.
type side struct {
	window        *window
	columns       bool
	slot          int
	length, count int
}

// fold sums up what is in the area, some windows at a time, and adds it to the result. The area is empty then.
func (r *run) fold() error {
	for from := 0; from < len(r.pending) || r.haveOnes; {
		to, slots := from, 0
		for to < len(r.pending) && slots+r.pending[to].window.slots() <= r.folded {
			slots += r.pending[to].window.slots()
			to++
		}
		status.Check(to > from || from == len(r.pending), "msm.Sum", "room to fold a window")
		if err := r.foldWindows(r.pending[from:to], r.haveOnes); err != nil {
			return err
		}
		from, r.haveOnes = to, false
	}
	r.pending, r.taken = r.pending[:0], 0
	return nil
}

// foldWindows is fold for windows that are folded at once, and the sum of the ones.
func (r *run) foldWindows(windows []collected, ones bool) error {
	var sides []side
	for _, c := range windows {
		rows, columns := c.window.rows(), c.window.columns()
		sides = append(sides, side{window: c.window, slot: c.slot, length: columns, count: rows},
			side{window: c.window, columns: true, slot: c.slot, length: rows, count: columns})
	}
	slot, table := 0, 0
	for {
		var folds []foldStruct
		pairs, longest := 0, 0
		for i := range sides {
			s := &sides[i]
			if s.length == 1 {
				continue
			}
			s.length /= 2
			f := foldStruct{from: r.number(s.slot), pairs: uint32(s.length * s.count), start: uint32(pairs)}
			if s.columns {
				f.half = f.pairs
			}
			folds = append(folds, f)
			s.slot = slot + pairs
			pairs += s.length * s.count
			longest = max(longest, s.length*s.count)
		}
		if pairs == 0 {
			break
		}
		if err := r.upload(r.Plan.at.folds, table, unsafe.Pointer(&folds[0]), len(folds)*foldBytes); err != nil {
			return err
		}
		r.args.Reset().Ptr(r.at(r.Plan.at.folds)).Ptr(r.at(r.Plan.at.pairs))
		if err := r.launchRows(r.sort.foldPairs, r.spread(longest, 256, 8), len(folds), 256, 0); err != nil {
			return err
		}
		if err := r.addPairs(pairs, slot, false); err != nil {
			return err
		}
		slot = roundUp(slot+pairs, 32)
		table += len(folds) * foldBytes
	}
	r.trace("fold")

	// The last sums, of lists cut to pieces.
	var lists []listStruct
	var owners []total
	for _, s := range sides {
		weight, doublings := 0, s.window.offset
		if s.columns {
			weight = 1
		} else {
			for c := s.window.columns(); c > 1; c /= 2 {
				doublings++
			}
		}
		for at := 0; at < s.count; at += listPoints {
			lists = append(lists, listStruct{from: r.number(s.slot + at), count: uint32(min(listPoints, s.count-at)), weight: uint32(weight + at)})
			owners = append(owners, total{doublings: doublings})
		}
	}
	if ones {
		lists = append(lists, listStruct{from: r.number(r.slots + r.area - 64), count: 1, weight: 1})
		owners = append(owners, total{})
	}
	if err := r.upload(r.Plan.at.folds, table, unsafe.Pointer(&lists[0]), len(lists)*listBytes); err != nil {
		return err
	}
	sums := r.at(r.Plan.at.sums)
	r.args.Reset().Ptr(r.points).Ptr(r.at(r.Plan.at.pool)).U32(uint32(r.Points)).Ptr(r.at(r.Plan.at.folds)).Ptr(sums)
	if err := r.launch(r.tree[r.Curve].sumList, len(lists), totalThreads, int(sumListShared(r.Curve))); err != nil {
		return err
	}
	each := int(4 * r.Curve.elementBytes())
	status.Check(2*each*len(lists) <= hostBytes, "msm.Sum", "sums within the pinned memory")
	// The tables have been uploaded by the time the sums come down.
	if err := r.stream.CopyToHost(r.pinned.Pointer(), sums, int64(2*each*len(lists))); err != nil {
		return err
	}
	r.trace("sums")
	if err := r.stream.Synchronize(r.ctx); err != nil {
		return err
	}
	for i := range owners {
		owners[i].point = slices.Clone(r.pinned.Bytes()[2*i*each : (2*i+1)*each])
	}
	r.result = append(r.result, owners...)
	return nil
}

// upload queues a table's copy to the device, through `from` bytes of the pinned memory on.
func (r *run) upload(region int64, from int, table unsafe.Pointer, bytes int) error {
	status.Check(from+bytes <= hostBytes, "msm.Sum", "tables within the pinned memory")
	copy(r.pinned.Bytes()[from:], unsafe.Slice((*byte)(table), bytes))
	return r.stream.CopyToDevice(r.at(region), unsafe.Pointer(&r.pinned.Bytes()[from]), int64(bytes))
}
