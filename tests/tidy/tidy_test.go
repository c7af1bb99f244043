package tidy

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sealc2/sealc2/engine"
)

// root is the top of the tree, seen from this package's folder.
const root = "../.."

// skipped are folders that hold no source of ours: version control, build results, and data.
var skipped = map[string]bool{
	".git": true, "build": true, "target": true, "dist": true, "__pycache__": true, "tests/vectors": true,
	".venv": true, ".pytest_cache": true, ".mypy_cache": true,
}

// walk calls f for each file of the tree.
func walk(t *testing.T, f func(path string, text []byte)) {
	t.Helper()
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if skipped[rel] || skipped[d.Name()] {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || rel == ".git" { // in a second work tree it is a file
			return nil
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		f(rel, text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Goal: each room imports only what the diagram allows, and library code neither ends the process nor
// reads the environment. Method: parse every Go file of the tree.
func TestSource(t *testing.T) {
	files := 0
	walk(t, func(path string, text []byte) {
		if !strings.HasSuffix(path, ".go") {
			return
		}
		files++
		s, err := parse(path, text)
		if err != nil {
			t.Error(err)
			return
		}
		for _, check := range []func(*source) []string{checkArrows, checkCalls, checkFormat, checkSkips} {
			for _, bad := range check(s) {
				t.Error(bad)
			}
		}
	})
	if files < 20 {
		t.Fatalf("found only %d Go files below %s", files, root)
	}
}

// Goal: no text of the tree names a path of somebody's machine or leaves work unfinished.
func TestText(t *testing.T) {
	walk(t, func(path string, text []byte) {
		if bytes.IndexByte(text, 0) >= 0 || strings.HasSuffix(path, ".lock") || strings.HasSuffix(path, "go.sum") {
			return
		}
		for _, bad := range checkText(path, text) {
			t.Error(bad)
		}
	})
}

// Goal: the checks can fail. Method: each one on a source that breaks it, and on one that does not.
func TestChecks(t *testing.T) {
	own := `"` + module + `/`
	cases := []struct {
		name, path, src string
		check           func(*source) []string
		bad             int
	}{
		{"circuit may not know the proof system", "engine/circuit/a.go", "package circuit\nimport _ " + own + "engine/groth16\"\n", checkArrows, 1},
		{"groth16 may not know Filecoin", "engine/groth16/a.go", "package groth16\nimport _ " + own + "engine/circuit/porep\"\n", checkArrows, 1},
		{"groth16 may know programs", "engine/groth16/a.go", "package groth16\nimport _ " + own + "engine/circuit\"\n", checkArrows, 0},
		{"sched may not know mathematics", "engine/sched/a.go", "package sched\nimport _ \"" + gnark + "/ecc\"\n", checkArrows, 1},
		{"nobody imports capi", "bindings/cli/a.go", "package main\nimport _ " + own + "capi\"\n", checkArrows, 1},
		{"nobody imports the command", "bindings/grpc/a.go", "package grpc\nimport _ " + own + "bindings/cli\"\n", checkArrows, 1},
		{"the command has the service", "bindings/cli/a.go", "package main\nimport _ " + own + "bindings/grpc\"\n", checkArrows, 0},
		{"only tests import tests", "engine/a.go", "package engine\nimport _ " + own + "tests/tidy\"\n", checkArrows, 1},
		{"cgo in the engine", "engine/host/a.go", "package host\nimport \"C\"\n", checkArrows, 1},
		{"cgo in capi", "capi/a.go", "package main\nimport \"C\"\n", checkArrows, 0},
		{"a folder without a room", "scripts/a.go", "package scripts\n", checkArrows, 1},
		{"a library that a room does not need", "engine/c1/a.go", "package c1\nimport _ \"" + cobra + "\"\n", checkArrows, 1},
		{"a neighbour in a test", "engine/sched/a_test.go", "package sched\nimport _ " + own + "engine/cpu\"\n", checkArrows, 0},
		{"panic", "engine/c1/a.go", "package c1\nfunc f() { panic(1) }\n", checkCalls, 1},
		{"panic in status", "engine/status/a.go", "package status\nfunc f() { panic(1) }\n", checkCalls, 0},
		{"panic in a test", "engine/c1/a_test.go", "package c1\nfunc f() { panic(1) }\n", checkCalls, 0},
		{"environment", "engine/host/a.go", "package host\nimport \"os\"\nvar x = os.Getenv(\"A\")\n", checkCalls, 1},
		{"environment, renamed", "engine/host/a.go", "package host\nimport o \"os\"\nvar x = o.Getenv\n", checkCalls, 1},
		{"environment in the command line", "bindings/cli/a.go", "package main\nimport \"os\"\nvar x = os.Getenv\n", checkCalls, 0},
		{"exit in capi", "capi/a.go", "package main\nimport \"os\"\nfunc f() { os.Exit(1) }\n", checkCalls, 1},
		{"print", "engine/a.go", "package engine\nimport \"fmt\"\nfunc f() { fmt.Println() }\n", checkCalls, 1},
		{"print in a tool", "engine/a.go", "//go:build ignore\n\npackage main\nimport \"fmt\"\nfunc f() { fmt.Println() }\n", checkCalls, 0},
		{"format", "engine/a.go", "package engine\nvar  x int\n", checkFormat, 1},
		{"skip", "engine/a_test.go", "package engine\nfunc f() { t.SkipNow() }\n", checkSkips, 1},
		{"skip with a reason", "engine/a_test.go", "package engine\nfunc f() { t.Skip(\"why\") }\n", checkSkips, 0},
	}
	for _, c := range cases {
		s, err := parse(c.path, []byte(c.src))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got := c.check(s); len(got) != c.bad {
			t.Errorf("%s: want %d findings, got %q", c.name, c.bad, got)
		}
	}
	for line, want := range map[string]int{
		"see /wo" + "rk/main/x":          1,
		`"/ro` + `ot/go"`:                1,
		"// TO" + "DO: later":            1,
		"https://example.org/work/a":     0,
		"a framework/x, TODOS, homework": 0,
	} {
		if got := checkText("x", []byte(line)); len(got) != want {
			t.Errorf("%q: want %d findings, got %q", line, want, got)
		}
	}
}

// Goal: one version everywhere. Method: find it in each place where a user reads it.
func TestVersion(t *testing.T) {
	for path, pattern := range map[string]string{
		"include/sealc2.h":               `#define SEALC2_VERSION "([^"]*)"`,
		"bindings/python/pyproject.toml": `(?m)^version = "([^"]*)"`,
	} {
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Error(err)
			continue
		}
		if m := regexp.MustCompile(pattern).FindSubmatch(text); m == nil || string(m[1]) != engine.Version {
			t.Errorf("%s: want version %s, got %q", path, engine.Version, m)
		}
	}
}
