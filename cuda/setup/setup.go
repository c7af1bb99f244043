package setup

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"unsafe"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/cuda/points"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/status"
)

// Secrets are the scalars of a setup. Whoever knows them can prove anything.
type Secrets struct{ Alpha, Beta, Gamma, Delta, Tau fr.Element }

// Blocks are where the points go, aligned to 16 bytes: Counts says how many. B1 is in G1, B2 in G2.
type Blocks struct{ H, L, A, B1, B2 driver.Ptr }

// Maker has the kernels. It is used by one goroutine at a time.
type Maker struct {
	points                                     *points.Points
	lagrange, scatter, gather, extend, compact driver.Kernel
	args                                       driver.Args
}

// New finds the kernels by their names. Errors: find's.
func New(find func(name string) (driver.Kernel, error)) (*Maker, error) {
	m := &Maker{}
	for name, into := range map[string]*driver.Kernel{
		"qap_lagrange": &m.lagrange, "qap_scatter": &m.scatter, "qap_gather": &m.gather, "qap_extend": &m.extend, "qap_compact": &m.compact,
	} {
		var err error
		if *into, err = find(name); err != nil {
			return nil, err
		}
	}
	var err error
	m.points, err = points.New(find)
	return m, err
}

// Kernels lists all kernels, for warming.
func (m *Maker) Kernels() []driver.Kernel {
	return append([]driver.Kernel{m.lagrange, m.scatter, m.gather, m.extend, m.compact}, m.points.Kernels()...)
}

// Bounds on the tables of fixed-base multiplication: larger ones save less time than it takes to fill them.
const (
	leastTableBytes = 16 << 20
	mostTableBytes  = 4 << 30
)

// lagrangeRun is how many rows a thread of qap_lagrange makes with one inversion.
const lagrangeRun = 32

// wordsBytes is the size of a sum under way: Words of qap.cuh.
const wordsBytes = 64

// plan is the scratch memory of one setup: offsets from its start. The vectors of rows, a and b end as soon as the
// exponents stand in sums and c; products take their room.
type plan struct {
	tasks, spans, terms, instances, bindings, coefficients int64
	wordsA, ranksA, wordsB, ranksB                         int64
	squares, control                                       int64
	sums, c, work                                          int64 // work: rows, a and b; then products
	a, b                                                   int64
	bits                                                   [2]int // of the tables of G1 and G2
	batch                                                  int
	table, scratch, powers, ic                             int64
	bytes                                                  int64
}

// planOf lays the scratch memory out.
func planOf(t *Tables, d *driver.Device) (p plan) {
	take := func(bytes int64) int64 {
		at := p.bytes
		p.bytes += (bytes + 255) &^ 255
		return at
	}
	p.tasks, p.spans, p.terms = take(bytesOf(t.tasks)), take(bytesOf(t.spans)), take(bytesOf(t.terms))
	p.instances, p.bindings, p.coefficients = take(bytesOf(t.instances)), take(bytesOf(t.bindings)), take(bytesOf(t.coefficients))
	p.wordsA, p.ranksA = take(bytesOf(t.inA.words)), take(bytesOf(t.inA.ranks))
	p.wordsB, p.ranksB = take(bytesOf(t.inB.words)), take(bytesOf(t.inB.ranks))
	p.squares, p.control = take(points.SquaresBytes), take(8)
	variables := int64(t.inputs + t.aux)
	p.sums, p.c = take(wordsBytes*variables), take(fr.Bytes*variables)
	p.work = p.bytes
	take(fr.Bytes * int64(t.rows+t.inputs))
	p.a, p.b = take(fr.Bytes*variables), take(fr.Bytes*variables)
	ended := p.bytes

	counts := t.Counts()
	p.batch = min(points.BatchCount(d), max(counts.H, counts.L))
	tables := min(max(leastTableBytes, (ended-p.work)/2), mostTableBytes)
	p.bits[points.G1] = points.BaseBits(points.G1, int64(counts.IC+counts.H+counts.L+counts.A+counts.B), tables)
	p.bits[points.G2] = points.BaseBits(points.G2, int64(max(counts.B, 1)), tables)
	p.bytes = p.work
	p.table = take(max(points.TableBytes(points.G1, p.bits[points.G1]), points.TableBytes(points.G2, p.bits[points.G2])))
	p.scratch = take(max(points.BaseScratchBytes(points.G1, p.bits[points.G1], p.batch), points.BaseScratchBytes(points.G2, p.bits[points.G2], p.batch)))
	p.powers = take(fr.Bytes * int64(p.batch))
	p.ic = take(points.G1.PointBytes() * int64(t.inputs))
	p.bytes = max(p.bytes, ended)
	return p
}

