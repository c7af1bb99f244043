package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sealc2/sealc2/engine/status"
)

// pools gives each test of Do its two ways: goroutines of its own, and threads of a pool.
func pools(t *testing.T, threads int, f func(t *testing.T, ctx context.Context)) {
	t.Helper()
	t.Run("goroutines", func(t *testing.T) { f(t, t.Context()) })
	t.Run("pool", func(t *testing.T) { f(t, WithPool(t.Context(), thisPool(t, threads))) })
}

// thisPool is a pool on the machine that we run on.
func thisPool(t testing.TB, threads int) *Pool {
	t.Helper()
	topology, err := ThisMachine().Topology()
	if err != nil {
		t.Fatal(err)
	}
	p := NewPool(topology, threads, -1)
	t.Cleanup(p.Close)
	return p
}

func TestDo(t *testing.T) {
	pools(t, 3, func(t *testing.T, ctx context.Context) {
		for _, n := range []int{0, 1, 2, 3, 7, 8, 9, 1000} {
			for _, run := range []int{1, 2, 8, 5000} {
				for _, threads := range []int{-1, 1, 2, 3, 9} {
					seen := make([]atomic.Int32, n)
					var busy [9]atomic.Bool
					err := Do(ctx, "test", n, run, threads, func(worker, from, to int) error {
						if worker < 0 || worker >= max(1, threads) || busy[worker].Swap(true) {
							return fmt.Errorf("worker %d of %d, or twice at a time", worker, threads)
						}
						defer busy[worker].Store(false)
						if from%run != 0 || to != min(from+run, n) || from >= to {
							return fmt.Errorf("run [%d, %d)", from, to)
						}
						for i := from; i < to; i++ {
							seen[i].Add(1)
						}
						return nil
					})
					if err != nil {
						t.Fatalf("%d items by %d on %d threads: %v", n, run, threads, err)
					}
					for i := range seen {
						if seen[i].Load() != 1 {
							t.Fatalf("%d items by %d on %d threads: item %d came %d times", n, run, threads, i, seen[i].Load())
						}
					}
				}
			}
		}
		if kind := kindOfPanic(func() { _ = Do(ctx, "test", 1, 0, 1, nil) }); kind != status.Internal {
			t.Errorf("runs of no items: kind %v", kind)
		}
	})
}

// Goal: the error is that of the first run in order, however the threads went; nothing runs after it has been seen.
func TestDo_Fails(t *testing.T) {
	pools(t, 4, func(t *testing.T, ctx context.Context) {
		for bad := range 6 {
			var ran atomic.Int32
			err := Do(ctx, "test", 1000, 1, 4, func(_, from, _ int) error {
				ran.Add(1)
				if from == bad { // the later ones are there first
					time.Sleep(2 * time.Millisecond)
				}
				if from >= bad {
					return fmt.Errorf("run %d", from)
				}
				return nil
			})
			if err == nil || err.Error() != fmt.Sprintf("run %d", bad) || ran.Load() > int32(bad)+4 {
				t.Errorf("run %d fails: %v after %d runs", bad, err, ran.Load())
			}
		}
		err := Do(ctx, "test.Op", 100, 1, 4, func(_, from, _ int) error {
			if from == 50 {
				panic("broken")
			}
			return nil
		})
		if status.KindOf(err) != status.Internal || !strings.Contains(err.Error(), "test.Op: panic: broken") {
			t.Errorf("panic: %v", err)
		}
		if err := Do(ctx, "test", 100, 1, 4, func(_, _, _ int) error { return nil }); err != nil {
			t.Errorf("after a panic: %v", err)
		}
	})
}

func TestDo_Cancelled(t *testing.T) {
	pools(t, 2, func(t *testing.T, ctx context.Context) {
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(ctx)
		var ran atomic.Int32
		err := Do(ctx, "test", 1000, 1, 2, func(_, from, _ int) error {
			switch n := ran.Add(1); {
			case n == 10:
				cancel(why)
			case n > 10:
				<-ctx.Done()
			}
			return nil
		})
		if status.KindOf(err) != status.Cancelled || !errors.Is(err, why) || ran.Load() > 11 {
			t.Errorf("%v after %d runs", err, ran.Load())
		}
		if err := Do(ctx, "test", 1, 1, 2, func(_, _, _ int) error { return nil }); status.KindOf(err) != status.Cancelled {
			t.Errorf("begun after the end: %v", err)
		}
	})
}

// Goal: loops at the same time and loops within loops all end, with more of them than threads.
func TestPool_ManyLoops(t *testing.T) {
	ctx := WithPool(t.Context(), thisPool(t, 3))
	var sum atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			err := Do(ctx, "outer", 20, 1, 3, func(_, _, _ int) error {
				return Do(ctx, "middle", 6, 1, 2, func(_, _, _ int) error {
					return Do(ctx, "inner", 4, 1, 9, func(_, _, _ int) error {
						sum.Add(1)
						return nil
					})
				})
			})
			if err != nil {
				t.Error(err)
			}
		}()
	}
	wg.Wait()
	if sum.Load() != 8*20*6*4 {
		t.Errorf("%d innermost runs", sum.Load())
	}
}

