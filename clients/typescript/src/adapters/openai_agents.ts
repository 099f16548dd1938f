// The OpenAI Agents SDK: a session, whose items are turns of the memory at the same time, and the memory as tools.
//
// A session's history is exact: items come back equal and in their order, whoever else writes. What persons and
// assistants said in it is recalled, also in other sessions; calls of tools, their results and reasoning are kept alone.
import {
  type AgentInputItem,
  type FunctionTool,
  MemorySession,
  type SessionHistoryRewriteArgs,
  type SessionHistoryRewriteAwareSession,
  type SessionHistoryTransactionArgs,
  type SessionHistoryTransactionAwareSession,
  tool,
  UserError,
} from "@openai/agents";
import type { CallOptions, RippleMem, Turn } from "../client.js";
import { callTool, TOOLS } from "../tools.js";
import type { Json } from "./exact_json.js";
import { canonical, decoded, encoded } from "./exact_json.js";
import { type Change, type Head, type HeldItem, History, type NewItem } from "./history.js";
import { digest } from "./ids.js";
import { listed } from "./listed.js";
import { withoutRecalled } from "./recall.js";

export interface RippleMemSessionOptions {
  /** The conversation; without it, a new one. */
  sessionId?: string;
  /** The bank, in place of the client's. */
  bank?: string;
  /** Who the user messages are said by; `User` without it. */
  speaker?: string;
  /** Who the model speaks for; `Assistant` without it. */
  assistant?: string;
  /** Whether what was said is recalled; `true` without it. */
  recall?: boolean;
}

/** The history of a conversation. */
export class RippleMemSession implements SessionHistoryTransactionAwareSession, SessionHistoryRewriteAwareSession {
  readonly #history: History;
  readonly #call: CallOptions;

  constructor(
    private readonly memory: RippleMem,
    private readonly options: RippleMemSessionOptions = {},
  ) {
    this.#call = options.bank ? { bank: options.bank } : {};
    const session = options.sessionId ?? crypto.getRandomValues(new BigUint64Array(2)).join("-");
    this.#history = new History(memory, session, this.#call, "The history of an agent's conversation");
  }

  async getSessionId(): Promise<string> {
    return this.#history.session;
  }

  /** The last items, oldest first; all of them without a limit. */
  async getItems(limit?: number): Promise<AgentInputItem[]> {
    if (limit !== undefined && limit <= 0) return [];
    return (await this.#history.read(limit)).map(itemOf);
  }

  async addItems(items: AgentInputItem[]): Promise<void> {
    await this.#history.add(items.map((item) => this.#newItem(item)));
  }

  async popItem(): Promise<AgentInputItem | undefined> {
    return this.#history.change(async (head) => {
      const [last] = await this.#history.read(1, head);
      if (!last) return { result: undefined };
      return { ...this.#history.popped(last), result: itemOf(last) };
    });
  }

  /** Forgets all items: they are recalled in no session any more. */
  async clearSession(): Promise<void> {
    await this.#history.clear();
  }

