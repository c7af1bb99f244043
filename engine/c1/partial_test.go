package c1

import (
	"encoding/base64"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/sealc2/sealc2/engine/circuit/porep"
)

// Goal: only who asks for it gets a C1 output without its last partitions.
// Method: two of the 13 partitions of a small non-interactive sector, in each form of the document; then none
// and one too many.
func TestParse_Partial(t *testing.T) {
	proof, err := porep.RegisteredByName("StackedDrg2KiBV1_2_Feat_NonInteractivePoRep")
	if err != nil {
		t.Fatal(err)
	}
	whole := synthetic(proof, testIDs)
	document := func(partitions [][]porep.Challenge) []byte {
		part := *whole
		part.Partitions = partitions
		return part.AppendJSON(nil)
	}
	two := document(whole.Partitions[:2])
	e := refused(t, parseError(two, Options{}))
	if e.Want != "13 partitions" || !strings.HasPrefix(e.Got, "2 in the array") {
		t.Errorf("got %v", e)
	}
	for form, data := range map[string][]byte{"tagged": two, "wrapped": fmt.Appendf(nil, `{"Phase1Out":%q}`, base64.StdEncoding.EncodeToString(two))} {
		out, err := Parse(data, Options{IDs: &testIDs, AllowPartial: true})
		if err != nil {
			t.Fatalf("%s: %v", form, err)
		}
		if !reflect.DeepEqual(out.Partitions, whole.Partitions[:2]) {
			t.Errorf("%s: other partitions came out", form)
		}
	}
	if out, err := Parse(document(whole.Partitions), Options{AllowPartial: true}); err != nil || len(out.Partitions) != 13 {
		t.Errorf("all partitions: %v", err)
	}
	for n, partitions := range map[int][][]porep.Challenge{0: nil, 14: append(whole.Partitions[:13:13], whole.Partitions[0])} {
		e := refused(t, parseError(document(partitions), Options{AllowPartial: true}))
		if e.Want != "1 to 13 partitions" {
			t.Errorf("%d partitions: %v", n, e)
		}
	}
}

func parseError(data []byte, opts Options) error {
	_, err := Parse(data, opts)
	return err
}

// TestParse_StatementOnly: the statement is that of the whole document in each form, checked as ever, and what the vanilla proofs say
// does not matter.
func TestParse_StatementOnly(t *testing.T) {
	proof, err := porep.RegisteredByName("StackedDrg2KiBV1_1")
	if err != nil {
		t.Fatal(err)
	}
	whole := synthetic(proof, testIDs)
	data := whole.AppendJSON(nil)
	spoiled := []byte(strings.Replace(string(data), `"comm_d_proofs"`, `"other"`, 1))
	if len(spoiled) == len(data) {
		t.Fatal("nothing was spoiled")
	}
	for form, data := range map[string][]byte{"tagged": spoiled, "wrapped": fmt.Appendf(nil, `{"Phase1Out":%q}`, base64.StdEncoding.EncodeToString(spoiled))} {
		out, err := Parse(data, Options{IDs: &testIDs, StatementOnly: true})
		if err != nil {
			t.Fatalf("%s: %v", form, err)
		}
		if !reflect.DeepEqual(out.Statement, whole.Statement) || out.Partitions != nil {
			t.Errorf("%s: %+v", form, out)
		}
		refused(t, parseError(data, Options{IDs: &testIDs}))
		other := testIDs
		other.SectorID++
		if e := refused(t, parseError(data, Options{IDs: &other, StatementOnly: true})); !strings.Contains(e.Error(), "replica_id") {
			t.Errorf("%s: another sector: %v", form, e)
		}
	}
}
