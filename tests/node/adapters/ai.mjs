// The Vercel AI SDK: the middleware and the tools, with the SDK's scripted models, in one process and over several.
import assert from "node:assert/strict";
import { generateText, stepCountIs, streamText, tool, jsonSchema, wrapLanguageModel } from "ai";
import * as scripted from "ai/test";
import { RippleMem, UnreachableError } from "ripplemem";
import { memoryMiddleware, memoryTools } from "ripplemem/ai";
import { elsewhere, freshBank, main, ownService, refused, url } from "./support.mjs";

const ScriptedModel = scripted.MockLanguageModelV4 ?? scripted.MockLanguageModelV3;
const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 1, text: 1, reasoning: undefined },
};
const reply = (text) => ({ content: [{ type: "text", text }], finishReason: { unified: "stop", raw: "stop" }, usage, warnings: [] });
const calls = (toolName, input, toolCallId = "c1") => ({
  content: [{ type: "tool-call", toolCallId, toolName, input: JSON.stringify(input) }],
  finishReason: { unified: "tool-calls", raw: "tool_calls" },
  usage,
  warnings: [],
});

/** A model that gives these replies in turn, and keeps what it was sent. */
function modelOf(...replies) {
  let n = 0;
  const next = () => replies[Math.min(n++, replies.length - 1)];
  return new ScriptedModel({
    doGenerate: async () => next(),
    doStream: async () => {
      const { content, finishReason } = next();
      const parts = content.flatMap((part) => {
        if (part.type !== "text") return [part];
        const words = part.text.match(/\S+\s*/g);
        return [{ type: "text-start", id: "1" }, ...words.map((delta) => ({ type: "text-delta", id: "1", delta })), { type: "text-end", id: "1" }];
      });
      const stream = new ReadableStream({
        start(out) {
          for (const part of [{ type: "stream-start", warnings: [] }, ...parts, { type: "finish", finishReason, usage }]) out.enqueue(part);
          out.close();
        },
      });
      return { stream };
    },
  });
}

const clients = new Map();
/** One client for each bank, which sees what it wrote. */
function memoryOf(bank, address = url) {
  const name = `${address} ${bank}`;
  if (!clients.has(name)) clients.set(name, new RippleMem(address, { bank }));
  return clients.get(name);
}
const wrapped = (model, memory, options = {}) =>
  wrapLanguageModel({ model, middleware: memoryMiddleware(memory, { speaker: "Ann", ...options }) });
const sent = (model, n = -1) => [...model.doGenerateCalls, ...model.doStreamCalls].at(n).prompt;
const held = async (bank, memory = memoryOf(bank)) => {
  // Lists have what an answer reflects, and the one who wrote knows how far that must go.
  await memory.ask("Who?", { bank });
  const { turns } = await memory.turns({}, { order: "oldest", limit: 100, bank });
  return turns.map(({ speaker, text }) => `${speaker}: ${text}`);
};

/** What was said in one conversation is in the prompt of another one, at its end, and nowhere else. */
async function recalls() {
  const bank = freshBank("ai");
  const first = modelOf(reply("Bees are fine insects."));
  await generateText({ model: wrapped(first, memoryOf(bank), { session: "one" }), prompt: "My sister Clara keeps bees in Porto." });
  assert.doesNotMatch(JSON.stringify(sent(first)), /recalled_memory/, "an empty memory adds nothing");
  const second = modelOf(reply("Clara does."));
  const messages = [
    { role: "user", content: "Hello." },
    { role: "assistant", content: "Hello, Ann." },
    { role: "user", content: "Who keeps bees?" },
  ];
  const { text } = await generateText({ model: wrapped(second, memoryOf(bank), { session: "two" }), system: "You are kind.", messages });
  assert.equal(text, "Clara does.");
  const prompt = sent(second);
  assert.equal(prompt.length, 4);
  assert.doesNotMatch(JSON.stringify(prompt.slice(0, 3)), /recalled_memory/);
  const [question, block] = prompt[3].content;
  assert.equal(question.text, "Who keeps bees?");
  assert.match(block.text, /^<recalled_memory>\n[^]*Ann: My sister Clara keeps bees in Porto\.[^]*\n<\/recalled_memory>$/);
  assert.deepEqual(await held(bank), [
    "Ann: My sister Clara keeps bees in Porto.",
    "Assistant: Bees are fine insects.",
    "Ann: Who keeps bees?",
    "Assistant: Clara does.",
  ]);
  const { turns } = await memoryOf(bank).turns({ session: "two" });
  assert.deepEqual(turns.map(({ kind }) => kind), ["assistant", "person"]);
}

