package circuit

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"sync"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/host"
)

// The template names that digests count.
const (
	NameSha256   = "sha256_compress"
	NamePoseidon = "poseidon"
)

// ABC is a count for each of the matrices.
type ABC struct {
	A int `json:"a"`
	B int `json:"b"`
	C int `json:"c"`
}

func (x *ABC) at(matrix int) *int { return [3]*int{&x.A, &x.B, &x.C}[matrix] }

// ProgramDigest is the digest "sealc2-r1cs-v1" of a program with its counts: for each constraint, for A, B, C,
// the number of terms (u32), and each term's key (u32) with a tag byte 0 (one), 1 (minus one) or 2 (any other,
// then the scalar), little-endian; SHA-256 of runs of ChunkSize constraints, and SHA-256 over those.
type ProgramDigest struct {
	Format         string        `json:"format"`
	Name           string        `json:"name"`
	Total          string        `json:"total"`
	Inputs         int           `json:"inputs"`
	Aux            int           `json:"aux"`
	Constraints    int           `json:"constraints"`
	WithAppended   int           `json:"constraints_with_appended"`
	AppendedInputs int           `json:"appended_input_constraints"`
	DomainSize     int           `json:"domain_size"`
	NonZero        ABC           `json:"nnz"`
	OtherCoeffs    ABC           `json:"other_coefficients"`
	EmptyLCs       ABC           `json:"empty_lcs"`
	MaxTerms       ABC           `json:"max_terms"`
	Density        DensityDigest `json:"density"`
	Gadgets        GadgetCounts  `json:"gadgets"`
	ChunkSize      int           `json:"chunk_size"`
	Chunks         []string      `json:"chunks"`
}

// DensityDigest counts and hashes the densities: bit i in byte i/8 at place i%8.
type DensityDigest struct {
	AAux       int    `json:"a_aux"`
	AAuxHash   string `json:"a_aux_sha256"`
	BInput     int    `json:"b_input"`
	BInputHash string `json:"b_input_sha256"`
	BAux       int    `json:"b_aux"`
	BAuxHash   string `json:"b_aux_sha256"`
}

// GadgetCounts says how many hashes the circuit computes.
type GadgetCounts struct {
	Sha256          int            `json:"sha256_compressions"`
	PoseidonByArity map[string]int `json:"poseidon_by_arity"`
}

// Digest computes the digest from the very templates and instances that Evaluate runs, on up to threads
// goroutines. It fails only with Cancelled.
func (p *Program) Digest(ctx context.Context, threads int) (*ProgramDigest, error) {
	d := &ProgramDigest{
		Format: "sealc2-r1cs-v1", Name: p.name, Inputs: p.inputs, Aux: p.aux, Constraints: p.rows,
		WithAppended: p.RowCount(), AppendedInputs: p.inputs, DomainSize: p.Domain(), ChunkSize: chunkSize,
		Chunks: make([]string, (p.rows+chunkSize-1)/chunkSize),
	}
	sums := make([][sha256.Size]byte, len(d.Chunks))
	var mu sync.Mutex
	err := host.Do(ctx, "circuit.Digest", p.rows, chunkSize, threads, func(_, from, to int) error {
		var counts rowCounts
		sums[from/chunkSize] = p.hashRows(from, to, &counts)
		mu.Lock()
		defer mu.Unlock()
		counts.addTo(d)
		return nil
	})
	if err != nil {
		return nil, err
	}
	d.Total = totalOf(sums, d.Chunks)
	d.Density = DensityDigest{
		AAux: p.density.AAux.Count(), AAuxHash: p.density.AAux.hash(),
		BInput: p.density.BInput.Count(), BInputHash: p.density.BInput.hash(),
		BAux: p.density.BAux.Count(), BAuxHash: p.density.BAux.hash(),
	}
	d.Gadgets.PoseidonByArity = map[string]int{}
	for _, inst := range p.instances {
		switch t := p.templates[inst.template]; t.name {
		case NameSha256:
			d.Gadgets.Sha256++
		case NamePoseidon:
			d.Gadgets.PoseidonByArity[strconv.Itoa(len(t.external))]++
		}
	}
	return d, nil
}

