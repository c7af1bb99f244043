package circuit

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/lanes"
)

// alone is the program with every instance computed by itself.
func alone(p *Program) *Program {
	q := *p
	levels := make([][]int32, len(p.levels))
	for i, l := range p.levels {
		for _, u := range l.units {
			levels[i] = append(levels[i], u.instances...)
		}
	}
	q.levels = q.schedule(levels, false)
	return &q
}

// sides counts the units that run several instances, and the instances in them.
func sides(p *Program) (units, instances int) {
	for _, l := range p.levels {
		for _, u := range l.units {
			if u.side {
				units++
				instances += len(u.instances)
			}
		}
	}
	return units, instances
}

// compareAlone expands a program for random inputs in both ways, and on several threads.
func compareAlone(t *testing.T, p *Program, seed uint64) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 9))
	in := &Inputs{Fields: make([]fr.Element, p.FieldCount()), Words: make([]uint64, p.WordCount())}
	for i := range in.Fields {
		for j := range in.Fields[i] {
			in.Fields[i][j] = random.Uint64()
		}
		in.Fields[i][fr.Limbs-1] &= 1<<62 - 1 // below r
	}
	for i := range in.Words {
		in.Words[i] = random.Uint64()
	}
	want := newWitness(p)
	if err := alone(p).Expand(context.Background(), in, want, 1); err != nil {
		t.Fatal(err)
	}
	for _, threads := range []int{1, 3} {
		got := newWitness(p)
		if err := p.Expand(context.Background(), in, got, threads); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.Bits.Words, want.Bits.Words) {
			t.Errorf("seed %d, %d threads: other bits", seed, threads)
		}
		if !slices.Equal(got.Nums, want.Nums) || !slices.Equal(got.Inputs, want.Inputs) {
			t.Errorf("seed %d, %d threads: other field elements", seed, threads)
		}
	}
}

// Goal: field arithmetic of eight instances side by side is that of each alone.
// Method: random formulas over inputs, constants and numbers of an earlier level, in groups of 1 to 20 instances.
func TestExpand_SideFields(t *testing.T) {
	if !lanes.HasRows() {
		t.Skip("no instructions for rows")
	}
	for seed := range uint64(12) {
		random := rand.New(rand.NewPCG(seed, 1))
		element := func() (x fr.Element) {
			for j := range x {
				x[j] = random.Uint64()
			}
			x[fr.Limbs-1] &= 1<<62 - 1
			return x
		}
		r := NewRecorder("side")
		var known []Num
		instances := 0
		for level := range 3 {
			count := 1 + random.IntN(20)
			var next []Num
			formula := random.Uint64()
			for range count {
				use := []Num(nil)
				if level > 0 {
					use = []Num{known[random.IntN(len(known))], known[random.IntN(len(known))]}
					if use[0] == use[1] { // the signature tells which wires are the same
						use = use[:1]
					}
				}
				_, out := r.Gadget(fmt.Sprint("formula ", level), "", nil, use, func(b *Builder, _ []Bit, use []Num) ([]Bit, []Num) {
					pick := rand.New(rand.NewPCG(formula, 2))
					registers := []int32{b.TakeField(), b.TakeField()}
					for _, n := range use {
						registers = append(registers, b.Value(n))
					}
					any := func() int32 { return registers[pick.IntN(len(registers))] }
					var nums []Num
					for range 40 {
						var made int32
						switch pick.IntN(3) {
						case 0:
							made = b.Mul(any(), any())
						case 1:
							made = b.Mul(b.Add(b.Mul(any(), any()), b.FieldConst(element())), any())
						default:
							var coefficients []fr.Element
							var of []int32
							for range 1 + pick.IntN(12) {
								coefficients, of = append(coefficients, element()), append(of, any())
							}
							coefficients[0].SetOne()
							made = b.Linear(coefficients, of)
						}
						registers = append(registers, made)
						if pick.IntN(2) == 0 {
							nums = append(nums, b.AllocNum(made))
						}
					}
					return nil, append(nums, b.AllocNum(registers[len(registers)-1]))
				})
				next = append(next, out...)
			}
			known, instances = next, instances+count
		}
		p := r.Finish()
		if _, n := sides(p); n != instances {
			t.Fatalf("seed %d: %d of %d instances side by side", seed, n, instances)
		}
		compareAlone(t, p, seed)
	}
}

