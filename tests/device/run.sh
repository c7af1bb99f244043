#!/usr/bin/env bash
# Tests and measurements on a card, from a bundle that needs nothing but a driver (make device-bundle).
#
#   run.sh [step...]      the steps named, or all that have not succeeded yet
#   run.sh -l             the steps with their budgets in seconds
#
# Each step has a budget and is stopped at its end. What it prints goes to $STATE/step.log (default: state beside this
# script), what succeeded is remembered there, and a table with the times ends the run; after the step `table`, the figures,
# which $STATE/table.md keeps. Exit code 1 where a step failed.
#
#   TOOLS="memcheck"      for sanitize: some of compute-sanitizer's tools; SANITIZER names it where it is not on PATH
#   UNITS="msm ntt"       for sanitize: some of the packages
#   SHAPES="2KiB"         for params: some of the shapes
#   ROWS="ten one"        for jobs: some of the rows
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
STATE=${STATE:-$root/state}
mkdir -p "$STATE"
export SEALC2_TEST_DEVICE=cuda SEALC2_TEST_FATBIN=$root/kernels.fatbin SEALC2_PARAMS=${SEALC2_PARAMS:-$STATE/params}

# What each step is for stands at its function. Together 1,100 s.
steps=(driver:20 field:20 ntt:20 rows:20 msm:60 points:40 setup:30 kinds:20 tiny:20 params:50 oracle:50 full:80 rust:80
  faults:220 sector:60 sanitize:160 table:150)
more=(soak:60 hog:30 burst:220 cancel:40 urgent:60 policies:320 bench:300 jobs:580) # only by name
sanitizer=${SANITIZER:-$(command -v compute-sanitizer)}

# go NAME FOLDER ARGUMENTS runs a test binary where its package's folder would be.
go() {
  local name=$1 folder=$2
  shift 2
  (cd "$root/$folder" && "$root/bin/$name.test" -test.timeout 10m "$@")
}

# all PIDS waits for processes of this shell and fails where one did.
all() {
  local pid failed=0
  for pid in "$@"; do wait "$pid" || failed=1; done
  return $failed
}

# The case lists of the emulator, on the card and with larger sizes.
driver() { go driver cuda/driver -test.v -test.run 'TestCard' && go nvml cuda/nvml -test.v; }
field() { go kernels cuda/kernels -test.v; }
ntt() { go ntt cuda/ntt -test.v -test.skip Full; }
rows() { go rows cuda/rows -test.v -test.skip Full; }
msm() { go msm cuda/msm -test.v; }
points() { go points cuda/points -test.v; }
setup() { go setup cuda/setup -test.v && go engine engine -test.v -test.run 'TestSetup_.*GPU'; }
kinds() { go kinds cuda/kinds -test.v; }
tiny() { go cuda cuda -test.v -test.run 'TestProve|TestLoad'; }

# 2^27 elements and the rows of a 32 GiB sector, against the CPU.
full() { go ntt cuda/ntt -test.v -test.run Full && go rows cuda/rows -test.v -test.run Full; }

# Development parameters made on the card, whose bytes must be the reference's.
params() {
  local shape
  printf '#!/bin/sh\nexec "%s/bin/sealc2" "$@" --device cuda\n' "$root" >"$STATE/sealc2"
  chmod +x "$STATE/sealc2"
  for shape in 2KiB:porep-2k 16KiB:porep-16k 32KiB:porep-32k; do
    case " ${SHAPES:-2KiB 16KiB 32KiB} " in *" ${shape%%:*} "*) (cd "$root" && tests/params.sh "$STATE/sealc2" "${shape%%:*}" "${shape##*:}" "$SEALC2_PARAMS" any) || return 1 ;; esac
  done
}

# Sealed sectors' proofs, byte for byte.
oracle() { go engine engine -test.v -test.run 'TestProve_GPUEqualsReference|TestProveProgram_GPU'; }

