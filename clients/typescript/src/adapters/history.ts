// A history: items of a session in their order, which several writers change without losing anything.
//
// A head, one turn of the session, counts the items. Every change is written together with the next version of the
// head, on the condition that nobody else changed it since it was read; else it is made again upon what there is then.
// So the order is that of the head's versions, a change is whole or absent, and one whose answer was lost is known by its
// nonce.
// Items are turns `GENERATION.NUMBER` whose times rise; a cleared history has another generation, since what is
// forgotten never comes back under its id.

import type { MetadataCondition, TurnView } from "../api.js";
import type { CallOptions, Deletion, RippleMem, Turn } from "../client.js";
import { ConflictError, UnreachableError } from "../errors.js";
import type { Json } from "./exact_json.js";
import { isMetadata } from "./exact_json.js";
import { idOf } from "./ids.js";
import { LISTED_MS, listed, PAGE } from "./listed.js";

/** An item that is added. */
export interface NewItem {
  /** Kept exactly. */
  item: Json;
  speaker: string;
  kind: "person" | "assistant" | "tool" | "bot";
  /** The words; what has none is not recalled. */
  text: string;
  recall: boolean;
  time?: Date | undefined;
  /** In place of its number: an item that is there already is not added again. */
  key?: string | undefined;
}

/** An item that is held. */
export interface HeldItem {
  item: Json;
  turn: TurnView;
}

/** What a head counts. `data` is the adapter's. */
export interface Head {
  generation: string;
  next: number;
  lastMs: number;
  data: { [key: string]: Json };
}

interface StoredHead extends Head {
  nonce: string;
}

/** What a change writes; without `records` and `data`, nothing. */
export interface Change<T> {
  records?: (Turn | Deletion)[];
  head?: Partial<Head>;
  result: T;
}

/** Items that are read beyond those that are wanted. */
const FEW = 8;
/** Ids of a history's head: another one begins where the one before was forgotten. */
const MOST_HEADS = 16;
/** Times that a change is made again because others changed the history. */
const MOST_ATTEMPTS = 40;
/** Times that it is made again because its answer was lost. */
const MOST_LOST = 2;
/** Characters of one such text, each of at most three bytes. */
const PIECE = 300_000;
/** Most items of one change. */
const MOST_ITEMS = 400;
/** Most characters of the items of one change, where it has several. */
const MOST_CHARACTERS = 1_000_000;

/** A random name of 16 hexadecimal digits. */
function randomName(): string {
  const [one, two] = crypto.getRandomValues(new Uint32Array(2)) as unknown as [number, number];
  return one.toString(16).padStart(8, "0") + two.toString(16).padStart(8, "0");
}

export class History {
  readonly #headIds: string[];
  /** The head that is written: the first one that was not forgotten, as far as this is known. */
  #at = 0;

  constructor(
    private readonly memory: RippleMem,
    readonly session: string,
    private readonly call: CallOptions = {},
    /** What the text of the head says. */
    private readonly about = "The head of a history",
  ) {
    this.#headIds = Array.from({ length: MOST_HEADS }, (_, n) => idOf(`head.${session}${n ? `#${n + 1}` : ""}`));
  }

