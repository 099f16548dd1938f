// The Claude Agent SDK: a store of transcripts, and hooks that recall for each prompt and remember what was said.
//
// A transcript is a mirror of what the SDK writes on its machine, not memory: its entries are not recalled. What is
// remembered are the prompts and the answers, by the hooks. The types are those of the SDK, by their form, so that
// this file needs nothing of it.

import type { MetadataCondition, TurnView } from "../api.js";
import { escaped } from "../bank_name.js";
import type { CallOptions, RippleMem, Turn } from "../client.js";
import { UnknownBankError } from "../errors.js";
import type { Json } from "./exact_json.js";
import { decoded, encoded } from "./exact_json.js";
import { History, type NewItem } from "./history.js";
import { digest } from "./ids.js";
import { LISTED_MS, listed } from "./listed.js";
import { blockFor, type OnProblem, type RecallOptions, told, withoutRecalled } from "./recall.js";

export interface SessionKey {
  projectKey: string;
  sessionId: string;
  subpath?: string;
}

export interface SessionStoreEntry {
  type: string;
  uuid?: string;
  timestamp?: string;
  [key: string]: unknown;
}

export interface SessionSummaryEntry {
  sessionId: string;
  mtime: number;
  data: Record<string, unknown>;
}

type Fold = (
  before: SessionSummaryEntry | undefined,
  key: SessionKey,
  entries: SessionStoreEntry[],
) => SessionSummaryEntry;

export interface RippleMemSessionStoreOptions {
  /** The bank, in place of the client's. */
  bank?: string;
  /** The SDK's `foldSessionSummary`: with it the store keeps summaries, and a list of sessions reads no transcript. */
  foldSessionSummary?: Fold;
}

/** What a head keeps of its transcript. */
interface HeadData {
  projectKey: string;
  sessionId: string;
  subpath?: string;
  summary?: Record<string, unknown>;
}

/** Most characters of an id in the name of a session: a project, a session and a path beside it fit into 256. */
const MOST_PART = 75;

const IS_HEAD: MetadataCondition = { path: ["head"], exists: true };

/** Transcripts of sessions, for the option `sessionStore`. */
export class RippleMemSessionStore {
  readonly #call: CallOptions;
  /** The writes of each transcript, one after the other. */
  readonly #writes = new Map<string, Promise<void>>();
  readonly listSessionSummaries?: (projectKey: string) => Promise<SessionSummaryEntry[]>;

  constructor(
    private readonly memory: RippleMem,
    private readonly options: RippleMemSessionStoreOptions = {},
  ) {
    this.#call = options.bank ? { bank: options.bank } : {};
    if (options.foldSessionSummary) this.listSessionSummaries = (projectKey) => this.#summaries(projectKey);
  }

