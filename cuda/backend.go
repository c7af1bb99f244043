package cuda

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/cuda/msm"
	"github.com/sealc2/sealc2/cuda/rows"
	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
)

// Config is fixed for the life of a Backend.
type Config struct {
	API         *driver.API
	Images      [][]byte // of the kernels
	Index       int      // of the device
	MemoryBytes int64    // what the backend may take of the device's memory; 0: what is free at the start, less some headroom
	UrgentBytes int64    // of that, what is left to an urgent backend on the same device; 0: 1 GiB of 20 GiB or more; negative: none
	Urgent      bool     // its kernels start before those of others
	PinnedBytes int64    // host memory for copies, at least 64 KiB; 0: 64 MiB
	HostBytes   int64    // pinned host memory for points and vectors that do not fit the device; points that do not fit here come from the file each time
	Threads     int      // CPU threads for expand and reading parameters; at least 1
	WaitLimit   time.Duration
	Log         func(level, text string) // as engine.Config's; may be nil
}

func (c *Config) name() string { return fmt.Sprintf("cuda:%d", c.Index) }

func (c *Config) log(level, format string, args ...any) {
	if c.Log != nil {
		c.Log(level, fmt.Sprintf(format, args...))
	}
}

// Backend runs proofs on one device. It may be shared.
type Backend struct {
	owner   *owner
	name    string
	info    driver.Info
	card    card
	urgent  int64 // bytes left to another backend
	whole   int64 // limit of the card before others took memory
	threads int
	feeding chan struct{} // has an element while a batch feeds points

	programs memo[*circuit.Program, *planned]
	plans    memo[planKey, *plan]
	sums     memo[sumKey, msm.Plan]
	shares   memo[shape, int]

	mu   sync.Mutex          // of the card's limit and what was made
	made map[string]*madeSRS // by ID
}

// planned is a program as the device takes it.
type planned struct {
	tables *rows.Tables
	shape  *shape
	blocks pointBlocks
}

// planKey and sumKey are what plans of partitions, and of sums whose scalars are known, are remembered by.
type planKey struct {
	shape      shape
	partitions int
	card       card
}

type sumKey struct {
	shape msm.Shape
	limit int64
}

// planned says where a program's rows lie in its tables, whose image is made once more when it goes up.
func (b *Backend) planned(p *circuit.Program) (*planned, error) {
	return b.programs.get(p, func() (*planned, error) {
		t, _, err := rows.Build(p)
		if err != nil {
			return nil, err
		}
		known := &planned{tables: t, shape: programShape(p, t)}
		d := p.Density()
		for block := range groth16.BlockCount {
			if block == groth16.BlockH {
				known.blocks[block] = msm.PlainBlock(known.shape.points[block])
				continue
			}
			aux := msm.Known{Count: p.AuxCount(), Kind: p.Kinds()}
			if known.blocks[block], err = msm.NewBlock(knownSections(block, d, msm.Known{Count: p.InputCount()}, aux)); err != nil {
				return nil, err
			}
		}
		return known, nil
	})
}

// planFor is the plan of a shape. Errors: NoMemory.
func (b *Backend) planFor(s *shape, blocks func() (*pointBlocks, error), partitions int) (*plan, error) {
	on := b.cardFor(s)
	return b.plans.get(planKey{*s, partitions, on}, func() (*plan, error) {
		cut, err := blocks()
		if err != nil {
			return nil, err
		}
		p, err := planFor(s, cut, partitions, on)
		if err == nil {
			b.owner.config.log("debug", "device %s: %s", b.name, p)
		}
		return p, err
	})
}

// sumPlan is the plan of a sum in so much scratch memory.
func (b *Backend) sumPlan(s msm.Shape, limit int64) (msm.Plan, error) {
	return b.sums.get(sumKey{s, limit}, func() (msm.Plan, error) { return msm.PlanFor(s, b.card.Card, limit) })
}

// headroom is the part of a device's free memory that is left to others when nobody configured a limit, besides what
// the driver itself takes for contexts.
func headroom(free int64) int64 { return min(max(free/32, 128<<20), 2<<30) }

