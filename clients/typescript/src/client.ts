// The client: each call of the service as a method.
//
// What goes to a method as an option is in camelCase; records go and come in the form of the interface, as
// schemas/openapi.v1.json describes them.
import type {
  Answer,
  BankCounts,
  Diff,
  Digest,
  Evidence,
  Explanation,
  Forgets,
  Forgotten,
  ForgottenTurns,
  Graph,
  History,
  Profile,
  Receipt,
  SaidBefore,
  Selector as SelectorForm,
  Sessions,
  Status,
  TokenView,
  TurnEvent,
  Turns,
  Units,
  UnitView,
  WrittenTurns,
} from "./api.js";
import { ofProblem } from "./errors.js";
import { type BankEvent, type Followed, Following, Happening, Received } from "./following.js";
import { type Call, type ServerEvent, TIMEOUT, Transport } from "./transport.js";

/** RFC 3339 with an offset; a `Date` is written in UTC. */
export type Time = Date | string;

type TurnForm = Extract<TurnEvent, { speaker: string }>;
type DeletionForm = Extract<TurnEvent, { type: "deletion" }>;

/**
 * One thing that one speaker said.
 *
 * `turn` is its id, unique in the bank: the same id, version and content again changes nothing, a higher `version`
 * replaces it. `kind` says what the speaker is: `person`, `assistant`, `tool` or `bot`. It is written on the condition
 * that `expected_version` stands, 0 for none; else the call fails with a ConflictError.
 */
export type Turn = Omit<TurnForm, "bank" | "type" | "schema" | "role" | "time"> & { time: Time };

/** A turn that goes, among turns that are written; with a version, a higher one brings it back. */
export type Deletion = Omit<DeletionForm, "bank">;

/** Which turns of a bank: a turn must fit each field that is set. `all` stands alone. */
export type Selector = Omit<SelectorForm, "since" | "until"> & { since?: Time; until?: Time };

export interface ClientOptions {
  /** The bank of calls that name none. */
  bank?: string;
  /** Shown with every request; without it, the environment variable RIPPLEMEM_TOKEN. */
  token?: string;
  /** What sends requests, in place of the platform's. */
  fetch?: typeof fetch;
}

export interface CallOptions {
  bank?: string;
  /** Ends the call: it fails with the signal's reason, and a stream just ends. */
  signal?: AbortSignal;
}

export interface WriteOptions extends CallOptions {
  /** All are written at once, or none: at most 1,000 of one bank. */
  together?: boolean;
  /** Most milliseconds to wait until answers reflect them, so that the answer has what is `stale`; 0 without it. */
  waitMs?: number;
}

export interface ListOptions extends CallOptions {
  /** By their times; `latest` without it. */
  order?: "latest" | "oldest";
  limit?: number;
  /** The `next` of the list before. */
  before?: string;
}

export interface WaitOptions extends CallOptions {
  /** Most milliseconds to wait until no answer reflects what was deleted; 10,000 without it. */
  waitMs?: number;
}

export interface FollowOptions extends CallOptions {
  /** Gives "yesterday" a meaning. */
  askedAt?: Time;
  /** The speaker who says "I". */
  asker?: string;
  /** The last turns of the running conversation, oldest first. */
  saidBefore?: readonly SaidBefore[];
  /** Most tokens of the context. */
  mostTokens?: number;
  /** Only these turns are quoted. */
  where?: Selector;
  /** Whether excerpts have the metadata of their turns. */
  metadata?: boolean;
}

export interface AnswerOptions extends CallOptions {
  askedAt?: Time;
  /** Most milliseconds until the evidence; 10,000 without it. */
  timeoutMs?: number;
}

export interface AskOptions extends FollowOptions, AnswerOptions {
  /** The answer reflects these turns; without it, what this client wrote before. */
  after?: string;
  /** Asks about the past: an offset, or a time in RFC 3339. */
  asOf?: Time;
  /** The profile whose recall settings apply. */
  profile?: string;
  /** `flat` has rankings without the graph. */
  compare?: boolean;
  /** How many of the best parts that are not quoted the trace shows, at most 200. */
  near?: number;
}

