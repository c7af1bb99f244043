package params

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/sealc2/sealc2/engine/status"
)

// Where the field keeps parameter sets, and how it names them.
const (
	// EnvDir is the variable that names the directory; empty counts as unset, as the Go fetchers take it.
	EnvDir = "FIL_PROOFS_PARAMETER_CACHE"
	// DefaultDir is the directory without it.
	DefaultDir = "/var/tmp/filecoin-proof-parameters/"

	ParamsExt = ".params"
	VKExt     = ".vk"

	referencePrefix = "v28-"
	devPrefix       = "dev-"
)

// Dir is a directory of parameter sets and a note of where the choice came from, for error text.
type Dir struct {
	Path   string
	Origin string // as "FIL_PROOFS_PARAMETER_CACHE" or "--params"; may be empty
}

// EnvironmentDir is the directory that a value of EnvDir stands for; the caller has read the variable.
func EnvironmentDir(value string) Dir {
	if value == "" {
		return Dir{Path: DefaultDir, Origin: "the default, " + EnvDir + " is not set"}
	}
	return Dir{Path: value, Origin: EnvDir}
}

// EnvVerifyProduction is the variable that asks for Policy.VerifyProduction.
const EnvVerifyProduction = "FIL_PROOFS_VERIFY_PRODUCTION_PARAMS"

// IsOn reads a switch as the settings of rust-fil-proofs do; what is neither yes nor no is no.
func IsOn(value string) bool {
	switch strings.ToLower(value) {
	case "1", "true", "yes", "on":
		return true
	}
	return false
}

// note says where the directory came from, and always names the variable that could change it.
func (d Dir) note() string {
	switch {
	case d.Origin == "":
		return fmt.Sprintf("directory given by the caller, not by %s", EnvDir)
	case strings.Contains(d.Origin, EnvDir):
		return "directory from " + d.Origin
	default:
		return fmt.Sprintf("directory from %s, not from %s", d.Origin, EnvDir)
	}
}

// ReferenceStem is the file name without ending under which the reference's own code finds a set. base is
// the circuit's name and identifier hash, as porep's Shape.ParamsBaseName gives it.
func ReferenceStem(base string) string { return referencePrefix + base }

// DevStem is the file name without ending of a development set; shapeName is the command line's, "2KiB".
func DevStem(shapeName, base string) string { return devPrefix + shapeName + "-" + base }

// Set names the two files of one parameter set.
type Set struct {
	Params, VK string // full paths
	Base       string // circuit name and identifier hash; empty where the file's name has another form
	Dir        Dir
}

// Find returns the set of a shape in a directory, for proving: a reference name or a development name with
// both files. It refuses to choose where both names occur. Errors are of kind Params and name the full
// path and where the directory came from.
func Find(dir Dir, shapeName, base string) (Set, error) { return find(dir, shapeName, base, true) }

// FindKey is Find for verifying, which needs the .vk file only.
func FindKey(dir Dir, shapeName, base string) (Set, error) { return find(dir, shapeName, base, false) }

func find(dir Dir, shapeName, base string, proving bool) (Set, error) {
	const op = "params.Find"
	if err := checkDir(op, dir); err != nil {
		return Set{}, err
	}
	var there []Set
	var tried []string
	for _, stem := range []string{ReferenceStem(base), DevStem(shapeName, base)} {
		path := filepath.Join(dir.Path, stem)
		set := Set{Params: path + ParamsExt, VK: path + VKExt, Base: base, Dir: dir}
		tried = append(tried, set.Params)
		hasParams, err := exists(op, set.Params, dir)
		if err != nil {
			return Set{}, err
		}
		hasVK, err := exists(op, set.VK, dir)
		if err != nil {
			return Set{}, err
		}
		if hasParams || hasVK {
			there = append(there, set)
		}
	}
	switch len(there) {
	case 0:
		return Set{}, status.New(status.Params, op, dir.Path, fmt.Sprintf("parameters for %s: %s with its %s file", shapeName, strings.Join(tried, " or "), VKExt),
			fmt.Sprintf("none of them (%s)", dir.note()))
	case 1:
		return there[0], there[0].complete(op, proving)
	}
	return Set{}, status.New(status.Params, op, dir.Path, fmt.Sprintf("one parameter set for %s", shapeName),
		fmt.Sprintf("two: %s and %s; remove one or give the path of the other (%s)", there[0].Params, there[1].Params, dir.note()))
}

// SetAt returns the set to which a path belongs, which is one of its two files; both must be there. origin is
// that of Dir.
func SetAt(path, origin string) (Set, error) {
	const op = "params.SetAt"
	stem, ext := strings.TrimSuffix(path, filepath.Ext(path)), filepath.Ext(path)
	if ext != ParamsExt && ext != VKExt {
		return Set{}, status.New(status.Params, op, path, "a name ending in "+ParamsExt+" or "+VKExt, "ending "+fmt.Sprintf("%q", ext))
	}
	set := Set{Params: stem + ParamsExt, VK: stem + VKExt, Base: baseOf(filepath.Base(stem)), Dir: Dir{Path: filepath.Dir(path), Origin: origin}}
	return set, set.complete(op, true)
}

// baseOf takes the prefix off a stem; "" where it has neither form.
func baseOf(stem string) string {
	if base, ok := strings.CutPrefix(stem, referencePrefix); ok {
		return base
	}
	if rest, ok := strings.CutPrefix(stem, devPrefix); ok {
		_, base, _ := strings.Cut(rest, "-")
		return base
	}
	return ""
}

// complete checks that the files which a use needs are there.
func (s Set) complete(op string, proving bool) error {
	needed := []string{s.VK}
	if proving {
		needed = []string{s.Params, s.VK}
	}
	for _, path := range needed {
		ok, err := exists(op, path, s.Dir)
		if err != nil {
			return err
		}
		if !ok {
			what := "the parameters"
			if path == s.VK {
				what = "the verifying key"
			}
			return status.New(status.Params, op, path, what+" of this set", fmt.Sprintf("the file does not exist (%s)", s.Dir.note()))
		}
	}
	return nil
}

func checkDir(op string, dir Dir) error {
	info, err := os.Stat(dir.Path)
	if err != nil {
		return dirError(op, dir, err)
	}
	if !info.IsDir() {
		return status.New(status.Params, op, dir.Path, "a directory of parameter sets", fmt.Sprintf("another kind of file (%s)", dir.note()))
	}
	return nil
}

func dirError(op string, dir Dir, err error) error {
	got := "a directory that cannot be read"
	switch {
	case errors.Is(err, fs.ErrNotExist):
		got = "the directory does not exist"
	case errors.Is(err, fs.ErrPermission):
		got = "no permission to read the directory"
	}
	e := status.Wrap(status.Params, op, dir.Path, rootCause(err))
	e.Want, e.Got = "a directory of parameter sets", fmt.Sprintf("%s (%s)", got, dir.note())
	return e
}

// exists tells a missing file from one that cannot be looked at.
func exists(op, path string, dir Dir) (bool, error) {
	_, err := os.Stat(path)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	}
	e := status.Wrap(status.Params, op, path, rootCause(err))
	e.Got = fmt.Sprintf("the file cannot be looked at (%s)", dir.note())
	if errors.Is(err, fs.ErrPermission) {
		e.Got = fmt.Sprintf("no permission to look into the directory (%s)", dir.note())
	}
	return false, e
}
