"""The portable style: names of CUDA become names of one module of the project; what stays is a finding."""

from __future__ import annotations

import re

import pytest

from tests.harness import check_noop, clean, codes, hold_invariants, migrate, pattern, record
from transplt.base.finding import FileResult
from transplt.base.settings import Settings
from transplt.engine.actions.groups import portable_advice
from transplt.engine.engine import index_source, migrate_source
from transplt.flow.facts import ProjectFacts
from transplt.rules.pages import all_codes

_TAKEN = re.compile(r"\n\n?from device import (?:\([^)]*\)|[^\n]*)\n\n?")


def ported(text: str, **more: object) -> FileResult:
    """A file of a project in the portable style."""
    settings = Settings(style="portable", helper_file=True, **more)  # type: ignore[arg-type]
    data = clean(text).encode()
    project = ProjectFacts.join([index_source(data, "train.py", settings)])
    result = migrate_source(data, "train.py", settings, project)
    hold_invariants(clean(text), result, settings, project)
    record(codes(result, applied=True), codes(result, applied=False))
    return result


def check(before: str, after: str, head: str = "import torch\n", **more: object) -> None:
    """`after` is what stands there without the import of the module; a second run changes nothing."""
    result = ported(head + clean(before), **more)
    assert _TAKEN.sub("\n", result.data.decode()) == head + clean(after)
    again = ported(result.data.decode(), **more)
    assert again.data == result.data


def check_stays(source: str, code: str, head: str = "import torch\n", **more: object) -> None:
    """Nothing changes, and a finding of the code says what to do."""
    result = ported(head + clean(source), **more)
    assert result.data.decode() == head + clean(source)
    assert code in [finding.code for finding in result.findings if not finding.applied]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            'device = "cuda" if torch.cuda.is_available() else "cpu"',
            'device = DEVICE_TYPE if device_module.is_available() else "cpu"',
        ),
        (
            'device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")',
            'device = torch.device(f"{DEVICE_TYPE}:0" if device_module.is_available() else "cpu")',
        ),
        # Chains that ask for other accelerators go on as before.
        (
            'd = "cuda" if torch.cuda.is_available() else "mps" if has_mps() else "cpu"\nx.to(d)',
            'd = DEVICE_TYPE if device_module.is_available() else "mps" if has_mps() else "cpu"\nx.to(d)',
        ),
        (
            """
            if torch.cuda.is_available():
                torch.cuda.manual_seed_all(seed)
                model.cuda()
            """,
            """
            if device_module.is_available():
                device_module.manual_seed_all(seed)
                model.to(DEVICE_TYPE)
            """,
        ),
        (
            "args.cuda = torch.cuda.is_available() and not args.no_cuda",
            "args.cuda = device_module.is_available() and not args.no_cuda",
        ),
        ("if torch.cuda.device_count() > 1:\n    f()", "if device_module.device_count() > 1:\n    f()"),
        ("namespace = torch.cuda\nnamespace.synchronize()", "namespace = device_module\nnamespace.synchronize()"),
        # torch_npu has it from 2.6 on.
        (
            "if torch.cuda.is_available():\n    torch.cuda.empty_cache()\n    torch.cuda.ipc_collect()",
            "if device_module.is_available():\n    device_module.empty_cache()\n    ipc_collect()",
        ),
    ],
)
@pattern("P1", "P2", "P8", "P29", "T2")
def test_what_chooses_the_device(before: str, after: str) -> None:
    check(before, after)


@pytest.mark.parametrize(
    "call",
    [
        "current_device()", "set_device(rank)", "device_count()", "synchronize()", "empty_cache()",
        "memory_allocated()", "max_memory_allocated()", "reset_peak_memory_stats()", "get_device_name(0)",
        "get_device_properties(0)", "manual_seed(1)", "get_rng_state()", "set_rng_state(state)", "Stream()",
        "Event(enable_timing=True)",
        "current_stream()", "is_bf16_supported()", "device(1)", "stream(s)", "FloatTensor(2)", "Stream.query(s)",
        "Event.record", "amp.GradScaler.step",
    ],
)  # fmt: skip
@pytest.mark.parametrize("oldest", ["", "1.13"])
@pattern("P3", "P4", "P7", "P8")
def test_functions_that_both_have(call: str, oldest: str) -> None:
    """Whatever torch the project admits: on CUDA it is the same function, and torch_npu has it from 2.1 on."""
    check(f"x = torch.cuda.{call}", f"x = device_module.{call}", oldest_torch=oldest)


def test_what_is_asked_of_a_card_is_asked_of_one_card() -> None:
    """An NPU has no compute capability, and its properties are those of one card: all of the call is written."""
    source = """
        def configure(flash):
            card = {}.get_device_properties(torch.device({}))
            configure_for(parse(f"{{card.major}}.{{card.minor}}"))
        """
    check(source.format("torch.cuda", "'cuda'"), source.format("device_module", "DEVICE_TYPE"))


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("graph = torch.cuda.CUDAGraph()", "NPU107"),
        ("torch.cuda.nvtx.range_push('x')", "NPU108"),
        ("major, minor = torch.cuda.get_device_capability()", "NPU503"),
        ("torch.cuda.get_arch_list()", "NPU501"),
    ],
)
def test_functions_that_an_npu_lacks_or_has_otherwise(source: str, code: str) -> None:
    check_stays(source, code)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("from torch import cuda\ncuda.synchronize()", "device_module.synchronize()"),
        ("import torch.cuda as cuda\ncuda.synchronize()", "device_module.synchronize()"),
        ("import os, torch.cuda as cuda\ncuda.synchronize()", "import os\ndevice_module.synchronize()"),
        ("from torch.cuda import synchronize as wait\nwait()", "device_module.synchronize()"),
        (
            "from torch.cuda import amp, is_available\nif is_available():\n    with amp.autocast():\n        f()",
            "if device_module.is_available():\n    with autocast():\n        f()",
        ),
        ("import torch.cuda.amp as amp\ns = amp.GradScaler()", "s = grad_scaler()"),
        (
            "def f():\n    from torch.cuda import synchronize\n    synchronize()",
            "def f():\n    device_module.synchronize()",
        ),
        ("import torch.cuda\ntorch.cuda.synchronize()", "device_module.synchronize()"),
        # What torch has by no other import, it has by a plain one.
        ("def f(s: torch.cuda.Stream):\n    pass", "def f(s: device_module.Stream):\n    pass"),
        # A name that nothing uses, and one that stays.
        ("from torch.cuda import Event, is_available\nx = is_available()", "x = device_module.is_available()"),
        (
            "from torch.cuda import nvtx, synchronize\nsynchronize()\nnvtx.range_push('x')",
            "from torch.cuda import nvtx\ndevice_module.synchronize()\nnvtx.range_push('x')",
        ),
        (
            "from torch.cuda.amp import GradScaler\ndef f(s: GradScaler):\n    return GradScaler()",
            "from torch.cuda.amp import GradScaler\ndef f(s: GradScaler):\n    return grad_scaler()",
        ),
    ],
)
def test_names_that_are_imported_from_torch_cuda(before: str, after: str) -> None:
    """They become what the dotted names become, and the import goes with its last use."""
    check(before, after)


