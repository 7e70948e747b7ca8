"""Makefiles: recipe lines as shell, with what make puts in left alone; variables in all places or in none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.files.recipes import migrated, said

OLD, NEW = "CUDA_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES"
EDITED = [
    f"train:\n\t{OLD}=0 python a.py\n",
    f"train: data\n\t@-{OLD}=0,1 torchrun a.py \\\n\t\t--n 2\n",
    f"train:\n\t{OLD}=$(GPU) python $(word 1,a b) $@ $<\n",
    f"train:\n\tfor i in 1 2; do {OLD}=$$i python a.py; done\n",
    f"train:\n\techo $${OLD}\n",
    f"{OLD} ?= 0\ntrain:\n\techo $({OLD})\n",
    f"export {OLD} = 0,1\nall:\n\tpython a.py\n",
    f"{OLD} := 0\nexport {OLD}\n",
    f"train: export {OLD} = 0\ntrain:\n\tpython a.py\n",
    f"all:\r\n\t{OLD}=0 python a.py\r\n",
    f"# one\rline\nexport a_long_name_of_a_variable_in_small_letters = 1\nall:\n\t{OLD}=0 python a.py\n\r",
    f"x = a\rb\n{OLD} ?= 0\nall: \n\techo $({OLD})\n",
]


@pytest.mark.parametrize("text", EDITED)
def test_what_is_edited(text: str) -> None:
    assert migrated("Makefile", text).data.decode() == text.replace(OLD, NEW)


KEPT = [
    "all:\n\tpython a.py\n",
    f"# {OLD}=0\nall:\n\tpython a.py # {OLD}\n",
    f"{OLD} ?= 1,0\nall:\n\techo $({OLD})\n",  # not in ascending order
    f"{OLD} ?= 0\nifdef {OLD}\nx = 1\nendif\n",  # a place that stays
    f"{OLD} ?= 0\nall:\n\techo $(subst a,b,$({OLD}_X)) {OLD}\n",
    f"\t{OLD}=0 python a.py\n",  # no recipe
    f".RECIPEPREFIX = >\nall:\n\t{OLD}=0 python a.py\n",
    "NVCC = nvcc\nCUDA_HOME ?= /usr/local/cuda\nall:\n\t$(NVCC) -c a.cu\n",
    "define X\ncuda\nendef\n",
    f"all:\r\t{OLD}=0 python a.py\r",  # one line for make
    f"{OLD} = 0\r1\nall:\n\techo $({OLD})\n",
    f"{OLD} = 0 \r",
]


@pytest.mark.parametrize("text", KEPT)
def test_what_stays(text: str) -> None:
    assert not migrated("Makefile", text).changed
    assert not migrated("rules.mk", text).changed


def test_other_builds_and_styles_stay() -> None:
    assert not migrated("CMakeLists.txt", EDITED[0]).changed
    assert not migrated("Makefile", EDITED[0], style="portable").changed


def test_packages_of_cuda_are_said() -> None:
    assert said(migrated("Makefile", "deps:\n\tsudo apt-get install -y cuda-toolkit-$(V)\n")) == [(2, "NPU855")]


_LINES = st.lists(
    st.sampled_from(
        ["a:", "\tCUDA_VISIBLE_DEVICES=$(X) b \\", "\t\tc $$d", "CUDA_VISIBLE_DEVICES ?= 0",
         "export CUDA_VISIBLE_DEVICES",
         "\techo $(CUDA_VISIBLE_DEVICES)", "# é", "", "\t@nvidia-smi", "x = $(shell nvidia-smi) \\", "\t'",
         "ifdef A", "$("]
    ),
    max_size=12,
)  # fmt: skip


@given(_LINES, st.sampled_from(["\n", "\r\n", "\r", "\n\r", "\\\r", "\x0c", "\u2028", "\x85"]))
def test_any_lines(lines: list[str], end: str) -> None:
    text = end.join(lines)
    result = migrated("Makefile", text)
    if not any(each.applied for each in result.findings):
        assert result.data == text.encode()
