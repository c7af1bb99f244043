package main

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sealc2/sealc2/engine"
	"github.com/sealc2/sealc2/engine/status"
)

// watchStep is how often the GPUs are looked at.
const watchStep = 100 * time.Millisecond

// gpuWatch looks at the GPUs while a bench runs. A nil one sees nothing.
type gpuWatch struct {
	watch *engine.Watch
	log   func(level, text string)
	stop  chan struct{}
	ended chan struct{}

	mu        sync.Mutex
	measuring bool
	failed    bool
	seen      []*gpuFigures // in the driver's order
	last      []engine.GPU
}

// gpuFigures are what a GPU was seen to do. Memory is that of all processes.
type gpuFigures struct {
	Name        string   `json:"name"`
	Total       int64    `json:"total_bytes"`
	Before      int64    `json:"used_before_bytes"` // before the engine opened
	Peak        int64    `json:"used_peak_bytes"`
	After       int64    `json:"used_after_bytes"` // after the last job
	Closed      int64    `json:"used_closed_bytes"`
	PowerWatts  *spread  `json:"power_watts"` // while jobs were measured; null where it was not told
	ClockMHz    *spread  `json:"clock_mhz"`
	Throttle    []string `json:"throttle"`
	power, rate []float64
}

// watchGPUs begins to look; nil where there is nothing to be seen, which the log says.
func watchGPUs(log func(level, text string)) *gpuWatch {
	watch, err := engine.OpenWatch()
	if err != nil {
		log("info", "GPUs are not watched: "+err.Error())
		return nil
	}
	w := &gpuWatch{watch: watch, log: log, stop: make(chan struct{}), ended: make(chan struct{})}
	w.look()
	for _, g := range w.last {
		w.seen = append(w.seen, &gpuFigures{Name: g.Name, Total: g.TotalBytes, Before: g.UsedBytes, Peak: g.UsedBytes, Throttle: []string{}})
	}
	go func() {
		defer close(w.ended)
		var err error
		defer func() {
			if err != nil {
				log("warn", err.Error())
			}
		}()
		defer status.Recover("cli.Watch", &err)
		for tick := time.NewTicker(watchStep); ; {
			select {
			case <-tick.C:
				w.look()
			case <-w.stop:
				tick.Stop()
				return
			}
		}
	}()
	return w
}

// look reads once. An error is said once, and what it leaves out is left out.
func (w *gpuWatch) look() {
	all, err := w.watch.Read()
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil && !w.failed {
		w.failed = true
		w.log("warn", err.Error())
	}
	w.last = all
	for _, g := range all {
		i := slices.IndexFunc(w.seen, func(f *gpuFigures) bool { return f.Name == g.Name })
		if i < 0 {
			continue
		}
		f := w.seen[i]
		f.Peak = max(f.Peak, g.UsedBytes)
		if !w.measuring {
			continue
		}
		if g.PowerMilliwatts > 0 {
			f.power = append(f.power, float64(g.PowerMilliwatts)/1000)
		}
		if g.ClockMHz > 0 {
			f.rate = append(f.rate, float64(g.ClockMHz))
		}
		for _, reason := range g.Throttle {
			if !slices.Contains(f.Throttle, reason) {
				f.Throttle = append(f.Throttle, reason)
			}
		}
	}
}

// measure says that jobs are measured from now on.
func (w *gpuWatch) measure() {
	if w != nil {
		w.mu.Lock()
		w.measuring = true
		w.mu.Unlock()
	}
}

// proves tells whether a GPU is one of an engine's devices, whose names follow each other with commas.
func proves(gpu, devices string) bool {
	return slices.ContainsFunc(strings.Split(devices, ", "), func(d string) bool { return d == gpu || strings.HasPrefix(d, gpu+" ") })
}

// used is the memory in use now on an engine's devices; 0 where nobody tells.
func (w *gpuWatch) used(devices string) (n int64) {
	if w == nil {
		return 0
	}
	w.look()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, g := range w.last {
		if proves(g.Name, devices) {
			n += g.UsedBytes
		}
	}
	return n
}

// figures are those of an engine's devices, after the last job.
func (w *gpuWatch) figures(devices string) []*gpuFigures {
	out := []*gpuFigures{}
	if w == nil {
		return out
	}
	w.look()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.measuring = false
	for _, f := range w.seen {
		if proves(f.Name, devices) {
			f.PowerWatts, f.ClockMHz = spreadOf(f.power), spreadOf(f.rate)
			out = append(out, f)
		}
	}
	w.note(out, func(f *gpuFigures) *int64 { return &f.After })
	return out
}

// closed notes what is in use when the engine is closed.
func (w *gpuWatch) closed(figures []*gpuFigures) {
	if w == nil {
		return
	}
	w.look()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(figures, func(f *gpuFigures) *int64 { return &f.Closed })
}

// note writes the memory in use into a field; the caller holds mu.
func (w *gpuWatch) note(figures []*gpuFigures, field func(*gpuFigures) *int64) {
	for _, f := range figures {
		for _, g := range w.last {
			if g.Name == f.Name {
				*field(f) = g.UsedBytes
			}
		}
	}
}

// close ends the watch.
func (w *gpuWatch) close() {
	if w == nil {
		return
	}
	close(w.stop)
	<-w.ended
	if err := w.watch.Close(); err != nil {
		w.log("warn", err.Error())
	}
}
