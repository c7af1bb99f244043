// Package fuzz is the canary of the fuzz targets, which stand beside the decoders that they test: a decoder that is
// broken on purpose, and the proof that fuzzing finds it.
//
// `make fuzz` runs all targets, each for FUZZTIME, and this one the other way round.
package fuzz

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// order is a stand-in for a field's order: 30 bits, below two flag bits.
const order = 1_000_000_007

var errRefused = errors.New("refused")

// decodeBroken reads the two coordinates of a point as our decoders do, and is wrong as decoders are wrong: it masks the
// second flag bit of the second coordinate away where it should refuse it.
func decodeBroken(data []byte) (x, y uint32, err error) {
	if len(data) != 8 {
		return 0, 0, errRefused
	}
	x, y = binary.BigEndian.Uint32(data), binary.BigEndian.Uint32(data[4:])
	if x>>30 != 0 || y>>31 != 0 {
		return 0, 0, errRefused
	}
	y &= 1<<30 - 1
	if x >= order || y >= order {
		return 0, 0, errRefused
	}
	return x, y, nil
}

func encode(x, y uint32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, x), y)
}

// FuzzCanary asks what all targets ask: decode, encode, same bytes, or refuse. Its seeds pass.
func FuzzCanary(f *testing.F) {
	f.Add(encode(1, 2))
	f.Add(encode(order-1, order-1))
	f.Add(encode(order, 1))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		if x, y, err := decodeBroken(data); err == nil && !bytes.Equal(encode(x, y), data) {
			t.Fatal("encodes to other bytes")
		}
	})
}

// Goal: the fuzz targets can fail. Method: fuzzing the broken decoder, which must end with a failure that names it; what
// it finds is written to a folder that goes away.
func TestCanary(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "canary.test")
	if out, err := exec.Command("go", "test", "-c", "-fuzz", "FuzzCanary", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	c := exec.Command(program, "-test.run", "^$", "-test.fuzz", "^FuzzCanary$", "-test.fuzztime", "60s", "-test.parallel", "1",
		"-test.fuzzminimizetime", "5x", "-test.fuzzcachedir", filepath.Join(dir, "cache"))
	c.Dir = dir
	out, err := c.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || !strings.Contains(string(out), "--- FAIL: FuzzCanary") || !strings.Contains(string(out), "encodes to other bytes") {
		t.Fatalf("fuzzing did not find the fault: %v\n%s", err, out)
	}
	found, err := os.ReadDir(filepath.Join(dir, "testdata", "fuzz", "FuzzCanary"))
	if err != nil || len(found) != 1 {
		t.Fatalf("no input that shows it: %v, %v", found, err)
	}
	t.Log(string(out))
}
