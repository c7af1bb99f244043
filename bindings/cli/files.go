package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/sealc2/sealc2/engine/status"
)

// Bounds on what is read into memory. The largest C1 output, of a non-interactive 64 GiB sector in base64,
// is below 1 GiB; statements and proofs are a few KiB.
const (
	maxC1Bytes    = 2 << 30
	maxSmallBytes = 1 << 20
)

// firstBytes is how much of an input is looked at before room is made for all of it.
const firstBytes = 64 << 10

// readInput reads a whole file, or standard input where path is "-", and refuses more than limit bytes.
// flag names it in errors. hopeless (may be nil) is asked about what has been read so far: where it says yes
// the rest stays unread, since whoever gets this much refuses it. The end of ctx ends the wait for a pipe.
func (a *app) readInput(ctx context.Context, flag, path string, limit int64, hopeless func([]byte) bool) ([]byte, error) {
	type answer struct {
		data []byte
		err  error
	}
	read := make(chan answer, 1)
	go func() {
		var got answer
		defer func() { read <- got }()
		defer status.Recover("cli.Read", &got.err)
		got.data, got.err = a.readAll(flag, path, limit, hopeless)
	}()
	select {
	case got := <-read:
		return got.data, got.err
	case <-ctx.Done():
		return nil, status.Wrap(status.Cancelled, "cli.Read", flag+" "+path, context.Cause(ctx))
	}
}

func (a *app) readAll(flag, path string, limit int64, hopeless func([]byte) bool) ([]byte, error) {
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
	// One read past the end proves that the file ended.
	buf := make([]byte, 0, min(sizeHint, firstBytes)+512)
	for {
		if len(buf) == cap(buf) {
			buf = slices.Grow(buf, max(len(buf), int(sizeHint)+512-len(buf)))
		}
		n, err := in.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if int64(len(buf)) > limit {
			return nil, status.New(status.Input, "cli.Read", flag+" "+path, fmt.Sprintf("at most %d bytes", limit), "more")
		}
		if err == io.EOF || hopeless != nil && hopeless(buf) {
			return buf, nil
		}
		if err != nil {
			return nil, fileError("cli.Read", flag, err)
		}
	}
}

// noObject says that data is the beginning of no JSON object.
func noObject(data []byte) bool {
	data = bytes.TrimLeft(data, " \t\r\n")
	return len(data) > 0 && data[0] != '{'
}

// fileError makes a refusal of an I/O error: what was tried with which path, and what the system said.
func fileError(op, where string, err error) error {
	e := status.Wrap(status.Input, op, where, err)
	var file *fs.PathError
	if errors.As(err, &file) {
		e.Want, e.Got, e.Cause = fmt.Sprintf("to %s %s", file.Op, file.Path), file.Err.Error(), nil
	}
	return e
}

// sameFile says that two paths lead to one file that is there.
func sameFile(a, b string) bool {
	first, err := os.Stat(a)
	if err != nil {
		return false
	}
	second, err := os.Stat(b)
	return err == nil && os.SameFile(first, second) && first.Mode().IsRegular()
}

// output is a file under way: bytes go to a temporary file beside it, which takes its name at commit, so
// that a reader never sees half a proof. A target that is there and no regular file (a pipe, a device) is
// written in place.
type output struct {
	flag string // that named it, for errors
	path string
	f    *os.File
	temp bool
}

// createOutput opens path for writing before the long work starts, so that a wrong path fails at once.
func createOutput(flag, path string) (*output, error) {
	const op = "cli.Write"
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // replace what a link points to, not the link
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return nil, status.New(status.Input, op, flag+" "+path, "a file", "a directory")
	case err == nil && !info.Mode().IsRegular():
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return nil, fileError(op, flag, err)
		}
		return &output{flag: flag, path: path, f: f}, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fileError(op, flag, err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return nil, fileError(op, flag, err)
	}
	return &output{flag: flag, path: path, f: f, temp: true}, nil
}

// commit writes data, all of the file's content, and gives the file its name.
func (o *output) commit(data []byte) error {
	const op = "cli.Write"
	if _, err := o.f.Write(data); err != nil {
		return fileError(op, o.flag, err)
	}
	if o.temp {
		if err := o.f.Chmod(0o644); err != nil {
			return fileError(op, o.flag, err)
		}
		if err := o.f.Sync(); err != nil {
			return fileError(op, o.flag, err)
		}
	}
	if err := o.f.Close(); err != nil {
		return fileError(op, o.flag, err)
	}
	if o.temp {
		if err := os.Rename(o.f.Name(), o.path); err != nil {
			return fileError(op, o.flag, err)
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
