"""Names of banks out of ids that others give: of a tenant, a user, an agent."""

from __future__ import annotations

import hashlib
import string

#: Most characters of a bank's name.
MOST_CHARACTERS = 128
#: Characters of the first parts that stay readable where a name is shortened: then come ``/``, ``.h`` and 32 digits.
READABLE_CHARACTERS = 93
#: Hexadecimal digits of the hash that ends a shortened name.
HASH_DIGITS = 32

_KEPT = frozenset((string.ascii_letters + string.digits + "_-").encode())


def bank_name(*parts: str) -> str:
    """The name of the bank of one or more ids, such as ``bank_name("acme", "ann@example.com")``.

    Letters and digits of ASCII, ``_`` and ``-`` stay; every other byte of UTF-8 becomes ``.`` and two hexadecimal
    digits; parts are joined by ``/``. Such a name can be read back. What is longer than 128 characters keeps the
    whole parts that fit, and ends with ``.h`` and a hash of all. No two lists of parts share a name, and a token for
    ``acme`` reaches every bank whose first part is ``acme``, as long as that part is kept.

    A part that is no text is a ``TypeError``; no part at all, an empty one and half a character are a ``ValueError``.
    """
    if not parts:
        raise ValueError("bank_name: no parts; name at least one id, such as that of the user")
    name = "/".join(_escaped(part) for part in parts)
    if len(name) <= MOST_CHARACTERS:
        return name
    kept: list[str] = []
    for part in name.split("/"):
        if len("/".join([*kept, part])) > READABLE_CHARACTERS:
            break
        kept.append(part)
    digits = hashlib.sha256(name.encode()).hexdigest()[:HASH_DIGITS]
    return "/".join([*kept, f".h{digits}"])


def _escaped(part: str) -> str:
    if not isinstance(part, str):
        raise TypeError(f"bank_name: {part!r} is no text; write an id as a str")
    if not part:
        raise ValueError("bank_name: a part is empty, as an id is that is missing; leave it out or name it")
    try:
        encoded = part.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"bank_name: {part!r} holds half a character, which is no text") from error
    return "".join(chr(byte) if byte in _KEPT else f".{byte:02x}" for byte in encoded)
