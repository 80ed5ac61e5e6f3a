#!/bin/sh
# Builds a stand-in for the image apache/kafka, for tests only, where that cannot be pulled. Called by image.sh.
#
#   testcontainers/stand-in.sh IMAGE:TAG
#
# It has what the tests and the official image's users rely on: /opt/kafka/bin, libs and config, /etc/kafka/docker/run
# as the command, KAFKA_* variables turned into server.properties by Kafka's own KafkaDockerWrapper, the user appuser,
# /mnt/shared/config for own files, "Kafka Server started" in the log. It does not have Connect, JMX, or the SSL_*_FILENAME
# variables.
#
# Nothing is downloaded but Kafka's jars (scripts/kafka-jars.sh, through Maven): the shell, the everyday commands, the
# C libraries and a Java made by jlink are this Linux machine's own. An image whose broker does not start gets no tag.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
. "$root/scripts/lib.sh"
image=$1
stage="onceover/stage:$$"
here="$root/testcontainers/stand-in"
[ "$(uname -s)" = Linux ] || fail "$image cannot be pulled, and the stand-in for it is built on Linux only: check the network."
jdk=${JAVA_HOME:-$(dirname "$(dirname "$(readlink -f "$(command -v java)")")")}
[ -x "$jdk/bin/jlink" ] || fail "$image cannot be pulled, and building a stand-in needs a JDK with jlink (Debian: apt-get install openjdk-17-jdk-headless)."

work=$(mktemp -d "$root/.tools/.stand-in-XXXXXX")
container=
clean() {
  [ -z "$container" ] || docker rm -fv "$container" >/dev/null 2>&1 || true
  docker rmi "$stage" >/dev/null 2>&1 || true
  rm -rf "$work"
}
trap clean EXIT
trap 'exit 130' INT TERM
quietly() { "$@" >"$work/log" 2>&1 || { tail -n 20 "$work/log" >&2; fail "the stand-in for $image could not be built (see the lines above): $1 failed."; }; }
say image "$image cannot be pulled here: building a stand-in, which takes about a minute"

kafka=$("$root/scripts/kafka-jars.sh" "${image#*:}")
files="$work/files"
mkdir -p "$files/usr/bin" "$files/usr/lib" "$files/lib64" "$files/etc/kafka/docker" "$files/etc/kafka/secrets" \
  "$files/opt/java" "$files/opt/kafka/bin" "$files/opt/kafka/config" "$files/opt/kafka/logs" "$files/opt/kafka/libs" \
  "$files/mnt/shared/config" "$files/var/lib/kafka/data" "$files/home/appuser" "$files/tmp"
ln -s usr/bin "$files/bin"
ln -s usr/lib "$files/lib"

# ---- Java: the modules that Kafka needs. java.desktop is for log4j (java.beans).
modules=java.base,java.desktop,java.instrument,java.logging,java.management,java.management.rmi,java.naming,java.net.http
modules=$modules,java.rmi,java.security.jgss,java.security.sasl,java.sql,java.xml,jdk.crypto.ec,jdk.jcmd,jdk.management
modules=$modules,jdk.management.agent,jdk.naming.dns,jdk.net,jdk.security.auth,jdk.security.jgss,jdk.unsupported,jdk.zipfs
quietly "$jdk/bin/jlink" --add-modules "$modules" --strip-debug --no-header-files --no-man-pages \
  --output "$files/opt/java/openjdk"

# ---- Kafka, without Connect and its web server
for jar in "$kafka"/libs/*.jar; do
  case ${jar##*/} in connect-* | jetty-* | jersey-* | jakarta.servlet* | hk2-* | swagger-*) ;; *) cp "$jar" "$files/opt/kafka/libs/" ;; esac
