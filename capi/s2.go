package main

// #include "bridge.h"
import "C"

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"unsafe"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine"
	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/status"
)

// recentSRS is how many parameter files that were opened with cache stay open: supraseal-c2's number.
const recentSRS = 4

// s2 is what the handles of sealc2_s2.h stand for. Each reference, also a cloned one, has a number of its own,
// so that a stale one is found out. Numbers are not used twice.
var s2 = struct {
	mu      sync.Mutex
	last    uint64
	srs     map[uint64]*engine.SRS
	recent  []*engine.SRS // opened with cache, by last use, latest first; one a path
	pending map[uint64]*pending
	tokens  map[uint64]*token
}{srs: map[uint64]*engine.SRS{}, pending: map[uint64]*pending{}, tokens: map[uint64]*token{}}

// token is an exclusion domain: work that has it waits for its one place.
type token struct{ place chan struct{} }

// pending is work that was started.
type pending struct {
	count  int // circuits
	cancel context.CancelFunc
	done   chan struct{} // closed when the two below are there and the caller's memory is not used any more
	proofs []groth16.Proof
	err    error
}

// s2Name makes a number that is neither NULL nor an address; the caller holds s2.mu.
func s2Name() uint64 {
	s2.last++
	return s2.last<<4 | 1
}

// s2Guard is the whole of an export of sealc2_s2.h that can fail.
func s2Guard(op string, failure *C.sealc2_s2_error, body func() error) {
	code := syscall.ENOTRECOVERABLE // of a panic
	err := protect(op, func() error {
		err := body()
		code = errnoOf(err)
		return err
	})
	if err != nil {
		text, length := cText(err)
		C.sealc2_s2_fail(failure, C.int32_t(code), text, length)
	}
}

// errnoOf is a failure's code.
func errnoOf(err error) syscall.Errno {
	var system syscall.Errno
	switch status.KindOf(err) {
	case status.Params:
		if errors.As(err, &system) && system != 0 {
			return system
		}
		return syscall.EINVAL
	case status.Caller, status.Input, status.Unsatisfied:
		return syscall.EINVAL
	case status.NoDevice:
		return syscall.ENODEV
	case status.NoMemory:
		return syscall.ENOMEM
	case status.Cancelled:
		return syscall.ECANCELED
	case status.SelfCheck:
		return syscall.EIO
	case status.Unsupported:
		return syscall.ENOTSUP
	default:
		return syscall.ENOTRECOVERABLE
	}
}

//export sealc2go_s2_srs_open
func sealc2go_s2_srs_open(handle *C.uintptr_t, path C.sealc2_in_text, cache C.bool, failure *C.sealc2_s2_error) {
	const op = "sealc2_s2_srs_open"
	s2Guard(op, failure, func() error {
		if err := errors.Join(null(op, "out", handle == nil), null(op, "path", path == nil)); err != nil {
			return err
		}
		text := C.GoString(path)
		if text == "" {
			return status.Wrap(status.Params, op, "path, which is empty", syscall.ENOENT)
		}
		s, err := useShared()
		if err != nil {
			return err
		}
		defer s.calls.Done()
		srs, err := s.engine.OpenSRS(s.ctx, paramSource(environment, text, devParamsEnv))
		if err != nil {
			return err
		}
		defer func() {
			if *handle == 0 {
				srs.Close()
			}
		}()
		s2.mu.Lock()
		defer s2.mu.Unlock()
		if cache {
			remember(srs)
		}
		name := s2Name()
		s2.srs[name] = srs
		*handle = C.uintptr_t(name)
		return nil
	})
}

// remember puts a file in front of the list of the last used; the caller holds s2.mu.
func remember(srs *engine.SRS) {
	kept, err := srs.Clone()
	status.Check(err == nil, "capi.remember", "a new reference to be open")
	forget(srs.Path())
	s2.recent = append([]*engine.SRS{kept}, s2.recent...)
	for len(s2.recent) > recentSRS {
		s2.recent[len(s2.recent)-1].Close()
		s2.recent = s2.recent[:len(s2.recent)-1]
	}
}

// forget takes a path out of the list; the caller holds s2.mu.
func forget(path string) {
	for i, old := range s2.recent {
		if old.Path() == path {
			old.Close()
			s2.recent = append(s2.recent[:i], s2.recent[i+1:]...)
			return
		}
	}
}

// forgetRecent empties the list.
func forgetRecent() {
	s2.mu.Lock()
	defer s2.mu.Unlock()
	for _, srs := range s2.recent {
		srs.Close()
	}
	s2.recent = nil
}

