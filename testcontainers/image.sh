#!/bin/sh
# Sees to it that the engine has Kafka's image, apache/kafka with the version of scripts/versions.json.
#
#   testcontainers/image.sh         prints one line; fails with one when there is no way to the image
#
# One that is there is kept. Else it is pulled, within PULL_SECONDS (default 180). Where no image registry can be
# reached it is built here (stand-in.sh) from Maven's jars, and carries a label that says so. Safe to repeat, and for
# two at once. To get the real one later: docker rmi the stand-in, and run this again.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
. "$root/scripts/lib.sh"
image="apache/kafka:$(pinned kafka)"

there() { docker image inspect "$image" >/dev/null 2>&1; }
done_with() {
  say image "$image, $1$(docker image inspect --format '{{with index .Config.Labels "onceover.stand-in"}} ({{.}}){{end}}' "$image")"
  exit 0
}

there && done_with "in place"
mkdir -p "$root/.tools"
if command -v flock >/dev/null 2>&1; then
  exec 9>"$root/.tools/image.lock"
  flock -w 900 9 || fail "another build of $image does not end"
  there && done_with "in place"
fi
limited "${PULL_SECONDS:-180}" docker pull -q "$image" >/dev/null 2>&1 9>&- && done_with pulled
sh "$root/testcontainers/stand-in.sh" "$image" 9>&-
done_with built
