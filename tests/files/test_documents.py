"""Documents: what is said of the commands in their blocks, and what `--docs` makes of commands and code."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.files.shell_pairs import TARGET, TRAIN, migrated
from transplt.base.finding import Effort, FileResult, Level
from transplt.base.settings import Settings
from transplt.engine.engine import index_source, join_facts
from transplt.engine.files.kind import FileKind
from transplt.engine.files.other_file import migrate_other
from transplt.flow.facts import ProjectFacts
from transplt.rules.pages import load


def document(text: str, path: str = "README.md", **chosen: object) -> FileResult:
    return migrated(text, path, FileKind.PROSE, **chosen)


def said(result: FileResult) -> list[tuple[str, int]]:
    return [(each.code, each.span.line) for each in result.findings if not each.applied]


def edited(text: str, path: str = "README.md") -> str:
    """With `--docs`; a second run changes nothing."""
    new = document(text, path, docs=True).data.decode()
    assert document(new, path, docs=True).data.decode() == new
    return new


RUN = "CUDA_VISIBLE_DEVICES=0 python train.py --device cuda"
RAN = "ASCEND_RT_VISIBLE_DEVICES=0 python train.py --device npu"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("README.md", "# A\n\n```bash\n@\n```\n"),
        ("README.md", "```\n@\n```\n"),
        ("README.md", "~~~~ sh\n@\n~~~~\n"),
        ("README.md", "```{.bash}\n@\n```\n"),
        ("README.md", "- item:\n\n  ```shell\n  @\n  ```\n"),
        ("README.md", "1. ```sh\n   @\n   ```\n"),
        ("README.md", "> ```bash\n> @\n> ```\n"),
        ("README.md", "Train:\n\n    @\n"),
        ("README.md", "Train:\n\n\t@\r\n"),
        ("README.md", "```console\n$ @\nloss cuda 0.1\n```\n"),
        ("README.md", "```\n$ @ \\\n>   --lr 1\n```\n"),
        ("README.md", "```bash\n@ --data <your data> --x [a|b\n```\n"),
        ("README.md", "```bash\n(see below\n@\n```\n"),
        ("docs/a.rst", ".. code-block:: bash\n   :linenos:\n\n   @\n\nText.\n"),
        ("docs/a.rst", "Train::\n\n    @\n\nText.\n"),
        ("docs/a.rst", ".. code:: console\n\n    $ @\n"),
    ],
)
def test_a_command_is_said_and_edited_with_docs(path: str, text: str) -> None:
    before = text.replace("@", RUN)
    result = document(before, path)
    assert not result.changed and [code for code, _ in said(result)] == ["NPU865"]
    (found,) = result.findings
    assert found.level is Level.MANUAL and found.effort is Effort.LOW and "--docs" in found.help
    assert edited(before, path) == text.replace("@", RAN)
    assert said(document(before, path, docs=True)) == []


@pytest.mark.parametrize(
    "text",
    [
        f"Run `{RUN}` now.\n",
        "CUDA_VISIBLE_DEVICES=0 chooses a card.\n",
        "```python\nmodel = ... .cuda(\n```\n",
        "```python\nx = 'cuda or cpu'  # cuda\n```\n",
        "```yaml\ndevice: cuda\n```\n",
        "```c++\ncudaMalloc(&p, 1);\n```\n",
        "```bash\n# for cuda\nls\n```\n",
        "```bash\npython train.py --no-cuda\n```\n",
        "```bash\nNCCL_IB_DISABLE=1 python train.py\n```\n",
        "```console\n$ python train.py\nusing cuda:0 with nccl\n```\n",
        "```\nloss on cuda: 0.1\n```\n",
        "<!-- cuda -->\n",
    ],
)
def test_what_is_no_command_for_cuda(text: str) -> None:
    result = document(text)
    assert said(result) == [] and not result.changed
    assert result.tokens.manual == 0


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("```python\nimport torch\nmodel.cuda()\n```\n",
         "```python\nimport torch\nimport torch_npu\nmodel.npu()\n```\n"),
        ("```\nimport torch\ntorch.cuda.init()\n```\n", "```\nimport torch\nimport torch_npu\ntorch.npu.init()\n```\n"),
        (".. code:: python\n\n   import torch\n   torch.cuda.init()\n",
         ".. code:: python\n\n   import torch\n   import torch_npu\n   torch.npu.init()\n"),
        ("```python\n>>> torch.cuda.init()\n```\n", "```python\n>>> torch.cuda.init()\n```\n"),
        ("```python\nmodel = ... .cuda(\n```\n", "```python\nmodel = ... .cuda(\n```\n"),
        ("```python\n%cuda\n```\n", "```python\n%cuda\n```\n"),
        ("```bash\nnvidia-smi\n```\n", "```bash\nnpu-smi info\n```\n"),
        ("```bash\npython -c 'import torch; torch.cuda.init()'\n```\n",
         "```bash\npython -c 'import torch_npu; import torch; torch.npu.init()'\n```\n"),
    ],
)  # fmt: skip
def test_docs_edits_code(before: str, after: str) -> None:
    path = "a.rst" if before.startswith("..") else "README.md"
    assert edited(before, path) == after


@pytest.mark.parametrize(
    ("path", "code", "names"),
    [
        ("README.md", "import torch\nmodel.cuda()\nx = x.to('cuda')", "torch.Tensor.cuda, device string 'cuda'"),
        ("README.md", "reft.set_device('cuda')\ndevice = 'cuda'\nmodel.to(device)", "device string 'cuda'"),
        ("docs/guide.md", "import torch\nmodel.cuda()", ""),
        ("README.md", "import torch\nmodel.npu()", ""),
    ],
)
def test_code_of_a_readme_for_cuda_is_said_once(path: str, code: str, names: str) -> None:
    found = document(f"```python\n{code}\n```\n", path).findings
    assert [each.message for each in found] == [f"this document has code for CUDA: {names}"] * bool(names)
    assert {(each.code, each.blocks) for each in found} <= {("NPU865", "later")}


@pytest.mark.parametrize(
    ("command", "blocks", "level"),
    [
        (RUN, "later", Level.MANUAL),
        ("CUDA_VISIBLE_DEVICES=0 python train.py", "", Level.MANUAL),
        ("docker run --gpus all nvcr.io/nvidia/pytorch:24.01-py3", "later", Level.MANUAL),
        ("docker run --gpus all nvcr.io/nvidia/tritonserver:22.07-py3", "later", Level.INFO),
        ("docker pull nvcr.io/nvidia/pytorch:24.01-py3", "", Level.MANUAL),
        ("torchrun --nproc_per_node gpu train.py", "later", Level.MANUAL),
        ("lightning run model \\\n  --accelerator=cuda \\\n  train.py", "later", Level.MANUAL),
        ("pip install git+https://github.com/NVlabs/tiny-cuda-nn/#subdirectory=bindings/torch", "later", Level.MANUAL),
    ],
)
def test_what_a_command_of_a_document_stops(command: str, blocks: str, level: Level) -> None:
    (found,) = document(f"```bash\n{command}\n```\n").findings
    assert (found.blocks, found.level) == (blocks, level)
    assert ("torch-npu" in found.help or "CANN image" in found.help) == ("pytorch" in command)


@pytest.mark.parametrize(
    ("command", "said"),
    [("tools_train --device=cuda", True), ("tools-fit --x 1 --device cuda:0", True), ("toolset --device=cuda", False)],
)
def test_a_program_that_is_installed_under_a_name_of_the_package(command: str, said: bool) -> None:
    chosen, text = Settings(), f"```bash\n{command}\n```\n".encode()
    every = [index_source(data, f"tools/{name}.py", chosen) for name, data in (("__init__", b""), ("train", TRAIN))]
    result, _ = migrate_other(text, "README.md", FileKind.PROSE, chosen, TARGET, join_facts(every, chosen))
    assert [each.api for each in result.findings] == ["--device"] * said


@pytest.mark.parametrize("options", ["--nproc_per_node 8", "--nproc-per-node=auto", "--accelerator cpu", "--gpu"])
def test_options_of_a_start_that_an_npu_takes_too(options: str) -> None:
    assert said(document(f"```bash\ntorchrun {options} train.py\n```\n")) == []


def test_one_finding_for_a_command() -> None:
    text = f"```bash\n{RUN} \\\n  --dist-backend nccl\n\nnvidia-smi -L | wc -l\nls\n```\n"
    assert said(document(text)) == [("NPU865", 2), ("NPU865", 5)]
    assert said(document(text, docs=True)) == [("NPU865", 5)]


@pytest.mark.parametrize(
    "command",
    [
        "docker run --gpus all x",
        "docker pull nvcr.io/nvidia/pytorch:24.01-py3",
        "pip install torch==2.1.0+cu118",
        "conda install pytorch cudatoolkit=11.3 -c pytorch",
        "export PATH=/usr/local/cuda/bin:$PATH",
    ],
)
def test_what_is_installed_for_cuda(command: str) -> None:
    assert [code for code, _ in said(document(f"```bash\n{command}\n```\n"))] == ["NPU865"]


@pytest.mark.parametrize(
    ("command", "begins", "ends"),
    [
        ("docker run --gpus all x", "write instead: --device ", "; --docs does not edit this"),
        ("docker pull nvcr.io/nvidia/pytorch:24.01-py3", "use a CANN image; ", "; --docs does not edit this"),
        ("conda create -n a python=3.10 pytorch pytorch-cuda=12.1 -c nvidia",
         "conda has no torch-npu: torch and torch-npu come from pip; install the others with conda, then pip install ",
         "/whl/cpu; --docs does not edit this"),
        (RUN, "", "; --docs makes the edits that are certain"),
    ],
)  # fmt: skip
def test_the_help_says_what_docs_does(command: str, begins: str, ends: str) -> None:
    (found,) = document(f"```bash\n{command}\n```\n").findings
    assert found.help.startswith(begins) and found.help.endswith(ends)
    assert "torch-npu" not in found.message  # which is not CUDA's


@pytest.mark.parametrize(
    ("command", "help_"),
    [
        ("CUDA_VISIBLE_DEVICES=GPU-8932f937 python a.py", "CUDA_VISIBLE_DEVICES: "),  # what its counterpart takes
        ("conda install -c numba cudatoolkit=x.x  (8.0, depend on your environment)", "cudatoolkit: remove it"),
    ],
)
def test_a_command_says_what_becomes_of_each_word(command: str, help_: str) -> None:
    helps = [each.help for each in document(f"```sh\n{command}\n```\n").findings if each.code == "NPU865"]
    assert len(helps) == 1 and help_ in helps[0] and "write ;" not in helps[0]


@pytest.mark.parametrize(
    ("words", "left_out"),
    [
        ("--enable_xformers_mem_attention", "leave out --enable_xformers_mem_attention: xformers"),
        ("--modifiers enable_CuEquivariance", "leave out enable_CuEquivariance: cuEquivariance"),
        ("--output with-enable_xformers", ""),
        ("--enable_ema --use_torch_compile", ""),
        ("--with-einops", ""),
    ],
)
def test_a_command_that_switches_on_a_package_for_cuda_leaves_it_out(words: str, left_out: str) -> None:
    (found,) = document(f"```bash\nCUDA_VISIBLE_DEVICES=0 python train.py {words}\n```\n").findings
    assert (left_out in found.help) and ("leave out" in found.help) is bool(left_out)


def test_only_documents() -> None:
    for path in ("LICENSE", "notes.txt", "CHANGES"):
        assert said(document(f"```bash\n{RUN}\n```\n", path)) == []


def test_the_portable_style_edits_nothing_and_asks_for_a_command_beside() -> None:
    text = f"```bash\n{RUN}\n```\n"
    result = document(text, style="portable")
    assert result.data.decode() == text and said(result) == said(document(text))
    assert all(each.help.endswith("add the command for NPUs") for each in result.findings)


def test_cards_that_the_portable_module_hands_on_are_no_work() -> None:
    text = "```bash\nCUDA_VISIBLE_DEVICES=0 python train.py\n```\n"
    assert said(document(text)) and said(document(text, style="portable")) == []
    assert said(document(text.replace("python", "nvidia-smi; python"), style="portable"))


def test_the_example_of_the_page() -> None:
    page = load("NPU865")
    (example,) = re.findall(r"```sh\n.*?```", page.sections["Example"], re.DOTALL)
    (found,) = document(example + "\n").findings
    assert (found.code, found.level, found.effort) == ("NPU865", page.level, page.effort)


_LINES = [
    "```", "```bash", "```python", "~~~", "    ", "> ", "- a", "1. ```sh", RUN, "$ " + RUN, "    $ nvidia-smi", "text",
    "", ".. code-block:: sh", "   nvidia-smi", "a::", "\t" + RUN, "import torch", "torch.cuda.init()", "é \\",
    "model.cuda()",
]  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(_LINES), max_size=14).map("\n".join), st.sampled_from(["README.md", "a.rst"]))
def test_any_text_is_edited_only_where_it_is_said(text: str, path: str) -> None:
    assert not document(text, path).changed
    result = document(text, path, docs=True)
    new = text.encode()
    for each in sorted(result.findings, key=lambda item: (-item.span.start, -item.span.end)):
        if each.applied and each.edit is not None:
            new = new[: each.span.start] + each.edit.after.encode() + new[each.span.end :]
    assert new == result.data
    assert document(result.data.decode(), path, docs=True).data == result.data


def test_the_python_of_an_environment_is_none_of_cuda() -> None:
    result = document("```bash\nconda create -n x python=3.7\nconda activate x\n```\n")
    assert said(result) == []


@pytest.mark.parametrize(
    ("line", "said_"),
    [("pip install .", True), ("pip install -r needs.txt", True), ("pip install -e '.[dev]'", True), ("ls .", False)],
)
def test_the_python_of_an_environment_that_the_project_is_installed_in(line: str, said_: bool) -> None:
    result = document(f"For torch:\n```bash\nconda create -n x python=3.7\nconda activate x\n{line}\n```\n")
    assert said(result) == [("NPU845", 3)] * said_


OLD = "```\nconda create -n a python=3.6\nconda install pytorch=1.4\npip install scipy==1.2.1 tqdm==4.43.0\n```\n"


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("README.md", OLD, [("NPU845", 2), ("NPU845", 4)]),
        ("README.md", OLD.replace("3.6", "3.10"), [("NPU845", 4)]),
        ("README.md", OLD.replace("scipy==1.2.1", "scipy"), [("NPU845", 2)]),
        ("README.md", OLD.replace("pytorch=1.4", "numpy"), []),  # something else says what torch is
        ("README.md", OLD.replace("```", ""), []),
        ("docs/install.md", OLD, []),
        ("sub/README.md", OLD, []),
    ],
)
def test_a_readme_that_installs_torch(path: str, text: str, expected: list[tuple[str, int]]) -> None:
    found = document(text, path)
    assert [each for each in said(found) if each[0] == "NPU845"] == expected


PINS = "```\npip install torch torchvision\npip install accelerate==0.12.0 einops\n```\n"


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("README.md", PINS, [("NPU291", 3)]),
        ("README.md", PINS.replace("==0.12.0", ">=0.12.0"), []),
        ("README.md", PINS.replace("==0.12.0", "==0.34.0"), []),
        ("README.md", PINS.replace("torch torchvision", "numpy"), []),  # something else says what is installed
        ("README.md", PINS.replace("accelerate==0.12.0", "torch==1.13.1"), []),  # said by the command for CUDA
        ("docs/install.md", PINS, []),
    ],
)
def test_a_pin_of_a_readme_that_is_too_old(path: str, text: str, expected: list[tuple[str, int]]) -> None:
    assert [each for each in said(document(text, path)) if each[0] == "NPU291"] == expected


@pytest.mark.parametrize(
    ("line", "blocks"),
    [
        ("gpus = os.environ.get('CUDA_VISIBLE_DEVICES', '').split(',')", "slow"),  # and none without it
        ("gpus = len(os.environ['CUDA_VISIBLE_DEVICES'])", "slow"),
        ("gpus = os.environ['CUDA_VISIBLE_DEVICES']\nlogger.info('on %s' % gpus)", ""),
        ("os.environ['CUDA_VISIBLE_DEVICES'] = '0'", ""),
        ("gpus = os.environ.get('CUDA_HOME')", ""),
        ("print('CUDA_VISIBLE_DEVICES')", ""),
    ],
)
def test_a_variable_by_which_cards_are_counted_is_more_than_cosmetic(line: str, blocks: str) -> None:
    reading = ProjectFacts.join([index_source(f"import os\n{line}\n".encode(), "train.py", Settings())])
    text = f"```bash\n{RUN}\n```\n".encode()
    (found,) = migrate_other(text, "README.md", FileKind.PROSE, Settings(), TARGET, reading)[0].findings
    assert (found.blocks, "counts its cards" in found.message) == (blocks, bool(blocks))
