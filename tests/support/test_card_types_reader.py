"""Sources in C++ followed with types: what is refused on every way, and what may not be."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.extra
pytest.importorskip("tree_sitter_cpp", reason="needs the extra: pip install '.[dev]'")
sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from card_types import sources  # noqa: E402
from card_types.follow import Follower, GivenUp, Refusal  # noqa: E402
from card_types.values import CHIPS, UNKNOWN, Tensor  # noqa: E402

LISTS = """
static const std::initializer_list<op::DataType> OLD = {op::DataType::DT_FLOAT, op::DataType::DT_FLOAT16};
static const std::initializer_list<op::DataType> NEW = {op::DataType::DT_FLOAT, op::DataType::DT_BF16};
"""


def end(tmp_path: Path, body: str, dtype: str = "float64", card: str = "910B", before: str = "") -> str:
    """How aclnnX ends with a tensor of a type: "refused", "taken", "AI CPU", or "not followed"."""
    path = tmp_path / "aclnn_x.cpp"
    head = "aclnnStatus aclnnXGetWorkspaceSize(const aclTensor* self, bool flag)"
    path.write_text(f"{LISTS}\n{before}\n{head} {{\n{body}\n}}\n")
    index = sources.Index([sources.read(path, "aclnn_x.cpp")])
    try:
        _, state = Follower(index, CHIPS[card]).call(
            index.functions["aclnnXGetWorkspaceSize"][0], [Tensor(dtype), UNKNOWN]
        )
    except Refusal as refusal:
        assert refusal.function == "aclnnX"
        return "refused"
    except GivenUp:
        return "not followed"
    return "AI CPU" if state["#cpu"] else "taken"


CHECK = "OP_CHECK_DTYPE_NOT_SUPPORT(self, NEW, return false);"
ASKS = "static bool Check(const aclTensor* t) { OP_CHECK_DTYPE_NOT_SUPPORT(t, NEW, return false); return true; }"
AI_CPU = """
static bool OnCore(const aclTensor* t) { return CheckType(t->GetDataType(), NEW); }
const aclTensor* Exp(const aclTensor* t) {
    if (OnCore(t)) { auto r = ADD_TO_LAUNCHER_LIST_AICORE(Exp, OP_INPUT(t)); return t; }
    auto r = ADD_TO_LAUNCHER_LIST_AICPU(Exp, OP_INPUT(t));
    return t;
}
"""


@pytest.mark.parametrize(
    ("body", "before", "ends"),
    [
        (CHECK, "", "refused"),
        ("CHECK_RET(Check(self), ACLNN_ERR_PARAM_INVALID); return ACLNN_SUCCESS;", ASKS, "refused"),
        (f"if (self->IsEmpty()) {{ return ACLNN_SUCCESS; }}\n{CHECK}", "", "refused"),  # of those that are not empty
        (f"if (self == nullptr) {{ return ACLNN_SUCCESS; }}\n{CHECK}", "", "refused"),
        (f"for (size_t i = 0; i < self->Size(); i++) {{ {CHECK} }}", "", "refused"),
        ('if (self->GetDataType() == DT_DOUBLE) { OP_LOGE(ACLNN_ERR_PARAM_INVALID, "no"); }', "", "refused"),
        # A way on which nothing is refused: nothing is said.
        (f"if (flag) {{ return ACLNN_SUCCESS; }}\n{CHECK}", "", "taken"),
        (f"if (flag) {{ {CHECK} }}", "", "taken"),
        (f"auto cast = l0op::Cast(self, op::DataType::DT_FLOAT);\nself = cast;\n{CHECK}", "", "taken"),
        (f"for (int i = 0; i < flag; i++) {{ {CHECK} }}", "", "taken"),
        ("OP_CHECK_DTYPE_NOT_SUPPORT(self, GetList(), return false);", "", "taken"),
        (f"Change(&self);\n{CHECK}", "static void Change(const aclTensor*& t) { t = Other(); }", "taken"),
        ("CheckType(self->GetDataType(), NEW);", "", "taken"),
        ("", "", "taken"),
        # What no grammar of C++ reads.
        ("self @ 3 % ;", "", "not followed"),
        ("Exp(self); return ACLNN_SUCCESS;", AI_CPU, "AI CPU"),
        ("if (flag) { Exp(self); } return ACLNN_SUCCESS;", AI_CPU, "taken"),
    ],
)
def test_what_holds_on_every_way_is_said(tmp_path: Path, body: str, before: str, ends: str) -> None:
    assert end(tmp_path, body, before=before) == ends


BY_CARD = """
auto arch = op::GetCurrentPlatformInfo().GetCurNpuArch();
const auto& list = (arch == NpuArch::DAV_2201 || IsRegBase(arch)) ? NEW : OLD;
OP_CHECK_DTYPE_NOT_SUPPORT(self, list, return false);
"""
BY_CHIP = """
if (op::GetCurrentPlatformInfo().GetSocVersion() < op::SocVersion::ASCEND910B) {
    OP_LOGE(ACLNN_ERR_PARAM_INVALID, "no");
}
"""


@pytest.mark.parametrize(
    ("body", "dtype", "refusing"),
    [
        (BY_CARD, "bfloat16", {"910", "310P"}),
        (BY_CARD, "float16", {"910B", "A3", "950"}),
        (BY_CHIP, "float32", {"910"}),
    ],
)
def test_lists_are_told_apart_by_card(tmp_path: Path, body: str, dtype: str, refusing: set[str]) -> None:
    assert {card for card in CHIPS if end(tmp_path, body, dtype, card) == "refused"} == refusing


def test_what_another_torch_compiles_is_not_read() -> None:
    text = b"#if VERSION_BETWEEN(V2R1, V2R7)\nold;\n#else\nnew;\n#endif\nboth;\n"
    assert sources.for_version(text, (2, 8)).split() == [b"new;", b"both;"]
    assert sources.for_version(text, (2, 1)).split() == [b"old;", b"both;"]