// TestExpand_SideBounds: what could take a row over its bound, or does more than arithmetic, stays alone.
func TestExpand_SideBounds(t *testing.T) {
	three := make([]fr.Element, 60)
	for i := range three {
		three[i].SetUint64(3)
	}
	for name, formula := range map[string]func(b *Builder, x int32) int32{
		"sums":  func(b *Builder, x int32) int32 { return b.Linear(three[:1], []int32{b.Add(b.Add(x, x), x)}) },
		"terms": func(b *Builder, x int32) int32 { return b.Linear(three, slices.Repeat([]int32{x}, len(three))) },
		"words": func(b *Builder, x int32) int32 {
			return b.Linear(three[:1], []int32{b.FromWords(b.ToWords(x), 3)})
		},
		"no linear": func(b *Builder, x int32) int32 { return b.Mul(x, x) },
	} {
		r := NewRecorder(name)
		for range 9 {
			r.Gadget("formula", "", nil, nil, func(b *Builder, _ []Bit, _ []Num) ([]Bit, []Num) {
				return nil, []Num{b.AllocNum(formula(b, b.TakeField()))}
			})
		}
		p := r.Finish()
		if n, _ := sides(p); n != 0 {
			t.Errorf("%s: %d units side by side", name, n)
		}
		compareAlone(t, p, 1)
	}
}

// Goal: words of eight instances side by side are those of each alone.
// Method: random formulas over words from outside and over bits of an earlier level: neighbours in the orders that are read at
// once, rotated, negated, constant and mixed; in groups of 1 to 20 instances.
func TestExpand_SideWords(t *testing.T) {
	for seed := range uint64(12) {
		random := rand.New(rand.NewPCG(seed, 3))
		r := NewRecorder("side")
		known := []Bit{Constant(false), Constant(true)}
		for level := range 3 {
			count := 3 + random.IntN(18)
			order, formula := random.IntN(8), random.Uint64()
			var next []Bit
			for range count {
				var use []Bit
				if level > 0 {
					at := random.IntN(len(known) - 96)
					for i := range 96 {
						bit := known[at+(i^[...]int{0, 31, 24, 7, 1, 0, 0, 16}[order])]
						switch {
						case order == 5 && i == 40:
							bit = Constant(true)
						case order == 6 && i%3 == 0:
							bit = bit.Not()
						}
						use = append(use, bit)
					}
				}
				out, _ := r.Gadget(fmt.Sprint("formula ", level), fmt.Sprint(len(use)), use, nil, func(b *Builder, use []Bit, _ []Num) ([]Bit, []Num) {
					pick := rand.New(rand.NewPCG(formula, 4))
					words := []Word{b.WordConstant(0x6a09e667)}
					var out []Bit
					for range 3 {
						in := b.AllocBits(b.TakeWord(), 32)
						w := Word{reg: in[0].reg}
						copy(w.Bits[:], in)
						words, out = append(words, w), append(out, in...)
					}
					for i := 0; i+32 <= len(use); i += 32 {
						words = append(words, b.WordOf(use[i:]))
					}
					if len(use) > 0 {
						b.AllocBits(b.BitsOf(use[3:3+1+pick.IntN(60)]), 40) // of other lengths than words
					}
					words = append(words, b.WordOf(slices.Repeat([]Bit{Constant(true)}, 32)))
					eq := b.NewMultiEq()
					any := func() Word { return words[pick.IntN(len(words))] }
					for range 60 {
						var made Word
						switch pick.IntN(7) {
						case 0:
							made = b.XorWord(any(), any())
						case 1:
							made = b.RotateRight(any(), 1+pick.IntN(31))
						case 2:
							made = b.ShiftRight(any(), 1+pick.IntN(31))
						case 3:
							made = b.ChooseWord(any(), any(), any())
						case 4:
							made = b.MajorityWord(any(), any(), any())
						case 5:
							made = b.AddWords(eq, any(), any(), any())
							for _, bit := range made.Bits {
								if !bit.IsConstant() {
									out = append(out, bit)
								}
							}
						default:
							x := b.NegatedBit(b.AllocBits(b.TakeWord(), 5)[3])
							b.AndOf(x, b.AllocBits(b.TakeWord(), 1)[0])
							continue
						}
						words = append(words, made)
					}
					eq.Flush()
					return out, nil
				})
				next = append(next, out...)
			}
			known = next
		}
		p := r.Finish()
		if units, n := sides(p); units < 3 || n < 9 {
			t.Fatalf("seed %d: %d units of %d instances side by side", seed, units, n)
		}
		compareAlone(t, p, seed)
	}
}

