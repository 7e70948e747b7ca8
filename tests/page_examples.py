"""What the examples on the pages of the codes (rules/diagnostics) ask for in words."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

from transplt.base.settings import Settings
from transplt.fixers.adaptors.table import parse_adaptors
from transplt.fixers.tunings.table import parse_tunings
from transplt.rules.rule_file import problems


def settings_for(text: str, analysis: bool = False) -> Settings:
    """The settings that the words of an example ask for."""
    version = re.search(r"--torch-version (\S+?)`", text)
    tune = re.search(r"`--tune (\S+?)`", text)
    adapt = re.search(r"`--adapt (\S+?)`", text)
    checks = re.search(r"`--check-ranks (\d+)`", text)
    rules = re.search(r"```json\n(.*?)```", text, re.DOTALL)
    if rules is not None:
        assert [str(problem) for problem in problems("page", rules[1])] == []
    return Settings(
        torch_version=version[1] if version else Settings().torch_version,
        analysis=analysis,
        hardware="950DT" if "`--card 950DT`" in text else "A2",
        similar="`-sim`" in text,
        texts="`--texts`" in text,
        unsafe_fixes="`--unsafe-fixes`" in text,
        entry="example.py" if "`distributed -m example.py`" in text else "",
        helper_file="`distributed -m example.py`" in text or adapt is not None or "\nimport npu_port\n" in text,
        check_ranks=int(checks[1]) if checks else 0,
        user_rules=(("page.json", rules[1]),) if rules else (),
        amp=next((kind for kind in ("native", "apex") if f"`--amp {kind}`" in text), "off"),
        amp_flag="`--amp-flag`" in text,
        amp_dtype="bfloat16" if "`--amp-dtype bfloat16`" in text else "float16",
        tune=parse_tunings(tune[1], version[1] if version else Settings().torch_version) if tune else (),
        adapt=parse_adaptors(adapt[1], Settings().torch_version) if adapt else (),
    )


def asked_for(text: str) -> dict[str, Any]:
    """The same by keyword, without what is as ever."""
    settings, plain = settings_for(text), Settings()
    both = ((field.name, getattr(settings, field.name), getattr(plain, field.name)) for field in fields(Settings))
    return {name: value for name, value, usual in both if value != usual}
