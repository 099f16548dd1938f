// The button that forgets a turn: asks once more, as nothing brings the turn back.
//
// In: a turn. Out: its deletion, once no answer reflects it any more. Shown only to a token that may forget.
import { useState } from "preact/hooks";
import { type Failure, failureOf, remove } from "./service";
import { may } from "./session";

interface Props {
  bank: string;
  turn: string;
  /** It is forgotten. */
  forgot: () => void;
  failed: (failure: Failure | undefined) => void;
}

export function ForgetButton({ bank, turn, forgot, failed }: Props) {
  const [asks, setAsks] = useState(false);
  if (!may("forget")) return null;
  const forget = async () => {
    setAsks(false);
    try {
      await remove("turns", { bank, turn, wait_ms: "5000" });
      forgot();
    } catch (thrown) {
      failed(failureOf(thrown));
    }
  };
  if (!asks) {
    return (
      <button type="button" class="link" onClick={() => setAsks(true)}>
        Forget …
      </button>
    );
  }
  return (
    <>
      Forget it for good?{" "}
      <button type="button" class="link bad" onClick={() => void forget()}>
        Forget
      </button>{" "}
      <button type="button" class="link" onClick={() => setAsks(false)}>
        Keep
      </button>
    </>
  );
}