// TestGatherRun: a run gives the bits of the list that it was found behind; whatever is none is read bit by bit.
func TestGatherRun(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 5))
	m := &machine{w: &Witness{Bits: NewBits(1000)}}
	for i := range m.w.Bits.Words {
		m.w.Bits.Words[i] = random.Uint64()
	}
	found := map[bool]int{}
	for range 20000 {
		n := 32
		if random.IntN(3) == 0 {
			n = 1 + random.IntN(64)
		}
		at, mask := random.IntN(1000-128), [...]int{0, 31, 24, 7, 8, 16, 32, 63}[random.IntN(8)]
		list, bind := make([]uint32, n), make([]Key, n)
		for i := range list {
			list[i] = gatherEntry(uint32(i), false)
			bind[i] = AuxKey(at + (i ^ mask))
		}
		odd := random.IntN(4) == 0
		if i := random.IntN(n); odd {
			switch random.IntN(4) {
			case 0:
				list[i] = gatherEntry(uint32(i), true)
			case 1:
				list[i] = gatherOne
			case 2:
				bind[i] = InputKey(0)
			default:
				bind[i] = AuxKey(random.IntN(1000))
			}
		}
		run := gatherRun(list, bind)
		if found[run != noRun]++; run != noRun && m.neighbours(run, n) != m.gather(list, bind) {
			t.Fatalf("%d bits from %d, order %d: want %x, got %x", n, at, mask, m.gather(list, bind), m.neighbours(run, n))
		}
	}
	if found[true] < 3000 || found[false] < 3000 {
		t.Errorf("runs and others: %v", found)
	}
}

// TestSchedule: the instances of a level are all in its units, once, and the same every time.
func TestSchedule(t *testing.T) {
	make := func() *Program {
		r := NewRecorder("schedule")
		for i := range 50 {
			r.Gadget(fmt.Sprint("words ", i%3), "", nil, nil, func(b *Builder, _ []Bit, _ []Num) ([]Bit, []Num) {
				for range 40 {
					b.AllocBits(b.TakeWord(), 32)
				}
				return nil, nil
			})
		}
		return r.Finish()
	}
	p := make()
	var all []int32
	for _, u := range p.levels[0].units {
		all = append(all, u.instances...)
		for _, i := range u.instances {
			if p.instances[i].template != p.instances[u.instances[0]].template {
				t.Error("a unit of two templates")
			}
		}
	}
	slices.Sort(all)
	for i, index := range all {
		if int(index) != i || len(all) != 50 {
			t.Fatalf("instances %v", all)
		}
	}
	// 17, 17 and 16 of a template: one is left over twice, which is quicker alone.
	if units, n := sides(p); units != 6 || n != 48 {
		t.Errorf("%d units of %d instances", units, n)
	}
	if !reflect.DeepEqual(make().levels, p.levels) {
		t.Error("another schedule")
	}
}
