package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sealc2/sealc2/engine"
	"github.com/sealc2/sealc2/engine/circuit/porep"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/params"
	"github.com/sealc2/sealc2/engine/status"
)

// checkJSON is the result of `params check --json`. Where a file is refused, the first refusal stands at
// the top as with every error.
type checkJSON struct {
	*errorJSON
	OK    bool        `json:"ok"`
	Files []checkFile `json:"files"`
}

// checkFile is what was found out about one parameter set or one key file.
type checkFile struct {
	Path       string          `json:"path"`
	OK         bool            `json:"ok"`
	Error      *errorJSON      `json:"error,omitzero"`
	Circuit    string          `json:"circuit,omitzero"`   // oracle name, where it is known
	Production bool            `json:"production"`         // the key is in the public manifest
	KeyDigest  string          `json:"vk_digest,omitzero"` // in the manifest's form
	Inputs     int             `json:"inputs,omitzero"`    // of the circuit, with the one
	Blocks     map[string]int  `json:"blocks,omitzero"`    // points a block
	Points     *checkPoints    `json:"check,omitzero"`     // of the points in the blocks
	Digests    *params.Digests `json:"digests,omitzero"`   // with --digest
	Published  bool            `json:"published,omitzero"` // with --digest: the file's hash is the published one
}

// checkPoints is how the points were checked.
type checkPoints struct {
	Points    int64   `json:"points"`
	Exact     bool    `json:"exact"`           // the order of every point on its own
	Rounds    int     `json:"rounds"`          // of random bucket sums, where not exact
	Cached    bool    `json:"cached"`          // the same state of the file has passed before
	Device    string  `json:"device,omitzero"` // where they were checked, unless cached
	ElapsedMs float64 `json:"elapsed_ms"`
}

// paramsCommand is `params check`.
func (a *app) paramsCommand() *cobra.Command {
	shape := shapeChoice()
	var digest, again bool
	check := &cobra.Command{
		Use:   "check FILE|DIR [--shape SHAPE] [--digest] [--again] [--device cpu|cuda|cuda:N|auto]",
		Short: "Check parameter files: layout, keys, every point",
		Long: "Checks a .params or .vk file, or all of them in a folder: sizes and counts, every point on its curve and\n" +
			"in its group, the key of a .params file against its .vk file, and whether the key is a public production\n" +
			"key or a development key. With --shape the counts must be those of that circuit; else they are compared\n" +
			"with the circuit that the file's name tells. With --digest the whole file is hashed, and with a\n" +
			"production key the hash must be the published one.\n\n" +
			"That the points of a file passed is remembered for as long as the file does not change, in\n" +
			"$XDG_CACHE_HOME/sealc2 (~/.cache/sealc2). --again checks them all the same.",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage(c.CommandPath(), "one FILE or DIR", fmt.Sprintf("%d", len(args)))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			limits, err := a.limits()
			if err != nil {
				return err
			}
			config, err := a.config()
			if err != nil {
				return err
			}
			k := &checker{app: a, digest: digest, threads: limits.Threads, points: engine.NewPointChecker(config)}
			defer k.points.Close()
			if !again {
				k.verdicts = params.NewVerdicts(a.cacheDir())
			}
			for k.threads > 1 && params.CheckBytes(k.threads) > limits.HostBytes {
				k.threads--
			}
			if err := fits("cli.ParamsCheck", limits, params.CheckBytes(k.threads)); err != nil {
				return err
			}
			if shape.value != "" {
				if k.shape, err = porep.ShapeByName(shape.value); err != nil {
					return err
				}
			}
			res, err := k.path(c.Context(), args[0])
			a.con.finish()
			if err != nil {
				return err
			}
			if err := a.result(res, res.text); err != nil {
				return err
			}
			if !res.OK {
				return errAnswered
			}
			return nil
		},
	}
	check.Flags().Var(&shape, "shape", "circuit that the keys must be of")
	check.Flags().BoolVar(&digest, "digest", false, "hash whole files")
	check.Flags().BoolVar(&again, "again", false, "check points also where the same file passed before")
	check.Flags().Var(oneDevice{&a.device}, "device", "where to check points")
	return group("params", "Look at parameter files", check)
}

// text writes the result for people.
func (r *checkJSON) text(w io.Writer) {
	for _, f := range r.Files {
		if !f.OK {
			fmt.Fprintf(w, "%s: refused: %s\n", f.Path, f.Error.Message)
			continue
		}
		kind := "development key, proofs under it prove nothing"
		if f.Production {
			kind = "production key"
		}
		name := f.Circuit
		if name == "" {
			name = "unknown circuit"
		}
		fmt.Fprintf(w, "%s: ok: %s, %s, digest %s\n", f.Path, name, kind, f.KeyDigest)
		switch {
		case f.Points == nil:
		case f.Points.Cached:
			fmt.Fprintf(w, "  %d points, checked before; the file has not changed since\n", f.Points.Points)
		default:
			fmt.Fprintf(w, "  %d points checked in %.1f s on %s\n", f.Points.Points, f.Points.ElapsedMs/1000, f.Points.Device)
		}
		if f.Digests != nil {
			fmt.Fprintf(w, "  sha256 %s\n  blake2b-512, first 16 bytes %s\n", f.Digests.ParamsFile.SHA256, f.Digests.ParamsFile.Blake2b512First16)
		}
	}
}

// checker is one run of `params check`.
type checker struct {
	app     *app
	shape   *porep.Shape // nil: by the file's name
	digest  bool
	threads int
	points  *engine.PointChecker
	// verdicts remembers what passed; nil checks everything.
	verdicts *params.Verdicts
}

