package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/sealc2/sealc2/engine"
	"github.com/sealc2/sealc2/engine/groth16"
)

// verifyJSON is the result of `verify --json`.
type verifyJSON struct {
	Verified   bool `json:"verified"`
	Partitions int  `json:"partitions"`
}

// verifyCommand is `verify`.
func (a *app) verifyCommand() *cobra.Command {
	var sector sectorFlags
	var paramPath, proofPath string
	c := &cobra.Command{
		Use:   "verify --c1 FILE --proof FILE [--params DIR] [--statement FILE] [--sector-id N --miner ID]",
		Short: "Verify a sector's proof against its C1 output",
		Long: "Verifies a proof against public inputs derived from the statement of a C1 output: commitments, replica id,\n" +
			"seed. The vanilla proofs in it play no part. Exit code 0: verified, 1: not.\n\n" +
			"With --sector-id and --miner the replica id is recomputed from them; without them it is taken from the C1.",
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			document, statement, err := sector.read(c.Context(), a)
			if err != nil {
				return err
			}
			proof, err := a.readInput(c.Context(), "--proof", proofPath, maxSmallBytes, nil)
			if err != nil {
				return err
			}
			e, err := a.engine()
			if err != nil {
				return err
			}
			defer e.Close()
			ok, err := e.VerifyC1(c.Context(), &engine.VerifyC1Request{
				C1: document, Statement: statement, IDs: sector.sectorIDs(), Proof: proof, Params: a.paramSource(paramPath),
			})
			if err != nil {
				return err
			}
			v := verifyJSON{Verified: ok, Partitions: len(proof) / groth16.ProofBytes}
			if err := a.result(v, func(w io.Writer) {
				if v.Verified {
					fmt.Fprintf(w, "verified: %s\n", partitionCount(v.Partitions))
				} else {
					fmt.Fprintln(w, "not verified: this is no proof of the sector under this key")
				}
			}); err != nil {
				return err
			}
			if !v.Verified {
				return errAnswered
			}
			return nil
		},
	}
	sector.register(c)
	sector.registerIDs(c)
	c.Flags().StringVar(&proofPath, "proof", "", "file with the proof, 192 bytes a partition")
	c.Flags().StringVar(&paramPath, "params", "", paramsUsage)
	require(c, "proof")
	return c
}
