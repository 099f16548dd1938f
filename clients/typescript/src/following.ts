// A question, a bank or a profile that is followed: events in; out at each progress the evidence, or what happened.
//
// Sends nothing, waits for nothing. What came since the last progress is dropped when the connection breaks off: whoever
// comes back shows the id of that progress, and gets what changed since.
import type { Progress, SubscribedUnit } from "./api.js";
import { BusyError, ofProblem } from "./errors.js";
import type { Events } from "./events.js";
import type { ServerEvent } from "./transport.js";

/**
 * The evidence of a question that is followed, complete as of `reflects`, best first.
 *
 * `added` and `removed` are what changed since the one before; undefined where this is the whole evidence anew, or
 * nothing but the offsets changed. `removed` has the units as they were received.
 */
export interface Followed extends Omit<Progress, "units"> {
  units: SubscribedUnit[];
  added?: SubscribedUnit[];
  removed?: SubscribedUnit[];
}

type OfBank = Omit<Events["events"], "problem">;

/**
 * What happened in a bank that is followed: `name` is the event's, such as `turn`, `data` its fields. A `progress` comes
 * after the events that led to it, and says what the bank holds then.
 */
export type BankEvent = { [Name in keyof OfBank]: { name: Name; data: OfBank[Name] } }[keyof OfBank];

/** What one follower has received: of a profile, of which each event has the whole, and more below. */
export class Received<Shown> {
  #id: string | undefined;

  /** The headers of the next connection; forgets what no progress has confirmed. */
  headers(): Record<string, string> {
    this.forget();
    const shown: Record<string, string> = { accept: "text/event-stream" };
    if (this.#id !== undefined) shown["last-event-id"] = this.#id;
    return shown;
  }

  /** What is complete with an event; throws where the service ends the stream for good. */
  take(event: ServerEvent): Shown[] {
    if (event.name === "problem") throw ofProblem(event.data.status, event.data);
    if (event.name === "lagged") throw new BusyError(event.data.reason, "lagged");
    if (event.id !== undefined) this.#id = event.id;
    return this.complete(event);
  }

  protected forget(): void {}

  protected complete({ data }: ServerEvent): Shown[] {
    return [data];
  }
}

/** What a follower has received of one question. */
export class Following extends Received<Followed> {
  #whole: SubscribedUnit[] = [];
  #units: SubscribedUnit[] = [];
  #changes: Pick<Followed, "added" | "removed"> = {};

  protected override forget(): void {
    this.#units = this.#whole;
    this.#changes = {};
  }

  protected override complete({ name, data }: ServerEvent): Followed[] {
    if (name === "snapshot") {
      this.#units = [...(data.from ? this.#units : []), ...data.units];
    } else if (name === "delta") {
      this.#change(data);
    } else if (name === "reset") {
      this.#units = [];
      this.#changes = {};
    } else if (name === "progress") {
      const changes = this.#changes;
      this.#whole = this.#units;
      this.#changes = {};
      return [{ ...data, units: [...this.#units], ...changes }];
    }
    return [];
  }

  #change(delta: Events["subscribe"]["delta"]): void {
    const known = new Map(this.#units.map((unit) => [unit.id, unit]));
    const named = (id: string) => known.get(id) as SubscribedUnit;
    // The service names what went, without its words.
    const removed = delta.removed.map(({ id }) => named(id));
    for (const { unit } of [...delta.added, ...delta.updated]) known.set(unit.id, unit);
    this.#units = delta.order.map(named);
    this.#changes = { added: delta.added.map(({ unit }) => unit), removed };
  }
}

/** What a follower has received of one bank. */
export class Happening extends Received<BankEvent> {
  #unconfirmed: BankEvent[] = [];

  protected override forget(): void {
    this.#unconfirmed = [];
  }

  protected override complete({ name, data }: ServerEvent): BankEvent[] {
    this.#unconfirmed.push({ name, data } as BankEvent);
    return name === "progress" ? this.#unconfirmed.splice(0) : [];
  }
}
