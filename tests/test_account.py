"""Every CUDA word of a file is converted, manual, unknown, or ignored with a reason."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from tests.harness import hold_ledger, migrate, pattern, reasons
from tests.test_properties import programs
from transplt.base.finding import Status
from transplt.base.settings import Settings
from transplt.base.text.cuda_words import find_tokens
from transplt.engine.engine import migrate_source, survey_source
from transplt.faces.cli.main import main


@pytest.mark.parametrize(
    ("source", "counts"),
    [
        ("import torch\nx.cuda()\n", (1, 1, 0, 0, 0)),
        ("import torch\ntorch.cuda.nccl.version()\n", (2, 0, 2, 0, 0)),
        ("x = lib.nvtx\n", (1, 0, 0, 1, 0)),
        ("use_cuda = True\n", (1, 0, 0, 0, 1)),
        ("'''Runs on cuda, with nccl.'''\n", (2, 0, 0, 0, 2)),
        ("# cuda\n", (0, 0, 0, 0, 0)),
        ("import torch\nfrom torch import cuda\ncuda.synchronize()\n", (2, 2, 0, 0, 0)),
        ("import torch\nx = torch.cuda.NoSuchName\n", (1, 0, 0, 1, 0)),
    ],
)
def test_the_sums(source: str, counts: tuple[int, ...]) -> None:
    tokens = migrate(source).tokens
    assert (tokens.found, tokens.converted, tokens.manual, tokens.unknown, tokens.ignored) == counts


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("use_cuda = True\n", "a name of the project"),
        ("def to_cuda(x): return x\n", "a name of the project"),
        ("from .ops import has_cuda\n", "a name of the project"),
        ("x.is_cuda_ok()\n", "an attribute of that name, of an unknown object"),
        ("x.cuda_ok = 1\ny = x.cuda_ok\n", "data of the project: its name is kept"),
        ("class K:\n    def to_cuda(self):\n        self.to_cuda()\n", "a member of a class of the project"),
        (
            "import torch\ntorch.cuda.cudart().cudaProfilerStart()\n",
            "belongs to the name next to it, which is reported",
        ),
        ("import vllm\nfrom vllm.x import pynccl\n", "the package is reported where this file imports it"),
        (
            "from vllm_ascend.x import pyhccl as PyNccl\nPyNccl()\n",
            "a local name of something for the NPU from vllm_ascend",
        ),
        ("from faiss import is_cuda_ok\n", "a name of faiss"),
        ("import re\nm = re.match(r'cuda:(\\d+) of', key)\n", "a pattern that is matched against texts"),
        ("f(use_cuda=1)\n", "a keyword argument: the called function defines its name"),
        ("f(cuda=1)\n", "a keyword argument: the called function defines its name"),
        ("from numba import cuda as c\nc.grid()\n", ""),
        ("import cupy\ncupy.cuda.f()\n", "the package is reported where this file imports it"),
        ("from lib import *\nhas_cuda()\n", "a name from another file"),
        ("class K:\n    CUDA = 1\nK.CUDA\n", "a member of a class of the project"),
        ("def f(nvcc, cuda):\n    return nvcc\n", "a name of the project"),
        ("import torch\nc = cuda = torch.cuda\n", "a name of the project"),
        ("'''Needs cuda.'''\n", "a docstring"),
        ("import torch\nx.cuda()  # transplt: ignore\n", "ignored by a comment"),
    ],
)
def test_the_reasons(source: str, reason: str) -> None:
    result = migrate(source)
    assert sum(reasons(result).values()) == result.tokens.ignored
    assert reason in reasons(result) or not reason
    assert result.tokens.unknown == 0


def test_a_word_in_an_edit_that_keeps_it_is_not_converted() -> None:
    result = migrate("import torch\nfrom torch import cuda\n__all__ = ['cuda']\n", path="pkg/__init__.py")
    assert b"from torch import npu as cuda" in result.data
    assert result.tokens.converted == 0


@pytest.mark.parametrize(
    "source",
    [
        "import torch\nif torch.cuda.get_device_capability()[0] >= 8:\n    pass\n",
        "import torch\nx = torch.cuda.nccl.version()\n",
        "import torch\nx.cuda()\n",
    ],
)
def test_what_is_offered_accounts_for_its_words_without_edits_too(source: str) -> None:
    surveyed = survey_source(source.encode(), "x.py", Settings())
    assert "NPU602" not in {each.code for each in surveyed.findings}


def test_unknown_words_are_said_once_a_line() -> None:
    result = migrate("x = lib.nvtx, lib.nvtx, lib.nccl\ny = lib.nvtx\n")
    said = [(finding.span.line, finding.message.split("'")[1]) for finding in result.findings]
    assert said == [(1, "nvtx"), (1, "nccl"), (2, "nvtx")]
    assert all(finding.code == "NPU602" for finding in result.findings)
    assert result.tokens.unknown == 4


def test_unreadable_files_are_accounted_for() -> None:
    result = migrate_source(b"print 'cuda'  # cuda\n", "m.py", Settings())
    assert result.status is Status.UNREADABLE
    assert (result.tokens.found, result.tokens.manual, result.tokens.comments) == (1, 1, 1)


# --- switched off ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "stays"),
    [
        ("x.cuda()  # transplt: ignore", True),
        ("x.cuda()  # transplt: ignore[NPU210]", True),
        ("x.cuda()  # transplt: ignore[NPU211, NPU210] because", True),
        ("x.cuda()  # transplt: ignore[NPU2]", True),
        ("x.cuda()  # noqa  # transplt: ignore[NPU210]", True),
        ("y = '#', x.cuda()  # transplt: ignore[NPU210]", True),
        ("x.cuda()  # transplt: ignore[NPU101]", False),
        ("x.cuda('# transplt: ignore')", False),
        ("x.cuda()\n# transplt: ignore", False),
    ],
)
def test_comments_switch_off(line: str, stays: bool) -> None:
    result = migrate(f"import torch\n{line}\n")
    assert (b"x.cuda(" in result.data) is stays
    ignored = [finding for finding in result.findings if finding.ignored]
    assert [finding.code for finding in ignored] == (["NPU210"] if stays else [])
    assert not any(finding.open for finding in ignored)
    assert (result.tokens.ignored == 1) is stays


def test_findings_without_an_edit_are_switched_off_too() -> None:
    result = migrate(
        """
        import torch
        x = torch.cuda.nccl  # transplt: ignore[NPU501] checked
        y = lib.nvtx  # transplt: ignore
        """
    )
    assert {finding.ignored for finding in result.findings} == {"ignored by a comment"}
    assert (result.tokens.manual, result.tokens.unknown, result.tokens.ignored) == (0, 0, 3)


@pytest.mark.parametrize(
    ("ignores", "stays"),
    [
        ((("tests/*", ("NPU210",)),), True),
        ((("tests/*", ()),), True),
        ((("*.py", ("NPU2",)),), True),
        ((("tests/*", ("NPU101",)),), False),
        ((("src/*", ("NPU210",)),), False),
    ],
)
def test_per_file_ignores(ignores: tuple[tuple[str, tuple[str, ...]], ...], stays: bool) -> None:
    settings = Settings(per_file_ignores=ignores)
    result = migrate_source(b"import torch\nx.cuda()\n", "tests/test_a.py", settings)
    assert (b"x.cuda()" in result.data) is stays


def test_a_name_with_a_use_that_is_switched_off_keeps_its_local_name() -> None:
    result = migrate("from torch import cuda\ncuda.synchronize()\ncuda.empty_cache()  # transplt: ignore\n")
    assert b"from torch import npu as cuda\ncuda.synchronize()\ncuda.empty_cache()" in result.data


# --- properties ------------------------------------------------------------------------------------------------------

WORDS = st.sampled_from("cuda CUDA use_cuda cuda_x nccl lib.nvtx x.cudnn torch.cuda K.CUDA".split())
FORMS = st.sampled_from(
    [
        "{} = 1", "x = {}", "f({})", "'{}'", "f'{{{}}}'", "# {}", "x['{}']", "f(a='{}')", "def f(): return {}",
        "if {}: pass", "x = ['{}', '{}']", "assert x == '{}', 'no {}'", "'''{}\n{}'''", "r'{}'", "b'{}'",
        "d = {{'{}': 1}}",
    ]
)


@st.composite
def wordy(draw: st.DrawFn) -> str:
    lines = ["import torch"] if draw(st.booleans()) else []
    for _ in range(draw(st.integers(1, 6))):
        form = draw(FORMS)
        lines.append(form.format(*(draw(WORDS) for _ in range(2))))
    return "\n".join(lines) + "\n"


@pattern("T28")
@given(wordy())
def test_the_account_agrees_with_the_independent_scan(text: str) -> None:
    result = migrate_source(text.encode(), "m.py", Settings())
    tokens = result.tokens
    assert tokens.found == tokens.converted + tokens.manual + tokens.unknown + tokens.ignored
    scanned = find_tokens(text.encode())
    assert tokens.found == sum(token.where != "comment" for token in scanned)
    assert tokens.comments == sum(token.where == "comment" for token in scanned)
    hold_ledger(text, result)
    # What was converted is gone from the output, and nothing else is.
    left = sum(token.where != "comment" for token in find_tokens(result.data))
    assert result.status is not Status.OK or left == tokens.found - tokens.converted


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@given(programs())
def test_whole_programs_add_up(data: bytes) -> None:
    result = migrate_source(data, "m.py", Settings())
    tokens = result.tokens
    assert tokens.found == tokens.converted + tokens.manual + tokens.unknown + tokens.ignored
    if result.status is Status.OK:
        assert sum(reasons(result).values()) == tokens.ignored


def test_the_log_says_why_words_stay(tmp_path: Path) -> None:
    source = tmp_path / "demo"
    source.mkdir()
    (source / "a.py").write_text("use_cuda = True\nhas_cuda = use_cuda\n'''cuda'''\n")
    (source / "b.py").write_text("def to_cuda(x): return x\n")
    done = CliRunner().invoke(main, ["-i", str(source), "-o", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    log = (tmp_path / "out" / "demo_msft" / "msFmkTranspltlog.txt").read_text()
    assert "  ignored in Python files: 4 (a name of the project)\n" in log
    assert "CUDA words: 5 found, 0 converted, 0 left, 0 not understood, 5 ignored" in log


@pytest.mark.parametrize(
    ("source", "package"),
    [
        ("from lib import is_cuda_ok\nis_cuda_ok()\n", "lib"),
        ("import lib\nlib.is_cuda_ok()\nlib.has_nccl\n", "lib"),
        ("import chainer\nx = chainer.cuda.to_gpu(chainer.cuda.cupy)\n", "chainer"),
        ("import taichi as ti\nti.init(arch=ti.cuda if fast else ti.cuda)\n", "taichi"),
    ],
)
def test_what_a_package_nobody_knows_has_of_cuda_is_said_once(source: str, package: str) -> None:
    result = migrate(source)
    (said,) = result.findings
    assert (said.code, said.api) == ("NPU602", package)
    assert said.message.startswith(f"{package} has a name with 'cuda' here")
    assert result.tokens.unknown == result.tokens.found == 2


def test_a_package_that_lies_below_in_the_project_is_its_own() -> None:
    result = migrate("from nvidia.model import f\n", files={f"{x}/nvidia/model.py": "def f(): pass\n" for x in "ab"})
    assert reasons(result) == {"a module of the project": 1}


def test_a_folder_of_the_project_that_is_called_like_a_library_is_not_that_library() -> None:
    files = {"p/integrations/numba/loss.py": "", "p/integrations/numba/__init__.py": ""}
    result = migrate("from numba import cuda\ncuda.grid(1)\n", path="p/a.py", files=files)
    assert reasons(result) == {"the package is reported where this file imports it": 1}


@pytest.mark.parametrize(
    ("files", "unknown"),
    [
        ({"paddle/__init__.py": ""}, 1),
        ({"paddle/__init__.py": "from .p import CUDAPlace\n", "paddle/p.py": "class CUDAPlace:\n    pass\n"}, 0),
        ({"paddle/__init__.py": "CUDAPlace = object\n"}, 0),
        ({}, 1),
    ],
)
def test_a_folder_with_the_name_of_a_library(files: dict[str, str], unknown: int) -> None:
    source = "import paddle\nplace = paddle.CUDAPlace(0) if USE else paddle.CPUPlace()\n"
    result = migrate(source, path="paddle/quant/q.py", files=files)
    assert result.tokens.unknown == unknown


# --- settings named after cuDNN --------------------------------------------------------------------------------------

YACS = "from yacs.config import CfgNode as CN\n\n_C = CN()\n_C.CUDNN = CN()\n_C.CUDNN.BENCHMARK = True\n"
USES = "import torch\nimport torch.backends.cudnn as cudnn\nfrom .config import cfg\n"
CUDNN = "a setting whose value only goes to torch.backends.cudnn"


@pytest.mark.parametrize(
    "use",
    [
        "cudnn.benchmark = cfg.CUDNN.BENCHMARK\n",
        "torch.backends.cudnn.deterministic = bool(cfg.CUDNN.DETERMINISTIC)\ncudnn.enabled = not cfg.CUDNN.OFF\n",
        "cudnn.benchmark = cfg['CUDNN']['BENCHMARK']\n",
        "cudnn.benchmark = cfg.get('CUDNN').get('BENCHMARK', True)\n",
        "cudnn.benchmark = getattr(cfg, 'CUDNN').BENCHMARK\n",
        "with cudnn.flags(enabled=cfg.CUDNN.ENABLED):\n    run()\n",
        "with cudnn.flags(**cfg.CUDNN):\n    run()\n",
        "if cfg.CUDNN.BENCHMARK and not debug:\n    cudnn.benchmark = True\nelse:\n    cudnn.deterministic = True\n",
        "cfg.CUDNN.BENCHMARK = False\ncudnn.benchmark = cfg.CUDNN.BENCHMARK\n",
        "def cudnn_of(net):\n    cudnn.benchmark = cfg.CUDNN.BENCHMARK\n",
    ],
)
def test_a_key_that_only_reaches_cudnn_stays(use: str) -> None:
    result = migrate(YACS, path="pkg/config.py", files={"pkg/train.py": USES + use})
    assert reasons(result) == {CUDNN: 2} and result.tokens.found == 2
    assert not result.findings


@pytest.mark.parametrize(
    "use",
    [
        "cudnn.benchmark = cfg.CUDNN.BENCHMARK\nrun(cfg.CUDNN)\n",
        "cudnn.benchmark = cfg.CUDNN.BENCHMARK\nbackend = cfg.CUDNN.BACKEND\n",
        "cudnn.benchmark = backend = cfg.CUDNN.BENCHMARK\n",
        "net.benchmark = cfg.CUDNN.BENCHMARK\n",
        "if cfg.CUDNN.BENCHMARK:\n    cudnn.benchmark = True\n    load_kernels()\n",
        "with cudnn.flags(**cfg.CUDNN):\n    run()\nrun(**cfg.CUDNN)\n",
        "cudnn.benchmark = cfg.CUDNN.BENCHMARK\nfor key in cfg.CUDNN.keys():\n    set_it(key)\n",
        "cudnn.benchmark = cfg.CUDNN.BENCHMARK + 1 if choose(cfg.CUDNN) else 0\n",
    ],
)
def test_a_key_that_goes_elsewhere_is_unknown(use: str) -> None:
    result = migrate(YACS, path="pkg/config.py", files={"pkg/train.py": USES + use})
    assert result.tokens.unknown == result.tokens.found == 2


@pytest.mark.parametrize("use", ["", "cfg.CUDNN.BENCHMARK = False\n", "cudnn.benchmark = cfg.cudnn.BENCHMARK\n"])
def test_a_flag_of_cudnn_that_nobody_reads_stays(use: str) -> None:
    result = migrate(YACS, path="pkg/config.py", files={"pkg/train.py": USES + use})
    assert result.tokens.ignored == result.tokens.found == 2


def test_an_option_that_only_reaches_cudnn_stays() -> None:
    source = "parser.add_argument('--cudnn')\nargs = parser.parse_args()\nimport torch\n{use}\n"
    result = migrate(source.format(use="torch.backends.cudnn.enabled = args.cudnn"))
    assert reasons(result)[CUDNN] == 1 and result.tokens.unknown == 0
    assert migrate(source.format(use="run(args.cudnn)")).tokens.unknown == 1


def test_what_torch_has_is_no_setting_of_the_project() -> None:
    result = migrate(YACS + "import torch\ntorch.backends.cudnn.benchmark = _C.CUDNN.BENCHMARK\n")
    assert reasons(result) == {CUDNN: 3, "a remark, nothing to do": 1}


def test_a_file_without_its_project_says_nothing_of_its_keys() -> None:
    assert migrate_source(YACS.encode(), "config.py", Settings()).tokens.unknown == 2
