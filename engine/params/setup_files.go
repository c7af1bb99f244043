package params

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sealc2/sealc2/engine/status"
)

// setupFiles are the two files of a setup before they have their names.
type setupFiles struct {
	params, vk *setupFile
}

// setupFile is written under a temporary name; digests are taken on the way, from front to end.
type setupFile struct {
	path  string // the name that it gets
	file  *os.File
	bytes int64
	whole hash.Hash // SHA-256 of the file
	blake hash.Hash // BLAKE2b-512 of the file
	block hash.Hash // SHA-256 of the block under way, without its count
	plain bool      // without digests
	named bool      // it has its name
}

// createSetupFiles opens both files under temporary names in dir.
func createSetupFiles(dir, base string) (*setupFiles, error) {
	if base == "" || base != filepath.Base(base) || strings.ContainsRune(base, '*') {
		return nil, status.New(status.Caller, "params.Setup", "base name", "a file name without a directory", "\""+base+"\"")
	}
	files := &setupFiles{}
	var err error
	if files.vk, err = createSetupFile(filepath.Join(dir, base+".vk")); err != nil {
		return nil, err
	}
	if files.params, err = createSetupFile(filepath.Join(dir, base+".params")); err != nil {
		files.discard()
		return nil, err
	}
	return files, nil
}

func createSetupFile(path string) (*setupFile, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, status.New(status.Params, "params.Setup", path, "a regular file, or none yet", info.Mode().Type().String())
	}
	blake := newBlake() // first: what fails here leaves no file
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return nil, fileError(path, err)
	}
	return &setupFile{path: path, file: file, whole: sha256.New(), blake: blake, block: sha256.New()}, nil
}

func fileError(path string, err error) error {
	return status.Wrap(status.Params, "params.Setup", path, err)
}

// reserve asks the file system for the whole size, so that a full disk is known before the work. File
// systems that cannot say are believed.
func (f *setupFile) reserve(size int64) error {
	err := unix.Fallocate(int(f.file.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, size)
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EFBIG) || errors.Is(err, unix.EDQUOT) {
		return fileError(f.path, err)
	}
	return nil
}

func (f *setupFile) write(data []byte) error {
	if _, err := f.file.WriteAt(data, f.bytes); err != nil {
		return fileError(f.path, err)
	}
	if !f.plain {
		f.whole.Write(data)
		f.blake.Write(data)
	}
	f.bytes += int64(len(data))
	return nil
}

func (f *setupFile) beginBlock(count int) error {
	f.block.Reset()
	return f.write(binary.BigEndian.AppendUint32(nil, uint32(count)))
}

func (f *setupFile) writeBlock(data []byte) error {
	if !f.plain {
		f.block.Write(data)
	}
	return f.write(data)
}

func (f *setupFile) endBlock(count int) BlockDigest {
	if f.plain {
		return BlockDigest{Count: count}
	}
	return BlockDigest{Count: count, SHA256: hex.EncodeToString(f.block.Sum(nil))}
}

func digestBlock(count int, points []byte) BlockDigest {
	sum := sha256.Sum256(points)
	return BlockDigest{Count: count, SHA256: hex.EncodeToString(sum[:])}
}

func (f *setupFile) digest() FileDigest {
	if f.plain {
		return FileDigest{Bytes: f.bytes}
	}
	return fileDigest(f.whole, f.blake, f.bytes)
}

// commit makes both files durable and gives them their names.
func (s *setupFiles) commit() error {
	for _, f := range []*setupFile{s.vk, s.params} {
		if err := errors.Join(f.file.Chmod(0o644), f.file.Sync(), f.file.Close()); err != nil {
			return fileError(f.path, err)
		}
	}
	for _, f := range []*setupFile{s.vk, s.params} {
		if err := os.Rename(f.file.Name(), f.path); err != nil {
			return fileError(f.path, err)
		}
		f.named = true
	}
	// The names are durable once the directory is; some file systems cannot sync one.
	dir, err := os.Open(filepath.Dir(s.params.path))
	if err != nil {
		return fileError(s.params.path, err)
	}
	defer dir.Close()
	if err := dir.Sync(); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOTSUP) {
		return fileError(s.params.path, err)
	}
	return nil
}

// discard removes what has no name yet. Harmless after commit.
func (s *setupFiles) discard() {
	for _, f := range []*setupFile{s.vk, s.params} {
		if f != nil && !f.named {
			f.file.Close()
			os.Remove(f.file.Name())
		}
	}
}
