"""Configuration files: devices, backends and variables in them, by what the code of the project reads."""

from __future__ import annotations

import json
import os
import textwrap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.harness import reasons, record
from transplt.base.finding import FileResult
from transplt.base.settings import Settings, TorchTarget
from transplt.engine.engine import index_source
from transplt.engine.files.kind import FileKind, kind_of
from transplt.engine.files.other_file import migrate_other
from transplt.flow.facts import ProjectFacts

TARGET = TorchTarget("2.8", "", "2.8.0", "8.5.0", "2.8.0")
#: Reads keys, options and variables; what these are is in tests/files/test_read_as.py.
CODE = """
    import os, torch, torch.distributed as dist
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--dist-backend", default="nccl")
    parser.add_argument("--no-cuda", action="store_true")
    args = parser.parse_args()
    device = torch.device(cfg.train.device)
    x.to(cfg["card"])
    dist.init_process_group(cfg.dist.backend)
    use = cfg.use_cuda
    where = os.environ["MY_DEVICE"]
    x.to(cfg.sim_device)

    class Net(torch.nn.Module):
        def __init__(self, card):
            self.w = torch.ones(1, device=card)
"""


def migrated(text: str, path: str, code: str = CODE, **settings: object) -> FileResult:
    facts = index_source(textwrap.dedent(code).encode(), "pkg/net.py", Settings())
    chosen = Settings(**settings)  # type: ignore[arg-type]
    result, _ = migrate_other(text.encode(), path, FileKind.CONFIG, chosen, TARGET, ProjectFacts.join([facts]))
    tokens = result.tokens
    assert tokens.found == tokens.converted + tokens.manual + tokens.unknown + tokens.ignored
    record((f.code for f in result.findings if f.applied), (f.code for f in result.findings if not f.applied))
    return result


def left(result: FileResult) -> list[str]:
    return [each.code for each in result.findings if not each.applied and not each.ignored]


YAML = [
    # keys that the code reads
    ("train:\n  device: cuda\n", "train:\n  device: npu\n"),
    ("train:\n  device: 'cuda:1'  # the second\n", "train:\n  device: 'npu:1'  # the second\n"),
    ('train: {device: "cuda:0", lr: 1}\n', 'train: {device: "npu:0", lr: 1}\n'),
    ("device: cuda\n", "device: npu\n"),
    ("card: cuda\n", "card: npu\n"),
    ("dist:\n  backend: nccl\n", "dist:\n  backend: hccl\n"),
    ("dist:\n  backend: cpu:gloo,cuda:nccl\n", "dist:\n  backend: cpu:gloo,npu:hccl\n"),
    ("train:\n  device: [cuda:0, cuda:1]\n", "train:\n  device: [npu:0, npu:1]\n"),
    ("train:\n  device: cuda:0,cuda:1\n", "train:\n  device: npu:0,npu:1\n"),
    ("train:\r\n  device: cuda\r\n", "train:\r\n  device: npu\r\n"),
    ("é: ü\ntrain:\n  device: cuda\n", "é: ü\ntrain:\n  device: npu\n"),
    ("---\na: 1\n---\ncard: cuda\n", "---\na: 1\n---\ncard: npu\n"),
    # anchors, merge keys and interpolations lead to one place
    ("base: &where cuda\ntrain:\n  device: *where\n", "base: &where npu\ntrain:\n  device: *where\n"),
    ('base: &where "cuda"\ncard: *where\n', 'base: &where "npu"\ncard: *where\n'),
    ("card: !!str cuda\n", "card: !!str npu\n"),
    ("base: &base\n  device: cuda\ntrain:\n  <<: *base\n", "base: &base\n  device: npu\ntrain:\n  <<: *base\n"),
    ("where: cuda\ntrain:\n  device: ${where}\n", "where: npu\ntrain:\n  device: ${where}\n"),
    ("where: cuda\ncard: !ref <where>\n", "where: npu\ncard: !ref <where>\n"),
    ("train:\n  device: ${oc.env:DEVICE,cuda}\n", "train:\n  device: ${oc.env:DEVICE,npu}\n"),
    # what a configuration calls
    ("model:\n  _target_: pkg.net.Net\n  card: cuda\n", "model:\n  _target_: pkg.net.Net\n  card: npu\n"),
    ("model: !new:pkg.net.Net\n  card: cuda\n", "model: !new:pkg.net.Net\n  card: npu\n"),
    ("d:\n  _target_: torch.device\n  type: cuda\n", "d:\n  _target_: torch.device\n  type: npu\n"),
    # options and overrides
    ("args: [--device, cuda, --no-cuda]\n", "args: [--device, npu, --no-cuda]\n"),
    ("args:\n  - --device=cuda:0\n", "args:\n  - --device=npu:0\n"),
    ("args: --lr 1 --device cuda --x\n", "args: --lr 1 --device npu --x\n"),
    ("overrides: [train.device=cuda, lr=1]\n", "overrides: [train.device=npu, lr=1]\n"),
    ("sweeper:\n  params:\n    train.device: cuda,cpu\n", "sweeper:\n  params:\n    train.device: npu,cpu\n"),
    ("args: [--train.device, cuda]\n", "args: [--train.device, npu]\n"),
    # variables
    ('env:\n  CUDA_VISIBLE_DEVICES: "0,1"\n', 'env:\n  ASCEND_RT_VISIBLE_DEVICES: "0,1"\n'),
    ("env_set: {CUDA_VISIBLE_DEVICES: 1}\n", "env_set: {ASCEND_RT_VISIBLE_DEVICES: 1}\n"),
    ("env_vars:\n  MY_DEVICE: cuda\n", "env_vars:\n  MY_DEVICE: npu\n"),
    # libraries
    ("compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU\n",
     "compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_NPU\n"),
    ("lr: 1\nddp_backend: nccl\n", "lr: 1\nddp_backend: hccl\n"),
    ("MODEL:\n  DEVICE: cuda\n_BASE_: x.yaml\n", "MODEL:\n  DEVICE: npu\n_BASE_: x.yaml\n"),
    ("env_cfg:\n  dist_cfg:\n    backend: nccl\n", "env_cfg:\n  dist_cfg:\n    backend: hccl\n"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), YAML)
