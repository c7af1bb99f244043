package cuda

import (
	"strings"
	"testing"

	"github.com/sealc2/sealc2/cuda/msm"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/status"
)

// bigShape is a partition of a 32 GiB sector. Counts: tests/vectors/shapes, and the lengths of its parameters.
func bigShape() *shape {
	const aux, nums, a, b = 130169893, 1699102, 129769973, 33088000
	return &shape{
		name: "porep-32g", log: 27, inputs: 46, aux: aux, scalars: 46 + nums, resident: 100 << 20,
		points: [...]int{1<<27 - 1, aux, a, b, b}, fields: [...]int{1<<27 - 1, nums, nums, nums, nums}, ones: [...]int{0, aux, a, b, b},
	}
}

// Goal: plans are honest for cards of every size: within the limit, regions apart, everything resident where that fits, in
// turns where it does not, and a refusal with both numbers below that.
func TestPlan_Cards(t *testing.T) {
	s := bigShape()
	var points int64
	for b := range groth16.BlockCount {
		points += s.blockBytes(b)
	}
	const unit = 2 << 20
	for _, c := range []struct {
		name     string
		gib      int64
		resident bool // all blocks
		refused  bool
	}{
		{"139 GiB", 136, true, false}, {"80 GiB", 77, true, false}, {"48 GiB", 45, false, false},
		{"24 GiB", 22, false, true}, {"8 GiB", 7, false, true},
	} {
		limit := c.gib << 30
		l, err := s.plan(msm.Card{SMs: 132, SharedBytes: 227 << 10}, limit, unit)
		if c.refused {
			if status.KindOf(err) != status.NoMemory || !strings.Contains(err.Error(), "got ") || l != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			t.Logf("%s: %v", c.name, err)
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		t.Logf("%s: %.2f GB in all, %.2f GB a partition, of it sums %.2f %.2f %.2f %.2f %.2f", c.name, float64(l.needs)/1e9, float64(l.bytes)/1e9,
			float64(l.sums[0].Bytes)/1e9, float64(l.sums[1].Bytes)/1e9, float64(l.sums[2].Bytes)/1e9, float64(l.sums[3].Bytes)/1e9, float64(l.sums[4].Bytes)/1e9)
		if l.needs > limit || l.needs < l.bytes || c.resident != (l.needs > points) {
			t.Errorf("%s: %d of %d bytes for %d of a partition and %d of points", c.name, l.needs, limit, l.bytes, points)
		}
		// h is not where the first sum works, and the witness not where any does.
		if l.sumAt[0] < l.b+s.vector() || l.sumAt[1] < l.scalars+elementBytes*int64(s.scalars) || l.b < l.sumAt[1] {
			t.Errorf("%s: regions %+v", c.name, l)
		}
		for b := range groth16.BlockCount {
			if end := l.sumAt[min(1, b)] + l.sums[b].Bytes; end > l.bytes {
				t.Errorf("%s: %v ends at %d of %d", c.name, b, end, l.bytes)
			}
		}
	}
}
