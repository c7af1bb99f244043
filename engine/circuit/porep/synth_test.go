package porep

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/sealc2/sealc2/engine/circuit"
)

// shapeFile is what the reference says of a blank circuit.
type shapeFile struct {
	circuit.ProgramDigest
	ChunkFirst []string `json:"chunk_first_constraint"`
}

func TestProgram_DigestEqualsReference(t *testing.T) {
	for _, name := range []string{"porep-2k", "porep-16k", "porep-32k", "porep-8m", "porep-512m"} {
		t.Run(name, func(t *testing.T) {
			var want shapeFile
			readVectors(t, "shapes/"+name+".json", &want)
			shape := Shapes()[slices.IndexFunc(Shapes(), func(s *Shape) bool { return s.OracleName == name })]
			got, err := Program(shape).Digest(context.Background(), 2)
			if err != nil {
				t.Fatal(err)
			}
			for i := range min(len(got.Chunks), len(want.Chunks)) {
				if got.Chunks[i] != want.Chunks[i] {
					t.Errorf("first difference in chunk %d, which begins at %s", i, want.ChunkFirst[i])
					break
				}
			}
			if g, w := fmt.Sprintf("%+v", *got), fmt.Sprintf("%+v", want.ProgramDigest); g != w {
				t.Errorf("digest\n got %.2000s\nwant %.2000s", g, w)
			}
		})
	}
}
