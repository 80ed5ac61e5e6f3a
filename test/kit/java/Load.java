import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Writes records with Kafka's own producer. Arguments: producer settings, NAME=VALUE. Standard input: a record a line,
 * fields parted by tabs: topic, partition, timestamp ("-" for now), key, value, header key, header value, ... The last
 * ones are Base64, or "-" for null. Prints the offset of each, in order.
 */
public class Load {
  static byte[] bytes(String field) {
    return field.equals("-") ? null : Base64.getDecoder().decode(field);
  }

  public static void main(String[] settings) throws Exception {
    Properties properties = new Properties();
    for (String setting : settings) {
      int at = setting.indexOf('=');
      properties.put(setting.substring(0, at), setting.substring(at + 1));
    }
    List<Future<RecordMetadata>> sent = new ArrayList<>();
    ByteArraySerializer serializer = new ByteArraySerializer();
    try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(properties, serializer, serializer)) {
      BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
      for (String line = in.readLine(); line != null; line = in.readLine()) {
        String[] f = line.split("\t", -1);
        Long timestamp = f[2].equals("-") ? null : Long.valueOf(f[2]);
        ProducerRecord<byte[], byte[]> record =
          new ProducerRecord<>(f[0], Integer.valueOf(f[1]), timestamp, bytes(f[3]), bytes(f[4]));
        for (int i = 5; i + 1 < f.length; i += 2) record.headers().add(new String(bytes(f[i]), "UTF-8"), bytes(f[i + 1]));
        sent.add(producer.send(record));
      }
      for (Future<RecordMetadata> answer : sent) System.out.println(answer.get().offset());
    }
  }
}
