package host

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sealc2/sealc2/engine/status"
)

func bytesOf(n int64) Needs { return Needs{HostBytes: n} }

// until waits for a state that another goroutine is about to reach.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(100 * time.Microsecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within 10 s", what)
		}
	}
}

func mustReserve(t *testing.T, b *Budget, n Needs) *Reservation {
	t.Helper()
	r, err := b.Reserve(context.Background(), n)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestBudget_NeverFits(t *testing.T) {
	b := NewBudget(Needs{HostBytes: 1000, Threads: 2})
	for _, n := range []Needs{{HostBytes: 1001}, {DeviceBytes: 1}, {Threads: 3}} {
		r, err := b.Reserve(context.Background(), n)
		if status.KindOf(err) != status.NoMemory || r != nil {
			t.Errorf("%+v: %v", n, err)
		}
	}
	_, err := b.Reserve(context.Background(), bytesOf(1001))
	if text := err.Error(); !strings.Contains(text, "1000 bytes") || !strings.Contains(text, "1001 bytes") {
		t.Errorf("text lacks a number: %s", text)
	}
	if _, err := b.Reserve(context.Background(), bytesOf(-1)); status.KindOf(err) != status.Internal {
		t.Errorf("negative: %v", err)
	}
	mustReserve(t, b, Needs{HostBytes: 1000, Threads: 2}).Release()
	if u := b.Usage(); u.Used != (Needs{}) || u.Peak != u.Ceiling {
		t.Errorf("usage %+v", u)
	}
}

// TestBudget_FirstInFirstOut: a small request behind a large one waits though it would fit.
func TestBudget_FirstInFirstOut(t *testing.T) {
	b := NewBudget(bytesOf(10))
	held := mustReserve(t, b, bytesOf(6))
	order := make(chan int, 3)
	for i, n := range []int64{10, 1, 1} {
		go func() {
			r, err := b.Reserve(context.Background(), bytesOf(n))
			if err != nil {
				t.Error(err)
			}
			order <- i
			r.Release()
		}()
		until(t, "request queued", func() bool { return b.Usage().Waiting == i+1 })
	}
	if used := b.Usage().Used.HostBytes; used != 6 {
		t.Fatalf("%d bytes granted past the head of the queue", used-6)
	}
	held.Release()
	if first := <-order; first != 0 {
		t.Errorf("first granted: %d", first)
	}
	<-order
	<-order
	until(t, "all given back", func() bool { return b.Usage().Used == Needs{} })
}

func TestBudget_CancelLetsTheNextIn(t *testing.T) {
	b := NewBudget(bytesOf(10))
	held := mustReserve(t, b, bytesOf(6))
	ctx, cancel := context.WithCancel(context.Background())
	large := make(chan error)
	go func() {
		_, err := b.Reserve(ctx, bytesOf(8))
		large <- err
	}()
	until(t, "large queued", func() bool { return b.Usage().Waiting == 1 })
	small := make(chan *Reservation)
	go func() {
		r, _ := b.Reserve(context.Background(), bytesOf(2))
		small <- r
	}()
	until(t, "small queued", func() bool { return b.Usage().Waiting == 2 })
	cancel()
	if err := <-large; status.KindOf(err) != status.Cancelled || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	(<-small).Release()
	held.Release()
	if _, err := b.Reserve(ctx, bytesOf(1)); status.KindOf(err) != status.Cancelled {
		t.Errorf("already cancelled: %v", err)
	}
	if u := b.Usage(); u.Used != (Needs{}) || u.Waiting != 0 {
		t.Errorf("usage %+v", u)
	}
}

func TestReservation_ReleaseOnce(t *testing.T) {
	b := NewBudget(bytesOf(10))
	first, second := mustReserve(t, b, bytesOf(5)), mustReserve(t, b, bytesOf(5))
	first.Release()
	first.Release()
	if used := b.Usage().Used.HostBytes; used != 5 {
		t.Errorf("used %d after a double release", used)
	}
	if err := first.Grow(context.Background(), bytesOf(1)); status.KindOf(err) != status.Internal {
		t.Errorf("grow after release: %v", err)
	}
	second.Release()
	(*Reservation)(nil).Release()
}

func TestReservation_GrowGoesFirst(t *testing.T) {
	b := NewBudget(bytesOf(10))
	holder, other := mustReserve(t, b, bytesOf(2)), mustReserve(t, b, bytesOf(8))
	newcomer := make(chan *Reservation)
	go func() {
		r, _ := b.Reserve(context.Background(), bytesOf(1))
		newcomer <- r
	}()
	until(t, "newcomer queued", func() bool { return b.Usage().Waiting == 1 })
	grown := make(chan error)
	go func() { grown <- holder.Grow(context.Background(), bytesOf(8)) }()
	until(t, "grower queued", func() bool { return b.Usage().Waiting == 2 })
	other.Release()
	if err := <-grown; err != nil {
		t.Fatal(err)
	}
	if n := holder.Needs().HostBytes; n != 10 {
		t.Errorf("holds %d", n)
	}
	if u := b.Usage(); u.Waiting != 1 || u.Used.HostBytes != 10 {
		t.Errorf("usage %+v", u)
	}
	if err := holder.Grow(context.Background(), bytesOf(1)); status.KindOf(err) != status.NoMemory {
		t.Errorf("growth past the ceiling: %v", err)
	}
	holder.Release()
	(<-newcomer).Release()
}

// TestReservation_GrowInOrder: of two that grow the one with the higher priority goes first, though it came later and the other
// would fit before.
func TestReservation_GrowInOrder(t *testing.T) {
	b := NewBudget(bytesOf(10))
	other := mustReserve(t, b, bytesOf(8))
	low, high := b.Open(Priority{Class: 1, Serial: 1}), b.Open(Priority{Class: 2, Serial: 2})
	lowGrown, highGrown := make(chan error), make(chan error)
	go func() { lowGrown <- low.Grow(context.Background(), bytesOf(3)) }()
	until(t, "the low one queued", func() bool { return b.Usage().Waiting == 1 })
	go func() { highGrown <- high.Grow(context.Background(), bytesOf(9)) }()
	until(t, "the high one queued", func() bool { return b.Usage().Waiting == 2 })
	other.Release()
	if err := <-highGrown; err != nil {
		t.Fatal(err)
	}
	if u := b.Usage(); u.Waiting != 1 || u.Used.HostBytes != 9 {
		t.Errorf("usage %+v", u)
	}
	high.Release()
	if err := <-lowGrown; err != nil {
		t.Fatal(err)
	}
	low.Release()
	if u := b.Usage(); u.Used != (Needs{}) || u.Waiting != 0 || b.holders != 0 {
		t.Errorf("usage %+v, %d holders", u, b.holders)
	}
}

// TestReservation_GiveBack: two that hold a part and want what the other has do not wait for ever: the one behind is told to
// give back, but not while somebody else holds something that may still come back.
func TestReservation_GiveBack(t *testing.T) {
	b := NewBudget(bytesOf(10))
	other := mustReserve(t, b, bytesOf(1))
	low, high := b.Open(Priority{Class: 1, Serial: 1}), b.Open(Priority{Class: 2, Serial: 2})
	for _, r := range []*Reservation{low, high} {
		if err := r.Grow(context.Background(), bytesOf(3)); err != nil {
			t.Fatal(err)
		}
	}
	lowGrown, highGrown := make(chan error, 1), make(chan error, 1)
	go func() { highGrown <- high.Grow(context.Background(), bytesOf(6)) }()
	go func() { lowGrown <- low.Grow(context.Background(), bytesOf(6)) }()
	until(t, "both queued", func() bool { return b.Usage().Waiting == 2 })
	other.Release()
	err := <-lowGrown
	if !errors.Is(err, ErrGiveBack) || status.KindOf(err) != status.NoMemory {
		t.Fatalf("the one behind: %v", err)
	}
	low.Release()
	if err := <-highGrown; err != nil {
		t.Fatal(err)
	}
	high.Release()
	if u := b.Usage(); u.Used != (Needs{}) || u.Waiting != 0 || b.holders != 0 {
		t.Errorf("usage %+v, %d holders", u, b.holders)
	}
}

// TestBudget_Storm: many goroutines with random needs and cancellations never pass the ceiling and leave
// nothing behind.
func TestBudget_Storm(t *testing.T) {
	ceiling := Needs{HostBytes: 100, DeviceBytes: 50, Threads: 4}
	b := NewBudget(ceiling)
	var held, over atomic.Int64
	var all sync.WaitGroup
	for worker := range 32 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(7, uint64(worker)))
			for range 200 {
				n := Needs{HostBytes: random.Int64N(101), DeviceBytes: random.Int64N(51), Threads: random.IntN(5)}
				ctx, cancel := context.WithCancel(context.Background())
				if random.IntN(3) == 0 {
					time.AfterFunc(time.Duration(random.IntN(50))*time.Microsecond, cancel)
				}
				r, err := b.Reserve(ctx, n)
				if err == nil {
					if held.Add(n.HostBytes) > ceiling.HostBytes {
						over.Add(1)
					}
					runtime.Gosched()
					held.Add(-n.HostBytes)
					r.Release()
				}
				cancel()
			}
		})
	}
	all.Wait()
	u := b.Usage()
	if over.Load() > 0 || !u.Peak.within(ceiling) || u.Used != (Needs{}) || u.Waiting != 0 {
		t.Errorf("over %d times, usage %+v", over.Load(), u)
	}
}

