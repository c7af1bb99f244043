package engine

import (
	"time"

	"github.com/sealc2/sealc2/engine/sched"
)

// stageWork is the expected work of a partition's stages, in thousandths of a partition on the CPU. Stages
// that are not listed count nothing. It serves the progress display alone.
var stageWork = map[string]float64{
	"inputs": 1, "expand": 2, "evaluate": 15, "quotient": 150, "msm_h": 630, "msm_l": 60, "msm_a": 50, "msm_b1": 30, "msm_b2": 60,
	"assemble": 1, "verify": 1,
}

// Work of the whole job's stages, in the same unit.
const (
	jobWork   = 20 // parse and params
	checkWork = 10 // a partition
)

// partitionWork is the sum of stageWork.
var partitionWork = func() (sum float64) {
	for _, work := range stageWork {
		sum += work
	}
	return sum
}()

// meter turns the scheduler's entries into stage times and a share of the whole.
type meter struct {
	partitions int // 0: not known yet
	stages     []StageTime
	began      time.Duration // start of the first stage
	within     float64       // work done of the partition at hand
	shown      float64       // the largest share told so far
}

// observe books a stage that ended and tells the caller of those that succeeded.
func (p *proof) observe(e sched.Entry) {
	m := &p.meter
	if len(m.stages) == 0 {
		m.began = e.Start
	}
	m.stages = append(m.stages, StageTime{Partition: e.Partition, Stage: e.Stage, Start: e.Start - m.began, Elapsed: e.End - e.Start})
	if e.Failed || p.progress == nil {
		return
	}
	m.shown = max(m.shown, m.done(e, p.current))
	p.progress(Progress{Partition: e.Partition, Partitions: m.partitions, Stage: e.Stage, Start: e.Start - m.began, Elapsed: e.End - e.Start, Done: m.shown})
}

// done is the share of the whole that is done when stage e has ended.
func (m *meter) done(e sched.Entry, q *partition) float64 {
	n := float64(m.partitions)
	work := jobWork / 2.0
	switch {
	case e.Partition == sched.WholeJob && e.Stage == "check":
		work = jobWork + n*checkWork
	case e.Partition == sched.WholeJob:
	default:
		switch {
		case e.Stage == "inputs":
			m.within = 0
		case e.Stage == "verify" && len(q.rest) == 0: // the last one, whatever the backend's stages are called
			m.within = partitionWork
		}
		m.within = min(m.within+stageWork[e.Stage], partitionWork)
		work = jobWork + n*checkWork + float64(e.Partition)*partitionWork + m.within
	}
	return work / (jobWork + max(n, 1)*(checkWork+partitionWork))
}