// masks are the masks of all threads of the process.
func masks(t *testing.T) map[string]CPUSet {
	t.Helper()
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]CPUSet{}
	for _, task := range tasks {
		var id int
		if _, err := fmt.Sscan(task.Name(), &id); err != nil {
			t.Fatal(err)
		}
		if mask, err := threadMask(id); err == nil { // it may have ended
			out[task.Name()] = mask
		}
	}
	return out
}

// Goal: loops run under the masks of their seats, and nobody else does, neither then nor later; nor is GOMAXPROCS another.
func TestPool_Masks(t *testing.T) {
	topology, err := ThisMachine().Topology()
	if err != nil {
		t.Fatal(err)
	}
	all, procs := topology.CPUs, runtime.GOMAXPROCS(0)
	if all.Count() < 2 {
		t.Skip("one CPU: every mask is the same")
	}
	// A part of the machine, so that its masks are not those of other threads.
	var one CPUSet
	one.Add(all.First())
	part := ReadTopology(os.DirFS("/"), one, "test")
	for range 3 {
		p := NewPool(part, 2, -1)
		ctx := WithPool(t.Context(), p)
		var hold sync.WaitGroup // both threads are in the loop at once
		hold.Add(2)
		var bound sync.Map
		err = Do(ctx, "test", 2, 1, 2, func(_, _, _ int) error {
			hold.Done()
			hold.Wait()
			mask, err := threadMask(0)
			if err != nil || mask != one || unix.Gettid() == unix.Getpid() {
				t.Errorf("thread %d of process %d runs on %s, %v", unix.Gettid(), unix.Getpid(), mask.String(), err)
			}
			bound.Store(fmt.Sprint(unix.Gettid()), true)
			// Threads that Go makes while this one runs, which a thread's children would have the mask of.
			var blocked sync.WaitGroup
			for range 8 {
				blocked.Add(1)
				go func() {
					defer blocked.Done()
					if err := unix.Nanosleep(&unix.Timespec{Nsec: 5e6}, nil); err != nil && !errors.Is(err, unix.EINTR) {
						t.Error(err)
					}
				}()
			}
			blocked.Wait()
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		others := 0
		for id, mask := range masks(t) {
			if _, ours := bound.Load(id); !ours {
				others++
				if mask != all {
					t.Errorf("thread %s is not ours and runs on %s", id, mask.String())
				}
			}
		}
		if others == 0 {
			t.Error("no other threads")
		}
		p.Close()
		p.Close()
		if err := Do(ctx, "test", 10, 1, 2, func(_, _, _ int) error {
			if mask, err := threadMask(0); err != nil || mask != all {
				t.Errorf("after Close a loop runs on %s, %v", mask.String(), err)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
		for id, mask := range masks(t) {
			if mask != all {
				t.Errorf("after Close thread %s runs on %s", id, mask.String())
			}
		}
	}
	if got := runtime.GOMAXPROCS(0); got != procs {
		t.Errorf("GOMAXPROCS %d was %d", got, procs)
	}
}

// Goal: Close ends a pool while its threads are in loops, and waits for them.
func TestPool_CloseInLoop(t *testing.T) {
	p := thisPool(t, 2)
	ctx := WithPool(t.Context(), p)
	begun, done := make(chan struct{}), make(chan error)
	var once sync.Once
	go func() {
		done <- Do(ctx, "test", 50, 1, 2, func(_, _, _ int) error {
			once.Do(func() { close(begun) })
			time.Sleep(100 * time.Microsecond)
			return nil
		})
	}()
	<-begun
	p.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Goal: CPUs that the kernel does not give are no error: the threads work, and the pool says that they are not bound.
func TestPool_Refused(t *testing.T) {
	p := NewPool(&Topology{CPUs: set(t, "8000"), Nodes: []Node{{Number: 3, CPUs: set(t, "8000"), Cores: set(t, "8000")}}}, 2, -1)
	defer p.Close()
	if got := p.PerNode(); !slices.Equal(got, []NodeThreads{{-1, 2}}) || p.String() != "2 threads: 2 on no node (binding to CPUs 8000: invalid argument)" {
		t.Errorf("%v, %s", got, p)
	}
	var sum atomic.Int64
	if err := Do(WithPool(t.Context(), p), "test", 10, 1, 2, func(_, from, _ int) error { sum.Add(int64(from)); return nil }); err != nil || sum.Load() != 45 {
		t.Errorf("%d, %v", sum.Load(), err)
	}
}

func TestTopology_Seats(t *testing.T) {
	two, eight := ReadTopology(tree(files(twoNodes)), set(t, "0-7"), ""), ReadTopology(tree(files(eightNodes())), set(t, "0-63"), "")
	part := ReadTopology(tree(files(twoNodes)), set(t, "5-6"), "")
	uneven := ReadTopology(tree(files(twoNodes)), set(t, "0-1,4-7"), "")
	smt := ReadTopology(tree(files(oneNode)), set(t, "0-3"), "")
	for _, c := range []struct {
		name          string
		topology      *Topology
		threads, near int
		want          string // node[CPUs] of each seat, equal ones as node[CPUs]xN
	}{
		{"one thread", smt, 1, -1, "0[0-1]"},
		{"cores", smt, 2, -1, "0[0-1]x2"},
		{"siblings", smt, 3, 0, "0[0-3]x3"},
		{"more than CPUs", smt, 6, 0, "0[0-3]x6"},
		{"spread", two, 4, -1, "0[0-3] 1[4-7] 0[0-3] 1[4-7]"},
		{"near the second", two, 4, 1, "1[4-7]x4"},
		{"near the second, and more", two, 6, 1, "1[4-7]x4 0[0-3]x2"},
		{"near a node without our CPUs", part, 2, 0, "1[5-6]x2"},
		{"near no node", part, 2, 9, "1[5-6]x2"},
		{"in proportion", uneven, 3, -1, "1[4-7] 0[0-1] 1[4-7]"},
		{"eight nodes, near by distance", eight, 20, 4, "4[16-19]x4 5[20-23]x4 6[24-27]x4 7[28-31]x4 0[0-3]x4"},
		{"eight nodes, cores before siblings", eight, 33, 4, "4[16-19,48-51]x4 5[20-23]x4 6[24-27]x4 7[28-31]x4 0[0-3]x4 1[4-7]x4 2[8-11]x4 3[12-15]x4 4[16-19,48-51]"},
		{"eight nodes, spread", eight, 8, -1, "0[0-3] 1[4-7] 2[8-11] 3[12-15] 4[16-19] 5[20-23] 6[24-27] 7[28-31]"},
		{"near memory alone", eight, 4, 8, "0[0-3]x4"},
		{"no CPUs", &Topology{}, 2, -1, "-1[]x2"},
	} {
		var parts []string
		seats := c.topology.seats(c.threads, c.near)
		for i := 0; i < len(seats); {
			n := 1
			for i+n < len(seats) && seats[i+n].node == seats[i].node && seats[i+n].mask == seats[i].mask {
				n++
			}
			part := fmt.Sprintf("%d[%s]", seats[i].node, seats[i].mask.String())
			if n > 1 {
				part += fmt.Sprintf("x%d", n)
			}
			parts = append(parts, part)
			i += n
		}
		if got := strings.Join(parts, " "); got != c.want {
			t.Errorf("%s: want %s\n got %s", c.name, c.want, got)
		}
	}
}

func TestPool_PerNode(t *testing.T) {
	p := thisPool(t, 3)
	total := 0
	for _, n := range p.PerNode() {
		total += n.Threads
	}
	if total != 3 || p.Threads() != 3 || !strings.HasPrefix(p.String(), "3 threads: ") {
		t.Errorf("%s: %v", p, p.PerNode())
	}
}

func TestNewArenaNear(t *testing.T) {
	const size = 4 << 20
	touch := func(a *Arena) {
		for i, block := 0, Alloc[byte](a, size); i < len(block); i += 4096 {
			block[i] = 1
		}
	}
	topology, err := ThisMachine().Topology()
	if err != nil {
		t.Fatal(err)
	}
	near := max(0, topology.Nodes[0].Number)
	own, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(own), "Mems_allowed_list:\t")
	list, _, _ = strings.Cut(list, "\n")
	mems := set(t, list)
	if why := topology.MemoryUnbound; why != nil && mems.Has(near) && !errors.Is(why, unix.EPERM) && !errors.Is(why, unix.ENOSYS) {
		t.Errorf("memory of node %d of %s is not forbidden, but refused: %v", near, list, why)
	}
	for node, refused := range map[int]bool{-1: false, -7: false, near: topology.MemoryUnbound != nil, 900: true, maxNodes: true} {
		a, err := NewArenaNear(size, node)
		if err != nil {
			t.Fatal(err)
		}
		if got, why := a.Node(); got != max(node, -1) || (why != nil) != refused {
			t.Errorf("near %d: %d, %v", node, got, why)
		}
		touch(a)
		if maps, err := os.ReadFile("/proc/self/numa_maps"); err == nil && node == near {
			_, line, _ := strings.Cut(string(maps), fmt.Sprintf("%x ", unsafe.Pointer(unsafe.SliceData(a.block))))
			line, _, _ = strings.Cut(line, "\n")
			if preferred := strings.HasPrefix(line, fmt.Sprintf("prefer:%d ", node)); preferred == refused {
				t.Errorf("the kernel says %q of memory near %d", line, node)
			}
		}
		a.Close()
	}
	if _, err := NewArenaNear(-1, 0); status.KindOf(err) != status.Internal {
		t.Errorf("negative size: %v", err)
	}
}

// BenchmarkDo is what a loop costs: runs that do nothing, as many as threads.
func BenchmarkDo(b *testing.B) {
	bench := func(b *testing.B, ctx context.Context) {
		for b.Loop() {
			if err := Do(ctx, "bench", 2, 1, 2, func(_, _, _ int) error { return nil }); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("goroutines", func(b *testing.B) { bench(b, context.Background()) })
	b.Run("pool", func(b *testing.B) { bench(b, WithPool(context.Background(), thisPool(b, 2))) })
}
