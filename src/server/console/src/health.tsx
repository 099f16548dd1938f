// Health and access: how the service is, its snapshots, and what this token may do.
import { useEffect, useState } from "preact/hooks";
import type { BankPage, SnapshotList, Status } from "./forms";
import { Line, rounded } from "./line";
import { ProblemView } from "./problem";
import { perSecond, type Sample, sampleOf } from "./samples";
import { type Failure, failureOf, get, hasToken, post } from "./service";
import { logOut, look, may, status, who } from "./session";
import { ago, bytes, count, moment, plural } from "./words";

const LOOK_MILLISECONDS = 2000;
/** Banks whose units are added up. */
const MOST_BANKS = 100;
/** Fifteen minutes of looks. */
const MOST_SAMPLES = 450;

export function Health() {
  const [samples, setSamples] = useState<Sample[]>([]);
  useEffect(() => {
    const stop = new AbortController();
    const sample = async () => {
      if (!document.hidden) await look(stop.signal);
      const now = status.value;
      if (now && !stop.signal.aborted) {
        setSamples((samples) => [...samples, sampleOf(now, Date.now())].slice(-MOST_SAMPLES));
      }
    };
    void sample();
    const timer = setInterval(sample, LOOK_MILLISECONDS);
    return () => {
      stop.abort();
      clearInterval(timer);
    };
  }, []);
  const [held, setHeld] = useState<number>();
  const now = status.value;
  useEffect(() => {
    const stop = new AbortController();
    const asked = { counts: 1, limit: MOST_BANKS };
    get<BankPage>("banks", asked, stop.signal).then(
      (page) => setHeld(unitsOf(page)),
      () => setHeld(undefined),
    );
    return () => stop.abort();
  }, [now?.units, now?.behind]);
  const at = samples.map((sample) => sample.at / 1000);
  return (
    <section class="health">
      <h1>Health and access</h1>
      {now && (
        <>
          <p class="lead">{summary(now)}</p>
          {now.problem && (
            <div class="problem" role="alert">
              <strong>A problem in the background</strong>
              <p>{now.problem}</p>
              <p>It is tried again until it succeeds.</p>
            </div>
          )}
          <div class="both">
            <div>
              <h2>Now</h2>
              <Rows rows={rowsNow(now, held)} />
              {now.sleep && (
                <>
                  <h2>Banks</h2>
                  <Rows rows={bankRows(now.sleep)} />
                </>
              )}
              <h2>Since the service began</h2>
              <Rows rows={rowsSince(now)} />
              <h2>While this page is open</h2>
              <Line name="Turns behind" at={at} values={samples.map((sample) => sample.behind)} />
              {now.questions && (
                <>
                  <Line name="Turns a second" at={at.slice(1)} values={perSecond(samples, "turns")} />
                  <Line name="Questions a second" at={at.slice(1)} values={perSecond(samples, "questions")} />
                  <Line
                    name="99 of 100 questions take at most"
                    unit="ms"
                    at={at}
                    values={samples.map((sample) => sample.p99)}
                  />
                </>
              )}
            </div>
            <div>
              <Access />
              {may("admin") && <Snapshots />}
            </div>
          </div>
        </>
      )}
    </section>
  );
}

function summary(now: Status): string {
  if (now.waiting_for) return `Not ready: it waits for ${now.waiting_for}.`;
  if (now.behind) return `${plural(now.behind, "turn")} durable and not reflected yet.`;
  return "Every durable turn is reflected.";
}

type Row = [name: string, value: string, hint: string];

