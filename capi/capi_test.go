package main

import (
	"errors"
	"io/fs"
	"math/big"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine"
	"github.com/sealc2/sealc2/engine/status"
)

// A panic below an export is the call's failure, not the host's death.
func TestProtect_Panic(t *testing.T) {
	for name, body := range map[string]func() error{
		"text":      func() error { panic("broken") },
		"invariant": func() error { status.Check(false, "capi.test", "broken"); return nil },
		"index":     func() error { var a []int; _ = a[len(a)]; return nil },
		"nil":       func() error { var s *session; s.calls.Done(); return nil },
	} {
		if err := protect("capi.test", body); status.KindOf(err) != status.Internal || err.Error() == "" {
			t.Errorf("%s: want an internal error, got %v", name, err)
		}
	}
	own := errors.New("own")
	if err := protect("capi.test", func() error { return own }); err != own {
		t.Errorf("want the body's error, got %v", err)
	}
}

func littleEndian(n *big.Int) []byte {
	out := make([]byte, fr.Bytes)
	n.FillBytes(out)
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out
}

func TestScalars(t *testing.T) {
	order := fr.Modulus()
	good := []*big.Int{new(big.Int), big.NewInt(1), big.NewInt(1 << 40), new(big.Int).Sub(order, big.NewInt(1))}
	var data []byte
	for _, n := range good {
		data = append(data, littleEndian(n)...)
	}
	got, err := scalars("capi.test", "r", data)
	if err != nil || len(got) != len(good) {
		t.Fatalf("want %d scalars, got %d, %v", len(good), len(got), err)
	}
	for i, n := range good {
		if got[i].BigInt(new(big.Int)).Cmp(n) != 0 {
			t.Errorf("scalar %d: want %v, got %v", i, n, &got[i])
		}
	}
	for _, n := range []*big.Int{order, new(big.Int).Add(order, big.NewInt(1))} {
		_, err := scalars("capi.test", "r", append(littleEndian(big.NewInt(3)), littleEndian(n)...))
		if status.KindOf(err) != status.Caller || !strings.Contains(err.Error(), "r[1]") {
			t.Errorf("%v: want r[1] refused, got %v", n, err)
		}
	}
}

func TestJobs(t *testing.T) {
	first, second := addJob(nil), addJob(nil)
	if first == 0 || first == second {
		t.Fatalf("handles %d and %d", first, second)
	}
	if _, err := findJob("capi.test", first); err != nil {
		t.Error(err)
	}
	if err := removeJob("capi.test", first); err != nil {
		t.Error(err)
	}
	for _, handle := range []uint64{0, first, second + 1} {
		if _, err := findJob("capi.test", handle); status.KindOf(err) != status.Caller {
			t.Errorf("job %d: want it refused, got %v", handle, err)
		}
		if _, err := useSession("capi.test", handle); status.KindOf(err) != status.Caller {
			t.Errorf("engine %d: want it refused, got %v", handle, err)
		}
	}
	if err := removeJob("capi.test", second); err != nil {
		t.Error(err)
	}
}

// Calls, closing and shutdown may meet in any order: a call sees an open engine or is refused, and closing
// waits for calls. The race detector watches.
func TestSessions_Concurrent(t *testing.T) {
	const op = "capi.test"
	var open sync.WaitGroup
	for i := range 8 {
		open.Go(func() {
			for range 20 {
				s, err := newSession(engine.Config{Threads: 1})
				if err != nil {
					t.Error(err)
					return
				}
				handle := addSession(s)
				var calls sync.WaitGroup
				for range 4 {
					calls.Go(func() {
						s, err := useSession(op, handle)
						if err != nil {
							return // closed by now
						}
						defer s.calls.Done()
						_, err = s.run(op, &engine.ProveRequest{C1: []byte("{}"), Params: engine.ParamSource{Dir: "/nowhere"}}, nil,
							listener{capacity: proofBytes, needed: func(uint64) {}})
						if kind := status.KindOf(err); kind != status.Input && kind != status.Cancelled {
							t.Errorf("want the C1 refused or the call cancelled, got %v", err)
						}
					})
				}
				if i == 0 {
					err = closeAll(op)
				} else if s, err = removeSession(op, handle); err == nil {
					err = s.close(op)
				} else {
					err = nil // shut down by the first goroutine
				}
				if err != nil {
					t.Error(err)
				}
				calls.Wait()
				if shared, err := useShared(); err != nil {
					t.Error(err)
				} else {
					shared.calls.Done()
				}
			}
		})
	}
	open.Wait()
	if err := closeAll(op); err != nil {
		t.Error(err)
	}
	if len(handles.sessions) != 0 || handles.shared != nil {
		t.Errorf("%d engines are open after shutdown, shared %v", len(handles.sessions), handles.shared)
	}
}

