// The Vercel AI SDK: a middleware of language models that recalls for each prompt and remembers what was said, and the
// memory as tools.
//
// The block of evidence stands at the end of the last user message, so that the provider's cache of what comes before
// is kept. It goes to the model alone: no history of the caller holds it, and what is remembered is without it.
import { jsonSchema, type LanguageModelMiddleware, type Tool, tool } from "ai";
import type { RippleMem, Turn } from "../client.js";
import type { SaidBefore } from "../index.js";
import { callTool, TOOLS } from "../tools.js";
import type { Json } from "./exact_json.js";
import { isMetadata } from "./exact_json.js";
import { digest } from "./ids.js";
import { blockFor, type OnProblem, type RecallOptions, told, withoutRecalled } from "./recall.js";

export interface MemoryMiddlewareOptions {
  /** The bank, in place of the client's. */
  bank?: string;
  /** The conversation. Without it, all calls of this middleware are one. */
  session?: string;
  /** Who the user messages are said by; `User` without it. */
  speaker?: string;
  /** Who the model speaks for; `Assistant` without it. */
  assistant?: string;
  /** Whether what was said is remembered; `true` without it. */
  remember?: boolean;
  /** How questions are asked; `false` asks none. */
  recall?: RecallOptions | false;
  onProblem?: OnProblem;
}

/** What one call may state in `providerOptions.ripplemem`; a message there has its `id` and its `time` in RFC 3339. */
type CallSettings = Partial<Record<"bank" | "session" | "speaker" | "assistant" | "id" | "time", string>>;

/** The parts of a prompt that this file reads. They are the same in versions 3 and 4 of the SDK's interface. */
interface Part {
  type: string;
  text?: string;
  toolCallId?: string;
  toolName?: string;
  input?: unknown;
  output?: unknown;
}

interface Message {
  role: string;
  content: string | Part[];
  providerOptions?: Record<string, Record<string, unknown>> | undefined;
}

interface Params {
  prompt: Message[];
  providerOptions?: Record<string, Record<string, unknown>> | undefined;
  abortSignal?: AbortSignal | undefined;
}

/** What a model said, as much of it as is remembered. */
interface Said {
  text: string;
  calls: Part[];
}

/** Most characters of the arguments and results of tools that one turn keeps. */
const MOST_CALLS = 15_000;
/** Blocks that are kept for the further steps of their calls. */
const MOST_BLOCKS = 64;

/** A middleware for `wrapLanguageModel`. */
export function memoryMiddleware(memory: RippleMem, options: MemoryMiddlewareOptions = {}): LanguageModelMiddleware {
  const own = crypto.getRandomValues(new BigUint64Array(1)).join("");
  const blocks = new Map<string, string | undefined>();
  const begun = new WeakMap<object, Turn[]>();

  const settingsOf = (params: Params): CallSettings => ({
    session: options.session ?? own,
    speaker: options.speaker ?? "User",
    assistant: options.assistant ?? "Assistant",
    ...(options.bank ? { bank: options.bank } : {}),
    ...(params.providerOptions?.ripplemem as CallSettings | undefined),
  });

  /** The block of the last user message. The further steps of a call have that of the first one. */
  async function blockOf(params: Params, asked: number): Promise<string | undefined> {
    const settings = settingsOf(params);
    const key = digest(JSON.stringify([settings, spoken(params.prompt.slice(0, asked + 1))]));
    if (asked < params.prompt.length - 1 && blocks.has(key)) return blocks.get(key);
    const block = await blockFor(memory, {
      text: textOf(params.prompt[asked]),
      saidBefore: saidBefore(params.prompt.slice(0, asked), settings),
      bank: settings.bank,
      signal: params.abortSignal,
      recall: options.recall || undefined,
      onProblem: options.onProblem,
    });
    blocks.set(key, block);
    if (blocks.size > MOST_BLOCKS) blocks.delete(blocks.keys().next().value as string);
    return block;
  }

  async function transformed(params: Params): Promise<Params> {
    const asked = params.prompt.findLastIndex(({ role }) => role === "user");
    const message = params.prompt[asked];
    if (!message) return params;
    const block = options.recall === false ? undefined : await blockOf(params, asked);
    const prompt = [...params.prompt];
    if (block) prompt[asked] = { ...message, content: [...(message.content as Part[]), { type: "text", text: block }] };
    const changed = { ...params, prompt };
    // What is remembered is what was said, not what the model was sent.
    if (options.remember !== false) begun.set(changed, turnsOf(params, asked, settingsOf(params)));
    return changed;
  }

  /** Stores what was said: the user's words at the first step, and the model's once it has some. */
  async function remember(params: Params, said: Said): Promise<void> {
    const turns = begun.get(params);
    const settings = settingsOf(params);
    const text = withoutRecalled(said.text);
    const answer = text.trim() ? [answerOf(params, { ...said, text }, settings)] : [];
    const records = turns ? [...turns, ...answer] : [];
    if (!records.length) return;
    try {
      await memory.remember(records, settings.bank ? { bank: settings.bank } : {});
    } catch (problem) {
      told(problem, "remember", options.onProblem);
    }
  }

  // The two versions of the interface differ in what this file passes on as it is.
  const middleware = {
    specificationVersion: "v4",
    transformParams: ({ params }: { params: Params }) => transformed(params),
    wrapGenerate: async ({
      doGenerate,
      params,
    }: {
      doGenerate: () => Promise<{ content: Part[] }>;
      params: Params;
    }) => {
      const result = await doGenerate();
      await remember(params, saidIn(result.content));
      return result;
    },
    wrapStream: async ({
      doStream,
      params,
    }: {
      doStream: () => Promise<{ stream: ReadableStream<StreamPart> }>;
      params: Params;
    }) => {
      const result = await doStream();
      return { ...result, stream: result.stream.pipeThrough(listening((said) => remember(params, said))) };
    },
  };
  return middleware as unknown as LanguageModelMiddleware;
}

