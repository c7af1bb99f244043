package c1

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/sealc2/sealc2/engine/circuit/porep"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
)

// partitions is a document with the first n partitions of a sector that has 13.
func partitions(t testing.TB, n int) []byte {
	t.Helper()
	proof, err := porep.RegisteredByName("StackedDrg2KiBV1_2_Feat_NonInteractivePoRep")
	if err != nil {
		t.Fatal(err)
	}
	out := synthetic(proof, testIDs)
	out.Partitions = out.Partitions[:n]
	return out.AppendJSON(nil)
}

// parseBoth parses on one thread and on four, each with and without instructions for whole vectors, and compares all that comes out.
func parseBoth(t testing.TB, data []byte, options Options) (*Output, error) {
	t.Helper()
	hashes, blocks, text := wideHashes, wideBlocks, wideText
	defer func() { wideHashes, wideBlocks, wideText = hashes, blocks, text }()
	options.Threads = 1
	want, wantErr := Parse(data, options)
	check := func(got *Output, err error) {
		t.Helper()
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("want %v, got %v", wantErr, err)
		}
		if err != nil {
			var a, b *status.Error
			if !errors.As(wantErr, &a) || !errors.As(err, &b) || a.Kind != b.Kind || wantErr.Error() != err.Error() {
				t.Fatalf("want %v, got %v", wantErr, err)
			}
		} else if !reflect.DeepEqual(got, want) {
			t.Fatal("another output on several threads")
		}
	}
	options.Threads = 4
	check(Parse(data, options))
	wideHashes, wideBlocks, wideText = false, false, false
	check(Parse(data, options))
	return want, wantErr
}

