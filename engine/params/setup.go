package params

import (
	"context"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"math/big"
	"runtime"
	"slices"
	"time"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
)

// DefaultSetupText is the text of the reference's development parameters.
const DefaultSetupText = "sealc2-dev-setup-v1"

// Scalars are the secrets of a setup. Whoever knows them can prove anything, so keys made from a public
// text are for development only.
type Scalars struct {
	Alpha, Beta, Gamma, Delta, Tau fr.Element
	Rule                           string // how they were made, for the report; may be empty
}

// SetupScalars derives scalars from a public text: NAME is SHA-512(text + "|" + oracleShape + "|" + NAME),
// read as a little-endian integer modulo r, for NAME in alpha, beta, gamma, delta, tau. oracleShape is the
// circuit's name, as "porep-2k".
func SetupScalars(text, oracleShape string) Scalars {
	scalar := func(name string) (e fr.Element) {
		digest := sha512.Sum512([]byte(text + "|" + oracleShape + "|" + name))
		slices.Reverse(digest[:])
		e.SetBigInt(new(big.Int).SetBytes(digest[:]))
		return e
	}
	return Scalars{
		Alpha: scalar("alpha"),
		Beta:  scalar("beta"),
		Gamma: scalar("gamma"),
		Delta: scalar("delta"),
		Tau:   scalar("tau"),
		Rule:  fmt.Sprintf(`SHA-512("%s|%s|NAME") as 64-byte little-endian integer modulo r, NAME in alpha beta gamma delta tau`, text, oracleShape),
	}
}

// SetupOptions say where parameters go.
type SetupOptions struct {
	Dir      string // must exist
	BaseName string // files are Dir/BaseName.params and Dir/BaseName.vk
	Shape    string // the circuit's name, for the report
	Threads  int    // goroutines that compute; 0: GOMAXPROCS
	// Source makes the points elsewhere than on these threads, which then only write and hash; nil: here.
	Source SetupSource
	// WithoutDigests leaves the digests of the .params file and its blocks empty: hashing a file takes longer than a source
	// takes to make it.
	WithoutDigests bool
	// HostBytes is a ceiling over the memory that Setup takes; 0: none. Tables shrink to fit below it.
	HostBytes int64
	// Progress is called in the caller's goroutine with the share of the work that is done, 0 to 1, and
	// the block under way: "circuit", "tables", "ic", "h", "l", "a", "b_g1", "b_g2", "files". May be nil.
	Progress func(done float64, what string)
}

// SetupSource makes the points of a circuit's setup.
type SetupSource interface {
	// Begin returns the key for some secrets, and the numbers of points. Errors: as Setup's.
	Begin(ctx context.Context, scalars *Scalars) (*groth16.VerifyingKey, Counts, error)
	// Block gives the points of a block to put, encoded and in order. put may keep a piece after it has returned without an
	// error, and calls done once then, from any goroutine; Block returns when all are done. The blocks are asked for in
	// their order, each once.
	Block(ctx context.Context, b groth16.Block, put func(piece []byte, done func()) error) error
}

// SetupVK has the single points of the key, uncompressed, in hex.
type SetupVK struct {
	AlphaG1 string `json:"alpha_g1"`
	BetaG1  string `json:"beta_g1"`
	BetaG2  string `json:"beta_g2"`
	GammaG2 string `json:"gamma_g2"`
	DeltaG1 string `json:"delta_g1"`
	DeltaG2 string `json:"delta_g2"`
}

// SetupResult is the report of a setup. Scalars are 32 bytes, little-endian, in hex.
type SetupResult struct {
	Shape      string                 `json:"shape"`
	ScalarRule string                 `json:"scalar_rule"`
	G1         string                 `json:"g1"`
	G2         string                 `json:"g2"`
	Alpha      string                 `json:"alpha"`
	Beta       string                 `json:"beta"`
	Gamma      string                 `json:"gamma"`
	Delta      string                 `json:"delta"`
	Tau        string                 `json:"tau"`
	VK         SetupVK                `json:"vk"`
	Blocks     map[string]BlockDigest `json:"blocks"` // ic, h, l, a, b_g1, b_g2
	ParamsFile FileDigest             `json:"params_file"`
	VKFile     FileDigest             `json:"vk_file"`
	ParamsPath string                 `json:"params_path"`
	VKPath     string                 `json:"vk_path"`
	Threads    int                    `json:"threads"`
	Seconds    float64                `json:"generate_seconds"`
}

