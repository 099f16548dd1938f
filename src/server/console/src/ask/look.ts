// The colours of the page, for what is drawn.
export interface Look {
  text: string;
  quiet: string;
  line: string;
  ground: string;
  semantic: string;
  structural: string;
  good: string;
  bad: string;
}

/** The colours of the page as they are now: a canvas takes no `light-dark()`. */
export function lookOf(element: HTMLElement): Look {
  const probe = document.createElement("span");
  element.parentElement?.append(probe);
  const colour = (name: string) => {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  };
  const look = {
    text: colour("--text"),
    quiet: colour("--quiet"),
    line: colour("--line"),
    ground: colour("--ground"),
    semantic: colour("--semantic"),
    structural: colour("--structural"),
    good: colour("--good"),
    bad: colour("--bad"),
  };
  probe.remove();
  return look;
}
