package params

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/status"
)

// copied is a source that gives what stands in a file, in pieces of some points, from one piece of memory that is used again
// when it is given back.
type copied struct {
	t     *testing.T
	file  *File
	piece int // points
	// fails is called before each piece; an error ends the block.
	fails func(b groth16.Block, from int) error
	more  int // points that it gives beyond the block
	out   int // pieces that were not given back
	mu    sync.Mutex
}

func (c *copied) Begin(context.Context, *Scalars) (*groth16.VerifyingKey, Counts, error) {
	return c.file.VerifyingKey(), c.file.Counts(), nil
}

func (c *copied) Block(_ context.Context, b groth16.Block, put func(piece []byte, done func()) error) error {
	slots := make(chan []byte, 2)
	for range cap(slots) {
		slots <- make([]byte, c.piece*PointBytes(b))
	}
	defer func() {
		for range cap(slots) {
			<-slots
		}
	}()
	n := c.file.Len(b)
	for from := 0; from < n+c.more; from += c.piece {
		if c.fails != nil {
			if err := c.fails(b, from); err != nil {
				return err
			}
		}
		slot := <-slots
		piece := slot[:min(c.piece, max(n-from, 1))*PointBytes(b)]
		if from < n {
			if err := c.file.ReadEncoded(context.Background(), b, from, piece); err != nil {
				c.t.Error(err)
			}
		}
		c.count(1)
		if err := put(piece, func() {
			clear(slot) // whoever still reads it finds nothing
			c.count(-1)
			slots <- slot
		}); err != nil {
			c.count(-1)
			slots <- slot
			return err
		}
	}
	return nil
}

func (c *copied) count(by int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out += by
}

// Goal: what a source gives is written where it belongs and hashed in order: the files are the reference's, and so is the report.
// Method: the reference's own files as the source, in pieces of all sizes.
func TestSetup_Source(t *testing.T) {
	for _, name := range []string{"tiny-16", "tiny-128"} {
		reference := vectors + "tiny/" + name
		for _, piece := range []int{1, 7, 4096} {
			for _, plain := range []bool{false, true} {
				source := &copied{t: t, file: mustOpen(t, reference+"/params.bin"), piece: piece}
				last := 0.0
				result, err := Setup(t.Context(), nil, SetupScalars(DefaultSetupText, name), SetupOptions{
					Dir: t.TempDir(), BaseName: "x", Shape: name, Threads: 3, Source: source, WithoutDigests: plain,
					Progress: func(done float64, what string) {
						if done < last || done > 1 {
							t.Errorf("progress went from %v to %v at %s", last, done, what)
						}
						last = done
					},
				})
				if err != nil {
					t.Fatal(err)
				}
				if source.out != 0 || last != 1 {
					t.Errorf("%d pieces were not given back; progress ended at %v", source.out, last)
				}
				for path, want := range map[string]string{result.ParamsPath: "params.bin", result.VKPath: "vk.bin"} {
					if got := bytesAt(t, path); !bytes.Equal(got, bytesAt(t, filepath.Join(reference, want))) {
						t.Errorf("%s, pieces of %d: %s differs", name, piece, want)
					}
				}
				if !plain {
					sameReport(t, result, reference+"/setup.json")
				} else if result.ParamsFile.SHA256 != "" || result.Blocks["h"].SHA256 != "" || result.ParamsFile.Bytes == 0 || result.Blocks["h"].Count == 0 || result.VKFile.SHA256 == "" {
					t.Errorf("without digests: %+v", result)
				}
			}
		}
	}
}

func bytesAt(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Goal: a source that fails, in any block, one that gives too much or too little, and a context that ends are errors of their kind; no file
// and no piece stays behind.
func TestSetup_SourceFails(t *testing.T) {
	lost := status.New(status.NoDevice, "test", "", "a device", "none")
	for b := groth16.Block(0); b < groth16.BlockCount; b++ {
		ctx, cancel := context.WithCancel(t.Context())
		for what, c := range map[string]struct {
			fails func(at groth16.Block, from int) error
			more  int
			kind  status.Kind
		}{
			"fails": {func(at groth16.Block, from int) error { return map[bool]error{true: lost}[at == b && from > 0] }, 0, status.NoDevice},
			"cancelled": {func(at groth16.Block, _ int) error {
				cancel()
				return status.Wrap(status.Cancelled, "test", "", ctx.Err())
			}, 0, status.Cancelled},
			"too much": {nil, 1, status.Internal},
			"panics": {func(at groth16.Block, from int) error {
				status.Check(at != b || from == 0, "test", "no panic")
				return nil
			}, 0, status.Internal},
		} {
			dir := t.TempDir()
			source := &copied{t: t, file: mustOpen(t, vectors+"tiny/tiny-16/params.bin"), piece: 2, fails: c.fails, more: c.more}
			_, err := Setup(ctx, nil, SetupScalars(DefaultSetupText, "tiny-16"), SetupOptions{Dir: dir, BaseName: "x", Source: source, Threads: 2})
			if status.KindOf(err) != c.kind {
				t.Errorf("%s, %s: %v", b, what, err)
			}
			if files := list(t, dir); len(files) != 0 || source.out != 0 {
				t.Errorf("%s, %s: left behind %v, %d pieces", b, what, files, source.out)
			}
		}
		cancel()
	}
}

// Goal: a disk that is full while several pieces are on their way is one error with the path, and every piece comes back.
func TestPieceWriter_DiskFull(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("the system has no /dev/full")
	}
	defer full.Close()
	f, err := createSetupFile(filepath.Join(t.TempDir(), "x.params"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.file.Close()
	temporary := f.file
	f.file = full
	defer temporary.Close()
	w := newPieceWriter(f, 3)
	var mu sync.Mutex
	given, back := 0, 0
	for range 100 {
		if w.put(make([]byte, 100), func() { mu.Lock(); back++; mu.Unlock() }) == nil {
			given++
		}
	}
	if err := w.close(); status.KindOf(err) != status.Params || !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), f.path) {
		t.Errorf("want Params with ENOSPC and the path, got %v", err)
	}
	if back != given {
		t.Errorf("%d pieces of %d came back", back, given)
	}
}