// Each kind has a code that says what its callers knew it by.
func TestErrnoOf(t *testing.T) {
	open := status.Wrap(status.Params, "params.Open", "x", &fs.PathError{Op: "open", Path: "x", Err: syscall.ENOENT})
	for _, c := range []struct {
		err  error
		want syscall.Errno
	}{
		{open, syscall.ENOENT},
		{status.Wrap(status.Params, "engine.OpenSRS", "", open), syscall.ENOENT},
		{status.New(status.Params, "params.Open", "h", "more", "less"), syscall.EINVAL},
		{status.Wrap(status.Internal, "x", "", syscall.ENOENT), syscall.ENOTRECOVERABLE},
		{errors.New("foreign"), syscall.ENOTRECOVERABLE},
	} {
		if got := errnoOf(c.err); got != c.want {
			t.Errorf("%v: want %d, got %d", c.err, c.want, got)
		}
	}
	for _, kind := range status.Kinds()[1:] {
		if got := errnoOf(status.New(kind, "x", "", "", "")); got == 0 {
			t.Errorf("%s has no code", kind)
		}
	}
}

// Goal: the parts of an error's text are its fields. Method: errors of each form, plain, wrapped and joined.
func TestPartsOf(t *testing.T) {
	inner := status.New(status.Input, "c1.Parse", "vanilla_proofs[3]", "a list, got used to", "\"x\"")
	for _, c := range []struct {
		err  error
		want [4]string
	}{
		{inner, [4]string{"c1.Parse", "vanilla_proofs[3]", "a list, got used to", "\"x\""}},
		{status.New(status.Caller, "open", "", "a pointer", "NULL"), [4]string{"open", "", "a pointer", "NULL"}},
		{status.New(status.Caller, "open", "handle", "", "closed"), [4]string{"open", "handle", "", "closed"}},
		{status.New(status.Caller, "open", "handle", "a pointer", ""), [4]string{"open", "handle", "a pointer", ""}},
		{status.New(status.Caller, "open", "", "", ""), [4]string{"open", "", "", ""}},
		{status.Wrap(status.Input, "engine.Prove", "circuit 3", inner), [4]string{"c1.Parse", "vanilla_proofs[3]", "a list, got used to", "\"x\""}},
		{status.Wrap(status.Input, "c1.Parse", "", inner), [4]string{"c1.Parse", "vanilla_proofs[3]", "a list, got used to", "\"x\""}},
		{status.Wrap(status.Params, "open", "file", fs.ErrNotExist), [4]string{"open", "file", "", ""}},
		{status.Wrap(status.Params, "open", "file", errors.Join(fs.ErrNotExist, inner)), [4]string{"c1.Parse", "vanilla_proofs[3]", "a list, got used to", "\"x\""}},
		{&status.Error{Kind: status.Input, Op: "a", Where: "b", Want: "c", Got: "d", Cause: status.Wrap(status.Input, "e", "f", fs.ErrNotExist)}, [4]string{"a", "b", "c", "d"}},
		{status.Wrap(status.Input, "a", "b", status.Wrap(status.Input, "e", "f", fs.ErrNotExist)), [4]string{"e", "f", "", ""}},
		{errors.Join(fs.ErrNotExist, inner), [4]string{"c1.Parse", "vanilla_proofs[3]", "a list, got used to", "\"x\""}},
		{fs.ErrNotExist, [4]string{}},
		{nil, [4]string{}},
	} {
		parts := partsOf(c.err)
		for i, part := range parts {
			got := ""
			if part.len > 0 {
				got = c.err.Error()[part.at : part.at+part.len]
			}
			if got != c.want[i] {
				t.Errorf("%v: part %d: want %q, got %q", c.err, i, c.want[i], got)
			}
		}
	}
}
