package simulate

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/sched"
)

const ms = time.Millisecond

// peerHost is the machine that the peer was measured on: 16 CPUs, one H200 (docs/measurements.md, "Policies in the simulator").
func peerHost() *Machine {
	return &Machine{Cores: 16, HostBytes: 1 << 40, Cards: []*Card{{Title: "H200", Bytes: 141e9}}}
}

// peerPartition is a partition of supraseal-c2 (Curio's fork) on that machine, with the times of one that was proved alone. One
// thread prepares the sums of L, A and B beside the quotient and the sum H; then the card adds, which waits for that, while all threads
// sum up B in G2. pause is what a worker does between two calls.
func peerPartition(pause time.Duration) []Step {
	steps := []Step{
		{Name: "pause", Time: pause},
		{Name: "prep_msm", Time: 4433 * ms, After: []string{"pause"}},
		{Name: "ntt_msm_h", Lane: host.LaneDevice, Time: 1524 * ms, After: []string{"pause"}, Keep: true},
		{Name: "batch_add", Lane: host.LaneDevice, Time: 682 * ms, After: []string{"prep_msm"}, Keep: true},
		{Name: "tail_msm", Lane: host.LaneDevice, Time: 265 * ms},
		{Name: "b_g2", Time: 1530 * ms, Threads: 16, After: []string{"prep_msm"}},
	}
	return steps
}

// run is Run in virtual time.
func run(t *testing.T, m *Machine, setup Setup, jobs ...*Job) (r *Result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { r = Run(m, setup, jobs) })
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return r
}

// errorOf is by how much a prediction is off, in parts of what was measured.
func errorOf(predicted, measured float64) float64 { return predicted/measured - 1 }

// TestPeer_Walls: the stage times of the peer's single worker, and nothing else, predict what two and three workers take,
// and the part of the time that the card computes.
func TestPeer_Walls(t *testing.T) {
	stream := func(workers, partitions int, pause time.Duration) *Result {
		return run(t, peerHost(), Setup{Policy: sched.Split{}, Workers: workers, PartitionWorkers: 16},
			&Job{Name: "peer", Partitions: partitions, Steps: peerPartition(pause), Ahead: partitions})
	}
	seconds := func(d time.Duration) float64 { return d.Seconds() }
	one := stream(1, 10, 0)
	two, twoSteady := stream(2, 10, 15*ms), stream(2, 50, 15*ms)
	three := stream(3, 10, 15*ms)
	parts := func(r *Result, from, to int) float64 { // of ten partitions
		p := r.Jobs[0].Partitions
		return seconds(p[to-1]-p[from-1]) * 10 / float64(to-from)
	}
	for _, c := range []struct {
		what                string
		predicted, measured float64
		within              float64 // 0: only told
	}{
		{"gw=1, ten from idle, s", seconds(one.Wall), 51.9, 0.15},
		{"gw=2, ten from idle, s", seconds(two.Wall), 32.2, 0.15},
		{"gw=2, ten in a stream, s", parts(twoSteady, 10, 50), 27.2, 0.15},
		{"gw=3, ten from idle, s", seconds(three.Wall), 27.9, 0.15},
		{"gw=3, ten in a stream, s", parts(three, 3, 10), 24.2, 0.15},
		{"gw=1, part of the time that the card computes, %", 100 * seconds(one.Busy("H200")) / seconds(one.Wall), 48.5, 0.15},
		// Without the pause the worker that gives the peer's mutex up takes it again before the other one wakes. Rights go in order here.
		{"gw=2 without a pause, s", seconds(stream(2, 10, 0).Wall), 34.1, 0},
		{"gw=3 without a pause, s", seconds(stream(3, 10, 0).Wall), 36.4, 0},
	} {
		off := errorOf(c.predicted, c.measured)
		t.Logf("%-50s predicted %6.2f, measured %6.2f, off by %+.1f%%", c.what, c.predicted, c.measured, 100*off)
		if c.within > 0 && math.Abs(off) > c.within {
			t.Errorf("%s: off by %+.1f%%, more than %.0f%%", c.what, 100*off, 100*c.within)
		}
	}
}

// smallCard is the machine of the published interlock designs: 96 cores, 333 GB/s, one card of 16 GiB.
func smallCard() *Machine {
	return &Machine{Cores: 96, Bandwidth: 333, HostBytes: 1 << 40, Cards: []*Card{{Title: "16 GiB", Bytes: 16 << 30}}}
}

