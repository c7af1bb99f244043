package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/sealc2/sealc2/engine"
	"github.com/sealc2/sealc2/engine/circuit/porep"
	"github.com/sealc2/sealc2/engine/params"
	"github.com/sealc2/sealc2/engine/status"
)

const vectors = "../../tests/vectors/"

// world is what a run of the command line sees of the outside.
type world struct {
	stdin []byte
	env   map[string]string
	open  func(engine.Config) (prover, error) // nil: the real engine
}

func (w world) run(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	if w.open == nil {
		w.open = func(c engine.Config) (prover, error) { return engine.Open(c) }
	}
	a := &app{
		in: bytes.NewReader(w.stdin), out: &out, con: &console{w: &errs},
		getenv: func(name string) string { return w.env[name] }, open: w.open,
	}
	code = a.run(ctx, args)
	return code, out.String(), errs.String()
}

// object decodes stdout, which must be exactly one JSON object.
func object(t *testing.T, stdout string) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(stdout), &v); err != nil {
		t.Fatalf("stdout is not one JSON object: %v\n%s", err, stdout)
	}
	return v
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func writeFile(t *testing.T, path string, data []byte) string {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// referenceProof is a sector's proof by the reference, with its r and s.
func referenceProof(t *testing.T, name string) (proof []byte, r, s string) {
	t.Helper()
	var v struct {
		Proofs []string `json:"proofs"`
		R      []string `json:"r"`
		S      []string `json:"s"`
	}
	if err := json.Unmarshal(readFile(t, vectors+"c1/"+name+"/proof.json"), &v); err != nil {
		t.Fatal(err)
	}
	proof, err := hex.DecodeString(strings.Join(v.Proofs, ""))
	if err != nil {
		t.Fatal(err)
	}
	return proof, strings.Join(v.R, ","), strings.Join(v.S, ",")
}

// keyFolder makes a folder with the reference's development key of a shape.
func keyFolder(t *testing.T, shapeName string, stem func(*porep.Shape) string) string {
	t.Helper()
	shape, err := porep.ShapeByName(shapeName)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, stem(shape)+params.VKExt), readFile(t, vectors+"setup/"+shape.OracleName+".vk"))
	return dir
}

func referenceStem(s *porep.Shape) string { return params.ReferenceStem(s.ParamsBaseName()) }

// Goal: wrong usage ends with exit code 2 and says what would be right, also as JSON.
func TestUsage(t *testing.T) {
	long := strings.Repeat("0", 63)
	cases := []struct {
		args string
		want string // part of the text
	}{
		{"", "circuit, witness, synth, setup, prove, verify, serve, params, bench, version"},
		{"nonsense", "circuit, witness, synth, setup, prove, verify, serve, params, bench, version"},
		{"circuit", "digest"},
		{"circuit nonsense", "want one of digest"},
		{"circuit digest", `--shape`},
		{"circuit digest --shape 3KiB", "2KiB, 4KiB, 16KiB, 32KiB, 8MiB, 512MiB, 32GiB, 64GiB"},
		{"circuit digest --shap 2KiB", "--shape"},
		{"circuit digest --shape", "--shape"},
		{"circuit digest --shape 2KiB extra", "extra"},
		{"circuit digest --shape 2KiB --threads -1", "--threads: want 0 or more"},
		{"circuit digest --shape 2KiB --threads x", `--threads: want a value of type int, got "x"`},
		{"circuit digest --shape 2KiB --threads 99999999999999999999", "--threads: want a value of type int in its range"},
		{"circuit digest --shape 2KiB --memory 5parsecs", "KiB, MiB, GiB, TiB"},
		{"circuit digest --shape 2KiB --log loud", "error, warn, info, debug"},
		{"witness digest", `--c1`},
		{"setup --shape 2KiB", `--out`},
		{"setup --shape 2KiB --out x --names mine", "dev, reference"},
		{"prove --c1 x", `--out`},
		{"prove --c1 x --out y --device abacus", "one of cpu, "},
		{"prove --c1 x --out y --miner t01000", "sector-id"},
		{"prove --c1 x --out y --policy one-lock", `--policy: want one of reservation, single, two-lock, split, got "one-lock"`},
		{"serve --policy=", "--policy: want one of reservation"},
		{"serve --gpu-workers -1", "--gpu-workers: want 0 or more, got -1"},
		{"bench prove --shape 2KiB --make-params --partition-workers -1", "--partition-workers: want 0 or more"},
		{"prove --c1 x --out y --sector-id 1", "miner"},
		{"prove --c1 x --out y --sector-id -1 --miner 1", "--sector-id"},
		{"prove --c1 x --out y --sector-id 1 --miner t1abc", "t01000"},
		{"prove --c1 x --out y --r " + long + "0", "--s with --r"},
		{"prove --c1 x --out y --r " + long + " --s " + long, "64 hex digits"},
		{"verify --c1 x", `--proof`},
		{"params check", "one FILE or DIR"},
		{"params check x --shape 1", "2KiB"},
		{"version --nonsense", "--json"},
	}
	for _, c := range cases {
		args := strings.Fields(c.args)
		code, stdout, stderr := world{}.run(t.Context(), args...)
		if code != exitUsage || !strings.Contains(stderr, c.want) || stdout != "" {
			t.Errorf("%q: want exit code 2 and %q on stderr, got %d, stdout %q, stderr %q", c.args, c.want, code, stdout, stderr)
		}
		for _, all := range [][]string{append([]string{"--json"}, args...), append(slices.Clip(args), "--json")} {
			code, stdout, stderr = world{}.run(t.Context(), all...)
			v := object(t, stdout)
			message, _ := v["message"].(string)
			// A flag at the end without its value takes --json for it.
			if code != exitUsage || v["kind"] != "caller" || v["exit_code"] != 2.0 || !strings.Contains(message, c.want) || stderr != "" {
				t.Errorf("%q: want a caller error with %q, got %d, %v, stderr %q", all, c.want, code, v, stderr)
			}
		}
	}
}

