package cuda

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sealc2/sealc2/cuda/driver"
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
	PinnedBytes int64    // host memory for copies, at least 32 KiB; 0: 32 MiB
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
	unit    int64
	limit   int64
	threads int

	mu       sync.Mutex
	programs map[*circuit.Program]*planned
	plans    map[shape]*layout
}

// planned is a program as the device takes it.
type planned struct {
	tables *rows.Tables
	shape  *shape
}

// memoLimit is how many programs and plans are remembered, which are some kilobytes each. A plan takes milliseconds to
// find, and three callers ask for it in each proof.
const memoLimit = 64

// planned says where a program's rows lie in its tables; image is their content, and nil where they were known.
func (b *Backend) planned(p *circuit.Program) (known *planned, image []byte, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if known = b.programs[p]; known != nil {
		return known, nil, nil
	}
	t, image, err := rows.Build(p)
	if err != nil {
		return nil, nil, err
	}
	known = &planned{t, programShape(p, t)}
	if len(b.programs) >= memoLimit {
		clear(b.programs)
	}
	b.programs[p] = known
	return known, image, nil
}

// layoutOf is the plan of a shape. Errors: NoMemory.
func (b *Backend) layoutOf(s *shape) (*layout, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if l := b.plans[*s]; l != nil {
		return l, nil
	}
	l, err := s.plan(cardOf(b.info), b.limit, b.unit)
	if err != nil {
		return nil, err
	}
	if len(b.plans) >= memoLimit {
		clear(b.plans)
	}
	b.plans[*s] = l
	return l, nil
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
	b = &Backend{owner: o, threads: config.Threads, programs: map[*circuit.Program]*planned{}, plans: map[shape]*layout{}}
	err = o.do(context.Background(), op, func(_ context.Context, s *session) error {
		free, _, err := s.device.Memory()
		if err != nil {
			return err
		}
		if s.memory.limit == 0 {
			o.config.MemoryBytes = free - headroom(free)
			s.memory.limit = o.config.MemoryBytes
		}
		b.info, b.unit, b.limit = s.device.Info, s.memory.unit, s.memory.limit
		return nil
	})
	if err != nil {
		_ = o.close()
		return nil, err
	}
	b.name = config.name() + " " + b.info.Name
	return b, nil
}

// Name is the device's, as "cuda:0 NVIDIA H200".
func (b *Backend) Name() string { return b.name }

// MemoryBytes is what proofs may take of the device's memory.
func (b *Backend) MemoryBytes() int64 { return b.limit }

// Close gives the device back. No partition may be open. Closing twice is legal.
func (b *Backend) Close() error { return b.owner.close() }

// Plan returns what a partition of the program needs. Errors: NoMemory for one that never fits the device, with both
// numbers.
func (b *Backend) Plan(p *circuit.Program, partitions int) (groth16.Plan, error) {
	known, _, err := b.planned(p)
	if err != nil {
		return groth16.Plan{}, err
	}
	return b.planOf(known.shape, programHostBytes(p))
}

func (b *Backend) planOf(s *shape, hostBytes int64) (groth16.Plan, error) {
	l, err := b.layoutOf(s)
	if err != nil {
		return groth16.Plan{}, err
	}
	return groth16.Plan{Batch: 1, Ahead: 1, HostBytes: hostBytes, DeviceBytes: l.needs, Threads: b.threads}, nil
}

// PlanAssignment returns what a partition of an assignment of this shape needs, all its values taken for field
// elements. Errors: as Plan.
func (b *Backend) PlanAssignment(a *groth16.Assignment, partitions int) (groth16.Plan, error) {
	return b.planOf(assignmentShape(a), assignmentHostBytes(a))
}

// Begin starts a partition; see groth16.Backend. It touches no device. Errors: Params when a block of the SRS has another
// length than the program's queries; NoMemory when the arena is too small or the device is.
func (b *Backend) Begin(p *circuit.Program, count int, inputs func(k int) (*circuit.Inputs, error), srs groth16.SRS, arena *host.Arena) (groth16.Batch, error) {
	known, _, err := b.planned(p)
	if err != nil {
		return nil, err
	}
	return b.begin(known.shape, &programValues{program: p, inputs: inputs}, programHostBytes(p), srs, arena)
}

// BeginAssignment starts a partition from vectors, of which none is kept longer than groth16.Backend says. Errors: as Begin.
func (b *Backend) BeginAssignment(list []*groth16.Assignment, srs groth16.SRS, arena *host.Arena) (groth16.Batch, error) {
	a := list[0]
	return b.begin(assignmentShape(a), &assignmentValues{from: a}, assignmentHostBytes(a), srs, arena)
}

func (b *Backend) begin(s *shape, v values, hostBytes int64, srs groth16.SRS, arena *host.Arena) (groth16.Batch, error) {
	const op = "cuda.Begin"
	for block, want := range s.points {
		if got := srs.Len(groth16.Block(block)); got != want {
			return nil, status.New(status.Params, op, fmt.Sprintf("%s: %s", srs.ID(), groth16.Block(block)), fmt.Sprintf("%d points for %s", want, s.name), fmt.Sprint(got))
		}
	}
	if got := len(srs.VerifyingKey().IC); got != s.inputs {
		return nil, status.New(status.Params, op, srs.ID()+": ic", fmt.Sprintf("%d points for %s", s.inputs, s.name), fmt.Sprint(got))
	}
	if got := arena.Size() - arena.Used(); got < hostBytes {
		return nil, status.New(status.NoMemory, op, "arena", fmt.Sprintf("%d bytes", hostBytes), fmt.Sprint(got))
	}
	l, err := b.layoutOf(s)
	if err != nil {
		return nil, err
	}
	return &partition{backend: b, shape: s, layout: l, values: v, srs: srs, arena: arena, mark: arena.Mark()}, nil
}
