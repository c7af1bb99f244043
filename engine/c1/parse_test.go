package c1

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sealc2/sealc2/engine/circuit/porep"
	"github.com/sealc2/sealc2/engine/status"
)

const vectors = "../../tests/vectors/c1"

// The cases of the reference: two of a registered proof, two of the bare form.
var cases = []struct {
	name string
	bare bool
}{{"porep-2k-a", false}, {"porep-2k-b", false}, {"porep-16k", true}, {"porep-32k", true}}

var testIDs = IDs{SectorID: 4711, ProverID: [32]byte{0xe8, 0x07}}

func readVector(t testing.TB, name, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(vectors, name, file))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// refused checks that err is an Input error of Parse and returns it.
func refused(t *testing.T, err error) *status.Error {
	t.Helper()
	var e *status.Error
	if !errors.As(err, &e) {
		t.Fatalf("not refused: %v", err)
	}
	if e.Kind != status.Input {
		t.Fatalf("kind %v: %v", e.Kind, e)
	}
	return e
}

func TestParse_Reference(t *testing.T) {
	for _, c := range cases {
		data, file := readVector(t, c.name, "c1.json"), readVector(t, c.name, "statement.json")
		var want struct {
			CommD, CommR, ReplicaID, Ticket, Seed, PorepID string
			SectorID                                       uint64 `json:"sector_id"`
			Challenges                                     [][]uint64
			Raw                                            map[string]json.RawMessage `json:"-"`
		}
		if err := json.Unmarshal(file, &want.Raw); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(file, &want); err != nil {
			t.Fatal(err)
		}
		out, err := Parse(data, Options{Statement: file})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		s := &out.Statement
		if out.Bare != c.bare || (s.Registered == nil) != c.bare || out.SectorNumber != nil {
			t.Errorf("%s: bare %v, registered %v", c.name, out.Bare, s.Registered)
		}
		for key, got := range map[string]porep.Hash{
			"comm_d": s.CommD, "comm_r": s.CommR, "replica_id": s.ReplicaID, "ticket": s.Ticket, "seed": s.Seed,
			"porep_id": s.PorepID, "comm_c": out.Partitions[0][0].Column.Inclusion.Root,
			"comm_r_last": out.Partitions[0][0].CommRLast.Root, "prover_id": out.IDs.ProverID,
		} {
			if string(want.Raw[key]) != `"`+hex.EncodeToString(got[:])+`"` {
				t.Errorf("%s: %s: want %s, got %x", c.name, key, want.Raw[key], got)
			}
		}
		if out.IDs.SectorID != want.SectorID {
			t.Errorf("%s: sector id %d", c.name, out.IDs.SectorID)
		}
		for k, nodes := range want.Challenges {
			for i, node := range nodes {
				if got := out.Partitions[k][i].Column.Index; uint64(got) != node {
					t.Errorf("%s: challenge %d of partition %d: want %d, got %d", c.name, i, k, node, got)
				}
			}
		}
		if !bytes.Equal(out.AppendJSON(nil), data) {
			t.Errorf("%s: AppendJSON gives other bytes", c.name)
		}
	}
}