// Goal: whatever becomes of --json itself, stdout is one object where it was asked for, and text where not.
func TestUsage_JSON(t *testing.T) {
	for args, want := range map[string]bool{
		"version extra --json=1": true, "version extra --json=maybe": true, "prove --out --json": true,
		"version extra --json=false": false, "params check x y -- --json": false,
	} {
		code, stdout, _ := world{}.run(t.Context(), strings.Fields(args)...)
		if code != exitUsage || (stdout != "") != want {
			t.Errorf("%q: got %d, %q", args, code, stdout)
		}
		if want {
			object(t, stdout)
		}
	}
	for _, args := range []string{"--json --help", "prove -h --json", "--json help prove"} {
		code, stdout, _ := world{}.run(t.Context(), strings.Fields(args)...)
		if help, _ := object(t, stdout)["help"].(string); code != exitDone || !strings.Contains(help, "Usage:") {
			t.Errorf("%q: got %d, %q", args, code, stdout)
		}
	}
}

// Goal: errors name flag, wish and finding apart.
func TestUsage_Fields(t *testing.T) {
	_, stdout, _ := world{}.run(t.Context(), "--json", "circuit", "digest", "--shape", "3KiB")
	v := object(t, stdout)
	for key, want := range map[string]any{"where": "--shape", "want": "one of 2KiB, 4KiB, 16KiB, 32KiB, 8MiB, 512MiB, 32GiB, 64GiB", "got": `"3KiB"`} {
		if v[key] != want {
			t.Errorf("%s: want %v, got %v", key, want, v[key])
		}
	}
}

func TestVersion(t *testing.T) {
	code, stdout, _ := world{}.run(t.Context(), "version", "--json")
	if v := object(t, stdout); code != exitDone || v["version"] != engine.Version || v["name"] != "sealc2" {
		t.Errorf("got %d, %v", code, v)
	}
	if code, stdout, _ := (world{}).run(t.Context(), "version"); code != exitDone || !strings.HasPrefix(stdout, "sealc2 "+engine.Version) {
		t.Errorf("got %d, %q", code, stdout)
	}
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"help", "prove"}, {"prove", "--help"}, {"params", "--help"}} {
		if code, stdout, _ := (world{}).run(t.Context(), args...); code != exitDone || !strings.Contains(stdout, "Usage:") {
			t.Errorf("%q: got %d, %q", args, code, stdout)
		}
	}
}

// compared are the fields of a circuit's digest that must equal the reference.
var compared = []string{
	"total", "chunks", "inputs", "aux", "constraints", "constraints_with_appended", "domain_size", "nnz",
	"other_coefficients", "empty_lcs", "max_terms", "density", "gadgets", "format", "name", "chunk_size",
}

// Goal: `circuit digest` has the form of the reference's file, and its values.
func TestCircuitDigest_EqualsReference(t *testing.T) {
	code, stdout, stderr := world{}.run(t.Context(), "circuit", "digest", "--shape", "porep-2k", "--json")
	if code != exitDone {
		t.Fatal(code, stderr)
	}
	got, want := object(t, stdout), object(t, string(readFile(t, vectors+"shapes/porep-2k.json")))
	for _, key := range compared {
		if want[key] == nil || !reflect.DeepEqual(got[key], want[key]) {
			t.Errorf("%s: want %v, got %v", key, want[key], got[key])
		}
	}
}

// Goal: `witness digest` has the form of witness.json, and its values.
func TestWitnessDigest_EqualsReference(t *testing.T) {
	dir := vectors + "c1/porep-16k/"
	w := world{stdin: readFile(t, dir+"c1.json")}
	code, stdout, stderr := w.run(t.Context(), "witness", "digest", "--c1", "-", "--statement", dir+"statement.json")
	if code != exitDone {
		t.Fatal(code, stderr)
	}
	got, want := object(t, stdout), object(t, string(readFile(t, dir+"witness.json")))
	if got["name"] != want["name"] || got["chunk_size"] != want["chunk_size"] {
		t.Errorf("want %v, %v, got %v, %v", want["name"], want["chunk_size"], got["name"], got["chunk_size"])
	}
	g, w1 := got["partitions"].([]any), want["partitions"].([]any)
	if len(g) != len(w1) {
		t.Fatalf("want %d partitions, got %d", len(w1), len(g))
	}
	for i := range w1 {
		for key, value := range w1[i].(map[string]any) {
			if key != "seconds" && !reflect.DeepEqual(g[i].(map[string]any)[key], value) {
				t.Errorf("partition %d: %s differs", i, key)
			}
		}
	}
}

