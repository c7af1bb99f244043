package c1

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sealc2/sealc2/engine/status"
)

// fault is what is wrong with a document. It is made where the trouble is found and gets its path on the
// way out, so that a good document pays nothing for paths.
type fault struct {
	path      []string // innermost first
	want, got string
	offset    int // in the document; -1 where no single place is to blame
}

// key says that f happened in the value of a key. Legal on nil.
func (f *fault) key(name string) *fault {
	if f != nil {
		f.path = append(f.path, "."+name)
	}
	return f
}

// index says that f happened in element i of an array. Legal on nil.
func (f *fault) index(i int) *fault {
	if f != nil {
		f.path = append(f.path, "["+strconv.Itoa(i)+"]")
	}
	return f
}

// pathBytes bounds the two ends of a path in an error's text.
const pathBytes = 200

// err makes the Error of op. root names the document where the path is empty.
func (f *fault) err(op, root string) error {
	if f == nil {
		return nil
	}
	var path strings.Builder
	for i := len(f.path) - 1; i >= 0; i-- {
		path.WriteString(f.path[i])
	}
	where := strings.TrimPrefix(path.String(), ".")
	switch {
	case where == "":
		where = root
	case len(where) > 2*pathBytes: // a hostile document: a real path has at most 150 bytes
		where = where[:pathBytes] + " ... " + where[len(where)-pathBytes:]
	}
	got := f.got
	if f.offset >= 0 {
		got = fmt.Sprintf("%s at byte %d", got, f.offset)
	}
	return status.New(status.Input, op, where, f.want, got)
}
