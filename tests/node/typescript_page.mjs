// Runs the snippets of docs/typescript.md, and that of the package's README, with the package that npm would install.
//
//     typescript_page.mjs URL TARBALL            those of the client
//     typescript_page.mjs URL TARBALL beside     the one that has its counterpart in Python beside it
//     typescript_page.mjs URL PROJECT FRAMEWORK  those that import the adapter of a framework
//
// In: the address of a service, in place of that of the pages, and the package; or a directory in which npm installed
// the package and a framework, and has preamble.FRAMEWORK.ts, which declares the model of the snippets. Exits with 1
// where a snippet has a wrong type or fails.

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../", import.meta.url));
const client = createRequire(join(root, "clients/typescript/package.json"));
const [url, packed, which] = process.argv.slice(2);
const beside = which === "beside";
const framework = beside ? undefined : which;

const home = framework ? packed : mkdtempSync(join(tmpdir(), "ripplemem-page-"));
const node = { cwd: home, stdio: "inherit" };
const BESIDE = /^\/\/ In TypeScript\n/;
const ADAPTER = /from "ripplemem\/(?!tools)([a-z-]+)"/;

/** Compiles a module of TypeScript strictly, and runs it. */
function run(code, options = []) {
  writeFileSync(join(home, "page.ts"), code.replaceAll("http://127.0.0.1:8321", url));
  const strict = ["--noEmit", "--strict", "--exactOptionalPropertyTypes", "--target", "es2022", "--module", "nodenext"];
  const tsc = client.resolve("typescript/bin/tsc");
  execFileSync("node", [tsc, ...strict, ...options, "--lib", "es2023,dom,dom.iterable", "page.ts"], node);
  const { transformSync } = client("esbuild");
  writeFileSync(join(home, "page.mjs"), transformSync(readFileSync(join(home, "page.ts"), "utf8"), { loader: "ts" }).code);
  execFileSync("node", ["page.mjs"], node);
}

function snippets(page, adapter) {
  const found = [...readFileSync(join(root, page), "utf8").matchAll(/```typescript\n(.*?)```/gs)].map(([, code]) => code);
  const fits = found.filter((code) => ADAPTER.exec(code)?.[1] === adapter && BESIDE.test(code) === beside);
  if (!fits.length) throw new Error(`${page} has no snippet of ${adapter ?? "the client"}`);
  return fits;
}

try {
  if (framework) {
    const preamble = readFileSync(join(home, `preamble.${framework}.ts`), "utf8");
    for (const code of snippets("docs/typescript.md", framework.replaceAll("_", "-"))) {
      run(`${preamble}\n${code}`, ["--skipLibCheck"]);
    }
  } else {
    writeFileSync(join(home, "package.json"), '{ "private": true, "type": "module" }');
    execFileSync("npm", ["install", "--offline", "--no-audit", "--no-fund", "--silent", "--omit=peer", packed], node);
    const pages = beside ? ["docs/typescript.md"] : ["docs/typescript.md", "clients/typescript/README.md"];
    for (const page of pages) run(snippets(page).join("\n"));
  }
} finally {
  if (!framework) rmSync(home, { recursive: true, force: true });
}