# The reference's own code over libsealc2.so: PoRep and PoSts at 2 KiB, whose parameters take seconds. Those of an update take the
# reference's generator most of a minute: cases named "update" are left out here.
rust() {
  [ -x "$root/bin/proofs" ] || { echo "packed without cargo"; return 1; }
  SHAPES=2KiB params || return 1
  SEALC2_DEVICE=cuda SEALC2_LIB=$root/lib/libsealc2.so SEALC2_VECTORS=$root/tests/vectors RUST_LOG=sealc2=info RUST_BACKTRACE=1 \
    "$root/bin/proofs" --test-threads 1 --nocapture --skip update 2>&1 | tee "$STATE/rust.out" || return 1
  grep -q 'device cuda:' "$STATE/rust.out" || { echo "no line of the log says that a GPU was used"; return 1; }
}

# Each driver call of a small proof fails once, in four processes.
faults() {
  local part pids=()
  for part in 1 2 3 4; do
    SEALC2_TEST_PART=$part/4 go cuda cuda -test.v -test.run 'TestFaults_NextProofRight' &
    pids+=($!)
  done
  all "${pids[@]}"
}

# Sampled calls of a sector's proof.
sector() { SHAPES=2KiB params && go engine engine -test.v -test.run 'TestFaults_SectorOnCard'; }

# compute-sanitizer's tools over unit kernels in the emulator's sizes, and over a proof. Processes run side by side, since a tool is
# busy on one core. The rows of a 2 KiB sector are left out: millions, where a tool is up to a hundred times slower. What memory a
# tool knows are whole mappings of 2 MiB; those of the unit tests end with what was asked for, those of the proof do not.
sanitized() {
  local tool=$1 name=$2 folder=$3
  local log=$STATE/sanitize/$tool-$name.log begin=$SECONDS result=ok
  shift 3
  (cd "$root/$folder" && "$sanitizer" --tool "$tool" --report-api-errors no --error-exitcode 9 --print-limit 20 \
    "$root/bin/$name.test" -test.timeout 10m -test.v "$@") >"$log" 2>&1 || result="FAILED ($?)"
  grep -qE '(ERROR SUMMARY: 0 errors|RACECHECK SUMMARY: 0 hazards)' "$log" || result="FAILED (no clean summary)"
  grep -q -- '--- PASS' "$log" || result="FAILED (no test ran)"
  printf '%-9s %-8s %-26s %4d s  %s\n' "$tool" "$name" "$result" $((SECONDS - begin)) "$(grep -E 'SUMMARY' "$log" | tr -d '=' | head -n 1)"
  [ "$result" = ok ] || { grep -vE '^(=== RUN|=== CONT|=== PAUSE|    --- PASS)' "$log" | head -n 40; return 1; }
}
# canary TOOL: it must report a fault of its kind, or its silence elsewhere says nothing.
canary() {
  local log=$STATE/sanitize/$1-canary.log result=ok
  (cd "$root/cuda/kernels" && SEALC2_TEST_CANARY=$1 timeout -k 2 60 "$sanitizer" --tool "$1" --report-api-errors no --error-exitcode 9 --print-limit 3 \
    "$root/bin/kernels.test" -test.short -test.run '^TestCanary$') >"$log" 2>&1 && result="FAILED (a clean exit)"
  grep -qE 'SUMMARY: [1-9]' "$log" || result="FAILED (the planted fault is not reported)"
  printf '%-9s %-8s %-26s         %s\n' "$1" canary "$result" "$(grep -E 'SUMMARY' "$log" | tr -d '=' | head -n 1)"
  [ "$result" = ok ]
}
sanitize() {
  [ -n "$sanitizer" ] || { echo "compute-sanitizer is not on PATH"; return 1; }
  mkdir -p "$STATE/sanitize"
  local tool unit pids=()
  for tool in ${TOOLS:-memcheck racecheck initcheck synccheck}; do
    for unit in ${UNITS:-kernels ntt rows msm points setup kinds}; do
      sanitized "$tool" "$unit" "cuda/$unit" -test.short -test.skip 'Sector|Tuning' & pids+=($!)
    done
    canary "$tool" & pids+=($!)
    sanitized "$tool" cuda cuda -test.run 'TestProve_EqualsReference/tiny-1024/bits=true,vectors=false' & pids+=($!)
  done
  all "${pids[@]}"
}

