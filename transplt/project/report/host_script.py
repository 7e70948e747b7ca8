"""`env_npu.sh`: settings of the host to try, every one in comments, with what it costs and the source for it."""

from __future__ import annotations

import textwrap

from transplt.rules.host_settings import host_settings_by_group

HOST_SCRIPT = "env_npu.sh"
_HEAD = """\
# Settings of the host that may make the training faster, written for a migration that asked for --tune.
#
#   source env_npu.sh
#
# Nothing here is active: remove the # before a line, one line at a time, and measure (--tune step-time prints the time
# of a step). Lines with two # explain a setting or undo it. The gain depends on the machine and on
# the model: no figure is promised.
"""


def render_host_script() -> bytes:
    """The bytes of the script; sourced as it is, it does nothing."""
    comments = textwrap.TextWrapper(
        118, initial_indent="## ", subsequent_indent="##   ", break_long_words=False, break_on_hyphens=False
    )
    lines = [_HEAD]
    for group, settings in host_settings_by_group():
        lines.append(f"## --- {group} {'-' * (112 - len(group))}\n")
        for setting in settings:
            for name, text in ((setting.name, setting.what), ("cost", setting.cost), ("source", setting.source)):
                lines += comments.wrap(f"{name}: {text}")
            lines += [f"#{line}" if line.startswith("#") else f"# {line}" for line in setting.lines]
            lines += [*(f"## undo: {line}" for line in setting.undo), ""]
    return "\n".join(lines).encode("ascii") + b"\n"
