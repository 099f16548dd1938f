// A field for a turn: its id, or words of it, which are looked for among the bank's turns.
//
// In: what is typed, and a choice by pointer, by arrows and Enter, or by the form that the field stands in, which asks
// through `meant`. Out: the id of a turn. Words that fit several turns mean the latest of them.
import { useEffect, useRef, useState } from "preact/hooks";
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
const LIST = "turns-that-fit";

/** The turns of which an id or words hold every word of a text, the latest first. */
export function fitting(turns: TurnView[], text: string): TurnView[] {
  const wanted = text.toLowerCase().split(/\s+/).filter(Boolean);
  return turns.filter((turn) => {
    const all = `${turn.turn} ${turn.speaker} ${turn.text}`.toLowerCase();
    return wanted.every((word) => all.includes(word));
  });
}

/** The id that a text means: that of the turn which it names, else of the latest turn which it fits. */
export function turnOf(turns: TurnView[], text: string): string | undefined {
  const named = text.trim();
  if (!named) return undefined;
  return turns.find((turn) => turn.turn === named)?.turn ?? fitting(turns, named)[0]?.turn;
}

interface Props {
  value: string;
  choose: (turn: string) => void;
  /** Set to what gives the turn that the field means now; undefined where nothing fits. */
  meant: { current: () => Promise<string | undefined> };
}

export function TurnField({ value, choose, meant }: Props) {
  const [text, setText] = useEdited(value);
  const [turns, setTurns] = useState<TurnView[]>([]);
  const [isOpen, setOpen] = useState(false);
  const [active, setActive] = useState(-1);
  const listing = useRef<Promise<TurnView[]>>(Promise.resolve([]));
  useEffect(() => {
    setTurns([]);
    if (!bank.value) return;
    const stop = new AbortController();
    listing.current = (async () => {
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
      return all;
    })();
    return () => stop.abort();
  }, [bank.value]);
  const offered = isOpen ? fitting(turns, text).slice(0, MOST_OFFERED) : [];
  const pointed = offered[active];
  const take = (turn: string) => {
    setText(turn);
    setOpen(false);
    setActive(-1);
    choose(turn);
  };
  meant.current = async () => {
    const all = await listing.current;
    const id = turnOf(all, text);
    // An older turn than those that are listed; the service knows whether there is one.
    const isId = text.trim() !== "" && !/\s/.test(text.trim());
    const found = id ?? (isId && all.length >= MOST_TURNS ? text.trim() : undefined);
    if (found !== undefined) {
      setText(found);
      setOpen(false);
    }
    return found;
  };
  return (
    <div class="turn-field">
      <input
        aria-label="Turn: its id, or words of it"
        placeholder="A turn: its id, or words of it"
        class="words"
        role="combobox"
        aria-expanded={offered.length > 0}
        aria-controls={LIST}
        aria-autocomplete="list"
        aria-activedescendant={pointed && `${LIST}-${active}`}
        value={text}
        autocomplete="off"
        spellcheck={false}
        onFocus={() => setOpen(true)}
        onBlur={() => setOpen(false)}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setOpen(true);
          setActive(-1);
        }}
        onKeyDown={(event) => {
          const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
          if (event.key === "Escape") setOpen(false);
          else if (step) {
            event.preventDefault();
            setOpen(true);
            const most = Math.min(fitting(turns, text).length, MOST_OFFERED);
            if (most) setActive((active < 0 && step < 0 ? most : active + step + most) % most);
          } else if (event.key === "Enter" && pointed) {
            event.preventDefault();
            take(pointed.turn);
          }
        }}
        onChange={(event) => {
          const exact = turns.find((turn) => turn.turn === event.currentTarget.value.trim());
          if (exact) take(exact.turn);
        }}
      />
      <div id={LIST} role="listbox" aria-label="Turns that fit" hidden={offered.length === 0}>
        {offered.map((turn, at) => (
          // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the field, which names the active option.
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field has the keys.
          <div
            key={turn.turn}
            id={`${LIST}-${at}`}
            role="option"
            aria-selected={at === active}
            class="words"
            // The field keeps the focus, so that the list stays until the click.
            onPointerDown={(event) => event.preventDefault()}
            onMouseDown={(event) => event.preventDefault()}
            onClick={() => take(turn.turn)}
          >
            <b>{turn.speaker}</b> {short(turn.text, 110)}
            <small>
              {saidAt(turn.time)} · {turn.turn}
            </small>
          </div>
        ))}
      </div>
    </div>
  );
}
