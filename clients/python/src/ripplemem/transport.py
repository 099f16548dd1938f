"""What both clients do with a request: its headers, when it is sent again, and what a response says."""

from __future__ import annotations

import importlib.util
import json
import os
import re
from typing import Any, Optional, Union

try:
    import httpx
except ModuleNotFoundError as error:
    # Frameworks bring this successor of httpx, which has the same calls.
    if error.name != "httpx" or importlib.util.find_spec("httpx2") is None:
        raise
    import httpx2 as httpx

from .calls import Call, T
from .errors import RippleMemError, UnreachableError, of_problem
from .forms import Json, Piece, answer

#: Environment variable of the token, where none is given.
TOKEN_VARIABLE = "RIPPLEMEM_TOKEN"
#: Times that a request is sent again.
RETRIES = 2
#: Connections in a row that may fail before a subscription is given up.
ATTEMPTS = 8
#: Longest pause that ``Retry-After`` may ask for, in seconds.
LONGEST_PAUSE = 30.0


def address(url: str) -> str:
    """The address of a service; fails where it has no scheme, which only its caller knows."""
    if re.match(r"https?://[^/?#\s]", url, re.IGNORECASE):
        return url
    example = f"http://{url}" if re.match(r"[A-Za-z0-9.\[\]:_-]+(/|$)", url) and "://" not in url else "http://127.0.0.1:8321"
    raise ValueError(f"url: {url!r} does not begin with http:// or https://; write it whole, such as {example}")


def headers(token: Optional[str]) -> dict[str, str]:
    """The headers of every request."""
    token = token or os.environ.get(TOKEN_VARIABLE)
    return {"Authorization": f"Bearer {token}"} if token else {}


def arguments(call: Call[T], holder: Optional[str] = None) -> dict[str, Any]:
    """The arguments of httpx; ``holder`` is the URL of another instance of the service."""
    given: dict[str, Any] = {
        "method": call.method,
        "url": (holder or "") + call.path,
        "params": whole_characters(call.query) or None,
        "headers": {},
        "timeout": call.timeout,
    }
    if call.body is not None:
        # httpx writes JSON in UTF-8, which cannot hold half a character. The service reads its escape.
        given["content"] = json.dumps(call.body).encode()
        given["headers"]["Content-Type"] = "application/json"
    return given


def whole_characters(query: dict[str, str]) -> dict[str, str]:
    """A query without halves of characters, which no URL can hold: each becomes U+FFFD, as the service reads it."""
    return {name: text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for name, text in query.items()}


def holder_of(response: httpx.Response, url: httpx.URL) -> Optional[str]:
    """The URL of the instance that holds the bank, where a response says that another one does.

    Nothing is sent in plain text there that was encrypted here.
    """
    if response.status_code != 421:
        return None
    try:
        holder = str(response.json()["holder"]).rstrip("/")
    except (ValueError, KeyError, TypeError):
        return None
    return holder if url.scheme == "http" or holder.startswith("https://") else None


def pause(
    result: Union[httpx.Response, httpx.TransportError], attempt: int, once: bool = False
) -> Optional[float]:
    """Seconds until a request is sent again; None where it is not.

    One that is to be carried out ``once`` is sent again only where it surely was not carried out.
    """
    if attempt >= RETRIES or isinstance(result, httpx.TimeoutException):
        return None
    if isinstance(result, httpx.TransportError):
        return None if once and not isinstance(result, httpx.ConnectError) else 0.2 * 2.0**attempt
    if result.status_code not in ((429,) if once else (429, 503)):
        return None
    asked = result.headers.get("Retry-After", "")
    return min(float(asked) if asked.isdigit() else 1.0, LONGEST_PAUSE)


def read(call: Call[T], response: httpx.Response) -> T:
    """What a response says."""
    try:
        raw = response.json()
    except ValueError:
        raw = None
    if response.is_success and raw is not None:
        return call.read(raw)
    problem = raw if isinstance(raw, dict) else {}
    raise of_problem(response.status_code, problem, response.text)


def refused(response: httpx.Response, attempts: int) -> None:
    """Why a subscription did not begin; returns where another attempt may succeed."""
    if response.status_code in (429, 500, 503, 504) and attempts < ATTEMPTS:
        return
    try:
        raw = response.json()
    except ValueError:
        raw = {}
    raise of_problem(response.status_code, raw if isinstance(raw, dict) else {}, response.text)


def spoken(event: Optional[tuple[str, Optional[str], Json]]) -> Optional[Piece]:
    """The piece of an answer that an event is; None where it is none."""
    if event is None:
        return None
    name, _, data = event
    if name == "text":
        return Piece(text=data["text"])
    if name == "restart":
        return Piece(restart=True)
    if name == "answer":
        return Piece(answer=answer(data))
    if name == "problem":
        raise of_problem(int(data["status"]), data, "")
    return None


def unreachable(url: str, error: httpx.TransportError) -> RippleMemError:
    """No response came."""
    if isinstance(error, httpx.TimeoutException):
        return RippleMemError(f"{url}: no answer in time; ask again, or allow more time", "deadline")
    return UnreachableError(f"{url}: {error}; is a service running there? (`ripplemem serve`)", "unreachable")
