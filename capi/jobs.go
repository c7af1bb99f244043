package main

// #include "bridge.h"
import "C"

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"time"
	"unsafe"

	"github.com/sealc2/sealc2/engine"
	"github.com/sealc2/sealc2/engine/status"
)

//export sealc2go_submit
func sealc2go_submit(handle C.sealc2_engine, request C.sealc2_in_prove, options C.sealc2_in_submit, job *C.sealc2_job,
	failure *C.sealc2_error) C.int32_t {
	const op = "sealc2_submit"
	return guard(op, failure, func() error {
		if err := null(op, "job", job == nil); err != nil {
			return err
		}
		*job = 0
		if err := checkStruct(op, "request", unsafe.Pointer(request), unsafe.Sizeof(*request)); err != nil {
			return err
		}
		if request.job != 0 {
			return status.New(status.Caller, op, "request.job", "0: a submitted job has a handle of its own", fmt.Sprint(uint64(request.job)))
		}
		if request.progress != nil || request.partition != nil {
			return status.New(status.Caller, op, "request.progress and partition", "NULL: ask with sealc2_job_progress", "a callback")
		}
		converted, err := proveRequest(op, request)
		if err != nil {
			return err
		}
		var given C.sealc2_submit_options
		if options != nil {
			if given, err = readStruct[C.sealc2_submit_options](op, "options", unsafe.Pointer(options), unsafe.Offsetof(given.call)); err != nil {
				return err
			}
		}
		if given.replace > 1 {
			return status.New(status.Caller, op, "options.replace", "0 or 1", fmt.Sprint(uint32(given.replace)))
		}
		if given.priority >= C.uint32_t(engine.ClassCount) {
			return status.New(status.Caller, op, "options.priority", "a sealc2_class", fmt.Sprint(uint32(given.priority)))
		}
		how := engine.SubmitOptions{Class: engine.Class(given.priority), Replace: given.replace == 1}
		if given.id != nil {
			how.ID = engine.JobID(C.GoString(given.id))
		}
		if given.deadline_ms != 0 {
			how.Deadline = time.Now().Add(milliseconds(uint64(given.deadline_ms)))
		}
		call, err := jobOf(op, uint64(given.call))
		if err != nil {
			return err
		}
		s, err := useSession(op, uint64(handle))
		if err != nil {
			return err
		}
		defer s.calls.Done()
		ctx, cancel := s.under(call)
		defer cancel(nil)
		if call != nil && call.ctx.Err() != nil {
			return context.Cause(call.ctx)
		}
		if given.room_ms != math.MaxUint64 {
			how.Room = max(milliseconds(uint64(given.room_ms)), time.Millisecond) // also room that is there takes a moment
		}
		submitted, err := s.engine.Submit(ctx, converted, how)
		if err != nil {
			return ended(ctx, err)
		}
		*job = C.sealc2_job(addJob(submitted))
		return nil
	})
}

// milliseconds is a time from C; what is longer than Go can say is as good as for ever.
func milliseconds(ms uint64) time.Duration {
	return time.Duration(min(ms, math.MaxInt64/uint64(time.Millisecond))) * time.Millisecond
}

// waitFor is a context that ends after so many milliseconds; SEALC2_FOREVER: never.
func waitFor(ms uint64) (context.Context, context.CancelFunc) {
	if ms == math.MaxUint64 {
		return context.WithCancel(context.Background())
	}
	return context.WithTimeout(context.Background(), milliseconds(ms))
}

//export sealc2go_wait
func sealc2go_wait(handle C.sealc2_job, timeout C.uint64_t, proof *C.uint8_t, proofCap C.size_t, proofLen *C.size_t,
	failure *C.sealc2_error) C.int32_t {
	const op = "sealc2_wait"
	return guard(op, failure, func() error {
		needed := lengthOf(proofLen)
		out, err := borrow(op, "proof", proof, proofCap)
		if err != nil {
			return err
		}
		j, err := submittedOf(op, uint64(handle))
		if err != nil {
			return err
		}
		ctx, cancel := waitFor(uint64(timeout))
		defer cancel()
		result, err := j.Wait(ctx)
		if err != nil {
			return err
		}
		need := uint64(len(result.Proof))
		needed(need)
		if need > uint64(proofCap) {
			return tooSmall(op, need, uint64(proofCap))
		}
		copy(out, result.Proof)
		return nil
	})
}

//export sealc2go_job_progress
func sealc2go_job_progress(handle C.sealc2_job, info *C.sealc2_job_info, failure *C.sealc2_error) C.int32_t {
	const op = "sealc2_job_progress"
	return guard(op, failure, func() error {
		if err := checkStruct(op, "info", unsafe.Pointer(info), unsafe.Sizeof(*info)); err != nil {
			return err
		}
		j, err := submittedOf(op, uint64(handle))
		if err != nil {
			return err
		}
		at, now := j.Brief(), time.Now()
		made := C.sealc2_job_info{
			size: info.size, state: C.uint32_t(at.State), priority: C.uint32_t(at.Class), partitions: C.uint32_t(at.Partitions),
			delivered: C.uint32_t(at.Delivered), partition: -1, status: C.int32_t(status.KindOf(at.Err)), done: C.double(at.Last.Done),
		}
		if at.Last.Stage != "" {
			made.partition = C.int32_t(at.Last.Partition)
		}
		putName(made.id[:], string(at.ID))
		putName(made.stage[:], at.Last.Stage)
		ended := at.Ended
		if ended.IsZero() {
			ended = now
		}
		began := at.Began
		if began.IsZero() {
			began = ended
		}
		made.queued_ns, made.running_ns = C.uint64_t(max(0, began.Sub(at.Submitted))), C.uint64_t(max(0, ended.Sub(began)))
		*info = made
		return nil
	})
}

