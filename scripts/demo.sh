#!/bin/sh
# npm run demo [-- --kafka=embedded]: sets up what that wants, which is no Java for the embedded one, and runs it.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
without=
previous=
for word in "$@"; do
  case $previous$word in --kafka=embedded | --kafkaembedded) without=--without-kafka ;; esac
  previous=$word
done
# shellcheck disable=SC2086 # one word or none
sh "$root/scripts/setup.sh" $without
cd "$root"
exec sh scripts/with-node.sh node scripts/demo.ts "$@"
