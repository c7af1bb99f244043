package main

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sealc2/sealc2/engine/sched"
)

// The chart's measures, in pixels.
const (
	chartLeft  = 130 // where bars begin; names of rows stand left of it
	chartWidth = 1200
	chartRight = 20
	chartTop   = 44
	rowHeight  = 26
	barHeight  = 20
	letter     = 6.2 // about the width of one, at the size of the bars' text
	legendStep = 190
)

// chartColours are told apart on white, with black text on them. Names take them in the order of their first appearance.
var chartColours = []string{
	"#8dd3c7", "#ffd92f", "#bebada", "#fb8072", "#80b1d3", "#fdb462", "#b3de69", "#f4a6cf", "#d9d9d9", "#c58fd6", "#ccebc5", "#d8b27a",
	"#4fc3e8", "#ff7f50", "#66c266", "#a3a3ff", "#e6e68a", "#ffb3ba", "#7fbfa0", "#c0c0a0", "#ffcf99", "#b0e0ff", "#d4a5a5", "#9fd0b0",
}

// chartRow is a line of bars that do not overlap.
type chartRow struct {
	name string
	bars []sched.Entry
}

// chartRows puts stages into rows: the host's first, then each device's copies and what it computes. Stages of one lane that run at the
// same time get rows below each other.
func chartRows(entries []sched.Entry) (rows []chartRow) {
	name := func(e sched.Entry) string {
		lane := laneName(e)
		if lane == "host" {
			return lane
		}
		// "cuda:0 NVIDIA H200" is too long for the margin.
		device := e.Device
		if i := slices.Index([]byte(device), ' '); i >= 0 {
			device = device[:i]
		}
		return device + " " + lane
	}
	rank := func(e sched.Entry) int {
		if laneName(e) == "host" {
			return -1
		}
		return int(e.Lane)
	}
	list := slices.Clone(entries)
	slices.SortStableFunc(list, func(a, b sched.Entry) int {
		device := cmp.Compare(a.Device, b.Device)
		if rank(a) < 0 || rank(b) < 0 {
			device = 0
		}
		return cmp.Or(cmp.Compare(min(rank(a), 0), min(rank(b), 0)), device, cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Start, b.Start))
	})
	for _, e := range list {
		called := name(e)
		at := slices.IndexFunc(rows, func(r chartRow) bool { return r.name == called && r.bars[len(r.bars)-1].End <= e.Start })
		if at < 0 {
			rows = append(rows, chartRow{name: called})
			at = len(rows) - 1
		}
		rows[at].bars = append(rows[at].bars, e)
	}
	return rows
}

// tickStep is a round step that cuts a span into 5 to 14 pieces.
func tickStep(span float64) float64 {
	step := math.Pow(10, math.Floor(math.Log10(span/5)))
	for _, factor := range []float64{1, 2, 5, 10} {
		if span/(step*factor) <= 14 {
			return step * factor
		}
	}
	return 10 * step
}

// drawChart draws stages as bars over time, a row for each lane. The document is plain SVG 1.1 without styles or scripts.
func drawChart(title string, entries []sched.Entry) []byte {
	rows := chartRows(entries)
	begin, end := time.Duration(0), time.Duration(1)
	if len(entries) > 0 {
		begin, end = extent(entries)
	}
	span := max(end-begin, time.Microsecond)
	const plot = float64(chartWidth - chartLeft - chartRight)
	x := func(at time.Duration) float64 { return chartLeft + plot*(at-begin).Seconds()/span.Seconds() }

	var names []string
	sums := map[string]time.Duration{}
	for _, e := range slices.SortedStableFunc(slices.Values(entries), func(a, b sched.Entry) int { return cmp.Compare(a.Start, b.Start) }) {
		if _, seen := sums[e.Stage]; !seen {
			names = append(names, e.Stage)
		}
		sums[e.Stage] += e.End - e.Start
	}
	colour := func(stage string) string { return chartColours[slices.Index(names, stage)%len(chartColours)] }
	perLine := (chartWidth - chartLeft) / legendStep
	axis := chartTop + rowHeight*len(rows)
	legend := axis + 44
	height := legend + 18*((len(names)+perLine-1)/perLine) + 8

	var b bytes.Buffer
	text := func(x, y float64, size int, anchor, content string) {
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" font-family="sans-serif" font-size="%d" text-anchor="%s" fill="#000000">`, x, y, size, anchor)
		xml.EscapeText(&b, []byte(content)) // a buffer takes all that is written to it
		b.WriteString("</text>\n")
	}
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" version="1.1" width="%d" height="%d" viewBox="0 0 %d %d">`+"\n", chartWidth, height, chartWidth, height)
	fmt.Fprintf(&b, `<rect x="0" y="0" width="%d" height="%d" fill="#ffffff"/>`+"\n", chartWidth, height)
	text(10, 24, 15, "start", fmt.Sprintf("%s: %.3f s", title, span.Seconds()))
	step := tickStep(span.Seconds())
	digits := max(0, int(-math.Floor(math.Log10(step))))
	for i := 0; float64(i)*step <= span.Seconds(); i++ {
		at := chartLeft + plot*float64(i)*step/span.Seconds()
		fmt.Fprintf(&b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#cccccc" stroke-width="1"/>`+"\n", at, chartTop-4, at, axis)
		text(at, float64(axis)+16, 11, "middle", fmt.Sprintf("%.*f s", digits, float64(i)*step))
	}
	for i, r := range rows {
		y := float64(chartTop + rowHeight*i)
		text(chartLeft-8, y+15, 12, "end", r.name)
		for _, e := range r.bars {
			from, to := x(e.Start), x(e.End)
			width := max(to-from, 0.4)
			from = min(from, chartLeft+plot-width)
			what := e.Stage
			if e.Partition != sched.WholeJob {
				what = fmt.Sprintf("%s %d", e.Stage, e.Partition)
			}
			fmt.Fprintf(&b, `<rect x="%.2f" y="%.1f" width="%.2f" height="%d" fill="%s" stroke="#555555" stroke-width="0.3"><title>`, from, y, width, barHeight, colour(e.Stage))
			xml.EscapeText(&b, fmt.Appendf(nil, "%s: %.4f s from %.4f s", what, (e.End-e.Start).Seconds(), (e.Start-begin).Seconds()))
			b.WriteString("</title></rect>\n")
			for _, label := range []string{what, e.Stage} {
				if letter*float64(len(label))+4 <= width {
					text(from+width/2, y+14, 11, "middle", label)
					break
				}
			}
		}
	}
	for i, name := range names {
		left, top := float64(chartLeft+legendStep*(i%perLine)), float64(legend+18*(i/perLine))
		fmt.Fprintf(&b, `<rect x="%.1f" y="%.1f" width="12" height="12" fill="%s" stroke="#555555" stroke-width="0.3"/>`+"\n", left, top-10, colour(name))
		text(left+17, top, 11, "start", fmt.Sprintf("%s  %.3f s", name, sums[name].Seconds()))
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}