// Bounds on the tables of fixed-base multiplication. Larger ones save no time, since they have to be filled as
// well; with smaller ones than the least it takes several times as long.
const (
	setupTableBytes      = 512 << 20
	setupLeastTableBytes = 16 << 20
)

// setupThreadBytes bounds what a thread takes: pieces of a block that wait to be written, and its batches.
const setupThreadBytes = 8 << 20

// Work for the progress, in additions in G1, as measured: a product takes an addition a window, one in G2
// costs as much as four, and bringing a constraint to tau as much as four too.
const (
	setupWindows = 13
	setupCostG2  = 4
	setupCostRow = 4
)

// Setup makes the parameters of circuit c for the given secrets and writes them as bellperson does:
// byte for byte what its generate_parameters gives for the standard generators. Both files are written
// under temporary names beside their places, synced, and renamed when complete: the key first, so where
// the .params file is new, so is its key. On any error nothing stays behind.
//
// Memory: 96 bytes a variable, the tables (16 to 512 MiB) and a few MiB a thread; with a source, what that takes.
// Errors: Caller (a secret that is zero, tau in the domain, a variable that no constraint binds), Params
// (the files cannot be written; Where is the path), NoMemory (at once, with both numbers, where the options'
// ceiling is too low), Cancelled.
func Setup(ctx context.Context, c R1CS, scalars Scalars, options SetupOptions) (result *SetupResult, err error) {
	const op = "params.Setup"
	defer status.Recover(op, &err)
	start := time.Now()
	for _, s := range []struct {
		name  string
		value *fr.Element
	}{{"alpha", &scalars.Alpha}, {"beta", &scalars.Beta}, {"gamma", &scalars.Gamma}, {"delta", &scalars.Delta}, {"tau", &scalars.Tau}} {
		if s.value.IsZero() {
			return nil, status.New(status.Caller, op, s.name, "a scalar that is not zero", "zero")
		}
	}
	if options.Threads <= 0 {
		options.Threads = runtime.GOMAXPROCS(0)
	}
	var tableBytes int64
	if options.Source == nil {
		tableBytes, err = setupTables(c, &options)
	}
	if err != nil {
		return nil, err
	}
	// The files come first: a directory that cannot be written is refused before the work.
	files, err := createSetupFiles(options.Dir, options.BaseName)
	if err != nil {
		return nil, err
	}
	defer files.discard()
	files.params.plain = options.WithoutDigests
	g := &generator{circuit: c, scalars: &scalars, options: &options, files: files, tableBytes: tableBytes, blocks: map[string]BlockDigest{}}
	defer g.close()
	run := g.run
	if options.Source != nil {
		run = g.runSource
	}
	if err := run(ctx); err != nil {
		return nil, err
	}
	g.report("files")
	if err := files.commit(); err != nil {
		return nil, err
	}
	result = g.result()
	result.Seconds = time.Since(start).Seconds()
	if options.Progress != nil {
		options.Progress(1, "files")
	}
	return result, nil
}

// setupTables is the memory for tables that a ceiling leaves. Fails with NoMemory where it is too low for all else.
func setupTables(c R1CS, options *SetupOptions) (int64, error) {
	if options.HostBytes <= 0 {
		return setupTableBytes, nil
	}
	vectors := 3 * host.SliceBytes[fr.Element](c.InputCount()+c.AuxCount())
	rest := vectors + int64(options.Threads)*setupThreadBytes
	budget := host.NewBudget(host.Needs{HostBytes: options.HostBytes})
	if err := budget.Fits("params.Setup", host.Needs{HostBytes: rest + setupLeastTableBytes}); err != nil {
		return 0, err
	}
	return min(setupTableBytes, options.HostBytes-rest), nil
}

