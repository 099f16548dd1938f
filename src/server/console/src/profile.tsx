// Profile: what persons said that lasts. Each line leads to its turns, and forgetting them takes it out.
import { useEffect, useState } from "preact/hooks";
import { ForgetButton } from "./forget_button";
import type { Profile, ProfileLine, Turns, TurnView } from "./forms";
import { ProblemView } from "./problem";
import { change, hashOf, place } from "./route";
import { type Failure, failureOf, followGet, get } from "./service";
import { bank } from "./session";
import { dayOf, plural, saidAt, short } from "./words";

const HEADINGS = {
  instruction: "Asked of the assistant",
  preference: "Preferences",
  fact: "Facts",
  plan: "Plans",
};
const KINDS = Object.keys(HEADINGS) as (keyof typeof HEADINGS)[];
/** As much as the service gives at most: the page has room. */
const MOST_TOKENS = 200_000;
const RETRY_MILLISECONDS = 3_000;

export function ProfileScreen() {
  const { person, past } = place.value.parameters;
  const [profile, setProfile] = useState<Profile>();
  const [speakers, setSpeakers] = useState<string[]>([]);
  const [failure, setFailure] = useState<Failure>();
  const name = bank.value;
  useEffect(() => {
    setProfile(undefined);
    if (!name) return;
    const stop = new AbortController();
    void (async () => {
      while (!stop.signal.aborted) {
        try {
          const asked = { bank: name, person, past: past && "true", begin: "true", most_tokens: MOST_TOKENS };
          for await (const { event, data } of followGet("profile", asked, stop.signal)) {
            if (event !== "profile") break;
            const now = data as Profile;
            setProfile(now);
            setFailure(undefined);
            const said = now.lines.map((line) => line.speaker);
            setSpeakers((known) => [...new Set([...(person ? known : []), ...said])].sort());
          }
        } catch (thrown) {
          setFailure(failureOf(thrown));
        }
        await new Promise((done) => setTimeout(done, RETRY_MILLISECONDS));
      }
    })();
    return () => stop.abort();
  }, [name, person, past]);
  const shown = person && !speakers.includes(person) ? [person, ...speakers] : speakers;
  return (
    <section class="profile">
      <h1>Profile</h1>
      <div class="filters">
        <label>
          Person
          <select
            value={person ?? ""}
            onChange={(event) => change({ person: event.currentTarget.value || undefined }, true)}
          >
            <option value="">everybody</option>
            {shown.map((speaker) => (
              <option key={speaker}>{speaker}</option>
            ))}
          </select>
        </label>
        <label class="check">
          <input
            type="checkbox"
            checked={past !== undefined}
            onChange={(event) => change({ past: event.currentTarget.checked ? "1" : undefined }, true)}
          />
          Also what is over
        </label>
      </div>
      {failure && <ProblemView failure={failure} />}
      {profile && profile.lines.length === 0 && (
        <p class="empty">Nobody said anything here that lasts, in words that the rules know.</p>
      )}
      {profile &&
        KINDS.map((kind) => {
          const lines = profile.lines.filter((line) => line.kind === kind);
          return (
            lines.length > 0 && (
              <section key={kind} aria-label={HEADINGS[kind]}>
                <h2>{HEADINGS[kind]}</h2>
                <ol class="turn-list">
                  {lines.map((line) => (
                    <Line key={`${line.turns.at(-1)} ${line.text}`} line={line} name={name} failed={setFailure} />
                  ))}
                </ol>
              </section>
            )
          );
        })}
      {profile?.sessions && profile.sessions.length > 0 && (
        <section aria-label="Latest sessions">
          <h2>Latest sessions</h2>
          <ol class="turn-list">
            {profile.sessions.map(({ session, title, begins, turns, last }) => (
              <li key={session}>
                <p class="words">{title ?? (begins ? `${begins.speaker}: ${begins.text}` : session)}</p>
                <small>
                  {saidAt(last)} · {session} · {plural(turns, "turn")}
                </small>
              </li>
            ))}
          </ol>
        </section>
      )}
    </section>
  );
}

interface LineProps {
  line: ProfileLine;
  name: string;
  failed: (failure: Failure | undefined) => void;
}

function Line({ line, name, failed }: LineProps) {
  const { speaker, text, turns, since, said_at, superseded_by: later } = line;
  const [opened, setOpened] = useState<TurnView[]>();
  const show = async () => {
    if (opened) return setOpened(undefined);
    try {
      const found = await Promise.all(turns.map((turn) => get<Turns>("turns", { bank: name, turn, limit: 1 })));
      setOpened(found.flatMap((page) => page.turns));
    } catch (thrown) {
      failed(failureOf(thrown));
    }
  };
  const days = [...new Set([dayOf(since), dayOf(said_at)])].join(" to ");
  return (
    <li class={later ? "over" : ""}>
      <p class="words">
        <b>{speaker}</b> {text}
      </p>
      {later && (
        <p class="words quiet">
          since {dayOf(later.said_at)}: {later.text}
        </p>
      )}
      <small>
        {days}
        {line.open === false && !later && " · its time has passed"} ·{" "}
        <button type="button" class="link" aria-expanded={opened !== undefined} onClick={() => void show()}>
          {turns.length === 1 ? "Its turn" : `Its ${turns.length} turns`}
        </button>
      </small>
      {opened?.map((turn) => (
        <div key={turn.turn} class="source-turn">
          <p class="words">
            <b>{turn.speaker}</b> {short(turn.text, 2_000)}
          </p>
          <small>
            {saidAt(turn.time)} · {turn.turn} <a href={hashOf("trace", { bank: name, turn: turn.turn })}>Trace</a>{" "}
            <ForgetButton bank={name} turn={turn.turn} forgot={() => setOpened(undefined)} failed={failed} />
          </small>
        </div>
      ))}
    </li>
  );
}
