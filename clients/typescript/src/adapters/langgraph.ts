// A store of LangGraph: items in namespaces, found by key, by filter and by meaning.
//
// A namespace is a session, an item a turn, its value the turn's metadata. The bank is the program's, and everything
// that the store can reach is in it. Namespace ["users", "ann"] is the session `users.ann.`, so that a prefix of labels
// is a prefix of the name; its item "prefs" is the turn `users.ann..prefs`. The Python client's store has the same form.
import {
  BaseStore,
  type GetOperation,
  InvalidNamespaceError,
  type Item,
  type ListNamespacesOperation,
  type MatchCondition,
  type Operation,
  type OperationResults,
  type PutOperation,
  type SearchItem,
  type SearchOperation,
} from "@langchain/langgraph-checkpoint";
import type { EvidenceUnit, MetadataCondition, TurnView } from "../api.js";
import type { CallOptions, Deletion, RippleMem, Selector, Turn } from "../client.js";
import { InvalidError, UnknownBankError } from "../errors.js";
import type { Json } from "./exact_json.js";
import { isMetadata, MOST_METADATA } from "./exact_json.js";
import { fits, idOf } from "./ids.js";
import { LISTED_MS, listed } from "./listed.js";
import { cut } from "./recall.js";

export interface RippleMemStoreOptions {
  /** The bank, in place of the client's. */
  bank?: string;
  /** Who says the items; `memory` without it. */
  speaker?: string;
  /** Fields whose texts are recalled where `put` names none; without it, all of an item. */
  fields?: string[];
}

interface Stored {
  namespace: string[];
  key: string;
  value: { [key: string]: Json };
  /** `false`: `value` lacks fields, and the text is the JSON of the whole. */
  whole?: boolean;
}

/** Most bytes of a question. */
const MOST_QUESTION = 8_192;
/** Most parts that a search sees beyond those that are quoted. */
const MOST_NEAR = 200;

export class RippleMemStore extends BaseStore {
  readonly #call: CallOptions;

  constructor(
    private readonly memory: RippleMem,
    private readonly options: RippleMemStoreOptions = {},
  ) {
    super();
    this.#call = options.bank ? { bank: options.bank } : {};
  }