// generator is one setup under way.
type generator struct {
	circuit R1CS
	scalars *Scalars
	options *SetupOptions
	files   *setupFiles

	tableBytes int64 // for the tables of one group
	qap        *qap
	g1         fixedTable
	vk         groth16.VerifyingKey
	counts     Counts
	blocks     map[string]BlockDigest

	done, total float64 // additions in G1, or their worth
	shown       float64
}

func (g *generator) close() {
	if g.qap != nil {
		g.qap.Close()
	}
	if g.g1 != nil {
		g.g1.Close()
	}
}

// report tells the progress when it has moved by half a percent or a block begins.
func (g *generator) report(what string) {
	if g.options.Progress != nil {
		g.shown = g.done / g.total
		g.options.Progress(min(g.shown, 0.999), what)
	}
}

// advance counts work that is done within a block.
func (g *generator) advance(work float64, what string) {
	g.done += work
	if g.done/g.total-g.shown >= 0.005 {
		g.report(what)
	}
}

// run writes both files. The blocks' exponents live in the three vectors of the qap: l is taken from c,
// then a and b, compacted in place.
func (g *generator) run(ctx context.Context) (err error) {
	threads := g.options.Threads
	rows, inputs := g.circuit.ConstraintCount(), g.circuit.InputCount()
	aux := g.circuit.AuxCount()
	// Until the zeros of a and b are known: as many points in a as in l, and none in b.
	g.total = float64(rows)*setupCostRow + float64(rows+2*aux)*setupWindows
	g.report("circuit")
	if g.qap, err = evaluateQAP(ctx, g.circuit, g.scalars, threads); err != nil {
		return err
	}
	if err = g.qap.extend(ctx, g.scalars, threads); err != nil {
		return err
	}
	a, b := compact(g.qap.a), compact(g.qap.b)
	g.counts = Counts{IC: inputs, Blocks: [groth16.BlockCount]int{g.qap.domain - 1, aux, len(a), len(b), len(b)}}
	if err = g.files.params.reserve(g.counts.Bytes()); err != nil {
		return err
	}

	inG1 := inputs + g.qap.domain - 1 + aux + len(a) + len(b)
	g.done = float64(rows) * setupCostRow
	g.total = g.done + float64(inG1+len(b)*setupCostG2)*setupWindows
	g.report("tables")
	if g.g1, err = newTableG1(ctx, inG1, threads, g.tableBytes); err != nil {
		return err
	}

	if err = g.writeVK(ctx); err != nil {
		return err
	}
	var first fr.Element
	first.Div(&g.qap.vanishing, &g.scalars.Delta)
	h := func(from int, dst []fr.Element) { g.qap.powers(&first, from, dst) }
	if err = g.write(ctx, groth16.BlockH, g.g1, setupWindows, h); err != nil {
		return err
	}
	if err = g.write(ctx, groth16.BlockL, g.g1, setupWindows, inMemory(g.qap.c[inputs:])); err != nil {
		return err
	}
	if err = g.write(ctx, groth16.BlockA, g.g1, setupWindows, inMemory(a)); err != nil {
		return err
	}
	if err = g.write(ctx, groth16.BlockB1, g.g1, setupWindows, inMemory(b)); err != nil {
		return err
	}
	g.g1.Close()
	g.report("tables")
	g2, err := newTableG2(ctx, len(b), threads, g.tableBytes)
	if err != nil {
		return err
	}
	defer g2.Close()
	if err = g.write(ctx, groth16.BlockB2, g2, setupCostG2*setupWindows, inMemory(b)); err != nil {
		return err
	}
	status.Check(g.files.params.bytes == g.counts.Bytes(), "params.Setup", "the file to have the size of its counts")
	return nil
}

// inMemory is a source of scalars that stand in memory.
func inMemory(values []fr.Element) func(from int, dst []fr.Element) {
	return func(from int, dst []fr.Element) { copy(dst, values[from:]) }
}