// putName writes text into a field, as much as it has room for beside the NUL.
func putName(field []C.char, text string) {
	to := unsafe.Slice((*byte)(unsafe.Pointer(&field[0])), len(field))
	copy(to[:len(to)-1], text)
}

// textArgument reads a text that may be NULL.
func textArgument(text C.sealc2_in_text) string {
	if text == nil {
		return ""
	}
	return C.GoString(text)
}

//export sealc2go_requirements
func sealc2go_requirements(handle C.sealc2_engine, shape, device C.sealc2_in_text, needs *C.sealc2_needs, failure *C.sealc2_error) C.int32_t {
	const op = "sealc2_requirements"
	return guard(op, failure, func() error {
		if err := null(op, "shape", shape == nil); err != nil {
			return err
		}
		if err := checkStruct(op, "needs", unsafe.Pointer(needs), unsafe.Sizeof(*needs)); err != nil {
			return err
		}
		s, err := useSession(op, uint64(handle))
		if err != nil {
			return err
		}
		defer s.calls.Done()
		r, err := s.engine.Requirements(C.GoString(shape), textArgument(device))
		if r == nil {
			return err
		}
		made := C.sealc2_needs{
			size: needs.size, partitions: C.uint32_t(r.Partitions), threads: C.uint32_t(r.Threads),
			host_bytes: C.uint64_t(r.HostBytes), device_bytes: C.uint64_t(r.DeviceBytes),
			host_limit: C.uint64_t(r.Ceiling.HostBytes), device_limit: C.uint64_t(r.Ceiling.DeviceBytes), threads_limit: C.uint32_t(r.Ceiling.Threads),
			batch: C.uint32_t(r.Devices[0].Batch), ahead: C.uint32_t(r.Devices[0].Ahead), devices: C.uint32_t(len(r.Devices)),
		}
		for i := range r.Devices {
			made.shared_bytes += C.uint64_t(r.Devices[i].SharedBytes)
		}
		*needs = made
		return err
	})
}

//export sealc2go_preload
func sealc2go_preload(handle C.sealc2_engine, shape, paramsDir C.sealc2_in_text, dev C.uint32_t, jobHandle C.sealc2_job,
	failure *C.sealc2_error) C.int32_t {
	const op = "sealc2_preload"
	return guard(op, failure, func() error {
		if err := null(op, "shape", shape == nil); err != nil {
			return err
		}
		source, err := nativeParams(op, paramsDir, dev)
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
		return ended(ctx, s.engine.Preload(ctx, source, C.GoString(shape)))
	})
}

//export sealc2go_evict
func sealc2go_evict(handle C.sealc2_engine, shape, paramsDir C.sealc2_in_text, failure *C.sealc2_error) C.int32_t {
	const op = "sealc2_evict"
	return guard(op, failure, func() error {
		if err := null(op, "shape", shape == nil); err != nil {
			return err
		}
		source, err := nativeParams(op, paramsDir, devParamsEnv)
		if err != nil {
			return err
		}
		s, err := useSession(op, uint64(handle))
		if err != nil {
			return err
		}
		defer s.calls.Done()
		return s.engine.Evict(s.ctx, source, C.GoString(shape))
	})
}

//export sealc2go_idle_release
func sealc2go_idle_release(handle C.sealc2_engine, failure *C.sealc2_error) C.int32_t {
	const op = "sealc2_idle_release"
	return guard(op, failure, func() error {
		s, err := useSession(op, uint64(handle))
		if err != nil {
			return err
		}
		defer s.calls.Done()
		return s.engine.IdleRelease(s.ctx)
	})
}

//export sealc2go_metrics
func sealc2go_metrics(handle C.sealc2_engine, text *C.char, textCap C.size_t, textLen *C.size_t, failure *C.sealc2_error) C.int32_t {
	const op = "sealc2_metrics"
	return guard(op, failure, func() error {
		return putText(op, uint64(handle), text, textCap, textLen, func(s *session) ([]byte, error) { return []byte(s.engine.Metrics()), nil })
	})
}

//export sealc2go_timeline
func sealc2go_timeline(handle C.sealc2_engine, format C.uint32_t, text *C.char, textCap C.size_t, textLen *C.size_t, failure *C.sealc2_error) C.int32_t {
	const op = "sealc2_timeline"
	return guard(op, failure, func() error {
		if format >= C.uint32_t(engine.TimelineFormatCount) {
			return status.New(status.Caller, op, "format", "a sealc2_timeline_format", fmt.Sprint(uint32(format)))
		}
		return putText(op, uint64(handle), text, textCap, textLen, func(s *session) ([]byte, error) {
			var out bytes.Buffer
			err := s.engine.WriteTimeline(&out, engine.TimelineFormat(format))
			return out.Bytes(), err
		})
	})
}

// putText hands a text of an engine's to the caller, with a NUL behind it, if there is room for all of it.
func putText(op string, handle uint64, text *C.char, textCap C.size_t, textLen *C.size_t, read func(*session) ([]byte, error)) error {
	if err := null(op, "text_len", textLen == nil); err != nil {
		return err
	}
	*textLen = 0
	out, err := borrow(op, "text", (*C.uint8_t)(unsafe.Pointer(text)), textCap)
	if err != nil {
		return err
	}
	s, err := useSession(op, handle)
	if err != nil {
		return err
	}
	defer s.calls.Done()
	made, err := read(s)
	if err != nil {
		return err
	}
	*textLen = C.size_t(len(made))
	if len(out) == 0 {
		return nil
	}
	if len(out) <= len(made) {
		return status.New(status.Caller, op, "text_cap", fmt.Sprintf("room for %d bytes", len(made)+1), fmt.Sprint(len(out)))
	}
	out[copy(out, made)] = 0
	return nil
}
