"""`.cuda(x)` of modules: `.to(x)` for a string or a torch.device, `.npu(x)` for a number or None."""

from __future__ import annotations

import pytest

from tests.harness import check_rewrite, codes, migrate
from transplt.base.settings import Settings
from transplt.engine.engine import migrate_source

HEAD = """\
import argparse
import copy
import torch
from torch import nn

class Net(nn.Module):
    pass

class Child(Net):
    def place(self, device: torch.device):
        {child}

net, layer = Net(), nn.Linear(2, 2)
"""


def moved(line: str, *, child: str = "pass", head: str = "", **more: object) -> tuple[str, list[str]]:
    """The last line of the output, and the codes of what is said of it."""
    result = migrate(f"{HEAD.format(child=child)}{head}{line}\n", **more)  # type: ignore[arg-type]
    return result.data.decode().rstrip().splitlines()[-1].strip(), codes(result, applied=False)


def test_a_module_is_moved_by_to() -> None:
    check_rewrite(
        """
        import torch
        device = torch.device("cuda:0")
        model = torch.nn.Linear(2, 2)
        model.cuda(device)
        model.cuda(device=device)
        model.cuda("cuda:0")
        model.cuda(0)
        model.cuda()
        x = torch.ones(2).cuda(device)
        y = torch.ones(2).cuda("cuda:0")
        """,
        """
        import torch
        import torch_npu  # noqa: F401
        device = torch.device("npu:0")
        model = torch.nn.Linear(2, 2)
        model.to(device)
        model.to(device=device)
        model.to("npu:0")
        model.npu(0)
        model.npu()
        x = torch.ones(2).npu(device)
        y = torch.ones(2).npu("npu:0")
        """,
        codes_applied=["NPU201", "NPU210", "NPU403"],
    )


# --- what is a module ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "new"),
    [
        ("Net().cuda('cuda:0')", "Net().to('npu:0')"),
        ("Net().train().half().cuda('cuda')", "Net().train().half().to('npu')"),
        ("Net().cuda('cuda').eval()", "Net().to('npu').eval()"),
        ("other.eval().cuda('cuda')", "other.eval().to('npu')"),
        ("copy.deepcopy(net).cuda('cuda')", "copy.deepcopy(net).to('npu')"),
        ("nn.parallel.DistributedDataParallel(net).cuda('cuda')",
         "nn.parallel.DistributedDataParallel(net).to('npu')"),
        ("torch.jit.script(net).cuda('cuda')", "torch.jit.script(net).to('npu')"),
        ("for m in (net, layer): m.cuda('cuda')", "for m in (net, layer): m.to('npu')"),
        ("[m.cuda('cuda') for m in [net, layer]]", "[m.to('npu') for m in [net, layer]]"),
        # A tensor or a module: `to` does the same for both.
        ("unknown.cuda('cuda:0')", "unknown.to('npu:0')"),
        ("parts[0].cuda(torch.device('cuda', 1))", "parts[0].to(torch.device('npu', 1))"),
    ],
)  # fmt: skip
def test_whatever_the_module_is(line: str, new: str) -> None:
    assert moved(line) == (new, [])


@pytest.mark.parametrize(
    ("line", "new"),
    [
        ("torch.ones(2).cuda('cuda:0')", "torch.ones(2).npu('npu:0')"),
        ("(torch.ones(2) * 2).cuda(torch.device('cuda'))", "(torch.ones(2) * 2).npu(torch.device('npu'))"),
        ("unknown.cuda('cuda:0', non_blocking=True)", "unknown.npu('npu:0', non_blocking=True)"),
        ("unknown.cuda(torch.device('cuda'), True)", "unknown.npu(torch.device('npu'), True)"),
        ("torch.load(p, map_location=lambda storage, place: storage.cuda('cuda:0'))",
         "torch.load(p, map_location=lambda storage, place: storage.npu('npu:0'))"),
        ("def place(storage, location): return storage.cuda('cuda:0')",
         "def place(storage, location): return storage.npu('npu:0')"),
        ("x.untyped_storage().cuda('cuda:0')", "x.untyped_storage().npu('npu:0')"),
    ],
)  # fmt: skip
def test_tensors_and_storages_keep_their_method(line: str, new: str) -> None:
    assert moved(line) == (new, [])


