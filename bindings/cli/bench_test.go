package main

import (
	"strings"
	"testing"

	"github.com/sealc2/sealc2/engine/host"
)

// Goal: the bench does what a proof does, wherever its threads are, and counts it truly.
func TestBenchSynthesis(t *testing.T) {
	const rows, written = 2687961, 3 * 32 * 2687961
	for _, c := range []struct {
		name string
		args []string
		kept bool
	}{
		{"bound", []string{"--near", "0"}, true},
		{"not bound", []string{"--unbound", "--check-only"}, false},
		{"no room for the rows", []string{"--memory", "100MiB"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, stdout, stderr := (world{}).run(t.Context(), append([]string{"bench", "synthesis", "--shape", "2KiB", "--threads", "2", "--json"}, c.args...)...)
			if code != exitDone {
				t.Fatalf("exit code %d: %s", code, stderr)
			}
			v := object(t, stdout)
			if v["rows"] != float64(rows) || v["partitions"] != 1.0 || v["rows_kept"] != c.kept {
				t.Errorf("got %s", stdout)
			}
			threads := 0.0
			for _, n := range v["per_node"].([]any) {
				threads += n.(map[string]any)["threads"].(float64)
			}
			limits, err := host.ThisMachine().Limits(2, 0)
			if err != nil || threads != float64(limits.Threads) {
				t.Errorf("%v threads of %v on nodes, %v", threads, limits, err)
			}
			stages := v["stages"].([]any)
			for i, name := range []string{"inputs", "expand", "evaluate"} {
				s := stages[i].(map[string]any)
				bytes := s["bytes"].(float64)
				if s["stage"] != name || s["wall_s"].(float64) <= 0 || (bytes > 0) != (name != "evaluate" || c.kept) {
					t.Errorf("stage %d: %v", i, s)
				}
				if name == "evaluate" && c.kept && bytes != written {
					t.Errorf("%v bytes of rows, want %d", bytes, written)
				}
			}
		})
	}
	code, stdout, stderr := (world{}).run(t.Context(), "bench", "synthesis", "--shape", "2KiB", "--check-only")
	if code != exitDone || !strings.Contains(stdout, "evaluate") || !strings.Contains(stdout, "rows kept: false") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
}

func TestBenchSynthesis_Refuses(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--partitions", "2"}, exitUsage, "1 to 1"},
		{[]string{"--rounds", "0"}, exitUsage, "--rounds"},
		{[]string{"--near", "0", "--unbound"}, exitUsage, "--near"},
		{[]string{"--memory", "1MiB"}, exitRefused, "host memory"},
	} {
		args := append([]string{"bench", "synthesis", "--shape", "2KiB"}, c.args...)
		if code, _, stderr := (world{}).run(t.Context(), args...); code != c.code || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: exit code %d, %q, want %d and %q", c.args, code, stderr, c.code, c.want)
		}
	}
}
