package params

import (
	"fmt"
	"io"

	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/status"
)

// KeyFile is a verifying key as a .vk file holds it.
type KeyFile struct {
	Path  string
	Bytes []byte // the whole file
	VK    *groth16.VerifyingKey
}

// ReadKeyFile reads a .vk file: one key, nothing after it, every point of order r and not infinity.
// Errors are of kind Params and name the file and the element.
func ReadKeyFile(path string) (*KeyFile, error) {
	const op = "params.ReadKeyFile"
	file, id, err := openRegular(op, path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := readVKBytes(file)
	if err != nil {
		return nil, status.Wrap(status.Params, op, path, err)
	}
	if n, _ := io.ReadFull(file, make([]byte, 1)); n != 0 {
		return nil, status.New(status.Params, op, fmt.Sprintf("%s: end of ic at byte %d", path, len(data)), "the end of the file", fmt.Sprintf("a file of %d bytes", id.Size))
	}
	vk, err := groth16.DecodeVK(data)
	if err != nil {
		return nil, status.Wrap(status.Params, op, path, err)
	}
	return &KeyFile{Path: path, Bytes: data, VK: vk}, nil
}
