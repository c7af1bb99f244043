package tidy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// starters are gnark-crypto's functions that start goroutines, by a rough reading of its source: those with a go statement
// or a call of a method Go, and those that call such a one. Methods are told by their names alone, so that one may be
// there for another type's sake.
type starters struct {
	dir     string // where the module's source is
	bodies  []*body
	loaded  map[string]bool // packages by path below the module
	funcs   map[string]bool // "ecc/bls12-381.BatchScalarMultiplicationG1"
	methods map[string]bool // "MultiExp"
	homes   map[string]bool // "ecc/bls12-381.MultiExp 3": the same with the package and the number of parameters
}

// body is a function of the module and what it calls.
type body struct {
	name    string // as in funcs or in methods
	home    string // of a method: as in homes
	starts  bool
	funcs   []string
	methods []string
}

// load parses a package of the module and those that it imports from it.
func (g *starters) load(t *testing.T, pkg string) {
	t.Helper()
	if g.loaded[pkg] {
		return
	}
	g.loaded[pkg] = true
	files, err := filepath.Glob(filepath.Join(g.dir, pkg, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		names := importNames(file)
		for _, full := range names {
			if inside, ok := strings.CutPrefix(full, gnark+"/"); ok {
				g.load(t, inside)
			}
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
				g.bodies = append(g.bodies, g.read(pkg, names, f))
			}
		}
	}
}

// importNames are a file's imports by the name that it uses.
func importNames(file *ast.File) map[string]string {
	names := map[string]string{}
	for _, spec := range file.Imports {
		full, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		local := path.Base(full)
		if local == "bls12-381" {
			local = "bls12381"
		}
		if spec.Name != nil {
			local = spec.Name.Name
		}
		names[local] = full
	}
	return names
}

func (g *starters) read(pkg string, names map[string]string, f *ast.FuncDecl) *body {
	b := &body{name: pkg + "." + f.Name.Name}
	if f.Recv != nil {
		b.name, b.home = f.Name.Name, b.name+" "+parameters(f.Type)
	}
	ast.Inspect(f.Body, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.GoStmt:
			b.starts = true
		case *ast.CallExpr:
			switch c := x.Fun.(type) {
			case *ast.Ident:
				b.funcs = append(b.funcs, pkg+"."+c.Name)
			case *ast.SelectorExpr:
				id, ok := c.X.(*ast.Ident)
				full, imported := "", false
				if ok && id.Obj == nil {
					full, imported = names[id.Name]
				}
				inside, ours := strings.CutPrefix(full, gnark+"/")
				switch {
				case ours:
					b.funcs = append(b.funcs, inside+"."+c.Sel.Name)
				case !imported && c.Sel.Name == "Go": // of a WaitGroup or an errgroup
					b.starts = true
				case !imported:
					b.methods = append(b.methods, c.Sel.Name)
				}
			}
		}
		return true
	})
	return b
}

// parameters counts a function's parameters, as homes has it: "3", "2..." where there may be more than two.
func parameters(f *ast.FuncType) string {
	n, more := 0, ""
	for _, field := range f.Params.List {
		if _, ok := field.Type.(*ast.Ellipsis); ok {
			more = "..."
			continue
		}
		n += max(1, len(field.Names))
	}
	return strconv.Itoa(n) + more
}

// isHome tells whether a package has such a method that takes as many arguments.
func (g *starters) isHome(pkg, method string, arguments int) bool {
	name := pkg + "." + method + " "
	for n := range arguments + 1 {
		if g.homes[name+strconv.Itoa(n)+"..."] {
			return true
		}
	}
	return g.homes[name+strconv.Itoa(arguments)]
}

// settle finds out who starts goroutines, at any depth.
func (g *starters) settle() {
	for changed := true; changed; {
		changed = false
		for _, b := range g.bodies {
			set, key := g.funcs, b.name
			if b.home != "" {
				set, key = g.homes, b.home
			}
			if !set[key] && (b.starts || slices.ContainsFunc(b.funcs, func(n string) bool { return g.funcs[n] }) ||
				slices.ContainsFunc(b.methods, func(n string) bool { return g.methods[n] })) {
				set[key], changed = true, true
				g.methods[b.name] = g.methods[b.name] || b.home != ""
			}
		}
	}
}

// gnarkStarters reads the module that we build with.
func gnarkStarters(t *testing.T) *starters {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", gnark).Output()
	if err != nil {
		t.Fatal(err)
	}
	return &starters{dir: strings.TrimSpace(string(out)), loaded: map[string]bool{}, funcs: map[string]bool{}, methods: map[string]bool{}, homes: map[string]bool{}}
}

