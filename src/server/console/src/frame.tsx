// The frame of every screen: its bar, the banks, the state of the service, the field for a token, and the keys.
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { IS_REPORT } from "./mode";
import { go, place, SCREENS, type Screen } from "./route";
import { asksForToken, hasToken } from "./service";
import {
  bank,
  banks,
  choose,
  hasLetterKeys,
  hidesWords,
  logIn,
  logOut,
  look,
  moreBanks,
  status,
  trouble,
  who,
} from "./session";
import { plural } from "./words";

export const NAMES: Record<Screen, string> = {
  ask: "Ask",
  trace: "Trace",
  live: "Live",
  banks: "Banks",
  profile: "Profile",
  health: "Health",
  report: "Report",
};

const helps = signal(false);
const LOOK_MILLISECONDS = 10_000;

export function Frame({ children }: { children: ComponentChildren }) {
  const { screen, parameters } = place.value;
  useEffect(() => {
    const stop = new AbortController();
    const timer = setInterval(() => {
      if (!IS_REPORT && !document.hidden && asksForToken.value === undefined) void look(stop.signal);
    }, LOOK_MILLISECONDS);
    const pressed = (event: KeyboardEvent) => {
      if (event.key !== "?" || !hasLetterKeys.value || isTyping(event)) return;
      event.preventDefault();
      helps.value = !helps.value;
    };
    addEventListener("keydown", pressed);
    return () => {
      stop.abort();
      clearInterval(timer);
      removeEventListener("keydown", pressed);
    };
  }, []);
  useEffect(() => {
    document.title = `${NAMES[screen]} · RippleMem`;
  }, [screen]);
  return (
    <div class={hidesWords.value ? "frame hidden-words" : "frame"}>
      <button type="button" class="skip" onClick={() => document.getElementById("main")?.focus()}>
        Skip to the content
      </button>
      <header>
        <strong class="brand">RippleMem</strong>
        {!IS_REPORT && (
          <nav aria-label="Screens">
            {SCREENS.map((name) => (
              <a
                key={name}
                href={`#/${name}${parameters.bank ? `?bank=${encodeURIComponent(parameters.bank)}` : ""}`}
                aria-current={name === screen ? "page" : undefined}
              >
                {NAMES[name]}
              </a>
            ))}
          </nav>
        )}
        <span class="space" />
        <BankPicker />
        <State />
        <button type="button" class="plain" onClick={() => (helps.value = true)} aria-label="Help and settings">
          ?
        </button>
      </header>
      <main id="main" tabIndex={-1}>
        {asksForToken.value !== undefined ? (
          <TokenField reason={asksForToken.value} />
        ) : trouble.value !== undefined && who.value === undefined ? (
          <p class="problem" role="alert">
            {trouble.value}
          </p>
        ) : (
          children
        )}
      </main>
      <Help />
    </div>
  );
}

/** Whether a key belongs to a field. */
export function isTyping(event: KeyboardEvent): boolean {
  const target = event.target as HTMLElement | null;
  return (
    event.ctrlKey ||
    event.metaKey ||
    event.altKey ||
    (target?.matches("input:not([type=range]), textarea, select, [contenteditable]") ?? false)
  );
}

/** The banks that the token reaches; by name where there are many. */
function BankPicker() {
  if (!who.value) return null;
  const known = banks.value.includes(bank.value) || bank.value === "" ? banks.value : [bank.value, ...banks.value];
  return (
    <div class="bank">
      <label for="bank">Bank</label>
      {moreBanks.value ? (
        <input
          id="bank"
          list="banks"
          value={bank.value}
          onChange={(event) => choose(event.currentTarget.value.trim())}
          spellcheck={false}
          autocomplete="off"
        />
      ) : (
        <select id="bank" value={bank.value} onChange={(event) => choose(event.currentTarget.value)}>
          {known.length === 0 && <option value="">none yet</option>}
          {known.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      )}
      {moreBanks.value && (
        <datalist id="banks">
          {banks.value.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
      )}
    </div>
  );
}

function State() {
  if (!who.value) return null;
  const now = status.value;
  const [mark, text] = trouble.value
    ? ["bad", "no connection"]
    : !now
      ? ["quiet", "…"]
      : now.problem
        ? ["bad", "problem"]
        : now.waiting_for
          ? ["busy", "starting"]
          : now.behind
            ? ["busy", `${plural(now.behind, "turn")} behind`]
            : ["good", "up to date"];
  return (
    <a class={`state ${mark}`} href="#/health">
      <i aria-hidden="true" />
      {text}
    </a>
  );
}

function TokenField({ reason }: { reason: string }) {
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []);
  return (
    <section class="token">
      <h1>A token, please</h1>
      <p role="alert">{reason}</p>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          const given = field.current?.value ?? "";
          if (field.current) field.current.value = "";
          if (given) logIn(given);
        }}
      >
        <label>
          Token with the right <code>read</code>
          <input ref={field} type="password" autocomplete="off" spellcheck={false} />
        </label>
        <button type="submit" class="main">
          Continue
        </button>
      </form>
      <p class="quiet">
        It stays in this page's memory until the page is closed or loaded again.{" "}
        <code>ripplemem token add NAME --bank BANK --right read</code> makes one.
      </p>
    </section>
  );
}

const KEYS = [
  ...(IS_REPORT ? [] : [["/", "the question"]]),
  ["Space", "play the ripple"],
  ["← →", "one step back or on"],
  ...(!IS_REPORT ? [["[ ]", "the point before or after, in time"]] : []),
  ["j k", "the next or the previous evidence"],
  ["Enter", "open what is focused"],
  ["Esc", "close"],
  ["?", "this help"],
];

function Help() {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (helps.value && !dialog.current?.open) dialog.current?.showModal();
    else if (!helps.value) dialog.current?.close();
  }, [helps.value]);
  return (
    <dialog ref={dialog} class="help" aria-labelledby="help" onClose={() => (helps.value = false)}>
      <h2 id="help">Help and settings</h2>
      <dl class="keys">
        {KEYS.map(([key, text]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
      <label class="check">
        <input
          type="checkbox"
          checked={hasLetterKeys.value}
          onChange={(event) => (hasLetterKeys.value = event.currentTarget.checked)}
        />
        Single letters and signs are keys
      </label>
      <label class="check">
        <input
          type="checkbox"
          checked={hidesWords.value}
          onChange={(event) => (hidesWords.value = event.currentTarget.checked)}
        />
        Blur what was said, as while a screen is shared
      </label>
      {hasToken.value && (
        <button
          type="button"
          onClick={() => {
            helps.value = false;
            logOut();
          }}
        >
          Forget the token
        </button>
      )}
      <form method="dialog">
        <button type="submit" class="main">
          Close
        </button>
      </form>
    </dialog>
  );
}

/** Opens Trace for a turn and a question. */
export function toTrace(parameters: {
  turn?: string | undefined;
  unit?: string | undefined;
  q?: string | undefined;
  at?: string | undefined;
  asof?: string | undefined;
}): void {
  go("trace", { bank: bank.value, ...parameters });
}
