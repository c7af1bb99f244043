package lanes

import "golang.org/x/sys/cpu"

// fast is set once; tests clear it to run the plain functions.
var fast = cpu.X86.HasAVX512F && cpu.X86.HasAVX512IFMA

// Fast says whether this machine has the instructions that the package is for.
func Fast() bool { return fast }

func mul(dst, a, b *Block) {
	if fast {
		mulIFMA(dst, a, b, &constants)
		return
	}
	mulGeneric(dst, a, b)
}

func add(dst, a, b *Block) {
	if fast {
		addIFMA(dst, a, b, &constants)
		return
	}
	addGeneric(dst, a, b)
}

func sub(dst, a, b *Block) {
	if fast {
		subIFMA(dst, a, b, &constants)
		return
	}
	subGeneric(dst, a, b)
}

func fold(dst, a, b, c *Block) {
	if fast {
		foldIFMA(dst, a, b, c, &constants)
		return
	}
	foldGeneric(dst, a, b, c)
}

func negate(b *Block, mask uint8) {
	if fast {
		negateIFMA(b, uint64(mask), &constants)
		return
	}
	negateGeneric(b, mask)
}

func load(dst *Block, rows *[Width]*Row, offset uintptr) {
	if fast {
		loadIFMA(dst, rows, offset)
		return
	}
	loadGeneric(dst, rows, offset)
}

func store(src *Block, rows *[Width]*Row, offset uintptr) {
	if fast {
		storeIFMA(src, rows, offset)
		return
	}
	storeGeneric(src, rows, offset)
}

//go:noescape
func mulIFMA(dst, a, b *Block, t *tables)

//go:noescape
func addIFMA(dst, a, b *Block, t *tables)

//go:noescape
func subIFMA(dst, a, b *Block, t *tables)

//go:noescape
func foldIFMA(dst, a, b, c *Block, t *tables)

//go:noescape
func negateIFMA(b *Block, mask uint64, t *tables)

//go:noescape
func loadIFMA(dst *Block, rows *[Width]*Row, offset uintptr)

//go:noescape
func storeIFMA(src *Block, rows *[Width]*Row, offset uintptr)
