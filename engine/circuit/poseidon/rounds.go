package poseidon

import "math"

// The security level in bits, and the field size for which neptune computes round numbers (256, not 255).
const (
	securityBits   = 128
	roundFieldBits = 256
)

// roundNumbers returns the full and partial rounds of a width: the fewest S-boxes among all choices that
// meet the inequalities of the Poseidon paper, with its security margin of two full rounds and 7.5% partial
// rounds. The arithmetic is in float32 as in neptune, whose results are the standard.
func roundNumbers(width int) (full, partial int) {
	fewest := math.MaxInt
	for try := 2; try <= 1000; try += 2 {
		// Once a choice is secure, the margin stays added for the rest of this row: neptune (and the script
		// that it ports) changes its loop variable. The cheaper first hit wins either way.
		fullTry := try
		for partialTry := 4; partialTry < 200; partialTry++ {
			if !secure(width, fullTry, partialTry) {
				continue
			}
			fullTry += 2
			withMargin := int(math.Ceil(float64(float32(1.075) * float32(partialTry))))
			cost := width*fullTry + withMargin
			if cost < fewest || cost == fewest && fullTry < full {
				full, partial, fewest = fullTry, withMargin, cost
			}
		}
	}
	return full, partial
}

// secure checks the statistical, interpolation and Groebner basis inequalities.
func secure(width, full, partial int) bool {
	const n, m = float32(roundFieldBits), float32(securityBits)
	t, rp := float32(width), float32(partial)
	statistical := float32(6)
	if m > float32((n-3)*(t+1)) {
		statistical = 10
	}
	log2t := float32(math.Log2(float64(t)))
	interpolation := float32(float32(float32(0.43)*m)+log2t) - rp
	groebner1 := float32(float32(0.21)*n) - rp
	groebner2 := float32(float32(float32(float32(0.14)*n)-1)-rp) / float32(t-1)
	least := math.Max(math.Max(float64(statistical), float64(interpolation)), math.Max(float64(groebner1), float64(groebner2)))
	return float64(full) >= math.Ceil(least)
}
