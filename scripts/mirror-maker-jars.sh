#!/bin/sh
# Brings MirrorMaker 2 with all it needs to run (connect-mirror, connect-runtime) into .tools/kafka/mirror-maker-VERSION by
# Maven, for the comparison with it (npm run compare:mm2).
#
#   scripts/mirror-maker-jars.sh      the version in scripts/versions.json
#
# Prints the folder. Instant when it is there already; safe to run twice at once.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
version=$(sed -n 's/.*"mirrorMaker": *"\([^"]*\)".*/\1/p' "$root/scripts/versions.json")
final="$root/.tools/kafka/mirror-maker-$version"
if [ -d "$final" ]; then
  echo "$final"
  exit 0
fi
mkdir -p "$root/.tools/kafka"
work=$(mktemp -d "$root/.tools/kafka/.part-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
cat >"$work/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>onceover</groupId>
  <artifactId>mirror-maker-jars</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>connect-mirror</artifactId><version>$version</version></dependency>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>connect-runtime</artifactId><version>$version</version></dependency>
  </dependencies>
</project>
POM
copy() {
  mvn -B -q "$@" -f "$work/pom.xml" org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies \
    -DincludeScope=runtime -DoutputDirectory="$work/made" >"$work/log" 2>&1
}
copy -o || copy || {
  grep -m 3 ERROR "$work/log" >&2 || tail -n 5 "$work/log" >&2
  echo "MirrorMaker $version could not be fetched through Maven (see the lines above)." >&2
  exit 1
}
chmod 755 "$work/made"
if [ ! -d "$final" ]; then mv "$work/made" "$final" 2>/dev/null || true; fi
rm -rf "$final/made"
echo "$final"
