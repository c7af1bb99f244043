package rows

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/engine/status"
)

// MaxLog bounds the domain, 2^MaxLog rows.
const MaxLog = 28

// Witness is a compact witness on the device, laid out as circuit.Witness: bits as 64-bit words, field elements in Montgomery
// form. It is only read.
type Witness struct {
	Bits, Nums, Inputs driver.Ptr
}

// Vectors are three vectors of scalars on the device. What is 0 is not wanted: any subset may be, for memory that does not hold all
// three at once, and none where only the check is wanted.
type Vectors struct {
	A, B, C driver.Ptr
}

// StatusBytes is the size of the status word: the lowest row that does not hold, as 32 bits, or None.
const StatusBytes = 4

// None is the status where every row holds.
const None = math.MaxUint32

// Rows queues evaluations and checks. It is used by one goroutine at a time.
type Rows struct {
	kernels    [kinds]driver.Kernel
	tail, take driver.Kernel
	args       driver.Args
}

// New finds the kernels by their names. Errors: find's.
func New(find func(name string) (driver.Kernel, error)) (*Rows, error) {
	r := &Rows{}
	for name, into := range map[string]*driver.Kernel{
		"rows_small": &r.kernels[small], "rows_short": &r.kernels[short], "rows_long": &r.kernels[long],
		"rows_tail": &r.tail, "rows_take": &r.take,
	} {
		var err error
		if *into, err = find(name); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Kernels lists all kernels, for warming.
func (r *Rows) Kernels() []driver.Kernel {
	return []driver.Kernel{r.kernels[small], r.kernels[short], r.kernels[long], r.tail, r.take}
}

// tables, witness and out are RowsTables, RowsWitness and RowsOut of the kernels.
type tables struct {
	tasks, spans, terms, instances, bindings, coefficients, values driver.Ptr
}

type out struct {
	a, b, c, failed driver.Ptr
}

// Clear queues the status None.
func (r *Rows) Clear(s *driver.Stream, failed driver.Ptr) error { return s.Fill32(failed, None, 1) }

// Evaluate queues the evaluation of all rows of a program into the vectors of to, 2^log elements each: its
// constraints, the rows that bellperson appends for its inputs, and zeros. image is where the tables' image lies on the
// device. Constraints are checked where failed, a status word that Clear has set, is not 0: it becomes the lowest row that does not hold. Sums
// that neither a vector nor the check wants are left out, so three calls for a vector each cost little more than one for all.
// Errors: Internal for a domain that does not hold the rows; else the driver's.
func (r *Rows) Evaluate(s *driver.Stream, t *Tables, image driver.Ptr, w Witness, to Vectors, log int, failed driver.Ptr) error {
	o, err := r.out("rows.Evaluate", to, log, int64(t.rows)+int64(t.inputs), failed)
	if err != nil {
		return err
	}
	if err := r.constraints(s, t, image, w, o); err != nil || to == (Vectors{}) {
		return err
	}
	return r.zeros(s, o, w.Inputs, t.rows, t.inputs, log)
}

// constraints queues the kernels of all kinds of rows.
func (r *Rows) constraints(s *driver.Stream, t *Tables, image driver.Ptr, w Witness, o *out) error {
	at := tables{
		spans: image.Add(t.spans.at), terms: image.Add(t.terms.at), instances: image.Add(t.instances.at), bindings: image.Add(t.bindings.at),
		coefficients: image.Add(t.coefficients.at), values: image.Add(t.values.at),
	}
	for k := range kinds {
		if t.tasks[k].count == 0 {
			continue
		}
		at.tasks = image.Add(t.tasks[k].at)
		r.args.Reset().Struct(unsafe.Pointer(&at), int(unsafe.Sizeof(at))).Struct(unsafe.Pointer(&w), int(unsafe.Sizeof(w))).Struct(unsafe.Pointer(o), int(unsafe.Sizeof(*o)))
		if err := s.Launch(r.kernels[k], driver.Dim{X: uint32(t.tasks[k].count)}, driver.Dim{X: blockThreads}, 0, &r.args); err != nil {
			return err
		}
	}
	return nil
}

// Take queues the check of rows that were evaluated elsewhere, and their copy to their places in to. from has rows
// [first, first+count) of a, b and c, and may be those places. A row with a number that is not below the group order fails too. Where failed
// is 0 nothing is checked, and only the vectors of from that to has are read. Errors: as Evaluate.
func (r *Rows) Take(s *driver.Stream, from Vectors, first, count int64, to Vectors, log int, failed driver.Ptr) error {
	o, err := r.out("rows.Take", to, log, first+count, failed)
	if err != nil || count == 0 {
		return err
	}
	r.args.Reset().Struct(unsafe.Pointer(o), int(unsafe.Sizeof(*o))).Ptr(from.A).Ptr(from.B).Ptr(from.C).U32(uint32(first)).U32(uint32(count))
	return s.Launch(r.take, grid(count), driver.Dim{X: plainThreads}, 0, &r.args)
}

// Zeros queues zeros for the rows from first to the domain's end. Errors: as Evaluate.
func (r *Rows) Zeros(s *driver.Stream, first int64, to Vectors, log int) error {
	o, err := r.out("rows.Zeros", to, log, first, 0)
	if err != nil {
		return err
	}
	return r.zeros(s, o, 0, uint32(first), 0, log)
}

// zeros queues the rows behind the constraints.
func (r *Rows) zeros(s *driver.Stream, o *out, inputs driver.Ptr, first, count uint32, log int) error {
	rest := int64(1)<<log - int64(first)
	if rest == 0 {
		return nil
	}
	r.args.Reset().Struct(unsafe.Pointer(o), int(unsafe.Sizeof(*o))).Ptr(inputs).U32(first).U32(count).U32(uint32(1) << log)
	return s.Launch(r.tail, grid(rest), driver.Dim{X: plainThreads}, 0, &r.args)
}

// plainThreads is the block of kernels with a thread a row, and grid how many blocks they get.
const plainThreads = 256

func grid(rows int64) driver.Dim {
	return driver.Dim{X: uint32(max(1, min((rows+plainThreads-1)/plainThreads, 1<<16)))}
}

// out checks the bounds.
func (r *Rows) out(op string, to Vectors, log int, rows int64, failed driver.Ptr) (*out, error) {
	if log < 0 || log > MaxLog || rows < 0 || rows > 1<<log {
		return nil, status.New(status.Internal, op, "domain", fmt.Sprintf("2^%d rows at most, which hold %d", MaxLog, rows), fmt.Sprintf("2^%d", log))
	}
	return &out{a: to.A, b: to.B, c: to.C, failed: failed}, nil
}