/** The steps of one call have the same block; the calls of tools are the answer's metadata; nothing is stored twice. */
async function steps() {
  const weather = tool({
    description: "The weather of a place.",
    inputSchema: jsonSchema({ type: "object", properties: { place: { type: "string" } }, required: ["place"] }),
    execute: async ({ place }) => ({ place, sky: "clear" }),
  });
  for (const run of ["generate", "stream"]) {
    const bank = freshBank("steps");
    await memoryOf(bank).remember({ turn: "1", speaker: "Ann", text: "I live in Lisbon.", time: new Date() }, { waitMs: 10_000 });
    const model = modelOf(calls("weather", { place: "Lisbon" }), reply(`The sky is clear (${run}).`));
    const options = { model: wrapped(model, memoryOf(bank), { session: run }), tools: { weather }, stopWhen: stepCountIs(4), prompt: "How is the weather where I live?" };
    const text = run === "generate" ? (await generateText(options)).text : await streamText(options).text;
    assert.equal(text, `The sky is clear (${run}).`);
    const blocks = [0, 1].map((n) => sent(model, n)[0].content.map(({ text }) => text));
    assert.match(blocks[0][1], /Lisbon/);
    assert.deepEqual(blocks[0], blocks[1], "the provider's cache holds for the further steps");
    await held(bank);
    const { turns } = await memoryOf(bank).turns({ session: run }, { order: "oldest" });
    assert.deepEqual(turns.map(({ speaker, text }) => [speaker, text]), [
      ["Ann", "How is the weather where I live?"],
      ["Assistant", `The sky is clear (${run}).`],
    ]);
    const { tool_calls } = turns[1].metadata;
    assert.deepEqual(tool_calls.map(({ id, name }) => [id, name]), [["c1", "weather"], ["c1", "weather"]]);
    assert.deepEqual([tool_calls[0].input, tool_calls[1].output.value.sky], [{ place: "Lisbon" }, "clear"]);
  }
}

/** The same conversation sent again stores nothing twice; an answer that is made again takes the place of the first. */
async function again() {
  const bank = freshBank("again");
  const ask = (answer, messages) => generateText({ model: wrapped(modelOf(reply(answer)), memoryOf(bank), { session: "s" }), messages });
  const messages = [{ role: "user", content: "Name a colour." }];
  await ask("Red.", messages);
  await ask("Red.", messages);
  assert.deepEqual(await held(bank), ["Ann: Name a colour.", "Assistant: Red."]);
  await ask("Blue.", messages);
  assert.deepEqual((await held(bank)).sort(), ["Ann: Name a colour.", "Assistant: Blue."]);
  // An application that shows what was recalled does not have it stored; a message may have its own id and time.
  const echoed = "Fine.\n<recalled_memory>\nsomething\n</recalled_memory>";
  const own = { role: "user", content: `A red one.\n<recalled_memory>\nx\n</recalled_memory>`, providerOptions: { ripplemem: { id: "m-7", time: "2024-05-06T09:00:00+01:00" } } };
  await ask(echoed, [...messages, { role: "assistant", content: "Blue." }, own]);
  await held(bank);
  const { turns } = await memoryOf(bank).turns({ turns: ["m-7"] });
  assert.deepEqual(turns.map(({ text, time }) => [text, new Date(time).getTime()]), [["A red one.", Date.parse("2024-05-06T09:00:00+01:00")]]);
  assert.ok((await held(bank)).includes("Assistant: Fine."));
  assert.doesNotMatch(JSON.stringify(await held(bank)), /recalled_memory/);
  // One call states its bank, session and speaker.
  const other = freshBank("other");
  const ripplemem = { bank: other, session: "t", speaker: "Bob" };
  await generateText({ model: wrapped(modelOf(reply("Hi.")), memoryOf(bank)), prompt: "Hello.", providerOptions: { ripplemem } });
  assert.deepEqual(await held(other, memoryOf(bank)), ["Bob: Hello.", "Assistant: Hi."]);
}

