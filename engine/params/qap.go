package params

import (
	"context"
	"fmt"
	"math/big"
	"sync"
	"sync/atomic"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"golang.org/x/sync/errgroup"

	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
)

// R1CS is the view of a circuit that setup takes; *circuit.Program is one.
type R1CS interface {
	// InputCount counts the public variables with the constant one, AuxCount the private ones.
	InputCount() int
	AuxCount() int
	// ConstraintCount counts the rows of Rows; the rows that bellperson appends are not among them.
	ConstraintCount() int
	// Rows hands rows [from, to) to visit in order: for A, B and C the terms with distinct keys and
	// no zero coefficient. The slices are visit's only until it returns. Several calls may run at once.
	Rows(from, to int, visit func(row int, a, b, c []circuit.Term))
}

var _ R1CS = (*circuit.Program)(nil)

// rowRun is the number of rows that are done at a time: they share an inversion and a turn of a thread.
const rowRun = 4096

// lagrange gives the Lagrange basis of the domain {ω^i} of n = 2^k points at tau:
// L_i(tau) = (tau^n - 1)/n · ω^i / (tau - ω^i).
type lagrange struct {
	domain     int
	tau, omega fr.Element
	vanishing  fr.Element // z(tau) = tau^n - 1
	scale      fr.Element // z(tau)/n
}

// newLagrange refuses a tau in the domain, where z vanishes: no proof would verify. n is a power of two.
func newLagrange(tau *fr.Element, n int) (*lagrange, error) {
	const op = "params.Setup"
	l := &lagrange{domain: n, tau: *tau}
	var err error
	if l.omega, err = fr.Generator(uint64(n)); err != nil {
		return nil, status.New(status.Unsupported, op, "domain", fmt.Sprintf("at most 2^%d rows", maxLogDomain), fmt.Sprint(n))
	}
	one := fr.One()
	l.vanishing.Exp(*tau, big.NewInt(int64(n)))
	l.vanishing.Sub(&l.vanishing, &one)
	if l.vanishing.IsZero() {
		return nil, status.New(status.Caller, op, "tau", fmt.Sprintf("a scalar outside the domain of %d points", n), "a root of unity")
	}
	l.scale.SetUint64(uint64(n))
	l.scale.Inverse(&l.scale)
	l.scale.Mul(&l.scale, &l.vanishing)
	return l, nil
}

// fill writes L_from(tau), L_{from+1}(tau), ... to dst.
func (l *lagrange) fill(from int, dst []fr.Element) {
	var root, at fr.Element
	root.Exp(l.omega, big.NewInt(int64(from)))
	at.Mul(&root, &l.scale)
	for i := range dst {
		dst[i].Sub(&l.tau, &root)
		root.Mul(&root, &l.omega)
	}
	for i, inverse := range fr.BatchInvert(dst) {
		dst[i].Mul(&inverse, &at)
		at.Mul(&at, &l.omega)
	}
}

// qap is a circuit at tau. Variable v is input v, or aux v - inputs.
type qap struct {
	*lagrange
	inputs int
	a, b   []fr.Element // A_v(tau), B_v(tau)
	c      []fr.Element // C_v(tau); after extend the exponents of ic and l
	arena  *host.Arena
}

// stripeVariables is the number of neighbouring variables that a lock guards.
const stripeVariables = 1024

// sums adds up coefficients by variable for several goroutines. Rows that are close in the circuit
// name variables that are close, so goroutines rarely meet; the inputs, which all rows share, are
// added up by each goroutine for itself.
type sums struct {
	inputs  int
	vectors [3][]fr.Element
	locks   []sync.Mutex
}

// evaluateQAP adds up the rows of c, the appended ones included, at scalars.Tau. It takes 96 bytes a
// variable outside the Go heap until Close. Fails with Caller, Unsupported, NoMemory and Cancelled.
func evaluateQAP(ctx context.Context, c R1CS, scalars *Scalars, threads int) (*qap, error) {
	const op = "params.Setup"
	inputs, rows := c.InputCount(), c.ConstraintCount()
	variables := inputs + c.AuxCount()
	domain := 1
	for domain < rows+inputs {
		domain <<= 1
	}
	basis, err := newLagrange(&scalars.Tau, domain)
	if err != nil {
		return nil, err
	}
	arena, err := host.NewArena(3 * host.SliceBytes[fr.Element](variables))
	if err != nil {
		return nil, err
	}
	q := &qap{lagrange: basis, inputs: inputs, arena: arena}
	q.a = host.Alloc[fr.Element](arena, variables)
	q.b = host.Alloc[fr.Element](arena, variables)
	q.c = host.Alloc[fr.Element](arena, variables)
	shared := &sums{
		inputs:  inputs,
		vectors: [3][]fr.Element{q.a, q.b, q.c},
		locks:   make([]sync.Mutex, variables/stripeVariables+1),
	}
	group, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range threads {
		group.Go(func() (err error) {
			defer status.Recover(op, &err)
			w := newSumWorker(shared)
			defer w.leave() // a panic of the circuit must not leave the others waiting
			values := make([]fr.Element, rowRun)
			for {
				from := int(next.Add(rowRun)) - rowRun
				if from >= rows {
					w.flushInputs()
					return nil
				}
				if err := ctx.Err(); err != nil {
					return status.Wrap(status.Cancelled, op, "rows", err)
				}
				n := min(rowRun, rows-from)
				basis.fill(from, values[:n])
				c.Rows(from, from+n, func(row int, a, b, c []circuit.Term) {
					value := &values[row-from]
					w.add(0, a, value)
					w.add(1, b, value)
					w.add(2, c, value)
					w.leave()
				})
			}
		})
	}
	if err := group.Wait(); err != nil {
		q.Close()
		return nil, err
	}
	appended := make([]fr.Element, inputs)
	basis.fill(rows, appended)
	for i := range appended {
		q.a[i].Add(&q.a[i], &appended[i])
	}
	return q, nil
}

