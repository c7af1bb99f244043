package c1

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth bounds the nesting of values under unknown keys; known values nest by the grammar alone. It is
// the limit of serde_json.
const maxDepth = 128

// reader is a strict cursor over one JSON document (RFC 8259). It borrows data and never copies it. The
// 11 million tokens of a 32 GiB sector are nearly all small numbers in hashes: jsontext takes many times as
// long to read them as Parse for all its work, so readHash takes whole hashes and the rest is recursive descent.
type reader struct {
	data []byte
	pos  int
}

// peek skips whitespace and returns the next byte without taking it; 0 at the end of the document. (A 0
// byte in the document is never legal, so callers need not tell the two apart.)
func (r *reader) peek() byte {
	for r.pos < len(r.data) {
		switch c := r.data[r.pos]; c {
		case ' ', '\t', '\n', '\r':
			r.pos++
		default:
			return c
		}
	}
	return 0
}

// unexpected is the fault of finding something else than want at the cursor.
func (r *reader) unexpected(want string) *fault {
	got := r.excerpt() // steps over whitespace
	return &fault{want: want, got: got, offset: r.pos}
}

// excerptBytes bounds how much of a document goes into an error's text.
const excerptBytes = 40

// excerpt describes what stands at the cursor.
func (r *reader) excerpt() string {
	switch r.peek() {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		end := r.pos + 1
		for end < len(r.data) && r.data[end] != '"' && end-r.pos <= excerptBytes {
			end++
		}
		return "the string " + quote(r.data[r.pos+1:end])
	}
	if r.pos >= len(r.data) {
		return "the end of the document"
	}
	end := r.pos + 1
	for end < len(r.data) && end-r.pos < excerptBytes && isWord(r.data[end]) && isWord(r.data[r.pos]) {
		end++
	}
	if word := r.data[r.pos:end]; isWord(word[0]) {
		return string(word)
	}
	return strconv.QuoteToASCII(string(r.data[r.pos:end]))
}

// isWord reports whether c can be part of a number or a literal.
func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' || c == '+' || c == '.'
}

// quote quotes the start of a string for an error's text.
func quote(s []byte) string {
	if len(s) > excerptBytes {
		return strconv.QuoteToASCII(string(s[:excerptBytes])) + "..."
	}
	return strconv.QuoteToASCII(string(s))
}

// take takes the byte c.
func (r *reader) take(c byte, want string) *fault {
	if r.peek() != c {
		return r.unexpected(want)
	}
	r.pos++
	return nil
}

// end checks that nothing follows the document.
func (r *reader) end() *fault {
	if r.peek(); r.pos < len(r.data) {
		return r.unexpected("nothing after the document")
	}
	return nil
}

// str takes a string and returns what stands between its quotes, checked (escapes, control characters,
// UTF-8) but as it is written; escaped says that escapes are in it.
func (r *reader) str(want string) (raw []byte, escaped bool, f *fault) {
	if r.peek() != '"' {
		return nil, false, r.unexpected(want)
	}
	start := r.pos + 1
	for i := start; i < len(r.data); i++ {
		switch c := r.data[i]; {
		case c == '"':
			raw = r.data[start:i]
			if !utf8.Valid(raw) {
				return nil, false, &fault{want: "text in UTF-8", got: quote(raw), offset: r.pos}
			}
			r.pos = i + 1
			return raw, escaped, nil
		case c == '\\':
			n := escapeLen(r.data[i:])
			if n == 0 {
				return nil, false, &fault{want: "a legal escape", got: quote(r.data[i:min(i+6, len(r.data))]), offset: i}
			}
			escaped = true
			i += n - 1
		case c < 0x20:
			return nil, false, &fault{want: "control characters to be escaped", got: strconv.QuoteToASCII(string(rune(c))), offset: i}
		}
	}
	r.pos = len(r.data)
	return nil, false, r.unexpected("the end of a string")
}

