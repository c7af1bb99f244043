// Command ffihost meets libsealc2.so as filecoin-ffi's Go code meets filcrypto: the same C types, arguments by
// value, and each result freed by the destructor that its C type has there, whichever function made it.
//
//	ffihost LOG CACHE-FOLDER C1                        calls that need no parameters
//	ffihost LOG CACHE-FOLDER C1 prove COMM_R COMM_D TICKET SEED    and a proof, printed in hex, then verified
package main

// #include "sealc2_ffi.h"
import "C"

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unsafe"
)

// The types that filecoin-ffi gives C's.
type (
	sliceRefUint8   C.slice_ref_uint8_t
	sliceBoxedUint8 C.struct_slice_boxed_uint8
	byteArray32     C.uint8_32_array_t
	sealProof       C.RegisteredSealProof_t
	resultBytes     C.Result_slice_boxed_uint8_t
	resultBool      C.Result_bool_t
	resultVoid      C.Result_void_t
	resultList      C.Result_slice_boxed_slice_boxed_uint8_t
)

func (b sliceBoxedUint8) bytes() []byte {
	if b.ptr == nil {
		return nil
	}
	return append([]byte{}, unsafe.Slice((*byte)(b.ptr), int(b.len))...)
}

// fail is a result's error as Go code takes it: any status but 0, and the whole text.
func fail(code C.FCPResponseStatus_t, text C.slice_boxed_uint8_t) error {
	if code == 0 {
		return nil
	}
	return fmt.Errorf("%s", sliceBoxedUint8(text).bytes())
}

func (r *resultBytes) take() ([]byte, error) {
	defer C.destroy_seal_pre_commit_phase1_response((*C.Result_slice_boxed_uint8_t)(r))
	return sliceBoxedUint8(r.value).bytes(), fail(r.status_code, r.error_msg)
}

func (r *resultBool) take() (bool, error) {
	defer C.destroy_verify_seal_response((*C.Result_bool_t)(r))
	return bool(r.value), fail(r.status_code, r.error_msg)
}

func (r *resultVoid) take() error {
	defer C.destroy_unseal_range_response((*C.Result_void_t)(r))
	return fail(r.status_code, r.error_msg)
}

func (r *resultList) take() ([][]byte, error) {
	defer C.destroy_generate_empty_sector_update_partition_proof_response((*C.Result_slice_boxed_slice_boxed_uint8_t)(r))
	if r.value.ptr == nil {
		return nil, fmt.Errorf("a list without a pointer")
	}
	list := [][]byte{}
	for _, name := range unsafe.Slice((*sliceBoxedUint8)(unsafe.Pointer(r.value.ptr)), int(r.value.len)) {
		list = append(list, name.bytes())
	}
	return list, fail(r.status_code, r.error_msg)
}

// lend hands Go memory over for a call, as filecoin-ffi does.
func lend(b []byte) sliceRefUint8 {
	if len(b) == 0 {
		return sliceRefUint8{}
	}
	return sliceRefUint8{ptr: (*C.uint8_t)(unsafe.Pointer(&b[0])), len: C.size_t(len(b))}
}

func array(b []byte) *byteArray32 {
	out := &byteArray32{}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&out.idx)), 32), b)
	return out
}

func commitPhase2(c1 []byte, sector uint64, prover *byteArray32) ([]byte, error) {
	return (*resultBytes)(C.seal_commit_phase2(C.slice_ref_uint8_t(lend(c1)), C.uint64_t(sector), (*C.uint8_32_array_t)(prover))).take()
}

func circuitProofs(c1 []byte, sector uint64) ([]byte, error) {
	return (*resultBytes)(C.seal_commit_phase2_circuit_proofs(C.slice_ref_uint8_t(lend(c1)), C.uint64_t(sector))).take()
}

