// Requests to the service of this page.
//
// In: a path of /v1, a body. Out: its answer, or a Failure that says what a person can do. The token is in this
// module's memory alone: never in the address, in storage or in the document.
import { signal } from "@preact/signals";
import type { Problem } from "./forms";
import { IS_REPORT } from "./mode";

let token = "";

/** Why the page asks for a token; undefined while it needs none. */
export const asksForToken = signal<string | undefined>(undefined);
/** Whether the page shows a token with its requests. */
export const hasToken = signal(false);

export function setToken(given: string): void {
  token = given.trim();
  hasToken.value = token !== "";
  asksForToken.value = undefined;
}

export class Failure extends Error {
  constructor(
    readonly status: number,
    readonly problem: Pick<Problem, "title" | "detail"> & Partial<Problem>,
    readonly retryAfterSeconds?: number,
  ) {
    super(problem.detail);
  }
}

/** What was thrown, as a failure; undefined where a request was given up on purpose. */
export function failureOf(thrown: unknown): Failure | undefined {
  if (thrown instanceof Failure) return thrown;
  if (thrown instanceof DOMException && thrown.name === "AbortError") return undefined;
  const command = IS_REPORT ? "ripplemem-eval console" : "ripplemem serve";
  const detail = `The service does not answer. Is \`${command}\` still running?`;
  return new Failure(0, { title: "No connection", detail });
}

async function send(
  method: string,
  path: string,
  body: unknown,
  signal?: AbortSignal,
  headers: Record<string, string> = {},
): Promise<Response> {
  if (token) headers.authorization = `Bearer ${token}`;
  if (body !== undefined) headers["content-type"] = "application/json";
  const response = await fetch(path, {
    method,
    headers,
    body: body === undefined ? null : JSON.stringify(body),
    signal: signal ?? null,
    cache: "no-store",
  });
  if (response.ok) return response;
  const problem: Problem = await response.json().catch(() => ({
    title: `Status ${response.status}`,
    detail: `The service answered ${response.status} without saying why.`,
  }));
  if (response.status === 401) {
    asksForToken.value = token ? "That token is not valid, or was revoked." : "This service asks for a token.";
  }
  const after = Number(response.headers.get("retry-after"));
  throw new Failure(response.status, problem, after > 0 ? after : undefined);
}

type Query = Record<string, string | number | undefined>;

function withQuery(path: string, query: Query): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) search.set(name, String(value));
  const text = search.toString();
  return `/v1/${path}${text ? `?${text}` : ""}`;
}

export async function get<T>(path: string, query: Query, signal?: AbortSignal): Promise<T> {
  return (await send("GET", withQuery(path, query), undefined, signal)).json();
}

/** A file beside the page. */
export async function getFile<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await send("GET", path, undefined, signal)).json();
}

export async function post<T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
  return (await send("POST", `/v1/${path}`, body, signal)).json();
}

export async function remove<T>(path: string, query: Record<string, string>): Promise<T> {
  return (await send("DELETE", `/v1/${path}?${new URLSearchParams(query)}`, undefined)).json();
}

export interface ServerEvent {
  event: string;
  id?: string;
  data: unknown;
}

/** Follows a stream of events. EventSource cannot show a token, and would put the question into the address. */
export async function* follow(path: string, body: unknown, signal: AbortSignal): AsyncGenerator<ServerEvent> {
  yield* eventsOf(await send("POST", `/v1/${path}`, body, signal));
}

/** Follows a stream of events that needs no body. */
export async function* followGet(path: string, query: Query, signal: AbortSignal): AsyncGenerator<ServerEvent> {
  yield* eventsOf(await send("GET", withQuery(path, query), undefined, signal, { accept: "text/event-stream" }));
}

async function* eventsOf(response: Response): AsyncGenerator<ServerEvent> {
  if (!response.body) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const events = (rest + value).split("\n\n");
    rest = events.pop() ?? "";
    for (const text of events) {
      const event = parseEvent(text);
      if (event) yield event;
    }
  }
}

export function parseEvent(text: string): ServerEvent | undefined {
  const found: ServerEvent = { event: "message", data: undefined };
  let data = "";
  for (const line of text.split("\n")) {
    const colon = line.indexOf(":");
    if (colon <= 0) continue;
    const value = line.slice(colon + 1).replace(/^ /, "");
    if (line.startsWith("event:")) found.event = value;
    else if (line.startsWith("id:")) found.id = value;
    else if (line.startsWith("data:")) data += value;
  }
  if (!data) return undefined;
  found.data = JSON.parse(data);
  return found;
}
