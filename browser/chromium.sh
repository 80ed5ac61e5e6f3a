#!/bin/sh
# Finds a Chromium for `npm run test:page`, or installs Debian's where that is allowed.
#
#   browser/chromium.sh     prints the browser's path; exit 3: none (the line says how to get one)
#
# CHROMIUM names one. Else the usual names are looked for; as root on Debian the package chromium is installed.
set -eu

found() {
  for name in ${CHROMIUM:+"$CHROMIUM"} chromium chromium-browser google-chrome google-chrome-stable; do
    if path=$(command -v "$name" 2>/dev/null); then
      printf '%s\n' "$path"
      exit 0
    fi
  done
}

none() {
  printf 'no Chromium is here (%s): install one (on Debian as root: apt-get install chromium), or name it in CHROMIUM, and run this again.\n' "$1"
  exit 3
}

found
[ "$(id -u)" -eq 0 ] || none "and installing one takes root"
[ -e /etc/debian_version ] && command -v apt-get >/dev/null 2>&1 || none "and it is installed for you on Debian only"
apt() { DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 "$@" >/dev/null 2>&1 </dev/null; }
install() { apt install -y --no-install-recommends chromium fonts-dejavu-core; }
install || { apt update && install; } || none "apt-get could not install it"
found
none "the package has no program of the usual name"
