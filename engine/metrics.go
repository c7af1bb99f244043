package engine

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/cuda/nvml"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/sched"
	"github.com/sealc2/sealc2/engine/status"
)

// tally counts an engine's proofs.
type tally struct {
	opened time.Time
	names  atomic.Uint64 // of jobs that have none of their own

	mu      sync.Mutex
	waiting [ClassCount]int
	running [ClassCount]int
	ended   map[outcome]int64
	spent   [ClassCount]spent

	nvml health
}

// outcome is how a job ended: by kind, status.OK for a proof.
type outcome struct {
	class Class
	kind  status.Kind
}

// spent sums up what successful jobs took, from the call on.
type spent struct {
	count   int64
	seconds float64
}

// tallied is where a job is counted; under tally.mu once it has entered.
type tallied struct {
	class    Class
	deadline time.Time
	came     time.Time // when it was submitted; zero for a call
	began    time.Time
	admitted bool
}

// enter counts a job that waits, and names it for the timeline.
func (p *proof) enter(name string) string {
	t, own := &p.tally, &p.tallied
	own.began = time.Now()
	if p.job != nil {
		own.class, own.deadline, own.came, name = p.job.class, p.job.deadline, p.job.at.Submitted, string(p.job.id)
	} else {
		name = fmt.Sprintf("%s-%d", name, t.names.Add(1))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting[own.class]++
	return name
}

// admitted counts a job that has passed the desk; called again, it does nothing.
func (p *proof) admitted() {
	t, own := &p.tally, &p.tallied
	t.mu.Lock()
	defer t.mu.Unlock()
	if !own.admitted {
		own.admitted = true
		p.job.admitted()
		t.waiting[own.class]--
		t.running[own.class]++
	}
}

// leave counts a job that ended.
func (p *proof) leave(err error) {
	t, own := &p.tally, &p.tallied
	t.mu.Lock()
	defer t.mu.Unlock()
	if own.admitted {
		t.running[own.class]--
	} else {
		t.waiting[own.class]--
	}
	if t.ended == nil {
		t.ended = map[outcome]int64{}
	}
	t.ended[outcome{own.class, status.KindOf(err)}]++
	if err == nil {
		s := &t.spent[own.class]
		s.count++
		s.seconds += time.Since(own.began).Seconds()
	}
}

// result is an outcome's name: a proof, somebody's will, or a failure.
func (o outcome) result() string {
	switch o.kind {
	case status.OK:
		return "done"
	case status.Cancelled:
		return "cancelled"
	}
	return "failed"
}

// Metrics is the engine's state in Prometheus's text format (0.0.4): sums since Open, and gauges of now. GPUs are asked by NVML, at
// most once a second; where it does not answer, those lines are not there. It takes thousandths of a second, and no proof waits for it.
func (e *Engine) Metrics() string {
	w := &exposition{}
	e.jobMetrics(w)
	e.stageMetrics(w)
	e.memoryMetrics(w)
	e.deviceMetrics(w)
	return w.String()
}

func (e *Engine) jobMetrics(w *exposition) {
	t := &e.tally
	t.mu.Lock()
	waiting, running, ended, spent := t.waiting, t.running, maps.Clone(t.ended), t.spent
	t.mu.Unlock()
	w.family("sealc2_uptime_seconds", "gauge", "Since the engine was opened.")
	w.sample(time.Since(t.opened).Seconds())
	w.family("sealc2_proofs_total", "counter", "Jobs that ended, by result and class.")
	results := map[[2]string]int64{}
	for o, n := range ended {
		results[[2]string{o.result(), o.class.String()}] += n
	}
	for _, result := range []string{"done", "failed", "cancelled"} {
		for class := range ClassCount {
			w.sample(float64(results[[2]string{result, class.String()}]), "result", result, "class", class.String())
		}
	}
	w.family("sealc2_failures_total", "counter", "Jobs that failed, by the error's kind.")
	for _, kind := range status.Kinds() {
		var n int64
		for class := range ClassCount {
			n += ended[outcome{class, kind}]
		}
		if kind != status.OK && kind != status.Cancelled && (n > 0 || kind == status.SelfCheck) { // hardware that fails is worth a line of zero
			w.sample(float64(n), "kind", kind.String())
		}
	}
	w.family("sealc2_proof_seconds", "summary", "From the call to the proof, by class.")
	for class := range ClassCount {
		w.suffixed("_sum", spent[class].seconds, "class", class.String())
		w.suffixed("_count", float64(spent[class].count), "class", class.String())
	}
	w.family("sealc2_jobs", "gauge", "Jobs that wait for admission, and that were admitted, by class.")
	for class := range ClassCount {
		w.sample(float64(waiting[class]), "state", "waiting", "class", class.String())
		w.sample(float64(running[class]), "state", "running", "class", class.String())
	}
}

func (e *Engine) stageMetrics(w *exposition) {
	totals := e.sched.Timeline().Totals()
	places := slices.SortedFunc(maps.Keys(totals), func(a, b sched.Place) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Lane, b.Lane), cmp.Compare(a.Stage, b.Stage))
	})
	w.family("sealc2_stage_seconds_total", "counter", "Time of stages that ended, by device, lane and stage.")
	for _, p := range places {
		w.sample(totals[p].Time.Seconds(), "device", p.Device, "lane", p.Lane.String(), "stage", p.Stage)
	}
	w.family("sealc2_stages_total", "counter", "Stages that ended, the failed ones among them.")
	for _, p := range places {
		w.sample(float64(totals[p].Count), "device", p.Device, "lane", p.Lane.String(), "stage", p.Stage)
	}
	w.family("sealc2_stage_failures_total", "counter", "Stages that failed or were cancelled.")
	for _, p := range places {
		if totals[p].Failed > 0 {
			w.sample(float64(totals[p].Failed), "device", p.Device, "lane", p.Lane.String(), "stage", p.Stage)
		}
	}
	busy := map[string]time.Duration{}
	for p, sum := range totals {
		if p.Lane == host.LaneDevice {
			busy[p.Device] += sum.Time
		}
	}
	w.family("sealc2_device_busy_seconds_total", "counter", "Time in stages that compute. Its rate is the device's busy share.")
	for _, d := range e.devices {
		w.sample(busy[d.name].Seconds(), "device", d.name)
	}
	w.family("sealc2_device_busy_share", "gauge", "Share of the last minute in stages that compute, of those that the timeline still has.")
	for _, d := range e.devices {
		w.sample(e.busyShare(d.name, time.Minute), "device", d.name)
	}
}

