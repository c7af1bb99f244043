package engine

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/cuda"
	"github.com/sealc2/sealc2/cuda/kerneltest"
	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/circuit/porep"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/params"
	"github.com/sealc2/sealc2/engine/status"
	"github.com/sealc2/sealc2/engine/synthetic"
)

// openKey is a verifying key of which everything is known: all its points are the generators. So a proof of any public inputs can be
// made: with alpha = beta = gamma = delta = 1 and all IC points one, sums of a = b = 0 verify where h + l is the inputs' negative sum.
func openKey(inputs int) *groth16.VerifyingKey {
	_, _, g1, g2 := bls.Generators()
	vk := &groth16.VerifyingKey{AlphaG1: g1, BetaG1: g1, BetaG2: g2, GammaG2: g2, DeltaG1: g1, DeltaG2: g2, IC: make([]bls.G1Affine, inputs)}
	for i := range vk.IC {
		vk.IC[i] = g1
	}
	return vk
}

// openSums are sums that verify for public inputs, with the leading one, under openKey.
func openSums(inputs []fr.Element) *groth16.Sums {
	var sum fr.Element
	for i := range inputs {
		sum.Sub(&sum, &inputs[i])
	}
	var sums groth16.Sums // all others are infinity
	g, _, _, _ := bls.Generators()
	sums.L.ScalarMultiplication(&g, sum.BigInt(new(big.Int)))
	return &sums
}