// Goal: what synth writes, witness takes: also a sector of a size without registered proof.
func TestSynth_Witness(t *testing.T) {
	dir := t.TempDir()
	out, statement := filepath.Join(dir, "c1.json"), filepath.Join(dir, "statement.json")
	if code, _, stderr := (world{}).run(t.Context(), "synth", "--shape", "4KiB", "--seed", "3", "--out", out, "--statement-out", statement); code != exitDone {
		t.Fatal(code, stderr)
	}
	code, stdout, stderr := world{}.run(t.Context(), "witness", "digest", "--c1", out, "--statement", statement, "--json")
	if code != exitDone {
		t.Fatal(code, stderr)
	}
	p := object(t, stdout)["partitions"].([]any)
	if len(p) != 1 || !reflect.DeepEqual(p[0].(map[string]any)["public_inputs_generated"], p[0].(map[string]any)["public_inputs_synthesised"]) {
		t.Errorf("got %d partitions, or public inputs that differ", len(p))
	}
}

func TestWitnessDigest_Refused(t *testing.T) {
	c1 := vectors + "c1/porep-16k/c1.json"
	for _, args := range [][]string{
		{"--c1", c1},                           // the bare form without a statement
		{"--c1", "missing.json"},               // no file
		{"--c1", c1, "--statement", c1},        // a statement that is none
		{"--c1", t.TempDir()},                  // a folder
		{"--c1", c1, "--statement", "missing"}, // no file
	} {
		code, stdout, stderr := world{}.run(t.Context(), append([]string{"witness", "digest", "--json"}, args...)...)
		if v := object(t, stdout); code != exitRefused || v["kind"] != "input" || v["message"] == "" || stderr != "" {
			t.Errorf("%q: want an input error, got %d, %v, %q", args, code, v, stderr)
		}
	}
}

// Goal: the reference's proofs verify, and nothing else does. The key is the reference's development key.
func TestVerify(t *testing.T) {
	proof, _, _ := referenceProof(t, "porep-2k-a")
	other, _, _ := referenceProof(t, "porep-2k-b")
	dir := t.TempDir()
	good, foreign := writeFile(t, filepath.Join(dir, "good"), proof), writeFile(t, filepath.Join(dir, "foreign"), other)
	short := writeFile(t, filepath.Join(dir, "short"), proof[:191])
	c1 := vectors + "c1/porep-2k-a/c1.json"
	keys := keyFolder(t, "2KiB", referenceStem)
	devKeys := keyFolder(t, "2KiB", func(s *porep.Shape) string { return params.DevStem(s.Name, s.ParamsBaseName()) })
	allowed := map[string]string{envAllowDev: "1", envParamDir: keys}

	cases := []struct {
		name string
		w    world
		args []string
		code int
		kind string // of the error; empty: an answer
	}{
		{"explicit folder", world{}, []string{"--proof", good, "--params", keys}, exitDone, ""},
		{"development names", world{}, []string{"--proof", good, "--params", devKeys}, exitDone, ""},
		{"with ids", world{}, []string{"--proof", good, "--params", keys, "--sector-id", "1", "--miner", "t01000"}, exitDone, ""},
		{"environment", world{env: allowed}, []string{"--proof", good}, exitDone, ""},
		{"another sector's proof", world{}, []string{"--proof", foreign, "--params", keys}, exitRefused, ""},
		{"another miner", world{}, []string{"--proof", good, "--params", keys, "--sector-id", "1", "--miner", "t01001"}, exitRefused, "input"},
		{"another sector id", world{}, []string{"--proof", good, "--params", keys, "--sector-id", "2", "--miner", "t01000"}, exitRefused, "input"},
		{"development key, not allowed", world{env: map[string]string{envParamDir: keys}}, []string{"--proof", good}, exitRefused, "params"},
		{"production asked for", world{env: map[string]string{envVerifyProduction: "1"}}, []string{"--proof", good, "--params", keys}, exitRefused, "params"},
		{"no such folder", world{}, []string{"--proof", good, "--params", dir + "/none"}, exitRefused, "params"},
		{"cut proof", world{}, []string{"--proof", short, "--params", keys}, exitRefused, "input"},
		{"no proof file", world{}, []string{"--proof", dir + "/none", "--params", keys}, exitRefused, "input"},
	}
	for _, c := range cases {
		code, stdout, stderr := c.w.run(t.Context(), append([]string{"verify", "--json", "--c1", c1}, c.args...)...)
		v := object(t, stdout)
		if code != c.code {
			t.Errorf("%s: want exit code %d, got %d: %v", c.name, c.code, code, v)
		}
		if c.kind != "" && v["kind"] != c.kind {
			t.Errorf("%s: want a %s error, got %v", c.name, c.kind, v)
		}
		if c.kind == "" && (v["verified"] != (c.code == exitDone) || v["partitions"] != 1.0) {
			t.Errorf("%s: got %v", c.name, v)
		}
		if c.code == exitDone && !strings.Contains(stderr, "warn: ") {
			t.Errorf("%s: a development key was used without a warning: %q", c.name, stderr)
		}
	}

	// Where the folder came from is part of what is wrong with it.
	for want, w := range map[string]world{
		"directory from --params, not from FIL_PROOFS_PARAMETER_CACHE": {},
		"(directory from FIL_PROOFS_PARAMETER_CACHE)":                  {env: map[string]string{envParamDir: dir + "/none"}},
	} {
		args := []string{"verify", "--c1", c1, "--proof", good}
		if w.env == nil {
			args = append(args, "--params", dir+"/none")
		}
		if code, _, stderr := w.run(t.Context(), args...); code != exitRefused || !strings.Contains(stderr, want) {
			t.Errorf("want %q, got %d, %q", want, code, stderr)
		}
	}

	code, stdout, _ := world{}.run(t.Context(), "verify", "--c1", c1, "--proof", foreign, "--params", keys)
	if code != exitRefused || !strings.Contains(stdout, "not verified") {
		t.Errorf("text: got %d, %q", code, stdout)
	}
}

