import json, confluent_kafka as kafka
reader = kafka.Consumer({"bootstrap.servers": "127.0.0.1:9092", "group.id": "readers", "enable.partition.eof": True, "enable.auto.commit": False})
for topic in ("ripplemem.memory", "ripplemem.edges"):
    latest, left = {}, set(reader.list_topics(topic).topics[topic].partitions)
    reader.assign([kafka.TopicPartition(topic, partition, kafka.OFFSET_BEGINNING) for partition in left])
    while left and (message := reader.poll()) is not None:
        if message.error() is None: latest[message.key()] = message.value()
        elif message.error().code() == kafka.KafkaError._PARTITION_EOF: left.remove(message.partition())
    records = [json.loads(value) for key, value in latest.items() if value and key[:2] != b"\0\0"]
    print(topic, len(records), "records", sum(len(record.get("units", [])) for record in records), "units")
