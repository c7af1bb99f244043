package params

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
	"golang.org/x/sys/unix"

	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/status"
)

// tinyParams returns the bytes of a tiny circuit's parameter file.
func tinyParams(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(vectors + "tiny/" + name + "/params.bin")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// place writes data to a new file and returns its path.
func place(t testing.TB, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.params")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func mustOpen(t testing.TB, path string) *File {
	t.Helper()
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// refused fails unless err is of kind Params and names all parts.
func refused(t *testing.T, err error, parts ...string) {
	t.Helper()
	if status.KindOf(err) != status.Params {
		t.Fatalf("want an error of kind params, got %v", err)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("want %q in the error, got: %v", part, err)
		}
	}
}

// readAll decodes every point of a file and returns the first error.
func readAll(f *File) error {
	ctx := context.Background()
	for b := groth16.BlockH; b < groth16.BlockB2; b++ {
		if err := f.ReadG1(ctx, b, 0, make([]bls.G1Affine, f.Len(b))); err != nil {
			return err
		}
	}
	return f.ReadG2(ctx, 0, make([]bls.G2Affine, f.Len(groth16.BlockB2)))
}

// encodeAll writes a file's content from what it decodes to.
func encodeAll(t testing.TB, f *File) []byte {
	t.Helper()
	ctx := context.Background()
	out := bytes.NewBuffer(groth16.AppendVK(nil, f.VerifyingKey()))
	for b := groth16.Block(0); b < groth16.BlockCount; b++ {
		n := f.Len(b)
		block := make([]byte, CountBytes+n*PointBytes(b))
		binary.BigEndian.PutUint32(block, uint32(n))
		if b == groth16.BlockB2 {
			points := make([]bls.G2Affine, n)
			if err := f.ReadG2(ctx, 0, points); err != nil {
				t.Fatal(err)
			}
			for i := range points {
				EncodeG2Uncompressed(block[CountBytes+i*G2Bytes:], &points[i])
			}
		} else {
			points := make([]bls.G1Affine, n)
			if err := f.ReadG1(ctx, b, 0, points); err != nil {
				t.Fatal(err)
			}
			for i := range points {
				EncodeG1Uncompressed(block[CountBytes+i*G1Bytes:], &points[i])
			}
		}
		out.Write(block)
	}
	return out.Bytes()
}

type setupVector struct {
	Digests
}

func readSetupVector(t testing.TB, path string) (v setupVector) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Goal: the reader finds in the reference's files what the oracle says is there.
// Method: counts against setup.json, and every point decoded and encoded again to equal bytes.
func TestOpen_Tiny(t *testing.T) {
	for _, name := range tinyNames {
		data := tinyParams(t, name)
		f := mustOpen(t, vectors+"tiny/"+name+"/params.bin")
		want := readSetupVector(t, vectors+"tiny/"+name+"/setup.json")
		counts := Counts{IC: want.Blocks["ic"].Count}
		for b := groth16.Block(0); b < groth16.BlockCount; b++ {
			counts.Blocks[b] = want.Blocks[b.String()].Count
		}
		if f.Counts() != counts || counts.Bytes() != int64(len(data)) {
			t.Errorf("%s: want %v and %d bytes, got %v and %d", name, counts, len(data), f.Counts(), counts.Bytes())
		}
		if !bytes.Equal(encodeAll(t, f), data) {
			t.Errorf("%s: other bytes after decoding and encoding", name)
		}
		key, err := ReadKeyFile(vectors + "tiny/" + name + "/vk.bin")
		if err != nil {
			t.Fatal(err)
		}
		if err := f.SameKey(key.Bytes, key.Path); err != nil {
			t.Error(err)
		}
		if again := mustOpen(t, f.Path()); again.ID() != f.ID() {
			t.Errorf("%s: two IDs for one file: %s, %s", name, f.ID(), again.ID())
		}
	}
}

// Goal: any range can be read, by any number of goroutines.
func TestReadG1_Ranges(t *testing.T) {
	f := mustOpen(t, vectors+"tiny/tiny-1024/params.bin")
	ctx := context.Background()
	n := f.Len(groth16.BlockH)
	all := make([]bls.G1Affine, n)
	if err := f.ReadG1(ctx, groth16.BlockH, 0, all); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for _, r := range [][2]int{{0, 0}, {n, n}, {0, 1}, {n - 1, n}, {1, n}, {511, 513}, {0, n}} {
		wg.Go(func() {
			part := make([]bls.G1Affine, r[1]-r[0])
			if err := f.ReadG1(ctx, groth16.BlockH, r[0], part); err != nil {
				t.Error(err)
			}
			for i := range part {
				if part[i] != all[r[0]+i] {
					t.Errorf("range %v: another point at %d", r, i)
				}
			}
		})
	}
	wg.Wait()
	for _, r := range [][2]int{{-1, 1}, {n, 1}, {n + 1, 0}, {0, n + 1}} {
		if err := f.ReadG1(ctx, groth16.BlockH, r[0], make([]bls.G1Affine, r[1])); status.KindOf(err) != status.Caller {
			t.Errorf("%d points from %d: want a caller error, got %v", r[1], r[0], err)
		}
	}
	if err := f.ReadG1(ctx, groth16.BlockB2, 0, nil); status.KindOf(err) != status.Caller {
		t.Errorf("b_g2 as G1: want a caller error, got %v", err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := f.ReadG2(ended, 0, make([]bls.G2Affine, 1)); status.KindOf(err) != status.Cancelled || !errors.Is(err, context.Canceled) {
		t.Errorf("want cancelled, got %v", err)
	}
}

// Goal: a file cut at any place is refused by Open, with the place.
func TestOpen_Truncated(t *testing.T) {
	data := tinyParams(t, "tiny-16")
	counts := mustOpen(t, vectors+"tiny/tiny-16/params.bin").Counts()
	cuts := map[int]string{}
	for n := 0; n < len(data); n += 13 {
		cuts[n] = ""
	}
	for _, n := range []int{0, 1, 95, 96, 863, 864, 867} {
		cuts[n] = "verifying key"
	}
	cuts[groth16.VKHeadBytes] = "ic"
	for b := groth16.Block(0); b < groth16.BlockCount; b++ {
		first, size := int(counts.Offset(b)), PointBytes(b)
		for _, cut := range []int{first - 4, first - 3, first - 1} {
			cuts[cut] = "count of " + b.String()
		}
		for _, i := range []int{0, counts.Blocks[b] / 2, counts.Blocks[b] - 1} {
			for _, in := range []int{0, 1, size / 2, size - 1} {
				cuts[first+i*size+in] = fmt.Sprintf("%s[%d]", b, i)
			}
		}
	}
	path := place(t, nil)
	for cut, where := range cuts {
		if err := os.WriteFile(path, data[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := Open(path)
		if err == nil {
			f.Close()
			t.Fatalf("cut at %d: accepted", cut)
		}
		refused(t, err, path, "truncated", where)
	}
}

// Goal: what comes after b_g2 is refused, whatever it is.
func TestOpen_Trailing(t *testing.T) {
	data := tinyParams(t, "tiny-16")
	for _, n := range []int{1, 4, G2Bytes, 5000} {
		_, err := Open(place(t, append(bytes.Clone(data), make([]byte, n)...)))
		refused(t, err, "end of b_g2", fmt.Sprintf("%d more bytes", n))
	}
}

// Goal: counts that do not fit together are refused even where the size would fit.
func TestOpen_Counts(t *testing.T) {
	data := tinyParams(t, "tiny-16") // ic 3, h 15, l 10, a 11, b 5
	counts := mustOpen(t, vectors+"tiny/tiny-16/params.bin").Counts()
	for _, c := range []struct {
		block groth16.Block
		count uint32
		part  string
	}{
		{groth16.BlockH, 0, "2^k - 1"}, {groth16.BlockH, 16, "2^k - 1"}, {groth16.BlockH, 14, "2^k - 1"},
		{groth16.BlockH, 1, "a row for each of 3 inputs"}, {groth16.BlockH, 1<<32 - 1, "truncated"}, {groth16.BlockH, 31, ""},
		{groth16.BlockL, 1<<32 - 1, "truncated"}, {groth16.BlockL, 0, ""}, {groth16.BlockL, 9, ""},
		{groth16.BlockA, 2, "3 to 13 points"}, {groth16.BlockA, 14, "3 to 13 points"}, {groth16.BlockA, 0, "3 to 13 points"},
		{groth16.BlockB1, 14, "at most 13 points"}, {groth16.BlockB1, 4, ""},
		{groth16.BlockB2, 4, "5 points, as many as b_g1"}, {groth16.BlockB2, 6, "5 points, as many as b_g1"}, {groth16.BlockB2, 0, "5 points"},
	} {
		bad := bytes.Clone(data)
		binary.BigEndian.PutUint32(bad[counts.Offset(c.block)-CountBytes:], c.count)
		_, err := Open(place(t, bad))
		refused(t, err, c.part)
	}
	// 2^32 - 1 points of l and a file that could hold none of them: nothing is allocated for them.
	bad := bytes.Clone(data)
	binary.BigEndian.PutUint32(bad[groth16.VKHeadBytes-CountBytes:], 1<<32-1)
	_, err := Open(place(t, bad))
	refused(t, err, "ic")
}

// Goal: encoded points are the file's bytes, in any range. Method: ranges of each block of a real file against the file.
func TestReadEncoded(t *testing.T) {
	path := vectors + "tiny/tiny-16/params.bin"
	f := mustOpen(t, path)
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for b := range groth16.BlockCount {
		size, n := PointBytes(b), f.Len(b)
		for _, r := range [][2]int{{0, n}, {0, 0}, {n, 0}, {1, 1}, {n / 2, n - n/2}} {
			got := make([]byte, r[1]*size)
			if err := f.ReadEncoded(t.Context(), b, r[0], got); err != nil {
				t.Fatal(err)
			}
			from := int(f.Counts().Offset(b)) + r[0]*size
			if !bytes.Equal(got, file[from:from+len(got)]) {
				t.Errorf("%s: points %d to %d are not the file's bytes", b, r[0], r[0]+r[1])
			}
		}
		for name, err := range map[string]error{
			"behind the end": f.ReadEncoded(t.Context(), b, n, make([]byte, size)), "negative": f.ReadEncoded(t.Context(), b, -1, make([]byte, size)),
			"half a point": f.ReadEncoded(t.Context(), b, 0, make([]byte, size/2)),
		} {
			if status.KindOf(err) != status.Caller {
				t.Errorf("%s: %s: want a refusal, got %v", b, name, err)
			}
		}
	}
	if err := f.ReadEncoded(t.Context(), groth16.BlockCount, 0, nil); status.KindOf(err) != status.Caller {
		t.Errorf("no such block: got %v", err)
	}
}

// Goal: zeros where data was, as a file system leaves them after a crash, are found in every block.
func TestRead_Holes(t *testing.T) {
	data := tinyParams(t, "tiny-16")
	counts := mustOpen(t, vectors+"tiny/tiny-16/params.bin").Counts()
	for b := groth16.Block(0); b < groth16.BlockCount; b++ {
		size := PointBytes(b)
		for _, i := range []int{0, counts.Blocks[b] / 2, counts.Blocks[b] - 1} {
			bad := bytes.Clone(data)
			at := int(counts.Offset(b)) + i*size
			clear(bad[at : at+size])
			refused(t, readAll(mustOpen(t, place(t, bad))), fmt.Sprintf("%s[%d] at byte %d", b, i, at), "hole")
		}
		// A hole over the next count: the counts no longer fit.
		if b+1 < groth16.BlockCount {
			bad := bytes.Clone(data)
			at := int(counts.Offset(b + 1))
			clear(bad[at-CountBytes-10 : at+10])
			if f, err := Open(place(t, bad)); err == nil {
				t.Errorf("hole before %s: accepted", b+1)
				f.Close()
			}
		}
	}
	_, err := Open(place(t, make([]byte, len(data))))
	refused(t, err, "verifying key")
}

// Goal: one flipped bit in any point is found and named, wherever it lies.
func TestRead_FlippedBits(t *testing.T) {
	data := tinyParams(t, "tiny-16")
	counts := mustOpen(t, vectors+"tiny/tiny-16/params.bin").Counts()
	for b := groth16.Block(0); b < groth16.BlockCount; b++ {
		size := PointBytes(b)
		for _, i := range []int{0, counts.Blocks[b] / 2, counts.Blocks[b] - 1} {
			at := int(counts.Offset(b)) + i*size
			for _, bit := range []int{7, 6, 5, 4, 8*48 - 1, 8 * 48, 8*size - 1, 8*size - 384} {
				bad := bytes.Clone(data)
				bad[at+bit/8] ^= 0x80 >> (bit % 8) // bit 0 is the compression flag
				refused(t, readAll(mustOpen(t, place(t, bad))), fmt.Sprintf("%s[%d] at byte %d", b, i, at))
			}
		}
	}
	for bit := 0; bit < 8*(groth16.VKHeadBytes-CountBytes); bit += 41 {
		bad := bytes.Clone(data)
		bad[bit/8] ^= 0x80 >> (bit % 8)
		_, err := Open(place(t, bad))
		refused(t, err, "verifying key", strings.TrimPrefix(keyElement(bit/8), "vk."))
	}
}

// Goal: a reader tells what is wrong with a point.
func TestDecode_Faults(t *testing.T) {
	_, _, g1, g2 := bls.Generators()
	good1, good2 := make([]byte, G1Bytes), make([]byte, G2Bytes)
	EncodeG1Uncompressed(good1, &g1)
	EncodeG2Uncompressed(good2, &g2)
	p := make([]byte, fp.Bytes)
	fp.Modulus().FillBytes(p)
	edit := func(src []byte, f func(b []byte)) []byte {
		out := bytes.Clone(src)
		f(out)
		return out
	}
	infinity := func(b []byte) { clear(b); b[0] = 0x40 }
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"g1", good1, ""}, {"g2", good2, ""},
		{"g1 infinity", edit(good1, infinity), "the point at infinity"},
		{"g2 infinity", edit(good2, infinity), "the point at infinity"},
		{"g1 compressed", edit(good1, func(b []byte) { b[0] |= 0x80 }), "a flag"},
		{"g1 sort flag", edit(good1, func(b []byte) { b[0] |= 0x20 }), "a flag"},
		{"g2 all flags", edit(good2, func(b []byte) { b[0] |= 0xe0 }), "a flag"},
		{"g1 x = p", edit(good1, func(b []byte) { copy(b, p) }), "p or more"},
		{"g1 y = p", edit(good1, func(b []byte) { copy(b[48:], p) }), "p or more"},
		{"g1 y with a flag", edit(good1, func(b []byte) { b[48] |= 0x80 }), "p or more"},
		{"g1 x = 2^381 - 1", edit(good1, func(b []byte) { b[0] = 0x1f; copy(b[1:48], bytes.Repeat([]byte{0xff}, 47)) }), "p or more"},
		{"g2 x.c1 = p", edit(good2, func(b []byte) { copy(b, p) }), "p or more"},
		{"g2 x.c0 = p", edit(good2, func(b []byte) { copy(b[48:], p) }), "p or more"},
		{"g2 y.c1 = p", edit(good2, func(b []byte) { copy(b[96:], p) }), "p or more"},
		{"g2 y.c0 = p", edit(good2, func(b []byte) { copy(b[144:], p) }), "p or more"},
		{"g1 x = p - 1", edit(good1, func(b []byte) { copy(b, p); b[47]-- }), "off the curve"},
		{"g1 zero", edit(good1, func(b []byte) { clear(b) }), "zero bytes"},
		{"g2 zero", edit(good2, func(b []byte) { clear(b) }), "zero bytes"},
		{"g2 swapped parts", edit(good2, func(b []byte) { copy(b, good2[48:96]); copy(b[48:], good2[:48]) }), "off the curve"},
	} {
		var err error
		if len(c.data) == G1Bytes {
			err = DecodeG1Uncompressed(c.data, new(bls.G1Affine))
		} else {
			if f := decodeG2(new(bls.G2Affine), (*[G2Bytes]byte)(c.data)); f != faultNone {
				err = status.New(status.Params, "decodeG2", "", f.want(), f.got())
			}
		}
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: want %q, got %v", c.name, c.want, err)
		}
	}
	var inf1 bls.G1Affine
	var inf2 bls.G2Affine
	EncodeG1Uncompressed(good1, &inf1)
	EncodeG2Uncompressed(good2, &inf2)
	raw1, raw2 := inf1.RawBytes(), inf2.RawBytes()
	if !bytes.Equal(good1, raw1[:]) || !bytes.Equal(good2, raw2[:]) {
		t.Error("infinity encodes to other bytes than the library's")
	}
}

// Goal: after a failed read the destination holds no point that was not checked.
func TestRead_ClearsOnError(t *testing.T) {
	data := tinyParams(t, "tiny-16")
	counts := mustOpen(t, vectors+"tiny/tiny-16/params.bin").Counts()
	data[counts.Offset(groth16.BlockL)+5*G1Bytes+95] ^= 1
	data[counts.Offset(groth16.BlockB2)+4*G2Bytes+95] ^= 1
	f := mustOpen(t, place(t, data))
	g1, g2 := make([]bls.G1Affine, 10), make([]bls.G2Affine, 5)
	refused(t, f.ReadG1(context.Background(), groth16.BlockL, 0, g1), "l[5]")
	refused(t, f.ReadG2(context.Background(), 0, g2), "b_g2[4]")
	for i := range g1 {
		if !g1[i].IsInfinity() {
			t.Errorf("l[%d] is left", i)
		}
	}
	for i := range g2 {
		if !g2[i].IsInfinity() {
			t.Errorf("b_g2[%d] is left", i)
		}
	}
}

// Goal: a file that changes under an open File is an error of the next read, never other points.
func TestRead_ChangedWhileOpen(t *testing.T) {
	data := tinyParams(t, "tiny-16")
	later := time.Now().Add(time.Hour)
	for name, change := range map[string]func(path string) error{
		"shrunk below the block": func(path string) error { return os.Truncate(path, 2000) },
		"shrunk by a byte":       func(path string) error { return os.Truncate(path, int64(len(data)-1)) },
		"empty":                  func(path string) error { return os.Truncate(path, 0) },
		"grown":                  func(path string) error { return os.Truncate(path, int64(len(data)+1)) },
		"written again": func(path string) error {
			return errors.Join(os.WriteFile(path, data, 0o600), os.Chtimes(path, later, later))
		},
	} {
		path := place(t, data)
		f := mustOpen(t, path)
		if err := readAll(f); err != nil {
			t.Fatal(err)
		}
		if err := change(path); err != nil {
			t.Fatal(err)
		}
		err := f.ReadG1(context.Background(), groth16.BlockL, 0, make([]bls.G1Affine, 10))
		if err == nil {
			t.Errorf("%s: read", name)
			continue
		}
		refused(t, err, path, "while open")
		_, err = f.Digest(context.Background(), nil)
		refused(t, err, path, "while open")
		_, err = Check(context.Background(), f, CheckOptions{})
		refused(t, err, path, "while open")
	}
	// Another file under the same name is another file: the open one stays as it is.
	path := place(t, data)
	f := mustOpen(t, path)
	if err := os.Rename(place(t, data[:100]), path); err != nil {
		t.Fatal(err)
	}
	if err := readAll(f); err != nil {
		t.Error(err)
	}
}

// Goal: what is no readable regular file is refused at once, each with its own words.
func TestOpen_NotAFile(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe.params")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(dir, "none.params")
	for path, part := range map[string]string{missing: "does not exist", dir: "a directory", pipe: "a pipe", "/dev/null": "a device"} {
		_, err := Open(path)
		refused(t, err, path, part)
		_, err = ReadKeyFile(path)
		refused(t, err, path, part)
	}
	if err := openError("op", "p", &fs.PathError{Op: "open", Path: "p", Err: unix.EACCES}); !strings.Contains(err.Error(), "no permission") {
		t.Errorf("want the word permission, got %v", err)
	}
	if os.Getuid() != 0 { // root reads everything
		locked := place(t, tinyParams(t, "tiny-16"))
		if err := os.Chmod(locked, 0); err != nil {
			t.Fatal(err)
		}
		_, err := Open(locked)
		refused(t, err, locked, "no permission")
	}
}

// Goal: a key file is one key and nothing else.
func TestReadKeyFile(t *testing.T) {
	for _, name := range []string{"porep-2k", "porep-16k", "porep-32k"} {
		path := vectors + "setup/" + name + ".vk"
		key, err := ReadKeyFile(path)
		if err != nil {
			t.Fatal(err)
		}
		want := readSetupVector(t, vectors+"setup/"+name+".json")
		if KeyDigest(key.Bytes) != want.VKFile.Blake2b512First16 || len(key.VK.IC) != want.Blocks["ic"].Count {
			t.Errorf("%s: another key", name)
		}
		if raw := key.VK.GammaG2.RawBytes(); hex.EncodeToString(raw[:]) != want.VK["gamma_g2"] {
			t.Errorf("%s: another gamma_g2", name)
		}
	}
	data, err := os.ReadFile(vectors + "setup/porep-2k.vk")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 1, 863, 867, 868, 869, len(data) - 1} {
		_, err := ReadKeyFile(place(t, data[:n]))
		refused(t, err, "truncated")
	}
	_, err = ReadKeyFile(place(t, append(bytes.Clone(data), 0)))
	refused(t, err, "end of ic")
	// A point of order 3 in the ic.
	three := orderThree()
	EncodeG1Uncompressed(data[groth16.VKHeadBytes+7*G1Bytes:], &three)
	_, err = ReadKeyFile(place(t, data))
	refused(t, err, "ic[7]")
}

// Goal: the head of the .params file is its .vk file, or the first difference is named.
func TestSameKey(t *testing.T) {
	f := mustOpen(t, vectors+"tiny/tiny-16/params.bin")
	other, err := ReadKeyFile(vectors + "tiny/tiny-64/vk.bin")
	if err != nil {
		t.Fatal(err)
	}
	refused(t, f.SameKey(other.Bytes, other.Path), "alpha_g1", other.Path)
	same := bytes.Clone(f.KeyBytes())
	if err := f.SameKey(same, "x"); err != nil {
		t.Fatal(err)
	}
	for at, name := range map[int]string{95: "alpha_g1", 96: "beta_g1", 192: "beta_g2", 383: "beta_g2", 384: "gamma_g2", 576: "delta_g1", 672: "delta_g2", 864: "count of ic", 868: "ic[0]", 1060: "ic[2]"} {
		same[at] ^= 1
		refused(t, f.SameKey(same, "x"), fmt.Sprintf("byte %d (%s)", at, name))
		same[at] ^= 1
	}
	refused(t, f.SameKey(same[:len(same)-1], "x"), "ic[2]")
	refused(t, f.SameKey(append(same, 0), "x"), "ic[3]")
}

// Goal: counts of another circuit are refused with the block and both numbers.
func TestFits(t *testing.T) {
	f := mustOpen(t, vectors+"tiny/tiny-16/params.bin")
	want := f.Counts()
	if err := f.fits("tiny-16", want); err != nil {
		t.Fatal(err)
	}
	other := want
	other.IC++
	refused(t, f.fits("x", other), ": ic", "want 4 points for circuit x, got 3")
	for b := groth16.Block(0); b < groth16.BlockCount; b++ {
		other := want
		other.Blocks[b] += 7
		refused(t, f.fits("x", other), ": "+b.String(), fmt.Sprintf("want %d points", other.Blocks[b]), fmt.Sprintf("got %d", want.Blocks[b]))
	}
}

// orderThree is a point on the curve outside G1: (0, 2) has order 3.
func orderThree() (p bls.G1Affine) {
	p.Y.SetUint64(2)
	return p
}

// twistPoint is a point on the twist outside G2.
func twistPoint(t testing.TB) (p bls.G2Affine) {
	t.Helper()
	var y2, b bls.E2
	b.A0.SetUint64(4)
	b.A1.SetUint64(4)
	for x := uint64(1); x < 100; x++ {
		p.X.A0.SetUint64(x)
		y2.Square(&p.X).Mul(&y2, &p.X).Add(&y2, &b)
		if y2.Legendre() == 1 {
			p.Y.Sqrt(&y2)
			if p.IsOnCurve() && !p.IsInSubGroup() {
				return p
			}
		}
	}
	t.Fatal("no point found")
	return p
}

// FuzzOpen: a file is refused as a value, or it is what its points encode to.
func FuzzOpen(f *testing.F) {
	data := tinyParams(f, "tiny-16")
	f.Add(data)
	f.Add(data[:1200])
	f.Add([]byte{})
	path := place(f, nil)
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := Open(path)
		if err == nil {
			defer file.Close()
			err = readAll(file)
		}
		if err != nil {
			if status.KindOf(err) != status.Params {
				t.Fatal(err)
			}
			return
		}
		if !bytes.Equal(encodeAll(t, file), data) {
			t.Fatal("encodes to other bytes")
		}
	})
}

