"""The list of what npu_port.py and the portable style's module may have, from what it says of itself, in their page.

    python scripts/helper_page.py          exit 1 when the list is stale
    python scripts/helper_page.py --write  write it into docs/reference/npu_port.md
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from transplt.edits.helper_source import first_sentence, owners, public_names

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "npu_port.md"
_LIST = re.compile(r"(?:^- `(?:npu_port|device)\.[^\n]*\n)+", re.M)


def listed(text: str) -> str:
    """A page with the list as it should be."""
    every = [("device" if owners()[name] == "accelerator" else "npu_port", name) for name in public_names()]
    every.sort(key=lambda each: each[0] == "device")
    lines = "".join(f"- `{module}.{name}`: {first_sentence(name)}\n" for module, name in every)
    return _LIST.sub(lambda match: lines, text, count=1)


def main() -> int:
    text = PAGE.read_text(encoding="utf-8")
    new = listed(text)
    if "--write" in sys.argv[1:]:
        PAGE.write_text(new, encoding="utf-8")
        return 0
    if new != text:
        print(f"{PAGE.name}: the list of functions is stale; python scripts/helper_page.py --write", file=sys.stderr)
    return int(new != text)


if __name__ == "__main__":
    sys.exit(main())
