package grpc

import (
	"bytes"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	rpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	pb "github.com/sealc2/sealc2/bindings/grpc/cuzkv1"
)

// Goal: names, numbers and types are those of cuzk's wire format. Method: a list written down from its .proto, not made by
// protoc.
func TestWireFormat(t *testing.T) {
	want := map[string]string{
		"SubmitProofRequest": "request_id 1 string, proof_kind 2 enum, sector_size 3 uint64, registered_proof 4 uint64, priority 5 enum, " +
			"vanilla_proof 10 bytes, vanilla_proofs 11 []bytes, sector_number 20 uint64, miner_id 21 uint64, randomness 22 bytes, " +
			"partition_index 23 uint32, comm_r_old 30 bytes, comm_r_new 31 bytes, comm_d_new 32 bytes",
		"SubmitProofResponse": "job_id 1 string, queue_position 2 uint32, assigned_gpu 3 string",
		"AwaitProofRequest":   "job_id 1 string, timeout_ms 2 uint64",
		"AwaitProofResponse": "job_id 1 string, status 2 enum, proof 3 bytes, error_message 4 string, queue_wait_ms 10 uint64, " +
			"srs_load_ms 11 uint64, synthesis_ms 12 uint64, gpu_compute_ms 13 uint64, total_ms 14 uint64",
		"ProveRequest":        "submit 1 message",
		"ProveResponse":       "result 1 message",
		"CancelProofRequest":  "job_id 1 string",
		"CancelProofResponse": "was_running 1 bool",
		"GetStatusRequest":    "",
		"GetStatusResponse": "gpus 1 []message, loaded_srs 2 []message, queues 3 []message, total_proofs_completed 4 uint64, " +
			"total_proofs_failed 5 uint64, uptime_seconds 6 uint64, pinned_memory_bytes 7 uint64, pinned_memory_limit_bytes 8 uint64",
		"GPUStatus": "ordinal 1 uint32, name 2 string, vram_total_bytes 3 uint64, vram_free_bytes 4 uint64, current_job_id 5 string, " +
			"current_proof_kind 6 string",
		"SRSStatus":          "circuit_id 1 string, tier 2 enum, size_bytes 3 uint64, ref_count 4 uint32",
		"QueueStatus":        "proof_kind 1 string, pending 2 uint32, in_progress 3 uint32",
		"PreloadSrsRequest":  "circuit_id 1 string",
		"PreloadSrsResponse": "already_loaded 1 bool, load_time_ms 2 uint64",
		"EvictSrsRequest":    "circuit_id 1 string",
		"EvictSrsResponse":   "was_loaded 1 bool, freed_bytes 2 uint64",
		"GetMetricsRequest":  "",
		"GetMetricsResponse": "prometheus_text 1 string",
		"ProofKind":          "PROOF_KIND_UNSPECIFIED 0, POREP_SEAL_COMMIT 1, SNAP_DEALS_UPDATE 2, WINDOW_POST_PARTITION 3, WINNING_POST 4",
		"Priority":           "PRIORITY_UNSPECIFIED 0, LOW 1, NORMAL 2, HIGH 3, CRITICAL 4",
		"Status":             "UNKNOWN 0, COMPLETED 1, FAILED 2, CANCELLED 3, TIMEOUT 4",
		"Tier":               "HOT 0, WARM 1, COLD 2",
	}
	file := pb.File_proving_proto
	if file.Package() != "cuzk.v1" {
		t.Errorf("package %s", file.Package())
	}
	got := map[string]string{}
	enum := func(e protoreflect.EnumDescriptor) {
		var list []string
		for i := range e.Values().Len() {
			v := e.Values().Get(i)
			list = append(list, string(v.Name())+" "+itoa(v.Number()))
		}
		got[string(e.Name())] = strings.Join(list, ", ")
	}
	for i := range file.Enums().Len() {
		enum(file.Enums().Get(i))
	}
	for i := range file.Messages().Len() {
		m := file.Messages().Get(i)
		var list []string
		for k := range m.Fields().Len() {
			f := m.Fields().Get(k)
			kind := f.Kind().String()
			if f.IsList() {
				kind = "[]" + kind
			}
			list = append(list, string(f.Name())+" "+itoa(f.Number())+" "+kind)
		}
		got[string(m.Name())] = strings.Join(list, ", ")
		for k := range m.Enums().Len() {
			enum(m.Enums().Get(k))
		}
	}
	for name, text := range want {
		if got[name] != text {
			t.Errorf("%s: want %s\ngot %s", name, text, got[name])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d messages and enums, want %d", len(got), len(want))
	}
	s := (&Server{}).desc()
	var names []string
	for _, m := range s.Streams {
		names = append(names, m.StreamName)
	}
	methods := []string{"Prove", "SubmitProof", "AwaitProof", "CancelProof", "GetStatus", "GetMetrics", "PreloadSRS", "EvictSRS"}
	if s.ServiceName != "cuzk.v1.ProvingEngine" || !slices.Equal(names, methods) {
		t.Errorf("service %s with %v", s.ServiceName, names)
	}
}

func itoa[T ~int32](n T) string { return strconv.Itoa(int(n)) }

// buffers cuts bytes as a transport does.
func buffers(data []byte, step int) mem.BufferSlice {
	var s mem.BufferSlice
	for len(data) > 0 {
		n := min(step, len(data))
		s = append(s, mem.SliceBuffer(data[:n]))
		data = data[n:]
	}
	return s
}

// FuzzInput: a message is refused, or read as protobuf's own decoder reads it, and holds no memory once released.
func FuzzInput(f *testing.F) {
	whole, err := proto.Marshal(&pb.SubmitProofRequest{
		RequestId: "id", ProofKind: 1, Priority: 2, VanillaProof: []byte("abc"), VanillaProofs: [][]byte{{1}, {2}}, SectorNumber: 7, MinerId: 1000,
		Randomness: []byte{9}, CommROld: []byte{8},
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole, false)
	f.Add(protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), whole), true)
	// Two submissions in one are merged; fields of other types, groups, unknown ones.
	twice := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), []byte{0x52, 1, 'x', 0x52, 1, 'y'})
	f.Add(append(twice, twice...), true)
	f.Add([]byte{0x50, 1, 0x53, 0x54, 0x0a, 2, 0xff, 0xfe}, false)
	f.Add([]byte{0x52, 0xff, 0xff, 0xff, 0xff, 0x0f}, false)
	f.Add([]byte{}, true)
	f.Fuzz(func(t *testing.T, data []byte, wrapped bool) {
		in := &input{}
		err := in.read(buffers(data, 3), wrapped)
		if err != nil {
			if code := rpcstatus.Code(err); code != codes.InvalidArgument && code != codes.ResourceExhausted {
				t.Fatalf("code %v", code)
			}
			if in.arena != nil {
				t.Fatal("a refused message holds memory")
			}
		}
		var want pb.SubmitProofRequest
		var wantErr error
		submitted := true
		if wrapped {
			var outer pb.ProveRequest
			wantErr = proto.Unmarshal(data, &outer)
			submitted = outer.Submit != nil
			if submitted {
				want = pb.SubmitProofRequest{}
				proto.Merge(&want, outer.Submit)
			}
		} else {
			wantErr = proto.Unmarshal(data, &want)
		}
		if err == nil && wantErr == nil {
			if in.submitted != submitted || !bytes.Equal(in.vanilla, want.VanillaProof) {
				t.Fatalf("vanilla proof %x, want %x", in.vanilla, want.VanillaProof)
			}
			in.fields.ProtoReflect().SetUnknown(nil)
			want.ProtoReflect().SetUnknown(nil)
			want.VanillaProof, want.VanillaProofs = nil, nil
			in.fields.VanillaProof = nil
			if !proto.Equal(&in.fields, &want) {
				t.Fatalf("%v, want %v", &in.fields, &want)
			}
		}
		if wantErr == nil && err != nil && len(data) < maxFieldBytes {
			t.Fatalf("refused what protobuf reads: %v", err)
		}
		in.release()
		in.release()
		if in.arena != nil || in.vanilla != nil {
			t.Fatal("memory is held after release")
		}
	})
}

