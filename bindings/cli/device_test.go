package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sealc2/sealc2/engine/params"
)

// Goal: --device takes what an engine's Config takes, in any case, and refuses the rest with the list.
func TestDevice_Set(t *testing.T) {
	for text, want := range map[string]string{"cpu": "cpu", "CUDA": "cuda", "auto": "auto", "cuda:1": "cuda:1", "Cuda:12": "cuda:12", "cuda:0,2": "cuda:0,2", "CUDA:ALL": "cuda:all"} {
		if d := (device{}); d.Set(text) != nil || d.String() != want {
			t.Errorf("%q: want %q, got %q", text, want, d.value)
		}
	}
	for _, text := range []string{"", "abacus", "cuda:", "cuda1", "cpu:0", "cuda:x", "cuda:-1", "cuda:0,", "cuda:,1", "cuda:0,all", "cuda:0 1"} {
		d := device{"auto"}
		if err := d.Set(text); err == nil || !strings.Contains(err.Error(), "one of cpu, cuda") || d.value != "auto" {
			t.Errorf("%q: %v, value %q", text, err, d.value)
		}
	}
}

// Goal: what one GPU does alone refuses several in the flag, before anything is opened; what is right goes through to the app's device.
func TestOneDevice_Set(t *testing.T) {
	for _, text := range []string{"cuda:all", "CUDA:All", "cuda:0,1", "abacus"} {
		d := device{"auto"}
		if err := (oneDevice{&d}).Set(text); err == nil || !strings.Contains(err.Error(), "not shared") || d.value != "auto" {
			t.Errorf("%q: %v, value %q", text, err, d.value)
		}
	}
	if d := (device{"auto"}); (oneDevice{&d}).Set("CUDA:1") != nil || d.value != "cuda:1" {
		t.Errorf("cuda:1: value %q", d.value)
	}
	for _, args := range [][]string{
		{"setup", "--shape", "2KiB", "--out", filepath.Join(t.TempDir(), "new"), "--device", "cuda:all", "--json"},
		{"params", "check", "no-such-file", "--device", "cuda:0,1", "--json"},
	} {
		code, stdout, _ := world{}.run(t.Context(), args...)
		if v := object(t, stdout); code != exitUsage || v["where"] != "--device" {
			t.Errorf("%q: %d, %v", args, code, v)
		}
	}
}

// Goal: --device reaches the engine from the commands that make and check parameters: a GPU that is not there is refused by name, with
// nothing left and no word against the file, and the CPU does what it is asked to.
func TestDevice_Parameters(t *testing.T) {
	dir := t.TempDir()
	file := writeFile(t, filepath.Join(dir, "tiny"+params.ParamsExt), readFile(t, vectors+"tiny/tiny-16/params.bin"))
	writeFile(t, filepath.Join(dir, "tiny"+params.VKExt), readFile(t, vectors+"tiny/tiny-16/vk.bin"))
	out := filepath.Join(dir, "new")
	for _, args := range [][]string{
		{"setup", "--shape", "2KiB", "--out", out, "--device", "cuda:4095", "--json"}, {"params", "check", file, "--device", "cuda:4095", "--json"},
	} {
		code, stdout, _ := world{}.run(t.Context(), args...)
		if v := object(t, stdout); code != exitRefused || v["kind"] != "no device" || v["files"] != nil || !strings.Contains(v["message"].(string), "cuda:4095") {
			t.Errorf("%q: %d, %v", args, code, v)
		}
	}
	if names, err := os.ReadDir(out); err != nil || len(names) != 0 {
		t.Errorf("left behind: %v, %v", names, err)
	}
	code, stdout, stderr := world{}.run(t.Context(), "params", "check", file, "--device", "cpu", "--json", "--log", "info")
	v := object(t, stdout)
	if check := v["files"].([]any)[0].(map[string]any)["check"].(map[string]any); code != exitDone || check["device"] != "cpu" || !strings.Contains(stderr, "device cpu (as configured)") {
		t.Errorf("on the CPU: %d, %v, %s", code, v, stderr)
	}
}
