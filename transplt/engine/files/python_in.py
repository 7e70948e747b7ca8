"""Python in files that are no .py files: what of them the engine reads, and what facts that gives the project.

Where kernels are to be written in torch, some sources say which version of a kernel they hold.
"""

from __future__ import annotations

import re
from dataclasses import replace

from transplt.base.finding import FileResult, Status
from transplt.base.settings import Settings
from transplt.base.text.given_values import names_given
from transplt.base.text.kernel_sources import is_kernel_source
from transplt.engine.engine import index_source, migrate_source
from transplt.engine.files.document import text_of
from transplt.engine.files.kind import FileKind, kind_of
from transplt.engine.files.native_text import code_of
from transplt.flow.chooser_place import COLAB, is_of_a_package
from transplt.flow.cuda_builds import is_without_cuda
from transplt.flow.entry_text import scripts_started
from transplt.flow.facts import ModuleFacts, ProjectFacts
from transplt.flow.import_text import Placing
from transplt.flow.option_defaults import options_of_yaml
from transplt.flow.program_switches import offers
from transplt.rules.kernel_functions import variants_held
from transplt.rules.versions import loads_itself
from transplt.syntax.files import Files
from transplt.syntax.modules import PROSE, module_name

#: Python and C in one language: such a file is migrated where it holds nothing but Python.
_CYTHON = (".pyx", ".pxd")
#: Templates; those of other files than .py are no Python, even where it would read them (`device: cuda`).
#: What notebooks hold that are opened there, also in their metadata.
_COLAB = re.compile(rb"google\.colab\b|colab\.research|\"colab\"")
_TEMPLATES = (".j2", ".jinja", ".jinja2")


def whole_python(
    data: bytes, path: str, kind: FileKind, settings: Settings, project: ProjectFacts | None
) -> FileResult | None:
    """The result of a file that is Python from end to end; None for one that is not, or that Python does not read.

    What themes add stays with .py files: it needs to know how a program is started.
    """
    name = path.lower()
    may_be_python = name.endswith(_CYTHON) if kind is FileKind.NATIVE else kind is FileKind.SCRIPT
    if not may_be_python or (name.endswith(_TEMPLATES) and ".py." not in name.rpartition("/")[2]):
        return None
    result = migrate_source(data, path, settings.without_themes(), project)
    return result if result.status is Status.OK else None


def other_facts(data: bytes, path: str, settings: Settings, files: Files | None = None) -> ModuleFacts | None:
    """The facts of the Python of such a file; None for a file that holds none.

    It does not count where files are counted that choose between CUDA and the NPU: a library may have many notebooks.
    """
    if is_kernel_source(path):
        if not settings.asks_for("adapt:kernels"):
            return None
        return ModuleFacts(path, "", kernels=variants_held(path, code_of(data).decode("utf-8", "replace")))
    if settings.style == "portable" and is_of_a_package(path, data):
        return ModuleFacts(path, "", placing=Placing())
    if path.endswith(".pyx") and is_without_cuda(data):
        return ModuleFacts(path, "", compiled=module_name(path[:-1]))
    kind = kind_of(path, data)
    text: bytes | None = data if kind is FileKind.SCRIPT else None
    if kind is FileKind.NOTEBOOK:
        text = python_of_cells(data)
    if text is None:
        before = not (loads_itself(settings.torch_version) or path.lower().endswith(PROSE))
        names = names_given(data) if before and kind is not FileKind.BINARY else ()
        started = scripts_started(data, path) if kind is not FileKind.BINARY else ()
        facts = ModuleFacts(
            path, "", gives=names, started=started, switches=offers(data, path), configured=options_of_yaml(data, path)
        )
        return facts if facts != ModuleFacts(path, "") else None
    facts = index_source(text, path, settings.without_themes(), files)
    if facts.placing is not None and _COLAB.search(data):
        facts = replace(facts, placing=facts.placing._replace(imported=(*facts.placing.imported, COLAB)))
    return replace(facts, uses_cuda=False, handles_npu=False)


def python_of_cells(data: bytes) -> bytes | None:
    from transplt.engine.files.notebook.cells import UnreadableNotebook
    from transplt.engine.files.notebook.layout import layout_of

    source = text_of(data)
    if source is None:
        return None
    try:
        layout = layout_of(source.utf8)
    except UnreadableNotebook:
        return None
    return None if layout is None or not layout.program.parts else layout.program.utf8
