# shellcheck shell=bash disable=SC2015,SC2154,SC2034
# Shared by scripts/tune and scripts/test: bring what is missing, configure, build. Sourced, never run.
# Every step is one line on stderr; the first failure ends the script with the reason and the log's path.
#
# What a person may set:
#   TUNER_BUILD           folder for everything built or brought (default: build/ in the repository)
#   TUNER_NO_ROOT=1       do not install into the system, even as root
#   TUNER_NO_SYSTEM_CUDA=1  use NVIDIA's wheels even where a CUDA toolkit is installed
#   TUNER_WERROR=ON       warnings are errors
#   CXX                   the C++ compiler
set -euo pipefail
export LC_ALL=C.UTF-8

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build_root=${TUNER_BUILD:-$root/build}
deps=$build_root/deps
logs=$build_root/logs

say() { printf '==> %s\n' "$*" >&2; }

# fail EXIT_CODE REASON [LOG]: the reason, the lines of the log that look like it, and where the rest is.
fail() {
  printf 'error: %s\n' "$2" >&2
  if [ -n "${3:-}" ]; then
    { grep -E -m4 -A3 '(^|[ :])(error|ERROR|E|fatal error|CMake Error[^:]*):|undefined reference' "$3" || tail -n 8 "$3"; } |
      cut -c1-400 | head -n 16 | sed 's/^/  | /' >&2
    printf '  log: %s\n' "$3" >&2
  fi
  exit "$1"
}

# logged NAME COMMAND...: runs it with its output in logs/NAME.log; the caller says what a failure means.
logged() {
  local log=$logs/$1.log
  shift
  "$@" >"$log" 2>&1 </dev/null
}

# usage FILE: what its head says of it.
usage() { sed -n '2,/^[^#]/{/^# shellcheck/!s/^# //p}' "$1"; }

have() { command -v "$1" >/dev/null 2>&1; }
is_root() { [ "$(id -u)" = 0 ] && [ -z "${TUNER_NO_ROOT:-}" ]; }

enter_build_folder() {
  mkdir -p "$logs" 2>/dev/null || fail 3 "cannot write to $build_root; set TUNER_BUILD to a folder of yours"
  [ -w "$build_root" ] || fail 3 "cannot write to $build_root; set TUNER_BUILD to a folder of yours"
  if have flock; then # two scripts at once take turns
    exec 9>"$build_root/.lock"
    flock -n 9 || { say "Waiting for another build in $build_root"; flock 9; }
  fi
  PATH=$deps/bin:$PATH
  export PYTHONPATH=$deps/usr/lib/python3/dist-packages${PYTHONPATH:+:$PYTHONPATH}
  # ccache needs a writable home; a user without one keeps the cache beside the build.
  [ -n "${CCACHE_DIR:-}" ] || [ -w "${HOME:-/nonexistent}" ] || export CCACHE_DIR=$build_root/ccache
  export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1 # a second checkout finds what the first one compiled
}

# The C++ compiler: $CXX, else the first of these that is new enough (gcc 11, clang 15).
compiler_is_new_enough() {
  local version
  have "$1" || return 1
  version=$("$1" -dumpversion 2>/dev/null) || return 1
  version=${version%%.*}
  if "$1" --version 2>/dev/null | grep -qi clang; then [ "$version" -ge 15 ]; else [ "$version" -ge 11 ]; fi
}
find_compiler() {
  compiler=
  if [ -n "${CXX:-}" ]; then
    compiler_is_new_enough "${CXX%% *}" || fail 3 "CXX=$CXX is not a C++ compiler of gcc 11 or clang 15 or newer"
    compiler=$CXX
    return
  fi
  local name
  for name in c++ g++ g++-14 g++-13 g++-12 g++-11 clang++ clang++-19 clang++-18 clang++-17 clang++-16 clang++-15; do
    if compiler_is_new_enough "$name"; then
      compiler=$name
      return
    fi
  done
  return 1
}

# Prints the packages of packages.txt of which something is missing.
missing_packages() {
  local package needs need probe=$build_root/probe.cpp seen
  if find_compiler; then
    { grep -o 'h:[^ ]*' "$root/scripts/packages.txt" | sed 's/^h:\(.*\)$/#if __has_include(<\1>)\nfound h:\1\n#endif/'; } >"$probe"
    seen=$($compiler -E -P -I"$deps/usr/include" "$probe" 2>/dev/null) || seen=
  else
    seen=
    echo g++
  fi
  while read -r package needs; do
    case $package in '#'* | '' | g++) continue ;; esac
    for need in $needs; do
      case $need in
        p:*) have "${need#p:}" ;;
        h:*) grep -qxF "found $need" <<<"$seen" ;;
        l:*) library_exists "${need#l:}" ;;
        m:*) module_exists "${need#m:}" ;;
      esac || { echo "$package"; break; }
    done
  done <"$root/scripts/packages.txt"
}
# A python3 that comes first on PATH may not see the distribution's modules: then the distribution's own is put before it.
module_exists() {
  have python3 || return 1
  python3 -c "import $1" 2>/dev/null && return
  /usr/bin/python3 -c "import $1" 2>/dev/null || return 1
  mkdir -p "$deps/bin" && ln -sf /usr/bin/python3 "$deps/bin/python3"
}
library_exists() {
  local path
  [ -n "$compiler" ] || return 1
  compgen -G "$deps/usr/lib/*/$1" >/dev/null && return 0
  path=$($compiler -print-file-name="$1")
  [ "$path" != "$1" ] && [ -e "$path" ]
}

