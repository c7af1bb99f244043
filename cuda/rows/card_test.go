package rows

import (
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/cuda/kerneltest"
)

// Goal: all rows of a 32 GiB partition have the CPU's values, and a wrong field element is found.
func TestEvaluate_Full(t *testing.T) {
	kerneltest.NeedCard(t)
	p, w := sector(t, "32GiB")
	r := newRig(t, p, w)
	if failed := r.evaluate(t, r.to); failed != None {
		t.Fatalf("row %d fails: %v", failed, p.RowError(w, int(failed)))
	}
	r.compare(t)
	w.Nums[len(w.Nums)/2].SetUint64(5)
	kerneltest.Copy(t, r.on.Nums, w.Nums)
	if failed := r.evaluate(t, Vectors{}); failed == None || p.RowError(w, int(failed)) == nil {
		t.Fatalf("want a row that does not hold, got %d", failed)
	}
}

// BenchmarkEvaluate times the rows of a 32 GiB partition: all of it, the check alone, and rows of each kind.
func BenchmarkEvaluate(b *testing.B) {
	kerneltest.NeedCard(b)
	p, w := sector(b, "32GiB")
	r := newRig(b, p, w)
	read := float64(len(w.Bits.Words)*8+(len(w.Nums)+len(w.Inputs))*fr.Bytes) + float64(r.tables.Bytes())
	all := kerneltest.Work{Bytes: read + 3*fr.Bytes*float64(p.Domain())}
	b.Run("all", func(b *testing.B) {
		kerneltest.Timed(b, r.s, all, func() error {
			return r.rows.Evaluate(r.s, r.tables, r.image, r.on, r.to, r.log, r.failed)
		})
	})
	for name, to := range map[string]Vectors{"a": {A: r.to.A}, "b": {B: r.to.B}, "c": {C: r.to.C}} {
		b.Run(name+" alone", func(b *testing.B) {
			one := kerneltest.Work{Bytes: read + fr.Bytes*float64(p.Domain())}
			kerneltest.Timed(b, r.s, one, func() error { return r.rows.Evaluate(r.s, r.tables, r.image, r.on, to, r.log, 0) })
		})
	}
	b.Run("check", func(b *testing.B) {
		kerneltest.Timed(b, r.s, kerneltest.Work{Bytes: read}, func() error {
			return r.rows.Evaluate(r.s, r.tables, r.image, r.on, Vectors{}, r.log, r.failed)
		})
	})
	for k, name := range [kinds]string{"small", "short", "long"} {
		only := *r.tables
		for j := range only.tasks {
			if j != k {
				only.tasks[j].count = 0
			}
		}
		for _, to := range []Vectors{r.to, {}} {
			what := name + "/check"
			if to.A != 0 {
				what = name + "/evaluate"
			}
			b.Run(what, func(b *testing.B) {
				kerneltest.Timed(b, r.s, kerneltest.Work{Bytes: read}, func() error {
					o, err := r.rows.out("rows.Evaluate", to, r.log, 0, r.failed)
					if err != nil {
						return err
					}
					return r.rows.constraints(r.s, &only, r.image, r.on, o)
				})
			})
		}
	}
}
