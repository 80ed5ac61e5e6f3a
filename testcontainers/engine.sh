#!/bin/sh
# Finds a Docker engine for `npm run test:containers`, or brings one up where that is allowed.
#
#   testcontainers/engine.sh        prints one line; exit 0: an engine answers, 3: none (the line says how to get one)
#
# An engine that answers is taken as it is. Else, as root on Debian or a child of it: docker.io and iptables are
# installed where they are missing, and the daemon is started, by systemd where that runs, by hand elsewhere. It goes
# on running afterwards. Anyone else is only told what to do. Safe to repeat, and for two at once.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
. "$root/scripts/lib.sh"
log=/var/log/onceover-dockerd.log
lock=/var/lock/onceover-engine.lock

answers() { limited 20 docker version --format '{{.Server.Version}}' >/dev/null 2>&1; }

ready() {
  answers || return 1
  say engine "Docker $(docker version --format '{{.Server.Version}}'), $1"
  exit 0
}

none() {
  say engine "no Docker engine runs ($1): start Docker (Docker Desktop, or on Debian as root: apt-get install docker.io iptables && service docker start) and run this again."
  exit 3
}

if command -v docker >/dev/null 2>&1; then ready "was running" || true; fi
[ -z "${DOCKER_HOST:-}" ] || none "none answers at DOCKER_HOST"
[ "$(id -u)" -eq 0 ] || none "and starting one takes root"
[ -e /etc/debian_version ] && command -v apt-get >/dev/null 2>&1 || none "and it is brought up for you on Debian only"

# Two that start together must not start two daemons. Closed for everything that outlives this script: 9>&-.
exec 9>"$lock"
flock -w 600 9 || none "another start of it does not end"

apt() {
  DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 "$@" >"$install_log" 2>&1 </dev/null 9>&-
}
how=started
if ! command -v dockerd >/dev/null 2>&1 || ! command -v docker >/dev/null 2>&1 || ! command -v iptables >/dev/null 2>&1; then
  install_log=$(mktemp)
  packages="docker.io iptables"
  # From Debian 13 on the command line client is a package of its own.
  if apt-cache show docker-cli >/dev/null 2>&1; then packages="$packages docker-cli"; fi
  # shellcheck disable=SC2086 # a list of names
  apt install -y --no-install-recommends $packages || {
    apt update || true
    # shellcheck disable=SC2086
    apt install -y --no-install-recommends $packages || {
      tail -n 3 "$install_log" >&2
      none "apt-get could not install $packages"
    }
  }
  rm -f "$install_log"
  how="installed and started"
fi
ready "$how" || true

# A daemon that was ended by force leaves the files with its number behind; a new one believes them.
forget() {
  [ -f "$1" ] || return 0
  [ "$(cat "/proc/$(cat "$1")/comm" 2>/dev/null)" = "$2" ] || rm -f "$1"
}
if [ -d /run/systemd/system ]; then
  systemctl start docker >/dev/null 2>&1 9>&- || none "systemd could not start it, see journalctl -u docker"
else
  forget /var/run/docker.pid dockerd
  forget /var/run/docker/containerd/containerd.pid containerd
  # One that is there already is only slow to answer.
  [ -f /var/run/docker.pid ] || setsid nohup dockerd >"$log" 2>&1 </dev/null 9>&- &
fi
tries=0
until answers; do
  tries=$((tries + 1))
  if [ "$tries" -gt 60 ]; then
    tail -n 5 "$log" >&2 2>/dev/null || true
    none "the daemon was started and does not answer, see $log"
  fi
  sleep 1
done
ready "$how"