export interface ExplainOptions extends Omit<AskOptions, "after" | "compare" | "near"> {
  /** The turn that is asked about, by its id. */
  turn?: string;
  /** Or a unit, as evidence names it. */
  unit?: string;
  /** Only the part with this index among the parts of its unit. */
  part?: number;
}

export interface ProfileOptions extends CallOptions {
  /** A speaker of the bank; without it, all. */
  person?: string;
  /** Only these. */
  kinds?: readonly ("instruction" | "preference" | "fact" | "plan")[];
  /** Superseded lines and plans whose time has passed are there, too. */
  past?: boolean;
  /** For an agent that begins: open plans and the latest sessions are there, too. */
  begin?: boolean;
  /** Only what these turns say. */
  where?: Selector;
  /** Most tokens of the text; 1,000 without it. */
  mostTokens?: number;
}

/** Banks of a list, in order. `next`: where the list goes on, undefined at its end. */
export interface CountedBanks {
  counts: BankCounts[];
  next?: string | null;
}

/**
 * A piece of an answer that is being generated. `text` is further words. `restart`: the words so far are void. `answer`
 * is in the last piece.
 */
export interface Piece {
  text: string;
  restart: boolean;
  answer?: Answer | undefined;
}

/** Most turns of one request. */
const MOST_TURNS = 1_000;
/** Most bytes of the turns of one request, where it has more than one turn: half of what a service takes. */
const MOST_BYTES = 4 << 20;
/** Milliseconds that a request may take beyond the time that the service was given. */
const MARGIN = 5_000;
const WAIT = 10_000;
/** Milliseconds that a request for an answer in words may take. */
const ANSWER_TIMEOUT = 600_000;

/** Where the last write of a bank lies, and when this client heard of it. */
interface Write {
  after: string;
  heard: number;
}

/** A memory behind a service. */
export class RippleMem {
  readonly #transport: Transport;
  readonly #bank: string | undefined;
  readonly #writes = new Map<string, Write>();
  #clock = 0;

  /** `url` is where the service listens. */
  constructor(url: string, options: ClientOptions = {}) {
    this.#transport = new Transport(url, options.token, options.fetch);
    this.#bank = options.bank;
  }

