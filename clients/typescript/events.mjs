// Types of the server-sent events, which OpenAPI 3.1 describes in the extension `x-events` alone.
//
// In: schemas/openapi.v1.json, api.ts beside the output. Out: the file that is named. Run by `npm run types`.
import { readFile, writeFile } from "node:fs/promises";

const document = JSON.parse(await readFile(new URL("../../schemas/openapi.v1.json", import.meta.url), "utf8"));

const typeOf = (schema) => {
  if (schema.$ref) return schema.$ref.split("/").at(-1);
  if (schema.type === "object" && !schema.properties) return "Record<string, never>";
  throw new Error(`events.mjs cannot type ${JSON.stringify(schema)}`);
};

const used = new Set();
let body = "";
for (const path of Object.values(document.paths)) {
  for (const operation of Object.values(path)) {
    const answered = operation.responses["200"];
    const stream = answered.content["text/event-stream"] ?? answered["x-event-stream"];
    if (!stream) continue;
    body += `  ${operation.operationId}: {\n`;
    for (const [name, schema] of Object.entries(stream["x-events"])) {
      const type = typeOf(schema);
      if (schema.$ref) used.add(type);
      body += `    ${name}: ${type};\n`;
    }
    body += "  };\n";
  }
}
const text = `// The events of each stream: the data of each event by its name, by the operation that answers with them.
// Made of schemas/openapi.v1.json by events.mjs; \`npm run types\` makes it again.
import type {
${[...used]
  .sort()
  .map((type) => `  ${type},\n`)
  .join("")}} from "./api.js";

export interface Events {
${body}}
`;
await writeFile(process.argv[2], text);
