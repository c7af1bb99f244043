package engine

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sealc2/sealc2/engine/params"
	"github.com/sealc2/sealc2/engine/status"
	"github.com/sealc2/sealc2/tests/support"
)

// sector is a C1 output of the reference with its statement and, where there is one, its proof.
type sector struct {
	c1, statement []byte
	facts         struct {
		Number   int32  `json:"registered_proof_porep_number"`
		SectorID uint64 `json:"sector_id"`
		ProverID string `json:"prover_id"`
		CommR    string `json:"comm_r"`
		CommD    string `json:"comm_d"`
		Ticket   string
		Seed     string
	}
	proof struct {
		Proofs []string
		R, S   []string
	}
}

func loadSector(t testing.TB, name string) *sector {
	t.Helper()
	s := &sector{}
	var err error
	if s.c1, err = os.ReadFile(vectors + "c1/" + name + "/c1.json"); err != nil {
		t.Fatal(err)
	}
	if s.statement, err = os.ReadFile(vectors + "c1/" + name + "/statement.json"); err != nil {
		t.Fatal(err)
	}
	readJSON(t, "c1/"+name+"/statement.json", &s.facts)
	if _, err := os.Stat(vectors + "c1/" + name + "/proof.json"); err == nil {
		readJSON(t, "c1/"+name+"/proof.json", &s.proof)
	}
	return s
}

func (s *sector) proofBytes(t testing.TB) []byte {
	t.Helper()
	var all []byte
	for _, p := range s.proof.Proofs {
		all = append(all, support.Hex(t, p)...)
	}
	return all
}

func (s *sector) ids(t testing.TB) *SectorIDs {
	return &SectorIDs{SectorID: s.facts.SectorID, ProverID: [32]byte(support.Hex(t, s.facts.ProverID))}
}

func (s *sector) claim(t testing.TB, dir string) VerifyRequest {
	return VerifyRequest{
		RegisteredProof: s.facts.Number, IDs: *s.ids(t), Proof: s.proofBytes(t), Params: ParamSource{Dir: dir, AllowDev: true},
		CommR: [32]byte(support.Hex(t, s.facts.CommR)), CommD: [32]byte(support.Hex(t, s.facts.CommD)),
		Ticket: [32]byte(support.Hex(t, s.facts.Ticket)), Seed: [32]byte(support.Hex(t, s.facts.Seed)),
	}
}