// s2Quiet is the whole of an export that returns nothing: what fails there is a defect, and logged.
func s2Quiet(op string, body func()) {
	if err := protect(op, func() error { body(); return nil }); err != nil {
		logLine("error", err.Error())
	}
}

//export sealc2go_s2_srs_evict
func sealc2go_s2_srs_evict(handle C.uintptr_t) {
	s2Quiet("sealc2_s2_srs_evict", func() {
		s2.mu.Lock()
		defer s2.mu.Unlock()
		if srs := s2.srs[uint64(handle)]; srs != nil {
			forget(srs.Path())
		}
	})
}

//export sealc2go_s2_srs_drop
func sealc2go_s2_srs_drop(handle C.uintptr_t) {
	s2Quiet("sealc2_s2_srs_drop", func() {
		s2.mu.Lock()
		defer s2.mu.Unlock()
		if srs := s2.srs[uint64(handle)]; srs != nil {
			delete(s2.srs, uint64(handle))
			srs.Close()
		}
	})
}

//export sealc2go_s2_srs_clone
func sealc2go_s2_srs_clone(handle C.uintptr_t) (name C.uintptr_t) {
	s2Quiet("sealc2_s2_srs_clone", func() {
		s2.mu.Lock()
		defer s2.mu.Unlock()
		if srs := s2.srs[uint64(handle)]; srs != nil {
			kept, err := srs.Clone()
			status.Check(err == nil, "sealc2_s2_srs_clone", "a listed reference to be open")
			number := s2Name()
			s2.srs[number] = kept
			name = C.uintptr_t(number)
		}
	})
	return name
}

//export sealc2go_s2_prove
func sealc2go_s2_prove(provers C.sealc2_in_provers, n C.size_t, r, s C.sealc2_in_fr, out *C.sealc2_s2_proof, srs C.uintptr_t,
	device C.int32_t, exclusion C.uintptr_t, failure *C.sealc2_s2_error) {
	const op = "sealc2_s2_prove"
	s2Guard(op, failure, func() error {
		if n == 0 {
			return nil
		}
		if err := null(op, "out", out == nil); err != nil {
			return err
		}
		job, err := newS2Job(op, provers, n, r, s, srs, device, exclusion)
		if err != nil {
			return err
		}
		defer job.leave()
		proofs, err := job.run(job.session.ctx, nil)
		if err != nil {
			return err
		}
		writeProofs(out, proofs)
		return nil
	})
}

//export sealc2go_s2_start
func sealc2go_s2_start(provers C.sealc2_in_provers, n C.size_t, r, s C.sealc2_in_fr, srs C.uintptr_t,
	device C.int32_t, exclusion C.uintptr_t, handle *C.uintptr_t, failure *C.sealc2_s2_error) {
	const op = "sealc2_s2_start"
	s2Guard(op, failure, func() error {
		if err := null(op, "pending", handle == nil); err != nil {
			return err
		}
		p := &pending{count: int(n), done: make(chan struct{}), cancel: func() {}}
		if n == 0 {
			close(p.done)
		} else {
			job, err := newS2Job(op, provers, n, r, s, srs, device, exclusion)
			if err != nil {
				return err
			}
			evaluated := make(chan struct{})
			var ctx context.Context
			ctx, p.cancel = context.WithCancel(job.session.ctx)
			go func() {
				defer close(p.done)
				defer job.leave()
				defer status.Recover(op, &p.err)
				p.proofs, p.err = job.run(ctx, func() { close(evaluated) })
			}()
			select {
			case <-evaluated:
			case <-p.done:
				if p.err != nil {
					p.cancel()
					return p.err
				}
			}
		}
		s2.mu.Lock()
		defer s2.mu.Unlock()
		name := s2Name()
		s2.pending[name] = p
		*handle = C.uintptr_t(name)
		return nil
	})
}

// takePending spends a handle; nil where there is none.
func takePending(handle C.uintptr_t) *pending {
	s2.mu.Lock()
	defer s2.mu.Unlock()
	p := s2.pending[uint64(handle)]
	delete(s2.pending, uint64(handle))
	return p
}

//export sealc2go_s2_finish
func sealc2go_s2_finish(handle C.uintptr_t, out *C.sealc2_s2_proof, failure *C.sealc2_s2_error) {
	const op = "sealc2_s2_finish"
	s2Guard(op, failure, func() error {
		p := takePending(handle)
		if p == nil {
			return status.New(status.Caller, op, "pending", "a handle from sealc2_s2_start that was not spent", fmt.Sprintf("%#x", uint64(handle)))
		}
		defer p.cancel()
		missing := null(op, "out", out == nil && p.count > 0)
		if missing != nil {
			p.cancel()
		}
		<-p.done // in any case: the caller's memory must be out of use when this returns
		if err := cmp.Or(missing, p.err); err != nil {
			return err
		}
		writeProofs(out, p.proofs)
		return nil
	})
}