// path checks a file, or all parameter files of a folder. Bad files are part of the result; an error says
// that there was nothing to check, or that the run was cancelled or had no device.
func (k *checker) path(ctx context.Context, path string) (*checkJSON, error) {
	const op = "cli.ParamsCheck"
	info, err := os.Stat(path)
	if err != nil {
		return nil, fileError(op, path, err)
	}
	paths := []string{path}
	if info.IsDir() {
		if paths, err = k.list(path); err != nil {
			return nil, err
		}
		if len(paths) == 0 {
			want := "files ending in " + params.ParamsExt + " or " + params.VKExt
			if k.shape != nil {
				want += " for " + k.shape.Name
			}
			return nil, status.New(status.Params, op, path, want, "none")
		}
	}
	res := &checkJSON{OK: true}
	for _, p := range paths {
		f := checkFile{Path: p}
		if err := k.file(ctx, &f); err != nil {
			if kind := status.KindOf(err); kind == status.Cancelled || kind == status.NoDevice {
				return nil, err // it says nothing about the file
			}
			f.Error = newErrorJSON(err, exitRefused)
			if res.OK {
				res.OK, res.errorJSON = false, f.Error
			}
		} else {
			f.OK = true
		}
		res.Files = append(res.Files, f)
	}
	return res, nil
}

// list finds what is to be checked in a folder: each .params file with its key, and keys that stand alone.
// With --shape only files whose name is of that circuit.
func (k *checker) list(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fileError("cli.ParamsCheck", dir, err)
	}
	var stems []string
	for _, e := range entries {
		if stem, ok := strings.CutSuffix(e.Name(), params.ParamsExt); ok {
			stems = append(stems, stem)
		}
	}
	var paths []string
	for _, e := range entries {
		ext := filepath.Ext(e.Name())
		stem := strings.TrimSuffix(e.Name(), ext)
		if k.shape != nil && !strings.HasSuffix(stem, k.shape.ParamsBaseName()) {
			continue
		}
		if ext == params.ParamsExt || ext == params.VKExt && !slices.Contains(stems, stem) {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths, nil
}

// circuit is the shape to compare a file with: the one asked for, or the one in its name. It may be nil.
func (k *checker) circuit(path string) *porep.Shape {
	if k.shape != nil {
		return k.shape
	}
	stem := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	for _, s := range porep.Shapes() {
		if strings.HasSuffix(stem, s.ParamsBaseName()) {
			return s
		}
	}
	return nil
}

func (k *checker) file(ctx context.Context, out *checkFile) error {
	const op = "cli.ParamsCheck"
	shape := k.circuit(out.Path)
	base := ""
	if shape != nil {
		out.Circuit, base = shape.OracleName, shape.ParamsBaseName()
	}
	switch filepath.Ext(out.Path) {
	case params.VKExt:
		key, err := params.ReadKeyFile(out.Path)
		if err != nil {
			return err
		}
		out.Inputs = len(key.VK.IC)
		if shape != nil {
			if want := porep.Program(shape).InputCount(); out.Inputs != want {
				return status.New(status.Params, op, out.Path+": ic", fmt.Sprintf("%d points for %s", want, shape.Name), fmt.Sprint(out.Inputs))
			}
		}
		_, err = k.admit(out, key.Bytes, base)
		return err
	case params.ParamsExt:
		set, err := params.SetAt(out.Path, "the command line")
		if err != nil {
			return err
		}
		f, err := params.Open(set.Params)
		if err != nil {
			return err
		}
		defer f.Close()
		return k.set(ctx, out, f, set, shape, base)
	}
	return status.New(status.Params, op, out.Path, "a file ending in "+params.ParamsExt+" or "+params.VKExt, "another ending")
}

// admit asks the guard what kind of key it is; development keys pass.
func (k *checker) admit(out *checkFile, key []byte, base string) (params.Entry, error) {
	entry, production, err := params.Admit(key, out.Path, base, params.Policy{AllowDev: true})
	out.Production, out.KeyDigest = production, params.KeyDigest(key)
	return entry, err
}

// set checks a whole parameter set.
func (k *checker) set(ctx context.Context, out *checkFile, f *params.File, set params.Set, shape *porep.Shape, base string) error {
	key, err := params.ReadKeyFile(set.VK)
	if err != nil {
		return err
	}
	if err := f.SameKey(key.Bytes, set.VK); err != nil {
		return err
	}
	entry, err := k.admit(out, f.KeyBytes(), base)
	if err != nil {
		return err
	}
	out.Inputs, out.Blocks = len(f.VerifyingKey().IC), map[string]int{}
	for b := range groth16.BlockCount {
		out.Blocks[b.String()] = f.Len(b)
	}
	if shape != nil {
		if err := f.Fits(porep.Program(shape)); err != nil {
			return err
		}
	}
	report := func(stage string) func(float64) {
		return func(done float64) { k.app.con.progress(engine.Progress{Partition: -1, Stage: stage, Done: done}) }
	}
	points, err := k.points.Check(ctx, f, params.CheckOptions{Threads: k.threads, Progress: report("points"), Verdicts: k.verdicts})
	if err != nil {
		return err
	}
	out.Points = &checkPoints{points.Points, points.Exact, points.Rounds, points.Cached, "", ms(points.Elapsed)}
	if !points.Cached {
		out.Points.Device = k.points.Device()
	}
	if !k.digest {
		return nil
	}
	if out.Digests, err = f.Digest(ctx, report("digest")); err != nil {
		return err
	}
	if got := out.Digests.ParamsFile.Blake2b512First16; out.Production && got != entry.ParamsDigest {
		return status.New(status.Params, "cli.ParamsCheck", set.Params, "digest "+entry.ParamsDigest+" of the public manifest", got)
	}
	out.Published = out.Production
	return nil
}