// keyDir is a directory with the development key of a shape under a development name.
func keyDir(t testing.TB, oracleName string) string {
	t.Helper()
	shape := support.Shape(t, oracleName)
	data, err := os.ReadFile(vectors + "setup/" + oracleName + ".vk")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, params.DevStem(shape.Name, shape.ParamsBaseName())+params.VKExt), data, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestVerify(t *testing.T) {
	e := open(t, Config{}, nil)
	dir := keyDir(t, "porep-2k")
	for _, name := range []string{"porep-2k-a", "porep-2k-b"} {
		good := loadSector(t, name).claim(t, dir)
		for _, c := range []struct {
			what   string
			change func(*VerifyRequest)
			ok     bool
			kind   status.Kind
		}{
			{"as claimed", func(*VerifyRequest) {}, true, status.OK},
			{"another seed", func(r *VerifyRequest) { r.Seed[0] ^= 1 }, false, status.OK},
			{"a seed that is no scalar", func(r *VerifyRequest) { r.Seed[31] = 0xff }, false, status.OK},
			{"another ticket", func(r *VerifyRequest) { r.Ticket[5] ^= 1 }, false, status.OK},
			{"another sector", func(r *VerifyRequest) { r.IDs.SectorID++ }, false, status.OK},
			{"another miner", func(r *VerifyRequest) { r.IDs.ProverID[0] ^= 1 }, false, status.OK},
			{"another comm_r", func(r *VerifyRequest) { r.CommR[0] ^= 1 }, false, status.OK},
			{"another comm_d", func(r *VerifyRequest) { r.CommD[0] ^= 1 }, false, status.OK},
			{"another version", func(r *VerifyRequest) { r.RegisteredProof = 0 }, false, status.OK},
			{"another kind", func(r *VerifyRequest) { r.RegisteredProof = 10 }, false, status.OK},
			{"A and C exchanged", func(r *VerifyRequest) {
				r.Proof = slices.Concat(r.Proof[144:], r.Proof[48:144], r.Proof[:48])
			}, false, status.OK},
			{"zero comm_r", func(r *VerifyRequest) { r.CommR = [32]byte{} }, false, status.Input},
			{"zero comm_d", func(r *VerifyRequest) { r.CommD = [32]byte{} }, false, status.Input},
			{"comm_r above r", func(r *VerifyRequest) { r.CommR[31] = 0xff }, false, status.Input},
			{"no proof", func(r *VerifyRequest) { r.Proof = nil }, false, status.Input},
			{"half a proof", func(r *VerifyRequest) { r.Proof = r.Proof[:96] }, false, status.Input},
			{"two proofs", func(r *VerifyRequest) { r.Proof = slices.Concat(r.Proof, r.Proof) }, false, status.Input},
			{"a point off the curve", func(r *VerifyRequest) { r.Proof = slices.Clone(r.Proof); r.Proof[40] ^= 1; r.Proof[47] ^= 3 }, false, status.Input},
			{"a point at infinity", func(r *VerifyRequest) {
				r.Proof = slices.Concat([]byte{0xc0}, make([]byte, 47), r.Proof[48:])
			}, false, status.Input},
			{"unknown type", func(r *VerifyRequest) { r.RegisteredProof = 20 }, false, status.Input},
			{"non-interactive", func(r *VerifyRequest) { r.RegisteredProof = 15 }, false, status.Unsupported},
			{"no directory", func(r *VerifyRequest) { r.Params.Dir = "" }, false, status.Caller},
			{"no key there", func(r *VerifyRequest) { r.Params.Dir = t.TempDir() }, false, status.Params},
			{"no leave", func(r *VerifyRequest) { r.Params.AllowDev = false }, false, status.Params},
			{"production asked for", func(r *VerifyRequest) { r.Params.VerifyProduction = true }, false, status.Params},
		} {
			request := good
			c.change(&request)
			ok, err := e.Verify(context.Background(), &request)
			if ok != c.ok || status.KindOf(err) != c.kind {
				t.Errorf("%s, %s: %v, %v", name, c.what, ok, err)
			}
			if c.kind == status.Unsupported && !strings.Contains(err.Error(), "aggregation is not supported yet") {
				t.Errorf("%s, %s: %v", name, c.what, err)
			}
		}
	}
	if _, err := e.Verify(context.Background(), nil); status.KindOf(err) != status.Caller {
		t.Errorf("nil: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	request := loadSector(t, "porep-2k-a").claim(t, dir)
	if _, err := e.Verify(ctx, &request); status.KindOf(err) != status.Cancelled {
		t.Errorf("cancelled: %v", err)
	}
}

// TestVerify_KeyResidency: a key is kept while its file stays the same, and the guard is asked each time.
func TestVerify_KeyResidency(t *testing.T) {
	var log logBook
	e := open(t, Config{Log: log.add}, nil)
	dir := keyDir(t, "porep-2k")
	request := loadSector(t, "porep-2k-a").claim(t, dir)
	verify := func() (bool, error) { return e.Verify(context.Background(), &request) }
	for range 2 {
		if ok, err := verify(); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	warnings := 0
	for _, line := range log.lines {
		if strings.HasPrefix(line, "warn: ") && strings.Contains(line, "development parameters") {
			warnings++
		}
	}
	if len(e.resident.keys) != 1 || warnings != 2 {
		t.Errorf("%d keys kept, %d warnings for 2 uses", len(e.resident.keys), warnings)
	}
	path := e.resident.keys[0].path
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	if _, err := verify(); status.KindOf(err) != status.Params {
		t.Errorf("key gone: %v", err)
	}
	other, err := os.ReadFile(vectors + "setup/porep-16k.vk") // as many inputs, another key
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, other, 0o644); err != nil {
		t.Fatal(err)
	}
	if ok, err := verify(); ok || err != nil {
		t.Errorf("key replaced: %v, %v", ok, err)
	}
	if err := os.WriteFile(path, other[:len(other)-1], 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := verify(); status.KindOf(err) != status.Params {
		t.Errorf("key cut: %v", err)
	}
}

func TestVerifyC1(t *testing.T) {
	e := open(t, Config{}, nil)
	for name, shape := range map[string]string{"porep-2k-a": "porep-2k", "porep-2k-b": "porep-2k", "porep-16k": "porep-16k", "porep-32k": "porep-32k"} {
		s := loadSector(t, name)
		request := VerifyC1Request{C1: s.c1, Proof: s.proofBytes(t), Params: ParamSource{Dir: keyDir(t, shape), AllowDev: true}}
		if s.facts.Number == 0 {
			request.Statement = s.statement
		}
		if ok, err := e.VerifyC1(context.Background(), &request); !ok || err != nil {
			t.Errorf("%s: %v, %v", name, ok, err)
		}
		wrong := request
		wrong.IDs = s.ids(t)
		wrong.IDs.SectorID++
		wrong.Statement = nil
		if s.facts.Number != 0 {
			if _, err := e.VerifyC1(context.Background(), &wrong); status.KindOf(err) != status.Input {
				t.Errorf("%s of another sector: %v", name, err)
			}
		}
	}
	a, b := loadSector(t, "porep-2k-a"), loadSector(t, "porep-2k-b")
	crossed := VerifyC1Request{C1: a.c1, Proof: b.proofBytes(t), Params: ParamSource{Dir: keyDir(t, "porep-2k"), AllowDev: true}}
	if ok, err := e.VerifyC1(context.Background(), &crossed); ok || err != nil {
		t.Errorf("proof of another sector: %v, %v", ok, err)
	}
	if _, err := e.VerifyC1(context.Background(), &VerifyC1Request{}); status.KindOf(err) != status.Caller {
		t.Errorf("nothing: %v", err)
	}
	if _, err := e.VerifyC1(context.Background(), &VerifyC1Request{C1: bytes.Repeat([]byte("{"), 100)}); status.KindOf(err) != status.Input {
		t.Errorf("nonsense: %v", err)
	}
}
