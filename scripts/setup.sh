#!/bin/sh
# Brings everything that the program, its tests and its demo need into this folder (.tools, node_modules). Wants a
# shell, npm, a JDK (17 or newer) and Maven. Each step is skipped when done; what is done needs no network. Safe to
# run twice at once, as root or not. Installs system packages only for building the native add-on, and says so.
# --without-kafka: leaves out Kafka's brokers, and with them Java and Maven.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
cd "$root"
. scripts/lib.sh
tools="$root/.tools"
log="$tools/setup.log"
mkdir -p "$tools" 2>/dev/null && [ -w "$tools" ] || fail "$root cannot be written to: make it yours (chown) or clone it elsewhere."

lock() {
  if command -v flock >/dev/null 2>&1; then
    exec 9>"$tools/setup.lock"
    flock -n 9 || say setup "waits for another one that runs here"
    flock -w 1800 9 || fail "another setup has been running here for 30 minutes: end it and run npm run setup again."
    return
  fi
  # No flock (macOS): a folder is made by one only.
  tries=0
  until mkdir "$tools/setup.lock.d" 2>/dev/null; do
    tries=$((tries + 1))
    [ "$tries" -lt 1800 ] || fail "another setup seems to run: when none does, remove $tools/setup.lock.d and run npm run setup again."
    sleep 1
  done
  trap 'rmdir "$tools/setup.lock.d" 2>/dev/null || :' EXIT
  trap 'exit 130' INT TERM
}

# ---------------------------------------------------------------- Node

own_node() {
  case "$(uname -s)-$(uname -m)" in
    Linux-x86_64) platform=linux-x64 ;;
    Linux-aarch64 | Linux-arm64) platform=linux-arm64 ;;
    *) fail "Node $(node --version 2>/dev/null || echo none) is too old and npm has no Node for $(uname -s) $(uname -m): install Node 24 and run npm run setup again." ;;
  esac
  version=$(pinned node)
  folder=".tools/node/$version/node_modules/node-$platform"
  if [ ! -x "$folder/bin/node" ]; then
    # Made beside and renamed: a run that is cut short leaves nothing that looks finished.
    part="$tools/node/.part-$$"
    mkdir -p "$part"
    (cd "$part" && npm install --no-save --no-package-lock --no-audit --no-fund --ignore-scripts --prefix "$part" "node-$platform@$version") \
      >"$log" 2>&1 </dev/null || {
      rm -rf "$part"
      fail "Node $version could not be fetched from the npm registry (see $log): check the network, or install Node 24, and run npm run setup again."
    }
    rm -rf "$tools/node/$version"
    mv "$part" "$tools/node/$version"
  fi
  node_bin="$folder/bin"
}

