"""Client of RippleMem: long-term memory for LLM agents.

>>> from ripplemem import RippleMem, Turn
>>> with RippleMem("http://127.0.0.1:8321", bank="acme/support") as memory:
...     memory.remember(Turn("1", "Ann", "I moved to Lisbon.", "2024-05-06T09:00:00+01:00"))
...     print(memory.ask("Where did Ann move?").context)
"""

from .asynchronous import AsyncRippleMem
from .client import RippleMem
from .context import QuotedTurn, read_context
from .errors import (
    BusyError,
    DeniedError,
    InvalidError,
    RippleMemError,
    UnknownBankError,
    UnreachableError,
)
from .forms import (
    Answer,
    BankCounts,
    Citation,
    CountedBanks,
    Digest,
    Edge,
    Evidence,
    Excerpt,
    Explanation,
    Followed,
    FollowedUnit,
    Forgotten,
    ForgottenTurns,
    HeldTurn,
    HeldTurns,
    History,
    Piece,
    Point,
    Position,
    Receipt,
    Selector,
    Status,
    Step,
    TokenView,
    Turn,
    Unit,
    Units,
    UnitView,
    Written,
)
from .tools import TOOLS, call_tool

__all__ = [
    "TOOLS",
    "Answer",
    "AsyncRippleMem",
    "BankCounts",
    "BusyError",
    "Citation",
    "CountedBanks",
    "DeniedError",
    "Digest",
    "Edge",
    "Evidence",
    "Excerpt",
    "Explanation",
    "Followed",
    "FollowedUnit",
    "Forgotten",
    "ForgottenTurns",
    "HeldTurn",
    "HeldTurns",
    "History",
    "InvalidError",
    "Piece",
    "Point",
    "Receipt",
    "Selector",
    "Position",
    "QuotedTurn",
    "RippleMem",
    "RippleMemError",
    "Status",
    "Step",
    "TokenView",
    "Turn",
    "Unit",
    "UnitView",
    "Units",
    "UnknownBankError",
    "UnreachableError",
    "Written",
    "call_tool",
    "read_context",
]
