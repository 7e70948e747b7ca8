"""What rules write for torch_npu where the stand-in for CUDA has no original to compare: it is there, and ends well.

Names are imported and taken as the migration of files with each form of import writes them.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.executed.reasons import REASONS
from tests.executed.snippet import TORCH, Snippet, migrated, rewriting_rules, run_on_npu
from tests.executed.table import snippets
from tests.harness import migrate

pytestmark = [pytest.mark.torch, pytest.mark.card]
#: By the old name; `API` stands for it.
CALLS = {
    "torch.backends.cuda.cufft_plan_cache": "API.max_size = 5\nresult = [API.max_size, API.size, API.clear()]",
    "torch.cuda._get_rng_state_offset": "torch.rand(3, device='cuda')\nresult = API()",
    "torch.cuda._set_rng_state_offset": "result = API(8)",
    "torch.cuda.caching_allocator_alloc": "result = torch.cuda.caching_allocator_delete(API(512))",
    "torch.cuda.caching_allocator_delete": "result = API(torch.cuda.caching_allocator_alloc(512, 0))",
    "torch.cuda.memory.caching_allocator_alloc": "stream = torch.cuda.current_stream()\n"
    "result = torch.cuda.memory.caching_allocator_delete(API(512, 0, stream))",
    "torch.cuda.memory.caching_allocator_delete": "result = API(torch.cuda.memory.caching_allocator_alloc(512))",
    "torch.cuda.utilization": "result = [API(), API(0)]",
    "torch.cuda.Event.from_ipc_handle": "result = callable(API)",
    "torch.distributed.ProcessGroupNCCL": "options = API.Options()\noptions.is_high_priority_stream = True\n"
    "result = options.is_high_priority_stream",
    "apex.optimizers.FusedLAMB": """
from apex.optimizers import FusedLAMB
layer = torch.nn.Linear(3, 2).cuda()
optimizer = FusedLAMB(layer.parameters(), lr=0.1, betas=(0.9, 0.99), eps=1e-6, weight_decay=0.01)
for _ in range(3):
    optimizer.zero_grad()
    layer(torch.ones(4, 3).cuda()).sum().backward()
    optimizer.step()
result = layer.weight
""",
}
_LOOK_UP = """
import importlib


def lacks(name):
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:end]).replace("torch.npu", "torch_npu.npu"))
        except ImportError:
            continue
        for each in parts[end:]:
            if not hasattr(found, each):
                return True
            found = getattr(found, each)
        return False
    return True
"""


def _names() -> list[tuple[str, str]]:
    """Old and new name of each rule that writes one of torch_npu."""
    rules = [rule for rule in rewriting_rules().values() if rule.runs]
    return [(rule.name, rule.new) for rule in rules if rule.new.startswith(("torch.npu", "torch_npu"))]


def test_torch_npu_has_every_name_that_a_rule_writes() -> None:
    names = sorted({new.replace("torch.npu.mstx.", "torch.npu.mstx.mstx.") for _, new in _names()})
    text = f"import torch\nimport torch_npu\n{_LOOK_UP}\nresult = [name for name in {names!r} if lacks(name)]\n"
    assert len(names) > 150
    assert run_on_npu({"names": text})["names"] == {"error": "", "result": []}


def test_each_form_of_import_finds_them() -> None:
    forms: list[str] = []
    for old, _ in _names():
        module, _, last = old.rpartition(".")
        if module.startswith("torch.cuda") and module.rpartition(".")[2].islower() and module != "torch.cuda.graph":
            forms += [f"from {module} import {last}", f"import {module} as m\nm.{last}", f"import {module}\n{old}"]
    settings: dict[str, Any] = {"torch_version": TORCH, "similar": True}
    texts = {form: migrate(f"import torch\n{form}\n", **settings).data.decode() for form in forms}
    text = f"""
result = []
for form, text in {texts!r}.items():
    try:
        exec(text, {{}})
    except (ImportError, AttributeError) as error:
        result.append([form, text, str(error)])
"""
    assert len(texts) > 300
    assert run_on_npu({"forms": text})["forms"] == {"error": "", "result": []}


def test_what_has_no_original_to_compare_ends_well() -> None:
    assert {*CALLS} <= {*REASONS} - {*snippets()}
    texts = {name: migrated(name, Snippet(code.replace("API", name))).data.decode() for name, code in CALLS.items()}
    errors = {name: [said["error"], texts[name]] for name, said in run_on_npu(texts).items() if said["error"]}
    assert errors == {}