// escapeLen is the length of the escape at the start of s, 0 if it is not legal. Surrogates must come in
// pairs, as everywhere in UTF-8.
func escapeLen(s []byte) int {
	if len(s) < 2 {
		return 0
	}
	switch s[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		high, ok := hex4(s[2:])
		if !ok || high>>10 == 0xDC00>>10 {
			return 0
		}
		if high>>10 != 0xD800>>10 {
			return 6
		}
		if len(s) < 12 || s[6] != '\\' || s[7] != 'u' {
			return 0
		}
		if low, ok := hex4(s[8:]); ok && low>>10 == 0xDC00>>10 {
			return 12
		}
	}
	return 0
}

// hex4 reads four hex digits.
func hex4(s []byte) (v uint32, ok bool) {
	if len(s) < 4 {
		return 0, false
	}
	for _, c := range s[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		v = v<<4 | uint32(c)
	}
	return v, true
}

// text takes a string and returns its value; it borrows from the document unless there are escapes in it.
func (r *reader) text(want string) ([]byte, *fault) {
	start := r.pos
	raw, escaped, f := r.str(want)
	if f != nil || !escaped {
		return raw, f
	}
	value, err := jsontext.AppendUnquote(nil, r.data[r.pos-len(raw)-2:r.pos])
	if err != nil { // str has checked all this, so this is a difference of opinion; refuse
		return nil, &fault{want: want, got: err.Error(), offset: start}
	}
	return value, nil
}

// uint takes an integer from 0 to limit. Signs, fractions, exponents and leading zeros are refused.
func (r *reader) uint(limit uint64) (uint64, *fault) {
	c := r.peek()
	start := r.pos
	refuse := func() *fault {
		r.pos = start
		return r.unexpected(fmt.Sprintf("an integer from 0 to %d", limit))
	}
	if c < '0' || c > '9' {
		return 0, refuse()
	}
	var v uint64
	for ; r.pos < len(r.data) && r.data[r.pos] >= '0' && r.data[r.pos] <= '9'; r.pos++ {
		high, low := bits.Mul64(v, 10)
		digit := uint64(r.data[r.pos] - '0')
		if high != 0 || low+digit < low || r.pos > start && v == 0 {
			return 0, refuse()
		}
		v = low + digit
	}
	if v > limit || r.pos < len(r.data) && isWord(r.data[r.pos]) {
		return 0, refuse()
	}
	return v, nil
}

// literal takes null, true or false.
func (r *reader) literal(word string) *fault {
	if r.peek(); !bytes.HasPrefix(r.data[r.pos:], []byte(word)) ||
		r.pos+len(word) < len(r.data) && isWord(r.data[r.pos+len(word)]) {
		return r.unexpected(word)
	}
	r.pos += len(word)
	return nil
}

// members are the known keys of an object, at most 64; the first required of them must be there.
type members struct {
	keys     []string
	required int
}

// find returns the place of a key, -1 if it is unknown.
func (m *members) find(key []byte) int {
	for i, k := range m.keys {
		if k == string(key) {
			return i
		}
	}
	return -1
}

// object takes an object; each takes the value of the known key with the given place. Keys may come in any
// order; unknown ones are skipped.
func (r *reader) object(m *members, each func(place int) *fault) *fault {
	if f := r.take('{', "an object"); f != nil {
		return f
	}
	var seen uint64
	if r.peek() == '}' {
		r.pos++
	} else {
		for more := true; more; {
			r.peek()
			at := r.pos
			key, f := r.text("a key")
			if f != nil {
				return f
			}
			if f := r.take(':', "a colon"); f != nil {
				return f.key(label(key))
			}
			place := m.find(key)
			if place < 0 {
				if f := r.skip(maxDepth); f != nil {
					return f.key(label(key))
				}
			} else {
				if seen>>place&1 != 0 {
					return (&fault{want: "the key once", got: "it twice", offset: at}).key(m.keys[place])
				}
				seen |= 1 << place
				if f := each(place); f != nil {
					return f.key(m.keys[place])
				}
			}
			if more, f = r.more('}'); f != nil {
				return f
			}
		}
	}
	for place, key := range m.keys[:m.required] {
		if seen>>place&1 == 0 {
			return (&fault{want: "the key", got: "none in the object that ends", offset: r.pos}).key(key)
		}
	}
	return nil
}

