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
	began      time.Duration   // start of the first stage
	within     map[int]float64 // work done of each partition
	shown      float64         // the largest share told so far
}

// observe books a stage that ended and tells the caller of those that succeeded.
func (p *proof) observe(e sched.Entry) {
	m := &p.meter
	if len(m.stages) == 0 {
		m.began = e.Start
	}
	m.stages = append(m.stages, StageTime{Partition: e.Partition, Stage: e.Stage, Start: e.Start - m.began, Elapsed: e.End - e.Start})
	if e.Failed || p.progress == nil && p.job == nil {
		return
	}
	m.shown = max(m.shown, m.done(e))
	told := Progress{Partition: e.Partition, Partitions: m.partitions, Stage: e.Stage, Start: e.Start - m.began, Elapsed: e.End - e.Start, Done: m.shown}
	p.job.hears(told)
	if p.progress != nil {
		p.progress(told)
	}
}

// done is the share of the whole that is done when stage e has ended.
func (m *meter) done(e sched.Entry) float64 {
	n := max(float64(m.partitions), 1)
	whole := jobWork + n*(checkWork+partitionWork)
	if e.Partition == sched.WholeJob && e.Device == "" {
		return jobWork / 2.0 / whole
	}
	if m.within == nil {
		m.within = map[int]float64{}
	}
	switch {
	case e.Partition == sched.WholeJob: // of several partitions that have begun, and as much for each
		for k := range m.within {
			m.within[k] += stageWork[e.Stage]
		}
	case e.Stage == "inputs": // also of one that begins once more
		m.within[e.Partition] = stageWork[e.Stage]
	case e.Stage == "verify": // the last one, whatever the backend's stages are called
		m.within[e.Partition] = partitionWork
	default:
		m.within[e.Partition] += stageWork[e.Stage]
	}
	work := jobWork + n*checkWork
	for _, within := range m.within {
		work += min(within, partitionWork)
	}
	return work / whole
}
