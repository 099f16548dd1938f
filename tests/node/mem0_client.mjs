// mem0_client.mjs URL TOKEN: what a program does with Mem0's published client for JavaScript against a memory of ours.
import assert from "node:assert/strict";
import { MemoryClient } from "mem0ai";

const [url, token] = process.argv.slice(2);
const client = new MemoryClient({ apiKey: token, host: url });
const texts = (found) => found.results.map((memory) => memory.memory).sort();
const said = (content) => [{ role: "user", content }];
const refused = (words, call) => assert.rejects(call, (error) => error.message.includes(words));

await client.add(said("I moved to Lisbon last week."), { userId: "ann", metadata: { topic: "home", year: 2024 } });
await client.add(said("The ferry leaves at noon."), { userId: "ann", metadata: { topic: "travel", tags: ["boat"] } });
await client.add(said("I like tea."), { userId: "bea" });

const found = await client.search("Where did Ann move?", { filters: { user_id: "ann" } });
assert.equal(found.results[0].memory, "I moved to Lisbon last week.");
const listed = async (filters) => texts(await client.getAll({ filters }));
const either = { OR: [{ user_id: "ann" }, { user_id: "bea" }] };
const of = (metadata) => ({ AND: [{ user_id: "ann" }, { metadata }] });
assert.deepEqual(await listed(either), ["I like tea.", "I moved to Lisbon last week.", "The ferry leaves at noon."]);
assert.deepEqual(await listed({ user_id: { in: ["bea", "nobody"] } }), ["I like tea."]);
assert.deepEqual(await listed(of({ topic: "home" })), ["I moved to Lisbon last week."]);
assert.deepEqual(await listed(of({ year: { gte: 2025 } })), []);
assert.deepEqual(await listed(of({ tags: { contains: "boat" } })), ["The ferry leaves at noon."]);
assert.deepEqual(await listed({ AND: [either, { NOT: { metadata: { topic: "*" } } }] }), ["I like tea."]);
const travel = await client.search("Where did Ann move?", { filters: of({ topic: { in: ["travel"] } }), topK: 5 });
assert.ok(texts(travel).every((text) => text === "The ferry leaves at noon."), JSON.stringify(travel));
const best = Math.max(...found.results.map((one) => one.score));
const above = await client.search("Where did Ann move?", { filters: { user_id: "ann" }, threshold: best });
assert.ok(above.results.length > 0 && above.results.every((one) => one.score >= best), JSON.stringify(above));
await refused("icontains", () => client.getAll({ filters: of({ topic: { icontains: "H" } }) }));

const [{ id, metadata }] = found.results;
assert.deepEqual(metadata, { topic: "home", year: 2024 });
await client.update(id, { metadata: { topic: "home", year: 2025 } });
assert.deepEqual(await listed(of({ year: { gte: 2025 } })), ["I moved to Lisbon last week."]);
await client.delete(id);
assert.deepEqual(await listed(of({ topic: "home" })), []);
await client.deleteAll({ userId: "bea" });
assert.deepEqual(await listed({ user_id: "bea" }), []);
