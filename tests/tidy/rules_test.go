package tidy

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"strconv"
	"strings"
)

const module = "github.com/sealc2/sealc2"

// room says what the packages below a folder may import. The longest matching folder counts.
type room struct {
	dir string
	// may lists folders of this module, each with all that is below it; "=" in front means the folder alone.
	may []string
	// libraries lists modules from outside, each with all that is below it.
	libraries []string
	// cgo allows import "C".
	cgo bool
}

const (
	gnark  = "github.com/consensys/gnark-crypto"
	json   = "github.com/go-json-experiment/json"
	cobra  = "github.com/spf13/cobra"
	pflag  = "github.com/spf13/pflag"
	xsys   = "golang.org/x/sys"
	xsync  = "golang.org/x/sync"
	xcrypt = "golang.org/x/crypto"
	cpuid  = "github.com/klauspost/cpuid/v2"
	chacha = "github.com/aead/chacha20"
	purego = "github.com/ebitengine/purego"
	gonvml = "github.com/NVIDIA/go-nvml"
	grpc   = "google.golang.org/grpc"
	proto  = "google.golang.org/protobuf"
)

// rooms is the arrow diagram of docs/architecture.md as a table:
// bindings, capi -> engine -> {sched, c1, params, cpu, cuda} -> {groth16, circuit} -> lanes -> host -> status.
var rooms = []room{
	{dir: "engine/status"},
	{dir: "engine/host", may: []string{"engine/status"}, libraries: []string{xsys, cpuid}},
	{dir: "engine/lanes", may: []string{"engine/host", "engine/status"}, libraries: []string{gnark, xsys}},
	// circuit knows no device and no proof system.
	{dir: "engine/circuit", may: []string{"engine/circuit", "engine/lanes", "engine/host", "engine/status"}, libraries: []string{gnark, xsync, xcrypt, chacha}},
	// groth16 knows no Filecoin: the programs it proves come from circuit, never from circuit/porep.
	{dir: "engine/groth16", may: []string{"=engine/circuit", "engine/host", "engine/status"}, libraries: []string{gnark, xsync}},
	// sched knows no mathematics.
	{dir: "engine/sched", may: []string{"engine/host", "engine/status"}, libraries: []string{xsync}},
	{dir: "engine/sched/simulate", may: []string{"=engine/sched", "engine/host", "engine/status"}},
	{dir: "engine/c1", may: []string{"=engine/circuit/porep", "engine/host", "engine/status"}, libraries: []string{gnark, json, xsync, xsys}},
	{dir: "engine/params", may: []string{"engine/circuit", "engine/groth16", "engine/lanes", "engine/host", "engine/status"}, libraries: []string{gnark, json, xsys, xsync, xcrypt}},
	// A backend knows no Filecoin, and backends do not know each other.
	{dir: "engine/cpu", may: []string{"=engine/circuit", "engine/groth16", "engine/lanes", "engine/host", "engine/status"}, libraries: []string{gnark, xsys, xsync, cpuid}},
	// The GPU backend. Only the driver layer, and its double for tests, call foreign code.
	{dir: "cuda/driver", may: []string{"engine/status"}, libraries: []string{purego, xsys}},
	{dir: "cuda/sim", may: []string{"cuda/driver", "engine/status"}, libraries: []string{purego, xsys}},
	{dir: "cuda/nvml", may: []string{"engine/status"}, libraries: []string{gonvml, purego}, cgo: true},
	{dir: "cuda", may: []string{"cuda", "=engine/circuit", "engine/groth16", "engine/host", "engine/status"}, libraries: []string{gnark, xsys}},
	{dir: "engine/synthetic", may: []string{"engine/c1", "engine/circuit", "engine/host", "engine/status"}, libraries: []string{gnark, json}},
	{dir: "engine", may: []string{"engine", "cuda"}, libraries: []string{gnark, json, xsync}},
	{dir: "capi", may: []string{"engine"}, libraries: []string{gnark, xsys}, cgo: true},
	// The service is a part of the command, which opens the engine, reads the environment and calls it in tests.
	{dir: "bindings/grpc", may: []string{"bindings/grpc/cuzkv1", "engine"}, libraries: []string{grpc, proto}},
	{dir: "bindings/grpc/cuzkv1", libraries: []string{grpc, proto}},
	{dir: "bindings/cli", may: []string{"bindings/grpc", "engine"}, libraries: []string{gnark, json, cobra, pflag, xsys, grpc}},
	// Programs that tests build and run as foreign hosts of the library.
	{dir: "tests/abi/testdata", cgo: true},
	{dir: "tests/hosts/testdata", may: []string{"engine"}, libraries: []string{gnark}, cgo: true},
	{dir: "tests", may: []string{"engine", "cuda", "tests"}, libraries: []string{gnark, json, xsys}},
}

