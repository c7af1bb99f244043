// Package support is what the tests of the built command and library share: where things are, and how a Go test
// takes notice of a library that it loads into other processes.
package support

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/sealc2/sealc2/engine/circuit/porep"
)

// Run is the whole of a TestMain: it makes a scratch folder, finds the library, and hands both to setUp before
// the tests run. The folder, which any user may read, is removed afterwards.
func Run(m *testing.M, setUp func(scratch, library string) error) {
	code, err := run(m, setUp)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M, setUp func(scratch, library string) error) (code int, err error) {
	scratch, err := os.MkdirTemp("", "sealc2-tests-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(scratch)
	if err := os.Chmod(scratch, 0o755); err != nil {
		return 0, err
	}
	library, err := Library()
	if err != nil {
		return 0, err
	}
	if err := setUp(scratch, library); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// Root is the absolute path of the project, for a test two folders below it.
func Root() string {
	root, err := filepath.Abs("../..")
	if err != nil {
		panic(err)
	}
	return root
}

// Library is the path of libsealc2.so: the one that SEALC2_LIB names, or one that is built now.
func Library() (string, error) {
	if library := os.Getenv("SEALC2_LIB"); library != "" {
		return library, nil
	}
	if out, err := exec.Command("make", "-C", Root(), "lib").CombinedOutput(); err != nil {
		return "", fmt.Errorf("make lib: %w\n%s", err, out)
	}
	return filepath.Join(Root(), "build", "libsealc2.so"), nil
}

// Watch looks at what the programs under test are made of, once. Go keeps a test's result until something changes
// that the test itself has looked at, and counts from the start of the first test; what a process loads that the
// test starts, it does not see. So each test that starts one calls this first.
func Watch(library string) error {
	watched.Do(func() { watched.err = look(library) })
	return watched.err
}

var watched struct {
	sync.Once
	err error
}

func look(library string) error {
	paths := []string{library, "testdata"}
	for _, part := range []string{"bindings/cli", "bindings/grpc", "engine", "include", "capi"} {
		paths = append(paths, filepath.Join(Root(), part))
	}
	for _, path := range paths {
		err := filepath.WalkDir(path, func(p string, _ os.DirEntry, err error) error {
			if err == nil {
				_, err = os.Stat(p)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Params is the folder with 2 KiB development parameters; without one the test is skipped.
func Params(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("SEALC2_PARAMS")
	if dir == "" {
		t.Skip("needs 2 KiB development parameters (1.1 GB, minutes to make): make test makes them and names their folder in SEALC2_PARAMS")
	}
	return dir
}

// Long skips a test of minutes where nobody asked for those.
func Long(t testing.TB) {
	t.Helper()
	if os.Getenv("SEALC2_LONG") == "" {
		t.Skip("takes minutes: make test-long sets SEALC2_LONG=1")
	}
}

// Shape is the circuit of which the reference's files have a name, "porep-2k".
func Shape(t testing.TB, name string) *porep.Shape {
	t.Helper()
	for _, s := range porep.Shapes() {
		if s.OracleName == name {
			return s
		}
	}
	t.Fatalf("no shape %q", name)
	return nil
}