// fakeProver stands for the engine.
type fakeProver struct {
	request        *engine.ProveRequest
	config         engine.Config
	result         *engine.ProveResult
	err            error
	opened, closed int
}

func (f *fakeProver) Prove(ctx context.Context, request *engine.ProveRequest) (*engine.ProveResult, error) {
	f.request = request
	if err := ctx.Err(); err != nil {
		return nil, status.Wrap(status.Cancelled, "engine.Prove", "", err)
	}
	request.Progress(engine.Progress{Partition: 0, Partitions: 2, Stage: "expand", Elapsed: time.Millisecond, Done: 0.5})
	return f.result, f.err
}

func (f *fakeProver) VerifyC1(context.Context, *engine.VerifyC1Request) (bool, error) {
	return false, status.New(status.Internal, "fake", "", "", "not used")
}

func (f *fakeProver) Device() string { return "cpu" }

func (f *fakeProver) Close() error { f.closed++; return nil }

func (f *fakeProver) open(c engine.Config) (prover, error) { f.config = c; f.opened++; return f, nil }

// Goal: flags and environment arrive in the request, and the file holds the proof and nothing else.
func TestProve_Request(t *testing.T) {
	proof := bytes.Repeat([]byte{1, 2, 3}, 128) // two partitions
	_, r, s := referenceProof(t, "porep-2k-a")
	two := func(x string) string { return x + "," + x }
	dir := t.TempDir()
	out := filepath.Join(dir, "proof.bin")
	f := &fakeProver{result: &engine.ProveResult{Proof: proof, Device: "cpu", Stages: []engine.StageTime{
		{Partition: -1, Stage: "parse", Elapsed: time.Second}, {Partition: 1, Stage: "msm_h", Start: time.Second, Elapsed: 1500 * time.Millisecond},
	}}}
	w := world{stdin: []byte("the C1"), open: f.open, env: map[string]string{envThreads: "3"}}
	code, stdout, stderr := w.run(t.Context(), "prove", "--c1", "-", "--out", out, "--params", "somewhere", "--sector-id", "7", "--miner", "f0127126",
		"--r", two(r), "--s", two(s), "--device", "cpu", "--memory", "3GiB", "--device-memory", "5GiB", "--json")
	if code != exitDone {
		t.Fatal(code, stdout, stderr)
	}
	if got := readFile(t, out); !bytes.Equal(got, proof) {
		t.Errorf("the file holds %x", got)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
		t.Errorf("left behind: %v, %v", names, err)
	}
	q := f.request
	ids := engine.SectorIDs{SectorID: 7, ProverID: [32]byte{0x96, 0xe1, 0x07}}
	if string(q.C1) != "the C1" || q.IDs == nil || *q.IDs != ids || len(q.R) != 2 || len(q.S) != 2 || scalarHex(&q.R[1]) != r || scalarHex(&q.S[0]) != s {
		t.Errorf("request: %+v", q)
	}
	if want := (engine.ParamSource{Dir: "somewhere", Origin: "--params", AllowDev: true}); q.Params != want {
		t.Errorf("want %+v, got %+v", want, q.Params)
	}
	if f.config.Threads != 3 || f.config.HostBytes != 3<<30 || f.config.DeviceBytes != 5<<30 || f.config.Device != "cpu" || f.closed != 1 {
		t.Errorf("config %+v, closed %d times", f.config, f.closed)
	}
	v := object(t, stdout)
	if proofs := v["proofs"].([]any); len(proofs) != 2 || proofs[1] != hex.EncodeToString(proof[192:]) || v["verified"] != true || v["bytes"] != 384.0 || v["out"] != out {
		t.Errorf("result: %v", v)
	}
	if stages := v["stages"].([]any); len(stages) != 2 || stages[1].(map[string]any)["elapsed_ms"] != 1500.0 {
		t.Errorf("stages: %v", v["stages"])
	}
	if !strings.Contains(stderr, " 50%  partition 1 of 2: expand  0.001 s\n") {
		t.Errorf("progress: %q", stderr)
	}

	code, stdout, _ = w.run(t.Context(), "prove", "--c1", "-", "--out", out)
	if code != exitDone || !strings.Contains(stdout, "msm_h") || !strings.Contains(stdout, "verified proof of 2 partitions") {
		t.Errorf("text: %d, %q", code, stdout)
	}
	if want := (engine.ParamSource{Dir: params.DefaultDir, Origin: "the default, FIL_PROOFS_PARAMETER_CACHE is not set"}); f.request.Params != want || f.request.IDs != nil || f.request.R != nil || f.config.Device != "auto" {
		t.Errorf("defaults: %+v", f.request)
	}
}

