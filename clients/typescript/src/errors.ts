// Why there is no answer. Every message says what is wrong, where, and what to do.
import type { Problem } from "./api.js";

/** The service did not answer. */
export class RippleMemError extends Error {
  /**
   * `code` is for programs, such as `deadline` or `failed`; `status` is that of HTTP, 0 where no response came.
   * `problem` is the whole problem (RFC 9457), where the service stated one.
   */
  constructor(
    readonly detail: string,
    readonly code: string = "failed",
    readonly status: number = 0,
    readonly problem?: Problem,
  ) {
    super(detail);
    // That of the class is another one in a bundle whose names are shortened.
    this.name = "RippleMemError";
  }

  /** Whether the service is away, busy or failing, so that the same call may succeed later. */
  get temporary(): boolean {
    return [0, 421, 429].includes(this.status) || this.status >= 500;
  }
}

/** The request is wrong; sending it again changes nothing. */
export class InvalidError extends RippleMemError {}

/** The bank holds nothing, so there is nothing to list, count or follow. `ask` answers with a `notice`. */
export class UnknownBankError extends RippleMemError {}

/** A condition of a write did not hold, and nothing was written: `problem` has the `turn`, and its present `version`. */
export class ConflictError extends RippleMemError {}

/** No token, a wrong one, or one without this right or bank. */
export class DeniedError extends RippleMemError {}

/** Too much waits, or the token has used up its requests for this minute; try again in a moment. */
export class BusyError extends RippleMemError {}

/** No service answers at the address, or the connection broke off. */
export class UnreachableError extends RippleMemError {}

/** The error of a problem, or of a response that is none. */
export function ofProblem(status: number, problem: Problem | undefined, text = ""): RippleMemError {
  const code: string = problem?.code ?? "failed";
  let kind = RippleMemError;
  if (code === "unknown_bank") kind = UnknownBankError;
  else if (code === "conflict") kind = ConflictError;
  else if (status === 401 || status === 403) kind = DeniedError;
  else if (status === 429) kind = BusyError;
  else if (status >= 400 && status < 500 && status !== 421) kind = InvalidError;
  return new kind(problem?.detail || `HTTP ${status}: ${text.slice(0, 200)}`, code, status, problem);
}
