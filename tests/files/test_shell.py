"""Shell scripts: what is edited, what is said, and what stays; the pairs are the specification."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tree_sitter import Node

from tests.files.shell_pairs import TARGET, migrated
from transplt.base.finding import FileResult, Level
from transplt.base.settings import Settings
from transplt.engine.engine import index_source, join_facts
from transplt.engine.files.kind import FileKind, kind_of
from transplt.engine.files.other_file import migrate_other
from transplt.engine.files.shell.script import Script
from transplt.flow import read_as
from transplt.rules.pages import load


def shell(text: str | bytes, path: str = "run.sh", alone: bool = False, **chosen: object) -> FileResult:
    return migrated(text, path, FileKind.SHELL, alone, **chosen)


def codes(result: FileResult) -> list[str]:
    return [each.code for each in result.findings if not each.applied]


def held(before: str, after: str, **chosen: object) -> FileResult:
    """A pair; what holds of every file holds of it."""
    result = shell(before, **chosen)
    assert result.data.decode() == after
    assert result.tokens.found == result.tokens.converted + result.tokens.manual + result.tokens.ignored
    again = shell(after, **chosen)
    assert again.data.decode() == after, "a second run changes nothing"
    return result


# --- variables -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("export CUDA_VISIBLE_DEVICES=0,1\n", "export ASCEND_RT_VISIBLE_DEVICES=0,1\n"),
        ("CUDA_VISIBLE_DEVICES= python x.py\n", "ASCEND_RT_VISIBLE_DEVICES= python x.py\n"),
        ("CUDA_VISIBLE_DEVICES='0' python x.py &\n", "ASCEND_RT_VISIBLE_DEVICES='0' python x.py &\n"),
        ("CUDA_VISIBLE_DEVICES=-1 python x.py\n", "ASCEND_RT_VISIBLE_DEVICES=-1 python x.py\n"),
        ("CUDA_VISIBLE_DEVICES=$1 python x.py\n", "ASCEND_RT_VISIBLE_DEVICES=$1 python x.py\n"),
        ("CUDA_VISIBLE_DEVICES=$((R % 8)) a\n", "ASCEND_RT_VISIBLE_DEVICES=$((R % 8)) a\n"),
        ("CUDA_VISIBLE_DEVICES=$(seq -s, 0 7) a\n", "ASCEND_RT_VISIBLE_DEVICES=$(seq -s, 0 7) a\n"),
        ("G=0,1\nCUDA_VISIBLE_DEVICES=$G a\n", "G=0,1\nASCEND_RT_VISIBLE_DEVICES=$G a\n"),
        ("env -u A CUDA_VISIBLE_DEVICES=0 a\n", "env -u A ASCEND_RT_VISIBLE_DEVICES=0 a\n"),
        ("nohup sudo CUDA_VISIBLE_DEVICES=0 a\n", "nohup sudo ASCEND_RT_VISIBLE_DEVICES=0 a\n"),
        ("mpirun -x CUDA_VISIBLE_DEVICES -x NCCL_SOCKET_IFNAME=e a\n",
         "mpirun -x ASCEND_RT_VISIBLE_DEVICES -x HCCL_SOCKET_IFNAME=e a\n"),
        ("docker run -e CUDA_VISIBLE_DEVICES=0 x\n", "docker run -e ASCEND_RT_VISIBLE_DEVICES=0 x\n"),
        ("export CUDA_VISIBLE_DEVICES=0\necho $CUDA_VISIBLE_DEVICES\nunset CUDA_VISIBLE_DEVICES\n",
         "export ASCEND_RT_VISIBLE_DEVICES=0\necho $ASCEND_RT_VISIBLE_DEVICES\nunset ASCEND_RT_VISIBLE_DEVICES\n"),
        ("N=${CUDA_VISIBLE_DEVICES//,/ }\n", "N=${ASCEND_RT_VISIBLE_DEVICES//,/ }\n"),
        ('export CUDA_VISIBLE_DEVICES="${CUDA_VISIBLE_DEVICES:-0,1}"\n',
         'export ASCEND_RT_VISIBLE_DEVICES="${ASCEND_RT_VISIBLE_DEVICES:-0,1}"\n'),
        ("for i in 0 1; do CUDA_VISIBLE_DEVICES=$i a & done\n",
         "for i in 0 1; do ASCEND_RT_VISIBLE_DEVICES=$i a & done\n"),
        ("[[ -v CUDA_VISIBLE_DEVICES ]] && printenv CUDA_VISIBLE_DEVICES\n",
         "[[ -v ASCEND_RT_VISIBLE_DEVICES ]] && printenv ASCEND_RT_VISIBLE_DEVICES\n"),
        ("CUDA_LAUNCH_BLOCKING=1 a\r\n", "ASCEND_LAUNCH_BLOCKING=1 a\r\n"),
        ("export PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128\n",
         "export PYTORCH_NPU_ALLOC_CONF=max_split_size_mb:128\n"),
        ("DS_ACCELERATOR=cuda deepspeed x.py\n", "DS_ACCELERATOR=npu deepspeed x.py\n"),
    ],
)  # fmt: skip
def test_a_variable_is_renamed_where_its_value_holds(before: str, after: str) -> None:
    result = held(before, after)
    assert codes(result) == [] and {each.code for each in result.findings} == {"NPU810"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("CUDA_VISIBLE_DEVICES=1,0 a\n", "ascending order"),
        ('CUDA_VISIBLE_DEVICES="0, 1" a\n', "without spaces"),
        ("CUDA_VISIBLE_DEVICES=GPU-8932f937 a\n", "only numbers"),
        ("CUDA_VISIBLE_DEVICES=MIG-$ID a\n", "driver (MIG-)"),
        ("CUDA_VISIBLE_DEVICES=$(nvidia-smi -L) a\n", "driver (nvidia-smi)"),
        ("G=$(nvidia-smi -L | head -1)\nCUDA_VISIBLE_DEVICES=$G a\n", "driver (nvidia-smi)"),
        ("G=1,0\nCUDA_VISIBLE_DEVICES=$G a\n", "ascending order"),
        ("env CUDA_VISIBLE_DEVICES=1,0 a\n", "ascending order"),
        ("CUDA_VISIBLE_DEVICES+=,3\n", "appended"),
        ("X=${CUDA_VISIBLE_DEVICES:-all}\n", "only numbers"),
        ("export PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync\n", "backend is no option"),
        ("export PYTORCH_CUDA_ALLOC_CONF=$C\n", "the value is computed"),
        ("NCCL_BUFFSIZE=8388608 a\n", "write HCCL_BUFFSIZE=8;"),
        ("export NCCL_IB_TC=106\n", "a multiple of 4 from 0 to 255"),
        ("export NCCL_IB_TC=104\n", "write HCCL_RDMA_TC=104;"),
        ("NCCL_DEBUG=INFO a\n", "write ASCEND_GLOBAL_LOG_LEVEL=1;"),
        ("export CUDA_HOME=/usr/local/cuda-11.8\n", "set_env.sh"),
    ],
)
def test_a_value_that_does_not_carry_over_is_said(text: str, said: str) -> None:
    result = held(text, text)
    (told,) = [each for each in result.findings if each.code == "NPU811"]
    assert said in told.help and told.level is Level.MANUAL


def test_what_a_script_sets_and_reads_stays_together() -> None:
    """One value that does not carry over keeps the name in the whole script, but not in what one command is given."""
    text = "export CUDA_VISIBLE_DEVICES=1,0\necho $CUDA_VISIBLE_DEVICES\nCUDA_VISIBLE_DEVICES=0 python x.py\n"
    result = held(text, text.replace("CUDA_VISIBLE_DEVICES=0 ", "ASCEND_RT_VISIBLE_DEVICES=0 "))
    assert codes(result) == ["NPU811"]
    assert (result.tokens.converted, result.tokens.manual, result.tokens.ignored) == (1, 1, 1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("export NCCL_IB_DISABLE=1 NCCL_P2P_LEVEL=NVL\n", ["NPU812", "NPU812"]),
        ("CUDA_DEVICE_ORDER=PCI_BUS_ID a\n", ["NPU812"]),
        ("export NCCL_NEVER_HEARD_OF=1\n", ["NPU812"]),
        ("TORCH_CUDNN_V8_API_ENABLED=1 a\n", ["NPU812"]),
        ("echo $NCCL_IB_DISABLE\n", []),
        ("USE_CUDA=${USE_CUDA:-0}\nif $USE_CUDA; then a; fi\n", []),
        ("CUDA=1; x $CUDA\n", []),
        ("export MY_CUDA_IDS=0,1\n", []),
        ("export FORCE_CUDA=1\n", []),
        ("export OMP_NUM_THREADS=1 MASTER_ADDR=x GLOO_SOCKET_IFNAME=e\n", []),
        ("export PATH=/opt/bin:$PATH\n", []),
    ],
)
def test_variables_that_stay(text: str, expected: list[str]) -> None:
    assert codes(held(text, text)) == expected


def test_a_version_that_does_not_read_the_new_name() -> None:
    text = "PYTORCH_NVML_BASED_CUDA_CHECK=1 a\n"
    assert "NPU811" in codes(held(text, text))


# --- arguments -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("python tools/train.py --dist-backend nccl --device cuda:0\n",
         "python tools/train.py --dist-backend hccl --device npu:0\n"),
        ("torchrun --nproc_per_node 8 tools/train.py --dist-backend='nccl'\n",
         "torchrun --nproc_per_node 8 tools/train.py --dist-backend='hccl'\n"),
        ("python3 -u -m torch.distributed.launch --nproc_per_node=2 tools/train.py \\\n  --device \"cuda\"\n",
         "python3 -u -m torch.distributed.launch --nproc_per_node=2 tools/train.py \\\n  --device \"npu\"\n"),
        ("python -m tools.train --device cuda\n", "python -m tools.train --device npu\n"),
        ("srun -N 2 python $ROOT/tools/train.py --device=cuda:$i\n",
         "srun -N 2 python $ROOT/tools/train.py --device=npu:$i\n"),
        ("$PYTHON ./train.py --device ${D:-cuda} > log 2>&1 &\n",
         "$PYTHON ./train.py --device ${D:-npu} > log 2>&1 &\n"),
        ("accelerate launch --config_file c.yaml train.py --device cuda\n",
         "accelerate launch --config_file c.yaml train.py --device npu\n"),
        ("uv run train.py trainer.device=cuda\n", "uv run train.py trainer.device=npu\n"),
        ("./train.py ++trainer.device='cuda'\n", "./train.py ++trainer.device='npu'\n"),
        ("deepspeed train.py --ddp_backend nccl\n", "deepspeed train.py --ddp_backend hccl\n"),
        ("DEVICE=cuda\npython train.py --device $DEVICE\n", "DEVICE=npu\npython train.py --device $DEVICE\n"),
        ('D=${1:-cuda}\nif [ "$D" = cuda ]; then echo x; fi\npython train.py --device "$D"\n',
         'D=${1:-npu}\nif [ "$D" = npu ]; then echo x; fi\npython train.py --device "$D"\n'),
        ('A="--dist-backend nccl \\\n  --lr $LR --device cuda:1"\npython train.py $A\n',
         'A="--dist-backend hccl \\\n  --lr $LR --device npu:1"\npython train.py $A\n'),
        ('a=(--device cuda "--dist-backend=nccl")\npython train.py "${a[@]}"\n',
         'a=(--device npu "--dist-backend=hccl")\npython train.py "${a[@]}"\n'),
        ("MY_DEVICE=cuda python train.py\n", "MY_DEVICE=npu python train.py\n"),
        ("export MY_DEVICE=cuda:0\n", "export MY_DEVICE=npu:0\n"),
    ],
)  # fmt: skip
def test_a_device_or_backend_that_the_program_takes(before: str, after: str) -> None:
    result = held(before, after)
    assert codes(result) == [] and {each.code for each in result.findings} == {"NPU813"}


def test_a_value_that_no_code_uses_as_a_device_stops_no_step() -> None:
    text = "python train.py --method cuda\n"
    assert [each.blocks for each in held(text, text).findings if each.code == "NPU814"] == ["later"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("python train.py --method cuda\n", ["NPU814"]),
        ("python train.py --nobody-has-this nccl\n", ["NPU814"]),
        ("D=cuda\npython train.py --device $D\nother $D\n", ["NPU814"]),
        ("D=cuda\npython train.py --device $D --method $D\n", ["NPU814"]),
        ("python train.py --no-cuda\n", []),
        ("python train.py --gpus 2 --gpu 0\n", []),
        ("python train.py --cuda-graph\n", []),
        ("python train.py --cfg a.yaml CUDNN.BENCHMARK False MODEL.USE_CUDA True\n", []),
        ("python train.py --cfg a.yaml MODEL.METHOD cuda\n", ["NPU814"]),
        ("python train.py CUDA\n", ["NPU801"]),
        ('F="--no-cuda"\npython train.py $F\n', []),
        ("python train.py --device cpu --dist-backend gloo\n", []),
        ("bash train.sh cuda\n", ["NPU801"]),
        ("somebody --device cuda\n", ["NPU801"]),
        ("DEVICE=cuda\n", ["NPU801"]),
        ("python train.py --output out/cuda_1\n", ["NPU801"]),
    ],
)
def test_arguments_that_stay(text: str, expected: list[str]) -> None:
    assert codes(held(text, text)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "vllm serve m --weight-transfer-config '{\"backend\": \"nccl\"}'\n",
        "vllm serve m --weight-transfer-config='{\"backend\":\"nccl\"}' --port 80\n",
        "vllm serve m \\\n  --weight-transfer-config \\\n  '{\"backend\": \"nccl\"}'\n",
        "vllm serve m --weight-transfer-config.backend nccl\n",
        "python train.py --weight_transfer_config '{\"backend\": \"nccl\"}'\n",
        "python train.py engine.weight_transfer_config.backend=nccl\n",
        "C='{\"backend\": \"nccl\"}'\nvllm serve m --weight-transfer-config \"$C\"\n",
    ],
)
def test_a_name_of_vllms_own_registry_stays_without_a_word(text: str) -> None:
    result = held(text, text)
    assert {*codes(result)} <= {"NPU512"} and result.tokens.manual == 0  # of the package vllm


def test_an_option_of_megatron_outside_the_project_says_what_it_takes() -> None:
    text = "torchrun /opt/Megatron-LM/pretrain_gpt.py --distributed-backend nccl\n"
    (said,) = [each for each in held(text, text).findings if each.code == "NPU814"]
    assert "Megatron-LM takes nccl and gloo alone" in said.help


def test_another_backend_on_the_same_line_is_spoken_of() -> None:
    text = "vllm serve m --weight-transfer-config '{\"backend\": \"nccl\"}' --other nccl\n"
    result = held(text, text)
    (said,) = [each for each in result.findings if each.code == "NPU801"]
    assert said.span.column == text.rindex("nccl") + 1 and "another library may look the name up" in said.help


def test_without_its_project_no_option_is_known() -> None:
    text = "python train.py --device cuda --dist-backend nccl\n"
    assert codes(held(text, text, alone=True)) == ["NPU814", "NPU814"]


# --- tools -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("nvidia-smi\n", "npu-smi info\n"),
        ("nvidia-smi > smi.txt\n", "npu-smi info > smi.txt\n"),
        ("srun nvidia-smi\n", "srun nvidia-smi\n"),
        ("sudo nvidia-smi -L\n", "sudo npu-smi info -l\n"),
        ("watch -n 1 nvidia-smi\n", "watch -n 1 npu-smi info\n"),
        ('watch "nvidia-smi"\n', 'watch "npu-smi info"\n'),
        ("if true; then nvidia-smi; fi\n", "if true; then npu-smi info; fi\n"),
    ],
)
def test_nvidia_smi_for_people(before: str, after: str) -> None:
    held(before, after)


@pytest.mark.parametrize(
    "text",
    [
        "nvidia-smi -L | wc -l\n",
        "N=$(nvidia-smi -L | wc -l)\n",
        "nvidia-smi --query-gpu=name --format=csv\n",
        "nvidia-smi -l 1\n",
        "if nvidia-smi; then a; fi\n",
        "while ! nvidia-smi; do sleep 1; done\n",
        "command -v nvidia-smi > /dev/null || exit 1\n",
        "/usr/bin/nvidia-smi\n",
        "nvcc --version\n",
        "module load cuda/11.8\n",
        "export PATH=/usr/local/cuda/bin:$PATH\n",
        "export LD_LIBRARY_PATH=$CUDA_HOME/lib64:$LD_LIBRARY_PATH\n",
        "source /usr/local/cuda/env.sh\n",
    ],
)
def test_tools_that_a_person_replaces(text: str) -> None:
    result = held(text, text)
    assert codes(result) == ["NPU816"]
    assert all(each.help for each in result.findings)


# --- programs between the lines --------------------------------------------------------------------------------------

CHECK = "import torch; print(torch.cuda.is_available())"
CHECKED = "import torch_npu; import torch; print(torch.npu.is_available())"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"python -c '{CHECK}'\n", f"python -c '{CHECKED}'\n"),
        (f'python3 -c "{CHECK}" | tee log\n', f'python3 -c "{CHECKED}" | tee log\n'),
        (f"X=$(python -c '{CHECK}')\n", f"X=$(python -c '{CHECKED}')\n"),
        ("python - <<'EOF'\nimport torch\nx = torch.zeros(1).cuda()\nEOF\n",
         "python - <<'EOF'\nimport torch\nimport torch_npu  # noqa: F401\nx = torch.zeros(1).npu()\nEOF\n"),
        ("python <<EOF\nimport torch\ntorch.cuda.init()\nEOF\necho\n",
         "python <<EOF\nimport torch\nimport torch_npu  # noqa: F401\ntorch.npu.init()\nEOF\necho\n"),
        ("if x; then\n\tpython - <<-EOF\n\timport torch\n\ttorch.cuda.init()\n\tEOF\nfi\n",
         "if x; then\n\tpython - <<-EOF\n\timport torch\n\timport torch_npu  # noqa: F401\n\ttorch.npu.init()\n"
         "\tEOF\nfi\n"),
        ("cat > a.py <<'EOF'\nimport torch\ntorch.cuda.init()\nEOF\n",
         "cat > a.py <<'EOF'\nimport torch\nimport torch_npu  # noqa: F401\ntorch.npu.init()\nEOF\n"),
        ("cat <<EOF > job.sh\nexport CUDA_VISIBLE_DEVICES=$1\nEOF\n",
         "cat <<EOF > job.sh\nexport ASCEND_RT_VISIBLE_DEVICES=$1\nEOF\n"),
        ("python t.py --device='cuda' \\", "python t.py --device='npu' \\"),
        ("sbatch <<EOF\n#!/bin/bash\nCUDA_VISIBLE_DEVICES=0 a\nEOF\n",
         "sbatch <<EOF\n#!/bin/bash\nASCEND_RT_VISIBLE_DEVICES=0 a\nEOF\n"),
        ('bash -c "CUDA_VISIBLE_DEVICES=$i python x.py"\n', 'bash -c "ASCEND_RT_VISIBLE_DEVICES=$i python x.py"\n'),
        ("ssh h 'CUDA_VISIBLE_DEVICES=0 python x.py'\n", "ssh h 'ASCEND_RT_VISIBLE_DEVICES=0 python x.py'\n"),
        ('screen -S a -X stuff "CUDA_VISIBLE_DEVICES=0 a \\r"\n',
         'screen -S a -X stuff "ASCEND_RT_VISIBLE_DEVICES=0 a \\r"\n'),
        ('C="CUDA_VISIBLE_DEVICES=$i python x.py"\necho $C\neval $C\n',
         'C="ASCEND_RT_VISIBLE_DEVICES=$i python x.py"\necho $C\neval $C\n'),
        ("python -c 'x = \"cuda\"\nimport torch\ntorch.cuda.init()'\n",
         "python -c 'x = \"cuda\"\nimport torch\nimport torch_npu  # noqa: F401\ntorch.npu.init()'\n"),
    ],
)  # fmt: skip
def test_programs_of_other_languages(before: str, after: str) -> None:
    held(before, after)


@pytest.mark.parametrize(
    "text",
    [
        'python -c "import torch; print(torch.cuda.device_count(), \'$A\')"\n',
        'python -c "import torch; print(\\"x\\", torch.cuda.device_count())"\n',
        "python - <<EOF\nimport torch\nprint(torch.cuda.device_count(), $A)\nEOF\n",
        "python - <<EOF\nimport torch\nprint(torch.cuda.device_count(), '\\\\n')\nEOF\n",
        "cat <<EOF > notes\nCUDA_VISIBLE_DEVICES=0 python x.py\nEOF\n",
        "python -c 'print torch.cuda'\n",
        "grep -c 'torch.cuda' x.py\n",
        'echo "export CUDA_VISIBLE_DEVICES=0" >> ~/.bashrc\n',
        "sed -i 's/cuda/npu/' train.py\n",
    ],
)
def test_programs_whose_bytes_the_shell_changes_are_reported(text: str) -> None:
    assert "NPU801" in codes(held(text, text))


_ASKS = 'python -c "import torch; exit(0 if torch.{}.is_available() else 1)"'


@pytest.mark.parametrize(
    ("lines", "stays"),
    [
        ("if {}; then\n  pip install cupy-cuda12x\nfi\n", True),
        ("if a; then\n  if {}; then\n    echo b\n    pip install -q openequivariance\n  fi\nfi\n", True),
        ("if {}; then\n  pip install e3nn\nelse\n  pip install cupy\nfi\n", False),
        ("if {}; then\n  python train.py\nfi\npip install cupy\n", False),
    ],
)
def test_a_guard_of_an_install_that_npus_do_without(lines: str, stays: bool) -> None:
    before = lines.format(_ASKS.format("cuda"))
    after = lines.format(_ASKS.format("npu").replace("import", "import torch_npu; import", 1))
    assert ("NPU270" in codes(held(before, before if stays else after))) is stays


# --- texts, comments, grammar ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "echo 'needs cuda'\n",
        'echo "usage: $0 --cuda" >&2\nexit 1\n',
        'printf "CUDA %s\\n" x\n',
        "cat <<EOF\nusage: run.sh [--cuda]\nEOF\n",
        "# CUDA_VISIBLE_DEVICES=0 python x.py\n",
        "setup_cuda() {\n  true\n}\nsetup_cuda\n",
        "#!/bin/csh\n# cuda\n",
        "python tools/train.py --config $base/ds_nccl_config.json\n",
        'python tools/train.py --load "a/b model_cuda.pth"\n',
        "tail -f logs/cuda.log\n",
    ],
)
def test_texts_and_names_stay(text: str) -> None:
    assert codes(held(text, text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "cat /usr/local/cuda/version.json\n",
        "sh cuda_11.8_linux.run\n",
        "pip install -r requirements-cuda.txt\n",
        "python other_cuda.py\n",
        "JOB=train_nccl\n",
    ],
)
def test_files_and_names_that_may_ask_for_cuda(text: str) -> None:
    assert codes(held(text, text))


@pytest.mark.parametrize(("name", "left"), [("nvidia_run.py", []), ("nvidia_walk.py", ["NPU801"])])
def test_a_program_of_the_project_that_is_called_after_cuda(name: str, left: list[str]) -> None:
    chosen = Settings(torch_version="2.8")
    project = join_facts([index_source(b"import torch\n", "bert/nvidia_run.py", chosen)], chosen)
    text = f"deepspeed ../{name} --steps 3\n".encode()
    assert codes(migrate_other(text, "bert/run.sh", FileKind.SHELL, chosen, TARGET, project)[0]) == left


@pytest.mark.parametrize(
    "text",
    [
        "if x; then\nCUDA_VISIBLE_DEVICES=0 a\n",
        "a='\nCUDA_VISIBLE_DEVICES=0 b\n",
        "x = `a\nexport CUDA_VISIBLE_DEVICES=0\n",
        "#!/bin/csh\nsetenv CUDA_VISIBLE_DEVICES 0\n",
    ],
)
def test_what_the_grammar_does_not_read_is_not_edited(text: str) -> None:
    result = held(text, text)
    assert codes(result) and result.tokens.manual


def test_other_shells_are_not_edited() -> None:
    assert not shell("set CUDA_VISIBLE_DEVICES=0\n", "run.bat").changed
    assert not shell("$env:CUDA_VISIBLE_DEVICES=0\n", "run.ps1").changed


_CARDS = "export CUDA_VISIBLE_DEVICES"


@pytest.mark.parametrize(
    "text",
    [
        "CUDA_VISIBLE_DEVICES=0 python train.py --device cuda\nnvidia-smi\n",
        # The module of a project sets the other one; here nobody knows of any.
        f"{_CARDS}=0 # one\n",
        f"{_CARDS}=0\npython train.py\n",
        "export NCCL_SOCKET_IFNAME=e\n",
        f"{_CARDS}=0; a\n",
        f"{_CARDS}=0 B=1\n",
        "CUDA_VISIBLE_DEVICES=0\nexport CUDA_VISIBLE_DEVICES\n",
        # Others may have set that of the NPU before.
        f"{_CARDS}=${{CUDA_VISIBLE_DEVICES:-0,1}}\n",
        # One of two alone would leave the cards of the other.
        f"{_CARDS}=0\na\nunset CUDA_VISIBLE_DEVICES\n",
        f"{_CARDS}=0\na\n{_CARDS}=1 # the other\n",
        # The value means something else there.
        f"{_CARDS}=GPU-7e2f\n",
        "export NCCL_DEBUG=INFO\n",
        "DS_ACCELERATOR=cuda deepspeed train.py\n",
        # A migration writes run_npu.sh beside what needs more to start a program, and nothing beside a job.
        f"{_CARDS}=0\npython train.py --device cuda\n",
        f"{_CARDS}=0\nif a; then\n  CUDA_VISIBLE_DEVICES=1 nohup torchrun -m pkg.train &\nfi\n",
        f"#!/bin/bash\n#SBATCH -n 1\n{_CARDS}=0\nsrun python train.py\n",
    ],
)
def test_the_portable_style_edits_nothing_else(text: str) -> None:
    result = held(text, text, style="portable")
    assert set(codes(result)) == {"NPU801"}


def test_a_script_that_exports_both_is_done() -> None:
    text = f"{_CARDS}=0\nexport ASCEND_RT_VISIBLE_DEVICES=0\n"
    assert codes(held(text, text, style="portable")) == []


@pytest.mark.parametrize(
    "text",
    [
        "USE_CUDA=${USE_CUDA:-0}\nif $USE_CUDA; then a; fi\n",
        "CUDA=1; x $CUDA\n",
        "export MY_CUDA_IDS=0,1\n",
        "echo $NCCL_IB_DISABLE\n",
    ],
)
def test_what_is_the_scripts_own_is_no_work_in_either_style(text: str) -> None:
    for style in ("npu", "portable"):
        result = held(text, text, style=style)
        assert codes(result) == [] and result.tokens.ignored == result.tokens.found > 0


def test_a_scheduler_is_said_once() -> None:
    text = "#!/bin/bash\n#SBATCH --gres=gpu:8\nCUDA_VISIBLE_DEVICES=0 a\n"
    assert codes(held(text, text.replace("CUDA_V", "ASCEND_RT_V"))) == ["NPU280"]


def test_a_script_without_a_suffix() -> None:
    data = b"#!/usr/bin/env bash\nCUDA_VISIBLE_DEVICES=0 a\n"
    assert kind_of("bin/train", data) is FileKind.SHELL
    assert shell(data, "bin/train").data == data.replace(b"CUDA_V", b"ASCEND_RT_V")


@pytest.mark.parametrize("tail", [b"\x00\x01", b"\xff\xfe cuda", b"\xc3"])
def test_bytes_that_are_no_text_are_copied(tail: bytes) -> None:
    data = b"export CUDA_VISIBLE_DEVICES=0\n" + tail
    assert shell(data).data == data


def test_a_long_file_is_read_in_time() -> None:
    text = "export CUDA_VISIBLE_DEVICES=0\n" * 2_000
    assert shell(text).data.decode() == text.replace("CUDA", "ASCEND_RT")
    big = "x=" + "a" * 1_000_001 + "\nCUDA_VISIBLE_DEVICES=0 a\n"
    assert not shell(big).changed and codes(shell(big)) == ["NPU801"]


# --- what holds for every file ---------------------------------------------------------------------------------------

_WORDS = [
    "CUDA_VISIBLE_DEVICES=0", "CUDA_VISIBLE_DEVICES", "$CUDA_VISIBLE_DEVICES", "${CUDA_VISIBLE_DEVICES:-1,0}", "export",
    "unset", "env", "python", "-c", "train.py", "--device", "cuda", "cuda:0", "nccl", "--dist-backend=nccl",
    "'", '"', "`", "\\", "\n", "|", "&&", ";", "$(", ")", "if", "then", "fi", "<<EOF", "\nEOF\n", "é", "nvidia-smi",
    "import torch; torch.cuda.init()", "{", "}", "(", "\t", "\r\n", "#", "[ $A = cuda ]", "A=cuda", "for i in", "do",
    "done", "NCCL_DEBUG=INFO",
]  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(_WORDS), max_size=24).map(" ".join))
def test_any_text_is_edited_only_where_it_is_said(text: str) -> None:
    result = shell(text)
    edits = [each for each in result.findings if each.applied and each.edit is not None]
    new = text.encode()
    for each in sorted(edits, key=lambda item: -item.span.start):
        assert each.edit is not None
        assert new[each.span.start : each.span.end].decode() == each.edit.before
        new = new[: each.span.start] + each.edit.after.encode() + new[each.span.end :]
    assert new == result.data
    assert shell(result.data).data == result.data
    tokens = result.tokens
    assert tokens.found == tokens.converted + tokens.manual + tokens.ignored


@pytest.mark.parametrize("code", ["NPU810", "NPU811", "NPU812", "NPU813", "NPU814", "NPU815", "NPU816"])
def test_the_examples_of_the_pages(code: str) -> None:
    page = load(code)
    examples = re.findall(r"```sh\n(.*?)```", page.sections["Example"], re.DOTALL)
    result = held(examples[0], examples[-1])
    found = [each for each in result.findings if each.code == code]
    assert found and {each.level for each in found} == {page.level}
    assert (len(examples) == 2) == all(each.applied for each in found)


# --- long chains of variables ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "lines",
    [
        lambda n: ["V0=$(nvidia-smi)", *(f"V{i + 1}=$V{i}" for i in range(n)), f"export CUDA_VISIBLE_DEVICES=$V{n}"],
        lambda n: ["V0=cuda", *(f"V{i + 1}=$V{i}$V{i}" for i in range(n)), f"export CUDA_VISIBLE_DEVICES=$V{n}"],
        lambda n: [*(f"V{(i + 1) % n}=$V{i}" for i in range(n)), "export CUDA_VISIBLE_DEVICES=$V0"],
        lambda n: [f"CUDA_VISIBLE_DEVICES=$V{i} x --device $V{i}\nV{i}=cuda:$V{i + 1}" for i in range(n)],
        lambda n: [f'CMD{i}="python train.py --device cuda"\n$CMD{i}' for i in range(n)],
        lambda n: [f"V{i}=cuda\npython train.py --device $V{i}" for i in range(n)],
        lambda n: [f"V=cuda:{i}\npython train.py --device{i} $V" for i in range(n)],
        lambda n: ["x " + "-c 'python a.py --device cuda' " * n],
        lambda n: ["export CUDA_VISIBLE_DEVICES=" + "${A:-" * n + "0" + "}" * n],
    ],
)
def test_variables_that_hand_on_variables_take_work_by_their_number(
    lines: Callable[[int], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice the lines are twice the work, not eight times: a kilobyte of them took seconds."""
    work = 0

    def text(script: Script, node: Node) -> str:
        nonlocal work
        work += 1
        return script.document.utf8[node.start_byte : node.end_byte].decode()

    def read(*arguments: object) -> read_as.Reading:
        nonlocal work
        work += 1
        return read_as.Reading()

    monkeypatch.setattr(Script, "text", text)
    monkeypatch.setattr("transplt.engine.files.shell.held_values.reading_of", read)
    done = []
    for number in (40, 80):
        work = 0
        shell("\n".join(lines(number)) + "\n")
        done.append(work)
    assert done[1] < 2.5 * done[0]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("V=$(nvidia-smi -L)\nW=$V\nX=$W\nexport CUDA_VISIBLE_DEVICES=$X\n", "driver (nvidia-smi)"),
        ("export CUDA_VISIBLE_DEVICES=$X\nX=$W\nW=$V\nV=$(nvidia-smi -L)\n", "driver (nvidia-smi)"),
        ("A=$B\nB=$A\nB=GPU-1\nexport CUDA_VISIBLE_DEVICES=$A\n", "driver (GPU-)"),
        ("A=${B:-${C:-MIG-1}}\nexport CUDA_VISIBLE_DEVICES=${A}\n", "driver (MIG-)"),
        ("A=GPU-1\nexport NCCL_SOCKET_IFNAME=x$A\n", "driver (GPU-)"),
        ("A=$B\nB=$A\nexport CUDA_VISIBLE_DEVICES=$A\n", ""),
        ("V=$(nvidia-smi)\nW=0\nexport CUDA_VISIBLE_DEVICES=$W\n", ""),
    ],
)
def test_a_value_of_the_driver_is_followed_through_variables(lines: str, said: str) -> None:
    found = [each.help for each in shell(lines).findings if each.code == "NPU811"]
    assert any(said in each for each in found) if said else not found