// Goal: only so many messages are received at a time; a sender that stalls holds up others of its gate, within bounds, and
// is not read on behind them. Method: raw HTTP/2 clients that send headers and no message.
func TestGate_Stalled(t *testing.T) {
	r := newRig(t, &stand{}, func(c *Config) { c.Waiting, c.Messages = 1, 1 }) // one message at a time, two on their way
	stalled := stall(t, strings.TrimPrefix(r.address, "unix://"))
	until(t, "one is being received", func() bool { return r.server.submissions.inside.Load() == 1 })
	waits := r.start(t.Context(), porep("waits", "abc"))
	until(t, "one waits", func() bool { return r.server.submissions.inside.Load() == 2 })
	_, err := r.prove(porep("too many", "abc"))
	wantCode(t, "too many", err, codes.ResourceExhausted, "on their way")
	r.status() // another gate
	stalled.Close()
	wantProof(t, next(t, waits), "abc")
}

// stall begins a Prove call and never sends its message.
func stall(t testing.TB, path string) io.Closer {
	t.Helper()
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	literal := func(name, value string) []byte { // HPACK, without indexing, no Huffman
		b := append([]byte{0, byte(len(name))}, name...)
		return append(append(b, byte(len(value))), value...)
	}
	block := bytes.Join([][]byte{
		literal(":method", "POST"), literal(":scheme", "http"), literal(":path", "/cuzk.v1.ProvingEngine/Prove"),
		literal(":authority", "x"), literal("content-type", "application/grpc"), literal("te", "trailers"),
	}, nil)
	out := []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	out = append(out, 0, 0, 0, 4, 0, 0, 0, 0, 0)                // SETTINGS
	out = append(out, 0, 0, byte(len(block)), 1, 4, 0, 0, 0, 1) // HEADERS, end of headers, stream 1
	if _, err := conn.Write(append(out, block...)); err != nil {
		t.Fatal(err)
	}
	return conn
}
