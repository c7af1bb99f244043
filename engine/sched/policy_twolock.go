package sched

// TwoLock has a lock for memory and one for computing, so that of three workers one computes, one stages and one does the host's work. A
// batch that may stage and finds no room does so once it may compute. Room is what was reserved (Share.Rooms): it is never looked
// for on the device, whose calls for that would stop the one that computes.
type TwoLock struct{}

func (TwoLock) Name() string     { return "two-lock" }
func (TwoLock) Workers() int     { return 3 }
func (TwoLock) background() bool { return false }
func (TwoLock) staging() right   { return memoryRight }
func (TwoLock) computing() right { return computeRight }
