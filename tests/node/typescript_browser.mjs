// The TypeScript client in a page of another origin, in a real browser: it asks, follows, and is refused elsewhere.
//
//     typescript_browser.mjs CHROMIUM PROGRAM PIPELINE
//
// PIPELINE is a file without `http.origins`, to which the origin of the page is added before the service starts. Exits
// with 1 and a trace when something is not as it should be.
import assert from "node:assert/strict";
import { execSync, spawn } from "node:child_process";
import { appendFileSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const [browserName, program, pipeline] = process.argv.slice(2);
const root = fileURLToPath(new URL("../../", import.meta.url));
const { chromium } = createRequire(join(root, "src/server/console/package.json"))("playwright-core");

const listening = (server) => new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server.address().port)));

/** A page that has the client's modules, and the module `page.js`. */
async function pageServer(module) {
  const server = createServer((request, response) => {
    const client = /^\/client\/([\w-]+\.js)$/.exec(request.url);
    const text = client
      ? readFileSync(join(root, "clients/typescript/dist", client[1]))
      : request.url === "/page.js"
        ? module
        : '<!doctype html><meta charset="utf-8"><title>page</title><script type="module" src="/page.js"></script>';
    response.writeHead(200, { "content-type": request.url.endsWith(".js") ? "text/javascript" : "text/html" });
    response.end(text);
  });
  return { origin: `http://127.0.0.1:${await listening(server)}`, end: () => server.close() };
}

const free = createServer();
const port = await listening(free);
await new Promise((resolve) => free.close(resolve));
const url = `http://127.0.0.1:${port}`;
const module = `
import { bankName, RippleMem } from "/client/index.js";
globalThis.done = (async () => {
  const memory = new RippleMem(${JSON.stringify(url)}, { bank: bankName("page", "ann@example.com") });
  await memory.remember({ turn: "1", speaker: "Ann", text: "I moved to Lisbon.", time: new Date(), metadata: { n: 1 } });
  const evidence = await memory.ask("Where did Ann move?");
  const { turns } = await memory.turns();
  const stream = memory.subscribe("Who keeps bees?");
  const first = (await stream.next()).value;
  await memory.remember({ turn: "2", speaker: "Bob", text: "My sister Clara keeps bees in Porto.", time: new Date() });
  let now = first;
  while (!now.units.some((unit) => unit.restatement.includes("bees"))) now = (await stream.next()).value;
  await stream.return();
  return { context: evidence.context, metadata: turns[0].metadata, followed: now.units.map((unit) => unit.restatement) };
})().catch((error) => ({ error: error.name + ": " + error.message, code: error.code }));
`;
const [ours, other] = await Promise.all([pageServer(module), pageServer(module)]);
appendFileSync(pipeline, `http.origins = [${JSON.stringify(ours.origin)}]\n`);
const service = spawn(program, ["serve", "--pipeline", pipeline, "--listen", `127.0.0.1:${port}`], { stdio: ["ignore", "ignore", "inherit"] });
let browser;
try {
  for (let tries = 0; !(await fetch(`${url}/ready`).then(({ ok }) => ok, () => false)); tries += 1) {
    assert.ok(tries < 600, "the service does not start");
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  const executablePath = execSync(`command -v ${browserName}`, { encoding: "utf8" }).trim();
  browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
  const seen = async (origin) => {
    const page = await browser.newPage();
    await page.goto(origin);
    await page.waitForFunction(() => "done" in globalThis);
    return page.evaluate(() => globalThis.done);
  };
  const result = await seen(ours.origin);
  assert.equal(result.error, undefined);
  assert.match(result.context, /Lisbon/);
  assert.deepEqual(result.metadata, { n: 1 });
  assert.match(result.followed.join("\n"), /Clara keeps bees/);
  const refused = await seen(other.origin);
  assert.equal(refused.code, "unreachable", JSON.stringify(refused));
} finally {
  await browser?.close();
  service.kill("SIGKILL");
  ours.end();
  other.end();
}
