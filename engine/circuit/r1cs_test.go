package circuit

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/status"
)

const vectors = "../../tests/vectors/"

// tiny is one of the reference's small circuits with all its data.
type tiny struct {
	R1CS struct {
		Inputs, Aux, Constraints int
		DomainSize               int    `json:"domain_size"`
		Total                    string `json:"r1cs_total"`
		Canonical                []map[string][][2]any
		AsWritten                []map[string][][3]any `json:"as_written"`
	}
	Witness struct {
		A, B, C       []string
		Inputs        []string `json:"input_assignment"`
		Aux           []string `json:"aux_assignment"`
		AAuxDensity   string   `json:"a_aux_density"`
		BAuxDensity   string   `json:"b_aux_density"`
		BInputDensity string   `json:"b_input_density"`
	}
}

func scalar(t testing.TB, text string) (x fr.Element) {
	t.Helper()
	raw, err := hex.DecodeString(text)
	if err == nil {
		x, err = fr.LittleEndian.Element((*[32]byte)(raw))
	}
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// loadTiny reads a circuit with the variables that only ever hold 0 or 1 in its witness kept as bits or not, and
// its rows merged or as the circuit gave them.
func loadTiny(t testing.TB, name string, bits, merged bool) (tiny, *Program, *Inputs) {
	t.Helper()
	var c tiny
	for file, into := range map[string]any{"r1cs.json": &c.R1CS, "witness.json": &c.Witness} {
		data, err := os.ReadFile(vectors + "tiny/" + name + "/" + file)
		if err == nil {
			err = json.Unmarshal(data, into)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	rows := make([]Constraint, c.R1CS.Constraints)
	for i := range rows {
		for m, into := range map[string]*[]Term{"a": &rows[i].A, "b": &rows[i].B, "c": &rows[i].C} {
			if merged {
				for _, x := range c.R1CS.Canonical[i][m] {
					*into = append(*into, Term{Key: Key(x[0].(float64)), Coeff: scalar(t, x[1].(string))})
				}
				continue
			}
			for _, x := range c.R1CS.AsWritten[i][m] {
				key := InputKey(int(x[1].(float64)))
				if x[0] == "aux" {
					key = AuxKey(int(x[1].(float64)))
				}
				*into = append(*into, Term{Key: key, Coeff: scalar(t, x[2].(string))})
			}
		}
	}
	in := &Inputs{}
	isBit := make([]bool, c.R1CS.Aux)
	for _, v := range c.Witness.Inputs[1:] {
		in.Fields = append(in.Fields, scalar(t, v))
	}
	for i, v := range c.Witness.Aux {
		x := scalar(t, v)
		if isBit[i] = bits && (x.IsZero() || x.IsOne()); isBit[i] {
			in.Words = append(in.Words, x.Uint64())
		} else {
			in.Fields = append(in.Fields, x)
		}
	}
	p, err := FromR1CS(name, c.R1CS.Inputs, isBit, rows)
	if err != nil {
		t.Fatal(err)
	}
	return c, p, in
}

func newWitness(p *Program) *Witness {
	return &Witness{Inputs: make([]fr.Element, p.InputCount()), Bits: NewBits(p.AuxCount()), Nums: make([]fr.Element, p.NumCount())}
}

func (b Bits) text() string {
	var s strings.Builder
	for i := range b.Len {
		s.WriteByte('0' + byte(b.Words[i>>6]>>(i&63)&1))
	}
	return s.String()
}

var tinyNames = []string{"tiny-16", "tiny-64", "tiny-128", "tiny-1024"}

func TestFromR1CS_EqualsReference(t *testing.T) {
	for _, name := range tinyNames {
		for _, bits := range []bool{false, true} {
			for _, merged := range []bool{false, true} {
				c, p, in := loadTiny(t, name, bits, merged)
				d, err := p.Digest(context.Background(), 1)
				if err != nil {
					t.Fatal(err)
				}
				if d.Total != c.R1CS.Total || d.DomainSize != c.R1CS.DomainSize {
					t.Errorf("%s: digest %s of domain %d, want %s of %d", name, d.Total, d.DomainSize, c.R1CS.Total, c.R1CS.DomainSize)
				}
				density := p.Density()
				for what, pair := range map[string][2]string{
					"a_aux":   {density.AAux.text(), c.Witness.AAuxDensity},
					"b_aux":   {density.BAux.text(), c.Witness.BAuxDensity},
					"b_input": {density.BInput.text(), c.Witness.BInputDensity},
				} {
					if pair[0] != pair[1] {
						t.Errorf("%s: density %s: got %s, want %s", name, what, pair[0], pair[1])
					}
				}
				w := newWitness(p)
				if err := p.Expand(context.Background(), in, w, 2); err != nil {
					t.Fatal(err)
				}
				n := p.Domain()
				a, b, cc := make([]fr.Element, n), make([]fr.Element, n), make([]fr.Element, n)
				if err := p.Evaluate(context.Background(), w, a, b, cc, 2); err != nil {
					t.Fatal(err)
				}
				for i := range n {
					for m, pair := range [3]struct {
						got  fr.Element
						want []string
					}{{a[i], c.Witness.A}, {b[i], c.Witness.B}, {cc[i], c.Witness.C}} {
						var want fr.Element
						if i < len(pair.want) {
							want = scalar(t, pair.want[i])
						}
						if pair.got != want {
							t.Fatalf("%s: matrix %c, row %d differs", name, 'A'+m, i)
						}
					}
				}
			}
		}
	}
}

func TestEvaluate_NamesTheFirstRowThatFails(t *testing.T) {
	_, p, in := loadTiny(t, "tiny-1024", true, true)
	w := newWitness(p)
	if err := p.Expand(context.Background(), in, w, 1); err != nil {
		t.Fatal(err)
	}
	for i := range w.Nums {
		w.Nums[i].Double(&w.Nums[i])
	}
	err := p.Check(context.Background(), w, 2)
	if status.KindOf(err) != status.Unsatisfied {
		t.Fatalf("got %v, want an unsatisfied row", err)
	}
	for _, part := range []string{"template r1cs", "row "} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not name %q", err, part)
		}
	}
}

func TestExpand_RefusesOtherSizes(t *testing.T) {
	_, p, in := loadTiny(t, "tiny-16", false, true)
	in.Fields = in.Fields[1:]
	if err := p.Expand(context.Background(), in, newWitness(p), 1); status.KindOf(err) != status.Input {
		t.Fatalf("got %v, want a refusal", err)
	}
}

func TestFromR1CS_RefusesUnknownVariables(t *testing.T) {
	_, err := FromR1CS("bad", 1, []bool{false}, []Constraint{{A: []Term{{Key: AuxKey(1), Coeff: frOne}}}})
	if status.KindOf(err) != status.Input || !strings.Contains(err.Error(), "row 0, matrix A") {
		t.Fatalf("got %v, want a refusal that names row and matrix", err)
	}
}
