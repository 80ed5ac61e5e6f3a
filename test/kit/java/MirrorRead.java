import java.io.PrintStream;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.MessageFormatter;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.connect.mirror.RemoteClusterUtils;
import org.apache.kafka.connect.mirror.formatters.CheckpointFormatter;
import org.apache.kafka.connect.mirror.formatters.HeartbeatFormatter;
import org.apache.kafka.connect.mirror.formatters.OffsetSyncFormatter;

/**
 * Reads with MirrorMaker 2's own classes what it writes beside records. Arguments: bootstrap servers of the target,
 * alias of the source, a group, the topic of offset syncs. One fact a line.
 */
public class MirrorRead {
  static void format(Map<String, Object> settings, String name, String topic, MessageFormatter formatter) {
    try (KafkaConsumer<byte[], byte[]> consumer =
        new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
      List<TopicPartition> all = List.of(new TopicPartition(topic, 0));
      consumer.assign(all);
      consumer.seekToBeginning(all);
      long end = consumer.endOffsets(all).get(all.get(0));
      while (consumer.position(all.get(0)) < end) {
        for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(500))) {
          System.out.print(name + " ");
          formatter.writeTo(record, System.out);
        }
      }
    }
  }

  public static void main(String[] args) throws Exception {
    Map<String, Object> settings = new HashMap<>();
    settings.put("bootstrap.servers", args[0]);
    Map<String, String> offsets = new TreeMap<>();
    for (Map.Entry<TopicPartition, OffsetAndMetadata> entry :
        RemoteClusterUtils.translateOffsets(settings, args[1], args[2], Duration.ofSeconds(30)).entrySet()) {
      offsets.put(entry.getKey().toString(), String.valueOf(entry.getValue().offset()));
    }
    System.out.println("translated " + offsets);
    System.out.println("heartbeats " + RemoteClusterUtils.heartbeatTopics(settings));
    System.out.println("checkpoints " + RemoteClusterUtils.checkpointTopics(settings));
    System.out.println("upstream " + RemoteClusterUtils.upstreamClusters(settings));
    format(settings, "heartbeat", "heartbeats", new HeartbeatFormatter());
    format(settings, "checkpoint", args[1] + ".checkpoints.internal", new CheckpointFormatter());
    format(settings, "sync", args[3], new OffsetSyncFormatter());
    System.out.flush();
  }
}
