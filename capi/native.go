package main

// #include "bridge.h"
import "C"

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"unsafe"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
)

// The most CPU threads that a config may ask for: more than any machine has.
const maxThreads = 1 << 16

// The most workers that a config may ask for: more than any job has batches.
const maxWorkers = 1 << 16

// The most circuits that a call may prove: more than any proof has.
const maxCircuits = 1 << 20

//export sealc2go_open
func sealc2go_open(config C.sealc2_in_config, handle *C.sealc2_engine, failure *C.sealc2_error) C.int32_t {
	const op = "sealc2_open"
	return guard(op, failure, func() error {
		if err := null(op, "engine", handle == nil); err != nil {
			return err
		}
		*handle = 0
		opened := engine.Config{
			Threads: host.ThreadCap(environment(host.EnvThreads)), Device: environment(deviceEnv), QueueBytes: engine.DefaultQueue, GPULock: gpuLockFile(), Log: logLine,
		}
		if config != nil {
			given, err := readStruct[C.sealc2_config](op, "config", unsafe.Pointer(config), unsafe.Offsetof(config.device_bytes))
			if err != nil {
				return err
			}
			if given.threads > maxThreads {
				return status.New(status.Caller, op, "config.threads", fmt.Sprintf("at most %d", maxThreads),
					fmt.Sprint(uint64(given.threads)))
			}
			for _, v := range []struct {
				name  string
				bytes C.uint64_t
				to    *int64
			}{
				{"host_bytes", given.host_bytes, &opened.HostBytes}, {"device_bytes", given.device_bytes, &opened.DeviceBytes},
				{"queue_bytes", given.queue_bytes, &opened.QueueBytes},
			} {
				if v.bytes > 1<<62 {
					return status.New(status.Caller, op, "config."+v.name, "at most 2^62", fmt.Sprint(uint64(v.bytes)))
				}
				if v.bytes != 0 {
					*v.to = int64(v.bytes)
				}
			}
			if given.threads != 0 {
				opened.Threads = int(given.threads)
			}
			if given.device != nil {
				opened.Device = C.GoString(given.device)
			}
			for _, v := range []struct {
				name  string
				count C.uint32_t
				to    *int
			}{
				{"device_workers", given.device_workers, &opened.DeviceWorkers}, {"partition_workers", given.partition_workers, &opened.PartitionWorkers},
			} {
				if v.count > maxWorkers {
					return status.New(status.Caller, op, "config."+v.name, fmt.Sprintf("at most %d", maxWorkers), fmt.Sprint(uint32(v.count)))
				}
				*v.to = int(v.count)
			}
			opened.Policy = textArgument(given.policy)
		}
		s, err := newSession(opened)
		if err != nil {
			return err
		}
		*handle = C.sealc2_engine(addSession(s))
		return nil
	})
}

//export sealc2go_close
func sealc2go_close(handle C.sealc2_engine, failure *C.sealc2_error) C.int32_t {
	const op = "sealc2_close"
	return guard(op, failure, func() error {
		s, err := removeSession(op, uint64(handle))
		if err != nil {
			return err
		}
		return s.close(op)
	})
}

//export sealc2go_job_open
func sealc2go_job_open(handle *C.sealc2_job, failure *C.sealc2_error) C.int32_t {
	const op = "sealc2_job_open"
	return guard(op, failure, func() error {
		if err := null(op, "job", handle == nil); err != nil {
			return err
		}
		*handle = C.sealc2_job(addJob(nil))
		return nil
	})
}

//export sealc2go_cancel
func sealc2go_cancel(handle C.sealc2_job, failure *C.sealc2_error) C.int32_t {
	const op = "sealc2_cancel"
	return guard(op, failure, func() error {
		j, err := findJob(op, uint64(handle))
		if err != nil {
			return err
		}
		if j.submitted != nil {
			j.submitted.Cancel()
			return nil
		}
		j.cancel(status.New(status.Cancelled, "sealc2_cancel", "", "", "cancelled"))
		return nil
	})
}

//export sealc2go_job_close
func sealc2go_job_close(handle C.sealc2_job, failure *C.sealc2_error) C.int32_t {
	const op = "sealc2_job_close"
	return guard(op, failure, func() error { return removeJob(op, uint64(handle)) })
}

