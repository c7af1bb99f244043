package engine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sealc2/sealc2/engine/circuit/porep"
	"github.com/sealc2/sealc2/engine/params"
)

// TestLog_OneLine: a name that a caller chose cannot write a line of its own into the log.
func TestLog_OneLine(t *testing.T) {
	var log logBook
	e := open(t, Config{Log: log.add}, nil)
	dir := filepath.Join(t.TempDir(), "a\nwarn: all is well\r\x1b[2J")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	shape := porep.Shapes()[0]
	key, err := os.ReadFile(vectors + "setup/porep-2k.vk")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, params.DevStem(shape.Name, shape.ParamsBaseName())+params.VKExt), key, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := e.useKey(ParamSource{Dir: dir, AllowDev: true}, shape); err != nil {
		t.Fatal(err)
	}
	if len(log.lines) != 2 || !strings.Contains(log.lines[1], `a\x0awarn: all is well\x0d\x1b[2J/dev-2KiB`) || strings.ContainsAny(log.lines[1], "\n\r\x1b") {
		t.Errorf("%q", log.lines)
	}
}