@pytest.mark.parametrize("call", ["self.cuda(device)", "super().cuda(device)", "super(Child, self).cuda(device)"])
def test_inside_of_a_module(call: str) -> None:
    result = migrate(HEAD.format(child=call))
    assert call.replace(".cuda", ".to") in result.data.decode() and not codes(result, applied=False)


# --- what it is given ------------------------------------------------------------------------------------------------

OPTIONS = "parser = argparse.ArgumentParser()\n{}\nargs = parser.parse_args()\n"


@pytest.mark.parametrize(
    ("option", "new"),
    [
        ("parser.add_argument('--place', default='cuda:0')", "net.to(args.place)"),
        ("parser.add_argument('--place', type=str, default='cuda:0')", "net.to(args.place)"),
        ("parser.add_argument('--place', type=torch.device, required=True)", "net.to(args.place)"),
        ("parser.add_argument('place', choices=['cuda', 'cpu'])", "net.to(args.place)"),
        ("parser.add_argument('--place', default='cuda' if ready else 'cpu')", "net.to(args.place)"),
        ("parser.add_argument('--place', type=int)", "net.npu(args.place)"),
        ("parser.add_argument('--place', type=int, default=None)", "net.npu(args.place)"),
        ("parser.add_argument('--place', default=0)", "net.npu(args.place)"),
    ],
)
def test_an_option_by_its_type_and_default(option: str, new: str) -> None:
    assert moved("net.cuda(args.place)", head=OPTIONS.format(option)) == (new, [])


def test_an_option_by_its_name() -> None:
    head = OPTIONS.format("parser.add_argument('--gpu', default=None, help='the card to use')")
    assert moved("net.cuda(args.gpu)", head=head) == ("net.npu(args.gpu)", [])


@pytest.mark.parametrize(
    ("head", "given"),
    [
        ("", "'cuda'"), ("", "f'cuda:{n}'"), ("", "'cuda:%d' % n"), ("", "'cuda:{}'.format(n)"),
        ("", "'cuda:' + str(n)"), ("", "torch.device('cuda', n)"), ("", "'cuda' if flag else 'cpu'"),
        ("d = 'cuda:0'\n", "d"),
        ("d = torch.device('cuda:0')\n", "d"), ("d = torch.accelerator.current_accelerator()\n", "d"),
        ("d = torch.device('cuda:0' if torch.cuda.is_available() else 'cpu')\n", "d"),
        ("args.device = torch.device('cuda')\n", "args.device"),
        ("", "next(layer.parameters()).device"),
        ("def device():\n    return torch.device('cuda')\n", "device()"),
    ],
)  # fmt: skip
def test_strings_and_devices(head: str, given: str) -> None:
    line, said = moved(f"net.cuda({given})", head=head)
    assert line.startswith("net.to(") and said == []


@pytest.mark.parametrize(
    ("head", "given"),
    [
        ("", "0"), ("", "None"), ("", "n % 8"), ("", "int(text)"), ("", "torch.cuda.current_device()"),
        ("", "local_rank"), ("", "args.gpu"), ("", "args.local_rank"), ("", "gpu_ids[0]"), ("", "opt.gpu_ids[0]"),
        ("", "cfg['gpu']"), ("", "device_id"), ("d = 1\n", "d"), ("d = None\n", "d"), ("", "0 if flag else None"),
        ("import torch.distributed as dist\n", "dist.get_rank()"),
        ("device = int(os.environ['LOCAL_RANK'])\n", "device"),
    ],
)  # fmt: skip
def test_numbers_and_none_keep_npu(head: str, given: str) -> None:
    line, said = moved(f"net.cuda({given})", head=head)
    assert line.startswith("net.npu(") and said == []


@pytest.mark.parametrize(
    ("head", "given"),
    [
        ("", "device"), ("", "args.device"), ("", "cfg['device']"), ("", "*options"), ("", "**options"),
        ("", "device=pick()"), ("d = 'cuda' if flag else None\n", "d"), ("d = 0 if flag else 'cuda'\n", "d"),
        (OPTIONS.format("parser.add_argument('--place')"), "args.place"),
        (OPTIONS.format("parser.add_argument('--place', type=str, default=None)"), "args.place"),
    ],
)  # fmt: skip
def test_what_may_be_any_is_said(head: str, given: str) -> None:
    line, said = moved(f"net.cuda({given})", head=head)
    assert line.startswith("net.npu(") and said == ["NPU234"]


