"""`env_npu.sh`: settings of the host to try, every one in comments, with what it costs and the source for it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from transplt.rules.host_settings import HostSetting, host_settings_by_group

HOST_SCRIPT = "env_npu.sh"
_HEAD = """\
# Settings of the host that may make the training faster, written for a migration that asked for --tune.
#
#   source env_npu.sh
#
# Nothing here is in force: take the # in front of a line away, one at a time, and measure (--tune step-time prints what
# a step takes). Lines with two # are said about it, or take it back. How much is gained depends on the machine and on
# the model: no figure is promised.
"""


def render_host_script() -> bytes:
    """The bytes of the script; sourced as it is, it does nothing."""
    return "\n".join([_HEAD, *_lines()]).encode("ascii") + b"\n"


def _lines() -> Iterator[str]:
    for group, settings in host_settings_by_group():
        yield f"## --- {group} {'-' * (112 - len(group))}\n"
        for setting in settings:
            lines = (f"#{line}" if line.startswith("#") else f"# {line}" for line in setting.lines)
            yield "\n".join([*_comments(setting), *lines, *_undone(setting)]) + "\n"


def _comments(setting: HostSetting) -> Iterator[str]:
    for name, text in ((setting.name, setting.what), ("cost", setting.cost), ("source", setting.source)):
        yield from textwrap.wrap(
            f"{name}: {text}", 118, initial_indent="## ", subsequent_indent="##   ", break_long_words=False,
            break_on_hyphens=False,
        )  # fmt: skip


def _undone(setting: HostSetting) -> Iterator[str]:
    return (f"## undo: {line}" for line in setting.undo)
