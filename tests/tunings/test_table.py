"""The table of the tunings: names, what `--tune` takes, and that their targets exist."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.distributed.running import in_process as transplt
from transplt.base.errors import UsageError
from transplt.base.finding import Level
from transplt.base.settings import TORCH_VERSIONS
from transplt.edits.fixer import fixers_of
from transplt.fixers.tunings.table import TUNINGS as PACKAGES
from transplt.fixers.tunings.table import parse_tunings, tunings
from transplt.rules.pages import load
from transplt.rules.tuning_facts import exists, schemas, versions

TUNINGS = tunings()
ALL = tuple((name, "") for name, tuning in TUNINGS.items() if not tuning.on_request)


@pytest.mark.parametrize("name", TUNINGS)
def test_each_has_a_module_and_a_page_that_names_sources_and_versions(name: str) -> None:
    tuning = TUNINGS[name]
    (fixer,) = [fixer for fixer in fixers_of(*PACKAGES) if fixer.theme == f"tune:{name}"]
    assert fixer.visits
    assert fixer.code == tuning.code
    assert fixer.name == name.replace("-", "_"), "the module is called like the tuning"
    page = load(tuning.code)
    why = page.sections["Why"]
    assert f"`{name}" in why
    assert "Source:" in why or "patterns" in why or "models ported by hand" in why, "Why names who says so: `Source:`"
    assert "Versions:" in why
    assert page.level in (Level.UNSAFE, Level.MANUAL, Level.INFO)


def test_names_and_codes_are_used_once() -> None:
    assert len({tuning.code for tuning in TUNINGS.values()}) == len(TUNINGS)
    assert "all" not in TUNINGS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ()),
        ("all", ALL),
        (" hf32 , compile-mode ", (("compile-mode", ""), ("hf32", ""))),
        ("hf32,hf32", (("hf32", ""),)),
        ("all,-hf32", tuple(item for item in ALL if item[0] != "hf32")),
        ("-hf32", ()),
        ("step-time,max-steps=100", (("max-steps", "100"), ("step-time", ""))),
        ("profiler=5-5", (("profiler", "5-5"),)),
        ("profiler=2-3:to=a/b-1.x:level=2:simple", (("profiler", "2-3:to=a/b-1.x:level=2:simple"),)),
        ("max-steps=3,all", (*ALL, ("max-steps", "3"))),
    ],
)
def test_what_is_asked_for(text: str, expected: tuple[tuple[str, str], ...]) -> None:
    order = list(TUNINGS)
    assert parse_tunings(text, TORCH_VERSIONS[-1]) == tuple(sorted(expected, key=lambda item: order.index(item[0])))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fused-optimiser", "did you mean 'fused-optimizer'?"),
        ("-fused-optimiser", "no tuning 'fused-optimiser'"),
        ("al", "did you mean 'all'?"),
        ("zzz", "known: all, fused-optimizer"),
        ("hf32=1", "it takes no value"),
        ("max-steps", "write max-steps=100"),
        ("max-steps=0", "write max-steps=100"),
        ("max-steps=-1", "write max-steps=100"),
        ("profiler", "write profiler=5-10"),
        ("profiler=5", "write profiler=5-10"),
        ("profiler=9-5", "the last step comes before the first"),
        ("profiler=9-5:shapes", "the last step comes before the first"),
        ("profiler=5-9:shape", "write profiler=5-10"),
        ("profiler=5-9:level=3", "write profiler=5-10"),
        ("profiler=5-9:level=0:level=1", "write profiler=5-10"),
        ("profiler=5-9:shapes:memory:shapes", "write profiler=5-10"),
        ("profiler=5-9:to=", "write profiler=5-10"),
        ('profiler=5-9:to=a"b', "write profiler=5-10"),
        ("profiler=5-9:to=\u4e2d", "write profiler=5-10"),
    ],
)
def test_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(UsageError, match="--tune") as caught:
        parse_tunings(text, TORCH_VERSIONS[-1])
    assert message in str(caught.value)


def test_targets_exist_where_the_table_says() -> None:
    wanted = {
        "fused-optimizer": [f"torch_npu.optim.NpuFused{n}" for n in ("Adam", "AdamW", "SGD", "Adadelta", "RMSprop")],
        "fused-clip": ["torch_npu.optim.NpuFusedOptimizerBase.clip_grad_norm_fused_"],
        "compile-mode": ["torch.npu.set_compile_mode"],
        "internal-format": ["torch.npu.config.allow_internal_format"],
        "hf32": ["torch.npu.matmul.allow_hf32", "torch.npu.conv.allow_hf32"],
        "profiler": ["torch_npu.profiler.profile", "torch_npu.profiler.tensorboard_trace_handler"],
    }
    for name, targets in wanted.items():
        for target in targets:
            assert set(TUNINGS[name].versions) <= set(versions(target)), (name, target)
    assert not exists("torch_npu.npu_nothing", TORCH_VERSIONS[-1])
    assert exists("torch_npu.npu_rms_norm", TORCH_VERSIONS[-1])
    assert schemas("torch_npu.optim.NpuFusedAdam")[0].startswith("NpuFusedAdam(params, lr=")


def test_the_list(tmp_path: Path) -> None:
    done = transplt("rules", "--tunings", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = {line.split()[0].partition("=")[0]: line for line in done.stdout.splitlines()}
    assert list(rows) == list(TUNINGS)
    assert "NPU750" in rows["fused-optimizer"]
    assert rows["max-steps"].startswith("max-steps=100 ")
    assert rows["step-time"].endswith("; by name only")
    table = json.loads(transplt("rules", "--tunings", "--format=json", cwd=tmp_path).stdout)
    assert [row["name"] for row in table] == list(TUNINGS)
    assert {row["name"] for row in table if row["all"]} == {name for name, _ in ALL}
    assert all(set(row["versions"]) <= set(TORCH_VERSIONS) for row in table)
