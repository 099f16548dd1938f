import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Produces with Apache Kafka's own Java client and says where every record went: what another
 * partitioner is compared with.
 *
 * <pre>java -cp "$(scripts/broker fetch)/*" tests/java/Produce.java BOOTSTRAP TOPIC &lt; lines</pre>
 *
 * A line of standard input is a key, a tab and a value, in UTF-8; further tabs belong to the value,
 * and an empty key is no key. Partitions are chosen by the client's default: murmur2 of the key.
 * A line of standard output is the partition, a tab and the offset of the record of the same line
 * of input, written when all of its replicas in sync have it. Exit code 1: a line of input cannot be
 * read, or a record was not taken; nothing is said of records whose line is not printed. 2: wrong
 * usage.
 */
public final class Produce {
    private static final int TIMEOUT_MILLISECONDS = 30_000;
    private static final int AT_ONCE = 10_000;

    public static void main(String[] arguments) throws IOException, InterruptedException {
        if (arguments.length != 2) {
            System.err.println("usage: java -cp LIBS/* Produce.java BOOTSTRAP TOPIC < lines of key<TAB>value");
            System.exit(2);
        }
        try {
            run(arguments[0], arguments[1]);
        } catch (Failed failed) {
            System.err.println("Produce: " + failed.getMessage());
            System.exit(1);
        }
    }

    private static void run(String bootstrap, String topic) throws IOException, InterruptedException, Failed {
        var properties = new Properties();
        properties.put(ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
        properties.put(ProducerConfig.MAX_REQUEST_SIZE_CONFIG, 8 << 20);
        properties.put(ProducerConfig.ACKS_CONFIG, "all");
        properties.put(ProducerConfig.MAX_BLOCK_MS_CONFIG, TIMEOUT_MILLISECONDS);
        properties.put(ProducerConfig.REQUEST_TIMEOUT_MS_CONFIG, TIMEOUT_MILLISECONDS / 2);
        properties.put(ProducerConfig.DELIVERY_TIMEOUT_MS_CONFIG, TIMEOUT_MILLISECONDS);
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8.newDecoder()));
        var output = new PrintWriter(new BufferedWriter(new OutputStreamWriter(System.out, StandardCharsets.UTF_8)));
        try (var producer = new KafkaProducer<>(properties, new StringSerializer(), new StringSerializer())) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            long number = 0;
            for (String line = input.readLine(); line != null; line = input.readLine()) {
                number++;
                int tab = line.indexOf('\t');
                if (tab < 0) {
                    throw new Failed("line " + number + " of standard input has no tab between key and value");
                }
                String key = tab == 0 ? null : line.substring(0, tab);
                sent.add(producer.send(new ProducerRecord<>(topic, key, line.substring(tab + 1))));
                if (sent.size() == AT_ONCE) {
                    report(sent, number, topic, bootstrap, output);
                }
            }
            report(sent, number, topic, bootstrap, output);
        } catch (org.apache.kafka.common.KafkaException error) {
            throw new Failed("topic " + topic + " at " + bootstrap + ": " + described(error));
        } catch (java.nio.charset.CharacterCodingException error) {
            throw new Failed("standard input is not UTF-8");
        } finally {
            output.flush();
        }
    }

    /** Waits for the records sent, of which the last came from line {@code last}. */
    private static void report(
            List<Future<RecordMetadata>> sent, long last, String topic, String bootstrap, PrintWriter output)
            throws InterruptedException, Failed {
        long number = last - sent.size();
        for (Future<RecordMetadata> future : sent) {
            number++;
            try {
                RecordMetadata record = future.get();
                output.println(record.partition() + "\t" + record.offset());
            } catch (ExecutionException error) {
                String why = described(error.getCause());
                throw new Failed("line " + number + " was not taken by topic " + topic + " at " + bootstrap + ": " + why);
            }
        }
        sent.clear();
    }

    private static String described(Throwable error) {
        String cause = error.getCause() == null ? "" : " (" + error.getCause().getMessage() + ")";
        return error.getClass().getSimpleName() + ": " + error.getMessage() + cause;
    }

    /** Ends the run with a message. */
    private static final class Failed extends Exception {
        Failed(String message) {
            super(message);
        }
    }
}
