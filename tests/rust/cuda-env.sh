#!/usr/bin/env bash
# Lets the feature cuda-supraseal of filecoin-proofs build and run on a machine without CUDA and without a GPU.
#
#   eval "$(tests/rust/cuda-env.sh FOLDER)"     # prints the variables to set; what they name is made once, in FOLDER
#
# The feature also turns on the reference's own kernels (Poseidon for phase 2 of pre-commit), so its build asks for
# nvcc and its programs for libcuda.so.1, although no proof of ours comes near either.
#  - nvcc: the PyPI wheels of CUDA 13.0 unpack into a tree that works as it is. One architecture, no optimisation: the
#    kernels are never run here, and would take half an hour to build for all cards.
#  - libcuda.so.1: where the machine has none, a library with the functions that cuda-driver-sys declares, each of which
#    answers CUDA_ERROR_NO_DEVICE, as a driver without a card does.
set -euo pipefail
folder=$(mkdir -p "${1:?usage: cuda-env.sh FOLDER}" && cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)

if ! command -v nvcc >/dev/null; then
    nvcc=$folder/wheels/nvidia/cu13/bin
    if [ ! -e "$folder/wheels/complete" ]; then
        rm -rf "$folder/wheels"
        python3 -m pip install --quiet --no-deps --no-compile --target "$folder/wheels" \
            nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-cuda-runtime==13.0.96 >&2
        "$nvcc/nvcc" --version >&2
        touch "$folder/wheels/complete"
    fi
    printf 'export PATH=%q:"$PATH"\n' "$nvcc"
fi
printf 'export EC_GPU_CUDA_NVCC_ARGS=%q\n' \
    '--fatbin --gpu-architecture=sm_86 --generate-code=arch=compute_86,code=sm_86 -O0 -Xptxas -O0'

if ! ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1 '; then
    stub=$folder/stub/lib64
    if [ ! -e "$stub/libcuda.so.1" ]; then
        mkdir -p "$stub"
        cargo fetch --quiet --locked --manifest-path "$here/Cargo.toml" >&2
        declarations=("${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/cuda-driver-sys-*/src/)
        grep -rhoE '\bpub fn cu[A-Za-z0-9_]+' "${declarations[@]}" | awk '{print $3}' | sort -u |
            sed 's/.*/int &(void) { return 100; }/' >"$folder/stub/libcuda.c"
        [ -s "$folder/stub/libcuda.c" ]
        cc -O1 -shared -fPIC -fno-builtin -Wl,-soname,libcuda.so.1 -o "$stub/libcuda.so.1.new" "$folder/stub/libcuda.c"
        ln -sf libcuda.so.1 "$stub/libcuda.so"
        mv "$stub/libcuda.so.1.new" "$stub/libcuda.so.1"
    fi
    printf 'export CUDA_LIBRARY_PATH=%q\n' "$folder/stub"
    printf 'export LD_LIBRARY_PATH=%q"${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"\n' "$stub"
fi
