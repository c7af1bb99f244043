package cuda

import (
	"fmt"
	"testing"

	"github.com/sealc2/sealc2/cuda/kerneltest"
	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/groth16"
)

// Goal: whatever of the parameters is resident, comes up in pieces from pinned memory or from the file, and however rows and roots are
// kept, the proofs are the reference's. Method: plans of all forms in place of the one that a large device gets, several partitions a batch.
func TestProve_Plans(t *testing.T) {
	all := [groth16.BlockCount]bool{true, true, true, true, true}
	v := loadTiny(t, "tiny-64", true)
	for _, hostBytes := range []int64{0, 20 << 10, 1 << 30} {
		api, images, _ := kerneltest.Machine(t, 11)
		b, err := Open(Config{API: api, Images: images, Threads: 2, HostBytes: hostBytes})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range []struct {
			explicit bool
			resident [groth16.BlockCount]bool
			roots    roots
			vectors  int
			count    int
			slot     int64
		}{
			{false, all, compactRoots, 2, 1, 0},
			{false, [groth16.BlockCount]bool{true}, fullRoots, 3, 3, 64 * 192},
			{false, [groth16.BlockCount]bool{}, compactRoots, 2, 2, 80 * 192},
			{false, [groth16.BlockCount]bool{}, fullRoots, 3, 1, 1 << 20},
			{true, all, fullRoots, 0, 1, 0},
			{true, all, fullRoots, 3, 1, 0},
			{true, [groth16.BlockCount]bool{}, compactRoots, 2, 1, 64 * 192},
		} {
			name := fmt.Sprintf("%d bytes for pinned points, %+v", hostBytes, f)
			s, blocks := assignmentShape(v.assignment), new(pointBlocks)
			if f.explicit {
				for block := range groth16.BlockCount {
					if blocks[block], err = assignmentBlock(v.assignment, block, circuit.Bits{}); err != nil {
						t.Fatal(err)
					}
				}
			} else {
				known, _, err := b.planned(v.program)
				if err != nil {
					t.Fatal(err)
				}
				s, blocks = known.shape, &known.blocks
			}
			p := newPlan(s, f.resident, f.roots, f.vectors, f.count, 1)
			p.slotBytes = f.slot
			if err := p.lay(blocks, b.card); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			clear(b.plans)
			b.plans[planKey{*s, f.count}] = p
			for round := range 2 {
				proofs, err := proveBatch(t.Context(), b, v, f.explicit, f.count)
				if err != nil {
					t.Fatalf("%s, round %d: %v", name, round, err)
				}
				for k, proof := range proofs {
					if proof != v.proof {
						t.Errorf("%s, round %d: partition %d has another proof", name, round, k)
					}
				}
			}
		}
		settled(t, b)
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
}
