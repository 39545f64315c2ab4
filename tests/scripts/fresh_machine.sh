#!/usr/bin/env bash
# tests/scripts/fresh_machine.sh [--root] [tune|test] [ARGS...]: runs ./scripts/tune (or test) on this machine made bare:
# no CUDA toolkit, none of the libraries, no CMake, no Ninja, no pip. Without --root as an unprivileged user with an empty home.
# Nothing outside a temporary overlay changes. Needs root, overlayfs and the distribution's and Python's package indexes.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
as_root=
if [ "${1:-}" = --root ]; then
  as_root=1
  shift
fi
command=${1:-tune}
[ $# = 0 ] || shift

if [ -z "${FRESH_MACHINE_INSIDE:-}" ]; then
  [ "$(id -u)" = 0 ] || { echo "error: needs root to make the overlay" >&2; exit 3; }
  FRESH_MACHINE_INSIDE=1 exec unshare --mount --propagation private "$0" ${as_root:+--root} "$command" "$@"
fi

overlay=$(mktemp -d)
mount -t tmpfs -o size=12g overlay "$overlay"
mkdir "$overlay"/{upper,work,machine}
mount -t overlay overlay -o "lowerdir=/,upperdir=$overlay/upper,workdir=$overlay/work" "$overlay/machine"
machine=$overlay/machine
for folder in dev proc sys; do mount --rbind "/$folder" "$machine/$folder"; done
mount --bind /etc/resolv.conf "$machine/etc/resolv.conf" 2>/dev/null || true

# Tracked files, as a clone has them.
mkdir -p "$machine/home/fresh/tuner"
git -C "$root" -c safe.directory="$root" ls-files -z | tar -C "$root" --null --files-from=- -cf - | tar -C "$machine/home/fresh/tuner" -xf -
chown -R nobody "$machine/home/fresh"

chroot "$machine" /bin/bash -e <<'EOF'
export DEBIAN_FRONTEND=noninteractive
rm -rf /usr/local/cuda* /opt/nvidia /opt/wheels /root/.cache
packages=(cmake cmake-data ninja-build nlohmann-json3-dev libfmt-dev libcli11-dev libmuparser-dev libmuparser2v5
  libboost-context-dev libboost1.74-dev libboost1.74-dev libsqlite3-dev libmbedtls-dev libgtest-dev libgmock-dev googletest
  python3-jsonschema python3-pip python3-pip-whl ccache)
installed=()
for package in "${packages[@]}"; do
  if dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed'; then installed+=("$package"); fi
done
[ ${#installed[@]} = 0 ] || apt-get -qq -y purge "${installed[@]}" >/dev/null
EOF

user=(setpriv --reuid nobody --regid nogroup --clear-groups)
[ -z "$as_root" ] || user=()
environment=(env -i HOME=/home/fresh PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin TERM=dumb)
run() {
  # shellcheck disable=SC2016
  chroot "$machine" "${user[@]}" "${environment[@]}" bash -c 'cd /home/fresh/tuner && exec "./scripts/$0" "$@"' "$command" "$@" </dev/null
}
started=$(date +%s)
run "$@"
echo "cold: $(($(date +%s) - started)) s"
if [ "$command" = tune ]; then
  started=$(date +%s%N)
  run --version
  echo "warm, until the program ran: $((($(date +%s%N) - started) / 1000000)) ms"
fi
