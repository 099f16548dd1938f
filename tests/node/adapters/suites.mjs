// The tests of the frameworks' own repositories against the adapters.
//
//     suites.mjs URL FRAMEWORK REPOSITORIES [BUN]
//
// REPOSITORIES is a directory with checkouts: langgraphjs, openai-agents-js, claude-agent-sdk-typescript. Their files
// are copied beside this one, with our class in place of theirs; nothing else of them changes. Exits with 1 where other
// tests fail than those that are about what is theirs alone.
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const [url, framework, repositories, bun] = process.argv.slice(2);
const home = join(import.meta.dirname ?? process.cwd(), "suite");
rmSync(home, { recursive: true, force: true });
mkdirSync(home);

const CLIENT = `
import { RippleMem } from "ripplemem";
let n = 0;
export const fresh = (name: string) =>
  new RippleMem(process.env.RIPPLEMEM_URL!, { bank: \`suites/\${name}-\${process.pid}-\${Date.now()}-\${n++}\` });
`;

const SUITES = {
  langgraph: [
    {
      file: "langgraphjs/libs/checkpoint/src/tests/store.test.ts",
      replaced: {
        '"../store/base.js"': '"@langchain/langgraph-checkpoint"',
        '"../store/batch.js"': '"@langchain/langgraph-checkpoint"',
        '"../store/memory.js"': '"./ours.ts"',
      },
      theirs: [],
    },
    {
      file: "langgraphjs/libs/checkpoint-postgres/src/tests/store.int.test.ts",
      replaced: { 'import pg from "pg"': 'import { pg } from "./ours.ts"', '"../store/index.js"': '"./ours.ts"' },
      // Postgres itself, its migrations, statistics and sweeper; counted calls of an embedding function; modes of search.
      theirs: [
        /Migration System/,
        /Statistics/,
        /TTL configuration and sweep/,
        /Error Handling should (handle database|throw error when|handle unknown)/,
        /specific fields to index|both TTL and indexing/,
        /hybrid mode in unified|support vector search|vector mode in unified|vector search by default/,
      ],
    },
  ],
  openai_agents: [
    {
      file: "openai-agents-js/packages/agents-core/test/memorySession.test.ts",
      replaced: {
        "'../src/memory/memorySession'": "'./ours.ts'",
        "'../src/logger'": "'@openai/agents'",
        "'../src/memory/session'": "'@openai/agents'",
        "'../src/types'": "'@openai/agents'",
      },
      // The debug log of the in-memory session.
      theirs: [/preserves item diagnostics/],
    },
  ],
  claude_agent_sdk: [{ file: "claude-agent-sdk-typescript/examples/session-stores/shared/conformance.ts", bun: true }],
};

const OURS = {
  langgraph: `
import { RippleMemStore } from "ripplemem/langgraph";
class Pool { async query() { return { rows: [] }; } async end() {} }
export const pg = { Pool };
const options = (given: any) => (given?.index?.fields ? { fields: given.index.fields } : {});
export class InMemoryStore extends RippleMemStore { constructor(given: any = {}) { super(fresh("memory"), options(given)); } }
export class PostgresStore extends RippleMemStore {
  constructor(given: any = {}) { super(fresh("postgres"), options(given)); }
  static fromConnString() { return new PostgresStore(); }
  async setup() {}
}`,
  openai_agents: `
import { RippleMemSession } from "ripplemem/openai-agents";
// Its constructor takes the first items, which a service takes a moment to write.
export class MemorySession {
  inner; ready;
  constructor({ sessionId, initialItems = [] }: any = {}) {
    this.inner = new RippleMemSession(fresh("session"), sessionId ? { sessionId } : {});
    this.ready = this.inner.addItems(initialItems);
  }
  getSessionId() { return this.inner.getSessionId(); }
  async getItems(limit?: number) { await this.ready; return this.inner.getItems(limit); }
  async addItems(items: any) { const copy = structuredClone(items); await this.ready; return this.inner.addItems(copy); }
  async popItem() { await this.ready; return this.inner.popItem(); }
  async clearSession() { await this.ready; return this.inner.clearSession(); }
  async applyHistoryMutations(args: any) { await this.ready; return this.inner.applyHistoryMutations(args); }
  async applyHistoryTransaction(args: any) { await this.ready; return this.inner.applyHistoryTransaction(args); }
}`,
  claude_agent_sdk: "",
};

function run(program, args) {
  const env = { ...process.env, RIPPLEMEM_URL: url, TEST_POSTGRES_URL: "postgres://nobody/none" };
  return spawnSync(program, args, { cwd: join(home, ".."), env, encoding: "utf8" });
}

writeFileSync(join(home, "ours.ts"), CLIENT + OURS[framework]);
let wrong = false;
for (const { file, replaced = {}, theirs = [], bun: runsOnBun } of SUITES[framework]) {
  let text = readFileSync(join(repositories, file), "utf8");
  for (const [from, to] of Object.entries(replaced)) text = text.replaceAll(from, to);
  if (runsOnBun) {
    writeFileSync(join(home, "conformance.ts"), text);
    const code = `import { describe } from "bun:test";
import { RippleMemSessionStore } from "ripplemem/claude-agent-sdk";
import { runSessionStoreConformance } from "./conformance.ts";
import { fresh } from "./ours.ts";
describe("RippleMemSessionStore", () => runSessionStoreConformance(() => new RippleMemSessionStore(fresh("claude"))));
`;
    writeFileSync(join(home, "ours.test.ts"), code);
    const { status, stdout, stderr } = run(bun, ["test", "suite/ours.test.ts"]);
    console.log(`${file}:${/\d+ pass/.exec(stderr + stdout)?.[0]}, ${/\d+ fail/.exec(stderr + stdout)?.[0]}`);
    if (status) console.log(stderr + stdout);
    wrong ||= status !== 0;
    continue;
  }
  writeFileSync(join(home, "theirs.test.ts"), text);
  const report = join(home, "report.json");
  const { stdout, stderr } = run(join(home, "../node_modules/.bin/vitest"), ["run", "suite/theirs.test.ts", "--reporter=json", `--outputFile=${report}`]);
  const tests = JSON.parse(readFileSync(report, "utf8")).testResults.flatMap(({ assertionResults }) => assertionResults);
  const failed = tests.filter(({ status }) => status !== "passed");
  const ours = failed.filter(({ fullName }) => !theirs.some((pattern) => pattern.test(fullName)));
  console.log(`${file}: ${tests.length - failed.length} of ${tests.length} pass; ${failed.length - ours.length} are about what is theirs alone`);
  for (const { fullName, failureMessages } of ours) console.log(`${fullName}: ${failureMessages.join("\n")}`);
  if (!tests.length) console.log(stdout + stderr);
  wrong ||= ours.length > 0 || !tests.length;
}
process.exit(wrong ? 1 : 0);
