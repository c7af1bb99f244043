package abi

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sealc2/sealc2/engine/status"
)

func lines(t *testing.T, path string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(data))
}

func text(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

var comments = regexp.MustCompile(`(?s)/\*.*?\*/`)

// headers is the public declarations without comments.
func headers(t *testing.T) string {
	return comments.ReplaceAllString(text(t, "include/sealc2.h")+text(t, "include/sealc2_ffi.h")+text(t, "include/sealc2_s2.h"), "")
}

// exported are the names that a library defines for others, sorted.
func exported(t *testing.T, file *elf.File) (names []string) {
	t.Helper()
	symbols, err := file.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, symbol := range symbols {
		if symbol.Section != elf.SHN_UNDEF {
			names = append(names, symbol.Name)
		}
	}
	slices.Sort(names)
	return names
}

func openLibrary(t *testing.T) *elf.File {
	t.Helper()
	return openELF(t, library)
}

func openELF(t *testing.T, path string) *elf.File {
	t.Helper()
	file, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return file
}

// The library exports what include/exports.txt lists, and no runtime symbol that could clash with a Go host.
func TestSymbols_Exported(t *testing.T) {
	want := lines(t, "include/exports.txt")
	if !slices.IsSorted(want) {
		t.Error("exports.txt is not sorted")
	}
	if got := exported(t, openLibrary(t)); !slices.Equal(got, want) {
		t.Errorf("exported %q, exports.txt has %q", got, want)
	}
	declared := regexp.MustCompile(`\b([a-z0-9_]+)\([^()]*(?:\[[^\]]*\][^()]*)*\);`).FindAllStringSubmatch(headers(t), -1)
	var names []string
	for _, match := range declared {
		names = append(names, match[1])
	}
	slices.Sort(names)
	if !slices.Equal(names, want) {
		t.Errorf("the headers declare %q, exports.txt has %q", names, want)
	}
	script := comments.ReplaceAllString(text(t, "capi/exports.map"), "")
	global, _, _ := strings.Cut(script, "local:")
	var listed []string
	for _, match := range regexp.MustCompile(`(\w+);`).FindAllStringSubmatch(global, -1) {
		listed = append(listed, match[1])
	}
	if !slices.Equal(listed, want) {
		t.Errorf("exports.map lists %q, exports.txt has %q", listed, want)
	}
}

// Whatever the library needs comes from the C library, so that it loads anywhere and with RTLD_NOW.
func TestSymbols_Undefined(t *testing.T) {
	file := openLibrary(t)
	symbols, err := file.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, symbol := range symbols {
		weak := elf.ST_BIND(symbol.Info) == elf.STB_WEAK
		if symbol.Section == elf.SHN_UNDEF && !weak && !strings.HasPrefix(symbol.Version, "GLIBC_") {
			t.Errorf("undefined symbol %s, version %q", symbol.Name, symbol.Version)
		}
	}
	needed, err := file.ImportedLibraries()
	if err != nil {
		t.Fatal(err)
	}
	allowed := []string{"libc.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libm.so.6", "ld-linux-x86-64.so.2"}
	for _, name := range needed {
		if !slices.Contains(allowed, name) {
			t.Errorf("the library needs %s", name)
		}
	}
	for _, segment := range file.Progs {
		if segment.Type == elf.PT_GNU_STACK && segment.Flags&elf.PF_X != 0 {
			t.Error("the library asks for an executable stack")
		}
		if segment.Type == elf.PT_TLS && segment.Memsz > 64 {
			t.Errorf("%d bytes of thread-local memory; a late dlopen has little room", segment.Memsz)
		}
	}
}

// sealc2_status has the kinds of engine/status, in name and number.
func TestStatus_EqualsKinds(t *testing.T) {
	declared := regexp.MustCompile(`SEALC2_(\w+) = (\d+)`).FindAllStringSubmatch(
		regexp.MustCompile(`(?s)typedef enum sealc2_status \{(.*?)\}`).FindString(headers(t)), -1)
	kinds := status.Kinds()
	if len(declared) != len(kinds) {
		t.Fatalf("the header has %d statuses, engine/status %d kinds", len(declared), len(kinds))
	}
	names := regexp.MustCompile(`(?s)names\[\] = \{(.*?)\}`).FindStringSubmatch(text(t, "capi/native.c"))
	if names == nil {
		t.Fatal("no status names in capi/native.c")
	}
	spoken := regexp.MustCompile(`"([^"]+)"`).FindAllStringSubmatch(names[1], -1)
	for i, kind := range kinds {
		want := strings.ToUpper(strings.ReplaceAll(kind.String(), " ", "_"))
		if declared[i][1] != want || declared[i][2] != strconv.Itoa(i) {
			t.Errorf("kind %d is %s, the header has SEALC2_%s = %s", i, want, declared[i][1], declared[i][2])
		}
		if i >= len(spoken) || spoken[i][1] != kind.String() {
			t.Errorf("sealc2_status_name differs from %q at %d", kind, i)
		}
	}
}

// Layouts are what callers were compiled against, and the headers are clean C and C++.
func TestLayout(t *testing.T) {
	for name, compiler := range map[string][]string{
		"C":   {"gcc", "-std=c11", "-pedantic"},
		"C++": {"g++", "-std=c++17", "-pedantic", "-x", "c++"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(compiler[0]); err != nil {
				t.Skipf("this machine has no %s compiler: %v", name, err)
			}
			if err := compile(compiler[0], append(compiler[1:], "-fsyntax-only", "testdata/layout.c")...); err != nil {
				t.Error(err)
			}
		})
	}
}

// A host compiled against a wrong signature must not compile: the headers hold the real ones.
func TestHeaders_WrongSignatureDoesNotCompile(t *testing.T) {
	source := filepath.Join(t.TempDir(), "wrong.c")
	for _, body := range []string{
		"int seal_commit_phase2(void);",
		"sealc2_status sealc2_open(sealc2_config *config, sealc2_engine *engine, sealc2_error *err);",
		"void sealc2_s2_srs_drop(const sealc2_s2_srs *srs);",
	} {
		program := "#include \"sealc2.h\"\n#include \"sealc2_ffi.h\"\n#include \"sealc2_s2.h\"\n" + body + "\n"
		if err := os.WriteFile(source, []byte(program), 0o600); err != nil {
			t.Fatal(err)
		}
		if compile("gcc", "-fsyntax-only", source) == nil {
			t.Errorf("compiles: %s", body)
		}
	}
	entries, err := filepath.Glob(filepath.Join(root, "include", "*"))
	if err != nil || len(entries) == 0 {
		t.Fatalf("include/ is empty: %v", err)
	}
	for _, path := range entries { // Go's own header has its names and its types
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(data), "cmd/cgo") || strings.Contains(string(data), "GoString") {
			t.Errorf("%s is a header that Go generated", path)
		}
	}
}
