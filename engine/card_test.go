package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/cuda/kerneltest"
	"github.com/sealc2/sealc2/tests/support"
)

// sectorOnCard is a 2 KiB sector and an engine on a card, which has its parameters after warm's first proof.
type sectorOnCard struct {
	api     *driver.API
	engine  *Engine
	request *ProveRequest
	want    []byte
}

func newSectorOnCard(t testing.TB) *sectorOnCard {
	t.Helper()
	kerneltest.NeedCard(t)
	dir, sector := paramDir(t, "porep-2k"), loadSector(t, "porep-2k-a")
	api, images, _ := kerneltest.Machine(t, 1)
	c := &sectorOnCard{api: api, engine: open(t, Config{Device: "cuda", gpus: onMachine(api, images)}, nil), want: sector.proofBytes(t)}
	c.request = &ProveRequest{
		C1: sector.c1, IDs: sector.ids(t), Params: ParamSource{Dir: dir, AllowDev: true}, OnChain: true,
		R: support.Scalars(t, sector.proof.R), S: support.Scalars(t, sector.proof.S),
	}
	for range 2 {
		c.right(t, "nothing")
	}
	return c
}

// right proves, compares, and returns the seconds.
func (c *sectorOnCard) right(t testing.TB, after string) float64 {
	t.Helper()
	begin := time.Now()
	result, err := c.engine.Prove(context.Background(), c.request)
	took := time.Since(begin).Seconds()
	if err != nil || !bytes.Equal(result.Proof, c.want) {
		t.Fatalf("after %s: want the reference's proof, got %v", after, err)
	}
	return took
}

// memory is what is free on the card, and what the process has of the machine's.
func (c *sectorOnCard) memory(t testing.TB) (free, resident int64) {
	t.Helper()
	d, err := c.api.Open(0)
	if err != nil {
		t.Fatal(err)
	}
	err = d.In(func() (err error) {
		free, _, err = d.Memory()
		return err
	})
	if err = errors.Join(err, d.Close()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return free, pages * int64(os.Getpagesize())
}

// Goal: a driver call that fails in a sector's proof on a card costs that proof and nothing else: an error by value, neither the
// card's memory nor the machine's lost, the next proof right. Method: calls spread over a proof fail, with results that leave the
// context alive and one that does not.
func TestFaults_SectorOnCard(t *testing.T) {
	c := newSectorOnCard(t)
	before := c.api.Counts().Total
	c.right(t, "nothing")
	calls := c.api.Counts().Total - before
	const samples, slack = 24, 64 << 20
	results := []driver.Result{driver.OutOfMemory, driver.LaunchFailed, driver.InvalidValue}
	free, resident := c.memory(t)
	failed := 0
	for k := range int64(samples) {
		n, result := 1+k*(calls-1)/(samples-1), results[k%3]
		c.api.FailCall(n, result)
		_, err := c.engine.Prove(context.Background(), c.request)
		c.api.FailCall(0, 0)
		var f *driver.Failure
		if err != nil {
			failed++
			if !errors.As(err, &f) || f.Result != result || f.Name == "" || f.Text == "" {
				t.Errorf("call %d of %d: want an error with the driver's, got %v", n, calls, err)
			}
		}
		c.right(t, fmt.Sprintf("call %d failed (%v)", n, err))
		nowFree, nowResident := c.memory(t)
		if nowFree < free-slack || nowResident > resident+slack {
			t.Errorf("call %d of %d (%v): %d MiB less free on the card, %d MiB more of the machine's", n, calls, err, (free-nowFree)>>20, (nowResident-resident)>>20)
		}
	}
	t.Logf("%d calls, %d of %d faults ended a proof", calls, failed, samples)
	if failed < samples/2 {
		t.Errorf("only %d of %d faults ended a proof", failed, samples)
	}
}

// Goal: the time of a 2 KiB sector's proof, parameters on the card: from the C1 text to the verified proof, and calls that stall the
// card. Floor: 15 windows of 2^22 - 1 scalars and half of 6.0 M points with a one, at 4.6 G additions/s in G1 and 1.8 in G2; six
// transforms of 2^22 at 68 G products/s. Expanding, reading the C1 and the pairings are the CPU's.
func BenchmarkProve_SectorOnCard(b *testing.B) {
	c := newSectorOnCard(b)
	before := c.api.Counts()
	var times []float64
	for range max(b.N, 15) {
		times = append(times, 1e3*c.right(b, "nothing"))
	}
	counts := c.api.Counts().Sub(before)
	stalling := counts.Class[driver.Stalling] + counts.Beside + counts.Unwarmed
	slices.Sort(times)
	median := times[len(times)/2]
	const floor = (15*4194303+(2685673+2674948+685522)/2)/4.6e6 + 685522/2/1.8e6 + 6*22*(1<<21)/68e6
	fmt.Printf("RESULT 2 KiB proof: median %.1f ms [%.1f, %.1f] of %d; %d driver calls each; floor %.1f ms, ratio %.1f\n",
		median, times[0], times[len(times)-1], len(times), counts.Total/int64(len(times)), floor, median/floor)
	fmt.Printf("RESULT stalling calls: %d in %d proofs\n", stalling, len(times))
	b.ReportMetric(median, "ms")
}
