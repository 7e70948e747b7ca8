"""Compose files, Kubernetes, Helm values, devcontainers and workflows: edits, and the text to paste for the rest."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.files.recipes import migrated, said
from transplt.engine.files.recipes import is_workflow

COMPOSE = """\
services:
  train:
    image: {image}
    environment:
      - CUDA_VISIBLE_DEVICES=0,1   # two
      - "A=1"
"""
MAPPED = """\
services:
  train:
    environment:
      CUDA_VISIBLE_DEVICES: "0"
      'CUDA_LAUNCH_BLOCKING': 1
"""
POD = """\
apiVersion: v1
kind: Pod
spec:
  containers:
    - name: é
      env:
        - name: CUDA_VISIBLE_DEVICES
          value: "0"
"""
WORKFLOW = """\
on: push
env:
  CUDA_VISIBLE_DEVICES: 0
jobs:
  cuda-tests:
    runs-on: ubuntu-latest
    steps:
      - name: Run CUDA tests on ${{ matrix.cuda }}
        run: |
          echo start

          CUDA_LAUNCH_BLOCKING=1 python train.py --n ${{ matrix.n }}
      - run: nvidia-smi
"""
EDITED = [
    ("docker-compose.yml", COMPOSE, [("CUDA_VISIBLE", "ASCEND_RT_VISIBLE")]),
    ("compose.yaml", MAPPED, [("CUDA_VISIBLE", "ASCEND_RT_VISIBLE"), ("CUDA_LAUNCH", "ASCEND_LAUNCH")]),
    ("compose.yaml", MAPPED.replace("\n", "\r\n"),
     [("CUDA_VISIBLE", "ASCEND_RT_VISIBLE"), ("CUDA_LAUNCH", "ASCEND_LAUNCH")]),
    ("k8s/pod.yaml", POD, [("CUDA_VISIBLE", "ASCEND_RT_VISIBLE")]),
    (".devcontainer/devcontainer.json", '{\n\t// é\n\t"containerEnv": {"CUDA_VISIBLE_DEVICES": "0"}, \n}\n',
     [("CUDA_VISIBLE", "ASCEND_RT_VISIBLE")]),
    (".github/workflows/a.yml", WORKFLOW,
     [("CUDA_VISIBLE", "ASCEND_RT_VISIBLE"), ("CUDA_LAUNCH", "ASCEND_LAUNCH"), ("nvidia-smi", "npu-smi info")]),
    (".gitlab-ci.yml",
     "test:\n  variables:\n    NCCL_SOCKET_IFNAME: eth0\n  script:\n    - CUDA_VISIBLE_DEVICES=0 python a.py\n",
     [("NCCL_SOCKET", "HCCL_SOCKET"), ("CUDA_VISIBLE", "ASCEND_RT_VISIBLE")]),
    (".circleci/config.yml",
     "jobs:\n  a:\n    steps:\n      - run: 'CUDA_VISIBLE_DEVICES=0 python << parameters.x >>'\n",
     [("CUDA_VISIBLE", "ASCEND_RT_VISIBLE")]),
    # folded: the shell gets one line
    *((".gitlab-ci.yml", f"a:\n  script:\n    - {fold}CUDA_VISIBLE_DEVICES=0\n      python a.py\n",
       [("CUDA_VISIBLE", "ASCEND_RT_VISIBLE")]) for fold in ("", ">\n      ", ">-\n      ")),
]  # fmt: skip


@pytest.mark.parametrize(("path", "text", "changes"), EDITED)
def test_what_is_edited(path: str, text: str, changes: list[tuple[str, str]]) -> None:
    expected = text
    for before, after in changes:
        expected = expected.replace(before, after)
    assert migrated(path, text).data.decode() == expected


STEP = ".github/workflows/a.yml", "jobs:\n  a:\n    steps:\n      - run: {}\n"
KEPT = [
    ("docker-compose.yml", "services:\n  a:\n    image: python:3.11\n"),
    ("docker-compose.yml", "services:\n  a:\n    environment:\n      - CUDA_VISIBLE_DEVICES\n"),
    ("docker-compose.yml", "services:\n  a:\n    environment:\n      CUDA_VISIBLE_DEVICES: 1,0\n"),
    ("docker-compose.yml", "services:\n  a:\n    environment: *cuda\n"),
    ("docker-compose.yml", "services:\n\tcuda: 1\n"),  # no YAML
    ("docker-compose.yml", "a: {b: [cuda\n"),
    # other places of the file keep the old name
    (STEP[0], "env:\n  CUDA_VISIBLE_DEVICES: 0\njobs:\n  a:\n    if: env.CUDA_VISIBLE_DEVICES == 0\n"),
    (STEP[0], "env:\n  CUDA_VISIBLE_DEVICES: 0\njobs:\n  a:\n    name: ${{ env.CUDA_VISIBLE_DEVICES }}\n"),
    # no shell of ours reads the step, or not the bytes that stand there
    (STEP[0], "jobs:\n  a:\n    steps:\n      - run: export CUDA_VISIBLE_DEVICES=0\n        shell: pwsh\n"),
    (STEP[0], "jobs:\n  a:\n    steps:\n      - shell: python\n        run: CUDA_VISIBLE_DEVICES=0\n"),
    (STEP[0], STEP[1].format(">\n          CUDA_VISIBLE_DEVICES=0\n\n          python a.py")),
    (STEP[0], STEP[1].format('"CUDA_VISIBLE_DEVICES=0 python \\"a.py\\""')),
    (
        STEP[0],
        "jobs:\n  a:\n    steps:\n      - uses: x\n        with:\n          run: CUDA_VISIBLE_DEVICES=0 python a.py\n",
    ),
    ("conf/train.yaml", "image: nvidia/cuda:12.1\n"),  # no recipe: the project's own configuration
    ("data.json", '{"image": "nvidia/cuda:12.1"}'),
]


@pytest.mark.parametrize(("path", "text"), KEPT)
def test_what_stays(path: str, text: str) -> None:
    assert not migrated(path, text).changed


def test_the_portable_style_edits_nothing() -> None:
    for path, text, _ in EDITED:
        assert not migrated(path, text, style="portable").changed


RESERVED = """\
services:
  train:
    deploy:
      resources:
        reservations:
          devices:
            - driver: nvidia
              count: 1
              capabilities: [gpu]