// busyShare is the share of the time until now, at most window, in which stages that have ended computed on a device.
func (e *Engine) busyShare(device string, window time.Duration) float64 {
	now := time.Since(e.tally.opened)
	window = min(window, now)
	var busy time.Duration
	for _, entry := range e.Timeline() {
		if entry.Device == device && entry.Lane == host.LaneDevice && entry.End > now-window {
			busy += entry.End - max(entry.Start, now-window)
		}
	}
	if window <= 0 {
		return 0
	}
	return min(1, busy.Seconds()/window.Seconds())
}

func (e *Engine) memoryMetrics(w *exposition) {
	u, q := e.budget.Usage(), e.jobs.queue.Usage()
	w.family("sealc2_budget_bytes", "gauge", "The engine's memory budget: what is reserved now, the most that ever was, and the ceiling.")
	for _, m := range []struct {
		memory             string
		used, peak, within int64
	}{
		{"host", u.Used.HostBytes, u.Peak.HostBytes, u.Ceiling.HostBytes},
		{"device", u.Used.DeviceBytes, u.Peak.DeviceBytes, u.Ceiling.DeviceBytes},
		{"queue", q.Used.HostBytes, q.Peak.HostBytes, q.Ceiling.HostBytes},
	} {
		w.sample(float64(m.used), "memory", m.memory, "state", "used")
		w.sample(float64(m.peak), "memory", m.memory, "state", "peak")
		w.sample(float64(m.within), "memory", m.memory, "state", "ceiling")
	}
	w.family("sealc2_budget_waiting", "gauge", "Requests that wait for memory.")
	w.sample(float64(u.Waiting), "memory", "budget")
	w.sample(float64(q.Waiting), "memory", "queue")
}

