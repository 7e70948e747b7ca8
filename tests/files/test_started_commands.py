"""Commands as lists and texts in containers, clusters, editors' and CI's files: they follow the options of the script.

`train.py` of the project reads `--device` and `--dist-backend`; `--method` is a text (tests/files/shell_pairs.py).
"""

from __future__ import annotations

import pytest

from tests.files.shell_pairs import migrated
from transplt.engine.files.kind import kind_of

DOCKER = [
    'CMD ["python", "tools/train.py", "--device", "cuda"]\n',
    'CMD [ "python" , "tools/train.py" , \\\n      "--device" , "cuda" ]\n',
    'ENTRYPOINT ["python", "tools/train.py", "--dist-backend=nccl"]\n',
    'ENTRYPOINT ["python", "tools/train.py"]\nCMD ["--device", "cuda:0"]\n',
    'ENTRYPOINT ["torchrun", "--nproc_per_node=8", "tools/train.py"]\nCMD ["--device=cuda"]\n',
    'FROM x AS a\nENTRYPOINT ["python", "train.py", "--device", "cuda"]\nFROM a\nCMD ["--device", "cuda"]\n',
    'ENTRYPOINT ["bash", "-c", "python tools/train.py --device cuda"]\n',
    'RUN ["python", "tools/train.py", "--device", "cuda"]\n',
    "ENTRYPOINT python tools/train.py --device cuda\n",
]
COMPOSE = [
    "command: python tools/train.py --device cuda",
    'command: ["python", "tools/train.py", "--device", "cuda"]',
    "entrypoint: [python, tools/train.py]\n    command: [--device, cuda]",
    "entrypoint: python tools/train.py\n    command:\n      - --device\n      - cuda",
    "command: [--device, cuda]\n    entrypoint: python tools/train.py",
    "command: >\n      python tools/train.py\n      --device cuda\n      --dist-backend nccl",
    "command: python tools/train.py\n      --device cuda",
    'command: bash -c "python tools/train.py --device cuda"',
    'command: [bash, -lc, "python tools/train.py --device cuda"]',
]
POD = [
    'command: ["python", "tools/train.py"]\n      args: ["--device", "cuda"]',
    'args: ["--device", "cuda"]\n      command: ["python", "tools/train.py"]',
    'command: ["/bin/sh", "-c"]\n      args:\n        - |\n          ls\n          python tools/train.py --device cuda',
    'command: ["python"]\n      args:\n        - tools/train.py\n        - "--dist-backend=nccl"',
    'args: ["tools/train.py", "--device", "cuda"]',
]
EDITORS = [
    '{"program": "${workspaceFolder}/tools/train.py", "args": ["--device", "cuda"]}',
    '{"module": "tools.train", "args": ["--device=cuda"]}',
    '{"program": "tools/train.py", "args": "--device cuda --dist-backend nccl"}',
    '{"command": "python", "args": ["tools/train.py", "--device", "cuda"]}',
    '{"command": "python tools/train.py --device cuda"}',
]
WORKFLOW = [
    "run: python tools/train.py --device cuda",
    "run: >\n          python tools/train.py\n          --device cuda",
    "run: >-\r\n          python tools/train.py\r\n          --device cuda\r\n",
]
AROUND = {
    "Dockerfile": "FROM ubuntu\n{}",
    "docker-compose.yml": "services:\n  a:\n    image: x\n    {}\n",
    "k8s/pod.yaml": "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n    - name: a\n      {}\n",
    ".vscode/launch.json": '{{\n  // of an editor\n  "configurations": [{}]\n}}\n',
    ".github/workflows/a.yml": "jobs:\n  a:\n    steps:\n      - {}\n",
}
EDITED = dict(zip(AROUND, (DOCKER, COMPOSE, POD, EDITORS, WORKFLOW), strict=True))


def file(path: str, text: str) -> tuple[str, str]:
    return path, AROUND[path].format(text)


