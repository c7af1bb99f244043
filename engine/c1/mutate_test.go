package c1

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sealc2/sealc2/engine/circuit/porep"
)

// node is one value of a document, found by a decoder that is not ours.
type node struct {
	path   string // as errors write it
	parent string
	key    string // empty for elements and the root
	inHash bool   // one of the 32 numbers of a hash
	isHash bool
	member span // with the key
	value  span
	kind   jsontext.Kind
	last   bool
}

// nodes lists all values of a compact document, parents after children.
func nodes(t *testing.T, data []byte) []node {
	t.Helper()
	dec := jsontext.NewDecoder(bytes.NewReader(data))
	var list []node
	var walk func(path string) (span, jsontext.Kind, int)
	next := func() int { // where the next token starts
		at := int(dec.InputOffset())
		for at < len(data) && bytes.IndexByte([]byte(",: \n"), data[at]) >= 0 {
			at++
		}
		return at
	}
	token := func() jsontext.Token {
		tok, err := dec.ReadToken()
		if err != nil {
			t.Fatal(err)
		}
		return tok
	}
	walk = func(path string) (span, jsontext.Kind, int) {
		start := next()
		kind := token().Kind()
		count := 0
		if kind == '{' || kind == '[' {
			var own []int
			for dec.PeekKind() != '}' && dec.PeekKind() != ']' {
				n := node{parent: path}
				n.member.start = next()
				if kind == '{' {
					n.key = token().String()
					n.path = strings.TrimPrefix(path+"."+n.key, ".")
				} else {
					n.path = fmt.Sprintf("%s[%d]", path, count)
				}
				before := len(list)
				var elements int
				n.value, n.kind, elements = walk(n.path)
				n.member.end = n.value.end
				n.isHash = n.kind == '[' && elements == 32 && list[len(list)-1].kind == '0'
				if n.isHash {
					for i := before; i < len(list); i++ {
						list[i].inHash = true
					}
				}
				own = append(own, len(list))
				list = append(list, n)
				count++
			}
			token()
			if len(own) > 0 {
				list[own[len(own)-1]].last = true
			}
		}
		return span{start, int(dec.InputOffset())}, kind, count
	}
	walk("")
	return list
}

// splice replaces a part of a document.
func splice(data []byte, at span, with string) []byte {
	out := make([]byte, 0, len(data)+len(with))
	out = append(out, data[:at.start]...)
	out = append(out, with...)
	return append(out, data[at.end:]...)
}

// otherValues are values that must not stand in the place of this one, by what they are.
func (n *node) otherValues() map[string]string {
	values := map[string]string{"null": "null", "true": "true", "string": `"7"`, "object": "{}", "list": "[]", "number": "7"}
	switch n.kind {
	case '{':
		delete(values, "object")
	case '[':
		delete(values, "list")
	case '0':
		delete(values, "number")
		maps.Copy(values, map[string]string{"negative": "-1", "minus zero": "-0", "fraction": "4.0", "exponent": "1e0", "capital": "1E1",
			"too large": "18446744073709551616", "leading zero": "00", "hexadecimal": "0x1"})
		if n.inHash {
			values["256"] = "256"
		}
	case '"':
		delete(values, "string")
		values["other"] = `"StackedDrg2KiBV7"`
	case 'n':
		delete(values, "null")
	}
	return values
}

