"""LibCST's own door: a migration as a codemod command, so that our rules mix with others'.

    python -m libcst.tool codemod -x transplt.codemod.Migrate --no-format FILE...

Each file is seen without its project, as by `transplt.migrate_source`: it may be edited less, never otherwise. What is
left for a person comes as a warning. LibCST's tool runs the result through black unless told `--no-format`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import libcst as cst
from libcst.codemod import CodemodCommand, CodemodContext

from transplt.faces.cli.library import migrate_source


class Migrate(CodemodCommand):
    """Rewrite a module from CUDA GPUs to Ascend NPUs."""

    DESCRIPTION = "Rewrites PyTorch code for CUDA GPUs to Ascend NPUs (torch_npu, HCCL)."

    @staticmethod
    def add_args(arg_parser: argparse.ArgumentParser) -> None:
        """The options of a migration that one file alone can follow."""
        arg_parser.add_argument("--torch-version", metavar="X.Y", help="The torch to migrate to.")
        arg_parser.add_argument("--style", choices=("npu", "portable"), default="npu", help="npu; portable: CUDA too.")
        arg_parser.add_argument(
            "--rule", dest="rules", metavar="FILE", action="append", help="Also apply the rules in this JSON file."
        )
        arg_parser.add_argument(
            "--similar", action="store_true", help="Replace some unsupported APIs with similar ones."
        )
        arg_parser.add_argument("--unsafe-fixes", action="store_true", help="Also edits that may change what it does.")

    def __init__(
        self,
        context: CodemodContext,
        torch_version: str | None = None,
        style: str = "npu",
        rules: str | Sequence[str] | None = None,
        similar: bool = False,
        unsafe_fixes: bool = False,
    ) -> None:
        super().__init__(context)
        self.torch_version, self.style, self.rules = torch_version, style, rules or ()
        self.similar, self.unsafe_fixes = similar, unsafe_fixes

    def transform_module_impl(self, tree: cst.Module) -> cst.Module:
        """The migrated module; findings become warnings. UsageError for a rule file or a version that is wrong."""
        result = migrate_source(
            tree.bytes,
            self.context.filename or "module.py",
            torch_version=self.torch_version,
            style=self.style,
            rules=self.rules,
            similar=self.similar,
            unsafe_fixes=self.unsafe_fixes,
        )
        for finding in result.findings:
            if finding.open:
                self.warn(f"{finding.span.line}:{finding.span.column}: {finding.code} {finding.message}")
        return cst.parse_module(result.data) if result.changed else tree
