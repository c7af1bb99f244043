#!/usr/bin/env bash
# Tests the Rust crates, and the reference's own code over them. `make test-rust` calls it with
#
#   SEALC2_LIB         the library to test
#   SEALC2_PARAMS      folder that keeps development parameters between runs
#   CARGO_TARGET_DIR   folder that keeps what was compiled
#   CUDA_FOLDER        folder for what cuda-env.sh makes
#
# run.sh --binary FILE only builds the tests of the reference's code over the library, for a machine without cargo, which takes
# CARGO_TARGET_DIR and CUDA_FOLDER.
#
# SEALC2_SOAK=200 adds the soak test, SEALC2_SPEED=1 the comparison with bellperson's own prover, SEALC2_LONG=1 a
# non-interactive PoRep.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
export SEALC2_ALLOW_DEV_PARAMS=1 # the doc examples' keys; the tests set it by themselves

step() {
    local start=$SECONDS what=$1 cpu
    shift
    echo "== $what"
    "$@"
    times >"$CARGO_TARGET_DIR/times" # of children in its second line; in a pipeline it would tell of others
    cpu=$(awk 'NR == 2 { for (i = 1; i <= 2; i++) { split($i, t, "m"); s += 60 * t[1] + t[2] } printf "%d", s }' "$CARGO_TARGET_DIR/times")
    echo "== $what: $((SECONDS - start)) s, $((cpu - spent)) CPU-s"
    spent=$cpu
}
spent=0

# Cargo goes by a crate's folder and its files' times, and compiles the reference again where either is new. So it works in
# a copy that keeps its place, in which only changed files are; another clone or branch costs what differs.
tree=${CARGO_TARGET_DIR:?}/tree
mkdir -p "$tree/tests"
exec 9>"$CARGO_TARGET_DIR/tree.lock"
flock 9
mirror() {
    local file
    while IFS= read -r -d '' file; do
        cmp -s "$root/$file" "$tree/$file" && continue
        mkdir -p "$(dirname "$tree/$file")"
        cp "$root/$file" "$tree/$file"
    done < <(cd "$root" && find "$@" -type f -not -path '*/target/*' -print0)
    while IFS= read -r -d '' file; do
        [ -e "$root/$file" ] || rm "$tree/$file"
    done < <(cd "$tree" && find "$@" -type f -print0)
}
mirror bindings/rust tests/rust tests/reference
ln -sfn "$root/include" "$tree/include"
ln -sfn "$root/tests/vectors" "$tree/tests/vectors"
bindings=$tree/bindings/rust
rust=$tree/tests/rust

reference=(cargo test --release --locked --manifest-path "$rust/Cargo.toml")
if [ "${1-}" = --binary ]; then
    eval "$("$rust/cuda-env.sh" "${CUDA_FOLDER:?}")"
    built=$("${reference[@]}" --no-run --test proofs --message-format json | sed -n 's/.*"name":"proofs".*"executable":"\([^"]*\)".*/\1/p')
    strip -o "$2" "$built"
    exit
fi
if cargo fmt --version >/dev/null 2>&1; then
    for crates in "$bindings" "$bindings/supraseal-c2-cuzk"; do
        (cd "$crates" && cargo fmt --all --check)
    done
fi
step "raw and safe crates, supraseal-c2" cargo test --locked --manifest-path "$bindings/Cargo.toml"
step "supraseal-c2 for cuzk" cargo test --locked --manifest-path "$bindings/supraseal-c2-cuzk/Cargo.toml"
step "docs/replace-supraseal.md" "$root/tests/rust/recipe.sh"
eval "$("$rust/cuda-env.sh" "${CUDA_FOLDER:?}")"
step "build the reference with cuda-supraseal" "${reference[@]}" --no-run
step "the reference over the library" "${reference[@]}" --test proofs -- --test-threads 1 --nocapture
if [ -n "${SEALC2_SOAK:-}" ]; then
    step "soak: $SEALC2_SOAK proofs" "${reference[@]}" --test soak -- --nocapture
fi
if [ -n "${SEALC2_SPEED:-}" ]; then
    speed=(cargo run --release --locked --manifest-path "$rust/speed/Cargo.toml" --)
    for case in c1/porep-2k-a other/update-2k other/winning-2k; do
        step "speed: $case" "${speed[@]}" "${case#*/}" "$SEALC2_PARAMS/reference" "$tree/tests/vectors/$case"
    done
fi
