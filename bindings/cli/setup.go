package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/sealc2/sealc2/engine"
	"github.com/sealc2/sealc2/engine/circuit/porep"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/params"
)

// setupJSON is the result of `setup --json`: the form of tests/vectors/setup, and where the files are.
type setupJSON struct {
	*engine.SetupResult
	Names    string `json:"names"`
	FileName string `json:"params_cache_file_name"` // under which the reference looks for the file
	PeakRSS  int64  `json:"peak_rss_bytes"`
}

// setupCommand is `setup`.
func (a *app) setupCommand() *cobra.Command {
	shape := shapeChoice()
	names := choice{value: "dev", legal: []string{"dev", "reference"}}
	var seed, out string
	var plain bool
	c := &cobra.Command{
		Use:   "setup --shape SHAPE --out DIR [--seed TEXT] [--names dev|reference] [--device cpu|cuda|cuda:N|auto]",
		Short: "Make development parameters, which are insecure by definition",
		Long: "Makes a .params and a .vk file for a shape from a seed that anybody can read: proofs under such keys\n" +
			"prove nothing, they are for tests. Scalar NAME is SHA-512(seed|oracle shape name|NAME) modulo the group\n" +
			"order; with the default seed the files are byte for byte those of tests/vectors/setup.\n\n" +
			"--names dev calls them dev-SHAPE...; --names reference gives them the names under which the reference's\n" +
			"own code looks for its files (v28-...).\n\n" +
			"On a GPU the points are made in its memory and copied down in pieces: some seconds at any size. Hashing the file\n" +
			"then takes longest; --no-digests leaves that out.",
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			res, err := a.makeSetup(c.Context(), shape.value, seed, names.value, out, plain)
			if err != nil {
				return err
			}
			return a.result(res, func(w io.Writer) {
				fmt.Fprintf(w, "development parameters for %s, insecure by definition:\n  %s (%s)\n  %s (%s)\n", shape.value,
					res.ParamsPath, host.FormatBytes(res.ParamsFile.Bytes), res.VKPath, host.FormatBytes(res.VKFile.Bytes))
				fmt.Fprintf(w, "%.1f s on %s, %d threads, peak memory %s\n", res.Seconds, res.Device, res.Threads, host.FormatBytes(res.PeakRSS))
			})
		},
	}
	c.Flags().Var(&shape, "shape", "sector size")
	c.Flags().Var(&names, "names", "file names")
	c.Flags().StringVar(&seed, "seed", params.DefaultSetupText, "text that the scalars are made of")
	c.Flags().StringVar(&out, "out", "", "folder for the files; made if it is not there")
	c.Flags().Var(oneDevice{&a.device}, "device", "where to make the points")
	c.Flags().BoolVar(&plain, "no-digests", false, "leave out the digests of the .params file")
	require(c, "shape", "out")
	return c
}

func (a *app) makeSetup(ctx context.Context, shapeName, seed, names, dir string, plain bool) (*setupJSON, error) {
	shape, err := porep.ShapeByName(shapeName)
	if err != nil {
		return nil, err
	}
	config, err := a.config()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fileError("cli.Setup", "--out", err)
	}
	base := shape.ParamsBaseName()
	stem := params.DevStem(shape.Name, base)
	if names == "reference" {
		stem = params.ReferenceStem(base)
	}
	res, err := engine.Setup(ctx, config, &engine.SetupRequest{
		Shape: shape, Text: seed, Dir: dir, BaseName: stem, WithoutDigests: plain,
		Progress: func(done float64, what string) {
			a.con.progress(engine.Progress{Partition: -1, Stage: what, Done: done})
		},
	})
	a.con.finish()
	if err != nil {
		return nil, err
	}
	return &setupJSON{SetupResult: res, Names: names, FileName: params.ReferenceStem(base) + params.ParamsExt, PeakRSS: host.PeakRSS()}, nil
}