  /** The history becomes these items. What was said before stays in the memory, and is recalled. */
  async replaceHistoryWithCompaction(items: AgentInputItem[]): Promise<void> {
    // What is kept of the history is remembered already.
    const kept = items.map((item) => ({ ...this.#newItem(item), recall: false }));
    await this.#history.restart(kept);
  }

  async applyHistoryMutations({ mutations }: SessionHistoryRewriteArgs): Promise<void> {
    if (!mutations.length) return;
    await this.#history.change(async (head) => {
      const held = await this.#history.read(undefined, head);
      const plan = new MemorySession({ initialItems: held.map(itemOf) });
      await plan.applyHistoryMutations({ mutations });
      return { ...this.#changed(held, await plan.getItems()), result: undefined };
    });
  }

  /** Changes the history once, however often it is called with the same operation. */
  async applyHistoryTransaction(args: SessionHistoryTransactionArgs): Promise<void> {
    const { operationId, transaction } = readOnce(args);
    // The SDK's own session says what is a transaction, and what it makes of a history.
    const checked = new MemorySession({
      initialItems: transaction?.type === "replace_suffix" ? arrayOf(transaction.expectedSuffix) : [],
    });
    await checked.applyHistoryTransaction({ operationId, transaction });
    const made = digest(canonical(encoded(transaction)));
    await this.#history.change(async (head) => {
      const id = `${head.generation}.operation.${digest(operationId)}`;
      const earlier = await this.#operation(id);
      if (earlier === made) return { result: undefined };
      if (earlier) throw new UserError("Session history operation was already applied with a different transaction.");
      const change = await this.#transacted(head, { operationId, transaction });
      return { ...change, records: [...(change.records ?? []), this.#record(id, head, made)] };
    });
  }

  async #transacted(head: Head, { operationId, transaction }: SessionHistoryTransactionArgs): Promise<Change<void>> {
    if (transaction.type === "append_items") {
      const items = transaction.items.map((item) => this.#newItem(item));
      return { ...this.#history.appended(head, items), result: undefined };
    }
    const held = await this.#history.read(transaction.expectedSuffix.length, head);
    const plan = new MemorySession({ initialItems: held.map(itemOf) });
    await plan.applyHistoryTransaction({ operationId, transaction });
    const added = (await plan.getItems()).map((item) => this.#newItem(item));
    const { records, head: counted } = this.#history.appended(head, added);
    return {
      records: [...held.flatMap((one) => this.#history.removed(one)), ...records],
      head: counted,
      result: undefined,
    };
  }

  /** The records that make items of a history others: what stays the same is not written. */
  #changed(held: HeldItem[], items: AgentInputItem[]): Pick<Change<void>, "records" | "head"> {
    const records: Change<void>["records"] = [];
    const rest = [...items];
    for (const one of held) {
      const [next] = rest;
      const same = next && canonical(encoded(next)) === canonical(one.item);
      const follows = next && !same && !held.some((other) => canonical(encoded(next)) === canonical(other.item));
      if (same || follows) rest.shift();
      if (follows) records.push(...this.#history.replaced(one, this.#newItem(next)));
      else if (!same) records.push(...this.#history.removed(one));
    }
    return records.length ? { records, head: {} } : {};
  }

  async #operation(id: string): Promise<string | undefined> {
    for await (const { metadata } of listed(this.memory, { turns: [id] }, this.#call)) {
      return metadata?.operation as string | undefined;
    }
    return undefined;
  }

  #record(turn: string, { generation }: Head, operation: string): Turn {
    return {
      turn,
      speaker: "RippleMem",
      kind: "bot",
      text: "An operation on a history.",
      time: new Date(0),
      session: this.#history.session,
      recall: false,
      version: "next",
      metadata: { generation, operation },
    };
  }

  #newItem(item: AgentInputItem): NewItem {
    const { speaker = "User", assistant = "Assistant", recall = true } = this.options;
    const { type = "message", role, content, name } = item as Partial<Record<string, unknown>>;
    const said = type === "message" && (role === "user" || role === "assistant");
    const text = said ? withoutRecalled(wordsOf(content)) : "";
    if (said) {
      const [who, kind] = role === "user" ? ([speaker, "person"] as const) : ([assistant, "assistant"] as const);
      return { item: encoded(item), speaker: who, kind, text, recall };
    }
    return { item: encoded(item), speaker: String(name || role || type), kind: "tool", text, recall: false };
  }
}

/** The words of a message's content. */
function wordsOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.flatMap(({ text, refusal }) => text ?? refusal ?? []).join("\n");
}

function itemOf({ item }: HeldItem): AgentInputItem {
  return decoded(item) as AgentInputItem;
}

function arrayOf(items: unknown): AgentInputItem[] {
  return Array.isArray(items) ? items : [];
}

/** The arguments, each of which is read once. */
function readOnce(args: SessionHistoryTransactionArgs): SessionHistoryTransactionArgs {
  try {
    const { operationId, transaction } = args;
    return { operationId, transaction };
  } catch {
    throw new UserError("Session history transaction arguments are invalid.");
  }
}

/** The memory as tools of an agent, `remember` and `recall`. */
export function memoryTools(memory: RippleMem, options: CallOptions = {}): FunctionTool[] {
  return TOOLS.map(({ function: { name, description, parameters } }) =>
    tool({
      name,
      description,
      parameters: parameters as { type: "object"; properties: Record<string, Json>; required: string[] } as never,
      strict: true,
      execute: (given: unknown) => callTool(memory, name, given as Record<string, unknown>, options),
    }),
  ) as FunctionTool[];
}
