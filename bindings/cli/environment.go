package main

import (
	"path/filepath"

	"github.com/sealc2/sealc2/engine"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/params"
)

// The environment that the command line reads. The engine never does.
const (
	envParamDir         = params.EnvDir
	envVerifyProduction = params.EnvVerifyProduction
	envAllowDev         = "SEALC2_ALLOW_DEV_PARAMS"
	envThreads          = host.EnvThreads
	envCache            = "XDG_CACHE_HOME"
	envHome             = "HOME"
	envTemp             = "TMPDIR"
)

// paramsUsage explains --params.
const paramsUsage = "folder with the parameter files, or one of the two files of a set; empty: " + envParamDir

// paramSource says where keys come from. An explicit path is the user's own choice, so development keys
// are accepted there (each use is logged as a warning); what the environment leads to is accepted only
// with SEALC2_ALLOW_DEV_PARAMS=1.
func (a *app) paramSource(explicit string) engine.ParamSource {
	source := engine.ParamSource{Dir: explicit, Origin: "--params", AllowDev: true, VerifyProduction: params.IsOn(a.getenv(envVerifyProduction))}
	if explicit == "" {
		dir := params.EnvironmentDir(a.getenv(envParamDir))
		source.Dir, source.Origin = dir.Path, dir.Origin
		source.AllowDev = a.getenv(envAllowDev) == "1"
	}
	return source
}

// cacheDir is the folder for what need not be worked out again; "" where the environment names none. Relative
// paths count as none, as the XDG base directory specification has it.
func (a *app) cacheDir() string {
	if dir := a.getenv(envCache); filepath.IsAbs(dir) {
		return filepath.Join(dir, "sealc2")
	}
	if home := a.getenv(envHome); filepath.IsAbs(home) {
		return filepath.Join(home, ".cache", "sealc2")
	}
	return ""
}
