package engine

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sealc2/sealc2/engine/status"
)

// TestClearCache: only what the reference deletes goes; the files that PoSt and proofs need stay.
func TestClearCache(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a folder with [brackets] and *")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	gone := []string{"sc-02-data-tree-d.dat", "sc-02-data-tree-c.dat", "sc-02-data-tree-c-0.dat", "sc-02-data-tree-c-7.dat", "sc-02-data-layer-1.dat", "sc-02-data-layer-11.dat"}
	kept := []string{"p_aux", "sc-02-data-tree-d-0.dat", "sc-02-data-tree-r-last-0.dat", "sc-02-data-tree-r-last.dat", "sc-02-data-layer-1.dat.new", "syn-porep-vanilla-proofs.dat", "t_aux"}
	for _, name := range append(gone, kept...) {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := ClearCache(dir); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		var left []string
		for _, e := range entries {
			left = append(left, e.Name())
		}
		slices.Sort(kept)
		if !slices.Equal(left, kept) {
			t.Errorf("want %q left, got %q", kept, left)
		}
	}
	if err := ClearCache(filepath.Join(dir, "missing")); err != nil {
		t.Error(err)
	}
	if err := ClearCache(""); status.KindOf(err) != status.Caller {
		t.Errorf("empty path: %v", err)
	}
	if err := ClearCache(filepath.Join(dir, "p_aux")); status.KindOf(err) != status.Input {
		t.Errorf("a file: %v", err)
	}
	if err := os.Mkdir(filepath.Join(dir, "sc-02-data-layer-3.dat"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := ClearCache(dir); status.KindOf(err) != status.Input {
		t.Errorf("a folder in place of a layer: %v", err)
	}
}
