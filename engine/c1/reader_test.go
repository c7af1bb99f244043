package c1

import (
	"bytes"
	"encoding/base64"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/sealc2/sealc2/engine/circuit/porep"
)

// accepts is what the independent decoder says of a document. Names may stand twice in what we skip.
func accepts(data []byte) bool {
	dec := jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowDuplicateNames(true))
	if _, err := dec.ReadValue(); err != nil {
		return false
	}
	_, err := dec.ReadToken()
	return err != nil && err.Error() == "EOF"
}

// compareSyntax compares skip and leap with the independent decoder.
func compareSyntax(t *testing.T, data []byte) {
	t.Helper()
	r := &reader{data: data}
	f := r.skip(maxDepth)
	if f == nil {
		f = r.end()
	}
	want := accepts(data)
	if want != (f == nil) && !(f != nil && strings.Contains(f.want, "levels of nesting")) {
		t.Fatalf("%q: jsontext accepts: %v; we: %v", data, want, f.err("skip", "the document"))
	}
	if want {
		l := &reader{data: data}
		if _, f := l.leap(nil); f != nil || l.end() != nil {
			t.Fatalf("%q: leap: %v", data, f.err("leap", "the document"))
		}
	}
	// Whatever the document is: the same end and inner elements by blocks and byte by byte.
	if p := (&reader{data: data}); p.peek() == '[' || p.peek() == '{' {
		var ends [2]int
		var lists [2]inner
		for i, wide := range []bool{false, wideBlocks} {
			wideBlocks, wide = wide, wideBlocks
			ends[i] = bracketEnd(data, p.pos, &lists[i])
			wideBlocks = wide
		}
		if ends[0] != ends[1] || lists[0] != lists[1] {
			t.Fatalf("%q: ends at %d with %v, by blocks %d with %v", data, ends[0], lists[0], ends[1], lists[1])
		}
	}
}