// ScratchBytes is the scratch memory that Make takes on a device for a program's tables.
func ScratchBytes(t *Tables, d *driver.Device) int64 { return planOf(t, d).bytes }

// Make makes the points of a parameter file for the given secrets, and its key: Begin and the blocks one after the other,
// which are in place when it returns. Errors: Begin's.
func (m *Maker) Make(ctx context.Context, s *driver.Stream, t *Tables, secrets *Secrets, scratch driver.Ptr, to Blocks) (*groth16.VerifyingKey, error) {
	g, err := m.Begin(ctx, s, t, secrets, scratch)
	if err != nil {
		return nil, err
	}
	for b, at := range [...]driver.Ptr{to.H, to.L, to.A, to.B1, to.B2} {
		if err := g.Points(groth16.Block(b), 0, t.Counts().Of(groth16.Block(b)), at); err != nil {
			return nil, err
		}
	}
	return g.Key(), s.Synchronize(ctx)
}

// Begin makes everything but the points of the blocks: their exponents, which stay in scratch memory, and the key. scratch is
// of ScratchBytes, aligned to 256 bytes, and belongs to the Making for as long as that is used; so do stream and Maker. Errors:
// Caller for a secret that is zero, a tau in the domain, or a program with an aux that no constraint binds (Where names
// it); Cancelled; Internal; the driver's.
func (m *Maker) Begin(ctx context.Context, s *driver.Stream, t *Tables, secrets *Secrets, scratch driver.Ptr) (*Making, error) {
	const op = "setup.Begin"
	for _, x := range []struct {
		name  string
		value *fr.Element
	}{{"alpha", &secrets.Alpha}, {"beta", &secrets.Beta}, {"gamma", &secrets.Gamma}, {"delta", &secrets.Delta}, {"tau", &secrets.Tau}} {
		if x.value.IsZero() {
			return nil, status.New(status.Caller, op, x.name, "a scalar that is not zero", "zero")
		}
	}
	own := *secrets
	w := &Making{Maker: m, s: s, t: t, secrets: &own, plan: planOf(t, s.Device()), at: scratch, group: -1}
	vanishing, err := w.exponents(ctx)
	if err != nil {
		return nil, err
	}
	w.first.Div(&vanishing, &own.Delta)
	if err := w.makeKey(ctx); err != nil {
		return nil, err
	}
	return w, nil
}

// Making is a setup under way. Its blocks may be made in any order, in pieces, and again; all of G1 before b_g2, or after
// it, makes each group's table once.
type Making struct {
	*Maker
	s       *driver.Stream
	t       *Tables
	secrets *Secrets
	plan    plan
	at      driver.Ptr
	first   fr.Element   // the exponent of h[0]
	group   points.Group // whose table stands in scratch memory; -1: neither's
	base    *points.Base
	key     *groth16.VerifyingKey
}

// ptr is a place of the plan on the device.
func (w *Making) ptr(offset int64) driver.Ptr { return w.at.Add(offset) }

// each launches a kernel with a thread for each of count.
func (w *Making) each(k driver.Kernel, count int, a *driver.Args) error {
	if count == 0 {
		return nil
	}
	return w.s.Launch(k, driver.Dim{X: uint32((count + blockThreads - 1) / blockThreads)}, driver.Dim{X: blockThreads}, 0, a)
}

func upload[T any](w *Making, offset int64, values []T) error {
	if len(values) == 0 {
		return nil
	}
	return w.s.CopyToDevice(w.ptr(offset), unsafe.Pointer(&values[0]), bytesOf(values))
}