// Goal: a document with one thing wrong anywhere is refused, by an error that names the place.
// Method: each key and each element of the reference's documents is removed, doubled and given a value of
// another type, one at a time; of hashes in lists, their numbers and like columns only a few.
func TestParse_EveryMutation(t *testing.T) {
	// All columns but three, of one challenge but the last, are read by the same lines.
	alike := regexp.MustCompile(`\[0\]\[0\].*(drg|exp)_parents\[|drg_parents\[[0-4]\]\.|exp_parents\[[0-6]\]\.`)
	for _, c := range []struct {
		name string
		bare bool
	}{{"porep-2k-a", false}, {"porep-32k", true}} {
		data := readVector(t, c.name, "c1.json")
		options := Options{}
		if c.bare {
			options.Statement = readVector(t, c.name, "statement.json")
		}
		count, hashes, hashNumbers := 0, 0, 0
		try := func(n *node, what, document string, where ...string) {
			t.Helper()
			count++
			_, err := Parse([]byte(document), options)
			e := refused(t, err)
			if !slices.Contains(where, e.Where) || e.Want == "" || e.Got == "" {
				t.Fatalf("%s: %s %s: want it at %q: %v", c.name, n.path, what, where, e)
			}
			if n.key != "" && !strings.Contains(e.Error(), n.key) {
				t.Fatalf("%s: %s %s: the error does not name it: %v", c.name, n.path, what, e)
			}
		}
		all := nodes(t, data)
		parents := map[string]node{}
		for _, n := range all {
			parents[n.path] = n
		}
		for i := range all {
			n := &all[i]
			if alike.MatchString(n.path) {
				continue
			}
			if n.inHash {
				if hashNumbers++; hashNumbers%487 != 0 {
					continue
				}
			}
			if n.isHash && n.key == "" {
				if hashes++; hashes%11 != 0 {
					continue
				}
			}
			member := string(data[n.member.start:n.member.end])
			// The only member of an enum: its name is the type, so the enum is what is wrong.
			where := []string{n.path}
			if n.key == "" {
				where = []string{n.parent}
			} else if strings.HasPrefix(n.key, "S") || n.key == "Top" {
				where = append(where, n.parent)
			}

			removed := n.member
			if !n.last {
				removed.end++
			} else if data[removed.start-1] == ',' {
				removed.start--
			}
			if n.key == "_h" {
				if _, err := Parse(splice(data, removed, ""), options); err != nil {
					t.Fatal(err)
				}
			} else {
				try(n, "removed", string(splice(data, removed, "")), where...)
			}
			try(n, "doubled", string(splice(data, n.member, member+","+member)), where...)

			for what, value := range n.otherValues() {
				if c.bare && n.path == "vanilla_proofs" && what == "object" {
					continue // then it is the tagged form, and lacks registered_proof
				}
				try(n, what, string(splice(data, n.value, value)), n.path)
			}
			// An empty object or list lacks what should be in it, so the place is in or at it.
			switch {
			case n.kind == '[':
				try(n, "empty", string(splice(data, n.value, "[]")), n.path)
			case n.kind == '{':
				_, err := Parse(splice(data, n.value, "{}"), options)
				if e := refused(t, err); !strings.HasPrefix(e.Where, n.path) {
					t.Fatalf("%s empty: %v", n.path, e)
				}
			}
		}
		if count < 1500 {
			t.Errorf("%s: only %d mutations", c.name, count)
		}
	}
}

// Goal: know exactly which changed hashes Parse finds and which it leaves to the circuit.
// Method: the lowest bit of each hash of a document is flipped, one at a time.
func TestParse_EveryHash(t *testing.T) {
	// What only hashing can tell: siblings, the column that a leaf is the hash of, labels that are no
	// parent's in any label of the document, and what comm_r and the ticket were made from.
	left := regexp.MustCompile(`\.hashes\[\d+\]$|\.inclusion_proof\.data\.\w+\.leaf$|^comm_r$|^ticket$` +
		`|\.c_x\.column\.rows\[0\]$|\.exp_parents\[\d\]\.column\.rows\[1\]$`)
	for _, c := range []struct {
		name string
		bare bool
	}{{"porep-2k-b", false}, {"porep-32k", true}} {
		data := readVector(t, c.name, "c1.json")
		options := Options{}
		if c.bare {
			file := readVector(t, c.name, "statement.json")
			options.Statement = bytes.ReplaceAll(file, []byte("tor_id"), []byte("tor_no"))
			options.Statement = bytes.ReplaceAll(options.Statement, []byte("prover_id"), []byte("prover_no"))
			for _, key := range publicKeys {
				options.Statement = bytes.ReplaceAll(options.Statement, []byte(`"`+key+`"`), []byte(`"no_`+key+`"`))
			}
		}
		for _, n := range nodes(t, data) {
			if !n.isHash {
				continue
			}
			number := span{n.value.start + 1, n.value.start + bytes.IndexByte(data[n.value.start:], ',')}
			var low byte
			fmt.Sscan(string(data[number.start:number.end]), &low)
			_, err := Parse(splice(data, number, fmt.Sprint(low^1)), options)
			if (err == nil) != left.MatchString(n.path) {
				t.Errorf("%s: %s: %v", c.name, n.path, err)
			}
		}
	}
}

// Every value that must be a field element, at and just below the order.
func TestParse_NotCanonical(t *testing.T) {
	data := readVector(t, "porep-2k-a", "c1.json")
	var r porep.Hash
	for i, limb := range order {
		for j := range 8 {
			r[8*i+j] = byte(limb >> (8 * j))
		}
	}
	for _, n := range nodes(t, data) {
		if !n.isHash || n.path == "seed" || n.path == "ticket" {
			continue
		}
		_, err := Parse(splice(data, n.value, bytesJSON(r)), Options{})
		e := refused(t, err)
		if e.Where != n.path || e.Want != "a canonical field element (< r)" || !strings.HasPrefix(e.Got, "0x73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001 at byte ") {
			t.Fatalf("%s: %v", n.path, e)
		}
	}
}

