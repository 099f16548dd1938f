"""Checks of the Python client against a running service.

    client_check.py URL CHECK [TOKEN]

Exits with 1 and a trace when something is not as it should be.
"""

import asyncio
import json
import sys
import threading
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "clients" / "python" / "src"))

from ripplemem import (  # noqa: E402
    AsyncRippleMem,
    BusyError,
    ConflictError,
    Deletion,
    DeniedError,
    InvalidError,
    RippleMem,
    Selector,
    RippleMemError,
    Turn,
    UnknownBankError,
    UnreachableError,
    bank_name,
    call_tool,
    read_context,
)
from ripplemem.adapters import Access, History  # noqa: E402
from ripplemem.forms import HeldTurns  # noqa: E402

ZONE = timezone(timedelta(hours=1))
TURNS = [
    Turn("1", "Ann", "I moved to Lisbon last week, into a flat above a bakery.", datetime(2024, 5, 6, 9, tzinfo=ZONE)),
    Turn("2", "Bob", "My sister Clara keeps bees in Porto.", "2024-05-06T09:01:00+01:00", session="monday"),
]


def refused(kind, call, text=""):
    try:
        call()
    except kind as error:
        assert text in str(error), error
        return error
    raise AssertionError(f"no {kind.__name__}")


def each_call(url, token):
    with RippleMem(url, bank="acme/support", token=token) as memory:
        written = memory.remember(*TURNS)
        assert written.turns == 2 and written.after, written
        assert memory.remember() is None
        evidence = memory.ask("Where does Ann live?", asked_at=datetime(2024, 5, 7, tzinfo=ZONE))
        assert "Lisbon" in evidence.context, evidence.context
        said = [excerpt for unit in evidence.units for excerpt in unit.excerpts]
        assert {"1"} <= {excerpt.turn for excerpt in said} and said[0].speaker in ("Ann", "Bob"), said
        assert evidence.units[0].provenance and evidence.reflects and evidence.raw["trace"]
        assert memory.ask("Where does Ann live?", after=written.after).units
        why = memory.explain("Where does Ann live?", "1", asked_at=datetime(2024, 5, 7, tzinfo=ZONE))
        assert why.quoted and why.failed is None and len(why.steps) == 12, why
        assert why.steps[-1].numbers["text"] in evidence.context, why.steps[-1]
        lost = memory.explain("Where does Ann live?", "none")
        assert not lost.quoted and lost.failed == "stored" and lost.change and "none" in lost.sentence, lost
        refused(InvalidError, lambda: memory.explain("Where does Ann live?"), "either a turn or a unit")
        assert memory.banks() == ["acme/support"]
        before = memory.digest(bank="acme/support")
        assert before.units > 0 and len(before.hash) == 32, before
        counted = memory.counted_banks(prefix="acme")
        assert [(one.bank, one.state) for one in counted.banks] == [("acme/support", "here")], counted
        assert counted.banks[0].units == before.units and counted.banks[0].last_append_ms and counted.next is None
        assert memory.counted_banks(start="b").banks == ()
        shown = memory.units(evidence.units[0].id, "0" * 16)
        assert [unit.restatement for unit in shown.units] == [evidence.units[0].restatement], shown
        assert shown.missing == ("0" * 16,) and shown.reflects, shown
        graph = memory.graph()
        assert (graph.total_units, graph.truncated) == (before.units, False), graph
        assert graph.total_edges == len(graph.edges) == before.semantic_edges + before.structural_edges, graph
        first = memory.graph(around=graph.units[-1].id, limit=1).units
        assert first == graph.units[-1:] and first[0].label and first[0].session, first
        history = memory.history(limit=5)
        assert (history.points, history.oldest, history.more) == ((), None, 0), "no snapshots are kept"
        refused(InvalidError, lambda: memory.diff("0"), "snapshot")
        followed = memory.profiles("Ann", bank="known")
        assert next(followed).lines == ()
        memory.remember(Turn("k", "Ann", "I live in Oslo.", TURNS[0].time, session="s"), bank="known")
        now = next(followed)
        assert [line.text for line in now.lines] == ["I live in Oslo."], now
        begun = memory.profile(begin=True, where=Selector(session="s"), bank="known")
        assert (begun.lines, begun.sessions[0].session, begun.sessions[0].turns) == (now.lines, "s", 1), begun
        assert begun.sessions[0].begins["text"] == "I live in Oslo." and begun.version != now.version, begun
        assert memory.profile(where=Selector(session="t"), bank="known").lines == ()
        known = memory.profile()
        assert (known.lines, known.text, known.left_out) == ((), "", 0) or known.lines[0].turns, known
        held = memory.token()
        assert held.name is None and "read" in held.rights and held.banks == ("*",), held
        # The same turns again are the same turns.
        memory.remember(*TURNS)
        memory.ask("Where does Ann live?")
        assert memory.digest(bank="acme/support").hash == before.hash
        memory.remember(Turn("1", "Ann", "I moved to Madrid.", TURNS[0].time, version=1))
        assert "Lisbon" not in memory.ask("Where does Ann live?").context
        gone = memory.forget("1")
        assert gone.gone and gone.turn == "1", gone
        assert "Madrid" not in memory.ask("Where does Ann live?").context
        memory.remember(*[Turn(f"d{n}", "Dora Lee", f"Plan {n} of the garden.", TURNS[0].time) for n in range(5)])
        whole = memory.forget_turns(Selector(speakers=["dora lee"]), dry_run=True)
        assert whole.turns == 5 and len(whole.shown) == 5 and whole.confirm and not whole.gone, whole
        first = memory.turns(Selector(speakers=["Dora Lee"]), limit=3)
        rest = memory.turns(Selector(speakers=["Dora Lee"]), before=first.next, limit=3)
        assert first.more == 2 and rest.next is None and len({t.turn for t in first.turns + rest.turns}) == 5, rest
        memory.forget("d4")
        refused(
            InvalidError, lambda: memory.forget_turns(Selector(speakers=["Dora Lee"]), confirm=whole.confirm), "repeat"
        )
        deleted = memory.forget_turns(Selector(speakers=["Dora Lee"]))
        assert deleted.turns == 4 and deleted.gone and not deleted.shown, deleted
        receipts = memory.forgets(bank="acme/support")
        assert [one.turns for one in receipts] == [4, 1, 1] and receipts[0] == deleted.receipt, receipts
        assert receipts[0].stage == "rebuilt" and receipts[0].due and not receipts[0].erased, receipts
        assert memory.forgets(bank="acme/other") == [] and len(memory.forgets()) == 3
        assert "of the garden." not in memory.ask("What are the plans of the garden?").context
        assert not memory.turns(Selector(speakers=["Dora Lee"])).turns
        refused(InvalidError, lambda: memory.forget_turns(Selector()), "select")
        memory.end_session("monday")
        status = memory.status()
        assert status.version and status.problem is None and status.behind >= 0, status


