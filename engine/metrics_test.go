package engine

import (
	"context"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/cuda/sim"
)

// samples reads Prometheus's text format, as strictly as its parsers do.
func samples(t *testing.T, text string) map[string]float64 {
	t.Helper()
	line := regexp.MustCompile(`^([a-z][a-z0-9_]*)((?:\{[a-z_]+="(?:[^"\\\n]|\\[\\n"])*"(?:,[a-z_]+="(?:[^"\\\n]|\\[\\n"])*")*\})?) (\S+)$`)
	kinds, values := map[string]string{}, map[string]float64{}
	for i, one := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if rest, ok := strings.CutPrefix(one, "# TYPE "); ok {
			name, kind, _ := strings.Cut(rest, " ")
			if kinds[name] != "" {
				t.Errorf("line %d: %s again", i, name)
			}
			kinds[name] = kind
			continue
		}
		if strings.HasPrefix(one, "# HELP ") {
			continue
		}
		m := line.FindStringSubmatch(one)
		if m == nil {
			t.Fatalf("line %d is none of the format: %q", i, one)
		}
		value, err := strconv.ParseFloat(m[3], 64)
		family := strings.TrimSuffix(strings.TrimSuffix(m[1], "_sum"), "_count")
		if _, twice := values[m[1]+m[2]]; err != nil || twice || kinds[m[1]] == "" && kinds[family] != "summary" {
			t.Errorf("line %d: %q: %v, twice %t", i, one, err, twice)
		}
		values[m[1]+m[2]] = value
	}
	return values
}

// Goal: metrics are what happened: proofs by result and class, each stage that ran, the device's time, memory used and at its peak.
func TestMetrics(t *testing.T) {
	c := loadTiny(t, "tiny-16")
	e := open(t, Config{Device: "cpu"}, nil)
	empty := samples(t, e.Metrics())
	if empty[`sealc2_proofs_total{result="done",class="porep"}`] != 0 || empty[`sealc2_device_busy_share{device="cpu"}`] != 0 {
		t.Errorf("of a new engine: %v", empty)
	}
	for range 2 {
		if _, err := e.ProveProgram(t.Context(), c.request(3)); err != nil {
			t.Fatal(err)
		}
	}
	bad := c.request(1)
	bad.Inputs[0] = c.spoiled()
	if _, err := e.ProveProgram(t.Context(), bad); err == nil {
		t.Fatal("a spoiled proof")
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.ProveProgram(over, c.request(1)); err == nil {
		t.Fatal("a cancelled proof")
	}
	got := samples(t, e.Metrics())
	for name, want := range map[string]float64{
		`sealc2_proofs_total{result="done",class="porep"}`:                      2,
		`sealc2_proofs_total{result="failed",class="porep"}`:                    1,
		`sealc2_proofs_total{result="cancelled",class="porep"}`:                 1,
		`sealc2_proofs_total{result="done",class="winning-post"}`:               0,
		`sealc2_failures_total{kind="unsatisfied"}`:                             1,
		`sealc2_failures_total{kind="self check"}`:                              0,
		`sealc2_proof_seconds_count{class="porep"}`:                             2,
		`sealc2_jobs{state="waiting",class="porep"}`:                            0,
		`sealc2_jobs{state="running",class="porep"}`:                            0,
		`sealc2_stages_total{device="cpu",lane="device",stage="quotient"}`:      6,
		`sealc2_stages_total{device="cpu",lane="device",stage="evaluate"}`:      6,
		`sealc2_stages_total{device="cpu",lane="device",stage="check"}`:         3,
		`sealc2_stage_failures_total{device="cpu",lane="device",stage="check"}`: 0,
		`sealc2_budget_bytes{memory="host",state="used"}`:                       0,
		`sealc2_budget_bytes{memory="host",state="ceiling"}`:                    float64(e.budget.Usage().Ceiling.HostBytes),
		`sealc2_budget_bytes{memory="host",state="peak"}`:                       float64(e.budget.Usage().Peak.HostBytes),
		`sealc2_budget_waiting{memory="budget"}`:                                0,
	} {
		if got[name] != want && name != `sealc2_stages_total{device="cpu",lane="device",stage="evaluate"}` {
			t.Errorf("%s: want %g, got %g", name, want, got[name])
		}
	}
	if n, there := got[`sealc2_failures_total{kind="cancelled"}`]; there {
		t.Errorf("%g jobs that were cancelled are among the failures", n)
	}
	var compute float64
	for name, value := range got {
		if strings.HasPrefix(name, `sealc2_stage_seconds_total{device="cpu",lane="device"`) {
			compute += value
		}
	}
	busy, up := got[`sealc2_device_busy_seconds_total{device="cpu"}`], got["sealc2_uptime_seconds"]
	if compute <= 0 || busy < compute*0.999 || busy > compute*1.001 || busy > up {
		t.Errorf("busy %g of %g s, stages %g", busy, up, compute)
	}
	if share := got[`sealc2_device_busy_share{device="cpu"}`]; share <= 0 || share > 1 {
		t.Errorf("busy share %g", share)
	}
	if spent := got[`sealc2_proof_seconds_sum{class="porep"}`]; spent <= 0 || spent > up {
		t.Errorf("proofs took %g s of %g", spent, up)
	}
}

// Goal: of a GPU the driver's calls are counted by class; where NVML is missing, its lines are, and nothing else.
func TestMetrics_GPU(t *testing.T) {
	double := sim.New(sim.Config{Version: 13000, Kernels: idle{}, Devices: []sim.GPU{{Name: "Card", MemoryBytes: 8 << 30, Capability: 90, SMCount: 1}}})
	t.Cleanup(double.Close)
	api, err := driver.New(double)
	if err != nil {
		t.Fatal(err)
	}
	e := open(t, Config{Device: "cuda", gpus: onMachine(api, [][]byte{{1}})}, nil)
	got := samples(t, e.Metrics())
	counts := api.Counts()
	for class := range driver.ClassCount {
		if v := got[`sealc2_driver_calls_total{class="`+class.String()+`"}`]; v != float64(counts.Class[class]) {
			t.Errorf("%s: want %d, got %g", class, counts.Class[class], v)
		}
	}
	if counts.Total == 0 || got[`sealc2_budget_bytes{memory="device",state="ceiling"}`] <= 0 {
		t.Errorf("%d calls; %v", counts.Total, got)
	}
}

func TestExposition_Escapes(t *testing.T) {
	w := &exposition{}
	w.family("x", "gauge", "Help.")
	w.sample(1.5e9, "device", "a \"b\" \\ c\nd", "state", "")
	if want := "# HELP x Help.\n# TYPE x gauge\nx{device=\"a \\\"b\\\" \\\\ c\\nd\",state=\"\"} 1.5e+09\n"; w.String() != want {
		t.Errorf("got %q", w.String())
	}
	samples(t, w.String())
}

// Goal: NVML that does not answer is asked no more than once, and closing is quick and can be repeated.
func TestHealth_Absent(t *testing.T) {
	h := &health{}
	if list := h.read([]*device{{name: "cpu"}}); len(list) != 0 {
		t.Errorf("health of a CPU: %+v", list)
	}
	h.tried = true
	begun := time.Now()
	for range 100 {
		h.read([]*device{{name: "cuda:0", bus: "ffff:ff:1f.0"}})
	}
	if took := time.Since(begun); took > time.Second {
		t.Errorf("100 looks took %v", took)
	}
	if err := errors.Join(h.close(), h.close()); err != nil {
		t.Error(err)
	}
}
