"""Commands that install torch install the one that torch_npu is for, with torch-npu, and no parts of CUDA."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transplt.base.finding import FileResult
from transplt.base.settings import Settings, TorchTarget
from transplt.edits.edit import Edit
from transplt.engine.files.dependencies.commands import install_line_changes
from transplt.engine.files.document import Document, text_of
from transplt.engine.files.kind import FileKind, kind_of
from transplt.engine.files.other_file import migrate_other
from transplt.flow.facts import ProjectFacts

NEW = TorchTarget("2.12", "", "2.12.0", "9.1.0", "2.12.0")
OLD = TorchTarget("2.8", "", "2.8.0.post4", "9.0.0", "2.8.0")
CPU = "https://download.pytorch.org/whl/cpu"
CU118 = "https://download.pytorch.org/whl/cu118"


def migrate(text: str, path: str = "setup.sh", target: TorchTarget = NEW, **settings: object) -> FileResult:
    data = text.encode()
    chosen = Settings(**settings)  # type: ignore[arg-type]
    result, _ = migrate_other(data, path, kind_of(path, data), chosen, target)
    again, _ = migrate_other(result.data, path, kind_of(path, data), chosen, target)
    assert again.data == result.data, "a second run changes nothing"
    assert not [each for each in result.findings if each.code == "NPU992"]
    return result


PIP = [
    ("pip install torch torchvision\n", "pip install torch torch-npu==2.12.0 torchvision\n"),
    (
        f"pip3 install torch==1.13.1+cu117 torchvision==0.14.1+cu117 --extra-index-url {CU118}\n",
        f"pip3 install torch==2.12.0 torch-npu==2.12.0 torchvision==0.27.0 --extra-index-url {CPU}\n",
    ),
    (
        f"python -m pip install -U torch==2.0.1 --index-url {CU118} && echo torch\n",
        f"python -m pip install -U torch==2.12.0 torch-npu==2.12.0 --extra-index-url {CPU} && echo torch\n",
    ),
    (
        "pip install torch==1.9.0+cu111 -f https://download.pytorch.org/whl/torch_stable.html\n",
        f"pip install torch==2.12.0 torch-npu==2.12.0 --extra-index-url {CPU}\n",
    ),
    ("pip install 'torch>=1.7,<2' numpy\n", "pip install 'torch==2.12.0' torch-npu==2.12.0 numpy\n"),
    ("pip install numpy nvidia-cublas-cu12==12.1 tqdm # torch\n", "pip install numpy tqdm # torch\n"),
    ("uv pip install torch\n", "uv pip install torch torch-npu==2.12.0\n"),
    ("uv add torch==2.0\n", "uv add torch==2.12.0 torch-npu==2.12.0\n"),
    (
        "pip install \\\n  torch==2.0.1 \\\n  numpy\n",
        "pip install \\\n  torch==2.12.0 torch-npu==2.12.0 \\\n  numpy\n",
    ),
    (
        "conda install -y pytorch==1.12.1 torchvision==0.13.1 cudatoolkit=11.3 -c pytorch -c nvidia\n",
        "pip install torch==2.12.0 torch-npu==2.12.0 torchvision==0.27.0\n",
    ),
    ("conda install numpy cudatoolkit=11.3 # torch\n", "conda install numpy # torch\n"),
]


@pytest.mark.parametrize(("before", "after"), PIP)
def test_commands(before: str, after: str) -> None:
    assert migrate(before).data.decode() == after
    assert migrate(f"RUN {before}", "Dockerfile").data.decode() == f"RUN {after}"


def test_x86_64_gets_the_index() -> None:
    assert migrate("pip install torch numpy; torch\n", target=OLD).data.decode() == (
        f"pip install torch torch-npu==2.8.0.post4 numpy --extra-index-url {CPU}; torch\n"
    )


@pytest.mark.parametrize(
    "text",
    [
        "pip install numpy # torch\n",
        "# pip install torch==1.4+cu92\n",
        "pip install -r torch.txt\n",
        "pip install torch torch-npu==2.12.0\n",
        "pip uninstall torch\n",
        "pip install nvidia-cudnn-cu12==9.8 # torch\n",
        "pip install --retries 9 nvidia-cudnn-cu12 # torch\n",
        f"pip install torch==2.0.1+cpu --index-url {CPU}\n",
        f"pip install mslk --index-url {CU118} # torch\n",
        "echo 'torch==1.4+cu92'\n",
        "conda install cudatoolkit=11.3 -c nvidia # torch\n",
        "conda install torchmetrics\n",
    ],
)
def test_commands_that_stay(text: str) -> None:
    result = migrate(text)
    assert not result.changed and not [each for each in result.findings if each.code.startswith("NPU84")]


@pytest.mark.parametrize(
    "text",
    [
        "pip install torch==${TORCH}\n",
        "pip install torch --index-url $INDEX\n",
        "pip install --pre torch --index-url https://download.pytorch.org/whl/nightly/cu130\n",
        "conda install pytorch numpy -c pytorch\n",
        "conda install -n env pytorch cudatoolkit=11.3\n",
        "conda install pytorch $EXTRA\n",
        "conda install pytorch é\n",
        "conda create -n x python=3.12 pytorch\n",
        "conda install -y pytorch-nightly -c pytorch\n",
    ],
)
def test_commands_for_a_person(text: str) -> None:
    result = migrate(text)
    assert not result.changed
    assert [each.code for each in result.findings if each.code.startswith("NPU84")] == ["NPU844"]


def test_workflows_change_where_they_name_cuda() -> None:
    path = ".github/workflows/ci.yml"
    assert not migrate("run: pip install torch==1.13\n", path).changed
    assert not migrate("run: pip install torch -f https://download.pytorch.org/whl/torch_stable.html\n", path).changed
    assert migrate(f"run: pip install torch -i {CU118}\n", path).data.decode() == (
        f"run: pip install torch torch-npu==2.12.0 --extra-index-url {CPU}\n"
    )


def test_portable_stays() -> None:
    assert not migrate("pip install torch==1.13.1+cu117\n", style="portable").changed


def test_a_piece_of_a_document_has_the_places_of_the_whole() -> None:
    text = "é: pip install torch==1.4\nü pip install torch"
    source = text_of(text.encode())
    assert source is not None
    start, end = len("é: ".encode()), len(text.partition("\n")[0].encode())
    document = Document(source, "x.ipynb", FileKind.NOTEBOOK, Settings(), NEW, ProjectFacts())
    edits = [each for each in install_line_changes(document, start, end) if isinstance(each, Edit)]
    said = [(document.utf8[each.where[0] : each.where[1]], each.new) for each in edits if isinstance(each.where, tuple)]
    assert said == [(b"torch==1.4", "torch==2.12.0"), (b"", " torch-npu==2.12.0")]


WORDS = st.lists(
    st.sampled_from(
        [
            "pip", "install", "conda", "torch==1.13", '"torch"', "numpy", "&&", "\\\n", "\n", "-c", "nvidia", "$X",
            "cudatoolkit=11", "-f", "https://download.pytorch.org/whl/cu118", "--index-url", "'", "é", "#",
        ]
    )
)  # fmt: skip


@given(WORDS)
def test_any_words(words: list[str]) -> None:
    text = " ".join(words)
    new = migrate(text).data.decode()
    assert new.count("numpy") == text.count("numpy") and new.count("é") == text.count("é")
    assert new.count("\n") == text.count("\n")


WHEEL = "https://download.pytorch.org/whl/cu90/torch-1.0.0-{0}-{0}m-linux_x86_64.whl"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("Dockerfile", f"FROM ubuntu:16.04\nRUN pip3 install {WHEEL.format('cp35')}\n"),
        ("setup.sh", f"sed -i '$ a RUN pip install -U pip \\\nRUN pip install {WHEEL.format('cp27')}' Dockerfile\n"),
        ("setup.sh", f"pip install numpy {WHEEL.format('cp37')}\n"),
        ("requirements.txt", f"numpy\n{WHEEL.format('cp27')}\n"),
    ],
)
def test_a_wheel_of_a_python_that_the_new_torch_does_not_have_stays(path: str, text: str) -> None:
    result = migrate(text, path)
    assert result.data.decode() == text
    assert "NPU845" in {each.code for each in result.findings if each.open}


@pytest.mark.parametrize(
    "text",
    [
        "pip install https://download.pytorch.org/whl/cu121/torch-2.4.0%2Bcu121-cp310-cp310-linux_x86_64.whl\n",
        "pip install https://x.org/torch-1.4.0-py3-none-any.whl\n",
    ],
)
def test_other_wheels_become_a_release(text: str) -> None:
    result = migrate(text)
    assert result.data.decode() == "pip install torch==2.12.0 torch-npu==2.12.0\n"


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("conda create -n x python=3.6.7 pip\n", ["NPU845"]),
        ("conda install -y 'python<3.9'\n", ["NPU845"]),
        ("conda create -n x python=3.8 pytorch\n", ["NPU845", "NPU844"]),
        ("conda create -n x python=3.12\n", []),
        ("conda create -n x 'python>=3.6'\n", []),
        ("conda create -n x python=$PYTHON\n", []),
    ],
)
def test_the_python_of_an_environment_of_conda(text: str, codes: list[str]) -> None:
    result = migrate(text)
    assert not result.changed
    assert [each.code for each in result.findings if each.code.startswith("NPU84")] == codes