def circumstances(url, token):
    """Who asks and what was said before change the answer, of both clients."""
    said = [
        "I keep my kayak in the old boathouse.",
        "I keep my kayak in the cellar at home.",
        "The violin is at the luthier until Friday.",
        "The accordion has a torn bellows since the summer.",
    ]
    turns = [Turn(str(n), ("Ann", "Bo")[n % 2], text, TURNS[0].time) for n, text in enumerate(said)]
    asked = [
        ({"question": "Where do I keep my kayak?", "asker": "Ann"}, "0"),
        ({"question": "Where do I keep my kayak?", "asker": "Bo"}, "1"),
        ({"question": "Any news?", "said_before": [("Bo", "the violin is at the luthier")]}, "2"),
        ({"question": "Any news?", "said_before": [("Bo", "the accordion has a torn bellows")]}, "3"),
    ]

    async def asynchronously(fields):
        async with AsyncRippleMem(url, bank="boats", token=token) as memory:
            return await memory.ask(**fields)

    with RippleMem(url, bank="boats", token=token) as memory:
        memory.remember(*turns)
        for fields, turn in asked:
            for evidence in (memory.ask(**fields), asyncio.run(asynchronously(fields))):
                assert list(evidence.units[0].sources) == [turn], (fields, evidence.raw)
        spent = memory.ask("Where is the kayak?", most_tokens=40).raw["tokens"]
        assert spent["spent"] <= spent["most"] == 40, spent
        for stranger in (memory.ask("Where do I live?", asker="Cy"), asyncio.run(asynchronously({"question": "Where do I live?", "asker": "Cy"}))):
            assert (stranger.notice.code, stranger.units, stranger.supported) == ("unknown_asker", (), False), stranger.raw
            assert '"Cy" does not speak' in stranger.notice.message, stranger.notice
        assert memory.ask("Where is the kayak?").notice is None
        question = "Where is the violin?"
        beside = {"question": question, "compare": True, "profile": "paper"}
        for evidence in (memory.ask(**beside), asyncio.run(asynchronously(beside))):
            assert evidence.flat.meaning.units[0].turns and evidence.flat.words.units[0].score > 0, evidence.raw
            assert evidence.flat.same_score.tokens <= evidence.raw["tokens"]["spent"], evidence.raw
        assert memory.ask(question).flat is None
        refused(InvalidError, lambda: memory.ask(question, profile="papers"), "paper-longmemeval")


