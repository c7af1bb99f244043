package engine

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/circuit/porep"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/status"
)

// keyOnly is a parameter set of which nothing but the key's size may be asked.
type keyOnly struct {
	groth16.SRS
	key groth16.VerifyingKey
}

func (k *keyOnly) VerifyingKey() *groth16.VerifyingKey { return &k.key }

// TestProveProgram_LargeShape: a budget that a large shape does not fit is refused before any work on it, with what it
// takes and what there is.
func TestProveProgram_LargeShape(t *testing.T) {
	if testing.Short() {
		t.Skip("records the 32 GiB circuit: seconds, and 200 MiB")
	}
	shape, err := porep.ShapeByName("32GiB")
	if err != nil {
		t.Fatal(err)
	}
	program := porep.Program(shape)
	tiny := loadTiny(t, "tiny-16")
	srs := &keyOnly{SRS: tiny.srs, key: *tiny.srs.VerifyingKey()}
	srs.key.IC = make([]bls.G1Affine, program.InputCount())
	request := &ProgramRequest{Program: program, SRS: srs, Inputs: make([]*circuit.Inputs, 10), Public: make([][]fr.Element, 10)}
	e := open(t, Config{HostBytes: 3 << 30}, nil)
	begun := time.Now()
	_, err = e.ProveProgram(context.Background(), request)
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("refused after %v", took)
	}
	m := regexp.MustCompile(`want at most 3221225472 bytes \(3 GiB\) \(the budget\), got (\d+) bytes`).FindStringSubmatch(fmt.Sprint(err))
	if status.KindOf(err) != status.NoMemory || m == nil {
		t.Fatalf("%v", err)
	}
	// The reference takes some 200 GiB; the witness alone takes 71 MB.
	if need, err := strconv.ParseInt(m[1], 10, 64); err != nil || need < 4<<30 || need > 64<<30 {
		t.Errorf("32 GiB takes %s bytes?", m[1])
	}
}