//export sealc2go_s2_abandon
func sealc2go_s2_abandon(handle C.uintptr_t) {
	s2Quiet("sealc2_s2_abandon", func() {
		if p := takePending(handle); p != nil {
			p.cancel()
			<-p.done
		}
	})
}

//export sealc2go_s2_exclusion
func sealc2go_s2_exclusion() (name C.uintptr_t) {
	s2Quiet("sealc2_s2_exclusion", func() {
		s2.mu.Lock()
		defer s2.mu.Unlock()
		number := s2Name()
		s2.tokens[number] = &token{place: make(chan struct{}, 1)}
		name = C.uintptr_t(number)
	})
	return name
}

//export sealc2go_s2_exclusion_release
func sealc2go_s2_exclusion_release(handle C.uintptr_t) {
	s2Quiet("sealc2_s2_exclusion_release", func() {
		s2.mu.Lock()
		defer s2.mu.Unlock()
		delete(s2.tokens, uint64(handle)) // work that has it keeps it to its end
	})
}

// s2Job is a call's work, converted and checked as far as that goes without the parameters.
type s2Job struct {
	op      string
	session *session
	token   *token // may be nil
	request engine.AssignmentRequest
}

// leave gives back what newS2Job took.
func (j *s2Job) leave() {
	if j.request.SRS != nil {
		j.request.SRS.Close()
	}
	if j.session != nil {
		j.session.calls.Done()
	}
}

func newS2Job(op string, provers C.sealc2_in_provers, n C.size_t, r, s C.sealc2_in_fr, srs C.uintptr_t, device C.int32_t, exclusion C.uintptr_t) (*s2Job, error) {
	if n > maxCircuits {
		return nil, status.New(status.Caller, op, "n", fmt.Sprintf("at most %d circuits", maxCircuits), fmt.Sprint(uint64(n)))
	}
	for _, p := range []struct {
		name string
		at   unsafe.Pointer
	}{{"provers", unsafe.Pointer(provers)}, {"r", unsafe.Pointer(r)}, {"s", unsafe.Pointer(s)}} {
		if err := aligned(op, p.name, p.at); err != nil {
			return nil, err
		}
	}
	j := &s2Job{op: op}
	a := &j.request
	var err error
	if a.Assignments, err = assignmentsOf(op, "provers", provers, n); err != nil {
		return nil, err
	}
	if a.R, err = blinding(op, "r", r, int(n)); err != nil {
		return nil, err
	}
	if a.S, err = blinding(op, "s", s, int(n)); err != nil {
		return nil, err
	}
	a.AllowDev = paramSource(environment, ".", devParamsEnv).AllowDev

	ready := false
	defer func() {
		if !ready {
			j.leave()
		}
	}()
	if a.SRS, j.token, err = lookUp(op, uint64(srs), uint64(exclusion)); err != nil {
		return nil, err
	}
	if j.session, err = useShared(); err != nil {
		return nil, err
	}
	// Which of them is advice: all share the partitions of each job.
	if devices := j.session.engine.Devices(); device < -1 || int(device) >= len(devices) {
		return nil, status.New(status.NoDevice, op, "device", fmt.Sprintf("-1 for any, or 0 to %d for one of: %s", len(devices)-1, strings.Join(devices, ", ")), fmt.Sprint(int32(device)))
	}
	ready = true
	return j, nil
}

// lookUp finds what a call names: parameters, of which it returns a reference of its own, and a token or nil.
func lookUp(op string, srs, exclusion uint64) (*engine.SRS, *token, error) {
	s2.mu.Lock()
	defer s2.mu.Unlock()
	t := s2.tokens[exclusion]
	if t == nil && exclusion != 0 {
		return nil, nil, unknownHandle(op, "exclusion", exclusion)
	}
	listed := s2.srs[srs]
	if listed == nil {
		return nil, nil, unknownHandle(op, "srs", srs)
	}
	own, err := listed.Clone()
	return own, t, err
}

// run proves; evaluated (may be nil) is called when a, b and c will not be read again.
func (j *s2Job) run(ctx context.Context, evaluated func()) ([]groth16.Proof, error) {
	if j.token != nil {
		select {
		case j.token.place <- struct{}{}:
			defer func() { <-j.token.place }()
		case <-ctx.Done():
			return nil, status.Wrap(status.Cancelled, j.op, "exclusion", context.Cause(ctx))
		}
	}
	j.request.Evaluated = evaluated
	result, err := j.session.engine.ProveAssignments(ctx, &j.request)
	if err != nil {
		return nil, err
	}
	return result.Points, nil
}