def test_yaml(before: str, after: str) -> None:
    result = migrated(before, "conf/a.yaml")
    assert result.data.decode() == after
    assert left(result) == []


NOTHING_TO_DO = [
    "use_cuda: true\n",  # a key that the code reads under its name
    "use-cuda: true\n",
    "environment:\n  use_cuda: true\n",  # a setting, and no variable
    "environment:\n  use_cuda:\n    - 0\n",
    "defaults:\n  - device: cuda\n  - _self_\n",  # a file of that name
    "description: needs a card with cuda\n",
    "name: trained on an NVIDIA A100\n",
    "train:\n  device: npu\n",
    "train:\n  device: ${where}\n",
    "# device: cuda\na: 1\n",
]


@pytest.mark.parametrize("text", NOTHING_TO_DO)
def test_yaml_that_stays_without_a_word(text: str) -> None:
    result = migrated(text, "conf/a.yaml")
    assert not result.changed and left(result) == []


OWN_NAMES = [
    ("a.yaml", "weight_transfer_config:\n  backend: nccl\n"),
    ("a.yaml", "engine:\n  weight-transfer-config: {backend: nccl}\n"),
    ("a.yaml", "engine:\n  weight_transfer_config: '{\"backend\": \"nccl\"}'\n"),
    ("a.yaml", "_target_: vllm.config.WeightTransferConfig\nbackend: nccl\n"),
    ("a.yaml", "overrides: [engine.weight_transfer_config.backend=nccl]\n"),
    ("a.yaml", "args: [vllm, serve, m, --weight-transfer-config, '{\"backend\": \"nccl\"}']\n"),
    ("a.yaml", "run: |\n  vllm serve m --weight-transfer-config '{\"backend\": \"nccl\"}'\n"),
    ("a.json", '{"weight_transfer_config": {"backend": "nccl"}}'),
    ("a.json", '{"args": ["serve", "--weight-transfer-config", "{\\"backend\\": \\"nccl\\"}"]}'),
    ("a.toml", '[weight_transfer_config]\nbackend = "nccl"\n'),
]


