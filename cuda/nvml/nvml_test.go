package nvml

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/engine/status"
)

// Goal: without NVML, Open is an error by value; with it, the driver's release is there.
func TestOpen(t *testing.T) {
	s, err := Open()
	if err != nil {
		if s != nil || status.KindOf(err) != status.NoDevice {
			t.Fatalf("%v: %v", status.KindOf(err), err)
		}
		return
	}
	if release, err := s.Release(); err != nil || release == "" {
		t.Errorf("release %q: %v", release, err)
	}
	if _, err := s.Health("ffff:ff:1f.0"); status.KindOf(err) != status.NoDevice {
		t.Errorf("a device that is not there: %v", err)
	}
	if api, err := driver.Load(); err == nil { // the devices that the driver names, NVML knows
		all, err := api.Candidates(driver.Requirements{})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range all {
			h, err := s.Health(d.PCIBusID)
			if err != nil || h.TotalBytes <= 0 || h.FreeBytes > h.TotalBytes {
				t.Errorf("%v: %+v, %v", d.Info, h, err)
			}
			t.Logf("%v: %+v", d.Info, h)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// Goal: the stubs are those of the go-nvml that is linked.
func TestNames(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("needs the go command, to make the names again")
	}
	fresh := filepath.Join(t.TempDir(), "names.h")
	if out, err := exec.Command("go", "run", "gen.go", fresh).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want, err := os.ReadFile(fresh)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("zz_names.h")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("zz_names.h is not what gen.go makes: go generate ./cuda/nvml")
	}
	if n := bytes.Count(want, []byte("\nS(")); n < 400 {
		t.Errorf("only %d names", n)
	}
}
