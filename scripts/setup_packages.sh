# shellcheck shell=bash disable=SC2015,SC2154,SC2034
# The distribution's packages: installed as root, or downloaded and unpacked into build/deps. Sourced by setup.sh.

# The download's size in MB of `apt-get --print-uris`, which lists 'URI' FILE SIZE HASH.
uris_size() { awk -F"' " '/^'\''/ { split($2, part, " "); sum += part[2] } END { printf "%.1f MB", sum / 1e6 }'; }
say_missing() { fail 3 "missing: $*. Install them and run this again; on Debian or Ubuntu: apt-get install $*; elsewhere the packages of CMake 3.22, Ninja, nlohmann/json, fmt, CLI11, muParser, Boost.Context, Mbed TLS and GoogleTest with headers"; }

install_packages() {
  local apt=(apt-get -y -q --no-install-recommends -o DPkg::Lock::Timeout=300) uris
  export DEBIAN_FRONTEND=noninteractive
  if ! uris=$("${apt[@]}" --print-uris install "$@" 2>/dev/null) || ! has_archives "$uris"; then
    say "Reading the distribution's package lists (apt-get update)"
    logged apt-update "${apt[@]}" update || true # one unreachable source of several is not the end
    uris=$("${apt[@]}" --print-uris install "$@" 2>"$logs/apt-install.log") ||
      fail 3 "apt-get does not know all of: $*" "$logs/apt-install.log"
  fi
  say "Installing $* (apt-get, download $(uris_size <<<"$uris"))"
  logged apt-install "${apt[@]}" install "$@" && return
  logged apt-update "${apt[@]}" update || true # the lists may be older than the archive
  logged apt-install "${apt[@]}" install "$@" || fail 3 "apt-get install failed" "$logs/apt-install.log"
}
has_archives() { grep -q "^'" <<<"$1"; }

# Without root: the packages and what they depend on beyond what is installed, unpacked under $deps.
unpack_packages() {
  local wanted=() package apt uris names
  for package in "$@"; do
    case $package in
      g++) fail 3 "no C++ compiler of gcc 11 or clang 15 or newer was found, and without root none can be installed; load your site's compiler module or set CXX" ;;
      python3) fail 3 "python3 is missing, and without root it cannot be installed" ;;
      cmake | ninja-build) tools_missing=1 ;;
      *) wanted+=("$package") ;;
    esac
  done
  if [ -n "${tools_missing:-}" ]; then
    bring_wheels build-tools "CMake and Ninja"
    mkdir -p "$deps/bin"
    ln -sf ../cmake/data/bin/cmake ../cmake/data/bin/ctest "$deps/bin/"
    find "$deps" -path '*/bin/ninja' -type f -exec ln -sf {} "$deps/bin/ninja" \;
  fi
  [ ${#wanted[@]} -gt 0 ] || return 0
  have apt-get && have dpkg-deb || say_missing "${wanted[@]}"
  apt=(apt-get -q --no-install-recommends -o Debug::NoLocking=1)
  if ! uris=$("${apt[@]}" -y --print-uris install "${wanted[@]}" 2>/dev/null) || ! has_archives "$uris"; then
    own_package_lists
    uris=$("${apt[@]}" -y --print-uris install "${wanted[@]}" 2>"$logs/apt-download.log") ||
      fail 3 "apt-get does not know all of: ${wanted[*]}" "$logs/apt-download.log"
  fi
  say "Unpacking ${wanted[*]} into $deps (apt-get, download $(uris_size <<<"$uris"))"
  download_archives || { own_package_lists; uris=$("${apt[@]}" -y --print-uris install "${wanted[@]}"); download_archives; } ||
    fail 3 "apt-get could not download the packages" "$logs/apt-download.log"
  for package in "$deps"/archives/*.deb; do
    dpkg-deb -x "$package" "$deps" >>"$logs/apt-download.log" 2>&1 || fail 3 "cannot unpack $package" "$logs/apt-download.log"
  done
  rm -rf "$deps/archives"
}
# A list folder of our own, since the system's is empty, old, or not ours to update.
own_package_lists() {
  mkdir -p "$deps"/apt/{lists,cache}/partial
  apt+=(-o Dir::State::Lists="$deps/apt/lists" -o Dir::Cache="$deps/apt/cache" -o APT::Sandbox::User=)
  say "Reading the distribution's package lists into $deps/apt (apt-get update)"
  logged apt-update "${apt[@]}" update || true
}
download_archives() {
  names=$(sed -n "s/^'[^']*' \([^_ ]*\)_.*/\1/p" <<<"$uris")
  mkdir -p "$deps/archives"
  # shellcheck disable=SC2086 # a list
  (cd "$deps/archives" && logged apt-download "${apt[@]}" download $names)
}
