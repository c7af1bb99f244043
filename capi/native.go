package main

// #include "bridge.h"
import "C"

import (
	"fmt"
	"unsafe"

	"github.com/sealc2/sealc2/engine"
	"github.com/sealc2/sealc2/engine/status"
)

// The most CPU threads that a config may ask for: more than any machine has.
const maxThreads = 1 << 16

//export sealc2go_open
func sealc2go_open(config C.sealc2_in_config, handle *C.sealc2_engine, failure *C.sealc2_error) C.int32_t {
	const op = "sealc2_open"
	return guard(op, failure, func() error {
		if err := null(op, "engine", handle == nil); err != nil {
			return err
		}
		*handle = 0
		opened := engine.Config{Threads: threadsOf(environment), Log: logLine}
		if config != nil {
			if err := checkStruct(op, "config", unsafe.Pointer(config), unsafe.Sizeof(*config)); err != nil {
				return err
			}
			if config.threads > maxThreads {
				return status.New(status.Caller, op, "config.threads", fmt.Sprintf("at most %d", maxThreads),
					fmt.Sprint(uint64(config.threads)))
			}
			if config.host_bytes > 1<<62 {
				return status.New(status.Caller, op, "config.host_bytes", "at most 2^62",
					fmt.Sprint(uint64(config.host_bytes)))
			}
			if config.threads != 0 {
				opened.Threads = int(config.threads)
			}
			opened.HostBytes = int64(config.host_bytes)
			if config.device != nil {
				opened.Device = C.GoString(config.device)
			}
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
		*handle = C.sealc2_job(addJob())
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
		j.cancel(status.New(status.Cancelled, "sealc2_prove", "", "", "cancelled by sealc2_cancel"))
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
		needed := func(bytes uint64) {
			if proofLen != nil {
				*proofLen = C.size_t(bytes)
			}
		}
		needed(0)
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
		var j *job
		if request.job != 0 {
			if j, err = findJob(op, uint64(request.job)); err != nil {
				return err
			}
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
	if request.scalar_count > 1<<16 {
		return nil, status.New(status.Caller, op, "request.scalar_count", "one a partition", fmt.Sprint(uint64(request.scalar_count)))
	}
	if (request.r == nil) != (request.s == nil) || (request.r == nil) != (request.scalar_count == 0) {
		return nil, status.New(status.Caller, op, "request.r and s", "both with a scalar_count, or neither",
			fmt.Sprintf("r %s, s %s, scalar_count %d", given(request.r != nil), given(request.s != nil), uint64(request.scalar_count)))
	}
	rBytes, err := borrow(op, "request.r", (*C.uint8_t)(request.r), request.scalar_count*32)
	if err != nil {
		return nil, err
	}
	sBytes, err := borrow(op, "request.s", (*C.uint8_t)(request.s), request.scalar_count*32)
	if err != nil {
		return nil, err
	}
	out := &engine.ProveRequest{
		C1:        c1,
		Statement: statement,
		IDs: &engine.SectorIDs{
			SectorID: uint64(request.sector_id),
			ProverID: *(*[32]byte)(unsafe.Pointer(&request.prover_id)),
		},
		Params:  params,
		OnChain: request.circuit_proofs == 0,
	}
	if request.scalar_count > 0 {
		if out.R, err = scalars(op, "request.r", rBytes); err != nil {
			return nil, err
		}
		if out.S, err = scalars(op, "request.s", sBytes); err != nil {
			return nil, err
		}
	}
	return out, nil
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
	if fn := request.progress; fn != nil {
		hear.progress = func(p engine.Progress) bool {
			stage := C.CString(p.Stage)
			defer C.free(unsafe.Pointer(stage))
			return C.sealc2_call_progress(fn, user, C.int32_t(p.Partition), C.int32_t(p.Partitions), stage,
				C.uint64_t(p.Elapsed.Nanoseconds()), C.double(p.Done)) != 0
		}
	}
	if fn := request.partition; fn != nil {
		hear.partition = func(index int, proof [proofBytes]byte) bool {
			return C.sealc2_call_partition(fn, user, C.uint32_t(index), (C.sealc2_in_bytes)(unsafe.Pointer(&proof))) != 0
		}
	}
	return hear
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
