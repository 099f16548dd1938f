// The memory as tools of an agent: definitions in the form of function calling, and what runs a call.
//
// `TOOLS` goes to the model; `callTool` runs what it asks for. The bank is the client's own: a model never chooses whose
// memory it reads.
import type { CallOptions, RippleMem } from "./client.js";
import { RippleMemError } from "./errors.js";

export { type QuotedTurn, readContext } from "./context.js";

export interface Tool {
  type: "function";
  function: { name: string; description: string; parameters: Record<string, unknown> };
}

function tool(name: string, description: string, parameters: Record<string, string>): Tool {
  const properties: Record<string, unknown> = {};
  for (const name in parameters) properties[name] = { type: "string", description: parameters[name] };
  return {
    type: "function",
    function: {
      name,
      description,
      parameters: {
        type: "object",
        properties,
        required: Object.keys(parameters),
        additionalProperties: false,
      },
    },
  };
}

export const TOOLS: readonly Tool[] = [
  tool("remember", "Remember something that was said. It can be recalled at once, also in later conversations.", {
    speaker: "Who said it.",
    text: "What was said, in the speaker's words.",
  }),
  tool("recall", "Recall what was said that answers a question. Says so when nothing does.", {
    question: "A whole question that names persons and things.",
  }),
];

/** Runs a call of a model and returns text for it. A problem is text too: the model may mend its call. */
export async function callTool(
  memory: RippleMem,
  name: string,
  given: Record<string, unknown>,
  options: CallOptions = {},
): Promise<string> {
  const wanted = TOOLS.find((one) => one.function.name === name)?.function;
  if (!wanted) return `${name}: no such tool; there are ${TOOLS.map((one) => one.function.name).join(", ")}`;
  const missing = (wanted.parameters.required as string[]).find((field) => given[field] == null);
  if (missing) return `${name}: ${missing} is missing`;
  try {
    if (name === "remember") {
      // Browsers have randomUUID in secure contexts alone.
      const turn = crypto.getRandomValues(new BigUint64Array(2)).join("-");
      const record = { turn, speaker: String(given.speaker), text: String(given.text), time: new Date() };
      await memory.remember(record, options);
      return `remembered as turn ${turn}`;
    }
    const { context, notice } = await memory.ask(String(given.question), { askedAt: new Date(), ...options });
    return notice ? `${context}Note: ${notice.message}.` : context;
  } catch (error) {
    if (error instanceof RippleMemError) return `${name}: ${error.message}`;
    throw error;
  }
}
