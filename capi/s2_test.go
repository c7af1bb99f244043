package main

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"reflect"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/groth16"
)

// call calls an export. Tests of this package cannot name C's types, so arguments are converted: addresses to
// pointers, numbers to numbers.
func call(export any, args ...any) []reflect.Value {
	f := reflect.ValueOf(export)
	in := make([]reflect.Value, len(args))
	for i, arg := range args {
		want := f.Type().In(i)
		if p, ok := arg.(unsafe.Pointer); ok {
			in[i] = reflect.NewAt(want.Elem(), p).Convert(want)
		} else {
			in[i] = reflect.ValueOf(arg).Convert(want)
		}
	}
	return f.Call(in)
}

// The layouts of sealc2_s2.h, which tests/abi compares with C's.
type (
	cDensity struct {
		words      unsafe.Pointer
		bits, ones uint64
	}
	cProver struct {
		aAux, bInp, bAux cDensity
		a, b, c          unsafe.Pointer
		rows             uint64
		inp              unsafe.Pointer
		inpLen           uint64
		aux              unsafe.Pointer
		auxLen           uint64
	}
	cError struct {
		code    int32
		message unsafe.Pointer // of malloc; the few that a test leaves are never freed
	}
)

// tiny is a circuit of the reference in C's form.
type tiny struct {
	prover cProver
	r, s   fr.Element
	proof  groth16.Proof
	keep   []any // what prover points to
}

