"""What mkdocs calls: the pages of the codes are made from rules/diagnostics, and links to rules/ lead to them.

So are tables of errors and of rules that are run: whoever adds one writes no document.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts import errors_table, executed_table  # noqa: E402
from transplt.rules.errors import predicted_errors  # noqa: E402
from transplt.rules.pages import CLASS_PAGE, all_codes, load  # noqa: E402
from transplt.rules.profiles import slows_text  # noqa: E402

_PAGE = re.compile(r"\]\((\.\./)?\.\./rules/diagnostics/(NPU\d{3})\.md\)")
#: The hundreds of the codes and what they are about.
GROUPS = {
    "0": "Rules of yours",
    "1": "Names",
    "2": "Devices, strings and the environment",
    "3": "Distributed",
    "4": "Imports and lines that go in",
    "5": "Not supported",
    "6": "Not known",
    "7": "Advice",
    "8": "Files that are not Python",
    "9": "Files that could not be read, and defects",
}


def on_files(files: Files, config: Any) -> Files:
    """Adds a page for each code, their list, and the schema of rule files."""
    for code in all_codes():
        links = "([diagnose](../diagnose.md), [all errors](../reference/errors.md))"
        errors = predicted_errors(code, "../reference/errors.md").replace("(`transplt diagnose LOG`)", links)
        slow = slows_text(code, "../profile.md").replace("`transplt profile-read DIR`", "[profile-read](../profile.md)")
        each = "## Names of torch.cuda\n\nThe table: [each name of torch.cuda](../reference/torch_cuda.md).\n"
        names = each if f"[{code}]" in (ROOT / CLASS_PAGE).read_text("utf-8") else ""
        content = "\n".join((load(code).text(), errors, slow, names))
        files.append(File.generated(config, f"diagnostics/{code}.md", content=content))
    files.append(File.generated(config, "diagnostics/index.md", content=index()))
    files.append(File.generated(config, "schema.json", content=(ROOT / "rules" / "schema.json").read_text("utf-8")))
    return files


def index() -> str:
    """The list of all codes by group."""
    lines = ["# Diagnostics", "", "`transplt explain NPU201` prints the same pages. *run*: how many of the rules of a "]
    lines[-1] += "code that rewrite [are run](../reference/executed_rules.md), and why the others are not."
    executed = executed_table.counts()
    group = ""
    for code in all_codes():
        page = load(code)
        if code[3] != group:
            group = code[3]
            lines += ["", f"## {GROUPS[group]}", "", "| code | what | level | effort | run |", "|---|---|---|---|---|"]
        effort = page.effort.value if page.effort else ""
        title = page.title.replace("|", "\\|")
        run = "{1} of {0}".format(*executed[code]) if code in executed else ""
        lines.append(f"| [{code}]({code}.md) | {title} | {page.level.value} | {effort} | {run} |")
    return "\n".join(lines) + "\n"


#: Pages that end in tables made of data.
TABLES = {"reference/errors.md": errors_table.tables, "reference/executed_rules.md": executed_table.tables}


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The tables of a page, and links out of docs/ that lead to pages which are made here."""
    if page.file.src_uri in TABLES:
        markdown += "\n" + TABLES[page.file.src_uri]()
    return _PAGE.sub(r"](\1diagnostics/\2.md)", markdown).replace("](../rules/schema.json)", "](schema.json)")
