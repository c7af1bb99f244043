package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/sealc2/sealc2/engine"
	"github.com/sealc2/sealc2/engine/status"
)

// echoProver refuses what it is asked, with the request in the text: whatever a caller passes may come back in an error.
type echoProver struct{}

func (echoProver) Prove(_ context.Context, r *engine.ProveRequest) (*engine.ProveResult, error) {
	return nil, status.New(status.Input, "echo", r.Params.Dir, "something else", string(r.C1))
}

func (echoProver) VerifyC1(_ context.Context, r *engine.VerifyC1Request) (bool, error) {
	return false, status.New(status.Params, "echo", r.Params.Dir, string(r.Proof), string(r.C1))
}

func (echoProver) Device() string { return "cpu" }

func (echoProver) Close() error { return nil }

// anyLine is a command line with a caller's text in one place of it. Nothing in it writes to a path that the text names.
func anyLine(which uint8, text, out string) []string {
	lines := [][]string{
		{text},
		{"params", text},
		{"version", text},
		{"version", "--log", text},
		{"circuit", "digest", "--shape", "3" + text},
		{"setup", "--shape", "0" + text, "--out", out},
		{"params", "check", text},
		{"params", "check", text + "/x.params", "--shape", "2KiB"},
		{"witness", "digest", "--c1", "-"},
		{"witness", "digest", "--c1", out + text},
		{"prove", "--c1", "-", "--out", out, "--params", text},
		{"prove", "--c1", "-", "--out", out, "--memory", text},
		{"prove", "--c1", "-", "--out", out, "--threads", text},
		{"prove", "--c1", "-", "--out", out, "--sector-id", "1", "--miner", text},
		{"prove", "--c1", "-", "--out", out, "--sector-id", text, "--miner", "t01000"},
		{"prove", "--c1", "-", "--out", out, "--r", text, "--s", text},
		{"verify", "--c1", "-", "--proof", os.DevNull, "--params", text},
		{"verify", "--c1", "-", "--proof", os.DevNull, "--nonsense", text},
	}
	return lines[int(which)%len(lines)]
}

// FuzzJSON: whatever a caller passes, with --json stdout is exactly one JSON object, which decodes and encodes to the
// same bytes, and an error in it has the kind and the exit code that the process ends with.
func FuzzJSON(f *testing.F) {
	for which := range 18 {
		for _, text := range []string{"", "nonsense", "\xff\xfe", "a\x00b", "\u2028\"\\", "-1", "--", "1GiB", strings.Repeat("9", 300)} {
			f.Add(uint8(which), text, []byte(`{"comm_r":[1]}`))
		}
	}
	f.Add(uint8(8), "", []byte("\xed\xa0\x80"))
	f.Add(uint8(10), "x", bytes.Repeat([]byte{0x80}, 300))
	f.Fuzz(func(t *testing.T, which uint8, text string, stdin []byte) {
		out := filepath.Join(t.TempDir(), "out")
		args := anyLine(which, text, out)
		w := world{stdin: stdin, open: func(engine.Config) (prover, error) { return echoProver{}, nil }}
		code, stdout, stderr := w.run(t.Context(), append([]string{"--json"}, args...)...)
		value := jsontext.Value(stdout)
		var v map[string]any
		if err := json.Unmarshal(value, &v); err != nil {
			t.Fatalf("%q: exit code %d: stdout is not one JSON object: %v\n%s\n%s", args, code, err, stdout, stderr)
		}
		again, err := json.Marshal(v, json.Deterministic(true), jsontext.Multiline(true), jsontext.WithIndent("  "))
		if err != nil {
			t.Fatal(err)
		}
		sorted := value.Clone()
		if err := sorted.Canonicalize(); err != nil {
			t.Fatal(err)
		}
		canonical := jsontext.Value(again)
		if err := canonical.Canonicalize(); err != nil || !bytes.Equal(canonical, sorted) {
			t.Fatalf("%q: comes back as another object (%v):\n%s\n%s", args, err, stdout, again)
		}
		if code == exitDone {
			return
		}
		kind, _ := v["kind"].(string)
		known := false
		for _, k := range status.Kinds() {
			known = known || k.String() == kind
		}
		if !known || v["message"] == "" || v["exit_code"] != float64(code) || (kind == "caller") != (code == exitUsage) {
			t.Fatalf("%q: exit code %d: %s", args, code, stdout)
		}
	})
}
