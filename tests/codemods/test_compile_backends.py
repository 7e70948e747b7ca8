"""Backends of torch.compile."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, check_rewrite, migrate, pattern


@pattern("P61", "T3")
@pytest.mark.parametrize("call", ["torch.compile(m, backend='cudagraphs')", 'torch._dynamo.optimize("cudagraphs")(m)'])
def test_the_backend_that_captures_graphs(call: str) -> None:
    check_rewrite(
        f"import torch\nm = {call}\n",
        f"import torch\nimport torch_npu  # noqa: F401\nm = {call.replace('cudagraphs', 'npugraphs')}\n",
        codes_applied=["NPU150", "NPU403"],
    )


@pattern("P61")
def test_before_2_6_there_is_none() -> None:
    check_noop("import torch\nm = torch.compile(m, backend='cudagraphs')\n", torch_version="2.5", open_codes=["NPU151"])


@pattern("P61")
@pytest.mark.parametrize(
    "line",
    [
        "m = torch.compile(m, backend='inductor')",
        "m = torch.compile(m, mode='reduce-overhead')",
        "m = other.compile(m, backend='cudagraphs')",
        "m = torch.compile(m, options={'triton.cudagraphs': True})",
        "print('cudagraphs')",
    ],
)
def test_other_backends_stay(line: str) -> None:
    assert not migrate(f"import torch\n{line}\n").changed


@pattern("P61")
@pytest.mark.parametrize("given", ["mode='reduce-overhead'", "options={'triton.cudagraphs': True}"])
def test_what_is_left_without_graphs_still_needs_triton(given: str) -> None:
    check_noop(f"import torch\nm = torch.compile(m, {given})\n", open_codes=["NPU281", "NPU512"])


@pattern("P61")
@pytest.mark.parametrize(
    "call",
    [
        "torch.compile(m)",
        "torch.compile(m, backend='inductor', dynamic=True)",
        "torch.compile(m, mode=args.mode)",
        "torch.compile(m, mode='default')",
        "torch.compile(m, disable=args.eager)",
        "torch.compile(m, backend=args.backend)",
        "torch.compile(m, backend='inductor' if args.fast else 'eager')",
        "torch.compile(m, **args.compile)",
        "functools.partial(torch.compile, dynamic=False)",
        "torch.compile if args.fast else (lambda x: x)",
        "torch.compile",
    ],
)
def test_inductor_needs_a_package(call: str) -> None:
    check_noop(f"import functools\nimport torch\nm = {call}\n", open_codes=["NPU512"])


def test_only_what_compiles_ahead_of_time_needs_the_package() -> None:
    source = "import torch\ne = torch.export.export(m, (x,))\ntorch._inductor.aoti_compile_and_package(e)\n"
    check_noop(source, open_codes=["NPU512"])


@pytest.mark.parametrize(
    ("test", "how"),
    [
        ("cfg.compile", "switch cfg.compile off, or pip install"),
        ("use_compile and not args.debug", "switch use_compile off, or pip install"),
        ("not args.no_compile", "pip install"),
        ("cfg.fast", "pip install"),
        ("hasattr(torch, 'compile')", "pip install"),
    ],
)
def test_a_switch_of_the_project_is_named(test: str, how: str) -> None:
    result = check_noop(f"import torch\nif {test}:\n    m = torch.compile(m)\n", open_codes=["NPU512"])
    assert [each.help.startswith(how) for each in result.findings if each.code == "NPU512"] == [True]


@pattern("P61")
@pytest.mark.parametrize(
    "line",
    [
        "m = torch.compile(m, backend='eager')",
        "m = torch.compile(m, backend=make_backend())",
        "m = torch.compile(m, backend=torchair.get_npu_backend())",
        "backend = 'aot_eager'\nm = torch.compile(m, backend=backend)",
        "def passes(graph, inputs): ...\nm = torch.compile(m, backend=passes)",
        "options = {'backend': 'eager'}\nm = torch.compile(m, **options)",
        "m = torch.compile(m, disable=True)",
        "m = other.compile(m)",
        "m = re.compile('torch')",
        "m = functools.partial(torch.compile, backend='eager')",
        "if hasattr(torch, 'compile') and torch.compile is not None: ...",
        "torch.compile = lambda m: m",
        "m.compile(loss)",
        "m.compile(mode='fast')",
        "m.compile(**options)",
        "m.compile(dynamic=True, optimizer='adam')",
        "m.compile()",
        "m = nn.Linear(1, 1)\nm.compile(optimizer='adam')",
        "m = nn.Linear(1, 1)\nm.compile(backend='eager')",
        "m = nn.Linear(1, 1)\nm.compile",
    ],
)
def test_what_inductor_does_not_compile(line: str) -> None:
    check_noop(f"import torch\nfrom torch import nn\n{line}\n")


@pattern("P61")
@pytest.mark.parametrize("decorator", ["torch.compile", "torch.compile()", "torch.compile(dynamic=True)"])
def test_a_decorator_compiles(decorator: str) -> None:
    check_noop(f"import torch\n@{decorator}\ndef f(x):\n    return x\n", open_codes=["NPU512"])


@pattern("P61")
@pytest.mark.parametrize("call", ["compile()", "compile(fullgraph=True)", "compile(**args.compile)"])
def test_a_module_compiles_itself(call: str) -> None:
    net = "import torch\nclass Net(torch.nn.Module): ...\n"
    check_noop(f"{net}def f(args):\n    net = Net()\n    net.{call}\n", open_codes=["NPU512"])
    check_noop("import torch\ndef f(block, cfg):\n    block.compile(**cfg.compile.asdict())\n", open_codes=["NPU512"])
    check_noop("import torch\ndef f(block, cfg):\n    block.compile(fullgraph=cfg.full)\n", open_codes=["NPU512"])
    check_noop(f"{net}def f(args):\n    for each in Net().children():\n        each.{call}\n", open_codes=["NPU512"])


_OPTION = "import argparse, torch\np = argparse.ArgumentParser()\np.add_argument({})\nargs = p.parse_args()\nm = {}\n"


@pattern("P61")
@pytest.mark.parametrize(
    ("option", "call", "behind"),
    [
        ("'--backend', default='eager'", "torch.compile(m, backend=args.backend)", "--backend inductor"),
        ("'--fast', action='store_true'", "torch.compile(m, disable=not args.fast)", "--fast"),
        ("'--fast', action='store_true'", "torch.compile(m) if args.fast else m", "--fast"),
        ("'--backend', default='inductor'", "torch.compile(m, backend=args.backend)", ""),
        ("'--slow', action='store_true'", "torch.compile(m, disable=args.slow)", ""),
    ],
)
def test_what_an_option_asks_for(option: str, call: str, behind: str) -> None:
    """Of a backend or a switch that an option gives, the default decides what happens without it."""
    result = migrate(_OPTION.format(option, call))
    assert [(each.code, each.option) for each in result.findings] == [("NPU512", behind)]


@pytest.mark.parametrize(("arguments", "blocks"), [("*args, **kwargs", "later"), ("model, **kwargs", "")])
def test_what_a_function_hands_on_is_compiled_where_it_is_called(arguments: str, blocks: str) -> None:
    source = f"import torch\ndef faster(*args, **kwargs):\n    return torch.compile({arguments})\n"
    assert [each.blocks for each in migrate(source).findings] == [blocks]


@pytest.mark.parametrize(
    ("files", "blocks"),
    [
        ({}, ""),
        ({"net.py": "import torch._dynamo\n\ntorch._dynamo.config.suppress_errors = True\n"}, "slow"),
        ({"net.py": "import torch._dynamo\n\ntorch._dynamo.config.suppress_errors = False\n"}, ""),
        ({"tests/test_net.py": "import torch._dynamo\n\ntorch._dynamo.config.suppress_errors = True\n"}, ""),
    ],
)
def test_what_cannot_be_compiled_runs_as_it_is_where_errors_are_suppressed(files: dict[str, str], blocks: str) -> None:
    result = migrate("import torch\n\nf = torch.compile(g)\n", files=files)
    assert [(each.code, each.blocks) for each in result.findings if each.open] == [("NPU512", blocks)]