def half_characters(url, token):
    """Texts that were cut in UTF-16 are stored, asked for and followed, by both clients."""
    half = "The kayak \ud83d is red"

    async def asynchronously():
        async with AsyncRippleMem(url, bank="halves", token=token) as memory:
            written = await memory.remember(*[Turn(str(n), "Bo", f"{half} {n}", TURNS[0].time) for n in range(1_001)])
            assert written.turns == 1_001, written
            async for now in memory.subscribe(half):
                return now.units, await memory.ask(half)

    with RippleMem(url, bank="halves", token=token) as memory:
        memory.remember(Turn("a", "Ann", half, TURNS[0].time))
        assert "kayak" in memory.ask(half, said_before=[("Bo", half)]).context
        assert memory.turns().turns[0].text == "The kayak \ufffd is red"
        assert "kayak" in next(memory.subscribe(half)).units[0].excerpts[0].text
        assert memory.turns(Selector(mentions=[half])).turns
    followed, asked = asyncio.run(asynchronously())
    assert followed and asked.units, asked


def line_breaks(url, token):
    """What was said on several lines is quoted on several lines, and read back."""
    code = "Try this:\n\n```python\nfor line in lines:\n    print(line)\n```\n- one\r\n- two\u2028- three"
    with RippleMem(url, bank="lines", token=token) as memory:
        memory.remember(Turn("1", "Assistant", code, TURNS[0].time))
        evidence = memory.ask("How do I print the lines?")
        (quoted,) = read_context(evidence.context)
        plain = code.replace("\r\n", "\n").replace("\u2028", "\n")
        assert (quoted.speaker, quoted.passages) == ("Assistant", [plain]), evidence.context
        assert "\n        print(line)\n" in evidence.context, evidence.context
        assert memory.turns().turns[0].text == code


def many_turns(url, token):
    with RippleMem(url, bank="many", token=token) as memory:
        turns = [Turn(str(n), "Ann", f"Number {n} is on the list.", TURNS[0].time) for n in range(2_500)]
        written = memory.remember(*turns)
        assert written.turns == 2_500, written
        assert "2499" in memory.ask("Is number 2499 on the list?", timeout=120).context
        # Long ones are divided by their bytes, so that no request is larger than the service takes.
        long = [Turn(f"long-{n}", "Ann", f"Wort{n} \u00fc " * 5_000, TURNS[0].time) for n in range(200)]
        assert memory.remember(*long).turns == 200


