package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/spf13/cobra"

	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/circuit/porep"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
	"github.com/sealc2/sealc2/engine/synthetic"
)

// synthesisJSON is the result of `bench synthesis --json`.
type synthesisJSON struct {
	Shape      string       `json:"shape"`
	Partitions int          `json:"partitions"` // that were measured, each in each round
	Rounds     int          `json:"rounds"`
	Rows       int          `json:"rows"` // of a partition, with the appended ones
	Aux        int          `json:"aux"`
	Threads    int          `json:"threads"`
	PerNode    []nodeJSON   `json:"per_node"`
	Bound      string       `json:"bound"`     // the threads in words
	Topology   string       `json:"topology"`  // of the CPUs that may be used
	Faults     []string     `json:"faults"`    // what the system said otherwise than documented
	Memory     string       `json:"memory"`    // where the vectors lie
	RowsKept   bool         `json:"rows_kept"` // whether evaluate wrote a, b and c
	Stages     []benchStage `json:"stages"`
	PeakRSS    int64        `json:"peak_rss_bytes"`
}

// synthesisBench is a run of `bench synthesis`: its result as far as it is known, and what it works with.
type synthesisBench struct {
	synthesisJSON
	limits  host.Limits
	near    int // the node to begin with
	arena   *host.Arena
	witness circuit.Witness
	a, b, c []fr.Element // empty: rows are not kept
}

// nodeJSON is the number of threads on a node; -1 stands for none.
type nodeJSON struct {
	Node    int `json:"node"`
	Threads int `json:"threads"`
}

// benchStage is a stage of all partitions.
type benchStage struct {
	Stage          string  `json:"stage"`
	WallSeconds    float64 `json:"wall_s"`
	CPUSeconds     float64 `json:"cpu_s"`
	Bytes          int64   `json:"bytes"` // written
	BytesPerSecond float64 `json:"bytes_per_second"`
}

// benchCommand is `bench synthesis`.
func (a *app) benchCommand() *cobra.Command {
	shape := shapeChoice()
	var partitions, near, rounds int
	var seed uint64
	var unbound, check bool
	synthesis := &cobra.Command{
		Use:   "synthesis --shape SHAPE [--partitions K] [--rounds R] [--near NODE | --unbound] [--check-only]",
		Short: "How fast the CPU expands and evaluates a sector's partitions",
		Long: "Makes a sector that nobody sealed, and for each of its partitions lays out the inputs, expands the witness and\n" +
			"evaluates all rows, as the prover does. Reports wall time, CPU-seconds and what was written, and on which NUMA\n" +
			"nodes the threads were.\n\n" +
			"The rows (12.5 GB for 32GiB) are kept where the memory that is available has room for them; else, or with\n" +
			"--check-only, they are evaluated and checked, and not written. Memory that is touched the first time costs\n" +
			"the first round more than the others.",
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := porep.ShapeByName(shape.value)
			if err != nil {
				return err
			}
			switch {
			case partitions < 0 || partitions > s.Partitions:
				return usage("--partitions", fmt.Sprintf("1 to %d, the partitions of %s, or 0 for all", s.Partitions, s.Name), strconv.Itoa(partitions))
			case rounds < 1:
				return usage("--rounds", "1 or more", strconv.Itoa(rounds))
			case unbound && c.Flags().Changed("near"):
				return usage("--near", "threads that are bound", "--unbound")
			}
			b := &synthesisBench{synthesisJSON: synthesisJSON{Shape: s.Name, Rounds: rounds}, near: near}
			if err := a.benchSynthesis(c.Context(), b, synthetic.Options{Shape: s, Version: porep.V1_1, Seed: seed, Partitions: partitions}, unbound, check); err != nil {
				return err
			}
			return a.result(&b.synthesisJSON, b.text)
		},
	}
	synthesis.Flags().Var(&shape, "shape", "sector size")
	synthesis.Flags().IntVar(&partitions, "partitions", 0, "only the first partitions; default: all")
	synthesis.Flags().IntVar(&rounds, "rounds", 1, "how often each partition is done")
	synthesis.Flags().Uint64Var(&seed, "seed", 1, "number that the sector is made of")
	synthesis.Flags().IntVar(&near, "near", -1, "NUMA node to begin with, for threads and memory; -1: all nodes alike")
	synthesis.Flags().BoolVar(&unbound, "unbound", false, "threads that no node is chosen for")
	synthesis.Flags().BoolVar(&check, "check-only", false, "evaluate the rows and do not keep them")
	require(synthesis, "shape")
	return group("bench", "Measure proofs and parts of them", synthesis, a.benchProveCommand())
}

func (b *synthesisJSON) text(w io.Writer) {
	fmt.Fprintf(w, "%s: %d partitions of %d rows, %d rounds\n", b.Shape, b.Partitions, b.Rows, b.Rounds)
	fmt.Fprintf(w, "%s; %s\n%s\n", b.Bound, b.Memory, b.Topology)
	for _, fault := range b.Faults {
		fmt.Fprintln(w, fault)
	}
	for _, s := range b.Stages {
		fmt.Fprintf(w, "%-8s  %8.3f s  %8.3f CPU-s  %8s  %8s/s\n", s.Stage, s.WallSeconds, s.CPUSeconds, host.FormatBytes(s.Bytes), host.FormatBytes(int64(s.BytesPerSecond)))
	}
	fmt.Fprintf(w, "rows kept: %t, peak memory %s\n", b.RowsKept, host.FormatBytes(b.PeakRSS))
}