@pytest.mark.parametrize(("path", "text"), [file(path, text) for path, texts in EDITED.items() for text in texts])
def test_options_of_the_program(path: str, text: str) -> None:
    result = migrated(text, path, kind_of(path, text.encode()))
    assert result.data.decode() == text.replace("cuda", "npu").replace("nccl", "hccl")
    assert not [each for each in result.findings if each.open]


STAYS = {
    "Dockerfile": [
        'CMD ["python", "tools/train.py", "--method", "cuda"]\n',
        'CMD ["python", "tools/train.py", "--no-cuda"]\n',
        'ENTRYPOINT ["server"]\nCMD ["--device", "cuda"]\n',
        'CMD ["--device", "cuda"]\n',
        'CMD ["echo", "cuda"]\n',
        'CMD ["python", "-c", "print(\\"--device cuda\\")"]\n',
        'ENTRYPOINT python tools/train.py\nCMD ["--device", "cuda"]\n',
        'ENTRYPOINT ["python", "tools/train.py"]\nENTRYPOINT ["server"]\nCMD ["--device", "cuda"]\n',
    ],
    "docker-compose.yml": [
        "command: [--device, cuda]",
        "command: serve --device cuda",
        "command: >\n      python tools/train.py\n\n        --device cuda",
        "build:\n      command: python tools/train.py --device cuda",
    ],
    "k8s/pod.yaml": ['args: ["--device", "cuda"]', 'command: ["vllm", "serve"]\n      args: ["--device", "cuda"]'],
    ".vscode/launch.json": [
        '{"program": "tools/train.py", "args": ["--method", "cuda"]}',
        '{"command": "echo", "args": ["cuda"]}',
    ],
    ".github/workflows/a.yml": ["run: >\n          python tools/train.py\n\n          --method cuda"],
}


@pytest.mark.parametrize(("path", "text"), [file(path, text) for path, texts in STAYS.items() for text in texts])
def test_what_stays(path: str, text: str) -> None:
    assert not migrated(text, path, kind_of(path, text.encode())).changed


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("Dockerfile", 'FROM x\nCMD ["--device", "cuda"]\n'),
        file("docker-compose.yml", "command: [--device, cuda]"),
        file("k8s/pod.yaml", 'args: ["--device", "cuda"]'),
    ],
)
def test_what_an_image_starts_is_asked(path: str, text: str) -> None:
    result = migrated(text, path, kind_of(path, text.encode()))
    assert [each.code for each in result.findings if each.open] == ["NPU814"]


@pytest.mark.parametrize(("path", "text"), [file(path, texts[0]) for path, texts in EDITED.items()])
def test_a_portable_project_keeps_them(path: str, text: str) -> None:
    assert not migrated(text, path, kind_of(path, text.encode()), style="portable").changed


def test_a_variable_behind_env() -> None:
    text = 'FROM x\nCMD ["env", "CUDA_VISIBLE_DEVICES=0", "python", "tools/train.py"]\n'
    assert b'"ASCEND_RT_VISIBLE_DEVICES=0"' in migrated(text, "Dockerfile", kind_of("Dockerfile", b"")).data


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        (".env.example", "CUDA_VISIBLE_DEVICES=0\n", "ASCEND_RT_VISIBLE_DEVICES=0\n"),
        ("conf/a.yaml.example", "trainer:\n  device: cuda\n", "trainer:\n  device: npu\n"),
        ("run.sh.template", "python tools/train.py --device cuda\n", "python tools/train.py --device npu\n"),
        ("conf/a.yaml.in", "trainer: {{ cuda }}\n", "trainer: {{ cuda }}\n"),
        ("README.md.example", "device: cuda\n", "device: cuda\n"),
    ],
)
def test_patterns_of_files(path: str, before: str, after: str) -> None:
    assert migrated(before, path, kind_of(path, before.encode())).data.decode() == after
