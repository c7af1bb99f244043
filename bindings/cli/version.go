package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/sealc2/sealc2/engine"
)

// versionJSON is the result of `version --json`.
type versionJSON struct {
	Name     string `json:"name"`
	Version  string `json:"version"`
	Revision string `json:"revision"` // of the source, where the build knows it
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// versionCommand is `version`.
func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArguments,
		RunE: func(*cobra.Command, []string) error {
			v := versionJSON{Name: "sealc2", Version: engine.Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
			if info, ok := debug.ReadBuildInfo(); ok {
				for _, s := range info.Settings {
					if s.Key == "vcs.revision" {
						v.Revision = s.Value
					}
				}
			}
			return a.result(v, func(w io.Writer) {
				fmt.Fprintf(w, "sealc2 %s %s %s %s\n", v.Version, v.Go, v.Platform, v.Revision)
			})
		},
	}
}