// Goal: several threads find what one finds, in good documents and in bad ones, whose first fault it is.
// Method: documents with some of a sector's partitions, in each form, changed at each byte around the borders of partitions, at
// random places, at one and two of them, and value by value in a partition that is not the first.
func TestParse_Threads(t *testing.T) {
	plain := partitions(t, 3)
	const tag = `"vanilla_proofs":{"StackedDrg2KiBV1":`
	at := bytes.Index(plain, []byte(tag))
	end := bytes.Index(plain, []byte(`]]},"comm_r":`))
	if at < 0 || end < 0 {
		t.Fatal("another form of document")
	}
	bare := []byte(`{"vanilla_proofs":` + string(plain[at+len(tag):end+2]) + string(plain[end+3:]))
	file := fmt.Appendf(nil, `{"sector_size":2048,"api_version":"1.2.0","api_features":["non-interactive-porep"],"porep_id":"%x"}`,
		porepID(t, "StackedDrg2KiBV1_2_Feat_NonInteractivePoRep"))
	options := Options{AllowPartial: true}
	withFile := Options{AllowPartial: true, Statement: file}
	for _, c := range []struct {
		name    string
		data    []byte
		options Options
	}{
		{"tagged", plain, options},
		{"bare", bare, withFile},
		{"spaced", bytes.ReplaceAll(plain, []byte(`}],[{`), []byte("}\t]\n,\r [\n {")), options},
		{"too few", plain, Options{}},
		{"all", partitions(t, 13), Options{}},
		{"statement only", plain, Options{AllowPartial: true, StatementOnly: true}},
	} {
		for _, data := range [][]byte{c.data, fmt.Appendf(nil, `{"Phase1Out":%q}`, base64.StdEncoding.EncodeToString(c.data))} {
			if _, err := parseBoth(t, data, c.options); (err == nil) == (c.name == "too few") {
				t.Errorf("%s: %v", c.name, err)
			}
		}
	}

	faults := 0
	try := func(data []byte, options Options) {
		t.Helper()
		if _, err := parseBoth(t, data, options); err != nil {
			faults++
		}
	}
	random := rand.New(rand.NewPCG(5, 6))
	border := regexp.MustCompile(`\}\],\[\{|":\[\[\{|\}\]\]`)
	for data, options := range map[string]Options{string(plain): options, string(bare): withFile} {
		for _, b := range border.FindAllStringIndex(data, -1) {
			for i := b[0]; i < b[1]; i++ {
				for _, with := range []string{"", "[", "]", "}", ",", `"`, " ", "7", "[],", data[i:i+1] + data[i:i+1], `"]",`, `\`} {
					if len(options.Statement) > 0 && random.IntN(4) > 0 {
						continue // one in four is enough of the second form
					}
					try(splice([]byte(data), span{i, i + 1}, with), options)
				}
			}
		}
	}
	// Partitions given out of order, twice, cut short, with members or partitions too many.
	cut := border.FindAllIndex(plain, -1)
	var parts []string
	for i := range 3 {
		parts = append(parts, string(plain[cut[i][1]-2:cut[i+1][0]+2]))
	}
	head, tail := string(plain[:cut[0][1]-2]), string(plain[cut[3][0]+2:])
	for _, list := range []string{
		parts[1] + "," + parts[0] + "," + parts[2], parts[0] + "," + parts[0], parts[0] + ",," + parts[1], parts[0] + "," + parts[1] + ",",
		parts[0] + ",[]," + parts[2], parts[0] + ",7," + parts[2], parts[0] + `,"` + strings.Repeat("]", 1000) + `",` + parts[2], "", "[]", "[],[]",
		strings.Repeat(parts[0]+",", 14) + parts[1], parts[0] + "," + strings.Repeat("[],", 300) + parts[1], strings.Repeat("[[]],", 1000) + parts[1],
		parts[0] + "," + parts[1][:len(parts[1])-1] + `,{"comm_d_proofs":{}}],` + parts[2], parts[0] + `,{"a":` + parts[1] + `},` + parts[2],
		parts[0] + "," + strings.Repeat("[", 200) + parts[1] + strings.Repeat("]", 200) + "," + parts[2], parts[0] + "," + parts[1][:len(parts[1])/2] + "," + parts[2],
		parts[0] + "," + strings.Replace(parts[1], "]", "", 1) + "]," + parts[2], parts[0] + "," + strings.Replace(parts[1], "]", "}", 1) + "," + parts[2],
	} {
		try([]byte(head+list+tail), options)
		try([]byte(head+list+strings.Replace(tail, "]", `],"more":[[1],[2]]`, 1)), options)
	}

	const bytesPut = `0123456789,:[]{}"\ -.eEtfn` + "\x00\xff"
	for range 250 {
		data := bytes.Clone(plain)
		for range 1 + random.IntN(3) {
			i := random.IntN(len(data))
			with := string(bytesPut[random.IntN(len(bytesPut))])
			switch random.IntN(4) {
			case 0:
				data = splice(data, span{i, i + 1}, with)
			case 1:
				data = splice(data, span{i, i}, with)
			case 2:
				data = splice(data, span{i, i + 1}, "")
			case 3:
				data = splice(data, span{i, min(len(data), i+random.IntN(300))}, "")
			}
		}
		try(data, options)
	}
	for n := 0; n < len(plain); n += 1 + random.IntN(8000) {
		try(plain[:n], options)
	}

	alike := regexp.MustCompile(`(drg|exp)_parents\[[1-7]\]|(base_proof|path)\[[1-9]\]|labeling_proofs`)
	numbers := 0
	for _, n := range nodes(t, plain) {
		if !strings.Contains(n.path, "[1][1]") && n.path != "vanilla_proofs.StackedDrg2KiBV1[1]" || alike.MatchString(n.path) {
			continue
		}
		if n.inHash {
			if numbers++; numbers%997 != 0 {
				continue
			}
		}
		if n.isHash && n.key == "" && numbers%5 != 0 {
			continue
		}
		member := string(plain[n.member.start:n.member.end])
		try(splice(plain, n.member, ""), options)
		try(splice(plain, n.member, member+","+member), options)
		for _, value := range n.otherValues() {
			try(splice(plain, n.value, value), options)
		}
	}
	if faults < 1000 {
		t.Errorf("only %d documents with a fault", faults)
	}
}

func porepID(t *testing.T, name string) porep.Hash {
	t.Helper()
	proof, err := porep.RegisteredByName(name)
	if err != nil {
		t.Fatal(err)
	}
	return proof.PorepID()
}

// TestParse_MaxInner: no proof has more partitions than are kept for reading ahead.
func TestParse_MaxInner(t *testing.T) {
	for _, proof := range porep.RegisteredProofs() {
		if n := proof.Shape.PartitionsOf(proof.Kind); n > maxInner {
			t.Errorf("%s: %d partitions", proof.Name, n)
		}
	}
}

// TestParse_ReadsAhead: with a pool, partitions are read on its threads and taken as they are; one thread reads nothing
// ahead; and the end of the context is an error.
func TestParse_ReadsAhead(t *testing.T) {
	data := partitions(t, 13)
	topology, err := host.ThisMachine().Topology()
	if err != nil {
		t.Fatal(err)
	}
	pool := host.NewPool(topology, 3, -1)
	defer pool.Close()
	ctx := host.WithPool(context.Background(), pool)
	for threads, want := range map[int]int{0: 0, 1: 0, 2: 13, 16: 13} {
		p := &parser{reader: reader{data: data}, ctx: ctx, threads: max(1, threads)}
		if f := p.envelope(); f != nil {
			t.Fatal(f.err("envelope", ""))
		}
		out := &Output{}
		if f := p.form(out); f != nil {
			t.Fatal(f.err("form", ""))
		}
		p.pos = p.values[vanillaProofs].start + bytes.IndexByte(data[p.values[vanillaProofs].start:], '[')
		list, err := p.readAhead(newLayout(out.Statement.Shape, out.Statement.Kind))
		if err != nil || len(list) != want {
			t.Errorf("%d threads: %d partitions, %v", threads, len(list), err)
		}
		for k := range list {
			if !list[k].done || list[k].f != nil || k > 0 && list[k].start != list[k-1].end+1 {
				t.Errorf("%d threads: partition %d: %+v", threads, k, list[k].f)
			}
		}
		if _, err := ParseContext(ctx, data, Options{Threads: threads}); err != nil {
			t.Error(err)
		}
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := ParseContext(ended, data, Options{Threads: 2}); status.KindOf(err) != status.Cancelled {
		t.Errorf("an ended context: %v", err)
	}
}

// TestParse_AheadMemory: partitions that cannot be whole get no memory ahead.
func TestParse_AheadMemory(t *testing.T) {
	for _, unit := range []string{"[],", "[[]],", `[{"comm_d_proofs":{}}],`, "[" + strings.Repeat("[1],", 1000) + "[2]],"} {
		data := []byte(`{"registered_proof":"StackedDrg64GiBV1_2_Feat_NonInteractivePoRep","vanilla_proofs":{"StackedDrg64GiBV1":[` +
			strings.TrimSuffix(strings.Repeat(unit, 4<<20/len(unit)), ",") + `]}`)
		for _, key := range publicKeys {
			data = append(data, `,"`+key+`":`+bytesJSON(porep.Hash{1})...)
		}
		data = append(data, '}')
		var allocated [2]uint64
		var text [2]string
		for i, threads := range []int{1, 8} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := Parse(data, Options{Threads: threads})
			runtime.ReadMemStats(&after)
			text[i] = refused(t, err).Error()
			allocated[i] = after.TotalAlloc - before.TotalAlloc
		}
		if !strings.Contains(text[0], "vanilla_proofs") || text[0] != text[1] {
			t.Errorf("%q: %q, %q", unit[:2], text[0], text[1])
		}
		if allocated[1] > allocated[0]+1<<16 {
			t.Errorf("%q: %d bytes on one thread, %d on eight", unit[:2], allocated[0], allocated[1])
		}
	}
}