// Close gives the memory back.
func (q *qap) Close() { q.arena.Close() }

// sumWorker is one goroutine's part in sums. It holds at most one lock at a time.
type sumWorker struct {
	*sums
	own    [3][]fr.Element // inputs
	stripe int             // the lock that is held, or -1
}

func newSumWorker(s *sums) *sumWorker {
	w := &sumWorker{sums: s, stripe: -1}
	for m := range w.own {
		w.own[m] = make([]fr.Element, s.inputs)
	}
	return w
}

// add adds value times the coefficients of a row of one matrix.
func (w *sumWorker) add(matrix int, terms []circuit.Term, value *fr.Element) {
	var product fr.Element
	for i := range terms {
		t := &terms[i]
		product.Mul(&t.Coeff, value)
		at := t.Key.Index()
		if !t.Key.IsAux() {
			w.own[matrix][at].Add(&w.own[matrix][at], &product)
			continue
		}
		at += w.inputs
		w.enter(at / stripeVariables)
		sum := &w.vectors[matrix][at]
		sum.Add(sum, &product)
	}
}

func (w *sumWorker) enter(stripe int) {
	if w.stripe == stripe {
		return
	}
	w.leave()
	w.locks[stripe].Lock()
	w.stripe = stripe
}

func (w *sumWorker) leave() {
	if w.stripe >= 0 {
		w.locks[w.stripe].Unlock()
		w.stripe = -1
	}
}

func (w *sumWorker) flushInputs() {
	for m := range w.own {
		for at := range w.own[m] {
			w.enter(at / stripeVariables)
			sum := &w.vectors[m][at]
			sum.Add(sum, &w.own[m][at])
		}
	}
	w.leave()
}

// extend turns c into the exponents of ic and l: beta·A + alpha·B + C, over gamma for inputs and over
// delta for aux. As the reference does, it refuses a circuit with an aux that comes out as zero: such
// a variable stands in no row, and a prover could give it any value.
func (q *qap) extend(ctx context.Context, s *Scalars, threads int) error {
	const op = "params.Setup"
	var overGamma, overDelta fr.Element
	overGamma.Inverse(&s.Gamma)
	overDelta.Inverse(&s.Delta)
	group, ctx := errgroup.WithContext(ctx)
	share := (len(q.c) + threads - 1) / threads
	for from := 0; from < len(q.c); from += share {
		group.Go(func() (err error) {
			defer status.Recover(op, &err)
			var t fr.Element
			for v := from; v < min(from+share, len(q.c)); v++ {
				if v%rowRun == 0 && ctx.Err() != nil {
					return status.Wrap(status.Cancelled, op, "variables", ctx.Err())
				}
				sum := &q.c[v]
				t.Mul(&q.a[v], &s.Beta)
				sum.Add(sum, &t)
				t.Mul(&q.b[v], &s.Alpha)
				sum.Add(sum, &t)
				if v < q.inputs {
					sum.Mul(sum, &overGamma)
					continue
				}
				if sum.IsZero() {
					return status.New(status.Caller, op, fmt.Sprintf("aux[%d]", v-q.inputs), "a variable that a constraint binds", "one that none does")
				}
				sum.Mul(sum, &overDelta)
			}
			return nil
		})
	}
	return group.Wait()
}

// compact moves the values that are not zero to the front, keeping their order, and returns them.
func compact(values []fr.Element) []fr.Element {
	n := 0
	for i := range values {
		if !values[i].IsZero() {
			values[n] = values[i]
			n++
		}
	}
	return values[:n]
}

// powers writes first · tau^from, first · tau^(from+1), ... to dst.
func (l *lagrange) powers(first *fr.Element, from int, dst []fr.Element) {
	var at fr.Element
	at.Exp(l.tau, big.NewInt(int64(from)))
	at.Mul(&at, first)
	for i := range dst {
		dst[i] = at
		at.Mul(&at, &l.tau)
	}
}