. "$root/scripts/setup_packages.sh"
. "$root/scripts/setup_cuda.sh"

# What the stamp stands for: a change of any of it makes the next run look again.
dependencies_key() {
  { cat "$root"/scripts/{setup*.sh,packages.txt} "$root"/scripts/wheels/*.txt
    printf '%s\n' "${CXX:-}" "${CUDA_PATH:-}" "${TUNER_NO_SYSTEM_CUDA:-}" "$(gpu_present && echo gpu || echo none)"
  } | cksum
}

bring_dependencies() {
  local key missing
  key=$(dependencies_key)
  if [ -f "$build_root/deps.env" ] && [ "$(head -n1 "$build_root/deps.env")" = "# $key" ]; then
    # shellcheck source=/dev/null
    . "$build_root/deps.env"
    return
  fi
  missing=$(missing_packages | tr '\n' ' ')
  if [ -n "$missing" ]; then
    if is_root && have apt-get; then
      # shellcheck disable=SC2086 # a list
      install_packages $missing
    else
      # shellcheck disable=SC2086
      unpack_packages $missing
    fi
    missing=$(missing_packages | tr '\n' ' ')
    [ -z "$missing" ] || fail 3 "still not found after installing: $missing"
  fi
  find_compiler || fail 3 "no C++ compiler of gcc 11 or clang 15 or newer"
  bring_cuda
  printf '# %s\ncompiler=%q\nsystem_cuda=%q\n' "$key" "$compiler" "$system_cuda" >"$build_root/deps.env"
}

# configure PRESET: into $build_root/PRESET, again only when something it was given changed.
configure() {
  local preset=$1 folder=$build_root/$1 launcher=() arguments
  have ccache && launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  arguments=(--preset "$preset" -B "$folder" -DCMAKE_CXX_COMPILER="$compiler" -DTUNER_DEPS="$deps"
    -DTUNER_SYSTEM_CUDA="$system_cuda" -DTUNER_WERROR="${TUNER_WERROR:-OFF}" "${launcher[@]}")
  if [ -f "$folder/build.ninja" ] && [ "$(cat "$folder/arguments" 2>/dev/null)" = "${arguments[*]}" ]; then
    return
  fi
  say "Configuring $folder"
  rm -f "$folder/CMakeCache.txt"
  (cd "$root" && logged configure cmake "${arguments[@]}") || { forget; fail 1 "cmake could not configure" "$logs/configure.log"; }
  printf '%s\n' "${arguments[*]}" >"$folder/arguments"
}

# build PRESET TARGET...: silent when nothing changed; otherwise says how much there is to do, and on a terminal how far it is.
build() {
  local folder=$build_root/$1 log=$logs/build.log
  shift
  ninja -C "$folder" -j "$(nproc)" "$@" 2>&1 </dev/null | tee "$log" | show_progress "$*" "$log" >&2 || build_failed "$log"
}
show_progress() {
  awk -v targets="$1" -v log_file="$2" -v terminal="$([ -t 2 ] && echo 1)" '
    /^\[[0-9]+\/[0-9]+\]/ && !/Re-(checking|running)|version_file/ {
      if (!began++) {
        split($1, count, /[][\/]/)
        printf "==> Building %s: %d steps (log: %s)\n", targets, count[3], log_file
      }
      if (terminal) printf "\r\033[K%.100s", $0
      fflush()
    }
    END { if (began && terminal) printf "\r\033[K" }'
}
build_failed() {
  forget
  fail 1 "the build failed" "$1"
}
forget() { rm -f "$build_root/deps.env"; } # look for dependencies again next time

leave_build_folder() { if have flock; then exec 9>&-; fi; }

# summarize_tests LOG STATUS: "N passed, N failed, N skipped", the last line of a test run.
summarize_tests() {
  local passed failed skipped
  grep -qE '^(No tests were found|[0-9]+% tests passed)' "$1" || return 0 # only listed, say
  passed=$(grep -cE '^ *[0-9]+/[0-9]+ Test +#[0-9]+: .* Passed ' "$1") || true
  skipped=$(grep -cE '^ *[0-9]+/[0-9]+ Test +#[0-9]+: .*\*\*\*Skipped ' "$1") || true
  failed=$(grep -cE '^ *[0-9]+/[0-9]+ Test +#[0-9]+: .*\*\*\*(Failed|Timeout|Exception|Not Run)' "$1") || true
  printf '%s passed, %s failed, %s skipped\n' "$passed" "$failed" "$skipped"
  if grep -q '^No tests were found' "$1"; then fail 1 "no test was selected" "$1"; fi
}
