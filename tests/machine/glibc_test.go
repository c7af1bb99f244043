package machine

import (
	"debug/elf"
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

// Goal: the library loads with any C library as old as docs/operating.md says, and the command needs none.
func TestGLIBC(t *testing.T) {
	m := regexp.MustCompile(`GLIBC (\d+\.\d+)`).FindSubmatch(readFile(t, root+"/docs/operating.md"))
	if m == nil {
		t.Fatal("docs/operating.md does not say which GLIBC it takes")
	}
	floor := parseVersion(t, string(m[1]))
	file, err := elf.Open(library)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	symbols, err := file.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	var highest version
	for _, s := range symbols {
		if text, ok := strings.CutPrefix(s.Version, "GLIBC_"); ok && s.Section == elf.SHN_UNDEF {
			v := parseVersion(t, text)
			if slices.Compare(v[:], floor[:]) > 0 {
				t.Errorf("%s needs GLIBC %s, docs/operating.md promises %s", s.Name, text, m[1])
			}
			if slices.Compare(v[:], highest[:]) > 0 {
				highest = v
			}
		}
	}
	if highest == (version{}) {
		t.Error("no symbol of the C library found: this test looks at nothing")
	}
	t.Logf("highest symbol version GLIBC_%d.%d", highest[0], highest[1])

	program, err := elf.Open(command)
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	if needed, err := program.ImportedLibraries(); err != nil || len(needed) > 0 {
		t.Errorf("the command needs %q, %v", needed, err)
	}
}