// Numbers that are well-formed but impossible, and values that contradict each other.
func TestParse_Inconsistent(t *testing.T) {
	const root = "vanilla_proofs.StackedDrg2KiBV1"
	data := readVector(t, "porep-2k-a", "c1.json")
	all := map[string]node{}
	for _, n := range nodes(t, data) {
		all[n.path] = n
	}
	for _, c := range []struct{ path, value, want string }{
		{"[0][1].comm_r_last_proof.data.Single.path.path[1].index", "8", "an integer from 0 to 7"},
		{"[0][1].comm_d_proofs.data.Single.path.path[1].index", "2", "an integer from 0 to 1"},
		{"[0][0].replica_column_proofs.exp_parents[3].column.index", "64", "an integer from 0 to 63"},
		{"[0][0].labeling_proofs[1].node", "64", "an integer from 0 to 63"},
		{"[0][0].labeling_proofs[1].layer_index", "1", "2, the layer"},
		{"[0][0].labeling_proofs[1].layer_index", "3", "an integer from 0 to 2"},
		{"[0][0].encoding_proof.layer_index", "1", "2, the layer"},
		{"[0][0].labeling_proofs[0].node", "0", "a node that can be challenged"},
		{"[0][0].labeling_proofs[1].node", "1", "the node of the first layer"},
		{"[0][0].encoding_proof.node", "1", "the node of the first layer"},
		{"[0][0].replica_column_proofs.c_x.column.index", "1", "the challenged node"},
	} {
		n, ok := all[root+c.path]
		if !ok {
			t.Fatalf("no %s", c.path)
		}
		_, err := Parse(splice(data, n.value, c.value), Options{})
		if e := refused(t, err); e.Where != n.path || !strings.Contains(e.Want, c.want) {
			t.Errorf("%s = %s: %v", c.path, c.value, e)
		}
	}

	// Changes of several values at once, which only comparison with the rest finds.
	proof, err := porep.RegisteredByName("StackedDrg2KiBV1_2_Feat_NonInteractivePoRep")
	if err != nil {
		t.Fatal(err)
	}
	const ni = root + "[12][1]."
	for _, c := range []struct {
		where, want string
		change      func(*Output, *porep.Challenge)
	}{
		{ni + "comm_r_last_proof.data.Single.root", "comm_r_last of the first challenge", func(_ *Output, c *porep.Challenge) { c.CommRLast.Root[0] ^= 1 }},
		{ni + "replica_column_proofs.c_x.inclusion_proof.data.Single.root", "comm_c of the first challenge", func(_ *Output, c *porep.Challenge) {
			c.Column.Inclusion.Root[0] ^= 1
			for i := range c.DRG {
				c.DRG[i].Inclusion.Root[0] ^= 1
			}
			for i := range c.Expander {
				c.Expander[i].Inclusion.Root[0] ^= 1
			}
		}},
		{ni + "replica_column_proofs.drg_parents[5].inclusion_proof.data.Single.root", "comm_c (the root of c_x)", func(_ *Output, c *porep.Challenge) { c.DRG[5].Inclusion.Root[0] ^= 1 }},
		{ni + "replica_column_proofs.exp_parents[7].column.index", "the parent in the graph", func(_ *Output, c *porep.Challenge) {
			c.Expander[7].Index ^= 1
			c.Expander[7].Inclusion.Base[0].Index ^= 1
		}},
		{ni + "replica_column_proofs.drg_parents[0].column.index", "the parent in the graph", func(_ *Output, c *porep.Challenge) {
			c.DRG[0].Index ^= 1
			c.DRG[0].Inclusion.Base[0].Index ^= 1
		}},
		{ni + "replica_column_proofs.drg_parents[0].inclusion_proof.data.Single", "column.index", func(_ *Output, c *porep.Challenge) { c.DRG[0].Index ^= 1 }},
		{ni + "encoding_proof.parents[36]", "exp_parents[2].column.rows[0]", func(_ *Output, c *porep.Challenge) {
			c.Encoding.Parents = slices.Clone(c.Encoding.Parents)
			c.Encoding.Parents[36][0] ^= 1
		}},
		{ni + "labeling_proofs[0].parents[36]", "drg_parents[0].column.rows[0]", func(_ *Output, c *porep.Challenge) { c.Labeling[0].Parents[36][0] ^= 1 }},
		{root + "[0][0].labeling_proofs[0].node", "the node that replica_id and comm_r challenge", func(o *Output, _ *porep.Challenge) { o.Statement.CommR[0] ^= 1 }},
		{root + "[0][0].comm_d_proofs.data.Single.root", "comm_d", func(o *Output, _ *porep.Challenge) { o.Statement.CommD[0] ^= 1 }},
	} {
		out := synthetic(proof, testIDs)
		c.change(out, &out.Partitions[12][1])
		_, err := Parse(out.AppendJSON(nil), Options{})
		if e := refused(t, err); e.Where != c.where || !strings.Contains(e.Want, c.want) {
			t.Errorf("want %s: %s, got %v", c.where, c.want, e)
		}
	}
}
