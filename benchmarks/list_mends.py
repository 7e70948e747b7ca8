"""What `list_trial.py` does of the list of actions, each by one change of the text."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from transplt.proof.prove.training import Place

#: (code, files, what stands in a statement, what takes its place). Lines stay lines: runs are compared by them.
MENDS: tuple[tuple[str, str, str, str], ...] = (
    ("NPU723", r"\.py$", r"channels_last(_3d)?\b", "contiguous_format"),
    ("NPU526", r"\.py$", r"torch\.(?:mm|spmm|matmul|sparse\.mm)\((\w+),", r"torch.matmul(\1.to_dense(),"),
    ("NPU526", r"\.py$", r"\b(\w+) @", r"\1.to_dense() @"),
    ("NPU507", r"\.py$", r"\b(?:torch\.)?nn\.DataParallel\(([\w.]+)[^()]*\)", r"\1"),
    ("NPU507", r"\.py$", r"\b(?:torch\.)?nn\.parallel\.data_parallel\(([\w.]+), (\w+)[^\n]*\)", r"\1(\2)"),
    ("NPU154", r"\.py$", r"torch\.load\((.*)\)", r"torch.load(\1, weights_only=False)"),
    ("NPU512", r"\.py$", r"torch\.compile\((\w+)\)", r"\1"),
    ("NPU514", r"\.py$", r"torch\.symeig\((\s*[\w.\[\]]+), eigenvectors=True\)", r"torch.linalg.eigh(\1)"),
    ("NPU134", r"\.py$", r"\btorch\.Tensor\(([^()]*)\)", r"torch.Tensor(\1).npu()"),
    ("NPU134", r"\.py$", r"(\bDataLoader\([^()]*?),?(\s*\))", r'\1, generator=torch.Generator("npu")\2'),
    ("NPU293", r"\.py$", r"(\w+)\.data\[0\]", r"\1.item()"),
    ("NPU510", r"\.py$", r"^(\s*)(?:import|from) [^\n]*$", r"\1pass"),
    ("NPU844", r"requirements[^/]*\.txt$", r"\A", "torch-npu\n"),
    ("NPU843", r"requirements[^/]*\.txt$", r"\A", "--extra-index-url https://download.pytorch.org/whl/cpu\n"),
    ("NPU845", r"requirements[^/]*\.txt$", r"^(?!torch)([\w-]+)\s*==.*$", r"\1"),
    ("NPU845", r"\.ya?ml$", r"\bpython\s*=+\s*[\d.]+", "python=3.11"),
    ("NPU850", r"Dockerfile$", r"^FROM \S+", "FROM ascendai/cann:latest"),
)  # fmt: skip


@dataclass(frozen=True)
class Said:
    """An action as it lies in the output. `places` are first and last lines of its statements, by path from the root of
    the output."""

    title: str
    blocks: str
    codes: tuple[str, ...]
    places: dict[str, list[tuple[int, int]]] = field(hash=False)

    def has(self, place: Place | None) -> bool:
        """Whether a line of the output is one of its own."""
        spans = self.places.get(place.path, ()) if place is not None else ()
        return any(place is not None and first <= place.line <= last for first, last in spans)

    def mend(self, folder: Path, *, write: bool = True) -> list[str]:
        """Do it in a copy of the output: the files that change."""
        changed = []
        for path, spans in self.places.items():
            mends = [(old, new) for code, files, old, new in MENDS if code in self.codes and re.search(files, path)]
            before = (folder / path).read_text(encoding="utf-8") if mends else ""
            lines = before.splitlines(keepends=True)
            for first, last in spans if path.endswith(".py") else [(1, len(lines))]:
                part = "".join(lines[first - 1 : last])
                for old, new in mends:
                    part = re.sub(old, new, part, flags=re.MULTILINE)
                lines[first - 1 : last] = [part, *[""] * (last - first)]
            if (after := "".join(lines)) != before:
                changed.append(path)
                if write:
                    (folder / path).write_text(after, encoding="utf-8")
        return changed