@pytest.mark.parametrize("given", ["device", "args.device", "*options"])
def test_nothing_is_said_of_what_may_be_a_tensor(given: str) -> None:
    line, said = moved(f"unknown.cuda({given})")
    assert line.startswith("unknown.npu(") and said == []


# --- parameters ------------------------------------------------------------------------------------------------------

RUN = "import torch\n\ndef run({parameters}):\n    model = torch.nn.Linear(2, 2)\n    model.{move}\n"


@pytest.mark.parametrize(
    ("parameters", "calls", "move", "said"),
    [
        ("device: str", "", "to", False),
        ("device: torch.device", "", "to", False),
        ("device: 'str | torch.device'", "", "to", False),
        ("device: int", "", "npu", False),
        ("device: str = None", "", "npu", True),
        ("device: int | str", "", "npu", True),
        ("device", "run('cuda:0')\nrun(device=torch.device('cuda'))\n", "to", False),
        ("device='cuda'", "run()\n", "to", False),
        ("device", "run(0)\n", "npu", False),
        ("device=None", "run()\n", "npu", False),
        ("device=None", "run('cuda')\nrun()\n", "npu", True),
        ("device", "run('cuda')\nrun(0)\n", "npu", True),
        ("device", "", "npu", True),
        ("device", "run('cuda')\nspawn(run)\n", "npu", True),
        ("device", "run('cuda')\nrun(*options)\n", "npu", True),
        ("device=None", "run('cuda')\nrun(0)\nrun()\n", "npu", True),
        ("rank", "torch.multiprocessing.spawn(run, nprocs=2)\n", "npu", False),
    ],
)
def test_parameters_by_their_annotation_and_their_calls(parameters: str, calls: str, move: str, said: bool) -> None:
    name = parameters.replace("=", ":").partition(":")[0].strip()
    result = migrate(RUN.format(parameters=parameters, move=f"cuda({name})") + calls)
    assert f"model.{move}({name})" in result.data.decode()
    assert codes(result, applied=False) == (["NPU234"] if said else [])


@pytest.mark.parametrize(
    ("statement", "move"),
    [
        ("if device is None:\n        device = torch.device('cuda')", "to"),
        ("if not device:\n        device = 'cuda'", "to"),
        ("device = 'cuda' if device is None else device", "to"),
        ("device = device if device is not None else 'cuda'", "to"),
        ("device = device or 'cuda'", "to"),
        ("if device is None:\n        print('cuda')", "npu"),
        ("if device is not None:\n        device = 'cuda'", "npu"),
        ("if other is None:\n        device = 'cuda'", "npu"),
        ("device = 'cuda' if device else device", "npu"),
    ],
)
def test_none_that_is_replaced(statement: str, move: str) -> None:
    source = RUN.format(parameters="device=None", move="cuda(device)")
    source = source.replace("    model =", f"    {statement}\n    model =")
    result = migrate(f"{source}run('cuda')\nrun()\n")
    assert f"model.{move}(device)" in result.data.decode()
    assert codes(result, applied=False) == ([] if move == "to" else ["NPU234"])


def test_a_function_that_other_files_take_is_given_what_nobody_sees() -> None:
    source = RUN.format(parameters="device", move="cuda(device)") + "run('cuda')\n"
    result = migrate(source, path="work.py", files={"main.py": "from work import run\nrun(None)\n"})
    assert b"model.npu(device)" in result.data and codes(result, applied=False) == ["NPU234"]


def test_a_file_without_its_project_is_edited_no_more() -> None:
    source = RUN.format(parameters="device", move="cuda(device)") + "run('cuda')\n"
    alone = migrate_source(source.encode(), "work.py", Settings())
    assert b"model.cuda(device)" in alone.data and "NPU234" in {each.code for each in alone.findings}
    assert b"model.to(device)" in migrate(source, path="work.py").data


def test_an_option_of_another_file() -> None:
    options = OPTIONS.format("parser.add_argument('--place', default='cuda:0')")
    use = "import torch\nfrom options import args\nmodel = torch.nn.Linear(2, 2)\nmodel.cuda(args.place)\n"
    files = {"options.py": f"import argparse\n{options}"}
    assert b"model.to(args.place)" in migrate(use, files=files).data