// Every registered proof whose document is not huge, and the large sizes once each.
func TestParse_EveryRegisteredProof(t *testing.T) {
	for _, proof := range porep.RegisteredProofs() {
		large := proof.Shape.Partitions > 1
		if large && proof.Kind == porep.NonInteractive || large && testing.Short() ||
			large && (proof.Version == porep.V1_0) != (proof.Shape.TopArity == 0) {
			continue // up to 640 MB of JSON; the layout is that of another proof of the size
		}
		want := synthetic(proof, testIDs)
		data := want.AppendJSON(nil)
		got, err := Parse(data, Options{IDs: &testIDs})
		if err != nil {
			t.Errorf("%s: %v", proof.Name, err)
			continue
		}
		if !bytes.Equal(got.AppendJSON(nil), data) {
			t.Errorf("%s: AppendJSON gives other bytes", proof.Name)
		}
		if large {
			continue // the rest would tell nothing more, slowly
		}
		if !reflect.DeepEqual(got.Statement, want.Statement) || !reflect.DeepEqual(got.Partitions, want.Partitions) {
			t.Errorf("%s: another output comes back", proof.Name)
		}
		// The tag is that of the size, not of the proof.
		for _, other := range porep.RegisteredProofs() {
			if other.Tag == proof.Tag {
				continue
			}
			bad := bytes.Replace(data, []byte(`"vanilla_proofs":{"`+proof.Tag), []byte(`"vanilla_proofs":{"`+other.Tag), 1)
			_, err := Parse(bad, Options{})
			if e := refused(t, err); e.Where != "vanilla_proofs" || !strings.Contains(e.Want, proof.Tag) || !strings.Contains(e.Got, other.Tag) {
				t.Errorf("%s: %v", proof.Name, e)
			}
		}
	}
}

// reorder writes a document with all keys sorted, as Go writers do, or with whitespace wherever it may be.
func reorder(t *testing.T, data []byte, indent bool) []byte {
	t.Helper()
	var out bytes.Buffer
	if indent {
		if err := json.Indent(&out, data, "\r", "\t "); err != nil {
			t.Fatal(err)
		}
		return append([]byte("\n "), append(out.Bytes(), ' ', '\t')...)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		t.Fatal(err)
	}
	sorted, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return sorted
}

func TestParse_OrderAndWhitespace(t *testing.T) {
	for _, c := range cases {
		data, file := readVector(t, c.name, "c1.json"), readVector(t, c.name, "statement.json")
		want, err := Parse(data, Options{Statement: file})
		if err != nil {
			t.Fatal(err)
		}
		variants := map[string][]byte{
			"sorted":        reorder(t, data, false),
			"indented":      reorder(t, data, true),
			"escaped keys":  bytes.ReplaceAll(bytes.ReplaceAll(data, []byte(`"comm_`), []byte(`"\u0063omm\u005F`)), []byte(`"Single"`), []byte(`"\u0053ingle"`)),
			"without _h":    bytes.ReplaceAll(data, []byte(`,"_h":null`), nil),
			"unknown keys":  regexp.MustCompile(`\{"([a-z])`).ReplaceAll(data, []byte(`{"x\"y{[":[{"a":[1.5e-7,"\u00e9é\ud83d\ude00"],"a":true},null,false,-0],"":{},"$1`)),
			"unknown twice": bytes.Replace(data, []byte(`{`), []byte(`{"later":1,"later":[],`), 1),
		}
		for name, variant := range variants {
			if bytes.Equal(variant, data) {
				t.Fatalf("%s: the same document", name)
			}
			got, err := Parse(variant, Options{Statement: file})
			if err != nil {
				t.Errorf("%s, %s: %v", c.name, name, err)
			} else if !reflect.DeepEqual(got, want) {
				t.Errorf("%s, %s: another output", c.name, name)
			}
		}
	}
}

