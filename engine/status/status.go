// Package status is the one error type of sealc2.
//
// Every failure is a value that names what was looked at, what was expected and what was found. It
// imports nothing of the project, so every room can use it; the kinds equal sealc2_status in
// include/sealc2.h (a test compares them).
package status

import (
	"errors"
	"fmt"
	"strings"
)

// Kind says whose fault a failure is, and so what a caller can do about it.
type Kind int32

// The kinds, in the order of sealc2_status in include/sealc2.h.
const (
	OK          Kind = iota
	Caller           // an argument is wrong: nil, length, unknown handle, contradictory options
	Input            // the C1 output, statement, proof or key that was handed in is malformed or mismatched
	Unsatisfied      // the vanilla proofs do not satisfy the circuit
	Params           // a parameter file is missing, damaged, of another circuit, or not allowed
	Unsupported      // well-formed, but not something that this version does
	NoDevice         // the device asked for cannot be used
	NoMemory         // the budget can never hold what is needed
	Cancelled        // the caller's context ended
	Timeout          // a wait ended before the result was there
	SelfCheck        // a finished proof failed verification: parameters or hardware
	Forked           // called in a child after fork without exec
	Internal         // a broken invariant or a recovered panic: a defect of sealc2
	kindCount
)

var kindNames = [kindCount]string{
	"ok", "caller", "input", "unsatisfied", "params", "unsupported", "no device", "no memory",
	"cancelled", "timeout", "self check", "forked", "internal",
}

// String returns the kind's name as it appears in error text.
func (k Kind) String() string {
	if k < 0 || k >= kindCount {
		return fmt.Sprintf("kind %d", int32(k))
	}
	return kindNames[k]
}

// Kinds returns all kinds in order, for tests that compare them with the C header.
func Kinds() []Kind {
	all := make([]Kind, kindCount)
	for i := range all {
		all[i] = Kind(i)
	}
	return all
}

// Error is a failure. Its text is for the operator:
//
//	params.Load: dev-porep-2k.params: b_g2[4711]: want a point of order r, got one outside the subgroup
type Error struct {
	Kind  Kind
	Op    string // room and operation, as "c1.Parse"
	Where string // file, block and index, JSON path, or stage; may be empty
	Want  string // what was expected; may be empty
	Got   string // what was found; may be empty
	Cause error  // may be nil
}

// Error joins the parts that are there.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	if e.Where != "" {
		b.WriteString(": ")
		b.WriteString(e.Where)
	}
	switch {
	case e.Want != "" && e.Got != "":
		fmt.Fprintf(&b, ": want %s, got %s", e.Want, e.Got)
	case e.Want != "":
		fmt.Fprintf(&b, ": want %s", e.Want)
	case e.Got != "":
		fmt.Fprintf(&b, ": %s", e.Got)
	}
	if e.Cause != nil {
		b.WriteString(": ")
		b.WriteString(e.Cause.Error())
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// New makes an Error without a cause. Empty strings are left out of the text.
func New(kind Kind, op, where, want, got string) *Error {
	return &Error{Kind: kind, Op: op, Where: where, Want: want, Got: got}
}

// Wrap makes an Error around a cause.
func Wrap(kind Kind, op, where string, cause error) *Error {
	return &Error{Kind: kind, Op: op, Where: where, Cause: cause}
}

// Place returns err with place put before what its outermost Error says of where: who works on several parts knows
// which one it was. A foreign error stays as it is.
func Place(err error, place string) error {
	e, ok := err.(*Error)
	if !ok {
		return err
	}
	placed := *e
	if placed.Where = place; e.Where != "" {
		placed.Where += ", " + e.Where
	}
	return &placed
}

// KindOf returns the kind of the outermost Error in err's chain: OK for nil, Internal for a foreign error.
func KindOf(err error) Kind {
	if err == nil {
		return OK
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return Internal
}

// Check states an invariant. Broken invariants are defects of sealc2: Check panics with an Internal
// Error, which Recover turns into a value at the edge of the stage.
func Check(ok bool, op, what string) {
	if !ok {
		panic(New(Internal, op, "", what, "the opposite"))
	}
}

// Recover is deferred at the edge of a stage, goroutine or export: it stores a panic in *err as a value.
func Recover(op string, err *error) {
	switch p := recover().(type) {
	case nil:
	case *Error:
		*err = p
	case error:
		*err = Wrap(Internal, op, "panic", p)
	default:
		*err = New(Internal, op, "panic", "", fmt.Sprint(p))
	}
}