@pytest.mark.parametrize("style", ["npu", "portable"])
@pytest.mark.parametrize(("path", "text"), OWN_NAMES)
def test_names_of_vllms_own_registry_stay_without_a_word(path: str, text: str, style: str) -> None:
    code = CODE + "\n    dist.init_process_group(cfg.backend)\n    parser.add_argument('--backend', default='nccl')\n"
    result = migrated(text, path, code, style=style)
    assert not result.changed and {*left(result)} <= {"NPU512"}  # of the package vllm
    assert list(reasons(result)) == ["a name of vLLM's own, on NPUs too"]


BACKENDS = """
    import torch.distributed as dist
    from ray.util import collective
    from somelib import Group
    def own(backend): pass
    collective.init_collective_group(1, 0, backend=cfg["ray_backend"])
    Group(backend=cfg["backend"])
    Group(**cfg["group"])
    own(backend=cfg["own_backend"])
    own(**cfg["own"])
    dist.init_process_group(backend=cfg["dist_backend"])
    dist.init_process_group(**cfg["dist"])
    Group(backend=cfg["both_backend"])
    dist.new_group(backend=cfg["both_backend"])
"""


@pytest.mark.parametrize(
    "text", ["own_backend: nccl\n", "own:\n  backend: nccl\n", "dist_backend: nccl\n", "dist:\n  backend: nccl\n",
             "_target_: accelerate.InitProcessGroupKwargs\nbackend: nccl\n"]
)  # fmt: skip
def test_a_backend_that_torch_or_the_project_takes(text: str) -> None:
    result = migrated(text, "conf/a.yaml", BACKENDS)
    assert result.data.decode() == text.replace("nccl", "hccl") and left(result) == []


@pytest.mark.parametrize(
    "text", ["ray_backend: nccl\n", "backend: nccl\n", "group:\n  backend: nccl\n", "both_backend: nccl\n",
             "_target_: ray.util.collective.init_collective_group\nbackend: nccl\n"]
)  # fmt: skip
def test_a_backend_that_another_package_takes(text: str) -> None:
    result = migrated(text, "conf/a.yaml", BACKENDS)
    assert not result.changed and left(result) == ["NPU821"]


@pytest.mark.parametrize("member", ["", "    MULTI_NPU = 'MULTI_NPU'\n"])
def test_a_word_of_accelerate_in_the_sources_of_accelerate(member: str) -> None:
    code = f"import enum\nclass DistributedType(enum.Enum):\n    MULTI_GPU = 'MULTI_GPU'\n{member}"
    text = "compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU\nnum_processes: 2\n"
    result = migrated(text, "tests/default.yaml", code)
    assert result.data.decode() == (text.replace("MULTI_GPU", "MULTI_NPU") if member else text)


LEFT = [
    # nobody reads it under this name
    ("eval:\n  machine: cuda\n", "NPU821"),
    ("plot:\n  backend: nccl\n", "NPU821"),
    ("type: cuda\n", "NPU821"),
    ("sim_device: cuda:0\n", "NPU821"),  # of a simulator
    ("distributed_type: MULTI_GPU\n", "NPU284"),  # no file of accelerate
    ("args: [--where, cuda]\n", "NPU821"),
    ("train:\n  backend: cuda\n", "NPU821"),
    # no device and no backend
    ("train:\n  device: cuda-11.8\n", "NPU802"),
    ("cuda_version: 11.8\n", "NPU802"),
    ("with_cuda: false\n", "NPU802"),
    ("image: nvidia-base\n", "NPU802"),
    # a value that does not carry over
    ("env:\n  NCCL_DEBUG: INFO\n", "NPU852"),
]


@pytest.mark.parametrize(("text", "code"), LEFT)
def test_yaml_that_is_left_with_a_finding(text: str, code: str) -> None:
    result = migrated(text, "conf/a.yaml")
    assert not result.changed and left(result) == [code]


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("device: cuda\n", "tidy"), ("model:\n  device: cuda:1\n", "tidy"), ("dist_backend: nccl\n", "tidy"),
        # what may be read as a part of something, or is handed on under another name
        ("machine: cuda\n", ""), ("args: [--where, cuda]\n", ""), ("- trainer.device=cuda\n", ""),
    ],
)  # fmt: skip
def test_a_device_that_no_code_reads_stops_nothing(text: str, blocks: str) -> None:
    (finding,) = migrated(text, "conf/a.yaml", "def f(x):\n    return x.device, cfg['lr']\n").findings
    assert (finding.code, finding.blocks) == ("NPU821", blocks)


