package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/circuit/porep"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
)

// Goal: what a proof is said to take is what the scheduler then reserves.
func TestRequirements(t *testing.T) {
	e := open(t, Config{Device: "cpu", Threads: 1}, nil)
	r, err := e.Requirements("2KiB", "")
	if err != nil {
		t.Fatal(err)
	}
	if r.Shape != "2KiB" || r.Partitions != 1 || len(r.Devices) != 1 || r.Threads != 1 || r.Ceiling != e.budget.Usage().Ceiling {
		t.Errorf("%+v", r)
	}
	if d := r.Devices[0]; d.Device != "cpu" || d.Batch != 1 || d.Ahead != 1 || d.Threads != 1 || d.DeviceBytes != 0 || d.SharedBytes != 0 || d.HostBytes <= 0 || d.HostBytes > r.HostBytes {
		t.Errorf("%+v", d)
	}
	again, err := e.Requirements("2KiB", "cpu")
	if err != nil || again.HostBytes != r.HostBytes {
		t.Errorf("%+v: %v", again, err)
	}
	for _, c := range [][2]string{{"3KiB", ""}, {"", ""}, {"2KiB", "cuda:0"}, {"2KiB", "cp"}} {
		if _, err := e.Requirements(c[0], c[1]); status.KindOf(err) != status.Caller {
			t.Errorf("%q: %v", c, err)
		}
	}
	exact := open(t, Config{Device: "cpu", Threads: 1, HostBytes: r.HostBytes}, nil)
	if _, err := exact.Requirements("2KiB", ""); err != nil {
		t.Errorf("exactly so much: %v", err)
	}
	little := open(t, Config{Device: "cpu", Threads: 1, HostBytes: r.HostBytes - 1}, nil)
	if r, err := little.Requirements("2KiB", ""); status.KindOf(err) != status.NoMemory || r == nil || !strings.Contains(err.Error(), "host memory: want at most") {
		t.Errorf("a byte less: %+v, %v", r, err)
	}
}

// keeper is a backend that keeps parameters, for tests of who asks it.
type keeper struct {
	groth16.Backend
	calls []string
	fail  error
}

func (k *keeper) note(ctx context.Context, call string) error {
	k.calls = append(k.calls, call)
	return errors.Join(k.fail, ctx.Err())
}

func (k *keeper) Preload(ctx context.Context, p *circuit.Program, partitions int, srs groth16.SRS) error {
	if p == nil || partitions != 1 || srs.VerifyingKey() == nil {
		return errors.New("not what a proof of 2 KiB has")
	}
	return k.note(ctx, "preload "+srs.ID())
}
func (k *keeper) Evict(ctx context.Context, id string) error { return k.note(ctx, "evict "+id) }
func (k *keeper) Release(ctx context.Context) error          { return k.note(ctx, "release") }
func (k *keeper) Forget(ctx context.Context, p *circuit.Program) error {
	return k.note(ctx, "forget "+p.Name())
}

var _ groth16.Resident = (*keeper)(nil)

// Goal: a recorded circuit counts in the budget for as long as it is there, with or without a job: one that was recorded for a question stays where there is room,
// and goes, on the devices too, when somebody lacks the memory; where there is none it goes at once.
func TestRequirements_Circuit(t *testing.T) {
	k := &keeper{}
	e := open(t, Config{Device: "cpu", Threads: 1, HostBytes: 2 << 30}, func(b groth16.Backend) groth16.Backend { k.Backend = b; return k })
	shape, err := porep.ShapeByName("2KiB")
	if err != nil {
		t.Fatal(err)
	}
	recorded := func() *circuit.Program { return porep.Program(shape) }
	if _, err := e.Requirements("2KiB", ""); err != nil {
		t.Fatal(err)
	}
	p := recorded()
	bytes := heapGrowth * p.Bytes()
	if u := e.budget.Usage(); u.Used.HostBytes != bytes || u.Kept.HostBytes != bytes {
		t.Errorf("%+v", u)
	}
	all, err := e.budget.Reserve(t.Context(), host.Needs{HostBytes: e.budget.Usage().Ceiling.HostBytes})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"forget " + p.Name()}; !slices.Equal(k.calls, want) {
		t.Errorf("want %q, got %q", want, k.calls)
	}
	again := recorded()
	if again == p {
		t.Error("the circuit is still there")
	}
	if _, err := e.Requirements("2KiB", ""); err != nil { // while others have all
		t.Error(err)
	}
	if u := e.budget.Usage(); u.Used.HostBytes != u.Ceiling.HostBytes || recorded() == again {
		t.Errorf("%+v", u)
	}
	// A job that is to come has it recorded once, though there is no room yet.
	a := loadSector(t, "porep-2k-a")
	p = recorded()
	if err := e.judge("test", &ProveRequest{C1: a.c1, IDs: a.ids(t)}, ClassPoRep); err != nil || recorded() != p {
		t.Errorf("recorded anew for a job that waits: %v", err)
	}
	all.Release()
}

// Goal: parameters are brought up and let go by name, here and on the device, and what the device says is passed on.
func TestPreload(t *testing.T) {
	source := ParamSource{Dir: paramDir(t, "porep-2k"), AllowDev: true}
	k := &keeper{}
	e := open(t, Config{Device: "cpu"}, func(b groth16.Backend) groth16.Backend { k.Backend = b; return k })
	ctx := t.Context()
	for range 2 {
		if err := e.Preload(ctx, source, "2KiB"); err != nil {
			t.Fatal(err)
		}
	}
	if len(e.resident.sets) != 1 || e.resident.sets[0].users != 0 {
		t.Fatalf("sets %+v", e.resident.sets)
	}
	id := e.resident.sets[0].file.ID()
	for range 2 { // the second time there is nothing left
		if err := e.Evict(ctx, source, "2KiB"); err != nil {
			t.Fatal(err)
		}
	}
	if len(e.resident.sets) != 0 {
		t.Errorf("after Evict: %+v", e.resident.sets)
	}
	if err := e.Preload(ctx, source, "2KiB"); err != nil {
		t.Fatal(err)
	}
	if err := e.IdleRelease(ctx); err != nil || len(e.resident.sets) != 0 {
		t.Errorf("IdleRelease: %v, sets %+v", err, e.resident.sets)
	}
	if want := []string{"preload " + id, "preload " + id, "evict " + id, "preload " + id, "release"}; !slices.Equal(k.calls, want) {
		t.Errorf("want %q\ngot  %q", want, k.calls)
	}
	k.fail = status.New(status.NoDevice, "test", "", "", "lost")
	for name, err := range map[string]error{"Preload": e.Preload(ctx, source, "2KiB"), "Evict": e.Evict(ctx, source, "2KiB"), "IdleRelease": e.IdleRelease(ctx)} {
		if status.KindOf(err) != status.NoDevice {
			t.Errorf("%s: %v", name, err)
		}
	}
	nowhere := ParamSource{Dir: t.TempDir()}
	for name, err := range map[string]error{
		"Preload": e.Preload(ctx, nowhere, "2KiB"), "Evict": e.Evict(ctx, nowhere, "2KiB"),
	} {
		if status.KindOf(err) != status.Params {
			t.Errorf("%s without files: %v", name, err)
		}
	}
	if err := e.Preload(ctx, source, "1KiB"); status.KindOf(err) != status.Caller {
		t.Errorf("an unknown size: %v", err)
	}
}
