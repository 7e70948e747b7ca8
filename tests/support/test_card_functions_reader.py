"""Arguments of CANN's functions as they are read from prototypes, pages and calls."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.extra
pytest.importorskip("tree_sitter_cpp", reason="needs the extra: pip install '.[dev]'")
sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from card_functions import call_sites, prototypes  # noqa: E402
from card_types import sources  # noqa: E402


def passed(tmp_path: Path, body: str) -> str:
    """What a function of op-plugin with this body passes to aclnnX."""
    (tmp_path / "a.cpp").write_text(
        "std::tuple<double, int64_t> pair_of(int64_t n) { return {0.5, n}; }\n"
        "at::Tensor f(const at::Tensor& self, at::IntArrayRef size, c10::optional<double> scale, at::Tensor& out) {"
        f"{body} return out; }}"
    )
    index = sources.Index([sources.read(tmp_path / "a.cpp", "a.cpp")])
    [(name, arguments, _)] = call_sites.calls(index)
    assert name == "aclnnX"
    return " ".join(map(str, arguments))


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("EXEC_NPU_CMD(aclnnX, self, size, out);", "self:t size:a out:t>"),
        ("double s = scale.value_or(0); EXEC_NPU_CMD(aclnnX, s);", "s:d"),
        ("auto s = static_cast<float>(scale.value_or(0)); EXEC_NPU_CMD(aclnnX, s);", "s:f"),
        ("float s = 1; { bool s = true; EXEC_NPU_CMD(aclnnX, s); }", "s:b"),
        ("auto [p, n] = pair_of(3); EXEC_NPU_CMD(aclnnX, p, n);", "p:d n:i"),
        ("at::IntArrayRef dims(size); EXEC_NPU_NO_FORMAT_CHECK_CMD(aclnnX, dims);", "dims:a"),
        ("char mode[20] = {0}; EXEC_NPU_CMD(aclnnX, mode);", "mode:z"),
        ("at::Tensor y = npu_preparation::apply_tensor(self); EXEC_NPU_CMD(aclnnX, self, y);", "self:t y:t>"),
        ("auto y = unknown(self); EXEC_NPU_CMD(aclnnX, y);", "y:"),
        ("EXEC_UPDATE_NPU_NO_FORMAT_CHECK_CMD(aclnnX, address, bytes, self);", "self:t"),
    ],
)
def test_arguments_of_a_call_have_the_types_of_what_is_passed(tmp_path: Path, body: str, told: str) -> None:
    assert passed(tmp_path, body) == told


def test_a_prototype_and_its_page_say_what_is_written(tmp_path: Path) -> None:
    (tmp_path / "aclnn_x.h").write_text(
        "aclnnStatus aclnnXGetWorkspaceSize(const aclTensor* selfRef, /* (a) */ const aclTensor *maskOptional,\n"
        " int64_t keepDim, aclTensor* work, const aclTensor* yOut, uint64_t* workspaceSize, aclOpExecutor** executor);"
    )
    (tmp_path / "aclnnX.md").write_text(
        "## aclnnXGetWorkspaceSize\n<tr><td>work</td>\n<td>\u8f93\u5165</td>\n</tr>\n"
        "  - yOut\uff08aclTensor*\uff0c\u8ba1\u7b97\u8f93\u51fa\uff09\uff1a\n"
    )
    said = prototypes.directions(tmp_path)
    [(name, arguments)] = prototypes.read(tmp_path, ".h")
    told = [str(prototypes.marked(name, each, said.get((name, each.name)))) for each in arguments]
    assert told == ["self:t&", "mask:t?", "keep_dim:i", "work:t", "y_out:t>"]
