// Makes dist/ of src/, or the folder that is named: the same bytes on every machine.
//
// In: the sources, the packages of package-lock.json, schemas/openapi.v1.json. Out: index.html, console.js,
// console.css, NOTICE.txt with the licences of what is in console.js, and the hash of the document that the types were
// made of.
import { createHash } from "node:crypto";
import { cp, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = fileURLToPath(new URL(".", import.meta.url));
const dist = `${resolve(process.argv[2] ?? `${here}dist`)}/`;

await rm(dist, { recursive: true, force: true });
await mkdir(dist, { recursive: true });
const { metafile } = await build({
  absWorkingDir: here,
  entryPoints: { console: "src/main.tsx" },
  outdir: dist,
  bundle: true,
  minify: true,
  format: "esm",
  target: ["chrome123", "firefox120", "safari17.5"],
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  charset: "utf8",
  metafile: true,
});
await build({
  absWorkingDir: here,
  entryPoints: ["src/console.css"],
  outfile: `${dist}console.css`,
  bundle: true,
  minify: true,
});
await cp(`${here}src/index.html`, `${dist}index.html`);

const packages = new Set();
for (const input of Object.keys(metafile.inputs)) {
  const found = input.match(/node_modules\/((?:@[^/]+\/)?[^/]+)\//);
  if (found) packages.add(found[1]);
}
let notice = "The console is part of RippleMem (Apache-2.0). console.js holds these packages as well.\n";
for (const name of [...packages].sort()) {
  const folder = `${here}node_modules/${name}/`;
  const { version } = JSON.parse(await readFile(`${folder}package.json`, "utf8"));
  const licence = (await readdir(folder)).find((file) => /^licen[cs]e/i.test(file));
  if (!licence) throw new Error(`${name} has no licence file`);
  notice += `\n---\n${name} ${version}\n\n${(await readFile(folder + licence, "utf8")).trim()}\n`;
}
await writeFile(`${dist}NOTICE.txt`, notice);

const document = await readFile(`${here}../../../schemas/openapi.v1.json`);
await writeFile(`${dist}openapi.sha256`, `${createHash("sha256").update(document).digest("hex")}\n`);
