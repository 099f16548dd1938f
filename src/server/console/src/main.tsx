// The page: its screen, in its frame.
import { render } from "preact";
import { useEffect } from "preact/hooks";
import { Ask } from "./ask/ask";
import { Banks } from "./banks";
import { Frame } from "./frame";
import { Health } from "./health";
import { Live } from "./live";
import { IS_REPORT } from "./mode";
import { ProfileScreen } from "./profile";
import { Report } from "./report/report";
import { place } from "./route";
import { begin, who } from "./session";
import { Trace } from "./trace";

const SCREENS = {
  ask: Ask,
  trace: Trace,
  live: Live,
  banks: Banks,
  profile: ProfileScreen,
  health: Health,
  report: Report,
};

function Page() {
  useEffect(() => {
    if (!IS_REPORT) void begin();
  }, []);
  const Screen = SCREENS[place.value.screen];
  return <Frame>{(IS_REPORT || who.value) && <Screen />}</Frame>;
}

const root = document.getElementById("page");
if (root) {
  root.replaceChildren();
  render(<Page />, root);
}
