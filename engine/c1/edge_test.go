package c1

import (
	"encoding/base64"
	"syscall"
	"testing"

	"github.com/sealc2/sealc2/engine/circuit/porep"
)

// atEdge is memory of n bytes behind which nothing may be touched.
func atEdge(t *testing.T, n int) []byte {
	t.Helper()
	page := syscall.Getpagesize()
	whole := (n + page - 1) / page * page
	memory, err := syscall.Mmap(-1, 0, whole+page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Munmap(memory); err != nil {
			t.Error(err)
		}
	})
	if err := syscall.Mprotect(memory[whole:], syscall.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	return memory[whole-n : whole]
}

// Goal: nothing is read or written behind the end of a document, a hash, or an unpacked text. Method: memory that ends at a page which may not be touched,
// with texts of all lengths around those that vectors take.
func TestEdge(t *testing.T) {
	text := []byte("[255,254,253,252,251,250,249,248,247,246,245,244,243,242,241,240,239,238,237,236,235,234,233,232,231,230,229,228,227,226,225,224]")
	for cut := range len(text) {
		s := atEdge(t, len(text)-cut)
		copy(s, text)
		var h porep.Hash
		_ = readHash(&h, s)
		r := reader{data: s}
		if _, f := r.leap(nil); (f == nil) != (cut == 0) {
			t.Errorf("%d bytes cut off: %v", cut, f)
		}
	}
	for n := range 400 {
		raw := make([]byte, n)
		for i := range raw {
			raw[i] = byte(i * 7)
		}
		packed := base64.StdEncoding.EncodeToString(raw)
		src := atEdge(t, len(packed))
		copy(src, packed)
		dst := atEdge(t, base64.StdEncoding.DecodedLen(len(packed)))
		if got, err := unpack(dst, src); err != nil || string(dst[:got]) != string(raw) {
			t.Errorf("%d bytes: %d, %v", n, got, err)
		}
	}
}