// Goal: where the proof fails, what stood under the name stays, and nothing is left beside it.
func TestProve_Refused(t *testing.T) {
	dir := t.TempDir()
	out := writeFile(t, filepath.Join(dir, "proof.bin"), []byte("older"))
	inner := status.New(status.Unsatisfied, "circuit.Evaluate", "template sha256_compress, row 12", "a·b = c", "3·4 = 13")
	f := &fakeProver{err: status.Wrap(status.Unsatisfied, "engine.Prove", "partition 3", inner)}
	w := world{stdin: []byte("{}"), open: f.open}
	code, stdout, _ := w.run(t.Context(), "prove", "--json", "--c1", "-", "--out", out)
	v := object(t, stdout)
	if code != exitRefused || v["kind"] != "unsatisfied" || v["want"] != "a·b = c" || v["op"] != "circuit.Evaluate" || !strings.Contains(v["message"].(string), "partition 3") {
		t.Errorf("got %d, %v", code, v)
	}
	code, _, stderr := w.run(t.Context(), "prove", "--c1", "-", "--out", out)
	if code != exitRefused || !strings.Contains(stderr, "partition 3") {
		t.Errorf("text: got %d, %q", code, stderr)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f.err = nil
	code, stdout, _ = w.run(ctx, "prove", "--json", "--c1", "-", "--out", out)
	if v := object(t, stdout); code != exitRefused || v["kind"] != "cancelled" {
		t.Errorf("cancelled: got %d, %v", code, v)
	}
	if f.opened < 2 || f.closed != f.opened { // the third run may end while it reads
		t.Errorf("closed %d of %d engines", f.closed, f.opened)
	}

	// Places that cannot be written are refused before any work.
	f.request = nil
	for _, bad := range []string{dir, filepath.Join(dir, "none", "proof")} {
		code, stdout, _ := w.run(t.Context(), "prove", "--json", "--c1", "-", "--out", bad)
		if v := object(t, stdout); code != exitRefused || v["kind"] != "input" || f.request != nil {
			t.Errorf("%s: got %d, %v", bad, code, v)
		}
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 1 || string(readFile(t, out)) != "older" {
		t.Errorf("left behind: %v, %v", names, err)
	}
}

// Goal: a C1 in which one hash was changed is refused by the real engine before it proves.
func TestProve_ChangedHash(t *testing.T) {
	c1 := bytes.Replace(readFile(t, vectors+"c1/porep-2k-a/c1.json"), []byte(`"rows":[[`), []byte(`"rows":[[1,`), 1)
	out := filepath.Join(t.TempDir(), "proof")
	w := world{stdin: c1}
	code, stdout, _ := w.run(t.Context(), "prove", "--json", "--c1", "-", "--out", out, "--params", t.TempDir())
	if v := object(t, stdout); code != exitRefused || v["kind"] != "input" || !strings.Contains(v["message"].(string), "rows") {
		t.Errorf("got %d, %v", code, v)
	}
}

// Goal: `params check` tells good files from bad ones and lists all of them. The sets are the reference's
// tiny ones.
func TestParamsCheck(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"tiny-16", "tiny-64"} {
		writeFile(t, filepath.Join(dir, name+params.ParamsExt), readFile(t, vectors+"tiny/"+name+"/params.bin"))
		writeFile(t, filepath.Join(dir, name+params.VKExt), readFile(t, vectors+"tiny/"+name+"/vk.bin"))
	}
	check := func(args ...string) (int, map[string]any) {
		t.Helper()
		code, stdout, stderr := world{}.run(t.Context(), append([]string{"params", "check", "--json"}, args...)...)
		if strings.Contains(stderr, "sealc2:") {
			t.Errorf("%q: %s", args, stderr)
		}
		return code, object(t, stdout)
	}
	code, v := check(dir, "--digest")
	files := v["files"].([]any)
	if code != exitDone || v["ok"] != true || len(files) != 2 {
		t.Fatalf("got %d, %v", code, v)
	}
	first := files[0].(map[string]any)
	var setup struct {
		File map[string]any `json:"params_file"`
	}
	if err := json.Unmarshal(readFile(t, vectors+"tiny/tiny-16/setup.json"), &setup); err != nil {
		t.Fatal(err)
	}
	if got := first["digests"].(map[string]any)["params_file"]; !reflect.DeepEqual(got, any(setup.File)) {
		t.Errorf("digests: want %v, got %v", setup.File, got)
	}
	if first["production"] != false || first["check"].(map[string]any)["points"] == 0.0 {
		t.Errorf("got %v", first)
	}

	// A key that is not the one in the .params file, and a point that is none.
	other := writeFile(t, filepath.Join(dir, "tiny-64"+params.VKExt), readFile(t, vectors+"tiny/tiny-16/vk.bin"))
	bad := readFile(t, vectors+"tiny/tiny-16/params.bin")
	bad[len(bad)-1] ^= 1
	writeFile(t, filepath.Join(dir, "tiny-16"+params.ParamsExt), bad)
	code, v = check(dir)
	files = v["files"].([]any)
	if code != exitRefused || v["ok"] != false || v["kind"] != "params" || len(files) != 2 {
		t.Fatalf("got %d, %v", code, v)
	}
	for i, want := range []string{"b_g2", "tiny-64"} {
		f := files[i].(map[string]any)
		if message := f["error"].(map[string]any)["message"].(string); f["ok"] != false || !strings.Contains(message, want) {
			t.Errorf("file %d: want an error about %s, got %v", i, want, f)
		}
	}
	if code, v := check(other); code != exitDone || v["ok"] != true {
		t.Errorf("a key alone: got %d, %v", code, v)
	}
	if code, v := check(other, "--shape", "2KiB"); code != exitRefused || v["kind"] != "params" {
		t.Errorf("a key of another circuit: got %d, %v", code, v)
	}
	if code, v := check(dir, "--shape", "2KiB"); code != exitRefused || v["kind"] != "params" || v["files"] != nil {
		t.Errorf("nothing of the shape: got %d, %v", code, v)
	}
	if code, v := check(filepath.Join(dir, "none")); code != exitRefused || v["kind"] != "input" {
		t.Errorf("no such path: got %d, %v", code, v)
	}
	keys := keyFolder(t, "16KiB", referenceStem)
	if code, v := check(keys, "--shape", "16KiB"); code != exitDone || v["files"].([]any)[0].(map[string]any)["circuit"] != "porep-16k" {
		t.Errorf("a key that is known by its name: got %d, %v", code, v)
	}
}

// Goal: a file that passed is not checked again until it changes, whichever process asks: what it is known by lies below
// $XDG_CACHE_HOME/sealc2, or ~/.cache/sealc2, and in memory where neither can be written.
func TestParamsCheck_Remembers(t *testing.T) {
	dir, cache, home := t.TempDir(), t.TempDir(), t.TempDir()
	// The reference's files themselves: what was written just now is not trusted to stay as it is.
	for link, name := range map[string]string{"a" + params.ParamsExt: "params.bin", "a" + params.VKExt: "vk.bin", "b" + params.ParamsExt: "params.bin", "b" + params.VKExt: "vk.bin"} {
		target, err := filepath.Abs(vectors + "tiny/tiny-16/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	one := filepath.Join(dir, "a"+params.ParamsExt)
	file := writeFile(t, filepath.Join(dir, "file"), nil)
	cached := func(env map[string]string, args ...string) (all []bool) {
		t.Helper()
		code, stdout, stderr := world{env: env}.run(t.Context(), append([]string{"params", "check", "--json"}, args...)...)
		v := object(t, stdout)
		if code != exitDone {
			t.Fatalf("%q: %d, %v, %s", args, code, v, stderr)
		}
		for _, f := range v["files"].([]any) {
			all = append(all, f.(map[string]any)["check"].(map[string]any)["cached"].(bool))
		}
		return all
	}
	kept := func(dir string) int {
		entries, _ := os.ReadDir(filepath.Join(dir, "params-checks"))
		return len(entries)
	}
	for _, c := range []struct {
		name string
		env  map[string]string
		args []string
		want []bool
	}{
		{"first", map[string]string{envCache: cache, envHome: home}, []string{one}, []bool{false}},
		{"another process", map[string]string{envCache: cache, envHome: home}, []string{one}, []bool{true}},
		{"told to", map[string]string{envCache: cache}, []string{one, "--again"}, []bool{false}},
		{"elsewhere", map[string]string{envHome: home}, []string{one}, []bool{false}},
		{"elsewhere, another process", map[string]string{envCache: "relative", envHome: home}, []string{one}, []bool{true}},
		{"nowhere", nil, []string{one}, []bool{false}},
		{"nowhere, one file under two names", nil, []string{dir}, []bool{false, true}},
		{"where nothing can be written", map[string]string{envCache: file}, []string{dir}, []bool{false, true}},
		{"and its next process", map[string]string{envCache: file}, []string{one}, []bool{false}},
	} {
		if got := cached(c.env, c.args...); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: want cached %v, got %v", c.name, c.want, got)
		}
	}
	if a, b := kept(filepath.Join(cache, "sealc2")), kept(filepath.Join(home, ".cache", "sealc2")); a != 1 || b != 1 {
		t.Errorf("%d verdicts in the cache, %d at home", a, b)
	}
	code, stdout, _ := world{env: map[string]string{envCache: cache}}.run(t.Context(), "params", "check", one)
	if code != exitDone || !strings.Contains(stdout, "checked before") {
		t.Errorf("text: %d, %s", code, stdout)
	}
}

// Goal: a setup that is cancelled or cannot write leaves nothing behind.
func TestSetup_Refused(t *testing.T) {
	dir := t.TempDir()
	file := writeFile(t, filepath.Join(dir, "file"), nil)
	code, stdout, _ := world{}.run(t.Context(), "setup", "--json", "--shape", "2KiB", "--out", filepath.Join(file, "below"))
	if v := object(t, stdout); code != exitRefused || v["kind"] != "input" {
		t.Errorf("got %d, %v", code, v)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	out := filepath.Join(dir, "new")
	code, stdout, _ = world{}.run(ctx, "setup", "--json", "--shape", "2KiB", "--out", out)
	if v := object(t, stdout); code != exitRefused || v["kind"] != "cancelled" {
		t.Errorf("got %d, %v", code, v)
	}
	if names, err := os.ReadDir(out); err != nil || len(names) != 0 {
		t.Errorf("left behind: %v, %v", names, err)
	}
}

// fullDisk is a stdout that takes nothing.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// Goal: a result that could not be written is no success, as text and as JSON; nor is a proof.
func TestRun_FullDisk(t *testing.T) {
	for _, args := range [][]string{{"version"}, {"version", "--json"}, {"circuit", "digest", "--shape", "2KiB"}} {
		var errs bytes.Buffer
		a := &app{out: fullDisk{}, con: &console{w: &errs}, getenv: func(string) string { return "" }}
		if code := a.run(t.Context(), args); code != exitRefused {
			t.Errorf("%q: exit code %d", args, code)
		}
		if !strings.Contains(errs.String(), "stdout: no space left") {
			t.Errorf("%q: %q", args, errs.String())
		}
	}
	f := &fakeProver{result: &engine.ProveResult{Proof: make([]byte, 192)}}
	w := world{stdin: []byte("the C1"), open: f.open}
	code, stdout, _ := w.run(t.Context(), "prove", "--json", "--c1", "-", "--out", "/dev/full")
	if v := object(t, stdout); code != exitRefused || v["kind"] != "input" || !strings.Contains(v["message"].(string), "no space left") {
		t.Errorf("--out: %d, %v", code, v)
	}
}

// Goal: a panic below a command becomes an error with exit code 1.
func TestRun_Panic(t *testing.T) {
	w := world{open: func(engine.Config) (prover, error) { panic("broken") }, stdin: []byte("{}")}
	code, stdout, _ := w.run(t.Context(), "prove", "--json", "--c1", "-", "--out", filepath.Join(t.TempDir(), "x"))
	if v := object(t, stdout); code != exitRefused || v["kind"] != "internal" {
		t.Errorf("got %d, %v", code, v)
	}
}

// brokenReader fails after some bytes.
type brokenReader struct{ left int }

func (b *brokenReader) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	n := min(b.left, len(p))
	b.left -= n
	return n, nil
}

func TestReadInput(t *testing.T) {
	path := writeFile(t, filepath.Join(t.TempDir(), "f"), bytes.Repeat([]byte{7}, 1000))
	a := &app{in: bytes.NewReader(make([]byte, 5000))}
	if b, err := a.readInput(t.Context(), "--x", path, 1000, nil); err != nil || len(b) != 1000 {
		t.Errorf("got %d bytes, %v", len(b), err)
	}
	if _, err := a.readInput(t.Context(), "--x", path, 999, nil); status.KindOf(err) != status.Input {
		t.Errorf("too large: got %v", err)
	}
	if b, err := a.readInput(t.Context(), "--x", "-", 5000, nil); err != nil || len(b) != 5000 {
		t.Errorf("stdin: got %d bytes, %v", len(b), err)
	}
	a.in = bytes.NewReader(make([]byte, 5000))
	if _, err := a.readInput(t.Context(), "--x", "-", 4999, nil); status.KindOf(err) != status.Input {
		t.Errorf("stdin, too large: got %v", err)
	}
	a.in = &brokenReader{100}
	if _, err := a.readInput(t.Context(), "--x", "-", 5000, nil); status.KindOf(err) != status.Input {
		t.Errorf("stdin, broken: got %v", err)
	}
}

// endless never ends and never blocks.
type endless byte

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(e)
	}
	return len(p), nil
}

