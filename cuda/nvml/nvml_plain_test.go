//go:build !cgo

package nvml

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/sealc2/sealc2/engine/status"
)

// build makes a library of testdata.
func build(t *testing.T, source string, flags ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "lib.so")
	if text, err := exec.Command("gcc", append(flags, "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", out, source)...).CombinedOutput(); err != nil {
		t.Skipf("needs gcc: %v\n%s", err, text)
	}
	return out
}

// Goal: arguments and results go where nvml.h has them, and what a library lacks is left out.
func TestPlain(t *testing.T) {
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("needs gcc")
	}
	l, err := openLibrary(build(t, "testdata/fake.c"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.start()
	if err != nil {
		t.Fatal(err)
	}
	if release, err := s.Release(); err != nil || release != "580.1.2" {
		t.Errorf("release %q: %v", release, err)
	}
	want := Health{
		FreeBytes: 3 << 40, TotalBytes: 5 << 40, PowerMilliwatts: 345678, Celsius: 50, ClockMHz: 1980, Uncorrected: 7<<32 + 10,
		Throttle: []string{"power cap", "temperature"},
	}
	if h, err := s.Health("0000:0a:00.0"); err != nil || !reflect.DeepEqual(h, want) {
		t.Errorf("got %+v, want %+v: %v", h, want, err)
	}
	if _, err := s.Health("0000:0b:00.0"); status.KindOf(err) != status.NoDevice {
		t.Errorf("a device that is not there: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := s.Close(); status.KindOf(err) != status.Internal {
		t.Errorf("closed twice: %v", err)
	}
	empty := filepath.Join(t.TempDir(), "empty.c")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{build(t, empty), "/nowhere/lib.so"} {
		if _, err := openLibrary(path); status.KindOf(err) != status.NoDevice {
			t.Errorf("%s: %v", path, err)
		}
	}
}