done
cp "$here/run" "$here/server.properties" "$here/log4j2.yaml" "$here/tools-log4j2.yaml" "$files/etc/kafka/docker/"
cp "$here/log4j2.yaml" "$here/tools-log4j2.yaml" "$files/opt/kafka/config/"
cp "$here"/bin/* "$files/opt/kafka/bin/"
while read -r name class; do
  [ -n "$name" ] || continue
  printf '#!/bin/bash\nexec /opt/kafka/bin/kafka-run-class.sh %s "$@"\n' "$class" >"$files/opt/kafka/bin/$name.sh"
done <"$here/tools.txt"
chmod 755 "$files"/opt/kafka/bin/*.sh "$files/etc/kafka/docker/run"

# ---- The everyday commands
commands="bash sh cat chmod chown cp cut date dirname basename echo env expr false find grep head hostname id kill ln ls
  mkdir mktemp mv printf pwd readlink rm rmdir sed sleep sort stat tail tee test touch tr true uname uniq wc xargs awk"
for name in $commands; do
  from=$(command -v "$name") && from=$(readlink -f "$from") || continue
  # A shell's own word is no file; there is one of the same name.
  [ -f "$from" ] || from=$(readlink -f "/usr/bin/$name") || continue
  [ -f "$from" ] && cp "$from" "$files/usr/bin/$name"
done

# ---- The libraries that all of this is linked with, each at the place where the loader looks for it
linked() { find "$files/usr/bin" "$files/opt/java" -type f \( -perm -u+x -o -name '*.so' \) -exec ldd {} + 2>/dev/null; }
{
  linked | sed -n -e 's/.*=> \(\/[^ ]*\) (.*/\1/p' -e 's/^[[:space:]]*\(\/[^ ]*\) (.*/\1/p'
  # For the codecs, whose native parts are inside jars: C++, and what the C library once had in files of their own.
  # (Where the search path has libraries of several machines, the first is this one's.)
  for library in libstdc++.so.6 libgcc_s.so.1 libpthread.so.0 libdl.so.2 libm.so.6 librt.so.1; do
    ldconfig -p 2>/dev/null | sed -n "s|^[[:space:]]*$library .* => ||p" | head -n 1
  done
} | sort -u | while read -r library; do
  case $library in "$files"/*) continue ;; esac
  mkdir -p "$files${library%/*}"
  [ -e "$files$library" ] || cp -L "$library" "$files$library"
done

# ---- The user, and who owns what
printf 'root:x:0:0:root:/root:/bin/bash\nappuser:x:1000:1000::/home/appuser:/bin/bash\n' >"$files/etc/passwd"
printf 'root:x:0:\nappuser:x:1000:\n' >"$files/etc/group"
printf 'hosts: files dns\npasswd: files\ngroup: files\n' >"$files/etc/nsswitch.conf"
chmod -R a+rX "$files"
chmod 1777 "$files/tmp"
tar -C "$files" --owner=1000 --group=1000 --numeric-owner -cf "$work/files.tar" .
quietly docker import --change 'ENV JAVA_HOME=/opt/java/openjdk' --change 'ENV LANG=C.UTF-8' \
  --change 'ENV PATH=/opt/java/openjdk/bin:/usr/bin' --change 'USER appuser' --change 'EXPOSE 9092' \
  "$work/files.tar" "$stage"
rm "$work/files.tar"

# ---- A broker runs once, which shows that it can (every codec, too), and leaves an archive of its classes for quicker starts
container=$(docker create "$stage" /bin/bash -c '
  java -Xshare:dump >/tmp/dump.log 2>&1 || true
  ARCHIVE_CLASSES=1 /etc/kafka/docker/run >/tmp/broker.log 2>&1 &
  broker=$!
  for _ in {1..900}; do
    grep -q "Kafka Server started" /tmp/broker.log && break
    kill -0 $broker 2>/dev/null || { cat /tmp/broker.log; exit 1; }
    sleep 0.1
  done
  grep -q "Kafka Server started" /tmp/broker.log || { cat /tmp/broker.log; exit 1; }
  cd /opt/kafka/bin
  at="--bootstrap-server localhost:9092 --topic one"
  ./kafka-topics.sh $at --create || exit 1
  codecs="gzip snappy lz4 zstd"
  for codec in $codecs; do echo $codec | ./kafka-console-producer.sh $at --compression-codec $codec || exit 1; done
  got=$(./kafka-console-consumer.sh $at --from-beginning --max-messages 4 --timeout-ms 60000)
  [ "$(echo $got)" = "$codecs" ] || { echo "read back: $got"; cat /tmp/broker.log; exit 1; }
  kill $broker
  wait $broker
  ls -l /opt/kafka
  rm -rf /tmp/* /opt/kafka/config/server.properties')
quietly docker start -a "$container"
quietly docker commit --change 'CMD ["/etc/kafka/docker/run"]' --change 'WORKDIR /' \
  --change 'VOLUME ["/etc/kafka/secrets","/var/lib/kafka/data","/mnt/shared/config"]' \
  --change 'LABEL onceover.stand-in="a stand-in built here for tests"' "$container" "$image"
