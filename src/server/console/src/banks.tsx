// Banks: what each holds, and the turns of one.
import { useEffect, useState } from "preact/hooks";
import { Changes } from "./changes";
import { ForgetButton } from "./forget_button";
import type { BankPage, BankStatus, Stats, Turns, TurnView } from "./forms";
import { BankMap } from "./map";
import { ProblemView } from "./problem";
import { change, hashOf, place } from "./route";
import { type Failure, failureOf, get } from "./service";
import { ago, bytes, count, moment, plural, saidAt, short } from "./words";

const PAGE = 100;
const STATES = {
  here: "",
  asleep: "asleep: its next question or turn wakes it",
  loading: "is being loaded",
  elsewhere: "held by another instance",
  quarantined: "quarantined: a record cannot be read",
};

export function Banks() {
  const opened = place.value.parameters.bank;
  const [prefix, setPrefix] = useState("");
  const [page, setPage] = useState<BankPage>();
  const [pages, setPages] = useState<(string | undefined)[]>([undefined]);
  const [failure, setFailure] = useState<Failure>();
  const from = pages.at(-1);
  useEffect(() => {
    const stop = new AbortController();
    const asked = { counts: 1, limit: PAGE, prefix: prefix || undefined, from };
    get<BankPage>("banks", asked, stop.signal).then(
      (page) => {
        setPage(page);
        setFailure(undefined);
      },
      (thrown) => setFailure(failureOf(thrown)),
    );
    return () => stop.abort();
  }, [prefix, from]);
  const counts = page?.counts ?? [];
  const sum = (of: "units" | "semantic_edges" | "structural_edges") =>
    counts.reduce((sum, bank) => sum + (bank[of] ?? 0), 0);
  const now = Date.now();
  return (
    <section class="banks">
      <h1>Banks</h1>
      <label class="filter">
        Prefix
        <input
          value={prefix}
          placeholder="acme, or acme/support"
          autocomplete="off"
          spellcheck={false}
          onChange={(event) => {
            setPages([undefined]);
            setPrefix(event.currentTarget.value.trim());
          }}
        />
      </label>
      {failure && <ProblemView failure={failure} />}
      {page && (
        <div class="wide">
          <table class="bank-table">
            <thead>
              <tr>
                <th scope="col">Bank</th>
                <th scope="col" class="number">
                  Units
                </th>
                <th scope="col" class="number">
                  Semantic edges
                </th>
                <th scope="col" class="number">
                  Structural edges
                </th>
                <th scope="col" class="number">
                  Behind
                </th>
                <th scope="col">Last written</th>
              </tr>
            </thead>
            <tbody>
              {counts.map((bank) => (
                <tr key={bank.bank} class={bank.bank === opened ? "chosen" : ""}>
                  <th scope="row">
                    <a href={hashOf("banks", { bank: bank.bank })}>{bank.bank}</a>
                    {STATES[bank.state] && <small>{STATES[bank.state]}</small>}
                  </th>
                  <td class="number" data-name="units">
                    {bank.units == null ? "" : count(bank.units)}
                  </td>
                  <td class="number" data-name="semantic edges">
                    {bank.semantic_edges == null ? "" : count(bank.semantic_edges)}
                  </td>
                  <td class="number" data-name="structural edges">
                    {bank.structural_edges == null ? "" : count(bank.structural_edges)}
                  </td>
                  <td class="number" data-name="behind">
                    {bank.behind == null ? "" : count(bank.behind)}
                  </td>
                  <td data-name="last written">
                    {bank.last_append_ms ? (
                      <time title={moment(bank.last_append_ms)}>{ago(bank.last_append_ms, now)}</time>
                    ) : (
                      ""
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
            {counts.length > 1 && (
              <tfoot>
                <tr>
                  <th scope="row">{plural(counts.length, "bank")} here</th>
                  <td class="number" data-name="units">
                    {count(sum("units"))}
                  </td>
                  <td class="number" data-name="semantic edges">
                    {count(sum("semantic_edges"))}
                  </td>
                  <td class="number" data-name="structural edges">
                    {count(sum("structural_edges"))}
                  </td>
                  <td />
                  <td />
                </tr>
              </tfoot>
            )}
          </table>
        </div>
      )}
      {page && page.banks.length === 0 && (
        <p class="empty">{prefix ? `No bank begins with ${prefix}.` : "No bank yet: the first turn makes one."}</p>
      )}
      {(pages.length > 1 || page?.next) && (
        <p>
          <button type="button" disabled={pages.length < 2} onClick={() => setPages(pages.slice(0, -1))}>
            Before
          </button>{" "}
          <button type="button" disabled={!page?.next} onClick={() => setPages([...pages, page?.next ?? undefined])}>
            Next
          </button>
        </p>
      )}
      {opened && <Opened key={opened} name={opened} />}
    </section>
  );
}

const PARTS: [keyof Stats["parts"], string][] = [
  ["text_bytes", "what units say"],
  ["vector_bytes", "vectors"],
  ["semantic_bytes", "index of meaning"],
  ["structural_bytes", "index of cues"],
  ["part_bytes", "words and parts"],
  ["candidate_bytes", "candidates"],
  ["edge_bytes", "edges"],
];

function Opened({ name }: { name: string }) {
  const [state, setState] = useState<BankStatus>();
  const [stats, setStats] = useState<Stats>();
  const [failure, setFailure] = useState<Failure>();
  const [hasMap, setHasMap] = useState(false);
  const [hasChanges, setHasChanges] = useState(place.value.parameters.from !== undefined);
  useEffect(() => {
    const stop = new AbortController();
    Promise.all([
      get<BankStatus>("bank", { bank: name }, stop.signal),
      get<Stats>("stats", { bank: name }, stop.signal),
    ]).then(
      ([state, stats]) => {
        setState(state);
        setStats(stats);
      },
      (thrown) => setFailure(failureOf(thrown)),
    );
    return () => stop.abort();
  }, [name]);
  const most = stats ? Math.max(1, ...PARTS.map(([part]) => stats.parts[part])) : 1;
  return (
    <section class="opened" aria-label={name}>
      <div class="head">
        <h2>{name}</h2>
        <span>
          <button type="button" aria-expanded={hasMap} onClick={() => setHasMap(!hasMap)}>
            Map
          </button>{" "}
          <button
            type="button"
            aria-expanded={hasChanges}
            onClick={() => {
              if (hasChanges) change({ from: undefined, to: undefined }, true);
              setHasChanges(!hasChanges);
            }}
          >
            Changes
          </button>{" "}
          <a href={hashOf("profile", { bank: name })}>Profile</a> <a href={hashOf("ask", { bank: name })}>Ask it</a>
        </span>
      </div>
      {failure && <ProblemView failure={failure} />}
      {state && (
        <p class="verdict">
          <span>{plural(state.units, "unit")}</span>
          <span>{plural(state.semantic_edges, "semantic edge")}</span>
          <span>{plural(state.structural_edges, "structural edge")}</span>
          <span>reflects {state.reflects.map((at) => `${at.topic} ${at.partition}:${at.next_offset}`).join(", ")}</span>
        </p>
      )}
      {hasMap && <BankMap name={name} />}
      {hasChanges && <Changes name={name} />}
      <div class="both">
        <TurnTable name={name} />
        {stats && (
          <div>
            <h3>{bytes(stats.bytes)} in memory</h3>
            <table class="terms">
              <tbody>
                {PARTS.map(([part, text]) => (
                  <tr key={part}>
                    <th scope="row">{text}</th>
                    <td>
                      <i class="bar" style={{ width: `${(100 * stats.parts[part]) / most}%` }} />
                    </td>
                    <td class="number" title={`${stats.parts[part]} bytes`}>
                      {bytes(stats.parts[part])}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </div>
    </section>
  );
}

function TurnTable({ name }: { name: string }) {
  const [turns, setTurns] = useState<TurnView[]>([]);
  const [next, setNext] = useState<string>();
  const [gone, setGone] = useState<Set<string>>(new Set());
  const [failure, setFailure] = useState<Failure>();
  const more = async (before?: string) => {
    try {
      const page = await get<Turns>("turns", { bank: name, limit: 50, before });
      setTurns((turns) => (before ? [...turns, ...page.turns] : page.turns));
      setNext(page.next ?? undefined);
    } catch (thrown) {
      setFailure(failureOf(thrown));
    }
  };
  useEffect(() => void more(), [name]);
  return (
    <div>
      <h3>Turns, newest first</h3>
      {failure && <ProblemView failure={failure} />}
      <ol class="turn-list">
        {turns.map((turn) => (
          <li key={turn.turn}>
            {gone.has(turn.turn) ? (
              <p class="quiet">Turn {turn.turn} is forgotten, with everything that was made of it.</p>
            ) : (
              <>
                <p class="words">
                  <b>{turn.speaker}</b> {short(turn.text, 200)}
                </p>
                <small>
                  {saidAt(turn.time)} · {turn.turn} <a href={hashOf("trace", { bank: name, turn: turn.turn })}>Trace</a>{" "}
                  <ForgetButton
                    bank={name}
                    turn={turn.turn}
                    forgot={() => setGone((gone) => new Set([...gone, turn.turn]))}
                    failed={setFailure}
                  />
                </small>
              </>
            )}
          </li>
        ))}
      </ol>
      {next !== undefined && (
        <button type="button" onClick={() => void more(next)}>
          Older
        </button>
      )}
    </div>
  );
}