// Open opens a device and puts every kernel on it: some tenths of a second. Errors: NoDevice, NoMemory, else
// what the driver said.
func Open(config Config) (b *Backend, err error) {
	const op = "cuda.Open"
	config.Threads = max(1, config.Threads)
	if config.MemoryBytes < 0 {
		return nil, status.New(status.Caller, op, "device memory", "0 bytes or more", fmt.Sprint(config.MemoryBytes))
	}
	if config.PinnedBytes == 0 {
		config.PinnedBytes = pinnedBytes
	}
	if config.PinnedBytes < minPinnedBytes {
		return nil, status.New(status.Caller, op, "pinned memory", fmt.Sprintf("%d bytes or more", minPinnedBytes), fmt.Sprint(config.PinnedBytes))
	}
	o, err := start(config)
	if err != nil {
		return nil, err
	}
	b = &Backend{owner: o, threads: config.Threads, feeding: make(chan struct{}, 1), made: map[string]*madeSRS{}}
	err = o.do(context.Background(), computing, op, func(_ context.Context, s *session) error {
		b.urgent = config.urgentBytes(s.memory.limit)
		s.memory.limit -= b.urgent
		o.config.MemoryBytes = s.memory.limit // the next session's too
		b.info = s.device.Info
		b.whole = s.memory.limit
		b.card = card{Card: cardOf(b.info), limit: s.memory.limit, held: s.word.Size(), unit: s.memory.unit, hostBytes: config.HostBytes}
		return nil
	})
	if err != nil {
		_ = o.close()
		return nil, err
	}
	b.name = config.name() + " " + b.info.Name
	if config.Urgent {
		b.name += " (urgent)"
	}
	return b, nil
}

// urgentBytes is what is kept of a limit.
func (c *Config) urgentBytes(limit int64) int64 {
	const standard, least = 1 << 30, 20 << 30
	switch {
	case c.UrgentBytes > 0:
		return min(c.UrgentBytes, limit/2)
	case c.UrgentBytes == 0 && limit >= least:
		return standard
	}
	return 0
}

// UrgentBytes is what the backend leaves to an urgent one on the same device.
func (b *Backend) UrgentBytes() int64 { return b.urgent }

// Name is the device's, as "cuda:0 NVIDIA H200".
func (b *Backend) Name() string { return b.name }

// MemoryBytes is what proofs may take of the device's memory.
func (b *Backend) MemoryBytes() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.card.limit - b.card.held
}

// Close gives the device back. No partition may be open. Closing twice is legal.
func (b *Backend) Close() error { return b.owner.close() }

// Plan returns what partitions of the program need. Errors: NoMemory for one that never fits the device, with both
// numbers.
func (b *Backend) Plan(p *circuit.Program, partitions int) (groth16.Plan, error) {
	known, err := b.planned(p)
	if err != nil {
		return groth16.Plan{}, err
	}
	l, err := b.planFor(known.shape, known.cut, partitions)
	if err != nil {
		return groth16.Plan{}, err
	}
	return b.needs(l, programHostBytes(p)), nil
}

func (k *planned) cut() (*pointBlocks, error) { return &k.blocks, nil }

// needs is a plan as the engine takes it.
func (b *Backend) needs(p *plan, hostBytes int64) groth16.Plan {
	points := p.pointBytes(b.card.unit)
	all := groth16.Plan{Batch: p.batch, Ahead: p.ahead, HostBytes: hostBytes * int64(p.batch), DeviceBytes: p.each(), Threads: b.threads, By: p,
		Shared: []host.Shared{{Key: p.common(b), Needs: host.Needs{DeviceBytes: p.shared - points}}}, Streams: p.streams()}
	if points > 0 {
		all.Shared = append(all.Shared, host.Shared{Key: p.stay(b), Needs: host.Needs{DeviceBytes: points}})
	}
	if p.pins() && b.card.hostBytes > 0 {
		all.Shared = append(all.Shared, host.Shared{Key: hostMemoryKey{b}, Needs: host.Needs{HostBytes: b.card.hostBytes}, Free: b.freeHost})
	}
	return all
}

// pointsKey is all that the memory of resident points follows from, for those of one SRS.
type pointsKey struct {
	backend  *Backend
	points   [groth16.BlockCount]int
	resident [groth16.BlockCount]bool
}

func (p *plan) stay(b *Backend) pointsKey {
	k := pointsKey{backend: b, points: p.shape.points}
	for block := range p.blocks {
		k.resident[block] = p.blocks[block].resident
	}
	return k
}

// commonKey is all that the memory besides points follows from which batches by a plan have together, so that those by equal plans of jobs of
// different lengths share it.
type commonKey struct {
	backend   *Backend
	shape     shape
	resident  [groth16.BlockCount]bool
	roots     roots
	vectors   int
	slots     int
	slotBytes int64
	work      int64
}

func (p *plan) common(b *Backend) commonKey {
	k := commonKey{backend: b, shape: *p.shape, roots: p.roots, vectors: p.vectors, slots: p.slots, work: p.work.bytes}
	if p.streams() {
		k.slotBytes = p.slotBytes
	}
	for block := range p.blocks {
		k.resident[block] = p.blocks[block].resident
	}
	return k
}

