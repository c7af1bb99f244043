package cuda

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/engine/status"
)

// owner is the goroutine that alone talks to a device. All fields below the line belong to it.
type owner struct {
	config   Config
	requests chan request
	quit     chan struct{}
	stop     sync.Once
	over     chan struct{} // closed when the goroutine has ended

	session *session // nil after a loss, until the next request
	losses  int      // since the last partition that went through
	lost    error    // not nil: the device is given up
	closing error
}

// request is something to do with the device.
type request struct {
	ctx   context.Context
	op    string
	run   func(ctx context.Context, s *session) error
	reply chan error
}

// lossLimit is how many contexts may die in a row before the device is given up. A context that an illegal access or
// instruction has killed stays so for the whole process, says the driver's manual; making another then fails, and that is
// the end of it too.
const lossLimit = 2

// start opens the device on its new goroutine.
func start(config Config) (*owner, error) {
	o := &owner{config: config, requests: make(chan request), quit: make(chan struct{}), over: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		defer close(o.over)
		defer status.Recover("cuda.owner", &o.closing)
		o.loop(started)
	}()
	if err := <-started; err != nil {
		<-o.over
		return nil, err
	}
	return o, nil
}

func (o *owner) loop(started chan<- error) {
	err := guarded("cuda.Open", o.open)
	started <- err
	if err != nil {
		return
	}
	for {
		select {
		case r := <-o.requests:
			r.reply <- o.serve(r)
		case <-o.quit:
			if o.session != nil {
				o.closing = errors.Join(o.session.drain(), o.session.close())
			}
			return
		}
	}
}

// guarded turns a panic of f into a value.
func guarded(op string, f func() error) (err error) {
	defer status.Recover(op, &err)
	return f()
}

func (o *owner) open() (err error) {
	o.session, err = openSession(o.config)
	return err
}

// do lets the owner run something and returns when it has. run gets the session, which it must not keep, and must
// leave nothing queued that uses memory of the caller where it fails; after an error the owner waits for all streams
// itself. Errors: run's; Cancelled when ctx ends before the owner gets to it; NoDevice for a device that is lost;
// Caller after close.
func (o *owner) do(ctx context.Context, op string, run func(ctx context.Context, s *session) error) error {
	r := request{ctx: ctx, op: op, run: run, reply: make(chan error, 1)}
	select {
	case o.requests <- r:
		return <-r.reply
	case <-ctx.Done():
		return status.Wrap(status.Cancelled, op, "", context.Cause(ctx))
	case <-o.over:
		return status.New(status.Caller, op, o.config.name(), "an open device", "a closed one")
	}
}

// serve runs one request.
func (o *owner) serve(r request) error {
	if o.lost != nil {
		return o.lost
	}
	if r.ctx.Err() != nil {
		return status.Wrap(status.Cancelled, r.op, "", context.Cause(r.ctx))
	}
	if o.session == nil {
		if err := guarded(r.op, o.open); err != nil {
			return o.giveUp(err)
		}
		o.config.log("warn", "device %s: made a new context", o.config.name())
	}
	s := o.session
	err := guarded(r.op, func() error { return r.run(r.ctx, s) })
	if err == nil {
		return nil
	}
	quiet := s.drain()
	switch {
	case quiet != nil && status.KindOf(quiet) == status.Timeout:
		// Nothing that asks the driver comes back from a device that hangs, giving its context up included.
		o.session = nil
		s.abandon()
		return o.giveUp(quiet)
	case quiet != nil || driver.IsLost(err):
		o.session = nil
		o.losses++
		// What a dead context does not give back went with it.
		_ = s.close()
		if o.losses >= lossLimit {
			return o.giveUp(err)
		}
		o.config.log("warn", "device %s: its context died: %v", o.config.name(), err)
	}
	return err
}

// giveUp makes a loss final.
func (o *owner) giveUp(cause error) error {
	o.lost = status.Wrap(status.NoDevice, "cuda.owner", fmt.Sprintf("device %s is lost to this process; a new one may get it back", o.config.name()), cause)
	o.config.log("error", "%v", o.lost)
	return o.lost
}

// close ends the owner and gives the device back. Closing twice is legal.
func (o *owner) close() error {
	o.stop.Do(func() { close(o.quit) })
	<-o.over
	return o.closing
}
