"""The client for programs that wait; scripts/python_client makes it of asynchronous.py."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from types import TracebackType
from typing import Optional, Union

from .calls import Call, Calls, Circumstances, T, joined
from .following import SILENCE, Events, Following, Happening, Profiles, S, Stream
from .forms import (
    Answer,
    BankEvent,
    CountedBanks,
    Deletion,
    Diff,
    Digest,
    Evidence,
    Explanation,
    Followed,
    Forgotten,
    ForgottenTurns,
    Graph,
    HeldTurns,
    History,
    Piece,
    Profile,
    Receipt,
    Selector,
    Sessions,
    Status,
    TokenView,
    Turn,
    Units,
    UnitView,
    Written,
)
from .transport import (
    ATTEMPTS,
    address,
    arguments,
    headers,
    holder_of,
    httpx,
    pause,
    read,
    refused,
    spoken,
    unreachable,
    whole_characters,
)


class RippleMem:
    """A memory behind a service.

    ``url`` is where the service listens, such as ``http://127.0.0.1:8321``. ``bank`` is that of calls that
    name none. ``token`` is shown with every request; without it, the environment variable
    ``RIPPLEMEM_TOKEN``. One client may be used from several threads.
    """

    def __init__(self, url: str, *, bank: Optional[str] = None, token: Optional[str] = None) -> None:
        self._calls = Calls(bank)
        self._http = httpx.Client(base_url=address(url), headers=headers(token))

    def remember(
        self,
        *turns: Union[Turn, Deletion],
        together: bool = False,
        wait: float = 0.0,
        bank: Optional[str] = None,
    ) -> Optional[Written]:
        """Writes turns; they are durable on return. None where there was no turn.

        With ``together`` all of them are written at once or none is: at most 1,000, which one request holds. ``wait``
        are seconds until answers and lists reflect them. A call with an ``expected_version`` is not sent again by
        itself when its answer is lost: read the turn then.
        """
        written: Optional[Written] = None
        for call in self._calls.remember(turns, bank, together, wait):
            written = joined(written, self._send(call))
        return written

    def end_session(self, session: str, *, bank: Optional[str] = None) -> Written:
        """A conversation has ended: its last window closes now, not after a pause."""
        return self._send(self._calls.end_session(session, bank))

    def ask(
        self,
        question: str,
        *,
        bank: Optional[str] = None,
        after: Optional[str] = None,
        as_of: Optional[str] = None,
        asked_at: Optional[Union[datetime, str]] = None,
        asker: Optional[str] = None,
        said_before: Sequence[tuple[str, str]] = (),
        most_tokens: Optional[int] = None,
        profile: Optional[str] = None,
        compare: bool = False,
        where: Optional[Selector] = None,
        metadata: bool = False,
        timeout: float = 10.0,
    ) -> Evidence:
        """The evidence for a question.

        The answer reflects what this client wrote before, or the turns that ``after`` names. ``as_of`` asks
        about the past: an offset, or a time in RFC 3339. ``asked_at`` gives "yesterday" a meaning. ``asker`` is
        the speaker who says "I". ``said_before`` are the last turns of the
        running conversation, as pairs of speaker and words. The context has at most ``most_tokens``.
        ``profile`` names the profile whose recall settings apply. With ``compare``, ``flat`` has rankings without
        the graph. ``where``: only these turns are evidence. With ``metadata`` each excerpt has that of its turn.
        """
        circumstances = Circumstances(asked_at, asker, said_before, most_tokens, profile, compare, where, metadata)
        return self._send(self._calls.ask(question, bank, after, as_of, circumstances, timeout))

    def explain(
        self,
        question: str,
        turn: Optional[str] = None,
        *,
        unit: Optional[str] = None,
        part: Optional[int] = None,
        bank: Optional[str] = None,
        as_of: Optional[str] = None,
        asked_at: Optional[Union[datetime, str]] = None,
        asker: Optional[str] = None,
        said_before: Sequence[tuple[str, str]] = (),
        most_tokens: Optional[int] = None,
        where: Optional[Selector] = None,
        timeout: float = 10.0,
    ) -> Explanation:
        """Why the answer to a question quotes a turn, or why not.

        What is asked about is a turn, by its id, or a ``unit``, as evidence names it; with ``part``, only the part
        with that index among the parts of its unit. The rest is as for ``ask``.
        """
        circumstances = Circumstances(asked_at, asker, said_before, most_tokens, where=where)
        call = self._calls.explain(question, turn, unit, part, bank, as_of, circumstances, timeout)
        return self._send(call)

    def answer(
        self,
        question: str,
        *,
        bank: Optional[str] = None,
        asked_at: Optional[Union[datetime, str]] = None,
        timeout: float = 10.0,
    ) -> Answer:
        """An answer in words by the service's language model; ``timeout`` is that of the evidence."""
        return self._send(self._calls.answer(question, bank, Circumstances(asked_at), timeout))

    def answer_pieces(
        self,
        question: str,
        *,
        bank: Optional[str] = None,
        asked_at: Optional[Union[datetime, str]] = None,
        timeout: float = 10.0,
    ) -> Iterator[Piece]:
        """The same, piece by piece while it is generated; the last piece has the whole answer."""
        call, events = self._calls.answer(question, bank, Circumstances(asked_at), timeout), Events()
        given = arguments(call)
        given["headers"]["Accept"] = "text/event-stream"
        with self._http.stream(**given) as response:
            if not response.is_success:
                response.read()
                read(call, response)
            for line in response.iter_lines():
                piece = spoken(events.feed(line))
                if piece is not None:
                    yield piece

    def subscribe(
        self,
        question: str,
        *,
        bank: Optional[str] = None,
        asked_at: Optional[Union[datetime, str]] = None,
        where: Optional[Selector] = None,
        metadata: bool = False,
    ) -> Iterator[Followed]:
        """The evidence now, and again whenever it changes; without end.

        ``where`` and ``metadata`` are as for ``ask``. A connection that breaks off is made again. It ends with an error
        where the token ends, or the bank cannot be asked.
        """
        return self._follow(Following(question, self._calls.bank(bank), asked_at, where, metadata))

    def events(self, bank: Optional[str] = None) -> Iterator[BankEvent]:
        """What happens in a bank from now on, each event once; without end.

        Events come together with the ``progress`` that they lead to, which is the last of them. A connection that
        breaks off is made again. It ends with an error where the token ends, or the bank cannot be followed.
        """
        return self._follow(Happening(self._calls.bank(bank)))

    def unit(self, unit: str, *, bank: Optional[str] = None) -> UnitView:
        """A unit that an answer names, with all of its parts and its neighbours."""
        return self._send(self._calls.unit(unit, bank))

    def units(self, *units: str, bank: Optional[str] = None) -> Units:
        """Many units that answers name, at most 200, as of one moment; without their neighbours."""
        return self._send(self._calls.units(units, bank))

    def graph(
        self, *, around: Optional[str] = None, limit: int = 2_000, bank: Optional[str] = None
    ) -> Graph:
        """Units and the edges between them: those that were said last, or those around one, by distance."""
        return self._send(self._calls.graph(around, limit, bank))

    def history(
        self, *, before: Optional[str] = None, limit: int = 200, bank: Optional[str] = None
    ) -> History:
        """The points of a bank's past that ``ask`` answers for with ``as_of``, the latest before an offset."""
        return self._send(self._calls.history(before, limit, bank))

    def diff(self, start: str, end: Optional[str] = None, *, bank: Optional[str] = None) -> Diff:
        """What came and went in a bank between two points of its past; without ``end``, until now.

        A point is an offset, as ``history`` lists them, or a time of appending in RFC 3339.
        """
        return self._send(self._calls.diff(start, end, bank))

    def profile(
        self,
        person: Optional[str] = None,
        *,
        kinds: Sequence[str] = (),
        past: bool = False,
        begin: bool = False,
        where: Optional[Selector] = None,
        as_of: Optional[str] = None,
        most_tokens: Optional[int] = None,
        bank: Optional[str] = None,
    ) -> Profile:
        """What persons said that lasts: instructions, preferences, facts and plans, each with its turns.

        ``kinds`` are some of ``instruction``, ``preference``, ``fact`` and ``plan``; ``past`` shows superseded lines
        and plans whose time has passed, too. ``begin`` adds open plans and the latest sessions, for an agent that
        begins. ``where`` counts only what those turns say.
        """
        query = self._calls.profile_query(person, kinds, past, begin, where, as_of, most_tokens, bank)
        return self._send(self._calls.profile(query))

    def profiles(
        self,
        person: Optional[str] = None,
        *,
        kinds: Sequence[str] = (),
        past: bool = False,
        begin: bool = False,
        where: Optional[Selector] = None,
        most_tokens: Optional[int] = None,
        bank: Optional[str] = None,
    ) -> Iterator[Profile]:
        """The profile now, and again whenever it changes; without end.

        A connection that breaks off is made again. It ends with an error where the token ends, or the bank cannot be
        followed.
        """
        return self._follow(
            Profiles(self._calls.profile_query(person, kinds, past, begin, where, None, most_tokens, bank))
        )

    def forget(
        self,
        turn: str,
        *,
        expected_version: Optional[int] = None,
        bank: Optional[str] = None,
        wait: float = 10.0,
    ) -> Forgotten:
        """Deletes a turn, and waits until no answer reflects it.

        With ``expected_version`` only where the present version is that one; otherwise it is a ``ConflictError``.
        """
        return self._send(self._calls.forget(turn, bank, expected_version, wait))

    def forget_turns(
        self,
        select: Selector,
        *,
        dry_run: bool = False,
        confirm: Optional[str] = None,
        bank: Optional[str] = None,
        wait: float = 10.0,
    ) -> ForgottenTurns:
        """Deletes the turns that are meant, and waits until no answer reflects them.

        With ``dry_run`` they are counted and nothing is deleted; its ``confirm`` deletes exactly those.
        """
        return self._send(self._calls.forget_turns(select, bank, dry_run, confirm, wait))

    def forgets(self, *, bank: Optional[str] = None) -> list[Receipt]:
        """What became of the operations that forgot turns, the latest first; without a bank, of all of them."""
        return self._send(self._calls.forgets(bank))

    def turns(
        self,
        select: Selector = Selector(),
        *,
        before: Optional[str] = None,
        limit: int = 20,
        order: str = "latest",
        bank: Optional[str] = None,
    ) -> HeldTurns:
        """The turns of a bank, the ``latest`` or the ``oldest`` first; ``before`` is the ``next`` of an earlier list."""
        return self._send(self._calls.turns(select, before, limit, order, bank))

    def sessions(
        self,
        *,
        prefix: Optional[str] = None,
        start: Optional[str] = None,
        limit: int = 100,
        bank: Optional[str] = None,
    ) -> Sessions:
        """The conversations of a bank, by name; ``start`` is the ``next`` of an earlier list."""
        return self._send(self._calls.sessions(prefix, start, limit, bank))

    def name_session(
        self, session: str, title: str, *, bank: Optional[str] = None, wait: float = 10.0
    ) -> None:
        """Gives a conversation a title, and waits until lists have it; an empty one removes it.

        ``forget_turns(Selector(session=…))`` forgets a conversation, and its title with it.
        """
        self._send(self._calls.name_session(session, title, bank, wait))

    def banks(self) -> list[str]:
        """The banks that hold something, as far as the token reaches."""
        return self._send(self._calls.banks())

    def counted_banks(
        self, *, prefix: Optional[str] = None, start: Optional[str] = None, limit: int = 100
    ) -> CountedBanks:
        """The same with what each holds, at most 100; ``start`` is the ``next`` of an earlier list."""
        return self._send(self._calls.counted_banks(prefix, start, limit))

    def token(self) -> TokenView:
        """What the token gives: its name, rights and banks, and when it ends."""
        return self._send(self._calls.token())

    def digest(self, *, bank: Optional[str] = None) -> Digest:
        """Counts of a bank; without one, of all."""
        return self._send(self._calls.digest(bank))

    def status(self) -> Status:
        """How the service is."""
        return self._send(self._calls.status())

    def _follow(self, following: Stream[S]) -> Iterator[S]:
        url, holder = str(self._http.base_url), None
        while True:
            shown = following.headers()
            path = (holder or "") + following.path
            try:
                with self._http.stream(
                    "GET", path, params=whole_characters(following.query), headers=shown, timeout=SILENCE
                ) as response:
                    if not response.is_success:
                        response.read()
                        elsewhere = holder_of(response, self._http.base_url)
                        if elsewhere is None:
                            refused(response, following.attempts)
                        holder = elsewhere
                    else:
                        for line in response.iter_lines():
                            for now in following.feed(line):
                                yield now
            except httpx.TransportError as error:
                if following.attempts >= ATTEMPTS:
                    raise unreachable(url, error) from error
                # It may have ended: the service knows who holds the bank then.
                holder = None
            time.sleep(following.pause())

    def _send(self, call: Call[T]) -> T:
        url, attempt = str(self._http.base_url), 0
        holder: Optional[str] = None
        while True:
            try:
                response = self._http.request(**arguments(call, holder))
            except httpx.TransportError as error:
                seconds = pause(error, attempt, call.once)
                if seconds is None:
                    raise unreachable(holder or url, error) from error
                # It may have ended: the service knows who holds the bank then.
                holder = None
            else:
                elsewhere = holder_of(response, self._http.base_url)
                if elsewhere is not None and holder is None:
                    holder = elsewhere
                    continue
                seconds = pause(response, attempt, call.once)
                if seconds is None:
                    return read(call, response)
            time.sleep(seconds)
            attempt += 1

    def close(self) -> None:
        """Ends its connections."""
        self._http.close()

    def __enter__(self) -> RippleMem:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()
