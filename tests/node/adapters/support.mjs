// What the checks of the adapters share. They run in a project in which npm installed the package and a framework.
//
//     NAME.mjs URL [CHECK [MORE …]]
//
// Without a check, all of its `checks` run, one after the other, each with banks of its own; WITHOUT names one that does
// not. RUNTIME has the command of a second process as JSON, SERVICE that of a service, which a check kills and starts
// again.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { createServer } from "node:http";

const { argv, env } = globalThis.process;

export const url = argv[2];

export const freshBank = (name = "bank") => `adapters/${name}-${randomBytes(6).toString("hex")}`;

/** Runs the checks of a script, or the part that a second process was started for. */
export async function main(checks, parts = {}) {
  const [name, ...more] = argv.slice(3);
  if (name && parts[name]) {
    globalThis.process.stdout.write(`${JSON.stringify((await parts[name](...more)) ?? null)}\n`);
    return;
  }
  for (const [check, run] of Object.entries(checks)) {
    if ((name && check !== name) || check === env.WITHOUT) continue;
    const begun = Date.now();
    await run().catch((error) => {
      error.message = `${check}: ${error.message}`;
      throw error;
    });
    console.log(`ok ${check} ${Date.now() - begun} ms`);
  }
}

/** Runs a part of this script in another process; what it gives, from the last line of its output. */
export function elsewhere(part, ...more) {
  const [program, ...args] = JSON.parse(env.RUNTIME ?? '["node"]');
  const child = spawn(program, [...args, argv[1], url, part, ...more], { stdio: ["ignore", "pipe", "inherit"] });
  let output = "";
  child.stdout.on("data", (data) => {
    output += data;
  });
  return new Promise((resolve, reject) => {
    child.on("close", (code) => {
      if (code) reject(new Error(`${part} ends with ${code}: ${output}`));
      else resolve(JSON.parse(output.trim().split("\n").at(-1)));
    });
  });
}

/** A service of its own at an address that stays, which can be killed and started; undefined where none is named. */
export async function ownService() {
  if (!env.SERVICE) return undefined;
  const [program, ...args] = JSON.parse(env.SERVICE);
  const port = await new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
  const address = `http://127.0.0.1:${port}`;
  let running;
  const start = async () => {
    running = spawn(program, [...args, "--listen", `127.0.0.1:${port}`], { stdio: "ignore" });
    for (let tries = 0; tries < 600; tries += 1) {
      if (await fetch(`${address}/ready`).then((response) => response.ok, () => false)) return;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    throw new Error("the service does not start");
  };
  const kill = () => new Promise((resolve) => running.on("exit", resolve).kill("SIGKILL"));
  await start();
  return { url: address, start, kill };
}

/** The error of a call. */
export async function refused(call, text) {
  try {
    await call();
  } catch (error) {
    if (text) assert.match(String(error.message), text);
    return error;
  }
  throw new Error(`nothing refuses it: ${call}`);
}

/** Random numbers that are the same each time. */
export function seeded(seed) {
  let state = seed;
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((state / 2_147_483_648) * below);
  };
}