// rowCounts are the counts of a run of constraints.
type rowCounts struct{ nonZero, other, empty, most ABC }

func (c *rowCounts) addTo(d *ProgramDigest) {
	for m := range 3 {
		*d.NonZero.at(m) += *c.nonZero.at(m)
		*d.OtherCoeffs.at(m) += *c.other.at(m)
		*d.EmptyLCs.at(m) += *c.empty.at(m)
		*d.MaxTerms.at(m) = max(*d.MaxTerms.at(m), *c.most.at(m))
	}
}

func (p *Program) hashRows(from, to int, counts *rowCounts) [sha256.Size]byte {
	h := sha256.New()
	buf := make([]byte, 0, 1<<16)
	p.eachRow(from, to, func(_ int, inst *instance, t *Template, span *rowSpan, order *keyOrder) {
		for m, terms := range [3][]term{t.terms[span.a:span.b], t.terms[span.b:span.c], t.terms[span.c:span.end]} {
			buf = binary.LittleEndian.AppendUint32(buf, uint32(len(terms)))
			*counts.nonZero.at(m) += len(terms)
			*counts.most.at(m) = max(*counts.most.at(m), len(terms))
			if len(terms) == 0 {
				*counts.empty.at(m)++
			}
			for _, x := range order.sort(p, inst, t, terms) {
				c := &t.coeff[x.coeff]
				buf = binary.LittleEndian.AppendUint32(buf, uint32(x.key))
				buf = append(buf, byte(c.kind))
				if c.kind == coeffOther {
					buf = append(buf, c.bytes[:]...)
					*counts.other.at(m)++
				}
			}
		}
		if len(buf) > cap(buf)/2 {
			h.Write(buf)
			buf = buf[:0]
		}
	})
	h.Write(buf)
	return [sha256.Size]byte(h.Sum(nil))
}

