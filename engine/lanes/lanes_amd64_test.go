package lanes

import "testing"

func withoutFast(t *testing.T) {
	was := fast
	fast = false
	t.Cleanup(func() { fast = was })
}