//export sealc2go_prove
func sealc2go_prove(handle C.sealc2_engine, request C.sealc2_in_prove, proof *C.uint8_t, proofCap C.size_t,
	proofLen *C.size_t, failure *C.sealc2_error) C.int32_t {
	const op = "sealc2_prove"
	return guard(op, failure, func() error {
		needed := lengthOf(proofLen)
		if err := checkStruct(op, "request", unsafe.Pointer(request), unsafe.Sizeof(*request)); err != nil {
			return err
		}
		out, err := borrow(op, "proof", proof, proofCap)
		if err != nil {
			return err
		}
		converted, err := proveRequest(op, request)
		if err != nil {
			return err
		}
		j, err := jobOf(op, uint64(request.job))
		if err != nil {
			return err
		}
		s, err := useSession(op, uint64(handle))
		if err != nil {
			return err
		}
		defer s.calls.Done()
		hear := callbacks(request)
		hear.capacity, hear.needed = uint64(proofCap), needed
		made, err := s.run(op, converted, j, hear)
		if err != nil {
			return err
		}
		copy(out, made)
		return nil
	})
}

// lengthOf says that there is no proof yet, and returns what sets its length, where the caller wants to know it.
func lengthOf(proofLen *C.size_t) (needed func(bytes uint64)) {
	needed = func(bytes uint64) {
		if proofLen != nil {
			*proofLen = C.size_t(bytes)
		}
	}
	needed(0)
	return needed
}

func proveRequest(op string, request C.sealc2_in_prove) (*engine.ProveRequest, error) {
	params, err := nativeParams(op, request.params_dir, request.dev_params)
	if err != nil {
		return nil, err
	}
	if request.circuit_proofs > 1 {
		return nil, status.New(status.Caller, op, "request.circuit_proofs", "0 or 1", fmt.Sprint(uint32(request.circuit_proofs)))
	}
	c1, err := borrow(op, "request.c1", (*C.uint8_t)(request.c1), request.c1_len)
	if err != nil {
		return nil, err
	}
	statement, err := borrow(op, "request.statement", (*C.uint8_t)(request.statement), request.statement_len)
	if err != nil {
		return nil, err
	}
	r, s, err := blindingScalars(op, request.r, request.s, request.scalar_count)
	if err != nil {
		return nil, err
	}
	return &engine.ProveRequest{
		C1:        c1,
		Statement: statement,
		IDs: &engine.SectorIDs{
			SectorID: uint64(request.sector_id),
			ProverID: *(*[32]byte)(unsafe.Pointer(&request.prover_id)),
		},
		Params:  params,
		OnChain: request.circuit_proofs == 0,
		R:       r,
		S:       s,
	}, nil
}

// blindingScalars reads r and s of a request; nil where it has none.
func blindingScalars(op string, r, s C.sealc2_in_bytes, count C.size_t) (outR, outS []fr.Element, err error) {
	if count > 1<<16 {
		return nil, nil, status.New(status.Caller, op, "request.scalar_count", "one a partition", fmt.Sprint(uint64(count)))
	}
	if (r == nil) != (s == nil) || (r == nil) != (count == 0) {
		return nil, nil, status.New(status.Caller, op, "request.r and s", "both with a scalar_count, or neither",
			fmt.Sprintf("r %s, s %s, scalar_count %d", given(r != nil), given(s != nil), uint64(count)))
	}
	if count == 0 {
		return nil, nil, nil
	}
	for _, v := range []struct {
		name string
		data C.sealc2_in_bytes
		to   *[]fr.Element
	}{{"request.r", r, &outR}, {"request.s", s, &outS}} {
		data, err := borrow(op, v.name, (*C.uint8_t)(v.data), count*32)
		if err != nil {
			return nil, nil, err
		}
		if *v.to, err = scalars(op, v.name, data); err != nil {
			return nil, nil, err
		}
	}
	return outR, outS, nil
}

func given(present bool) string {
	if present {
		return "given"
	}
	return "NULL"
}

func nativeParams(op string, dir C.sealc2_in_text, dev C.uint32_t) (engine.ParamSource, error) {
	if dev >= devParamsCount {
		return engine.ParamSource{}, status.New(status.Caller, op, "request.dev_params", "a sealc2_dev_params",
			fmt.Sprint(uint32(dev)))
	}
	text := ""
	if dir != nil {
		if text = C.GoString(dir); text == "" {
			return engine.ParamSource{}, status.New(status.Caller, op, "request.params_dir", "a folder, or NULL", "empty text")
		}
	}
	return paramSource(environment, text, uint32(dev)), nil
}

