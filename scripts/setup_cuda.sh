# shellcheck shell=bash disable=SC2015,SC2154,SC2034
# CUDA: the system's toolkit, or the parts that are needed from NVIDIA's wheels, unpacked into build/deps. Sourced by setup.sh.

gpu_present() { compgen -G '/dev/nvidia[0-9]*' >/dev/null || compgen -G '/proc/driver/nvidia/gpus/*' >/dev/null; }

# Prints the toolkit's root where one of 12.4 or newer is complete enough to build and run with.
find_toolkit() {
  local nvcc toolkit
  [ -z "${TUNER_NO_SYSTEM_CUDA:-}" ] || return 1
  nvcc=$(command -v nvcc || true)
  for toolkit in "${CUDA_PATH:-}" "${CUDA_HOME:-}" "${nvcc:+$(dirname "$(dirname "$(readlink -f "$nvcc")")")}" /usr/local/cuda; do
    [ -n "$toolkit" ] && [ -e "$toolkit/include/nvrtc.h" ] || continue
    compgen -G "$toolkit/lib64/libcudart_static.a" >/dev/null && compgen -G "$toolkit/lib64/libnvrtc.so*" >/dev/null || continue
    [ "$(sed -n 's/^#define CUDART_VERSION *\([0-9]*\).*/\1/p' "$toolkit/include/cuda_runtime_api.h")" -ge 12040 ] || continue
    echo "$toolkit"
    return
  done
  return 1
}

# Sets system_cuda to the toolkit's root, or to nothing where the wheels stand in.
bring_cuda() {
  local include
  system_cuda=$(find_toolkit) || system_cuda=
  include=${system_cuda:+$system_cuda/include}
  [ -n "$system_cuda" ] || bring_wheels cuda "CUDA runtime and NVRTC, no toolkit being installed"
  # The vendors' libraries are large and only run on a GPU.
  if gpu_present; then
    [ -e "${include:-/nonexistent}/cublasLt.h" ] || bring_wheels cublas "cuBLAS"
    [ -e "${include:-/nonexistent}/cudnn.h" ] || [ -e /usr/include/cudnn.h ] || bring_wheels cudnn "cuDNN"
  fi
}

# bring_wheels SET WHAT: the pinned wheels of wheels/SET.txt, checked against their hashes, unpacked into $deps.
bring_wheels() {
  local list=$root/scripts/wheels/$1.txt stamp=$deps/$1.stamp folder=$deps/wheels size machine tag tags=() pip
  if cmp -s "$list" "$stamp"; then return; fi
  size=$(sed -n 's/^# size: //p' "$list")
  machine=$(uname -m)
  for tag in manylinux2014 manylinux2010 manylinux_2_12 manylinux_2_17 manylinux_2_27 manylinux_2_28; do
    tags+=(--platform "${tag}_$machine")
  done
  have python3 || fail 3 "python3 is missing; it unpacks NVIDIA's wheels"
  find_pip
  say "Bringing $2 into $deps (wheels from PyPI, download $size)"
  rm -rf "$folder"
  mkdir -p "$folder"
  # Headers and shared libraries only: which Python they were packed for does not matter.
  logged "wheels-$1" "${pip[@]}" download --no-input --disable-pip-version-check --no-deps --only-binary=:all: --require-hashes \
    --implementation cp --python-version 3.11 --abi cp311 --abi none "${tags[@]}" -d "$folder" -r "$list" ||
    fail 3 "pip could not download the wheels of scripts/wheels/$1.txt" "$logs/wheels-$1.log"
  logged "wheels-$1" python3 "$root/scripts/unpack_wheels.py" "$deps" "$folder" ||
    fail 3 "the wheels could not be unpacked" "$logs/wheels-$1.log"
  rm -rf "$folder"
  cp "$list" "$stamp"
}

# pip as a module, or the copy in Debian's python3-pip-whl, which runs without being installed.
find_pip() {
  local wheel
  pip=(python3 -m pip)
  if "${pip[@]}" --version >/dev/null 2>&1; then return; fi
  if ! compgen -G '/usr/share/python-wheels/pip-*.whl' >/dev/null && ! compgen -G "$deps/usr/share/python-wheels/pip-*.whl" >/dev/null; then
    have apt-get || fail 3 "pip is missing: install it (python3 -m ensurepip), or a CUDA toolkit of 12.4 or newer"
    if is_root; then install_packages python3-pip-whl; else unpack_packages python3-pip-whl; fi
  fi
  for wheel in "$deps"/usr/share/python-wheels/pip-*.whl /usr/share/python-wheels/pip-*.whl; do
    if [ -e "$wheel" ]; then pip=(python3 "$wheel/pip"); return; fi
  done
  fail 3 "pip could not be found or brought"
}
