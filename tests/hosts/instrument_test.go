package hosts

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// instrumented is a copy of the sources of engine and capi with a numbered point wherever a panic can be
// injected, for builds with go build -overlay. The tree and its ordinary builds know nothing of it, and a
// function or goroutine that is added tomorrow has its points without anybody's doing.
//
// Points are at the start of each function and after each defer of its outermost block. Functions that defer
// Recover, and those that goroutines start with, have points only behind it: what stands before is to be too
// little to panic. Deferred literals have none, since a panic before they gave up what was taken would keep it
// for ever, whoever caught it. Not instrumented are package status, which is what catches, and the few lines of capi that
// stand outside its guard.
type instrumented struct {
	overlay string   // path of the file for -overlay
	places  []string // of the points, by number; number 0 is no point
}

// recoverCall is how a goroutine and a stage catch.
const recoverCall = "status.Recover"

// outsideGuard are the functions of capi that run outside the guard of an export.
var outsideGuard = []string{"guard", "cText"}

// faultPoints is the file that the overlay adds to package status. The file that the variable names is shared
// with the host: words 0 to 3 are the armed point, whether it fires only once, and how often one fired; the
// words from 16 on say which points were passed.
const faultPoints = `package status

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"
)

var faultWords = mapFaults()

func mapFaults() []uint32 {
	path := os.Getenv("SEALC2_TEST_FAULTS")
	if path == "" {
		return nil
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		panic(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		panic(err)
	}
	data, err := syscall.Mmap(int(file.Fd()), 0, int(info.Size()), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		panic(err)
	}
	return unsafe.Slice((*uint32)(unsafe.Pointer(&data[0])), len(data)/4)
}

// FaultPoint panics where its point is armed.
func FaultPoint(point uint32) {
	if faultWords == nil {
		return
	}
	if seen := &faultWords[16+point]; atomic.LoadUint32(seen) == 0 {
		atomic.StoreUint32(seen, 1)
	}
	if atomic.LoadUint32(&faultWords[0]) != point {
		return
	}
	if faultWords[1] != 0 && !atomic.CompareAndSwapUint32(&faultWords[0], point, 0) {
		return
	}
	atomic.AddUint32(&faultWords[2], 1)
	panic(fmt.Sprintf("injected at point %d", point))
}
`

// instrument writes the copies and the overlay file into dir.
func instrument(t *testing.T, dir string) *instrumented {
	t.Helper()
	list := exec.Command("go", "list", "-deps", "-f", `{{if not .Standard}}{{$d := .Dir}}{{$p := .ImportPath}}{{range .GoFiles}}{{$p}} {{$d}}/{{.}}
{{end}}{{range .CgoFiles}}{{$p}} {{$d}}/{{.}}
{{end}}{{end}}`, "./capi", "./engine/synthetic")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	in := &instrumented{overlay: filepath.Join(dir, "overlay.json"), places: []string{""}}
	const module = "github.com/sealc2/sealc2/"
	replace := map[string]string{filepath.Join(root, "engine/status/fault_points.go"): filepath.Join(dir, "fault_points.go")}
	write(t, filepath.Join(dir, "fault_points.go"), []byte(faultPoints))
	for line := range strings.Lines(string(out)) {
		name, path, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !strings.HasPrefix(name, module) || strings.HasSuffix(name, "/status") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		copied := filepath.Join(dir, strings.ReplaceAll(strings.TrimPrefix(path, root+"/"), "/", "_"))
		write(t, copied, in.file(t, path, text))
		replace[path] = copied
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	write(t, in.overlay, data)
	if len(in.places) < 500 {
		t.Fatalf("only %d points in all sources", len(in.places)-1)
	}
	return in
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// file returns one source with its points.
func (in *instrumented) file(t *testing.T, path string, text []byte) []byte {
	t.Helper()
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, path, text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	relative := strings.TrimPrefix(path, root+"/")
	insertions := map[int]string{} // by offset
	point := func(at token.Pos, where string) {
		in.places = append(in.places, fmt.Sprintf("%s:%d (%s)", relative, set.Position(at).Line, where))
		insertions[set.Position(at).Offset] += fmt.Sprintf("; faults__.FaultPoint(%d); ", len(in.places)-1)
	}
	own := uncaught(parsed)
	body := func(block *ast.BlockStmt, name string, caught bool) {
		caught = caught && !slices.ContainsFunc(block.List, func(s ast.Stmt) bool { d, ok := s.(*ast.DeferStmt); return ok && isRecover(d) })
		if caught { // by whoever calls it
			insertions[set.Position(block.Lbrace).Offset+1] += " "
			in.places = append(in.places, fmt.Sprintf("%s:%d (%s)", relative, set.Position(block.Lbrace).Line, name))
			insertions[set.Position(block.Lbrace).Offset+1] += fmt.Sprintf("faults__.FaultPoint(%d); ", len(in.places)-1)
		}
		for _, s := range block.List {
			d, ok := s.(*ast.DeferStmt)
			if !ok {
				continue
			}
			caught = caught || isRecover(d)
			if caught {
				point(s.End(), name+", after defer")
			}
		}
	}
	var name string
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch f := n.(type) {
		case *ast.FuncDecl:
			name = f.Name.Name
			if f.Body == nil || strings.Contains(f.Doc.Text(), "go:nosplit") || name == "init" {
				return false
			}
			outside := parsed.Name.Name == "main" && (slices.Contains(outsideGuard, name) || strings.HasPrefix(name, "sealc2go_"))
			body(f.Body, name, !own[f.Name.Name] && !outside)
		case *ast.FuncLit:
			body(f.Body, "in "+name, !own[fmt.Sprint(f.Pos())])
		}
		return true
	})
	if len(insertions) == 0 {
		return text
	}
	insertions[set.Position(parsed.Name.End()).Offset] = `; import faults__ "github.com/sealc2/sealc2/engine/status"`
	var out bytes.Buffer
	for i, b := range text {
		out.WriteString(insertions[i])
		out.WriteByte(b)
	}
	return out.Bytes()
}

// callers are the methods whose last argument is called by a goroutine that is not ours, or once for ever
// (sync.OnceValue: a panic there would come again at each use).
var callers = []string{"Go", "AfterFunc", "OnceValue"}

// uncaught are the functions of a file whose start nobody could catch: those that goroutines start with, and
// deferred ones, which give up what was taken. Literals stand by their position, others by their name.
func uncaught(file *ast.File) map[string]bool {
	own := map[string]bool{}
	mark := func(e ast.Expr) {
		switch x := e.(type) {
		case *ast.FuncLit:
			own[fmt.Sprint(x.Pos())] = true
		case *ast.Ident:
			own[x.Name] = true
		case *ast.SelectorExpr:
			own[x.Sel.Name] = true
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.GoStmt:
			mark(x.Call.Fun)
		case *ast.DeferStmt:
			if _, ok := x.Call.Fun.(*ast.FuncLit); ok {
				mark(x.Call.Fun)
			}
		case *ast.CallExpr:
			if sel, ok := x.Fun.(*ast.SelectorExpr); ok && len(x.Args) > 0 && slices.Contains(callers, sel.Sel.Name) {
				mark(x.Args[len(x.Args)-1])
			}
		}
		return true
	})
	return own
}

func isRecover(d *ast.DeferStmt) bool {
	sel, ok := d.Call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	id, ok := sel.X.(*ast.Ident)
	return ok && id.Name+"."+sel.Sel.Name == recoverCall
}