func (e *Engine) deviceMetrics(w *exposition) {
	var api *driver.API
	for _, d := range e.devices {
		if d.api != nil {
			api = d.api // the process has one
		}
	}
	if api == nil {
		return
	}
	counts := api.Counts()
	w.family("sealc2_driver_calls_total", "counter", "Calls of the GPU driver by this process, by what they do to the device.")
	for class := range driver.ClassCount {
		w.sample(float64(counts.Class[class]), "class", class.String())
	}
	w.family("sealc2_driver_stalls_total", "counter", "Calls that stop a device, made while something was queued.")
	w.sample(float64(counts.Beside))

	list := e.tally.nvml.read(e.devices)
	if len(list) == 0 {
		return
	}
	gauge := func(name, help string, value func(*nvml.Health) float64) {
		w.family(name, "gauge", help)
		for _, h := range list {
			w.sample(value(&h.Health), "device", h.device)
		}
	}
	w.family("sealc2_gpu_memory_bytes", "gauge", "The GPU's memory, whoever uses it.")
	for _, h := range list {
		w.sample(float64(h.TotalBytes-h.FreeBytes), "device", h.device, "state", "used")
		w.sample(float64(h.TotalBytes), "device", h.device, "state", "total")
	}
	gauge("sealc2_gpu_power_watts", "What the GPU draws.", func(h *nvml.Health) float64 { return float64(h.PowerMilliwatts) / 1000 })
	gauge("sealc2_gpu_power_limit_watts", "What it may draw.", func(h *nvml.Health) float64 { return float64(h.LimitMilliwatts) / 1000 })
	gauge("sealc2_gpu_temperature_celsius", "The GPU's temperature.", func(h *nvml.Health) float64 { return float64(h.Celsius) })
	gauge("sealc2_gpu_clock_hertz", "Clock of the multiprocessors.", func(h *nvml.Health) float64 { return float64(h.ClockMHz) * 1e6 })
	gauge("sealc2_gpu_ecc_uncorrected", "Memory errors since the driver was loaded that were not corrected.", func(h *nvml.Health) float64 { return float64(h.Uncorrected) })
	w.family("sealc2_gpu_throttled", "gauge", "1 for each reason that slows the GPU down now.")
	for _, h := range list {
		for _, reason := range h.Throttle {
			w.sample(1, "device", h.device, "reason", reason)
		}
	}
}

// health asks NVML about devices, at most once a second.
type health struct {
	mu      sync.Mutex
	session *nvml.Session
	tried   bool // NVML was looked for
	asked   time.Time
	last    []deviceHealth
}

type deviceHealth struct {
	device string
	nvml.Health
}

// read is the devices' health; those that do not tell are left out.
func (h *health) read(devices []*device) []deviceHealth {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.tried {
		h.tried = true
		h.session, _ = nvml.Open() // without it the lines are missing, which is all there is to say
	}
	if h.session == nil {
		return nil
	}
	if now := time.Now(); h.asked.IsZero() || now.Sub(h.asked) >= time.Second {
		h.asked, h.last = now, nil
		for _, d := range devices {
			if d.bus == "" {
				continue
			}
			if one, err := h.session.Health(d.bus); err == nil {
				h.last = append(h.last, deviceHealth{d.name, one})
			}
		}
	}
	return h.last
}

// close gives NVML back.
func (h *health) close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	session := h.session
	h.session, h.tried = nil, true
	if session == nil {
		return nil
	}
	return session.Close()
}

// exposition is text in Prometheus's format.
type exposition struct {
	bytes.Buffer
	name string
}

// family begins a metric.
func (w *exposition) family(name, kind, help string) {
	w.name = name
	fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

// sample writes one value of the family, with labels in pairs of name and value.
func (w *exposition) sample(value float64, labels ...string) { w.suffixed("", value, labels...) }

func (w *exposition) suffixed(suffix string, value float64, labels ...string) {
	w.WriteString(w.name + suffix)
	for i := 0; i < len(labels); i += 2 {
		separator := ","
		if i == 0 {
			separator = "{"
		}
		fmt.Fprintf(w, "%s%s=\"%s\"", separator, labels[i], labelEscapes.Replace(labels[i+1]))
	}
	if len(labels) > 0 {
		w.WriteByte('}')
	}
	fmt.Fprintf(w, " %g\n", value)
}

// labelEscapes are those of the format.
var labelEscapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
