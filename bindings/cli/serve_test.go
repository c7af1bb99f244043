package main

import (
	"context"
	"encoding/json"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	rpc "google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	pb "github.com/sealc2/sealc2/bindings/grpc/cuzkv1"
	"github.com/sealc2/sealc2/engine"
	"github.com/sealc2/sealc2/engine/host"
)

// servedProver is an engine that notes what it is asked and has a proof for it.
type servedProver struct {
	*engine.Engine
	config         engine.Config
	opened, closed int
	asked          chan *engine.ProveRequest
}

func (p *servedProver) open(c engine.Config) (prover, error) {
	p.config = c
	p.opened++
	var err error
	p.Engine, err = engine.Open(c)
	return p, err
}

func (p *servedProver) Submit(ctx context.Context, request *engine.ProveRequest, options engine.SubmitOptions) (*engine.Job, error) {
	return p.SubmitFunc(ctx, request, options, func(_ context.Context, request *engine.ProveRequest) (*engine.ProveResult, error) {
		p.asked <- request
		return &engine.ProveResult{Proof: make([]byte, 192)}, nil
	})
}

func (p *servedProver) Close() error { p.closed++; return p.Engine.Close() }

// Goal: flags and environment arrive, the service answers on its socket until the context ends, and that is success.
func TestServe(t *testing.T) {
	dir := t.TempDir()
	address, timeline := "unix://"+filepath.Join(dir, "folder", "s.sock"), writeFile(t, filepath.Join(dir, "timeline"), []byte("an earlier run's\n"))
	p := &servedProver{asked: make(chan *engine.ProveRequest, 1)}
	w := world{
		open: p.open,
		env:  map[string]string{"FIL_PROOFS_PARAMETER_CACHE": "/params", envAllowDev: "1", envThreads: "3"},
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	type end struct {
		code           int
		stdout, stderr string
	}
	ended := make(chan end, 1)
	go func() {
		var e end
		e.code, e.stdout, e.stderr = w.run(ctx, "serve", "--listen", address, "--memory", "3GiB", "--queue-memory", "512MiB", "--device", "cpu", "--log", "info", "--json",
			"--policy", "two-lock", "--gpu-workers", "5", "--partition-workers", "4", "--timeline", timeline)
		ended <- e
	}()
	conn, err := rpc.NewClient(address, rpc.WithTransportCredentials(insecure.NewCredentials()), rpc.WithDefaultCallOptions(rpc.WaitForReady(true)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	call, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	response, err := pb.NewProvingEngineClient(conn).Prove(call, &pb.ProveRequest{Submit: &pb.SubmitProofRequest{
		ProofKind: pb.ProofKind_POREP_SEAL_COMMIT, VanillaProof: []byte("C1"), MinerId: 1000,
	}})
	if err != nil || response.Result.Status != pb.AwaitProofResponse_COMPLETED || len(response.Result.Proof) != 192 {
		t.Fatal(response, err)
	}
	q := <-p.asked
	if !q.Params.AllowDev || q.Params.Dir != "/params" || !q.OnChain || q.IDs == nil {
		t.Errorf("request %+v", q)
	}
	if p.config.HostBytes != (3<<30)-(256<<20) || p.config.QueueBytes != 256<<20 || p.config.Threads != 3 || p.config.Device != "cpu" ||
		p.config.Policy != "two-lock" || p.config.DeviceWorkers != 5 || p.config.PartitionWorkers != 4 {
		t.Errorf("config %+v", p.config)
	}
	stop()
	e := <-ended
	var v serveJSON
	if err := json.Unmarshal([]byte(e.stdout), &v); err != nil || e.code != exitDone || v.Completed != 1 || v.Failed != 0 || v.Listen != address || p.closed != 1 {
		t.Errorf("exit code %d, %q, closed %d times", e.code, e.stdout, p.closed)
	}
	if lines := strings.Split(string(readFile(t, timeline)), "\n"); len(lines) < 3 || lines[0] != "an earlier run's" || !strings.HasPrefix(lines[1], "# sealc2 ") {
		t.Errorf("timeline %q", lines)
	}
	if !strings.Contains(e.stderr, "info: serving") {
		t.Errorf("log %q", e.stderr)
	}
}

// Goal: what cannot be served is refused, and no engine stays open.
func TestServe_Refused(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	p := &servedProver{}
	w := world{open: p.open}
	for _, c := range []struct {
		args []string
		code int
		text string
	}{
		{[]string{"--listen", "nowhere"}, exitUsage, "host:port"},
		{[]string{"--listen", taken.Addr().String()}, exitRefused, "in use"},
		{[]string{"--queue", "-1"}, exitUsage, "--queue"},
		{[]string{"--queue-memory", "1MiB"}, exitUsage, host.FormatBytes(384 << 20)},
		{[]string{"--queue-memory", "much"}, exitUsage, "--queue-memory"},
		{[]string{"--memory", "512MiB", "--queue-memory", "1GiB"}, exitRefused, "more than the queue's"},
		{[]string{"--timeline", "/nowhere/timeline"}, exitRefused, "--timeline: want to open /nowhere/timeline"},
		{[]string{"more"}, exitUsage, "flags only"},
	} {
		code, _, stderr := w.run(t.Context(), append([]string{"serve"}, c.args...)...)
		if code != c.code || !strings.Contains(stderr, c.text) {
			t.Errorf("%q: exit code %d, %q", c.args, code, stderr)
		}
	}
	if p.opened != p.closed {
		t.Errorf("opened %d, closed %d", p.opened, p.closed)
	}
}
