package porep

import (
	"runtime"
	"testing"
)

// Goal: what a program says that it takes is what it takes.
func TestProgram_Bytes(t *testing.T) {
	heap := func() int64 {
		runtime.GC()
		runtime.GC() // what finalizers held
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	record(Shapes()[0]) // makes what all programs have together
	for _, name := range []string{"2KiB", "32GiB"} {
		if name == "32GiB" && testing.Short() {
			continue // seconds
		}
		shape, err := ShapeByName(name)
		if err != nil {
			t.Fatal(err)
		}
		before := heap()
		p := record(shape)
		took := heap() - before
		t.Logf("%s: %d bytes, %d told", name, took, p.Bytes())
		if told := p.Bytes(); told < took*9/10 || told > took*11/10 {
			t.Errorf("%s: %d bytes, %d told", name, took, told)
		}
		runtime.KeepAlive(p)
	}
}
