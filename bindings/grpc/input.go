package grpc

import (
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the codec that wire asks for
	"google.golang.org/grpc/mem"
	rpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	pb "github.com/sealc2/sealc2/bindings/grpc/cuzkv1"
	"github.com/sealc2/sealc2/engine/host"
)

// MaxMessageBytes is the longest message in either direction, as in cuzk. A 32 GiB C1 output is 51 MB of JSON, and 68 MB
// in the base64 wrapper in which Curio sends it.
const MaxMessageBytes = 128 << 20

// maxFieldBytes bounds what of a submission is not its vanilla proof: names and numbers.
const maxFieldBytes = 64 << 10

// input is a submission as it came: the message in an arena of its own, and what it says.
type input struct {
	arena *host.Arena

	submitted bool                  // false: the message has no submission
	fields    pb.SubmitProofRequest // without the vanilla proofs
	vanilla   []byte                // in the arena; valid until release
}

// release gives the memory back. Calling it twice is legal, from one goroutine at a time.
func (in *input) release() {
	if in.arena != nil {
		in.vanilla = nil
		in.arena.Close()
		in.arena = nil
	}
}

// read copies a message out of the transport's buffers and takes it apart. wrapped says that the submission is field 1
// of it, as in ProveRequest. On an error nothing is held.
func (in *input) read(data mem.BufferSlice, wrapped bool) (err error) {
	arena, err := host.NewArena(host.SliceBytes[byte](data.Len()))
	if err != nil {
		return rpcstatus.Error(codes.ResourceExhausted, err.Error())
	}
	in.arena = arena
	defer func() {
		if err != nil {
			in.release()
		}
	}()
	message := host.Alloc[byte](arena, data.Len())
	data.CopyTo(message)
	var rest []byte
	if !wrapped {
		in.submitted = true
		rest, err = in.split(message, rest)
	} else {
		rest, err = in.unwrap(message, rest)
	}
	if err != nil {
		return err
	}
	if err := proto.Unmarshal(rest, &in.fields); err != nil {
		return malformed(err)
	}
	return nil
}

// unwrap finds the submissions in a ProveRequest. Should there be several, they are merged, as protobuf has it.
func (in *input) unwrap(message, rest []byte) ([]byte, error) {
	err := eachField(message, func(number protowire.Number, kind protowire.Type, _, value []byte) (err error) {
		if number == 1 && kind == protowire.BytesType {
			in.submitted = true
			rest, err = in.split(value, rest)
		}
		return err
	})
	return rest, err
}

// split finds the vanilla proof in a submission and appends all fields but the vanilla proofs to rest.
func (in *input) split(message, rest []byte) ([]byte, error) {
	err := eachField(message, func(number protowire.Number, kind protowire.Type, field, value []byte) error {
		switch {
		case number == 10 && kind == protowire.BytesType:
			in.vanilla = value
		case number == 11 && kind == protowire.BytesType: // of kinds that are refused
		case len(rest)+len(field) > maxFieldBytes:
			return rpcstatus.Errorf(codes.InvalidArgument, "submit: want at most %d bytes beside the vanilla proof, got more", maxFieldBytes)
		default:
			rest = append(rest, field...)
		}
		return nil
	})
	return rest, err
}

// eachField walks a message: field is a field with its tag, value the content of one of type bytes.
func eachField(message []byte, f func(number protowire.Number, kind protowire.Type, field, value []byte) error) error {
	for len(message) > 0 {
		number, kind, tag := protowire.ConsumeTag(message)
		if tag < 0 {
			return malformed(protowire.ParseError(tag))
		}
		n := protowire.ConsumeFieldValue(number, kind, message[tag:])
		if n < 0 {
			return malformed(protowire.ParseError(n))
		}
		var value []byte
		if kind == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(message[tag:])
		}
		if err := f(number, kind, message[:tag+n], value); err != nil {
			return err
		}
		message = message[tag+n:]
	}
	return nil
}

func malformed(err error) error {
	return rpcstatus.Errorf(codes.InvalidArgument, "request: want a protobuf message, got %v", err)
}

// inputMessage is an input as the codec receives it. What is wrong with it stays here, since an error of the codec would
// become INTERNAL whatever it is.
type inputMessage struct {
	input   *input
	wrapped bool
	err     error
}

// wire is the codec of the server: protobuf, and submissions that stay outside the Go heap.
type wire struct{ encoding.CodecV2 }

func newWire() wire { return wire{encoding.GetCodecV2("proto")} }

// Unmarshal reads one message of at most MaxMessageBytes.
func (w wire) Unmarshal(data mem.BufferSlice, v any) error {
	if m, ok := v.(*inputMessage); ok {
		m.err = m.input.read(data, m.wrapped)
		return nil
	}
	if data.Len() > maxFieldBytes {
		return fmt.Errorf("want at most %d bytes, got %d", maxFieldBytes, data.Len())
	}
	return w.CodecV2.Unmarshal(data, v)
}