// aligned refuses NULL and addresses that are no multiple of 8.
func aligned(op, name string, at unsafe.Pointer) error {
	if uintptr(at)%8 != 0 {
		return status.New(status.Caller, op, name, "an address that is a multiple of 8", fmt.Sprintf("%#x", uintptr(at)))
	}
	return null(op, name, at == nil)
}

// lend returns count elements of the caller's as a slice.
func lend[T any](op, name string, at unsafe.Pointer, count C.size_t) ([]T, error) {
	const most = 1 << 32 // numbers; a domain has at most 2^32
	if count > most {
		return nil, status.New(status.Caller, op, name, fmt.Sprintf("a length of at most %d", uint64(most)), fmt.Sprint(uint64(count)))
	}
	if count == 0 {
		return nil, nil
	}
	if err := aligned(op, name, at); err != nil {
		return nil, err
	}
	return unsafe.Slice((*T)(at), int(count)), nil
}

// assignmentsOf borrows the vectors of n circuits.
func assignmentsOf(op, name string, provers C.sealc2_in_provers, n C.size_t) (all []*groth16.Assignment, err error) {
	if n == 0 {
		return nil, nil
	}
	if err := aligned(op, name, unsafe.Pointer(provers)); err != nil {
		return nil, err
	}
	for i, p := range unsafe.Slice((*C.sealc2_s2_prover)(provers), int(n)) {
		one, err := assignmentOf(op, fmt.Sprintf("%s[%d]", name, i), &p)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// assignmentOf borrows a circuit's vectors, and checks what needs no parameters.
func assignmentOf(op, where string, p *C.sealc2_s2_prover) (*groth16.Assignment, error) {
	a := &groth16.Assignment{}
	for _, v := range []struct {
		name  string
		at    C.sealc2_in_fr
		count C.size_t
		to    *[]fr.Element
	}{
		{"a", p.a, p.abc_len, &a.A}, {"b", p.b, p.abc_len, &a.B}, {"c", p.c, p.abc_len, &a.C},
		{"inp", p.inp, p.inp_len, &a.Inputs}, {"aux", p.aux, p.aux_len, &a.Aux},
	} {
		var err error
		if *v.to, err = lend[fr.Element](op, where+"."+v.name, unsafe.Pointer(v.at), v.count); err != nil {
			return nil, err
		}
	}
	for _, d := range []struct {
		name string
		from *C.sealc2_s2_density
		want C.size_t
		of   string
		to   *circuit.Bits
	}{
		{"a_aux", &p.a_aux, p.aux_len, "aux_len", &a.Density.AAux},
		{"b_inp", &p.b_inp, p.inp_len, "inp_len", &a.Density.BInput},
		{"b_aux", &p.b_aux, p.aux_len, "aux_len", &a.Density.BAux},
	} {
		if d.from.bits != d.want {
			return nil, status.New(status.Caller, op, where+"."+d.name+".bits", fmt.Sprintf("%s = %d", d.of, uint64(d.want)), fmt.Sprint(uint64(d.from.bits)))
		}
		words, err := lend[uint64](op, where+"."+d.name+".words", unsafe.Pointer(d.from.words), (d.from.bits+63)/64)
		if err != nil {
			return nil, err
		}
		*d.to = circuit.Bits{Words: words, Len: int(d.from.bits)}
		if got := d.to.Count(); uint64(got) != uint64(d.from.ones) {
			return nil, status.New(status.Caller, op, where+"."+d.name+".ones", fmt.Sprintf("%d, as many as bits are set", got), fmt.Sprint(uint64(d.from.ones)))
		}
	}
	return a, nil
}

// blinding copies the caller's r or s.
func blinding(op, name string, at C.sealc2_in_fr, n int) ([]fr.Element, error) {
	out := append([]fr.Element(nil), unsafe.Slice((*fr.Element)(unsafe.Pointer(at)), n)...)
	for i := range out {
		if !groth16.Reduced(&out[i]) {
			return nil, status.New(status.Caller, op, fmt.Sprintf("%s[%d]", name, i), "a number below the group order", fmt.Sprintf("limbs %#x", [4]uint64(out[i])))
		}
	}
	return out, nil
}

// Points have blst's layout: coordinates in Montgomery form, zeros for infinity.
var _ = [1]struct{}{}[unsafe.Sizeof(groth16.Proof{})-unsafe.Sizeof(C.sealc2_s2_proof{})]

func writeProofs(out *C.sealc2_s2_proof, proofs []groth16.Proof) {
	if len(proofs) > 0 {
		copy(unsafe.Slice((*groth16.Proof)(unsafe.Pointer(out)), len(proofs)), proofs)
	}
}
