"""Actions: each finding that leaves work in exactly one, what blocks first on top, the same for the same findings."""

from __future__ import annotations

import io
import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openpyxl import load_workbook

from tests.test_reports import result_of
from transplt import migrate_source
from transplt.base.finding import Effort, Finding, Level, Operation, Replacement, Span
from transplt.engine.actions.action import Action, Place
from transplt.engine.actions.actions import actions_of, total_hours
from transplt.engine.actions.effort import percent
from transplt.engine.actions.groups import Groups, as_their_actions, portable_advice
from transplt.engine.actions.joining import MOST
from transplt.engine.actions.kernels import home_of, plain_name
from transplt.project.options import Options, make_plan
from transplt.project.report.action_lines import action_lines, first_actions, how_many, place_text
from transplt.project.report.analysis_reports import analysis_text
from transplt.project.report.analysis_summary import summarize
from transplt.project.report.html import of_python, render_report
from transplt.project.report.summary import summary
from transplt.project.report.unsupported_op import render_unsupported
from transplt.project.survey.measure import row_of
from transplt.project.tree import analyse_tree, diff_tree
from transplt.rules.pages import BLOCKS, GROUPED_BY, all_codes, load
from transplt.rules.tables import read_table, rules_dir

ROOT = Path(__file__).resolve().parent.parent


def at(path: str, line: int, code: str, api: str = "", message: str = "m", **more: object) -> Finding:
    page = load(code)
    span = Span(line, 1, line, 5, line * 100, line * 100 + 4)
    level = Level.UNKNOWN if page.level is Level.UNKNOWN else Level.MANUAL
    made = Finding(path, span, code, level, message, api, page.effort, "do it")
    return replace(made, **more)  # type: ignore[arg-type]


def line_of(path: str, line: int, code: str, *names: str) -> Finding:
    """A line of a file that is not Python, as the scan of these files reports it."""
    kind = next(row for row in read_table("support/files.json")["kinds"].values() if row["code"] == code)
    details = tuple(("name", name) for name in names)
    return at(path, line, code, names[0], kind["message"].replace("{names}", ", ".join(names)), details=details)


def titles(actions: Sequence[Action]) -> list[str]:
    return [action.title for action in actions]


# --- the data --------------------------------------------------------------------------------------------------------


def test_every_code_says_what_it_blocks_and_what_to_do(subtests: pytest.Subtests) -> None:
    for code in all_codes():
        with subtests.test(code):
            page, head = load(code), (rules_dir() / "diagnostics" / f"{code}.md").read_text().split("---")[1]
            assert "\nblocks: " in head
            assert page.blocks in BLOCKS and page.by in GROUPED_BY
            if page.level in (Level.MANUAL, Level.UNKNOWN):
                assert page.action, "a page of findings for a person says what the person does"
            if page.action:
                assert page.action[0].isupper() and page.action[-1] != "."
                assert not re.search(r"\bother\b", page.action.lower()), "a thing to do is named"


def test_the_substitutions_are_in_form() -> None:
    table = read_table("support/substitutions.json")
    for row in table["entries"]:
        title = load(row["page"]).action if "page" in row else row["title"]
        assert row["blocks"] in BLOCKS and title[0].isupper()
        kinds = {"NPU80", "NPU81", "NPU20", "NPU22", "NPU29", "NPU84"}
        assert "style" in row or {load(code).code[:5] for code in row["codes"]} <= kinds
        assert re.compile(row["pattern"]).groups == bool(row.get("each"))
        Effort(row.get("effort", "low"))


#: Words for a project that is for NPUs alone, and pages of what the portable style does not write.
_NPUS_ALONE = re.compile(r"torch\.npu|\.npu\b|(?i:write|use|becomes) (?:npu|hccl)\b|ASCEND\w+ instead|=\"npu")
_NOT_PORTABLE = {"NPU157", "NPU234", "NPU558"}


@pytest.mark.parametrize("api", ["torch.cuda.graph", "cuda", "nccl", "CUDA_VISIBLE_DEVICES", "1.13+cu117"])
def test_titles_of_the_portable_style_are_not_for_npus_alone(api: str) -> None:
    for code in {*all_codes()} - _NOT_PORTABLE:
        (action,) = actions_of([at("a.py", 1, code, api, level=Level.MANUAL)], "portable")
        assert not _NPUS_ALONE.search(action.title), code
        assert "Do by hand" not in action.title or not portable_advice(code, api), code


# --- what always holds -----------------------------------------------------------------------------------------------

PATHS = (
    "train.py", "pkg/model.py", "tests/test_model.py", "setup.py", "ops/setup.py", "ops/corr.py",
    "ops/src/corr_cuda.cu", "ops/src/corr.cpp", "ops/src/two_kernel.cu", "third_party/apex/apex/amp.py",
    "third_party/apex/csrc/a.cu", "uv.lock", "requirements.txt",
    "conf/a.yaml", "run.sh", "Dockerfile", "Makefile", "demo.ipynb", "odd\udcff.py",
)  # fmt: skip
APIS = (
    "", "torch.nn.RNN", "torch.nn.utils.rnn.pack_padded_sequence", "flash_attn.flash_attn_func", "corr_cuda", "nccl",
    "cuda:0", "CUDA_VISIBLE_DEVICES", "nvidia/cuda:12.1", "1.13+cu117", "use_cuda", "cupy-cuda12x", "NVIDIA",
)  # fmt: skip
EDIT = Replacement(Operation.MODIFY, "a", "b")
MADE = st.builds(
    lambda path, line, code, api, level, effort, edit, applied, ignored: at(
        path, line, code, api, f"m {api} (corr_cuda.run)", level=level, effort=effort, edit=EDIT if edit else None,
        applied=applied, ignored="so" if ignored else "",
    ),
    st.sampled_from(PATHS), st.integers(1, 9), st.sampled_from(all_codes()), st.sampled_from(APIS),
    st.sampled_from(Level), st.sampled_from((None, *Effort)), st.booleans(), st.booleans(), st.booleans(),
)  # fmt: skip


@given(st.lists(MADE, max_size=60), st.randoms(use_true_random=False))
def test_each_open_finding_is_in_exactly_one_action(findings: list[Finding], shuffled: random.Random) -> None:
    actions = actions_of(findings)
    held = Counter(finding for action in actions for finding in action.findings)
    assert held == Counter(finding for finding in findings if finding.open)
    for action in actions:
        assert sum(place.count for place in action.places) == action.count == len(action.findings) > 0
        assert {place.path for place in action.places} == {finding.path for finding in action.findings}
        assert set(action.codes) == {finding.code for finding in action.findings}
        assert action.title and "{name}" not in action.title and action.hours > 0
        assert not re.search(r"\bother\b", action.title.lower())
        parts = Counter(finding for part in action.parts for finding in part.findings)
        assert not parts or parts == Counter(action.findings)
    ranks = [  # what a proof saw comes first, what is cosmetic last
        ("NPU793" not in action.codes, action.stands == "tidy", action.aside,
         BLOCKS.index("later" if action.contained else action.blocks))
        for action in actions
    ]  # fmt: skip
    assert ranks == sorted(ranks) and sum("transplt check --fix" not in each for each in titles(actions)) <= MOST
    assert len(set(titles(actions))) == len(actions)
    again = list(findings)
    shuffled.shuffle(again)
    assert actions_of(again) == actions


def test_what_stops_at_import_comes_first() -> None:
    found = [
        at("a.py", 1, "NPU520", "torch.nn.RNN"),
        *(at("a.py", line, "NPU701", effort=Effort.HIGH) for line in (2, 3)),
        at("tests/test_a.py", 4, "NPU901"),
        at("b.py", 5, "NPU901"),
        at("a.py", 6, "NPU520", "torch.nn.GRU"),
    ]
    assert [action.blocks for action in actions_of(found)] == ["import", "first step", "first step", "slow"]


@given(st.lists(MADE, max_size=40))
def test_a_finding_more_makes_no_action_vanish_from_the_count(findings: list[Finding]) -> None:
    more = [*findings, at("z.py", 1, "NPU507")]
    assert sum(action.count for action in actions_of(more)) == sum(action.count for action in actions_of(findings)) + 1


# --- what is one thing -----------------------------------------------------------------------------------------------


def test_one_c_file_is_no_year_of_work() -> None:
    found = [line_of("ops/src/corr_kernel.cu", line, "NPU806", f"cudaCall{line}") for line in range(1, 304)]
    (action,) = actions_of(found)
    assert action.title == "Replace the CUDA kernel corr (ops), or rewrite it for the NPU"
    assert (action.blocks, action.count, len(action.places), action.hours) == ("first step", 303, 1, 8.0)


def test_sources_build_and_import_of_an_extension_are_one_action() -> None:
    found = [
        line_of("alt_corr/correlation.cpp", 5, "NPU806", "CHECK_CUDA"),
        line_of("alt_corr/correlation_kernel.cu", 2, "NPU806", "cuda.h"),
        at("alt_corr/setup.py", 2, "NPU550", "torch.utils.cpp_extension.CUDAExtension"),
        at("core/corr.py", 6, "NPU553", "alt_corr"),
    ]
    (action,) = actions_of(found)
    assert action.title == "Replace the CUDA kernel correlation (alt_corr), or rewrite it for the NPU"
    assert action.blocks == "import"


TRIED = "try:\n    import corr_cuda\n    HAVE = True\nexcept ImportError:\n    corr_cuda, HAVE = None, False\n"


@pytest.mark.parametrize(
    ("source", "blocks"),
    [
        ("import corr_cuda\n", "import"),
        ("try:\n    import corr_cuda\nexcept ImportError:\n    corr_cuda = None\n", "later"),
        ("try:\n    import corr_cuda\nexcept ImportError:\n    raise SystemExit\n", "import"),
        # plain torch behind it
        (TRIED + "def f(x):\n    if corr_cuda is None:\n        return x\n    return corr_cuda.run(x)\n", "slow"),
        (TRIED + "y = corr_cuda.run(x) if HAVE else x\n", "slow"),
        (TRIED + "class F:\n    def g(x):\n        corr_cuda.run(x)\ndef f(x):\n    if HAVE:\n        return F.g(x)\n",
         "slow"),
        ("try:\n    from corr_cuda import run\nexcept ImportError:\n    from corr_torch import run\n", "slow"),
        ("try:\n    from corr_cuda import run\nexcept ImportError:\n    def run(x): return x\nrun(x)\n", "slow"),
        # what calls it does not ask
        (TRIED + "def f(x):\n    return corr_cuda.run(x)\n", "later"),
        (TRIED + "if HAVE:\n    corr_cuda.run(x)\ncorr_cuda.run(y)\n", "later"),
        (TRIED + "def f(x):\n    if x.is_large:\n        return corr_cuda.run(x)\n", "later"),
        (TRIED + "class F:\n    def g(x):\n        corr_cuda.run(x)\ndef f(x):\n    return F.g(x)\n", "later"),
    ],
)  # fmt: skip
def test_an_extension_that_may_be_missing_stops_nobody_at_the_start(source: str, blocks: str) -> None:
    found = migrate_source(source).findings
    assert [(action.title, action.blocks) for action in actions_of(found)] == [
        ("Replace the CUDA extension corr_cuda", blocks),
    ]  # fmt: skip


def built(path: str, name: str, *sources: str) -> Finding:
    """The remark on an extension that a build names."""
    message = f"the extension {name} is built from {', '.join(sources) or 'files that the build looks for'}"
    return at(path, 1, "NPU860", name, message, level=Level.INFO, details=tuple(("source", each) for each in sources))


@pytest.mark.parametrize(("other", "blocks"), [("slow", "slow"), ("later", "first step"), ("", "import")])
def test_kernels_that_a_program_does_without_make_it_slow(other: str, blocks: str) -> None:
    found = [line_of("csrc/corr_cuda.cu", 2, "NPU806", "cuda.h"), at("setup.py", 3, "NPU550", "CUDAExtension"),
             at("a.py", 2, "NPU553", "corr_cuda", blocks="slow"), at("b.py", 2, "NPU553", "corr_cuda", blocks=other),
             built("setup.py", "corr_cuda", "csrc/corr_cuda.cu")]  # fmt: skip
    assert [action.blocks for action in actions_of(found)] == [blocks]