function Rows({ rows }: { rows: Row[] }) {
  return (
    <dl class="values">
      {rows.map(([name, value, hint]) => (
        <div key={name}>
          <dt title={hint}>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function rowsNow(now: Status, held: number | undefined): Row[] {
  return [
    ["Version", now.version, "Of the program"],
    ["Partitions", count(now.partitions), "Of the log"],
    ...(held === undefined ? [] : [["Units held", count(held), "Of all banks that this token reaches"] as Row]),
    ["Behind", count(now.behind), "Turns that are durable and that no answer reflects yet"],
    ["Waiting for the model", count(now.waiting_for_model), "Closed windows that wait for the language model"],
  ];
}

function rowsSince(now: Status): Row[] {
  return [
    ["Windows closed", count(now.windows), "And extracted"],
    ["Units written", count(now.units), "Of these windows; what was there before is not counted again"],
    ["Rejected turns", count(now.rejected), "Turns that could not be read"],
    ["Dead letters", count(now.dead_letters), "Records that no reader could use"],
    ["Refused by the model", count(now.refused_by_model), "Windows whose reading could not be used"],
    ...(now.questions ? questionRows(now.questions) : []),
  ];
}

function bankRows({
  awake,
  asleep,
  awake_bytes,
  wakes,
  mean_wake_ms,
  longest_wake_ms,
}: NonNullable<Status["sleep"]>): Row[] {
  const took = (milliseconds: number | null | undefined) => (milliseconds ? `${rounded(milliseconds)} ms` : "none");
  return [
    ["Awake", count(awake), "Banks in memory"],
    ["Asleep", count(asleep), "Banks that come back with their next question or turn"],
    ["In memory", bytes(awake_bytes), "About the bytes of the banks that are awake"],
    ["Wakes", count(wakes), "How often a bank woke since the service began"],
    ["Mean wake", took(mean_wake_ms), "The mean time that it took to read a bank that woke"],
    ["Longest wake", took(longest_wake_ms), "The longest of these times"],
  ];
}

/** The units of all banks, where one page has their counts. */
function unitsOf({ counts, next }: BankPage): number | undefined {
  if (next || !counts || counts.some((bank) => bank.units === undefined || bank.units === null)) return undefined;
  return counts.reduce((sum, bank) => sum + (bank.units ?? 0), 0);
}

function questionRows({ total, p50_ms, p99_ms }: NonNullable<Status["questions"]>): Row[] {
  const took = (milliseconds: number | null | undefined) => (milliseconds ? `${rounded(milliseconds)} ms` : "none");
  return [
    ["Questions", count(total), "Refused ones included"],
    ["p50", took(p50_ms), "What half of the questions of the last five minutes took at most"],
    ["p99", took(p99_ms), "What 99 of 100 of them took at most"],
  ];
}

function Access() {
  const token = who.value;
  if (!token) return null;
  const ends = token.expires ? Date.parse(token.expires) : undefined;
  return (
    <>
      <h2>Access</h2>
      {!token.name && <p>This service asks for no token: whoever reaches its address may do everything below.</p>}
      <dl class="values">
        {token.name && (
          <div>
            <dt>Token</dt>
            <dd>{token.name}</dd>
          </div>
        )}
        <div>
          <dt>Rights</dt>
          <dd>{token.rights.join(", ") || "none"}</dd>
        </div>
        <div>
          <dt>Banks</dt>
          <dd>{token.banks.map((bank) => (bank === "*" ? "all" : bank)).join(", ")}</dd>
        </div>
        {ends && (
          <div>
            <dt>Ends</dt>
            <dd>{moment(ends)}</dd>
          </div>
        )}
        {token.requests_per_minute !== undefined && token.requests_per_minute !== null && (
          <div>
            <dt>Requests</dt>
            <dd>
              {count(token.requests_per_minute)} a minute
              {token.requests_left === undefined || token.requests_left === null
                ? ""
                : `, ${count(token.requests_left)} left`}
            </dd>
          </div>
        )}
      </dl>
      <p class="quiet">
        <code>ripplemem token add NAME --bank BANK --right read</code> makes another one. The console shows no secret.
      </p>
      {hasToken.value && (
        <button type="button" onClick={logOut}>
          Forget the token
        </button>
      )}
    </>
  );
}

function Snapshots() {
  const [list, setList] = useState<SnapshotList>();
  const [failure, setFailure] = useState<Failure>();
  const [waits, setWaits] = useState(false);
  useEffect(() => {
    const stop = new AbortController();
    get<SnapshotList>("admin/snapshots", {}, stop.signal).then(setList, (thrown) => setFailure(failureOf(thrown)));
    return () => stop.abort();
  }, []);
  const take = async () => {
    setWaits(true);
    setFailure(undefined);
    try {
      await post("admin/snapshots", {});
      setList(await get<SnapshotList>("admin/snapshots", {}));
    } catch (thrown) {
      setFailure(failureOf(thrown));
    }
    setWaits(false);
  };
  const now = Date.now();
  // A memory without a place for snapshots refuses the list.
  if (failure?.problem.code === "invalid") {
    return (
      <>
        <h2>Snapshots</h2>
        <p>None: {failure.message}.</p>
      </>
    );
  }
  return (
    <>
      <h2>Snapshots</h2>
      {failure && <ProblemView failure={failure} />}
      {list && list.snapshots.length === 0 && <p>None yet.</p>}
      {list && list.snapshots.length > 0 && (
        <div class="wide">
          <table>
            <thead>
              <tr>
                <th scope="col">Partition</th>
                <th scope="col" class="number">
                  Number
                </th>
                <th scope="col">Taken</th>
                <th scope="col" class="number">
                  Units
                </th>
                <th scope="col" class="number">
                  Size
                </th>
              </tr>
            </thead>
            <tbody>
              {list.snapshots.map((snapshot) => (
                <tr key={snapshot.partition}>
                  <th scope="row">{snapshot.partition}</th>
                  <td class="number">{count(snapshot.number)}</td>
                  <td>
                    <time title={moment(snapshot.taken_ms)}>{ago(snapshot.taken_ms, now)}</time>
                  </td>
                  <td class="number">{count(snapshot.units)}</td>
                  <td class="number">{bytes(snapshot.bytes)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <button type="button" disabled={waits} onClick={() => void take()}>
        {waits ? "Taking one …" : "Take a snapshot"}
      </button>
    </>
  );
}