def asynchronous(url, token):
    async def go():
        async with AsyncRippleMem(url, bank="async", token=token) as memory:
            await memory.remember(*TURNS)
            asked = [memory.ask("Who keeps bees in Porto?") for _ in range(20)]
            for evidence in await asyncio.gather(*asked):
                assert "Clara" in evidence.context
            assert "async" in await memory.banks()
            assert (await memory.forget("2")).gone
            assert (await memory.digest(bank="async")).units > 0
            assert (await memory.counted_banks()).banks[0].bank == "async"
            assert not (await memory.history()).points and "read" in (await memory.token()).rights
            assert not (await memory.units("0" * 16)).units
            assert len((await memory.graph(limit=1)).units) == 1
            assert (await memory.status()).version
            await memory.end_session("monday")

    asyncio.run(go())


def following(url, token):
    with RippleMem(url, bank="followed", token=token) as memory, RippleMem(url, bank="followed", token=token) as other:
        following = memory.subscribe("Where does Ann live?")
        first = next(following)
        assert first.units == () and not first.supported and first.added is None, first
        written = other.remember(*TURNS)
        now = next(following)
        while not any("Lisbon" in e.text for unit in now.units for e in unit.excerpts):
            now = next(following)
        place = int(written.after.split(":")[1])
        while now.reflects[-1].next_offset <= place:
            now = next(following)
        asked = other.ask("Where does Ann live?")
        assert [unit.id for unit in now.units] == [unit.id for unit in asked.units]
        assert [unit.excerpts for unit in now.units] == [unit.excerpts for unit in asked.units]
        # A unit of the evidence, by its id.
        view = other.unit(asked.units[0].id)
        assert view.unit.restatement == asked.units[0].restatement and view.bank == "followed", view
        refused(InvalidError, lambda: other.unit("0" * 16), "no unit")
        other.forget("1")
        while any("Lisbon" in e.text for unit in now.units for e in unit.excerpts):
            now = next(following)
        # What went is what this follower held: the service names it without its words.
        assert any("Lisbon" in e.text for unit in now.removed for e in unit.excerpts), now
        refused(InvalidError, lambda: next(other.subscribe("")), "question")
        refused(InvalidError, lambda: other.answer("Where does Ann live?"), "llm.endpoint")
        refused(InvalidError, lambda: next(other.answer_pieces("Where does Ann live?")), "llm.endpoint")

    async def go():
        async with AsyncRippleMem(url, bank="followed", token=token) as memory:
            async for now in memory.subscribe("Who keeps bees in Porto?"):
                if any("Clara" in e.text for unit in now.units for e in unit.excerpts):
                    break
            assert (await memory.unit(now.units[0].id)).unit.id == now.units[0].id
            assert (await memory.explain("Who keeps bees in Porto?", unit=now.units[0].id)).quoted

    asyncio.run(go())


