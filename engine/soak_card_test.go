package engine

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
	"github.com/sealc2/sealc2/tests/support"
)

// load is what a process has of its machine and of a card.
type load struct{ rss, vram, threads, files int64 }

func (l load) String() string {
	return fmt.Sprintf("RSS %d MiB, VRAM %d MiB, %d threads, %d files", l.rss>>20, l.vram>>20, l.threads, l.files)
}

func loadNow(t testing.TB, api *driver.API) (l load) {
	t.Helper()
	d, err := api.Open(0)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	err = d.In(func() error {
		free, total, err := d.Memory()
		l.vram = total - free
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	l.rss = host.RSS()
	for path, into := range map[string]*int64{"/proc/self/task": &l.threads, "/proc/self/fd": &l.files} {
		entries, err := os.ReadDir(path)
		if err != nil {
			t.Fatal(err)
		}
		*into = int64(len(entries))
	}
	return l
}

// Goal: nothing grows over many proofs of two kinds in one process: ten of 32 GiB partitions, each followed by nine of a 2 KiB sector. From the
// second round on, RSS stays within 64 MiB, the card's memory, threads and files where they were.
func TestSoak_OnCard(t *testing.T) {
	api, e, full := newFullOnCard(t, 1, 0)
	dir, sector := paramDir(t, "porep-2k"), loadSector(t, "porep-2k-a")
	small := &ProveRequest{
		C1: sector.c1, IDs: sector.ids(t), Params: ParamSource{Dir: dir, AllowDev: true}, OnChain: true,
		R: support.Scalars(t, sector.proof.R), S: support.Scalars(t, sector.proof.S),
	}
	var first load
	for round := range 10 {
		if _, err := e.ProveProgram(context.Background(), full); err != nil {
			t.Fatal(err)
		}
		for range 9 {
			result, err := e.Prove(context.Background(), small)
			if err != nil || !bytes.Equal(result.Proof, sector.proofBytes(t)) {
				t.Fatalf("round %d: a small proof: %v", round, err)
			}
		}
		now := loadNow(t, api)
		fmt.Printf("RESULT soak, %d proofs: %s\n", 10*(round+1), now)
		if round == 1 {
			first = now
		}
		if round > 1 && (now.rss > first.rss+64<<20 || now.vram > first.vram+16<<20 || now.threads > first.threads+4 || now.files > first.files) {
			t.Errorf("round %d: %s, in round 1 %s", round, now, first)
		}
	}
}

// Goal: a proof that is cancelled at any instant leaves nothing on the card or the machine, ends soon, and the next one is right. Method: fifty
// random instants of a proof.
func TestCancel_OnCard(t *testing.T) {
	c := newSectorOnCard(t)
	took := c.right(t, "nothing")
	before := loadNow(t, c.api)
	random := rand.New(rand.NewPCG(3, 4))
	var slowest time.Duration
	for k := range 50 {
		ctx, cancel := context.WithCancel(context.Background())
		at := time.Duration(random.Float64() * took * float64(time.Second))
		var cancelled atomic.Int64
		time.AfterFunc(at, func() {
			cancelled.Store(time.Now().UnixNano())
			cancel()
		})
		_, err := c.engine.Prove(ctx, c.request)
		if err != nil && (ctx.Err() == nil || status.KindOf(err) != status.Cancelled) {
			t.Errorf("cancelled at %s: %v", at, err)
		}
		if err != nil {
			slowest = max(slowest, time.Duration(time.Now().UnixNano()-cancelled.Load()))
		}
		cancel()
		c.right(t, fmt.Sprintf("a cancel at %s", at))
		if k == 9 {
			before = loadNow(t, c.api)
		}
	}
	now := loadNow(t, c.api)
	fmt.Printf("RESULT 50 cancels: %s before, %s after; the slowest took %.1f ms to end\n", before, now, slowest.Seconds()*1e3)
	if now.rss > before.rss+64<<20 || now.vram > before.vram+16<<20 || now.threads > before.threads+4 || now.files > before.files {
		t.Errorf("before %s, after %s", before, now)
	}
}

// Goal: whatever part of a card other programs take, before an engine opens or while it has parameters there, a proof comes out right or ends
// with an error of both numbers, and the next one is right once the memory is back.
func TestHog_OnCard(t *testing.T) {
	c := newSectorOnCard(t)
	d, err := c.api.Open(0)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	leave, err := d.Enter()
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	for _, percent := range []int64{30, 60, 90, 100} {
		// The engine lets go of all that it may, and then has to bring everything up again beside the hog.
		for _, device := range c.engine.devices {
			if err := device.backend.(interface{ Release(context.Context) error }).Release(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		free, _, err := d.Memory()
		if err != nil {
			t.Fatal(err)
		}
		hog, err := d.MapArena(free * percent / 100 / (1 << 21) * (1 << 21))
		for back := int64(1); err != nil && percent == 100; back++ { // the driver keeps a little
			hog, err = d.MapArena(free - back<<26)
		}
		if err != nil {
			t.Fatal(err)
		}
		result, proving := c.engine.Prove(context.Background(), c.request)
		switch {
		case proving == nil && bytes.Equal(result.Proof, c.want):
		case percent == 100 && status.KindOf(proving) == status.NoMemory:
		default:
			t.Errorf("%d%% taken: %v", percent, proving)
		}
		if err := hog.Close(); err != nil {
			t.Fatal(err)
		}
		c.right(t, fmt.Sprintf("%d%% taken (%v)", percent, proving))
		fmt.Printf("RESULT %d%% of %d MiB taken by others: error %v\n", percent, free>>20, proving)
	}
}
