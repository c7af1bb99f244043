package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sealc2/sealc2/tests/support"
)

// withMask runs f on a thread whose affinity mask is of n CPUs of ours; processes that it starts inherit it.
func withMask(t *testing.T, n int, f func()) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var old, some unix.CPUSet
	if err := unix.SchedGetaffinity(0, &old); err != nil {
		t.Fatal(err)
	}
	for cpu := 0; some.Count() < n && cpu < 1024; cpu++ {
		if old.IsSet(cpu) {
			some.Set(cpu)
		}
	}
	if err := unix.SchedSetaffinity(0, &some); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.SchedSetaffinity(0, &old); err != nil {
			t.Error(err)
		}
	}()
	f()
}

// cpus is the number of CPUs in our affinity mask.
func cpus(t *testing.T) int {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	return set.Count()
}

// Goal: as many threads as CPUs in the affinity mask, neither those of the machine nor more.
func TestAffinity(t *testing.T) {
	for n := 1; n <= min(cpus(t), 4); n++ {
		withMask(t, n, func() {
			for face, l := range faces(t, []string{"RAYON_NUM_THREADS="}) {
				if l.threads != fmt.Sprint(n) || l.threadsFrom != "affinity mask" {
					t.Errorf("%s on %d CPUs: %+v", face, n, l)
				}
			}
		})
	}
}

// Goal: RAYON_NUM_THREADS caps the threads, and never raises them; 0 and what is no number cap nothing.
func TestRayonNumThreads(t *testing.T) {
	all := limits{threads: fmt.Sprint(cpus(t)), threadsFrom: "affinity mask"}
	for value, want := range map[string]limits{
		"1": {threads: "1", threadsFrom: "configured"}, " 1 ": {threads: "1", threadsFrom: "configured"}, "4096": all, "0": all, "": all, "many": all, "-1": all,
	} {
		if strings.TrimSpace(value) == "1" && cpus(t) == 1 {
			want = all // no less than there are
		}
		for face, got := range faces(t, []string{"RAYON_NUM_THREADS=" + value}) {
			if got.threads != want.threads || got.threadsFrom != want.threadsFrom {
				t.Errorf("%s, %q: want %+v, got %+v", face, value, want, got)
			}
		}
	}
	// The engine that filecoin-ffi's functions share obeys too, and an explicit --threads goes before.
	env := []string{"RAYON_NUM_THREADS=1", "RUST_LOG=info"}
	if o := run(t, time.Minute, env, host, library, "ffi"); !strings.Contains(o.stderr, ": 1 threads (") {
		t.Errorf("seal_commit_phase2: %s", o.stderr)
	}
	if n := cpus(t); n > 1 {
		o := run(t, time.Minute, env, command, "verify", "--threads", fmt.Sprint(n), "--log", "info", "--c1", c1File("porep-2k-a"), "--proof", os.DevNull)
		if !strings.Contains(o.stderr, fmt.Sprintf(": %d threads (", n)) {
			t.Errorf("--threads: %s", o.stderr)
		}
	}
}

// Goal: a budget that the shape does not fit is refused at once, before any of the work, with what it takes and what
// there is. Method: each way to set the budget, each face.
func TestBudget_TooSmall(t *testing.T) {
	dir := support.Params(t)
	const have = 100 << 20
	refused := func(name string, o outcome, have string) {
		t.Helper()
		text := o.stdout + o.stderr
		for _, want := range []string{"no memory", "host memory: want at most ", have + " bytes", " (the budget), got ", "MiB)"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is not in:\n%s", name, want, text)
			}
		}
		if strings.Contains(text, "check") || strings.Contains(text, "partition 1") {
			t.Errorf("%s: refused after work:\n%s", name, text)
		}
		if o.elapsed > 20*time.Second { // one second on a quiet machine, most of it recording the circuit
			t.Errorf("%s: refused after %v", name, o.elapsed)
		}
	}
	prove := []string{command, "prove", "--json", "--c1", c1File("porep-2k-a"), "--params", dir, "--out", filepath.Join(t.TempDir(), "proof")}
	flag := append([]string{"--memory", "100MiB"}, prove[1:]...)
	refused("--memory", run(t, time.Minute, nil, command, flag...), strconv.Itoa(have))
	// The library keeps a 32nd for the requests of submitted jobs (sealc2_config.queue_bytes).
	const proving = have - have/32
	refused("sealc2_config", run(t, time.Minute, nil, host, library, "prove", c1File("porep-2k-a"), dir, strconv.Itoa(have)), strconv.Itoa(proving))

	// A limit of the control group, of which the budget leaves 64 MiB alone.
	group := recorded(t, "v2", map[string]string{"memory.max": strconv.Itoa(have + 64<<20)})
	inside := append(append([]string(nil), group...), prove...)
	refused("memory.max", run(t, time.Minute, nil, inside[0], inside[1:]...), strconv.Itoa(have))
	inside = append(append([]string(nil), group...), host, library, "prove", c1File("porep-2k-a"), dir, "0")
	refused("memory.max, library", run(t, time.Minute, nil, inside[0], inside[1:]...), strconv.Itoa(proving))

	// A machine too small for the other commands.
	for _, args := range [][]string{
		{"setup", "--shape", "32GiB", "--out", t.TempDir(), "--memory", "4GiB"},
		{"params", "check", dir, "--memory", "8MiB"},
		{"witness", "digest", "--c1", c1File("porep-2k-a"), "--memory", "1MiB"},
	} {
		o := run(t, time.Minute, nil, command, append([]string{"--json"}, args...)...)
		if o.code != 1 || !strings.Contains(o.stdout, `"kind": "no memory"`) || !strings.Contains(o.stdout, " (the budget)") {
			t.Errorf("%q: %d, %s%s", args, o.code, o.stdout, o.stderr)
		}
	}
}
