// How a request reaches the service: its headers, when it is sent again, where else it goes, and what a response says.
//
// In: a call. Out: the JSON of its answer, or the events of a stream; else an error of errors.ts. Every call but a
// conditional write may be sent again: a turn that is put twice with the same version and content is the same turn.
import type { Problem } from "./api.js";
import { ofProblem, RippleMemError, UnreachableError } from "./errors.js";

/** A request. Fields of the query that have no value are left out. */
export interface Call {
  method: "GET" | "POST" | "PUT" | "DELETE";
  path: string;
  query?: Record<string, unknown>;
  /** The body, as JSON. */
  body?: string;
  headers?: Record<string, string>;
  /** Most milliseconds that the whole answer may take, or of a stream the silence between two pieces. */
  timeoutMs?: number;
  /** Whether it is not sent again where its answer is lost. */
  once?: boolean;
  signal?: AbortSignal | undefined;
}

export interface ServerEvent {
  name: string;
  id?: string | undefined;
  // biome-ignore lint/suspicious/noExplicitAny: its form depends on its name, which the reader looks at.
  data: any;
}

/** Times that a request is sent again. */
const RETRIES = 2;
/** Connections in a row that may fail before a stream is given up. */
const ATTEMPTS = 8;
/** Longest pause that `Retry-After` may ask for, in milliseconds. */
const LONGEST_PAUSE = 30_000;
/** Milliseconds for requests that name no time of their own. */
export const TIMEOUT = 30_000;
/** Milliseconds without a byte after which a stream is given up; the service sends one each 15 s. */
const SILENCE = 45_000;

/** The address of a service, without a slash at its end; throws where it has no scheme, which only its caller knows. */
function address(url: string): string {
  if (/^https?:\/\/[^/?#\s]/i.test(url)) {
    const { origin, pathname } = new URL(url);
    return origin + pathname.replace(/\/+$/, "");
  }
  throw new TypeError(
    `url: ${JSON.stringify(url)} begins with no http:// or https://; write it such as http://127.0.0.1:8321`,
  );
}

/** The environment variable, where there is an environment that may be read. */
function tokenOfEnvironment(): string | undefined {
  try {
    // biome-ignore lint/suspicious/noExplicitAny: browsers have no process, and their types do not name it.
    return (globalThis as any).process?.env?.RIPPLEMEM_TOKEN;
  } catch {
    // Deno refuses without --allow-env.
    return undefined;
  }
}

/** Aborts when its caller does, and when what is waited for takes too long. */
class Limit {
  expired = false;
  readonly #controller = new AbortController();
  readonly signal = this.#controller.signal;
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #stop = () => this.#controller.abort(this.given?.reason);

  constructor(
    private readonly milliseconds: number,
    private readonly given: AbortSignal | undefined,
  ) {
    given?.addEventListener("abort", this.#stop);
    if (given?.aborted) this.#stop();
    this.wait();
  }

  /** The time begins anew. */
  wait(): void {
    this.rest();
    this.#timer = setTimeout(() => {
      this.expired = true;
      this.#controller.abort();
    }, this.milliseconds);
  }

  /** Nothing is waited for. */
  rest(): void {
    clearTimeout(this.#timer);
  }

  end(): void {
    this.rest();
    this.given?.removeEventListener("abort", this.#stop);
  }
}

/** Ends early where the signal is aborted; what comes next sees that. */
async function sleep(milliseconds: number, given: AbortSignal | undefined): Promise<void> {
  const limit = new Limit(milliseconds, given);
  const { signal } = limit;
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve));
  limit.end();
}

/** What a text says as JSON; undefined where it is none, such as a proxy's page. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Why a response is no answer, and the milliseconds that it asks to wait. */
async function refusal(response: Response): Promise<{ error: RippleMemError; wait: number | undefined }> {
  const text = await response.text();
  const seconds = response.headers.get("retry-after") ?? "";
  return {
    error: ofProblem(response.status, parsed(text) as Problem | undefined, text),
    wait: /^\d+$/.test(seconds) ? Math.min(Number(seconds) * 1000, LONGEST_PAUSE) : undefined,
  };
}

export class Transport {
  readonly #url: string;
  readonly #headers: Record<string, string>;
  readonly #send: typeof fetch;

  constructor(url: string, token: string | undefined, send: typeof fetch | undefined) {
    this.#url = address(url);
    const shown = token || tokenOfEnvironment();
    if (shown && !/^[\x21-\x7e]+$/.test(shown)) {
      throw new TypeError("token: no header can hold it; `ripplemem token add` prints one");
    }
    this.#headers = shown ? { authorization: `Bearer ${shown}` } : {};
    // Browsers refuse a fetch that is called as a method.
    this.#send = send ?? ((...request) => fetch(...request));
  }

