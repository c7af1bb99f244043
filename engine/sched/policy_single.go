package sched

// Single is the interlock of the first GPU provers: one lock a device, which a batch holds from its first copy to its last kernel.
// With one worker nothing overlaps; with two the host's part of one hides behind the device's of the other.
type Single struct{}

func (Single) Name() string     { return "single" }
func (Single) Workers() int     { return 2 }
func (Single) background() bool { return false }
func (Single) staging() right   { return computeRight }
func (Single) computing() right { return computeRight }
