package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Goal: synth says truly what it wrote, and puts a statement file beside a C1 output that needs one.
func TestSynth_Files(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "c1.json")
	code, stdout, stderr := (world{}).run(t.Context(), "synth", "--shape", "16KiB", "--seed", "3", "-o", out, "--json")
	if code != exitDone {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	v := object(t, stdout)
	statement := filepath.Join(dir, "c1.statement.json")
	for key, want := range map[string]any{
		"shape": "16KiB", "registered_seal_proof": nil, "api_version": "1.1.0", "partitions": 1.0, "partitions_written": 1.0,
		"complete": true, "out": out, "bytes": float64(len(readFile(t, out))), "statement": statement,
	} {
		if v[key] != want {
			t.Errorf("%s: got %v, want %v", key, v[key], want)
		}
	}
	readFile(t, statement)
	if files, err := os.ReadDir(dir); err != nil || len(files) != 2 {
		t.Errorf("want two files, got %v %v", files, err)
	}

	// The ids are in the answer only; with them the replica id must come out again, and verify looks at them first.
	out = filepath.Join(dir, "registered.json")
	code, stdout, stderr = (world{}).run(t.Context(), "synth", "--shape", "2KiB", "--proof", "V1", "--seed", "3", "-o", out, "--json")
	if code != exitDone {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	v = object(t, stdout)
	if v["registered_seal_proof"] != "StackedDrg2KiBV1" || v["statement"] != "" {
		t.Errorf("got %v and the statement %q", v["registered_seal_proof"], v["statement"])
	}
	proof := writeFile(t, filepath.Join(dir, "proof.bin"), make([]byte, 192))
	id := fmt.Sprintf("%.0f", v["sector_id"])
	for miner, want := range map[string]string{v["miner"].(string): "proof", "t01": "replica_id"} {
		code, _, stderr := (world{}).run(t.Context(), "verify", "--c1", out, "--proof", proof, "--params", keyFolder(t, "2KiB", referenceStem), "--sector-id", id, "--miner", miner)
		if code != exitRefused || strings.Contains(stderr, "replica_id") != (want == "replica_id") {
			t.Errorf("sector %s of %s: exit code %d, %q, want a complaint about the %s", id, miner, code, stderr, want)
		}
	}
}

func TestSynth_Refuses(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "c1.json")
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--partitions", "2"}, exitUsage, "1 to 1"},
		{[]string{"--partitions", "0"}, exitUsage, "1 to 1"},
		{[]string{"--proof", "V1_2"}, exitUsage, "V1, V1_1"},
		{[]string{"--seed", "-1"}, exitUsage, "--seed"},
		{[]string{"--statement-out", out}, exitUsage, "another file than --out"},
		{[]string{"--statement-out", filepath.Join(dir, "none", "s.json")}, exitRefused, "--statement-out"},
		{[]string{"--out", filepath.Join(dir, "none", "c1.json")}, exitRefused, "--out"},
	} {
		args := append([]string{"synth", "--shape", "2KiB", "--seed", "3", "--out", out}, c.args...)
		code, stdout, stderr := (world{}).run(t.Context(), args...)
		if code != c.code || !strings.Contains(stderr, c.want) || stdout != "" {
			t.Errorf("%v: exit code %d, %q %q, want %d and %q", c.args, code, stdout, stderr, c.code, c.want)
		}
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 0 {
		t.Errorf("refusals left files: %v %v", files, err)
	}
}

// Goal: the same seed writes the same bytes; a part of a sector is marked as such.
func TestSynth_Partial(t *testing.T) {
	dir := t.TempDir()
	var files [2][]byte
	for i := range files {
		out := filepath.Join(dir, "c1.json")
		code, stdout, stderr := (world{}).run(t.Context(), "synth", "--shape", "32GiB", "--seed", "5", "--partitions", "1", "-o", out, "--json")
		if code != exitDone {
			t.Fatalf("exit code %d: %s", code, stderr)
		}
		if v := object(t, stdout); v["complete"] != false || v["partitions"] != 10.0 || v["partitions_written"] != 1.0 {
			t.Errorf("got %s", stdout)
		}
		files[i] = readFile(t, out)
	}
	if !bytes.Equal(files[0], files[1]) {
		t.Error("two runs differ")
	}
}
