package circuit

// A tape computes a template's own variables. Word registers hold up to 64 bits, field registers one element
// each; every op writes a fresh register, so a tape has no hidden state and can be run by any interpreter
// (a warp's lanes are the bits of a word on a GPU).

type opCode uint8

const (
	opWordConst  opCode = iota // w[dst] = imm
	opWordInput                // w[dst] = Words[a]
	opWordGather               // w[dst] = bits by lists[a : a+b], least significant first: gatherEntry each
	opRotr                     // w[dst] = rotate right the 32-bit w[a] by b
	opShr                      // w[dst] = w[a] >> b
	opXor                      // w[dst] = w[a] ^ w[b]
	opAnd                      // w[dst] = w[a] & w[b]
	opNot                      // w[dst] = ^w[a] & imm
	opChoose                   // w[dst] = (w[a] & w[b]) ^ (^w[a] & w[c])
	opMajority                 // w[dst] = majority of w[a], w[b], w[c]
	opAdd                      // w[dst] = sum of the low 32 bits of the registers lists[a : a+b]
	opStore                    // own aux: bit i of w[a]^w-negation for each i in mask, see storeOp
	opFieldConst               // f[dst] = coeff[a]
	opFieldInput               // f[dst] = Fields[a]
	opFieldGet                 // f[dst] = external wire a
	opMul                      // f[dst] = f[a] * f[b]
	opAddField                 // f[dst] = f[a] + f[b]
	opLinear                   // f[dst] = sum of coeff[lists[i]] * f[lists[i+1]] over lists[a : a+2b]
	opSelect                   // f[dst] = f[b] if bit 0 of w[a] else f[c]
	opToWords                  // w[dst .. dst+3] = canonical f[a], 64 bits each
	opFromWords                // f[dst] = w[a] + w[a+1] << 64 + ... over b registers
	opPutNum                   // own field element a = f[b]
	opPutInput                 // own public input a = f[b]
)

// op is one step. The meaning of a, b, c and imm is the code's.
type op struct {
	code    opCode
	stride  uint8 // opStore: distance of neighbouring bits among own aux
	dst     uint32
	a, b, c uint32
	imm     uint64 // constant, or opStore: which bits of the register are variables
	neg     uint64 // opStore: which of them are kept negated
}

// A gather entry is an external wire shifted left by two with a negation in bit 1, or a constant bit.
const (
	gatherZero     = 0
	gatherOne      = 1
	gatherExternal = 2 // flag: the rest is the wire
)

func gatherEntry(wire uint32, negated bool) uint32 {
	e := wire<<3 | gatherExternal
	if negated {
		e |= 4
	}
	return e
}
