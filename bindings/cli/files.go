package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sealc2/sealc2/engine/status"
)

// Bounds on what is read into memory. The largest C1 output, of a non-interactive 64 GiB sector in base64,
// is below 1 GiB; statements and proofs are a few KiB.
const (
	maxC1Bytes    = 4 << 30
	maxSmallBytes = 1 << 20
)

// readInput reads a whole file, or standard input where path is "-", and refuses more than limit bytes.
// flag names it in errors.
func (a *app) readInput(flag, path string, limit int64) ([]byte, error) {
	in := a.in
	sizeHint := int64(0)
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, fileError("cli.Read", flag, err)
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			sizeHint = info.Size()
		}
		in = f
	}
	if sizeHint > limit {
		return nil, status.New(status.Input, "cli.Read", flag+" "+path, fmt.Sprintf("at most %d bytes", limit), fmt.Sprintf("%d", sizeHint))
	}
	buf := make([]byte, 0, sizeHint+512) // one read past the end proves that the file ended
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := in.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if int64(len(buf)) > limit {
			return nil, status.New(status.Input, "cli.Read", flag+" "+path, fmt.Sprintf("at most %d bytes", limit), "more")
		}
		if err == io.EOF {
			return buf, nil
		}
		if err != nil {
			return nil, fileError("cli.Read", flag, err)
		}
	}
}

// fileError makes a refusal of an I/O error; the path is in its text.
func fileError(op, where string, err error) error {
	return status.Wrap(status.Input, op, where, err)
}

// output is a file under way: bytes go to a temporary file beside it, which takes its name at commit, so
// that a reader never sees half a proof. A target that is there and no regular file (a pipe, a device) is
// written in place.
type output struct {
	path string
	f    *os.File
	temp bool
}

// createOutput opens path for writing before the long work starts, so that a wrong path fails at once.
func createOutput(path string) (*output, error) {
	const op = "cli.Write"
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // replace what a link points to, not the link
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return nil, status.New(status.Input, op, "--out "+path, "a file", "a directory")
	case err == nil && !info.Mode().IsRegular():
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return nil, fileError(op, "--out", err)
		}
		return &output{path: path, f: f}, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fileError(op, "--out", err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return nil, fileError(op, "--out", err)
	}
	return &output{path: path, f: f, temp: true}, nil
}

// commit writes data, all of the file's content, and gives the file its name.
func (o *output) commit(data []byte) error {
	const op = "cli.Write"
	if _, err := o.f.Write(data); err != nil {
		return fileError(op, "--out", err)
	}
	if o.temp {
		if err := o.f.Chmod(0o644); err != nil {
			return fileError(op, "--out", err)
		}
		if err := o.f.Sync(); err != nil {
			return fileError(op, "--out", err)
		}
	}
	if err := o.f.Close(); err != nil {
		return fileError(op, "--out", err)
	}
	if o.temp {
		if err := os.Rename(o.f.Name(), o.path); err != nil {
			return fileError(op, "--out", err)
		}
		o.temp = false
	}
	return nil
}

// discard removes the temporary file unless it was committed.
func (o *output) discard() {
	o.f.Close() // closed twice after a commit: harmless
	if o.temp {
		os.Remove(o.f.Name())
	}
}
