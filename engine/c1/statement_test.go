package c1

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sealc2/sealc2/engine/circuit/porep"
	"github.com/sealc2/sealc2/engine/status"
)

func TestParseStatement_Reference(t *testing.T) {
	for _, c := range cases {
		s, err := ParseStatement(readVector(t, c.name, "statement.json"))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if "porep-"+strings.ToLower(strings.TrimSuffix(s.Shape.Name, "iB")) != c.name[:len("porep-")+strings.Index(c.name[6:], "k")+1] {
			t.Errorf("%s: shape %s", c.name, s.Shape.Name)
		}
		if s.Version != porep.V1_1 || s.Kind != porep.Interactive || s.IDs == nil || (s.Registered == nil) != c.bare {
			t.Errorf("%s: %+v", c.name, s)
		}
	}
}

const porepID05 = `"0500000000000000000000000000000000000000000000000000000000000000"`

func TestParseStatement_Optional(t *testing.T) {
	id := porep.Hash{5}
	shape, err := porep.ShapeBySize(2048)
	if err != nil {
		t.Fatal(err)
	}
	registered, err := porep.RegisteredByNumber(5)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]StatementFile{
		`{"sector_size":2048,"api_version":"1.0.0","porep_id":` + porepID05 + `}`:                                              {Shape: shape, PorepID: id},
		`{"sector_size":2048,"api_version":"1.1.0","porep_id":` + porepID05 + `,"registered_seal_proof":"StackedDrg2KiBV1_1"}`: {Shape: shape, PorepID: id, Version: porep.V1_1, Registered: registered},
		`{"sector_size":2048,"api_version":"1.2.0","porep_id":` + porepID05 + `,"registered_seal_proof":null,"api_features":["synthetic-porep"]}`: {
			Shape: shape, PorepID: id, Version: porep.V1_2, Kind: porep.Synthetic},
		`{"sector_size":2048,"api_version":"1.2.0","porep_id":` + porepID05 + `,"api_features":["non-interactive-porep"],"sector_id":18446744073709551615,"prover_id":` + porepID05 + `}`: {
			Shape: shape, PorepID: id, Version: porep.V1_2, Kind: porep.NonInteractive, IDs: &IDs{SectorID: 1<<64 - 1, ProverID: id}},
	} {
		got, err := ParseStatement([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if !reflect.DeepEqual(*got, want) {
			t.Errorf("%s: want %+v, got %+v", text, want, *got)
		}
	}
}

func TestParseStatement_Refused(t *testing.T) {
	base := map[string]string{"sector_size": "2048", "api_version": `"1.2.0"`, "porep_id": porepID05}
	for _, c := range []struct{ key, value, where string }{
		{"sector_size", "", "sector_size"},
		{"sector_size", "2048.0", "sector_size"},
		{"sector_size", `"2048"`, "sector_size"},
		{"sector_size", "4096000", "sector_size"},
		{"api_version", "", "api_version"},
		{"api_version", `"1.3.0"`, "api_version"},
		{"api_version", `"1.1"`, "api_version"},
		{"api_version", `1`, "api_version"},
		{"porep_id", "", "porep_id"},
		{"porep_id", `"05"`, "porep_id"},
		{"porep_id", `"` + strings.Repeat("g", 64) + `"`, "porep_id"},
		{"porep_id", "5", "porep_id"},
		{"api_features", `"synthetic-porep"`, "api_features"},
		{"api_features", `["synthetic-porep","other"]`, "api_features[1]"},
		{"api_features", `["synthetic-porep","non-interactive-porep"]`, "api_features[1]"},
		{"api_features", `[`, "api_features[0]"},
		{"registered_seal_proof", `"StackedDrg4KiBV1"`, "registered_seal_proof"},
		{"registered_seal_proof", `5`, "registered_seal_proof"},
		{"registered_seal_proof", `"StackedDrg8MiBV1"`, "sector_size"},
		{"registered_seal_proof", `"StackedDrg2KiBV1_1"`, "api_version"},
		{"registered_seal_proof", `"StackedDrg2KiBV1_1_Feat_SyntheticPoRep"`, "api_features"},
		{"sector_id", "5", "sector_id, prover_id"},
		{"sector_id", "-5", "sector_id"},
		{"prover_id", porepID05, "sector_id, prover_id"},
		{"prover_id", `""`, "prover_id"},
	} {
		var parts []string
		for key, value := range base {
			if key != c.key {
				parts = append(parts, fmt.Sprintf("%q:%s", key, value))
			}
		}
		if c.value != "" {
			parts = append(parts, fmt.Sprintf("%q:%s", c.key, c.value))
		}
		_, err := ParseStatement([]byte("{" + strings.Join(parts, ",") + "}"))
		e, ok := err.(*status.Error)
		if !ok || e.Where != c.where || e.Op != "c1.ParseStatement" {
			t.Errorf("%s = %s: want %s refused, got %v", c.key, c.value, c.where, err)
		}
	}
	good := `{"sector_size":2048,"api_version":"1.0.0","porep_id":` + porepID05 + `}`
	for _, bad := range []string{"", "[]", good + good, good[:len(good)-1], strings.Replace(good, ",", `,"sector_size":2048,`, 1), strings.Replace(good, ":", ":\xff", 1)} {
		if _, err := ParseStatement([]byte(bad)); status.KindOf(err) != status.Input {
			t.Errorf("%s: %v", bad, err)
		}
	}
	// A bad statement file reaches the caller of Parse as it is.
	if _, err := Parse(nil, Options{Statement: []byte("{}")}); err == nil || !strings.Contains(err.Error(), "c1.ParseStatement: sector_size") {
		t.Errorf("%v", err)
	}
}

// Goal: a statement file whose public parts are not those of the C1 output is refused, in both forms.
func TestParse_OtherStatement(t *testing.T) {
	for _, name := range []string{"porep-2k-b", "porep-16k"} {
		data, file := readVector(t, name, "c1.json"), readVector(t, name, "statement.json")
		whole, err := ParseStatement(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, key := range publicKeys {
			if whole.Public[i] == nil {
				t.Fatalf("%s: the statement file has no %s", name, key)
			}
			start := strings.Index(string(file), `"`+key+`": "`) + len(key) + len(`"": "`)
			other := slices.Clone(file)
			other[start] ^= 1 // '0' to '9' stay digits
			if other[start] > '9' {
				other[start] = '0'
			}
			_, err := Parse(data, Options{Statement: other})
			if e, ok := err.(*status.Error); !ok || e.Kind != status.Input || e.Where != key || !strings.Contains(e.Want, "statement file") {
				t.Errorf("%s: %s: got %v", name, key, err)
			}
		}
	}
}

func FuzzStatement(f *testing.F) {
	for _, c := range cases {
		f.Add(readVector(f, c.name, "statement.json"))
	}
	f.Add([]byte(`{"sector_size":2048,"api_version":"1.2.0","porep_id":` + porepID05 + `,"api_features":["non-interactive-porep"]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := ParseStatement(data)
		if err != nil {
			if k := status.KindOf(err); k != status.Input && k != status.Unsupported {
				t.Fatalf("%v: %v", k, err)
			}
			return
		}
		if !accepts(data) {
			t.Fatalf("accepted what is no JSON: %q", data)
		}
		// What was understood, written again, is understood in the same way.
		var text []byte
		text = fmt.Appendf(text, `{"sector_size":%d,"api_version":"%s","porep_id":"%x"`, s.Shape.SectorBytes, s.Version, s.PorepID)
		if s.Registered != nil {
			text = fmt.Appendf(text, `,"registered_seal_proof":"%s"`, s.Registered.Name)
		}
		if s.Kind != porep.Interactive {
			text = fmt.Appendf(text, `,"api_features":["%s-porep"]`, s.Kind)
		}
		if s.IDs != nil {
			text = fmt.Appendf(text, `,"sector_id":%d,"prover_id":"%x"`, s.IDs.SectorID, s.IDs.ProverID)
		}
		for i, part := range s.Public {
			if part != nil {
				text = fmt.Appendf(text, `,"%s":"%x"`, publicKeys[i], *part)
			}
		}
		text = append(text, '}')
		if !jsontext.Value(text).IsValid() {
			t.Fatalf("%s", text)
		}
		again, err := ParseStatement(text)
		if err != nil || !reflect.DeepEqual(again, s) {
			t.Fatalf("%s: %v", text, err)
		}
	})
}
