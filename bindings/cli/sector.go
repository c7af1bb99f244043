package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/sealc2/sealc2/engine"
	"github.com/sealc2/sealc2/engine/status"
)

// sectorFlags name one sector: its C1 output and, where that is not enough, a statement file and ids.
type sectorFlags struct {
	c1, statement string
	sectorID      uint64
	miner         miner
}

// register adds --c1 and --statement.
func (s *sectorFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&s.c1, "c1", "", "C1 output: its JSON or lotus-bench's wrapping of it; - is standard input")
	c.Flags().StringVar(&s.statement, "statement", "", "statement file, for sizes without a registered proof type")
	require(c, "c1")
}

// registerIDs adds --sector-id and --miner, which go together.
func (s *sectorFlags) registerIDs(c *cobra.Command) {
	c.Flags().Uint64Var(&s.sectorID, "sector-id", 0, "sector number; with --miner the replica id is recomputed and compared with the C1's")
	c.Flags().Var(&s.miner, "miner", minerForms)
	together(c, "sector-id", "miner")
}

// sectorIDs returns the ids that were given, or nil.
func (s *sectorFlags) sectorIDs() *engine.SectorIDs {
	if !s.miner.set {
		return nil
	}
	return &engine.SectorIDs{SectorID: s.sectorID, ProverID: s.miner.id}
}

// read loads the files.
func (s *sectorFlags) read(ctx context.Context, a *app) (document, statement []byte, err error) {
	if document, err = a.readInput(ctx, "--c1", s.c1, maxC1Bytes, noObject); err != nil {
		return nil, nil, err
	}
	if len(document) == 0 {
		return nil, nil, status.New(status.Input, "cli.Read", "--c1 "+s.c1, "the output of Commit phase 1", "no bytes")
	}
	if s.statement != "" {
		if statement, err = a.readInput(ctx, "--statement", s.statement, maxSmallBytes, nil); err != nil {
			return nil, nil, err
		}
	}
	return document, statement, nil
}
