"""The portable style: edits after which CUDA and CPU behave as before, everything else a finding."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path

import pytest

from tests.harness import check_noop, check_rewrite, clean, migrate, pattern
from transplt.base.settings import TORCH_VERSIONS
from transplt.rules.accelerator import accelerator_names
from transplt.rules.versions import version_key

CHOICE = 'torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"'


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("torch.cuda.current_device()", "torch.accelerator.current_device_index()"),
        ("torch.cuda.set_device(rank)", "torch.accelerator.set_device_index(rank)"),
        ("torch.cuda.synchronize()", "torch.accelerator.synchronize()"),
        ("rank % torch.cuda.device_count()", "rank % torch.accelerator.device_count()"),
        ("torch.cuda.current_stream().synchronize()", "torch.accelerator.current_stream().synchronize()"),
    ],
)
@pattern("P3", "P4", "P7", "P8")
def test_names_that_torch_has_for_every_accelerator(old: str, new: str) -> None:
    check_rewrite(
        f"import torch\ndef f(rank):\n    return {old}\n",
        f"import torch\ndef f(rank):\n    return {new}\n",
        style="portable",
    )


# --- a gate and what it guards are one edit, or none ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            'd = "cuda:0" if torch.cuda.is_available() else "cpu"',
            'd = f"{torch.accelerator.current_accelerator().type}:0" if torch.accelerator.is_available() else "cpu"',
        ),
        (
            'd = "cpu" if not torch.cuda.is_available() else "cuda"',
            'd = "cpu" if not torch.accelerator.is_available() else torch.accelerator.current_accelerator().type',
        ),
        (
            'd = "cuda" if torch.cuda.is_available() and not args.no_gpu else "cpu"',
            "d = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() and not args.no_gpu "
            'else "cpu"',
        ),
        (
            """
            if torch.cuda.is_available():
                device = torch.device("cuda")
                torch.cuda.empty_cache()
            else:
                device = torch.device("cpu")
            """,
            """
            if torch.accelerator.is_available():
                device = torch.device(torch.accelerator.current_accelerator().type)
                torch.accelerator.empty_cache()
            else:
                device = torch.device("cpu")
            """,
        ),
        (
            """
            def pick():
                if not torch.cuda.is_available():
                    return "cpu"
                return "cuda"
            x = x.to(pick())
            """,
            """
            def pick():
                if not torch.accelerator.is_available():
                    return "cpu"
                return torch.accelerator.current_accelerator().type
            x = x.to(pick())
            """,
        ),
        (
            """
            def main():
                use_cuda = not args.cpu and torch.cuda.is_available()
                device = torch.device("cuda" if use_cuda else "cpu")
                if use_cuda:
                    print("on", torch.cuda.current_device(), "of CUDA")
                loader = DataLoader(data, pin_memory=use_cuda)
            """,
            """
            def main():
                use_cuda = not args.cpu and torch.accelerator.is_available()
                device = torch.device(torch.accelerator.current_accelerator().type if use_cuda else "cpu")
                if use_cuda:
                    print("on", torch.accelerator.current_device_index(), "of CUDA")
                loader = DataLoader(data, pin_memory=use_cuda)
            """,
        ),
        (
            "cuda = True if torch.cuda.is_available() else False\nif cuda:\n    torch.cuda.synchronize()",
            "cuda = True if torch.accelerator.is_available() else False\nif cuda:\n    torch.accelerator.synchronize()",
        ),
        (
            "cuda = torch.cuda.is_available() or cuda\nif cuda:\n    torch.cuda.synchronize()",
            "cuda = torch.accelerator.is_available() or cuda\nif cuda:\n    torch.accelerator.synchronize()",
        ),
        (
            "if torch.cuda.device_count() > 0:\n    used = torch.cuda.memory_allocated()",
            "if torch.accelerator.device_count() > 0:\n    used = torch.accelerator.memory_allocated()",
        ),
    ],
)
@pattern("P1", "P2", "P8")
def test_a_gate_moves_with_what_it_guards(before: str, after: str) -> None:
    tail = "\nx.to(d)\n" if before.startswith("d =") else "\n"
    result = migrate("import torch\n" + clean(textwrap.dedent(before)) + tail, style="portable")
    assert result.data.decode() == "import torch\n" + clean(textwrap.dedent(after)) + tail


@pytest.mark.parametrize(
    "source",
    [
        "if torch.cuda.is_available():\n    torch.cuda.manual_seed(1)\n    torch.cuda.synchronize()",
        "if torch.cuda.is_available():\n    model.cuda()",
        "if torch.cuda.is_available():\n    model = torch.nn.DataParallel(model)",
        "if torch.cuda.device_count() > 1:\n    model = torch.nn.DataParallel(model)",
        "if torch.cuda.is_available():\n    scaler = torch.cuda.amp.GradScaler()",
        "if torch.cuda.is_available() and torch.cuda.get_device_capability()[0] >= 8:\n    fast = True",
        "if not torch.cuda.is_available():\n    raise SystemExit('no GPU')\nmodel.cuda()",
        "assert torch.cuda.is_available()\nmodel.cuda()",
        "if wanted:\n    assert torch.cuda.is_available()\nload(model, wanted)",
        "def check():\n    if not torch.cuda.is_available():\n        raise RuntimeError('no GPU')",
        "use_cuda = torch.cuda.is_available()\nif use_cuda:\n    model.cuda()",
        "args.cuda = torch.cuda.is_available()",
        "cuda = True if torch.cuda.is_available() else False\nif cuda:\n    model.cuda()",
        "cuda = torch.cuda.is_available() and cuda\nif cuda:\n    model.cuda()",
        "cpu = False if torch.cuda.is_available() else True\nif not cpu:\n    model.cuda()",
        "count = 1 if torch.cuda.is_available() else 0\nif count > 0:\n    model.cuda()",
        "kind = 'gpu' if torch.cuda.is_available() else 'cpu'\nif kind == 'gpu':\n    model.cuda()",
        "cuda = False\nif torch.cuda.is_available():\n    cuda = True\nif cuda:\n    model.cuda()",
        "if torch.cuda.is_available():\n    args.fast = True\nif args.fast:\n    model.cuda()",
        "def has_gpu():\n    return torch.cuda.is_available()",
        "n = torch.cuda.device_count()\nspawn(main, nprocs=n)",
        "pytest.mark.skipif(not torch.cuda.is_available())",
        "if torch.cuda.is_available():\n    prepare()\ndef prepare():\n    model.cuda()",
        "if torch.cuda.is_available():\n    from kernels_cuda import fast",
        "if torch.cuda.is_available():\n    options['backend'] = 'cudnn'",
        "if device.type == 'cuda':\n    model.half().cuda()",
        "used = torch.cuda.memory_allocated()",
        "torch.cuda.empty_cache()",
        "torch.cuda.synchronize(device='cuda:0')",
        "side.wait_stream(torch.cuda.current_stream())",
        "text = f\"{'cuda:0' if torch.cuda.is_available() else 'cpu'}\"\nx.to(text)",
    ],
)
def test_a_gate_stays_with_what_stays(source: str) -> None:
    before = "import torch\ndevice = torch.device(name)\n" + source + "\n"
    result = migrate(before, style="portable")
    assert result.data.decode() == before
    assert [each for each in result.findings if not each.applied]


def test_why_a_gate_stays() -> None:
    guarded = "    torch.cuda.manual_seed(1)\n    torch.cuda.synchronize()\n"
    source = "import torch\nif torch.cuda.is_available():\n" + guarded
    messages = [each.message for each in migrate(source, style="portable").findings]
    assert any("on an NPU host it would lead to what stays with CUDA: torch.cuda.manual_seed" in m for m in messages)
    assert any("the question in front of it stays" in m for m in messages)


def test_another_file_may_ask_for_the_answer() -> None:
    source = "import torch\nuse_gpu = torch.cuda.is_available()\n"
    other = {"other.py": "from train import use_gpu\nif use_gpu:\n    x.cuda()\n"}
    check_noop(source, files=other, open_codes=["NPU101"], style="portable")
    check_rewrite(source, source.replace("cuda", "accelerator"), style="portable")


@pattern("P29", "T2")
def test_the_device_is_chosen_by_what_is_there() -> None:
    check_rewrite(
        """
        import torch
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        if device.type == "cuda":
            torch.cuda.synchronize()
        if device.type != 'cuda':
            pass
        """,
        f"""
        import torch
        device = torch.device({CHOICE})
        if device.type in ("cuda", "npu"):
            torch.accelerator.synchronize()
        if device.type not in ('cuda', 'npu'):
            pass
        """,
        style="portable",
        codes_applied=["NPU260", "NPU261", "NPU262"],
    )


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("x = x.cuda()", "NPU210"),
        ("y = x.is_cuda", "NPU211"),
        ("torch.distributed.init_process_group('nccl')", "NPU301"),
        ("scaler = torch.cuda.amp.GradScaler()", "NPU103"),
        ("torch.cuda.manual_seed_all(1)", "NPU106"),
    ],
)
def test_what_would_change_on_cuda_is_a_finding(line: str, code: str) -> None:
    check_noop(f"import torch\ndef f(x):\n    {line}\n", open_codes=[code], style="portable")


TYPE = 'getattr(torch.accelerator.current_accelerator(), "type", "cuda")'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('device = "cuda"', f"device = {TYPE}"),
        ("device = 'cuda'", "device = " + TYPE.replace('"', "'")),
        ('device: str = "cuda"', f"device: str = {TYPE}"),
        ('device = torch.device("cuda")', f"device = torch.device({TYPE})"),
        ('device = torch.device("cuda", rank)', f"device = torch.device({TYPE}, rank)"),
        ("x = x.to('cuda')", "x = x.to(" + TYPE.replace('"', "'") + ")"),
        ('x = torch.zeros(2, device="cuda")', f"x = torch.zeros(2, device={TYPE})"),
        ('parser.add_argument("--device", default="cuda")', f'parser.add_argument("--device", default={TYPE})'),
        ('with torch.autocast("cuda"):\n    f()', f"with torch.autocast({TYPE}):\n    f()"),
        ('def f(x, device="cuda"):\n    return x.to(device)', f"def f(x, device={TYPE}):\n    return x.to(device)"),
        ('device = args.device or "cuda"', f"device = args.device or {TYPE}"),
        (
            'device = torch.device("cuda:1")',
            "device = torch.device(f\"{getattr(torch.accelerator.current_accelerator(), 'type', 'cuda')}:1\")",
        ),
    ],
)
def test_a_device_that_no_question_guards(before: str, after: str) -> None:
    check_rewrite(f"import torch\n{before}\n", f"import torch\n{after}\n", style="portable")
    # What stands in is no device string of CUDA alone for anybody.
    check_noop(f"import torch\n{after}\n", style="portable")
    assert not migrate(f"import torch\n{after}\n").changed


@pytest.mark.parametrize(
    "lines",
    [
        'with torch.cuda.device("cuda:1"):\n    f()',
        'torch.cuda.synchronize(device="cuda:0")',
        'def f(x, device: Literal["cuda"]):\n    return x.to(device)',
        'match x.device.type:\n    case "cuda":\n        f()',
        'if x.device.type in ("cuda", "cpu"):\n    f()',
        'device = f"cuda:{rank}"',
    ],
)
def test_a_device_string_that_no_expression_may_be(lines: str) -> None:
    source = f"import torch\nfrom typing import Literal\n{lines}\n"
    result = migrate(source, style="portable")
    assert not result.changed and any(finding.open for finding in result.findings)


def test_a_comment_that_ignores_the_string_holds() -> None:
    source = 'import torch\nx = x.to("cuda")  # transplt: ignore[NPU201] on purpose\n'
    assert migrate(source, style="portable").data.decode() == source


def test_without_torch_in_the_file_a_default_stays() -> None:
    source = 'import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument("--device", default="cuda")\n'
    check_noop(source, open_codes=["NPU201"], style="portable")


@pytest.mark.parametrize(
    ("oldest", "line", "moves"),
    [
        ("1.13", "ok = torch.cuda.is_available()", False),
        ("1.13", 'device = torch.device("cuda")', False),
        ("2.5", "torch.cuda.synchronize()", False),
        ("2.6", "torch.cuda.synchronize()", True),
        ("2.6", "if torch.cuda.is_available():\n    x = torch.cuda.max_memory_allocated()", False),
        ("2.13", "if torch.cuda.is_available():\n    x = torch.cuda.max_memory_allocated()", True),
        ("", "torch.cuda.synchronize()", True),
        ("1.13", 'cuda = x.device.type == "cuda"', True),  # needs no name of torch
    ],
)
def test_names_are_no_newer_than_the_oldest_torch_that_the_project_admits(oldest: str, line: str, moves: bool) -> None:
    result = migrate(f"import torch\n{line}\n", style="portable", torch_version="2.14", oldest_torch=oldest)
    assert result.changed is moves
    if not moves:
        assert any(f"the project admits torch {oldest}" in finding.message for finding in result.findings)


@pytest.mark.parametrize("version", ["2.1", "2.5"])
def test_before_torch_accelerator_there_is_no_edit(version: str) -> None:
    check_noop(
        "import torch\nok = torch.cuda.is_available()\n", open_codes=["NPU101"], style="portable", torch_version=version
    )


#: The first version whose torch and torch_npu have the name, the line, and what it becomes.
BY_VERSION = [
    ("2.6", "torch.cuda.synchronize()", "torch.accelerator.synchronize()"),
    ("2.6", "torch.cuda.set_device(1)", "torch.accelerator.set_device_index(1)"),
    ("2.6", "index = torch.cuda.current_device()", "index = torch.accelerator.current_device_index()"),
    ("2.11", "with torch.cuda.device(1):\n    f()", "with torch.accelerator.device_index(1):\n    f()"),
    ("2.13", "free, total = torch.cuda.mem_get_info(0)", "free, total = torch.accelerator.get_memory_info(0)"),
    *(
        (
            "2.13",
            f"if torch.cuda.is_available():\n    x = torch.cuda.{name}()",
            f"if torch.accelerator.is_available():\n    x = torch.accelerator.{name}()",
        )
        for name in (
            "empty_cache", "memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved",
            "memory_stats", "reset_peak_memory_stats", "reset_accumulated_memory_stats",
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize(("since", "before", "after"), BY_VERSION)
def test_names_move_from_the_version_on_that_has_them(since: str, before: str, after: str) -> None:
    for version in TORCH_VERSIONS:
        moved = migrate(f"import torch\n{before}\n", style="portable", torch_version=version).data.decode()
        has_it = version_key(version) >= version_key(since)
        assert moved == f"import torch\n{after if has_it else before}\n", version


@pytest.mark.parametrize(
    "line",
    [
        "with torch.cuda.device(x.device):\n    f()",
        "with torch.cuda.device('cuda:1'):\n    f()",
        "with torch.cuda.device(rank):\n    f()",
        "major, minor = torch.cuda.get_device_capability()",
        "graph = torch.cuda.CUDAGraph()",
        "state = torch.cuda.get_rng_state()",
        "seed = torch.cuda.initial_seed()",
    ],
)
def test_names_that_mean_something_else_in_torch_accelerator_stay(line: str) -> None:
    source = f"import torch\n{line}\n"
    assert migrate(source, style="portable", torch_version="2.14").data.decode() == source


def test_the_table_says_what_the_lists_of_names_and_of_support_say() -> None:
    facts = Path(__file__).resolve().parent.parent / "scripts" / "facts"
    lists = json.loads((facts / "torch_names.json").read_text())["lists"]
    support = json.loads((facts / "verdicts.json").read_text())
    verdicts = next(value for value in (support, *support.values()) if "torch.accelerator.is_available" in value)
    listed = {*lists["torch.accelerator"][">=2.13"]}
    listed |= {f"random.{name}" for name in lists["torch.accelerator.random"][">=2.14"]}
    assert {row.name for row in accelerator_names()} == listed
    for row in accelerator_names():
        said = verdicts.get(f"torch.accelerator.{row.name}") or verdicts.get(f"torch.accelerator.memory.{row.name}", {})
        yes = [key for key, value in said.items() if (value if isinstance(value, str) else value["supported"]) == "yes"]
        first = min((re.match(r">=([\d.]+)", key)[1] for key in yes), key=version_key, default="")
        assert first == row.npu, row


def test_a_device_is_not_parted_from_what_another_question_places() -> None:
    source = """
        import torch
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        cuda = True if torch.cuda.is_available() else False
        model.to(device)
        if cuda:
            loss.cuda()
        Tensor = torch.cuda.FloatTensor if cuda else torch.FloatTensor
        """
    result = migrate(source, style="portable")
    assert result.data.decode() == clean(source)


# --- devices that belong together move together, or not at all -------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    [
        # a text with its placeholders
        'x = torch.zeros(2, device=f"cuda:{torch.cuda.current_device()}")',
        'where = f"cuda:{torch.cuda.current_device()}"\nrun(where)',
        'where = f"cuda:{rank % torch.cuda.device_count()}"\nrun(where)',
        # the values of one table
        'load(device_map={"a": "cuda:0", "b": f"cuda:{n}"})',
        'load(devices={"a": torch.device("cuda"), "b": torch.device(f"cuda:{n}"), "c": torch.cuda.current_device()})',
        'load(device_map=dict(a="cuda:0", b=f"cuda:{n}"))',
        'devices = ["cuda:0", f"cuda:{n}"]\nx.to(devices[0])',
        'load(device_map={"a": "cuda:0", "b": "cu" "da:1"})',
        # a gate that leads to them through a variable
        """
            device = "cuda" if torch.cuda.is_available() else "cpu"
            if device != "cpu":
                model = model.cuda(index)
        """,
        """
            device = torch.device("cpu")
            if torch.cuda.is_available():
                device = torch.device("cuda")
            if device.type == "cpu":
                print("slow")
            else:
                model = model.cuda(index)
        """,
        """
            args.device = "cuda" if torch.cuda.is_available() else "cpu"
            on_card = str(args.device) != "cpu"
            if on_card:
                model = model.cuda(index)
        """,
        """
            device = "cuda" if torch.cuda.is_available() else "cpu"
            if "cpu" not in device and index is not None:
                model = model.cuda(index)
        """,
        """
            device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
            if device.type == "cuda":
                model = model.cuda(index)
            data = data.to(device)
        """,
    ],
)
def test_a_part_does_not_move_without_the_rest(source: str) -> None:
    lines = textwrap.indent(textwrap.dedent(source).strip(), "    ")
    result = migrate(f"import torch\n\n\ndef f(x, n, rank, index, model, data, args):\n{lines}\n", style="portable")
    assert not result.changed and all(each.help for each in result.findings if each.open)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('print(f"card {torch.cuda.current_device()}")', 'print(f"card {torch.accelerator.current_device_index()}")'),
        (
            'print(f"on cuda:{torch.cuda.current_device()}")',
            'print(f"on cuda:{torch.accelerator.current_device_index()}")',
        ),
        (
            'load(device_map={"a": "cuda:0", "b": torch.cuda.current_device(), "c": n})',
            "load(device_map={\"a\": f\"{getattr(torch.accelerator.current_accelerator(), 'type', 'cuda')}:0\", "
            '"b": torch.accelerator.current_device_index(), "c": n})',
        ),
        (
            """
            device = "cuda" if torch.cuda.is_available() else "cpu"
            if device != "cpu":
                torch.cuda.set_device(0)
            x.to(device)
            """,
            """
            device = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"
            if device != "cpu":
                torch.accelerator.set_device_index(0)
            x.to(device)
            """,
        ),
        (
            """
            device = "cuda" if torch.cuda.is_available() else "cpu"
            if other != "cpu":
                model = model.half()
            """,
            """
            device = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"
            if other != "cpu":
                model = model.half()
            """,
        ),
    ],
)
def test_what_belongs_together_moves_whole(before: str, after: str) -> None:
    head = "import torch\n\n\ndef f(x, n, model, other):\n"
    inner, wanted = (textwrap.indent(textwrap.dedent(each).strip(), "    ") for each in (before, after))
    check_rewrite(f"{head}{inner}\n", f"{head}{wanted}\n", style="portable")


def test_data_parallel_is_one_card_on_npus_alone() -> None:
    """By a file of functions, which keeps what it is on CUDA; the program's own file gets no class for NPUs."""
    source = clean("""
        import torch
        if torch.cuda.device_count() > 1:
            model = torch.nn.DataParallel(model)
        """)
    assert migrate(source, style="portable").data.decode() == source
    result = migrate(source, style="portable", helper_file=True)
    assert result.data.decode() == clean("""
        import torch

        from device import OneCardDataParallel
        if torch.accelerator.device_count() > 1:
            model = OneCardDataParallel(model)
        """)
    (said,) = [each.message for each in result.findings if each.code == "NPU135"]
    assert said.endswith("on an NPU the whole batch goes to one card, on CUDA to all as before")