def records(url, token):
    """Metadata, selectors, conditions, sessions and lists, of both clients."""
    said = [
        Turn("k", "Ann", "I keep my kayak in the boathouse.", TURNS[0].time, "a.1", metadata={"n": 1, "deep": {"x": [1.5]}}),
        Turn("v", "Bo", "The violin is at the luthier.", TURNS[1].time, "a.2", kind="assistant", metadata={"n": 2}),
        Turn("t", "tool", "The kayak costs 900 kumquats.", "2024-05-06T09:02:00+01:00", "b", kind="tool", recall=False),
    ]
    first, second = (Selector(metadata={"path": ["n"], "eq": n}) for n in (1, 2))

    async def asynchronously():
        async with AsyncRippleMem(url, bank="records", token=token) as memory:
            with_where = await memory.ask("Where is it?", where=second, metadata=True)
            held = await memory.turns(Selector(session_prefix="a."), order="oldest")
            listed = await memory.sessions(prefix="a.")
            try:
                await memory.forget("k", expected_version=7)
            except ConflictError as error:
                return with_where, held, listed, error
        raise AssertionError("no ConflictError")

    with RippleMem(url, bank="records", token=token) as memory:
        written = memory.remember(*said, wait=10.0)
        assert (written.turns, written.stale, written.reflected) == (3, (), True), written
        evidence = memory.ask("Where is the kayak?", where=first, metadata=True)
        (excerpt,) = [excerpt for unit in evidence.units for excerpt in unit.excerpts]
        assert excerpt.turn == "k" and excerpt.metadata == said[0].metadata, evidence.raw
        assert "kumquats" not in memory.ask("What does the kayak cost?").context
        assert "violin" not in next(memory.subscribe("Where is it?", where=first)).units[0].restatement
        assert memory.explain("Where is the kayak?", "v", where=first).failed, "another turn than those"
        held = memory.turns(Selector(kinds=["tool"])).turns
        assert [(one.turn, one.recall, one.kind, one.session) for one in held] == [("t", False, "tool", "b")], held
        whole = memory.turns(Selector(turns=["k"])).turns[0]
        assert whole.metadata == said[0].metadata and whole.version == 0 and whole.first_stored_ms <= whole.stored_ms
        page = memory.turns(order="oldest", limit=2)
        assert [one.turn for one in page.turns] == ["k", "v"] and page.more == 1
        assert [one.turn for one in memory.turns(order="oldest", before=page.next).turns] == ["t"]
        condition = {"all": [{"not": {"path": ["n"], "gt": 1}}, {"path": ["n"], "exists": True}]}
        assert [one.turn for one in memory.turns(Selector(metadata=condition)).turns] == ["k"]
        refused(InvalidError, lambda: memory.turns(Selector(metadata={"path": ["n"], "like": 1})), "like")
        # The service chooses versions, and the same again changes nothing.
        edit = Turn("k", "Ann", "I keep my kayak in the cellar.", TURNS[0].time, "a.1", version="next")
        assert memory.remember(edit).versions == memory.remember(edit).versions == {"k": 1}
        again = Turn("k", "Ann", "I keep it at home.", TURNS[0].time, "a.1", version="next", expected_version=0)
        error = refused(ConflictError, lambda: memory.remember(again))
        assert (error.turn, error.version, error.code, error.status) == ("k", 1, "conflict", 409), error
        new = Turn("n", "Ann", "Something new.", TURNS[0].time, expected_version=0)
        refused(ConflictError, lambda: memory.remember(new, Deletion("k", expected_version=3), together=True))
        assert not memory.turns(Selector(turns=["n"])).turns, "all or nothing"
        memory.remember(new, Deletion("k", version="next", expected_version=1), together=True, wait=10.0)
        assert [one.turn for one in memory.turns(Selector(turns=["k", "n"])).turns] == ["n"]
        assert memory.remember(Turn("k", "Ann", "Old words.", TURNS[0].time, version=1), wait=10.0).stale == ("k",)
        memory.remember(edit, wait=10.0)
        many = [Turn(str(n), "Ann", "x", TURNS[0].time) for n in range(1_001)]
        refused(InvalidError, lambda: memory.remember(*many, together=True), "together")
        listed = memory.sessions(limit=1)
        assert (listed.sessions[0].session, listed.sessions[0].turns, listed.next) == ("a.1", 1, "a.2"), listed
        memory.name_session("a.1", "Boats")
        titles = {one.session: one.title for one in memory.sessions(start="a.1").sessions}
        assert titles["a.1"] == "Boats" and titles["b"] is None, titles
        evidence, held, listed, error = asyncio.run(asynchronously())
        assert evidence.units[0].excerpts[0].metadata == {"n": 2} and [one.turn for one in held.turns] == ["k", "v"]
        assert [one.title for one in listed.sessions] == ["Boats", None] and error.version == 3, (listed, error)
        memory.forget("k", expected_version=3)
        memory.forget_turns(Selector(session_prefix="a."))
        assert [one.session for one in memory.sessions().sessions] != [], "turns without a session lie in one of their day"


def names(_url, _token):
    """Names of banks out of ids: the TypeScript client has the same."""
    vectors = json.loads((ROOT / "tests" / "data" / "bank_names.json").read_text(encoding="utf-8"))
    assert len(vectors) > 10
    for vector in vectors:
        assert bank_name(*vector["parts"]) == vector["name"] and len(vector["name"]) <= 128, vector
    for parts in ((), ("",), ("a", ""), ("\ud83d",)):
        refused(ValueError, lambda parts=parts: bank_name(*parts))
    refused(TypeError, lambda: bank_name(1))


