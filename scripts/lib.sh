# Small functions of the setup, apart so that they can be tested. Sourced by POSIX shells; changes nothing by itself.

say() { printf '%-10s %s\n' "$1" "$2"; }

fail() {
  printf 'setup: %s\n' "$1" >&2
  exit 1
}

# node_fits vA.B.C: whether this Node runs us. 22.22 is what our dependencies need; 27 is not known yet.
node_fits() {
  case $1 in v*.*.*) ;; *) return 1 ;; esac
  node_major=${1#v}
  node_minor=${node_major#*.}
  node_major=${node_major%%.*}
  node_minor=${node_minor%%.*}
  case "$node_major$node_minor" in '' | *[!0-9]*) return 1 ;; esac
  [ "$node_major" -ge 23 ] || { [ "$node_major" -eq 22 ] && [ "$node_minor" -ge 22 ]; } || return 1
  [ "$node_major" -lt 27 ]
}

# java_major: the major version of the Java that is found, or nothing. "1.8.0" is 8.
java_major() {
  java_command=${JAVA_HOME:+$JAVA_HOME/bin/}java
  "$java_command" -version 2>&1 | sed -n 's/.*version "\(1\.\)\{0,1\}\([0-9]*\).*/\2/p' | head -n 1
}

# pinned NAME: a version from scripts/versions.json.
pinned() { sed -n 's/.*"'"$1"'": *"\([^"]*\)".*/\1/p' "$root/scripts/versions.json"; }

# limited SECONDS COMMAND...: the command's status, or 124 when it took too long and was killed.
limited() {
  limit=$1
  shift
  "$@" &
  limited_pid=$!
  waited=0
  while kill -0 "$limited_pid" 2>/dev/null; do
    if [ "$waited" -ge "$limit" ]; then
      kill -9 "$limited_pid" 2>/dev/null
      wait "$limited_pid" 2>/dev/null
      return 124
    fi
    sleep 1
    waited=$((waited + 1))
  done
  wait "$limited_pid"
}

# as_root COMMAND...: runs it with the rights to install packages, or fails when there are none.
as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
    sudo -n "$@"
  else
    return 1
  fi
}
