package params

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"golang.org/x/sys/unix"

	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/status"
)

// Identity tells one state of one file from all others, as far as the system can.
type Identity struct {
	Device, Inode    uint64
	Size             int64 // bytes
	MtimeNs, CtimeNs int64 // since 1970
}

// String is the form that keys caches.
func (id Identity) String() string {
	return fmt.Sprintf("dev=%d ino=%d size=%d mtime=%d ctime=%d", id.Device, id.Inode, id.Size, id.MtimeNs, id.CtimeNs)
}

// File is an open .params file. It implements groth16.SRS by pread; all methods but Close may be called by
// several goroutines at once.
type File struct {
	file    *os.File
	path    string
	id      Identity
	counts  Counts
	vk      *groth16.VerifyingKey
	vkBytes []byte
}

var _ groth16.EncodedSRS = (*File)(nil)

// readChunk is the number of points between two looks at the context and the file's state: 384 KiB or
// 768 KiB, so that decoding finds them in the second-level cache.
const readChunk = 4096

// Open opens a .params file, decodes its verifying key, and checks that its counts fit together and that it
// has exactly the bytes that they ask for. The points of the blocks are checked as they are read.
// Errors are of kind Params and name file, block, offset, what is wanted and what was found.
func Open(path string) (*File, error) {
	const op = "params.Open"
	file, id, err := openRegular(op, path)
	if err != nil {
		return nil, err
	}
	f := &File{file: file, path: path, id: id}
	if err := f.readLayout(op); err != nil {
		file.Close()
		return nil, err
	}
	return f, nil
}

// openRegular opens a regular file for reading. Nothing else is waited for: a FIFO is refused, not read.
func openRegular(op, path string) (*os.File, Identity, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, Identity{}, openError(op, path, err)
	}
	st, err := stat(file)
	if err != nil {
		file.Close()
		return nil, Identity{}, openError(op, path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		file.Close()
		return nil, Identity{}, status.New(status.Params, op, path, "a regular file", fileType(st.Mode))
	}
	return file, identityOf(&st), nil
}

// stat is fstat of an open file.
func stat(file *os.File) (st unix.Stat_t, err error) {
	raw, err := file.SyscallConn()
	if err != nil {
		return st, err
	}
	if cerr := raw.Control(func(fd uintptr) { err = unix.Fstat(int(fd), &st) }); cerr != nil {
		return st, cerr
	}
	return st, err
}

func fileType(mode uint32) string {
	switch mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return "a directory"
	case unix.S_IFIFO:
		return "a pipe"
	case unix.S_IFSOCK:
		return "a socket"
	default:
		return "a device"
	}
}

// openError gives the two frequent causes plain words.
func openError(op, path string, err error) error {
	e := status.Wrap(status.Params, op, path, rootCause(err))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Got = "the file does not exist"
	case errors.Is(err, fs.ErrPermission):
		e.Got = "no permission to read the file"
	default:
		e.Got = "the file cannot be opened"
	}
	return e
}

// rootCause strips the path that os puts before the cause, since our text has it already.
func rootCause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

func identityOf(st *unix.Stat_t) Identity {
	return Identity{
		Device: uint64(st.Dev), Inode: st.Ino, Size: st.Size,
		MtimeNs: st.Mtim.Nano(), CtimeNs: st.Ctim.Nano(),
	}
}

// readLayout reads the key and the five counts, each only where the file is known to reach. A count that
// does not fit to those before it is reported before the bytes that it asks for.
func (f *File) readLayout(op string) error {
	var err error
	if f.vkBytes, err = readVKBytes(io.NewSectionReader(f.file, 0, f.id.Size)); err == nil {
		f.vk, err = groth16.DecodeVK(f.vkBytes)
	}
	if err != nil {
		return status.Wrap(status.Params, op, f.path+": verifying key at byte 0", err)
	}
	f.counts.IC = len(f.vk.IC)
	offset := int64(len(f.vkBytes))
	for b := groth16.Block(0); b < groth16.BlockCount; b++ {
		where := fmt.Sprintf("%s: count of %s at byte %d", f.path, b, offset)
		if offset+CountBytes > f.id.Size {
			return status.New(status.Params, op, where, fmt.Sprintf("%d bytes or more", offset+CountBytes), fmt.Sprintf("a file of %d bytes (truncated)", f.id.Size))
		}
		var count [CountBytes]byte
		if err := f.readAt(op, count[:], offset, where); err != nil {
			return err
		}
		n := int64(binary.BigEndian.Uint32(count[:]))
		f.counts.Blocks[b] = int(n)
		if want, ok := f.counts.check(b); !ok {
			return status.New(status.Params, op, where, want, fmt.Sprint(n))
		}
		offset += CountBytes
		end := offset + n*int64(PointBytes(b))
		if end > f.id.Size {
			reach := (f.id.Size - offset) / int64(PointBytes(b))
			return status.New(status.Params, op, fmt.Sprintf("%s: %s[%d] at byte %d", f.path, b, reach, offset+reach*int64(PointBytes(b))),
				fmt.Sprintf("%d points up to byte %d", n, end), fmt.Sprintf("a file of %d bytes (truncated)", f.id.Size))
		}
		offset = end
	}
	if offset != f.id.Size {
		return status.New(status.Params, op, fmt.Sprintf("%s: end of b_g2 at byte %d", f.path, offset), "the end of the file", fmt.Sprintf("%d more bytes", f.id.Size-offset))
	}
	return nil
}

