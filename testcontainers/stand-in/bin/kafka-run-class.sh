#!/bin/bash
# kafka-run-class.sh CLASS ARGUMENT...   reads the environment variables of Kafka's own script of this name.
# ARCHIVE_CLASSES=1, set while the image is built, writes the archive of classes that all later starts read.
archive=(-XX:SharedArchiveFile=/opt/kafka/kafka.jsa)
[[ -z ${ARCHIVE_CLASSES:-} ]] || archive=(-XX:ArchiveClassesAtExit=/opt/kafka/kafka.jsa)
[[ -e /opt/kafka/kafka.jsa || -n ${ARCHIVE_CLASSES:-} ]] || archive=()
# A list of words each: they may hold several options.
exec java "${archive[@]}" ${KAFKA_HEAP_OPTS:--Xmx256M} \
  ${KAFKA_JVM_PERFORMANCE_OPTS:--server -XX:+UseG1GC -XX:MaxGCPauseMillis=20 -Djava.awt.headless=true} \
  ${KAFKA_LOG4J_OPTS:--Dlog4j2.configurationFile=/opt/kafka/config/tools-log4j2.yaml} \
  -Dkafka.logs.dir="${LOG_DIR:-/opt/kafka/logs}" ${KAFKA_OPTS:-} \
  -cp "$(printf '%s:' /opt/kafka/libs/*.jar | sed 's/:$//')" "$@"
