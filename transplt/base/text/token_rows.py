"""The tokens of a file that nobody has read: all of them have one cause."""

from __future__ import annotations

from transplt.base.finding import Cause, Ledger, TokenCount, TokenRow
from transplt.base.text.cuda_words import find_tokens
from transplt.base.text.source import Source


def ledger_of(data: bytes, cause: Cause) -> tuple[Ledger, TokenCount]:
    """The live tokens of a Python file, given as its bytes, and the sums with its comments."""
    source = Source(data)
    tokens = find_tokens(data)
    live = [token for token in tokens if token.where != "comment"]
    ledger = Ledger.of(
        TokenRow(*source.position(token.start), data[token.start : token.end].decode(), cause) for token in live
    )
    return ledger, ledger.total(len(tokens) - len(live))