# measured AS NAME FOLDER BENCH TIMES keeps what a benchmark prints, so that a run that was stopped goes on behind it.
measured() {
  local log=$STATE/bench/$1.log
  mkdir -p "$STATE/bench"
  [ ! -e "$log" ] || return 0
  go "$2" "$3" -test.run '^$' -test.bench "$4" -test.benchtime "$5" >"$log.part" 2>&1 && grep -q 'ns/op' "$log.part" || { cat "$log.part"; return 1; }
  mv "$log.part" "$log"
}

# The figures of the kernels at full size and of a small proof.
table() {
  measured ntt ntt cuda/ntt 'Transforms$/^full$/^(forward|inverse|quotient)$/^coset' 9x && measured rows rows cuda/rows 'Evaluate$/^all$' 9x &&
    measured h msm cuda/msm 'Sum_H$' 1x && measured porep msm cuda/msm 'Sum_PoRep$' 1x && measured post msm cuda/msm 'Sum_PoSt$' 1x &&
    measured setup setup cuda/setup 'Make$' 5x && SHAPES=2KiB params && measured proof engine engine 'SectorOnCard$' 1x || return 1
  awk -f "$root/table.awk" "$STATE"/bench/*.log | tee "$STATE/table.md"
}

# Everything else that can be measured.
bench() {
  local name
  for name in kernels ntt rows msm points setup kinds; do
    go "$name" "cuda/$name" -test.run '^$' -test.bench . -test.benchtime "${BENCHTIME:-3x}" || return 1
  done
}
# Ten 32 GiB partitions and ninety small proofs in one process; memory that others take; twenty proofs at once on a card that is slowed ten times;
# proofs cancelled at any instant; urgent proofs beside 32 GiB partitions.
soak() { SHAPES=2KiB params && go engine engine -test.v -test.run 'TestSoak_OnCard'; }
hog() { SHAPES=2KiB params && go engine engine -test.v -test.run 'TestHog_OnCard'; }
burst() { go engine engine -test.v -test.run 'TestBurst_OnCard'; }
cancel() { SHAPES=2KiB params && go engine engine -test.v -test.run 'TestCancel_OnCard'; }
# sealed32 makes parameters of a 32 GiB sector, a file of 47 GB, on the card, once.
params32=$STATE/params-32GiB
sealed32() {
  mkdir -p "$params32"
  [ -e "$params32/whole" ] || { "$root/bin/sealc2" setup --shape 32GiB --out "$params32" --device cuda --no-digests && touch "$params32/whole"; }
}
# Twenty jobs of two partitions under each interlock rule with 15 GiB of the card, as many at once as the rule has workers, in one table: what the
# rules are compared by.
policies() {
  local rule workers
  sealed32 || return 1
  for rule in single:1 single:2 two-lock:3 split:2 reservation:2; do
    workers=${rule#*:}
    "$root/bin/sealc2" bench prove --shape 32GiB --params "$params32" --device cuda --device-memory 15GiB --policy "${rule%:*}" --gpu-workers "$workers" \
      --partitions 2 --jobs "$workers" --rounds 20 --json >"$STATE/policy-$rule.json" || return 1
  done
  awk -F'[:,]' 'BEGIN { print "| rule | workers | 20 jobs of 2 partitions | against single, 2 workers | card busy |\n| --- | --- | --- | --- | --- |" }
    FNR == 1 { rule = FILENAME; sub(/.*policy-/, "", rule); sub(/\.json$/, "", rule); order[++count] = rule }
    /"steady_s"/ { steady[rule] = $2 } /"device_busy_share"/ { busy[rule] = $2 }
    END { for (i = 1; i <= count; i++) { split(order[i], p, ":"); printf "| %s | %s | %.2f s | %.4f | %.1f%% |\n", p[1], p[2], steady[order[i]], steady[order[i]] / steady["single:2"], 100 * busy[order[i]] } }' \
    "$STATE"/policy-{single:1,single:2,two-lock:3,split:2,reservation:2}.json | tee "$STATE/policies.md"
}
urgent() { go engine engine -test.run '^$' -test.bench UrgentOnCard -test.benchtime 1x; }

# Whole jobs of a 32 GiB sector: one way to prove in a row each, with its figures and its chart in $STATE/jobs, where a run that was
# stopped goes on behind them. Rows named `made` have parameters that are made in the card's memory; the others a file of 47 GB, made by
# the card before the first of them, so that the first job of `ten` is the cold start. Rows only by name: queued made one-made soak two.
jobs() {
  local row flags source out=$STATE/jobs
  mkdir -p "$out"
  for row in ${ROWS:-ten one explicit 15GiB 12GiB 8GiB}; do
    [ ! -e "$out/$row.json" ] || continue
    case $row in
      ten | made) flags="--rounds 5" ;;
      one | one-made) flags="--rounds 5 --partitions 1" ;;
      explicit) flags="--rounds 3 --explicit" ;;
      soak) flags="--rounds 10" ;;
      two) flags="--rounds 3 --device cuda:0,1" ;;
      queued) flags="--rounds 4 --jobs 2" ;;
      *GiB) flags="--rounds 2 --device-memory $row" ;;
      *) echo "no row $row"; return 1 ;;
    esac
    case $row in
      *made) source=(--make-params) ;;
      *)
        sealed32 || return 1
        source=(--params "$params32")
        ;;
    esac
    echo "== $row: $flags"
    # Word by word: the flags are a list. The last --device counts.
    "$root/bin/sealc2" bench prove --shape 32GiB --log info --device cuda "${source[@]}" $flags \
      --csv "$out/$row.csv" --chart "$out/$row.svg" --timeline "$out/$row.timeline" --json >"$out/$row.part" || { cat "$out/$row.part"; return 1; }
    mv "$out/$row.part" "$out/$row.json"
    cat "$out/$row.json"
  done
  awk -f "$root/jobs.awk" "$out"/*.json | tee "$STATE/jobs.md"
}

if [ "${1-}" = --step ]; then # one step in a shell of its own, so that it can be stopped with all that it started
  "$2"
  exit
fi
if [ "${1-}" = -l ]; then
  printf '%s\n' "${steps[@]}" "${more[@]}" | tr : '\t'
  exit 0
fi
wanted=("$@")
if [ ${#wanted[@]} = 0 ]; then
  for s in "${steps[@]}"; do [ -e "$STATE/${s%%:*}.ok" ] || wanted+=("${s%%:*}"); done
fi
total=0
for s in "${steps[@]}" "${more[@]}"; do
  case " ${wanted[*]} " in *" ${s%%:*} "*) total=$((total + ${s##*:})) ;; esac
done
echo "up to $total s in all"
summary=() failed=0
for name in "${wanted[@]}"; do
  budget=
  for s in "${steps[@]}" "${more[@]}"; do [ "${s%%:*}" != "$name" ] || budget=${s##*:}; done
  [ -n "$budget" ] || { echo "no step $name; run.sh -l lists them" >&2; exit 2; }
  echo "--- $name, up to $budget s"
  rm -f "$STATE/$name.ok"
  begin=$(date +%s.%N)
  if timeout -k 5 "$budget" "$root/run.sh" --step "$name" >"$STATE/$name.log" 2>&1; then
    result=ok
    touch "$STATE/$name.ok"
  else
    result="FAILED ($?)"
    failed=1
    tail -n "${LINES_OF_LOG:-25}" "$STATE/$name.log"
  fi
  took=$(awk -v a="$begin" -v b="$(date +%s.%N)" 'BEGIN { printf "%.1f", b - a }')
  summary+=("$(printf '%-10s %-14s %7s s of %s' "$name" "$result" "$took" "$budget")")
done
printf '%s\n' "${summary[@]}"
case " ${wanted[*]} " in *" table "*) [ ! -s "$STATE/table.md" ] || cat "$STATE/table.md" ;; esac
exit $failed
