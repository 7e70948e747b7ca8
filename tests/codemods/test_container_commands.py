"""Containers that Python starts with GPUs."""

from __future__ import annotations

import pytest

from tests.harness import check_noop


@pytest.mark.parametrize(
    "line",
    [
        "cmd = f'docker run --gpus all {mount} image'\nown_start('nohup ' + cmd + arguments)",
        "cmd = f'docker run --gpus all --rm -p {port}:80 image'\nsubprocess.run(cmd, shell=True)",
        "os.system('sudo docker run --rm --gpus=2 image')",
        "subprocess.run(['docker', 'run', '--gpus', 'all', image])",
        "subprocess.run(['sudo', 'podman', 'run', '--rm', '--gpus=all', image])",
        "subprocess.run('docker run --gpus device=0 ' + image, shell=True)",
    ],
)
def test_gpus_are_asked_for(line: str) -> None:
    check_noop(f"import os, subprocess\n{line}\n", open_codes=["NPU280"])


@pytest.mark.parametrize(
    "line",
    [
        "subprocess.run(['docker', 'run', image])\nprint('docker run --gpus all image')",
        "subprocess.run('docker run image --gpu x', shell=True)",
        "print('use docker run --gpus all image')",
        '"""docker run --gpus all image"""',
        "parser.add_argument('--gpus', help='docker')",
        "subprocess.run(['docker', 'ps', '--gpus'])",
    ],
)
def test_other_commands_and_texts(line: str) -> None:
    check_noop(f"import os, subprocess\n{line}\n")