def test_an_import_that_brought_torch_brings_it_still() -> None:
    check("import torch.cuda\ntorch.cuda.synchronize()", "import torch\ndevice_module.synchronize()", head="")
    before = "import torch.cuda as cuda\ns = cuda.amp.autocast()"
    check(before, "import torch\ns = torch.autocast(DEVICE_TYPE)", "", pins=(("torch", ">=2.1"),))


@pytest.mark.parametrize(
    "source",
    [
        "try:\n    from torch.cuda import synchronize\nexcept ImportError:\n    synchronize = None\nsynchronize()",
        "from torch.cuda import synchronize\n__all__ = ['synchronize']\nsynchronize()",
        "if old:\n    from torch.cuda import synchronize\nelse:\n    from mine import synchronize\nsynchronize()",
        "from torch.cuda import synchronize\nif fast:\n    def synchronize():\n        pass\nsynchronize()",
        "from torch.cuda import *\nsynchronize()",
    ],
)
def test_imports_that_others_need_or_that_are_not_all(source: str) -> None:
    result = ported(f"import torch\n{source}\n")
    assert not result.changed and any(finding.open for finding in result.findings)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "class F:\n    @torch.cuda.amp.custom_fwd(cast_inputs=torch.float32)\n    def f(x):\n        return x",
            "class F:\n    @custom_fwd(cast_inputs=torch.float32)\n    def f(x):\n        return x",
        ),
        ("@torch.cuda.amp.custom_bwd\ndef f(x):\n    return x", "@custom_bwd\ndef f(x):\n    return x"),
        # The line that is decorated keeps its name, whose import alone is another one.
        (
            "from torch.cuda.amp import custom_bwd, custom_fwd\n@custom_fwd\ndef f(x):\n    return x",
            "@custom_fwd\ndef f(x):\n    return x",
        ),
        (
            "from torch.cuda.amp import custom_fwd as cast\n@cast\ndef f(x):\n    return x",
            "@custom_fwd\ndef f(x):\n    return x",
        ),
        (
            "import torch.cuda.amp as amp\n@amp.custom_fwd\ndef f(x):\n    return x",
            "@custom_fwd\ndef f(x):\n    return x",
        ),
        (
            "custom_fwd = None\n@torch.cuda.amp.custom_fwd\ndef f(x):\n    return x",
            "custom_fwd = None\n@accelerator_custom_fwd\ndef f(x):\n    return x",
        ),
    ],
)
def test_decorators_of_mixed_precision(before: str, after: str) -> None:
    """They are functions of the module, whatever torch the project admits."""
    check(before, after)
    name = "custom_bwd" if "custom_bwd" in before else "custom_fwd"
    assert re.search(rf"^from device import .*\b{name}\b", ported(f"import torch\n{before}\n").data.decode(), re.M)


@pytest.mark.parametrize(
    "source",
    [
        "model = torch.nn.DataParallel(model)",
        "model = torch.nn.DataParallel(model, device_ids=[0, 1])",
        "if torch.cuda.device_count() > 1:\n    model = torch.nn.DataParallel(model)",
        "from torch.nn import DataParallel\nmodel = DataParallel(model)",
    ],
)
def test_data_parallel_is_never_another_class(source: str) -> None:
    check_stays(source, "NPU507")


@pytest.mark.parametrize("gate", ["x.is_cuda", "x.is_cuda and n > 1", "torch.cuda.device_count() > 1"])
def test_a_gate_in_front_of_data_parallel_stays_cudas(gate: str) -> None:
    """It is false on NPUs, where one card computes the batch: nothing stops, and a person may use more cards."""
    source = f"import torch\nif {gate}:\n    y = torch.nn.parallel.data_parallel(net, x, range(n))\n"
    result = ported(source)
    (finding,) = result.findings
    assert not result.changed and (finding.code, finding.span.line, finding.blocks) == ("NPU507", 2, "slow")
    assert result.tokens.manual == result.tokens.found == 1


@pytest.mark.parametrize(
    "source",
    [
        "if several and torch.cuda.device_count() > 1:\n    print(torch.cuda.device_count())\n"
        "    net = torch.nn.DataParallel(net).cuda()",
        # Only the CUDA side runs what comes behind.
        "def f():\n    if not torch.cuda.is_available():\n        return\n"
        "    p = torch.cuda.get_device_properties(torch.device('cuda'))\n    if p.major > 8:\n        g()",
    ],
)
def test_behind_a_question_that_stays_cudas_nothing_is_written(source: str) -> None:
    assert not ported(f"import torch\n{source}\n").changed


def test_a_question_that_stays_leaves_what_every_device_runs() -> None:
    gate = "if torch.cuda.device_count() > 1:\n    net = torch.nn.DataParallel(net)\n"
    check(f"{gate}else:\n    net.cuda()\nnet.cuda()", f"{gate}else:\n    net.to(DEVICE_TYPE)\nnet.to(DEVICE_TYPE)")


@pytest.mark.parametrize(
    "source",
    [
        "if x.is_cuda:\n    f()\nelse:\n    y = torch.nn.DataParallel(net)",
        "if several:\n    y = torch.nn.DataParallel(net)",
    ],
)
def test_data_parallel_that_no_question_for_cuda_guards(source: str) -> None:
    result = ported(f"import torch\n{source}\n")
    (finding,) = (each for each in result.findings if each.code == "NPU507")
    assert finding.blocks != "slow"


@pytest.mark.parametrize("gate", ["x.is_cuda", "torch.cuda.device_count() > 1"])
def test_a_gate_in_front_of_a_class_of_the_project_stays_too(gate: str) -> None:
    result = ported(f"import torch\nfrom mine import DataParallel\nif {gate}:\n    y = DataParallel(net)\n")
    (finding,) = result.findings
    assert not result.changed and (finding.code, finding.blocks, finding.api) == (
        "NPU507",
        "slow",
        "mine.DataParallel",
    )


