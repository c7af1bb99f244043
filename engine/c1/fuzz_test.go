package c1

import (
	"bytes"
	"encoding/base64"
	"reflect"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/sealc2/sealc2/engine/status"
)

// The types of the reference as an independent decoder sees them: strict, case-sensitive, exact lengths.
type (
	plainHash [32]uint16 // not bytes, which would be base64
	plainPath struct {
		Path []struct {
			Hashes []plainHash `json:"hashes"`
			Index  uint64      `json:"index"`
		} `json:"path"`
	}
	plainProof struct {
		Root plainHash  `json:"root"`
		Leaf plainHash  `json:"leaf"`
		Path *plainPath `json:"path,omitzero"`
		Base *plainPath `json:"base_proof,omitzero"`
		Sub  *plainPath `json:"sub_proof,omitzero"`
		Top  *plainPath `json:"top_proof,omitzero"`
	}
	plainMerkle struct {
		Data map[string]plainProof `json:"data"`
	}
	plainColumn struct {
		Column struct {
			Index uint32      `json:"index"`
			Rows  []plainHash `json:"rows"`
		} `json:"column"`
		Inclusion plainMerkle `json:"inclusion_proof"`
	}
	plainLabel struct {
		Parents []plainHash `json:"parents"`
		Layer   uint32      `json:"layer_index"`
		Node    uint64      `json:"node"`
	}
	plainChallenge struct {
		CommD     plainMerkle `json:"comm_d_proofs"`
		CommRLast plainMerkle `json:"comm_r_last_proof"`
		Columns   struct {
			CX  plainColumn   `json:"c_x"`
			DRG []plainColumn `json:"drg_parents"`
			Exp []plainColumn `json:"exp_parents"`
		} `json:"replica_column_proofs"`
		Labeling []plainLabel `json:"labeling_proofs"`
		Encoding plainLabel   `json:"encoding_proof"`
	}
	plainPublic struct {
		CommR     plainHash `json:"comm_r"`
		CommD     plainHash `json:"comm_d"`
		ReplicaID plainHash `json:"replica_id"`
		Seed      plainHash `json:"seed"`
		Ticket    plainHash `json:"ticket"`
	}
	plainTagged struct {
		Registered string                        `json:"registered_proof"`
		Vanilla    map[string][][]plainChallenge `json:"vanilla_proofs"`
		plainPublic
	}
	plainBare struct {
		Vanilla [][]plainChallenge `json:"vanilla_proofs"`
		plainPublic
	}
)

// plain decodes a document with the independent decoder.
func plain(data []byte, bare bool) (value any, err error) {
	options := jsontext.AllowDuplicateNames(true)
	if bare {
		v := new(plainBare)
		return v, json.Unmarshal(data, v, options)
	}
	v := new(plainTagged)
	return v, json.Unmarshal(data, v, options)
}

// Goal: what Parse accepts is JSON, means to an independent decoder what it means to us, and survives
// writing and reading with the same bytes; what it refuses is refused by a value of kind Input; and several threads
// come to the same. The seeds are whole documents of 100 kB, so run it with -fuzzminimizetime 1x, or it spends its time on making
// them smaller.
func FuzzParse(f *testing.F) {
	for _, c := range cases {
		data := readVector(f, c.name, "c1.json")
		f.Add(data, c.name == "porep-32k")
		f.Add(bytes.ReplaceAll(data, []byte(`,"_h":null`), []byte(` , "x":{"_h":[1.5e3]}`)), c.name == "porep-32k")
		f.Add([]byte(`{"SectorNum":1,"Phase1Out":"`+base64.StdEncoding.EncodeToString(data)+`","SectorSize":2048}`), false)
	}
	// Small ones, which take the fuzzer to other places: each lacks something.
	for _, small := range []string{
		`{}`, `{"vanilla_proofs":[]}`, `{"vanilla_proofs":{"StackedDrg2KiBV1":[[]]},"registered_proof":"StackedDrg2KiBV1_1"}`,
		`{"registered_proof":"StackedDrg2KiBV1_1","vanilla_proofs":{"StackedDrg2KiBV1":[[{"comm_d_proofs":{"data":{"Single":{"root":[1`,
		`{"comm_r":[255,256],"comm_d":[-0],"replica_id":[1.5],"seed":[1e2],"ticket":["\ud83d\ude00"]}`,
		`{"Phase1Out":"e30=","SectorNum":18446744073709551616}`, `{"Phase1Out":"eyJQaGFzZTFPdXQiOiJlMzA9In0="}`, `{"\u0076anilla_proofs":null,"vanilla_proofs":null}`,
	} {
		f.Add([]byte(small), false)
	}
	few := partitions(f, 3) // of a proof with 13, so taken only where that is allowed
	f.Add(few, false)
	f.Add(bytes.ReplaceAll(few, []byte("],["), []byte("] , [")), false)
	files := map[bool][]byte{false: readVector(f, "porep-16k", "statement.json"), true: readVector(f, "porep-32k", "statement.json")}
	f.Fuzz(func(t *testing.T, data []byte, large bool) {
		options := Options{}
		if bytes.Contains(data, []byte(`"vanilla_proofs":[`)) {
			options.Statement = files[large]
		}
		options.AllowPartial = bytes.Contains(data, []byte("NonInteractive"))
		out, err := parseBoth(t, data, options)
		if err != nil {
			if status.KindOf(err) != status.Input {
				t.Fatal(err)
			}
			return
		}
		if !accepts(data) {
			t.Fatal("accepted what is no JSON")
		}
		text := out.AppendJSON(nil)
		out.SectorNumber = nil
		if bytes.Contains(data, []byte("vanilla_proofs")) { // not wrapped
			got, err := plain(text, out.Bare)
			if err != nil {
				t.Fatal(err)
			}
			want, err := plain(data, out.Bare)
			if err != nil {
				t.Fatalf("the independent decoder refuses it: %v", err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatal("the independent decoder reads another value")
			}
		}
		again, err := Parse(text, options)
		if err != nil {
			t.Fatalf("refused what AppendJSON wrote: %v", err)
		}
		if !reflect.DeepEqual(again, out) || !bytes.Equal(again.AppendJSON(nil), text) {
			t.Fatal("another value after writing and reading")
		}
	})
}
