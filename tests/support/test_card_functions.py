"""The arguments of CANN's functions: what a reader of the table relies on, and what functions are known to take."""

from __future__ import annotations

import gzip
import json
import os
import re
from pathlib import Path

import pytest

from scripts.build_emulator_tables import TABLES
from scripts.card_functions.arguments import KINDS
from transplt.rules.tables import read_table

TABLE = read_table("support/card_functions.json")
FUNCTIONS = TABLE["functions"]
_ARGUMENT = re.compile(rf"[a-zA-Z]\w*:(?:[{KINDS}]|[tT][>&])\??")


def test_each_row_is_arguments_of_known_kinds_with_names_of_their_own() -> None:
    assert list(FUNCTIONS) == sorted(FUNCTIONS) and len(FUNCTIONS) > 890
    for name, row in FUNCTIONS.items():
        arguments = row["arguments"].split()
        assert all(_ARGUMENT.fullmatch(each) for each in arguments), name
        names = [each.partition(":")[0] for each in arguments]
        assert len({*names}) == len(names) > 0, name
        assert 0 <= row["source"] < len(TABLE["sources"]), name


def test_a_function_writes_somewhere() -> None:
    """But those that only send to other cards, or wait."""
    silent = {name for name, row in FUNCTIONS.items() if not re.search(r":[tT][>&]", row["arguments"])}
    assert silent == {"aclnnAttentionToFFN", "aclnnFFNToAttention", "aclnnSleep"}


@pytest.mark.torch
def test_an_operator_of_pytorch_takes_the_inputs_by_their_names() -> None:
    import torch

    for name, row in FUNCTIONS.items():
        if "aten" in row:
            inputs = {each.partition(":")[0] for each in row["arguments"].split() if not re.search(r":[tT]>", each)}
            packet = getattr(torch.ops.aten, row["aten"])
            schemas = [getattr(packet, each)._schema for each in packet.overloads()]
            assert any(inputs <= {each.name for each in schema.arguments} for schema in schemas), name


def test_the_emulator_has_the_table() -> None:
    compiled = json.loads(gzip.decompress((TABLES / "functions.json.gz").read_bytes()))
    assert compiled == {name: [row["arguments"], row.get("aten", "")] for name, row in FUNCTIONS.items()}


if "TORCH_NPU_WHEEL" in os.environ:  # the folder of an unpacked one

    def test_functions_are_those_of_the_wheel() -> None:
        library = Path(os.environ["TORCH_NPU_WHEEL"], "torch_npu", "lib", "libtorch_npu.so").read_bytes()
        assert [name for name in FUNCTIONS if f"{name}GetWorkspaceSize\0".encode() not in library] == []