@pytest.mark.parametrize(
    "others",
    [
        "elif device.type == 'cuda':\n    net = torch.nn.DataParallel(net).cuda()\nelse:\n    net.to(device)",
        "if device == 'cuda':\n    net = torch.nn.DataParallel(net)\n    torch.cuda.empty_cache()",
    ],
)
def test_a_device_that_is_asked_for_in_front_of_data_parallel_stays_cudas(others: str) -> None:
    """Elsewhere the model is where it should be: behind the gate, an NPU would divide the batch."""
    result = ported(f"import torch\nif alone:\n    f()\n{others}\n")
    listed = {each.span.line for each in result.findings if (each.code, each.blocks) == ("NPU507", "slow")}
    assert not result.changed and result.tokens.ignored == 0
    assert listed == {4, 5 if ".cuda()" in others else 6}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # Without the gate's branch, an NPU would keep the model on the CPU.
        (
            "if device.type == 'cuda':\n    net = torch.nn.DataParallel(net).cuda()",
            "if device.type in ('cuda', 'npu'):\n    net = torch.nn.DataParallel(net).to(DEVICE_TYPE)",
        ),
        (
            "if device.type == 'cuda':\n    net = torch.nn.DataParallel(net).cuda()\nelse:\n    net.to('cpu')",
            "if device.type in ('cuda', 'npu'):\n    net = torch.nn.DataParallel(net).to(DEVICE_TYPE)\n"
            "else:\n    net.to('cpu')",
        ),
        (
            "if device.type == 'cuda':\n    net = torch.nn.parallel.DistributedDataParallel(net)",
            "if device.type in ('cuda', 'npu'):\n    net = torch.nn.parallel.DistributedDataParallel(net)",
        ),
    ],
)
def test_a_device_that_is_asked_for_where_the_model_is_moved(before: str, after: str) -> None:
    check(before, after)


@pytest.mark.parametrize(
    ("package", "moves", "widened"),
    [
        ("torch_geometric.nn", "", False), ("torch_geometric.nn.data_parallel", "", False),
        ("torch_geometric.nn", ".cuda()", True), ("torch.nn", "", True),
    ],
)  # fmt: skip
def test_a_gate_before_what_names_cards_of_cuda_stays(package: str, moves: str, widened: bool) -> None:
    gate = f"    if device.type == 'cuda' and parallel:\n        net = DataParallel(net){moves}\n"
    head = f"from {package} import DataParallel\ndef get(net, device, parallel):\n"
    result = ported(f"{head}{gate}    return net.to(device)\n")
    assert (b"in ('cuda', 'npu')" in result.data) is widened
    assert any(each.code == "NPU507" and each.open and each.span.line == 4 for each in result.findings)


def test_a_name_that_a_gate_needs_stays_imported() -> None:
    source = "from torch.cuda import device_count\nif device_count() > 1:\n    y = torch.nn.DataParallel(net)\n"
    assert not ported(f"import torch\n{source}").changed


@pytest.mark.parametrize(
    "also", ["torch.version.cuda", "float(torch.version.cuda) >= 11", "torch.cuda.nccl.version() >= (2, 10)"]
)
@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("ready = {also} and dist.is_nccl_available()", "NPU111"),
        # Where its answer goes is more than a value.
        ("ready = not ({also} and torch.cuda.is_bf16_supported())", "NPU101"),
        ("if {also} and torch.cuda.is_bf16_supported():\n    f()", "NPU101"),
    ],
)
def test_an_answer_that_is_for_cuda_as_a_whole(also: str, source: str, code: str) -> None:
    check_stays(source.format(also=also), code, "import torch\nimport torch.distributed as dist\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "ready = torch.version.cuda and torch.cuda.is_bf16_supported() and dist.is_nccl_available()",
            'ready = device_module.is_bf16_supported() if DEVICE_TYPE == "npu" else torch.version.cuda and '
            "torch.cuda.is_bf16_supported() and dist.is_nccl_available()",
        ),
        (
            "def ready():\n    return (\n        dist.is_nccl_available()\n        and torch.cuda.is_bf16_supported()\n"
            "        and float(torch.version.cuda) >= 11\n    )",
            'def ready():\n    return (\n        device_module.is_bf16_supported() if DEVICE_TYPE == "npu" else\n'
            "        dist.is_nccl_available()\n        and torch.cuda.is_bf16_supported()\n"
            "        and float(torch.version.cuda) >= 11\n    )",
        ),
    ],
)
def test_whether_cudas_libraries_have_bfloat16_is_asked_of_the_npu_alone(before: str, after: str) -> None:
    head = "import torch\nimport torch.distributed as dist\n"
    check(before, after, head)
    assert ported(f"{head}{before}\n").tokens.manual == 0


def test_an_answer_that_only_one_of_several_makes_cudas() -> None:
    check(
        "ready = torch.version.cuda or torch.cuda.is_bf16_supported()",
        "ready = torch.version.cuda or device_module.is_bf16_supported()",
    )


def test_what_only_newer_torch_npu_has() -> None:
    line = "torch.cuda.ExternalStream(pointer)"
    check(line, "device_module.ExternalStream(pointer)", torch_version="2.13", oldest_torch="2.13")
    result = ported(f"import torch\n{line}\n", torch_version="2.13", oldest_torch="2.4")
    assert not result.changed and "from torch 2.4 on" in result.findings[0].message


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('x = x.to("cuda")', "x = x.to(DEVICE_TYPE)"),
        ("x = torch.zeros(2, device='cuda:1')", "x = torch.zeros(2, device=f'{DEVICE_TYPE}:1')"),
        ('x = x.to(f"cuda:{rank}")', 'x = x.to(f"{DEVICE_TYPE}:{rank}")'),
        (
            'x = x.to(f"cuda:{torch.cuda.current_device()}")',
            'x = x.to(f"{DEVICE_TYPE}:{device_module.current_device()}")',
        ),
        ('x = x.to("cuda:%d" % rank)', 'x = x.to(f"{DEVICE_TYPE}:%d" % rank)'),
        ('x = x.to("cuda:{}".format(rank))', 'x = x.to(f"{DEVICE_TYPE}:{rank}")'),
        ('x = x.to("cuda:{0}".format(args.gpu))', 'x = x.to(f"{DEVICE_TYPE}:{args.gpu}")'),
        ('x = x.to("cuda:{}".format(args.gpus[0]))', 'x = x.to(f"{DEVICE_TYPE}:{args.gpus[0]}")'),
        ("x = x.to('cuda:{}'.format(at[\"gpu\"]))", "x = x.to(f'{DEVICE_TYPE}:{at[\"gpu\"]}')"),
        # What is called, worked out, or written with the quote of the text stays an argument.
        ('x = x.to("cuda:{}".format(f(rank)))', 'x = x.to(f"{DEVICE_TYPE}:{{}}".format(f(rank)))'),
        ('x = x.to("cuda:{}".format(gpus[i]))', 'x = x.to(f"{DEVICE_TYPE}:{{}}".format(gpus[i]))'),
        ('x = x.to("cuda:{}".format(at["gpu"]))', 'x = x.to(f"{DEVICE_TYPE}:{{}}".format(at["gpu"]))'),
        ('x = x.to("cuda:{}".format(i + 1))', 'x = x.to(f"{DEVICE_TYPE}:{{}}".format(i + 1))'),
        ('def f(x, device="cuda"):\n    return x.to(device)', "def f(x, device=DEVICE_TYPE):\n    return x.to(device)"),
        ('device = torch.device("cuda", rank)', "device = torch.device(DEVICE_TYPE, rank)"),
        ('load(device_map={"a": "cuda:0", "b": "cpu"})', 'load(device_map={"a": f"{DEVICE_TYPE}:0", "b": "cpu"})'),
        ('s = torch.load(path, map_location="cuda:0")', 's = torch.load(path, map_location=f"{DEVICE_TYPE}:0")'),
        ('with torch.autocast("cuda"):\n    f()', "with torch.autocast(DEVICE_TYPE):\n    f()"),
        (
            'device = "cuda"\nkind = "cuda" if "cuda" in device else "cpu"\nx.to(device)\ny.to(kind)',
            'device = DEVICE_TYPE\nkind = DEVICE_TYPE if DEVICE_TYPE in device else "cpu"\nx.to(device)\ny.to(kind)',
        ),
    ],
)
def test_device_strings(before: str, after: str) -> None:
    check(before, after)


