package kerneltest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sealc2/sealc2/engine/status"
)

// compileFlags make a unit that behaves as the device's: no exceptions, and words read as whatever type.
var compileFlags = []string{"-std=c++17", "-O2", "-fPIC", "-fvisibility=hidden", "-fno-exceptions", "-fno-strict-aliasing", "-Wall", "-Wno-unknown-pragmas", "-x", "c++"}

// keepFor is how long objects and libraries that nobody uses stay in the cache.
const keepFor = 14 * 24 * time.Hour

// kernelFolder finds cuda/kernels from the test's folder.
func kernelFolder() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, "cuda", "kernels"), nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("want a folder of the module, to find the kernels' source")
		}
		dir = up
	}
}

// buildEmulator compiles the units that have changed and links all that compile. It returns the library's path, and
// what the compiler said of units that do not compile: tests of other units run without them.
func buildEmulator() (library, left string, err error) {
	root, err := kernelFolder()
	if err != nil {
		return "", "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", "", err
	}
	cache = filepath.Join(cache, "sealc2", "emulator")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", "", err
	}
	units, err := unitsOf(root)
	if err != nil {
		return "", "", err
	}
	version, err := exec.Command("g++", "--version").Output()
	if err != nil {
		return "", "", fmt.Errorf("kernels are tested through g++, which does not run: %w", err)
	}
	// Several test processes start at once, and one of them compiles.
	lock, err := os.OpenFile(filepath.Join(cache, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return "", "", err
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return "", "", err
	}
	return link(root, cache, units, append(version, strings.Join(compileFlags, " ")...))
}

// only are the folders that Only named; none: all.
var only []string

// Only limits the emulator to the units in some folders of cuda/kernels, so that a package's tests do not wait for
// the compilation of what they do not use. Called before any test: var _ = kerneltest.Only("field").
func Only(folders ...string) struct{} {
	only = folders
	return struct{}{}
}

// unitsOf lists the emulator's own file and the .cu files, relative to root.
func unitsOf(root string) ([]string, error) {
	units := []string{filepath.Join("emu", "emu.cpp")}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".cu" {
			return err
		}
		unit, err := filepath.Rel(root, path)
		if len(only) == 0 || slices.Contains(only, filepath.Dir(unit)) {
			units = append(units, unit)
		}
		return err
	})
	return units, err
}

// link compiles what is not in the cache and links it. salt is what else decides the bytes of an object.
func link(root, cache string, units []string, salt []byte) (library, left string, err error) {
	type result struct {
		object, failure string
		err             error
	}
	results := make([]result, len(units))
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	for i, unit := range units {
		wg.Go(func() {
			r := &results[i]
			defer status.Recover("kerneltest.link", &r.err)
			slots <- struct{}{}
			defer func() { <-slots }()
			r.object, r.failure, r.err = compile(root, cache, unit, salt)
		})
	}
	wg.Wait()
	var objects []string
	sum := sha256.New()
	for _, r := range results {
		if r.err != nil {
			return "", "", r.err
		}
		if left += r.failure; r.failure == "" {
			objects = append(objects, r.object)
			sum.Write([]byte(r.object))
		}
	}
	library = filepath.Join(cache, hex.EncodeToString(sum.Sum(nil)[:16])+".so")
	if _, err := os.Stat(library); err == nil {
		now := time.Now()
		return library, left, os.Chtimes(library, now, now)
	}
	if out, err := produce(library, func(to string) *exec.Cmd {
		return exec.Command("g++", append([]string{"-shared", "-o", to}, objects...)...)
	}); err != nil {
		return "", "", fmt.Errorf("linking the emulated kernels: %w\n%s", err, out)
	}
	return library, left, clean(cache)
}

// compile returns the unit's object, or what the compiler said against it.
func compile(root, cache, unit string, salt []byte) (object, failure string, err error) {
	sum := sha256.New()
	sum.Write(salt)
	var files []string
	if err := includes(root, unit, &files); err != nil {
		return "", fmt.Sprintf("%s does not compile: %v\n", unit, err), nil
	}
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return "", "", err
		}
		fmt.Fprintf(sum, "\n%s %d\n", file, len(text))
		sum.Write(text)
	}
	object = filepath.Join(cache, hex.EncodeToString(sum.Sum(nil)[:16])+".o")
	if _, err := os.Stat(object); err == nil {
		now := time.Now()
		return object, "", os.Chtimes(object, now, now)
	}
	if out, err := produce(object, func(to string) *exec.Cmd {
		command := exec.Command("g++", append(slices.Clone(compileFlags), "-c", unit, "-o", to)...)
		command.Dir = root
		return command
	}); err != nil {
		return "", fmt.Sprintf("%s does not compile: %v\n%s", unit, err, out), nil
	}
	return object, "", nil
}

// produce runs a command that writes a file, which is there afterwards whole or not at all.
func produce(path string, command func(to string) *exec.Cmd) ([]byte, error) {
	to := path + ".new"
	out, err := command(to).CombinedOutput()
	if err != nil {
		return out, errors.Join(err, remove(to))
	}
	return out, os.Rename(to, path)
}

func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

var includeLine = regexp.MustCompile(`(?m)^\s*#\s*include\s+"([^"]+)"`)

// includes adds a file and what it includes, each once, relative to root.
func includes(root, file string, all *[]string) error {
	if slices.Contains(*all, file) {
		return nil
	}
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		return err
	}
	*all = append(*all, file)
	for _, m := range includeLine.FindAllSubmatch(bytes.ReplaceAll(text, []byte("\r"), nil), -1) {
		if err := includes(root, filepath.Join(filepath.Dir(file), string(m[1])), all); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

// clean removes what nobody has used for long.
func clean(cache string) error {
	entries, err := os.ReadDir(cache)
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && e.Name() != "lock" && time.Since(info.ModTime()) > keepFor {
			if err := remove(filepath.Join(cache, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