@pytest.mark.parametrize(
    ("text", "owner"),
    [
        ("rollout:\n  checkpoint_engine:\n    backend: nccl\n", "the engine of verl for NPUs is called hccl"),
        ("args: [rollout.checkpoint_engine.backend=nccl]\n", "the engine of verl for NPUs is called hccl"),
        ("distributed_backend: nccl\n", "Megatron-LM takes nccl and gloo alone"),
        ("other:\n  backend: nccl\n", "no code of the project is known to use it as one"),
    ],
)
def test_a_backend_that_only_a_known_program_outside_reads(text: str, owner: str) -> None:
    result = migrated(text, "a.yaml")
    assert not result.changed and left(result) == ["NPU821"]
    assert owner in next(each.message for each in result.findings if each.code == "NPU821")


def test_what_the_project_reads_itself_is_its_own_whatever_the_key() -> None:
    code = "import torch.distributed as dist\ndist.init_process_group(cfg.distributed_backend)\n"
    assert migrated("distributed_backend: nccl\n", "a.yaml", code).data == b"distributed_backend: hccl\n"


def test_the_finding_names_key_and_value() -> None:
    (finding,) = migrated("a:\n  machine: cuda:0\n", "conf/a.yaml").findings
    said = "a.machine: cuda:0 may be a device: no code of the project is known to use it as one"
    assert finding.message.startswith(said)
    assert "npu:0" in finding.help and (finding.span.line, finding.span.column) == (2, 12)


def test_what_readers_of_an_alias_do_not_agree_on_is_left() -> None:
    result = migrated("sim_device: &d cuda\ntrain:\n  device: *d\n", "conf/a.yaml")
    assert not result.changed and left(result) == ["NPU821"]


@pytest.mark.parametrize("path", ["docker-compose.yml", ".github/workflows/ci.yml", "deploy/pod.yaml"])
def test_recipes_are_those_of_others(path: str) -> None:
    result = migrated("apiVersion: v1\nkind: Pod\ntrain:\n  device: cuda\n", path)
    assert not result.changed


def test_a_project_that_chooses_by_itself_is_left() -> None:
    code = 'import torch\nd = cfg.device\nd = "npu" if torch.npu.is_available() else "cuda"\n'
    result = migrated("device: cuda\n", "conf/a.yaml", code)
    assert not result.changed and left(result) == ["NPU821"]
    assert "chooses" in result.findings[0].message


def test_without_the_project_nothing_is_known() -> None:
    result, _ = migrate_other(b"device: cuda\n", "a.yaml", FileKind.CONFIG, Settings(), TARGET)
    assert not result.changed and left(result) == ["NPU802"]


def test_the_portable_style_leaves_values() -> None:
    result = migrated("train:\n  device: cuda\n", "conf/a.yaml", style="portable")
    assert not result.changed and left(result) == ["NPU821"]
    (said,) = result.findings
    assert "DEVICE_TYPE" in said.help and "train.device=npu" in said.help
    assert left(migrated("train:\n  elsewhere: cuda\n", "conf/a.yaml", style="portable")) == ["NPU802"]


@pytest.mark.parametrize(
    ("text", "code", "blocks"),
    [
        ("device: cuda\n", "import torch\nx = torch.ones(1)\n", "tidy"),
        ("device: cuda\n", CODE, ""),
        ("elsewhere: cuda\n", "import torch\nx = torch.ones(1)\n", ""),
        ("main: train.py --device cuda\n", "import torch\nx = torch.ones(1)\n", ""),
    ],
)
def test_a_device_that_no_code_reads_stops_nothing_in_the_portable_style(text: str, code: str, blocks: str) -> None:
    result = migrated(text, "conf/a.yaml", code, style="portable")
    assert [each.blocks for each in result.findings if each.open] == [blocks]


