"""From the JSON of a check to work orders: what is to do, where, what is known, and what shows that it is done."""

from __future__ import annotations

import shlex
from hashlib import blake2b
from typing import Any

from transplt.base.efforts import EFFORT_TEXT
from transplt.base.finding import Effort
from transplt.base.grouped import grouped
from transplt.engine.actions.action import BLOCKING, BLOCKS_TEXT
from transplt.faces.mcp.answers import cut

_MOST_PLACES = 6
_MOST_CODES = 6
_PROVES = "transplt prove ORIGINAL MIGRATED"


def work_orders(checked: dict[str, Any], folder: str, original: str = "") -> list[dict[str, Any]]:
    """One for each thing to do of the check of `folder`, what blocks first at the front.

    `original` is what the folder came from.
    """
    found = (each for each in checked["findings"] if each["level"] != "info")
    by_line = grouped(((each["path"], each["line"]), each) for each in found)
    proves = f"transplt prove {shlex.quote(original)} {shlex.quote(folder)}" if original else _PROVES
    each = (part for action in checked["actions"] for part in action["parts"] or [action])
    return [_order(action, by_line, folder, proves) for action in each]


def _order(
    action: dict[str, Any], by_line: dict[tuple[str, int], list[dict[str, Any]]], folder: str, proves: str
) -> dict[str, Any]:
    codes = action["codes"]
    check = " ".join((f"transplt check {shlex.quote(folder)}", *(f"--select {code}" for code in codes[:_MOST_CODES])))
    lines = [(place["path"], line) for place in action["places"] for line in place["lines"]]
    there = {key: [each for each in by_line.get(key, ()) if each["code"] in codes] for key in lines}
    fixes = {each["fix"] for same in there.values() for each in same}
    beside = "beside" if action["beside"] and action["blocks"] in BLOCKING else action["blocks"]
    stands = "contained" if action["contained"] else "aside" if action["aside"] else beside
    # The name stays while the action is the same thing to do in the same files, whatever lines move.
    named = "\0".join([action["title"], *sorted(place["path"] for place in action["places"])])
    return {
        "id": blake2b(named.encode("utf-8", "surrogatepass"), digest_size=5).hexdigest(),
        "do": cut(action["title"]),
        "how": "call migrate: transplt makes these edits" if fixes == {"safe"} else cut(action["how"]),
        "blocks": BLOCKS_TEXT[stands],
        "blocking": stands in BLOCKING,
        "effort": EFFORT_TEXT[Effort(action["effort"])],
        "codes": codes[:_MOST_CODES],
        "places": [
            {"file": path, "line": line, "known": [f"{each['code']}: {cut(each['message'])}" for each in same]}
            for (path, line), same in list(there.items())[:_MOST_PLACES]
        ],
        "places_in_all": len(there),
        "done_when": [f"`{check}` names none of these places", f"`{proves}` says equal"],  # each is a tool, too
    }


def found(finding: dict[str, Any]) -> dict[str, Any]:
    """One finding as it stands in an answer."""
    entry = {"file": finding["path"], "line": finding["line"], "column": finding["column"], "code": finding["code"],
            "level": finding["level"], "known": cut(finding["message"])}  # fmt: skip
    if finding["help"]:
        entry["how"] = cut(finding["help"])
    if finding["fix"]:
        entry["fix"] = finding["fix"]
    return entry
