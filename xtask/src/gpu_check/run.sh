#!/bin/sh
# Checks and measures the GPUs of this machine with the hopwise that lies beside this script, and
# leaves what it prints in gpu-check.md. Options are passed on: see `./hopwise gpu-check --help`.
#
# Needed: the NVIDIA driver (525 or newer), and NVRTC, which compiles the kernels: it is part of the
# CUDA toolkit. Programs that carry PTX would do without it, but those of this check are CUDA C.
# Where there is no toolkit and pip can fetch, the next lines fetch NVRTC alone.
set -u
here=$(cd "$(dirname "$0")" && pwd)

find_nvrtc() {
    for folder in "$here/nvrtc/nvidia/cuda_nvrtc/lib" "${CUDA_HOME:-}/lib64" /usr/local/cuda/lib64; do
        if [ -n "$(ls "$folder"/libnvrtc.so* 2>/dev/null)" ]; then
            echo "$folder"
            return
        fi
    done
}

if ! ldconfig -p 2>/dev/null | grep -q libnvrtc.so; then
    nvrtc=$(find_nvrtc)
    if [ -z "$nvrtc" ]; then
        echo "NVRTC is not here; trying pip" >&2
        python3 -m pip install --quiet --target "$here/nvrtc" nvidia-cuda-nvrtc-cu12 >&2 ||
            echo "NVRTC could not be fetched: install the CUDA toolkit, or set CUDA_HOME" >&2
        nvrtc=$(find_nvrtc)
    fi
    if [ -n "$nvrtc" ]; then
        export LD_LIBRARY_PATH="$nvrtc${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
    fi
fi

# The sanitizer of the toolkit, where it is found; a single part runs without it.
sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)
case " $* " in
*" --only"* | *" --sanitizer"* | *" --help "*) ;;
*) [ -z "$sanitizer" ] || set -- --sanitizer "$sanitizer" "$@" ;;
esac

"$here/hopwise" gpu-check "$@" >"$here/gpu-check.md"
code=$?
cat "$here/gpu-check.md"
exit $code
