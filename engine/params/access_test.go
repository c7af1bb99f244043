package params

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sealc2/sealc2/engine/status"
)

// asNobody runs f with the file access of a user who owns nothing: root, who may read and write anything, gives its
// access up for the time. f must not leave its goroutine.
func asNobody(t *testing.T, f func()) {
	t.Helper()
	if os.Getuid() != 0 {
		f()
		return
	}
	const nobody = 65534
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := errors.Join(unix.Setfsgid(nobody), unix.Setfsuid(nobody)); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(unix.Setfsuid(0), unix.Setfsgid(0)); err != nil {
			t.Error(err)
		}
	}()
	f()
}

// guarded makes a parameter set of tiny-16 in a folder, and gives folder and files their modes.
func guarded(t *testing.T, dirMode, fileMode os.FileMode) Set {
	t.Helper()
	data := tinyParams(t, "tiny-16")
	stem := DevStem("2KiB", testBase)
	dir := layDir(t, map[string][]byte{stem + ParamsExt: data, stem + VKExt: data[:1156]})
	set := Set{Params: filepath.Join(dir, stem+ParamsExt), VK: filepath.Join(dir, stem+VKExt), Base: testBase, Dir: Dir{Path: dir, Origin: EnvDir}}
	for path, mode := range map[string]os.FileMode{set.Params: fileMode, set.VK: fileMode, dir: dirMode, filepath.Dir(dir): 0o755} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o755) })
	return set
}

// Goal: what may not be read is refused with the word permission and the full path, file by file and folder by folder.
func TestAccess_Refused(t *testing.T) {
	locked, blind, shut := guarded(t, 0o755, 0), guarded(t, 0o711, 0o644), guarded(t, 0o700, 0o644)
	if os.Getuid() != 0 { // then we own them, and a mode for the others says nothing about us
		for set, mode := range map[Set]os.FileMode{blind: 0o311, shut: 0} {
			if err := os.Chmod(set.Dir.Path, mode); err != nil {
				t.Fatal(err)
			}
		}
	}
	asNobody(t, func() {
		_, err := Open(locked.Params)
		refused(t, err, locked.Params, "no permission to read the file")
		_, err = ReadKeyFile(locked.VK)
		refused(t, err, locked.VK, "no permission to read the file")
		_, err = Load(context.Background(), locked, Policy{AllowDev: true})
		refused(t, err, locked.Params, "no permission to read the file")

		// A folder that may be entered but not listed: the set is found by its name.
		if set, err := Find(blind.Dir, "2KiB", testBase); err != nil || set != blind {
			t.Errorf("got %+v, %v", set, err)
		}

		_, err = Find(shut.Dir, "2KiB", testBase)
		refused(t, err, shut.Dir.Path, "no permission", EnvDir)
		_, err = Open(shut.Params)
		refused(t, err, shut.Params, "no permission")
	})
}

// Goal: reading needs no leave to write, and writing is refused before the work where there is none.
func TestAccess_ReadOnly(t *testing.T) {
	set := guarded(t, 0o555, 0o444)
	c := readListed(t, vectors+"tiny/tiny-16/r1cs.json")
	asNobody(t, func() {
		found, err := Find(set.Dir, "2KiB", testBase)
		if err != nil {
			t.Fatal(err)
		}
		f, err := Load(context.Background(), found, Policy{AllowDev: true})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := readAll(f); err != nil {
			t.Error(err)
		}
		// Verdicts that cannot be written there are kept in memory, and nowhere else.
		v := NewVerdicts(set.Dir.Path)
		v.now = func() time.Time { return time.Now().Add(time.Hour) }
		for i := range 2 {
			report, err := Check(context.Background(), f, CheckOptions{Verdicts: v})
			if err != nil || report.Cached != (i > 0) {
				t.Errorf("check %d: %+v, %v", i, report, err)
			}
		}
		_, err = Setup(context.Background(), c, SetupScalars(DefaultSetupText, "tiny-16"), SetupOptions{Dir: set.Dir.Path, BaseName: "new", Shape: "tiny-16"})
		if status.KindOf(err) != status.Params {
			t.Errorf("setup in a folder that cannot be written: %v", err)
		}
		refused(t, err, set.Dir.Path, "permission denied")
	})
	if entries, err := os.ReadDir(set.Dir.Path); err != nil || len(entries) != 2 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}