@pytest.mark.parametrize(("blocks", "expected"), [("slow", "slow"), ("", "first step"), ("import", "import")])
def test_kernels_that_a_file_compiles_are_one_thing_with_it(blocks: str, expected: str) -> None:
    found = [line_of("src/a_cuda.cu", 2, "NPU806", "cuda.h"), built("train.py", "a", "src/a_cuda.cu"),
             at("train.py", 4, "NPU554", "torch.utils.cpp_extension.load", blocks=blocks)]  # fmt: skip
    assert [(action.title, action.blocks) for action in actions_of(found)] == [
        ("Replace the CUDA kernel a (src), or rewrite it for the NPU", expected)
    ]


def test_kernels_that_setup_builds_too_are_one_thing_with_what_compiles_them() -> None:
    found = [line_of("grid/src/grid.cu", 2, "NPU806", "cuda.h"), built("grid/setup.py", "_grid", "src/grid.cu"),
             built("grid/backend.py", "_grid_encoder", "src/grid.cu"), at("grid/backend.py", 4, "NPU554")]  # fmt: skip
    assert titles(actions_of(found)) == ["Replace the CUDA kernel grid, or rewrite it for the NPU"]
    found += [at("grid/setup.py", 3, "NPU550", "torch.utils.cpp_extension.CUDAExtension")]
    assert titles(actions_of(found)) == ["Replace the CUDA kernel grid, or rewrite it for the NPU"]


@pytest.mark.parametrize(
    ("more", "count"),
    [
        ([], 1),
        ([built("setup.py", "pk.cpu", "pk/cpu/nms.cpp")], 1),  # C++ beside it is built as it is
        ([built("setup.py", "pk.fast", "pk/fast/fast.cu"), line_of("pk/fast/fast.cu", 2, "NPU806", "cuda.h")], 3),
    ],
)
def test_one_extension_its_sources_its_build_and_its_import_are_one_thing(more: list[Finding], count: int) -> None:
    found = [line_of("pk/gpu/nms_kernel.cu", 2, "NPU806", "cuda.h"), built("setup.py", "pk.gpu"),
             at("setup.py", 19, "NPU550", "torch.utils.cpp_extension.CUDAExtension"),
             at("pk/a.py", 3, "NPU553", "gpu")]  # fmt: skip
    assert len(actions_of([*found, *more])) == count


@pytest.mark.parametrize(("option", "blocks"), [("CUDA_HOME", "later"), ("", "import")])
def test_a_build_that_asks_for_cuda_first_stops_nothing(option: str, blocks: str) -> None:
    found = [at("setup.py", 19, "NPU550", "torch.utils.cpp_extension.CUDAExtension", option=option)]
    assert [action.blocks for action in actions_of(found)] == [blocks]


def test_a_place_names_the_kernels_of_its_file() -> None:
    found = [line_of("ops/two.cu", 3, "NPU806", "cuda.h"), line_of("ops/two.cu", 9, "NPU806", "cudaMalloc")]
    said = "2 CUDA kernels: fast, slow"
    found += [at("ops/two.cu", 5, "NPU557", message=said, level=Level.INFO, details=(("kernels", said),))]
    (action,) = actions_of(found)
    assert [place_text(place) for place in action.places] == ["ops/two.cu:3, 9 (2 CUDA kernels: fast, slow)"]


def test_kernels_are_told_apart_and_their_build_is_one_more() -> None:
    found = [
        line_of("pk/ops/dcn/src/deform_conv_cuda_kernel.cu", 1, "NPU806", "cuda.h"),
        line_of("pk/ops/dcn/src/deform_conv_ext.cpp", 2, "NPU806", "WITH_CUDA"),
        at("pk/ops/dcn/deform_conv.py", 14, "NPU554", "torch.utils.cpp_extension.load"),
        line_of("pk/ops/act/src/fused_act_kernel.cu", 1, "NPU806", "cuda.h"),
        at("setup.py", 90, "NPU550", "torch.utils.cpp_extension.CUDAExtension"),
        at("setup.py", 91, "NPU208", message="'nvcc' belongs to the CUDA toolkit"),
        at("pk/other.py", 3, "NPU553", "somebody_cuda"),
    ]
    assert Counter({action.title: action.count for action in actions_of(found)}) == {
        "Replace the CUDA kernel deform_conv (pk/ops/dcn), or rewrite it for the NPU": 3,
        "Replace the CUDA kernel fused_act (pk/ops/act), or rewrite it for the NPU": 1,
        "Remove the CUDA build from setup.py": 2,
        "Replace the CUDA extension somebody_cuda": 1,
    }


def test_kernels_that_an_adaptor_writes_leave_their_sources() -> None:
    source, build = line_of("csrc/a.cu", 1, "NPU806", "cuda.h"), built("setup.py", "ops_ext", "csrc/a.cu")
    called = at("ops.py", 3, "NPU553", "ops_ext", adaptor="kernels")
    (action,) = actions_of([source, build, called])
    assert action.how.startswith("`--adapt kernels` writes what is called with operators of PyTorch")
    assert "`--adapt kernels` writes what is called, slower" in "\n".join(first_actions([action], 3))
    (other,) = actions_of([source, build, replace(called, adaptor="")])
    assert "--adapt" not in other.how


def test_an_image_of_the_portable_style_stays_beside_a_second_one() -> None:
    found = [at("Dockerfile", 2, "NPU850"), at("Dockerfile", 1, "NPU805", "nvidia_icd.json")]
    assert ["Dockerfile.npu" in each.how for each in actions_of(found, "portable")] == [True]
    assert ["Dockerfile.npu" in each.how for each in actions_of(found)] == [False]


def sources_of(*paths: str) -> list[Finding]:
    return [line_of(path, 3, "NPU806", "cuda.h") for path in paths]


def test_what_the_kernels_of_a_file_need_is_one_port() -> None:
    grid, assembly = at("a.py", 4, "NPU560"), at("a.py", 9, "NPU564")
    (port,) = actions_of([grid, assembly, at("a.py", 12, "NPU560")])
    assert port.title == "Port the Triton kernels in a.py"
    assert (port.blocks, port.count) == ("first step", 3)
    assert "rewrite assembly in Triton kernels as tl operations" in port.how
    alone = actions_of([grid, at("b.py", 4, "NPU560"), at("c.py", 1, "NPU512", "triton")])
    assert titles(alone) == [load("NPU512").action.replace("{name}", "triton"), load("NPU560").action]


def test_all_sources_of_an_extension_are_one_action_with_its_build_and_its_imports() -> None:
    found = sources_of("csrc/scan/fwd.cu", "csrc/scan/bwd.cu", "csrc/scan/scan.cpp", "csrc/scan/scan.h")
    found += [
        built("setup.py", "scan_cuda", "csrc/scan/scan.cpp", "csrc/scan/fwd.cu", "csrc/scan/bwd.cu"),
        at("setup.py", 9, "NPU550", "torch.utils.cpp_extension.CUDAExtension"),
        at("pk/ops.py", 4, "NPU553", "scan_cuda"),
    ]
    (action,) = actions_of(found)
    assert action.title == "Replace the CUDA kernels of scan_cuda (csrc/scan), or rewrite them for the NPU"
    assert (action.blocks, action.count) == ("import", 6)
    assert action.hours > 16, "two kernels"


def test_a_build_that_looks_for_its_sources_has_those_of_its_package() -> None:
    found = sources_of("pk/layers/csrc/nms/nms.cu", "pk/layers/csrc/roi/roi.cu", "tools/deploy/main.cpp")
    found += sources_of("extra/csrc/swap.cu")
    found += [
        built("setup.py", "pk._C"),
        at("setup.py", 9, "NPU550", "torch.utils.cpp_extension.CUDAExtension"),
        at("pk/layers/nms.py", 4, "NPU553", "pk._C"),
        built("extra/setup.py", "extra._C"),
        at("extra/pk/swap.py", 4, "NPU553", "_C"),
    ]
    assert Counter({action.title: action.count for action in actions_of(found)}) == {
        "Replace the CUDA kernels of pk._C, or rewrite them for the NPU": 4,
        "Replace the CUDA kernel swap (extra), or rewrite it for the NPU": 2,
        "Port the C++ code in tools/deploy": 1,
    }


def test_extensions_of_one_build_are_told_apart_and_their_build_is_one_more() -> None:
    found = sources_of("ops/a/src/a.cpp", "ops/a/src/a_kernel.cu", "ops/b/src/b_kernel.cu", "ops/a/src/a_cpu.cpp")
    found += [
        built("setup.py", "ops.a.a_ext", "src/a.cpp", "src/a_kernel.cu"),
        built("setup.py", "ops.a.a_cpu", "src/a_cpu.cpp"),
        built("setup.py", "ops.b.b_ext", "src/b_kernel.cu"),
        at("setup.py", 9, "NPU550", "torch.utils.cpp_extension.CUDAExtension"),
    ]
    assert Counter({action.title: action.count for action in actions_of(found)}) == {
        "Replace the CUDA kernel a (ops/a), or rewrite it for the NPU": 3,
        "Replace the CUDA kernel b (ops/b), or rewrite it for the NPU": 1,
        "Remove the CUDA build from setup.py": 1,
    }


def test_extensions_in_one_folder_are_told_apart_by_their_names() -> None:
    found = sources_of("ops/bias_act.cu", "ops/bias_act.cpp", "ops/upfirdn2d.cu", "ops/upfirdn2d.h")
    found += [built("ops/bias_act.py", "bias_act_plugin"), built("ops/upfirdn2d.py", "upfirdn2d_plugin")]
    assert [action.count for action in actions_of(found)] == [2, 2]
    assert len(actions_of(found[:4])) == 1, "nothing says that they are two"


def test_cmake_and_make_belong_to_the_sources_that_they_build() -> None:
    found = sources_of("demo/cpp/net.cpp")
    found += [line_of("demo/cpp/CMakeLists.txt", 4, "NPU806", "find_package(CUDA")]
    found += [line_of("demo/cpp/Makefile", 2, "NPU806", "nvcc")]
    assert [(action.title, action.count) for action in actions_of(found)] == [("Port the C++ code in demo/cpp", 3)]


def test_an_extension_says_what_it_binds_and_what_takes_its_place() -> None:
    said = "this source has functions for Python: nms, roi_align"
    help_ = "nms: instead torchvision.ops.nms; same"
    details = (
        ("binds", "TORCH_EXTENSION_NAME"), ("functions", "nms, roi_align"),
        ("instead", "nms: instead torchvision.ops.nms"),
    )  # fmt: skip
    bound = at("ops/nms.cpp", 1, "NPU557", message=said, level=Level.INFO, help=help_, details=details)
    (action,) = actions_of([*sources_of("ops/nms.cpp", "ops/nms_kernel.cu"), bound])
    assert action.how.endswith(
        "The replacement must have the functions: nms, roi_align; nms: instead torchvision.ops.nms"
    )


@pytest.mark.parametrize(
    ("name", "plain"),
    [("deform_conv_cuda_kernel", "deform_conv"), ("ROIAlign_cuda", "ROIAlign"), ("corr", "corr"), ("cuda", "cuda"),
     ("alignment_train_cuda_binding", "alignment_train"), ("_C", "_C")],
)  # fmt: skip
def test_the_plain_name_of_a_kernel(name: str, plain: str) -> None:
    assert plain_name(name) == plain


@pytest.mark.parametrize(("folder", "home"), [("a/dcn/src", "a/dcn"), ("a/clib/cuda", "a/clib"), ("src", "src")])
def test_the_folder_of_an_extension(folder: str, home: str) -> None:
    assert home_of(folder) == home