@pytest.mark.parametrize("name", ["pin_memory", "non_blocking"])
def test_whether_it_is_the_device_is_given_to_torch(name: str) -> None:
    head = "import torch\nd = torch.device(n)\n"
    check(f"f({name}=d.type == 'cuda')", f"f({name}=d.type in ('cuda', 'npu'))", head)


def test_whether_it_is_the_device_is_given_to_code_that_may_be_cudas() -> None:
    check_stays("net = make(conv_fusion=(d.type == 'cuda'))", "NPU201", "import torch\nd = torch.device(n)\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            'def f(where):\n    if "cuda" in where:\n        g()\n    return torch.device(where)',
            'def f(where):\n    if "cuda" in where or "npu" in where:\n        g()\n    return torch.device(where)',
        ),
        (
            "if 'cuda' in args.device and n > 1:\n    f()\nx.to(args.device)",
            "if ('cuda' in args.device or 'npu' in args.device) and n > 1:\n    f()\nx.to(args.device)",
        ),
    ],
)
def test_a_device_that_is_looked_for_in_a_text_from_elsewhere(before: str, after: str) -> None:
    """The user names it: what card there is says nothing about that."""
    check(before, after)
    check_stays(before.replace(" in ", " not in "), "NPU201")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "gpu = torch.device(name)\nx = torch.ones(1).cuda(gpu, non_blocking=True)",
            "gpu = torch.device(name)\nx = torch.ones(1).to(gpu, non_blocking=True)",
        ),
        ("x = torch.ones(1).cuda(torch.device('cuda'))", "x = torch.ones(1).to(torch.device(DEVICE_TYPE))"),
        # One that is made of a number would be CUDA's with an older torch.
        ("x = torch.ones(1).cuda(device=torch.device(gpu))", "x = torch.ones(1).to(device(gpu))"),
        # An attribute that the file sets to nothing else.
        (
            "m._gpu = torch.device(name)\nx = torch.ones(1).cuda(device=m._gpu)",
            "m._gpu = torch.device(name)\nx = torch.ones(1).to(m._gpu)",
        ),
        (
            "m._gpu = torch.device(name)\nm._gpu = n\nx = torch.ones(1).cuda(m._gpu)",
            "m._gpu = torch.device(name)\nm._gpu = n\nx = torch.ones(1).to(device(m._gpu))",
        ),
        (
            "m.gpu = torch.device(name)\nx = torch.ones(1).cuda(m.gpu)",
            "m.gpu = torch.device(name)\nx = torch.ones(1).to(device(m.gpu))",
        ),
        # What else it may be is asked.
        (
            "gpu = torch.device(name)\nif n:\n    gpu = n\nx = torch.ones(1).cuda(gpu)",
            "gpu = torch.device(name)\nif n:\n    gpu = n\nx = torch.ones(1).to(device(gpu))",
        ),
        ("gpu = name\nx = torch.ones(1).cuda(gpu)", "gpu = name\nx = torch.ones(1).to(device(gpu))"),
        ("def f(gpu):\n    return torch.ones(1).cuda(gpu)", "def f(gpu):\n    return torch.ones(1).to(device(gpu))"),
    ],
)
def test_a_device_is_taken_as_it_is(before: str, after: str) -> None:
    check(before, after)


@pytest.mark.parametrize("source", ["x = torch.zeros(2, device=1)", "x = torch.device(0)"])
def test_numbers_are_of_cuda_where_npus_get_a_torch_below_2_3(source: str) -> None:
    """On an NPU the torch is that of the list for NPUs, whatever the project admits besides."""
    check_stays(source, "NPU247", torch_version="2.2")
    check(source, source, torch_version="2.8", oldest_torch="1.13")


def test_a_number_of_a_card_stays_one() -> None:
    after = "card = rank % device_module.device_count()\ndevice_module.set_device(card)\nx = x.to(card)"
    check(after.replace("device_module", "torch.cuda"), after, torch_version="2.8", oldest_torch="1.13")


@pytest.mark.parametrize(
    ("given", "after"),
    [
        ("map_location=lambda storage, loc: storage.cuda(args.gpu)", "map_location=device(args.gpu)"),
        ("map_location=lambda storage, loc: storage.cuda()", "map_location=device()"),
        ("lambda s, l: s.cuda(0)", "device(0)"),
        ("map_location=lambda storage, loc: storage", "map_location=lambda storage, loc: storage"),
    ],
)
@pytest.mark.parametrize("loads", ["torch.load", "torch.hub.load_state_dict_from_url"])
def test_where_checkpoints_are_loaded(given: str, after: str, loads: str) -> None:
    check(f"s = {loads}(path, {given})", f"s = {loads}(path, {after})")


@pytest.mark.parametrize(
    "given",
    [
        "map_location=lambda s, l: l.cuda(0)",  # not what is loaded
        "map_location=lambda s, l: s.cuda(l)",  # by its place
        "map_location=lambda s, l, n=0: s.cuda(n)",
        "map_location=lambda s, l: s.cuda(0, True)",
        "pickle_module=lambda s, l: s.cuda(0)",
    ],
)
def test_where_checkpoints_are_loaded_by_more_than_a_card(given: str) -> None:
    check_stays(f"s = torch.load(path, {given})", "NPU210")


