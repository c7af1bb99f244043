package main

// #include "bridge.h"
import "C"

import (
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"github.com/sealc2/sealc2/engine/status"
)

// guard is the whole of an export of sealc2.h: body's error becomes the status and the caller's text.
func guard(op string, failure *C.sealc2_error, body func() error) C.int32_t {
	err := protect(op, body)
	text, length := cText(err)
	parts := partsOf(err)
	C.sealc2_put_error(failure, text, length, (*C.sealc2_span)(unsafe.Pointer(&parts)))
	return C.int32_t(status.KindOf(err))
}

// cText returns an error's text for C to copy: nil and 0 for no error, and never empty for one.
func cText(err error) (C.sealc2_in_bytes, C.size_t) {
	if err == nil {
		return nil, 0
	}
	text := textOf(err)
	return (C.sealc2_in_bytes)(unsafe.Pointer(unsafe.StringData(text))), C.size_t(len(text))
}

// textOf is an error's text. It is made outside the guard, so it answers for itself.
func textOf(err error) (text string) {
	text = "an error whose text cannot be made"
	var broken error
	defer status.Recover("capi.textOf", &broken)
	if made := err.Error(); made != "" {
		return made
	}
	return status.KindOf(err).String()
}

// span is sealc2_span.
type span struct{ at, len uint32 }

var _ = [1]struct{}{}[unsafe.Sizeof([4]span{})-unsafe.Sizeof([4]C.sealc2_span{})]

// partsOf finds op, where, want and got in err's text: those of the innermost Error in its chain that says what it
// wanted or got, which is the one that looked; of the innermost one where none does.
func partsOf(err error) (parts [4]span) {
	defer status.Recover("capi.partsOf", new(error))
	if err == nil {
		return parts
	}
	text := err.Error()
	rest, said := 0, false // where the text of what is left of the chain begins
	for e := (*status.Error)(nil); errors.As(err, &e); err = e.Cause {
		at := strings.Index(text[rest:], e.Error())
		if at < 0 {
			return parts
		}
		pos := rest + at
		take := func(separator, part string) (s span) {
			if part != "" && strings.HasPrefix(text[pos:], separator+part) {
				s = span{uint32(pos + len(separator)), uint32(len(part))}
				pos += len(separator) + len(part)
			}
			return s
		}
		own := [4]span{take("", e.Op), take(": ", e.Where), take(": want ", e.Want)}
		if own[2].len > 0 {
			own[3] = take(", got ", e.Got)
		} else {
			own[3] = take(": ", e.Got)
		}
		if says := own[2].len > 0 || own[3].len > 0; says || !said {
			parts, said = own, says
		}
		rest = pos
	}
	return parts
}

// borrow returns the caller's memory as a slice, valid until the export returns. Nil with length 0 is empty.
func borrow(op, name string, data *C.uint8_t, length C.size_t) ([]byte, error) {
	switch {
	case length == 0:
		return nil, nil
	case data == nil:
		return nil, status.New(status.Caller, op, name, fmt.Sprintf("%d bytes", length), "NULL")
	case uint64(length) > 1<<48:
		return nil, status.New(status.Caller, op, name, "a length of at most 2^48", fmt.Sprint(length))
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(data)), int(length)), nil
}

// array32 copies a caller's 32 bytes.
func array32(op, name string, data C.sealc2_in_array32) (out [32]byte, err error) {
	if data == nil {
		return out, status.New(status.Caller, op, name, "a pointer to 32 bytes", "NULL")
	}
	return *(*[32]byte)(unsafe.Pointer(data)), nil
}

// checkStruct accepts a struct of this version's size, and a longer one of a later version whose further
// fields are all zero, that is, not used.
func checkStruct(op, name string, data unsafe.Pointer, want uintptr) error {
	if data == nil {
		return status.New(status.Caller, op, name, "a pointer", "NULL")
	}
	size := *(*C.size_t)(data)
	if uint64(size) < uint64(want) || size > 1<<16 {
		return status.New(status.Caller, op, name+".size", fmt.Sprintf("sizeof = %d", want), fmt.Sprint(size))
	}
	for i, b := range unsafe.Slice((*byte)(data), int(size))[want:] {
		if b != 0 {
			return status.New(status.Caller, op, fmt.Sprintf("%s, byte %d", name, int(want)+i),
				"zero in fields that this version does not know", fmt.Sprint(b))
		}
	}
	return nil
}

// readStruct copies a struct that callers of an earlier version may give without its last fields, which then are zero. least is the
// size that it had in the first version.
func readStruct[T any](op, name string, data unsafe.Pointer, least uintptr) (value T, err error) {
	want := unsafe.Sizeof(value) // also in the error for a size that no version had
	// A size that C gives a struct is a multiple of its alignment; another one could end within a pointer.
	if data != nil && uintptr(*(*C.size_t)(data)) >= least && uintptr(*(*C.size_t)(data))%unsafe.Alignof(value) == 0 {
		want = min(want, uintptr(*(*C.size_t)(data)))
	}
	if err := checkStruct(op, name, data, want); err != nil {
		return value, err
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&value)), unsafe.Sizeof(value)), unsafe.Slice((*byte)(data), want))
	return value, nil
}

// null refuses a missing out pointer.
func null(op, name string, missing bool) error {
	if missing {
		return status.New(status.Caller, op, name, "a pointer", "NULL")
	}
	return nil
}
