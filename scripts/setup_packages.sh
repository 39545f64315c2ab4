# shellcheck shell=bash disable=SC2015,SC2154,SC2034
# The distribution's packages: installed as root, or downloaded and unpacked into build/deps. Sourced by setup.sh.

# The download's size in MB of `apt-get --print-uris`, which lists 'URI' FILE SIZE HASH.
uris_size() { awk -F"' " '/^'\''/ { split($2, part, " "); sum += part[2] } END { printf "%.1f MB", sum / 1e6 }'; }
say_missing() { fail 3 "missing: $*. Install them and run this again; on Debian or Ubuntu: apt-get install $*; elsewhere the packages of CMake 3.22, Ninja, nlohmann/json, fmt, CLI11, muParser, Boost.Context, SQLite, Mbed TLS and GoogleTest with headers"; }

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
  local wanted=() options package uris tools_missing=
  for package in "$@"; do
    case $package in
      g++) fail 3 "no C++ compiler of gcc 11 or clang 15 or newer was found, and without root none can be installed; load your site's compiler module or set CXX" ;;
      python3) fail 3 "python3 is missing, and without root it cannot be installed" ;;
      cmake | ninja-build) tools_missing=1 ;;
      *) wanted+=("$package") ;;
    esac
  done
  if [ -n "$tools_missing" ]; then
    bring_wheels build-tools "CMake and Ninja"
    mkdir -p "$deps/bin"
    ln -sf ../cmake/data/bin/cmake ../cmake/data/bin/ctest "$deps/bin/"
    find "$deps" -path '*/scripts/ninja' -type f -exec ln -sf {} "$deps/bin/ninja" \;
  fi
  [ ${#wanted[@]} -gt 0 ] || return 0
  have apt-get && have dpkg-deb || say_missing "${wanted[@]}"
  # An archive folder of our own: apt would leave out of the download what the system's cache holds.
  mkdir -p "$deps/archives/partial"
  options=(-o Debug::NoLocking=1 -o Dir::Cache::archives="$deps/archives")
  if ! list_archives; then
    own_package_lists
    list_archives || fail 3 "apt-get does not know all of: ${wanted[*]}" "$logs/apt-list.log"
  fi
  say "Unpacking ${wanted[*]} into $deps (apt-get, download $(uris_size <<<"$uris"))"
  if ! download_archives; then # the lists may be older than the archive
    own_package_lists
    list_archives && download_archives || fail 3 "apt-get could not download the packages" "$logs/apt-download.log"
  fi
  for package in "$deps"/archives/*.deb; do
    logged dpkg-deb dpkg-deb -x "$package" "$deps" || fail 3 "cannot unpack $package" "$logs/dpkg-deb.log"
  done
  rm -rf "$deps/archives"
}
# Sets uris to what is to be downloaded: what is not installed, and the libraries beside the wanted headers even if they are,
# since CMake's files and links between libraries are relative.
list_archives() {
  local libraries
  libraries=$(apt-cache "${options[@]}" depends --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces \
    --no-enhances "${wanted[@]}" 2>/dev/null | awk '$1 == "Depends:" && $2 ~ /^lib/ && $2 !~ /^lib(c|gcc|stdc)/ { print $2 }')
  # shellcheck disable=SC2086 # a list
  uris=$(apt-get "${options[@]}" -q -y --no-install-recommends --reinstall --print-uris install "${wanted[@]}" $libraries \
    2>"$logs/apt-list.log") && has_archives "$uris"
}
# A list folder of our own, since the system's is empty, old, or not ours to update.
own_package_lists() {
  mkdir -p "$deps"/apt/lists/partial
  options+=(-o Dir::State::Lists="$deps/apt/lists" -o Dir::Cache="$deps/apt" -o Dir::Cache::archives="$deps/archives"
    -o APT::Sandbox::User=)
  say "Reading the distribution's package lists into $deps/apt (apt-get update)"
  logged apt-update apt-get "${options[@]}" -q update || true # one unreachable source of several is not the end
}
download_archives() {
  local names
  names=$(sed -n "s/^'[^']*' \([^_ ]*\)_.*/\1/p" <<<"$uris")
  # shellcheck disable=SC2086 # a list
  (cd "$deps/archives" && logged apt-download apt-get "${options[@]}" -q download $names)
}
