package hosts

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sealc2/sealc2/engine/status"
)

// board is the file that a faulty build and its host share.
type board struct{ path string }

func newBoard(t *testing.T, points int) board {
	t.Helper()
	b := board{filepath.Join(t.TempDir(), "faults")}
	write(t, b.path, make([]byte, 4*(16+points)))
	return b
}

func (b board) env() []string { return []string{"SEALC2_TEST_FAULTS=" + b.path} }

// passed are the points that were passed since the board was made.
func (b board) passed(t *testing.T) (points []int) {
	t.Helper()
	data, err := os.ReadFile(b.path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 16 + 1; 4*i < len(data); i++ {
		if binary.LittleEndian.Uint32(data[4*i:]) != 0 {
			points = append(points, i-16)
		}
	}
	return points
}

// faultyHost is a program that does a piece of work with points armed: faults.c, or the command tinywork.
type faultyHost struct {
	*instrumented
	program string
	before  []string // arguments before the mode
	after   []string // arguments between the work and the points
	board   board    // of the latest process
	tried   map[int]bool
}

// outcome is what a point did.
type outcome struct {
	fired  int
	status int
	text   string
}

// story is what one process of a host told.
type story struct {
	usual int             // status of the work without a fault
	armed int             // the latest point
	came  map[int]outcome // by point; the first of its two turns that did not go as it should, else the last
	ended error           // how the process ended, where a point ended it
}

// tell runs the host and reads its lines. Failures that no point is to blame for are the test's.
func (h *faultyHost) tell(t *testing.T, mode, work string, points ...int) *story {
	t.Helper()
	args := append(append(append([]string{}, h.before...), mode, work), h.after...)
	for _, p := range points {
		args = append(args, strconv.Itoa(p))
	}
	b := newBoard(t, len(h.places))
	h.board = b
	began := time.Now()
	// Hosts watch each work themselves; this limit is for one that cannot, and leaves a busy machine its time.
	limit := 10*time.Minute + time.Duration(len(points))*time.Minute
	out, stderr, err := start(limit, b.env(), h.program, args...)
	s := &story{usual: -1, came: map[int]outcome{}}
	for line := range strings.Lines(out) {
		fields := strings.SplitN(strings.TrimSpace(line), " ", 4)
		switch fields[0] {
		case "usual":
			s.usual, _ = strconv.Atoi(fields[1])
		case "arm":
			s.armed, _ = strconv.Atoi(fields[1])
		case "fired":
			var o outcome
			o.fired, _ = strconv.Atoi(fields[1])
			o.status, _ = strconv.Atoi(fields[2])
			if len(fields) > 3 {
				o.text = fields[3]
			}
			if before, ok := s.came[s.armed]; !ok || before.status == internal && o.fired > 0 {
				s.came[s.armed] = o
			}
		}
	}
	if err != nil {
		stderr = pointNumber.ReplaceAllStringFunc(stderr, func(found string) string {
			n, _ := strconv.Atoi(strings.TrimPrefix(found, "point "))
			return found + " (" + h.places[min(n, len(h.places)-1)] + ")"
		})
		s.ended = fmt.Errorf("%w after %v\n%s", err, time.Since(began), stderr[:min(len(stderr), 3000)])
		if strings.Contains(stderr, "FAIL: ") || s.armed == 0 {
			t.Errorf("%s %s: %v", mode, work, s.ended)
			s.ended = nil
		}
	}
	return s
}

var pointNumber = regexp.MustCompile(`point \d+`)

// internal is SEALC2_INTERNAL.
const internal = int(status.Internal)

// judge says what is wrong with a point that fired.
func (h *faultyHost) judge(t *testing.T, work string, point int, o outcome, usual int) {
	t.Helper()
	if o.status == internal && strings.HasSuffix(o.text, fmt.Sprintf("injected at point %d", point)) ||
		(o.status == usual || strings.Contains(o.text, "PANIC=")) && matches(harmless, h.places[point]) ||
		o.status == usual && work == "retire" { // which ends after the call
		return
	}
	t.Errorf("%s: a panic at %s gave status %d %q, want %d", work, h.places[point], o.status, o.text, internal)
}

// harmless are places whose panic changes nothing in what the call comes to.
var harmless = []string{
	"String)", "memory.go:", // package fmt catches it and prints that it did
	"engine/progress.go:", "engine/sched/run.go:", // telling the observer of a stage that has failed for its own reason
	"engine/host/loop.go:",     // a worker that does not come: others take its runs
	"engine/host/affinity.go:", // a thread that is not bound, or does not come
	"capi/result.go:",          // the error's text, which then says that it could not be made
	"(Brief", "(conclude",      // behind the end of a job
}

// points are the points that the latest process passed, without those where a panic is out of the question.
func (h *faultyHost) points(t *testing.T) []int {
	return slices.DeleteFunc(h.board.passed(t), func(p int) bool { return matches(releases, h.places[p]) })
}

// sample says of which works that take a second only each so many-th point is tried without SEALC2_LONG.
var sample = map[string]int{"witness": 4}

// firstCalls is about how many points of a work are tried in a process each; with SEALC2_LONG all are.
const firstCalls = 4

// releases are places that give up what was taken, count who is in a loop, or hand a job over to what sees to its end, in a few lines
// without anything that can fail. A panic before the first of them would keep it for ever, whoever caught it.
var releases = []string{"engine/sched/admit.go:", "engine/host/needs.go:", "engine/host/pool.go:", "(carry", "(in submit, after defer"}

func matches(list []string, place string) bool {
	return slices.ContainsFunc(list, func(s string) bool { return strings.Contains(place, s) })
}

// try does the work with each point armed that it passes. The work must not end the host, must not hang, must
// fail as internal, and must work again. Points that only the first work of a process passes are tried in a
// process each, unless another work has tried them; without SEALC2_LONG some of them.
func (h *faultyHost) try(t *testing.T, work string) {
	t.Helper()
	began := time.Now()
	h.tell(t, "passed", work)
	first := h.points(t)
	h.tell(t, "passed2", work)
	points := h.points(t)
	if len(points) == 0 {
		t.Fatalf("%s passes no point", work)
	}
	if every := sample[work]; every > 0 && os.Getenv("SEALC2_LONG") == "" {
		for i := range points {
			points[i/every] = points[i]
		}
		points = points[:len(points)/every]
	}
	mode := "hit"
	if os.Getenv("SEALC2_LONG") != "" {
		mode = "hit2"
	}
	fired, tried := 0, 0
	for rest := points; len(rest) > 0; {
		s := h.tell(t, mode, work, rest...)
		var left []int
		for _, p := range rest {
			o, ok := s.came[p]
			switch {
			case s.ended != nil && p == s.armed:
				t.Errorf("%s: a panic at %s ends or hangs the host: %v", work, h.places[p], s.ended)
			case !ok:
				left = append(left, p)
			case o.fired == 0: // on the way of some calls only
			default:
				fired++
				h.tried[p] = true
				h.judge(t, work, p, o, s.usual)
			}
		}
		if len(left) == len(rest) {
			t.Fatalf("%s: no point was tried", work)
		}
		rest = left
	}
	first = slices.DeleteFunc(first, func(p int) bool { return h.tried[p] || slices.Contains(points, p) })
	for i, p := range first {
		if step := len(first)/firstCalls + 1; mode == "hit" && i%step != 0 {
			continue
		}
		h.tried[p] = true
		tried++
		s := h.tell(t, "first", work, p)
		if o, ok := s.came[p]; s.ended != nil {
			t.Errorf("%s: a panic at %s in a process's first call ends or hangs the host: %v", work, h.places[p], s.ended)
		} else if ok && o.fired > 0 {
			h.judge(t, work+", first", p, o, s.usual)
		}
	}
	t.Logf("%d points, %d fired, %d more tried in first calls; %v", len(points), fired, tried, time.Since(began).Round(time.Millisecond))
}

// build builds a package of this module with the points.
func (in *instrumented) build(t *testing.T, output string, args ...string) {
	t.Helper()
	command := exec.Command("go", append([]string{"build", "-overlay", in.overlay, "-o", output}, args...)...)
	command.Dir = root
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, last(string(out)))
	}
}

