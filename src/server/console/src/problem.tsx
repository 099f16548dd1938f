// A failure, as a person reads it: what happened, and what to do.
import { useEffect, useState } from "preact/hooks";
import type { Failure } from "./service";

export function ProblemView({ failure, again }: { failure: Failure; again?: () => void }) {
  const { problem, retryAfterSeconds } = failure;
  const [seconds, setSeconds] = useState(retryAfterSeconds ?? 0);
  useEffect(() => {
    setSeconds(retryAfterSeconds ?? 0);
    const timer = setInterval(() => setSeconds((left) => Math.max(0, left - 1)), 1000);
    return () => clearInterval(timer);
  }, [failure, retryAfterSeconds]);
  return (
    <div class="problem" role="alert">
      <strong>{problem.title}</strong>
      <p>{problem.detail}</p>
      {problem.holder && (
        <a href={`${problem.holder.replace(/\/$/, "")}/console/${location.hash}`}>
          Open the console of the instance that holds it
        </a>
      )}
      {again && failure.status !== 403 && (
        <button type="button" disabled={seconds > 0} onClick={again}>
          {seconds > 0 ? `Again in ${seconds} s` : "Try again"}
        </button>
      )}
    </div>
  );
}
