# The table of whole jobs, as markdown, from what `sealc2 bench prove --json` wrote: one file a row, whose name says which.
#
#   awk -f jobs.awk ten.json one.json ...
#
# Each number stands on a line of its own, behind the name of the object it is in.
function name(text) { sub(/^[ \t]*"/, "", text); sub(/".*/, "", text); return text }
FNR == 1 { file = FILENAME; sub(/.*\//, "", file); sub(/\.json$/, "", file); object = ""; have[file] = 1 }
/: \{$/ && NF == 2 { object = name($0) "."; next }
/^  [}\]]/ { object = "" }
/": -?[0-9.e+-]+,?$/ { value = $2; sub(/,$/, "", value); key = file ":" object name($0); if (!(key in v)) v[key] = value + 0 }
function seconds(x) { return sprintf(x < 10 ? "%.2f s" : "%.1f s", x) }
# verdict compares with the aim, then with the least that there must be; more says that more is better.
function verdict(x, must, aim, more) { if (more) { x = -x; must = -must; aim = -aim } return x <= aim ? "aim" : x <= must ? "must" : "no" }
function row(what, must, aim, x, text, peer, more) { printf "| %s | %s | %s | **%s** | %s | %s |\n", what, must, aim, text, verdict(x, must == "works" ? works : must + 0, aim + 0, more), peer }
function time(what, must, aim, x, peer) { row(what, must == works ? "works" : must " s", aim " s", x, seconds(x), peer) }
BEGIN { works = 1e9 }
END {
  floor = 0.65
  print "| what | must | aim | measured | met | best peer on the same card |\n| --- | --- | --- | --- | --- | --- |"
  if (have["ten"]) {
    time("GPU-busy per 32 GiB partition, from compact witness (floor " seconds(floor) ")", 1.2, 0.85, v["ten:device_busy_per_partition_s.median"], "2.31 s")
    time("C1 JSON to ten verified partitions, SRS resident (floor " seconds(10 * floor) ")", 13, 8.7, v["ten:wall_s.median"], "17-18 s without any synthesis")
  }
  if (have["one"]) time("one partition alone, C1 to proof", 2.5, 1.5, v["one:wall_s.median"], "5.9 s after synthesis")
  if (have["ten"]) time("cold: process start to ten verified proofs, `.params` in the page cache", 30, 16, v["ten:cold_s"], "30-90 s SRS load alone")
  if (have["explicit"]) time("ten from explicit assignments, one set of pageable vectors used ten times", 15, 9.5, v["explicit:wall_s.median"], "17-18 s pinned, about 34 s pageable")
  if (have["15GiB"]) time("ten with `--device-memory 15GiB`, SRS pinned on the host", 17, 11, v["15GiB:wall_s.median"], "17-18 s at 16.2 GiB")
  if (have["12GiB"]) time("ten with 12 GiB", works, 20, v["12GiB:wall_s.median"], "none")
  if (have["8GiB"]) time("ten with 8 GiB", works, 30, v["8GiB:wall_s.median"], "none")
  if (have["ten"]) {
    x = (v["ten:host.peak_rss_bytes"] - v["ten:host.caller_bytes"]) / 2 ^ 30
    row("peak host RSS, SRS in VRAM, caller's buffers not counted", "8 GiB", "4 GiB", x, sprintf("%.2f GiB", x), "65-85 GB")
  }
  if (have["two"] && have["ten"]) {
    x = v["ten:wall_s.median"] / v["two:wall_s.median"]
    row("two GPUs: ten partitions", "1.8x", "1.95x", x, sprintf("%.2fx", x), "", 1)
  }
  if (have["queued"]) {
    x = 100 * v["queued:device_busy_share"]
    row("GPU-busy share, jobs queued", "97%", "97%", x, sprintf("%.1f%%", x), "48.5%", 1)
  }
}