// Goal: a panic anywhere below an export is that call's internal error: the host lives, nothing stays
// locked or reserved, and the next call works.
// Method: a library with some thousand points (instrumented), and a C host that arms each point that its
// calls pass, so that it fires once; with SEALC2_LONG also so that it fires in every goroutine that passes it.
func TestPanics_Library(t *testing.T) {
	t.Parallel()
	began := time.Now()
	in := instrument(t, t.TempDir())
	guest := filepath.Join(t.TempDir(), "libfaulty.so")
	in.build(t, guest, "-buildmode=c-shared", "-ldflags", "-extldflags '-Wl,--version-script="+filepath.Join(root, "capi/exports.map")+"'", "./capi")
	h := &faultyHost{instrumented: in, program: compile(t, "faults.c"), before: []string{guest}, after: sector, tried: map[int]bool{}}
	t.Logf("built in %v", time.Since(began).Round(time.Second))
	for _, work := range []string{"open", "job", "verify", "garbage", "ids", "params", "submit", "stages", "verify_seal", "seal_commit_phase2", "retire", "shutdown"} {
		t.Run(work, func(t *testing.T) { h.try(t, work) })
	}
	t.Logf("%d points of %d", len(h.tried), len(in.places)-1)
}

// Goal: the same for the work that needs points: expand, evaluate, quotient, sums, assembly, setup, checks and
// digests of parameters, synthetic sectors, each on several goroutines. Method: the command tinywork, with a
// tiny circuit in place of a sector's.
func TestPanics_Engine(t *testing.T) {
	t.Parallel()
	began := time.Now()
	in := instrument(t, t.TempDir())
	program := filepath.Join(t.TempDir(), "tinywork")
	in.build(t, program, "./tests/hosts/testdata/tinywork")
	circuit := "tiny-16"
	if os.Getenv("SEALC2_LONG") != "" {
		circuit = "tiny-1024"
	}
	h := &faultyHost{instrumented: in, program: program, after: []string{root, t.TempDir(), circuit}, tried: map[int]bool{}}
	t.Logf("built in %v", time.Since(began).Round(time.Second))
	for _, work := range []string{"prove", "setup", "check", "parse", "witness", "digest", "synthetic"} {
		t.Run(work, func(t *testing.T) { h.try(t, work) })
	}
	t.Logf("%d points of %d", len(h.tried), len(in.places)-1)
}
