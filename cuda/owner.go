package cuda

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/engine/status"
)

// owner alone talks to a device, in lanes: one that computes and one that copies, so that either goes on while the other waits.
type owner struct {
	config Config
	lanes  [laneCount]lane
	quit   chan struct{}
	stop   sync.Once
	closed chan struct{} // when everything has been given back
	err    error         // of that
	losses atomic.Int64  // contexts since the last partition that went through

	// mu is read-locked while a lane serves a request, and locked by whoever makes or gives up a session.
	mu      sync.RWMutex
	session *session // nil after a loss, until the next request
	lost    error    // not nil: the device is given up
}

// laneID is a lane of an owner.
type laneID int

// The lanes. What is queued on a session's stream up comes from copying, on compute from computing.
const (
	computing laneID = iota
	copying
	laneCount
)

// lane is a goroutine on a thread of its own, which has the device's context.
type lane struct {
	owner    *owner
	id       laneID
	requests chan request
	over     chan struct{} // closed when the goroutine has ended
	broken   error         // what it ended by, where that was a panic
	entered  *session
	leave    func()
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

// start opens the device.
func start(config Config) (*owner, error) {
	o := &owner{config: config, quit: make(chan struct{}), closed: make(chan struct{})}
	for id := range laneCount {
		l := &o.lanes[id]
		*l = lane{owner: o, id: id, requests: make(chan request), over: make(chan struct{})}
		go func() {
			defer close(l.over)
			if id == computing {
				defer close(o.closed) // also after a panic: nobody waits for what will not come
			}
			defer status.Recover("cuda.owner", &l.broken)
			l.loop()
		}()
	}
	if err := o.do(context.Background(), computing, "cuda.Open", func(context.Context, *session) error { return nil }); err != nil {
		return nil, errors.Join(err, o.close())
	}
	return o, nil
}

func (l *lane) loop() {
	defer l.exit()
	for {
		select {
		case r := <-l.requests:
			r.reply <- l.serve(r)
		case <-l.owner.quit:
			if l.id == computing {
				<-l.owner.lanes[copying].over
				l.owner.err = l.shut()
			}
			return
		}
	}
}

// shut gives everything back.
func (l *lane) shut() error {
	o := l.owner
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.session
	if s == nil {
		return nil
	}
	o.session = nil
	if err := l.enter(s); err != nil {
		return err
	}
	return errors.Join(s.drain(copying), s.drain(computing), s.close())
}

// enter makes a session's context that of the lane's thread.
func (l *lane) enter(s *session) (err error) {
	if l.entered == s {
		return nil
	}
	l.exit()
	if l.leave, err = s.device.Enter(); err == nil {
		l.entered = s
	}
	return err
}

func (l *lane) exit() {
	if l.entered != nil {
		l.leave()
		l.entered, l.leave = nil, nil
	}
}

// guarded turns a panic of f into a value.
func guarded(op string, f func() error) (err error) {
	defer status.Recover(op, &err)
	return f()
}

// do lets a lane run something and returns when it has. run gets the session, which it must not keep, and must
// leave nothing queued that uses memory of the caller where it fails; after an error the lane waits for its stream
// itself. Errors: run's; Cancelled when ctx ends before the lane gets to it; NoDevice for a device that is lost;
// Caller after close.
func (o *owner) do(ctx context.Context, id laneID, op string, run func(ctx context.Context, s *session) error) error {
	r := request{ctx: ctx, op: op, run: run, reply: make(chan error, 1)}
	l := &o.lanes[id]
	select {
	case l.requests <- r:
		select {
		case err := <-r.reply:
			return err
		case <-l.over:
		}
		select {
		case err := <-r.reply: // its last one
			return err
		default:
			return status.Wrap(status.Internal, op, o.config.name(), l.broken)
		}
	case <-ctx.Done():
		return status.Wrap(status.Cancelled, op, "", context.Cause(ctx))
	case <-l.over:
		return status.New(status.Caller, op, o.config.name(), "an open device", "a closed one")
	}
}

// serve runs one request.
func (l *lane) serve(r request) error {
	o := l.owner
	s, err := l.current(r)
	if err != nil {
		return err
	}
	err = guarded(r.op, func() error { return r.run(r.ctx, s) })
	if err == nil {
		o.mu.RUnlock()
		return nil
	}
	quiet := s.drain(l.id)
	o.mu.RUnlock()
	if quiet == nil && !driver.IsLost(err) {
		return err
	}
	return l.judge(s, err, quiet)
}

// current returns the session, read-locked, and makes a new one where there is none.
func (l *lane) current(r request) (*session, error) {
	o := l.owner
	for {
		o.mu.RLock()
		err := o.lost
		if err == nil && r.ctx.Err() != nil {
			err = status.Wrap(status.Cancelled, r.op, "", context.Cause(r.ctx))
		}
		s := o.session
		if err == nil && s != nil {
			if err = l.enter(s); err == nil {
				return s, nil
			}
		}
		o.mu.RUnlock()
		if err != nil {
			return nil, err
		}
		if err := l.open(r.op); err != nil {
			return nil, err
		}
	}
}

// open makes a session where there is none. One that cannot be made in place of another that was lost is the end; the first one's
// error goes to whoever opens the device.
func (l *lane) open(op string) error {
	o := l.owner
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.session != nil || o.lost != nil {
		return nil
	}
	l.exit()
	err := guarded(op, func() (err error) { o.session, err = openSession(o.config, l); return err })
	switch {
	case err != nil && op == "cuda.Open":
		o.lost = err
		return err
	case err != nil:
		return o.giveUp(err)
	case op != "cuda.Open":
		o.config.log("warn", "device %s: made a new context", o.config.name())
	}
	return nil
}

// judge sees to a session in which a request failed as on a device that is lost, or whose stream does not come to rest.
func (l *lane) judge(s *session, err, quiet error) error {
	o := l.owner
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.session != s {
		return err // the other lane was here before
	}
	o.session, s.died = nil, err
	// What the other lane has left queued must not outlive the memory that it goes to.
	for id := range laneCount {
		if late := s.drain(id); late != nil && (quiet == nil || status.KindOf(late) == status.Timeout) {
			quiet = late
		}
	}
	if quiet != nil && status.KindOf(quiet) == status.Timeout {
		// Nothing that asks the driver comes back from a device that hangs, giving its context up included.
		return o.giveUp(quiet)
	}
	losses := o.losses.Add(1)
	// What a dead context does not give back went with it.
	_ = s.close()
	if losses >= lossLimit {
		return o.giveUp(err)
	}
	o.config.log("warn", "device %s: its context died: %v", o.config.name(), err)
	return err
}

// giveUp makes a loss final; the caller holds mu.
func (o *owner) giveUp(cause error) error {
	o.lost = status.Wrap(status.NoDevice, "cuda.owner", fmt.Sprintf("device %s is lost to this process; a new one may get it back", o.config.name()), cause)
	o.config.log("error", "%v", o.lost)
	return o.lost
}

// close ends the lanes and gives the device back. Closing twice is legal.
func (o *owner) close() error {
	o.stop.Do(func() { close(o.quit) })
	<-o.closed
	<-o.lanes[copying].over
	<-o.lanes[computing].over
	return errors.Join(o.err, o.lanes[computing].broken, o.lanes[copying].broken)
}
