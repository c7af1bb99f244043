package host

import (
	"cmp"
	"time"
)

// Priority orders what waits for the same thing: the higher class first, within a class what is due earlier, then what
// came earlier. All three are fixed when a job comes, so whatever waits is the first of its class some day.
type Priority struct {
	Class  uint8 // higher goes first
	Due    time.Time
	Serial uint64 // in the order of coming
}

// Compare is negative where p goes before q.
func (p Priority) Compare(q Priority) int {
	return cmp.Or(-cmp.Compare(p.Class, q.Class), p.Due.Compare(q.Due), cmp.Compare(p.Serial, q.Serial))
}
