// LangGraph's store: beside its own in-memory store, in a graph, from two processes, and over a service that ends.
import assert from "node:assert/strict";
import { InMemoryStore } from "@langchain/langgraph-checkpoint";
import { RippleMem, RippleMemError, UnreachableError } from "ripplemem";
import { RippleMemStore } from "ripplemem/langgraph";
import { elsewhere, freshBank, main, ownService, refused, seeded, url } from "./support.mjs";

const storeOf = (bank = freshBank("store"), options = {}) => new RippleMemStore(new RippleMem(url, { bank }), options);
const plain = ({ namespace, key, value }) => ({ namespace, key, value });
// The order of an object's fields is not kept.
const canonical = (_, held) =>
  held && typeof held === "object" && !Array.isArray(held) ? Object.fromEntries(Object.entries(held).sort()) : held;
const sorted = (items) => items.map((item) => JSON.stringify(plain(item), canonical)).sort();

/** What one step does to a store, and what it gives in a form that both stores share. */
async function step(store, next) {
  const namespace = [["users", "ann"], ["users", "ann", "notes"], ["users", "anna"], ["docs"], ["users", "日本 é\\"]][next(5)];
  const key = ["a", "b", "c/d", "e.f", "ключ ü"][next(5)];
  const prefix = namespace.slice(0, next(namespace.length + 1));
  switch (next(7)) {
    case 0:
    case 1:
    case 2: {
      const value = { n: next(6), kind: ["x", "y"][next(2)], flag: next(2) === 0, nested: { deep: [next(3), null, "t"] } };
      return store.put(namespace, key, value, [undefined, false, ["kind"]][next(3)]);
    }
    case 3:
      return store.delete(namespace, key);
    case 4: {
      const item = await store.get(namespace, key);
      return item && plain(item);
    }
    case 5: {
      const filter = [{}, { kind: "x" }, { n: { $gte: 3 } }, { n: { $gt: 1, $lt: 5 }, kind: { $ne: "x" } }, { flag: true }, { none: 1 }, { n: { $in: [1, 2] } }][next(7)];
      return sorted(await store.search(prefix, { filter, limit: 100 }));
    }
    default: {
      const options = [{}, { prefix: ["users"] }, { suffix: ["notes"] }, { prefix: ["*", "ann"] }, { maxDepth: 1 }, { prefix: ["users"], maxDepth: 2, limit: 1, offset: 1 }][next(6)];
      // Namespaces without an item: the in-memory store still lists them.
      return options.limit ? undefined : store.listNamespaces(options).then((all) => all.map(String));
    }
  }
}

/** The same random calls give the same answers as LangGraph's own store. */
async function beside_the_reference() {
  for (const seed of [1, 2, 3]) {
    const [ours, reference] = [storeOf(), new InMemoryStore()];
    for (let n = 0; n < 120; n += 1) {
      const [one, two] = await Promise.all([step(ours, seeded(seed * 1_000 + n)), step(reference, seeded(seed * 1_000 + n))]);
      const listsNamespaces = Array.isArray(two) && two.length && !String(two[0]).startsWith("{");
      if (!listsNamespaces) assert.deepEqual(one ?? null, two ?? null, `seed ${seed}, step ${n}`);
      else for (const namespace of one) assert.ok(two.includes(namespace), `seed ${seed}, step ${n}: ${namespace}`);
    }
  }
}

