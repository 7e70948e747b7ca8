"""The configuration of an ACL dump, for `acl.init("acl.json")`: what of which models and operators is written where.

Source: aclInit, "model dump" and "single-operator dump", in the API reference of CANN 8.0 (hiascend.com,
aclpythondevg_01_0155): dump_list, model_name, layer, dump_path, dump_mode, dump_op_switch.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from transplt.base.errors import UsageError

MODES = ("input", "output", "all")


def acl_json(dump_path: str, model: str | None, layers: Sequence[str], mode: str, *, operators: bool) -> str:
    """The text of the file. UsageError for contradictions.

    `operators`: single operators are dumped, which have no model; `layers`: names of operators, none means all.
    """
    if operators and (model or layers):
        raise UsageError("--operators dumps single operators, which have no --model and no --layer")
    if not operators and not model:
        raise UsageError("an ACL dump is of a --model (its name, without .om), or of single --operators")
    listed: list[dict[str, Any]] = []
    if model:
        listed.append({"model_name": model, **({"layer": list(dict.fromkeys(layers))} if layers else {})})
    switch = "on" if operators else "off"
    dump = {"dump_list": listed, "dump_path": dump_path, "dump_mode": mode, "dump_op_switch": switch}
    return json.dumps({"dump": dump}, indent=4) + "\n"
