#!/usr/bin/env bash
# Compiles every kernel for every architecture into one file of fatbins, one a unit, one after the other.
#
#   build.sh [file]                    default: image/kernels.fatbin beside this script
#
#   ARCHS="75 80 86 89 90 100 120"     compute capabilities that get machine code
#   PTX="90 120"                       those whose PTX goes along, for cards that come later; the driver compiles it
#   TOOLKIT=12.9                       or 13.0, see below
#   JOBS=2                             compilers at a time; default: the number of CPUs
#   TESTS=1                            with the unit_*.cu, whose kernels only tests and benchmarks run
#   UNITS="ntt/ntt.cu"                 only these
#   ALLOW_SPILLS=1                     only tell of them, see below
#
# 12.9 is NVRTC, ptxas and nvFatbin of CUDA 12.9, from pinned wheels of PyPI (toolkit.py): its code runs with every driver from
# 550 on, and as fast as that of 13.0. 13.0 is nvcc of CUDA 13.0, from PATH or from wheels: its code wants driver 580. The
# default is the nvcc on PATH where that is of 13.0, for machines that have it and no network, else 12.9.
#
# What was compiled is kept in the user's cache, as are the tools, by unit and architecture, under a hash of the sources: only
# what has changed is compiled again.
#
# A kernel that spills registers or has a stack frame fails the build, unless resources.txt names it with what it may have.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/sealc2
objects=$cache/kernels
read -ra archs <<<"${ARCHS-75 80 86 89 90 100 120}"
read -ra ptx <<<"${PTX-90 120}"
flags=(-std=c++17 -O3)

# wheels unpacks wheels of PyPI into a folder, once, also where several builds begin together.
wheels() {
    local folder=$1
    shift
    mkdir -p "$cache/cuda"
    (
        flock 9
        [ ! -e "$folder/complete" ] || exit 0
        rm -rf "$folder"
        python3 -m pip --version >/dev/null || { echo "the CUDA compilers come through pip, which python3 lacks; CUDA=0 builds without kernels" >&2; exit 1; }
        python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore --no-deps --no-compile --target "$folder" "$@"
        touch "$folder/complete"
    ) 9>"$cache/cuda/lock"
}

# tools13 puts nvcc, ptxas and fatbinary of CUDA 13.0 onto PATH.
tools13() {
    on_path13 && return
    wheels "$cache/cuda/wheels" nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-cuda-runtime==13.0.96
    export PATH="$cache/cuda/wheels/nvidia/cu13/bin:$PATH"
}
on_path13() { command -v nvcc >/dev/null && nvcc --version | grep -q 'release 13\.0,'; }

# tools12 puts ptxas of CUDA 12.9 onto PATH and finds the libraries.
tools12() {
    local folder=$cache/cuda/wheels-12.9
    wheels "$folder" nvidia-cuda-nvrtc-cu12==12.9.86 nvidia-cuda-nvcc-cu12==12.9.86 nvidia-nvfatbin-cu12==12.9.82
    export PATH="$folder/nvidia/cuda_nvcc/bin:$PATH"
    export NVRTC=$folder/nvidia/cuda_nvrtc/lib/libnvrtc.so.12 NVFATBIN=$folder/nvidia/nvfatbin/lib/libnvfatbin.so.12
}

# includes lists a file and all that it includes, relative to this folder.
declare -A seen
includes() {
    [ -z "${seen[$1]-}" ] || return 0
    seen[$1]=1
    printf '%s\n' "$1"
    local name
    while read -r name; do
        includes "$(realpath -m --relative-to="$here" "$here/$(dirname "$1")/$name")"
    done < <(sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*"\([^"]*\)".*/\1/p' "$here/$1" | grep -v '^emu/')
}

# key is a hash of what decides a unit's code.
key() {
    seen=()
    { printf '%s\n' "$version" "${flags[*]}"; includes "$1" | while read -r file; do echo "$file"; cat "$here/$file"; done; } |
        sha256sum | cut -c1-32
}

# compile makes KEY.ARCH.ptx, .cubin and .log (what ptxas says) of one unit and architecture. It is run by xargs.
compile() {
    local unit=$1 key=$2 arch=$3 what=$4 to=$objects/$2.$3
    exec 9>"$to.lock" # two builds at once do not compile the same twice
    flock 9
    if [ ! -e "$to.ptx" ]; then
        cd "$here"
        if [ "$TOOLKIT" = 12.9 ]; then
            python3 toolkit.py ptx "$NVRTC" "$unit" "$arch" "$to.ptx.$$" || exit 255
        else
            nvcc "${flags[@]}" -arch="compute_$arch" -ptx -o "$to.ptx.$$" "$unit" || exit 255
        fi
        mv "$to.ptx.$$" "$to.ptx"
    fi
    if [ "$what" = elf ] && [ ! -e "$to.cubin" ]; then
        ptxas -arch="sm_$arch" -m64 -v -o "$to.cubin.$$" "$to.ptx" 2>"$to.log.$$" || { cat "$to.log.$$" >&2; exit 255; }
        mv "$to.log.$$" "$to.log"
        mv "$to.cubin.$$" "$to.cubin"
    fi
    touch "$to".*
}

