"""What pip installs for a module: rules/support/distributions.json."""

from __future__ import annotations

from transplt.rules.tables import read_table


def distribution_of(module: str) -> str:
    """What `pip install` is told so that a module can be imported, by its first name: `opencv-python-headless` for
    `cv2`, an address of git for what PyPI does not have. A module without a row is installed under its own name.
    """
    table = read_table("support/distributions.json")
    return str(table["elsewhere"].get(module) or table["names"].get(module, module))
