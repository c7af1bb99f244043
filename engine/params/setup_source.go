package params

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/status"
)

// runSource is run for points that are made elsewhere: they are written where they belong by several goroutines, and hashed
// in order by others.
func (g *generator) runSource(ctx context.Context) error {
	source, params := g.options.Source, g.files.params
	g.total = 1
	g.report("circuit")
	vk, counts, err := source.Begin(ctx, g.scalars)
	if err != nil {
		return err
	}
	g.vk, g.counts = *vk, counts
	if err := params.reserve(counts.Bytes()); err != nil {
		return err
	}
	g.total = float64(counts.Bytes())
	g.report("ic")
	if err := g.writeKey(); err != nil {
		return err
	}
	for b := range groth16.BlockCount {
		g.report(b.String())
		if err := g.writeFrom(ctx, source, b); err != nil {
			return err
		}
	}
	status.Check(params.bytes == counts.Bytes(), "params.Setup", "the file to have the size of its counts")
	return nil
}

// writeFrom writes a block: its count, and the points that the source gives.
func (g *generator) writeFrom(ctx context.Context, source SetupSource, b groth16.Block) error {
	count, params := g.counts.Blocks[b], g.files.params
	if err := params.beginBlock(count); err != nil {
		return err
	}
	want := params.bytes + int64(count)*int64(PointBytes(b))
	w := newPieceWriter(params, g.options.Threads)
	err := source.Block(ctx, b, func(piece []byte, done func()) error {
		if int64(len(piece)) > want-params.bytes {
			return status.New(status.Internal, "params.Setup", b.String(), fmt.Sprintf("%d points", count), "more")
		}
		if err := w.put(piece, done); err != nil {
			return err
		}
		g.advance(float64(len(piece)), b.String())
		return nil
	})
	if failed := w.close(); failed != nil { // first, since what a source says of a writer that failed is the same error
		return failed
	}
	if err != nil {
		return err
	}
	status.Check(params.bytes == want, "params.Setup", "a source to give all points of a block")
	g.blocks[b.String()] = params.endBlock(count)
	return nil
}

// pieceWriter appends pieces to a file beside the goroutine that gives them.
type pieceWriter struct {
	file   *setupFile
	writes chan *writing
	hashes []chan *writing // of each hash, in order
	over   sync.WaitGroup
	mu     sync.Mutex
	failed error
}

// writing is a piece on its way; who is through with it last says so.
type writing struct {
	data   []byte
	offset int64
	left   atomic.Int32
	done   func()
}

func (p *writing) through() {
	if p.left.Add(-1) == 0 {
		p.done()
	}
}

// pieceQueue is how many pieces wait for a hash at most, and for all writers together. It bounds nothing but the wait of who gives
// them, since the pieces are the source's memory.
const pieceQueue = 16

// pieceWriters is how many goroutines write at most: file systems of one machine let one at a time into a file anyway, those of
// several do not.
const pieceWriters = 2

// newPieceWriter starts the goroutines: those that write, and one for each hash.
func newPieceWriter(file *setupFile, threads int) *pieceWriter {
	w := &pieceWriter{file: file, writes: make(chan *writing, pieceQueue)}
	for range max(1, min(threads, pieceWriters)) {
		w.start(w.writes, func(p *writing) error {
			if _, err := file.file.WriteAt(p.data, p.offset); err != nil {
				return fileError(file.path, err)
			}
			return nil
		})
	}
	if !file.plain {
		for _, h := range []interface{ Write([]byte) (int, error) }{file.whole, file.blake, file.block} {
			queue := make(chan *writing, pieceQueue)
			w.hashes = append(w.hashes, queue)
			w.start(queue, func(p *writing) error {
				_, err := h.Write(p.data)
				return err
			})
		}
	}
	return w
}

// start runs work for each piece of a queue, until that is closed; after a failure pieces only pass through.
func (w *pieceWriter) start(queue chan *writing, work func(p *writing) error) {
	w.over.Add(1)
	go func() {
		defer w.over.Done()
		for p := range queue {
			err := w.failure()
			if err == nil {
				err = func() (err error) {
					defer status.Recover("params.Setup", &err)
					return work(p)
				}()
			}
			if err != nil {
				w.fail(err)
			}
			p.through()
		}
	}()
}

func (w *pieceWriter) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed
}

// fail keeps the first failure.
func (w *pieceWriter) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed == nil {
		w.failed = err
	}
}

// put appends a piece; see SetupSource. It fails with what failed for an earlier one, and then keeps nothing.
func (w *pieceWriter) put(data []byte, done func()) error {
	if err := w.failure(); err != nil {
		return err
	}
	p := &writing{data: data, offset: w.file.bytes, done: done}
	p.left.Store(int32(1 + len(w.hashes)))
	w.file.bytes += int64(len(data))
	w.writes <- p
	for _, queue := range w.hashes {
		queue <- p
	}
	return nil
}

// close waits until all pieces are written and hashed, and returns the first failure.
func (w *pieceWriter) close() error {
	close(w.writes)
	for _, queue := range w.hashes {
		close(queue)
	}
	w.over.Wait()
	return w.failed
}