// callbacks wraps the caller's functions. Their arguments live in C memory during the call only.
func callbacks(request C.sealc2_in_prove) (hear listener) {
	user := request.user
	hear.progress = progressOf(request.progress, user)
	if fn := request.partition; fn != nil {
		hear.partition = func(index int, proof [proofBytes]byte) bool {
			return C.sealc2_call_partition(fn, user, C.uint32_t(index), (C.sealc2_in_bytes)(unsafe.Pointer(&proof))) != 0
		}
	}
	return hear
}

// progressOf wraps one callback; nil for none.
func progressOf(fn C.sealc2_progress_fn, user unsafe.Pointer) func(engine.Progress) bool {
	if fn == nil {
		return nil
	}
	return func(p engine.Progress) bool {
		stage := C.CString(p.Stage)
		defer C.free(unsafe.Pointer(stage))
		return C.sealc2_call_progress(fn, user, C.int32_t(p.Partition), C.int32_t(p.Partitions), stage,
			C.uint64_t(p.Start.Nanoseconds()), C.uint64_t(p.Elapsed.Nanoseconds()), C.double(p.Done)) != 0
	}
}

//export sealc2go_prove_assignments
func sealc2go_prove_assignments(handle C.sealc2_engine, request C.sealc2_in_assignments, proof *C.uint8_t, proofCap C.size_t,
	proofLen *C.size_t, failure *C.sealc2_error) C.int32_t {
	const op = "sealc2_prove_assignments"
	return guard(op, failure, func() error {
		needed := lengthOf(proofLen)
		if err := checkStruct(op, "request", unsafe.Pointer(request), unsafe.Sizeof(*request)); err != nil {
			return err
		}
		out, err := borrow(op, "proof", proof, proofCap)
		if err != nil {
			return err
		}
		if request.count > maxCircuits {
			return status.New(status.Caller, op, "request.count", fmt.Sprintf("at most %d circuits", maxCircuits), fmt.Sprint(uint64(request.count)))
		}
		if need := uint64(request.count) * proofBytes; need > uint64(proofCap) {
			needed(need)
			return tooSmall(op, need, uint64(proofCap))
		}
		source, err := nativeParams(op, request.params, request.dev_params)
		if err != nil {
			return err
		}
		if request.params == nil {
			return null(op, "request.params", true)
		}
		converted := &engine.AssignmentRequest{AllowDev: source.AllowDev}
		if converted.Assignments, err = assignmentsOf(op, "request.circuits", request.circuits, request.count); err != nil {
			return err
		}
		if converted.R, converted.S, err = blindingScalars(op, request.r, request.s, request.scalar_count); err != nil {
			return err
		}
		j, err := jobOf(op, uint64(request.job))
		if err != nil {
			return err
		}
		s, err := useSession(op, uint64(handle))
		if err != nil {
			return err
		}
		defer s.calls.Done()
		hear := listener{progress: progressOf(request.progress, request.user), capacity: uint64(proofCap), needed: needed}
		made, err := s.listen(op, j, hear, func(ctx context.Context, progress func(engine.Progress), _ func(int, [proofBytes]byte)) (*engine.ProveResult, error) {
			srs, err := s.engine.OpenSRS(ctx, source)
			if err != nil {
				return nil, err
			}
			defer srs.Close()
			converted.SRS, converted.Progress = srs, progress
			return s.engine.ProveAssignments(ctx, converted)
		})
		if err != nil {
			return err
		}
		copy(out, made)
		return nil
	})
}