var syntaxSeeds = []string{
	`{}`, `[]`, `null`, `true`, `false`, `0`, `-0`, `1.5e+3`, `1E-2`, `""`, `"\u00e9\ud83d\ude00\\\/\b\f\n\r\t\""`, ` [ 1 , 2 ] `, `{"a":{"b":[{}]},"a":1}`,
	`{"a\"]}":"[{\\"}`, "[1,]", "[,1]", "{\"a\"}", "{\"a\":}", "{,}", "[1 2]", "01", "-", "1.", ".5", "1e", "+1", "nul", "truee", `"\ud800"`, `"\udc00\ud800"`,
	`"\x"`, "\"\n\"", "\"\xff\"", "\xef\xbb\xbf1", "[", "{", `"`, `"\`, "]", "}", "", " ", "[[[]]]", "[]]", "[}", `{"a":1`, "[1", "1 1", "0x1", "NaN", "'a'", "[1]/**/", "\x00",
	`"\uD83d\uDE00"`, `"\u12"`, `"` + "\x7f" + `"`,
}

// TestReader_Blocks: documents longer than the blocks that brackets are counted over, with strings, escapes and ends of
// inner elements at all places of a block.
func TestReader_Blocks(t *testing.T) {
	for pad := range 70 {
		space := strings.Repeat(" ", pad)
		text := strings.Repeat("x", pad)
		for _, data := range []string{
			`[` + space + `[[[[1,"` + text + `"],[[2,"]"]]]],[[[["[",` + strings.Repeat(`[3,"{{"],`, 40) + space + `{"}":[4]}]]]]]`,
			`{"a":` + space + `[{"b":[[["` + text + `\\\"]"]]]},["` + text + `\\",[[]],"\\\\"],[[[]]]` + strings.Repeat(`,[[[["\"",`+"\""+text+`"]]]]`, 20) + `]}`,
			`{"a":[["` + text + strings.Repeat(`\"`, 80) + `"]]}`,
			`[[[[` + strings.Repeat("[", pad) + strings.Repeat("]", pad) + `]],[]],` + strings.Repeat(`{"a":[1]},`, 200) + `7]`,
			strings.Repeat("[", 100+pad) + strings.Repeat("]", 99+pad) + `,"` + text,
			strings.Repeat(`[{"a":`, 40) + "\"" + text + `]]`,
			strings.Repeat("[", pad+1) + strings.Repeat("1,2,[3],", 100) + strings.Repeat(`{"`+text+`":[]},`, 200) + strings.Repeat("]", pad+4),
		} {
			compareSyntax(t, []byte(data))
			for _, cut := range []int{1, 2, 3, 63, 64, 65} {
				compareSyntax(t, []byte(data[:max(0, len(data)-cut)]))
			}
		}
	}
}

func TestReader_Syntax(t *testing.T) {
	for _, seed := range syntaxSeeds {
		compareSyntax(t, []byte(seed))
	}
	deep := strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth)
	r := &reader{data: []byte(deep)}
	if f := r.skip(maxDepth); f != nil {
		t.Errorf("%d levels: %v", maxDepth, f.err("skip", ""))
	}
	r = &reader{data: []byte("[" + deep + "]")}
	if f := r.skip(maxDepth); f == nil {
		t.Errorf("%d levels accepted", maxDepth+1)
	}
}

// slow reads a hash without readHash.
func slow(data []byte) (porep.Hash, bool) {
	var values []uint16
	if err := json.Unmarshal(data, &values); err != nil || len(values) != 32 {
		return porep.Hash{}, false
	}
	var h porep.Hash
	for i, v := range values {
		if v > 255 {
			return h, false
		}
		h[i] = byte(v)
	}
	return h, true
}

// compareHash compares hash with the independent decoder.
func compareHash(t *testing.T, data []byte) {
	t.Helper()
	want, ok := slow(data)
	for _, wide := range []bool{false, wideHashes} {
		wideHashes, wide = wide, wideHashes
		var got porep.Hash
		r := &reader{data: data}
		f := r.hash(&got)
		if f == nil {
			f = r.end()
		}
		wideHashes = wide
		if ok != (f == nil) || ok && got != want {
			t.Fatalf("%q: want %x, %v; got %x, %v", data, want, ok, got, f.err("hash", "it"))
		}
	}
}

func TestReader_Hash(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var h porep.Hash
		for i := range h {
			h[i] = byte(random.Uint32() >> (random.Uint32() & 7)) // all lengths
		}
		text := []byte(bytesJSON(h))
		pad := bytes.Repeat([]byte(" "), 200) // room for the fast way
		compareHash(t, append(text, pad...))
		compareHash(t, text)
		for _, wide := range []bool{false, wideHashes} {
			wideHashes, wide = wide, wideHashes
			var got porep.Hash
			n := readHash(&got, append(text, pad...))
			if wideHashes = wide; n != len(text) || got != h {
				t.Fatalf("the fast way does not take %s", text)
			}
		}
		// One byte changed, taken away or put in: digits, delimiters, anything.
		at := random.IntN(len(text))
		for _, c := range []byte("0123456789,][ -.eE+\x00\x80\xb0\xff\"") {
			changed := append(bytes.Clone(text), pad...)
			changed[at] = c
			compareHash(t, changed)
			compareHash(t, append(append(append([]byte(nil), text[:at]...), c), append(bytes.Clone(text[at:]), pad...)...))
		}
		compareHash(t, append(append(bytes.Clone(text[:at]), text[at+1:]...), pad...))
	}
}

func TestElements(t *testing.T) {
	r, _ := new(big.Int).SetString("73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001", 16)
	little := func(n *big.Int) (h porep.Hash) {
		n.FillBytes(h[:])
		for i := range 16 {
			h[i], h[31-i] = h[31-i], h[i]
		}
		return h
	}
	list := []*big.Int{big.NewInt(0), big.NewInt(1), new(big.Int).Sub(r, big.NewInt(1)), new(big.Int).Sub(r, big.NewInt(2)), new(big.Int).Rsh(r, 1)}
	random := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		n := new(big.Int)
		for range 4 {
			n.Lsh(n, 64).Or(n, new(big.Int).SetUint64(random.Uint64()))
		}
		list = append(list, n.Mod(n, r))
	}
	for _, a := range list {
		x := little(a)
		over := little(new(big.Int).Add(a, r))
		if !canonical(&x) || canonical(&over) {
			t.Errorf("%v: canonical", a)
		}
		for _, b := range list {
			y := little(b)
			sum := new(big.Int).Add(a, b)
			if addElements(&x, &y) != little(sum.Mod(sum, r)) {
				t.Errorf("%v + %v", a, b)
			}
		}
	}
}

// TestUnpack: base64 by blocks is what encoding/base64 makes of it, errors included.
func TestUnpack(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 12))
	for n := range 1200 {
		raw := make([]byte, n/3)
		for i := range raw {
			raw[i] = byte(random.Uint32())
		}
		text := []byte(base64.StdEncoding.EncodeToString(raw))
		if at := random.IntN(len(text) + 1); n%3 > 0 && at < len(text) {
			text[at] = [...]byte{byte(random.Uint32()), '=', '-', '\n', 0x80, 'A'}[random.IntN(6)]
			if n%3 == 2 {
				text = text[:at+1]
			}
		}
		size := base64.StdEncoding.DecodedLen(len(text))
		want, got := make([]byte, size), make([]byte, size)
		wantN, wantErr := base64.StdEncoding.Strict().Decode(want, text)
		gotN, gotErr := unpack(got, text)
		if wantErr != nil && gotErr != nil && wantErr.Error() == gotErr.Error() && wantN == gotN {
			continue
		}
		if wantErr != nil || gotErr != nil || !bytes.Equal(want[:wantN], got[:gotN]) || !bytes.Equal(got[:gotN], raw) && n%3 == 0 {
			t.Fatalf("%q: want %x, %v; got %x, %v", text, want[:wantN], wantErr, got[:gotN], gotErr)
		}
	}
}

func FuzzSyntax(f *testing.F) {
	for _, seed := range syntaxSeeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) { compareSyntax(t, data) })
}

func FuzzHash(f *testing.F) {
	f.Add([]byte(bytesJSON(porep.Hash{1, 20, 255, 31: 7})))
	f.Add([]byte(" [ 1 , 2 ]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		compareHash(t, data)
		compareHash(t, append(bytes.Clone(data), make([]byte, 150)...))
	})
}