// label is a key as a path shows it.
func label(key []byte) string {
	for _, c := range key {
		if c != '_' && !isWord(c) || c == '.' {
			return quote(key)
		}
	}
	if len(key) == 0 || len(key) > excerptBytes {
		return quote(key)
	}
	return string(key)
}

// more takes what follows a member or element: a comma (true) or the closing bracket (false).
func (r *reader) more(closing byte) (bool, *fault) {
	switch r.peek() {
	case ',':
		r.pos++
		return true, nil
	case closing:
		r.pos++
		return false, nil
	}
	return false, r.unexpected("a comma or " + string(rune(closing)))
}

// array takes an array of exactly n elements, n > 0; what names them, in the plural.
func (r *reader) array(n int, what string, each func(i int) *fault) *fault {
	return r.arrayBetween(n, n, what, each)
}

// arrayBetween is array with least to n items.
func (r *reader) arrayBetween(least, n int, what string, each func(i int) *fault) *fault {
	want := func() string {
		if least < n {
			return fmt.Sprintf("%d to %d %s", least, n, what)
		}
		return fmt.Sprintf("%d %s", n, what)
	}
	if r.peek() != '[' {
		return r.unexpected("an array of " + want())
	}
	at := r.pos
	r.pos++
	count := 0
	if r.peek() == ']' {
		r.pos++
	} else {
		for more := true; more; count++ {
			var f *fault
			if count < n {
				f = each(count)
			} else {
				f = r.skip(maxDepth)
			}
			if f != nil {
				return f.index(count)
			}
			if more, f = r.more(']'); f != nil {
				return f.index(count)
			}
		}
	}
	if count < least || count > n {
		return &fault{want: want(), got: fmt.Sprintf("%d in the array", count), offset: at}
	}
	return nil
}

// variant takes an object whose only member is tag: an enum of serde. why says where the tag follows from.
func (r *reader) variant(tag, why string, each func() *fault) *fault {
	if r.peek() != '{' {
		return r.unexpected("an object with the member " + tag)
	}
	r.pos++
	want := func() string { return fmt.Sprintf("the member %s (%s)", tag, why) }
	if r.peek() == '}' {
		return &fault{want: want(), got: "an empty object", offset: r.pos}
	}
	at := r.pos
	key, f := r.text("a key")
	if f != nil {
		return f
	}
	if string(key) != tag {
		return &fault{want: want(), got: quote(key), offset: at}
	}
	if f := r.take(':', "a colon"); f != nil {
		return f.key(tag)
	}
	if f := each(); f != nil {
		return f.key(tag)
	}
	if r.peek() == ',' {
		return &fault{want: "no member besides " + tag, got: "another one", offset: r.pos}
	}
	return r.take('}', "the end of the object")
}

// skip takes any value, checking its syntax, with at most depth levels of nesting.
func (r *reader) skip(depth int) *fault {
	c := r.peek()
	switch {
	case c == '{' || c == '[':
		if depth == 0 {
			return &fault{want: fmt.Sprintf("at most %d levels of nesting", maxDepth), got: "more", offset: r.pos}
		}
		return r.skipNested(c == '{', depth-1)
	case c == '"':
		_, _, f := r.str("a string")
		return f
	case c == 't':
		return r.literal("true")
	case c == 'f':
		return r.literal("false")
	case c == 'n':
		return r.literal("null")
	case c == '-' || c >= '0' && c <= '9':
		return r.number()
	}
	return r.unexpected("a value")
}

// skipNested takes the object or array at the cursor.
func (r *reader) skipNested(object bool, depth int) *fault {
	closing := byte(']')
	if object {
		closing = '}'
	}
	r.pos++
	if r.peek() == closing {
		r.pos++
		return nil
	}
	for i, more := 0, true; more; i++ {
		var key []byte
		var f *fault
		if object {
			if key, f = r.text("a key"); f != nil {
				return f
			}
			f = r.take(':', "a colon")
		}
		if f == nil {
			f = r.skip(depth)
		}
		if f == nil {
			more, f = r.more(closing)
		}
		if f != nil && object {
			return f.key(label(key))
		}
		if f != nil {
			return f.index(i)
		}
	}
	return nil
}

