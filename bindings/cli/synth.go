package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sealc2/sealc2/engine/circuit/porep"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
	"github.com/sealc2/sealc2/engine/synthetic"
)

// synthJSON is the result of `synth --json`: the ids, which the C1 output does not hold, and what was written.
type synthJSON struct {
	Name       string  `json:"name"`
	Shape      string  `json:"shape"`
	Registered *string `json:"registered_seal_proof"` // null for the sizes without one
	APIVersion string  `json:"api_version"`
	SectorID   uint64  `json:"sector_id"`
	Miner      string  `json:"miner"` // as --miner takes it
	ProverID   string  `json:"prover_id"`
	ReplicaID  string  `json:"replica_id"`
	CommD      string  `json:"comm_d"`
	CommR      string  `json:"comm_r"`
	Partitions int     `json:"partitions"` // of the sector
	Written    int     `json:"partitions_written"`
	Complete   bool    `json:"complete"` // whether both are equal: else only witness tools take the file
	Out        string  `json:"out"`
	Bytes      int     `json:"bytes"`
	SHA256     string  `json:"sha256"`
	Statement  string  `json:"statement"` // path of the statement file; empty: none was written
	ElapsedMs  float64 `json:"elapsed_ms"`
	PeakRSS    int64   `json:"peak_rss_bytes"`
}

// synthCommand is `synth`.
func (a *app) synthCommand() *cobra.Command {
	shape := shapeChoice()
	proof := choice{value: "V1_1", legal: []string{"V1", "V1_1"}}
	var seed uint64
	var partitions int
	var out, statement string
	c := &cobra.Command{
		Use:   "synth --shape SHAPE --seed N --out FILE [--proof V1|V1_1] [--partitions K] [--statement-out FILE]",
		Short: "Make the C1 output of a sector that nobody sealed",
		Long: "Makes a C1 output of any size, complete and right in every part, without a sector: interactive challenges\n" +
			"depend on the ids and the seed alone, so only the nodes that they open need to exist. The data is zeros.\n" +
			"All of it follows from --seed. For tests and benchmarks: such a sector stores nothing.\n\n" +
			"4KiB, 16KiB and 32KiB have no registered proof type, so their C1 needs a statement file: without\n" +
			"--statement-out it is written beside the C1, as NAME.statement.json for NAME.json.\n\n" +
			"--partitions K writes the first K partitions of the same sector. Only `witness digest` takes such a file.",
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := porep.ShapeByName(shape.value)
			if err != nil {
				return err
			}
			if c.Flags().Changed("partitions") && (partitions < 1 || partitions > s.Partitions) {
				return usage("--partitions", fmt.Sprintf("1 to %d, the partitions of %s", s.Partitions, s.Name), strconv.Itoa(partitions))
			}
			version := porep.V1_1
			if proof.value == "V1" {
				version = porep.V1_0
			}
			v, err := a.synth(c.Context(), synthetic.Options{Shape: s, Version: version, Seed: seed, Partitions: partitions}, out, statement)
			if err != nil {
				return err
			}
			return a.result(v, func(w io.Writer) {
				fmt.Fprintf(w, "%s: %d of %d partitions, %d bytes\n", v.Out, v.Written, v.Partitions, v.Bytes)
				if v.Statement != "" {
					fmt.Fprintf(w, "statement file: %s\n", v.Statement)
				}
				fmt.Fprintf(w, "ids: --sector-id %d --miner %s\n", v.SectorID, v.Miner)
				fmt.Fprintf(w, "%.1f s, peak memory %s\n", v.ElapsedMs/1000, host.FormatBytes(v.PeakRSS))
			})
		},
	}
	c.Flags().Var(&shape, "shape", "sector size")
	c.Flags().Uint64Var(&seed, "seed", 0, "number that the sector is made of")
	c.Flags().Var(&proof, "proof", "version of the registered proof type")
	c.Flags().IntVar(&partitions, "partitions", 0, "write only the first partitions; default: all")
	c.Flags().StringVarP(&out, "out", "o", "", "file for the C1 output")
	c.Flags().StringVar(&statement, "statement-out", "", "file for the statement, in the form of tests/vectors/c1")
	require(c, "shape", "seed", "out")
	return c
}

// synth makes a sector and writes its files.
func (a *app) synth(ctx context.Context, o synthetic.Options, out, statement string) (*synthJSON, error) {
	const op = "cli.Synth"
	begin := time.Now()
	limits, err := a.limits()
	if err != nil {
		return nil, err
	}
	o.Threads = limits.Threads
	file, err := createOutput("--out", out)
	if err != nil {
		return nil, err
	}
	defer file.discard()
	sector, err := synthetic.Make(ctx, o)
	if err != nil {
		return nil, err
	}
	if statement == "" && sector.Output.Bare {
		statement = strings.TrimSuffix(out, ".json") + ".statement.json"
	}
	if statement != "" && filepath.Clean(statement) == filepath.Clean(out) {
		return nil, usage("--statement-out", "another file than --out", statement)
	}

	size := sector.MaxDocumentBytes()
	arena, err := host.NewArena(host.SliceBytes[byte](size))
	if err != nil {
		return nil, err
	}
	defer arena.Close()
	document := sector.Output.AppendJSON(host.Alloc[byte](arena, size)[:0])
	if statement != "" {
		if err := writeStatement(statement, sector, document); err != nil {
			return nil, status.Wrap(status.KindOf(err), op, "--statement-out", err)
		}
	}
	if err := file.commit(document); err != nil {
		return nil, err
	}

	st := &sector.Output.Statement
	digest := sha256.Sum256(document)
	v := &synthJSON{
		Name: sector.Name, Shape: st.Shape.Name, APIVersion: st.Version.String(),
		SectorID: sector.IDs.SectorID, Miner: fmt.Sprintf("t0%d", sector.Actor), ProverID: hex.EncodeToString(sector.IDs.ProverID[:]),
		ReplicaID: hex.EncodeToString(st.ReplicaID[:]), CommD: hex.EncodeToString(st.CommD[:]), CommR: hex.EncodeToString(st.CommR[:]),
		Partitions: st.PartitionCount(), Written: len(sector.Output.Partitions), Complete: sector.Complete(),
		Out: out, Bytes: len(document), SHA256: hex.EncodeToString(digest[:]), Statement: statement,
		ElapsedMs: ms(time.Since(begin)), PeakRSS: host.PeakRSS(),
	}
	if st.Registered != nil {
		v.Registered = &st.Registered.Name
	}
	return v, nil
}

// writeStatement writes a sector's statement file.
func writeStatement(path string, sector *synthetic.Sector, document []byte) error {
	file, err := createOutput("--statement-out", path)
	if err != nil {
		return err
	}
	defer file.discard()
	text, err := sector.StatementJSON(document)
	if err != nil {
		return err
	}
	return file.commit(text)
}