JSON = [
    ('{"train": {"device": "cuda"}}', '{"train": {"device": "npu"}}'),
    ('{\n  // "cuda"\n  "card": "cuda:0", /* x */\n}', '{\n  // "cuda"\n  "card": "npu:0", /* x */\n}'),
    ('{"configurations": [{"args": ["--device", "cuda"], "env": {"CUDA_VISIBLE_DEVICES": "0"}}]}',
     '{"configurations": [{"args": ["--device", "npu"], "env": {"ASCEND_RT_VISIBLE_DEVICES": "0"}}]}'),
    ('{"optimizer": {"params": {"cuda_aware": false, "comm_backend_name": "nccl"}}, "train_batch_size": 8}',
     '{"optimizer": {"params": {"cuda_aware": false, "comm_backend_name": "hccl"}}, "train_batch_size": 8}'),
    ("{'card': 'cuda',}", "{'card': 'npu',}"),
    ('[[1, 2], {"a": [], "card": "cuda"}, 1.5e-3, null]', '[[1, 2], {"a": [], "card": "npu"}, 1.5e-3, null]'),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), JSON)
def test_json(before: str, after: str) -> None:
    result = migrated(before, ".vscode/launch.json")
    assert result.data.decode() == after
    assert left(result) == []


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ('{"model": {"vocab": {"cuda": 17, "nccl": 3}}}', ["NPU802"]),  # words as keys
        ('[{"text": "what is cuda"}, {"text": "cuda is a brand"}]', []),
        ('{"use_cuda": true}', []),
        ('{"use-cuda": true}', []),
        ('{"built": "PyTorch built with:\\n' + "  - NVCC flags -gencode;arch -Xcudafe\\n" * 9 + '"}', []),
        ('{"run": "x.py --where cuda' + " --lr 1\\n" * 40 + '"}', ["NPU802"]),
        ('{"text": "cuda"}', ["NPU821"]),
        ('{"card": "cu\\u0064a"}', []),
        ('{"card": "cuda\\n"}', ["NPU802"]),
        ('{"mask": "' + "NVCCk<0VC9Q=M1" * 9 + '"}', []),  # no word
        ('{"mask": "' + "my_nvcc_and_more" * 9 + '"}', ["NPU802"]),
        ('{"path": "/opt/' + "a1B2c3D4/" * 9 + 'nvcc"}', ["NPU802"]),
        ('{"card": "cuda"', ["NPU802"]),  # broken
        ('{"card": "cuda" "x": 1}', ["NPU802"]),
        ('{"card" "cuda"}', ["NPU802"]),
        ("[" * 5000 + '"cuda"' + "]" * 5000, ["NPU821"]),
        ('{"a": "' + "x" * 100 + '", "b": [1, {"card": "cuda"}', ["NPU802"]),
    ],
)
def test_json_that_stays(text: str, codes: list[str]) -> None:
    result = migrated(text, "a.json")
    assert not result.changed and left(result) == codes


OTHERS = [
    ("a.toml", 'card = "cuda" # x\n[train]\ndevice = \'cuda:1\'\n', 'card = "npu" # x\n[train]\ndevice = \'npu:1\'\n'),
    ("a.toml", 'dist.backend = "nccl"\n', 'dist.backend = "hccl"\n'),
    ("a.toml", 'train = { device = "cuda", lr = 1e-3 }\n', 'train = { device = "npu", lr = 1e-3 }\n'),
    ("a.toml", 'args = [\n  "--device", "cuda", # c\n]\n', 'args = [\n  "--device", "npu", # c\n]\n'),
    ("a.toml", '[env]\nCUDA_VISIBLE_DEVICES = "0"\n', '[env]\nASCEND_RT_VISIBLE_DEVICES = "0"\n'),
    ("a.ini", "[train]\ndevice = cuda ; the card\n", "[train]\ndevice = npu ; the card\n"),
    ("a.cfg", "[train]\r\ndevice: cuda:0\r\n", "[train]\r\ndevice: npu:0\r\n"),
    ("a.properties", "card=cuda\n", "card=npu\n"),
    (".env", "CUDA_VISIBLE_DEVICES=0,1\nX=1\n", "ASCEND_RT_VISIBLE_DEVICES=0,1\nX=1\n"),
    ("prod.env", "export CUDA_VISIBLE_DEVICES=0\n", "export ASCEND_RT_VISIBLE_DEVICES=0\n"),
    (".env", "MY_DEVICE=cuda\n", "MY_DEVICE=npu\n"),
]


