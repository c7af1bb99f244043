package params

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"math"
	mathrand "math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"golang.org/x/crypto/blake2b"

	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/lanes"
	"github.com/sealc2/sealc2/engine/status"
)

// The check of the order, design section 8. A point outside the group of order r has a part in the rest of
// the curve, whose smallest subgroup has 3 elements on G1 and 13 on its twist. In a random bucket sum that part
// vanishes only together with others: whoever chooses the points best (two that cancel) escapes a round
// with probability 2^-16, and one bad point alone never does.
const (
	bucketBits   = 16
	bucketRounds = 2
	// exactPoints is where checking each point costs what two rounds of bucket checks do.
	exactPoints = bucketRounds << bucketBits
)

// CheckOptions say how thorough Check is and what it may use.
type CheckOptions struct {
	Threads  int                // goroutines; 0 counts as 1
	Exact    bool               // check the order of every point on its own: 30 to 60 us each
	Progress func(done float64) // share of the work, from one goroutine at a time, never falling; may be nil
	// Device says where points are checked if not by these threads; it is asked when there is something to check. nil, or a nil
	// PointDevice: here.
	Device   func() (PointDevice, error)
	Verdicts *Verdicts // remembers files that passed; nil checks each time
}

// PointDevice checks points elsewhere than on this CPU.
type PointDevice interface {
	// CheckPoints reads all points of blocks of one group. Where order is Exact, both faults are those of the lowest run of
	// 4096 points of a block that has any. progress gets points that are through, from the caller's goroutine.
	CheckPoints(ctx context.Context, srs groth16.EncodedSRS, blocks []groth16.Block, order groth16.OrderCheck, progress func(points int)) (groth16.PointFaults, error)
}

// CheckReport tells what a passed check has done.
type CheckReport struct {
	Points  int64         `json:"points"`  // of the blocks; the verifying key is checked by Open
	Exact   bool          `json:"exact"`   // the order of every point was checked on its own
	Rounds  int           `json:"rounds"`  // of random bucket sums; 0 where exact
	Cached  bool          `json:"cached"`  // an earlier check of the same state of the file stands for this one
	Elapsed time.Duration `json:"elapsed"` // in ns
}

// CheckBytes is the host memory that Check takes outside the Go heap at most.
func CheckBytes(threads int) int64 {
	threads = max(threads, 1)
	return int64(threads)*host.SliceBytes[bls.G2Affine](readChunk) + bucketBytes(lanes.G2()[0], threads, bucketRounds, bucketBits)
}

// Check reads every point of the file and checks that it is on the curve, not infinity, and of order r. The order
// is checked by random bucket sums with fresh secret randomness, or point by point where there are few
// points or the options ask for it. Errors: Params, naming the first bad point by block and index;
// Cancelled; NoMemory.
func Check(ctx context.Context, f *File, o CheckOptions) (*CheckReport, error) {
	c := &checker{
		file: f, threads: max(o.Threads, 1), progress: o.Progress,
		bucketBits: bucketBits, rounds: bucketRounds, exactPoints: exactPoints,
	}
	question := "order by buckets"
	if o.Exact {
		c.exactPoints = math.MaxInt
		question = "order of each point"
	}
	start := time.Now()
	report := &CheckReport{Exact: true}
	for _, n := range f.counts.Blocks {
		report.Points += int64(n)
	}
	cached, err := o.Verdicts.once(ctx, question, f.id, keepOnDisk, func() error {
		if o.Device != nil {
			device, err := o.Device()
			if err != nil {
				return err
			}
			if device != nil {
				return c.runOn(ctx, device)
			}
		}
		return c.run(ctx)
	})
	if err != nil {
		return nil, err
	}
	for _, n := range groupSizes(f) {
		if n > c.exactPoints {
			report.Exact, report.Rounds = false, c.rounds
		}
	}
	report.Cached, report.Elapsed = cached, time.Since(start)
	return report, nil
}

// groupSizes are the numbers of points of the G1 blocks together and of b_g2.
func groupSizes(f *File) [2]int {
	n := f.counts.Blocks
	return [2]int{n[groth16.BlockH] + n[groth16.BlockL] + n[groth16.BlockA] + n[groth16.BlockB1], n[groth16.BlockB2]}
}

// checker is one run of Check.
type checker struct {
	file        *File
	threads     int
	bucketBits  int
	rounds      int
	exactPoints int // up to so many points of a group are checked one by one
	secret      [32]byte

	mu       sync.Mutex
	progress func(float64)
	done     float64 // ns of expected work
	total    float64
	shown    float64
}

// Expected costs in ns, for the progress alone.
const (
	costG1, costG2           = 700, 2000
	costOrderG1, costOrderG2 = 35000, 45000
)