// TestBudget_Idle: what is kept counts on behind its last holder, costs the next one nothing, and makes room for a request that does not
// fit beside it, which waits until it is gone. A holder that comes while it goes counts by itself.
func TestBudget_Idle(t *testing.T) {
	b := NewBudget(Needs{HostBytes: 10, DeviceBytes: 1})
	begun, end := make(chan struct{}), make(chan struct{})
	kept := Shared{Key: "kept", Needs: bytesOf(6), Free: func() { close(begun); <-end }}
	hold := func(more int64) *Reservation {
		t.Helper()
		r := b.Open(Priority{})
		if err := r.Grow(t.Context(), bytesOf(more), kept); err != nil {
			t.Fatal(err)
		}
		return r
	}
	used := func(want int64) {
		t.Helper()
		if got := b.Usage().Used.HostBytes; got != want {
			t.Errorf("want %d bytes used, got %d", want, got)
		}
	}
	first := hold(2)
	used(8)
	first.Release()
	used(6)
	second := hold(4)
	used(10)
	second.Release()
	mustReserve(t, b, bytesOf(4)).Release()
	all := mustReserve(t, b, Needs{DeviceBytes: 1})
	soon, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := b.Reserve(soon, Needs{DeviceBytes: 1}); status.KindOf(err) != status.Cancelled {
		t.Error(err)
	}
	all.Release()
	select {
	case <-begun:
		t.Fatal("freed though nobody lacked it")
	default:
	}
	for _, grows := range []bool{false, true} {
		large := make(chan *Reservation)
		go func() {
			var r *Reservation
			var err error
			if grows {
				r = b.Open(Priority{})
				err = r.Grow(t.Context(), bytesOf(7))
			} else {
				r, err = b.Reserve(t.Context(), bytesOf(7))
			}
			if err != nil {
				t.Error(err)
			}
			large <- r
		}()
		<-begun
		used(6)
		select {
		case <-large:
			t.Fatal("granted before there was room")
		case <-time.After(time.Millisecond):
		}
		close(end)
		r := <-large
		used(7)
		r.Release()
		used(0)
		begun, end = make(chan struct{}), make(chan struct{})
		hold(1).Release()
		used(6)
	}
}