func loadTiny(t *testing.T, name string) *tiny {
	t.Helper()
	var w struct {
		A, B, C []string
		Inputs  []string `json:"input_assignment"`
		Aux     []string `json:"aux_assignment"`
		AAux    string   `json:"a_aux_density"`
		BInput  string   `json:"b_input_density"`
		BAux    string   `json:"b_aux_density"`
	}
	var p struct{ R, S, Proof string }
	for file, into := range map[string]any{"witness.json": &w, "proof.json": &p} {
		data, err := os.ReadFile("../tests/vectors/tiny/" + name + "/" + file)
		if err == nil {
			err = json.Unmarshal(data, into)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	raw := func(text string) []byte {
		b, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	out := &tiny{}
	vector := func(texts ...string) unsafe.Pointer {
		var all []byte
		for _, text := range texts {
			all = append(all, raw(text)...)
		}
		v, err := scalars("capi.test", name, all)
		if err != nil {
			t.Fatal(err)
		}
		out.keep = append(out.keep, v)
		return unsafe.Pointer(&v[0])
	}
	density := func(text string) cDensity {
		b := circuit.NewBits(len(text))
		for i, c := range text {
			if c == '1' {
				b.Set(i)
			}
		}
		out.keep = append(out.keep, b.Words)
		return cDensity{unsafe.Pointer(&b.Words[0]), uint64(b.Len), uint64(b.Count())}
	}
	out.prover = cProver{
		aAux: density(w.AAux), bInp: density(w.BInput), bAux: density(w.BAux),
		a: vector(w.A...), b: vector(w.B...), c: vector(w.C...), rows: uint64(len(w.A)),
		inp: vector(w.Inputs...), inpLen: uint64(len(w.Inputs)), aux: vector(w.Aux...), auxLen: uint64(len(w.Aux)),
	}
	out.r, out.s = *(*fr.Element)(vector(p.R)), *(*fr.Element)(vector(p.S))
	proofs, err := groth16.DecodeProofs(raw(p.Proof), 1)
	if err != nil {
		t.Fatal(err)
	}
	out.proof = proofs[0]
	return out
}

// TestS2_Concurrent: references come and go, proofs are made, started, finished and abandoned, and the library
// is shut down, all at once; nothing is left. Run by the race detector too.
func TestS2_Concurrent(t *testing.T) {
	t.Setenv("SEALC2_ALLOW_DEV_PARAMS", "1")
	names := [...]string{"tiny-16", "tiny-64"}
	cases := [...]*tiny{loadTiny(t, names[0]), loadTiny(t, names[1])}
	var all sync.WaitGroup
	for i := range 8 {
		c, path := cases[i%2], append([]byte("../tests/vectors/tiny/"+names[i%2]+"/params.bin"), 0)
		all.Go(func() {
			token := call(sealc2go_s2_exclusion)[0].Uint()
			for round := range 3 {
				var srs, pending uintptr
				var failure cError
				out := new(groth16.Proof)
				call(sealc2go_s2_srs_open, unsafe.Pointer(&srs), unsafe.Pointer(&path[0]), i%3 == 0, unsafe.Pointer(&failure))
				if failure.code != 0 {
					t.Errorf("open: %d", failure.code)
					return
				}
				own := call(sealc2go_s2_srs_clone, srs)[0].Uint()
				switch {
				case i%4 < 2:
					call(sealc2go_s2_prove, unsafe.Pointer(&c.prover), 1, unsafe.Pointer(&c.r), unsafe.Pointer(&c.s), unsafe.Pointer(out), own, -1, token, unsafe.Pointer(&failure))
				default:
					call(sealc2go_s2_start, unsafe.Pointer(&c.prover), 1, unsafe.Pointer(&c.r), unsafe.Pointer(&c.s), own, 0, token, unsafe.Pointer(&pending), unsafe.Pointer(&failure))
					if failure.code == 0 && (round == 1 || i == 7) {
						call(sealc2go_s2_abandon, pending)
						*out = c.proof
					} else if failure.code == 0 {
						call(sealc2go_s2_finish, pending, unsafe.Pointer(out), unsafe.Pointer(&failure))
					}
				}
				switch {
				case failure.code == int32(syscall.ECANCELED): // by the shutdown below
				case failure.code != 0 || *out != c.proof:
					t.Errorf("caller %d, round %d: code %d", i, round, failure.code)
				}
				call(sealc2go_s2_srs_evict, srs)
				call(sealc2go_s2_srs_drop, srs)
				call(sealc2go_s2_srs_drop, srs)
				call(sealc2go_s2_srs_drop, own)
				if i == 5 && round == 1 {
					forgetRecent()
					if err := closeAll("capi.test"); err != nil {
						t.Error(err)
					}
				}
			}
			call(sealc2go_s2_exclusion_release, token)
		})
	}
	all.Wait()
	forgetRecent()
	if err := closeAll("capi.test"); err != nil {
		t.Error(err)
	}
	if len(s2.srs)+len(s2.pending)+len(s2.tokens)+len(s2.recent) != 0 {
		t.Errorf("left: %d references, %d pending, %d tokens, %d kept open", len(s2.srs), len(s2.pending), len(s2.tokens), len(s2.recent))
	}
}

// TestS2_Recent: the list keeps the four files that were opened last, one reference each.
func TestS2_Recent(t *testing.T) {
	t.Setenv("SEALC2_ALLOW_DEV_PARAMS", "1")
	dir := t.TempDir()
	data, err := os.ReadFile("../tests/vectors/tiny/tiny-16/params.bin")
	if err != nil {
		t.Fatal(err)
	}
	var handles []uintptr
	for _, name := range []string{"a", "b", "c", "d", "b", "e", "a"} {
		path := dir + "/" + name
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		text := append([]byte(path), 0)
		var srs uintptr
		var failure cError
		call(sealc2go_s2_srs_open, unsafe.Pointer(&srs), unsafe.Pointer(&text[0]), true, unsafe.Pointer(&failure))
		if failure.code != 0 {
			t.Fatalf("open %s: %d", name, failure.code)
		}
		handles = append(handles, srs)
	}
	kept := func() (names string) {
		for _, srs := range s2.recent {
			names += srs.Path()[len(srs.Path())-1:]
		}
		return names
	}
	if got := kept(); got != "aebd" {
		t.Errorf("want aebd kept, got %s", got)
	}
	call(sealc2go_s2_srs_evict, handles[1]) // b
	call(sealc2go_s2_srs_evict, handles[2]) // c, which is not in the list any more
	if got := kept(); got != "aed" {
		t.Errorf("want aed kept, got %s", got)
	}
	for _, srs := range handles {
		call(sealc2go_s2_srs_drop, srs)
	}
	forgetRecent()
	if err := closeAll("capi.test"); err != nil {
		t.Error(err)
	}
}
