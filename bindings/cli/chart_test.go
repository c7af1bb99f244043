package main

import (
	"bytes"
	"encoding/xml"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/sched"
)

// checkChart reads a chart as XML, holds all it draws to its bounds, and returns the number of bars.
func checkChart(t *testing.T, svg []byte) (bars int) {
	t.Helper()
	var width, height float64
	d := xml.NewDecoder(bytes.NewReader(svg))
	depth := 0
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, svg)
		}
		switch e := token.(type) {
		case xml.EndElement:
			depth--
		case xml.StartElement:
			depth++
			number := func(name string) (v float64) {
				for _, a := range e.Attr {
					if a.Name.Local == name {
						var err error
						if v, err = strconv.ParseFloat(a.Value, 64); err != nil {
							t.Errorf("%s: %v", name, err)
						}
					}
				}
				return v
			}
			inside := func(x, y float64) {
				if !(x >= 0 && x <= width && y >= 0 && y <= height) {
					t.Errorf("%s at %v, %v, outside %v x %v", e.Name.Local, x, y, width, height)
				}
			}
			switch e.Name.Local {
			case "svg":
				width, height = number("width"), number("height")
			case "rect":
				inside(number("x"), number("y"))
				inside(number("x")+number("width"), number("y")+number("height"))
			case "text":
				inside(number("x"), number("y"))
			case "line":
				inside(number("x1"), number("y1"))
				inside(number("x2"), number("y2"))
			case "title":
				bars++
			}
		}
	}
	if depth != 0 || width <= 0 || height <= 0 {
		t.Errorf("depth %d, %v x %v", depth, width, height)
	}
	return bars
}

// Goal: charts are XML, whatever the names are, and bars stay within them, whatever the times are.
func TestDrawChart(t *testing.T) {
	var many []sched.Entry
	for k := range 200 { // stages too short to be seen, at the very end too
		at := time.Duration(k) * time.Second
		many = append(many, sched.Entry{Partition: k, Device: "cuda:0", Lane: host.LaneDevice, Stage: "s" + strconv.Itoa(k%40), Start: at, End: at + time.Nanosecond})
	}
	for name, c := range map[string]struct {
		entries []sched.Entry
		bars    int
	}{
		"none":            {nil, 0},
		"no time":         {[]sched.Entry{{Stage: "parse", Start: time.Second, End: time.Second}}, 1},
		"one":             {[]sched.Entry{{Stage: "<parse & \"more\">\x00", Start: time.Hour, End: 2 * time.Hour}}, 1},
		"two partitions":  {twoPartitions(1, "cuda:0 <NVIDIA> & Co"), 10},
		"many":            {many, 200},
		"several devices": {append(twoPartitions(1, "cuda:0 A"), twoPartitions(1, "cuda:1 B")...), 20},
	} {
		t.Run(name, func(t *testing.T) {
			svg := drawChart("title <"+name+">", c.entries)
			if bars := checkChart(t, svg); bars != c.bars {
				t.Errorf("%d bars, want %d", bars, c.bars)
			}
		})
	}
}

// Goal: lanes stand in their order, and stages at the same time below each other.
func TestChartRows(t *testing.T) {
	var names []string
	for _, r := range chartRows(append(twoPartitions(1, "cuda:1 B"), twoPartitions(1, "cuda:0 A")...)) {
		names = append(names, r.name)
		for i := 1; i < len(r.bars); i++ {
			if r.bars[i].Start < r.bars[i-1].End {
				t.Errorf("%s: %+v overlaps %+v", r.name, r.bars[i], r.bars[i-1])
			}
		}
	}
	want := "host, host, host, host, cuda:0 copy, cuda:0 device, cuda:1 copy, cuda:1 device"
	if got := strings.Join(names, ", "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestTickStep(t *testing.T) {
	for _, span := range []float64{1e-6, 0.013, 0.1, 1, 4.9, 5, 9.99, 10, 14.1, 60, 3600} {
		if n := span / tickStep(span); n < 4.99 || n > 14.01 {
			t.Errorf("%v s: %v ticks", span, n)
		}
	}
}
