"""A question, a bank or a profile that is followed: events in; out what is so then, or what happened.

Both clients share it.

Sends nothing, waits for nothing. What came since the last progress is dropped when the connection
breaks off: whoever comes back shows the id of that progress, and gets what changed since.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Generic, Optional, TypeVar, Union

from .errors import BusyError, of_problem
from .forms import BankEvent, Followed, Json, Profile, Selector, followed, profile, time_text

#: What a follower is given.
S = TypeVar("S")

#: Seconds without a byte after which a connection is given up; the service sends one each 15.
SILENCE = 45.0


class Events:
    """Server-sent events, line by line."""

    def __init__(self) -> None:
        self._name, self._data, self._id = "", "", None  # type: str, str, Optional[str]

    def feed(self, line: str) -> Optional[tuple[str, Optional[str], Json]]:
        """Takes a line; gives the event that it ends: name, id, data."""
        if line:
            name, _, value = line.partition(": ")
            if name == "event":
                self._name = value
            elif name == "id":
                self._id = value
            elif name == "data":
                self._data += value
            return None
        if not self._name:
            return None
        event = (self._name, self._id, json.loads(self._data or "{}"))
        self._name, self._data, self._id = "", "", None
        return event


class Stream(Generic[S]):
    """What one follower has received; ``path`` and ``query`` are those of its connections."""

    def __init__(self, path: str, query: dict[str, str]) -> None:
        self.path, self.query = path, query
        self._id: Optional[str] = None
        self._events = Events()
        #: Attempts in a row that brought no event.
        self.attempts = 0

    def headers(self) -> dict[str, str]:
        """The headers of the next connection; forgets what no progress has confirmed."""
        self._events = Events()
        self._forget()
        headers = {"Accept": "text/event-stream"}
        if self._id is not None:
            headers["Last-Event-ID"] = self._id
        return headers

    def pause(self) -> float:
        """Seconds until the next connection."""
        self.attempts += 1
        return float(min(0.2 * 2.0**self.attempts, 10.0))

    def feed(self, line: str) -> Iterator[S]:
        """Takes a line; gives what is complete with it.

        Raises the error of a problem: then the service ends the stream for good.
        """
        event = self._events.feed(line)
        if event is None:
            return
        self.attempts = 0
        name, identity, data = event
        if name == "problem":
            raise of_problem(int(data["status"]), data, "")
        if identity is not None:
            self._id = identity
        yield from self._take(name, data)

    def _forget(self) -> None:
        raise NotImplementedError

    def _take(self, name: str, data: Json) -> Iterator[S]:
        raise NotImplementedError


class Following(Stream[Followed]):
    """What a follower has received of one question."""

    def __init__(
        self,
        question: str,
        bank: str,
        asked_at: Optional[Union[datetime, str]],
        where: Optional[Selector],
        metadata: bool,
    ) -> None:
        query = {"bank": bank, "text": question}
        if asked_at is not None:
            query["asked_at"] = time_text(asked_at)
        if where is not None:
            query["where"] = json.dumps(where.fields())
        if metadata:
            query["metadata"] = "true"
        super().__init__("/v1/subscribe", query)
        self._whole: list[Json] = []
        self._units: list[Json] = []
        # The units that came and those that went with the last delta.
        self._changes: Optional[tuple[list[Json], list[Json]]] = None

    def _forget(self) -> None:
        self._units, self._changes = list(self._whole), None

    def _take(self, name: str, data: Json) -> Iterator[Followed]:
        if name == "snapshot":
            self._units = (self._units if data["from"] else []) + data["units"]
        elif name == "delta":
            self._change(data)
        elif name == "progress":
            self._whole = list(self._units)
            changes, self._changes = self._changes, None
            yield followed(self._units, data, changes)
        elif name == "reset":
            self._units, self._changes = [], None
        elif name == "lagged":
            raise BusyError(data["reason"], "lagged")

    def _change(self, delta: Json) -> None:
        known = {unit["id"]: unit for unit in self._units}
        # The service names what went, without its words.
        went = [known[removed["id"]] for removed in delta["removed"]]
        came = [added["unit"] for added in delta["added"]]
        for unit in [*came, *(updated["unit"] for updated in delta["updated"])]:
            known[unit["id"]] = unit
        self._units = [known[identity] for identity in delta["order"]]
        self._changes = (came, went)


class Happening(Stream[BankEvent]):
    """What a follower has received of one bank."""

    def __init__(self, bank: str) -> None:
        super().__init__("/v1/events", {"bank": bank})
        self._unconfirmed: list[BankEvent] = []

    def _forget(self) -> None:
        self._unconfirmed = []

    def _take(self, name: str, data: Json) -> Iterator[BankEvent]:
        self._unconfirmed.append(BankEvent(name, data))
        if name == "progress":
            happened, self._unconfirmed = self._unconfirmed, []
            yield from happened


class Profiles(Stream[Profile]):
    """A profile that is followed: each event has the whole of it."""

    def __init__(self, query: dict[str, str]) -> None:
        super().__init__("/v1/profile", query)

    def _forget(self) -> None:
        pass

    def _take(self, name: str, data: Json) -> Iterator[Profile]:
        if name == "profile":
            yield profile(data)