// advance adds finished work and reports each thousandth.
func (c *checker) advance(ns float64) {
	if c.progress == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done += ns
	if share := min(c.done/c.total, 1); share >= c.shown+0.001 || share == 1 && c.shown < 1 {
		c.shown = share
		c.progress(share)
	}
}

func (c *checker) run(ctx context.Context) (err error) {
	const op = "params.Check"
	defer status.Recover(op, &err)
	if _, err := rand.Read(c.secret[:]); err != nil {
		return status.Wrap(status.Internal, op, "random bits", err)
	}
	g1, g2 := newG1Group(c.file, g1Blocks), newG2Group(c.file, g2Blocks)
	c.total = work(c, g1) + work(c, g2)
	if err := checkGroup(ctx, c, g1); err != nil {
		return err
	}
	return checkGroup(ctx, c, g2)
}

var (
	g1Blocks = []groth16.Block{groth16.BlockH, groth16.BlockL, groth16.BlockA, groth16.BlockB1}
	g2Blocks = []groth16.Block{groth16.BlockB2}
)

// group is what differs between G1 and G2.
type group[P any] struct {
	chunks   []chunk
	points   int
	pointNs  float64
	orderNs  float64
	read     func(ctx context.Context, c chunk, dst []P) error
	order    func(p *P) bool      // of order r
	sumOrder func(parts []P) bool // whether the sum of points is
	store    lanes.StoreKind[P]
}

// chunk is a run of points of one block.
type chunk struct {
	block       groth16.Block
	from, count int
}

func chunksOf(f *File, blocks []groth16.Block) (all []chunk, points int) {
	if f == nil {
		return nil, 0
	}
	for _, b := range blocks {
		n := f.counts.Blocks[b]
		points += n
		for from := 0; from < n; from += readChunk {
			all = append(all, chunk{b, from, min(n-from, readChunk)})
		}
	}
	return all, points
}

func newG1Group(f *File, blocks []groth16.Block) *group[bls.G1Affine] {
	g := &group[bls.G1Affine]{
		pointNs: costG1, orderNs: costOrderG1,
		read: func(ctx context.Context, c chunk, dst []bls.G1Affine) error {
			return f.ReadG1(ctx, c.block, c.from, dst)
		},
		order: (*bls.G1Affine).IsInSubGroup,
		sumOrder: func(parts []bls.G1Affine) bool {
			var sum bls.G1Jac
			for i := range parts {
				sum.AddMixed(&parts[i])
			}
			return sum.Z.IsZero() || sum.IsInSubGroup()
		},
		store: lanes.G1()[0],
	}
	g.chunks, g.points = chunksOf(f, blocks)
	return g
}

func newG2Group(f *File, blocks []groth16.Block) *group[bls.G2Affine] {
	g := &group[bls.G2Affine]{
		pointNs: costG2, orderNs: costOrderG2,
		read: func(ctx context.Context, c chunk, dst []bls.G2Affine) error {
			return f.ReadG2(ctx, c.from, dst)
		},
		order: (*bls.G2Affine).IsInSubGroup,
		sumOrder: func(parts []bls.G2Affine) bool {
			var sum bls.G2Jac
			for i := range parts {
				sum.AddMixed(&parts[i])
			}
			return sum.Z.IsZero() || sum.IsInSubGroup()
		},
		store: lanes.G2()[0],
	}
	g.chunks, g.points = chunksOf(f, blocks)
	return g
}

// work is the expected time of one group on one thread, in ns.
func work[P any](c *checker, g *group[P]) float64 {
	n := float64(g.points)
	if g.points <= c.exactPoints {
		return n * (g.pointNs + g.orderNs)
	}
	return n*g.pointNs + float64(c.rounds)*float64(int(1)<<c.bucketBits)*g.orderNs
}

func checkGroup[P any](ctx context.Context, c *checker, g *group[P]) error {
	if g.points <= c.exactPoints {
		return eachChunk(ctx, c, g, func(_ int, at chunk, points []P) error {
			defer c.advance(float64(len(points)) * (g.pointNs + g.orderNs))
			return c.exact(ctx, at, len(points), func(i int) bool { return g.order(&points[i]) })
		})
	}
	threads := min(c.threads, len(g.chunks))
	arena, err := host.NewArena(bucketBytes(g.store, threads, c.rounds, c.bucketBits))
	if err != nil {
		return err
	}
	defer arena.Close()
	sets := newBuckets(arena, g.store, threads, c.rounds, c.bucketBits)
	err = eachChunk(ctx, c, g, func(thread int, at chunk, points []P) error {
		defer c.advance(float64(len(points)) * g.pointNs)
		var choice [readChunk]uint16
		sets[thread].load(points)
		for round := range c.rounds {
			c.choose(round, at, choice[:len(points)])
			sets[thread].add(round, choice[:len(points)])
		}
		return nil
	})
	if err != nil {
		return err
	}
	bad, failed, err := badBuckets(ctx, c, g, sets)
	if err != nil || !failed {
		return err
	}
	// The buckets say that there is a bad point; the points of those buckets say which.
	err = eachChunk(ctx, c, g, func(_ int, at chunk, points []P) error {
		var choice [readChunk]uint16
		suspect := make([]bool, len(points))
		for round := range bad {
			c.choose(round, at, choice[:len(points)])
			for i := range points {
				suspect[i] = suspect[i] || bad[round][choice[i]]
			}
		}
		return c.exact(ctx, at, len(points), func(i int) bool { return !suspect[i] || g.order(&points[i]) })
	})
	if err != nil {
		return err
	}
	return c.changed()
}

