package driver

import "testing"

// Goal: of several symbols the newest that a driver has is taken, and what it lacks is known, so that New can say so.
func TestLookUp(t *testing.T) {
	exports := map[string]uintptr{"cuEventElapsedTime": 1, "cuStreamDestroy": 2, "cuInit": 3}
	find := func(symbol string) uintptr { return exports[symbol] }
	old := native{address: lookUp(find)}
	if old.address[EventElapsedTime] != 1 {
		t.Error("the older cuEventElapsedTime does where there is no other")
	}
	if old.Has(StreamDestroy) {
		t.Error("cuStreamDestroy without its suffix is another function")
	}
	if !old.Has(Init) || old.Has(LaunchKernel) {
		t.Errorf("%v", old.address)
	}
	exports["cuEventElapsedTime_v2"] = 4
	if got := lookUp(find)[EventElapsedTime]; got != 4 {
		t.Errorf("cuEventElapsedTime_v2 comes first, got %d", got)
	}
	seen := map[string]Entry{}
	for e := range EntryCount {
		for _, symbol := range e.Symbols() {
			if other, ok := seen[symbol]; ok {
				t.Errorf("%s stands for %d and %d", symbol, e, other)
			}
			seen[symbol] = e
		}
		if len(e.Symbols()) == 0 {
			t.Errorf("entry %d has no symbol", e)
		}
	}
}
