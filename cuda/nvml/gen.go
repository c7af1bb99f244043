//go:build ignore

// Writes zz_names.h: a line S(name) for each function that go-nvml's own nvml.h declares, which are the symbols that go-nvml
// leaves undefined. Run by `go generate`; a test compares.
package main

import (
	"bytes"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/NVIDIA/go-nvml").Output()
	if err != nil {
		log.Fatal(err)
	}
	header, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "pkg", "nvml", "nvml.h"))
	if err != nil {
		log.Fatal(err)
	}
	var names []string
	for _, m := range regexp.MustCompile(`\bDECLDIR\s+(?:char ?\* *)?(nvml\w+)`).FindAllSubmatch(header, -1) {
		names = append(names, string(m[1]))
	}
	slices.Sort(names)
	names = slices.Compact(names)
	var b bytes.Buffer
	fmt.Fprintln(&b, "/* Made by gen.go from go-nvml's nvml.h: every function that it declares. */")
	for _, name := range names {
		fmt.Fprintf(&b, "S(%s)\n", name)
	}
	path := "zz_names.h"
	if len(os.Args) > 1 {
		path = os.Args[1]
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		log.Fatal(err)
	}
}