// writeVK computes the key and writes it to both files.
func (g *generator) writeVK(ctx context.Context) error {
	g.report("ic")
	inG1 := func(p *bls.G1Affine, s *fr.Element) { p.ScalarMultiplicationBase(s.BigInt(new(big.Int))) }
	inG2 := func(p *bls.G2Affine, s *fr.Element) { p.ScalarMultiplicationBase(s.BigInt(new(big.Int))) }
	inG1(&g.vk.AlphaG1, &g.scalars.Alpha)
	inG1(&g.vk.BetaG1, &g.scalars.Beta)
	inG2(&g.vk.BetaG2, &g.scalars.Beta)
	inG2(&g.vk.GammaG2, &g.scalars.Gamma)
	inG1(&g.vk.DeltaG1, &g.scalars.Delta)
	inG2(&g.vk.DeltaG2, &g.scalars.Delta)
	err := stream(ctx, g.g1, g.options.Threads, g.counts.IC, G1Bytes, inMemory(g.qap.c), func(piece []byte) error {
		for ; len(piece) > 0; piece = piece[G1Bytes:] {
			var p bls.G1Affine
			if err := DecodeG1Uncompressed(piece, &p); err != nil {
				return err
			}
			g.vk.IC = append(g.vk.IC, p)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return g.writeKey()
}

// writeKey writes the key to both files.
func (g *generator) writeKey() error {
	encoded := groth16.AppendVK(nil, &g.vk)
	g.blocks["ic"] = digestBlock(g.counts.IC, encoded[groth16.VKHeadBytes:])
	if err := g.files.vk.write(encoded); err != nil {
		return err
	}
	return g.files.params.write(encoded)
}

// write writes a block: its count, and the products of its scalars; work is the work of a point.
func (g *generator) write(ctx context.Context, b groth16.Block, table fixedTable, work float64, scalars func(from int, dst []fr.Element)) error {
	g.report(b.String())
	count, params := g.counts.Blocks[b], g.files.params
	if err := params.beginBlock(count); err != nil {
		return err
	}
	pointBytes := PointBytes(b)
	err := stream(ctx, table, g.options.Threads, count, pointBytes, scalars, func(piece []byte) error {
		g.advance(float64(len(piece)/pointBytes)*work, b.String())
		return params.writeBlock(piece)
	})
	if err != nil {
		return err
	}
	g.blocks[b.String()] = params.endBlock(count)
	return nil
}

func (g *generator) result() *SetupResult {
	_, _, g1, g2 := bls.Generators()
	hexG1 := func(p *bls.G1Affine) string {
		var raw [G1Bytes]byte
		EncodeG1Uncompressed(raw[:], p)
		return hex.EncodeToString(raw[:])
	}
	hexG2 := func(p *bls.G2Affine) string {
		var raw [G2Bytes]byte
		EncodeG2Uncompressed(raw[:], p)
		return hex.EncodeToString(raw[:])
	}
	hexScalar := func(e *fr.Element) string {
		var raw [fr.Bytes]byte
		fr.LittleEndian.PutElement(&raw, *e)
		return hex.EncodeToString(raw[:])
	}
	s, vk := g.scalars, &g.vk
	return &SetupResult{
		Shape:      g.options.Shape,
		ScalarRule: s.Rule,
		G1:         hexG1(&g1),
		G2:         hexG2(&g2),
		Alpha:      hexScalar(&s.Alpha),
		Beta:       hexScalar(&s.Beta),
		Gamma:      hexScalar(&s.Gamma),
		Delta:      hexScalar(&s.Delta),
		Tau:        hexScalar(&s.Tau),
		VK: SetupVK{
			AlphaG1: hexG1(&vk.AlphaG1), BetaG1: hexG1(&vk.BetaG1), BetaG2: hexG2(&vk.BetaG2),
			GammaG2: hexG2(&vk.GammaG2), DeltaG1: hexG1(&vk.DeltaG1), DeltaG2: hexG2(&vk.DeltaG2),
		},
		Blocks:     g.blocks,
		ParamsFile: g.files.params.digest(),
		VKFile:     g.files.vk.digest(),
		ParamsPath: g.files.params.path,
		VKPath:     g.files.vk.path,
		Threads:    g.options.Threads,
	}
}
