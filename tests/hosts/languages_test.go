package hosts

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sealc2/sealc2/tests/support"
)

// Goal: a Python program goes on being one: threads, fork, environment, handlers, faulthandler.
// Method: host.py through the project's own binding, a process for each case; what each holds stands there.
func TestPython(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("needs python3")
	}
	env := []string{"SEALC2_LIB=" + library, "PYTHONPATH=" + filepath.Join(root, "bindings/python"), "PYTHONDONTWRITEBYTECODE=1"}
	arguments := func(name string) []string {
		return append([]string{filepath.Join("testdata", "host.py"), name}, sector...)
	}
	for _, name := range []string{"crowd", "together", "fork", "environment", "signals", "buffers"} {
		t.Run(name, func(t *testing.T) {
			if out := run(t, 2*time.Minute, env, python, arguments(name)...); !strings.HasSuffix(out, "ok\n") {
				t.Errorf("ended without its last word: %q", out)
			}
		})
	}
	// A crash of the host's own is still reported by the host's own handler.
	t.Run("crash", func(t *testing.T) {
		out, stderr, err := start(time.Minute, env, python, arguments("crash")...)
		if err == nil || !strings.Contains(out, "crashing") || !strings.Contains(stderr, "Fatal Python error: Segmentation fault") || !strings.Contains(stderr, "case_crash") {
			t.Errorf("want faulthandler's report, got %v\n%s%s", err, out, last(stderr))
		}
	})
}

// Goal: a Rust program goes on being one: small threads, unwinding, SIGPIPE ignored, its stack overflow report.
// Method: host.rs, compiled by rustc alone.
func TestRust(t *testing.T) {
	t.Parallel()
	rustc, err := exec.LookPath("rustc")
	if err != nil {
		t.Skip("needs rustc")
	}
	program := filepath.Join(t.TempDir(), "host")
	run(t, 5*time.Minute, nil, rustc, "--edition", "2021", "-O", "-D", "warnings", "-o", program, filepath.Join("testdata", "host.rs"))
	for _, name := range []string{"crowd", "together", "pipe", "fork"} {
		t.Run(name, func(t *testing.T) { hosted(t, nil, program, name) })
	}
	t.Run("overflow", func(t *testing.T) {
		_, stderr, err := start(time.Minute, nil, program, append([]string{library, "overflow"}, sector...)...)
		if err == nil || !strings.Contains(stderr, "thread 'deep'") || !strings.Contains(stderr, "has overflowed its stack") {
			t.Errorf("want Rust's own report of a stack overflow, got %v\n%s", err, last(stderr))
		}
	})
}

// Goal: a Go program keeps its runtime beside the guest's: pauses under 50 ms against a tight loop, profiles,
// signals, panics. Method: the command gohost.
func TestGo(t *testing.T) {
	program := filepath.Join(t.TempDir(), "gohost")
	run(t, 5*time.Minute, nil, "go", "build", "-o", program, "./testdata/gohost")
	for _, name := range []string{"pause", "stress", "panics"} {
		t.Run(name, func(t *testing.T) { hosted(t, nil, program, name) })
	}
	t.Run("stress-long", func(t *testing.T) {
		support.Long(t)
		out := run(t, 15*time.Minute, nil, program, append([]string{library, "stress-long"}, sector...)...)
		if !strings.HasSuffix(out, "ok\n") {
			t.Errorf("ended without its last word: %q", out)
		}
		t.Log(out)
	})
}
