"""The `npu-smi` that launch scripts find on the emulated host: it lists the cards, which is what they count by."""

from __future__ import annotations

from pathlib import Path

#: `npu-smi info -l` as Ascend's reference of the command shows it; what else it knows is not emulated.
_LIST = """\
#!/bin/sh
if [ "$*" != "info -l" ]; then
    echo "npu-smi $*: the emulated host only supports npu-smi info -l" >&2
    exit 1
fi
printf '\\tTotal Count                    : %s\\n' {npus}
card=0
while [ "$card" -lt {npus} ]; do
    printf '\\n\\tNPU ID                         : %s\\n\\tChip Count                     : 1\\n' "$card"
    card=$((card + 1))
done
"""


def put_card_list(folder: Path, npus: int) -> Path:
    """Writes the command below `folder`; the folder for the PATH."""
    place = folder / "bin"
    place.mkdir()
    command = place / "npu-smi"
    command.write_text(_LIST.format(npus=npus), encoding="utf-8")
    command.chmod(0o755)
    return place
