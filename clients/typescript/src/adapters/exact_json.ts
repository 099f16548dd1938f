// Values that JSON keeps exactly, and bytes among them.

/** A value of JSON. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

const BYTES = "ripplemem:bytes";

/** A value as JSON that `decoded` reads back equal; throws a TypeError for what JSON cannot hold, such as a date. */
export function encoded(value: unknown, above: ReadonlySet<object> = new Set()): Json {
  if (value === null || typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "number" && Number.isFinite(value)) return value;
  if (value instanceof Uint8Array) return { [BYTES]: btoa(String.fromCharCode.apply(null, [...value])) };
  if (typeof value !== "object" || above.has(value)) throw refused(value);
  const within = new Set(above).add(value);
  if (Array.isArray(value)) {
    if (Reflect.ownKeys(value).length !== value.length + 1) throw refused(value);
    return value.map((one) => encoded(one, within));
  }
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) throw refused(value);
  const held: { [key: string]: Json } = {};
  for (const key of Reflect.ownKeys(value)) {
    const own = Object.getOwnPropertyDescriptor(value, key);
    if (typeof key !== "string" || !own?.enumerable || !("value" in own)) throw refused(value);
    // JSON.stringify leaves it out, too; to the SDKs both are the same.
    if (own.value !== undefined) Object.defineProperty(held, key, { ...own, value: encoded(own.value, within) });
  }
  return held;
}

/** What `encoded` was given. */
export function decoded(value: Json): unknown {
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map(decoded);
  const bytes = value[BYTES];
  if (typeof bytes === "string") return Uint8Array.from(atob(bytes), (character) => character.charCodeAt(0));
  return Object.fromEntries(Object.entries(value).map(([key, held]) => [key, decoded(held)]));
}

/** JSON whose keys are sorted: the same for equal values. */
export function canonical(value: Json): string {
  return JSON.stringify(value, (_, held) =>
    held && typeof held === "object" && !Array.isArray(held)
      ? Object.fromEntries(Object.entries(held).sort(([a], [b]) => (a < b ? -1 : 1)))
      : held,
  );
}

/** Most bytes of what an adapter keeps as metadata, below the service's 65,536 for all of a turn. */
export const MOST_METADATA = 60_000;
/** Most levels of it, below the service's 32. */
const MOST_LEVELS = 26;
/** Half a character, which the service keeps in no metadata. */
const HALF = /\\ud[89a-f]/i;

/** Whether a value fits into the metadata of a turn, and comes back equal from there. */
export function isMetadata(value: Json, json = JSON.stringify(value)): boolean {
  const fits = json.length * 3 <= MOST_METADATA || new TextEncoder().encode(json).length <= MOST_METADATA;
  return fits && !HALF.test(json) && levels(value, MOST_LEVELS + 1) <= MOST_LEVELS;
}

/** How deep a value is nested, as far as it is asked. */
function levels(value: Json, most: number): number {
  if (value === null || typeof value !== "object" || most === 0) return 0;
  return 1 + Math.max(0, ...Object.values(value).map((held) => levels(held, most - 1)));
}

function refused(value: unknown): TypeError {
  return new TypeError(`a history keeps JSON and bytes exactly, and no ${Object.prototype.toString.call(value)}`);
}