// deviceBudget has some memory of one device.
func deviceBudget(bytes int64) *Budget { return NewBudget(deviceNeeds(1, bytes)) }

// Goal: memory that others have taken from a device is granted to nobody, until it comes back; and nobody waits for what can never fit: whoever planned with more is told to
// plan anew, once. Method: a ceiling that is lowered while one reservation holds much, a second one waits for what still fits and a third for what does not.
func TestBudget_Resize(t *testing.T) {
	b := deviceBudget(100)
	ctx := context.Background()
	grow := func(r *Reservation, bytes int64, shared ...Shared) chan error {
		waiting := b.Usage().Waiting
		done := make(chan error, 1)
		go func() { done <- r.Grow(ctx, deviceNeeds(1, bytes), shared...) }()
		until(t, "request granted or queued", func() bool { return b.Usage().Waiting > waiting || len(done) > 0 })
		return done
	}
	first, second, third := b.Open(Priority{}), b.Open(Priority{}), b.Open(Priority{})
	if err := <-grow(first, 60); err != nil {
		t.Fatal(err)
	}
	fits, not := grow(second, 50), grow(third, 60, Shared{Key: "workspace", Needs: deviceNeeds(1, 20)})
	b.Resize(1, -30)
	if err := <-not; !errors.Is(err, ErrGiveBack) {
		t.Errorf("80 of 70: %v", err)
	}
	third.Release()
	if u := b.Usage(); u.Waiting != 1 || u.Ceiling != deviceNeeds(1, 70) || u.Used != deviceNeeds(1, 60) {
		t.Errorf("%+v", u)
	}
	b.Resize(1, -30) // below what is held
	if err := <-fits; !errors.Is(err, ErrGiveBack) {
		t.Errorf("50 of 40: %v", err)
	}
	// Asked for now, by a plan from before; and by one from now.
	if err := second.Grow(ctx, deviceNeeds(1, 50)); !errors.Is(err, ErrGiveBack) {
		t.Errorf("50 of 40, planned before: %v", err)
	}
	second.Release()
	second = b.Open(Priority{})
	if err := second.Grow(ctx, deviceNeeds(1, 50)); status.KindOf(err) != status.NoMemory || errors.Is(err, ErrGiveBack) || !strings.Contains(err.Error(), "40 bytes") {
		t.Errorf("50 of 40: %v", err)
	}
	fits = grow(second, 40)
	if len(fits) > 0 {
		t.Error("40 beside 60, of 40")
	}
	first.Release()
	if err := <-fits; err != nil {
		t.Error(err)
	}
	fourth := b.Open(Priority{})
	fits = grow(fourth, 40)
	b.Resize(1, 60)
	if err := <-fits; err != nil {
		t.Errorf("once there is memory again: %v", err)
	}
	second.Release()
	fourth.Release()
	if u := b.Usage(); u.Waiting != 0 || u.Ceiling != deviceNeeds(1, 100) || u.Used != (Needs{}) {
		t.Errorf("%+v", u)
	}
}