// exact reports the first of n points of a chunk for which ok is false.
func (c *checker) exact(ctx context.Context, at chunk, n int, ok func(i int) bool) error {
	for i := range n {
		if i%64 == 0 && ctx.Err() != nil {
			return c.cancelled(ctx)
		}
		if !ok(i) {
			return c.file.pointError("params.Check", at.block, at.from+i, faultSubgroup)
		}
	}
	return nil
}

func (c *checker) cancelled(ctx context.Context) error {
	return status.Wrap(status.Cancelled, "params.Check", c.file.path, ctx.Err())
}

// choose fills the buckets of a chunk's points, the same each time it is asked within one run. Nobody can
// foresee them: ChaCha8 keyed by a hash of the run's secret and the chunk's place.
func (c *checker) choose(round int, at chunk, choice []uint16) {
	var place [32 + 10]byte
	copy(place[:], c.secret[:])
	place[32], place[33] = byte(round), byte(at.block)
	binary.LittleEndian.PutUint64(place[34:], uint64(at.from))
	stream := mathrand.NewChaCha8(blake2b.Sum256(place[:]))
	mask := uint16(1<<c.bucketBits - 1)
	var word uint64
	for i := range choice {
		if i%4 == 0 {
			word = stream.Uint64()
		}
		choice[i] = uint16(word) & mask
		word >>= 16
	}
}

// badBuckets checks the order of every bucket sum of every round.
func badBuckets[P any](ctx context.Context, c *checker, g *group[P], sets []*buckets[P]) (bad [][]bool, failed bool, err error) {
	const run = 256 // buckets between two looks at the context
	count := 1 << c.bucketBits
	bad = make([][]bool, c.rounds)
	for round := range bad {
		bad[round] = make([]bool, count)
	}
	runs := (count + run - 1) / run
	var any atomic.Bool
	err = c.parallel(c.rounds*runs, func(_, task int) error {
		if ctx.Err() != nil {
			return c.cancelled(ctx)
		}
		round, from := task/runs, task%runs*run
		to := min(from+run, count)
		parts := make([]P, len(sets))
		for j := from; j < to; j++ {
			for thread, set := range sets {
				parts[thread] = set.sum(round, j)
			}
			if !g.sumOrder(parts) {
				bad[round][j] = true
				any.Store(true)
			}
		}
		c.advance(float64(to-from) * g.orderNs)
		return nil
	})
	return bad, any.Load(), err
}

// eachChunk reads and decodes every chunk and hands it to visit; thread numbers the goroutine.
func eachChunk[P any](ctx context.Context, c *checker, g *group[P], visit func(thread int, at chunk, points []P) error) error {
	if len(g.chunks) == 0 {
		return nil
	}
	threads := min(c.threads, len(g.chunks))
	arena, err := host.NewArena(int64(threads) * host.SliceBytes[P](readChunk))
	if err != nil {
		return err
	}
	defer arena.Close()
	buffers := make([][]P, threads)
	for i := range buffers {
		buffers[i] = host.Alloc[P](arena, readChunk)
	}
	return c.parallel(len(g.chunks), func(thread, task int) error {
		at := g.chunks[task]
		points := buffers[thread][:at.count]
		if err := g.read(ctx, at, points); err != nil {
			return err
		}
		return visit(thread, at, points)
	})
}

// parallel runs tasks 0 to n-1 in order of their number on the checker's threads, and returns the error of
// the lowest task that fails: after a failure no later task is begun, and all earlier ones are finished.
func (c *checker) parallel(n int, do func(thread, task int) error) error {
	var (
		next   atomic.Int64
		stop   atomic.Bool
		mu     sync.Mutex
		lowest = n
		first  error
		wg     sync.WaitGroup
	)
	for thread := range min(c.threads, n) {
		wg.Go(func() {
			for !stop.Load() {
				task := int(next.Add(1) - 1)
				if task >= n {
					return
				}
				err := func() (err error) {
					defer status.Recover("params.Check", &err)
					return do(thread, task)
				}()
				if err != nil {
					stop.Store(true)
					mu.Lock()
					if task < lowest {
						lowest, first = task, err
					}
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return first
}
