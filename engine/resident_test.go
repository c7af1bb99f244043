package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sealc2/sealc2/engine/circuit/porep"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/params"
	"github.com/sealc2/sealc2/engine/status"
)

// tinySet writes the files of a tiny circuit as a parameter set and returns the path of its .params file.
func tinySet(t *testing.T, dir, stem, name string) string {
	t.Helper()
	for from, to := range map[string]string{"params.bin": ".params", "vk.bin": ".vk"} {
		data, err := os.ReadFile(vectors + "tiny/" + name + "/" + from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, stem+to), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, stem+".params")
}

// Goal: an error about parameters says who chose the folder, a folder and a file alike.
func TestFindSet_Origin(t *testing.T) {
	dir := t.TempDir()
	file := tinySet(t, dir, "set", "tiny-16")
	if err := os.Remove(filepath.Join(dir, "set.vk")); err != nil {
		t.Fatal(err)
	}
	for origin, want := range map[string]string{
		params.EnvDir: "(directory from " + params.EnvDir + ")",
		"--params":    "(directory from --params, not from " + params.EnvDir + ")",
		"":            "(directory given by the caller, not by " + params.EnvDir + ")",
	} {
		for _, path := range []string{dir, file, filepath.Join(dir, "none")} {
			_, err := findSet(ParamSource{Dir: path, Origin: origin}, porep.Shapes()[0], true)
			if status.KindOf(err) != status.Params || !strings.Contains(err.Error(), want) {
				t.Errorf("%s from %q: %v", path, origin, err)
			}
		}
	}
}

// isOpen tells whether a set's file can still be read.
func isOpen(s *residentSet) bool {
	_, err := s.file.Digest(context.Background(), nil)
	return err == nil
}

func TestResidency(t *testing.T) {
	var log logBook
	e := open(t, Config{Log: log.add}, nil)
	shape := porep.Shapes()[0]
	dir := t.TempDir()
	path := tinySet(t, dir, "set", "tiny-16")
	source := ParamSource{Dir: path, AllowDev: true}
	use := func(source ParamSource) (*residentSet, func()) {
		t.Helper()
		s, done, err := e.useSet(context.Background(), source, shape)
		if err != nil {
			t.Fatal(err)
		}
		return s, done
	}

	first, done := use(source)
	again, doneAgain := use(ParamSource{Dir: strings.TrimSuffix(path, ".params") + ".vk", AllowDev: true})
	if first != again || first.users != 2 || len(log.lines) != 3 {
		t.Errorf("second use of a set: same %v, %d users, log %q", first == again, first.users, log.lines)
	}
	if _, _, err := e.useSet(context.Background(), ParamSource{Dir: path}, shape); status.KindOf(err) != status.Params {
		t.Errorf("a set that is there, without leave: %v", err)
	}
	if _, _, err := e.useSet(context.Background(), ParamSource{Dir: path, AllowDev: true, VerifyProduction: true}, shape); status.KindOf(err) != status.Params {
		t.Errorf("a set that is there, production asked for: %v", err)
	}
	if first.users != 2 {
		t.Errorf("%d users after refusals", first.users)
	}
	doneAgain()

	// Replaced while in use: the user keeps the old one, the next one gets the new one.
	for _, ext := range []string{".params", ".vk"} {
		if err := os.Rename(filepath.Join(dir, "set"+ext), filepath.Join(dir, "old"+ext)); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := e.useSet(context.Background(), source, shape); status.KindOf(err) != status.Params {
		t.Errorf("files gone: %v", err)
	}
	tinySet(t, dir, "set", "tiny-64")
	second, doneSecond := use(source)
	if second == first || second.file.Len(groth16.BlockH) != 63 || !isOpen(first) || !first.gone {
		t.Errorf("replaced files: same %v, %d points, old one open %v", second == first, second.file.Len(groth16.BlockH), isOpen(first))
	}
	done()
	if isOpen(first) {
		t.Error("the old set is open after its last use")
	}
	doneSecond()

	// More sets than are kept idle.
	var kept []*residentSet
	for i := range idleLimit + 3 {
		s, done := use(ParamSource{Dir: tinySet(t, dir, fmt.Sprint("set", i), "tiny-16"), AllowDev: true})
		done()
		kept = append(kept, s)
	}
	if len(e.resident.sets) != idleLimit || isOpen(second) || isOpen(kept[2]) || !isOpen(kept[3]) {
		t.Errorf("%d sets kept", len(e.resident.sets))
	}

	last, doneLast := use(source)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if isOpen(kept[len(kept)-1]) || !isOpen(last) {
		t.Error("Close must close what is idle and leave what is in use to its user")
	}
	doneLast()
	if isOpen(last) {
		t.Error("a set is open after Close and its last use")
	}
}
