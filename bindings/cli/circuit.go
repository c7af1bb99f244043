package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/sealc2/sealc2/engine/circuit"
	"github.com/sealc2/sealc2/engine/circuit/porep"
)

// shapeChoice is the --shape flag: the sizes, also by the names that the reference vectors use.
func shapeChoice() choice {
	c := choice{alias: map[string]string{}}
	for _, s := range porep.Shapes() {
		c.legal = append(c.legal, s.Name)
		c.alias[s.OracleName] = s.Name
	}
	return c
}

// circuitCommand is `circuit digest`.
func (a *app) circuitCommand() *cobra.Command {
	shape := shapeChoice()
	digest := &cobra.Command{
		Use:   "digest --shape SHAPE",
		Short: "Digest of a circuit, in the JSON form of tests/vectors/shapes",
		Long: "Writes counts, densities and the chunked digest \"sealc2-r1cs-v1\" of a circuit's constraints, computed\n" +
			"from the very program that the prover evaluates. The form is that of tests/vectors/shapes.",
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			d, err := a.circuitDigest(c.Context(), shape.value)
			if err != nil {
				return err
			}
			return a.write(d)
		},
	}
	digest.Flags().Var(&shape, "shape", "sector size")
	require(digest, "shape")
	return group("circuit", "Look at circuits", digest)
}

func (a *app) circuitDigest(ctx context.Context, shapeName string) (*circuit.ProgramDigest, error) {
	shape, err := porep.ShapeByName(shapeName)
	if err != nil {
		return nil, err
	}
	limits, err := a.limits()
	if err != nil {
		return nil, err
	}
	return porep.Program(shape).Digest(ctx, limits.Threads)
}