// number takes any number of the JSON grammar.
func (r *reader) number() *fault {
	at := func(i int) byte {
		if i < len(r.data) {
			return r.data[i]
		}
		return 0
	}
	digits := func(i int) int {
		for c := at(i); c >= '0' && c <= '9'; c = at(i) {
			i++
		}
		return i
	}
	i := r.pos
	if at(i) == '-' {
		i++
	}
	from := i
	if i = digits(i); i > from && (at(from) != '0' || i == from+1) {
		ok := true
		if at(i) == '.' {
			from, i = i+1, digits(i+1)
			ok = i > from
		}
		if c := at(i); ok && (c == 'e' || c == 'E') {
			if c = at(i + 1); c == '+' || c == '-' {
				i++
			}
			from, i = i+1, digits(i+1)
			ok = i > from
		}
		if ok && !isWord(at(i)) {
			r.pos = i
			return nil
		}
	}
	return r.unexpected("a number")
}

// span is a piece of a document.
type span struct{ start, end int }

// inner collects where the elements of an array that is leapt over end, or those of an object's members that are arrays: in
// short, where partitions may end. What it has is a guess until somebody has read them.
type inner struct {
	ends  [maxInner]int
	count int
}

// maxInner is more than any proof has partitions; of a document with more elements the rest is not kept.
const maxInner = 128

// leap finds the end of the value at the cursor without checking it: whoever reads the value later must do that, and must
// end at the same place. list, unless it is nil, gets its inner elements.
func (r *reader) leap(list *inner) (span, *fault) {
	start, end := 0, 0
	switch c := r.peek(); c {
	case '"':
		start, end = r.pos, stringEnd(r.data, r.pos)
	case '{', '[':
		start, end = r.pos, bracketEnd(r.data, r.pos, list)
	default:
		start = r.pos
		f := r.skip(maxDepth)
		return span{start, r.pos}, f
	}
	if end < 0 {
		// The careful way finds the place of the damage.
		f := r.skip(maxDepth)
		if f == nil {
			f = r.unexpected("a value")
		}
		return span{}, f
	}
	r.pos = end
	return span{start, end}, nil
}

// blockBytes is what passBlocks takes at a time.
const blockBytes = 64

// bracketEnd is the place after the object or array that starts at data[at], -1 if it has no end. Brackets are counted
// whatever their kind.
func bracketEnd(data []byte, at int, list *inner) int {
	level := 1 // the depth that is left when an inner element ends
	if data[at] == '{' {
		level = 2
	}
	depth, quoted := 0, uint64(0)
	for at < len(data) {
		if blocks := (len(data) - at) / blockBytes; wideBlocks && depth > level && blocks > 0 {
			var passed int
			passed, depth, quoted = passBlocks(&data[at], blocks, depth, level, quoted)
			at += passed * blockBytes
		}
		for stop := min(at+blockBytes, len(data)); at < stop; at++ {
			if quoted == 0 && at+8 <= len(data) && dull(binary.LittleEndian.Uint64(data[at:])) {
				at += 7
				continue
			}
			switch c := data[at]; {
			case c == '"':
				quoted = ^quoted
			case quoted != 0:
				if c == '\\' {
					at++ // may be past stop
				}
			case c == '[' || c == '{':
				depth++
			case c == ']' || c == '}':
				depth--
				if depth == 0 {
					return at + 1
				}
				if depth == level && list != nil && list.count < maxInner {
					list.ends[list.count] = at + 1
					list.count++
				}
			}
		}
	}
	return -1
}

// dull tells that none of eight bytes is a quote or a bracket, which have bit 6, or neither of bits 3 and 4. Digits and commas
// are dull, and so are the insides of hashes.
func dull(word uint64) bool {
	return word&0x4040404040404040|^(word|word>>1)&0x0808080808080808 == 0
}

// stringEnd is the place after the string that starts at data[start], -1 if it has no end.
func stringEnd(data []byte, start int) int {
	for at := start + 1; ; {
		quoted := bytes.IndexByte(data[at:], '"')
		if quoted < 0 {
			return -1
		}
		at += quoted + 1
		slashes := 0
		for data[at-2-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return at
		}
	}
}
