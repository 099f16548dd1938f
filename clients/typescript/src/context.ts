// Reads a context back into the turns that it quotes.

/** A turn that a context quotes, whole or by passages. */
export interface QuotedTurn {
  /** The heading above it: the day, and the time of the first turn below it. */
  heading: string;
  speaker: string;
  /**
   * What was said, with its line breaks: one text, or the passages that are quoted of a long turn. An empty passage at
   * either end says that something is left out there.
   */
  passages: string[];
}

/** The turns that a context quotes, in order. Memories that a language model restated are left out. */
export function readContext(context: string): QuotedTurn[] {
  const turns: QuotedTurn[] = [];
  let heading = "";
  let empty = 0;
  for (const line of context.split("\n")) {
    const passages = turns.at(-1)?.passages;
    if (line === "[…]" && passages) {
      passages.push("");
    } else if (line.startsWith("    ") && passages) {
      const last = passages.pop() ?? "";
      passages.push(last + (last && "\n".repeat(empty + 1)) + line.slice(4));
    } else if (line.startsWith("## ")) {
      heading = line.slice(3);
    } else if (line.startsWith('"') || (heading && line && !line.startsWith("["))) {
      const [, name = "", text = ""] = /^("(?:[^"\\]|\\.)*"|[^:]*):? ?(.*)$/s.exec(line) ?? [];
      turns.push({ heading, speaker: name.startsWith('"') ? JSON.parse(name) : name, passages: [text] });
    }
    empty = line ? 0 : empty + 1;
  }
  return turns;
}
