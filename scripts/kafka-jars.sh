#!/bin/sh
# Brings the jars of one Kafka version into .tools/kafka/VERSION by Maven; nothing but Maven is downloaded from.
#
#   scripts/kafka-jars.sh [VERSION]     default: the version in scripts/versions.json
#
# Prints the folder. Instant when it is there already (the marker is the folder itself: it gets its name only when
# complete), so it needs the network once. Safe to run twice at once: each run works in a folder of its own and the
# first to finish gives it the name.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
version=${1:-$(sed -n 's/.*"kafka": *"\([^"]*\)".*/\1/p' "$root/scripts/versions.json")}
final="$root/.tools/kafka/$version"
if [ -d "$final/libs" ]; then
  echo "$final"
  exit 0
fi

command -v mvn >/dev/null 2>&1 || {
  echo "Maven is missing: install it (Debian: apt-get install maven) and run npm run setup again." >&2
  exit 1
}

# Kafka 4 names no binding for its logs in its poms (its own download does): without one the broker is silent.
log4j=$(sed -n 's/.*"log4j": *"\([^"]*\)".*/\1/p' "$root/scripts/versions.json")
case $version in
  [0-3].*) logging= ;;
  *) logging="<dependency><groupId>org.apache.logging.log4j</groupId><artifactId>log4j-slf4j-impl</artifactId><version>$log4j</version></dependency>" ;;
esac

mkdir -p "$root/.tools/kafka"
work=$(mktemp -d "$root/.tools/kafka/.part-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
cat >"$work/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>onceover</groupId>
  <artifactId>kafka-jars</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>$version</version></dependency>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId><version>$version</version></dependency>
    $logging
  </dependencies>
</project>
POM
copy() {
  mvn -B -q "$@" -f "$work/pom.xml" org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies \
    -DincludeScope=runtime -DoutputDirectory="$work/made/libs" >"$work/log" 2>&1
}
# Offline first: when another checkout has filled Maven's own repository, no registry is asked.
copy -o || copy || {
  grep -m 3 ERROR "$work/log" >&2 || tail -n 5 "$work/log" >&2
  echo "Kafka $version could not be fetched through Maven (see the lines above): check the network or Maven's settings.xml and run npm run setup again." >&2
  exit 1
}
# A formatted data folder without an identity: a test cluster copies it and adds meta.properties, which saves a JVM
# start per broker.
java=${JAVA_HOME:+$JAVA_HOME/bin/}java
cat >"$work/format.properties" <<PROPERTIES
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:9093
listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093
controller.listener.names=CONTROLLER
log.dirs=$work/made/formatted
PROPERTIES
"$java" -cp "$work/made/libs/*" kafka.tools.StorageTool format -t AAAAAAAAAAAAAAAAAAAAAA \
  -c "$work/format.properties" >"$work/log" 2>&1 || {
  tail -n 5 "$work/log" >&2
  echo "Kafka $version does not run on this Java (see the lines above): install JDK 17 or newer." >&2
  exit 1
}
rm -f "$work/made/formatted/meta.properties"
chmod 755 "$work/made"
# mv -T is not in POSIX: a plain mv onto an existing folder would nest it, hence the check after.
if [ ! -d "$final" ]; then mv "$work/made" "$final" 2>/dev/null || true; fi
rm -rf "$final/made"
[ -d "$final/libs" ] || { echo "The folder $final could not be made: check its rights and the space on the disk." >&2; exit 1; }
echo "$final"