// checkBounds returns a file's calls of gnark-crypto that would take as many threads as the machine has CPUs, whatever the
// engine may use: each call that starts goroutines must say how many, where it stands.
func (g *starters) checkBounds(s *source) (bad []string) {
	names := importNames(s.file)
	var packages []string
	for _, full := range names {
		if inside, ok := strings.CutPrefix(full, gnark+"/"); ok {
			packages = append(packages, inside)
		}
	}
	if len(packages) == 0 || s.isTest() || s.isTool() {
		return nil
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		sel, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		name := sel.Sel.Name
		// A method of a package that the file does not import, or with other arguments, is another's of the same name.
		starts := slices.ContainsFunc(packages, func(p string) bool { return g.isHome(p, name, len(call.Args)) })
		if id, ok := sel.X.(*ast.Ident); ok && id.Obj == nil {
			if full, imported := names[id.Name]; imported {
				inside, _ := strings.CutPrefix(full, gnark+"/")
				starts = g.funcs[inside+"."+name]
			}
		}
		if starts && !slices.ContainsFunc(call.Args, saysTasks) {
			bad = append(bad, s.at(call.Pos(), "gnark-crypto's %s starts goroutines: say how many in the call (NbTasks), or do without it", name))
		}
		return true
	})
	return bad
}

// saysTasks tells a limit in an argument: ecc.MultiExpConfig{NbTasks: n}, fft.WithNbTasks(n). None, or 0, means all CPUs.
func saysTasks(arg ast.Expr) bool {
	zero := func(e ast.Expr) bool {
		lit, ok := e.(*ast.BasicLit)
		return ok && lit.Value == "0"
	}
	switch x := arg.(type) {
	case *ast.CompositeLit:
		return slices.ContainsFunc(x.Elts, func(e ast.Expr) bool {
			field, ok := e.(*ast.KeyValueExpr)
			if !ok {
				return false
			}
			key, ok := field.Key.(*ast.Ident)
			return ok && key.Name == "NbTasks" && !zero(field.Value)
		})
	case *ast.CallExpr:
		sel, ok := x.Fun.(*ast.SelectorExpr)
		return ok && sel.Sel.Name == "WithNbTasks" && len(x.Args) == 1 && !zero(x.Args[0])
	}
	return false
}

// Goal: no call of gnark-crypto takes more threads than the engine may use. Method: find out from its source what starts
// goroutines, so that another version is looked at anew, and look for calls of it.
func TestGnarkBounds(t *testing.T) {
	g := gnarkStarters(t)
	var sources []*source
	walk(t, func(path string, text []byte) {
		if !strings.HasSuffix(path, ".go") {
			return
		}
		s, err := parse(path, text)
		if err != nil {
			t.Error(err)
			return
		}
		sources = append(sources, s)
		for _, full := range importNames(s.file) {
			if inside, ok := strings.CutPrefix(full, gnark+"/"); ok {
				g.load(t, inside)
			}
		}
	})
	g.settle()
	// These are known to; some are there for a call within a call.
	for _, f := range []string{"ecc/bls12-381.BatchScalarMultiplicationG1", "ecc/bls12-381.BatchJacobianToAffineG1", "parallel.Execute", "ecc/bls12-381/fr/fft.NewDomain"} {
		if !g.funcs[f] {
			t.Errorf("%s is not seen to start goroutines", f)
		}
	}
	for _, m := range []string{"MultiExp", "Fold", "FFT", "FFTInverse", "Decode", "AsyncReadFrom"} {
		if !g.methods[m] {
			t.Errorf("%s is not seen to start goroutines", m)
		}
	}
	for _, f := range []string{"ecc/bls12-381.Pair", "ecc/bls12-381.MillerLoop", "ecc/bls12-381/fr.BatchInvert", "ecc/bls12-381/fr/fft.Generator"} {
		if g.funcs[f] {
			t.Errorf("%s is thought to start goroutines", f)
		}
	}
	for _, s := range sources {
		for _, bad := range g.checkBounds(s) {
			t.Error(bad)
		}
	}

	for call, want := range map[string]int{
		"sum.MultiExp(points, scalars, ecc.MultiExpConfig{NbTasks: threads})": 0,
		"sum.MultiExp(points, scalars, ecc.MultiExpConfig{})":                 1,
		"sum.MultiExp(points, scalars, ecc.MultiExpConfig{NbTasks: 0})":       1,
		"sum.MultiExp(points, scalars, config)":                               1,
		"domain.FFT(a, fft.DIF)":                                              1,
		"domain.FFT(a, fft.DIF, fft.WithNbTasks(threads))":                    0,
		"domain.FFTInverse(a, fft.DIF, fft.OnCoset(), fft.WithNbTasks(0))":    1,
		"bls.BatchScalarMultiplicationG1(&base, scalars)":                     1,
		"decoder.Decode(&points)":                                             1,
		"decoder.Decode(stream, points, 0, count)":                            0,
		"bls.Pair(p, q)":        0,
		"fft.NewDomain(1 << 8)": 1,
		"strings.MultiExp()":    0,
	} {
		text := "package engine\n\nimport (\n\t\"strings\"\n\n\t\"" + gnark + "/ecc\"\n\tbls \"" + gnark + "/ecc/bls12-381\"\n\t\"" + gnark + "/ecc/bls12-381/fr/fft\"\n)\n\nfunc f() { " + call + " }\n"
		s, err := parse("engine/a.go", []byte(text))
		if err != nil {
			t.Fatalf("%s: %v", call, err)
		}
		if got := g.checkBounds(s); len(got) != want {
			t.Errorf("%s: want %d findings, got %q", call, want, got)
		}
	}
}
