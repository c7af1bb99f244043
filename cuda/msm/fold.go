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

// collect copies a window's bucket sums to the area.
func (r *run) collect(w *window, bucket int) error {
	slot := r.slots + r.taken
	r.pending = append(r.pending, collected{window: w, slot: slot})
	r.taken += roundUp(w.padded, 32)
	return r.copySums(bucket, w.buckets, w.padded, slot)
}

// collectOnes does the same with the sum of the ones, which the area keeps its last slots for.
func (r *run) collectOnes(bucket int) error {
	slot := r.slots + r.area - 32
	r.pending = append(r.pending, collected{slot: slot})
	return r.copySums(bucket, 1, 1, slot)
}

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

// fold sums up what is in the area and adds it to the result.
func (r *run) fold() error {
	var sides []side
	for _, c := range r.pending {
		if c.window != nil {
			rows, columns := c.window.rows(), c.window.columns()
			sides = append(sides, side{window: c.window, slot: c.slot, length: columns, count: rows},
				side{window: c.window, columns: true, slot: c.slot, length: rows, count: columns})
		}
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
	for _, c := range r.pending {
		if c.window == nil {
			lists = append(lists, listStruct{from: r.number(c.slot), count: 1, weight: 1})
			owners = append(owners, total{})
		}
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
	r.pending, r.taken = r.pending[:0], 0
	return nil
}

// upload queues a table's copy to the device, through `from` bytes of the pinned memory on.
func (r *run) upload(region int64, from int, table unsafe.Pointer, bytes int) error {
	status.Check(from+bytes <= hostBytes, "msm.Sum", "tables within the pinned memory")
	copy(r.pinned.Bytes()[from:], unsafe.Slice((*byte)(table), bytes))
	return r.stream.CopyToDevice(r.at(region), unsafe.Pointer(&r.pinned.Bytes()[from]), int64(bytes))
}
