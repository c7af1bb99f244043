//go:build !amd64

package lanes

import "testing"

func withoutFast(*testing.T) {}