  /** Adds entries, in the order of the calls; one whose uuid is there already is not added again. */
  append(key: SessionKey, entries: SessionStoreEntry[]): Promise<void> {
    const name = sessionOf(key);
    const before = this.#writes.get(name) ?? Promise.resolve();
    const written = before.catch(() => {}).then(() => this.#append(key, entries));
    const settled = written
      .catch(() => {})
      .then(() => {
        if (this.#writes.get(name) === settled) this.#writes.delete(name);
      });
    this.#writes.set(name, settled);
    return written;
  }

  async load(key: SessionKey): Promise<SessionStoreEntry[] | null> {
    const items = await this.#history(key).readAll();
    return items.length ? items.map(({ item }) => decoded(item) as SessionStoreEntry) : null;
  }

  async listSessions(projectKey: string): Promise<{ sessionId: string; mtime: number }[]> {
    const heads = await this.#heads(`${part("claude", projectKey)}`);
    return heads
      .filter(({ data }) => data.subpath === undefined)
      .map(({ data, mtime }) => ({ sessionId: data.sessionId, mtime }));
  }

  /** Forgets a session and all that lies below it, or what lies at a subpath alone. */
  async delete(key: SessionKey): Promise<void> {
    const prefix = sessionOf(key);
    const within = key.subpath === undefined ? { session_prefix: prefix } : { session: prefix };
    const heads = (await this.#heads(prefix)).filter(
      ({ turn }) => key.subpath === undefined || turn.session === prefix,
    );
    // Their ids may come back, unlike those of what is forgotten.
    const gone = heads.map(({ turn }) => ({ type: "deletion" as const, turn: turn.turn, version: "next" as const }));
    if (gone.length) await this.memory.remember(gone, { ...this.#call, waitMs: LISTED_MS });
    try {
      await this.memory.forgetTurns({ ...within, metadata: { not: IS_HEAD } }, this.#call);
    } catch (problem) {
      if (!(problem instanceof UnknownBankError)) throw problem;
    }
  }

  async listSubkeys({ projectKey, sessionId }: { projectKey: string; sessionId: string }): Promise<string[]> {
    const heads = await this.#heads(sessionOf({ projectKey, sessionId }));
    return heads.flatMap(({ data }) => (data.subpath === undefined ? [] : [data.subpath]));
  }

  async #summaries(projectKey: string): Promise<SessionSummaryEntry[]> {
    const heads = await this.#heads(part("claude", projectKey));
    return heads.flatMap(({ data: { sessionId, summary }, mtime }) =>
      summary ? [{ sessionId, mtime, data: summary }] : [],
    );
  }

  async #append(key: SessionKey, entries: SessionStoreEntry[]): Promise<void> {
    const fold = key.subpath === undefined ? this.options.foldSessionSummary : undefined;
    await this.#history(key).add(entries.map(itemFor), (head, added) => {
      const { summary } = head.data as unknown as Partial<HeadData>;
      const before = summary && { sessionId: key.sessionId, mtime: head.lastMs, data: summary };
      const folded = fold?.(
        before,
        key,
        added.map(({ item }) => decoded(item) as SessionStoreEntry),
      ).data;
      return { ...key, ...(folded ? { summary: encoded(folded) } : {}) } as unknown as { [key: string]: Json };
    });
  }

  #history(key: SessionKey): History {
    return new History(this.memory, sessionOf(key), this.#call, "The transcript of an agent's session");
  }

  async #heads(prefix: string): Promise<{ data: HeadData; mtime: number; turn: TurnView }[]> {
    const heads = [];
    for await (const turn of listed(this.memory, { session_prefix: prefix, metadata: IS_HEAD }, this.#call)) {
      const head = turn.metadata?.head as unknown as { data: HeadData } | undefined;
      if (head) heads.push({ data: head.data, mtime: turn.stored_ms ?? 0, turn });
    }
    return heads;
  }
}

/** The name of a transcript's session: one of a session begins with that of its project, one of a subpath with both. */
function sessionOf({ projectKey, sessionId, subpath }: SessionKey): string {
  return part("claude", projectKey) + part(sessionId) + (subpath === undefined ? "" : part(subpath));
}

function part(...ids: string[]): string {
  return ids
    .map((id) => escaped(id))
    .map((id) => `${id.length > MOST_PART ? `.h${digest(id)}` : id}/`)
    .join("");
}

function itemFor(entry: SessionStoreEntry): NewItem {
  const { type, uuid, timestamp } = entry;
  const time = timestamp ? new Date(timestamp) : undefined;
  const kind = type === "user" ? "person" : type === "assistant" ? "assistant" : "bot";
  const item = encoded(entry);
  return { item, speaker: type || "entry", kind, text: "", recall: false, time, key: uuid && `u.${uuid}` };
}

export interface MemoryHookOptions {
  /** The bank, in place of the client's. */
  bank?: string;
  /** Who the prompts are said by; `User` without it. */
  speaker?: string;
  /** Who the model speaks for; `Assistant` without it. */
  assistant?: string;
  /** Whether what was said is remembered; `true` without it. */
  remember?: boolean;
  /** How questions are asked; `false` asks none. */
  recall?: RecallOptions | false;
  onProblem?: OnProblem;
}

interface HookInput {
  hook_event_name: string;
  session_id: string;
  prompt_id?: string;
  agent_id?: string;
  prompt?: string;
  last_assistant_message?: string;
}

interface HookOutput {
  continue?: boolean;
  systemMessage?: string;
  hookSpecificOutput?: { hookEventName: "UserPromptSubmit"; additionalContext: string };
}

type Hook = (input: HookInput, toolUseId: string | undefined, given: { signal: AbortSignal }) => Promise<HookOutput>;

/** The hooks of a session, for the option `hooks`: `{ hooks: memoryHooks(memory) }`. */
export function memoryHooks(
  memory: RippleMem,
  options: MemoryHookOptions = {},
): Record<"UserPromptSubmit" | "Stop", { hooks: Hook[] }[]> {
  const { speaker = "User", assistant = "Assistant", bank } = options;
  const call = bank ? { bank } : {};

  async function store(said: Pick<Turn, "turn" | "speaker" | "kind" | "text" | "session">): Promise<void> {
    const text = withoutRecalled(said.text);
    if (options.remember === false || !text.trim()) return;
    try {
      await memory.remember({ ...said, text, time: new Date(), version: "next" }, call);
    } catch (problem) {
      told(problem, "remember", options.onProblem);
    }
  }

  const submitted: Hook = async ({ session_id, prompt_id, prompt = "" }, _, { signal }) => {
    let problem: string | undefined;
    const block =
      options.recall !== false &&
      (await blockFor(memory, {
        text: prompt,
        bank,
        signal,
        recall: options.recall,
        onProblem: (failed, doing) => {
          problem = `RippleMem: this prompt has no memories: ${failed.message}`;
          options.onProblem?.(failed, doing);
        },
      }));
    // Asked before it is stored: else the question finds itself.
    await store({
      turn: idOf(session_id, prompt_id, prompt),
      speaker,
      kind: "person",
      text: prompt,
      session: session_id,
    });
    return {
      ...(problem ? { systemMessage: problem } : {}),
      ...(block ? { hookSpecificOutput: { hookEventName: "UserPromptSubmit", additionalContext: block } } : {}),
    };
  };

  const stopped: Hook = async ({ session_id, prompt_id, last_assistant_message: text = "" }) => {
    const turn = `${idOf(session_id, prompt_id, text)}.answer`;
    await store({ turn, speaker: assistant, kind: "assistant", text, session: session_id });
    return {};
  };

  return { UserPromptSubmit: [{ hooks: [submitted] }], Stop: [{ hooks: [stopped] }] };
}

/** The id of what was said: that of the prompt, or made of its words and the minute. */
function idOf(session: string, prompt: string | undefined, text: string): string {
  return `${session}.${prompt ?? digest(`${text} ${Math.floor(Date.now() / 60_000)}`)}`;
}