// Goal: what is kept for good lowers the ceiling once, costs nobody who shares it anything, and what no longer fits beside it is refused and does not wait.
func TestBudget_Keep(t *testing.T) {
	b := deviceBudget(100)
	ctx := context.Background()
	points := Shared{Key: "points", Needs: deviceNeeds(1, 30)}
	maker := b.Open(Priority{})
	if err := maker.Grow(ctx, deviceNeeds(1, 70), points); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		b.Keep(points)
	}
	if u := b.Usage(); u.Ceiling != deviceNeeds(1, 70) || u.Used != deviceNeeds(1, 70) {
		t.Errorf("%+v", u)
	}
	maker.Release()
	user, other := b.Open(Priority{}), b.Open(Priority{})
	if err := user.Grow(ctx, deviceNeeds(1, 70), points); err != nil {
		t.Error(err)
	}
	user.Release()
	if err := other.Grow(ctx, deviceNeeds(1, 70), Shared{Key: "other points", Needs: deviceNeeds(1, 1)}); status.KindOf(err) != status.NoMemory || errors.Is(err, ErrGiveBack) {
		t.Errorf("beside what is kept: %v", err)
	}
	other.Release()
	b.Keep(Shared{Key: "unasked", Needs: deviceNeeds(1, 20)})
	if u := b.Usage(); u.Ceiling != deviceNeeds(1, 50) || u.Used != (Needs{}) || u.Waiting != 0 {
		t.Errorf("%+v", u)
	}
}

