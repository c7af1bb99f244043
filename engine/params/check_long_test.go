package params

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/tests/support"
)

// realSet is the 2 KiB development set that the Makefile's test target makes and names.
func realSet(t *testing.T) Set {
	t.Helper()
	dir := os.Getenv("SEALC2_PARAMS")
	if dir == "" {
		t.Skip("SEALC2_PARAMS names no directory of development parameters; make test makes them and sets it")
	}
	shape := support.Shape(t, "porep-2k")
	set, err := Find(Dir{Path: dir, Origin: "SEALC2_PARAMS"}, shape.Name, shape.ParamsBaseName())
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// Goal: the full check of the 2 KiB file takes at most 60 s on 2 cores, 120 s of CPU time.
func TestCheck_RealFile(t *testing.T) {
	if os.Getenv("SEALC2_LONG") != "1" {
		t.Skip("most of a minute; set SEALC2_LONG=1")
	}
	f := mustOpen(t, realSet(t).Params)
	start, cpu := time.Now(), cpuTime()
	report, err := Check(context.Background(), f, CheckOptions{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	spent := cpuTime() - cpu
	t.Logf("%d points: %v of CPU time, %v", report.Points, spent, time.Since(start))
	if spent > 120*time.Second {
		t.Errorf("want at most 120 s of CPU time, got %v", spent)
	}
	if report.Exact || report.Rounds != bucketRounds {
		t.Errorf("checked in another way than large files are: %+v", *report)
	}
}

// Goal: in a file of real size too, one bad point is found wherever it lies, and named. Method: a copy, damaged and put
// right again; most of a minute for each order, so only with SEALC2_LONG=1, and one a block.
func TestCheck_DamagedRealFile(t *testing.T) {
	if os.Getenv("SEALC2_LONG") != "1" {
		t.Skip("a gigabyte and minutes; set SEALC2_LONG=1")
	}
	set := realSet(t)
	in, err := os.Open(set.Params)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	file, err := os.Create(filepath.Join(t.TempDir(), "x"+ParamsExt))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := io.Copy(file, in); err != nil {
		t.Fatal(err)
	}
	three, twist := orderThree(), twistPoint(t)
	counts := mustOpen(t, file.Name()).Counts()
	for b := groth16.Block(0); b < groth16.BlockCount; b++ {
		size := PointBytes(b)
		outside := make([]byte, size)
		if b == groth16.BlockB2 {
			EncodeG2Uncompressed(outside, &twist)
		} else {
			EncodeG1Uncompressed(outside, &three)
		}
		for k, i := range []int{0, counts.Blocks[b] / 2, counts.Blocks[b] - 1} {
			at := counts.Offset(b) + int64(i)*int64(size)
			old := make([]byte, size)
			if _, err := file.ReadAt(old, at); err != nil {
				t.Fatal(err)
			}
			flipped := append([]byte(nil), old...)
			flipped[size-1] ^= 1
			points := map[string][]byte{"off the curve": flipped, "hole": make([]byte, size)}
			if k == int(b)%3 {
				points["outside the subgroup"] = outside
			}
			for part, point := range points {
				if _, err := file.WriteAt(point, at); err != nil {
					t.Fatal(err)
				}
				_, err := Check(context.Background(), mustOpen(t, file.Name()), CheckOptions{Threads: 2})
				if err == nil {
					t.Fatalf("%s[%d], %s: passed", b, i, part)
				}
				refused(t, err, fmt.Sprintf("%s[%d] at byte %d", b, i, at), part)
			}
			if _, err := file.WriteAt(old, at); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := Check(context.Background(), mustOpen(t, file.Name()), CheckOptions{Threads: 2}); err != nil {
		t.Errorf("put right again: %v", err)
	}
}
