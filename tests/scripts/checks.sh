#!/usr/bin/env bash
# shellcheck disable=SC2016
# tests/scripts/checks.sh CHECK: one check of the two commands, with stand-ins for CMake, Ninja and the program, so that it
# takes a moment; scripts_test.cpp runs them all. fresh_machine.sh is the real thing.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TUNER_BUILD=$work/build
unset TUNER_WERROR TUNER_NO_ROOT TUNER_NO_SYSTEM_CUDA CUDA_HOME CXX

expect() { # expect WHAT ACTUAL EXPECTED
  [ "$2" = "$3" ] || { printf '%s\n  got:      %s\n  expected: %s\n' "$1" "$2" "$3"; exit 1; }
}
expect_in() { # expect_in WHAT TEXT PART
  [[ "$2" == *"$3"* ]] || { printf '%s\n  got: %s\n  which lacks: %s\n' "$1" "$2" "$3"; exit 1; }
}

stand_in() { # stand_in NAME BODY
  mkdir -p "$work/bin"
  printf '#!/bin/bash\n%s\n' "$2" >"$work/bin/$1"
  chmod +x "$work/bin/$1"
}
stand_ins() {
  stand_in cmake 'while [ $# -gt 0 ]; do [ "$1" = -B ] && mkdir -p "$2/bin" && touch "$2/build.ninja" && folder=$2; shift; done
printf "#!/bin/bash\nprintf \"<%%s>\" \"\$@\"\n" >"$folder/bin/tuner"; chmod +x "$folder/bin/tuner"; echo configured >>'"$work/configured"
  stand_in ninja 'exit 0'
  stand_in python3 'exit 0'
  stand_in c++ 'case $1 in
    -dumpversion) echo 12 ;;
    -E) grep -o "found .*" "${!#}" ;;
    -print-file-name=*) echo /bin/sh ;;
  esac'
  mkdir -p "$work/cuda/include" "$work/cuda/lib64"
  touch "$work/cuda/include/nvrtc.h" "$work/cuda/lib64/libcudart_static.a" "$work/cuda/lib64/libnvrtc.so"
  echo '#define CUDART_VERSION 13000' >"$work/cuda/include/cuda_runtime_api.h"
  export CUDA_PATH=$work/cuda
  unset CXX
  PATH=$work/bin:$PATH
}
tune() { "$root/scripts/tune" "$@" 2>"$work/stderr" </dev/null; }

arguments_pass_through() {
  stand_ins
  expect "none" "$(tune)" "<--config><$root/configs/quick.json>"
  expect "flags" "$(tune --budget 5evals)" "<--config><$root/configs/quick.json><--budget><5evals>"
  expect "spaces" "$(tune --out 'a b')" "<--config><$root/configs/quick.json><--out><a b>"
  expect "own config" "$(tune --config x.json --quiet)" "<--config><x.json><--quiet>"
  expect "own config, one word" "$(tune --config=x.json)" "<--config=x.json>"
  expect "subcommand" "$(tune verify --family tiled)" "<verify><--family><tiled>"
  expect "version" "$(tune --version)" "<--version>"
}

help_needs_no_build() {
  stand_in cmake 'touch '"$work/configured"
  expect_in "test" "$("$root/scripts/test" --help)" "./scripts/test [ctest's arguments]"
  expect_in "one test" "$("$root/scripts/test" -h)" "./scripts/test -R"
  expect_in "tune" "$(tune --help)" "./scripts/tune [ARGS]"
  if [ -e "$work/configured" ] || [ -e "$TUNER_BUILD" ]; then
    echo "something was built"
    exit 1
  fi
  stand_ins
  tune >/dev/null
  expect "the program's own" "$(tune --help)" "<--help>"
}

configures_once_until_something_changes() {
  stand_ins
  tune >/dev/null
  tune >/dev/null
  expect "second run" "$(wc -l <"$work/configured")" 1
  expect "second run is silent" "$(cat "$work/stderr")" ""
  TUNER_WERROR=ON tune >/dev/null
  expect "another setting" "$(wc -l <"$work/configured")" 2
}

a_failed_build_says_why_and_where() {
  stand_ins
  stand_in ninja 'case " $* " in *" build.ninja "*) exit 0 ;; esac
echo "[1/2] Building CXX object x.o"; echo "x.cpp:1:1: error: expected declaration"; exit 1'
  status=0
  tune || status=$?
  expect "exit code" "$status" 1
  expect_in "reason" "$(cat "$work/stderr")" "error: the build failed"
  expect_in "compiler's line" "$(cat "$work/stderr")" "x.cpp:1:1: error: expected declaration"
  expect_in "log" "$(cat "$work/stderr")" "log: $TUNER_BUILD/logs/build.log"
  [ ! -e "$TUNER_BUILD/deps.env" ] || { echo "the next run would not look for dependencies again"; exit 1; }
}

an_old_toolkit_is_not_used() {
  # shellcheck source=/dev/null
  . "$root/scripts/setup.sh"
  stand_ins
  expect "new enough" "$(find_toolkit)" "$work/cuda"
  expect "not wanted" "$(TUNER_NO_SYSTEM_CUDA=1 find_toolkit || echo none)" none
  echo '#define CUDART_VERSION 12030' >"$work/cuda/include/cuda_runtime_api.h"
  [ "$(find_toolkit)" != "$work/cuda" ] || { echo "CUDA 12.3 was taken"; exit 1; }
}

