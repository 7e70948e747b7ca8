"""How an effort is called, on every face."""

from __future__ import annotations

from transplt.base.finding import Effort
from transplt.base.language import marked

EFFORT_TEXT = dict(zip(Effort, (marked("less than an hour"), marked("hours"), marked("a day or more")), strict=True))