  /** Runs operations: first all that read, then all that write, of which the last one of a key stands. */
  override async batch<Op extends Operation[]>(operations: Op): Promise<OperationResults<Op>> {
    const gets = operations.filter(isGet);
    const items = gets.length ? await this.#items(gets.map(({ namespace, key }) => turnId(namespace, key))) : new Map();
    const results = await Promise.all(
      operations.map(async (operation) => {
        if (isGet(operation)) return items.get(turnId(operation.namespace, operation.key)) ?? null;
        if ("namespacePrefix" in operation) return this.#search(operation);
        if ("value" in operation) return undefined;
        return this.#namespaces(operation);
      }),
    );
    const puts = new Map<string, Turn | Deletion>();
    for (const operation of operations) {
      if (!isPut(operation)) continue;
      const id = turnId(operation.namespace, operation.key);
      puts.delete(id);
      puts.set(id, this.#record(id, operation));
    }
    if (puts.size) await this.#write([...puts.values()]);
    return results as OperationResults<Op>;
  }

  async #write(records: (Turn | Deletion)[]): Promise<void> {
    const { forgotten } = await this.memory.remember(records, { ...this.#call, waitMs: LISTED_MS });
    if (!forgotten?.length) return;
    const detail = `${forgotten[0]}: the item was forgotten, which is final, and is not kept; use another key`;
    throw new InvalidError(detail, "forgotten");
  }

  async #items(ids: string[]): Promise<Map<string, Item>> {
    const items = new Map<string, Item>();
    for await (const turn of listed(this.memory, { turns: ids }, this.#call)) {
      const item = itemOf(turn);
      if (item) items.set(turn.turn, item);
    }
    return items;
  }

  async #search({ namespacePrefix, filter, limit = 10, offset = 0, query }: SearchOperation): Promise<SearchItem[]> {
    const where = selectorOf(namespacePrefix, filter);
    const most = offset + limit;
    if (query?.trim()) return (await this.#recalled(query, where, most)).slice(offset, most);
    const found: SearchItem[] = [];
    if (most <= 0) return found;
    for await (const turn of listed(this.memory, where, { ...this.#call, order: "oldest", page: most })) {
      const item = itemOf(turn);
      if (item) found.push(item);
      if (found.length >= most) break;
    }
    return found.slice(offset);
  }

  /** The items that answer a question, best first: those that are quoted, and then those that come nearest. */
  async #recalled(query: string, where: Selector, most: number): Promise<SearchItem[]> {
    const shares = new Map<string, number | undefined>();
    try {
      const near = Math.min(most, MOST_NEAR);
      const { units, trace } = await this.memory.ask(cut(query, MOST_QUESTION), { ...this.#call, where, near });
      for (const { excerpts, provenance } of units) {
        for (const { turn } of excerpts) if (!shares.has(turn)) shares.set(turn, shareOf(provenance));
      }
      for (const { turn, share } of trace.near ?? []) if (!shares.has(turn)) shares.set(turn, share);
    } catch (problem) {
      if (!(problem instanceof UnknownBankError)) throw problem;
    }
    const ids = [...shares.keys()].slice(0, most);
    const items = ids.length ? await this.#items(ids) : new Map<string, Item>();
    return ids.flatMap((id) => {
      const item = items.get(id);
      const score = shares.get(id);
      return item ? [score === undefined ? item : { ...item, score }] : [];
    });
  }

  async #namespaces(operation: ListNamespacesOperation): Promise<string[][]> {
    const { matchConditions = [], maxDepth, limit, offset = 0 } = operation;
    const known = new Map<string, string[]>();
    // What the labels are before the first "*" narrows the list.
    const labels = matchConditions.find(({ matchType }) => matchType === "prefix")?.path ?? [];
    const plain = labels.slice(0, labels.includes("*") ? labels.indexOf("*") : labels.length);
    for await (const session of this.#sessions(sessionOf(plain))) {
      const namespace = session.split(".").slice(0, -1).map(labelOf);
      if (session.at(-1) !== "." || !matchConditions.every((condition) => matches(condition, namespace))) continue;
      const cutOff = maxDepth === undefined ? namespace : namespace.slice(0, maxDepth);
      known.set(sessionOf(cutOff), cutOff);
    }
    const sorted = [...known.keys()].sort().map((name) => known.get(name) as string[]);
    return sorted.slice(offset, limit === undefined ? undefined : offset + limit);
  }

  async *#sessions(prefix: string): AsyncGenerator<string, void, undefined> {
    let start: string | null | undefined;
    do {
      try {
        const page = { ...this.#call, prefix, limit: 500, ...(start ? { start } : {}) };
        const { sessions, next } = await this.memory.sessions(page);
        for (const { session, turns } of sessions) if (turns > 0) yield session;
        start = next;
      } catch (problem) {
        if (problem instanceof UnknownBankError) return;
        throw problem;
      }
    } while (start);
  }

  #record(id: string, { namespace, key, value, index }: PutOperation): Turn | Deletion {
    if (value === null) return { type: "deletion", turn: id, version: "next" };
    const json = JSON.stringify(value);
    const plain = JSON.parse(json) as Stored["value"];
    const fields = index === undefined ? this.options.fields : index;
    const words = fields === false ? "" : textOf(plain, fields);
    const stored: Stored = { namespace, key, ...heldOf(plain) };
    return {
      turn: id,
      speaker: this.options.speaker ?? "memory",
      kind: "bot",
      text: words && stored.whole !== false ? words : json,
      time: new Date(),
      session: sessionOf(namespace),
      recall: words !== "",
      version: "next",
      metadata: { langgraph: stored as unknown as Json },
    };
  }
}

function isGet(operation: Operation): operation is GetOperation {
  return "key" in operation && !("value" in operation);
}

function isPut(operation: Operation): operation is PutOperation {
  return "value" in operation;
}

/** The session of a namespace. A control character, which no name may hold, is `\\x` and two digits, a backslash two. */
function sessionOf(namespace: readonly string[]): string {
  const printable = (character: string) => {
    return character === "\\" ? "\\\\" : `\\x${character.charCodeAt(0).toString(16).padStart(2, "0")}`;
  };
  return namespace.map((label) => `${label.replace(/[\p{Cc}\\]/gu, printable)}.`).join("");
}

/** The label that a part of a session's name was made of. */
function labelOf(printable: string): string {
  return printable.replace(/\\(?:\\|x([0-9a-f]{2}))/g, (_, digits) => {
    return digits ? String.fromCharCode(Number.parseInt(digits, 16)) : "\\";
  });
}

function turnId(namespace: string[], key: string): string {
  if (!namespace.length) throw new InvalidNamespaceError("Namespace cannot be empty.");
  for (const label of namespace) {
    if (typeof label === "string" && label && !label.includes(".")) continue;
    const problem =
      typeof label !== "string" ? "must be strings" : label ? "cannot contain periods" : "cannot be empty strings";
    throw new InvalidNamespaceError(`Namespace labels ${problem}: ${JSON.stringify(namespace)}`);
  }
  if (!fits(sessionOf(namespace))) {
    throw new InvalidNamespaceError(`Namespace ${JSON.stringify(namespace)} has more than 256 bytes`);
  }
  const labels = namespace.map((label) => `${label}.`).join("");
  return idOf(`${labels}.${key}`);
}

function itemOf({ metadata, text, time, first_stored_ms, stored_ms }: TurnView): Item | undefined {
  const stored = metadata?.langgraph as unknown as Stored | undefined;
  if (!stored) return undefined;
  return {
    namespace: stored.namespace,
    key: stored.key,
    value: stored.whole === false ? JSON.parse(text) : stored.value,
    createdAt: new Date(first_stored_ms ?? time),
    updatedAt: new Date(stored_ms ?? time),
  };
}

/** A value as metadata: without its largest fields where it is too large for that, and those that fit in none. */
function heldOf(value: Stored["value"]): Pick<Stored, "value" | "whole"> {
  if (isMetadata(value)) return { value };
  const kept = Object.fromEntries(Object.entries(value).filter(([, held]) => isMetadata(held)));
  const sizes = Object.entries(kept).map(([field, held]) => ({ field, bytes: bytesOf(held) + bytesOf(field) }));
  let bytes = sizes.reduce((sum, one) => sum + one.bytes, 0);
  for (const { field, bytes: more } of sizes.sort((a, b) => b.bytes - a.bytes)) {
    if (bytes <= MOST_METADATA) break;
    delete kept[field];
    bytes -= more;
  }
  return { value: kept, whole: false };
}

function bytesOf(value: Json): number {
  return new TextEncoder().encode(JSON.stringify(value)).length + 1;
}

/** The words of a value, or of some of its fields: a line each. */
function textOf(value: Stored["value"], fields?: string[]): string {
  if (fields && !fields.includes("$")) {
    return fields.flatMap((field) => textsAt(value, tokens(field))).join("\n");
  }
  const leaves = leavesOf(value, "");
  const texts = leaves.filter(({ leaf }) => typeof leaf === "string");
  if (leaves.length === 1 && texts.length === 1) return String(texts[0]?.leaf).trim();
  return leaves.map(({ path, leaf }) => `${path}: ${leaf}`).join("\n");
}

function leavesOf(value: Json, path: string): { path: string; leaf: Json }[] {
  if (value === null || value === "") return [];
  if (typeof value !== "object") return [{ path, leaf: value }];
  return Object.entries(value).flatMap(([key, held]) => leavesOf(held, path ? `${path}.${key}` : key));
}

/** The steps of a path such as `chapters[*].content`. */
function tokens(path: string): string[] {
  return path.split(".").flatMap((step) => step.split(/(?=\[)/));
}

function textsAt(value: Json | undefined, [step, ...rest]: string[]): string[] {
  if (value === null || value === undefined) return [];
  if (step === undefined) return [typeof value === "object" ? JSON.stringify(value) : String(value)].filter(Boolean);
  if (typeof value !== "object") return [];
  const name = step.replace(/^\[(.*)\]$/, "$1");
  if (name === "*") return Object.values(value).flatMap((held) => textsAt(held, rest));
  if (Array.isArray(value)) return textsAt(value.at(Number(name)), rest);
  return textsAt(value[name], rest);
}

function selectorOf(prefix: string[], filter: SearchOperation["filter"]): Selector {
  const conditions = Object.entries(filter ?? {}).flatMap(([field, wanted]) => conditionsOf(field, wanted));
  const metadata: MetadataCondition = { all: [{ path: ["langgraph", "key"], exists: true }, ...conditions] };
  return prefix.length ? { session_prefix: sessionOf(prefix), metadata } : { metadata };
}

function conditionsOf(field: string, wanted: unknown): MetadataCondition[] {
  const path = ["langgraph", "value", field];
  const operators =
    typeof wanted === "object" && wanted !== null && Object.keys(wanted).some((key) => key.startsWith("$"))
      ? Object.entries(wanted)
      : [["$eq", wanted] as const];
  return operators.map(([operator, value]): MetadataCondition => {
    switch (operator) {
      case "$eq":
        return { path, eq: value };
      case "$ne":
        return { not: { path, eq: value } };
      case "$gt":
        return { path, gt: value };
      case "$gte":
        return { path, gte: value };
      case "$lt":
        return { path, lt: value };
      case "$lte":
        return { path, lte: value };
      case "$in":
        return { path, in: value };
      case "$nin":
        return { not: { path, in: value } };
      default:
        throw new TypeError(
          `filter ${field}: ${operator} is no operator; there are $eq $ne $gt $gte $lt $lte $in $nin`,
        );
    }
  });
}

/** Where a unit's best part lies between the bank's background, 0, and its best part, 1. */
function shareOf(provenance: EvidenceUnit["provenance"]): number | undefined {
  const shares = provenance.flatMap((way) => {
    const share = way.reached_by === "familiar" ? way.share : way.reached_by === "expansion" ? way.familiarity : null;
    return share == null ? [] : [share];
  });
  return shares.length ? Math.max(...shares) : undefined;
}

function matches({ matchType, path }: MatchCondition, namespace: string[]): boolean {
  if (path.length > namespace.length) return false;
  const start = matchType === "prefix" ? 0 : namespace.length - path.length;
  return path.every((label, n) => label === "*" || label === namespace[start + n]);
}
