"""Asks a question as a foreign client: ask.py ADDRESS PREFIX HEADERS QUESTION, the last two as JSON.

HEADERS maps names to values in hexadecimal digits. Prints the answer's partition, headers (in the same form) and value.
"""

import json
import sys

import confluent_kafka as kafka

address, prefix, headers, question = sys.argv[1:]
headers = {name: bytes.fromhex(value) for name, value in json.loads(headers).items()}
topic = headers["kafka_replyTopic"].decode()
reader = kafka.Consumer({"bootstrap.servers": address, "group.id": "asking", "enable.auto.commit": False})
partitions = reader.list_topics(topic).topics[topic].partitions
ends = [reader.get_watermark_offsets(kafka.TopicPartition(topic, partition))[1] for partition in partitions]
reader.assign([kafka.TopicPartition(topic, partition, end) for partition, end in zip(partitions, ends, strict=True)])
writer = kafka.Producer({"bootstrap.servers": address})
writer.produce(f"{prefix}.questions", question.encode(), headers=list(headers.items()))
writer.flush()
while (message := reader.poll(30)) is not None:
    answered = dict(message.headers() or [])
    if message.error() is None and answered.get("kafka_correlationId") == headers["kafka_correlationId"]:
        shown = {name: value.hex() for name, value in answered.items()}
        print(json.dumps({"partition": message.partition(), "headers": shown, "value": json.loads(message.value())}))
        break
else:
    sys.exit("no answer within 30 s")