def test_a_gate_behind_a_gate_that_stays() -> None:
    source = """
        import torch
        if torch.cuda.is_available():
            model = torch.nn.DataParallel(model)
            if torch.cuda.device_count() > 0:
                torch.cuda.synchronize()
        """
    result = migrate(source, style="portable")
    assert result.data.decode() == clean(source)


@pattern("T21")
def test_a_chain_that_asks_for_mps_stays() -> None:
    source = """
        import torch
        def pick():
            if torch.cuda.is_available():
                return "gpu"
            elif torch.backends.mps.is_available():
                return "mps"
            return "cpu"
        """
    check_noop(source, open_codes=["NPU101"], style="portable")


def test_an_alias_stays() -> None:
    check_noop("import torch.cuda as tc\nok = tc.is_available()\n", open_codes=["NPU101"], style="portable")


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


def test_chains_of_comparisons_are_left() -> None:
    source = 'import torch\n\nd = torch.device(x)\nprint(d.type == "cuda" == y, y == d.type == "cuda")\n'
    check_noop(source, style="portable", open_codes=["NPU201"])


def test_a_method_of_the_project_gains_no_second_name() -> None:
    source = "import torch\nclass Model(torch.nn.Module):\n    def cuda(self):\n        return self\n"
    check_noop(source, style="portable")