def past(url, token):
    """What came and went between two points, of both clients."""

    async def asynchronously(start):
        async with AsyncRippleMem(url, bank="past", token=token) as memory:
            return await memory.diff(start)

    with RippleMem(url, bank="past", token=token) as memory:
        for turn in (*TURNS, Turn("2", "Bob", "My sister Clara keeps goats in Porto.", TURNS[1].time, version=1)):
            memory.ask("Who keeps bees?", after=memory.remember(turn).after)
        points = memory.history().points
        diff = memory.diff(points[1].offset, points[-1].offset)
        assert (diff.start, diff.end) == (points[1].offset, points[-1].offset), diff
        came, went = ([unit.label for unit in units] for units in (diff.units_added, diff.units_removed))
        assert any("goats" in label for label in came) and any("bees" in label for label in went), diff
        assert set(diff.skipped.values()) == {0}, diff
        assert asyncio.run(asynchronously(points[1].offset)).units_added == diff.units_added
        refused(InvalidError, lambda: memory.diff(points[-1].offset, points[0].offset), "name the earlier first")


def events(url, token):
    """What happens in a bank comes once, also where the connection breaks off in between."""
    with RippleMem(url, bank="watched", token=token) as memory, RippleMem(url, bank="watched", token=token) as other:
        happening = memory.events()
        begin = next(happening)
        assert (begin.name, begin.data["units"]) == ("progress", 0), begin
        other.remember(TURNS[0])
        told = [next(happening)]
        while not (told[-1].name == "progress" and told[-1].data["units"]):
            told.append(next(happening))
        assert [event.name for event in told[:2]] == ["turn", "unit_added"], told
        assert told[0].data["turn"] == told[1].data["turns"][0] == "1", told

    async def go():
        async with AsyncRippleMem(url, token=token) as memory:
            async for event in memory.events("watched"):
                assert event.data["units"] == 1, event
                break

    asyncio.run(go())
    progress = "event: progress\nid: 0:{0}:0\ndata: {{\"units\": {0}}}\n\n"
    turn = 'event: turn\ndata: {"turn": "1"}\n\n'
    # The first connection ends before the progress that the turn leads to.
    answers = [progress.format(1) + turn, turn + progress.format(2)]
    shown = []

    class Breaking(BaseHTTPRequestHandler):
        def do_GET(self):
            shown.append(self.headers["Last-Event-ID"])
            self.send_response(200)
            self.end_headers()
            self.wfile.write(answers[len(shown) - 1].encode())

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Breaking)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with RippleMem(f"http://127.0.0.1:{server.server_port}", bank="b") as memory:
        happening = memory.events()
        told = [next(happening) for _ in range(3)]
        assert [event.name for event in told] == ["progress", "turn", "progress"], told
        assert (told[2].data["units"], shown) == (2, [None, "0:1:0"]), (told, shown)
    server.shutdown()


def in_words(url, token):
    with RippleMem(url, bank="sample/harbour", token=token) as memory:
        question = "Which books has Marta recommended to Elias?"
        answer = memory.answer(question)
        assert answer.text and answer.raw["took"], answer
        pieces = list(memory.answer_pieces(question))
        assert pieces[-1].answer is not None and pieces[-1].answer.text == answer.text, pieces
        words = ""
        for piece in pieces:
            words = "" if piece.restart else words + piece.text
        assert words.strip() == answer.text, words