// Goal: what cannot be a C1 output is refused after its first bytes, and waiting for it can be cancelled.
func TestReadInput_Hostile(t *testing.T) {
	for _, c := range []struct {
		text string
		want bool
	}{{"", false}, {" \t\r\n", false}, {" {", false}, {"{}x", false}, {"\x00", true}, {"\xef\xbb\xbf{", true}, {" [", true}} {
		if got := noObject([]byte(c.text)); got != c.want {
			t.Errorf("%q: got %v", c.text, got)
		}
	}
	a := &app{in: endless(0)}
	if b, err := a.readInput(t.Context(), "--x", "-", maxC1Bytes, noObject); err != nil || len(b) > firstBytes {
		t.Errorf("zeros: %d bytes read, %v", len(b), err)
	}
	if _, err := a.readInput(t.Context(), "--x", "-", 1<<20, nil); status.KindOf(err) != status.Input {
		t.Errorf("zeros without a look at them: %v", err)
	}
	r, w := io.Pipe()
	defer w.Close()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := (&app{in: r}).readInput(ctx, "--x", "-", 1000, nil); status.KindOf(err) != status.Cancelled {
		t.Errorf("a pipe into which nobody writes: %v", err)
	}
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := a.readInput(ctx, "--x", fifo, 1000, nil); status.KindOf(err) != status.Cancelled {
		t.Errorf("a pipe that nobody opens: %v", err)
	}
	if end, err := os.OpenFile(fifo, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
		end.Close() // lets the reader go
	}
}

