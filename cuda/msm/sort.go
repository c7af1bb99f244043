package msm

import (
	"unsafe"

	"github.com/sealc2/sealc2/cuda/driver"
)

// sortJob is the sort of a group's digits into the first round's pairs.
type sortJob struct {
	*windowGroup
	table    windowsStruct
	digits   driver.Ptr
	onePairs int // pairs of ones, before those of the sort
}

// arguments adds what the passes over the digits begin with.
func (j *sortJob) arguments(a *driver.Args) *driver.Args {
	return a.Struct(unsafe.Pointer(&j.table), int(unsafe.Sizeof(j.table))).U32(uint32(j.widest))
}

// sortGroup carries it out and returns the control block. Digits are first taken to be spread evenly, if the plan says so;
// when they turn out not to be, they are for the rest of the sum counted first.
func (r *run) sortGroup(j *sortJob) ([]uint32, error) {
	if threads := r.evenThreads(j.windowGroup, r.n); r.even && threads > 0 {
		words, err := r.sortEven(j, threads)
		if err != nil || words[controlStatus]&faultRoom == 0 {
			return words, err
		}
		r.even = false
	}
	return r.sortCounted(j)
}

// sortEven needs no count: each partition has the room that even digits take.
func (r *run) sortEven(j *sortJob, threads int) ([]uint32, error) {
	at := &r.Plan.at
	control, filled, entries := r.at(at.control), r.at(at.places), r.at(at.entries)
	room := j.room(r.n)
	if err := r.stream.Fill32(control, 0, controlWords); err != nil {
		return nil, err
	}
	if err := r.stream.Fill32(filled, 0, int64(j.partitions)); err != nil {
		return nil, err
	}
	j.arguments(r.args.Reset().Ptr(j.digits).Ptr(r.index).U32(uint32(r.n))).Ptr(filled).U32(uint32(room)).Ptr(entries).Ptr(control)
	if err := r.launchRows(r.sort.scatterEven, r.spread(r.n, threads*evenItems, 64), len(j.windows), threads, evenShared(threads, j.widest)); err != nil {
		return nil, err
	}
	r.trace("scatter")
	if err := r.sortPartitions(j, filled, room); err != nil {
		return nil, err
	}
	return r.controlBut(faultRoom, "sort")
}

// sortCounted counts the partitions' entries first.
func (r *run) sortCounted(j *sortJob) ([]uint32, error) {
	at := &r.Plan.at
	control, counts, places := r.at(at.control), r.at(at.counts), r.at(at.places)
	if err := r.stream.Fill32(control, 0, controlWords); err != nil {
		return nil, err
	}
	if err := r.stream.Fill32(counts, 0, int64(j.partitions+1)); err != nil {
		return nil, err
	}
	j.arguments(r.args.Reset().Ptr(j.digits).U32(uint32(r.n))).Ptr(counts)
	if err := r.launchRows(r.sort.countPartitions, r.spread(r.n, 8192, 2), len(j.windows), blockFor(r.n/8), 4*j.widest); err != nil {
		return nil, err
	}
	r.args.Reset().Ptr(counts).Ptr(places).U32(uint32(j.partitions + 1)).Ptr(0)
	if err := r.launch(r.sort.scanRows, 1, blockFor(j.partitions), 0); err != nil {
		return nil, err
	}
	threads := r.scatterThreads(len(j.windows), j.widest)
	j.arguments(r.args.Reset().Ptr(j.digits).Ptr(r.index).U32(uint32(r.n))).Ptr(places).Ptr(r.at(at.entries)).U32(uint32(r.entries)).Ptr(control)
	if err := r.launchRows(r.sort.scatterEntries, r.spread(r.n, threads*scatterItems, 64), len(j.windows), threads, scatterShared(threads, j.widest)); err != nil {
		return nil, err
	}
	r.trace("scatter")
	if err := r.sortPartitions(j, counts, 0); err != nil {
		return nil, err
	}
	words, err := r.control("sort")
	if err != nil || words[controlPartitions] == 0 {
		return words, err
	}
	return r.sortLarge(j)
}

// scatterShared is what scatter_entries takes of a block's shared memory.
func scatterShared(threads, widest int) int { return entryBytes*threads*scatterItems + 8*widest }

// scatterThreads is the size of a block of scatter_entries: as large as its memory allows, unless tiles would be too few.
func (r *run) scatterThreads(windows, widest int) int {
	threads := 1024
	for threads > 64 && scatterShared(threads, widest) > r.target.SharedBytes-sortSpareBytes {
		threads /= 2
	}
	for threads > 256 && r.n*windows/(threads*scatterItems) < 4*r.target.SMs {
		threads /= 2
	}
	return threads
}

// sortPartitions sorts each partition in a block's memory, which has room for what even digits need, and some more.
func (r *run) sortPartitions(j *sortJob, starts driver.Ptr, room int) error {
	even := 0.0
	for i := range j.windows {
		even = max(even, j.windows[i].each(r.n, j.low))
	}
	capacity := min(r.capacity, int(1.1*even)+1024)
	at, b := &r.Plan.at, r.buckets()
	r.args.Reset().Ptr(r.at(at.entries)).Ptr(starts).U32(uint32(room)).U32(uint32(j.low)).U32(uint32(capacity)).U32(r.number(0)).U32(uint32(j.onePairs)).
		Ptr(r.at(at.pairs)).U32(uint32(r.pairs)).Struct(unsafe.Pointer(&b), int(unsafe.Sizeof(b))).Ptr(r.at(at.partitions)).Ptr(r.at(at.control))
	return r.launch(r.sort.sortPartition, j.partitions, blockFor(int(even)/8), 4*(2<<j.low+capacity))
}

// blockFor is the size of a block for work that keeps some threads busy: a power of two from 128 to 1024.
func blockFor(threads int) int {
	block := 128
	for block < 1024 && block < threads {
		block *= 2
	}
	return block
}

// sortLarge sorts the partitions that were too large for a block.
func (r *run) sortLarge(j *sortJob) ([]uint32, error) {
	at, b := &r.Plan.at, r.buckets()
	entries, counts, large, control, next, size := r.at(at.entries), r.at(at.counts), r.at(at.partitions), r.at(at.control), r.at(at.next), r.at(at.size)
	if err := r.stream.Fill32(next, 0, int64(j.buckets)); err != nil {
		return nil, err
	}
	shared := 4 << j.low
	r.args.Reset().Ptr(entries).Ptr(counts).U32(uint32(j.low)).Ptr(large).Ptr(control).Ptr(next)
	if err := r.launch(r.sort.countLarge, r.spread(r.n, 1024, 2), 1024, shared); err != nil {
		return nil, err
	}
	r.args.Reset().U32(uint32(j.low)).U32(r.number(0)).U32(uint32(j.onePairs)).U32(uint32(r.pairs)).Struct(unsafe.Pointer(&b), int(unsafe.Sizeof(b))).
		Ptr(large).Ptr(control).Ptr(next).Ptr(size)
	if err := r.launch(r.sort.scanLarge, min(j.partitions, 2*r.target.SMs), 1024, shared); err != nil {
		return nil, err
	}
	r.args.Reset().Ptr(entries).Ptr(counts).U32(uint32(j.low)).U32(r.number(0)).Ptr(r.at(at.pairs)).Struct(unsafe.Pointer(&b), int(unsafe.Sizeof(b))).
		Ptr(large).Ptr(control).Ptr(next).Ptr(size)
	if err := r.launch(r.sort.scatterLarge, r.spread(r.n, 1024, 2), 1024, shared); err != nil {
		return nil, err
	}
	return r.control("sort of large partitions")
}
