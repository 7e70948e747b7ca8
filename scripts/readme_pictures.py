"""The two pictures of README.md, as SVG that is light or dark as its reader's page is; no browser is needed.

    python scripts/readme_pictures.py            exit 1 when the picture of the report is not that of today
    python scripts/readme_pictures.py --write    write both; the proof needs torch and `transplt emulator install`

`docs/pictures/report.svg` holds the first sections of the real report.html of samples/image_classifier, its own style
with them, in a foreignObject (https://svgwg.org/svg2-draft/embedded.html#ForeignObjectElement).
`docs/pictures/proof.svg` holds what `transplt prove` prints for that sample. tests/test_readme_pictures.py types both.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from html import escape
from html.parser import HTMLParser
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
SAMPLE = ROOT / "samples" / "image_classifier" / "cuda"
PROVE = "transplt prove project out/project_msft --main train.py --steps 0 --no-cache -- --epochs 1 --samples 256"
_SIZE = (940, 930)
#: What an SVG, which is XML, spells with capitals; a parser of HTML lowers them.
_CAPITALS = {"viewbox": "viewBox", "preserveaspectratio": "preserveAspectRatio"}
_VOID = frozenset({"meta", "link", "input"})
_LINE, _LETTER = 19, 7.85
_COLORS = """svg { color-scheme: light; --back: #f5f6f8; --text: #1b1f27; --quiet: #565e6c; --done: #1a7f4b; }
@media (prefers-color-scheme: dark) {
  svg { color-scheme: dark; --back: #12151b; --text: #e7eaf0; --quiet: #a5adbb; --done: #45b97c; }
}
text { font: 13px ui-monospace, Menlo, Consolas, monospace; fill: var(--text); white-space: pre; }
.quiet { fill: var(--quiet); } .done { fill: var(--done); font-weight: 600; } rect { fill: var(--back); }"""


class _Body(HTMLParser):
    """The body of a page as XML, without scripts, as far as the first element that has `end` in its start tag."""

    def __init__(self, page: str, end: str) -> None:
        super().__init__()
        self.out: list[str] = []
        body = page[page.index("<body") : page.index(end)]
        self.feed(body)
        self.close()
        self.out.append("</main></body>")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        shown = [f' {_CAPITALS.get(name, name)}="{escape(value or "")}"' for name, value in attrs if name != "id"]
        spaces = {"svg": ' xmlns="http://www.w3.org/2000/svg"', "body": ' xmlns="http://www.w3.org/1999/xhtml"'}
        self.out.append(f"<{tag}{spaces.get(tag, '')}{''.join(shown)}{'/' * (tag in _VOID)}>")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.out.append(f"</{tag}>")

    def handle_endtag(self, tag: str) -> None:
        self.out.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        self.out.append(escape(data, quote=False))


def report_picture(page: str) -> str:
    """The picture of a report.html: its decisions and its summary."""
    width, height = _SIZE
    style = page[page.index("<style>") + len("<style>") : page.index("</style>")]
    body = "".join(_Body(page, '<section aria-labelledby="h-rest">').out)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">\n'
        f"<title>report.html of samples/image_classifier</title>\n<style>{escape(style, quote=False)}"
        f"body {{ height: {height}px; }}</style>\n"
        f'<foreignObject width="{width}" height="{height}">{body}</foreignObject>\n'
        f'<rect width="{width}" height="{height}" fill="none" stroke="#808894"/>\n</svg>\n'
    )


def terminal_picture(lines: list[str]) -> str:
    """The picture of a terminal: the command in front, the verdict in green."""
    width, height = int(max(map(len, lines)) * _LETTER) + 28, len(lines) * _LINE + 24
    rows = []
    for number, line in enumerate(lines):
        kind = "" if number == 0 else "done" if "equal: " in line else "quiet"
        shown = f' class="{kind}"' if kind else ""
        rows.append(f'<text x="14" y="{number * _LINE + 26}"{shown}>{escape(line, quote=False)}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">\n'
        f"<title>transplt prove on samples/image_classifier</title>\n<style>{_COLORS}</style>\n"
        f'<rect width="{width}" height="{height}" rx="8"/>\n' + "\n".join(rows) + "\n</svg>\n"
    )


def _typed(folder: Path, *words: str) -> str:
    command = [sys.executable, "-m", "transplt", *words]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=True).stdout


def pictures(proof: bool) -> dict[str, str]:
    """The text of each picture by its name; that of the proof where it is wanted."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        shutil.copytree(SAMPLE, folder / "project")
        _typed(folder, "-i", "project", "-o", "out", "--exit-zero")
        report = (folder / "out" / "project_msft" / "report.html").read_text(encoding="utf-8")
        found = {"report.svg": report_picture(report)}
        if proof:
            printed = _typed(folder, *PROVE.split()[1:]).splitlines()
            found["proof.svg"] = terminal_picture([f"$ {PROVE}", *printed])
    return found


def main(arguments: list[str]) -> int:
    stale = 0
    for name, text in pictures("--write" in arguments).items():
        path = PICTURES / name
        if "--write" in arguments:
            path.write_text(text, encoding="utf-8")
        elif path.read_text(encoding="utf-8") != text:
            print(f"{path.relative_to(ROOT)}: python scripts/readme_pictures.py --write", file=sys.stderr)
            stale = 1
    return stale


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