/** The model recalls and remembers by itself; what it recalled does not become the metadata of its answer. */
async function tools() {
  const bank = freshBank("tools");
  const memory = memoryOf(bank);
  const remembering = modelOf(calls("remember", { speaker: "Ann", text: "I moved to Lisbon." }), reply("Done."));
  await generateText({ model: remembering, tools: memoryTools(memory), stopWhen: stepCountIs(3), prompt: "Remember that I moved to Lisbon." });
  assert.match(JSON.stringify(sent(remembering)), /remembered as turn/);
  const recalling = modelOf(calls("recall", { question: "Where did Ann move?" }), reply("To Lisbon."));
  await generateText({ model: wrapped(recalling, memory, { recall: false }), tools: memoryTools(memory), stopWhen: stepCountIs(3), prompt: "Where did I move?" });
  assert.match(JSON.stringify(sent(recalling).slice(1)), /Lisbon/);
  await held(bank);
  const { turns } = await memory.turns({ speakers: ["Assistant"] });
  assert.deepEqual(turns.map(({ text, metadata }) => [text, metadata ?? null]), [["To Lisbon.", null]]);
}

/** A conversation in one process is known in another one. */
async function two_processes() {
  const bank = freshBank("processes");
  assert.doesNotMatch(await elsewhere("converse", bank, "I keep my kayak in the old boathouse."), /recalled_memory/);
  assert.match(await elsewhere("converse", bank, "Where do I keep my kayak?"), /recalled_memory[^]*boathouse/);
}

async function converse(bank, prompt) {
  const model = modelOf(reply("I see."));
  await streamText({ model: wrapped(model, memoryOf(bank)), prompt }).text;
  return JSON.stringify(sent(model));
}

/** Without the service the model answers, without memories, and says so; what is not stored is an error. */
async function service_killed() {
  const away = memoryOf("b", "http://127.0.0.1:9");
  const told = [];
  const onProblem = (problem, doing) => told.push([doing, problem.code]);
  const model = modelOf(reply("Hello."));
  const options = { model: wrapped(model, away, { onProblem }), prompt: "Who keeps bees?" };
  assert.equal((await generateText(options)).text, "Hello.");
  assert.match(JSON.stringify(sent(model)), /recalled_memory[^]*could not be read/, "the prompt says so");
  assert.deepEqual(told, [["recall", "unreachable"], ["remember", "unreachable"]]);
  const warned = [];
  const { warn } = console;
  console.warn = (text) => warned.push(text);
  try {
    const error = await refused(() => generateText({ ...options, maxRetries: 0, model: wrapped(modelOf(reply("Hello.")), away) }));
    assert.ok(error instanceof UnreachableError, String(error));
    assert.equal((await generateText({ ...options, model: wrapped(modelOf(reply("Hi.")), away, { remember: false }) })).text, "Hi.");
  } finally {
    console.warn = warn;
  }
  assert.equal(warned.length, 2);
  assert.match(warned[0], /no memories/);
  const service = await ownService();
  if (!service) return;
  try {
    const memory = memoryOf("killed", service.url);
    await generateText({ model: wrapped(modelOf(reply("Noted.")), memory, { session: "a" }), prompt: "My sister Clara keeps bees." });
    await service.kill();
    const without = modelOf(reply("I do not know."));
    await generateText({ ...options, model: wrapped(without, memory, { session: "b", onProblem }) });
    assert.doesNotMatch(JSON.stringify(sent(without)), /Clara/);
    await service.start();
    const back = modelOf(reply("Clara."));
    await generateText({ ...options, model: wrapped(back, memory, { session: "c" }) });
    assert.match(JSON.stringify(sent(back)), /Clara keeps bees/);
  } finally {
    await service.kill();
  }
}

await main({ recalls, steps, again, tools, two_processes, service_killed }, { converse });