def test_a_function_of_the_project_may_call_what_it_is_given() -> None:
    check_stays("s = restore(path, map_location=lambda s, l: s.cuda(0))", "NPU210")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('if x.device.type == "cuda":\n    f()', 'if x.device.type in ("cuda", "npu"):\n    f()'),
        ("if x.device.type != 'cuda':\n    f()", "if x.device.type not in ('cuda', 'npu'):\n    f()"),
        ('if x.device.type in ("cuda", "mps"):\n    f()', 'if x.device.type in ("cuda", "npu", "mps"):\n    f()'),
        # A keyword `type` says what one value is, not what it may be one of.
        ('f(type=["cuda"][0])\nx.to(["cuda"][0])', 'f(type=["cuda"][0])\nx.to([DEVICE_TYPE][0])'),
        (
            'p.add_argument("--device", default="cuda", choices=["cpu", "cuda"])\nx.to(p.parse_args().device)',
            'p.add_argument("--device", default=DEVICE_TYPE, choices=["cpu", "cuda", "npu"])\n'
            "x.to(p.parse_args().device)",
        ),
    ],
)
def test_what_admits_cuda_admits_npus_too(before: str, after: str) -> None:
    check(before, after, "import argparse\nimport torch\np = argparse.ArgumentParser()\n")


@pytest.mark.parametrize(
    "other",
    [
        "elif self.backend == 'triton':\n            return 1",
        "    self.backend = 'triton'",
        "if self.backend not in ('triton', 'tilelang'):\n            return 1",
    ],
)
def test_an_implementation_that_is_called_cuda_is_no_device(other: str) -> None:
    """What else sets the attribute makes it a device: a project has many attributes of one name."""
    asked = "class C:\n    def f(self, x):\n        x = x.to(self.backend)\n        if self.backend == 'cuda':\n"
    check_stays(f"{asked}            g()\n        {other}", "NPU203")
    moved = "        if self.backend in ('cuda', 'npu'):\n            g()"
    check(f"{asked}            g()", f"class C:\n    def f(self, x):\n        x = x.to(self.backend)\n{moved}")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("device: Literal['cuda']", "device: Literal['cuda', 'npu']"),
        ('device: Literal["cuda", "cpu"] = "cuda"', 'device: Literal["cuda", "npu", "cpu"] = DEVICE_TYPE'),
        ('device: Optional[Literal["cuda"]] = None', 'device: Optional[Literal["cuda", "npu"]] = None'),
    ],
)
def test_types_that_are_written_out(before: str, after: str) -> None:
    head = "import torch\nfrom typing import Literal, Optional\n"
    check(f"def f(x, {before}):\n    return x.to(device)", f"def f(x, {after}):\n    return x.to(device)", head)


def test_backends_that_are_written_out() -> None:
    head = "import torch\nfrom typing import Literal\n"
    used = "def f(backend: Backend = {}):\n    torch.distributed.init_process_group(backend)"
    before, after = used.format('"nccl"'), used.format("DIST_BACKEND")
    check(f"Backend = Literal['gloo', 'nccl']\n{before}", f"Backend = Literal['gloo', 'nccl', 'hccl']\n{after}", head)


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("def f(x, device: Annotated[str, 'cuda']):\n    return x.to(device)", "NPU201"),
        ("text = f\"{x.to('cuda:0')}\"", "NPU201"),
    ],
)
def test_device_strings_that_have_to_be_written_out(source: str, code: str) -> None:
    result = ported(f"import torch\nfrom typing import Literal\n{source}\n")
    assert not result.changed and any(finding.open for finding in result.findings), code


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = x.cuda()", "x = x.to(DEVICE_TYPE)"),
        ("x = x.cuda(gpu)", "x = x.to(accelerator_device(gpu))"),
        ("x = x.cuda(gpu, True)", "x = x.to(accelerator_device(gpu), non_blocking=True)"),
        ("x = x.cuda(non_blocking=True)", "x = x.to(DEVICE_TYPE, non_blocking=True)"),
        ("x = x.cuda(device=gpu)", "x = x.to(accelerator_device(gpu))"),
        ("xs = each(lambda x: x.cuda(gpu), xs)", "xs = each(lambda x: x.to(accelerator_device(gpu)), xs)"),
        ("y = net(x.cuda()).cuda()", "y = net(x.to(DEVICE_TYPE)).to(DEVICE_TYPE)"),
        ("if x.is_cuda:\n    f()", "if x.device.type == DEVICE_TYPE:\n    f()"),
        ("assert x.is_cuda and y", "assert x.device.type == DEVICE_TYPE and y"),
        # A tensor has the method on every device; the question stays.
        ("if hasattr(x, 'cuda'):\n    x = x.cuda()", "if hasattr(x, 'cuda'):\n    x = x.to(DEVICE_TYPE)"),
    ],
)
def test_tensors_and_modules(before: str, after: str) -> None:
    check(before, after, "import torch\ndevice = None\n")


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("xs = map(torch.Tensor.cuda, xs)", "NPU109"),
        ("print(x.is_cuda + 1)", "NPU211"),
        ("class Net(torch.nn.Module):\n    def to(self, where):\n        return self\nnet = build().cuda()", "NPU210"),
    ],
)
def test_tensors_and_modules_that_stay(source: str, code: str) -> None:
    check_stays(source, code)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("with torch.cuda.amp.autocast():\n    f()", "with torch.autocast(DEVICE_TYPE):\n    f()"),
        ("with torch.cuda.amp.autocast(on):\n    f()", "with torch.autocast(DEVICE_TYPE, enabled=on):\n    f()"),
        (
            "with torch.cuda.amp.autocast(dtype=torch.bfloat16):\n    f()",
            "with torch.autocast(DEVICE_TYPE, dtype=torch.bfloat16):\n    f()",
        ),
        ("s = torch.cuda.amp.GradScaler(enabled=on)", "s = torch.amp.GradScaler(DEVICE_TYPE, enabled=on)"),
        (
            "from torch.cuda.amp import GradScaler, autocast\ns = GradScaler()\nwith autocast():\n    f()",
            "from torch.amp import GradScaler, autocast\n"
            "s = GradScaler(DEVICE_TYPE)\nwith autocast(DEVICE_TYPE):\n    f()",
        ),
    ],
)
def test_mixed_precision(before: str, after: str) -> None:
    check(before, after, oldest_torch="2.3")


def test_a_scaler_where_an_older_torch_is_admitted() -> None:
    for admitted in ("", "1.13"):  # no pin is not the newest torch
        check("s = torch.cuda.amp.GradScaler(enabled=on)", "s = grad_scaler(enabled=on)", oldest_torch=admitted)
    check_stays("s = torch.cuda.amp.GradScaler(128.0)", "NPU103", oldest_torch="1.13")
    check("from torch.cuda.amp import GradScaler\ns = GradScaler()", "s = grad_scaler()", oldest_torch="1.13")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("with torch.cuda.amp.autocast():\n    f()", "with autocast():\n    f()"),
        ("with torch.cuda.amp.autocast(on):\n    f()", "with autocast(enabled=on):\n    f()"),
        (
            "from torch.cuda.amp import GradScaler, autocast\ns = GradScaler()\nwith autocast(enabled=on):\n    f()",
            "s = grad_scaler()\nwith autocast(enabled=on):\n    f()",
        ),
        (
            "from torch.cuda.amp import autocast\nwith autocast(on):\n    f()",
            "with accelerator_autocast(enabled=on):\n    f()",
        ),
    ],
)
def test_autocast_where_a_torch_without_it_is_admitted(before: str, after: str) -> None:
    for asked in ("==1.9.0", ">=1.7", "~=1.8", "", "<2.9", "!=1.9"):  # no pin is not the newest torch
        check(before, after, pins=(("torch", asked),))


