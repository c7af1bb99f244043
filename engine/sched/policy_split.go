package sched

// Split is Single whose worker goes on with the next batch when the device's part of one is over; what is left of that one, the
// host's, finishes in the background.
type Split struct{}

func (Split) Name() string     { return "split" }
func (Split) Workers() int     { return 2 }
func (Split) background() bool { return true }
func (Split) staging() right   { return computeRight }
func (Split) computing() right { return computeRight }
