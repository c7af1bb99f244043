package status

import (
	"errors"
	"testing"
)

func TestPlace(t *testing.T) {
	cause := errors.New("why")
	e := &Error{Kind: Unsatisfied, Op: "a.B", Where: "row 3", Want: "x", Got: "y", Cause: cause}
	placed := Place(e, "partition 1")
	if got, want := placed.Error(), "a.B: partition 1, row 3: want x, got y: why"; got != want {
		t.Errorf("want %q, got %q", want, got)
	}
	if KindOf(placed) != Unsatisfied || !errors.Is(placed, cause) || e.Where != "row 3" {
		t.Errorf("%v from %v", placed, e)
	}
	if got := Place(New(Input, "a.B", "", "", "z"), "partition 1").Error(); got != "a.B: partition 1: z" {
		t.Errorf("got %q", got)
	}
	if Place(cause, "x") != cause || Place(nil, "x") != nil {
		t.Error("a foreign error or none was changed")
	}
}