// totalOf writes the chunk digests in hex and returns the digest over them.
func totalOf(sums [][sha256.Size]byte, chunks []string) string {
	h := sha256.New()
	for i := range sums {
		h.Write(sums[i][:])
		chunks[i] = hex.EncodeToString(sums[i][:])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// hash is SHA-256 of the bits as bytes.
func (b Bits) hash() string {
	out := make([]byte, (b.Len+7)/8)
	for i := range out {
		out[i] = byte(b.Words[i/8] >> (i % 8 * 8))
	}
	sum := sha256.Sum256(out)
	return hex.EncodeToString(sum[:])
}

// VectorDigest is the chunked digest of a vector of scalars, 32 bytes each, canonical, little-endian.
type VectorDigest struct {
	Count  int      `json:"count"`
	Total  string   `json:"total"`
	Chunks []string `json:"chunks"`
}

// WitnessDigest is what a prover gets from the circuit of one partition.
type WitnessDigest struct {
	Inputs          int                   `json:"inputs"`
	Aux             int                   `json:"aux"`
	Constraints     int                   `json:"constraints"`
	Rows            int                   `json:"rows"`
	DomainSize      int                   `json:"domain_size"`
	UnsatisfiedRows int                   `json:"unsatisfied_rows"`
	R1CSTotal       string                `json:"r1cs_total"`
	InputAssignment VectorDigest          `json:"input_assignment"`
	AuxAssignment   VectorDigest          `json:"aux_assignment"`
	A               VectorDigest          `json:"a"`
	B               VectorDigest          `json:"b"`
	C               VectorDigest          `json:"c"`
	Density         map[string]BitsDigest `json:"density"`
	PublicInputs    []string              `json:"public_inputs_synthesised"` // without the one
}

// BitsDigest is the digest of a bit vector.
type BitsDigest struct {
	Bits     int    `json:"bits"`
	Popcount int    `json:"popcount"`
	Hash     string `json:"sha256"`
}

func (b Bits) digest() BitsDigest {
	return BitsDigest{Bits: b.Len, Popcount: b.Count(), Hash: b.hash()}
}

// DigestWitness evaluates all rows of an expanded witness, as a stream, and digests it. r1csTotal is the Total of
// the program's Digest. A row that does not hold is the error of Evaluate.
func (p *Program) DigestWitness(ctx context.Context, w *Witness, r1csTotal string, threads int) (*WitnessDigest, error) {
	d := &WitnessDigest{
		Inputs: p.inputs, Aux: p.aux, Constraints: p.rows, Rows: p.RowCount(), DomainSize: p.Domain(), R1CSTotal: r1csTotal,
		Density: map[string]BitsDigest{"a_aux": p.density.AAux.digest(), "b_input": p.density.BInput.digest(), "b_aux": p.density.BAux.digest()},
	}
	for _, x := range w.Inputs[1:] {
		b := littleEndian(&x)
		d.PublicInputs = append(d.PublicInputs, hex.EncodeToString(b[:]))
	}
	zero, one := fr.Element{}, fr.One()
	if err := digestVectors(ctx, p.inputs, threads, []*VectorDigest{&d.InputAssignment}, func(from, to int, out [][]byte) error {
		for i := from; i < to; i++ {
			out[0] = appendScalar(out[0], &w.Inputs[i])
		}
		return nil
	}); err != nil {
		return nil, err
	}
	if err := digestVectors(ctx, p.aux, threads, []*VectorDigest{&d.AuxAssignment}, func(from, to int, out [][]byte) error {
		rank := p.NumRank(from)
		for i := from; i < to; i++ {
			value := &zero
			if p.kind.Get(i) {
				value = &w.Nums[rank]
				rank++
			} else if w.Bits.Get(i) {
				value = &one
			}
			out[0] = appendScalar(out[0], value)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	if err := digestVectors(ctx, p.RowCount(), threads, []*VectorDigest{&d.A, &d.B, &d.C}, func(from, to int, out [][]byte) error {
		put := func(_ int, a, b, c *fr.Element) {
			out[0], out[1], out[2] = appendScalar(out[0], a), appendScalar(out[1], b), appendScalar(out[2], c)
		}
		e := evaluator{p: p, w: w}
		if err := e.rows(from, min(to, p.rows), put); err != nil {
			return err
		}
		for i := max(from, p.rows); i < to; i++ {
			put(i, &w.Inputs[i-p.rows], &zero, &zero)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	return d, nil
}

// digestVectors digests vectors of n scalars each, which fill appends to out chunk by chunk.
func digestVectors(ctx context.Context, n, threads int, vectors []*VectorDigest, fill func(from, to int, out [][]byte) error) error {
	chunks := (n + chunkSize - 1) / chunkSize
	sums := make([][][sha256.Size]byte, len(vectors))
	for k := range sums {
		sums[k] = make([][sha256.Size]byte, chunks)
	}
	err := host.Do(ctx, "circuit.Digest", n, chunkSize, threads, func(_, from, to int) error {
		out := make([][]byte, len(vectors))
		for k := range out {
			out[k] = make([]byte, 0, (to-from)*fr.Bytes)
		}
		if err := fill(from, to, out); err != nil {
			return err
		}
		for k := range out {
			sums[k][from/chunkSize] = sha256.Sum256(out[k])
		}
		return nil
	})
	if err != nil {
		return err
	}
	for k, v := range vectors {
		v.Count, v.Chunks = n, make([]string, chunks)
		v.Total = totalOf(sums[k], v.Chunks)
	}
	return nil
}

func littleEndian(x *fr.Element) (out [32]byte) {
	for i, limb := range x.Bits() {
		binary.LittleEndian.PutUint64(out[8*i:], limb)
	}
	return out
}

func appendScalar(dst []byte, x *fr.Element) []byte {
	b := littleEndian(x)
	return append(dst, b[:]...)
}
