// Numbers and times in words.
const counts = new Intl.NumberFormat("en");

export const count = (number: number): string => counts.format(number);
export const plural = (number: number, one: string, many = `${one}s`): string =>
  `${count(number)} ${number === 1 ? one : many}`;
/** Two places, enough to compare; the whole number is in a title or under JSON. */
export const share = (number: number): string => number.toFixed(2);

/** The day and minute of a time in RFC 3339, as it was said there: the offset of the text, not of this machine. */
export function saidAt(text: string): string {
  const found = text.match(/^(\d{4})-(\d{2})-(\d{2})T(\d{2}:\d{2})/);
  if (!found) return text;
  return `${Number(found[3])} ${MONTHS[Number(found[2]) - 1]} ${found[1]}, ${found[4]}`;
}

export function dayOf(text: string): string {
  return saidAt(text).split(",")[0] ?? text;
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

const clock = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });
/** A moment of the service, in the time of this machine. */
export const moment = (milliseconds: number): string => clock.format(milliseconds);

export function ago(milliseconds: number, now: number): string {
  const seconds = Math.max(0, Math.round((now - milliseconds) / 1000));
  if (seconds < 90) return `${seconds} s ago`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 129600) return `${Math.round(seconds / 3600)} h ago`;
  return `${Math.round(seconds / 86400)} days ago`;
}

export function bytes(number: number): string {
  if (number < 1024) return `${number} B`;
  const units = ["KiB", "MiB", "GiB", "TiB"];
  let [value, at] = [number / 1024, 0];
  while (value >= 1024 && at < units.length - 1) [value, at] = [value / 1024, at + 1];
  return `${value.toFixed(1)} ${units[at]}`;
}

/** The first characters, cut at a word. */
export function short(text: string, most: number): string {
  if (text.length <= most) return text;
  const cut = text.slice(0, most);
  return `${cut.slice(0, Math.max(cut.lastIndexOf(" "), most - 20))} …`;
}