func TestParse_Wrapped(t *testing.T) {
	for _, c := range cases {
		data, file := readVector(t, c.name, "c1.json"), readVector(t, c.name, "statement.json")
		want, err := Parse(data, Options{Statement: file})
		if err != nil {
			t.Fatal(err)
		}
		size, sector := want.Statement.Shape.SectorBytes, want.IDs.SectorID
		text := base64.StdEncoding.EncodeToString(data)
		for _, wrapped := range []string{
			fmt.Sprintf(`{"SectorNum":%d,"Phase1Out":"%s","SectorSize":%d}`, sector, text, size),
			fmt.Sprintf(`{"SectorSize" : %d, "Other": {}, "SectorNum": %d, "Phase1Out":"%s" } `, size, sector, strings.ReplaceAll(text, "/", `\/`)),
		} {
			got, err := Parse([]byte(wrapped), Options{Statement: file})
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			if got.SectorNumber == nil || *got.SectorNumber != sector {
				t.Errorf("%s: sector number %v", c.name, got.SectorNumber)
			}
			got.SectorNumber = nil
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s: another output", c.name)
			}
		}
		for where, wrapped := range map[string]string{
			"SectorNum":  fmt.Sprintf(`{"SectorNum":%d,"Phase1Out":"%s","SectorSize":%d}`, sector+1, text, size),
			"SectorSize": fmt.Sprintf(`{"SectorNum":%d,"Phase1Out":"%s","SectorSize":%d}`, sector, text, size*2),
			"Phase1Out":  fmt.Sprintf(`{"Phase1Out":"%s"}`, text[1:]),
			"Phase1Out.comm_r": fmt.Sprintf(`{"Phase1Out":"%s"}`,
				base64.StdEncoding.EncodeToString(bytes.Replace(data, []byte(`"comm_r":[`), []byte(`"comm_r":[-`), 1))),
			"Phase1Out.comm_d": fmt.Sprintf(`{"Phase1Out":"%s"}`,
				base64.StdEncoding.EncodeToString(bytes.Replace(data, []byte(`"comm_d":[`), []byte(`"other":[`), 1))),
		} {
			_, err := Parse([]byte(wrapped), Options{Statement: file})
			if e := refused(t, err); !strings.HasPrefix(e.Where, where) {
				t.Errorf("%s: want %s refused, got %v", c.name, where, e)
			}
		}
		for _, wrapped := range []string{
			`{"Phase1Out":"` + text + "\n" + `"}`, `{"Phase1Out":"` + text + `é"}`, `{"Phase1Out":7}`, `{"Phase1Out":"` + text,
			`{"Phase1Out":"` + text + `","Phase1Out":""}`, `{"SectorNum":-1,"Phase1Out":"` + text + `"}`, `{"Phase1Out":""}`,
			`{"Phase1Out":"` + text + `A"}`,
		} {
			_, err := Parse([]byte(wrapped), Options{Statement: file})
			refused(t, err)
		}
	}
}

func TestParse_IDs(t *testing.T) {
	data, file := readVector(t, "porep-2k-b", "c1.json"), readVector(t, "porep-2k-b", "statement.json")
	s, err := ParseStatement(file)
	if err != nil {
		t.Fatal(err)
	}
	good := *s.IDs
	if out, err := Parse(data, Options{IDs: &good}); err != nil || *out.IDs != good || out.IDs == &good {
		t.Fatalf("the right ids: %v", err)
	}
	if out, err := Parse(data, Options{}); err != nil || out.IDs != nil {
		t.Fatalf("no ids: %v", err)
	}
	sector, prover := good, good
	sector.SectorID++
	prover.ProverID[31] ^= 1
	// Wrong ids must be found before the vanilla proofs are read: here those are garbage.
	garbage := bytes.Replace(data, []byte(`"hashes"`), []byte(`"sehsah"`), 1)
	for _, ids := range []IDs{sector, prover} {
		_, err := Parse(garbage, Options{IDs: &ids})
		e := refused(t, err)
		if e.Where != "replica_id" || !strings.Contains(e.Want, ids.String()) || !strings.Contains(e.Got, "sector_id, prover_id, ticket, comm_d") {
			t.Errorf("%v", e)
		}
		_, err = Parse(data, Options{IDs: &ids, Statement: file})
		if status.KindOf(err) != status.Caller || !strings.Contains(err.Error(), "statement file") {
			t.Errorf("against the statement file: %v", err)
		}
	}
	// The right ids under a wrong proof: the error tells which proof the replica was made for.
	wrong := bytes.Replace(data, []byte("StackedDrg2KiBV1_1"), []byte("StackedDrg2KiBV1"), 1)
	_, err = Parse(wrong, Options{IDs: &good})
	if e := refused(t, err); e.Where != "replica_id" || !strings.Contains(e.Got, "registered_proof is wrong, the id is that of StackedDrg2KiBV1_1") {
		t.Errorf("%v", e)
	}
	_, err = Parse(wrong, Options{Statement: file})
	if e := refused(t, err); e.Where != "registered_proof" || !strings.Contains(e.Want, "registered_seal_proof") {
		t.Errorf("%v", e)
	}
	for where, ticket := range map[string]string{"replica_id": `"ticket":[9`} {
		at := bytes.LastIndex(data, []byte(`"ticket":[`))
		comma := at + bytes.IndexByte(data[at:], ',')
		bad := append(append(append([]byte(nil), data[:at]...), ticket...), data[comma:]...)
		_, err := Parse(bad, Options{IDs: &good})
		if e := refused(t, err); e.Where != where {
			t.Errorf("%v", e)
		}
	}
}