def test_a_substitution_in_many_files_is_one_action() -> None:
    found = [line_of(f"options/{number}.yml", 107, "NPU802", "nccl") for number in range(52)]
    found += [line_of("run.sh", 3, "NPU801", "nccl")]
    (action,) = actions_of(found)
    assert (action.title, action.count) == ("Use the communication backend hccl instead of nccl", 53)
    assert action.effort is Effort.LOW and action.hours < 1


def test_a_device_that_a_script_names_is_the_programs_to_choose_in_the_portable_style() -> None:
    (action,) = actions_of([line_of("run.sh", 3, "NPU801", "cuda")], "portable")
    assert action.title == "Set npu or hccl on NPU hosts where scripts and configurations name a device or backend"
    (alone,) = actions_of([line_of("run.sh", 3, "NPU801", "cuda")])
    assert alone.title == "Use the device npu instead of cuda"


def test_a_variable_is_one_action_in_python_and_elsewhere() -> None:
    found = [line_of("run.sh", 3, "NPU801", "CUDA_VISIBLE_DEVICES")]
    details = (("name", "CUDA_VISIBLE_DEVICES"),)
    found += [at("tests/launch.py", 9, "NPU221", message="a command sets CUDA_VISIBLE_DEVICES", details=details)]
    assert [action.count for action in actions_of(found)] == [2]


@pytest.mark.parametrize(
    ("path", "code", "name", "title"),
    [
        ("run.sh", "NPU801", "CUDA_VISIBLE_DEVICES", "Set ASCEND_RT_VISIBLE_DEVICES instead of CUDA_VISIBLE_DEVICES"),
        ("Makefile", "NPU806", "CUDA_VISIBLE_DEVICES", "Set ASCEND_RT_VISIBLE_DEVICES instead of CUDA_VISIBLE_DEVICES"),
        ("a.yaml", "NPU802", "cuda:0", "Use the device npu instead of cuda"),
        ("a.yaml", "NPU802", "use_cuda", "Check options and keys that are named after CUDA"),
        ("a.yaml", "NPU802", "NVIDIA", "Check mentions of CUDA in configuration files"),
        ("Dockerfile", "NPU805", "nvidia/cuda:12.1", "Build container images from an Ascend CANN image"),
        (
            "Dockerfile",
            "NPU805",
            "FORCE_CUDA",
            "Remove the CUDA toolkit and CUDA packages from build scripts and recipes",
        ),
        ("r.txt", "NPU804", "1.13.1+cu117", "Install torch and torch_npu instead of CUDA builds"),
        ("r.txt", "NPU804", "nvidia-nccl-cu12", "Install torch and torch_npu instead of CUDA builds"),
        ("r.txt", "NPU804", "cupy-cuda12x", "Replace cupy-cuda: no NPU support"),
        ("run.sh", "NPU801", "NCCL_DEBUG", "Set NPU environment variables instead of those of CUDA and NCCL"),
        ("run.sh", "NPU801", "nvidia-smi", "Call npu-smi instead of nvidia-smi in scripts"),
        ("uv.lock", "NPU804", "nvidia-nccl-cu12", "Regenerate the lock file uv.lock for torch and torch_npu"),
        ("CMakeLists.txt", "NPU806", "find_package(CUDA", "Remove CUDA from the build CMakeLists.txt"),
        ("demo/main.cpp", "NPU806", "torch::kCUDA", "Port the C++ code in demo"),
        ("run.sh", "NPU801", "cuda", "Use the device npu instead of cuda"),
        ("environment.yml", "NPU804", "cuda", "Install torch and torch_npu instead of CUDA builds"),
        ("c.yaml", "NPU802", "nvidia.com/gpu", "Request NPUs instead of NVIDIA GPUs for containers, pods and jobs"),
    ],
)
def test_what_is_not_python_goes_by_what_is_to_be_written(path: str, code: str, name: str, title: str) -> None:
    assert titles(actions_of([line_of(path, 1, code, name)])) == [title]


def test_third_party_folders_are_one_action_each() -> None:
    found = [
        at("third_party/apex/a/b.py", 1, "NPU507"),
        line_of("third_party/apex/csrc/k.cu", 1, "NPU806", "cuda.h"),
        at("pk/externals/gan/train.py", 1, "NPU507"),
        at("vendor_tools.py", 1, "NPU507"),
    ]
    assert sorted(titles(actions_of(found))) == [
        "Replace DataParallel, which works on one NPU only, with DistributedDataParallel",
        "Use the Ascend version of the third-party code in pk/externals/gan, or port it",
        "Use the Ascend version of the third-party code in third_party/apex, or port it",
    ]


def test_packages_are_one_action_each_and_members_of_a_module_are_named() -> None:
    found = [
        at("a.py", 1, "NPU510", "flash_attn.bert_padding", "the package flash_attn does not support NPUs"),
        at("b.py", 1, "NPU510", "flash_attn.flash_attn_func", "the package flash_attn does not support NPUs"),
        at("a.py", 3, "NPU520", "torch.nn.utils.rnn.pack_padded_sequence"),
        at("a.py", 4, "NPU520", "torch.nn.utils.rnn.pad_packed_sequence"),
        at("a.py", 5, "NPU520", "torch.nn.RNN"),
    ]
    assert titles(actions_of(found)) == [
        "Replace flash_attn: no NPU support",
        "Replace torch.nn.utils.rnn (pack_padded_sequence, pad_packed_sequence): not supported on NPU",
        "Replace torch.nn.RNN: not supported on NPU",
    ]


def test_one_package_that_two_codes_speak_of_is_one_action() -> None:
    found = migrate_source("from transformers import BitsAndBytesConfig\nq = BitsAndBytesConfig(load_in_4bit=True)\n")
    found = replace(found, findings=(*found.findings, at("b.py", 3, "NPU142")))
    assert [(action.title, action.codes) for action in actions_of(found.findings)] == [
        ("Load models without quantisation that needs CUDA kernels", ("NPU142", "NPU510")),
    ]  # fmt: skip


@pytest.mark.parametrize(("late", "blocks"), [("", "import"), ("called", "first step"), ("branch", "later")])
def test_what_stops_an_import_stops_it_for_each_package_of_a_file(late: str, blocks: str) -> None:
    names = ("pkg_resources", "pytorchvideo.transforms", "transformers.deepspeed")
    found = [replace(at("a.py", 1, "NPU293", name), blocks="import", late=late) for name in names]
    assert {action.blocks for action in actions_of(found)} == {blocks}


@pytest.mark.parametrize(
    ("found", "title", "how"),
    [
        # the title names the package and what to do, and the help of the finding says how
        (at("a.yml", 1, "NPU845", "setuptools", help="write setuptools>=77.0.3"),
         "Raise the pin of setuptools: the new torch needs a newer release", "write setuptools>=77.0.3"),
        (at("a.yml", 1, "NPU845", "sympy", help="write sympy>=1.13.3"),
         "Raise the pin of sympy: the new torch needs a newer release", "write sympy>=1.13.3"),
        (at("a.py", 1, "NPU293", "motmetrics.utils", help="install it from git"),
         "Install motmetrics from its repository: its last release fails with NumPy 2",
         "install it from git"),
        (at("a.py", 1, "NPU293", "torchaudio.load", help="install torchcodec"),
         "Install torchcodec and FFmpeg: torchaudio.load and save need them since 2.9", "install torchcodec"),
        (at("a.py", 1, "NPU293", "pkg_resources", help="ask for another"),
         "Replace pkg_resources, which setuptools 82 removed, or require setuptools<82", "ask for another"),
        (at("a.py", 1, "NPU293", "transformers", help="rename it"),
         "m: rename it", "rename it"),
    ],
)  # fmt: skip
def test_a_title_names_what_to_install(found: Finding, title: str, how: str) -> None:
    (action,) = actions_of([found])
    assert (action.title, action.how, action.effort) == (title, how, Effort.LOW)


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ([("f takes no x", "write y=")] * 2, "f takes no x: write y="),
        ([("f takes no x", "write " + "y" * 60)], "Update the uses of p: f takes no x"),
        ([("p calls this method no longer", "write y=")], "Update the uses of p: newer"),
        ([("f takes no x", "write y="), ("f takes no z", "write y=")], "Update the uses of p: newer"),
    ],
)
def test_one_thing_that_a_release_refuses_is_its_title(said: list[tuple[str, str]], title: str) -> None:
    found = [at("a.py", line, "NPU293", "p", message, help=help) for line, (message, help) in enumerate(said, 1)]
    (action,) = actions_of(found)
    assert action.title == title + " releases of p refuse or ignore them" * title.endswith("newer")


@pytest.mark.parametrize(
    ("imported", "title"),
    [
        ([], "Replace flash_attn: no NPU support"),  # no code was seen
        ([at("a.py", 1, "NPU201")], "Remove the requirement flash_attn: no code of the project imports it"),
        ([at("setup.py", 1, "NPU201")], "Replace flash_attn: no NPU support"),
        ([at("a.py", 1, "NPU510", "flash_attn.f", "the package flash_attn x")], "Replace flash_attn: no NPU support"),
        ([at("a.py", 1, "NPU510", "flash_attn.f", level=Level.INFO)], "Replace flash_attn: no NPU support"),
    ],
)
def test_a_requirement_that_no_code_imports_goes(imported: list[Finding], title: str) -> None:
    needed = at("environment.yml", 61, "NPU290", "flash_attn", "the requirement flash-attn does not support NPUs")
    assert title in {str(action.title) for action in actions_of([needed, *imported])}


@pytest.mark.parametrize(
    ("found", "title", "how"),
    [
        # A setting may ask for it where no import does.
        (at("install.sh", 11, "NPU290", "flash_attn", "the requirement x", help="instead: torch_npu"),
         "Keep flash_attn out of what NPU hosts install: no code of the project imports it", "the line stays for CUDA"),
        (at("core.in", 3, "NPU844", "torch-npu", help="torch-npu==2.2.0"),
         "List torch-npu where NPU hosts alone install it", "not in one that CUDA and CPU users install"),
        # A name there pins memory, whether a card is there or not (torch 2.2 to 2.6, _BaseDataLoaderIter.__init__).
        (at("a.py", 3, "NPU124", "torch.utils.data.DataLoader"),
         "Set pin_memory_device where a DataLoader pins memory", '"npu" if DEVICE_TYPE == "npu" else ""'),
    ],
)  # fmt: skip
def test_what_is_left_of_a_portable_project_keeps_what_others_install_and_run(
    found: Finding, title: str, how: str
) -> None:
    (action,) = actions_of([found], "portable")
    assert action.title == title and how in action.how


def test_lines_of_cpp_cost_what_their_action_does() -> None:
    def priced(*names: str) -> set[tuple[str | None, bool]]:
        found = [replace(line_of("deploy/x/a.cpp", line, "NPU806", name), effort=Effort.HIGH, help="Ascend C")
                 for line, name in enumerate(names, 1)]  # fmt: skip
        return {(each.effort.value if each.effort else None, each.help == "Ascend C")
                for findings in as_their_actions([tuple(found)]) for each in findings}  # fmt: skip

    assert priced("ICudaEngine", "cudaMalloc") == priced("NVBUF_MEM_CUDA_DEVICE") == {("low", False)}
    assert as_their_actions([(at("a.py", 1, "NPU510", "x"),)]) == [(at("a.py", 1, "NPU510", "x"),)]


def test_the_other_half_of_a_test_that_stays_is_no_action_of_its_own() -> None:
    found = [at("a.py", 7, "NPU203"), at("a.py", 7, "NPU270"), at("a.py", 9, "NPU203")]
    assert [(action.codes, action.count) for action in actions_of(found)] == [
        (("NPU203",), 1), (("NPU203", "NPU270"), 2),
    ]  # fmt: skip