func verifySeal(proof sealProof, commR, commD, prover, ticket, seed *byteArray32, sector uint64, bytes []byte) (bool, error) {
	return (*resultBool)(C.verify_seal(C.RegisteredSealProof_t(proof), (*C.uint8_32_array_t)(commR), (*C.uint8_32_array_t)(commD),
		(*C.uint8_32_array_t)(prover), (*C.uint8_32_array_t)(ticket), (*C.uint8_32_array_t)(seed), C.uint64_t(sector),
		C.slice_ref_uint8_t(lend(bytes)))).take()
}

func clearCache(dir string) error {
	return (*resultVoid)(C.clear_cache(C.slice_ref_uint8_t(lend([]byte(dir))))).take()
}

func initLogFd(fd int32) error { return (*resultVoid)(C.init_log_fd(C.int32_t(fd))).take() }

func gpuDevices() ([][]byte, error) { return (*resultList)(C.get_gpu_devices()).take() }

func want(ok bool, format string, args ...any) {
	if !ok {
		fmt.Fprintf(os.Stderr, format+"\n", args...)
		os.Exit(1)
	}
}

func says(err error, text string) bool { return err != nil && strings.Contains(err.Error(), text) }

func main() {
	log, err := os.Create(os.Args[1])
	want(err == nil, "%v", err)
	err = initLogFd(9999)
	want(says(err, "log_fd 9999"), "a descriptor that is not open: %v", err)
	err = initLogFd(int32(log.Fd()))
	want(err == nil, "init_log_fd: %v", err)
	err = initLogFd(2)
	want(says(err, "logger"), "a second init_log_fd: %v", err)

	devices, err := gpuDevices()
	want(err == nil && devices != nil && len(devices) == 0, "devices %q, %v", devices, err)

	cache := os.Args[2]
	for _, name := range []string{"sc-02-data-tree-d.dat", "sc-02-data-tree-c-3.dat", "sc-02-data-layer-2.dat", "p_aux"} {
		want(os.WriteFile(filepath.Join(cache, name), nil, 0o600) == nil, "no file %s", name)
	}
	err = clearCache(cache)
	left, listing := os.ReadDir(cache)
	want(err == nil && listing == nil && len(left) == 1 && left[0].Name() == "p_aux", "clear_cache: %v, left %v", err, left)
	err = clearCache("")
	want(says(err, "clear_cache") || says(err, "ClearCache"), "clear_cache of nothing: %v", err)

	c1, err := os.ReadFile(os.Args[3])
	want(err == nil, "%v", err)
	prover := array([]byte{0xe8, 0x07})
	_, err = circuitProofs(nil, 1)
	want(says(err, "C1"), "no C1: %v", err)
	_, err = circuitProofs(c1[:len(c1)/2], 1)
	want(says(err, "c1.Parse"), "half a C1: %v", err)
	_, err = commitPhase2(c1, 2, prover)
	want(says(err, "replica_id"), "another sector: %v", err)
	_, err = verifySeal(99, array(nil), array(nil), prover, array(nil), array(nil), 1, nil)
	want(err != nil, "an unknown proof type is accepted")
	if len(os.Args) < 5 {
		return
	}

	proof, err := circuitProofs(c1, 1)
	want(err == nil && len(proof) == 192, "circuit proofs: %v", err)
	fmt.Println(hex.EncodeToString(proof))
	var hashes [4]*byteArray32
	for i := range hashes {
		raw, err := hex.DecodeString(os.Args[5+i])
		want(err == nil && len(raw) == 32, "hash %d: %v", i, err)
		hashes[i] = array(raw)
	}
	ok, err := verifySeal(C.REGISTERED_SEAL_PROOF_STACKED_DRG2_KI_B_V1_1, hashes[0], hashes[1], prover, hashes[2], hashes[3], 1, proof)
	want(ok && err == nil, "verify_seal: %v, %v", ok, err)
	info, err := log.Stat()
	want(err == nil && info.Size() > 0, "nothing was logged: %v", err)
}