# A PATH with the tools the scripts use, and no package manager.
without_apt() {
  local tool
  stand_ins
  for tool in bash cat sed grep awk mkdir id uname dirname readlink cksum head tail tr cut rm ln find printf tee nproc chmod; do
    ln -sf "$(command -v "$tool")" "$work/bin/$tool"
  done
  PATH=$work/bin
}

missing_libraries_are_named_where_nothing_can_install_them() {
  without_apt
  stand_in c++ 'case $1 in -dumpversion) echo 12 ;; -print-file-name=*) echo "${1#*=}" ;; esac'
  status=0
  TUNER_NO_ROOT=1 tune || status=$?
  expect "exit code" "$status" 3
  expect_in "packages" "$(cat "$work/stderr")" "apt-get install nlohmann-json3-dev libfmt-dev"
}

an_old_compiler_is_refused() {
  stand_in old-c++ 'case $1 in -dumpversion) echo 10.2.1 ;; --version) echo "g++ 10" ;; esac'
  status=0
  CXX=$work/bin/old-c++ tune || status=$?
  expect "exit code" "$status" 3
  expect_in "reason" "$(cat "$work/stderr")" "is not a C++ compiler of gcc 11 or clang 15 or newer"
}

a_folder_that_cannot_be_written_is_named() {
  touch "$work/file"
  status=0
  TUNER_BUILD=$work/file/build tune || status=$?
  expect "exit code" "$status" 3
  expect_in "reason" "$(cat "$work/stderr")" "cannot write to $work/file/build; set TUNER_BUILD"
}

the_summary_counts() {
  # shellcheck source=/dev/null
  . "$root/scripts/setup.sh"
  cat >"$work/log" <<'EOF'
1/4 Test #1: A.B ........   Passed    0.01 sec
2/4 Test #2: A.C ........***Failed    0.01 sec
3/4 Test #3: A.DGpu .....***Skipped   0.01 sec
 4/4 Test  #4: A.E ......   Passed    0.01 sec
75% tests passed, 1 tests failed out of 4
EOF
  expect "summary" "$(summarize_tests "$work/log" 8)" "2 passed, 1 failed, 1 skipped"
  echo "No tests were found!!!" >"$work/log"
  if (summarize_tests "$work/log" 0) >/dev/null 2>&1; then
    echo "an empty selection must fail"
    exit 1
  fi
}

wheels_are_pinned_by_hash() {
  local list line
  for list in "$root"/scripts/wheels/*.txt; do
    expect_in "size of $list" "$(head -n1 "$list")" "# size: "
    while read -r line; do
      [[ "$line" =~ ^[a-z0-9-]+==[0-9.]+(\ --hash=sha256:[0-9a-f]{64})+$ ]] || { echo "$list: $line"; exit 1; }
    done < <(tail -n +2 "$list")
  done
}

wheels_stay_in_their_folder() {
  mkdir "$work/wheels" "$work/target"
  python3 - "$work/wheels/hostile.whl" <<'EOF'
import sys, zipfile
with zipfile.ZipFile(sys.argv[1], "w") as wheel:
    wheel.writestr("../../outside", "x")
    wheel.writestr("/absolute", "x")
    script = zipfile.ZipInfo("inside/run")
    script.external_attr = 0o100755 << 16
    wheel.writestr(script, "x")
EOF
  python3 "$root/scripts/unpack_wheels.py" "$work/target" "$work/wheels"
  [ -x "$work/target/inside/run" ] || { echo "the mode is lost"; exit 1; }
  expect "outside" "$(find "$work" /absolute -name outside -not -path "$work/target/*" 2>/dev/null)" ""
  [ ! -e /absolute ] || { echo "an absolute path was written"; exit 1; }
}

plots_take_measured_results() {
  local status=0
  expect "of no result" "$(python3 "$root/scripts/plot.py" "$root/README.md" "$work/a.svg" 2>&1 || echo "exit $?")" \
    "plot.py: $root/README.md: no result file: Expecting value: line 1 column 1 (char 0)
exit 2"
  expect_in "offline" "$(python3 "$root/scripts/plot.py" "$root/results/offline/quick/result.json" "$work/a.svg" 2>&1 || echo "exit $?")" \
    "nothing was timed"
  local said
  said=$(python3 "$root/scripts/plot.py" "$root/results/h200/seed/result.json" "$work/a.svg" 2>&1) || status=$?
  if python3 -c 'import matplotlib' 2>/dev/null; then
    expect "seed" "$said" "$work/a.svg"
    expect_in "its plot" "$(cat "$work/a.svg")" "</svg>"
  else
    expect "without matplotlib" "$status: $said" "2: plot.py: needs matplotlib (Debian: python3-matplotlib)"
  fi
}

scripts_parse() {
  local script
  for script in "$root"/scripts/{tune,test,*.sh} "$root"/tests/scripts/*.sh "$root/.ci/run"; do bash -n "$script"; done
}

"$1"