@pytest.mark.parametrize(("path", "before", "after"), OTHERS)
def test_other_formats(path: str, before: str, after: str) -> None:
    result = migrated(before, path)
    assert result.data.decode() == after
    assert left(result) == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.toml", 'card = """\ncuda"""\n'),
        ("a.toml", 'card = "cuda\n'),
        ("a.toml", "card = cuda cuda\n"),
        ("a.toml", 'card = ["cuda"\n'),
        ("a.toml", 'card = "cuda"\n[[a]'),
        ("a.toml", "x = " + "[" * 3000 + '"cuda"' + "]" * 3000 + "\n"),
        ("a.yaml", "a:\n\tdevice: cuda\n"),
        ("a.yaml", "a: [\ndevice: cuda\n"),
        ("a.yaml", "card: cuda\n" + "".join(f"k{i}: {i}\n" for i in range(60_000))),
        ("a.yaml", "card: cuda\n\x01\x02\n"),
        ("a.json", '{"card": "cuda", "x": [' + "1," * 1_100_000 + "1]}"),
        ("a.ini", "[a]\ncard = \\\n  cuda\n"),
        ("a.jsonnet", "{ card: 'cuda' }\n"),
    ],
)
def test_what_cannot_be_read_is_copied_and_named(path: str, text: str) -> None:
    result = migrated(text, path)
    assert not result.changed and left(result) == ["NPU802"]


def test_the_words_of_a_tokenizer_are_no_settings() -> None:
    vocabulary = '{"model": {"vocab": {"nvidia": 1, "cuda": 2}, "merges": [' + '"a b",' * 400_000 + '"cu da"]}}'
    result = migrated(vocabulary, "tokenizer.json")
    assert not result.changed and left(result) == [] and result.tokens.found == 2


ASKED = '"instruction": "write it in Cuda", "output": "..."'


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        (f"{{{ASKED}}}\n{{{ASKED}}}\n", []),  # JSON Lines
        (f"[\n  {{{ASKED}}},\n  {{{ASKED}}}\n]\n", []),
        ('[\n {\n  "text": "my/nvcc one",\n  "y": 1\n },\n {"text": "b"}\n]', []),
        ('{"prompt": "a cat", "command": "x --where cuda"}', ["NPU802"]),
        ('{"name": "a/nvcc"}\n{"name": "b"}\n', ["NPU802"]),
    ],
)
def test_texts_to_learn_are_no_settings(text: str, codes: list[str]) -> None:
    result = migrated(text, "data/chat.json")
    assert not result.changed and left(result) == codes


def test_ten_thousand_laughs() -> None:
    levels = "".join(f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 9)}]\n" for i in range(1, 9))
    result = migrated(f"l0: &l0 cuda\n{levels}", "a.yaml")
    assert not result.changed and left(result) == ["NPU802"]


def test_an_alias_of_what_it_stands_in() -> None:
    assert migrated("a: &a\n  b: *a\ncard: cuda\n", "a.yaml").data == b"a: &a\n  b: *a\ncard: npu\n"


def test_nothing_is_constructed() -> None:
    text = "a: !!python/object/apply:os.system ['touch cuda']\ncard: cuda\n"
    assert migrated(text, "a.yaml").data.decode() == text.replace("card: cuda", "card: npu")


_LEAF = st.sampled_from(["cuda", "cuda:1", "nccl", "cpu", "npu", "x cuda y", "${device}", ""]) | st.integers(0, 9)
_KEY = st.sampled_from(["train", "device", "card", "dist", "backend", "env", "use_cuda", "args", "other", "é"])
_TREE = st.recursive(
    _LEAF, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEY, inner, max_size=3), max_leaves=12
)


@given(st.dictionaries(_KEY, _TREE, max_size=4), st.sampled_from(["a.json", "a.yaml"]))
def test_the_rest_of_a_file_stays(tree: dict[str, object], path: str) -> None:
    """The same tree with other values, at the places that the records name; a second run changes nothing."""
    text = json.dumps(tree, indent=1, ensure_ascii=False)
    result = migrated(text, path)
    after = json.loads(result.data)
    assert _shape(after) == _shape(tree)
    assert migrated(result.data.decode(), path).data == result.data
    for finding in (each for each in result.findings if each.applied):
        assert finding.edit is not None
        assert text.encode()[finding.span.start : finding.span.end].decode() == finding.edit.before


def _shape(tree: object) -> object:
    """A tree without its device and backend words, so that two are alike that differ in these."""
    text = json.dumps(tree, sort_keys=True, ensure_ascii=False)
    return text.replace("cuda", "npu").replace("nccl", "hccl")


@pytest.mark.slow
@pytest.mark.skipif("TRANSPLT_EXAMPLES" not in os.environ, reason="TRANSPLT_EXAMPLES names a folder of projects")
def test_real_files() -> None:
    """Every configuration of a folder: the bytes of a file without edits stay, an edit is what its record says."""
    root = Path(os.environ["TRANSPLT_EXAMPLES"])
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if not path.is_file() or path.stat().st_size > 10_000_000 or kind_of(name, b"") is not FileKind.CONFIG:
            continue
        data = path.read_bytes()
        result, _ = migrate_other(data, name, FileKind.CONFIG, Settings(), TARGET, ProjectFacts(known=True))
        made, bom = data, 3 * data.startswith(b"\xef\xbb\xbf")
        for finding in sorted((f for f in result.findings if f.applied), key=lambda f: -f.span.start):
            assert finding.edit is not None
            start, before = finding.span.start + bom, finding.edit.before.encode()
            assert made[start : start + len(before)] == before, name
            made = made[:start] + finding.edit.after.encode() + made[start + len(before) :]
        assert made == result.data, name


CUDNN = """
    import torch
    torch.backends.cudnn.benchmark = cfg.CUDNN.BENCHMARK
    torch.backends.cudnn.enabled = cfg["cudnn_on"]
    run(cfg.CUDNN_KERNELS, cfg.cudnn.kernels)