  /**
   * Writes turns; they are durable when it resolves.
   *
   * With a condition, or `together`, it is not sent again where its answer was lost: it may have been written.
   */
  async remember(
    turns: Turn | Deletion | readonly (Turn | Deletion)[],
    options: WriteOptions = {},
  ): Promise<WrittenTurns> {
    const bank = this.#named(options);
    const records = [turns].flat().map((turn) => recordOf(turn as Turn, bank));
    let written: WrittenTurns | undefined;
    for (const part of options.together ? [records] : parts(records)) {
      written = joined(written, await this.#put(bank, part, options));
    }
    return written as WrittenTurns;
  }

  /** A conversation has ended: its last window closes now, not after a pause. */
  async endSession(session: string, options: CallOptions = {}): Promise<WrittenTurns> {
    const bank = this.#named(options);
    return this.#put(bank, [JSON.stringify({ type: "session_end", bank, session })], options);
  }

  /** The evidence for a question. */
  async ask(question: string, options: AskOptions = {}): Promise<Evidence> {
    return this.#transport.json(this.#asked("/v1/ask", question, options));
  }

  /** Why the answer to a question quotes a turn or a unit, or why not. */
  async explain(question: string, options: ExplainOptions): Promise<Explanation> {
    return this.#transport.json(this.#asked("/v1/explain", question, options));
  }

  /** An answer in words by the service's language model. */
  async answer(question: string, options: AnswerOptions = {}): Promise<Answer> {
    const call = this.#asked("/v1/ask", question, options, { answer: true });
    return (await this.#transport.json<{ answer: Answer }>({ ...call, timeoutMs: ANSWER_TIMEOUT })).answer;
  }

  /** The same, piece by piece while it is generated; the last piece has the whole answer. */
  async *answerPieces(question: string, options: AnswerOptions = {}): AsyncGenerator<Piece, void, undefined> {
    const call = this.#asked("/v1/ask", question, options, { answer: true });
    const streamed = { ...call, headers: { accept: "text/event-stream" }, timeoutMs: ANSWER_TIMEOUT };
    for await (const { name, data } of this.#transport.pieces(streamed)) {
      if (name === "problem") throw ofProblem(data.status, data);
      const text = name === "text" ? data.text : "";
      const answer: Answer | undefined = name === "answer" ? data : undefined;
      if (name !== "evidence") yield { text, restart: name === "restart", answer };
    }
  }

  /**
   * The evidence now, and again whenever it changed; without end.
   *
   * A connection that breaks off is made again. It fails where the token ends, or the bank cannot be asked.
   */
  subscribe(question: string, options: FollowOptions = {}): AsyncGenerator<Followed, void, undefined> {
    const body = { ...options, bank: this.#named(options), text: question };
    return this.#followed(new Following(), post("/v1/subscribe", body, options));
  }

  /**
   * What happens in a bank from now on, each event once; without end.
   *
   * Events come together with the `progress` that they lead to, which is the last of them. A connection that breaks off
   * is made again. It fails where the token ends, or the bank cannot be followed.
   */
  events(options: CallOptions = {}): AsyncGenerator<BankEvent, void, undefined> {
    return this.#followed(new Happening(), this.#call("/v1/events", options));
  }

  /** A unit that an answer names, with all of its parts and its neighbours. */
  async unit(id: string, options: CallOptions = {}): Promise<UnitView> {
    return this.#getOf("/v1/units", options, { id });
  }

  /** Many units that answers name, at most 200, as of one moment; without their neighbours. */
  async units(ids: readonly string[], options: CallOptions = {}): Promise<Units> {
    return this.#transport.json(post("/v1/units", { bank: this.#named(options), ids }, options));
  }

  /** Units and the edges between them: those that were said last, or those `around` one, by distance. */
  async graph(options: CallOptions & { around?: string; limit?: number } = {}): Promise<Graph> {
    return this.#getOf("/v1/graph", options);
  }

  /** The points of a bank's past that `ask` answers for with `asOf`, the latest before an offset. */
  async history(options: CallOptions & { before?: string; limit?: number } = {}): Promise<History> {
    return this.#getOf("/v1/history", options);
  }

  /** What came and went in a bank between two points of its past: offsets, or times; without `end`, until now. */
  async diff(start: Time, { end, ...options }: CallOptions & { end?: Time } = {}): Promise<Diff> {
    return this.#getOf("/v1/diff", options, { from: start, to: end });
  }

  /** What persons said that lasts: instructions, preferences, facts and plans, each with its turns. */
  async profile(options: ProfileOptions & { asOf?: Time } = {}): Promise<Profile> {
    return this.#getOf("/v1/profile", options);
  }

  /** The same now, and again whenever it changed; without end. */
  profiles(options: ProfileOptions = {}): AsyncGenerator<Profile, void, undefined> {
    return this.#followed(new Received<Profile>(), this.#call("/v1/profile", options));
  }

  /** Deletes a turn, and waits until no answer reflects it. With `expectedVersion`, only where that is the present one. */
  async forget(
    turn: string,
    { waitMs = WAIT, expectedVersion, ...options }: WaitOptions & { expectedVersion?: number } = {},
  ): Promise<Forgotten> {
    const call = this.#call("/v1/turns", options, { turn, waitMs, expectedVersion });
    const once = expectedVersion != null;
    return this.#written(this.#named(options), { ...call, method: "DELETE", timeoutMs: waitMs + MARGIN, once });
  }

  /**
   * Deletes the turns that are meant, and waits until no answer reflects them.
   *
   * With `dryRun` they are counted and nothing is deleted; its `confirm` deletes exactly those.
   */
  async forgetTurns(
    where: Selector,
    options: WaitOptions & { dryRun?: boolean; confirm?: string } = {},
  ): Promise<ForgottenTurns> {
    const { dryRun, confirm, waitMs = WAIT } = options;
    const bank = this.#named(options);
    const body = { bank, where, waitMs, dryRun, confirm };
    return this.#written(bank, { ...post("/v1/forget", body, options), timeoutMs: waitMs + MARGIN });
  }

  /** What became of the operations that forgot turns, the latest first; without a bank, of all of them. */
  async forgets(options: CallOptions = {}): Promise<Receipt[]> {
    return (await this.#get<Forgets>("/v1/forgets", options)).forgets;
  }

  /** The turns of a bank, whole. */
  async turns(where?: Selector, options: ListOptions = {}): Promise<Turns> {
    const { order, limit, before } = options;
    const body = { bank: this.#named(options), where, order, limit, before };
    return this.#transport.json(post("/v1/turns/list", body, options));
  }

  /** The sessions of a bank by name, those that begin with `prefix`; `start` is the `next` of an earlier list. */
  async sessions({
    start,
    ...options
  }: CallOptions & { prefix?: string; limit?: number; start?: string } = {}): Promise<Sessions> {
    return this.#getOf("/v1/sessions", options, { from: start });
  }

  /** Gives a session a title, and waits until lists have it; an empty one removes it. */
  async nameSession(session: string, title: string, options: CallOptions = {}): Promise<void> {
    const call = post("/v1/sessions", { bank: this.#named(options), session, title, waitMs: WAIT }, options);
    await this.#transport.json({ ...call, method: "PUT" });
  }

  /** The banks that hold something, as far as the token reaches. */
  async banks(options: Pick<CallOptions, "signal"> = {}): Promise<string[]> {
    return (await this.#get<{ banks: string[] }>("/v1/banks", options)).banks;
  }

  /** The same with what each holds, at most 100; `start` is the `next` of an earlier list. */
  countedBanks({
    start,
    ...options
  }: Pick<CallOptions, "signal"> & { prefix?: string; start?: string; limit?: number } = {}): Promise<CountedBanks> {
    return this.#get("/v1/banks", { counts: true, from: start, ...options } as CallOptions);
  }

  /** What the token gives: its name, rights and banks, and when it ends. */
  token(options: Pick<CallOptions, "signal"> = {}): Promise<TokenView> {
    return this.#get("/v1/token", options);
  }

  /** Counts of a bank; without one, of all. */
  digest(options: CallOptions = {}): Promise<Digest> {
    return this.#get("/v1/digest", options);
  }

  /** How the service is. */
  status(options: Pick<CallOptions, "signal"> = {}): Promise<Status> {
    return this.#get("/v1/status", options);
  }

  #get<T>(path: string, query: CallOptions): Promise<T> {
    return this.#transport.json(get(path, query));
  }

  #getOf<T>(path: string, options: CallOptions, more?: object): Promise<T> {
    return this.#transport.json(this.#call(path, options, more));
  }

  #call(path: string, options: CallOptions, more?: object): Call {
    return get(path, { ...options, bank: this.#named(options), ...more });
  }

  #named(options: CallOptions): string {
    const bank = options.bank || this.#bank;
    if (!bank) throw new TypeError("no bank; name one in the call, or for the client");
    return bank;
  }

  #asked(path: string, question: string, options: AskOptions, more: object = {}): Call {
    const bank = this.#named(options);
    const { timeoutMs = WAIT, asOf } = options;
    const after = options.after ?? (asOf === undefined ? this.#writes.get(bank)?.after : undefined);
    const body = { ...options, bank, text: question, timeoutMs, after: after || undefined, ...more };
    return { ...post(path, body, options), timeoutMs: timeoutMs + MARGIN };
  }

  #put(bank: string, records: string[], options: WriteOptions): Promise<WrittenTurns> {
    const { together, waitMs = 0 } = options;
    const call = post("/v1/turns", { together, waitMs }, options);
    const body = `{"turns":[${records}],${call.body?.slice(1)}`;
    const once = together || body.includes('"expected_version"');
    return this.#written(bank, { ...call, body, timeoutMs: waitMs + TIMEOUT + MARGIN, once });
  }

  /** Sends a write, and keeps where it lies: a question then asks for an answer that reflects it. */
  async #written<T extends { after: string }>(bank: string, call: Call): Promise<T> {
    const begun = ++this.#clock;
    const written = await this.#transport.json<T>(call);
    const { after } = written;
    const known = this.#writes.get(bank);
    // Of writes that overlap, the one that is answered last need not lie last.
    const beyond = known && known.heard >= begun && offsetOf(known.after) > offsetOf(after);
    if (after && !beyond) this.#writes.set(bank, { after, heard: ++this.#clock });
    return written;
  }

  async *#followed<Shown>(
    received: { headers(): Record<string, string>; take(event: ServerEvent): Shown[] },
    call: Call,
  ): AsyncGenerator<Shown, void, undefined> {
    const begin = () => ({ ...call, headers: received.headers() });
    for await (const event of this.#transport.follow(begin, call.signal)) yield* received.take(event);
  }
}

function get(path: string, { signal, ...query }: CallOptions): Call {
  return { method: "GET", path, query: fieldsOf(query), signal } as Call;
}

function post(path: string, body: object, { signal }: CallOptions): Call {
  return { method: "POST", path, body: JSON.stringify(fieldsOf({ ...body, signal: undefined })), signal };
}

/**
 * Options as fields of the service, which have no capitals, with times as it reads them; throws a RangeError for an
 * invalid `Date`, of which JSON would make null.
 */
function fieldsOf(options: object): object {
  const field = ([name, value]: [string, unknown]) => [
    name.replace(/[A-Z]/, (letter) => `_${letter.toLowerCase()}`),
    value instanceof Date ? value.toISOString() : name === "where" && value ? fieldsOf(value) : value,
  ];
  return Object.fromEntries(Object.entries(options).map(field));
}

function recordOf(turn: Turn, bank: string): string {
  const { version } = turn;
  if (version != null && version !== "next" && !Number.isSafeInteger(version)) {
    throw new TypeError(`version: ${version} is not a whole number below 2^53`);
  }
  return JSON.stringify(fieldsOf({ type: "turn", ...turn, bank }));
}

/** The records in their order, divided by number and bytes. */
function* parts(records: string[]): Generator<string[]> {
  const encoder = new TextEncoder();
  let part: string[] = [];
  let size = 0;
  for (const record of records) {
    const bytes = encoder.encode(record).length + 1;
    if (part.length && (part.length === MOST_TURNS || size + bytes > MOST_BYTES)) {
      yield part;
      part = [];
      size = 0;
    }
    part.push(record);
    size += bytes;
  }
  // Where there was no turn, the service says so.
  yield part;
}

/** Two writes as one: what both count and name, and where the last turns lie. */
function joined(before: WrittenTurns | undefined, last: WrittenTurns): WrittenTurns {
  // biome-ignore lint/suspicious/noExplicitAny: every field is summed by what it is.
  const sum: any = { ...before, ...last };
  for (const [field, value] of Object.entries(before ?? {})) {
    // biome-ignore lint/suspicious/noExplicitAny: the same.
    const other = (last as any)[field];
    if (typeof value === "number") sum[field] = value + (other ?? 0);
    else if (Array.isArray(value)) sum[field] = [...value, ...(other ?? [])];
    else if (typeof value === "object") sum[field] = { ...value, ...other };
  }
  return sum;
}

/** The offset of `PARTITION:OFFSET`; a bank lies in one partition. */
function offsetOf(after: string): number {
  return Number(after.split(":")[1] ?? -1);
}
