package points

import (
	"context"
	"fmt"
	"io"
	"math/bits"
	"unsafe"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/engine/status"
)

// dealRounds is Deal::rounds of the kernels: two words of the deal a round.
const dealRounds = 8

// deal is the secret that deals points to buckets.
type deal [2 * dealRounds]uint32

// Check checks the order of many points by random bucket sums. Whoever chooses the points best has them pass a
// round with probability 2^-Log; one bad point alone never does.
type Check struct {
	points *Points
	group  Group
	log    int
	rounds int
	sums   driver.Ptr // rounds times 2^log, in xyzz
	fault  driver.Ptr
	random io.Reader
	word   *uint64
}

// CheckBytes is the scratch memory of a Check.
func CheckBytes(g Group, log, rounds int) int64 {
	return FaultBytes + 8 + int64(rounds)*(g.xyzzBytes()<<log)
}

// NewCheck begins a check with `rounds` rounds of 2^log buckets in scratch memory of CheckBytes, aligned to 16 bytes.
// random is crypto/rand.Reader but in tests.
func (p *Points) NewCheck(s *driver.Stream, g Group, log, rounds int, scratch driver.Ptr, random io.Reader) (*Check, error) {
	if log < 1 || log > 24 || rounds < 1 {
		return nil, status.New(status.Internal, "points.NewCheck", "", "1 round or more of 2^1 to 2^24 buckets", fmt.Sprintf("%d of 2^%d", rounds, log))
	}
	c := &Check{points: p, group: g, log: log, rounds: rounds, fault: scratch, sums: scratch.Add(FaultBytes + 8), random: random, word: new(uint64)}
	// Infinity in xyzz is ZZ = 0.
	if err := s.Fill8(c.sums, 0, int64(rounds)*(g.xyzzBytes()<<log)); err != nil {
		return nil, err
	}
	return c, s.Fill8(c.fault, 0xff, FaultBytes)
}

// Add adds count points of the curve to the sums, each once a round. They may be changed once the stream has passed.
func (c *Check) Add(s *driver.Stream, points driver.Ptr, count int) error {
	const op = "points.Check"
	if err := checkCount(op, count); err != nil || count == 0 {
		return err
	}
	p := c.points
	log := max(1, bits.Len32(uint32(count-1)))
	for round := range c.rounds {
		var d deal
		if _, err := io.ReadFull(c.random, unsafe.Slice((*byte)(unsafe.Pointer(&d)), unsafe.Sizeof(d))); err != nil {
			return status.Wrap(status.Internal, op, "random bits", err)
		}
		a := p.args.Reset().Ptr(points).U32(uint32(count)).Struct(unsafe.Pointer(&d), int(unsafe.Sizeof(d))).U32(uint32(log)).
			Ptr(c.round(round)).U32(1 << c.log)
		if err := p.launch(s, p.group[c.group].sum, 1<<c.log, a); err != nil {
			return err
		}
	}
	return nil
}

func (c *Check) round(i int) driver.Ptr { return c.sums.Add(int64(i) * (c.group.xyzzBytes() << c.log)) }

// End waits, and tells whether all sums have order r. Where they have not, Points.Order says which point is bad.
func (c *Check) End(ctx context.Context, s *driver.Stream) (good bool, err error) {
	p := c.points
	for round := range c.rounds {
		a := p.args.Reset().Ptr(c.round(round)).U32(1 << c.log).Ptr(c.fault)
		if err := p.launch(s, p.group[c.group].sumsOrder, 1<<c.log, a); err != nil {
			return false, err
		}
	}
	if err := s.CopyToHost(unsafe.Pointer(c.word), c.fault, FaultBytes); err != nil {
		return false, err
	}
	if err := s.Synchronize(ctx); err != nil {
		return false, err
	}
	_, _, found := FaultOf(*c.word)
	return !found, nil
}
