package machine

import (
	"debug/elf"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// version is a GLIBC_x.y symbol version.
type version [2]int

func parseVersion(t *testing.T, text string) (v version) {
	t.Helper()
	major, minor, _ := strings.Cut(text, ".")
	minor, _, _ = strings.Cut(minor, ".")
	var err error
	if v[0], err = strconv.Atoi(major); err == nil {
		v[1], err = strconv.Atoi(minor)
	}
	if err != nil {
		t.Fatalf("version %q: %v", text, err)
	}
	return v
}

// Goal: the libraries load with any C library as old as docs/operating.md says, and the command with any at all.
func TestGLIBC(t *testing.T) {
	m := regexp.MustCompile(`GLIBC (\d+\.\d+)`).FindSubmatch(readFile(t, root+"/docs/operating.md"))
	if m == nil {
		t.Fatal("docs/operating.md does not say which GLIBC it takes")
	}
	floor := parseVersion(t, string(m[1]))
	paths, err := filepath.Glob(filepath.Join(filepath.Dir(library), "*.so")) // the shims beside it too
	if err != nil || !slices.Contains(paths, library) {
		t.Fatalf("%s is not among %q: %v", library, paths, err)
	}
	for _, path := range paths {
		highest := highestGLIBC(t, path)
		t.Logf("%s: highest symbol version GLIBC_%d.%d", filepath.Base(path), highest[0], highest[1])
		if slices.Compare(highest[:], floor[:]) > 0 {
			t.Errorf("%s needs GLIBC_%d.%d, docs/operating.md promises %s", path, highest[0], highest[1], m[1])
		}
		if path == library && highest == (version{}) {
			t.Error("no symbol of the C library found: this test looks at nothing")
		}
	}

	program, err := elf.Open(command)
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	needed, err := program.ImportedLibraries()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range needed { // parts of the C library, by which it looks for a GPU's driver
		if !slices.Contains([]string{"libc.so.6", "libdl.so.2", "libpthread.so.0"}, name) {
			t.Errorf("the command needs %s", name)
		}
	}
	if highest := highestGLIBC(t, command); highest != (version{}) {
		t.Errorf("the command needs GLIBC_%d.%d", highest[0], highest[1])
	}
}

// highestGLIBC is the newest version of the C library's symbols that a library asks for.
func highestGLIBC(t *testing.T, path string) (highest version) {
	t.Helper()
	file, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	symbols, err := file.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		if text, ok := strings.CutPrefix(s.Version, "GLIBC_"); ok && s.Section == elf.SHN_UNDEF {
			if v := parseVersion(t, text); slices.Compare(v[:], highest[:]) > 0 {
				highest = v
			}
		}
	}
	return highest
}
