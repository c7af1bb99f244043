package sched

// Reservation is the default. What a batch needs was reserved before its job was admitted, so whatever is ready may run:
// batches stage as soon as their turn in the copy lane comes, beside what computes. Of each job a device has
// as many batches at once as the plan says.
type Reservation struct{}

func (Reservation) Name() string     { return "reservation" }
func (Reservation) Workers() int     { return 0 }
func (Reservation) background() bool { return false }
func (Reservation) staging() right   { return noRight }
func (Reservation) computing() right { return noRight }