//export sealc2go_read_c1
func sealc2go_read_c1(handle C.sealc2_engine, request C.sealc2_in_c1, info *C.sealc2_c1_info, inputs *C.uint8_t, inputsCap C.size_t,
	failure *C.sealc2_error) C.int32_t {
	const op = "sealc2_read_c1"
	return guard(op, failure, func() error {
		if err := checkStruct(op, "request", unsafe.Pointer(request), unsafe.Sizeof(*request)); err != nil {
			return err
		}
		if err := checkStruct(op, "info", unsafe.Pointer(info), unsafe.Sizeof(*info)); err != nil {
			return err
		}
		c1, err := borrow(op, "request.c1", (*C.uint8_t)(request.c1), request.c1_len)
		if err != nil {
			return err
		}
		statement, err := borrow(op, "request.statement", (*C.uint8_t)(request.statement), request.statement_len)
		if err != nil {
			return err
		}
		out, err := borrow(op, "inputs", inputs, inputsCap)
		if err != nil {
			return err
		}
		var ids *engine.SectorIDs
		if request.prover_id != nil {
			ids = &engine.SectorIDs{SectorID: uint64(request.sector_id), ProverID: *(*[32]byte)(unsafe.Pointer(request.prover_id))}
		}
		s, err := useSession(op, uint64(handle))
		if err != nil {
			return err
		}
		defer s.calls.Done()
		read, err := s.engine.ReadC1(s.ctx, &engine.ReadC1Request{C1: c1, Statement: statement, IDs: ids})
		if err != nil {
			return err
		}
		made := C.sealc2_c1_info{
			size: info.size, registered_proof: C.int32_t(read.RegisteredProof), partitions: C.uint32_t(len(read.Inputs)),
			challenges: C.uint32_t(read.Challenges), inputs: C.uint32_t(len(read.Inputs[0])),
		}
		text := unsafe.Slice((*byte)(unsafe.Pointer(&made.shape)), len(made.shape))
		copy(text[:len(text)-1], read.Shape)
		for _, v := range []struct {
			to   *[32]C.uint8_t
			from *[32]byte
		}{
			{&made.porep_id, &read.PorepID}, {&made.replica_id, &read.ReplicaID}, {&made.comm_r, &read.CommR},
			{&made.comm_d, &read.CommD}, {&made.ticket, &read.Ticket}, {&made.seed, &read.Seed},
		} {
			*(*[32]byte)(unsafe.Pointer(v.to)) = *v.from
		}
		*info = made
		if need := len(read.Inputs) * len(read.Inputs[0]) * fr.Bytes; len(out) >= need {
			for _, partition := range read.Inputs {
				for i := range partition {
					canonical := partition[i].Bytes()
					slices.Reverse(canonical[:])
					out = out[copy(out, canonical[:]):]
				}
			}
		}
		return nil
	})
}

//export sealc2go_circuit_digest
func sealc2go_circuit_digest(handle C.sealc2_engine, shape C.sealc2_in_text, jobHandle C.sealc2_job, out *C.sealc2_circuit, chunks *C.uint8_t,
	chunksCap C.size_t, failure *C.sealc2_error) C.int32_t {
	const op = "sealc2_circuit_digest"
	return guard(op, failure, func() error {
		if err := null(op, "shape", shape == nil); err != nil {
			return err
		}
		if err := checkStruct(op, "circuit", unsafe.Pointer(out), unsafe.Sizeof(*out)); err != nil {
			return err
		}
		list, err := borrow(op, "chunks", chunks, chunksCap)
		if err != nil {
			return err
		}
		j, err := jobOf(op, uint64(jobHandle))
		if err != nil {
			return err
		}
		s, err := useSession(op, uint64(handle))
		if err != nil {
			return err
		}
		defer s.calls.Done()
		ctx, cancel := s.under(j)
		defer cancel(nil)
		d, err := s.engine.CircuitDigest(ctx, C.GoString(shape))
		if err != nil {
			return ended(ctx, err)
		}
		made := C.sealc2_circuit{
			size: out.size, inputs: C.uint64_t(d.Inputs), aux: C.uint64_t(d.Aux), constraints: C.uint64_t(d.Constraints),
			rows: C.uint64_t(d.WithAppended), domain: C.uint64_t(d.DomainSize),
			nonzero:   [3]C.uint64_t{C.uint64_t(d.NonZero.A), C.uint64_t(d.NonZero.B), C.uint64_t(d.NonZero.C)},
			max_terms: [3]C.uint64_t{C.uint64_t(d.MaxTerms.A), C.uint64_t(d.MaxTerms.B), C.uint64_t(d.MaxTerms.C)},
			a_aux:     C.uint64_t(d.Density.AAux), b_input: C.uint64_t(d.Density.BInput), b_aux: C.uint64_t(d.Density.BAux),
			sha256: C.uint64_t(d.Gadgets.Sha256), chunk_rows: C.uint64_t(d.ChunkSize), chunks: C.uint64_t(len(d.Chunks)),
		}
		for _, n := range d.Gadgets.PoseidonByArity {
			made.poseidon += C.uint64_t(n)
		}
		for _, v := range []struct {
			to   *[32]C.uint8_t
			text string
		}{
			{&made.digest, d.Total}, {&made.a_aux_digest, d.Density.AAuxHash}, {&made.b_input_digest, d.Density.BInputHash},
			{&made.b_aux_digest, d.Density.BAuxHash},
		} {
			unhex((*[32]byte)(unsafe.Pointer(v.to))[:], v.text)
		}
		if need := len(d.Chunks) * 32; len(list) >= need {
			for i, text := range d.Chunks {
				unhex(list[32*i:32*i+32], text)
			}
		}
		*out = made
		return nil
	})
}

