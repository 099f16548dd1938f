// Names of banks for ids of any form: a tenant's, a person's.
import { sha256 } from "./sha256.js";

/** Most characters of a bank's name. */
const MOST = 128;

/**
 * The name of the bank of one or more ids. No two lists of ids have the same.
 *
 * Letters, digits, `_` and `-` stay; every other byte of UTF-8 becomes a dot and two hexadecimal digits. `/` stands
 * between the ids. A name of more than 128 characters keeps its first ids, as far as they have 93 together, and ends
 * with `.h` and 32 digits of its SHA-256. Throws where an id is empty: mostly one that is missing.
 */
export function bankName(...ids: [string, ...string[]]): string {
  if (!ids.length || ids.some((id) => typeof id !== "string" || !id)) {
    throw new TypeError("bankName: an id is empty or no text");
  }
  const parts = ids.map(escaped);
  let name = parts.join("/");
  if (name.length <= MOST) return name;
  const end = `.h${sha256(name).slice(0, 32)}`;
  while (name.length + end.length >= MOST) {
    parts.pop();
    name = parts.join("/");
  }
  return [...parts, end].join("/");
}

/** An id without what a bank's name cannot hold; throws a URIError for half a character. */
export function escaped(id: string): string {
  encodeURIComponent(id);
  return id.replace(/[^\w-]/gu, (character) =>
    [...new TextEncoder().encode(character)].map((byte) => `.${byte.toString(16).padStart(2, "0")}`).join(""),
  );
}