  /** The head, as it is now; undefined where there is no history. */
  async head(): Promise<Head | undefined> {
    return (await this.#stored()).head;
  }

  /** The last items, oldest first; all of them without a limit. Those with keys are not among them. */
  async read(limit = Number.POSITIVE_INFINITY, of?: Head): Promise<HeldItem[]> {
    const head = of ?? (await this.head());
    const found: TurnView[] = [];
    // By their ids, which the head tells: nothing else of the bank is read.
    for (let end = head?.next ?? 0; end > 0 && found.length < limit; ) {
      // Some more than are wanted: items may have been taken out.
      const begin = Math.max(0, end - Math.min(PAGE, limit - found.length + FEW));
      const ids = Array.from({ length: end - begin }, (_, n) => `${head?.generation}.${begin + n}`);
      for await (const turn of listed(this.memory, { turns: ids }, this.call)) found.push(turn);
      end = begin;
    }
    return this.#items(found.slice(0, limit).reverse());
  }

  /** All items, also those with keys, oldest first. Reads the whole bank. */
  async readAll(): Promise<HeldItem[]> {
    const head = await this.head();
    if (!head) return [];
    const metadata: MetadataCondition = { all: [{ path: ["generation"], eq: head.generation }, exists("item")] };
    const found: TurnView[] = [];
    const where = { session: this.session, metadata };
    for await (const turn of listed(this.memory, where, { ...this.call, order: "oldest" })) found.push(turn);
    return this.#items(found);
  }

  /** Which of these keys have an item. */
  async held(generation: string, keys: readonly string[]): Promise<Set<string>> {
    const ids = new Map(keys.map((key) => [idOf(`${generation}.${key}`), key]));
    const held = new Set<string>();
    for await (const { turn } of listed(this.memory, { turns: [...ids.keys()] }, this.call)) {
      held.add(ids.get(turn) as string);
    }
    return held;
  }

  /** Adds items after the last one. */
  async add(items: readonly NewItem[], data?: (head: Head, added: readonly NewItem[]) => Head["data"]): Promise<void> {
    for (const some of divided(items)) {
      await this.change(async (head) => {
        const fresh = await this.#fresh(head, some);
        if (!fresh.length) return { result: undefined };
        const { records, head: counted } = this.appended(head, fresh);
        return { records, head: data ? { ...counted, data: data(head, fresh) } : counted, result: undefined };
      });
    }
  }

  /** The records of items after the last one, and the head that counts them. */
  appended(head: Head, items: readonly NewItem[]): { records: Turn[]; head: Partial<Head> } {
    let { next, lastMs } = head;
    const records = items.flatMap((added) => {
      lastMs = Math.max(lastMs + 1, added.time?.getTime() || Date.now());
      const id = idOf(`${head.generation}.${added.key ?? next}`);
      next += 1;
      return this.#records(id, added, new Date(lastMs), head.generation);
    });
    return { records, head: { next, lastMs } };
  }

  /** The records of an item that takes the place of another one. */
  replaced({ turn: { turn, time, metadata } }: HeldItem, item: NewItem): Turn[] {
    return this.#records(turn, item, new Date(time), String(metadata?.generation));
  }

  /** What takes the last item out. */
  popped(last: HeldItem): Pick<Change<void>, "records" | "head"> {
    const { turn } = last.turn;
    return { records: this.removed(last), head: { next: Number(turn.slice(turn.lastIndexOf(".") + 1)) } };
  }

  /** The records that take an item out. */
  removed({ turn: { turn, metadata } }: HeldItem): Deletion[] {
    return [turn, ...pieceIds(turn, metadata?.pieces)].map((id) => ({ type: "deletion", turn: id, version: "next" }));
  }

  /** Empties the history: nothing is listed at once, and then all of it is forgotten, also of earlier beginnings. */
  async clear(): Promise<void> {
    if (!(await this.head())) return;
    const generation = randomName();
    await this.change(async () => ({ head: { generation, next: 0, data: {} }, result: undefined }));
    const kept = either(exists("head"), { path: ["generation"], eq: generation });
    await this.memory.forgetTurns({ session: this.session, metadata: { not: kept } }, this.call);
  }

  /** The history begins anew with these items. Those before stay in the memory, and are listed no more. */
  async restart(items: readonly NewItem[]): Promise<void> {
    const generation = randomName();
    const [first = [], ...rest] = divided(items);
    await this.change(async (head) => {
      const { records, head: counted } = this.appended({ ...head, generation, next: 0 }, first);
      return { records, head: { ...counted, generation, data: {} }, result: undefined };
    });
    await this.add(rest.flat());
  }

  /** Writes what `make` says upon the head that it is given; it may be called several times. */
  async change<T>(make: (head: Head) => Promise<Change<T>>): Promise<T> {
    for (let attempt = 0; ; attempt++) {
      const { head: stored, version } = await this.#stored();
      const head = stored ?? { generation: randomName(), next: 0, lastMs: 0, data: {} };
      const change = await make(head);
      if (!change.records?.length && !change.head) return change.result;
      const nonce = randomName();
      const now: StoredHead = { ...head, ...change.head, nonce };
      const record: Turn = {
        turn: this.#headIds[this.#at] as string,
        speaker: "RippleMem",
        kind: "bot",
        text: `${this.about}.`,
        time: new Date(),
        session: this.session,
        recall: false,
        version: "next",
        expected_version: version,
        metadata: { head: now as unknown as Json },
      };
      try {
        const records = [record, ...(change.records ?? [])];
        await this.memory.remember(records, { ...this.call, together: true, waitMs: LISTED_MS });
        return change.result;
      } catch (problem) {
        // Whoever forgot all turns of a session forgot its head, and that id is gone for good.
        const forgotten = problem instanceof ConflictError && !stored && !problem.problem?.version;
        if (forgotten && !(await this.head()) && this.#at + 1 < MOST_HEADS) this.#at += 1;
        const lost = problem instanceof UnreachableError;
        if (!(problem instanceof ConflictError || lost)) throw problem;
        // Where its answer was lost, it may have been written all the same.
        if (lost && (await this.#stored()).head?.nonce === nonce) return change.result;
        if (attempt >= (lost ? MOST_LOST : MOST_ATTEMPTS)) throw problem;
        await new Promise((resolve) => setTimeout(resolve, Math.random() * Math.min(10 * 2 ** attempt, 500)));
      }
    }
  }

  async #stored(): Promise<{ head?: StoredHead; version: number }> {
    const held = new Map<string, TurnView>();
    for await (const turn of listed(this.memory, { turns: this.#headIds }, this.call)) held.set(turn.turn, turn);
    const at = this.#headIds.findLastIndex((id) => held.get(id)?.metadata?.head);
    const turn = held.get(this.#headIds[at] ?? "");
    if (!turn) return { version: 0 };
    this.#at = at;
    return { head: turn.metadata?.head as unknown as StoredHead, version: turn.version ?? 0 };
  }

  /** The items that are not there yet, each key once. */
  async #fresh({ generation, next }: Head, items: readonly NewItem[]): Promise<NewItem[]> {
    const keys = items.flatMap(({ key }) => (key === undefined ? [] : [key]));
    const there = next && keys.length ? await this.held(generation, keys) : new Set<string>();
    return items.filter(({ key }) => {
      if (key === undefined) return true;
      const fresh = !there.has(key);
      there.add(key);
      return fresh;
    });
  }

  #records(id: string, added: NewItem, time: Date, generation: string): Turn[] {
    const json = JSON.stringify(added.item);
    const common = { speaker: added.speaker, kind: added.kind, time, session: this.session, version: "next" as const };
    const words = added.text.trim();
    if (isMetadata(added.item, json)) {
      const metadata = { generation, item: added.item };
      return [
        { ...common, turn: id, text: words ? added.text : added.kind, recall: added.recall && words !== "", metadata },
      ];
    }
    const pieces = pieced(json);
    const text = words.slice(0, PIECE) || added.kind;
    const main = { ...common, turn: id, text, recall: added.recall && words !== "" };
    return [
      { ...main, metadata: { generation, item: null, pieces: pieces.length } },
      ...pieceIds(id, pieces.length).map((turn, n) => {
        return { ...common, turn, text: pieces[n] as string, recall: false, metadata: { generation } };
      }),
    ];
  }

  /** The items of turns; those that were too large for metadata are read from their pieces. */
  async #items(turns: TurnView[]): Promise<HeldItem[]> {
    const ids = turns.flatMap(({ turn, metadata }) => pieceIds(turn, metadata?.pieces));
    const texts = new Map<string, string>();
    if (ids.length) {
      for await (const { turn, text } of listed(this.memory, { turns: ids }, this.call)) texts.set(turn, text);
    }
    return turns.map((turn) => {
      const pieces = pieceIds(turn.turn, turn.metadata?.pieces).map((id) => texts.get(id));
      if (!pieces.length) return { turn, item: turn.metadata?.item as Json };
      return { turn, item: JSON.parse(pieces.join("")) };
    });
  }
}

/** Items in parts, each of which is one change. */
function* divided(items: readonly NewItem[]): Generator<NewItem[]> {
  let part: NewItem[] = [];
  let characters = 0;
  for (const item of items) {
    const more = JSON.stringify(item.item).length + item.text.length;
    if (part.length === MOST_ITEMS || (part.length && characters + more > MOST_CHARACTERS)) {
      yield part;
      part = [];
      characters = 0;
    }
    part.push(item);
    characters += more;
  }
  if (part.length) yield part;
}

/** JSON in pieces, each of which a turn's text can be: none begins or ends with half a character or a space. */
function pieced(json: string): string[] {
  const pieces: string[] = [];
  for (let at = 0; at < json.length; ) {
    let end = Math.min(at + PIECE, json.length);
    while (end < json.length && /[\ud800-\udbff]/.test(json[end - 1] as string)) end -= 1;
    pieces.push(json.slice(at, end));
    at = end;
  }
  return pieces;
}

function pieceIds(turn: string, count: unknown): string[] {
  return Array.from({ length: Number(count ?? 0) }, (_, n) => idOf(`${turn}.${n}`));
}

function exists(key: string): MetadataCondition {
  return { path: [key], exists: true };
}

function either(...any: MetadataCondition[]): MetadataCondition {
  return { any };
}
