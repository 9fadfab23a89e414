import java.io.FileReader;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Reads a route's topic from Kafka: chooses by the headers alone, and commits after the work.
 *
 * <pre>java -cp 'jars/*' Subscriber.java client.properties hookbus.siem user.elicitation.</pre>
 *
 * The jars are those of org.apache.kafka:kafka-clients; client.properties has bootstrap.servers,
 * group.id and what TLS and the login need. The last argument is what the type starts with.
 */
public final class Subscriber {
    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        try (FileReader file = new FileReader(arguments[0], StandardCharsets.UTF_8)) {
            settings.load(file);
        }
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false"); // committed below, when the work is done
        settings.put("isolation.level", "read_committed"); // hides what a router has aborted
        KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            consumer.wakeup();
            try {
                main.join(10_000);
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
            }
        }));
        try (consumer) {
            consumer.subscribe(List.of(arguments[1]));
            while (true) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(500));
                for (ConsumerRecord<byte[], byte[]> record : records) {
                    if (header(record, "ce_type").startsWith(arguments[2])) {
                        handle(record);
                    }
                }
                consumer.commitSync();
            }
        } catch (WakeupException stopped) {
            // by the shutdown hook
        }
    }

    /** Your work. It is done when this returns; an event may come twice, source and id tell. */
    private static void handle(ConsumerRecord<byte[], byte[]> record) {
        System.out.println(String.join(" ", header(record, "ce_source"), header(record, "ce_id"),
                header(record, "ce_type"), header(record, "hookbus-capture")));
    }

    private static String header(ConsumerRecord<byte[], byte[]> record, String name) {
        Header found = record.headers().lastHeader(name);
        if (found == null) {
            return "";
        }
        String value = new String(found.value(), StandardCharsets.US_ASCII);
        return URLDecoder.decode(value.replace("+", "%2B"), StandardCharsets.UTF_8);
    }
}