// hostMemoryKey names a backend's pinned host memory in a budget.
type hostMemoryKey struct{ backend *Backend }

// freeHost gives back the pinned host memory that no batch uses, which stalls the device.
func (b *Backend) freeHost() {
	err := b.owner.do(context.Background(), copying, "cuda.freeHost", func(_ context.Context, s *session) error { return s.host.freeAll() })
	if err != nil {
		b.owner.config.log("warn", "device %s: %v", b.name, err)
	}
}

// PlanAssignment returns what partitions of an assignment of this shape need, whatever their values are; which way is quickest is estimated by some of
// the values of the first one that was seen. Errors: as Plan.
func (b *Backend) PlanAssignment(a *groth16.Assignment, partitions int) (groth16.Plan, error) {
	p, err := b.planOf(a, partitions)
	if err != nil {
		return groth16.Plan{}, err
	}
	return b.needs(p, assignmentHostBytes(a)), nil
}

func (b *Backend) planOf(a *groth16.Assignment, partitions int) (*plan, error) {
	return b.planFor(b.shapeOf(a), func() (*pointBlocks, error) {
		blocks := new(pointBlocks)
		for block := range groth16.BlockCount {
			var err error
			if blocks[block], err = assignmentBlock(a, block, circuit.Bits{}); err != nil {
				return nil, err
			}
		}
		return blocks, nil
	}, partitions)
}

// shapeOf is the shape of an assignment. Its share is that of the first one which has the same lengths and densities, so that all partitions of a job have one
// plan.
func (b *Backend) shapeOf(a *groth16.Assignment) *shape {
	s := assignmentShape(a)
	s.share, _ = b.shares.get(*s, func() (int, error) { return sampleShare(a), nil })
	return s
}

// Begin starts a batch; see groth16.Backend. It touches no device. Errors: Params when a block of the SRS has another
// length than the program's queries; NoMemory when the arena is too small.
func (b *Backend) Begin(p *circuit.Program, plan groth16.Plan, count int, inputs func(k int) (*circuit.Inputs, error), srs groth16.SRS, arena *host.Arena) (groth16.Batch, error) {
	all := make([]values, count)
	for k := range all {
		all[k] = &programValues{program: p, inputs: func() (*circuit.Inputs, error) { return inputs(k) }}
	}
	return b.begin(plan, all, programHostBytes(p), srs, arena)
}

// BeginAssignment starts a batch from vectors, of which none is kept longer than groth16.Backend says. Errors: as Begin.
func (b *Backend) BeginAssignment(list []*groth16.Assignment, plan groth16.Plan, srs groth16.SRS, arena *host.Arena) (groth16.Batch, error) {
	all := make([]values, len(list))
	for k, a := range list {
		all[k] = &assignmentValues{from: a}
	}
	return b.begin(plan, all, assignmentHostBytes(list[0]), srs, arena)
}

func (b *Backend) begin(by groth16.Plan, all []values, hostBytes int64, srs groth16.SRS, arena *host.Arena) (groth16.Batch, error) {
	const op = "cuda.Begin"
	plan, ok := by.By.(*plan)
	status.Check(ok, op, "a plan of this backend")
	s := plan.shape
	status.Check(len(all) >= 1 && len(all) <= plan.batch, op, "a batch as planned")
	for block, want := range s.points {
		if got := srs.Len(groth16.Block(block)); got != want {
			return nil, status.New(status.Params, op, fmt.Sprintf("%s: %s", srs.ID(), groth16.Block(block)), fmt.Sprintf("%d points for %s", want, s.name), fmt.Sprint(got))
		}
	}
	if got := len(srs.VerifyingKey().IC); got != s.inputs {
		return nil, status.New(status.Params, op, srs.ID()+": ic", fmt.Sprintf("%d points for %s", s.inputs, s.name), fmt.Sprint(got))
	}
	hostBytes *= int64(len(all))
	if got := arena.Size() - arena.Used(); got < hostBytes {
		return nil, status.New(status.NoMemory, op, "arena", fmt.Sprintf("%d bytes", hostBytes), fmt.Sprint(got))
	}
	made := &batch{backend: b, plan: plan, srs: srs, arena: arena, mark: arena.Mark()}
	for _, v := range all {
		made.parts = append(made.parts, &partition{batch: made, values: v, left: int(groth16.BlockCount)})
	}
	if plan.streams() {
		made.feeder = newFeeder(made)
	}
	return made, nil
}
