// A field for a turn: its id, or words of it, which are looked for among the bank's turns.
import { useEffect, useState } from "preact/hooks";
import { useEdited } from "./edited";
import type { Turns, TurnView } from "./forms";
import { get } from "./service";
import { bank } from "./session";
import { saidAt, short } from "./words";

/** Turns that are looked through. */
const MOST_TURNS = 2000;
const PAGE = 500;
/** Turns that are offered. */
const MOST_OFFERED = 8;

export function TurnField({ value, choose }: { value: string; choose: (turn: string) => void }) {
  const [text, setText] = useEdited(value);
  const [turns, setTurns] = useState<TurnView[]>([]);
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    setTurns([]);
    if (!bank.value) return;
    const stop = new AbortController();
    void (async () => {
      let before: string | undefined;
      let all: TurnView[] = [];
      try {
        do {
          const page: Turns = await get("turns", { bank: bank.value, limit: PAGE, before }, stop.signal);
          all = all.concat(page.turns);
          setTurns(all);
          before = page.next ?? undefined;
        } while (before !== undefined && all.length < MOST_TURNS);
      } catch {
        // Without the list an id can still be written.
      }
    })();
    return () => stop.abort();
  }, [bank.value]);
  const wanted = text.toLowerCase().split(/\s+/).filter(Boolean);
  const offered = isOpen
    ? turns
        .filter((turn) => {
          const all = `${turn.turn} ${turn.speaker} ${turn.text}`.toLowerCase();
          return wanted.every((word) => all.includes(word));
        })
        .slice(0, MOST_OFFERED)
    : [];
  const take = (turn: string) => {
    setText(turn);
    setOpen(false);
    choose(turn);
  };
  return (
    <div class="turn-field">
      <input
        aria-label="Turn: its id, or words of it"
        placeholder="A turn: its id, or words of it"
        class="words"
        value={text}
        autocomplete="off"
        spellcheck={false}
        onFocus={() => setOpen(true)}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setOpen(true);
        }}
        onKeyDown={(event) => {
          if (event.key === "Escape") setOpen(false);
        }}
        onChange={(event) => {
          const exact = turns.find((turn) => turn.turn === event.currentTarget.value.trim());
          if (exact) take(exact.turn);
        }}
      />
      {offered.length > 0 && (
        <ul aria-label="Turns that fit">
          {offered.map((turn) => (
            <li key={turn.turn}>
              <button type="button" class="words" onClick={() => take(turn.turn)}>
                <b>{turn.speaker}</b> {short(turn.text, 110)}
                <small>
                  {saidAt(turn.time)} · {turn.turn}
                </small>
              </button>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
