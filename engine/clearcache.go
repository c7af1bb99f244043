package engine

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/sealc2/sealc2/engine/status"
)

// ClearCache deletes from a sector's cache folder what is not needed once the sector is finished: the tree of
// the data, the column trees and the layers. What is not there is no error. Errors: Caller for an empty path;
// Input for a folder that cannot be read or a file that cannot be deleted, with the rest left as it is. Source:
// clear_files.rs of storage-proofs-porep, the names of its merkle store.
func ClearCache(dir string) error {
	const op = "engine.ClearCache"
	if dir == "" {
		return status.New(status.Caller, op, "folder", "a path", "empty text")
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return status.Wrap(status.Input, op, dir, err)
	}
	for _, entry := range entries {
		id, ok := strings.CutPrefix(entry.Name(), "sc-02-data-")
		if !ok {
			continue
		}
		id, ok = strings.CutSuffix(id, ".dat")
		if !ok || id != "tree-d" && !strings.HasPrefix(id, "tree-c") && !strings.HasPrefix(id, "layer") {
			continue
		}
		path := filepath.Join(dir, entry.Name())
		if entry.IsDir() {
			return status.New(status.Input, op, path, "a file", "a folder")
		}
		if err := os.Remove(path); err != nil {
			return status.Wrap(status.Input, op, path, err)
		}
	}
	return nil
}
