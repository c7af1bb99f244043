package c1

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"testing"

	"github.com/sealc2/sealc2/engine/circuit/porep"
)

// Goal: the rate, on one core, at which the C1 output of a sector is read, and what it allocates. The
// aim is 51 MB in under 1 s. Smaller sizes show what a document costs besides its bytes.
func BenchmarkParse(b *testing.B) {
	for _, name := range []string{"StackedDrg2KiBV1_1", "StackedDrg32GiBV1_1", "StackedDrg64GiBV1_1_Feat_SyntheticPoRep"} {
		proof, err := porep.RegisteredByName(name)
		if err != nil {
			b.Fatal(err)
		}
		data := synthetic(proof, testIDs).AppendJSON(nil)
		forms := map[string][]byte{
			"raw":     data,
			"wrapped": fmt.Appendf(nil, `{"SectorNum":%d,"Phase1Out":%q,"SectorSize":%d}`, testIDs.SectorID, base64.StdEncoding.EncodeToString(data), proof.Shape.SectorBytes),
		}
		for _, form := range []string{"raw", "wrapped"} {
			b.Run(name+"/"+form, func(b *testing.B) {
				b.SetBytes(int64(len(data)))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := Parse(forms[form], Options{IDs: &testIDs}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		b.Logf("%s: %d bytes, SHA-256 %x", name, len(data), sha256.Sum256(data))
	}
}

func BenchmarkAppendJSON(b *testing.B) {
	proof, err := porep.RegisteredByName("StackedDrg32GiBV1_1")
	if err != nil {
		b.Fatal(err)
	}
	out := synthetic(proof, testIDs)
	data := out.AppendJSON(nil)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		data = out.AppendJSON(data[:0])
	}
}
