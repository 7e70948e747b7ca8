"""DataParallel takes its first card."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, check_rewrite, migrate, pattern
from transplt.base.finding import Effort, Level
from transplt.base.settings import Settings
from transplt.engine.actions.actions import actions_of
from transplt.engine.engine import migrate_source
from transplt.flow.facts import ProjectFacts
from transplt.project.report.snippets import snippets

CLASS = '''\
class OneCardDataParallel({base}):
    """DataParallel; on NPUs one card gets the whole batch: the first, or that of the rank in a process group."""

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        if hasattr(torch, "npu") and torch.npu.is_available():
            of_rank = [torch.npu.current_device()] if torch.distributed.is_initialized() else None
            device_ids, output_device = of_rank or [device_ids[0] if device_ids else 0], None
        super().__init__(module, device_ids, output_device, dim)

    def scatter(self, inputs, kwargs, device_ids):
        if len(device_ids) > 1:
            return super().scatter(inputs, kwargs, device_ids)

        def move(value):
            if isinstance(value, torch.Tensor):
                return value.to(self.src_device_obj)
            if isinstance(value, tuple) and hasattr(value, "_fields"):
                return type(value)(*map(move, value))
            if isinstance(value, (list, tuple)):
                return type(value)(map(move, value))
            if isinstance(value, dict):
                return type(value)((key, move(each)) for key, each in value.items())
            return value

        return [move(inputs)], [move(kwargs)]
'''


@pattern("P41", "T27")
def test_the_class_goes_in_once_below_the_imports() -> None:
    check_rewrite(
        "import torch\nimport torch.nn as nn\n\n# The network.\nnet = Net()\n"
        "first = nn.DataParallel(net).cuda()\nsecond = torch.nn.DataParallel(net, device_ids=ids)\n",
        "import torch\nimport torch_npu  # noqa: F401\nimport torch.nn as nn\n\n\n"
        + CLASS.format(base="nn.DataParallel")
        + "\n\n# The network.\nnet = Net()\n"
        "first = OneCardDataParallel(net).npu()\nsecond = OneCardDataParallel(net, device_ids=ids)\n",
        codes_applied=["NPU135", "NPU210", "NPU403"],
        open_codes=["NPU507"],
    )


def test_torch_is_imported_for_it() -> None:
    head, use = "from torch.nn import DataParallel\n", "\n\ndef wrap(net):\n    return DataParallel(net)\n"
    after = migrate(head + use).data.decode()
    imports = f"{head}import torch_npu  # noqa: F401\nimport torch\n"
    assert after.startswith(f"{imports}\n\nclass OneCardDataParallel(DataParallel):")
    assert after.endswith("def wrap(net):\n    return OneCardDataParallel(net)\n")


def test_torch_of_a_star_import_is_imported_for_it() -> None:
    source = "from model import *\n\n\ndef wrap(net):\n    return torch.nn.DataParallel(net)\n"
    after = migrate(source).data.decode()
    assert "import torch as torch_\nfrom torch.nn import DataParallel\n\n\nclass OneCardDataParallel(" in after
    assert after.endswith("def wrap(net):\n    return OneCardDataParallel(net)\n")


def test_a_name_that_is_taken() -> None:
    source = "import torch\n\n\nclass OneCardDataParallel:\n    pass\n\n\nx = torch.nn.DataParallel(net)\n"
    assert "\nx = OneCardDataParallel_(net)\n" in migrate(source).data.decode()


@pytest.mark.parametrize(
    "source",
    [
        "import torch\nnet = torch.nn.DataParallel(net)\ntorch.save(net, path)\n",
        "import torch\nself.net = torch.nn.DataParallel(net)\ntorch.save({'model': self.net, 'epoch': 1}, path)\n",
        "import torch\nnet = torch.nn.DataParallel(net)\ncheckpoint = {'model': net}\ntorch.save(checkpoint, path)\n",
        "import torch\nnet = torch.nn.DataParallel(net)\ncheckpoint['model'] = net\ntorch.save(checkpoint, path)\n",
        "import copy\nimport torch\nnet = torch.nn.DataParallel(net)\nbest = copy.deepcopy(net)\n"
        "torch.save(best, path)\n",
        "import torch\nnet = torch.nn.DataParallel(net)\ntorch.save(net.cpu(), path)\n",
        "import pickle\nimport torch\nnet = torch.nn.DataParallel(net)\npickle.dump(net, file)\n",
        "import torch\n\n\ndef keep(model, path):\n    torch.save(model, path)\n\n\n"
        "net = torch.nn.DataParallel(net)\nkeep(net, path)\n",
        "import torch\nnet = torch.nn.DataParallel(net, device_ids=[0, 1], output_device=1)\n",
        "import torch\nnet = torch.nn.DataParallel(net, ids, args.output)\n",
        "import torch\ndef wrap(net, ids, where):\n    net = torch.nn.DataParallel(net, ids, where)\n",
        "import torch\ndef wrap(net, ids, where=1):\n    net = torch.nn.DataParallel(net, ids, where)\n",
        "def wrap(net):\n    import torch\n    return torch.nn.DataParallel(net)\n",
        "try:\n    from torch.nn import DataParallel\nexcept ImportError:\n    raise\nnet = DataParallel(net)\n",
    ],
)
def test_what_stays_is_for_a_person(source: str) -> None:
    assert "OneCard" not in migrate(source).data.decode()
    check_noop(source, open_codes=["NPU507"])
    assert {each.blocks for each in migrate(source).findings if each.open} == {"later"}  # not on one card


@pytest.mark.parametrize(
    "rest",
    [
        "net = torch.nn.DataParallel(net)\ntorch.save(net.state_dict(), path)\n",
        "net = torch.nn.DataParallel(net)\ntorch.save(net.module, path)\n",
        "net = torch.nn.DataParallel(net)\ncheckpoint = {'model': net.state_dict()}\ntorch.save(checkpoint, path)\n",
        "net = torch.nn.DataParallel(net, device_ids=[1, 2], output_device=1)\n",
        "net = torch.nn.DataParallel(net, device_ids=ids, output_device=ids[0])\n",
        "first = ids[0]\nnet = torch.nn.DataParallel(net, ids, first)\n",
        "net = torch.nn.DataParallel(net, list(range(4)), 0)\n",
        "net = torch.nn.DataParallel(net, output_device=0)\n",
        "net = torch.nn.DataParallel(net, ids, None)\n",
        "def wrap(net, ids=None, output_device=None):\n    net = torch.nn.DataParallel(net, ids, output_device)\n",
    ],
)
def test_what_goes_to_one_card(rest: str) -> None:
    assert "net = OneCardDataParallel(net" in migrate(f"import torch\n{rest}").data.decode()


@pytest.mark.parametrize("settings", [{"style": "portable"}, {"torch_version": "1.11"}])
def test_other_targets(settings: dict[str, str]) -> None:
    check_noop("import torch\nnet = torch.nn.DataParallel(net)\n", open_codes=["NPU507"], **settings)


@pytest.mark.parametrize(("name", "left"), [("OneCardDataParallel", []), ("Mine", ["NPU507"])])
def test_a_class_with_a_scatter_of_its_own_still_makes_replicas(name: str, left: list[str]) -> None:
    source = f"""
        import torch
        class {name}(torch.nn.DataParallel):
            def scatter(self, inputs, kwargs, device_ids):
                return [inputs], [kwargs]
        """
    check_noop(source, open_codes=left)


def test_a_file_with_the_other_wrapper_says_so() -> None:
    source = "import torch\nnet = torch.nn.DataParallel(net)\nnet = torch.nn.parallel.DistributedDataParallel(net)\n"
    (remark,) = [each for each in migrate(source).findings if each.code == "NPU507"]
    assert "this file already has DistributedDataParallel" in remark.help
    (action,) = [each for each in actions_of([remark]) if each.codes == ("NPU507",)]
    assert action.title.startswith("Start one process per card") and action.effort is Effort.LOW
    assert not snippets(action)  # there is nothing to write


@pytest.mark.parametrize(
    ("given", "level"),
    [
        ({("a.py", "--multiprocessing-distributed"): (True,)}, Level.INFO),
        ({("a.py", "--ddp"): (True,)}, Level.INFO),
        ({("a.py", "--ddp"): (False,)}, Level.MANUAL),
        ({("a.py", "--ddp"): ()}, Level.MANUAL),
        ({("b.py", "--ddp"): (True,)}, Level.MANUAL),
        ({("a.py", "--resume"): (True,)}, Level.MANUAL),
        ({}, Level.MANUAL),
    ],
)
def test_what_all_commands_start_with_the_other_wrapper_asks_for_nothing(
    given: dict[tuple[str, str], tuple[bool, ...]], level: Level
) -> None:
    source = "import torch\nnet = torch.nn.DataParallel(net)\nnet = torch.nn.parallel.DistributedDataParallel(net)\n"
    for text, expected in ((source, level), (source.replace("Distributed", ""), Level.MANUAL)):
        result = migrate_source(text.encode(), "a.py", Settings(), ProjectFacts(known=True, given_at=given))
        remark = next(each for each in result.findings if each.code == "NPU507")
        assert (remark.level, remark.help.startswith("nothing to edit")) == (expected, expected is Level.INFO)


@pytest.mark.parametrize(
    ("head", "after"),
    [
        ("from torch.nn import DataParallel as DP", ""),
        ("from torch.nn import DataParallel as DP, Linear", "from torch.nn import Linear\n"),
        ("from torch.nn.parallel import (\n    DataParallel as DP,\n)", ""),
    ],
)
def test_an_import_that_nothing_needs_any_more_goes(head: str, after: str) -> None:
    use = "\n\nprint(Linear)\n" if after else ""
    check_rewrite(
        f"import torch\n{head}\n{use}\nnet = DP(net)\n",
        f"import torch\n{after}\nimport npu_port\n{use}\nnet = npu_port.OneCardDataParallel(net)\n",
        open_codes=["NPU507"],
        helper_file=True,
    )


@pytest.mark.parametrize(
    "names", ["DataParallel as DP, Linear", "Linear, DataParallel as DP", "(\n    DataParallel as DP,\n    Linear,\n)"]
)
def test_an_import_of_several_names_is_no_finding_of_its_own(names: str) -> None:
    result = migrate(f"import torch\nfrom torch.nn import {names}\n\nprint(Linear)\nnet = DP(net)\n", helper_file=True)
    (call,) = [each for each in result.findings if each.code == "NPU507" and each.open]
    assert call.blocks == "slow"  # that of the call


def test_the_only_import_of_torch_goes() -> None:
    result = check_rewrite(
        "from torch.nn import DataParallel as DP\n\n\ndef wrap(m):\n    return DP(m.cuda())\n\n\nwrap(1)\n",
        "import torch_npu  # noqa: F401\n\nimport npu_port\n\n\ndef wrap(m):\n"
        "    return npu_port.OneCardDataParallel(m.npu())\n\n\nwrap(1)\n",
        open_codes=["NPU507"],
        helper_file=True,
    )
    assert [each.span.line for each in result.findings if each.code == "NPU507" and each.open] == [5]


@pytest.mark.parametrize(
    ("source", "open_"),
    [
        # it is asked for as a type
        ("if isinstance(net, DataParallel):\n    net = net.module\n", False),
        ("net = DataParallel(net)\nprint(isinstance(net, DataParallel))\n", True),
        # another class stands on it: that is what is reported
        ("class Own(DataParallel):\n    pass\nnet = DataParallel(net)\n", True),
        # it is listed for others
        ("__all__ = ['DataParallel']\nnet = DataParallel(net)\n", True),
        # nothing uses it
        ("", False),
    ],
)
def test_an_import_that_something_needs_stays(source: str, open_: bool) -> None:
    result = migrate(f"from torch.nn import DataParallel\n{source}", helper_file=True)
    assert b"from torch.nn import DataParallel\n" in result.data
    found = [each for each in result.findings if each.code == "NPU507" and each.open]
    assert bool(found) is open_
    assert not found or found[0].span.line > 1


@pytest.mark.parametrize("names", ["DataParallel", "DataParallel, Linear", "Linear, DataParallel as DP"])
def test_an_import_that_no_file_uses_is_no_finding(names: str) -> None:
    check_noop(f"from torch.nn import {names}\n", files={"other.py": "from pk.net import Linear\n"}, path="pk/net.py")


def test_an_import_that_another_file_takes_is_one() -> None:
    files = {"other.py": "from pk.net import DataParallel\nDataParallel(net)\n"}
    check_noop("from torch.nn import DataParallel\n", files=files, path="pk/net.py", open_codes=["NPU507"])


@pytest.mark.parametrize(("path", "more"), [("pk/__init__.py", ""), ("pk/net.py", "__all__ = ['DataParallel']\n")])
def test_an_import_that_a_file_lists_is_one(path: str, more: str) -> None:
    check_noop(f"from torch.nn import DataParallel\n{more}", path=path, open_codes=["NPU507"])


@pytest.mark.parametrize(
    ("code", "blocks"),
    [
        ("net = torch.nn.DataParallel(net, device_ids=[0, 1])", "slow"),
        ("net = torch.nn.DataParallel(net, [0, 1, 2, 3])", "slow"),
        ("net = torch.nn.DataParallel(net, device_ids=gpus)", "slow"),
        ("if torch.cuda.device_count() > 1:\n    net = torch.nn.DataParallel(net)", "slow"),
        ("if args.multi_gpu:\n    net = torch.nn.DataParallel(net)", "slow"),
        ("net = torch.nn.DataParallel(net)", "slow"),
        ("net = torch.nn.DataParallel(net, device_ids=None)", "slow"),
        ("net = torch.nn.DataParallel(net, device_ids=[0])", ""),
        ("def f(net, gpu_ids=[0]):\n    net = torch.nn.DataParallel(net, device_ids=gpu_ids)", ""),
        ("def f(net, gpu_ids=(0, 1)):\n    net = torch.nn.DataParallel(net, gpu_ids)", "slow"),
        ("def f(net, gpu_ids):\n    net = torch.nn.DataParallel(net, gpu_ids)", "slow"),
        ("net = torch.nn.DataParallel(net, device_ids=[args.gpu])", ""),
        ("if args.resume:\n    net = torch.nn.DataParallel(net)", "slow"),
    ],
)
def test_several_cards_that_become_one_are_work(code: str, blocks: str) -> None:
    """A program for all cards or several runs on one of them: slower, and something to do. One card is no work."""
    found = [each for each in migrate(f"import torch\n{code}\n").findings if each.code == "NPU507"]
    assert [each.blocks for each in found if each.open] == ([blocks] if blocks else [])


@pytest.mark.parametrize(
    ("path", "rest", "level"),
    [
        ("demo.py", "", Level.INFO),
        ("train.py", "", Level.MANUAL),
        ("demo.py", "loss.backward()\n", Level.MANUAL),
    ],
)
def test_a_script_that_only_infers_needs_no_second_card(path: str, rest: str, level: Level) -> None:
    guard = "if __name__ == '__main__':\n    main()\n"
    source = f"import torch\nnet = torch.nn.DataParallel(net)\n{rest}{guard}"
    files = {"train.py": f"import torch\nloss.backward()\n{guard}", "demo.py": source}
    files[path] = source if path == "demo.py" else source.replace("if __", "loss.backward()\nif __")
    result = migrate(files.pop(path), path=path, files=files)
    assert next(each.level for each in result.findings if each.code == "NPU507") is level
