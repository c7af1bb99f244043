package engine

import (
	"context"
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/sched"
	"github.com/sealc2/sealc2/engine/status"
)

// partition is one proof under way: inputs, the backend's stages, assemble, verify. A proof that does not
// verify starts over once.
type partition struct {
	*proof
	index   int
	attempt int

	rest    []sched.Stage // still to run
	public  []fr.Element
	arena   *host.Arena
	backend groth16.Partition
	result  groth16.Proof
}

func newPartition(p *proof, index int) *partition {
	q := &partition{proof: p, index: index}
	q.start()
	return q
}

// start makes the stages of an attempt. Those of the backend follow once inputs has begun its partition.
func (q *partition) start() {
	q.attempt++
	q.rest = []sched.Stage{{Name: "inputs", Needs: host.Needs{Threads: 1}, Run: q.inputs}}
}

// Next is the next stage.
func (q *partition) Next() (stage *sched.Stage) {
	if len(q.rest) > 0 {
		stage, q.rest = &q.rest[0], q.rest[1:]
	}
	return stage
}

// Close gives back the backend's partition and its memory.
func (q *partition) Close() {
	if q.backend != nil {
		q.backend.Close()
		q.backend = nil
	}
	if q.arena != nil {
		q.arena.Close()
		q.arena = nil
	}
}

// inputs derives the public inputs, lays out the circuit's, and begins the partition on the backend.
func (q *partition) inputs(context.Context) (err error) {
	w := q.work
	if q.public, err = w.public(q.index); err != nil {
		return err
	}
	plan, err := w.values.plan(q.proof.backend)
	if err != nil {
		return err
	}
	if q.arena, err = host.NewArena(plan.HostBytes); err != nil {
		return err
	}
	if q.backend, err = w.values.begin(q.proof.backend, q.index, w.srs, q.arena); err != nil {
		return err
	}
	for _, s := range q.backend.Stages() {
		run := s.Run
		if s.Name == "evaluate" {
			run = func(ctx context.Context) error {
				if err := s.Run(ctx); err != nil {
					return status.Place(err, fmt.Sprintf("partition %d", q.index))
				}
				if w.evaluated != nil {
					w.evaluated(q.index)
				}
				return nil
			}
		}
		q.rest = append(q.rest, sched.Stage{Name: s.Name, Needs: s.Needs, Run: run})
	}
	q.rest = append(q.rest,
		sched.Stage{Name: "assemble", Needs: host.Needs{Threads: 1}, Run: q.assemble},
		sched.Stage{Name: "verify", Needs: host.Needs{Threads: 1}, Run: q.verify})
	return nil
}

// assemble puts the proof together and lets go of the backend's memory.
func (q *partition) assemble(context.Context) error {
	sums, err := q.backend.Sums()
	if err != nil {
		return err
	}
	var r, s fr.Element
	if w := q.work; w.r != nil {
		r, s = w.r[q.index], w.s[q.index]
	} else if r, s, err = groth16.Blinding(); err != nil {
		return err
	}
	q.result = groth16.Assemble(q.work.srs.VerifyingKey(), sums, &r, &s)
	// The check stage saw these agree: by now a difference is as good as a proof that does not verify.
	if err := samePublic("engine.Assemble", q.public, sums.Inputs); err != nil {
		q.rest = nil
		return q.again(err)
	}
	q.Close()
	return nil
}

// verify checks the proof against the public inputs that follow from the statement.
func (q *partition) verify(context.Context) error {
	ok, err := groth16.Verify(q.work.key, &q.result, q.public)
	if err != nil || ok {
		return err
	}
	return q.again(nil)
}

// again starts over, or gives up with SelfCheck after the last attempt.
func (q *partition) again(cause error) error {
	what := "a proof that does not verify though every row of the circuit holds"
	if cause != nil {
		what = "other public inputs than before: " + cause.Error()
	}
	q.Close()
	if q.attempt < q.work.attempts {
		q.log("warn", "partition %d: %s gave %s; trying again", q.index, q.device.name, what)
		q.start()
		return nil
	}
	return status.New(status.SelfCheck, "engine.Verify", fmt.Sprintf("partition %d on %s", q.index, q.device.name),
		"a proof that verifies under "+q.work.keyName,
		fmt.Sprintf("%s, in %d of %d attempts: parameters of another circuit, or failing hardware", what, q.attempt, q.work.attempts))
}