  /** The JSON of the answer. */
  json<T>(call: Call): Promise<T> {
    return this.#answer(call, async (response) => {
      const text = await response.text();
      const raw = parsed(text);
      if (raw === undefined) throw ofProblem(response.status, undefined, text);
      return raw as T;
    });
  }

  /** The events of an answer that comes in pieces, once. */
  async *pieces(call: Call): AsyncGenerator<ServerEvent> {
    const limit = new Limit(call.timeoutMs ?? SILENCE, call.signal);
    try {
      yield* eventsOf(await this.#answer(call, async (response) => response, limit), limit);
    } catch (error) {
      throw this.#why(error, limit, call);
    } finally {
      limit.end();
    }
  }

  /**
   * The events of a stream without end. `begin` makes the call of the next connection; what was received since the
   * last id is sent again. Ends where the signal is aborted.
   */
  async *follow(begin: () => Call, signal: AbortSignal | undefined): AsyncGenerator<ServerEvent> {
    let holder: string | undefined;
    // In a row, without an event.
    let attempts = 0;
    while (!signal?.aborted) {
      const call = begin();
      const limit = new Limit(SILENCE, signal);
      let pause = 0;
      try {
        const response = await this.#fetch(call, holder, limit);
        if (response.ok) {
          for await (const event of eventsOf(response, limit)) {
            attempts = 0;
            yield event;
          }
        } else {
          const { error, wait = 0 } = await refusal(response);
          holder = this.#holderOf(error);
          if (!(holder || [429, 500, 503, 504].includes(error.status)) || attempts >= ATTEMPTS) throw error;
          pause = wait;
        }
      } catch (error) {
        if (signal?.aborted) return;
        if (error instanceof RippleMemError || attempts >= ATTEMPTS) throw this.#why(error, limit, call, holder);
        // It may have ended: the service knows who holds the bank then.
        holder = undefined;
      } finally {
        limit.end();
      }
      attempts += 1;
      await sleep(Math.max(pause, Math.min(200 * 2 ** attempts, 10_000)), signal);
    }
  }

  async #answer<T>(call: Call, take: (response: Response) => Promise<T>, given?: Limit): Promise<T> {
    let holder: string | undefined;
    for (let attempt = 0; ; ) {
      const limit = given ?? new Limit(call.timeoutMs ?? TIMEOUT, call.signal);
      let pause = 200 * 2 ** attempt;
      try {
        const response = await this.#fetch(call, holder, limit);
        if (response.ok) return await take(response);
        const { error, wait = 1000 } = await refusal(response);
        const elsewhere = this.#holderOf(error);
        if (elsewhere && !holder) {
          holder = elsewhere;
          continue;
        }
        if (attempt >= RETRIES || ![429, 503].includes(error.status)) throw error;
        pause = wait;
      } catch (error) {
        const why = this.#why(error, limit, call, holder);
        if (call.once || attempt >= RETRIES || !(why instanceof UnreachableError)) throw why;
        // It may have ended: the service knows who holds the bank then.
        holder = undefined;
      } finally {
        if (limit !== given) limit.end();
      }
      await sleep(pause, call.signal);
      attempt += 1;
    }
  }

  #fetch(call: Call, holder: string | undefined, limit: Limit): Promise<Response> {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(call.query ?? {})) {
      if (value != null) query.set(name, name === "where" ? JSON.stringify(value) : `${value}`);
    }
    const asked = String(query) && `?${query}`;
    const headers: Record<string, string> = { ...this.#headers, ...call.headers };
    if (call.body !== undefined) headers["content-type"] = "application/json";
    return this.#send((holder ?? this.#url) + call.path + asked, {
      method: call.method,
      headers,
      body: call.body ?? null,
      signal: limit.signal,
      // A redirect would turn a POST into a GET, and take the token with it.
      redirect: "manual",
    });
  }

  /** The instance that holds the bank, where another one does. Nothing goes there in plain text that was encrypted here. */
  #holderOf({ status, problem }: RippleMemError): string | undefined {
    const holder = status === 421 && problem?.holder?.replace(/\/+$/, "");
    return holder && (this.#url.startsWith("http:") || holder.startsWith("https:")) ? holder : undefined;
  }

  /** The error of what was thrown; the reason of the caller's signal where that ended it. */
  #why(thrown: unknown, limit: Limit, call: Call, holder?: string): unknown {
    if (thrown instanceof RippleMemError) return thrown;
    if (call.signal?.aborted) return call.signal.reason;
    const url = holder ?? this.#url;
    if (limit.expired) {
      return new RippleMemError(`${url}: no answer in time; ask again, or allow more time`, "deadline");
    }
    // biome-ignore lint/suspicious/noExplicitAny: anything may be thrown.
    const { cause, message } = (thrown ?? {}) as any;
    const said = cause?.message || cause?.code || message || thrown;
    const detail = `${url}: ${said}; is a service running there? (\`ripplemem serve\`)`;
    return new UnreachableError(detail, "unreachable");
  }
}

/** The events of a response, each once it is whole; the connection ends when nobody reads on. */
async function* eventsOf(response: Response, limit: Limit): AsyncGenerator<ServerEvent> {
  const reader = response.body?.getReader();
  if (!reader) return;
  const decoder = new TextDecoder();
  let rest = "";
  let event: Partial<Record<string, string>> = {};
  try {
    for (;;) {
      limit.wait();
      const { done, value } = await reader.read();
      // Whoever reads the events may take its time.
      limit.rest();
      if (done) return;
      const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        const [, field, text = ""] = /^(\w+): ?(.*?)\r?$/s.exec(line) ?? [];
        if (field) event[field] = field === "data" ? (event.data ?? "") + text : text;
        else if (!line.trim()) {
          // A line that is empty ends an event; one that begins with a colon is a comment.
          if (event.event) yield { name: event.event, id: event.id, data: JSON.parse(event.data ?? "{}") };
          event = {};
        }
      }
    }
  } finally {
    // The connection may be broken already.
    reader.cancel().catch(() => {});
  }
}
