// Package kernels holds the compiled GPU code.
//
// The folders below have its source: an algorithm in a .cuh file, its entries in the .cu file beside it, one compilation
// unit each. build.sh compiles every unit for every architecture; here lies the result, embedded. The same files compile
// with g++ and run without a GPU: see emu/emu.hpp and package kerneltest.
package kernels

import (
	"embed"
	"encoding/binary"
	"fmt"

	"github.com/sealc2/sealc2/engine/status"
)

//go:embed image
var image embed.FS

// File is the embedded result of build.sh: the fatbins of all units, one after the other. It is nil in a build
// without CUDA code.
func File() []byte {
	data, err := image.ReadFile("image/kernels.fatbin")
	if err != nil {
		return nil
	}
	return data
}

// The header of a fatbin, which says how long it is. Source: fatbinary.h of the CUDA toolkit.
const (
	fatbinMagic       = 0xba55ed50
	fatbinHeaderBytes = 16 // magic 4, version 2, header size 2, size of what follows 8
)

// Split cuts a file of build.sh into its fatbins, each of which a driver loads on its own. The slices share memory
// with data. Errors: NoDevice for no data (a build without CUDA code), Params for anything but whole fatbins.
func Split(data []byte) ([][]byte, error) {
	const op = "kernels.Split"
	if len(data) == 0 {
		return nil, status.New(status.NoDevice, op, "", "compiled kernels", "none: this build has no CUDA code")
	}
	var all [][]byte
	for at := 0; at < len(data); {
		rest := data[at:]
		where := fmt.Sprintf("byte %d", at)
		if len(rest) < fatbinHeaderBytes {
			return nil, status.New(status.Params, op, where, "the header of a fatbin", fmt.Sprintf("%d bytes", len(rest)))
		}
		if magic := binary.LittleEndian.Uint32(rest); magic != fatbinMagic {
			return nil, status.New(status.Params, op, where, fmt.Sprintf("a fatbin's %#x", uint32(fatbinMagic)), fmt.Sprintf("%#x", magic))
		}
		header, body := uint64(binary.LittleEndian.Uint16(rest[6:])), binary.LittleEndian.Uint64(rest[8:])
		if header < fatbinHeaderBytes || body > uint64(len(rest)) || header+body > uint64(len(rest)) {
			return nil, status.New(status.Params, op, where, fmt.Sprintf("a fatbin within %d bytes", len(rest)), fmt.Sprintf("one of %d and %d", header, body))
		}
		all = append(all, rest[:header+body])
		at += int(header + body)
	}
	return all, nil
}