// set replaces the value of a top-level key.
func set(t *testing.T, data []byte, key, value string) []byte {
	t.Helper()
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	if _, ok := all[key]; !ok {
		t.Fatalf("no %s", key)
	}
	all[key] = json.RawMessage(value)
	out, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// bytesJSON writes an array of 32 bytes.
func bytesJSON(h porep.Hash) string { return strings.ReplaceAll(fmt.Sprint(h), " ", ",") }

func TestParse_PublicParts(t *testing.T) {
	data := readVector(t, "porep-2k-a", "c1.json")
	r := porep.Hash{}
	for i, limb := range order {
		for j := range 8 {
			r[8*i+j] = byte(limb >> (8 * j))
		}
	}
	below := r
	below[0]-- // r is odd
	for _, c := range []struct {
		key, text string
		value     porep.Hash
	}{
		{"comm_r", "a commitment that is not zero", porep.Hash{}},
		{"comm_d", "a commitment that is not zero", porep.Hash{}},
		{"seed", "a challenge seed that is not zero", porep.Hash{}},
		{"comm_r", "canonical field element (< r)", r},
		{"comm_d", "canonical field element (< r)", r},
		{"replica_id", "canonical field element (< r)", r},
	} {
		_, err := Parse(set(t, data, c.key, bytesJSON(c.value)), Options{})
		if e := refused(t, err); e.Where != c.key || !strings.Contains(e.Want, c.text) {
			t.Errorf("%s: %v", c.key, e)
		}
	}
	// Not refused for what they are: the largest element, a ticket of any bytes.
	if _, err := Parse(set(t, data, "comm_r", bytesJSON(below)), Options{}); err != nil {
		t.Error(err)
	}
	for _, ticket := range []porep.Hash{{}, r} {
		if _, err := Parse(set(t, data, "ticket", bytesJSON(ticket)), Options{}); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{`"StackedDrg4KiBV1"`, `""`, `5`, `null`} {
		_, err := Parse(set(t, data, "registered_proof", name), Options{})
		if e := refused(t, err); e.Where != "registered_proof" || !strings.Contains(e.Want, "registered seal proof") {
			t.Errorf("%v", e)
		}
	}
	// Another size: the circuit's own counts are wrong then.
	_, err := Parse(set(t, data, "registered_proof", `"StackedDrg8MiBV1_1"`), Options{})
	if e := refused(t, err); e.Where != "vanilla_proofs" || !strings.Contains(e.Want, "StackedDrg8MiBV1") {
		t.Errorf("%v", e)
	}
}

func TestParse_Bare(t *testing.T) {
	data := readVector(t, "porep-32k", "c1.json")
	_, err := Parse(data, Options{})
	if e := refused(t, err); e.Where != "vanilla_proofs" || !strings.Contains(e.Got, "needs a statement file") {
		t.Errorf("%v", e)
	}
	// The statement file of another size: the trees differ.
	_, err = Parse(data, Options{Statement: bytes.ReplaceAll(readVector(t, "porep-32k", "statement.json"), []byte("32768"), []byte("16384"))})
	if e := refused(t, err); !strings.HasPrefix(e.Where, "vanilla_proofs[0][0].") {
		t.Errorf("%v", e)
	}
	// A registered proof in the bare form.
	proof, err := porep.RegisteredByNumber(5)
	if err != nil {
		t.Fatal(err)
	}
	out := synthetic(proof, testIDs)
	out.Bare = true
	file := `{"sector_size":2048,"api_version":"1.1.0","registered_seal_proof":"StackedDrg2KiBV1_1","porep_id":"05` + strings.Repeat("0", 62) + `"}`
	got, err := Parse(out.AppendJSON(nil), Options{Statement: []byte(file), IDs: &testIDs})
	if err != nil {
		t.Fatal(err)
	}
	if got.Statement != out.Statement || !got.Bare {
		t.Error("another statement")
	}
}

// Goal: a document that ends anywhere is refused, and the error says that it ends. With SEALC2_LONG=1 at every byte.
func TestParse_Truncated(t *testing.T) {
	data := readVector(t, "porep-2k-a", "c1.json")
	coarse := 97
	if os.Getenv("SEALC2_LONG") == "1" {
		coarse = 1
	}
	step := 1
	for n := 0; n < len(data); n += step {
		if _, err := Parse(data[:n], Options{}); err == nil {
			t.Fatalf("accepted %d of %d bytes", n, len(data))
		} else if !strings.Contains(err.Error(), fmt.Sprintf("the end of the document at byte %d", n)) && !strings.Contains(err.Error(), "want null, got n") {
			t.Fatalf("%d bytes: %v", n, err)
		}
		if n > 500 && n < len(data)-700 {
			step = coarse
		} else {
			step = 1
		}
	}
}

// Goal: a wrapped document that ends anywhere is refused too, and so is one whose inner document does.
func TestParse_TruncatedWrapped(t *testing.T) {
	data := readVector(t, "porep-2k-a", "c1.json")
	wrapped := fmt.Appendf(nil, `{"SectorNum":1,"Phase1Out":"%s","SectorSize":2048}`, base64.StdEncoding.EncodeToString(data))
	if _, err := Parse(wrapped, Options{}); err != nil {
		t.Fatal(err)
	}
	step := 1009
	if os.Getenv("SEALC2_LONG") == "1" {
		step = 1
	}
	for n := 0; n < len(wrapped); n += step {
		refused(t, parseError(wrapped[:n], Options{}))
	}
	for n := 0; n < len(data); n += step {
		inner := fmt.Appendf(nil, `{"SectorNum":1,"Phase1Out":"%s","SectorSize":2048}`, base64.StdEncoding.EncodeToString(data[:n]))
		if e := refused(t, parseError(inner, Options{})); !strings.HasPrefix(e.Where, "Phase1Out") {
			t.Fatalf("%d bytes inside: %v", n, e)
		}
	}
}

// Goal: a sector that is given out as one of any other registered proof is refused, with the ids that would give it
// away and without: sizes by their counts, versions by the graph, kinds by the challenges.
func TestParse_MismatchedProof(t *testing.T) {
	for _, name := range []string{"porep-2k-a", "porep-2k-b"} {
		data := readVector(t, name, "c1.json")
		sector, err := Parse(data, Options{Statement: readVector(t, name, "statement.json")})
		if err != nil {
			t.Fatal(err)
		}
		for _, proof := range porep.RegisteredProofs() {
			if proof.Name == sector.Statement.Registered.Name {
				continue
			}
			other := set(t, data, "registered_proof", `"`+proof.Name+`"`)
			for _, ids := range []*IDs{nil, sector.IDs} {
				if e := refused(t, parseError(other, Options{IDs: ids})); e.Where == "" || e.Want == "" || e.Got == "" {
					t.Errorf("%s as %s: %v", name, proof.Name, e)
				}
			}
		}
	}
}

// Goal: nothing that a small or a huge hostile document holds costs much more than reading it.
func TestParse_Hostile(t *testing.T) {
	block := make([]byte, 100<<20)
	fill := func(prefix, unit string, size int) []byte {
		at := copy(block, prefix)
		at += copy(block[at:], unit)
		for filled := at - len(unit); at < size; {
			at += copy(block[at:size], block[filled:at])
		}
		return block[:size]
	}
	for _, c := range []struct{ prefix, unit string }{
		{"", "["},
		{"", `{"a":`},
		{`{"vanilla_proofs":`, "["},
		{`{"vanilla_proofs":`, `{"StackedDrg2KiBV1":`},
		{`{"vanilla_proofs":`, `[]`},
		{`{"vanilla_proofs":[`, `"\"`},
		{`{"unknown":`, "["},
		{`{"Phase1Out":"`, "A"},
		{`{"Phase1Out":"`, `\`},
		{`{"comm_r":`, "[1,"},
		{`{"registered_proof":"StackedDrg64GiBV1_2_Feat_NonInteractivePoRep","vanilla_proofs":{"StackedDrg64GiBV1":[[`, "1,"},
		{`{"comm_r":[`, "1"},
		{`{"`, "a"},
		{"", " "},
	} {
		size := len(block)
		if c.unit != "[" {
			size /= 8
		}
		data := fill(c.prefix, c.unit, size)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		_, err := Parse(data, Options{})
		elapsed := time.Since(start)
		runtime.ReadMemStats(&after)
		e := refused(t, err)
		if len(e.Error()) > 2000 {
			t.Errorf("%q %q: an error of %d bytes", c.prefix, c.unit, len(e.Error()))
		}
		// Far more than any takes on its own, so that a busy machine does not fail it; 128 levels deep or
		// not, quadratic work on documents of this size would take hours.
		if elapsed > 8*time.Second {
			t.Errorf("%q %q: %v", c.prefix, c.unit, elapsed)
		}
		if got := after.TotalAlloc - before.TotalAlloc; got > 4<<20 {
			t.Errorf("%q %q: %d bytes allocated", c.prefix, c.unit, got)
		}
	}
}

func TestParse_NotADocument(t *testing.T) {
	data := readVector(t, "porep-2k-a", "c1.json")
	for _, bad := range [][]byte{
		nil, {}, []byte("{}"), []byte("[]"), []byte("null"), []byte(`"x"`), []byte("7"), []byte("\xef\xbb\xbf{}"), {0},
		append(append([]byte(nil), data...), '{'), append(append([]byte(nil), data...), 0), append(append([]byte(nil), data...), data...),
		append([]byte{','}, data...), append([]byte("\xef\xbb\xbf"), data...),
		bytes.Replace(data, []byte(`{`), []byte("{\"\xff\":1,"), 1),
		bytes.Replace(data, []byte(`{`), []byte("{\"a\":\"\xed\xa0\x80\","), 1),
		bytes.Replace(data, []byte(`{`), []byte(`{"a":"\ud800",`), 1),
		bytes.Replace(data, []byte(`{`), []byte("{\"a\":\"\n\","), 1),
		bytes.Replace(data, []byte(`{`), []byte(`{"a":01,`), 1),
		bytes.Replace(data, []byte(`{`), []byte(`{"a":nul,`), 1),
		bytes.Replace(data, []byte(`{`), []byte(`{"a":nulls,`), 1),
		bytes.Replace(data, []byte(`{`), []byte(`{,`), 1),
		bytes.Replace(data, []byte(`]]`), []byte(`]}`), 1),
		bytes.Replace(data, []byte(`}}`), []byte(`},}`), 1),
		bytes.Replace(data, []byte(`]]`), []byte(`],]`), 1),
	} {
		_, err := Parse(bad, Options{})
		e := refused(t, err)
		if e.Op != "c1.Parse" || e.Where == "" || e.Want == "" || e.Got == "" {
			t.Errorf("%.30q: %#v", bad, e)
		}
	}
	_, err := Parse(bytes.Replace(data, []byte(`{"comm_d_proofs":`), []byte(`[`), 1), Options{})
	if e := refused(t, err); !strings.Contains(e.Error(), "want an object, got an array") {
		t.Errorf("positional struct: %v", e)
	}
}
