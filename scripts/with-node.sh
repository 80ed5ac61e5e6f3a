#!/bin/sh
# Runs a command under the Node that the setup chose: scripts/with-node.sh node scripts/demo.ts
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
if ! bin=$(cat "$root/.tools/node-bin" 2>/dev/null); then
  echo "onceover is not set up yet: run \"npm run setup\" in $root first." >&2
  exit 1
fi
case $bin in /*) ;; *) bin="$root/$bin" ;; esac
if [ ! -x "$bin/node" ]; then
  echo "the Node that onceover was set up with is gone: run \"npm run setup\" in $root again." >&2
  exit 1
fi
PATH="$bin:$root/node_modules/.bin:$PATH"
export PATH
# Keeps what Node makes of the TypeScript files, which halves the start. A folder that cannot be written to is no harm.
NODE_COMPILE_CACHE=${NODE_COMPILE_CACHE-$root/.tools/compile-cache}
export NODE_COMPILE_CACHE
exec "$@"
