package params

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"sync"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"golang.org/x/crypto/blake2b"

	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/status"
)

// BlockDigest is SHA-256 over the points of a block, without the count.
type BlockDigest struct {
	Count  int    `json:"count"`
	SHA256 string `json:"sha256"`
}

// FileDigest holds the digests of a whole file.
type FileDigest struct {
	Blake2b512        string `json:"blake2b_512"`
	Blake2b512First16 string `json:"blake2b_512_first_16_bytes"` // the manifest's form
	Bytes             int64  `json:"bytes"`
	SHA256            string `json:"sha256"`
}

// Digests describe a parameter set in the form of the oracle's setup/SHAPE.json.
type Digests struct {
	Blocks     map[string]BlockDigest `json:"blocks"` // ic, h, l, a, b_g1, b_g2
	ParamsFile FileDigest             `json:"params_file"`
	VK         map[string]string      `json:"vk"` // the six points, uncompressed
	VKFile     FileDigest             `json:"vk_file"`
}

// Digest reads the whole file once, hashes side by side, and returns its digests. progress may be nil; it
// gets the share done from one goroutine. Points are not decoded. Errors: Params, Cancelled.
func (f *File) Digest(ctx context.Context, progress func(done float64)) (*Digests, error) {
	wholeSHA, wholeBlake := sha256.New(), newBlake()
	var blocks [groth16.BlockCount]hash.Hash
	for b := range blocks {
		blocks[b] = sha256.New()
	}
	err := f.stream(ctx, "params.Digest", progress,
		func(_ int64, data []byte) { wholeSHA.Write(data) },
		func(_ int64, data []byte) { wholeBlake.Write(data) },
		func(offset int64, data []byte) {
			for b := range blocks {
				start := f.counts.Offset(groth16.Block(b))
				end := start + int64(f.counts.Blocks[b])*int64(PointBytes(groth16.Block(b)))
				from, to := max(start, offset), min(end, offset+int64(len(data)))
				if from < to {
					blocks[b].Write(data[from-offset : to-offset])
				}
			}
		})
	if err != nil {
		return nil, err
	}
	d := &Digests{
		Blocks:     make(map[string]BlockDigest),
		ParamsFile: fileDigest(wholeSHA, wholeBlake, f.id.Size),
		VK:         make(map[string]string),
	}
	for b := range blocks {
		d.Blocks[groth16.Block(b).String()] = BlockDigest{f.counts.Blocks[b], hex.EncodeToString(blocks[b].Sum(nil))}
	}
	ic := sha256.Sum256(f.vkBytes[groth16.VKHeadBytes:])
	d.Blocks["ic"] = BlockDigest{f.counts.IC, hex.EncodeToString(ic[:])}
	keySHA, keyBlake := sha256.New(), newBlake()
	keySHA.Write(f.vkBytes)
	keyBlake.Write(f.vkBytes)
	d.VKFile = fileDigest(keySHA, keyBlake, int64(len(f.vkBytes)))
	for _, p := range []struct {
		name  string
		point interface{ RawBytes() [G1Bytes]byte }
	}{{"alpha_g1", &f.vk.AlphaG1}, {"beta_g1", &f.vk.BetaG1}, {"delta_g1", &f.vk.DeltaG1}} {
		raw := p.point.RawBytes()
		d.VK[p.name] = hex.EncodeToString(raw[:])
	}
	for name, p := range map[string]*bls.G2Affine{"beta_g2": &f.vk.BetaG2, "gamma_g2": &f.vk.GammaG2, "delta_g2": &f.vk.DeltaG2} {
		raw := p.RawBytes()
		d.VK[name] = hex.EncodeToString(raw[:])
	}
	return d, nil
}

func newBlake() hash.Hash {
	h, err := blake2b.New512(nil)
	status.Check(err == nil, "params.Digest", "BLAKE2b without a key")
	return h
}

func fileDigest(sha, blake hash.Hash, size int64) FileDigest {
	sum := blake.Sum(nil)
	return FileDigest{
		Blake2b512:        hex.EncodeToString(sum),
		Blake2b512First16: hex.EncodeToString(sum[:digestBytes]),
		Bytes:             size,
		SHA256:            hex.EncodeToString(sha.Sum(nil)),
	}
}

// VerifyProduction hashes the whole file and compares it with a manifest entry, once for each state of the
// file that verdicts remembers. Errors: Params, Cancelled.
func (f *File) VerifyProduction(ctx context.Context, entry Entry, verdicts *Verdicts) error {
	const op = "params.VerifyProduction"
	_, err := verdicts.once(ctx, "manifest "+entry.ParamsDigest, f.id, keepInMemory, func() error {
		blake := newBlake()
		if err := f.stream(ctx, op, nil, func(_ int64, data []byte) { blake.Write(data) }); err != nil {
			return err
		}
		if got := hex.EncodeToString(blake.Sum(nil)[:digestBytes]); got != entry.ParamsDigest {
			return status.New(status.Params, op, f.path, fmt.Sprintf("digest %s of the public manifest (%s)", entry.ParamsDigest, entry.Base), got)
		}
		return nil
	})
	return err
}

// Reading ahead: enough that the disk works while the slowest hash does.
const (
	streamBytes   = 1 << 20
	streamBuffers = 4
)

// stream reads the file from start to end and hands each piece to all sinks, each in a goroutine of its own
// and in order.
func (f *File) stream(ctx context.Context, op string, progress func(done float64), sinks ...func(offset int64, data []byte)) (err error) {
	type piece struct {
		offset int64
		data   []byte
		left   *sync.WaitGroup
	}
	queues := make([]chan piece, len(sinks))
	panics := make([]error, len(sinks))
	var running sync.WaitGroup
	for i, sink := range sinks {
		queues[i] = make(chan piece, streamBuffers)
		running.Go(func() {
			for p := range queues[i] {
				func() {
					defer p.left.Done()
					defer status.Recover(op, &panics[i])
					sink(p.offset, p.data)
				}()
			}
		})
	}
	var buffers [streamBuffers][]byte
	var left [streamBuffers]sync.WaitGroup
	for k, offset := 0, int64(0); offset < f.id.Size && err == nil; k = (k + 1) % streamBuffers {
		if cause := ctx.Err(); cause != nil {
			err = status.Wrap(status.Cancelled, op, f.path, cause)
			break
		}
		if buffers[k] == nil {
			buffers[k] = make([]byte, streamBytes)
		}
		left[k].Wait()
		data := buffers[k][:min(f.id.Size-offset, streamBytes)]
		if err = f.readAt(op, data, offset, fmt.Sprintf("%s: byte %d", f.path, offset)); err != nil {
			break
		}
		left[k].Add(len(sinks))
		for _, q := range queues {
			q <- piece{offset, data, &left[k]}
		}
		offset += int64(len(data))
		if progress != nil {
			progress(float64(offset) / float64(f.id.Size))
		}
		err = f.unchanged(op)
	}
	for _, q := range queues {
		close(q)
	}
	running.Wait()
	for _, p := range panics {
		if err == nil {
			err = p
		}
	}
	return err
}
