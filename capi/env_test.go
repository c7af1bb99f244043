package main

import (
	"testing"

	"github.com/sealc2/sealc2/engine"
)

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestParamSource(t *testing.T) {
	const cache, verify, dev = "FIL_PROOFS_PARAMETER_CACHE", "FIL_PROOFS_VERIFY_PRODUCTION_PARAMS", "SEALC2_ALLOW_DEV_PARAMS"
	const home = "/var/tmp/filecoin-proof-parameters/"
	const unset, call = "the default, FIL_PROOFS_PARAMETER_CACHE is not set", "the call"
	for _, c := range []struct {
		name string
		env  func(string) string
		dir  string
		dev  uint32
		want engine.ParamSource
	}{
		{"nothing set", env(), "", devParamsEnv, engine.ParamSource{Dir: home, Origin: unset}},
		{"empty is unset", env(cache, ""), "", devParamsEnv, engine.ParamSource{Dir: home, Origin: unset}},
		{"environment", env(cache, "/p", verify, "1", dev, "1"), "", devParamsEnv, engine.ParamSource{Dir: "/p", Origin: cache, AllowDev: true, VerifyProduction: true}},
		{"argument wins", env(cache, "/p"), "/q", devParamsEnv, engine.ParamSource{Dir: "/q", Origin: call}},
		{"an argument does not allow", env(), "/q", devParamsEnv, engine.ParamSource{Dir: "/q", Origin: call}},
		{"allowed by argument", env(), "", devParamsAllow, engine.ParamSource{Dir: home, Origin: unset, AllowDev: true}},
		{"refused by argument", env(dev, "1"), "", devParamsRefuse, engine.ParamSource{Dir: home, Origin: unset}},
		{"only 1 allows", env(dev, "true", verify, "0"), "", devParamsEnv, engine.ParamSource{Dir: home, Origin: unset}},
		{"words", env(verify, "True"), "", devParamsEnv, engine.ParamSource{Dir: home, Origin: unset, VerifyProduction: true}},
	} {
		if got := paramSource(c.env, c.dir, c.dev); got != c.want {
			t.Errorf("%s: want %+v, got %+v", c.name, c.want, got)
		}
	}
}

func TestParseLogLevel(t *testing.T) {
	for text, want := range map[string]string{
		"": "off", "info": "info", "DEBUG": "debug", "off": "off", "trace": "trace",
		"filecoin_proofs=debug": "off", "filecoin_proofs=debug,warn": "warn",
		"error,sealc2=debug": "debug", "debug,sealc2=off": "off", "sealc2": "trace", "info/regex": "info", "nonsense": "off",
	} {
		if got := logLevels[parseLogLevel(text)]; got != want {
			t.Errorf("RUST_LOG=%q: want %s, got %s", text, want, got)
		}
	}
}
