#!/usr/bin/env bash
# Tests the Rust crates, and the reference's own code over them. `make test-rust` calls it with
#
#   SEALC2_LIB         the library to test
#   SEALC2_PARAMS      folder that keeps development parameters between runs
#   CARGO_TARGET_DIR   folder that keeps what was compiled
#   CUDA_FOLDER        folder for what cuda-env.sh makes
#
# SEALC2_SOAK=200 adds the soak test, SEALC2_LONG=1 a non-interactive PoRep.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
bindings=$here/../../bindings/rust
export SEALC2_ALLOW_DEV_PARAMS=1 # the doc examples' keys; the tests set it by themselves

step() {
    local start=$SECONDS what=$1
    shift
    echo "== $what"
    "$@"
    echo "== $what: $((SECONDS - start)) s"
}

step "raw and safe crates, supraseal-c2" cargo test --locked --manifest-path "$bindings/Cargo.toml"
step "supraseal-c2 for cuzk" cargo test --locked --manifest-path "$bindings/supraseal-c2-cuzk/Cargo.toml"
step "docs/replace-supraseal.md" "$here/recipe.sh"
eval "$("$here/cuda-env.sh" "${CUDA_FOLDER:?}")"
reference=(cargo test --release --locked --manifest-path "$here/Cargo.toml")
step "build the reference with cuda-supraseal" "${reference[@]}" --no-run
step "the reference over the library" "${reference[@]}" --test proofs -- --test-threads 1 --nocapture
if [ -n "${SEALC2_SOAK:-}" ]; then
    step "soak: $SEALC2_SOAK proofs" "${reference[@]}" --test soak -- --nocapture
fi