@pytest.mark.parametrize("asked", [">=1.10", "==1.13.1", "~=2.0,<2.9"])
def test_autocast_where_every_torch_that_is_asked_for_has_it(asked: str) -> None:
    before = "with torch.cuda.amp.autocast():\n    f()"
    check(before, "with torch.autocast(DEVICE_TYPE):\n    f()", pins=(("torch", asked),))


@pytest.mark.parametrize(
    "source",
    [
        "from torch.cuda.amp import autocast\nf = autocast",
        "from torch.cuda.amp import autocast\n__all__ = ['autocast']",
        "dtype = torch.get_autocast_gpu_dtype()",
    ],
)
def test_mixed_precision_that_is_not_only_called(source: str) -> None:
    check_stays(source, "NPU103")


_STATE = """\
state = {{"enabled": torch.is_autocast_enabled({0}), "dtype": torch.{1}({0})}}
with {2}**state):
    f()
"""


def test_the_state_of_mixed_precision_and_what_gets_it_are_asked_together() -> None:
    before = _STATE.format("", "get_autocast_gpu_dtype", "torch.cuda.amp.autocast(")
    pins = {"oldest_torch": "2.4", "pins": (("torch", ">=2.4"),)}
    check(before, _STATE.format("DEVICE_TYPE", "get_autocast_dtype", "torch.autocast(DEVICE_TYPE, "), **pins)
    check_stays(before, "NPU123", oldest_torch="2.3", pins=(("torch", ">=2.3"),))  # which takes no device
    check_stays(before, "NPU103", oldest_torch="2.3", pins=(("torch", ">=2.3"),))


@pytest.mark.parametrize(
    ("use", "told"), [("", False), ("scaler = 1", False), ("run(autocast)", True), ("__all__ = ['autocast']", True)]
)
def test_an_import_in_a_branch_that_nothing_uses_is_no_work(use: str, told: bool) -> None:
    source = f"new = f()\nif new:\n    from torch.cuda.amp import autocast\n{use}\n"
    result = ported(source)
    assert result.data.decode() == source
    assert any(each.open and each.code == "NPU103" for each in result.findings) is told


@pytest.mark.parametrize(
    ("other", "goes"),
    [
        # Files without a word of CUDA or torch, which nobody parses.
        ("from net.train import *\n\nautocast()\n", False),
        ("from .train import *\n\nautocast()\n", False),
        ("from .train import autocast\n\nautocast()\n", False),
        ("from . import train\n\ntrain.autocast()\n", False),
        ("from . import train\n\ntrain.run()\n", True),
        ("from .trainer import *\n\nrun()\n", True),
    ],
)
def test_an_import_that_another_file_takes_stays(other: str, goes: bool) -> None:
    settings = Settings(style="portable", helper_file=True)
    source = b"from torch.cuda.amp import autocast\nwith autocast():\n    run()\n# cuda\n# cuda\n"
    files = {"net/__init__.py": b"", "net/train.py": source, "net/other.py": other.encode()}
    project = ProjectFacts.join([index_source(data, path, settings) for path, data in files.items()])
    new = migrate_source(source, "net/train.py", settings, project).data
    assert (b"torch.cuda" not in new) is goes, new


@pytest.mark.parametrize(
    ("other", "told"), [("from train import *\nimport torch\n", ["info"]), ("import train\nimport torch\n", [])]
)
def test_an_import_that_only_another_file_may_use_is_a_remark(other: str, told: list[str]) -> None:
    settings = Settings(style="portable", helper_file=True)
    source = b"import torch\nfrom torch.cuda import amp\n"
    files = {"train.py": source, "other.py": f"{other}torch.zeros(1).cuda()\n".encode()}
    project = ProjectFacts.join([index_source(data, path, settings) for path, data in files.items()])
    found = migrate_source(source, "train.py", settings, project).findings
    assert [each.level.value for each in found if each.code == "NPU103"] == told


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('torch.distributed.init_process_group("nccl")', "torch.distributed.init_process_group(DIST_BACKEND)"),
        (
            'torch.distributed.init_process_group("cpu:gloo,cuda:nccl")',
            'torch.distributed.init_process_group(f"cpu:gloo,{DEVICE_TYPE}:{DIST_BACKEND}")',
        ),
        (
            'os.environ["CUDA_VISIBLE_DEVICES"] = "0"\nf()',
            'os.environ["CUDA_VISIBLE_DEVICES"] = "0"\nos.environ["ASCEND_RT_VISIBLE_DEVICES"] = "0"\nf()',
        ),
        (
            'os.environ["CUDA_VISIBLE_DEVICES"] = str(\n    gpu)\nf()',
            'os.environ["CUDA_VISIBLE_DEVICES"] = str(\n    gpu)\n'
            'os.environ["ASCEND_RT_VISIBLE_DEVICES"] = os.environ["CUDA_VISIBLE_DEVICES"]\nf()',
        ),
        ('seen = os.environ.get("CUDA_VISIBLE_DEVICES")', "seen = os.environ.get(VISIBLE_DEVICES)"),
        ('seen = os.environ["CUDA_VISIBLE_DEVICES"]', "seen = os.environ[VISIBLE_DEVICES]"),
        # One that is put back.
        (
            'before = os.environ.get("CUDA_LAUNCH_BLOCKING")\nos.environ["CUDA_LAUNCH_BLOCKING"] = "1"\nf()',
            'before = os.environ.get(LAUNCH_BLOCKING)\nos.environ["CUDA_LAUNCH_BLOCKING"] = "1"\n'
            'os.environ["ASCEND_LAUNCH_BLOCKING"] = "1"\nf()',
        ),
        (
            "if torch.distributed.get_backend() == torch.distributed.Backend.NCCL:\n    f()",
            "if torch.distributed.get_backend() == DIST_BACKEND:\n    f()",
        ),
        ("torch.distributed.is_nccl_available()", "torch.distributed.is_backend_available(DIST_BACKEND)"),
    ],
)
def test_backends_and_variables(before: str, after: str) -> None:
    check(before, after, "import os\nimport torch\n")


def test_the_question_for_a_backend_where_an_older_torch_is_admitted() -> None:
    check_stays("torch.distributed.is_nccl_available()", "NPU111", oldest_torch="2.0")
    check_stays("ask = torch.distributed.is_nccl_available", "NPU111")


