package grpc

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	pb "github.com/sealc2/sealc2/bindings/grpc/cuzkv1"
	"github.com/sealc2/sealc2/engine"
	"github.com/sealc2/sealc2/tests/support"
)

// sectorRig is a service before a whole engine, and the C1 output of sector 1.
func sectorRig(t *testing.T, source engine.ParamSource) (r *rig, e *engine.Engine, c1 []byte) {
	t.Helper()
	c1, err := os.ReadFile(filepath.Join(support.Root(), "tests/vectors/c1/porep-2k-a/c1.json"))
	if err != nil {
		t.Fatal(err)
	}
	if e, err = engine.Open(engine.Config{Device: "cpu", QueueBytes: 64 << 20}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return newRig(t, e, func(c *Config) { c.Params = source }), e, c1
}

// wrap is a C1 output as Curio sends it.
func wrap(t *testing.T, c1 []byte, sector uint64) string {
	t.Helper()
	text, err := json.Marshal(struct {
		SectorNum  int64
		Phase1Out  []byte
		SectorSize uint64
	}{int64(sector), c1, 2048})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// sectorRequest asks for the proof of a sector.
func sectorRequest(id, text string, sector uint64) *pb.SubmitProofRequest {
	q := porep(id, text)
	q.SectorNumber = sector
	return q
}

// Goal: what is no C1, another sector's, or without parameters fails in the engine with words, for who waits and for who submits and asks later.
func TestSector_Fails(t *testing.T) {
	r, _, c1 := sectorRig(t, engine.ParamSource{Dir: t.TempDir(), AllowDev: true})
	for name, c := range map[string]struct {
		request *pb.SubmitProofRequest
		text    string
	}{
		"garbage":        {sectorRequest("garbage", "\x00\xff garbage", 1), "c1.Parse"},
		"half a C1":      {sectorRequest("half", string(c1[:len(c1)/2]), 1), "c1.Parse"},
		"another sector": {sectorRequest("other", string(c1), 2), "replica_id"},
		"another number": {sectorRequest("number", wrap(t, c1, 2), 1), "SectorNum"},
		"no parameters":  {sectorRequest("params", string(c1), 1), ".vk"},
	} {
		result, err := r.prove(c.request)
		if err != nil || result.Status != pb.AwaitProofResponse_FAILED || !strings.Contains(result.ErrorMessage, c.text) {
			t.Errorf("%s: want FAILED with %q, got %v, %v", name, c.text, result, err)
		}
		if _, err := r.client.SubmitProof(t.Context(), c.request); err != nil {
			t.Errorf("%s, submitted: %v", name, err)
		}
		result, err = r.client.AwaitProof(t.Context(), &pb.AwaitProofRequest{JobId: c.request.RequestId})
		if err != nil || result.Status != pb.AwaitProofResponse_FAILED || !strings.Contains(result.ErrorMessage, c.text) {
			t.Errorf("%s, submitted: want FAILED with %q, got %v, %v", name, c.text, result, err)
		}
	}
	if s := r.status(); s.TotalProofsCompleted != 0 || s.TotalProofsFailed != 10 || len(s.Queues) != 0 || len(s.Gpus) != 0 {
		t.Errorf("status %v", s)
	}
}

// Goal: the engine behind the service proves a real sector for Curio, whose wrapper, ids and check of the proof are as here; a job is cancelled in the
// engine when its client goes.
func TestSector(t *testing.T) {
	if testing.Short() {
		t.Skip("a proof takes half a minute under the race detector")
	}
	source := engine.ParamSource{Dir: support.Params(t), Origin: "SEALC2_PARAMS", AllowDev: true}
	r, e, c1 := sectorRig(t, source)
	request := sectorRequest("porep-1000-1", wrap(t, c1, 1), 1)
	ctx, gone := context.WithCancel(t.Context())
	first := r.start(ctx, request)
	until(t, "it runs", func() bool { return r.counts().InProgress == 1 })
	gone()
	next(t, first)
	until(t, "the engine has let go of it", func() bool { return len(r.status().Queues) == 0 })

	var result *pb.AwaitProofResponse
	for range 2 { // the second time it is there
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		response, err := r.client.Prove(ctx, &pb.ProveRequest{Submit: request})
		if result = response.GetResult(); err != nil || result.Status != pb.AwaitProofResponse_COMPLETED || len(result.Proof) != 192 {
			t.Fatal(result, err)
		}
		t.Logf("%v: total %d ms, queue %d, srs %d, synthesis %d, compute %d", time.Since(begin), result.TotalMs, result.QueueWaitMs,
			result.SrsLoadMs, result.SynthesisMs, result.GpuComputeMs)
	}
	if s := r.status(); s.TotalProofsCompleted != 1 || s.TotalProofsFailed != 0 || len(s.Gpus) != 0 {
		t.Errorf("status %v", s)
	}
	ok, err := e.VerifyC1(t.Context(), &engine.VerifyC1Request{C1: c1, Proof: result.Proof, Params: source})
	if err != nil || !ok {
		t.Errorf("verify: %v, %v", ok, err)
	}
	if result.GpuComputeMs == 0 || result.TotalMs < result.GpuComputeMs {
		t.Errorf("times %v", result)
	}
}
