package simulate

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/sched"
	"github.com/sealc2/sealc2/engine/status"
)

// Step is one stage of a partition.
type Step struct {
	Name      string
	Lane      host.Lane
	Time      time.Duration // alone
	Threads   int           // of the host that it keeps busy; 0: one in LaneHost, else none
	Bandwidth float64       // of the host's memory that it takes, GB/s
	After     []string      // steps before it in the list
	Keep      bool
	// Inside is what it takes more where the partition found no room on the card when it looked for some, which is at the end of the step
	// named Looks, and where it finds some it takes it. It stands for designs that allocate when they need memory; where memory is planned there is no such thing.
	Inside time.Duration
	Looks  bool
}

// Job is a simulated proof.
type Job struct {
	Name       string
	Class      sched.Class
	Deadline   time.Duration // after its start; 0: none
	Start      time.Duration // when it is submitted
	Prepare    time.Duration // of the whole job, before the first partition
	Partitions int
	Steps      []Step
	Card       int // of the machine
	Ahead      int // partitions under way at once, at most
	Rooms      int // as in sched.Share
	// HostBytes and DeviceBytes are what a partition takes.
	HostBytes, DeviceBytes int64
	// OnStage, where it is not nil, is asked before a step is done, and its error is the step's. Tests inject faults with it.
	OnStage func(ctx context.Context, partition int, step string) error
}

// site is what the partitions of one card share beside its lanes.
type site struct {
	machine *Machine
	card    *Card
	used    atomic.Int64 // rooms in use
}

// partition is one under way.
type partition struct {
	*site
	job     *Job
	index   int
	mu      sync.Mutex // guards what follows: steps of two lanes may run at once
	room    bool
	without bool // it found no room when it looked
	ended   int  // stages on the card
	last    int  // of them, the last one
}

// Stages are the steps.
func (p *partition) Stages() (all []host.Stage) {
	for i, step := range p.job.Steps {
		stage := host.Stage{Name: step.Name, Lane: step.Lane, Keep: step.Keep, Needs: host.Needs{Threads: step.threads()},
			Run: func(ctx context.Context) (err error) {
				defer status.Recover("simulate."+step.Name, &err)
				return p.run(ctx, &step)
			}}
		for _, name := range step.After {
			earlier := slices.IndexFunc(p.job.Steps[:i], func(s Step) bool { return s.Name == name })
			status.Check(earlier >= 0, "simulate.Stages", "steps after earlier ones")
			stage.After = append(stage.After, earlier)
		}
		if step.Lane != host.LaneHost {
			p.last++
		}
		all = append(all, stage)
	}
	return all
}

func (s *Step) threads() int {
	if s.Threads == 0 && s.Lane == host.LaneHost {
		return 1
	}
	return s.Threads
}

// run does a step.
func (p *partition) run(ctx context.Context, step *Step) error {
	if p.job.OnStage != nil {
		if err := p.job.OnStage(ctx, p.index, step.Name); err != nil {
			return err
		}
	}
	work := step.Time
	if step.Lane != host.LaneHost && p.enter() {
		work += step.Inside
	}
	d := demand{float64(step.threads()), step.Bandwidth}
	var err error
	switch step.Lane {
	case host.LaneDevice:
		err = p.card.power().use(ctx, work, demand{1})
	case host.LaneCopy:
		err = p.machine.host().use(ctx, work, demand{0, step.Bandwidth})
	default:
		err = p.machine.host().use(ctx, work, d)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if step.Lane != host.LaneHost {
		if p.ended++; p.ended == p.last {
			p.leave()
		}
	}
	if step.Looks {
		if p.without = p.job.Rooms > 0 && p.used.Load() >= int64(p.job.Rooms); !p.without {
			p.take()
		}
	}
	return err
}

// enter takes room on the card where the partition has none yet, and says whether it found none when it looked.
func (p *partition) enter() (without bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.take()
	return p.without
}

// take books room; the caller holds mu.
func (p *partition) take() {
	if !p.room {
		p.room = true
		p.used.Add(1)
	}
}

// leave gives the room back; the caller holds mu.
func (p *partition) leave() {
	if p.room {
		p.room = false
		p.used.Add(-1)
	}
}

// Close gives the room back where the partition did not come to its end.
func (p *partition) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leave()
}

// scheduled is the job as the scheduler takes it.
func (j *Job) scheduled(s *site, observe func(sched.Entry), deliver func(int)) *sched.Job {
	out := &sched.Job{
		Name: j.Name, Op: "simulate.Run", Class: j.Class,
		Drop: func() {},
		Plan: func() (sched.Plan, error) {
			threads := 1
			for i := range j.Steps {
				threads = max(threads, j.Steps[i].threads())
			}
			ahead := int64(max(1, min(j.Ahead, j.Partitions)))
			return sched.Plan{
				Partitions: j.Partitions,
				Shares:     []sched.Share{{Device: s.card, Batch: 1, Ahead: int(ahead), Rooms: j.Rooms}},
				Needs:      host.Needs{HostBytes: ahead * j.HostBytes, DeviceBytes: ahead * j.DeviceBytes},
				Stage:      host.Needs{Threads: threads},
			}, nil
		},
		Begin: func(_, first, _ int) (sched.Batch, error) { return &partition{site: s, job: j, index: first}, nil },
		Deliver: func(i int) error {
			deliver(i)
			return nil
		},
		Observe: observe,
	}
	if j.Deadline > 0 {
		out.Deadline = time.Now().Add(j.Deadline)
	}
	if j.Prepare > 0 {
		out.Prepare = []host.Stage{{Name: "prepare", Run: func(ctx context.Context) error {
			return s.machine.host().use(ctx, j.Prepare, demand{1})
		}}}
	}
	return out
}