// Goal: wrong usage says at which command, what is wanted and what was given, also as JSON; a file that cannot be
// used is named.
func TestRefusals(t *testing.T) {
	empty := writeFile(t, filepath.Join(t.TempDir(), "empty"), nil)
	c1 := vectors + "c1/porep-2k-a/c1.json"
	out := filepath.Join(t.TempDir(), "out")
	itself := writeFile(t, filepath.Join(t.TempDir(), "c1"), []byte("{}"))
	for _, c := range []struct {
		args             string
		code             int
		where, want, got string
	}{
		{"version more", exitUsage, "sealc2 version", "flags only", `"more"`},
		{"prove", exitUsage, "sealc2 prove", "--c1 and --out", "none"},
		{"prove --out x", exitUsage, "sealc2 prove", "--c1", "none"},
		{"prove --c1 x --out x --sector-id 1", exitUsage, "sealc2 prove", "--miner with --sector-id", "none"},
		{"prove --c1 x --out x --s " + strings.Repeat("0", 64), exitUsage, "sealc2 prove", "--r with --s", "none"},
		{"help nothing", exitUsage, "sealc2 help", "a command of sealc2", `"nothing"`},
		{"help params nothing", exitUsage, "sealc2 help", "a command of sealc2 params", `"nothing"`},
		{"verify --c1 " + empty + " --proof x", exitRefused, "--c1 " + empty, "the output of Commit phase 1", "no bytes"},
		{"prove --c1 " + itself + " --out " + filepath.Dir(itself) + "/./c1", exitUsage, "--out", "another file than --c1", ""},
		{"verify --c1 /nowhere/c1 --proof x", exitRefused, "--c1", "to open /nowhere/c1", "no such file or directory"},
		{"prove --c1 " + c1 + " --out /nowhere/out", exitRefused, "--out", "", "no such file or directory"},
		{"prove --c1 " + c1 + " --out " + out + " --params /nowhere/x.params", exitRefused, "/nowhere/x.params", "the parameters of this set", ""},
	} {
		code, stdout, _ := world{}.run(t.Context(), append(strings.Fields(c.args), "--json")...)
		v := object(t, stdout)
		if code != c.code || v["where"] != c.where || c.want != "" && v["want"] != c.want || c.got != "" && v["got"] != c.got {
			t.Errorf("%s: want exit code %d, %q, %q, %q, got %d, %v", c.args, c.code, c.where, c.want, c.got, code, v)
		}
	}
	if code, stdout, _ := (world{}).run(t.Context(), "help", "params", "check"); code != exitDone || !strings.Contains(stdout, "--again") {
		t.Errorf("help params check: %d, %s", code, stdout)
	}
}

func TestOutput(t *testing.T) {
	dir := t.TempDir()
	target := writeFile(t, filepath.Join(dir, "target"), []byte("older"))
	link := filepath.Join(dir, "link")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(dir, "fresh"), link} {
		o, err := createOutput("--out", path)
		if err != nil {
			t.Fatal(err)
		}
		if err := o.commit([]byte("proof")); err != nil {
			t.Fatal(err)
		}
		o.discard() // keeps what was committed
		if got := readFile(t, path); string(got) != "proof" {
			t.Errorf("%s: got %q", path, got)
		}
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v, %v", info, err)
	}
	if info, err := os.Stat(target); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("got %v, %v", info, err)
	}

	// A device is written in place, never replaced.
	o, err := createOutput("--out", os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.commit([]byte("proof")); err != nil {
		t.Fatal(err)
	}
	o.discard()
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode().IsRegular() {
		t.Errorf("got %v, %v", info, err)
	}
}
