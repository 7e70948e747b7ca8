"""Every pair of options, run twice: the second run changes nothing, and where nothing was left to do, it says so."""

from __future__ import annotations

from functools import cache
from itertools import combinations_with_replacement
from typing import Any

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase, given
from hypothesis import strategies as st

from tests.fuzz import corpora, seeds
from tests.fuzz.held import PATH, compiles
from tests.fuzz.limits import bounded
from tests.fuzz.mutations import mutated
from tests.fuzz.programs import programs
from transplt.base.finding import FileResult, Level, Status
from transplt.base.settings import TORCH_VERSIONS, Settings
from transplt.engine.engine import index_source, join_facts, migrate_source
from transplt.fixers.adaptors.table import parse_adaptors
from transplt.fixers.tunings.table import parse_tunings

#: What asks for more than a migration does, by the options of the command line.
OPTIONS: dict[str, dict[str, Any]] = {
    "--style portable": {"style": "portable"},
    "--torch-version 2.1": {"torch_version": "2.1"},
    "-sim": {"similar": True},
    "--unsafe-fixes": {"unsafe_fixes": True},
    "-s": {"specify_device": True},
    "--texts": {"texts": True},
    "--torch-npu-import each-file": {"torch_npu_import": "each-file"},
    "--amp native": {"amp": "native"},
    "--amp apex": {"amp": "apex"},
    "--tune all": {"tune": parse_tunings("all", TORCH_VERSIONS[-1])},
    "--adapt all": {"adapt": parse_adaptors("all", TORCH_VERSIONS[-1])},
    "distributed": {"entry": PATH},
}
#: Of the two kinds of `--amp` one is asked for.
_PAIRS = [pair for pair in combinations_with_replacement(OPTIONS, 2) if {*pair} != {"--amp native", "--amp apex"}]
#: Where what fixers take their turn at meets in one statement, and imports stand where no formatter puts them.
PIECES = tuple(
    text.encode()
    for text in (
        "import torch\nimport flash_attn, xformers.ops\ny = flash_attn.flash_attn_func(q, k, v)\nz = xformers.ops.memory_efficient_attention(q, k, v)\n",
        "import flash_attn, xformers.ops\n",
        "import flash_attn, apex, deepspeed, xformers.ops as xo, numpy\nx = xo.memory_efficient_attention(q, k, v).cuda()\n",
        "from flash_attn import flash_attn_func; from xformers.ops import memory_efficient_attention\nflash_attn_func(q, k, v)\n",
        "with open('a') as f:\n    pass\nimport torch\nwith torch.autocast('cuda'):\n    pass\nfor x, y in l:\n    o.zero_grad(); loss = f(m(x.cuda()), y); loss.backward(); o.step()\n",
        "def g(): pass\nwith torch.autocast('cuda'):\n    loss = g(); loss.backward()\nimport torch\nm = torch.compile(f).cuda()\no = torch.optim.AdamW(m.parameters())\n",
        "import torch\nfrom torch.cuda.amp import autocast, GradScaler\ns = GradScaler()\nl = torch.utils.data.DataLoader(d, pin_memory=True)\nfor x in l:\n    with autocast():\n        loss = m(x.cuda()).sum()\n    s.scale(loss).backward(); s.step(o); s.update()\n",
    )
)  # fmt: skip


@cache
def _stored() -> tuple[bytes, ...]:
    paths = [path for name in ("python", "library") for path in corpora.entries(name)]
    return tuple(path.read_bytes() for path in paths)


INPUTS = st.one_of(
    st.sampled_from(PIECES),
    mutated(PIECES, nodes=True),
    st.deferred(lambda: st.sampled_from(_stored())),
    mutated(seeds.python_files(), nodes=True),
    mutated(seeds.PIECES, nodes=True, most=6),
    programs(),
)


def hold_twice(data: bytes, settings: Settings) -> None:
    first = _migrated(data, settings)
    if first.status is not Status.OK or not compiles(first.data):
        return
    second = _migrated(first.data, settings)
    assert second.data == first.data, f"a second run changes the output: {_applied(second)}"
    assert _left(first) or not _left(second), f"nothing left to do, but in a second run: {_left(second)}"


def _migrated(data: bytes, settings: Settings) -> FileResult:
    return migrate_source(data, PATH, settings, join_facts([index_source(data, PATH, settings)], settings))


def _applied(result: FileResult) -> list[str]:
    return [f"{each.code} {each.message}" for each in result.findings if each.applied]


def _left(result: FileResult) -> set[str]:
    return {
        each.code
        for each in result.findings
        if each.level in (Level.MANUAL, Level.UNKNOWN) and not each.applied and not each.ignored
    }


def _settings(*names: str) -> Settings:
    chosen: dict[str, Any] = {"torch_version": TORCH_VERSIONS[-1]}
    for name in names:
        chosen |= OPTIONS[name]
    return Settings(**chosen)


def _try(pair: tuple[str, str], number: int) -> None:
    @hypothesis.settings(
        max_examples=number, database=None, deadline=None, derandomize=True, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(INPUTS)
    def try_one(data: bytes) -> None:
        with bounded(len(data)):
            hold_twice(data, _settings(*pair))

    try_one()


@pytest.mark.parametrize("pair", _PAIRS, ids=" ".join)
def test_a_second_run_of_two_options(pair: tuple[str, str]) -> None:
    _try(pair, 2)


@pytest.mark.parametrize("data", PIECES)
@pytest.mark.parametrize("name", OPTIONS)
def test_a_second_run_of_one_option(name: str, data: bytes) -> None:
    hold_twice(data, _settings(name))


@pytest.mark.slow
@pytest.mark.parametrize("pair", _PAIRS, ids=" ".join)
def test_a_second_run_of_two_options_over_the_corpus(pair: tuple[str, str]) -> None:
    for data in (*_stored(), *PIECES, *seeds.PIECES, *seeds.python_files()):
        hold_twice(data, _settings(*pair))
    _try(pair, 60)