// source is one parsed Go file.
type source struct {
	path string // relative to the root, with slashes
	text []byte
	set  *token.FileSet
	file *ast.File
}

func parse(path string, text []byte) (*source, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, text, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	return &source{path: path, text: text, set: set, file: file}, nil
}

func (s *source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

// isTool tells a program for `go run`, as a generator, which no build contains.
func (s *source) isTool() bool { return bytes.HasPrefix(s.text, []byte("//go:build ignore\n")) }

func (s *source) at(pos token.Pos, format string, args ...any) string {
	return fmt.Sprintf("%s:%d: %s", s.path, s.set.Position(pos).Line, fmt.Sprintf(format, args...))
}

// below tells whether dir is root or lies in it.
func below(dir, root string) bool { return dir == root || strings.HasPrefix(dir, root+"/") }

// roomOf finds the room of a folder.
func roomOf(dir string) *room {
	var best *room
	for i := range rooms {
		if r := &rooms[i]; below(dir, r.dir) && (best == nil || len(r.dir) > len(best.dir)) {
			best = r
		}
	}
	return best
}

// checkArrows returns the imports of a file that its room may not have. Tests may import any room below
// engine and tests, since a test may look at a neighbour; libraries are checked in all files.
func checkArrows(s *source) (bad []string) {
	dir := path.Dir(s.path)
	r := roomOf(dir)
	if r == nil {
		return []string{s.at(s.file.Package, "folder %s belongs to no room: add it to the table", dir)}
	}
	for _, spec := range s.file.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			bad = append(bad, s.at(spec.Pos(), "import %s: %v", spec.Path.Value, err))
			continue
		}
		if own, ok := strings.CutPrefix(name, module+"/"); ok {
			if (below(own, "tests") || below(own, "cuda/kerneltest")) && !s.isTest() && !below(dir, "tests") {
				bad = append(bad, s.at(spec.Pos(), "only tests import tests: %s", own))
			} else if (below(own, "capi") || below(own, "bindings")) && !allows(r.may, own) {
				bad = append(bad, s.at(spec.Pos(), "nobody imports %s", own))
			} else if !s.isTest() && !allows(r.may, own) {
				bad = append(bad, s.at(spec.Pos(), "%s may not import %s", r.dir, own))
			}
			continue
		}
		switch {
		case name == "C":
			if !r.cgo {
				bad = append(bad, s.at(spec.Pos(), "%s may not use cgo", r.dir))
			}
		case strings.Contains(strings.Split(name, "/")[0], "."): // not of the standard library
			if !allows(r.libraries, name) {
				bad = append(bad, s.at(spec.Pos(), "%s may not import the library %s", r.dir, name))
			}
		}
	}
	return bad
}

func allows(list []string, name string) bool {
	for _, l := range list {
		if exact, ok := strings.CutPrefix(l, "="); ok {
			if name == exact {
				return true
			}
		} else if below(name, l) {
			return true
		}
	}
	return false
}

