//go:build !amd64

package lanes

// Fast says whether this machine has the instructions that the package is for.
func Fast() bool { return false }

func mul(dst, a, b *Block)                                { mulGeneric(dst, a, b) }
func add(dst, a, b *Block)                                { addGeneric(dst, a, b) }
func sub(dst, a, b *Block)                                { subGeneric(dst, a, b) }
func fold(dst, a, b, c *Block)                            { foldGeneric(dst, a, b, c) }
func negate(b *Block, mask uint8)                         { negateGeneric(b, mask) }
func load(dst *Block, rows *[Width]*Row, offset uintptr)  { loadGeneric(dst, rows, offset) }
func store(src *Block, rows *[Width]*Row, offset uintptr) { storeGeneric(src, rows, offset) }