choose_node() {
  command -v npm >/dev/null 2>&1 || fail "npm is missing: install Node.js with npm (Debian: apt-get install npm) and run npm run setup again."
  found=$(command -v node 2>/dev/null || true)
  if [ -n "$found" ] && node_fits "$(node --version 2>/dev/null || true)" && [ ! -e "$tools/use-own-node" ]; then
    # A wrapper of a version manager answers by folder: what counts is the file that runs.
    node_bin=$(node -p 'require("node:path").dirname(process.execPath)')
  else
    own_node
  fi
  case $node_bin in /*) node_path=$node_bin ;; *) node_path="$root/$node_bin" ;; esac
  PATH="$node_path:$PATH"
  export PATH
  printf '%s\n' "$node_bin" >"$tools/node-bin.$$" && mv "$tools/node-bin.$$" "$tools/node-bin"
}

# ---------------------------------------------------------------- packages

packages() {
  # Hash of the lock file, Node's ABI, and where we are: a folder that was copied from another machine starts anew.
  wanted=$(node -e '
    const { createHash } = require("node:crypto")
    const hash = createHash("sha256").update(require("node:fs").readFileSync("package-lock.json")).digest("hex")
    const { arch, platform, versions } = process
    console.log(hash, versions.modules, platform, arch)')
  if [ -d node_modules ] && [ "$(cat "$tools/packages" 2>/dev/null)" = "$wanted" ]; then
    say packages "in place"
    return
  fi
  rm -f "$tools/packages"
  npm ci --ignore-scripts --no-audit --no-fund >"$log" 2>&1 </dev/null || {
    grep -m 3 'npm error' "$log" >&2 || true
    fail "npm ci failed (see $log): check the network or the registry in npm's settings and run npm run setup again."
  }
  printf '%s\n' "$wanted" >"$tools/packages"
  say packages "installed by npm ci"
}

# ---------------------------------------------------------------- native add-on

addon=node_modules/@confluentinc/kafka-javascript
addon_loads() { node -e 'require("@confluentinc/kafka-javascript")' >"$log" 2>&1; }

# What was built is kept outside node_modules: npm ci wipes it each time the lock file changes.
addon_cache() {
  node -p '`'"$tools"'/addon/${require("./'"$addon"'/package.json").version}-${process.versions.modules}-${process.platform}-${process.arch}`'
}

addon_restore() {
  cache=$(addon_cache)
  [ -d "$cache" ] || return 1
  mkdir -p "$addon/build"
  cp -R "$cache/." "$addon/build/"
  addon_loads || { rm -rf "$cache" "$addon/build"; return 1; }
}

addon_keep() {
  cache=$(addon_cache)
  part="$tools/addon/.part-$$"
  rm -rf "$part" "$cache"
  mkdir -p "$part/Release"
  cp "$addon"/build/Release/*.node "$part/Release/"
  if [ -d "$addon/build/deps" ]; then
    mkdir -p "$part/deps"
    cp -P "$addon"/build/deps/*.so* "$addon"/build/deps/*.dylib "$part/deps/" 2>/dev/null || true
  fi
  mv "$part" "$cache"
}

addon_prebuilt() {
  (cd "$addon" && limited 60 node "$root/node_modules/@mapbox/node-pre-gyp/bin/node-pre-gyp" install) >"$log" 2>&1 </dev/null &&
    addon_loads
}

libraries="g++ make python3 libssl-dev zlib1g-dev libzstd-dev libcurl4-openssl-dev liblz4-dev libsasl2-dev"

missing_libraries() {
  command -v dpkg-query >/dev/null 2>&1 || return 0
  for name in $libraries; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null)" = installed ] || printf ' %s' "$name"
  done
}

addon_libraries() {
  missing=$(missing_libraries)
  [ -n "$missing" ] || return 0
  how="run \"apt-get install$missing\" as root and then npm run setup again."
  say libraries "installing$missing with apt-get, to build the Kafka add-on"
  # shellcheck disable=SC2086 # a list of names
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing >"$log" 2>&1 </dev/null || {
    as_root apt-get update >"$log" 2>&1 </dev/null || fail "Debian packages are missing to build the Kafka add-on and may not be installed from here: $how"
    # shellcheck disable=SC2086
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing >"$log" 2>&1 </dev/null ||
      fail "apt-get could not install Debian packages to build the Kafka add-on (see $log): $how"
  }
}

addon_build() {
  headers=$(node -p 'require("node:path").resolve(process.execPath, "../..")')
  if [ ! -e "$headers/include/node/node.h" ]; then
    # This Node came without its headers and they are not on npm for it: take npm's Node, which has them.
    : >"$tools/use-own-node"
    choose_node
    headers=$(node -p 'require("node:path").resolve(process.execPath, "../..")')
    rm -f "$tools/packages"
    packages
    if addon_restore; then return 0; fi
  fi
  addon_libraries
  say "add-on" "building librdkafka's Node add-on: a minute or two, on a busy machine ten; $log shows how far it is"
  rm -rf "$addon/build"
  CKJS_LINKING=dynamic npm_config_nodedir=$headers \
    npm rebuild --foreground-scripts @confluentinc/kafka-javascript >"$log" 2>&1 </dev/null && addon_loads && return
  cp "$log" "$tools/addon.log"
  fail "the Kafka add-on could not be built (see $tools/addon.log): it needs a C++ compiler, make, python3 and the development files of OpenSSL, zlib, zstd, curl, lz4 and SASL (Debian: $libraries)."
}

native_addon() {
  if addon_loads || addon_restore; then
    say "add-on" "in place"
  elif addon_prebuilt; then
    addon_keep
    say "add-on" "prebuilt, downloaded"
  else
    addon_build
    addon_keep
    say "add-on" "built"
  fi
}

# ---------------------------------------------------------------- the program

# Only a matter of speed, so no failure of the setup: without it the sources run.
program() {
  if done=$(node scripts/bundle.ts 2>"$log"); then say program "$done"; else say program "starts slower than it could (see $log)"; fi
}

# ---------------------------------------------------------------- Java and Kafka

kafka() {
  java=$(java_major 2>/dev/null || true)
  [ -n "$java" ] || fail "Java is missing: install a JDK, 17 or newer (Debian: apt-get install openjdk-17-jdk-headless), and run npm run setup again."
  [ "$java" -ge 17 ] || fail "Java $java is too old for Kafka 4: install JDK 17 or newer, or point JAVA_HOME at one, and run npm run setup again."
  for name in kafka kafkaOld; do
    version=$(pinned "$name")
    before=in\ place
    [ -d "$tools/kafka/$version/libs" ] || before="fetched through Maven"
    scripts/kafka-jars.sh "$version" >"$log" || exit 1
    say "Kafka" "$version, $before"
  done
  # Only a matter of speed, so no failure of the setup.
  [ -e "$tools/kafka/$(pinned kafka)/broker.jsa" ] || node scripts/kafka-archive.ts >"$log" 2>&1 || say "Kafka" "brokers will start slower than they could (see $log)"
}

lock
choose_node
say Node "$(node --version), $node_bin"
packages
native_addon
program
[ "${1:-}" = --without-kafka ] || kafka
