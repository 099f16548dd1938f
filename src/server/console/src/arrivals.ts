// The rows of Live: turns as they come, with what became of them.
//
// In: turns that were there, and the events of a bank. Out: rows, newest first, at most 500. Pure.
import type { AddedUnit, ArrivedTurn, ClosedWindow, RejectedRecord, RemovedUnit, TurnView } from "./forms";

export const MOST_ROWS = 500;

export interface Row {
  turn: string;
  speaker: string;
  time: string;
  text: string;
  session: string;
  /** Units that were made of it, of those that are there now. */
  units: string[];
  /** Whether its window has closed since the page looks. */
  closed: boolean;
  deleted: boolean;
  /** Whether it came while the page looked. */
  fresh: boolean;
  /** Of a record that was rejected in place of a turn: why, and the offset of its dead letter. */
  rejected?: { reason: string; offset: number };
}

export interface ServerEventOf {
  event: string;
  data: unknown;
}

/** Rows of turns that were there before. */
export function rowsOf(turns: TurnView[]): Row[] {
  return turns.map(({ turn, speaker, time, text, session }) => ({
    turn,
    speaker,
    time,
    text,
    session: session ?? "",
    units: [],
    closed: false,
    deleted: false,
    fresh: false,
  }));
}

/** The rows after an event; those that it does not concern stay the same. */
export function withEvent(rows: Row[], { event, data }: ServerEventOf): Row[] {
  const change = (concerns: (row: Row) => boolean, by: (row: Row) => Partial<Row>) =>
    rows.some(concerns) ? rows.map((row) => (concerns(row) ? { ...row, ...by(row) } : row)) : rows;
  switch (event) {
    case "turn": {
      const { turn, speaker, time, text, session, deleted = false } = data as ArrivedTurn;
      if (deleted) return change(of(turn), () => ({ text: "", speaker: "", units: [], deleted, fresh: true }));
      if (rows.some(of(turn))) return change(of(turn), () => ({ speaker, time, text, deleted, fresh: true }));
      const came: Row = { turn, speaker, time, text, session, units: [], closed: false, deleted, fresh: true };
      return [came, ...rows].slice(0, MOST_ROWS);
    }
    case "window": {
      const turns = new Set((data as ClosedWindow).turns);
      return change(
        (row) => turns.has(row.turn) && !row.rejected,
        () => ({ closed: true }),
      );
    }
    case "unit_added": {
      const { id, turns } = data as AddedUnit;
      return change(
        (row) => turns.includes(row.turn) && !row.rejected && !row.units.includes(id),
        (row) => ({ units: [...row.units, id] }),
      );
    }
    case "unit_removed": {
      const { id } = data as RemovedUnit;
      return change(
        (row) => row.units.includes(id),
        (row) => ({ units: row.units.filter((unit) => unit !== id) }),
      );
    }
    case "rejected": {
      const { turn, reason, offset } = data as RejectedRecord;
      const none = { speaker: "", time: "", text: "", session: "", units: [], closed: false, deleted: false };
      const came: Row = { ...none, turn: turn ?? "", fresh: true, rejected: { reason, offset } };
      return [came, ...rows].slice(0, MOST_ROWS);
    }
    default:
      return rows;
  }
}

const of = (turn: string) => (row: Row) => row.turn === turn && !row.rejected;