func (a *app) benchSynthesis(ctx context.Context, b *synthesisBench, o synthetic.Options, unbound, check bool) (err error) {
	const op = "cli.BenchSynthesis"
	if b.limits, err = a.limits(); err != nil {
		return err
	}
	topology, err := host.ThisMachine().Topology()
	if err != nil {
		return err
	}
	b.Topology, b.Faults, b.Threads = topology.String(), topology.Faults, b.limits.Threads
	b.PerNode, b.Bound = []nodeJSON{{-1, b.Threads}}, fmt.Sprintf("%d threads, not bound", b.Threads)
	o.Threads = b.Threads
	sector, err := synthetic.Make(ctx, o)
	if err != nil {
		return err
	}
	program := porep.Program(o.Shape)
	if err := b.allocate(op, program, check); err != nil {
		return err
	}
	defer b.arena.Close()
	if !unbound {
		pool := host.NewPool(topology, b.Threads, b.near)
		defer pool.Close()
		ctx = host.WithPool(ctx, pool)
		b.Bound, b.PerNode = pool.String(), nil
		for _, n := range pool.PerNode() {
			b.PerNode = append(b.PerNode, nodeJSON{n.Node, n.Threads})
		}
	}

	partitions := sector.Output.Partitions
	b.Partitions, b.Rows, b.Aux = len(partitions), program.RowCount(), program.AuxCount()
	b.Stages = []benchStage{{Stage: "inputs"}, {Stage: "expand"}, {Stage: "evaluate"}}
	for range b.Rounds {
		for k, challenges := range partitions {
			if err := b.partition(ctx, program, &sector.Output.Statement, challenges); err != nil {
				return status.Wrap(status.KindOf(err), op, "", status.Place(err, fmt.Sprintf("partition %d", k)))
			}
		}
	}
	for i := range b.Stages {
		if s := &b.Stages[i]; s.WallSeconds > 0 {
			s.BytesPerSecond = float64(s.Bytes) / s.WallSeconds
		}
	}
	b.PeakRSS = host.PeakRSS()
	return nil
}

// allocate takes memory for a partition's witness, and for its rows where there is enough.
func (b *synthesisBench) allocate(op string, program *circuit.Program, check bool) error {
	words, rows := circuit.BitWords(program.AuxCount()), program.RowCount()
	witness := host.SliceBytes[fr.Element](program.InputCount()) + host.SliceBytes[uint64](words) + host.SliceBytes[fr.Element](program.NumCount())
	vectors := 3 * host.SliceBytes[fr.Element](rows)
	if err := fits(op, b.limits, witness); err != nil {
		return err
	}
	memory, err := host.ThisMachine().Memory()
	if err != nil {
		return err
	}
	b.RowsKept = !check && witness+vectors <= min(b.limits.HostBytes, memory.Available)
	if !b.RowsKept {
		vectors = 0
	}
	if b.arena, err = host.NewArenaNear(witness+vectors, b.near); err != nil {
		return err
	}
	b.Memory = "memory near the threads that touch it first"
	if node, refused := b.arena.Node(); refused != nil {
		b.Memory += fmt.Sprintf(" (node %d: %v)", node, refused)
	} else if node >= 0 {
		b.Memory = fmt.Sprintf("memory near node %d", node)
	}
	b.witness = circuit.Witness{
		Inputs: host.Alloc[fr.Element](b.arena, program.InputCount()),
		Bits:   circuit.Bits{Words: host.Alloc[uint64](b.arena, words), Len: program.AuxCount()},
		Nums:   host.Alloc[fr.Element](b.arena, program.NumCount()),
	}
	if b.RowsKept {
		b.a, b.b, b.c = host.Alloc[fr.Element](b.arena, rows), host.Alloc[fr.Element](b.arena, rows), host.Alloc[fr.Element](b.arena, rows)
	}
	return nil
}

// partition does one partition and adds to the stages.
func (b *synthesisBench) partition(ctx context.Context, program *circuit.Program, st *porep.Statement, challenges []porep.Challenge) error {
	var in *circuit.Inputs
	w := &b.witness
	for i, stage := range []func() (bytes int, err error){
		func() (n int, err error) {
			if in, err = porep.CircuitInputs(st, challenges); err == nil {
				n = fr.Bytes*len(in.Fields) + 8*len(in.Words)
			}
			return n, err
		},
		func() (int, error) {
			return fr.Bytes*(len(w.Inputs)+len(w.Nums)) + 8*len(w.Bits.Words), program.Expand(ctx, in, w, b.Threads)
		},
		func() (int, error) {
			if !b.RowsKept {
				return 0, program.Check(ctx, w, b.Threads)
			}
			return fr.Bytes * (len(b.a) + len(b.b) + len(b.c)), program.Evaluate(ctx, w, b.a, b.b, b.c, b.Threads)
		},
	} {
		begin, used := time.Now(), host.CPUTime()
		bytes, err := stage()
		if err != nil {
			return err
		}
		s := &b.Stages[i]
		s.WallSeconds += time.Since(begin).Seconds()
		s.CPUSeconds += (host.CPUTime() - used).Seconds()
		s.Bytes += int64(bytes)
	}
	return nil
}
