package kerneltest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/sealc2/sealc2/cuda/driver"
)

// Rates of one H200, for floors: products of Fr a second in chains on the whole card, and bytes a second of a copy,
// read and written.
const (
	FrRate   = 68e9
	CopyRate = 4.3e12
)

// Work is what a timed piece of work cannot do without.
type Work struct {
	Multiplications float64 // of Fr
	Bytes           float64 // read and written
}

// Timed measures on the card what f queues, b.N times, by the card's clock; the first time warms up. It prints the median,
// the extremes and the floor, and reports the median and its distance from the floor.
func Timed(b *testing.B, s *driver.Stream, w Work, f func() error) {
	b.Helper()
	d := Open(b) // a sub-benchmark is a goroutine of its own
	begin, err := d.NewEvent(true)
	if err != nil {
		b.Fatal(err)
	}
	defer begin.Close()
	end, err := d.NewEvent(true)
	if err != nil {
		b.Fatal(err)
	}
	defer end.Close()
	var times []float64
	for b.Loop() {
		if err := errors.Join(s.Record(begin), f(), s.Record(end), s.Synchronize(context.Background())); err != nil {
			b.Fatal(err)
		}
		ms, err := end.Since(begin)
		if err != nil {
			b.Fatal(err)
		}
		times = append(times, float64(ms))
	}
	times = times[min(1, len(times)-1):]
	slices.Sort(times)
	median := times[len(times)/2]
	byWork, byBytes := w.Multiplications/FrRate*1e3, w.Bytes/CopyRate*1e3
	floor := max(byWork, byBytes)
	fmt.Printf("%s: %.2f ms [%.2f, %.2f]; %.4g multiplications %.1f ms, %.4g bytes %.1f ms; floor %.1f ms, distance %.2f\n", b.Name(),
		median, times[0], times[len(times)-1], w.Multiplications, byWork, w.Bytes, byBytes, floor, median/floor)
	b.ReportMetric(median, "ms")
	b.ReportMetric(median/floor, "floors")
}