// publishedPartition has the published times of that machine, in ms: registering 5, staging 18, kernels 1824 of which 650 add and 83 are tails,
// preparation 1909, B2 484, the rest 5 and 3. Without staging before the lock the kernels of the same design took 3.75 s, the
// release before; inside is the difference where the staging has to be done inside, and 0 where memory is planned.
func publishedPartition(prepFirst bool, inside time.Duration) []Step {
	staged := "register"
	if prepFirst {
		staged = "prep_msm"
	}
	return []Step{
		{Name: "register", Time: 5 * ms, Looks: true},
		{Name: "prep_msm", Time: 1909 * ms, After: []string{"register"}},
		{Name: "stage", Lane: host.LaneCopy, Time: 18 * ms, After: []string{staged}, Inside: inside},
		{Name: "ntt_msm_h", Lane: host.LaneDevice, Time: (1824 - 650 - 83) * ms, After: []string{"stage"}, Keep: true},
		{Name: "batch_add", Lane: host.LaneDevice, Time: 650 * ms, After: []string{"prep_msm"}, Keep: true},
		{Name: "tail_msm", Lane: host.LaneDevice, Time: 83 * ms},
		{Name: "b_g2", Time: 484 * ms, Threads: 96, After: []string{"prep_msm"}},
		{Name: "epilogue", Time: 8 * ms, After: []string{"tail_msm", "b_g2"}},
	}
}

// insideStaging is what a partition took more without staging before the lock.
const insideStaging = (3750 - 1824) * ms

// synthesis of a proof's partitions, all side by side, before the first comes to the card.
const publishedSynthesis = 35 * time.Second

// TestTwoLock_Collapse: why the published two-lock design took 72.5 s for one proof. Three workers, room for one partition on the card: all but the
// first find none, and take in the lock what the older design took. Where memory is planned, staging late costs nothing more,
// and the same policy on the same card is as quick as the single lock with two workers.
func TestTwoLock_Collapse(t *testing.T) {
	proof := func(p sched.Policy, workers, rooms int, inside time.Duration) time.Duration {
		r := run(t, smallCard(), Setup{Policy: p, Workers: workers, PartitionWorkers: 16}, &Job{Name: "cold", Prepare: publishedSynthesis, Partitions: 10,
			Steps: publishedPartition(false, inside), Ahead: 10, Rooms: rooms})
		return r.Wall
	}
	rooms := int(math.Floor(16 / 13.8)) // GiB of the card, and of a partition at its peak
	collapsed := proof(sched.TwoLock{}, 3, rooms, insideStaging)
	planned := proof(sched.TwoLock{}, 3, rooms, 0)
	single := proof(sched.Single{}, 2, rooms, 0)
	partition := (collapsed - publishedSynthesis).Seconds() / 10
	off := errorOf(collapsed.Seconds(), 72.5)
	t.Logf("two-lock, allocating as it goes: %.1f s, measured 72.5 s, off by %+.1f%%; a partition %.2f s, measured 3.3 to 3.9 s", collapsed.Seconds(), 100*off, partition)
	t.Logf("two-lock, planned: %.1f s; single with two workers: %.1f s", planned.Seconds(), single.Seconds())
	if math.Abs(off) > 0.15 || partition < 3.3 || partition > 3.9 {
		t.Error("the collapse is not reproduced")
	}
	if planned > single*105/100 {
		t.Error("planned, two-lock is slower than single by more than 5%")
	}
	// The single lock's published 48.5% is kernels over the length of a call. It follows where the preparation comes before the kernels; the source
	// says that it runs beside them, from which 68% would follow, and that was not what was seen.
	for _, first := range []bool{true, false} {
		r := run(t, smallCard(), Setup{Policy: sched.Single{}, Workers: 1, PartitionWorkers: 16},
			&Job{Name: "one", Partitions: 10, Steps: publishedPartition(first, 0), Ahead: 10})
		share := 100 * r.Busy("16 GiB").Seconds() / r.Wall.Seconds()
		busy := 100 * 18240 * ms.Seconds() / r.Wall.Seconds()
		t.Logf("single, gw=1, preparation first %v: %.1f s for ten (32.1 s a proof measured), kernels %.1f%% of the time (48.5%% published, %+.1f%%)",
			first, r.Wall.Seconds(), busy, 100*errorOf(busy, 48.5))
		if math.Abs(share-busy) > 0.5 {
			t.Errorf("the timeline says %.1f%%", share)
		}
		if first && math.Abs(errorOf(busy, 48.5)) > 0.15 {
			t.Error("off by more than 15%")
		}
	}
}