_PROFILED = "torch.profiler.ProfilerActivity"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            f"""
            with torch.profiler.profile(
                activities=[{_PROFILED}.CPU, {_PROFILED}.CUDA],
                schedule=torch.profiler.schedule(wait=1, warmup=1, active=1),
            ) as p:
                with torch.profiler.record_function("x"):
                    f()
                p.step()
            """,
            """
            with profiler.profile(
                activities=[profiler.ProfilerActivity.CPU, DEVICE_ACTIVITY],
                schedule=profiler.schedule(wait=1, warmup=1, active=1),
            ) as p:
                with torch.profiler.record_function("x"):
                    f()
                p.step()
            """,
        ),
        (
            "from torch.profiler import ProfilerActivity, profile, record_function\n"
            "with profile(activities=[ProfilerActivity.CUDA]), record_function('x'):\n    f()",
            "from torch.profiler import record_function\n"
            "with profiler.profile(activities=[DEVICE_ACTIVITY]), record_function('x'):\n    f()",
        ),
    ],
)
def test_the_profiler(before: str, after: str) -> None:
    check(before, after)


@pytest.mark.parametrize(
    "source",
    [
        # torch_npu's profiler has no tables.
        f"with torch.profiler.profile(activities=[{_PROFILED}.CUDA]) as p:\n    f()\np.key_averages()",
        # Others may make the profiler.
        f"activities = [{_PROFILED}.CUDA]",
    ],
)
def test_a_profiler_that_stays(source: str) -> None:
    check_stays(source, "NPU131")


def test_visible_cards_that_a_function_names_come_after_the_module_has_counted_them() -> None:
    for head, number in (("def card(n):\n    ", 0), ("n = '0'\n", 1)):
        result = ported(f"import os\nimport torch\n{head}os.environ['CUDA_VISIBLE_DEVICES'] = n\nx = 'cuda'\n")
        assert result.data.count(b"ASCEND_RT") == number
        said = [each.message for each in result.findings if each.code == "NPU220" and not each.applied]
        assert len(said) == 1 - number and all("the module has asked for a card by then" in each for each in said)


def test_a_test_of_visible_cards_stays_with_an_assignment_that_stays() -> None:
    named = "os.environ['CUDA_VISIBLE_DEVICES']"
    for head, number in (("def card(n):\n  ", 0), ("n = '0'\n", 1)):
        asked = f"{head}if 'CUDA_VISIBLE_DEVICES' not in os.environ:\n    {named} = n\nx = 'cuda'\n"
        result = ported(f"import os\nimport torch\n{asked}")
        assert result.data.count(b"if VISIBLE_DEVICES not in") == result.data.count(b"ASCEND_RT") == number
        assert result.data.count(b"'CUDA_VISIBLE_DEVICES'") == 2 - number
        said = [each.message for each in result.findings if each.code == "NPU220" and not each.applied]
        assert sum("sets it, and stays as it is" in each for each in said) == 1 - number


@pytest.mark.parametrize(
    "before",
    ["x = torch.cuda.is_available()", "if torch.cuda.device_count() > 1:\n    x.cuda()", "def f():\n    x.cuda()\nf()"],
)
def test_visible_cards_that_are_named_after_one_was_asked_for(before: str) -> None:
    """The runtime of CANN reads the variable when it is asked for a card; to count them is no such question."""
    named = 'os.environ["CUDA_VISIBLE_DEVICES"] = "0"'
    result = ported(f"import os\nimport torch\n{before}\n{named}\n")
    late = "is_available" in before
    assert result.data.count(b"ASCEND_RT") == (not late)
    assert [each.help for each in result.findings if each.code == "NPU220" and not each.applied] == (
        [
            "every process takes card 0 on an NPU: call device_module.set_device() there, "
            "or set ASCEND_RT_VISIBLE_DEVICES before the program starts"
        ]
        if late else []
    )  # fmt: skip


@pytest.mark.parametrize(
    "source",
    [
        'os.environ.setdefault("CUDA_VISIBLE_DEVICES", "0")',
        'if x: os.environ["CUDA_VISIBLE_DEVICES"] = "0"',
        'f(); os.environ["CUDA_VISIBLE_DEVICES"] = "0"',
        # One that the module does not name is not read under another one.
        'before = os.environ.get("NCCL_SOCKET_IFNAME")\nos.environ["NCCL_SOCKET_IFNAME"] = "e"',
        'os.environ["CUDA_VISIBLE_DEVICES"] = "0"; f()',
    ],
)
def test_a_variable_whose_statement_cannot_be_repeated(source: str) -> None:
    check_stays(source, "NPU220", "import os\nimport torch\n")


@pytest.mark.parametrize(
    ("source", "counted"),
    [
        ('if x.device.type == "cuda":\n    f()', (1, 0, 0)),
        ('p.add_argument("--device", choices=["cpu", "cuda"])\nx.to(p.parse_args().device)', (1, 0, 0)),
        ('os.environ["CUDA_VISIBLE_DEVICES"] = "0"\nf()', (1, 0, 0)),
        ('os.environ["CUDA_VISIBLE_DEVICES"] = str(\n    0)\nf()', (1, 0, 0)),
        # What handles both already is no edit of ours, and what is reported is left to a person.
        ('if x.device.type in ("cuda", "npu"):\n    f()', (0, 0, 1)),
        ('if x: os.environ["CUDA_VISIBLE_DEVICES"] = "0"', (0, 1, 0)),
    ],
)
def test_what_an_npu_is_put_beside_is_converted(source: str, counted: tuple[int, int, int]) -> None:
    head = "import argparse, os\nimport torch\np = argparse.ArgumentParser()\nx = torch.ones(1)\n"
    tokens = ported(f"{head}{source}\n").tokens
    assert (tokens.converted, tokens.manual, tokens.ignored) == counted


def test_each_kind_that_stays_has_a_help_of_its_own() -> None:
    helps = {portable_advice(code, "x") for code in all_codes()}
    assert len(helps) > 11
    found = ported("import torch\ntorch.cuda.memory._set_allocator_settings('')\ngraph = torch.cuda.CUDAGraph()\n")
    assert any("DEVICE_TYPE" in finding.help for finding in found.findings)


def test_a_comment_that_ignores_the_string_holds() -> None:
    source = 'import torch\nx = x.to("cuda")  # transplt: ignore[NPU201] on purpose\n'
    assert ported(source).data.decode() == source


_ALONE = "import torch\nfrom pkg.device import DEVICE_TYPE\nx.to(DEVICE_TYPE)\n"


def test_a_single_file_of_a_ported_project_goes_on_with_its_module() -> None:
    """As a hook before a commit sees it; what the module has beside it is not known."""
    settings = Settings(style="portable")
    line = "y = torch.zeros(1, device={})\n"
    result = migrate_source(f"{_ALONE}{line.format(repr('cuda'))}".encode(), "train.py", settings)
    assert result.data.decode() == f"{_ALONE}{line.format('DEVICE_TYPE')}"
    result = migrate_source(f"{_ALONE}torch.cuda.synchronize()\n".encode(), "train.py", settings)
    (finding,) = (each for each in result.findings if each.code == "NPU101" or each.api == "torch.cuda.synchronize")
    assert not result.changed and "import device_module from the module" in finding.help