"""
GPU_POD = """\
apiVersion: batch/v1
kind: Job
spec:
  containers:
    - image: python:3.11
      resources:
        limits:
          nvidia.com/gpu: 4
        requests:
          cpu: 4
          nvidia.com/gpu: 4
"""
SAID = [
    ("docker-compose.yml", RESERVED, "NPU854", "/dev/davinci_manager"),
    ("docker-compose.yml", "services:\n  a:\n    runtime: nvidia\n", "NPU854", "runtime: ascend"),
    ("docker-compose.yml", "services:\n  a:\n    gpus: all\n", "NPU854", "/usr/local/Ascend/driver/lib64/"),
    ("docker-compose.yml", "services:\n  a:\n    image: nvidia/cuda:12.2.0\n", "NPU850", "910b-ubuntu22.04-py3.11"),
    ("docker-compose.yml", "services:\n  a:\n    environment: [NVIDIA_VISIBLE_DEVICES=all]\n", "NPU854",
     "ASCEND_VISIBLE"),
    ("pod.yaml", GPU_POD, "NPU854", "huawei.com/Ascend910: 4"),
    ("values.yaml", "resources:\n  limits:\n    nvidia.com/gpu: 1\n", "NPU854", "huawei.com/Ascend310P"),
    ("pod.yaml", "apiVersion: v1\nspec:\n  nodeSelector:\n    accelerator: nvidia-tesla-k80\n", "NPU854", "kubectl"),
    ("pod.yaml", "apiVersion: v1\nspec:\n  tolerations:\n    - key: nvidia.com/gpu\n", "NPU854", "kubectl"),
    ("pod.yaml", "apiVersion: v1\nspec:\n  runtimeClassName: nvidia\n", "NPU854", "Ascend Docker Runtime"),
    ("devcontainer.json", '{"runArgs": ["--gpus", "all"]}', "NPU854", "--device=/dev/davinci0"),
    ("devcontainer.json", '{"hostRequirements": {"gpu": true}}', "NPU854", "--device=/dev/davinci0"),
    (STEP[0], "jobs:\n  a:\n    container:\n      image: nvidia/cuda:12.2.0\n", "NPU850", "quay.io/ascend/cann"),
    (STEP[0], "jobs:\n  a:\n    container:\n      options: --gpus all\n", "NPU854", "--device /dev/davinci0"),
    (STEP[0], "jobs:\n  a:\n    runs-on: [self-hosted, gpu]\n", "NPU854", "label"),
    (STEP[0],
     "jobs:\n  a:\n    steps:\n      - uses: Jimver/cuda-toolkit@v0.2\n        with:\n          cuda: 12.4.0\n",
     "NPU855", "leave it out"),
    (STEP[0], STEP[1].format("sudo apt-get install -y cuda-toolkit-${{ matrix.cuda }}"), "NPU855", "leave it out"),
    (STEP[0], 'env:\n  FORCE_CUDA: "1"\n', "NPU852", "leave it out"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "text", "code", "help_"), SAID)
def test_one_block_is_one_finding_with_the_text_to_paste(path: str, text: str, code: str, help_: str) -> None:
    result = migrated(path, text)
    (finding,) = [each for each in result.findings if each.open]
    assert not result.changed and finding.code == code and help_ in finding.help
    assert result.tokens.manual + result.tokens.ignored == result.tokens.found


def test_what_the_service_puts_in_is_shown_as_it_stands() -> None:
    (finding,) = migrated(STEP[0], STEP[1].format("apt-get install cuda-toolkit-${{ inputs.version }}")).findings
    assert finding.message == "CUDA packages are installed: cuda-toolkit-${{ inputs.version }}"


@pytest.mark.parametrize(
    "text",
    [
        "jobs:\n  test_cuda:\n    name: CUDA\n    runs-on: ubuntu-latest\n",
        "on:\n  workflow_call:\n    inputs:\n      cuda-version:\n        description: the version of cuda\n",
        "jobs:\n  a:\n    strategy:\n      matrix:\n        cuda: [12]\n"
        "    steps:\n      - run: echo ${{ matrix.cuda }}\n",
    ],
)
def test_names_and_titles_of_a_workflow_need_nobody(text: str) -> None:
    assert said(migrated(STEP[0], text)) == []


@pytest.mark.parametrize(
    ("path", "expected"),
    [(".github/workflows/a.yml", True), ("x/.github/actions/b/action.yaml", True), (".gitlab-ci.yml", True),
     ("ci/azure-pipelines-gpu.yml", True), (".circleci/config.yml", True), ("action.yml", True),
     ("conf/workflows/a.yml", False), ("reaction.yml", False), (".github/a.json", False)],
)  # fmt: skip
def test_workflows_by_their_paths(path: str, expected: bool) -> None:
    assert is_workflow(path) is expected


_YAML = st.lists(
    st.sampled_from(
        ["env:", "  CUDA_VISIBLE_DEVICES: 0", "  - CUDA_VISIBLE_DEVICES=0", "run: |", "  nvidia-smi", "  # é",
         "a: &x", "b: *x",
         "- run: CUDA_VISIBLE_DEVICES=0 a", "image: nvidia/cuda:1", "\tx: 1", "? a", "---",
         "resources: {nvidia.com/gpu: 1}",
         "x: '${{ cuda }}'", "{{ if .Values.cuda }}", "script: >-", "}", '"', "  devices: [{driver: nvidia}]"]
    ),
    max_size=10,
)  # fmt: skip


@given(_YAML, st.sampled_from(["\n", "\r\n"]), st.sampled_from([STEP[0], "compose.yml", "a/nvidia.com/pod.yaml"]))
def test_any_lines(lines: list[str], end: str, path: str) -> None:
    text = end.join(lines)
    result = migrated(path, text)
    if not any(each.applied for each in result.findings):
        assert result.data == text.encode()


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("RUN_ONLY_CUDA_TESTS: 1", 0), ("SKIP_CUDA_TEST: 1", 0), ("BUILD_CUDA_EXT: 1", 1), ("CUDA_LATEST: 1", 1),
    ],
)  # fmt: skip
def test_variables_that_choose_tests(line: str, count: int) -> None:
    workflow = f"on: push\nenv:\n  {line}\njobs:\n  a:\n    runs-on: x\n    steps:\n      - run: pytest\n"
    assert len(said(migrated(".github/workflows/a.yml", workflow))) == count