// TestBudget_Offer: what is offered counts on with nobody holding it, costs who asks for it nothing, and goes for a request that lacks it; what does
// not fit beside others, or behind one that waits, is not booked.
func TestBudget_Offer(t *testing.T) {
	b := NewBudget(Needs{HostBytes: 10})
	freed := make(chan struct{})
	offered := Shared{Key: "offered", Needs: bytesOf(6), Free: func() { close(freed) }}
	most := mustReserve(t, b, bytesOf(5))
	if b.Offer(offered) || b.Usage().Used != bytesOf(5) {
		t.Errorf("what does not fit is booked: %+v", b.Usage())
	}
	waiting := make(chan *Reservation)
	go func() {
		r, err := b.Reserve(t.Context(), bytesOf(6))
		if err != nil {
			t.Error(err)
		}
		waiting <- r
	}()
	for b.Usage().Waiting == 0 {
		time.Sleep(time.Millisecond)
	}
	if b.Offer(Shared{Key: "small", Needs: bytesOf(1), Free: func() {}}) {
		t.Error("booked before one that waits")
	}
	most.Release()
	(<-waiting).Release()
	for range 2 {
		if !b.Offer(offered) {
			t.Error("not booked")
		}
	}
	if u := b.Usage(); u.Used != bytesOf(6) || u.Kept != bytesOf(6) || u.Peak != bytesOf(6) {
		t.Errorf("%+v", u)
	}
	r := b.Open(Priority{})
	if err := r.Grow(t.Context(), bytesOf(4), offered); err != nil || b.Usage().Used != bytesOf(10) {
		t.Errorf("%v, %+v", err, b.Usage())
	}
	r.Release()
	mustReserve(t, b, bytesOf(5)).Release()
	<-freed
	if u := b.Usage(); u.Used != (Needs{}) {
		t.Errorf("%+v", u)
	}
}

// TestBudget_GrantedWhileGivingUp: a request that is granted while its context has ended leaves nothing behind.
func TestBudget_GrantedWhileGivingUp(t *testing.T) {
	b := NewBudget(Needs{HostBytes: 1})
	first, err := b.Reserve(context.Background(), Needs{HostBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() {
		_, err := b.Reserve(ctx, Needs{HostBytes: 1})
		ended <- err
	}()
	for b.Usage().Waiting == 0 {
		time.Sleep(time.Millisecond)
	}
	b.mu.Lock()
	cancel()
	time.Sleep(20 * time.Millisecond) // it has seen the end, and waits for the mutex
	b.unbook(first.needs, nil)
	b.holders--
	b.serve()
	b.mu.Unlock()
	if err := <-ended; err == nil {
		t.Fatal("granted")
	}
	if u := b.Usage(); u.Used != (Needs{}) || u.Waiting != 0 {
		t.Fatalf("%+v", u)
	}
}

// TestBudget_SetAside: what is set aside is for one class and those above: others are refused what only fits there, and wait while the rest is taken.
func TestBudget_SetAside(t *testing.T) {
	b := NewBudget(bytesOf(10))
	b.SetAside(3, 2)
	high := Priority{Class: 3}
	if err := b.Fits("test", bytesOf(9)); status.KindOf(err) != status.NoMemory || !strings.Contains(err.Error(), "at most 8 bytes") {
		t.Errorf("the lowest class: %v", err)
	}
	if err := b.FitsFor("test", high, bytesOf(10)); err != nil {
		t.Error(err)
	}
	grow := func(p Priority, bytes int64) (*Reservation, error) {
		t.Helper()
		soon, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		r := b.Open(p)
		return r, r.Grow(soon, bytesOf(bytes))
	}
	low, err := grow(Priority{Class: 2}, 8)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := grow(Priority{Class: 2}, 1); status.KindOf(err) != status.Cancelled {
		t.Errorf("beside others: %v", err)
	}
	if _, err := grow(Priority{Class: 2}, 9); status.KindOf(err) != status.NoMemory {
		t.Errorf("more than there can be: %v", err)
	}
	urgent, err := grow(high, 2)
	if err != nil || b.Usage().Used != bytesOf(10) {
		t.Errorf("%v, %+v", err, b.Usage())
	}
	low.Release()
	urgent.Release()
}
