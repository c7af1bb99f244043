package hosts

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/sealc2/sealc2/tests/support"
)

// checkedLibrary builds the library with more checks than usual.
func checkedLibrary(t *testing.T, env []string, flags ...string) string {
	t.Helper()
	support.Long(t) // it compiles Go's own library too
	path := filepath.Join(t.TempDir(), "libchecked.so")
	args := append([]string{"build", "-buildmode=c-shared", "-ldflags", "-extldflags '-Wl,--version-script=" + filepath.Join(root, "capi/exports.map") + "'", "-o", path}, flags...)
	command := exec.Command("go", append(args, "./capi")...)
	command.Dir = root
	command.Env = append(os.Environ(), env...)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", command, err, last(string(out)))
	}
	return path
}

// checked runs cases of a host with such a library.
func checked(t *testing.T, path string, env []string, program string, names ...string) {
	t.Helper()
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			run(t, 10*time.Minute, env, program, append([]string{path, name}, sector...)...)
		})
	}
}

// Goal: no Go pointer is left in C memory, even for a moment.
// Method: a library built with GOEXPERIMENT=cgocheck2, where each such write ends the process.
func TestC_Cgocheck2(t *testing.T) {
	support.Long(t)
	path := checkedLibrary(t, []string{"GOEXPERIMENT=cgocheck2"})
	checked(t, path, nil, compile(t, "host.c"), "together", "closed", "faults", "flat")
}

// Goal: Go code does not read the caller's memory after it was freed, nor beyond its end.
// Method: library and host under AddressSanitizer; the calls spoil and free all that they handed over.
func TestC_AddressSanitizerInGo(t *testing.T) {
	support.Long(t)
	path := checkedLibrary(t, nil, "-asan")
	host := compile(t, "host.c", "-fsanitize=address", "-fno-omit-frame-pointer")
	checked(t, path, []string{"ASAN_OPTIONS=exitcode=99:detect_leaks=0"}, host, "together", "late")
}