def problems(url, token):
    with RippleMem(url, token=token) as memory:
        refused(ValueError, lambda: memory.ask("Who?"), "no bank")
        refused(ValueError, lambda: Turn("1", "Ann", "Hi", datetime(2024, 5, 6)).to_json("b"), "zone")
        nothing = memory.ask("Who?", bank="nobody")
        assert (nothing.notice.code, nothing.units, nothing.supported) == ("empty_bank", (), False), nothing.raw
        assert "nobody" in nothing.notice.message and "nobody" in nothing.context, nothing.raw
        with RippleMem(url, bank="nobody", token=token) as empty:
            assert "holds nothing" in call_tool(empty, "recall", {"question": "Who?"})
        error = refused(UnknownBankError, lambda: memory.digest(bank="nobody"))
        assert (error.code, error.status, error.temporary) == ("unknown_bank", 404, False)
        for wrong in ["127.0.0.1:8321", "localhost:8321", "example.org", "//127.0.0.1:8321", "ftp://127.0.0.1", "http:/a", "", "[::1]:8321"]:
            for client in (RippleMem, AsyncRippleMem):
                refused(ValueError, lambda: client(wrong), "http://")
        assert "http://127.0.0.1:8321" in str(refused(ValueError, lambda: RippleMem("127.0.0.1:8321")))
        RippleMem("HTTP://127.0.0.1:8321").close()
        refused(InvalidError, lambda: memory.ask("Who?", bank="../etc"), "bank")
        refused(InvalidError, lambda: memory.remember(Turn("1", "", "Hi", "2024-05-06T09:00:00Z"), bank="b"), "speaker")
        refused(InvalidError, lambda: memory.remember(Turn("1", "Ann", "Hi", "noon"), bank="b"), "time")
        assert "missing" in call_tool(memory, "remember", {})
        assert "no such tool" in call_tool(memory, "shout", {})
    with RippleMem("http://127.0.0.1:9", bank="b") as memory:
        assert refused(UnreachableError, lambda: memory.ask("Who?"), "ripplemem serve").temporary


def retries(_url, _token):
    """A service that is busy twice is asked a third time; one that stays busy is told as such."""
    seen = []

    class Busy(BaseHTTPRequestHandler):
        def do_GET(self):
            seen.append(self.headers["Authorization"])
            busy = len(seen) != 3
            body = {"detail": "wait", "code": "busy"} if busy else {"banks": ["b"]}
            self.send_response(429 if busy else 200)
            self.send_header("Retry-After", "0")
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Busy)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with RippleMem(f"http://127.0.0.1:{server.server_port}", token="secret") as memory:
        assert memory.banks() == ["b"] and seen == ["Bearer secret"] * 3, seen
        refused(BusyError, memory.banks, "wait")
        assert len(seen) == 6, seen
    server.shutdown()


def histories(_url, _token):
    """A history whose head another writer has begun, and no list has yet, goes on under that head."""
    empty = HeldTurns((), False, None)
    for version, next_head in ((1, 0), (0, 1)):
        history = History(Access(bank="b"), "s")
        heads = history._head_ids
        steps = history.add(lambda name, time, _: Turn(name, "Ann", "x", time), 1)
        assert next(steps).path == "/v1/turns/list"
        assert steps.send(empty).body["turns"][-1]["turn"] == heads[0]
        assert steps.throw(ConflictError("another version stands", heads[0], version)).path == "/v1/turns/list"
        # Version 0: the head was forgotten for good.
        assert steps.send(empty).body["turns"][-1]["turn"] == heads[next_head]


def follows(url, token):
    """A service that names the holder of a bank is left for it, once a call."""
    seen = []

    class Elsewhere(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            seen.append(self.headers["Authorization"])
            body = {"detail": "ask there", "code": "misdirected", "holder": self.server.holder}
            self.send_response(421)
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Elsewhere)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    here = f"http://127.0.0.1:{server.server_port}"
    server.holder = url
    with RippleMem(here, bank="b", token="secret") as memory:
        memory.remember(TURNS[0])
        assert "Lisbon" in memory.ask("Where does Ann live?").context and seen == ["Bearer secret"] * 2, seen

    async def asked():
        async with AsyncRippleMem(here, bank="b") as memory:
            return await memory.ask("Where does Ann live?")

    assert "Lisbon" in asyncio.run(asked()).context and len(seen) == 3, seen
    # Instances that name each other are not followed for ever.
    server.holder = here
    with RippleMem(here, bank="b") as memory:
        error = refused(RippleMemError, lambda: memory.ask("Who?"), "ask there")
        assert (error.code, error.status, len(seen)) == ("misdirected", 421, 5), (error, seen)
    # A holder that has ended: the service is asked again, who has the bank now.
    server.holder = "http://127.0.0.1:9"
    with RippleMem(here, bank="b") as memory:
        refused(UnreachableError, lambda: memory.ask("Who?"), "127.0.0.1:9")
        assert len(seen) == 8, seen
    server.shutdown()