// unhex writes a digest of the library's own.
func unhex(to []byte, text string) {
	status.Check(len(text) == 2*len(to), "capi.unhex", "a digest to fit")
	_, err := hex.Decode(to, []byte(text))
	status.Check(err == nil, "capi.unhex", "a digest to be hex")
}

//export sealc2go_verify
func sealc2go_verify(handle C.sealc2_engine, request C.sealc2_in_verify, verified *C.int32_t, failure *C.sealc2_error) C.int32_t {
	const op = "sealc2_verify"
	return guard(op, failure, func() error {
		if err := null(op, "verified", verified == nil); err != nil {
			return err
		}
		*verified = 0
		if err := checkStruct(op, "request", unsafe.Pointer(request), unsafe.Sizeof(*request)); err != nil {
			return err
		}
		params, err := nativeParams(op, request.params_dir, request.dev_params)
		if err != nil {
			return err
		}
		proof, err := borrow(op, "request.proof", (*C.uint8_t)(request.proof), request.proof_len)
		if err != nil {
			return err
		}
		s, err := useSession(op, uint64(handle))
		if err != nil {
			return err
		}
		defer s.calls.Done()
		holds, err := s.engine.Verify(s.ctx, &engine.VerifyRequest{
			RegisteredProof: int32(request.registered_proof),
			CommR:           *(*[32]byte)(unsafe.Pointer(&request.comm_r)),
			CommD:           *(*[32]byte)(unsafe.Pointer(&request.comm_d)),
			IDs: engine.SectorIDs{
				SectorID: uint64(request.sector_id),
				ProverID: *(*[32]byte)(unsafe.Pointer(&request.prover_id)),
			},
			Ticket: *(*[32]byte)(unsafe.Pointer(&request.ticket)),
			Seed:   *(*[32]byte)(unsafe.Pointer(&request.seed)),
			Proof:  proof,
			Params: params,
		})
		if err == nil && holds {
			*verified = 1
		}
		return err
	})
}

//export sealc2go_last_stages
func sealc2go_last_stages(handle C.sealc2_engine, stages *C.sealc2_stage, stageSize, capacity C.size_t, count *C.size_t,
	failure *C.sealc2_error) C.int32_t {
	const op = "sealc2_last_stages"
	return guard(op, failure, func() error {
		if err := null(op, "count", count == nil); err != nil {
			return err
		}
		*count = 0
		if err := null(op, "stages", stages == nil && capacity > 0); err != nil {
			return err
		}
		const want = unsafe.Sizeof(*stages)
		if uint64(stageSize) != uint64(want) {
			return status.New(status.Caller, op, "stage_size", fmt.Sprintf("sizeof = %d", want), fmt.Sprint(uint64(stageSize)))
		}
		s, err := useSession(op, uint64(handle))
		if err != nil {
			return err
		}
		defer s.calls.Done()
		times := s.lastStages()
		*count = C.size_t(len(times))
		room := min(uint64(capacity), uint64(len(times)))
		for i, t := range times[:room] {
			out := (*C.sealc2_stage)(unsafe.Add(unsafe.Pointer(stages), uintptr(i)*want))
			*out = C.sealc2_stage{
				partition:  C.int64_t(t.Partition),
				start_ns:   C.uint64_t(t.Start.Nanoseconds()),
				elapsed_ns: C.uint64_t(t.Elapsed.Nanoseconds()),
			}
			name := unsafe.Slice((*byte)(unsafe.Pointer(&out.name)), len(out.name))
			copy(name[:len(name)-1], t.Stage)
		}
		return nil
	})
}

//export sealc2go_shutdown
func sealc2go_shutdown(failure *C.sealc2_error) C.int32_t {
	const op = "sealc2_shutdown"
	return guard(op, failure, func() error {
		forgetRecent()
		return closeAll(op)
	})
}