// bannedCalls are functions that library code must not call, with what it does instead.
var bannedCalls = map[string]string{
	"os.Exit":      "return an error",
	"log.Fatal":    "return an error",
	"log.Fatalf":   "return an error",
	"log.Fatalln":  "return an error",
	"log.Panic":    "return an error",
	"log.Panicf":   "return an error",
	"log.Panicln":  "return an error",
	"os.Getenv":    "take it from Config: only capi and the command line read the environment",
	"os.LookupEnv": "take it from Config: only capi and the command line read the environment",
	"os.Environ":   "take it from Config: only capi and the command line read the environment",
	"os.Setenv":    "leave the environment alone",
	"os.Unsetenv":  "leave the environment alone",
	"fmt.Print":    "log through Config.Log",
	"fmt.Printf":   "log through Config.Log",
	"fmt.Println":  "log through Config.Log",
	"log.Print":    "log through Config.Log",
	"log.Printf":   "log through Config.Log",
	"log.Println":  "log through Config.Log",
}

// bannedBuiltins are the same for builtin functions.
var bannedBuiltins = map[string]string{
	"panic":   "return an error, or state an invariant with status.Check",
	"print":   "log through Config.Log",
	"println": "log through Config.Log",
}

// checkCalls returns the calls in a library file that are banned. Tests, tools, the command line, and
// status itself for panic, are free.
func checkCalls(s *source) (bad []string) {
	dir := path.Dir(s.path)
	if s.isTest() || s.isTool() || below(dir, "bindings/cli") || below(dir, "tests") || below(dir, "cuda/kerneltest") {
		return nil
	}
	// An import under its own name; a renamed one is followed by that name.
	names := map[string]string{}
	for _, spec := range s.file.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		local := path.Base(p)
		if spec.Name != nil {
			local = spec.Name.Name
		}
		names[local] = p
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.CallExpr:
			if id, ok := x.Fun.(*ast.Ident); ok && id.Obj == nil {
				why, banned := bannedBuiltins[id.Name]
				if banned && !(id.Name == "panic" && dir == "engine/status") {
					bad = append(bad, s.at(x.Pos(), "%s is banned here: %s", id.Name, why))
				}
			}
		case *ast.SelectorExpr: // also where a function is only named, not called
			if id, ok := x.X.(*ast.Ident); ok {
				full := names[id.Name] + "." + x.Sel.Name
				if why, banned := bannedCalls[full]; banned {
					bad = append(bad, s.at(x.Pos(), "%s is banned here: %s", full, why))
				}
			}
		}
		return true
	})
	return bad
}

// checkFormat says whether gofmt would change a file.
func checkFormat(s *source) []string {
	formatted, err := format.Source(s.text)
	if err != nil || string(formatted) != string(s.text) {
		return []string{s.path + ": gofmt would change it"}
	}
	return nil
}

// checkSkips wants a reason for each skipped test.
func checkSkips(s *source) (bad []string) {
	if !s.isTest() {
		return nil
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if sel, ok := call.Fun.(*ast.SelectorExpr); ok {
				name := sel.Sel.Name
				if (name == "Skip" || name == "SkipNow") && len(call.Args) == 0 {
					if id, ok := sel.X.(*ast.Ident); ok && (id.Name == "t" || id.Name == "b" || id.Name == "f") {
						bad = append(bad, s.at(call.Pos(), "a skipped test gives its reason"))
					}
				}
			}
		}
		return true
	})
	return bad
}

// The patterns are put together here so that this file does not contain what it forbids.
var bannedText = []struct {
	re  *regexp.Regexp
	why string
}{
	{regexp.MustCompile(`(^|[\s"'` + "`" + `=:(])/(work|root|Users)/`), "a path of one machine"},
	{regexp.MustCompile(`(^|[\s"'` + "`" + `=:(])/home/[a-z]`), "a path of one machine"},
	{regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`), "unfinished work"},
}

// checkText returns the lines of any text file that hold what no file may hold.
func checkText(path string, text []byte) (bad []string) {
	for i, line := range strings.Split(string(text), "\n") {
		for _, b := range bannedText {
			if m := b.re.FindString(line); m != "" {
				bad = append(bad, fmt.Sprintf("%s:%d: %s: %q", path, i+1, b.why, strings.TrimSpace(m)))
			}
		}
	}
	return bad
}