interface StreamPart extends Part {
  delta?: string;
}

/** Passes a stream on, and gives what was said in it once it has ended well, before the reader sees the end. */
function listening(heard: (said: Said) => Promise<void>): TransformStream<StreamPart, StreamPart> {
  const said: Said = { text: "", calls: [] };
  let failed = false;
  return new TransformStream({
    transform(part, out) {
      if (part.type === "text-delta") said.text += part.delta ?? "";
      if (part.type === "text-start" && said.text) said.text += "\n";
      if (part.type === "tool-call") said.calls.push(part);
      if (part.type === "error") failed = true;
      out.enqueue(part);
    },
    async flush() {
      if (!failed) await heard(said);
    },
  });
}

function saidIn(content: readonly Part[]): Said {
  return {
    text: content.flatMap(({ type, text }) => (type === "text" && text ? [text] : [])).join("\n"),
    calls: content.filter(({ type }) => type === "tool-call"),
  };
}

/** The words of a message, without blocks of evidence. */
function textOf(message: Message | undefined): string {
  const { content = "" } = message ?? {};
  return withoutRecalled(typeof content === "string" ? content : saidIn(content).text);
}

/** What makes a message the same as another one. */
function spoken(messages: readonly Message[]): unknown[] {
  return messages.filter(({ role }) => role !== "system").map((message) => [message.role, textOf(message)]);
}

function saidBefore(messages: readonly Message[], { speaker, assistant }: CallSettings): SaidBefore[] {
  return messages
    .filter((message) => ["user", "assistant"].includes(message.role) && textOf(message))
    .slice(-2)
    .map((message) => ({ speaker: String(message.role === "user" ? speaker : assistant), text: textOf(message) }));
}

/** The id of a turn: that of its message, or made of all that was said up to it. */
function idOf(settings: CallSettings, message: Message | undefined, before: readonly Message[], role: string): string {
  const { id } = (message?.providerOptions?.ripplemem ?? {}) as CallSettings;
  return id ?? digest(JSON.stringify([settings.session, spoken(before), role]));
}

/** The user's message as a turn, where it is new: at the first step of a call. */
function turnsOf({ prompt }: Params, asked: number, settings: CallSettings): Turn[] {
  const message = prompt[asked];
  const text = textOf(message);
  if (asked < prompt.length - 1 || !text.trim()) return [];
  const { time } = (message?.providerOptions?.ripplemem ?? {}) as CallSettings;
  return [
    {
      turn: idOf(settings, message, prompt.slice(0, asked + 1), "user"),
      speaker: String(settings.speaker),
      kind: "person",
      text,
      time: time ?? new Date(),
      session: settings.session ?? null,
      version: "next",
    },
  ];
}

/** What the model said as a turn, with the calls of tools that led to it as metadata. */
function answerOf({ prompt }: Params, said: Said, settings: CallSettings): Turn {
  const asked = prompt.findLastIndex(({ role }) => role === "user");
  const parts = prompt.slice(asked + 1).flatMap(({ content }) => (typeof content === "string" ? [] : content));
  const turn: Turn = {
    // With the steps before it: a model may say something at each of them.
    turn: idOf(settings, undefined, prompt, "assistant"),
    speaker: String(settings.assistant),
    kind: "assistant",
    text: said.text,
    time: new Date(),
    session: settings.session ?? null,
    version: "next",
  };
  const calls = callsOf([...parts, ...said.calls]);
  return calls.length ? { ...turn, metadata: { tool_calls: calls } } : turn;
}

/** The calls of tools and their results. What the memory's own tools gave is recalled text, and left out. */
function callsOf(parts: readonly Part[]): Json[] {
  let left = MOST_CALLS;
  const kept = (value: unknown): Json => {
    const text = JSON.stringify(value) ?? "null";
    const held = JSON.parse(text) as Json;
    left -= text.length;
    return left < 0 || !isMetadata(held, text) ? null : held;
  };
  const own = new Set(TOOLS.map((one) => one.function.name));
  return parts.flatMap(({ type, toolCallId, toolName = "", input, output }): Json[] => {
    if (own.has(toolName)) return [];
    if (type === "tool-call") return [{ id: toolCallId ?? "", name: toolName, input: kept(input) }];
    if (type === "tool-result") return [{ id: toolCallId ?? "", name: toolName, output: kept(output) }];
    return [];
  });
}

/** The memory as tools, `remember` and `recall`, for `generateText` and `streamText`. */
export function memoryTools(memory: RippleMem, options: { bank?: string } = {}): Record<"remember" | "recall", Tool> {
  const tools = TOOLS.map(({ function: { name, description, parameters } }) => [
    name,
    tool({
      description,
      inputSchema: jsonSchema<Record<string, unknown>>(parameters),
      execute: (given: Record<string, unknown>, { abortSignal }: { abortSignal?: AbortSignal | undefined }) =>
        callTool(memory, name, given, { ...options, ...(abortSignal ? { signal: abortSignal } : {}) }),
    }),
  ]);
  return Object.fromEntries(tools);
}
