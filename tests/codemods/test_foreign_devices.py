"""A device string that torch and another library share."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, check_rewrite, migrate, pattern


@pattern("T9")
def test_a_string_that_torch_and_jax_share_is_reported() -> None:
    check_rewrite(
        """
        import jax, torch
        def f(x, place='cuda'):
            y = jax.devices(place)
            return x.to(place), y
        """,
        """
        import jax, torch
        import torch_npu  # noqa: F401
        def f(x, place='npu'):
            y = jax.devices(place)
            return x.to(place), y
        """,
        open_codes=["NPU203"],
    )


@pattern("T9")
@pytest.mark.parametrize("line", ["jax.devices(place)", "jax.devices('cpu')", "jax.jit(x)"])
def test_what_is_no_device_of_torch(line: str) -> None:
    check_noop(f"import jax\ndef f(x, place=None):\n    print('cuda')\n    return {line}\n")


@pytest.mark.parametrize(
    ("package", "line"),
    [
        ("faster_whisper", 'faster_whisper.WhisperModel("small", device="cuda")'),
        ("ctranslate2", 'ctranslate2.Translator("model", device="cuda")'),
        ("xgboost", 'xgboost.XGBClassifier(device="cuda:0")'),
        ("xgboost", 'xgboost.train({"device": "cuda"}, data)'),
        ("lightgbm", 'lightgbm.LGBMClassifier(device="cuda")'),
        ("open3d", 'open3d.core.Device("CUDA:0")'),
        ("torchcodec", 'torchcodec.decoders.VideoDecoder("a.mp4", device="cuda")'),
        ("warp", 'warp.zeros(3, device="cuda:0")'),
        ("tensorflow", 'tensorflow.device("cuda:0")'),
        ("openmm", 'openmm.Platform.getPlatformByName("CUDA")'),
        ("numba", 'numba.vectorize(["f4(f4)"], target="cuda")'),
    ],
)
def test_the_device_of_another_library(package: str, line: str) -> None:
    check_noop(f"import torch\nimport {package}\n\nx = {line}\n", open_codes=["NPU273"])


@pytest.mark.parametrize(
    "lines",
    [
        'place = "cuda" if torch.cuda.is_available() else "cpu"\nmodel = ctranslate2.Translator("m", device=place)',
        'model = ctranslate2.Translator("m", device="cuda" if torch.cuda.is_available() else "cpu")',
        'place = "cpu"\nif torch.cuda.is_available():\n    place = "cuda"\nprint(place)\n'
        "ctranslate2.Translator(device=place)",
    ],
)
def test_a_variable_that_only_another_library_gets(lines: str) -> None:
    check_noop(f"import ctranslate2\nimport torch\n\n{lines}\n", open_codes=["NPU270", "NPU273"])


def test_a_gate_in_front_of_a_word_for_a_card() -> None:
    source = 'import catboost\nimport torch\n\nkind = "GPU" if torch.cuda.is_available() else "CPU"\n'
    check_noop(source + "model = catboost.CatBoostClassifier(task_type=kind)\n", open_codes=["NPU270", "NPU287"])


@pytest.mark.parametrize("use", ["net.to(place)", "run(place)", "self.place = place"])
def test_a_variable_that_torch_may_get_too(use: str) -> None:
    head = "import ctranslate2\nimport torch\n\n"
    rest = 'place = "cuda"\nmodel = ctranslate2.Translator("m", device=place)\nx = torch.zeros(1, device=place)\n'
    result = migrate(f"{head}{rest}{use}\n")
    assert b'place = "npu"' in result.data and "NPU203" in {each.code for each in result.findings}


@pytest.mark.parametrize("line", ['SentenceTransformer("m", device=place)', "torch.zeros(1, device=place)"])
def test_a_library_of_torch_takes_the_npu(line: str) -> None:
    head = "from sentence_transformers import SentenceTransformer\nimport torch\n"
    check_rewrite(
        f"{head}\nplace = 'cuda'\nx = {line}\n",
        f"{head}import torch_npu  # noqa: F401\n\nplace = 'npu'\nx = {line}\n",
    )


RELAXED = {
    "relax.py": """
        from minimize import run

        class Relaxation:
            def __init__(self, use_gpu):
                self._use_gpu = use_gpu

            def process(self, molecule):
                return run(molecule, use_gpu=self._use_gpu)
    """,
    "minimize.py": """
        import openmm

        def run(molecule, use_gpu):
            platform = openmm.Platform.getPlatformByName("CUDA" if use_gpu else "CPU")
            return openmm.app.Simulation(molecule, platform)
    """,
}


def test_a_test_for_another_device_than_the_cpu_chooses_the_platform_of_openmm() -> None:
    check_rewrite(
        """
        import os
        import torch
        from relax import Relaxation

        def relaxed(model, molecule, model_device):
            model.to(model_device)
            return molecule

        def relax(molecule, model_device):
            relaxer = Relaxation(use_gpu=(model_device != "cpu"))
            visible = os.getenv("CUDA_VISIBLE_DEVICES", default="")
            if "cuda" in model_device:
                os.environ["CUDA_VISIBLE_DEVICES"] = model_device.split(":")[-1]
            found = relaxer.process(molecule)
            os.environ["CUDA_VISIBLE_DEVICES"] = visible
            return found
        """,
        """
        import os
        import torch
        import torch_npu  # noqa: F401
        from relax import Relaxation

        def relaxed(model, molecule, model_device):
            model.to(model_device)
            return molecule

        def relax(molecule, model_device):
            relaxer = Relaxation(use_gpu=(model_device != "cpu"))
            visible = os.getenv("CUDA_VISIBLE_DEVICES", default="")
            if "npu" in model_device:
                os.environ["CUDA_VISIBLE_DEVICES"] = model_device.split(":")[-1]
            found = relaxer.process(molecule)
            os.environ["CUDA_VISIBLE_DEVICES"] = visible
            return found
        """,
        open_codes=["NPU222", "NPU272"],
        files=RELAXED,
    )


def test_the_name_of_a_platform_is_the_device_of_its_library() -> None:
    check_noop(RELAXED["minimize.py"], open_codes=["NPU273"])
    check_noop('import plotting\n\nplotting.style("CUDA" if x else "CPU")\n')


@pytest.mark.parametrize(
    "test", ['device.type != "cpu"', 'device != torch.device("cpu")', 'not device.type == "cpu"', '"cpu" != device']
)
def test_a_test_for_another_device_than_the_cpu_in_front_of_a_kernel(test: str) -> None:
    source = f"""
        import torch
        import align_cuda_binding

        def align(x, device):
            if {test}:
                return align_cuda_binding.forward(x)
            return x
    """
    result = migrate(source)
    assert [f.code for f in result.findings if f.open].count("NPU272") == 1 and not result.changed


COMPILED = """
    import torch
    from torch.utils.cpp_extension import load

    op = load(name="bias_act", sources=["bias.cpp", "SOURCE"])

    class Fused(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return op.bias_act(x)

    def bias_act(x):
        if x.device.type == "cpu":
            return x + 1
        return Fused.apply(x)
"""


@pytest.mark.parametrize(("source", "codes"), [("bias.cu", ["NPU272"]), ("bias_host.cpp", [])])
def test_a_test_for_the_cpu_in_front_of_what_the_file_compiles(source: str, codes: list[str]) -> None:
    """An NPU would be sent to the kernel, although the path in torch stands beside it."""
    found = [each for each in migrate(COMPILED.replace("SOURCE", source)).findings if each.code == "NPU272"]
    assert [each.code for each in found] == codes
    assert all("bias_act, through train.Fused" in each.message for each in found)


@pytest.mark.parametrize("test", ['device.type != "cpu"', 'device == "cpu"', 'name != "cpu"'])
def test_a_test_for_another_device_than_the_cpu_in_front_of_torch(test: str) -> None:
    check_noop(f"import torch\n\ndef f(x, device, name):\n    # cuda\n    return x.half() if {test} else x\n")


@pytest.mark.parametrize(
    "test",
    [
        'if device == "cpu":\n    raise ValueError("needs a card")',
        'assert device != "cpu"',
        'if device == "cpu" and torch.cuda.is_available():\n    print("slow")',
    ],
)
def test_a_program_that_stops_on_the_cpu_has_no_other_path(test: str) -> None:
    source = f"import align_cuda_binding\nimport torch\n\ndevice = pick()\n{test}\n\nalign_cuda_binding.forward()\n"
    assert "NPU272" not in {f.code for f in migrate(source).findings}


@pytest.mark.parametrize(
    "source",
    [
        'import os\nos.environ["CUDA_VISIBLE_DEVICES"] = "0"\nimport numpy\nimport tensorflow as tf\n',
        'import os\nimport jax\n\ndef f():\n    os.environ["CUDA_VISIBLE_DEVICES"] = "0"\n    return jax.devices()\n',
        'import os\nimport torch\n\ndef f(x):\n    import onnxruntime as ort\n'
        '    os.environ["CUDA_VISIBLE_DEVICES"] = "0"\n    return ort.InferenceSession(x)\n',
    ],
)
def test_a_variable_that_steers_another_library_alone(source: str) -> None:
    check_noop(source, open_codes=["NPU222"])


@pytest.mark.parametrize(
    "lines",
    [
        "import tensorflow as tf\nimport torch\n",
        "import tensorflow as tf\nimport models\n",
        "import torch\n\ndef f(x):\n    import jax\n    return jax.numpy.asarray(x), torch.ones(1)\n",
        "import gym\nimport numpy\n",
    ],
)
def test_a_variable_that_may_steer_torch_too(lines: str) -> None:
    head = "import os\n\nos.environ['{}'] = '0'\n"
    check_rewrite(head.format("CUDA_VISIBLE_DEVICES") + lines, head.format("ASCEND_RT_VISIBLE_DEVICES") + lines)


def test_a_file_that_moves_tensors_is_torchs_whoever_imports_it() -> None:
    source = "import os\nfrom numba import jit\n{}os.environ['{}'] = '0'\nx.{}()\n"
    check_rewrite(
        source.format("", "CUDA_VISIBLE_DEVICES", "cuda"),
        source.format("import torch_npu  # noqa: F401\n", "ASCEND_RT_VISIBLE_DEVICES", "npu"),
    )


LIMITS = (
    'assert device in ["cpu", "cuda"]',
    'assert device in ("cpu", "cuda"), f"unknown device {device}"',
    'if device not in {"cpu", "cuda"}:\n        raise ValueError(f"unknown device {device}")',
)


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize(
    ("given", "call", "code"),
    [
        ("import tvm", "tvm.build(graph, target=device)", "NPU273"),
        ("import tvm", "tvm.target.Target(device)", "NPU273"),
        ("import taichi as ti", "ti.init(arch=device)", "NPU273"),
        ("from hidet import compile_model", "compile_model(graph, target=device)", "NPU203"),
        ("import hidet.drivers", 'hidet.drivers.build(graph, target=f"{device} -arch=sm_80")', "NPU203"),
    ],
)
def test_what_the_target_of_a_compiler_is_limited_to(given: str, call: str, code: str, limit: str) -> None:
    source = f"import torch\n{given}\n\ndef build(graph, device):\n    {limit}\n    return {call}\n"
    check_noop(source, open_codes=[code])
    result = check_noop(source.replace("device):", 'device="cuda"):'), open_codes=[code])
    assert len([finding for finding in result.findings if finding.open]) == 2


@pytest.mark.parametrize("limit", LIMITS)
def test_what_a_target_is_limited_to_that_torch_gets_as_a_device(limit: str) -> None:
    for call in ("hidet.compile_model(graph, target=device)", "tvm.build(graph, target=device)"):
        library = call.partition(".")[0]
        head = f"import {library}\nimport torch\n"
        lines = f"def build(graph, device):\n    {limit}\n    graph.to(device)\n    return {call}\n"
        result = check_noop(f"{head}\n{lines}", open_codes=["NPU203"])
        (finding,) = (each for each in result.findings if each.open)
        assert f"is a target of {library} here, and has other uses" in str(finding.message)


def test_what_a_target_is_limited_to_that_an_object_keeps() -> None:
    check_noop(
        """
        import hidet
        import torch

        class Engine:
            def __init__(self, model, device="cuda"):
                assert device in ("cpu", "cuda")
                self.device = device
                self.model = model.to(device)

            def build(self):
                return hidet.compile_model(self.model, target=self.device)
        """,
        open_codes=["NPU203"],
    )


def test_a_target_that_nothing_limits() -> None:
    head = "import hidet\nimport torch\n"
    check_noop(
        f'{head}\ndef build(graph, device="cuda"):\n    return hidet.compile_model(graph, target=device)\n',
        open_codes=["NPU203"],
    )
    check_rewrite(
        f'{head}\ndef build(graph, device="cuda"):\n    graph.to(device)\n'
        "    return hidet.compile_model(graph, target=device)\n",
        f'{head}import torch_npu  # noqa: F401\n\ndef build(graph, device="npu"):\n    graph.to(device)\n'
        "    return hidet.compile_model(graph, target=device)\n",
        open_codes=["NPU203"],  # where the compiler gets it
    )


@pytest.mark.parametrize(
    "lines",
    [
        "return compile_model(graph, target=device)",  # a function of the project
        "return torch.export.export(graph, target=device)",
        "return threading.Thread(target=device)",
        "return graph.to(device)",
        "return compile_model(graph, device)",
    ],
)
def test_what_a_device_of_torch_is_limited_to(lines: str) -> None:
    source = (
        "import threading\nimport torch\n{0}from engine import compile_model\n\ndef build(graph, device='{1}'):\n"
        f"    assert device in ['cpu', '{{1}}']\n    {lines}\n"
    )
    check_rewrite(
        source.format("", "cuda"),
        source.format("import torch_npu  # noqa: F401\n", "npu"),
        files={"engine.py": "def compile_model(graph, target):\n    return graph.to(target)\n"},
    )