def test_what_only_tests_run_stops_nobody_at_the_start() -> None:
    blocks = [
        actions_of([at(path, 1, "NPU510", "x", "the package x")])[0].blocks
        for path in ("tests/a.py", "pk/test_a.py", "docs/conf.py", "pk/testing_x.py", "contest/a.py", "a.py")
    ]
    (ci,) = actions_of([line_of(".github/workflows/a.yml", 1, "NPU802", "nvidia/cuda:12.1")])
    assert ci.blocks == "later"
    assert blocks == ["later", "later", "later", "import", "import", "import"]
    (both,) = actions_of([at("tests/a.py", 1, "NPU507"), at("train.py", 9, "NPU507")])
    assert both.blocks == "first step" and both.first == "train.py:9"


def test_many_small_things_of_one_kind_become_one_and_none_is_lost() -> None:
    found = [at("a.py", line, "NPU520", f"torch.op{line}") for line in range(1, 40)]
    found += [at("a.py", line, "NPU501", f"torch.cuda.x{line}") for line in range(1, 6)]
    found += [at("b.py", 1, "NPU507")]
    few = actions_of(found)
    assert len(few) <= MOST and sum(action.count for action in few) == len(found)
    big = next(action for action in few if "NPU520" in action.codes)
    assert big.title == "Replace torch.op1, torch.op10, torch.op11 and 36 more: not supported on NPU"
    assert {place.name for place in big.places} == {f"torch.op{line}" for line in range(1, 40)}
    assert len(actions_of(found[:5])) == 5, "what is few stays as it is"


def test_leftovers_of_scripts_and_recipes_are_one_where_there_is_much() -> None:
    found = [line_of(f"a{n}", 1, code, "CUDA!") for n, code in enumerate(("NPU801", "NPU802", "NPU804", "NPU805"))]
    assert len(actions_of(found)) == 4
    found += [at("a.py", 1, code) for code in ("NPU507", "NPU141", "NPU142", "NPU143", "NPU144", "NPU145", "NPU146")]
    assert titles(actions_of(found)).count("Check mentions of CUDA in scripts, configurations and recipes") == 1


def test_demos_and_builds_are_joined_where_there_is_much() -> None:
    found = [line_of(f"cpp/d{n}/main.cpp", 1, "NPU806", "torch::kCUDA") for n in range(5)]
    assert len(actions_of(found)) == 5
    found += [at("a.py", 1, code) for code in ("NPU507", "NPU141", "NPU142", "NPU143", "NPU144", "NPU145", "NPU146")]
    assert "Port the C++ code in cpp/d0, cpp/d1, cpp/d2 and 2 more" in titles(actions_of(found))
    assert sum(action.count for action in actions_of(found)) == 12


def test_what_is_one_decision_is_joined_with_its_parts() -> None:
    found = [line_of(f"ops/k{n}/src/k{n}_kernel.cu", 1, "NPU806", "cuda.h") for n in range(14)]
    assert len(actions_of(found[:MOST])) == MOST, "few days of work stay for themselves"
    (action,) = actions_of(found)
    assert action.title == "Replace the CUDA kernels of extensions: 14 actions"
    assert (action.blocks, action.hours, action.effort, len(action.parts)) == ("first step", 112.0, Effort.HIGH, 14)
    assert action.parts[0].title == "Replace the CUDA kernel k0 (ops/k0), or rewrite it for the NPU"


def test_what_matters_least_is_joined_first() -> None:
    found = [at("train.py", 1, code) for code in ("NPU507", "NPU141", "NPU142", "NPU143", "NPU144", "NPU145", "NPU146")]
    found += [at("old/train.py", line, code) for line, code in enumerate(("NPU507", "NPU141", "NPU147"), 1)]
    found += [at("train.py", 9, code) for code in ("NPU206", "NPU281")]
    actions = actions_of(found)
    assert [len(action.parts) for action in actions] == [0] * 9 or sum(bool(action.parts) for action in actions) <= 1
    assert all(not action.parts for action in actions if not action.aside)


def test_what_no_training_script_reaches_comes_last_whatever_it_blocks() -> None:
    bound = at("tools/to_trt.py", 1, "NPU510", "torch2trt", "the package torch2trt does not support NPUs")
    tool = replace(bound, aside=True)
    first, last, tidy = actions_of([at("train.py", 3, "NPU206"), tool, at("train.py", 9, "NPU507")])
    assert (tidy.first, tidy.stands) == ("train.py:3", "tidy")
    assert (first.first, first.aside) == ("train.py:9", False)
    assert (last.first, last.aside, last.blocks) == ("tools/to_trt.py:1", True, "later")
    (both,) = actions_of([tool, replace(tool, path="train.py", aside=False)])
    assert (both.first, both.aside, both.blocks) == ("train.py:1", False, "import")


# --- renderers -------------------------------------------------------------------------------------------------------


def lines_of(found: Sequence[Finding], width: int = 0) -> list[str]:
    return list(action_lines(actions_of(found), width))


@pytest.mark.parametrize(
    ("beside", "head"),
    [
        ("NPU206", "  to do: 2 actions, about 2 hours:"),
        ("NPU507", "  to do: 2 actions, about 2 hours, and about 2 hours in code that training does not use:"),
    ],
)
def test_what_training_does_not_use_is_a_sum_of_its_own(beside: str, head: str) -> None:
    effort = Effort.MEDIUM if beside == "NPU507" else Effort.LOW
    tool = replace(at("tools/x.py", 1, beside, "x"), aside=True, effort=effort)
    needed = replace(at("train.py", 1, "NPU501", "torch.cuda.x"), effort=Effort.MEDIUM)
    assert lines_of([needed, tool])[0] == head


def test_the_terminal_shows_ten_at_most_and_names_the_parts() -> None:
    found = [line_of(f"ops/k{n}/src/k{n}_kernel.cu", 1, "NPU806", "cuda.h") for n in range(14)]
    found += [at("a.py", 1, "NPU206")]
    assert lines_of(found) == [
        "  to do: 15 actions, about 112 hours:",
        "    stops at the first step: the program starts, but fails when it first computes, or computes on the CPU",
        "      1. Replace the CUDA kernels of extensions: 14 actions (about 112 hours, 14 places in 14 files, "
        "ops/k0/src/k0_kernel.cu:1)",
        "         Replace the CUDA kernel k0 (ops/k0), or rewrite it for the NPU; Replace the CUDA kernel k1 (ops/k1), "
        "or rewrite it for the NPU; Replace the CUDA kernel k10 (ops/k10), or rewrite it for the NPU; and 11 more",
        "    cosmetic: the program runs the same without this",
        "      2. " + actions_of(found)[1].title + " (less than an hour, 1 place, a.py:1)",
    ]


def test_a_terminal_of_40_columns() -> None:
    lines = lines_of([line_of("ops/src/corr_kernel.cu", 3, "NPU806", "cuda.h"), at("train.py", 41, "NPU507")], 40)
    assert lines == [
        "  to do: 2 actions, about 10 hours:",
        "    stops at the first step: the program",
        "         starts, but fails when it first",
        "         computes, or computes on the",
        "         CPU",
        "      1. Replace the CUDA kernel corr",
        "         (ops), or rewrite it for the",
        "         NPU (about 8 hours, 1 place,",
        "         ops/src/corr_kernel.cu:3)",
        "      2. Replace DataParallel, which",
        "         works on one NPU only, with",
        "         DistributedDataParallel (about",
        "         2 hours, 1 place, train.py:41)",
    ]
    assert all(len(line) <= 40 for line in lines)


def test_a_terminal_of_cp1252() -> None:
    path = "caf\udce9/模型.py"
    (line,) = [line for line in lines_of([at(path, 1, "NPU507")]) if "1. " in line]
    shown = line.encode("cp1252", "backslashreplace").decode("cp1252")
    assert "caf\\xe9/\\u6a21\\u578b.py:1" in shown


def test_the_first_sheet_and_the_top_of_the_page(tmp_path: Path) -> None:
    found = [at("=odd.py", 1, "NPU507"), at("<b>.py", 2, "NPU520", "torch.nn.RNN")]
    found += [line_of("a.yaml", 1, "NPU802", "nccl")]
    result = result_of(*found)
    book = load_workbook(io.BytesIO(render_unsupported(result)))
    assert book.sheetnames[0] == "actions"
    rows = list(book["actions"].iter_rows(values_only=True))
    assert [(row[0], row[2], row[3]) for row in rows[1:]] == [
        (1, "Replace DataParallel, which works on one NPU only, with DistributedDataParallel", "hours"),
        (2, "Replace torch.nn.RNN: not supported on NPU", "hours"),
        (3, "Use the communication backend hccl instead of nccl", "less than an hour"),
    ]
    assert {row[1] for row in rows[1:]} == {"stops at the first step"}
    assert rows[1][7] == "'=odd.py:1"
    page = render_report(result).page.decode()
    assert page.index("What to decide and to do") < page.index("Summary")
    assert "Replace torch.nn.RNN: not supported on NPU" in page and "&lt;b&gt;.py:2" in page and "<b>.py" not in page


