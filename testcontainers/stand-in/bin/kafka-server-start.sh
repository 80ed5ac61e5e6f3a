#!/bin/bash
# kafka-server-start.sh server.properties [--override property=value]*
export KAFKA_LOG4J_OPTS=${KAFKA_LOG4J_OPTS:--Dlog4j2.configurationFile=/opt/kafka/config/log4j2.yaml}
export KAFKA_HEAP_OPTS=${KAFKA_HEAP_OPTS:--Xmx1G -Xms1G}
exec /opt/kafka/bin/kafka-run-class.sh kafka.Kafka "$@"
