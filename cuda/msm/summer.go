package msm

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/engine/status"
)

// Summer computes sums on one device. It is used by one goroutine at a time, between the device's Enter and leave.
type Summer struct {
	card   Card
	sort   sortKernels
	tree   [curveCount]treeKernels
	pinned *driver.Pinned

	// For benchmarks: mark is called after each phase has been queued; additions counts those of the tree.
	mark      func(s *driver.Stream, phase string)
	additions int64
}

type sortKernels struct {
	countWords, writeLists, setOnes, writeDigits, countPartitions, scanRows, scatterEntries, scatterEven, sortPartition,
	countLarge, scanLarge, scatterLarge, nextPairs, largePairs, mergePairs, foldPairs driver.Kernel
}

type treeKernels struct {
	forward, invert, backward, collect, sumList driver.Kernel
}

// hostBytes is the pinned memory for what the host reads and the tables that it writes.
const hostBytes = 1 << 20

// New looks up the kernels by find (driver.Library's Kernel, say), and pins 1 MiB of host memory, which stalls the device: it
// is for the time before the device is used. Errors: what find and the driver say.
func New(device *driver.Device, find func(name string) (driver.Kernel, error)) (*Summer, error) {
	shared, err := device.Attribute(driver.SharedPerBlockOptin)
	if err != nil {
		return nil, err
	}
	m := &Summer{card: Card{SMs: device.SMCount, SharedBytes: shared}}
	names := map[string]*driver.Kernel{
		"count_words": &m.sort.countWords, "write_lists": &m.sort.writeLists, "set_ones": &m.sort.setOnes, "write_digits": &m.sort.writeDigits,
		"count_partitions": &m.sort.countPartitions, "scan_rows": &m.sort.scanRows, "scatter_entries": &m.sort.scatterEntries, "scatter_even": &m.sort.scatterEven,
		"sort_partition": &m.sort.sortPartition, "count_large": &m.sort.countLarge, "scan_large": &m.sort.scanLarge,
		"scatter_large": &m.sort.scatterLarge, "next_pairs": &m.sort.nextPairs, "large_pairs": &m.sort.largePairs, "merge_pairs": &m.sort.mergePairs,
		"fold_pairs": &m.sort.foldPairs,
	}
	for c := range curveCount {
		t := &m.tree[c]
		for name, k := range map[string]*driver.Kernel{
			"forward_": &t.forward, "invert_": &t.invert, "backward_": &t.backward, "collect_": &t.collect, "sum_list_": &t.sumList,
		} {
			names[name+c.String()] = k
		}
	}
	for name, k := range names {
		if *k, err = find("msm_" + name); err != nil {
			return nil, err
		}
	}
	for _, k := range []driver.Kernel{m.sort.countPartitions, m.sort.scatterEntries, m.sort.scatterEven, m.sort.sortPartition} {
		if err := k.AllowShared(uint32(shared - sortSpareBytes)); err != nil {
			return nil, err
		}
	}
	for c := range curveCount {
		if err := m.tree[c].backward.AllowShared(m.card.backwardShared(c)); err != nil {
			return nil, err
		}
		if err := m.tree[c].sumList.AllowShared(sumListShared(c)); err != nil {
			return nil, err
		}
	}
	if m.pinned, err = device.NewPinned(hostBytes, 1); err != nil {
		return nil, err
	}
	return m, nil
}

// Kernels are all that the Summer launches, for warming up.
func (m *Summer) Kernels() []driver.Kernel {
	k := &m.sort
	all := []driver.Kernel{k.countWords, k.writeLists, k.setOnes, k.writeDigits, k.countPartitions, k.scanRows, k.scatterEntries, k.scatterEven, k.sortPartition,
		k.countLarge, k.scanLarge, k.scatterLarge, k.nextPairs, k.largePairs, k.mergePairs, k.foldPairs}
	for i := range m.tree {
		t := &m.tree[i]
		all = append(all, t.forward, t.invert, t.backward, t.collect, t.sumList)
	}
	return all
}

// Card is the device's, for PlanFor.
func (m *Summer) Card() Card { return m.card }

