package c1

import (
	"errors"

	"github.com/sealc2/sealc2/engine/circuit/porep"
	"github.com/sealc2/sealc2/engine/host"
)

// early is a partition that was read before the reader came to it.
type early struct {
	start, end int // end: of what was read, where it has no fault
	challenges []porep.Challenge
	f          *fault
	done       bool
}

// errFault ends a loop over partitions: the fault is where the loop's results are.
var errFault = errors.New("a fault in the document")

// readPartitions takes the array of partitions. One reader goes through it from its start, and takes what has been read
// ahead by several threads where that began just where he stands. So the result and the first fault are what he alone
// would have found, whatever was read ahead. err is of the machine or the context.
func (p *parser) readPartitions(l *layout) (out [][]porep.Challenge, f *fault, err error) {
	ahead, err := p.readAhead(l)
	if err != nil {
		return nil, nil, err
	}
	out = make([][]porep.Challenge, l.partitions)
	d := decoder{reader: &p.reader, layout: l}
	least, count := l.partitions, 0
	if p.partial {
		least = 1
	}
	f = p.arrayBetween(least, l.partitions, "partitions", func(k int) (f *fault) {
		count = k + 1
		p.peek()
		if k < len(ahead) && ahead[k].done && ahead[k].start == p.pos {
			out[k], p.pos = ahead[k].challenges, ahead[k].end
			return ahead[k].f
		}
		out[k], f = d.partition()
		return f
	})
	return out[:count], f, nil
}

// readAhead reads the partitions of the array at the cursor on several threads, as far as leap has found them, and leaves
// the cursor where it is. After a fault later partitions are left alone.
func (p *parser) readAhead(l *layout) ([]early, error) {
	list := p.guess(l)
	if p.threads == 1 || len(list) < 2 {
		return nil, nil
	}
	err := host.Do(p.ctx, op, len(list), 1, p.threads, func(_, from, to int) error {
		for k := from; k < to; k++ {
			e := &list[k]
			d := decoder{reader: &reader{data: p.data, pos: e.start}, layout: l}
			e.challenges, e.f = d.partition()
			if e.end, e.done = d.pos, true; e.f != nil {
				return errFault
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, errFault) {
		return nil, err
	}
	return list, nil
}

// guess says where partitions start, by the ends that leap has found: at most as many as there may be, and only such as have
// room for all hashes. Others cannot be whole, and memory for what is read ahead stays below the document's size.
func (p *parser) guess(l *layout) (list []early) {
	const shortest = 1 + 2*len(porep.Hash{}) // a hash of numbers below 10
	r := reader{data: p.data, pos: p.pos}
	if r.peek() != '[' {
		return nil
	}
	r.pos++
	for _, end := range p.inner.ends[:min(p.inner.count, l.partitions)] {
		if r.peek(); end-r.pos < shortest*l.slabHashes() {
			break
		}
		list = append(list, early{start: r.pos})
		if r.pos = end; r.peek() != ',' {
			break
		}
		r.pos++
	}
	return list
}

// consistent checks all partitions on several threads; the fault is that of the lowest one.
func (p *parser) consistent(l *layout, partitions [][]porep.Challenge, s *porep.Statement) (*fault, error) {
	faults := make([]*fault, len(partitions))
	err := host.Do(p.ctx, op, len(partitions), 1, p.threads, func(_, from, to int) error {
		for k := from; k < to; k++ {
			if faults[k] = l.partitionConsistent(k, partitions[k], &partitions[0][0], s); faults[k] != nil {
				return errFault
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, errFault) {
		return nil, err
	}
	for _, f := range faults {
		if f != nil {
			return f, nil
		}
	}
	return nil, nil
}