// readAt fills buf from offset. A file that became shorter is an error of kind Params that names where.
func (f *File) readAt(op string, buf []byte, offset int64, where string) error {
	n, err := f.file.ReadAt(buf, offset)
	if n == len(buf) {
		return nil
	}
	if err == io.EOF {
		return status.New(status.Params, op, where, fmt.Sprintf("%d bytes at byte %d", len(buf), offset), fmt.Sprintf("%d: the file became shorter while open", n))
	}
	return status.Wrap(status.Params, op, where, rootCause(err))
}

// unchanged fails if the open file is no longer what Open saw. The time of the last change is left out:
// renaming or unlinking the file moves it and harms nobody.
func (f *File) unchanged(op string) error {
	st, err := stat(f.file)
	if err != nil {
		return status.Wrap(status.Params, op, f.path, rootCause(err))
	}
	now := identityOf(&st)
	if now.Size == f.id.Size && now.MtimeNs == f.id.MtimeNs {
		return nil
	}
	return status.New(status.Params, op, f.path,
		fmt.Sprintf("the file that was opened (%d bytes, modified at %d ns)", f.id.Size, f.id.MtimeNs),
		fmt.Sprintf("one changed while open (%d bytes, modified at %d ns)", now.Size, now.MtimeNs))
}

// Path is the path that was opened.
func (f *File) Path() string { return f.path }

// Identity is the file's identity when it was opened.
func (f *File) Identity() Identity { return f.id }

// ID names the file's content as it was opened.
func (f *File) ID() string { return f.id.String() }

// Counts are the numbers of points.
func (f *File) Counts() Counts { return f.counts }

// Len is the number of points of a block.
func (f *File) Len(b groth16.Block) int { return f.counts.Blocks[b] }

// VerifyingKey is the key at the head of the file: on the curve, of order r, never infinity.
func (f *File) VerifyingKey() *groth16.VerifyingKey { return f.vk }

// KeyBytes are the bytes of that key, as its .vk file must hold them. They must not be written.
func (f *File) KeyBytes() []byte { return f.vkBytes }

// Close closes the file. Reads that are under way finish or fail with an error.
func (f *File) Close() error {
	if err := f.file.Close(); err != nil {
		return status.Wrap(status.Params, "params.Close", f.path, rootCause(err))
	}
	return nil
}

// ReadG1 decodes points [from, from+len(dst)) of a G1 block. Each is canonical, on the curve and not
// infinity; the order is Check's matter. After an error dst is zero. Errors: Params with block and index
// for a bad point or a file that changed, Cancelled, Caller for a range outside the block.
func (f *File) ReadG1(ctx context.Context, b groth16.Block, from int, dst []bls.G1Affine) error {
	const op = "params.ReadG1"
	if b >= groth16.BlockB2 {
		return status.New(status.Caller, op, f.path, "a block of G1 points", fmt.Sprintf("block %d", b))
	}
	err := f.readPoints(ctx, op, b, from, len(dst), g1Memory(dst), func(i int) fault {
		p := &dst[i]
		return decodeG1(p, (*[G1Bytes]byte)(g1Memory(dst[i:i+1])))
	})
	if err != nil {
		clear(dst)
	}
	return err
}

// ReadG2 is ReadG1 for the block b_g2.
func (f *File) ReadG2(ctx context.Context, from int, dst []bls.G2Affine) error {
	err := f.readPoints(ctx, "params.ReadG2", groth16.BlockB2, from, len(dst), g2Memory(dst), func(i int) fault {
		p := &dst[i]
		return decodeG2(p, (*[G2Bytes]byte)(g2Memory(dst[i:i+1])))
	})
	if err != nil {
		clear(dst)
	}
	return err
}