async function contract() {
  const store = storeOf();
  await store.put(["users", "ann"], "prefs", { theme: "dark", n: 1 });
  const first = await store.get(["users", "ann"], "prefs");
  assert.ok(first.createdAt instanceof Date && first.updatedAt instanceof Date);
  await new Promise((resolve) => setTimeout(resolve, 5));
  await store.put(["users", "ann"], "prefs", { theme: "light", n: 2 });
  const second = await store.get(["users", "ann"], "prefs");
  assert.deepEqual([second.value, second.createdAt], [{ theme: "light", n: 2 }, first.createdAt]);
  assert.ok(second.updatedAt > first.updatedAt);
  // Reads of a batch see what was there before it; of two puts of a key the last one stands.
  const [, before, found] = await store.batch([
    { namespace: ["users", "ann"], key: "prefs", value: { theme: "red" } },
    { namespace: ["users", "ann"], key: "prefs" },
    { namespacePrefix: ["users"], limit: 10 },
    { namespace: ["users", "ann"], key: "prefs", value: { theme: "blue" } },
    { namespace: ["users", "ann"], key: "gone", value: null },
  ]);
  assert.deepEqual([before.value.theme, found[0].value.theme], ["light", "light"]);
  assert.equal((await store.get(["users", "ann"], "prefs")).value.theme, "blue");
  // A key that was deleted returns.
  await store.delete(["users", "ann"], "prefs");
  assert.equal(await store.get(["users", "ann"], "prefs"), null);
  await store.put(["users", "ann"], "prefs", { theme: "green" });
  assert.equal((await store.get(["users", "ann"], "prefs")).value.theme, "green");
  // Pages are whole, and no item is in two of them.
  for (let n = 0; n < 45; n += 1) await store.put(["pages"], `k${n}`, { n });
  const pages = await Promise.all([0, 20, 40].map((offset) => store.search(["pages"], { limit: 20, offset })));
  assert.deepEqual(pages.map((page) => page.length), [20, 20, 5]);
  assert.equal(new Set(pages.flat().map(({ key }) => key)).size, 45);
  assert.deepEqual(pages.flat().map(({ value }) => value.n), Array.from({ length: 45 }, (_, n) => n));
}

/** What goes in comes out, whatever its size and its names. */
async function exact() {
  const store = storeOf();
  const long = "ü".repeat(300);
  const values = {
    numbers: { n: 1e21, m: -0.1, big: 9007199254740991, list: [1, "1", true, null, { a: [] }] },
    half: { text: "half \ud83d a character", ok: 1 },
    large: { text: "große Datei ".repeat(30_000), name: "file.txt", lines: Array.from({ length: 500 }, (_, n) => `line ${n}`) },
    deep: { a: JSON.parse(`${"[".repeat(60)}1${"]".repeat(60)}`), name: "deep" },
    empty: {},
    [long]: { key: "long" },
    "line\nbreak": { key: "control" },
    " ": { key: "space" },
  };
  for (const [key, value] of Object.entries(values)) {
    await store.put(["files"], key, value);
    const item = await store.get(["files"], key);
    assert.deepEqual([item?.key, item?.value], [key, value], key);
  }
  assert.equal((await store.search(["files"], { limit: 100 })).length, Object.keys(values).length);
  assert.equal((await store.search(["files"], { filter: { name: "file.txt" } }))[0].key, "large");
  for (const key of Object.keys(values)) await store.delete(["files"], key);
  assert.deepEqual(await store.search(["files"], { limit: 100 }), []);
  const control = ["a\nb", "c\\x0a"];
  await store.put(control, "k", { v: 1 });
  assert.deepEqual(await store.listNamespaces({ prefix: control.slice(0, 1) }), [control]);
  assert.deepEqual((await store.search(control)).map(({ namespace }) => namespace), [control]);
  await refused(() => store.put(["a".repeat(300)], "k", { v: 1 }), /256 bytes/);
  await refused(() => store.put(["a"], "k", { text: "x".repeat(3 << 20) }));
  await refused(() => store.search(["a"], { filter: { n: { $regex: "x" } } }), /\$regex/);
}