"""


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("CUDNN:\n  BENCHMARK: true\n", "a.yaml"),
        ("train:\n  'CUDNN': {BENCHMARK: true}\ncudnn_on: 1\n", "a.yaml"),
        ("CUDNN: [1, 2]\n", "a.yml"),
        ('{"CUDNN": {"BENCHMARK": true}, "cudnn_on": 1}', "a.json"),
        ("[CUDNN]\nBENCHMARK = true\n[train.CUDNN]\nA = 1\n[x]\nCUDNN.A = 1\nCUDNN.B = { A = 1 }\n", "a.toml"),
        ("x = 1\nCUDNN = { A = 1 }\n", "a.toml"),
        ("[CUDNN]\nBENCHMARK = 1\n[x]\ncudnn_on = 1\n", "a.ini"),
    ],
)
def test_keys_that_only_reach_cudnn_stay(text: str, path: str) -> None:
    result = migrated(text, path, CUDNN)
    assert left(result) == [] and result.data == text.encode()
    assert {cause.reason for cause in result.ledger.counts()} == {"cudnn-setting"}


@pytest.mark.parametrize(
    ("code", "codes"),
    [
        ("_C.CUDNN = CN()\n_C.CUDNN.BENCHMARK = True", []),
        ("_C.CUDNN.BENCHMARK = True\n_C.CUDNN.KERNELS = 'fast'", []),
        ("_C.CUDNN = CN()\n_C.CUDNN.BENCHMARK = True\nrun(_C.CUDNN)", ["NPU802"]),
        ("_C.CUDNN = CN()\n_C.CUDNN.KERNELS = 'fast'", ["NPU802"]),
        ("_C.CUDNN = CN()", ["NPU802"]),
    ],
)
def test_flags_of_cudnn_that_nobody_reads_stay(code: str, codes: list[str]) -> None:
    assert left(migrated("CUDNN:\n  BENCHMARK: true\n", "a.yaml", f"import torch\n{code}\n")) == codes


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("CUDNN_KERNELS:\n  fast: true\n", "a.yaml"),
        ("cudnn:\n  kernels: fast\n", "a.yaml"),
        ("cuda:\n  CUDNN: 1\n", "a.yaml"),
        ('{"cudnn": {"kernels": "fast"}}', "a.json"),
        ("[cudnn]\nkernels = 'fast'\n", "a.toml"),
        ("[cudnn]\nkernels = fast\n", "a.ini"),
        ("nobody:\n  cudnn_benchmark:\n    a: 1\n", "a.yaml"),
    ],
)
def test_keys_that_go_elsewhere_are_left(text: str, path: str) -> None:
    result = migrated(text, path, CUDNN)
    assert left(result) == ["NPU802"] and result.data == text.encode()