// FuzzReadVK: a key is refused as a value, or it is what it encodes to; nothing after it is read.
func FuzzReadVK(f *testing.F) {
	data := tinyParams(f, "tiny-16")
	f.Add(data)
	f.Add(data[:900])
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bytes.NewReader(data)
		var vk *groth16.VerifyingKey
		key, err := readVKBytes(r)
		if err == nil {
			vk, err = groth16.DecodeVK(key)
		}
		if err != nil {
			if status.KindOf(err) != status.Params {
				t.Fatal(err)
			}
			return
		}
		if !bytes.Equal(groth16.AppendVK(nil, vk), data[:len(data)-r.Len()]) {
			t.Fatal("encodes to other bytes")
		}
	})
}

// FuzzDecodePoint: our decoder and the library's agree on every encoding, infinity apart.
func FuzzDecodePoint(f *testing.F) {
	_, _, g1, g2 := bls.Generators()
	r1, r2 := g1.RawBytes(), g2.RawBytes()
	f.Add(r1[:])
	f.Add(r2[:])
	three := orderThree()
	r1 = three.RawBytes()
	f.Add(r1[:])
	f.Fuzz(func(t *testing.T, data []byte) {
		switch len(data) {
		case G1Bytes:
			var ours, theirs bls.G1Affine
			err := DecodeG1Uncompressed(data, &ours)
			want := bls.NewDecoder(bytes.NewReader(data), bls.NoSubgroupChecks()).Decode(&theirs)
			// The library takes compressed points where the flag says so, and any point without subgroup checks.
			good := want == nil && data[0]&flagMask == 0 && theirs.IsOnCurve() && !theirs.IsInfinity()
			if good != (err == nil) || good && ours != theirs {
				t.Fatalf("ours %v %v, theirs %v %v", ours, err, theirs, want)
			}
			if good {
				EncodeG1Uncompressed(data, &ours)
				if raw := theirs.RawBytes(); !bytes.Equal(raw[:], data) {
					t.Fatal("encodes to other bytes")
				}
			}
		case G2Bytes:
			var ours, theirs bls.G2Affine
			err := decodeG2(&ours, (*[G2Bytes]byte)(data))
			want := bls.NewDecoder(bytes.NewReader(data), bls.NoSubgroupChecks()).Decode(&theirs)
			good := want == nil && data[0]&flagMask == 0 && theirs.IsOnCurve() && !theirs.IsInfinity()
			if good != (err == faultNone) || good && ours != theirs {
				t.Fatalf("ours %v %v, theirs %v %v", ours, err, theirs, want)
			}
		}
	})
}
