// The Claude Agent SDK's own program over the store and the hooks, with a scripted endpoint in place of the model's:
// what one process says is recalled in another, and its session goes on there from the store alone.
import assert from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { foldSessionSummary, listSessions, query } from "@anthropic-ai/claude-agent-sdk";
import { RippleMem } from "ripplemem";
import { memoryHooks, RippleMemSessionStore } from "ripplemem/claude-agent-sdk";
import { elsewhere, freshBank, main, url } from "./support.mjs";

const ANSWER = "Bees are fine insects.";

/** An endpoint that answers each message with the same words; what it was sent. */
async function endpoint() {
  const sent = [];
  const usage = { input_tokens: 1, output_tokens: 1, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 };
  const server = createServer((request, response) => {
    let text = "";
    request.on("data", (data) => {
      text += data;
    });
    request.on("end", () => {
      const body = text ? JSON.parse(text) : {};
      const message = { id: `msg_${sent.length}`, type: "message", role: "assistant", model: body.model, content: [], stop_reason: null, stop_sequence: null, usage };
      if (!request.url.startsWith("/v1/messages?") && request.url !== "/v1/messages") {
        response.writeHead(200, { "content-type": "application/json" });
        return response.end(JSON.stringify({ input_tokens: 10 }));
      }
      sent.push(JSON.stringify(body.messages));
      if (!body.stream) {
        response.writeHead(200, { "content-type": "application/json" });
        return response.end(JSON.stringify({ ...message, content: [{ type: "text", text: ANSWER }], stop_reason: "end_turn" }));
      }
      response.writeHead(200, { "content-type": "text/event-stream" });
      const event = (type, data) => response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`);
      event("message_start", { message });
      event("content_block_start", { index: 0, content_block: { type: "text", text: "" } });
      event("content_block_delta", { index: 0, delta: { type: "text_delta", text: ANSWER } });
      event("content_block_stop", { index: 0 });
      event("message_delta", { delta: { stop_reason: "end_turn", stop_sequence: null }, usage: { output_tokens: 3 } });
      event("message_stop", {});
      response.end();
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { address: `http://127.0.0.1:${server.address().port}`, sent, end: () => server.close() };
}

const fresh = (name) => mkdtempSync(join(tmpdir(), `ripplemem-${name}-`));

/** One prompt in a process with a home of its own. */
async function ask(bank, cwd, prompt, resume) {
  const memory = new RippleMem(url, { bank });
  const model = await endpoint();
  const home = fresh("home");
  const env = {
    PATH: process.env.PATH,
    HOME: home,
    CLAUDE_CONFIG_DIR: join(home, ".claude"),
    ANTHROPIC_BASE_URL: model.address,
    ANTHROPIC_API_KEY: "scripted",
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    DISABLE_AUTOUPDATER: "1",
  };
  const sessionStore = new RippleMemSessionStore(memory, { foldSessionSummary });
  const options = { env, cwd, sessionStore, hooks: memoryHooks(memory, { speaker: "Ann" }), settingSources: [] };
  const seen = { errors: [] };
  for await (const message of query({ prompt, options: resume ? { ...options, resume } : options })) {
    seen.session = message.session_id ?? seen.session;
    if (message.type === "result") seen.result = message.result;
    if (message.subtype === "mirror_error") seen.errors.push(message.error);
  }
  model.end();
  return { ...seen, sent: model.sent.at(-1) };
}

async function across_processes() {
  const bank = freshBank("program");
  const cwd = fresh("work");
  const first = await elsewhere("ask", bank, cwd, "My sister Clara keeps bees in Porto.");
  assert.deepEqual([first.result, first.errors], [ANSWER, []]);
  const second = await elsewhere("ask", bank, cwd, "Who keeps bees?");
  assert.match(second.sent, /recalled_memory[^]*Ann: My sister Clara keeps bees in Porto\.[^]*recalled_memory/);
  const resumed = await elsewhere("ask", bank, cwd, "And where?", first.session);
  assert.equal(resumed.session, first.session);
  assert.match(resumed.sent, /Clara keeps bees in Porto[^]*"role":"assistant"[^]*Bees are fine insects[^]*And where\?/);
  const memory = new RippleMem(url, { bank });
  const sessionStore = new RippleMemSessionStore(memory, { foldSessionSummary });
  const listed = await listSessions({ dir: cwd, sessionStore });
  assert.deepEqual(listed.map(({ sessionId }) => sessionId).sort(), [first.session, second.session].sort());
  const { turns } = await memory.turns({ speakers: ["Ann"] }, { order: "oldest" });
  assert.deepEqual(turns.map(({ text }) => text), ["My sister Clara keeps bees in Porto.", "Who keeps bees?", "And where?"]);
}

await main({ across_processes }, { ask });
