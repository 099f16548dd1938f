"""Why there is no answer. Every message says what is wrong, where, and what to do."""

from __future__ import annotations


class RippleMemError(Exception):
    """The service did not answer.

    ``code`` is for programs, such as ``deadline`` or ``failed`` (schemas/openapi.v1.json lists them);
    ``status`` is that of HTTP, 0 where no response came.
    """

    def __init__(self, message: str, code: str = "failed", status: int = 0) -> None:
        super().__init__(message)
        self.code = code
        self.status = status

    @property
    def temporary(self) -> bool:
        """Whether the service is away, busy or failing, so that the same call may succeed later."""
        return self.status in (0, 421, 429) or self.status >= 500


class InvalidError(RippleMemError):
    """The request is wrong; sending it again changes nothing."""


class UnknownBankError(RippleMemError):
    """The bank holds nothing, so there is nothing to list, count or follow. ``ask`` answers with a ``notice``."""


class ConflictError(RippleMemError):
    """A condition did not hold, so nothing was written.

    ``turn`` names the record with ``expected_version``, ``version`` is the present version of that turn: 0 where it is
    absent or deleted.
    """

    def __init__(self, message: str, turn: str, version: int) -> None:
        super().__init__(message, "conflict", 409)
        self.turn, self.version = turn, version


class DeniedError(RippleMemError):
    """No token, a wrong one, or one without this right or bank."""


class BusyError(RippleMemError):
    """Too much waits, or the token has used up its requests for this minute; try again in a moment."""


class UnreachableError(RippleMemError):
    """No service answers at the address, or the connection broke off."""


def of_problem(status: int, problem: dict[str, object], text: str) -> RippleMemError:
    """The error of a problem (RFC 9457), or of a response that is none."""
    code = str(problem.get("code", "failed"))
    message = str(problem.get("detail") or f"HTTP {status}: {text[:200]}")
    if code == "conflict":
        return ConflictError(message, str(problem.get("turn", "")), int(str(problem.get("version", 0))))
    if code == "unknown_bank":
        kind: type[RippleMemError] = UnknownBankError
    elif status in (401, 403):
        kind = DeniedError
    elif status == 429:
        kind = BusyError
    elif 400 <= status < 500 and status != 421:
        kind = InvalidError
    else:
        kind = RippleMemError
    return kind(message, code, status)