/** A question finds by meaning, and only where it may: in the namespaces, and among what a filter leaves. */
async function by_meaning() {
  const store = storeOf();
  const facts = [
    ["ann", "home", "I moved to Lisbon last week, into a flat above a bakery.", "place"],
    ["ann", "pet", "My cat Miso sleeps on the radiator.", "animal"],
    ["bob", "bees", "My sister Clara keeps bees in Porto.", "animal"],
    ["bob", "work", "I repair accordions in a small workshop.", "work"],
  ];
  for (const [user, key, text, kind] of facts) await store.put(["memories", user], key, { text, kind });
  await store.put(["memories", "ann"], "secret", { text: "Ann lives in Lisbon, says nobody.", kind: "place" }, false);
  const [best] = await store.search(["memories"], { query: "Who moved to Lisbon, into a flat above a bakery?", limit: 3 });
  assert.deepEqual([best.key, best.value.kind], ["home", "place"]);
  assert.ok(best.score === undefined || (best.score >= 0 && best.score <= 1), String(best.score));
  const bobs = await store.search(["memories", "bob"], { query: "Who keeps bees?", limit: 10 });
  assert.equal(bobs[0].key, "bees");
  assert.ok(bobs.every(({ namespace }) => namespace[1] === "bob"));
  const animals = await store.search(["memories"], { query: "What do they like?", filter: { kind: "animal" }, limit: 10 });
  assert.deepEqual(animals.map(({ key }) => key).sort(), ["bees", "pet"]);
  const all = await store.search(["memories"], { query: "Who moved to Lisbon, into a flat above a bakery?", limit: 10 });
  assert.ok(!all.some(({ key }) => key === "secret"), "what is not indexed is not found by meaning");
  assert.equal((await store.search(["memories", "ann"], { limit: 10 })).length, 3);
  assert.equal((await store.search(["memories"], { query: "bees", limit: 1, offset: 1 })).length, 1);
  assert.deepEqual(await storeOf().search(["none"], { query: "anything" }), []);
}

/** A graph writes in one process and reads in another. */
async function in_a_graph() {
  const bank = freshBank("graph");
  assert.equal(await elsewhere("graph", bank, "My name is Ann and I keep bees."), "noted");
  assert.match(await elsewhere("graph", bank, "What do I keep?"), /bees/);
}

async function graph(bank, said) {
  const { FakeListChatModel } = await import("@langchain/core/utils/testing");
  const { StateGraph, MessagesAnnotation, START, getStore } = await import("@langchain/langgraph");
  const node = async ({ messages }, config) => {
    const store = config.store ?? getStore();
    const text = String(messages.at(-1).content);
    const [found] = await store.search(["memories", "ann"], { query: text, limit: 1 });
    if (!text.endsWith("?")) await store.put(["memories", "ann"], `m${Date.now()}`, { text });
    const model = new FakeListChatModel({ responses: [found ? `You said: ${found.value.text}` : "noted"] });
    return { messages: [await model.invoke(messages)] };
  };
  const compiled = new StateGraph(MessagesAnnotation).addNode("answer", node).addEdge(START, "answer").compile({ store: storeOf(bank) });
  const { messages } = await compiled.invoke({ messages: [{ role: "user", content: said }] });
  return String(messages.at(-1).content);
}

/** Two processes write the same keys and others; nothing is lost, and each key has one of the values. */
async function two_writers() {
  const bank = freshBank("writers");
  await Promise.all([elsewhere("write", bank, "one"), elsewhere("write", bank, "two")]);
  const items = await storeOf(bank).search(["shared"], { limit: 100 });
  assert.equal(items.length, 30);
  for (const { key, value } of items) {
    if (key.startsWith("both")) assert.ok(["one", "two"].includes(value.by), JSON.stringify(value));
    else assert.ok(key.startsWith(value.by), key);
  }
}

async function write(bank, by) {
  const store = storeOf(bank);
  for (let n = 0; n < 10; n += 1) {
    await Promise.all([store.put(["shared"], `both-${n}`, { by, n }), store.put(["shared"], `${by}-${n}`, { by, n })]);
  }
}

/** While the service is away the store says so; what was answered is there when it is back. */
async function service_killed() {
  const service = await ownService();
  if (!service) return;
  try {
    const store = new RippleMemStore(new RippleMem(service.url, { bank: "killed" }));
    await store.put(["a"], "kept", { n: 1 });
    await service.kill();
    assert.ok((await refused(() => store.get(["a"], "kept"))) instanceof UnreachableError);
    assert.ok((await refused(() => store.put(["a"], "lost", { n: 2 }))) instanceof RippleMemError);
    await service.start();
    assert.deepEqual((await store.search(["a"])).map(({ key }) => key), ["kept"]);
    await store.put(["a"], "later", { n: 3 });
    assert.equal((await store.search(["a"])).length, 2);
  } finally {
    await service.kill();
  }
}

await main(
  { contract, exact, beside_the_reference, by_meaning, in_a_graph, two_writers, service_killed },
  { graph, write },
);
