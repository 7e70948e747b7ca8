"""The pages that transplt writes: templates, styles and scripts of the package, filled with texts that are escaped."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment

_PAGE = Path(__file__).parent / "page"


@cache
def asset(name: str) -> str:
    """The text of a template, style or script of the package."""
    return (_PAGE / name).read_text("utf-8")


def fill(template: str, **values: Any) -> bytes:
    """The bytes of a page, UTF-8. Every text is escaped; `css` and `script` are our own and are not."""
    return _environment().get_template(template).render(**values).encode("utf-8", "backslashreplace")


def prepare(template: str) -> None:
    """Compile a template before its first page."""
    _environment().get_template(template)


@cache
def _environment() -> Environment:
    """It keeps what it has compiled: a report has hundreds of pages of one template."""
    from jinja2 import Environment, FunctionLoader

    return Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, loader=FunctionLoader(asset))
