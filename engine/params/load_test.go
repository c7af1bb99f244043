package params

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sealc2/sealc2/engine/circuit/porep"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/status"
	"github.com/sealc2/sealc2/tests/support"
)

// layDir makes a directory with the named files.
func layDir(t *testing.T, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Goal: the manifest is the public one: 22 sets, no two keys alike, and the PoRep digests that are
// published for each sector size.
func TestManifest(t *testing.T) {
	entries := Manifest()
	if len(entries) != 22 {
		t.Errorf("want 22 entries, got %d", len(entries))
	}
	seen := map[string]bool{}
	kinds := map[string]int{}
	for _, e := range entries {
		for _, d := range []string{e.ParamsDigest, e.VKDigest} {
			if len(d) != 2*digestBytes || seen[d] {
				t.Errorf("%s: digest %q has another form or stands twice", e.Base, d)
			}
			seen[d] = true
		}
		kind, _, _ := strings.Cut(e.Base, "-merkletree")
		kinds[kind]++
	}
	want := map[string]int{
		"stacked-proof-of-replication": 5, "proof-of-spacetime-fallback": 10, "empty-sector-update": 5,
		"empty-sector-update-poseidon": 2,
	}
	if !reflect.DeepEqual(kinds, want) {
		t.Errorf("want %v, got %v", want, kinds)
	}
	for sector, digests := range map[uint64][2]string{
		2 << 10:   {"434fb1338ecfaf0f59256f30dde4968f", "dc1ade9929ade1708238f155343044ac"},
		8 << 20:   {"09e612e4eeb7a0eb95679a88404f960c", "b687beb9adbd9dabe265a7e3620813e4"},
		512 << 20: {"6c77597eb91ab936c1cef4cf19eba1b3", "065179da19fbe515507267677f02823e"},
		32 << 30:  {"6a388072a518cf46ebd661f5cc46900a", "0c7b4aac1c40fdb7eb82bc355b41addf"},
		64 << 30:  {"1801f8a6e1b00bceb00cc27314bb5ce3", "a89884252c04c298d0b3c81bfd884164"},
	} {
		found := false
		for _, e := range entries {
			found = found || e.SectorBytes == sector && strings.HasPrefix(e.Base, "stacked") && e.ParamsDigest == digests[0] && e.VKDigest == digests[1]
		}
		if !found {
			t.Errorf("no PoRep entry of %d bytes with %v", sector, digests)
		}
	}
}

// Goal: the names that the PoRep shapes ask for are those of the manifest.
func TestManifest_PoRepNames(t *testing.T) {
	bySector := map[uint64]string{}
	for _, e := range Manifest() {
		if strings.HasPrefix(e.Base, "stacked") {
			bySector[e.SectorBytes] = e.Base
		}
	}
	found := 0
	for _, s := range porep.Shapes() {
		if base, ok := bySector[s.SectorBytes]; ok {
			found++
			if got := s.ParamsBaseName(); got != base {
				t.Errorf("%s: want %s, got %s", s.Name, base, got)
			}
		}
	}
	if found != 5 {
		t.Errorf("want 5 shapes with public parameters, got %d", found)
	}
}

// Goal: the counts that a recorded circuit asks for are those of the reference's parameter file.
func TestCountsOf(t *testing.T) {
	for _, name := range []string{"porep-2k", "porep-16k"} {
		shape := support.Shape(t, name)
		want := readSetupVector(t, vectors+"setup/"+name+".json")
		got := CountsOf(porep.Program(shape))
		if got.IC != want.Blocks["ic"].Count || got.Bytes() != want.ParamsFile.Bytes {
			t.Errorf("%s: want %d inputs and %d bytes, got %d and %d", name, want.Blocks["ic"].Count, want.ParamsFile.Bytes, got.IC, got.Bytes())
		}
		for b := groth16.Block(0); b < groth16.BlockCount; b++ {
			if got.Blocks[b] != want.Blocks[b.String()].Count {
				t.Errorf("%s: %s: want %d points, got %d", name, b, want.Blocks[b.String()].Count, got.Blocks[b])
			}
		}
		err := mustOpen(t, vectors+"tiny/tiny-16/params.bin").Fits(porep.Program(shape))
		refused(t, err, "ic", "want 40 points for circuit "+name, "got 3")
	}
}

// Goal: digests in the manifest's form equal the oracle's.
func TestKeyDigest(t *testing.T) {
	for _, name := range tinyNames {
		f := mustOpen(t, vectors+"tiny/"+name+"/params.bin")
		want := readSetupVector(t, vectors+"tiny/"+name+"/setup.json")
		var last float64
		got, err := f.Digest(context.Background(), func(done float64) { last = done })
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(*got, want.Digests) {
			t.Errorf("%s: want %+v, got %+v", name, want.Digests, *got)
		}
		if last != 1 {
			t.Errorf("%s: progress ends at %v", name, last)
		}
		if KeyDigest(f.KeyBytes()) != want.VKFile.Blake2b512First16 {
			t.Errorf("%s: another digest of the key", name)
		}
	}
}

// Goal: hashing is right across pieces: a file larger than a piece, whose blocks begin inside pieces.
func TestDigest_Pieces(t *testing.T) {
	f := mustOpen(t, synthetic(t, Counts{IC: 3, Blocks: [5]int{16383, 9001, 9002, 5003, 5003}}))
	d, err := f.Digest(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(f.Path())
	if err != nil {
		t.Fatal(err)
	}
	if f.id.Size < 4*streamBytes {
		t.Fatal("the file is too small for this test")
	}
	if d.ParamsFile.Blake2b512First16 != KeyDigest(data) {
		t.Error("another digest of the whole file")
	}
	for b, name := range []string{"h", "l", "a", "b_g1", "b_g2"} {
		from := f.counts.Offset(groth16.Block(b))
		points := data[from : from+int64(f.counts.Blocks[b]*PointBytes(groth16.Block(b)))]
		if sum := fmt.Sprintf("%x", sha256.Sum256(points)); d.Blocks[name].SHA256 != sum {
			t.Errorf("%s: want %s, got %s", name, sum, d.Blocks[name].SHA256)
		}
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := f.Digest(ended, nil); status.KindOf(err) != status.Cancelled {
		t.Errorf("want cancelled, got %v", err)
	}
}

const testBase = "stacked-proof-of-replication-merkletree-poseidon_hasher-8-0-0-sha256_hasher-032d"

// Goal: a set is found under either name, and every way in which it can be absent has its own words, the full path,
// and the variable.
func TestFind(t *testing.T) {
	v28, dev := ReferenceStem(testBase), DevStem("2KiB", testBase)
	x := []byte("x")
	for _, c := range []struct {
		name       string
		files      map[string][]byte
		stem       string // "" refused for proving
		part       string
		keyStem    string // "" refused for verifying
		keyRefusal string
	}{
		{"reference", map[string][]byte{v28 + ".params": x, v28 + ".vk": x}, v28, "", v28, ""},
		{"development", map[string][]byte{dev + ".params": x, dev + ".vk": x}, dev, "", dev, ""},
		{"neither", map[string][]byte{"v28-other.params": x}, "", "none of them", "", "none of them"},
		{"no key", map[string][]byte{dev + ".params": x}, "", dev + ".vk: want the verifying key", "", dev + ".vk: want the verifying key"},
		{"no parameters", map[string][]byte{dev + ".vk": x}, "", dev + ".params: want the parameters", dev, ""},
		{"both", map[string][]byte{dev + ".params": x, dev + ".vk": x, v28 + ".params": x, v28 + ".vk": x}, "", "two: ", "", "two: "},
		{"a key and a set", map[string][]byte{dev + ".params": x, dev + ".vk": x, v28 + ".vk": x}, "", "two: ", "", "two: "},
		{"another shape's", map[string][]byte{DevStem("4KiB", testBase) + ".params": x}, "", "none of them", "", "none of them"},
	} {
		dir := Dir{Path: layDir(t, c.files), Origin: EnvDir}
		for _, use := range []struct {
			find       func(Dir, string, string) (Set, error)
			stem, part string
		}{{Find, c.stem, c.part}, {FindKey, c.keyStem, c.keyRefusal}} {
			set, err := use.find(dir, "2KiB", testBase)
			if use.stem == "" {
				refused(t, err, dir.Path, use.part, EnvDir)
			} else if want := filepath.Join(dir.Path, use.stem); err != nil || set.Params != want+".params" || set.VK != want+".vk" || set.Base != testBase {
				t.Errorf("%s: got %+v, %v", c.name, set, err)
			}
		}
	}
}

func TestFind_Directory(t *testing.T) {
	file := place(t, nil)
	missing := filepath.Join(t.TempDir(), "none")
	for _, c := range []struct {
		dir   Dir
		parts []string
	}{
		{Dir{missing, EnvDir}, []string{missing, "the directory does not exist", "from " + EnvDir}},
		{Dir{missing, "--params"}, []string{missing, "from --params, not from " + EnvDir}},
		{Dir{missing, ""}, []string{missing, EnvDir}},
		{EnvironmentDir(missing), []string{missing, "directory from " + EnvDir}},
		{Dir{file, EnvDir}, []string{file, "another kind of file", EnvDir}},
	} {
		_, err := Find(c.dir, "2KiB", testBase)
		refused(t, err, c.parts...)
	}
	if d := EnvironmentDir(""); d.Path != DefaultDir || !strings.Contains(d.note(), EnvDir+" is not set") {
		t.Errorf("empty variable: got %+v", d)
	}
	if os.Getuid() != 0 { // root looks into everything
		locked := t.TempDir()
		if err := os.Chmod(locked, 0); err != nil {
			t.Fatal(err)
		}
		_, err := Find(Dir{locked, EnvDir}, "2KiB", testBase)
		refused(t, err, locked, "no permission", EnvDir)
	}
}

func TestSetAt(t *testing.T) {
	v28, dev := ReferenceStem(testBase), DevStem("2KiB", testBase)
	dir := layDir(t, map[string][]byte{v28 + ".params": nil, v28 + ".vk": nil, dev + ".params": nil, "mine.params": nil, "mine.vk": nil})
	for name, base := range map[string]string{v28 + ".params": testBase, v28 + ".vk": testBase, "mine.params": ""} {
		set, err := SetAt(filepath.Join(dir, name), "--params")
		if err != nil || set.Base != base {
			t.Errorf("%s: got %+v, %v", name, set, err)
		}
	}
	_, err := SetAt(filepath.Join(dir, dev+".params"), EnvDir)
	refused(t, err, dev+".vk", EnvDir)
	_, err = SetAt(filepath.Join(dir, "mine"), "")
	refused(t, err, "ending")
}

// withManifest puts entries in place of the public manifest for one test: no test can have a production key.
func withManifest(t *testing.T, entries ...Entry) {
	old := manifest
	manifest = func() []Entry { return entries }
	t.Cleanup(func() { manifest = old })
}

// Goal: what may be used is decided by content: names and places change nothing.
func TestLoad_Guard(t *testing.T) {
	ctx := context.Background()
	data := tinyParams(t, "tiny-16")
	key, other := data[:1156], tinyParams(t, "tiny-64")[:1252]
	v28, dev := ReferenceStem(testBase), DevStem("2KiB", testBase)
	for _, stem := range []string{v28, dev} {
		set, err := Find(Dir{Path: layDir(t, map[string][]byte{stem + ".params": data, stem + ".vk": key})}, "2KiB", testBase)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Load(ctx, set, Policy{})
		refused(t, err, set.Params, "leave to use development parameters", KeyDigest(key))
		_, err = Load(ctx, set, Policy{AllowDev: true, VerifyProduction: true})
		refused(t, err, "public manifest")
		var lines []string
		policy := Policy{AllowDev: true, Log: func(level, text string) { lines = append(lines, level+" "+text) }}
		for range 2 {
			f, err := Load(ctx, set, policy)
			if err != nil {
				t.Fatal(err)
			}
			f.Close()
		}
		if len(lines) != 2 || !strings.HasPrefix(lines[0], "warn ") || !strings.Contains(lines[0], KeyDigest(key)) {
			t.Errorf("want a warning for each use, got %q", lines)
		}
	}
	// A production key, found by content under any name, but not for another circuit.
	withManifest(t, Entry{Base: testBase, VKDigest: KeyDigest(key), ParamsDigest: KeyDigest(data)})
	quiet := Policy{VerifyProduction: true, Log: func(_, text string) { t.Errorf("logged: %s", text) }}
	for base, stem := range map[string]string{testBase: dev, "": "mine"} {
		dir := layDir(t, map[string][]byte{stem + ".params": data, stem + ".vk": key})
		set := Set{Params: filepath.Join(dir, stem+".params"), VK: filepath.Join(dir, stem+".vk"), Base: base}
		f, err := Load(ctx, set, quiet)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		set.Base = "another-circuit"
		_, err = Load(ctx, set, Policy{AllowDev: true})
		refused(t, err, "want the key of another-circuit, got the production key of "+testBase)
		// The .vk of another set beside it, and none.
		if err := os.WriteFile(set.VK, other, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err = Load(ctx, set, Policy{AllowDev: true})
		refused(t, err, set.Params, set.VK, "two parameter sets")
		os.Remove(set.VK)
		_, err = Load(ctx, set, Policy{AllowDev: true})
		refused(t, err, set.VK, "does not exist", EnvDir)
	}
	// A production key before other points: only the whole file's digest can tell.
	bad := bytes.Clone(data)
	copy(bad[len(bad)-G2Bytes:], bad[len(bad)-2*G2Bytes:len(bad)-G2Bytes])
	dir := layDir(t, map[string][]byte{"mine.params": bad, "mine.vk": key})
	set, err := SetAt(filepath.Join(dir, "mine.params"), "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = Load(ctx, set, Policy{VerifyProduction: true, Verdicts: NewVerdicts("")})
	refused(t, err, set.Params, KeyDigest(data), KeyDigest(bad))
	f, err := Load(ctx, set, Policy{})
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
}

// Goal: a file is hashed once for each of its states.
func TestVerifyProduction_Once(t *testing.T) {
	f := mustOpen(t, place(t, tinyParams(t, "tiny-16")))
	v := NewVerdicts(t.TempDir())
	v.now = func() time.Time { return time.Now().Add(time.Minute) }
	good := Entry{ParamsDigest: readSetupVector(t, vectors+"tiny/tiny-16/setup.json").ParamsFile.Blake2b512First16}
	if err := f.VerifyProduction(context.Background(), good, v); err != nil {
		t.Fatal(err)
	}
	f.Close() // from here on reading fails
	if err := f.VerifyProduction(context.Background(), good, v); err != nil {
		t.Errorf("hashed again: %v", err)
	}
	if err := f.VerifyProduction(context.Background(), Entry{ParamsDigest: "00"}, v); err == nil {
		t.Error("the verdict of one digest stands for another")
	}
	if err := f.VerifyProduction(context.Background(), good, nil); err == nil {
		t.Error("without verdicts, want the error of a closed file")
	}
	if files, _ := os.ReadDir(v.dir); len(files) != 0 {
		t.Errorf("want this verdict in memory only, got %v", files)
	}
}
