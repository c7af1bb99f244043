package main

import (
	"errors"
	"math/big"
	"strings"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

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
	first, second := addJob(), addJob()
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