// openParams writes a parameter file of openKey for a program, of full size and with nothing on the disk behind the key.
func openParams(t *testing.T, program *circuit.Program, path string) {
	t.Helper()
	counts := params.CountsOf(program)
	key := groth16.AppendVK(nil, openKey(program.InputCount()))
	if err := os.WriteFile(path+params.VKExt, key, 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(path + params.ParamsExt)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := file.Truncate(counts.Bytes()); err != nil {
		t.Fatal(err)
	}
	write := func(data []byte, at int64) {
		if _, err := file.WriteAt(data, at); err != nil {
			t.Fatal(err)
		}
	}
	write(key, 0)
	for b := range groth16.BlockCount {
		write(binary.BigEndian.AppendUint32(nil, uint32(counts.Blocks[b])), counts.Offset(b)-params.CountBytes)
	}
}

// slowCard is a backend whose host part is that of a card, the real one, and whose device part only takes its time.
type slowCard struct {
	groth16.Backend
	compute time.Duration // of a partition
	threads int
}

func (*slowCard) Name() string { return "slow card" }

func (s *slowCard) Plan(p *circuit.Program, partitions int) (groth16.Plan, error) {
	return groth16.Plan{Batch: 1, Ahead: 2, HostBytes: witnessBytes(p), Threads: s.threads}, nil
}

func (s *slowCard) Begin(p *circuit.Program, _ groth16.Plan, _ int, inputs func(int) (*circuit.Inputs, error), _ groth16.SRS, arena *host.Arena) (groth16.Batch, error) {
	return &slowBatch{card: s, program: p, inputs: inputs, witness: newWitness(p, arena)}, nil
}

type slowBatch struct {
	card    *slowCard
	program *circuit.Program
	inputs  func(int) (*circuit.Inputs, error)
	witness *circuit.Witness
}

func (b *slowBatch) Stages() []host.Stage {
	return []host.Stage{
		{Name: "expand", Lane: host.LaneHost, Needs: host.Needs{Threads: b.card.threads}, Run: func(ctx context.Context) error {
			in, err := b.inputs(0)
			if err != nil {
				return err
			}
			return b.program.Expand(ctx, in, b.witness, b.card.threads)
		}},
		{Name: "compute", Lane: host.LaneDevice, After: []int{0}, Run: func(ctx context.Context) error { return pause(ctx, b.card.compute) }},
	}
}

func (b *slowBatch) Inputs(int) []fr.Element         { return b.witness.Inputs }
func (b *slowBatch) Sums(int) (*groth16.Sums, error) { return openSums(b.witness.Inputs), nil }
func (b *slowBatch) Close()                          {}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// mostRSS samples what the process has of the machine's memory until the returned function is called, which tells the most.
func mostRSS(t *testing.T) func() int64 {
	stop, most := make(chan struct{}), make(chan int64)
	go func() {
		var err error
		var peak int64
		defer func() { most <- peak }()
		defer status.Recover("test", &err)
		for {
			peak = max(peak, host.RSS())
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	return func() int64 { close(stop); return <-most }
}

// Goal: twenty proofs of 32 GiB sectors at once, whose partitions come off the host's hands ten times faster than the card takes them, stay within the
// budget of host memory: those who submit wait for room in the queue, and the host for the card. Method: everything but the device's part is real, with a
// parameter file of full size. In the long form the card takes ten times an H200's 0.73 s, and all proofs end; else the rest is cancelled after
// the first.
func TestBurst_SlowDevice(t *testing.T) {
	if testing.Short() {
		t.Skip("records the 32 GiB circuit, and expands ten partitions: most of a minute")
	}
	long := os.Getenv("SEALC2_LONG") == "1"
	const proofs, hostBytes, queueBytes = 20, 1 << 30, 100 << 20
	shape, err := porep.ShapeByName("32GiB")
	if err != nil {
		t.Fatal(err)
	}
	card := &slowCard{compute: 400 * time.Millisecond, threads: 2}
	if long {
		card.compute = 7300 * time.Millisecond
	}
	sector, err := synthetic.Make(t.Context(), synthetic.Options{Shape: shape, Version: porep.V1_1, Seed: 1, Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	document := sector.Output.AppendJSON(nil)
	sector = nil
	path := filepath.Join(t.TempDir(), "open")
	openParams(t, porep.Program(shape), path)
	e := open(t, Config{Device: "cpu", HostBytes: hostBytes, QueueBytes: queueBytes}, func(groth16.Backend) groth16.Backend { return card })
	debug.FreeOSMemory()                                // what making the sector left
	before := host.RSS() - porep.Program(shape).Bytes() // which the budget holds too
	most := mostRSS(t)
	var done atomic.Int32
	var submitted atomic.Int32
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all sync.WaitGroup
	for k := range proofs {
		all.Go(func() {
			var err error
			defer func() {
				if err != nil && (long || status.KindOf(err) != status.Cancelled || ctx.Err() == nil) {
					t.Errorf("proof %d: %v", k, err)
				}
			}()
			defer status.Recover("test", &err)
			var j *Job
			if j, err = e.Submit(ctx, &ProveRequest{C1: document, Params: ParamSource{Dir: path + params.ParamsExt, AllowDev: true}}, SubmitOptions{ID: JobID(fmt.Sprint("burst ", k))}); err != nil {
				return
			}
			submitted.Add(1)
			defer context.AfterFunc(ctx, j.Cancel)()
			var result *ProveResult
			if result, err = j.Wait(context.WithoutCancel(ctx)); err != nil {
				return
			}
			if len(result.Proof) != 10*groth16.ProofBytes {
				t.Errorf("proof %d has %d bytes", k, len(result.Proof))
			}
			if done.Add(1); !long {
				cancel()
			}
		})
	}
	all.Wait()
	peak, usage := most(), e.budget.Usage()
	t.Logf("RSS %d MiB before, %d MiB at most; budget %d MiB, of which %d for the queue; at most %d MiB were reserved; %d submitted, %d proved",
		before>>20, peak>>20, hostBytes>>20, queueBytes>>20, usage.Peak.HostBytes>>20, submitted.Load(), done.Load())
	if done.Load() == 0 {
		t.Error("no proof")
	}
	if peak-before > hostBytes || usage.Peak.HostBytes > hostBytes-queueBytes {
		t.Error("the budget is not kept")
	}
	if !long && submitted.Load() == proofs {
		t.Error("nobody waited for room in the queue")
	}
}

// slowed is a backend on a real card whose copies and kernels take ten times as long.
type slowed struct{ *cuda.Backend }

type slowedBatch struct{ groth16.Batch }

func (s slowed) Begin(p *circuit.Program, plan groth16.Plan, count int, inputs func(int) (*circuit.Inputs, error), srs groth16.SRS, arena *host.Arena) (groth16.Batch, error) {
	b, err := s.Backend.Begin(p, plan, count, inputs, srs, arena)
	return slowedBatch{b}, err
}

func (b slowedBatch) Stages() []host.Stage {
	all := b.Batch.Stages()
	for i := range all {
		run := all[i].Run
		if all[i].Lane != host.LaneHost {
			all[i].Run = func(ctx context.Context) error {
				begin := time.Now()
				if err := run(ctx); err != nil {
					return err
				}
				return pause(ctx, 9*time.Since(begin))
			}
		}
	}
	return all
}

// Goal: the same on a card, slowed ten times: twenty proofs of a partition, submitted at once with the bytes of a C1 output, within the budget.
func TestBurst_OnCard(t *testing.T) {
	kerneltest.NeedCard(t)
	const proofs, bytes, hostBytes = 20, 40 << 20, 1 << 30
	api, e, full := newFullOnCard(t, 1, hostBytes)
	for _, d := range e.devices {
		d.backend = slowed{d.backend.(*cuda.Backend)}
	}
	before, most := loadNow(t, api), mostRSS(t)
	var all sync.WaitGroup
	begin := time.Now()
	for k := range proofs {
		all.Go(func() {
			var err error
			defer func() {
				if err != nil {
					t.Errorf("proof %d: %v", k, err)
				}
			}()
			defer status.Recover("test", &err)
			own := *full
			var j *Job
			if j, err = submitTiny(t.Context(), e, &own, bytes, SubmitOptions{}); err == nil {
				_, err = j.Wait(t.Context())
			}
		})
	}
	all.Wait()
	peak, usage := most(), e.budget.Usage()
	fmt.Printf("RESULT burst of %d proofs, card slowed 10x, %.1f s: %s before, RSS at most %d MiB, budget %d MiB, reserved at most %d MiB; %s after\n",
		proofs, time.Since(begin).Seconds(), before, peak>>20, hostBytes>>20, usage.Peak.HostBytes>>20, loadNow(t, api))
	if peak-before.rss > hostBytes {
		t.Error("the budget is not kept")
	}
}
