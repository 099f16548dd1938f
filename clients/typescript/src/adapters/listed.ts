// Lists of turns of any length.

import type { TurnView } from "../api.js";
import type { CallOptions, ListOptions, RippleMem, Selector } from "../client.js";
import { UnknownBankError } from "../errors.js";

/** Milliseconds that a store waits until lists have what it wrote. */
export const LISTED_MS = 10_000;
/** Most turns of one list, and most ids that one list is asked for. */
export const PAGE = 200;

/** The turns that fit, page by page; none of a bank that holds nothing. `page` is about how many are wanted. */
export async function* listed(
  memory: RippleMem,
  where: Selector,
  { page = PAGE, order, ...call }: CallOptions & { order?: "latest" | "oldest"; page?: number } = {},
): AsyncGenerator<TurnView, void, undefined> {
  const limit = Math.max(1, Math.min(page, PAGE));
  const ids = where.turns;
  for (let at = 0; at < (ids?.length ?? 1); at += PAGE) {
    const some = ids ? { ...where, turns: ids.slice(at, at + PAGE) } : where;
    let before: string | null | undefined;
    do {
      const options: ListOptions = { ...call, limit };
      if (order) options.order = order;
      if (before) options.before = before;
      try {
        const list = await memory.turns(some, options);
        yield* list.turns;
        before = list.next;
      } catch (problem) {
        if (problem instanceof UnknownBankError) return;
        throw problem;
      }
    } while (before);
  }
}