// ReadEncoded reads points [from, from+n) of a block as they stand in the file, for len(dst) = n * PointBytes(b). It
// checks nothing but that the file is the one that was opened. Errors: Params for a file that changed, Cancelled,
// Caller for a range outside the block or a dst that does not hold whole points.
func (f *File) ReadEncoded(ctx context.Context, b groth16.Block, from int, dst []byte) error {
	const op = "params.ReadEncoded"
	if b >= groth16.BlockCount || len(dst)%PointBytes(b) != 0 {
		return status.New(status.Caller, op, f.path, "whole points of a block", fmt.Sprintf("%d bytes of block %d", len(dst), b))
	}
	return f.readPoints(ctx, op, b, from, len(dst)/PointBytes(b), dst, func(int) fault { return faultNone })
}

// readPoints reads count points into memory, chunk by chunk, and calls decode for each.
func (f *File) readPoints(ctx context.Context, op string, b groth16.Block, from, count int, memory []byte, decode func(i int) fault) error {
	if n := f.counts.Blocks[b]; from < 0 || from > n || count > n-from {
		return status.New(status.Caller, op, fmt.Sprintf("%s: %s", f.path, b), fmt.Sprintf("a range of its %d points", n), fmt.Sprintf("%d points from %d", count, from))
	}
	size := PointBytes(b)
	offset := f.counts.Offset(b) + int64(from)*int64(size)
	for at := 0; at < count; {
		if err := ctx.Err(); err != nil {
			return status.Wrap(status.Cancelled, op, fmt.Sprintf("%s: %s[%d]", f.path, b, from+at), err)
		}
		n := min(count-at, readChunk)
		where := fmt.Sprintf("%s: %s[%d]", f.path, b, from+at)
		if err := f.readAt(op, memory[at*size:(at+n)*size], offset+int64(at)*int64(size), where); err != nil {
			return err
		}
		if err := f.unchanged(op); err != nil {
			return err
		}
		for end := at + n; at < end; at++ {
			if fault := decode(at); fault != faultNone {
				return f.pointError(op, b, from+at, fault)
			}
		}
	}
	return nil
}

// pointError names a point by file, block, index and byte.
func (f *File) pointError(op string, b groth16.Block, index int, fault fault) error {
	offset := f.counts.Offset(b) + int64(index)*int64(PointBytes(b))
	return status.New(status.Params, op, fmt.Sprintf("%s: %s[%d] at byte %d", f.path, b, index, offset), fault.want(), fault.got())
}

// Fits checks that the file's counts are those of a circuit's parameter set. The error names the block and
// both numbers.
func (f *File) Fits(p *circuit.Program) error {
	return f.fits(p.Name(), CountsOf(p))
}

func (f *File) fits(name string, want Counts) error {
	const op = "params.Fits"
	block, w, got := "ic", want.IC, f.counts.IC
	for b := groth16.Block(0); w == got && b < groth16.BlockCount; b++ {
		block, w, got = b.String(), want.Blocks[b], f.counts.Blocks[b]
	}
	if w == got {
		return nil
	}
	return status.New(status.Params, op, f.path+": "+block, fmt.Sprintf("%d points for circuit %s", w, name), fmt.Sprint(got))
}

// SameKey checks that the head of the file equals the bytes of its .vk file, which was read from path.
func (f *File) SameKey(key []byte, path string) error {
	if bytes.Equal(f.vkBytes, key) {
		return nil
	}
	at := 0
	for at < min(len(key), len(f.vkBytes)) && key[at] == f.vkBytes[at] {
		at++
	}
	return status.New(status.Params, "params.SameKey", fmt.Sprintf("%s: verifying key at byte %d (%s)", f.path, at, keyElement(at)),
		"the head of the .params file to equal "+path, "different bytes (files of two parameter sets)")
}

// keyElement names the part of a verifying key that a byte belongs to.
func keyElement(at int) string {
	for _, part := range []struct {
		name string
		size int
	}{
		{"alpha_g1", G1Bytes}, {"beta_g1", G1Bytes}, {"beta_g2", G2Bytes}, {"gamma_g2", G2Bytes},
		{"delta_g1", G1Bytes}, {"delta_g2", G2Bytes}, {"count of ic", CountBytes},
	} {
		if at < part.size {
			return part.name
		}
		at -= part.size
	}
	return fmt.Sprintf("ic[%d]", at/G1Bytes)
}