// Close gives the pinned memory back.
func (m *Summer) Close() error { return m.pinned.Close() }

// backwardShared is two pairs of points a thread; sumListShared a point in xyzz.
func (c Card) backwardShared(curve Curve) uint32 {
	return uint32(2 * 4 * curve.elementBytes() * int64(c.treeThreads(curve)))
}
func sumListShared(c Curve) uint32 { return uint32(4 * c.elementBytes() * totalThreads) }

// Section is a run of variables in the order of their points. Bitmaps are in device memory, 64-bit words, bit i in word i/64 at
// place i%64.
type Section struct {
	Count   int        // variables
	Density driver.Ptr // one: the variable has a point; 0: all have
	Kind    driver.Ptr // one: the variable is a field element; 0: all are
	Bits    driver.Ptr // value of the others; 0: none is a one
	Scalars driver.Ptr // field elements in Montgomery form: by variable if Full, else those with kind alone, one after the other
	Full    bool
	Points  int // how many variables have points
}

// Input is what a sum is over. Without sections scalar i belongs to point i; with them the sections' variables that have
// points take the points in order.
type Input struct {
	Points   driver.Ptr // affine, in Montgomery form, x = y = 0 for infinity
	Scalars  driver.Ptr // Montgomery form, below r; without sections
	Count    int        // of them
	Sections []Section
}

// run is one sum under way.
type run struct {
	*Summer
	Plan
	ctx     context.Context
	stream  *driver.Stream
	in      Input
	scratch driver.Ptr
	args    driver.Args

	added  int // inputs
	ones   int // found
	result []total

	// Of the part.
	points  driver.Ptr
	index   driver.Ptr // of points, 0: in order
	choice  driver.Ptr // of scalars
	scalars driver.Ptr
	n       int

	// The area: where each window's buckets lie in it.
	taken    int // slots of it
	pending  []collected
	gathered bool // it has all windows
	haveOnes bool // and the sum of the ones
}

type collected struct {
	window *window
	slot   int // first
}

// total is a window's part of the result, as a sum of points in xyzz, to be doubled.
type total struct {
	doublings int
	point     []byte // Xyzz, copied
}

func (r *run) at(region int64) driver.Ptr { return r.scratch.Add(region) }

// start is the number of a pool slot.
func (r *run) number(slot int) uint32 { return uint32(r.Points + slot) }

// trace tells a benchmark what has just been queued.
func (r *run) trace(phase string) {
	if r.mark != nil {
		r.mark(r.stream, phase)
	}
}

func (r *run) launch(k driver.Kernel, blocks, threads int, shared int) error {
	return r.stream.Launch(k, driver.Dim{X: uint32(blocks)}, driver.Dim{X: uint32(threads)}, uint32(shared), &r.args)
}

// launchRows has one row of blocks for each window or list.
func (r *run) launchRows(k driver.Kernel, blocks, rows, threads int, shared int) error {
	return r.stream.Launch(k, driver.Dim{X: uint32(blocks), Y: uint32(rows)}, driver.Dim{X: uint32(threads)}, uint32(shared), &r.args)
}

// spread is how many blocks of threads go through n items: all that there are, up to some for each multiprocessor.
func (r *run) spread(n, threads, perSM int) int {
	return max(1, min((n+threads-1)/threads, r.target.SMs*perSM))
}

// control reads the control block and checks for faults.
func (r *run) control(where string) ([]uint32, error) { return r.controlBut(0, where) }

// controlBut is control that lets some faults pass.
func (r *run) controlBut(allowed uint32, where string) ([]uint32, error) {
	to := r.pinned.Pointer()
	if err := r.stream.CopyToHost(to, r.at(r.Plan.at.control), controlWords*4); err != nil {
		return nil, err
	}
	if err := r.stream.Synchronize(r.ctx); err != nil {
		return nil, err
	}
	words := unsafe.Slice((*uint32)(to), controlWords)
	if fault := words[controlStatus] &^ allowed; fault != 0 {
		return nil, status.New(status.Internal, "msm.Sum", where, "no fault of a kernel", fmt.Sprintf("faults %#x", fault))
	}
	return words, nil
}
