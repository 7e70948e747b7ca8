"""`transplt prove --kernels`: from the options to the verdict."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from transplt.base.disk.replace import write_asked_for
from transplt.base.errors import shown
from transplt.base.render.verdict import Word
from transplt.base.text.regular_file import SOURCE, read_regular
from transplt.base.text.source import UnreadableSource
from transplt.fixers.triton.reader.kernels import kernels_in
from transplt.proof.compiler.compiling import Compiler
from transplt.proof.compiler.launches import compile_launches
from transplt.proof.compiler.place import hint
from transplt.proof.kernels.calls import Calls, Kernel, read_calls
from transplt.proof.kernels.judged import judge, take_compiled
from transplt.proof.kernels.report import KernelProof, as_json, as_text
from transplt.proof.kernels.runs import Kernels
from transplt.proof.launch.interpreter import Versions
from transplt.proof.launch.options import RunOptions, UsageError
from transplt.proof.prove.options import Prove
from transplt.proof.prove.page import report
from transplt.proof.prove.projects import Project
from transplt.proof.prove.record import Setup, setup
from transplt.syntax.files import File
from transplt.syntax.nodes import last_name


def prove_kernels(
    given: Prove, command: str, original: Project, migrated: Project, options: RunOptions, versions: Versions
) -> int:
    """Compare the kernels, report, and return the exit code. UsageError where there is nothing to compare."""
    if not any(each.startswith(("triton-", "triton_")) for each in versions.installed):
        raise UsageError("--kernels needs Triton (its interpreter is used): pip install triton numpy")
    assert options.trace is not None
    compiler = Compiler.of(options.card) if options.compiled else None
    kernels = Kernels(original, migrated, options, given, options.trace.seed)
    made = _setup(given, command, options, versions, (original, migrated))
    calls = read_calls(given.calls) if given.calls is not None else kernels.record(_announce)
    if given.save_calls is not None:
        write_asked_for(given.save_calls, calls.as_bytes())
    found = kernels.compare(calls, _announce)
    compiled = None
    if compiler is not None:
        compiled = compile_launches(kernels.launched, compiler, _announce)
        for each in found:
            each["migrated"]["findings"] = compiled.left(each["migrated"]["findings"] or [])
    results = judge(calls, found)
    if compiled is not None:
        take_compiled(results, compiled)
    proof = KernelProof.of(results, calls, _never(original, calls), kernels.seconds)
    proof.compiled = compiled
    text = as_text(proof)
    click.echo(text if compiled is not None else f"{text}\n  {hint()}")  # before files that may not be written
    report(given, command, migrated.root, proof, as_json(proof, made), text)
    return 0 if proof.verdict.word is Word.EQUAL else 1


def _announce(text: str) -> None:
    click.echo(f"transplt prove: {text} ...", err=True)


def _setup(
    given: Prove, command: str, options: RunOptions, versions: Versions, projects: tuple[Project, Project]
) -> Setup:
    """The setup of a proof, with the settings that count for kernels."""
    made = setup(command, options, versions, (1,), given.folders, projects)
    triton = next((each for each in versions.installed if each.startswith(("triton-", "triton_"))), "")
    settings: dict[str, Any] = {
        "programs": given.programs, "tolerance": given.tolerance, "seed": made.settings["seed"],
        "timeout": options.timeout, "stubs": list(options.stubs),
    }  # fmt: skip
    version = triton.rpartition(".")[0].partition("-")[2]
    return replace(made, settings=settings, versions={**made.versions, "triton": version})


def _never(project: Project, calls: Calls) -> list[str]:
    """The kernels of the original that were not launched, without those that kernels call: `softmax (ops.py:12)`."""
    launched, called = set(calls.kernels()), set[str]()
    kernels: list[tuple[str, int, str]] = []
    for path, place in sorted(project.copied()):
        if not path.endswith(".py"):
            continue
        try:
            data = read_regular(Path(place), SOURCE)
            file = File.of(path, data) if b"triton" in data else None
        except (OSError, UnreadableSource):
            continue
        if file is not None:
            called |= {last_name(call.func) for call in file.scan.calls}
            kernels += [(path, kernel.node.lineno, kernel.name) for kernel in kernels_in(file)]
    return [
        f"{name} ({shown(path)}:{line})"
        for path, line, name in kernels
        if Kernel(name, path) not in launched and name not in called
    ]
