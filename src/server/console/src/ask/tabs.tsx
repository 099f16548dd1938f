// Tabs over one panel, `#found`.

interface Props<Name extends string> {
  names: readonly Name[];
  label: string;
  chosen: Name;
  /** What stands beside a name. */
  counts?: Partial<Record<Name, number>>;
  choose: (name: Name) => void;
}

/** The id of a tab's button. */
export const tabId = (name: string): string => `tab-${name.replaceAll(" ", "-")}`;

export function Tabs<Name extends string>({ names, label, chosen, counts = {}, choose }: Props<Name>) {
  return (
    <div class="tabs" role="tablist" aria-label={label}>
      {names.map((name, at) => (
        <button
          key={name}
          type="button"
          role="tab"
          id={tabId(name)}
          aria-selected={chosen === name}
          aria-controls="found"
          tabIndex={chosen === name ? 0 : -1}
          onClick={() => choose(name)}
          onKeyDown={(event) => {
            const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? names.length - 1 : 0;
            const next = by ? names[(at + by) % names.length] : undefined;
            if (!next) return;
            choose(next);
            document.getElementById(tabId(next))?.focus();
          }}
        >
          {name}
          {counts[name] !== undefined && ` ${counts[name]}`}
        </button>
      ))}
    </div>
  );
}