def denied(url, token):
    with RippleMem(url, bank="acme/support", token="wrong") as memory:
        refused(DeniedError, lambda: memory.ask("Who?"), "not known")
    with RippleMem(url, bank="acme/support", token=token) as memory:
        memory.remember(*TURNS)
        refused(DeniedError, lambda: memory.remember(TURNS[0], bank="other"), "other")
        held = memory.token()
        assert (held.name, held.rights, held.banks) == ("agent", ("read", "write", "forget"), ("acme",)), held
        refused(DeniedError, lambda: memory.history(bank="other"), "other")
        refused(DeniedError, lambda: memory.diff("0", bank="other"), "other")
        refused(DeniedError, lambda: next(memory.events("other")), "other")
        refused(DeniedError, lambda: memory.units("0" * 16, bank="other"), "other")


def matches_the_document(_url, _token):
    """Every path, method and field that the client sends or reads stands in the document."""
    document = json.loads((ROOT / "schemas" / "openapi.v1.json").read_text(encoding="utf-8"))
    from ripplemem.calls import Calls, Circumstances

    calls = Calls("b")
    every = Circumstances(TURNS[0].time, "Ann", [("Bo", "Yes.")], 900, "paper", True, Selector(session="s"), True, 3)
    made = [
        *calls.remember([*TURNS, Deletion("1")], None, True, 1.0),
        calls.end_session("s", None),
        calls.ask("Who?", None, "0:1", "7", every, 1.0),
        calls.forget("1", None, 3, 1.0),
        calls.forget_turns(Selector(speakers=["Ann"], since=TURNS[0].time), None, True, "c", 1.0),
        calls.forgets("b"),
        calls.turns(Selector(speakers=["Ann"], until=TURNS[0].time, session="s", thread="t"), "0:1", 3, "oldest", None),
        calls.sessions("a", "b", 3, None),
        calls.name_session("a", "b", None, 1.0),
        calls.banks(),
        calls.digest("b"),
        calls.status(),
        calls.answer("Who?", None, Circumstances(TURNS[0].time), 1.0),
        calls.unit("0" * 16, None),
        calls.units(["0" * 16], None),
        calls.graph("0" * 16, 3, None),
        calls.history("7", 3, None),
        calls.diff("7", "9", None),
        calls.profile(calls.profile_query("Ann", ["fact"], True, True, Selector(session="s"), "7", 900, None)),
        calls.counted_banks("a", "b", 3),
        calls.token(),
    ]
    for call in made:
        operation = document["paths"][call.path][call.method.lower()]
        parameters = {p["name"] for p in operation.get("parameters", [])}
        assert set(call.query) <= parameters, (call.path, call.query, parameters)
        if call.body is not None:
            schema = operation["requestBody"]["content"]["application/json"]["schema"]
            name = schema["$ref"].rsplit("/", 1)[1]
            fields = document["components"]["schemas"][name]["properties"]
            assert set(call.body) <= set(fields), (call.path, set(call.body) - set(fields))


def main():
    url, check, *token = sys.argv[1:]
    checks = [each_call, many_turns, asynchronous, following, in_words, problems, retries, histories, follows, denied]
    checks += [records, names, past, events, circumstances, line_breaks, half_characters, matches_the_document]
    by_name = {one.__name__: one for one in checks}
    by_name[check](url, token[0] if token else None)


if __name__ == "__main__":
    main()