def test_a_single_file_where_the_settings_name_the_module() -> None:
    settings = Settings(style="portable", helper="device")
    result = migrate_source(b"import torch\ntorch.cuda.synchronize()\n", "train.py", settings)
    assert not result.changed and "the project's module has device_module" in result.findings[0].message


@pytest.mark.torch
def test_a_choice_in_a_file_that_has_its_names_for_something_else() -> None:
    source = "import torch\nDEVICE_TYPE = 3\ntorch.cuda.synchronize()\n"
    after = migrate_source(source.encode(), "train.py", Settings(style="portable")).data.decode()
    names: dict[str, object] = {}
    exec(compile(after.replace("device_module.synchronize()", ""), "train.py", "exec"), names)
    assert names["DEVICE_TYPE"] == 3 and names["DEVICE_TYPE_"] == "cuda"


def test_in_a_single_file_the_choice_stands_in_it() -> None:
    after = migrate('import torch\nx = torch.zeros(2, device="cuda")\n', style="portable").data.decode()
    assert 'DEVICE_TYPE = "npu" if _has_npu else "cuda"' in after and "device=DEVICE_TYPE)" in after
    assert "from device" not in after


@pytest.mark.parametrize(
    "source",
    [
        "import torch\nx = torch.ones(2)\n",
        "import torch\ndevice = torch.accelerator.current_accelerator()\n",
        "import torch\ndef f(device):\n    return device.type in ('cuda', 'npu')\n",
    ],
)
def test_portable_code_is_left_alone(source: str) -> None:
    check_noop(source, style="portable")


def test_a_method_of_the_project_gains_no_second_name() -> None:
    source = "import torch\nclass Model(torch.nn.Module):\n    def cuda(self):\n        return self\n"
    check_noop(source, style="portable")


@pytest.mark.parametrize(
    ("before", "head"),
    [
        ("x.cuda()\n", "IMPORTS"),
        ("# a comment\nx.cuda()\n", "# a comment\nIMPORTS"),
        ("@decorated\ndef f(x):\n    return x.cuda()\n", "IMPORTS"),
        ("import numpy\n\n\n# a comment\nx.cuda()\n", "import importlib.util\nimport os\nimport numpy\nimport torch\n"),
    ],
)
def test_functions_in_a_file_stand_below_the_imports_that_they_need(before: str, head: str) -> None:
    settings = Settings(style="portable", torch_version="2.4")
    result = migrate_source(before.encode(), "train.py", settings)
    text = result.data.decode()
    assert text.startswith(head.replace("IMPORTS", "import importlib.util\nimport os\nimport torch\n"))
    assert text.count("# a comment") == before.count("# a comment") and "x.to(DEVICE_TYPE)" in text
    assert text.index("import importlib.util") < text.index("importlib.util.find_spec")
    assert migrate_source(result.data, "train.py", settings).data == result.data


def test_the_names_of_a_file_by_itself_are_known_again() -> None:
    """The name of the variable alone is a choice, too: nothing is left to do in a second run."""
    text = b"import os\nimport torch\nseen = os.environ.get('CUDA_VISIBLE_DEVICES')\n"
    result = migrate_source(text, "train.py", Settings(style="portable"))
    assert b"os.environ.get(VISIBLE_DEVICES)" in result.data
    assert not migrate_source(result.data, "train.py", Settings(style="portable")).findings


@pytest.mark.parametrize("data", [
    "hooks = [dict(type='TextLoggerHook')]\ndist_params = dict(backend='nccl')\n",
    "_base_ = ['../default.py']\nenv_cfg = dict(cudnn_benchmark=True, dist_cfg=dict(backend='nccl'))\n",
])  # fmt: skip
def test_a_configuration_that_a_loader_reads_holds_no_code(data: str) -> None:
    """A module that it imports would be one of its values."""
    check_stays(data, "NPU301", head="")
    plain = "import torch.distributed as dist\nhooks = [dict(kind='a')]\ndist.init_process_group(backend='nccl')\n"
    check(plain, plain.replace("'nccl'", "DIST_BACKEND"), head="")


_SKIP = "@pytest.mark.skipif(not torch.cuda.is_available(), reason='no card')\nclass Test:\n    def test(self):\n"


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("assert has_apex and torch.cuda.is_available(), 'APEX and CUDA required'", "NPU101"),
        ("def f(x, backend):\n    return x.device.type == 'cuda' and backend.supports_cuda", "NPU201"),
        (f"import pytest\n{_SKIP}        import spconv", "NPU270"),
    ],
)
def test_a_question_asked_with_what_only_cuda_has_stays(source: str, code: str) -> None:
    check_stays(source, code)


def test_a_question_asked_with_what_any_card_has() -> None:
    check("use = args.cuda and torch.cuda.is_available()", "use = args.cuda and device_module.is_available()")
    skip = f"import pytest\n{_SKIP}        import einops"
    check(skip, skip.replace("torch.cuda.is", "device_module.is"))


_TO_CPU = "import io\n\ndef load(b):\n    {}\n    return torch.load(io.BytesIO(b), map_location={})"


def test_without_a_card_of_cuda_its_storages_are_loaded_to_the_cpu() -> None:
    """An NPU takes that way, too: what was saved on CUDA is not found there."""
    check_noop_portable(_TO_CPU.format("if torch.cuda.is_available():\n        return None", "'cpu'"))
    gate = _TO_CPU.format("if torch.cuda.is_available():\n        return start()", "None").replace("\n\n", "\n")
    check(gate, gate.replace("torch.cuda.is", "device_module.is"))


def check_noop_portable(source: str) -> None:
    assert not ported(f"import torch\n{source}\n").changed


_METER = """\
import torch.distributed as dist
t = torch.tensor({}, dtype={}, device='cuda')
dist.all_reduce(t)
t = t.tolist()"""


def test_a_meter_that_is_summed_over_the_ranks_has_the_type_that_the_accelerator_sums() -> None:
    for numbers in ("[count, total]", "(1, n)"):
        for dtype in ("torch.float64", "torch.double"):
            new = _METER.format(numbers, "SUM_DTYPE").replace("'cuda'", "DEVICE_TYPE")
            check(_METER.format(numbers, dtype), new)


def test_what_may_need_float64_stays_with_a_finding() -> None:
    given = "    t = torch.zeros(3, dtype=torch.float64, device=device)\n    dist.all_reduce(t)"
    check_stays(f"import torch.distributed as dist\nuse_cuda = True\ndef f(device):\n{given}", "NPU314")
