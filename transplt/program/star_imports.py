"""Names that `from torch.optim import *` and its like bring into a file."""

from __future__ import annotations

from transplt.rules.support_tables import star_names
from transplt.syntax.names import Names
from transplt.syntax.scan import Scan


def names_in(scan: Scan, reexports: dict[str, str]) -> Names:
    """The resolver of a file: with what the project passes on (full name -> what it stands for), and what stars of
    torch's modules bring (rules/support/torch_names.json).
    """
    stars = [star for star in scan.root.stars if star.startswith("torch.")]
    brought = {name: name for star in stars for name in (f"{star}.{last}" for last in star_names(star))}
    return Names(scan, {**reexports, **brought} if brought else reexports)