def test_an_attribute_of_its_object() -> None:
    source = """
        import torch
        class Trainer:
            def __init__(self, gpu):
                self.device = torch.device("cuda")
                self.later = None
                self.card = int(gpu)
                self.model = torch.nn.Linear(2, 2)
                self.other = torch.nn.Linear(2, 2)
            def start(self):
                self.model.{0}(self.device)
                self.model.{1}(self.card)
                self.other.{1}(self.later)
            def prepare(self):
                self.later = "{2}"
        """
    after = source.replace("\n        class", "\n        import torch_npu  # noqa: F401\n        class")
    check_rewrite(
        source.format("cuda", "cuda", "x"),
        after.format("to", "npu", "x").replace('device("cuda")', 'device("npu")'),
        open_codes=["NPU234"],
    )


# --- classes of the project ------------------------------------------------------------------------------------------


def test_a_cuda_of_their_own_is_called_by_its_npu() -> None:
    check_rewrite(
        """
        import torch
        class Net(torch.nn.Module):
            def cuda(self, device: torch.device):
                self.grid = self.grid.cuda(device, non_blocking=True)
                return super().cuda(device)
        class Child(Net):
            def cuda(self, device: torch.device):
                return super().cuda(device)
        device = torch.device("cuda")
        net = Net().cuda(device)
        child = Child()
        child.cuda(device)
        layer = torch.nn.Linear(2, 2)
        layer.cuda(device)
        """,
        """
        import torch
        import torch_npu  # noqa: F401
        class Net(torch.nn.Module):
            def cuda(self, device: torch.device):
                self.grid = self.grid.npu(device, non_blocking=True)
                return super().to(device)

            npu = cuda
        class Child(Net):
            def cuda(self, device: torch.device):
                return super().npu(device)

            npu = cuda
        device = torch.device("npu")
        net = Net().npu(device)
        child = Child()
        child.npu(device)
        layer = torch.nn.Linear(2, 2)
        layer.to(device)
        """,
    )


def test_a_class_without_bases_is_no_module() -> None:
    source = """
        import torch
        class Solver:
            def __init__(self):
                self.net = make().eval()
            def cuda(self, device: str):
                self.net.{0}(device)
                return self
        Solver().{1}("{2}")
        """
    npu = "return self\n\n            npu = cuda\n"
    after = source.replace("\n        class", "\n        import torch_npu  # noqa: F401\n        class")
    check_rewrite(
        source.format("cuda", "cuda", "cuda"), after.replace("return self\n", npu).format("to", "npu", "npu")
    )  # fmt: skip


def test_a_method_of_a_class_below_may_be_meant() -> None:
    source = """
        import torch
        class Base(torch.nn.Module):
            def start(self):
                self.{0}("{1}")
        class Net(Base):
            def cuda(self, device="{1}"):
                return self
        """
    result = migrate(source.format("cuda", "cuda"))
    assert b'self.npu("npu")' in result.data and codes(result, applied=False) == ["NPU234"]


def test_a_module_that_may_be_one_with_a_cuda_of_its_own() -> None:
    base = "import torch\nclass Net(torch.nn.Module):\n    def cuda(self, device=None):\n        return self\n"
    use = "import torch\n{}model = build()\nmodel.parameters()\nmodel.{}(torch.device('{}'))\n"
    result = migrate(use.format("", "cuda", "cuda"), files={"nets.py": base})
    assert result.data.decode() == use.format("import torch_npu  # noqa: F401\n", "npu", "npu")
    assert codes(result, applied=False) == ["NPU234"]
    taken = "import torch\n{}from nets import Net\nmodel = Net()\nmodel.{}('{}')\n"
    check_rewrite(
        taken.format("", "cuda", "cuda"), taken.format("import torch_npu  # noqa: F401\n", "npu", "npu"),
        files={"nets.py": base},
    )  # fmt: skip


def test_portable_output_moves_by_a_function_of_the_module() -> None:
    result = migrate("import torch\nmodel = torch.nn.Linear(2, 2)\nmodel.cuda(place)\n", style="portable")
    assert result.data.endswith(b"\nmodel.to(device(place))\n")


@pytest.mark.parametrize(
    ("number", "said"), [("x.get_device()", []), ("gpuidx", []), ("gpu_idx", []), ("wanted", ["NPU234"])]
)
def test_the_number_of_a_card_by_its_name(number: str, said: list[str]) -> None:
    line = f"def f(x, gpuidx, gpu_idx, wanted):\n    Net().cuda({number})"
    assert moved(line) == (f"Net().npu({number})", said)
