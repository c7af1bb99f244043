package params

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sealc2/sealc2/engine/circuit/porep"
	"github.com/sealc2/sealc2/tests/support"
)

// Goal: parameters of the real circuits are the reference's, byte for byte, within 180 CPU-seconds and
// 2 GiB of memory for 2 KiB. Minutes and a gigabyte of disk each, so only with SEALC2_LONG=1:
//
//	SEALC2_LONG=1 go test ./engine/params -run TestSetup_PoRep -v -timeout 30m
func TestSetup_PoRep(t *testing.T) {
	if os.Getenv("SEALC2_LONG") != "1" {
		t.Skip("minutes and a gigabyte of disk for each shape; set SEALC2_LONG=1")
	}
	for _, name := range []string{"porep-2k", "porep-16k", "porep-32k"} {
		t.Run(name, func(t *testing.T) {
			shape := support.Shape(t, name)
			start, cpu := time.Now(), cpuTime()
			stage, since := "", time.Now()
			result, err := Setup(context.Background(), porep.Program(shape), SetupScalars(DefaultSetupText, name), SetupOptions{
				Dir: t.TempDir(), BaseName: "dev-" + name, Shape: name,
				Progress: func(done float64, what string) {
					if what != stage {
						if stage != "" {
							t.Logf("%-8s %6.1f s, then %4.1f%% done", stage, time.Since(since).Seconds(), 100*done)
						}
						stage, since = what, time.Now()
					}
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			var usage unix.Rusage
			if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
				t.Fatal(err)
			}
			spent := (cpuTime() - cpu).Seconds()
			t.Logf("%s: %.1f s, %.1f CPU-seconds, peak %d MiB", name, time.Since(start).Seconds(), spent, usage.Maxrss>>10)
			if usage.Maxrss>>10 > 2048 {
				t.Errorf("want at most 2048 MiB, got %d", usage.Maxrss>>10)
			}
			if name == "porep-2k" && spent > 180 {
				t.Errorf("want at most 180 CPU-seconds, got %.1f", spent)
			}
			sameReport(t, result, vectors+"setup/"+name+".json")
			got, err := os.ReadFile(result.VKPath)
			if err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(filepath.Join(vectors, "setup", name+".vk"))
			if err != nil {
				t.Fatal(err)
			}
			compare(t, name+".vk", got, want, 1)
		})
	}
}
