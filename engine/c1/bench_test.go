package c1

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"testing"

	"github.com/sealc2/sealc2/engine/circuit/porep"
	"github.com/sealc2/sealc2/engine/host"
)

// Goal: the rate at which the C1 output of a sector is read, on one thread and on two, what it takes of the CPU, and what it
// allocates. The aim is 51 MB in under 1 s. Smaller sizes show what a document costs besides its bytes. Floor: leap
// alone, which reads each byte once.
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
			for _, threads := range []int{1, 2} {
				b.Run(fmt.Sprintf("%s/%s/threads=%d", name, form, threads), func(b *testing.B) {
					b.SetBytes(int64(len(data)))
					b.ReportAllocs()
					used := host.CPUTime()
					for b.Loop() {
						if _, err := Parse(forms[form], Options{IDs: &testIDs, Threads: threads}); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64((host.CPUTime()-used).Microseconds())/1000/float64(b.N), "CPU-ms/op")
				})
			}
		}
		b.Run(name+"/leap", func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				r := reader{data: data}
				if at, f := r.leap(nil); f != nil || at.end != len(data) {
					b.Fatal(at)
				}
			}
		})
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
