package main

import (
	"encoding/hex"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/sealc2/sealc2/engine"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/params"
)

// stageJSON is the time of one stage; partition -1 stands for the whole job.
type stageJSON struct {
	Partition int     `json:"partition"`
	Stage     string  `json:"stage"`
	StartMs   float64 `json:"start_ms"`
	ElapsedMs float64 `json:"elapsed_ms"`
}

// proveJSON is the result of `prove --json`.
type proveJSON struct {
	Out        string      `json:"out"`
	Bytes      int         `json:"bytes"`
	Partitions int         `json:"partitions"`
	Proofs     []string    `json:"proofs"` // hex, one a partition
	Verified   bool        `json:"verified"`
	Device     string      `json:"device"`
	ElapsedMs  float64     `json:"elapsed_ms"`
	PeakRSS    int64       `json:"peak_rss_bytes"`
	Stages     []stageJSON `json:"stages"`
}

// proveCommand is `prove`.
func (a *app) proveCommand() *cobra.Command {
	var sector sectorFlags
	var paramPath, out string
	var r, s scalars
	c := &cobra.Command{
		Use:   "prove --c1 FILE --out FILE [--params DIR] [--statement FILE] [--sector-id N --miner ID]",
		Short: "Prove a sector from its C1 output",
		Long: "Proves all partitions of a sector, verifies each proof, and writes them to --out: 192 bytes a partition,\n" +
			"in partition order, nothing else. The file appears when all of them are there.\n\n" +
			"A C1 output holds no ids. With --sector-id and --miner the replica id is recomputed from them first, and\n" +
			"a C1 of another sector is refused; without them it is taken from the C1.\n\n" +
			"--params accepts development keys with a warning. Without it the folder is " + envParamDir + " or\n" +
			params.DefaultDir + ", and development keys need " + envAllowDev + "=1.",
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			begin := time.Now()
			document, statement, err := sector.read(c.Context(), a)
			if err != nil {
				return err
			}
			if sameFile(sector.c1, out) {
				return usage("--out", "another file than --c1", out)
			}
			file, err := createOutput("--out", out)
			if err != nil {
				return err
			}
			defer file.discard()
			e, err := a.engine()
			if err != nil {
				return err
			}
			defer e.Close()
			res, err := e.Prove(c.Context(), &engine.ProveRequest{
				C1: document, Statement: statement, IDs: sector.sectorIDs(), Params: a.paramSource(paramPath),
				R: r.values, S: s.values, Progress: a.con.progress,
			})
			a.con.finish()
			if err != nil {
				return err
			}
			if err := file.commit(res.Proof); err != nil {
				return err
			}
			return a.proved(res, out, time.Since(begin))
		},
	}
	sector.register(c)
	sector.registerIDs(c)
	c.Flags().StringVar(&paramPath, "params", "", paramsUsage)
	c.Flags().StringVar(&out, "out", "", "file for the proof")
	c.Flags().Var(&r, "r", "for reproducible proofs in tests: a scalar a partition, 64 hex digits each")
	c.Flags().Var(&s, "s", "as --r")
	c.Flags().Var(&a.device, "device", "where to prove")
	a.policyFlags(c)
	together(c, "r", "s")
	require(c, "out")
	return c
}

// proved writes the result of a proof that stands in its file.
func (a *app) proved(res *engine.ProveResult, out string, elapsed time.Duration) error {
	v := proveJSON{
		Out: out, Bytes: len(res.Proof), Partitions: len(res.Proof) / groth16.ProofBytes, Verified: true,
		Device: res.Device, ElapsedMs: ms(elapsed), PeakRSS: host.PeakRSS(),
	}
	for p := res.Proof; len(p) >= groth16.ProofBytes; p = p[groth16.ProofBytes:] {
		v.Proofs = append(v.Proofs, hex.EncodeToString(p[:groth16.ProofBytes]))
	}
	for _, st := range res.Stages {
		v.Stages = append(v.Stages, stageJSON{st.Partition, st.Stage, ms(st.Start), ms(st.Elapsed)})
	}
	return a.result(v, func(w io.Writer) {
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, st := range res.Stages {
			who := "job"
			if st.Partition >= 0 {
				who = fmt.Sprintf("partition %d", st.Partition)
			}
			fmt.Fprintf(t, "%s\t%s\t%s\n", who, st.Stage, seconds(st.Elapsed))
		}
		t.Flush()
		fmt.Fprintf(w, "verified proof of %s, %d bytes: %s\n", partitionCount(v.Partitions), v.Bytes, out)
		fmt.Fprintf(w, "device %s, %s, peak memory %s\n", v.Device, seconds(elapsed), host.FormatBytes(v.PeakRSS))
	})
}

// partitionCount writes a number of partitions for people.
func partitionCount(n int) string {
	if n == 1 {
		return "1 partition"
	}
	return fmt.Sprintf("%d partitions", n)
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
