package main

// #include "bridge.h"
import "C"

import (
	"math"
	"unsafe"

	"github.com/sealc2/sealc2/engine"
	"github.com/sealc2/sealc2/engine/status"
)

//export sealc2go_seal_commit_phase2
func sealc2go_seal_commit_phase2(c1 C.sealc2_in_bytes, c1Len C.size_t, sectorID C.uint64_t, proverID C.sealc2_in_array32,
	result *C.Result_slice_boxed_uint8_t) {
	const op = "seal_commit_phase2"
	logging.started.Store(true)
	err := protect(op, func() error {
		bytes, err := borrow(op, "seal_commit_phase1_output", (*C.uint8_t)(c1), c1Len)
		if err != nil {
			return err
		}
		prover, err := array32(op, "prover_id", proverID)
		if err != nil {
			return err
		}
		s, err := useShared()
		if err != nil {
			return err
		}
		defer s.calls.Done()
		proof, err := s.run(op, &engine.ProveRequest{
			C1:      bytes,
			IDs:     &engine.SectorIDs{SectorID: uint64(sectorID), ProverID: prover},
			Params:  paramSource(environment, "", devParamsEnv),
			OnChain: true,
		}, nil, listener{capacity: math.MaxUint64, needed: func(uint64) {}})
		if err != nil {
			return err
		}
		return putBytes(op, proof, result)
	})
	if err != nil {
		text, length := cText(err)
		C.sealc2_fail_bytes(result, text, length)
	}
}

//export sealc2go_circuit_proofs
func sealc2go_circuit_proofs(c1 C.sealc2_in_bytes, c1Len C.size_t, result *C.Result_slice_boxed_uint8_t) {
	const op = "seal_commit_phase2_circuit_proofs"
	logging.started.Store(true)
	err := protect(op, func() error {
		bytes, err := borrow(op, "seal_commit_phase1_output", (*C.uint8_t)(c1), c1Len)
		if err != nil {
			return err
		}
		s, err := useShared()
		if err != nil {
			return err
		}
		defer s.calls.Done()
		proof, err := s.run(op, &engine.ProveRequest{
			C1:     bytes,
			Params: paramSource(environment, "", devParamsEnv),
		}, nil, listener{capacity: math.MaxUint64, needed: func(uint64) {}})
		if err != nil {
			return err
		}
		return putBytes(op, proof, result)
	})
	if err != nil {
		text, length := cText(err)
		C.sealc2_fail_bytes(result, text, length)
	}
}

// putBytes copies a result's value into a block of malloc.
func putBytes(op string, value []byte, result *C.Result_slice_boxed_uint8_t) error {
	if C.sealc2_put_boxed(&result.value, (C.sealc2_in_bytes)(unsafe.Pointer(unsafe.SliceData(value))), C.size_t(len(value))) != 0 {
		return status.New(status.NoMemory, op, "value", "memory from malloc", "none")
	}
	return nil
}

//export sealc2go_verify_seal
func sealc2go_verify_seal(registeredProof C.int32_t, commR, commD, proverID, ticket, seed C.sealc2_in_array32, sectorID C.uint64_t,
	proof C.sealc2_in_bytes, proofLen C.size_t, result *C.Result_bool_t) {
	const op = "verify_seal"
	logging.started.Store(true)
	err := protect(op, func() error {
		request := &engine.VerifyRequest{
			RegisteredProof: int32(registeredProof),
			IDs:             engine.SectorIDs{SectorID: uint64(sectorID)},
			Params:          paramSource(environment, "", devParamsEnv),
		}
		for _, hash := range []struct {
			name string
			from C.sealc2_in_array32
			to   *[32]byte
		}{
			{"comm_r", commR, &request.CommR}, {"comm_d", commD, &request.CommD},
			{"prover_id", proverID, &request.IDs.ProverID}, {"ticket", ticket, &request.Ticket}, {"seed", seed, &request.Seed},
		} {
			var err error
			if *hash.to, err = array32(op, hash.name, hash.from); err != nil {
				return err
			}
		}
		var err error
		if request.Proof, err = borrow(op, "proof", (*C.uint8_t)(proof), proofLen); err != nil {
			return err
		}
		s, err := useShared()
		if err != nil {
			return err
		}
		defer s.calls.Done()
		holds, err := s.engine.Verify(s.ctx, request)
		if err != nil {
			return err
		}
		result.value = C.bool(holds)
		return nil
	})
	if err != nil {
		text, length := cText(err)
		C.sealc2_fail_bool(result, text, length)
	}
}

//export sealc2go_gpu_devices
func sealc2go_gpu_devices(result *C.Result_slice_boxed_slice_boxed_uint8_t) {
	const op = "get_gpu_devices"
	logging.started.Store(true)
	err := protect(op, func() error {
		names := engine.GPUs()
		short := status.New(status.NoMemory, op, "value", "memory from malloc", "none")
		if C.sealc2_put_list(result, C.size_t(len(names))) != 0 {
			return short
		}
		for i, name := range names {
			if C.sealc2_put_item(result, C.size_t(i), (C.sealc2_in_bytes)(unsafe.Pointer(unsafe.StringData(name))), C.size_t(len(name))) != 0 {
				return short
			}
		}
		return nil
	})
	if err != nil {
		text, length := cText(err)
		C.sealc2_fail_list(result, text, length)
	}
}

//export sealc2go_clear_cache
func sealc2go_clear_cache(dir C.sealc2_in_bytes, dirLen C.size_t, result *C.Result_void_t) {
	const op = "clear_cache"
	logging.started.Store(true)
	err := protect(op, func() error {
		path, err := borrow(op, "cache_dir_path", (*C.uint8_t)(dir), dirLen)
		if err != nil {
			return err
		}
		return engine.ClearCache(string(path))
	})
	failVoid(err, result)
}

//export sealc2go_init_log_fd
func sealc2go_init_log_fd(fd C.int32_t, result *C.Result_void_t) {
	const op = "init_log_fd"
	failVoid(protect(op, func() error { return logTo(op, int(fd)) }), result)
}

func failVoid(err error, result *C.Result_void_t) {
	if err != nil {
		text, length := cText(err)
		C.sealc2_fail_void(result, text, length)
	}
}