def test_the_share_of_automatic_work_is_that_of_python(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/train.py").write_text("import torch\nx = torch.ones(2).cuda()\n")
    (tmp_path / "in/k.cu").write_text("cudaMalloc();\n" * 90)
    assert of_python(diff_tree(make_plan(Options(tmp_path / "in", jobs=0)))).share == 1.0


def test_requirements_are_no_places(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\nx = torch.ones(2).cuda()\n")
    (tmp_path / "setup.py").write_text(
        "from setuptools import setup\nsetup(install_requires=['torch==1.3.1', 'matplotlib==3.1.1'])\n"
    )
    summary = summarize(analyse_tree(make_plan(Options(tmp_path, jobs=0))))
    assert {each.code for each in summary.result.findings if each.open} >= {"NPU845"}
    assert (summary.effort.done, summary.effort.counted) == (1, 1)


def test_a_package_without_an_import_of_its_own_is_not_called_unused() -> None:
    needed = at("requirements.txt", 1, "NPU290", "tensorflow-gpu", details=(("status", "replacement"),))
    assert "Replace tensorflow-gpu: no NPU support" in titles(actions_of([needed, at("a.py", 1, "NPU201")]))


def test_an_advice_of_several_places_says_which_is_whose() -> None:
    lines = [(".github/a.yml", 58, "cupy-cuda12x", "use torch"), ("b.yml", 1, "cupy-cuda11x", "use numpy")]
    found = [at(path, line, "NPU802", name, help=help_) for path, line, name, help_ in lines]
    (action,) = actions_of([*found, at("c.yml", 3, "NPU802", "cupy-cuda11x", help="use numpy")])
    assert action.title == "Replace cupy-cuda: no NPU support"
    assert action.how == "b.yml, line 1, and 1 more: use numpy. .github/a.yml, line 58: use torch"


def test_a_second_command_keeps_its_own_advice(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\nx = torch.ones(2).cuda()\n")
    (tmp_path / "README.md").write_text(
        "```sh\ndocker run --rm --gpus all midas\n```\n\n```sh\nwget https://x.org/cu110/libtorch-1.7.0+cu110.zip\n```\n"
    )
    actions = summarize(analyse_tree(make_plan(Options(tmp_path, jobs=0)))).actions
    (how,) = [each.how for each in actions if "NPU865" in each.codes]
    assert "install torch and torch-npu" in how and "README.md, line 2: write instead: --device" in how


@pytest.mark.parametrize(("more", "counted"), [("", 0), ("x = torch.ones(2).cuda()\n", 1)])
def test_pins_are_no_places_of_cuda(tmp_path: Path, more: str, counted: int) -> None:
    (tmp_path / "train.py").write_text(f"import torch\n{more}")
    pins = "setup(install_requires=['torch==1.3.1', 'matplotlib==3.1.1'])\n"
    (tmp_path / "setup.py").write_text(f"from setuptools import setup\n{pins}")
    effort = summarize(analyse_tree(make_plan(Options(tmp_path, jobs=0)))).effort
    assert (effort.done, effort.counted) == (counted, counted)


@pytest.mark.parametrize("sample", ["image_classifier", "quick_start", "text_model"])
def test_the_share_is_one_figure_in_all_reports(sample: str) -> None:
    """A migration writes lines that an analysis does not (`import torch_npu`): these are no places."""
    plan = make_plan(Options(ROOT / "samples" / sample / "cuda", jobs=0))
    summary = summarize(analyse_tree(plan))
    assert of_python(diff_tree(plan)).share == summary.effort.share
    assert f"converted automatically ({percent(summary.effort.share)});" in analysis_text([summary])
    assert row_of(summary)["share_automatic"] == round(summary.effort.share, 3) < 1.0
    assert percent(0.9994) == "99%" and percent(0.29) == "29%" and percent(1.0) == "100%"


CONFIGS = """import torch
import triton
import triton.language as tl


@triton.autotune(
    configs=[
        triton.Config({"BLOCK": 64}, num_warps=2, num_stages=3),
        triton.Config({"BLOCK": 64}, num_warps=4, num_stages=3),
        triton.Config({"BLOCK": 128}, num_warps=4),
        triton.Config({"BLOCK": 128}, num_warps=8, num_stages=4),
    ],
    key=["n"],
)
@triton.jit
def double(x, n, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + places, 2 * tl.load(x + places, mask=places < n), mask=places < n)


def run(x):
    double[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x.cuda(), x.numel())
"""


def test_an_edit_of_several_pieces_is_one_place(tmp_path: Path) -> None:
    """Two configurations that are the same then go in one edit: two lines of the diff, one place of the share."""
    (tmp_path / "kernel.py").write_text(CONFIGS)
    plan = make_plan(Options(tmp_path, jobs=0))
    migrated, summary = diff_tree(plan), summarize(analyse_tree(plan))
    assert [each.span.line for each in migrated.findings if each.code == "NPU561"] == [8, 9, 10, 11]
    assert sum(each.places for each in migrated.findings if each.code == "NPU561") == 3
    assert of_python(migrated).share == summary.effort.share == 0.6


def test_an_edit_that_still_asks_for_work_is_left(tmp_path: Path) -> None:
    """DataParallel is written for one card, and whoever has several has to act: the line counts once, as left."""
    (tmp_path / "train.py").write_text("import torch\nmodel = torch.nn.DataParallel(net)\nx = torch.ones(2).cuda()\n")
    plan = make_plan(Options(tmp_path, jobs=0))
    migrated, summary = diff_tree(plan), summarize(analyse_tree(plan))
    assert {each.code for each in migrated.findings if each.span.line == 2 and each.applied} >= {"NPU135"}
    assert (summary.effort.done, summary.effort.counted) == (1, 2)
    assert of_python(migrated).share == summary.effort.share == 0.5
    said = "CUDA places in Python: 1 of 2 converted automatically (50%); left in all files: 1 finding"
    assert said in analysis_text([summary]) and "1 of 2; edited lines that" in render_report(migrated).page.decode()


def test_barracuda_is_no_cuda(tmp_path: Path) -> None:
    (tmp_path / "names.json").write_text('{"fish": "BARRACUDA", "n": ["barracudas", "libcuda", "usecuda", "a-cuda"]}\n')
    result = diff_tree(make_plan(Options(tmp_path, jobs=0)))
    assert result.tokens.found == 3
    (tmp_path / "names.json").write_text('{"fish": "barracuda"}\n')
    assert "  nothing left to do" in summary(diff_tree(make_plan(Options(tmp_path, jobs=0))))


#: What the summary of a sample says; tests/data/actions holds it.
SAMPLES = ("image_classifier", "text_model")


@pytest.mark.parametrize("name", SAMPLES)
def test_the_samples(name: str) -> None:
    result = diff_tree(make_plan(Options(ROOT / "samples" / name / "cuda", jobs=0, isolated=True, analysis=True)))
    expected = (ROOT / "tests" / "data" / "actions" / f"{name}.txt").read_text()
    assert "".join(f"{line}\n" for line in action_lines(actions_of(result.findings))) == expected
    assert total_hours(actions_of(result.findings)) < 9
    if name == "image_classifier":
        said = "".join(f"{line}\n" for line in first_actions(actions_of(result.findings), 5))
        assert said in (ROOT / "README.md").read_text(), "the example is what happens"


@pytest.mark.parametrize(
    ("name", "blocks"), [("NCCL_ALGO", "tidy"), ("TORCH_NCCL_BLOCKING_WAIT", "tidy"), ("NCCL_SOCKET_IFNAME", "later")]
)
def test_a_variable_that_nothing_reads_on_an_npu_stops_nothing(name: str, blocks: str) -> None:
    (action,) = actions_of([at("run.sh", 1, "NPU801", name)])
    assert action.blocks == blocks


@pytest.mark.parametrize(
    ("path", "code", "api", "message", "page"),
    [
        ("run.sh", "NPU801", "nvidia/cuda:12.1", "a shell script names nvidia/cuda:12.1", "NPU850"),
        ("run.sh", "NPU280", "", "this asks docker for GPUs: --gpus all", "NPU854"),
        (".github/workflows/a.yml", "NPU802", "CUDA_HOME", "a configuration file names CUDA_HOME", "NPU855"),
    ],
)
def test_what_is_one_thing_to_do_is_one_action(path: str, code: str, api: str, message: str, page: str) -> None:
    found = [at(path, 3, code, api, message), at("Dockerfile", 1, page, "", "so")]
    assert titles(actions_of(found)) == [load(page).action]


@pytest.mark.parametrize(
    ("source", "code", "blocks"),
    [
        ("import torch._six\n", "NPU514", "import"),
        ("torch.symeig(x)\n", "NPU514", ""),
        ("import bitsandbytes\n", "NPU510", "first step"),  # its import does not fail
        ("import cupy\n", "NPU510", ""),
        ("def f():\n    import bitsandbytes\n", "NPU510", "first step"),
        ("def f(x):\n    if x:\n        import bitsandbytes\n", "NPU510", "later"),
        ("import apex\napex.parallel.DistributedDataParallel(m)\n", "NPU510", ""),
        ("import apex\ndef f():\n    apex.parallel.DistributedDataParallel(m)\n", "NPU510", "first step"),
        ("import apex\ndef f(x):\n    if x:\n        apex.parallel.DistributedDataParallel(m)\n", "NPU510", "later"),
        ("import torchvision\ntorchvision.ops.ps_roi_align(a, b, 5)\n", "NPU512", ""),
        ("import ops_cuda\n", "NPU553", ""),
        ("from torch.utils.cpp_extension import load\nload('a', ['a.cu'])\n", "NPU554", "import"),
        ("from torch.utils.cpp_extension import load\ndef f():\n    load('a', ['a.cu'])\n", "NPU554", ""),
        ("major, _ = torch.cuda.get_device_capability()\n", "NPU503", "first step"),
    ],
)
def test_a_finding_says_what_it_blocks_where_its_code_does_not(source: str, code: str, blocks: str) -> None:
    found = migrate_source(f"import torch\nx.cuda()\n{source}", path="a.py").findings
    assert {each.blocks for each in found if each.code == code} == {blocks}


@pytest.mark.parametrize(
    ("blocks", "late", "option", "expected"),
    [
        ("", "", "", "import"), ("", "called", "", "first step"), ("", "branch", "", "later"),
        ("", "other", "", "later"), ("", "", "--fast", "later"), ("first step", "", "", "first step"),
        ("first step", "called", "", "first step"), ("first step", "branch", "", "later"), ("slow", "", "--x", "slow"),
        ("later", "called", "", "later"), ("first step", "unnamed", "", "first step"),
    ],
)  # fmt: skip
def test_what_is_blocked_by_where_the_file_is_loaded(blocks: str, late: str, option: str, expected: str) -> None:
    found = at("a.py", 3, "NPU510", "flash_attn", "so", blocks=blocks, late=late, option=option)
    assert [action.blocks for action in actions_of([found])] == [expected]


@pytest.mark.parametrize(("path", "expected"), [("eval/eval.py", "later"), ("tools/start.py", "first step")])
def test_a_script_for_evaluations_that_nothing_names_stops_later(path: str, expected: str) -> None:
    found = at(path, 3, "NPU293", "skimage.measure", late="unnamed")
    assert [action.blocks for action in actions_of([found])] == [expected]


def test_what_an_option_asks_for_comes_after_what_every_run_meets() -> None:
    asked = at("a.py", 1, "NPU521", "torch.nn.functional.kl_div", option="--distillation-type soft")
    assert [action.codes for action in actions_of([asked, at("main.py", 9, "NPU148")])] == [("NPU148",), ("NPU521",)]


def test_a_scalar_that_is_indexed_is_one_thing_however_it_is_written() -> None:
    found = [at("a.py", 1, "NPU293", "torch.Tensor.data"), at("a.py", 2, "NPU293", "torch.Tensor")]
    assert len(actions_of(found)) == 1


@pytest.mark.parametrize("blocks", ["import", "first step"])
def test_kernels_that_are_compiled_by_an_import(blocks: str) -> None:
    found = [at("op/act.py", 11, "NPU554", blocks=blocks), line_of("op/act_kernel.cu", 1, "NPU806", "cuda.h")]
    assert {action.blocks for action in actions_of(found)} == {blocks}


def test_what_is_joined_stands_under_one_heading() -> None:
    names = ("flash_attn", "xformers", "cupy", "tensorrt", "pycuda", "auto_gptq", "awq", "vllm_flash_attn")
    first = [at("a.py", line, "NPU510", name, f"the package {name} is bound") for line, name in enumerate(names, 1)]
    second = [replace(each, path="b.py", api=f"{each.api}2", blocks="first step",
                      message=each.message.replace(each.api, f"{each.api}2")) for each in first]  # fmt: skip
    actions = actions_of([*first, *second])
    assert len(actions) <= MOST
    assert all({part.blocks for part in action.parts} <= {action.blocks} for action in actions)


def test_what_an_image_installs_goes_with_the_image() -> None:
    found = [at("Dockerfile", 2, "NPU850"), at("Dockerfile", 1, "NPU852"), at("Dockerfile", 5, "NPU855"),
             at("Dockerfile", 7, "NPU845", blocks="import"), at("other/Dockerfile", 5, "NPU855")]  # fmt: skip
    assert sorted(titles(actions_of(found))) == sorted([load("NPU850").action, load("NPU855").action])
    assert all(each.contained for each in actions_of(found))
    pin = at("requirements.txt", 7, "NPU845", blocks="import")
    assert "Raise pins" in " ".join(titles(actions_of([*found, pin])))


@pytest.mark.parametrize(("name", "count"), [("_ext", 1), ("ops._ext", 1), ("other", 2)])
def test_what_is_compiled_where_an_extension_is_not_installed_is_that_extension(name: str, count: int) -> None:
    build, instead = built("lib/setup.py", "ops._ext"), built("lib/ops/utils.py", name)
    compiled = at("lib/ops/utils.py", 9, "NPU554", "torch.utils.cpp_extension.load", effort=Effort.HIGH)
    found = [at("lib/setup.py", 5, "NPU550"), build, instead, compiled, at("lib/ops/utils.py", 3, "NPU553", "ops._ext")]
    kernels = [line_of(f"lib/ops/src/{each}.cu", 3, "NPU806", "cudaStream_t") for each in "ab"]
    assert len(actions_of([*found, *kernels])) == count


@pytest.mark.parametrize(("needs", "count"), [("pk.gpu.forward", 1), ("pk.gpu", 1), ("pk.other.forward", 2)])
def test_a_gate_in_front_of_a_function_of_an_extension_goes_with_its_kernels(needs: str, count: int) -> None:
    found = [built("pk/lib/__init__.py", "gpu"), at("pk/ops.py", 9, "NPU553", "gpu", blocks="first step")]
    found += [line_of(f"pk/lib/gpu/{each}.cu", 3, "NPU806", "cudaStream_t") for each in "ab"]
    assert len(actions_of([*found, at("pk/f.py", 30, "NPU279", "x.is_cuda", details=(("needs", needs),))])) == count


def test_a_part_of_a_package_goes_with_the_package() -> None:
    whole = at("a.py", 1, "NPU510", "bitsandbytes", "the package bitsandbytes does not support NPUs")
    part = at("b.py", 1, "NPU510", "bitsandbytes.optim.Adam8bit", "bitsandbytes.optim.Adam8bit needs CUDA")
    other = at("c.py", 1, "NPU511", "apex", "the package apex needs an Ascend version")
    apex = at("d.py", 1, "NPU510", "apex.parallel.SyncBatchNorm", "apex.parallel.SyncBatchNorm needs CUDA")
    group = at("d.py", 2, "NPU510", "apex.parallel.g", "the package apex.parallel does not support NPUs", help="x")
    assert titles(actions_of([apex, group])) == ["Replace apex.parallel: no NPU support"]
    assert titles(actions_of([whole, part])) == ["Replace bitsandbytes: no NPU support"]
    assert titles(actions_of([part])) == ["Replace bitsandbytes.optim.Adam8bit: no NPU support"]
    adapted = "Use the version of apex that is adapted to Ascend"
    assert titles(actions_of([other, apex, group])) == ["Replace apex.parallel: no NPU support", adapted]
    assert adapted in titles(actions_of([other, part])) and len(actions_of([other, part])) == 2


def test_a_test_that_leads_to_a_simulator_is_the_decision_about_it() -> None:
    device = at("a.py", 1, "NPU273", details=(("library", "openmm"),))
    leads = at("b.py", 1, "NPU272", details=(("needs", "openmm.Platform, through b.run"),))
    other = at("b.py", 2, "NPU272", details=(("needs", "jax"),))
    assert titles(actions_of([device, leads])) == [load("NPU273").action]
    assert len(actions_of([device, leads, other])) == 2


@pytest.mark.parametrize(
    ("leads", "kernels", "hours"),
    [
        ({"details": (("needs", "bias, through b.run"),)}, True, 2.0),  # the CPU has a path beside it
        ({"details": (("needs", "bias"),)}, True, 2.0),
        # a question for CUDA is another, and so is a test in front of another library
        ({"details": (("needs", "bias"),), "api": "torch.cuda.is_available"}, True, 10.0),
        ({"details": (("needs", "jax, through b.run"),)}, False, 9.0),
    ],
)
def test_a_test_for_the_cpu_before_a_kernel_is_the_decision_on_it(leads: Any, kernels: bool, hours: float) -> None:
    build = at("ops/b.py", 5, "NPU554", "torch.utils.cpp_extension.load", effort=Effort.HIGH)
    source = line_of("ops/bias.cu", 3, "NPU806", "cudaStream_t")
    actions = actions_of([build, source, at("b.py", 1, "NPU272", **leads)])
    kernel = next(each for each in actions if "CUDA kernel" in each.title)
    assert (len(actions) == 1, kernel.hours) == (kernels, hours)
    assert ("on the CPU without it" in kernel.how) == (hours == 2.0)


def test_a_program_of_tensorrt_is_left() -> None:
    engine = [line_of("trt/run.cu", 3, "NPU806", "nvinfer1::ICudaEngine"), line_of("trt/a.hpp", 3, "NPU806", "cuda.h"),
              line_of("trt/CMakeLists.txt", 3, "NPU806", "CUDA")]  # fmt: skip
    (action,) = actions_of([*engine, line_of("trt/plugins/k.cu", 3, "NPU806", "cudaStream_t")])
    assert action.title.startswith("Skip the C++ program in trt") and action.blocks == "tidy"
    assert not any("Leave" in each for each in titles(actions_of(engine[1:])))
    details = (("binds", "trt_ops"), ("functions", "run"))
    bound = at("trt/run.cu", 1, "NPU557", level=Level.INFO, details=details)
    assert not any("Leave" in each for each in titles(actions_of([*engine, bound])))


def test_a_program_among_sources_of_cuda_is_no_kernel() -> None:
    main = at("example/main.cu", 2, "NPU557", level=Level.INFO, details=(("program", "example/main.cu"),))
    (action,) = actions_of([main, line_of("example/main.cu", 9, "NPU806", "cudaStream_t")])
    assert (action.title, action.blocks) == ("Port the C++ code in example", "later")


@pytest.mark.parametrize(("path", "count"), [("ops.py", 1), ("net.py", 2)])
def test_a_test_that_leads_to_what_is_replaced_in_its_file_goes_with_it(path: str, count: int) -> None:
    package = at("ops.py", 1, "NPU510", "cumm", blocks="first step")
    gate = at(path, 9, "NPU279", details=(("needs", "cumm.tensorview.from_blob, through ops.wrap"),))
    assert len(actions_of([package, gate])) == count


@pytest.mark.parametrize(("late", "blocks"), [("other", "later"), ("", "first step"), ("branch", "first step")])
def test_a_kernel_that_only_settings_ask_for(late: str, blocks: str) -> None:
    loader = at("net/cuda/load.py", 3, "NPU554", "torch.utils.cpp_extension.load", late=late)
    (action,) = actions_of([loader, line_of("net/cuda/act.cu", 3, "NPU806", "cudaStream_t")])
    assert action.blocks == blocks  # the kernel, and what compiles it, are one thing to do


def test_the_build_above_a_program_of_tensorrt_goes_with_it() -> None:
    found = [line_of("trt/src/run.cpp", 3, "NPU806", "nvinfer1::ICudaEngine"),
             line_of("trt/CMakeLists.txt", 3, "NPU806", "CUDA")]  # fmt: skip
    assert len(titles(actions_of(found))) == 1
    assert len(titles(actions_of([*found, line_of("other/CMakeLists.txt", 3, "NPU806", "CUDA")]))) == 2


@pytest.mark.parametrize(
    ("asked", "blocks"),
    [
        ([("requirements.txt", "NPU840", "torch")], "later"),  # what asks for it installs it too
        ([("requirements.txt", "NPU840", "torch"), (".github/workflows/a.yml", "NPU290", "xformers")], "later"),
        ([("requirements.txt", "NPU840", "torch"), ("requirements.txt", "NPU290", "xformers")], "first step"),
        ([("requirements.txt", "NPU840", "torch"), ("setup.py", "NPU290", "xformers")], "first step"),
        ([], "first step"),  # nothing says what is installed
    ],
)
def test_a_package_that_functions_import_and_nothing_installs(asked: list[tuple[str, str, str]], blocks: str) -> None:
    message = "the package xformers does not support NPUs; imported when mask() runs"
    found = at("a.py", 1, "NPU510", "xformers.sparse.X", message, blocks="first step")
    rest = [at(path, 1, code, name, level=Level.INFO) for path, code, name in asked]
    assert [action.blocks for action in actions_of([found, *rest])] == [blocks]


def test_code_that_is_not_there_comes_first() -> None:
    found = [at("a.py", 1, "NPU510", "flash_attn", "the package flash_attn is bound", effort=Effort.HIGH),
             at(".gitmodules", 2, "NPU866", "lib/ops"), at("Dockerfile", 1, "NPU850")]  # fmt: skip
    assert [action.codes[0] for action in actions_of(found)] == ["NPU866", "NPU510", "NPU850"]


def test_places_begin_with_what_trains() -> None:
    found = [at(path, 3, "NPU142", "quantize") for path in ("evaluate.sh", "train.sh", "tests/a.sh")]
    (action,) = actions_of(found)
    assert [place.path for place in action.places] == ["train.sh", "evaluate.sh", "tests/a.sh"]
    assert "3 places in 3 files, train.sh:3" in "\n".join(action_lines([action]))


@pytest.mark.parametrize(
    ("where", "blocks"),
    [("examples/wrapper.py", {"first step"}), ("tests/wrapper.py", {"later"}), ("", {"first step"})],
)
def test_what_is_asked_for_blocks_no_more_than_its_imports(where: str, blocks: set[str]) -> None:
    message = "the requirement vllm needs an extra package for Ascend"
    found = [at("Dockerfile", 3, "NPU290", "vllm", message, details=(("status", "plugin"),))]
    if where:
        found.append(at(where, 1, "NPU512", "vllm.LLM", "the package vllm needs an extra package for Ascend"))
    assert {action.blocks for action in actions_of(found)} == blocks


@pytest.mark.parametrize(("extra", "actions"), [("tensorrt", 1), ("deploy", 2), ("", 2)])
def test_what_an_extra_of_a_package_holds_goes_with_it(extra: str, actions: int) -> None:
    option = f"the extra {extra}" if extra else ""
    bound = at(
        "pyproject.toml", 3, "NPU290", "tensorrt", "the requirement tensorrt does not support NPUs", option=option
    )
    needs = "the requirement onnxruntime-gpu needs an extra package for Ascend"
    other = at("pyproject.toml", 4, "NPU290", "onnxruntime", needs, option=option, details=(("status", "plugin"),))
    found = actions_of([bound, other])
    assert len(found) == actions and "tensorrt" in found[0].title + found[-1].title


@pytest.mark.parametrize(
    ("first", "second", "actions"),
    [
        # layers that work over the replicas of DataParallel: replaced with it, wherever they are
        (at("net.py", 1, "NPU294", "SynchronizedBatchNorm2d", blocks="slow", help="convert"),
         at("train.py", 9, "NPU507", "torch.nn.DataParallel", help="DDP"), 1),
        (at("net.py", 1, "NPU294", "SynchronizedBatchNorm2d", blocks="slow"), at("train.py", 9, "NPU520", "a.b"), 2),
        # what exchanges between replicas, in the functions of a kernel that is replaced
        (at("op/abn.py", 9, "NPU501", "torch.cuda.comm.gather"), at("op/abn.py", 3, "NPU554", "abn"), 1),
        (at("op/abn.py", 9, "NPU294", "InPlaceABNSync"), at("op/abn.py", 3, "NPU554", "abn"), 1),
        (at("op/net.py", 9, "NPU501", "torch.cuda.comm.gather"), at("op/abn.py", 3, "NPU554", "abn"), 2),
        (at("op/abn.py", 9, "NPU501", "torch.cuda.nccl"), at("op/abn.py", 3, "NPU554", "abn"), 2),
        # what gives memory to TensorRT, in one script
        (at("a.py", 3, "NPU510", "pycuda.driver"), at("a.py", 2, "NPU510", "tensorrt"), 1),
        (at("a.py", 3, "NPU510", "pycuda.driver"), at("b.py", 2, "NPU510", "tensorrt"), 2),
        (at("a.py", 3, "NPU510", "flash_attn"), at("a.py", 2, "NPU510", "tensorrt"), 2),
    ],
)  # fmt: skip
def test_what_goes_with_another_finding_is_no_decision(first: Finding, second: Finding, actions: int) -> None:
    made = actions_of([first, second])
    assert len(made) == actions
    assert actions > 1 or (made[0].first, made[0].codes[-1]) == (f"{second.path}:{second.span.line}", second.code)
    assert first.help != "convert" or made[0].how == "train.py, line 9: DDP. net.py, line 1: convert"


@pytest.mark.parametrize(("header", "actions"), [("net/src/utils/checks.h", 1), ("other/checks.h", 2)])
def test_headers_below_the_sources_of_an_extension_are_ported_with_it(header: str, actions: int) -> None:
    found = [built("net/functions.py", "abn", "src/abn.cpp", "src/abn_cuda.cu")]
    found += [line_of(path, 2, "NPU806", "cuda") for path in ("net/src/abn.cpp", "net/src/abn_cuda.cu", header)]
    assert len(actions_of(found)) == actions


@pytest.mark.parametrize(
    ("late", "blocks", "stands"),
    [("other", "slow", "aside"), ("other", "tidy", "aside"), ("other", "later", "later"), ("called", "slow", "slow")],
)
def test_what_only_slows_scripts_that_do_not_train_stands_aside(late: str, blocks: str, stands: str) -> None:
    (action,) = actions_of([at("align.py", 3, "NPU293", "torch.autograd.Variable", blocks=blocks, late=late)])
    assert action.stands == stands


@pytest.mark.parametrize(("code", "said"), [("NPU507", False), ("NPU206", True)])
def test_a_list_that_stops_no_training_says_so(code: str, said: bool) -> None:
    lines = lines_of([at("train.py", 9, code), replace(at("tools/trt.py", 1, "NPU510", "torch2trt"), aside=True)])
    assert ("none of them stops training or changes its results" in lines[0]) == said


def test_of_an_image_the_image_is_told_first() -> None:
    found = [at("Dockerfile", 1, "NPU850", help="FROM cann")]
    found += [at("Dockerfile", line, "NPU855", help="leave it out") for line in (3, 4)]
    (action,) = actions_of(found)
    assert action.how == "Dockerfile, line 1: FROM cann. Dockerfile, line 3, and 1 more: leave it out"


def test_a_package_is_replaced_where_the_code_uses_it() -> None:
    """It begins where it blocks most: what only installs it stops a program before code that loads it late does."""
    needs = "the requirement flash-attn does not support NPUs"
    found = [at(path, 9, "NPU290", "flash_attn", needs) for path in ("docker/Dockerfile", "setup.py")]
    found.append(at("net.py", 3, "NPU510", "flash_attn", "the package flash_attn does not support NPUs", late="called"))
    (action,) = actions_of(found)
    assert action.blocks == "import"
    assert [place.path for place in action.places] == ["setup.py", "net.py", "docker/Dockerfile"]


@pytest.mark.parametrize(("late", "blocks"), [("other", "later"), ("", "import")])
def test_a_package_of_an_image_blocks_no_more_than_the_scripts_that_load_it(late: str, blocks: str) -> None:
    found = [
        *(at(f"{name}/Dockerfile", 1, "NPU850") for name in "abc"),
        at(
            "a/Dockerfile", 4, "NPU290", "auto_gptq", "the requirement auto-gptq does not support NPUs", blocks="import"
        ),
        at("quantize.py", 1, "NPU510", "auto_gptq", "the package auto_gptq does not support NPUs", late=late),
    ]
    first, last = actions_of(found)
    assert (first.codes, first.blocks) == (("NPU290", "NPU510"), blocks)
    assert (last.codes, last.contained) == (("NPU850",), True)


@pytest.mark.parametrize("code", ["NPU844", "NPU845"])
def test_what_installs_the_project_comes_before_its_image(code: str) -> None:
    found = [at("Dockerfile", 1, "NPU850"), at("environment.yml", 3, code, "python")]
    assert [each.codes for each in actions_of(found)] == [(code,), ("NPU850",)]


def test_an_image_and_jobs_come_behind_what_stops_the_program_itself() -> None:
    found = [
        at("Dockerfile", 1, "NPU850"),
        at("submit.py", 9, "NPU280"),
        at("utils.py", 9, "NPU302"),
    ]
    actions = actions_of(found)
    assert [each.codes for each in actions][:1] == [("NPU302",)]
    assert all(each.contained for each in actions[1:])


@pytest.mark.parametrize(
    ("path", "blocks"),
    [
        ("evaluations/requirements.txt", "later"),
        ("demo/requirements.txt", "later"),
        ("requirements.txt", "first step"),
        ("train/requirements.txt", "first step"),
        ("models/requirements_eval.txt", "later"),
        ("requirements_dev.txt", "first step"),
    ],
)
def test_what_an_evaluation_installs_stops_no_training(path: str, blocks: str) -> None:
    needs = "the requirement tensorflow-gpu needs an extra package for Ascend"
    found = [at(path, 1, "NPU290", "tensorflow-gpu", needs, details=(("status", "plugin"),))]
    assert [each.blocks for each in actions_of(found)] == [blocks]


@pytest.mark.parametrize(
    ("path", "count"),
    [("annotator/mmcv/runner.py", 1), ("src/diffusers/runner.py", 2), ("mmcv/runner.py", 2), ("my/mmcv.py", 2)],
)
def test_a_copy_of_a_library_is_one_action(path: str, count: int) -> None:
    found = [at(path, 3, "NPU505", "torch.channels_last"), at(path, 9, "NPU507", "torch.nn.DataParallel")]
    assert len(actions_of(found)) == count


def test_names_of_one_decision_are_one_action() -> None:
    found = [at("train.py", line, "NPU294", name) for line, name in enumerate(["SynchronizedBatchNorm2d", "Net"], 1)]
    found += [at("data.py", 3, "NPU514", f"torch._six.{name}") for name in ("int_classes", "inf")]
    assert len(actions_of(found)) == 2


@pytest.mark.parametrize(("late", "blocks"), [("", "import"), ("called", "first step"), ("other", "later")])
def test_a_kernel_of_scripts_that_do_not_train_stops_later(late: str, blocks: str) -> None:
    found = [
        at("lib/ops/setup.py", 2, "NPU550", "CUDAExtension", "the extension knl_cuda", aside=True),
        at("lib/ops/net.py", 1, "NPU553", "knl_cuda", late=late),
        replace(line_of("lib/ops/src/knl_cuda.cu", 3, "NPU806", "cuda"), aside=True),
    ]
    kernels = [each for each in actions_of(found) if "NPU553" in each.codes]
    assert [each.blocks for each in kernels] == [blocks]


def test_an_index_of_wheels_beside_those_of_torch_stops_nothing() -> None:
    found = [
        line_of("requirements.txt", 1, "NPU804", "https://data.pyg.org/whl/torch-1.13.1+cu117.html"),
        line_of("requirements.txt", 2, "NPU804", "https://download.pytorch.org/whl/cu117"),
    ]
    assert [each.blocks for each in actions_of(found)] == ["import", "tidy"]


@pytest.mark.parametrize(
    ("path", "code", "contained"),
    [
        ("Dockerfile", "NPU844", True), ("docker/train.dockerfile", "NPU290", True), ("appveyor.yml", "NPU844", True),
        ("run.sh", "NPU280", True), ("requirements.txt", "NPU844", False), ("train.py", "NPU510", False),
        ("environment.yml", "NPU845", False), ("run.sh", "NPU285", False),
    ],
)  # fmt: skip
def test_what_stops_a_container_or_a_job_comes_behind_what_stops_the_program(
    path: str, code: str, contained: bool
) -> None:
    found = [at(path, 1, code, "flash_attn", blocks="import"), at("train.py", 9, "NPU142", "q", blocks="later")]
    actions = actions_of(found)
    assert [each.contained for each in actions] == ([False, True] if contained else [False, False])
    assert actions[contained].codes == (code,)


@pytest.mark.parametrize(("path", "contained"), [("Dockerfile", True), ("setup.sh", False), ("train.py", False)])
def test_what_stops_a_container_later_stops_no_program(path: str, contained: bool) -> None:
    (action,) = actions_of([at(path, 1, "NPU855", "cuda-toolkit")])
    assert action.contained is contained


@pytest.mark.parametrize(
    ("asks", "blocks"), [("torch::hasCUDA", "slow"), ("torch::cuda::is_available", "slow"), ("torch::cuda", "later")]
)
def test_cpp_that_asks_for_a_card_goes_on_without_one(asks: str, blocks: str) -> None:
    found = [line_of("demo/main.cpp", 1, "NPU806", asks), line_of("demo/main.cpp", 2, "NPU806", "torch::kCUDA")]
    assert [each.blocks for each in actions_of(found)] == [blocks]


@pytest.mark.parametrize(("imported", "blocks"), [(True, "later"), (False, "tidy")])
def test_a_monitor_that_nothing_imports_stops_nothing(imported: bool, blocks: str) -> None:
    found = [at("setup.py", 9, "NPU290", "pynvml", "the requirement pynvml does not support NPUs", blocks="later",
                help="instead: npu-smi")]  # fmt: skip
    if imported:
        found.append(at("a.py", 1, "NPU510", "pynvml", "the package pynvml does not support NPUs", blocks="later"))
    assert [each.blocks for each in actions_of(found)] == [blocks]


def test_what_stops_many_ranks_comes_behind_what_stops_one() -> None:
    found = [at("a.py", 1, "NPU314", effort=Effort.HIGH), at("b.py", 1, "NPU293", "Sampler", blocks="first step")]
    assert [each.codes for each in actions_of(found)] == [("NPU293",), ("NPU314",)]


def test_what_every_run_of_many_ranks_meets_comes_before_what_an_option_asks_for() -> None:
    found = [at(f"{name}.py", 1, "NPU154", option="--resume") for name in "ade"] + [at("b.py", 1, "NPU314")]
    found += [at("c.py", 1, "NPU293", "Sampler", blocks="later")]
    assert [each.codes for each in actions_of(found)] == [("NPU293",), ("NPU314",), ("NPU154",)]


def test_the_order_is_what_is_started_then_the_rest_then_jobs() -> None:
    names = ("aside.py", "third_party/x/a.py", "main.py")
    found = [at(path, 2, "NPU554", api=path, late="" if path == "main.py" else "unnamed") for path in names]
    found += [at("run.slurm", 2, "NPU280"), at("aside.py", 1, "NPU520", "torch.nn.RNN", late="unnamed")]
    found += [at("main.py", 9, "NPU520", "torch.nn.GRU")]
    ranked = [(action.places[0].path, action.blocks) for action in actions_of(found)]
    first = [path for path, blocks in ranked if blocks == "first step"]
    assert first == ["main.py", "main.py", "aside.py", "aside.py", "run.slurm"]
    assert ranked[-2:] == [("third_party/x/a.py", "later"), ("run.slurm", "first step")]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ([{"option": "--fast"}], "only with --fast"),
        ([{"option": "--fast"}, {"late": "other"}], "only with --fast, or in scripts that do not train"),
        ([{"option": "--fast"}, {"option": "--fast", "late": "other"}], "only with --fast"),
        ([{"details": (("function", "Net()"),), "blocks": "slow"}], "when Net() runs"),
        ([{"details": (("function", "load()"),), "blocks": "slow"}], ""),  # which every training may call
        # not of all places
        ([{"option": "--fast"}, {"blocks": "slow"}], ""),
        ([{"option": "--fast"}, {"aside": True}], ""),
        ([{"late": "other"}], "only in scripts that do not train"),
        ([{"details": (("function", "load()"),)}], "when load() runs"),
        ([{"option": "--fast"}, {"details": (("function", "load()"),)}], "only with --fast, or when load() runs"),
        # one that counts without, or stands aside as a whole
        ([{"option": "--fast"}, {}], ""),
        ([{"late": "other"}, {}], ""),
        ([{"late": "other", "aside": True}], ""),
        ([{"details": (("function", "load()"),), "blocks": "first step"}], ""),
        # too many to be of use
        ([{"option": f"--fast{number}"} for number in range(4)], ""),
    ],
)
def test_the_condition_under_which_an_action_counts(more: list[dict[str, object]], said: str) -> None:
    found = [at("a.py", line, "NPU245", **each) for line, each in enumerate(more, 1)]  # type: ignore[arg-type]
    (action,) = actions_of(found)
    assert how_many(action).partition("1 file, ")[2] == said or how_many(action) == f"1 place{', ' * bool(said)}{said}"


def test_another_program_of_the_project_comes_behind_the_main_one() -> None:
    """It has its own import and first step, which say nothing of the main program."""
    of = {folder: (("program", folder),) for folder in ("lab", "sub")}
    found = [
        at("sub/net.py", 3, "NPU520", "torch.nn.RNN", details=of["sub"]), at("run.slurm", 2, "NPU280"),
        at("lab/run.py", 1, "NPU293", "timm.layers", details=of["lab"], blocks="import"),
        at("lab/net.py", 3, "NPU520", "torch.nn.RNN", details=of["lab"]), at("main.py", 9, "NPU245", option="--fast"),
        at("main.py", 3, "NPU520", "torch.nn.GRU"), at("lab/net.py", 9, "NPU520", "torch.nn.GRU", details=of["lab"]),
        at("lab/test.py", 3, "NPU245", aside=True),
    ]  # fmt: skip
    actions = actions_of(found)
    assert [(each.first, each.stands, each.blocks, each.beside) for each in actions] == [
        ("main.py:3", "first step", "first step", ()),
        ("main.py:9", "later", "later", ()),
        ("lab/run.py:1", "beside", "import", ("lab",)),
        ("lab/net.py:3", "beside", "first step", ("lab", "sub")),
        ("run.slurm:2", "contained", "first step", ()),
    ]
    assert how_many(actions[3]).endswith("otherwise the program in lab, sub stops at the first step")
    assert [*first_actions(actions[2:3], 1)][1].count("(otherwise the program in lab stops at import; ") == 1


def test_two_things_in_one_line_are_one_place() -> None:
    (action,) = actions_of([at("a.py", 1, "NPU245")])
    places = (Place("a.py", (3, 9), 2, "gather"), Place("a.py", (3,), 1, "scatter"))
    assert how_many(replace(action, places=places)) == "2 places in 1 file"


def test_notebooks_are_called_so() -> None:
    (action,) = actions_of([at("a.ipynb", 1, "NPU245", late="other")])
    assert how_many(action) == "1 place, only in notebooks"


def test_what_only_the_code_asks_for_is_no_condition_of_a_requirement() -> None:
    found = [at("a.py", 2, "NPU510", "unsloth", option="--fast"), at("requirements.txt", 2, "NPU290", "unsloth")]
    assert [how_many(each) for each in actions_of(found)] == ["2 places in 2 files"]
    assert [how_many(each) for each in actions_of(found[:1])] == ["1 place, only with --fast"]


@pytest.mark.parametrize(
    ("about", "more", "stands"),
    [
        ("NPU203", {"details": (("function", "load()"),)}, "aside"),
        ("NPU507", {"blocks": "later"}, "aside"),
        ("NPU520", {}, "aside"),
        ("NPU553", {"blocks": "import"}, "aside"),
        ("NPU520", {"late": ""}, "first step"),
        ("NPU203", {"details": (("function", "load()"),), "late": ""}, "first step"),
    ],
)
def test_what_no_training_loads_of_a_copied_library(about: str, more: dict[str, Any], stands: str) -> None:
    found = [at("demo/mmcv/a.py", 3, about, **{"late": "other", "blocks": "first step", **more})]
    assert [each.stands for each in actions_of(found)] == [stands]


@pytest.mark.parametrize(
    ("function", "blocks"),
    [("save_states()", "later"), ("eval()", "later"), ("_visualise_batch()", "later"), ("saved()", "first step"),
     ("load()", "first step"), ("evaluator()", "first step")],
)  # fmt: skip
def test_what_runs_between_steps_stops_later(function: str, blocks: str) -> None:
    (action,) = actions_of([at("a.py", 3, "NPU293", "np.x", blocks="first step", details=(("function", function),))])
    assert action.blocks == blocks


def test_the_modules_of_a_cluster_stop_its_jobs() -> None:
    (action,) = actions_of([at("scripts/train.sh", 3, "NPU816", "cuda/9.0")])
    assert action.contained


def test_what_is_built_of_others_stops_only_who_imports_it() -> None:
    found = [at("third_party/dcn/setup.py", 3, "NPU550"), line_of("third_party/dcn/a.cu", 2, "NPU806", "cuda.h")]
    assert [each.blocks for each in actions_of(found)] == ["later"]
    assert [each.blocks for each in actions_of([*found, at("third_party/dcn/a.py", 2, "NPU553")])] == ["import"]
    late = at("third_party/dcn/a.py", 2, "NPU553", late="branch")
    assert [each.blocks for each in actions_of([*found, late])] == ["later"]


@pytest.mark.parametrize(("option", "blocks"), [("", "first step"), ("the extra quantize", "later")])
def test_a_package_that_functions_import_and_an_extra_installs(option: str, blocks: str) -> None:
    message = "the package bitsandbytes does not support NPUs; imported when f() runs"
    imported = at("pk/a.py", 2, "NPU510", "bitsandbytes", message, blocks="first step")
    asked = at("pyproject.toml", 9, "NPU290", "bitsandbytes", "no bitsandbytes", option=option)
    assert Groups([imported, asked, at("pyproject.toml", 2, "NPU844")]).of(imported).blocks == blocks


def test_what_training_meets_is_named_first() -> None:
    found = [at(path, 1, "NPU154", late=late) for path, late in (("a.py", "other"), ("b.py", "unnamed"), ("c.py", ""))]
    assert [place.path for place in actions_of(found)[0].places] == ["c.py", "a.py", "b.py"]


@pytest.mark.parametrize(
    ("path", "imported", "blocks"),
    [("install.sh", False, "tidy"), ("install.sh", True, "import"), ("requirements.txt", False, "import")],
)
def test_what_a_script_installs_that_nothing_imports_goes(path: str, imported: bool, blocks: str) -> None:
    """No step of such a script needs the one before."""
    found = [at(path, 9, "NPU290", "flash_attn", "the requirement flash-attn does not support NPUs")]
    if imported:
        found.append(at("a.py", 1, "NPU510", "flash_attn", "the package flash_attn does not support NPUs"))
    (action,) = actions_of(found)
    assert (action.blocks, "remove the line" in action.how) == (blocks, blocks == "tidy")


@pytest.mark.parametrize(
    ("path", "goes"),
    [("docker/nvidia_icd.json", True), ("10_nvidia.json", True), ("conf/nvidia.json", False), ("conf/icd.json", False)],
)
def test_what_names_a_driver_goes_with_the_image(path: str, goes: bool) -> None:
    named = line_of(path, 4, "NPU802", "libGLX_nvidia.so.0")
    image = at("docker/Dockerfile", 1, "NPU850", "nvidia/cuda:12.1")
    assert len(actions_of([image, named])) == (1 if goes else 2)
    assert [each.codes for each in actions_of([named])] == [("NPU802",)]


@pytest.mark.parametrize(("compiled", "blocks"), [("grid/backend.py", "later"), ("other/backend.py", "import")])
def test_a_build_of_what_is_compiled_as_it_is_loaded(compiled: str, blocks: str) -> None:
    found = [at("grid/setup.py", 3, "NPU550"), at(compiled, 9, "NPU554", "torch.utils.cpp_extension.load")]
    build = next(each for each in actions_of(found) if "NPU550" in each.codes)
    assert build.blocks == blocks


@pytest.mark.parametrize(
    ("path", "text", "more", "aside"),
    [
        ("pk/old.py", "print 'x'\n", "", True),
        ("pk/old.py", "x = (1 2)\n", "", True),
        ("pk/old.py", "print 'x'\n", "import pk.old\n", False),
        ("pk/old.py", "print 'x'\nif __name__ == '__main__':\n    loss.backward()\n", "", False),
        ("old.py", "print 'x'\n", "", False),
    ],
)
def test_a_module_that_nobody_can_import_and_nobody_does(
    tmp_path: Path, path: str, text: str, more: str, aside: bool
) -> None:
    files = {"train.py": f"import torch, pk.net\n{more}loss.cuda().backward()\n", "pk/__init__.py": "", "pk/net.py": ""}
    for name, held in {**files, path: text}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(held if name != path else f"{held}x.cuda()\n")
    found = diff_tree(make_plan(Options(tmp_path, jobs=0))).findings
    (finding,) = [each for each in found if each.code == "NPU901"]
    assert finding.aside == aside


def test_parts_of_a_package_with_one_answer_are_one_action() -> None:
    nms, batched, other = (f"torchvision.ops.{name}" for name in ("nms", "batched_nms", "roi_align"))
    found = [at("boxes.py", 1, "NPU512", nms), at("boxes.py", 9, "NPU512", batched)]
    assert titles(actions_of(found)) == ["Install the extra package for torchvision on NPU"]
    found.append(at("roi.py", 1, "NPU512", other, help="do something else"))
    assert len(actions_of(found)) == 3
    of_torch = [at("a.py", 1, "NPU510", "torch.ops.a.b"), at("a.py", 2, "NPU510", "torch.ops.c.d")]
    assert len(actions_of(of_torch)) == 2


def test_a_package_in_a_notebooks_command_and_in_code_is_replaced_once() -> None:
    found = [line_of("run.sh", 1, "NPU801", "tensorrt"), at("a.py", 2, "NPU510", "tensorrt", "the package tensorrt")]
    assert titles(actions_of(found)) == ["Replace tensorrt: no NPU support"]


def test_a_gate_in_front_of_what_an_import_lacks_is_the_same_action() -> None:
    gate = at("ops.py", 30, "NPU279", "x.is_cuda", details=(("needs", "xent_cuda.run, through ops.Loss"),))
    imported = at("ops.py", 2, "NPU553", "xent_cuda", effort=Effort.HIGH)
    assert titles(actions_of([imported, gate])) == ["Replace the CUDA extension xent_cuda"]
    assert len(actions_of([replace(imported, path="other.py"), gate])) == 2


def test_a_library_with_a_target_of_its_own_is_one_decision() -> None:
    target = at("a.py", 9, "NPU203", details=(("name", "tvm.device"),))
    word = at("a.py", 3, "NPU602", "tvm")
    assert titles(actions_of([word, target])) == ["Give tvm its own device: it cannot use NPUs"]
    assert len(actions_of([replace(word, api="halide"), target])) == 2


def test_a_copied_library_is_found_by_the_name_of_its_package() -> None:
    copied = at("tools/deps/AutoQuant/auto_quant/a.py", 2, "NPU510", "cupy", late="other")
    found = [copied, at("run.py", 1, "NPU510", "auto_quant.Model", aside=True)]
    (action,) = actions_of(found)
    assert (action.stands, action.hours) == ("aside", 0.3)
    assert len(actions_of([copied, at("run.py", 1, "NPU510", "quant")])) == 2


@pytest.mark.parametrize(
    ("api", "contained"),
    [
        ("--gpus", True), ("nvidia-docker", True), ("https://nvidia.github.io/nvidia-docker/gpgkey", True),
        ("--device", False), ("torch", False),
    ],
)  # fmt: skip
def test_a_command_of_a_document_that_starts_a_container(api: str, contained: bool) -> None:
    (action,) = actions_of([at("README.md", 9, "NPU865", api, blocks="later")])
    assert action.contained is contained


@pytest.mark.parametrize(
    ("path", "contained"),
    [("scripts/docker_run.sh", True), ("tools/nvidia_docker_install.sh", True), ("scripts/run.sh", False)],
)
def test_scripts_of_containers(path: str, contained: bool) -> None:
    (action,) = actions_of([line_of(path, 1, "NPU801", "nvidia-smi")])
    assert action.contained is contained


def test_the_place_of_a_job_comes_after_that_of_the_program() -> None:
    found = [at("appveyor.yml", 29, "NPU844", "torch"), at("setup.py", 18, "NPU844", "torch")]
    (action,) = actions_of(found)
    assert [place.path for place in action.places] == ["setup.py", "appveyor.yml"]


def test_a_pin_is_raised_once_in_the_action_that_comes_first() -> None:
    old = at("requirements.txt", 3, "NPU291", "transformers")
    pins = at("requirements.txt", 1, "NPU845", "numpy", details=(("thing", "numpy"), ("thing", "transformers")))
    (action,) = actions_of([old, pins])
    assert (action.blocks, action.count) == ("import", 2)
    assert len(actions_of([replace(old, api="timm"), pins])) == 2
    assert len(actions_of([replace(old, path="requirements/dev.txt"), pins])) == 2


@pytest.mark.parametrize(
    ("option", "late", "begins"),
    [
        ("--use_cuda_kernel", "branch", "training does not need it: skip it, and leave off what asks for it."),
        ("", "other", "training does not need it: skip it, and leave off what asks for it."),
        ("", "", "first look for an operator"),
    ],
)
def test_a_kernel_that_training_does_without_is_left_off(option: str, late: str, begins: str) -> None:
    asks = at("ops/act.py", 3, "NPU553", "act_cuda", option=option, late=late)
    (action,) = actions_of([at("ops/act_cuda.cu", 1, "NPU806", "cuda.h"), asks])
    assert action.how.startswith(begins)
