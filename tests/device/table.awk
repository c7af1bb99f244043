# Prints the table of figures, in Markdown, from what the benchmarks print: lines with "median MS ms [MIN, MAX]" or
# "MS ms [MIN, MAX]" and "floor MS ms". A row is the sum of its lines; a row that lacks one ends with an error.
function row(what, must, aim, unit, peer, lines) {
	rows++
	name[rows] = what; most[rows] = must; goal[rows] = aim; unitOf[rows] = unit; best[rows] = peer
	count[rows] = split(lines, part, ";")
	for (i = 1; i <= count[rows]; i++) start[rows, i] = part[i]
}
function number(text, before) { # the number behind `before`
	if (!match(text, before "[0-9.]+")) return -1
	text = substr(text, RSTART, RLENGTH)
	match(text, /[0-9.]+$/)
	return substr(text, RSTART) + 0
}
function show(ms, unit) { return unit == "s" ? sprintf("%.3g s", ms / 1000) : sprintf(ms < 100 ? "%.1f ms" : "%.0f ms", ms) }
BEGIN {
	# must and aim in ms
	row("H MSM, 2^27-1 uniform scalars, points in VRAM", 520, 440, "ms", "1.10 s", "RESULT g1 134217727 scalars:")
	row("NTT 2^27, forward", 42, 32, "ms", "44.5-51.8 ms", "BenchmarkTransforms/full/forward/coset=false:")
	row("NTT 2^27, forward, to the coset", 42, 32, "ms", "", "BenchmarkTransforms/full/forward/coset=true:")
	row("NTT 2^27, inverse with 1/n", 42, 32, "ms", "", "BenchmarkTransforms/full/inverse/coset=false:")
	row("NTT 2^27, inverse with 1/n, from the coset", 42, 32, "ms", "", "BenchmarkTransforms/full/inverse/coset=true:")
	row("quotient 2^27 from evaluated rows", 300, 220, "ms", "0.41 s", "BenchmarkTransforms/full/quotient:")
	row("bitmap sums at 32 GiB PoRep densities: L, A, B1, B2", 250, 120, "ms", "0.95 s GPU + 1.5 s CPU", \
		"RESULT g1 PoRep l,;RESULT g1 PoRep a,;RESULT g1 PoRep b_g1,;RESULT g2 PoRep b_g2,")
	row("the same at WindowPoSt 32 GiB densities (99% field elements)", 2600, 1900, "s", "", \
		"RESULT g1 PoSt l,;RESULT g1 PoSt a,;RESULT g1 PoSt b_g1,;RESULT g2 PoSt b_g2,")
	row("evaluate and row check, 32 GiB", 150, 80, "ms", "CPU", "BenchmarkEvaluate/all:")
	row("2 KiB proof, parameters resident", 200, 80, "ms", "", "RESULT 2 KiB proof:")
	row("development SRS of 32 GiB made in VRAM", 60000, 20000, "s", "", "RESULT development SRS of porep-32g:")
	stalling = "RESULT stalling calls: "
}
index($0, stalling) { stalls = number($0, stalling) + 0; proofs = number($0, " in "); haveStalls = 1 }
{
	for (r = 1; r <= rows; r++)
		for (i = 1; i <= count[r]; i++)
			if ((at = index($0, start[r, i])) && !((r, i) in seen)) {
				seen[r, i] = 1
				found[r]++
				rest = substr($0, at + length(start[r, i]))
				sub(/ ms \[/, " ms[", rest)
				match(rest, /[0-9.]+ ms\[[0-9.]+, [0-9.]+\]/)
				split(substr(rest, RSTART, RLENGTH), v, / ms\[|, |\]/)
				median[r] += v[1]; low[r] += v[2]; high[r] += v[3]
				floor[r] += number(rest, "floor [a-z ]*")
			}
}
END {
	print "| what | must | aim | measured | met | floor | distance | best peer on the same card |"
	print "| --- | --- | --- | --- | --- | --- | --- | --- |"
	for (r = 1; r <= rows; r++) {
		if (found[r] < count[r]) {
			printf "| %s | %s | %s | not measured | | | | %s |\n", name[r], show(most[r], unitOf[r]), show(goal[r], unitOf[r]), best[r]
			missing = 1
			continue
		}
		met = median[r] <= goal[r] ? "aim" : median[r] <= most[r] ? "must" : "no"
		printf "| %s | %s | %s | **%s** [%s, %s] | %s | %s | %.2f | %s |\n", name[r], show(most[r], unitOf[r]), show(goal[r], unitOf[r]), \
			show(median[r], unitOf[r]), show(low[r], unitOf[r]), show(high[r], unitOf[r]), met, show(floor[r], unitOf[r]), median[r] / floor[r], best[r]
	}
	if (haveStalls) printf "| stalling calls in steady state | 0 | 0 | **%d** in %d proofs | %s | 0 | | |\n", stalls, proofs, stalls == 0 ? "aim" : "no"
	else missing = 1
	exit missing
}