// tables uploads what the kernels read.
func (w *Making) tables() error {
	p, t := &w.plan, w.t
	for _, err := range []error{
		upload(w, p.tasks, t.tasks), upload(w, p.spans, t.spans), upload(w, p.terms, t.terms), upload(w, p.instances, t.instances),
		upload(w, p.bindings, t.bindings), upload(w, p.coefficients, t.coefficients),
		upload(w, p.wordsA, t.inA.words), upload(w, p.ranksA, t.inA.ranks), upload(w, p.wordsB, t.inB.words), upload(w, p.ranksB, t.inB.ranks),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

// domain is QapDomain of qap.cu.
type domain struct{ omega, omegaInverse, tau, scale fr.Element }

// exponents makes the scalars of all blocks but h: those of ic and l in c, of a and b at the start and the middle of
// sums. It returns tau^n - 1.
func (w *Making) exponents(ctx context.Context) (vanishing fr.Element, err error) {
	const op = "setup.Begin"
	p, t := &w.plan, w.t
	d := domain{tau: w.secrets.Tau}
	if d.omega, err = fr.Generator(uint64(t.domain)); err != nil {
		return vanishing, status.Wrap(status.Unsupported, op, t.name, err)
	}
	one := fr.One()
	vanishing.Exp(d.tau, big.NewInt(int64(t.domain)))
	vanishing.Sub(&vanishing, &one)
	if vanishing.IsZero() {
		return vanishing, status.New(status.Caller, op, "tau", fmt.Sprintf("a scalar outside the domain of %d points", t.domain), "a root of unity")
	}
	d.omegaInverse.Inverse(&d.omega)
	d.scale.SetUint64(uint64(t.domain))
	d.scale.Inverse(&d.scale).Mul(&d.scale, &vanishing)
	squares := points.Squares(d.omega)
	if err := w.tables(); err != nil {
		return vanishing, err
	}
	if err := upload(w, p.squares, squares[:]); err != nil {
		return vanishing, err
	}
	rows, variables := t.rows+t.inputs, t.inputs+t.aux
	a := w.args.Reset().Ptr(w.ptr(p.squares)).Struct(unsafe.Pointer(&d), int(unsafe.Sizeof(d))).U32(uint32(rows)).U32(lagrangeRun).Ptr(w.ptr(p.work))
	if err := w.each(w.lagrange, (rows+lagrangeRun-1)/lagrangeRun, a); err != nil {
		return vanishing, err
	}
	tables := [6]driver.Ptr{w.ptr(p.tasks), w.ptr(p.spans), w.ptr(p.terms), w.ptr(p.instances), w.ptr(p.bindings), w.ptr(p.coefficients)}
	for matrix, to := range []int64{p.a, p.b, p.c} {
		if err := w.s.Fill8(w.ptr(p.sums), 0, wordsBytes*int64(variables)); err != nil {
			return vanishing, err
		}
		if len(t.tasks) > 0 {
			a := w.args.Reset().Struct(unsafe.Pointer(&tables), int(unsafe.Sizeof(tables))).U32(uint32(matrix)).Ptr(w.ptr(p.work)).Ptr(w.ptr(p.sums))
			if err := w.s.Launch(w.scatter, driver.Dim{X: uint32(len(t.tasks))}, driver.Dim{X: blockThreads}, 0, a); err != nil {
				return vanishing, err
			}
		}
		appended := driver.Ptr(0)
		if matrix == 0 { // bellperson's rows input * 0 = 0
			appended = w.ptr(p.work + fr.Bytes*int64(t.rows))
		}
		a := w.args.Reset().Ptr(w.ptr(p.sums)).U32(uint32(variables)).Ptr(appended).U32(uint32(t.inputs)).Ptr(w.ptr(to))
		if err := w.each(w.gather, variables, a); err != nil {
			return vanishing, err
		}
	}
	return vanishing, w.finish(ctx)
}

// finish makes the exponents of ic and l of c, and moves those of a and b together.
func (w *Making) finish(ctx context.Context) error {
	const op = "setup.Begin"
	p, t := &w.plan, w.t
	variables := t.inputs + t.aux
	secrets := [4]fr.Element{w.secrets.Alpha, w.secrets.Beta}
	secrets[2].Inverse(&w.secrets.Gamma)
	secrets[3].Inverse(&w.secrets.Delta)
	control := [2]uint32{math.MaxUint32, 0} // the lowest aux that nothing binds; how many values are not as the densities say
	if err := upload(w, p.control, control[:]); err != nil {
		return err
	}
	a := w.args.Reset().Ptr(w.ptr(p.a)).Ptr(w.ptr(p.b)).Ptr(w.ptr(p.c)).Struct(unsafe.Pointer(&secrets), int(unsafe.Sizeof(secrets))).
		U32(uint32(t.inputs)).U32(uint32(variables)).Ptr(w.ptr(p.control))
	if err := w.each(w.extend, variables, a); err != nil {
		return err
	}
	for _, x := range []struct{ values, words, ranks, to int64 }{
		{p.a, p.wordsA, p.ranksA, p.sums}, {p.b, p.wordsB, p.ranksB, p.sums + fr.Bytes*int64(variables)},
	} {
		a := w.args.Reset().Ptr(w.ptr(x.values)).U32(uint32(variables)).Ptr(w.ptr(x.words)).Ptr(w.ptr(x.ranks)).Ptr(w.ptr(x.to)).Ptr(w.ptr(p.control + 4))
		if err := w.each(w.compact, variables, a); err != nil {
			return err
		}
	}
	if err := w.s.CopyToHost(unsafe.Pointer(&control), w.ptr(p.control), int64(unsafe.Sizeof(control))); err != nil {
		return err
	}
	if err := w.s.Synchronize(ctx); err != nil {
		return err
	}
	if control[0] != math.MaxUint32 {
		return status.New(status.Caller, op, fmt.Sprintf("aux[%d]", control[0]), "a variable that a constraint binds", "one that none does")
	}
	if control[1] != 0 {
		return status.New(status.Caller, op, "tau", "a scalar where no variable that occurs comes out as zero", fmt.Sprintf("%d that do", control[1]))
	}
	return nil
}

// table makes the table of a group's generator in scratch memory, where it does not stand there yet. What is queued with the
// other group's table has passed before its place is taken.
func (w *Making) table(g points.Group) (err error) {
	if w.group == g {
		return nil
	}
	w.group = -1
	_, _, g1, g2 := bls.Generators()
	table, scratch := w.ptr(w.plan.table), w.ptr(w.plan.scratch)
	if g == points.G1 {
		w.base, err = w.points.NewBaseG1(w.s, &g1, w.plan.bits[g], table, scratch)
	} else {
		w.base, err = w.points.NewBaseG2(w.s, &g2, w.plan.bits[g], table, scratch)
	}
	if err == nil {
		w.group = g
	}
	return err
}

// Points queues the making of count points of a block, from the one of that index, at to, aligned to 16 bytes. Errors:
// Internal for a range outside the block; the driver's.
func (w *Making) Points(b groth16.Block, from, count int, to driver.Ptr) error {
	n := w.t.Counts().Of(b)
	if from < 0 || count < 0 || from > n || count > n-from {
		return status.New(status.Internal, "setup.Points", b.String(), fmt.Sprintf("a range of its %d points", n), fmt.Sprintf("%d points from %d", count, from))
	}
	if count == 0 {
		return nil
	}
	p, group := &w.plan, GroupOf(b)
	if err := w.table(group); err != nil {
		return err
	}
	scratch := w.ptr(p.scratch)
	variables := int64(w.t.inputs + w.t.aux)
	var exponents int64
	switch b {
	case groth16.BlockH:
		return w.powers(from, count, to)
	case groth16.BlockL:
		exponents = p.c + fr.Bytes*int64(w.t.inputs)
	case groth16.BlockA:
		exponents = p.sums
	default:
		exponents = p.sums + fr.Bytes*variables
	}
	return w.base.Multiply(w.s, w.ptr(exponents+fr.Bytes*int64(from)), count, to, scratch, p.batch)
}

// powers is Points for h, whose exponents are made as they are needed.
func (w *Making) powers(from, count int, to driver.Ptr) error {
	p := &w.plan
	for done := 0; done < count; done += p.batch {
		n := min(p.batch, count-done)
		if err := w.points.Powers(w.s, w.ptr(p.squares), w.first, uint32(from+done), n, w.ptr(p.powers)); err != nil {
			return err
		}
		if err := w.base.Multiply(w.s, w.ptr(p.powers), n, to.Add(int64(done)*points.G1.PointBytes()), w.ptr(p.scratch), p.batch); err != nil {
			return err
		}
	}
	return nil
}

// Key is the verifying key. It must not be written.
func (w *Making) Key() *groth16.VerifyingKey { return w.key }

// makeKey makes the key, and leaves the squares of tau where those of omega were.
func (w *Making) makeKey(ctx context.Context) error {
	p := &w.plan
	squares := points.Squares(w.secrets.Tau)
	if err := upload(w, p.squares, squares[:]); err != nil {
		return err
	}
	if err := w.table(points.G1); err != nil {
		return err
	}
	if err := w.base.Multiply(w.s, w.ptr(p.c), w.t.inputs, w.ptr(p.ic), w.ptr(p.scratch), p.batch); err != nil {
		return err
	}
	vk := &groth16.VerifyingKey{IC: make([]bls.G1Affine, w.t.inputs)}
	if err := w.s.CopyToHost(unsafe.Pointer(&vk.IC[0]), w.ptr(p.ic), bytesOf(vk.IC)); err != nil {
		return err
	}
	inG1 := func(p *bls.G1Affine, s *fr.Element) { p.ScalarMultiplicationBase(s.BigInt(new(big.Int))) }
	inG2 := func(p *bls.G2Affine, s *fr.Element) { p.ScalarMultiplicationBase(s.BigInt(new(big.Int))) }
	inG1(&vk.AlphaG1, &w.secrets.Alpha)
	inG1(&vk.BetaG1, &w.secrets.Beta)
	inG2(&vk.BetaG2, &w.secrets.Beta)
	inG2(&vk.GammaG2, &w.secrets.Gamma)
	inG1(&vk.DeltaG1, &w.secrets.Delta)
	inG2(&vk.DeltaG2, &w.secrets.Delta)
	w.key = vk
	return w.s.Synchronize(ctx)
}
