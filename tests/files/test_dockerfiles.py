"""Dockerfiles: what is edited, what is said with the text to paste, and that nothing else changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.files.recipes import TARGET, migrated, said
from transplt.base.settings import Settings, TorchTarget
from transplt.engine.files.dockerfile import instructions, without_flags, words
from transplt.engine.files.kind import FileKind
from transplt.engine.files.other_file import migrate_other
from transplt.flow.facts import ProjectFacts

# --- reading ---------------------------------------------------------------------------------------------------------

READ = [
    ("FROM a AS b\n", [("FROM", ["a", "AS", "b"])]),
    ("from a\nrun ls\n", [("FROM", ["a"]), ("RUN", ["ls"])]),
    ("# FROM b\nFROM a", [("FROM", ["a"])]),
    ("RUN a \\\n  # words \\\n\n  b\n", [("RUN", ["a", "b"])]),
    ("RUN a \\\r\n  b\r\nENV X=1\r\n", [("RUN", ["a", "b"]), ("ENV", ["X=1"])]),
    ("# escape=`\nRUN a `\n b\\\nENV X=1\n", [("RUN", ["a", "b\\"]), ("ENV", ["X=1"])]),
    ('ENV A="x y" B=z\n', [("ENV", ['A="x y"', "B=z"])]),
    ("RUN <<EOF\nENV A=1\nEOF\nENV B=1\n", [("RUN", ["<<EOF"]), ("ENV", ["B=1"])]),
    ("COPY <<A <<-B /x\nRUN a\nA\n\tRUN b\n\tB\nRUN c\n", [("COPY", ["<<A", "<<-B", "/x"]), ("RUN", ["c"])]),
    ("ONBUILD RUN ls\n", [("RUN", ["ls"])]),
    ("RUN <<EOF\nno end", [("RUN", ["<<EOF"])]),
    ("", []),
]


@pytest.mark.parametrize(("text", "expected"), READ)
def test_instructions_and_their_words(text: str, expected: list[tuple[str, list[str]]]) -> None:
    utf8 = text.encode()
    found = [(each.keyword, [word.text.decode() for word in words(utf8, each)]) for each in instructions(utf8)]
    assert found == expected


def test_flags_are_no_part_of_a_command() -> None:
    utf8 = b"RUN --mount=type=cache,target=/x --network=none \\\n  pip install a"
    (run,) = instructions(utf8)
    assert b"".join(utf8[start:end] for start, end in without_flags(utf8, run.lines)).strip() == b"pip install a"


_LINES = st.lists(
    st.sampled_from(
        ["FROM nvidia/cuda:12", "ENV CUDA_VISIBLE_DEVICES=0 \\", "  A=1", "# words", "RUN nvidia-smi \\",
         "RUN <<EOF", "EOF",
         "\\", "", "ENV CUDA_HOME /x y", "COPY --from=a b c", "ARG CUDA=1", '"', "`", "é\t'", "# escape=`"]
    ),
    max_size=12,
)  # fmt: skip


@given(_LINES, st.sampled_from(["\n", "\r\n"]))
def test_any_lines(lines: list[str], end: str) -> None:
    text = end.join(lines)
    utf8 = text.encode()
    at = 0
    for each in instructions(utf8):
        for start, stop in each.lines:
            assert at <= start <= stop <= len(utf8)
            at = stop
        for word in words(utf8, each):
            assert each.lines[0][0] <= word.start < word.end <= each.lines[-1][1]
    migrated("Dockerfile", text)


# --- what is edited --------------------------------------------------------------------------------------------------

EDITED = [
    ("ENV CUDA_VISIBLE_DEVICES=0,1\n", "ENV ASCEND_RT_VISIBLE_DEVICES=0,1\n"),
    ("ENV CUDA_VISIBLE_DEVICES 0\n", "ENV ASCEND_RT_VISIBLE_DEVICES 0\n"),
    ('ENV A=1 \\\n    CUDA_LAUNCH_BLOCKING="1"\n', 'ENV A=1 \\\n    ASCEND_LAUNCH_BLOCKING="1"\n'),
    ("ENV NCCL_SOCKET_IFNAME=eth0\r\n", "ENV HCCL_SOCKET_IFNAME=eth0\r\n"),
    ("RUN CUDA_VISIBLE_DEVICES=0 python a.py\n", "RUN ASCEND_RT_VISIBLE_DEVICES=0 python a.py\n"),
    ("RUN ls \\\n# words\n && CUDA_VISIBLE_DEVICES=0 python a.py\n",
     "RUN ls \\\n# words\n && ASCEND_RT_VISIBLE_DEVICES=0 python a.py\n"),
    ("RUN <<EOF\nexport CUDA_VISIBLE_DEVICES=0\nEOF\n", "RUN <<EOF\nexport ASCEND_RT_VISIBLE_DEVICES=0\nEOF\n"),
    ("ENV CUDA_VISIBLE_DEVICES=0\nRUN echo $CUDA_VISIBLE_DEVICES\n",
     "ENV ASCEND_RT_VISIBLE_DEVICES=0\nRUN echo $ASCEND_RT_VISIBLE_DEVICES\n"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), EDITED)
def test_what_is_edited(before: str, after: str) -> None:
    assert migrated("docker/Dockerfile", before).data.decode() == after


KEPT = [
    "FROM python:3.11\nRUN pip install .\nENV A=1\n",
    "FROM quay.io/ascend/cann:9.0.0-910b-ubuntu22.04-py3.11\nENV ASCEND_RT_VISIBLE_DEVICES=0\n",
    "# ENV CUDA_VISIBLE_DEVICES=0\n",
    "FROM nvidia/cuda:12.2.0-runtime-ubuntu20.04\n",
    "ARG CUDA_VISIBLE_DEVICES=0\n",  # who builds the image gives it under this name
    "ENV CUDA_VISIBLE_DEVICES=GPU-8932f937\n",
    "ENV CUDA_VISIBLE_DEVICES=1,0\n",
    "ENV CUDA_HOME=/usr/local/cuda\n",
    "ENV PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync\n",
    "ENV CUDA_VISIBLE_DEVICES=0\nLABEL devices=$CUDA_VISIBLE_DEVICES\n",
    "ENV CUDA_VISIBLE_DEVICES=0\nENV B=$CUDA_VISIBLE_DEVICES\n",
    "ENV CUDA_VISIBLE_DEVICES=1,0\nRUN echo $CUDA_VISIBLE_DEVICES\n",
    'RUN ["CUDA_VISIBLE_DEVICES=0", "python"]\n',
    'SHELL ["powershell"]\nRUN $env:CUDA_VISIBLE_DEVICES=0\n',
    "RUN python <<EOF\nCUDA_VISIBLE_DEVICES=0\nEOF\n",
    "RUN <<EOF\n#!/usr/bin/env python\nCUDA_VISIBLE_DEVICES=0\nEOF\n",
    "COPY <<EOF /x.sh\nexport CUDA_VISIBLE_DEVICES=0\nEOF\n",
    "LABEL CUDA_VISIBLE_DEVICES=0\n",
    "ENV MY_CUDA_VISIBLE_DEVICES=0\n",
]


@pytest.mark.parametrize("text", KEPT)
def test_what_stays(text: str) -> None:
    assert not migrated("Dockerfile", text).changed


OFF = "TORCH_DEVICE_BACKEND_AUTOLOAD=0"
ASK = 'python -c "import torch; print(torch.cuda.is_available())"'
#: No driver is there while an image is built: torch_npu is not loaded, and what asks torch for CUDA stays.
BUILT = [
    (f"RUN {ASK}\n", f"RUN {OFF} {ASK}\n"),
    ('RUN python3 -c "import torch; print(torch.__version__)"\n',
     f'RUN {OFF} python3 -c "import torch; print(torch.__version__)"\n'),
    ("RUN ls && A=1 python -c 'import os, torch'\n", f"RUN ls && {OFF} A=1 python -c 'import os, torch'\n"),
    ('RUN ABI=$(python -c "import torch; print(torch._C._GLIBCXX_USE_CXX11_ABI)") && ls $ABI\n',
     f'RUN ABI=$({OFF} python -c "import torch; print(torch._C._GLIBCXX_USE_CXX11_ABI)") && ls $ABI\n'),
    ("RUN python -c 'from torchvision.models import resnet50'\n",
     f"RUN {OFF} python -c 'from torchvision.models import resnet50'\n"),
    ("RUN sudo -E python -c 'import torch'\n", f"RUN sudo -E {OFF} python -c 'import torch'\n"),
    ("RUN python -m torch.utils.collect_env\n", f"RUN {OFF} python -m torch.utils.collect_env\n"),
    ('RUN ["python", "-c", "import torch"]\n', f'RUN ["env", "{OFF}", "python", "-c", "import torch"]\n'),
    ("RUN python <<EOF\nimport torch\nprint(torch.cuda.device_count())\nEOF\n",
     f"RUN {OFF} python <<EOF\nimport torch\nprint(torch.cuda.device_count())\nEOF\n"),
    (f"RUN <<EOF\n{ASK}\nls\nEOF\n", f"RUN <<EOF\n{OFF} {ASK}\nls\nEOF\n"),
    (f"RUN {ASK}\nRUN {OFF} {ASK}\n", f"RUN {OFF} {ASK}\nRUN {OFF} {ASK}\n"),
    (f"FROM a\nCMD {ASK}\n",
     'FROM a\nCMD python -c "import torch_npu; import torch; print(torch.npu.is_available())"\n'),
    ("RUN cat > a.py <<'EOF'\nimport torch\ntorch.cuda.init()\nEOF\n",
     "RUN cat > a.py <<'EOF'\nimport torch\nimport torch_npu  # noqa: F401\ntorch.npu.init()\nEOF\n"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), BUILT)
def test_python_that_runs_while_an_image_is_built(before: str, after: str) -> None:
    result = migrated("Dockerfile", before)
    assert result.data.decode() == after and said(result) == []


def test_work_that_needs_a_card_while_an_image_is_built_is_left_to_a_person() -> None:
    result = migrated("Dockerfile", "RUN python -c 'import torch; torch.zeros(1).cuda()'\n")
    assert result.data.decode() == f"RUN {OFF} python -c 'import torch; torch.zeros(1).cuda()'\n"
    (finding,) = [each for each in result.findings if each.open]
    assert (finding.code, result.tokens.manual) == ("NPU805", 1)
    assert "runs during the build of the image" in finding.message and "running container" in finding.help


@pytest.mark.parametrize(
    "text",
    [
        "RUN python -c 'import numpy'\n",
        "RUN python -c 'import torch_npu, torch'\n",
        "RUN python -m pip install torchmetrics\n",
        "RUN pip install . && python setup.py install\n",
        "RUN echo 'import torch' > a.py\n",
        "FROM a\nCMD python -c 'import torch'\n",
        'FROM a\nENTRYPOINT ["python", "-c", "import torch"]\n',
        f"ENV {OFF}\nRUN {ASK}\n",
        f"RUN export {OFF} && {ASK}\n",
    ],
)
def test_commands_of_an_image_that_stay(text: str) -> None:
    assert not migrated("Dockerfile", text).changed


def test_before_torch_loads_torch_npu_by_itself_nothing_is_switched_off() -> None:
    assert not migrated("Dockerfile", f"RUN {ASK}\n", TorchTarget("2.4", "")).changed


def test_a_shell_script_is_no_build_of_an_image() -> None:
    result = migrated("run.sh", f"{ASK}\n")
    assert result.data == b'python -c "import torch_npu; import torch; print(torch.npu.is_available())"\n'


def test_the_portable_style_edits_nothing() -> None:
    assert not migrated("Dockerfile", "ENV CUDA_VISIBLE_DEVICES=0\n", style="portable").changed


@pytest.mark.parametrize(("version", "changed"), [("2.8", True), ("2.10", False)])
def test_the_allocator_is_set_by_one_name(version: str, changed: bool) -> None:
    text = "ENV PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True PYTORCH_ALLOC_CONF=expandable_segments:True\n"
    assert migrated("Dockerfile", text, TorchTarget(version, "")).changed is changed


# --- what is said ----------------------------------------------------------------------------------------------------

SAID = [
    (
        "FROM nvidia/cuda:12.2.0-devel-ubuntu22.04\n",
        "NPU850",
        "FROM quay.io/ascend/cann:9.0.0-910b-ubuntu22.04-py3.11",
    ),
    ("FROM --platform=linux/amd64 pytorch/pytorch:2.1.0 AS base\n", "NPU850", "torch==2.8.0 torch-npu==2.8.0.post4"),
    ("FROM nvcr.io/nvidia/pytorch:24.01-py3\n", "NPU850", "github.com/Ascend/cann-container-image"),
    ("ARG BASE=nvidia/cuda:12.2.0\nFROM ${BASE}\n", "NPU850", "quay.io/ascend/cann"),
    ("COPY --from=nvidia/cuda:12.2.0 /a /b\n", "NPU850", "quay.io/ascend/cann"),
    ('ENV FORCE_CUDA="1"\n', "NPU852", "leave it out"),
    ("ENV CUDA_HOME=/usr/local/cuda\n", "NPU852", "set_env.sh"),
    ("ENV PATH /usr/local/nvidia/bin:/usr/local/cuda/bin:${PATH}\n", "NPU852", "set_env.sh"),
    ("ENV CUDA_VISIBLE_DEVICES=1,0\n", "NPU852", "ascending order"),
    ("ENV NVIDIA_VISIBLE_DEVICES all\n", "NPU854", "not to fix ASCEND_VISIBLE_DEVICES in an image"),
    ("RUN apt-get install -y vim cuda-toolkit-12-4 git\n", "NPU855", "quay.io/ascend/cann"),
    ("RUN sudo yum install -y nvidia-container-toolkit\n", "NPU855", "Ascend Docker Runtime"),
    ("RUN wget https://developer.download.nvidia.com/compute/cuda/a.deb\n", "NPU855", "leave it out"),
]


@pytest.mark.parametrize(("text", "code", "help_"), SAID)
def test_what_is_said(text: str, code: str, help_: str) -> None:
    result = migrated("Dockerfile", text)
    (finding,) = [each for each in result.findings if each.open]
    assert not result.changed and finding.code == code and help_ in finding.help
    assert result.tokens.manual == result.tokens.found


@pytest.mark.parametrize(
    ("image", "beside"),
    [("nvcr.io/nvidia/pytorch:24.01-py3", True), ("pytorch/pytorch:2.1.0", True), ("nvidia/cuda:12.2.0", False)],
)
def test_what_an_image_of_pytorch_had_and_the_program_imports(image: str, beside: bool) -> None:
    project = ProjectFacts(known=True, imported=frozenset({"torchvision.transforms", "numpy"}))
    data = f"FROM {image}\n".encode()
    result, _ = migrate_other(data, "Dockerfile", FileKind.DOCKER, Settings(torch_version="2.8"), TARGET, project)
    (finding,) = result.findings
    assert ("torch-npu==2.8.0.post4 torchvision==0.23.0;" in finding.help) is beside
    assert "torchaudio" not in finding.help


@pytest.mark.parametrize(
    ("tag", "codes"),
    [
        ("10.2-runtime-ubuntu18.04", ["NPU850", "NPU852"]),
        ("12.1.0-devel-ubi8", ["NPU850", "NPU852"]),
        ("3.11-slim-bookworm", ["NPU852"]),
        ("base-ubuntu22.04", ["NPU852"]),
    ],
)
def test_an_image_is_known_by_its_tag_too(tag: str, codes: list[str]) -> None:
    result = migrated("Dockerfile", f"FROM ${{IMAGE}}:{tag}\nENV CUDA_HOME=/usr/local/cuda\n")
    assert sorted(each.code for each in result.findings if each.open) == codes


@pytest.mark.parametrize(
    "text",
    [
        "FROM python:3.11 AS cuda\nFROM cuda\nCOPY --from=cuda /a /b\n",  # a stage of the file
        "ENV TORCH_CUDA_ARCH_LIST=8.0\nENV NVIDIA_DRIVER_CAPABILITIES=compute\n",  # nothing reads it: a remark
        "RUN apt-get install -y git\n",
        "RUN echo 1\n",
        "FROM python:3.11-slim-bookworm\n",
        'LABEL maintainer "NVIDIA CORPORATION <cudatools@nvidia.com>"\nMAINTAINER cuda@nvidia.com\n',
        'CMD ["serve", "--weight-transfer-config", "{\\"backend\\": \\"nccl\\"}"]\n',  # vLLM's own name
        "CMD serve --weight-transfer-config '{\"backend\": \"nccl\"}'\n",
    ],
)
def test_what_needs_nobody(text: str) -> None:
    assert said(migrated("Dockerfile", text)) == []


def test_images_of_the_card_and_of_cann() -> None:
    text = "FROM nvidia/cuda:12.2.0\n"
    (finding,) = migrated("Dockerfile", text, hardware="A3").findings
    assert "cann:9.0.0-a3-ubuntu22.04-py3.11" in finding.help
    (finding,) = migrated("Dockerfile", text, TorchTarget("2.2", "", "2.2.0.post2", "8.0.RC2", "2.2.0")).findings
    assert "quay.io/ascend/cann:<CANN>-<chip>-<OS>-py<Python>" in finding.help


def test_bad_files_are_left() -> None:
    assert not migrated("Dockerfile", "ENV CUDA_VISIBLE_DEVICES=0 " + "x" * 1_000_001).changed
    for text in ("ENV", "ENV =", "FROM", "RUN", "ENV CUDA_VISIBLE_DEVICES", "ARG", "COPY --from=", "\\\n\\\n"):
        assert not migrated("Dockerfile", text).changed


def test_a_long_word_takes_no_square_of_the_time() -> None:
    utf8 = b"ENV A=" + b"x\\ " * 150_000
    (env,) = instructions(utf8)
    assert len(list(words(utf8, env))) == 1


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("ENV CUDA_HOME=/usr/local/cuda\n", "tidy"),
        ("ENV LD_LIBRARY_PATH=/usr/local/cuda/lib64\n", "tidy"),
        ('ENV FORCE_CUDA="1"\n', ""),
        ("ENV CUDA_VISIBLE_DEVICES=1,0\n", ""),
        ("ENV NCCL_DEBUG=INFO\n", "tidy"),
    ],
)
def test_where_the_toolkit_lies_stops_nothing(text: str, blocks: str) -> None:
    (finding,) = [each for each in migrated("Dockerfile", text).findings if each.open]
    assert finding.blocks == blocks


@pytest.mark.parametrize(
    ("image", "command", "said"),
    [
        ("python:3.7-slim", "pip install torch==1.7.1", True),
        ("docker.io/library/python:3.8", "pip install torch", True),
        ("python:3.12", "pip install torch", False),
        ("python:3", "pip install torch", False),
        ("python:3.7-slim", "pip install flask", False),
        ("pypy:3.7", "pip install torch", False),
    ],
)
def test_an_image_with_a_python_that_no_torch_is_for(image: str, command: str, said: bool) -> None:
    target = TorchTarget("2.12", "", "2.12.0", "9.1.0", "2.12.0")
    result = migrated("Dockerfile", f"FROM {image} AS base\nRUN {command}\n", target)
    assert ("NPU845" in {each.code for each in result.findings}) is said
