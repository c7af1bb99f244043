package params

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sealc2/sealc2/cuda/kerneltest"
	"github.com/sealc2/sealc2/cuda/parameters"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/status"
)

var _ = kerneltest.Only("points", "qap")

var _ PointDevice = (*parameters.Device)(nil)

// openDevice is a device of the test's own with the smallest ring.
func openDevice(t *testing.T, seed uint64) *parameters.Device {
	t.Helper()
	api, images, _ := kerneltest.Machine(t, seed)
	api.SetStrict(true)
	d, err := parameters.Open(parameters.Config{API: api, Images: images, PinnedBytes: parameters.MinPinnedBytes, MemoryBytes: 1 << 30, Threads: 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// deviceBits makes few buckets, since the emulator takes a millisecond for the order of each sum.
const deviceBits = 2

// sameOnDevice checks a file here and on a device, by buckets and point by point, and wants the same outcome, word for word.
func sameOnDevice(t *testing.T, d *parameters.Device, f *File, what string) (err error) {
	t.Helper()
	for _, exactPoints := range []int{0, 1 << 30} {
		err = smallChecker(f, 2, deviceBits, exactPoints).run(t.Context())
		got := smallChecker(f, 2, deviceBits, exactPoints).runOn(t.Context(), d)
		if fmt.Sprint(got) != fmt.Sprint(err) || status.KindOf(got) != status.KindOf(err) {
			t.Errorf("%s, up to %d points exactly:\nwant %v\ngot  %v", what, exactPoints, err, got)
		}
	}
	return err
}

// Goal: a device finds what the CPU finds, and the error is the same. Method: good files; one bad point of each kind in each
// block, first and last.
func TestCheck_OnDevice(t *testing.T) {
	d := openDevice(t, 1)
	for _, name := range tinyNames[:2] {
		if err := sameOnDevice(t, d, mustOpen(t, vectors+"tiny/"+name+"/params.bin"), name); err != nil {
			t.Error(err)
		}
	}
	data := tinyParams(t, "tiny-16")
	counts := mustOpen(t, vectors+"tiny/tiny-16/params.bin").Counts()
	three, twist := orderThree(), twistPoint(t)
	for b := groth16.Block(0); b < groth16.BlockCount; b++ {
		size := PointBytes(b)
		outside := make([]byte, size)
		if b == groth16.BlockB2 {
			EncodeG2Uncompressed(outside, &twist)
		} else {
			EncodeG1Uncompressed(outside, &three)
		}
		for _, i := range []int{0, counts.Blocks[b] - 1} {
			at := int(counts.Offset(b)) + i*size
			spoil := func(change func(point []byte)) []byte {
				bad := bytes.Clone(data)
				change(bad[at:][:size])
				return bad
			}
			for what, bad := range map[string][]byte{
				"order":    spoil(func(p []byte) { copy(p, outside) }),
				"curve":    spoil(func(p []byte) { p[size-1] ^= 1 }),
				"zero":     spoil(func(p []byte) { clear(p) }),
				"infinity": spoil(func(p []byte) { clear(p); p[0] = flagInfinity }),
				"flags":    spoil(func(p []byte) { p[0] |= 0x80 }),
				"range":    spoil(func(p []byte) { p[0] |= 0x1f }),
			} {
				if what != "order" && what != "curve" && (i > 0 || b > 0 && b < groth16.BlockB2) {
					continue // decoding is the same code for all blocks of a group
				}
				f := mustOpen(t, place(t, bad))
				if err := sameOnDevice(t, d, f, fmt.Sprintf("%s[%d], %s", b, i, what)); status.KindOf(err) != status.Params {
					t.Errorf("%s[%d], %s: %v", b, i, what, err)
				}
				f.Close()
			}
		}
	}
}

// spoil overwrites points of a block.
func spoil(t *testing.T, f *File, b groth16.Block, point []byte, indices ...int) *File {
	t.Helper()
	file, err := os.OpenFile(f.Path(), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, i := range indices {
		if _, err := file.WriteAt(point, f.counts.Offset(b)+int64(i)*int64(len(point))); err != nil {
			t.Fatal(err)
		}
	}
	return mustOpen(t, f.Path())
}

// Goal: of several bad points the same one is named as on the CPU, point by point and by buckets.
func TestCheck_FirstOnDevice(t *testing.T) {
	d := openDevice(t, 2)
	three := orderThree()
	outside, offCurve := make([]byte, G1Bytes), make([]byte, G1Bytes)
	EncodeG1Uncompressed(outside, &three)
	offCurve[G1Bytes-1] = 1 // (0, 1)
	f := mustOpen(t, synthetic(t, Counts{IC: 3, Blocks: [5]int{127, 3, 3, 1, 1}}))
	f = spoil(t, f, groth16.BlockH, outside, 100, 50)
	sameOnDevice(t, d, f, "two of another order")
	f = spoil(t, f, groth16.BlockH, offCurve, 120, 110)
	sameOnDevice(t, d, f, "and two off the curve behind them")
}

// told is a device that has found something.
type told groth16.PointFaults

func (f told) CheckPoints(context.Context, groth16.EncodedSRS, []groth16.Block, groth16.OrderCheck, func(int)) (groth16.PointFaults, error) {
	return groth16.PointFaults(f), nil
}

// Goal: of a point with a bad encoding and one of another order, that of the earlier chunk is named, and in the same chunk the
// encoding; what the CPU does not find is nobody's fault but the device's.
func TestCheck_DeviceTells(t *testing.T) {
	three := orderThree()
	outside, offCurve := make([]byte, G1Bytes), make([]byte, G1Bytes)
	EncodeG1Uncompressed(outside, &three)
	offCurve[G1Bytes-1] = 1 // (0, 1)
	at := func(i int) groth16.PointAt { return groth16.PointAt{Block: groth16.BlockH, Index: i, Known: true} }
	for _, c := range []struct{ order, curve int }{{20, 10}, {10, 20}, {4095, 4096}} {
		f := mustOpen(t, synthetic(t, Counts{IC: 3, Blocks: [5]int{8191, 3, 3, 1, 1}}))
		f = spoil(t, f, groth16.BlockH, outside, c.order)
		f = spoil(t, f, groth16.BlockH, offCurve, c.curve)
		want := smallChecker(f, 2, 6, 1<<30).run(t.Context())
		if got := smallChecker(f, 2, 6, 1<<30).runOn(t.Context(), told{Encoding: at(c.curve), Order: at(c.order)}); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%+v: want %v\ngot  %v", c, want, got)
		}
	}
	f := mustOpen(t, vectors+"tiny/tiny-16/params.bin")
	for what, found := range map[string]told{"encoding": {Encoding: at(1)}, "order": {Order: at(1)}} {
		if err := smallChecker(f, 2, 6, 0).runOn(t.Context(), found); status.KindOf(err) != status.SelfCheck {
			t.Errorf("%s of a good point: %v", what, err)
		}
	}
	if err := smallChecker(f, 2, 6, 0).runOn(t.Context(), told{Unnamed: true}); status.KindOf(err) != status.Params {
		t.Errorf("a bad sum of good points: %v", err)
	}
}

// Goal: a file of more pieces than the ring has slots is read whole, the first bad point is named wherever it is, and a file that
// changes or a context that ends is an error, after which the device works on.
func TestCheck_RingOnDevice(t *testing.T) {
	d := openDevice(t, 3)
	f := mustOpen(t, synthetic(t, Counts{IC: 3, Blocks: [5]int{1<<17 - 1, 4097, 5, 3, 3}}))
	seen := 0.0
	c := smallChecker(f, 2, deviceBits, 0)
	c.progress = func(done float64) { seen = done }
	if err := c.runOn(t.Context(), d); err != nil || seen != 1 {
		t.Errorf("%v; progress ended at %v", err, seen)
	}
	offCurve := make([]byte, G1Bytes)
	offCurve[G1Bytes-1] = 1 // (0, 1)
	f = spoil(t, f, groth16.BlockH, offCurve, 1<<17-3, 100001, 50000)
	if err := smallChecker(f, 2, deviceBits, 0).runOn(t.Context(), d); status.KindOf(err) != status.Params || !strings.Contains(err.Error(), "h[50000]") {
		t.Errorf("off the curve: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	c = smallChecker(f, 2, deviceBits, 0)
	c.progress = func(float64) { cancel() }
	if err := c.runOn(ctx, d); status.KindOf(err) != status.Cancelled {
		t.Errorf("cancelled: %v", err)
	}
	c = smallChecker(f, 2, deviceBits, 0)
	c.progress = func(float64) {
		if err := os.Truncate(f.Path(), f.id.Size-1); err != nil {
			t.Error(err)
		}
	}
	if err := c.runOn(t.Context(), d); status.KindOf(err) != status.Params {
		t.Errorf("cut: %v", err)
	}
	if err := smallChecker(mustOpen(t, vectors+"tiny/tiny-16/params.bin"), 2, 7, 0).runOn(t.Context(), d); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// Goal: Check asks for a device when there is something to check and not before, and takes the CPU where there is none.
func TestCheck_AsksForDevice(t *testing.T) {
	f := mustOpen(t, vectors+"tiny/tiny-16/params.bin")
	asked := 0
	refuse := func() (PointDevice, error) { asked++; return nil, status.New(status.NoDevice, "test", "", "", "") }
	if _, err := Check(t.Context(), f, CheckOptions{Device: refuse}); status.KindOf(err) != status.NoDevice {
		t.Errorf("%v", err)
	}
	verdicts := NewVerdicts(filepath.Join(t.TempDir(), "verdicts"))
	verdicts.now = func() time.Time { return time.Now().Add(time.Hour) }
	none := func() (PointDevice, error) { asked++; return nil, nil }
	for range 2 {
		if _, err := Check(t.Context(), f, CheckOptions{Device: none, Verdicts: verdicts}); err != nil {
			t.Error(err)
		}
	}
	if asked != 2 {
		t.Errorf("asked %d times", asked)
	}
}
