package abi

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/groth16"
)

// shims are the libraries with supraseal-c2's raw names, by the ending of their names.
var shims = []string{"s2", "s2cuzk"}

// shim is one of them; it is built where it is missing.
func shim(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(filepath.Dir(library), "libsealc2-"+name+".so")
	if _, err := os.Stat(path); err != nil {
		run(t, 5*time.Minute, nil, "make", "-C", root, "shims")
	}
	return path
}

// The shims export supraseal-c2's names and nothing else, and need only the library beside them.
func TestShims_Symbols(t *testing.T) {
	for _, name := range shims {
		file := openELF(t, shim(t, name))
		want := lines(t, "include/exports-"+name+".txt")
		if got := exported(t, file); !slices.Equal(got, want) {
			t.Errorf("%s exports %q, exports-%s.txt has %q", name, got, name, want)
		}
		needed, err := file.ImportedLibraries()
		if err != nil || !slices.Equal(needed, []string{"libsealc2.so", "libc.so.6"}) {
			t.Errorf("%s needs %q, %v", name, needed, err)
		}
	}
}

// dump writes a tiny circuit of the reference in the form of testdata/s2.c.
func dump(t *testing.T, name string) string {
	t.Helper()
	var w struct {
		A, B, C []string
		Inputs  []string `json:"input_assignment"`
		Aux     []string `json:"aux_assignment"`
		AAux    string   `json:"a_aux_density"`
		BInput  string   `json:"b_input_density"`
		BAux    string   `json:"b_aux_density"`
	}
	var p struct {
		R, S, Proof string
		Bare        string `json:"proof_with_r_and_s_zero"`
	}
	read(t, filepath.Join(root, "tests/vectors/tiny", name, "witness.json"), &w)
	read(t, filepath.Join(root, "tests/vectors/tiny", name, "proof.json"), &p)
	var out bytes.Buffer
	put := func(values ...any) {
		for _, v := range values {
			if err := binary.Write(&out, binary.LittleEndian, v); err != nil {
				t.Fatal(err)
			}
		}
	}
	scalars := func(texts ...string) {
		for _, text := range texts {
			raw, err := hex.DecodeString(text)
			if err != nil || len(raw) != fr.Bytes {
				t.Fatalf("scalar %q: %v", text, err)
			}
			x, err := fr.LittleEndian.Element((*[fr.Bytes]byte)(raw))
			if err != nil {
				t.Fatal(err)
			}
			put([4]uint64(x)) // as it is in memory: Montgomery form
		}
	}
	put(uint64(len(w.Inputs)), uint64(len(w.Aux)), uint64(len(w.A)))
	for _, bits := range []string{w.AAux, w.BInput, w.BAux} {
		words, ones := make([]uint64, (len(bits)+63)/64), uint64(0)
		for i := range len(words) * 64 {
			switch {
			case i >= len(bits): // garbage behind the end
				words[i/64] |= 1 << (i % 64)
			case bits[i] == '1':
				words[i/64] |= 1 << (i % 64)
				ones++
			}
		}
		put(ones, words)
	}
	for _, v := range [][]string{w.A, w.B, w.C, w.Inputs, w.Aux} {
		scalars(v...)
	}
	scalars(p.R, p.S)
	for _, text := range []string{p.Proof, p.Bare} {
		raw, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		proofs, err := groth16.DecodeProofs(raw, 1)
		if err != nil {
			t.Fatal(err)
		}
		proof := &proofs[0]
		put(proof.A.X, proof.A.Y, proof.B.X.A0, proof.B.X.A1, proof.B.Y.A0, proof.B.Y.A1, proof.C.X, proof.C.Y)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Goal: supraseal-c2's face gives the reference's bytes for every number of circuits, errors by value for
// everything else, and uses no memory longer than its header says; through our names and through both shims.
// Method: testdata/s2.c, as it is and under AddressSanitizer, each case in a process of its own.
func TestS2(t *testing.T) {
	circuit := func(name string) []string {
		return []string{dump(t, name), filepath.Join(root, "tests/vectors/tiny", name, "params.bin")}
	}
	small, full, large := circuit("tiny-16"), circuit("tiny-64"), circuit("tiny-1024")
	for _, build := range []struct {
		name  string
		flags []string
	}{{"plain", nil}, {"AddressSanitizer", []string{"-fsanitize=address,undefined", "-fno-omit-frame-pointer"}}} {
		program := filepath.Join(t.TempDir(), "s2")
		if err := compile("gcc", append([]string{"-std=gnu11", "-O1", "-g", "testdata/s2.c", "-o", program, "-lpthread", "-ldl"}, build.flags...)...); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			name     string
			circuits []string
		}{
			{"open", small}, {"prove", small}, {"prove", full}, {"prove", large}, {"mismatch", full}, {"references", small},
			{"split", full}, {"split", large}, {"threads", slices.Concat(small, full)}, {"fork", small}, {"raw", full}, {"lent", small}, {"policies", small},
		} {
			t.Run(build.name+"/"+c.name, func(t *testing.T) {
				args := append([]string{library, shim(t, "s2"), shim(t, "s2cuzk"), c.name}, c.circuits...)
				run(t, 5*time.Minute, []string{"ASAN_OPTIONS=detect_leaks=0:abort_on_error=1", "UBSAN_OPTIONS=halt_on_error=1"}, program, args...)
			})
		}
	}
}

// Goal: a machine that can never hold the proof is an ENOMEM with both numbers, by prove and by start, each time.
// Method: the host in a mount namespace where /proc/meminfo tells of 64 KiB.
func TestS2_NoMemory(t *testing.T) {
	meminfo := filepath.Join(t.TempDir(), "meminfo")
	if err := os.WriteFile(meminfo, []byte("MemTotal: 64 kB\nMemFree: 64 kB\nMemAvailable: 64 kB\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	inside := []string{"-m", "sh", "-c", `mount --bind "$1" /proc/meminfo && shift && exec "$@"`, "sh", meminfo}
	if err := exec.Command("unshare", append(inside, "true")...).Run(); err != nil {
		if err := exec.Command("unshare", append([]string{"-r"}, append(inside, "true")...)...).Run(); err != nil {
			t.Skipf("needs root or user namespaces, to mount another /proc/meminfo: %v", err)
		}
		inside = append([]string{"-r"}, inside...)
	}
	program := filepath.Join(t.TempDir(), "s2")
	if err := compile("gcc", "-std=gnu11", "-O1", "-g", "testdata/s2.c", "-o", program, "-lpthread", "-ldl"); err != nil {
		t.Fatal(err)
	}
	run(t, time.Minute, nil, "unshare", append(inside, program, library, shim(t, "s2"), shim(t, "s2cuzk"), "no-memory",
		dump(t, "tiny-1024"), filepath.Join(root, "tests/vectors/tiny/tiny-1024/params.bin"))...)
}

// Goal: {int, char*} comes back in registers, as compilers of foreign code have it, and the text is of malloc.
// Method: a stub compiled on its own, that knows neither our header nor our compiler's flags, reads RAX and RDX
// after the call; the text is freed under AddressSanitizer.
func TestS2_ReturnInRegisters(t *testing.T) {
	dir := t.TempDir()
	object := filepath.Join(dir, "registers.o")
	run(t, time.Minute, nil, "gcc", "-c", "-O2", "testdata/registers.S", "-o", object)
	program := filepath.Join(dir, "registers")
	folder := filepath.Dir(shim(t, "s2"))
	if err := compile("gcc", "-std=gnu11", "-g", "-fsanitize=address,undefined", "testdata/registers.c", object, "-o", program,
		"-L"+folder, "-lsealc2-s2", "-Wl,-rpath,"+folder, "-Wl,-rpath-link,"+folder); err != nil {
		t.Fatal(err)
	}
	run(t, time.Minute, []string{"ASAN_OPTIONS=detect_leaks=0"}, program)
}