# report prints the kernels of one log that have a stack frame or spill, as: unit, kernel, architecture, bytes of
# stack, of spills stored, of spills loaded.
report() {
    awk -v unit="$1" -v arch="$2" '
        /Compiling entry function/ { split($0, part, "\047"); kernel = part[2] }
        /bytes stack frame/ && kernel != "" {
            if ($1 + $5 + $9 > 0) print unit, kernel, "sm_" arch, $1, $5, $9
            kernel = ""
        }' "$3"
}

if [ "${1-}" = --compile ]; then
    shift
    compile "$@"
    exit
fi

out=${1:-$here/image/kernels.fatbin}
mkdir -p "$(dirname "$out")" "$objects"
if [ -z "${TOOLKIT-}" ]; then
    TOOLKIT=12.9
    ! on_path13 || TOOLKIT=13.0
fi
export TOOLKIT
case $TOOLKIT in
12.9) tools12 ;;
13.0) tools13 ;;
*) echo "TOOLKIT: want 12.9 or 13.0, got $TOOLKIT" >&2; exit 1 ;;
esac
version="$TOOLKIT $(ptxas --version | tail -n1)"
if [ -n "${UNITS-}" ]; then read -ra units <<<"$UNITS"; else
    tests=(-not -name 'unit_*')
    [ -z "${TESTS-}" ] || tests=()
    mapfile -t units < <(cd "$here" && find . -name '*.cu' -not -path './emu/*' "${tests[@]}" | sed 's|^\./||' | sort)
fi
declare -A keys
work=()
for unit in "${units[@]}"; do
    keys[$unit]=$(key "$unit")
    for arch in "${archs[@]}"; do work+=("$unit ${keys[$unit]} $arch elf"); done
    for arch in "${ptx[@]}"; do
        case " ${archs[*]} " in *" $arch "*) ;; *) work+=("$unit ${keys[$unit]} $arch ptx") ;; esac
    done
done
printf '%s\n' "${work[@]}" | xargs -P "${JOBS:-$(nproc)}" -L1 "${BASH_SOURCE[0]}" --compile

findings=$(for unit in "${units[@]}"; do
    for arch in "${archs[@]}"; do report "$unit" "$arch" "$objects/${keys[$unit]}.$arch.log"; done
done)
bad=$(awk 'FNR == NR { if ($0 !~ /^#/ && NF) { stack[$1] = $2; spills[$1] = $3 } next }
    NF && !($2 in stack && $4 <= stack[$2] && $5 <= spills[$2] && $6 <= spills[$2])' \
    "$here/resources.txt" <(printf '%s\n' "$findings"))
if [ -n "$bad" ]; then
    printf 'kernels with a stack frame or spills (unit, kernel, architecture, bytes of stack, stored, loaded):\n%s\n' "$bad" >&2
    [ -n "${ALLOW_SPILLS-}" ] || exit 1
fi

# pack makes the fatbin of one unit, which takes seconds where it is made as small as can be, and so is kept as well.
pack() {
    local unit=$1 to=$2 images=() arch
    for arch in "${archs[@]}"; do images+=("elf:$arch:$objects/${keys[$unit]}.$arch.cubin"); done
    for arch in "${ptx[@]}"; do images+=("ptx:$arch:$objects/${keys[$unit]}.$arch.ptx"); done
    if [ "$TOOLKIT" = 12.9 ]; then
        python3 "$here/toolkit.py" fatbin "$NVFATBIN" "$to.$$" "${images[@]}"
    else
        mapfile -t images < <(printf '%s\n' "${images[@]}" | sed 's/\([^:]*\):\([^:]*\):\(.*\)/--image3=kind=\1,sm=\2,file=\3/')
        fatbinary -64 --compress-mode=size --create="$to.$$" "${images[@]}"
    fi
    mv "$to.$$" "$to"
}

new=$(mktemp)
trap 'rm -f "$new"' EXIT
for unit in "${units[@]}"; do
    packed=$objects/$(echo "${keys[$unit]} ${archs[*]} ptx ${ptx[*]-}" | sha256sum | cut -c1-32).fatbin
    [ -e "$packed" ] || pack "$unit" "$packed"
    touch "$packed"
    cat "$packed" >>"$new"
done
chmod 644 "$new"
# Where nothing changes the file stays as it is, and Go builds nothing again.
cmp -s "$new" "$out" || cp "$new" "$out"
find "$objects" -type f -mtime +30 -delete
echo "$out: ${#units[@]} units for ${archs[*]}, PTX ${ptx[*]-none}, $(stat -c %s "$out") bytes"
