// Ids of turns that are made from other ids.
import { sha256 } from "../sha256.js";

/** Most bytes of an id or of a session's name. */
export const MOST_ID = 256;

/** The first 32 hexadecimal digits of the SHA-256 of a text. */
export function digest(text: string): string {
  return sha256(text).slice(0, 32);
}

/** Whether the service takes a text as an id. */
export function fits(id: string): boolean {
  return new TextEncoder().encode(id).length <= MOST_ID && !/\p{Cc}/u.test(id) && id.trim() !== "";
}

/** A text as an id: itself, or its hash where the service would not take it. */
export function idOf(text: string): string {
  return fits(text) ? text : `.h${digest(text)}`;
}
