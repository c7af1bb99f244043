package hosts

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// uncaughtGoroutines are the goroutines of a file that catch no panic: neither their own function nor one that
// it calls, and that stands in the same file, defers Recover.
func uncaughtGoroutines(set *token.FileSet, file *ast.File) (bad []token.Position) {
	catching := map[string]bool{} // functions by name, and literals by the variable that holds them
	catches := func(n ast.Node) (found bool) {
		ast.Inspect(n, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.DeferStmt:
				found = found || isRecover(x)
			case *ast.CallExpr:
				if id, ok := x.Fun.(*ast.Ident); ok {
					found = found || catching[id.Name]
				}
			}
			return !found
		})
		return found
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.FuncDecl:
			if x.Body != nil {
				for _, s := range x.Body.List {
					if d, ok := s.(*ast.DeferStmt); ok && isRecover(d) {
						catching[x.Name.Name] = true
					}
				}
			}
		case *ast.AssignStmt:
			for i, right := range x.Rhs {
				if id, ok := x.Lhs[min(i, len(x.Lhs)-1)].(*ast.Ident); ok {
					if lit, ok := right.(*ast.FuncLit); ok && catches(lit.Body) {
						catching[id.Name] = true
					}
				}
			}
		}
		return true
	})
	ast.Inspect(file, func(n ast.Node) bool {
		var started ast.Expr
		switch x := n.(type) {
		case *ast.GoStmt:
			started = x.Call.Fun
		case *ast.CallExpr:
			if sel, ok := x.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Go" && len(x.Args) == 1 {
				started = x.Args[0]
			}
		}
		switch f := started.(type) {
		case nil:
		case *ast.FuncLit:
			if !catches(f.Body) {
				bad = append(bad, set.Position(f.Pos()))
			}
		case *ast.Ident:
			if !catching[f.Name] {
				bad = append(bad, set.Position(f.Pos()))
			}
		default:
			bad = append(bad, set.Position(f.Pos()))
		}
		return true
	})
	return bad
}

// Goal: no goroutine of the library can end the host. Method: each go statement and each Go method of engine, cuda and
// capi starts a function that defers status.Recover, or calls one that does. A source that does not is found.
func TestGoroutines_Catch(t *testing.T) {
	check := func(path string, text []byte) []token.Position {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		return uncaughtGoroutines(set, file)
	}
	for source, want := range map[string]int{
		"go func() { f() }()":                   1,
		"go f()":                                1,
		"group.Go(func() error { return nil })": 1,
		"go func() { defer wg.Done(); defer status.Recover(op, &err) }()":           0,
		"work := func() { defer status.Recover(op, &err) }; go func() { work() }()": 0,
	} {
		if got := check("a.go", []byte("package a\nfunc g() { "+source+" }\n")); len(got) != want {
			t.Errorf("%s: want %d found, got %d", source, want, len(got))
		}
	}
	goroutines := 0
	for _, room := range []string{"engine", "cuda", "capi"} {
		err := filepath.WalkDir(filepath.Join(root, room), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			goroutines += strings.Count(string(text), "go func") + strings.Count(string(text), ".Go(")
			for _, at := range check(path, text) {
				t.Errorf("%v: a goroutine that catches no panic", at)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if goroutines < 10 {
		t.Errorf("found only %d goroutines", goroutines)
	}
}
