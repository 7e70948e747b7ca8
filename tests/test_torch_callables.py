"""rules/support/torch_callables.json: what calls of torch do; and what was decided where lists differed."""

from __future__ import annotations

import ast
import builtins
import importlib
import pkgutil
import warnings
from pathlib import Path
from typing import Any

import pytest

from tests.test_program_values import program_of
from tests.test_startup import imported
from transplt.fixers.amp.reading import runs_network
from transplt.fixers.codemods.data_parallel import _name_of
from transplt.fixers.distributed.program.module_reads import _is_asked_for
from transplt.fixers.distributed.program.random_draws import seeded
from transplt.precision.calls import _RANDOM
from transplt.program.whole_models import handed_on
from transplt.rules.tables import read_table
from transplt.rules.torch_callables import MODULE, TABLE, TENSOR, full_names, last_names, names_of

PACKAGE = Path(__file__).resolve().parent.parent / "transplt"
ROWS: list[dict[str, str]] = read_table(TABLE)["rows"]
DDP = "torch.nn.parallel.DistributedDataParallel"
#: Names that no support table lists: of torch_npu, attributes, what is private, and two functions.
UNLISTED = {
    f"{MODULE}.npu", f"{MODULE}.training", f"{DDP}.module", f"{DDP}.require_backward_grad_sync", f"{TENSOR}.npu",
    f"{TENSOR}._to_copy",
    f"{TENSOR}.npu_format_cast", "torch._dynamo.optimize", "torch.logspace", "torch.empty_permuted",
}  # fmt: skip
#: What an object has once it is made; or torch_npu, or the dispatcher alone.
NOT_IN_TORCH = UNLISTED - {"torch._dynamo.optimize", "torch.logspace", "torch.empty_permuted"} | {
    "torch.npu.manual_seed", "torch.npu.manual_seed_all",
}  # fmt: skip


def test_rows_are_whole() -> None:
    words = read_table(TABLE)["_meta"]["is"]
    assert {word for row in ROWS for word in row["is"].split()} == set(words)
    assert all(row["source"] and row["names"] for row in ROWS)
    assert {key for row in ROWS for key in row} == {"of", "names", "is", "source", "why"}


def test_a_name_stands_once() -> None:
    every = [f"{row['of']}.{name}" for row in ROWS for name in row["names"].split()]
    assert sorted(every) == sorted(set(every))


def test_names_are_known_to_the_support_tables() -> None:
    listed = {name for names in read_table("support/api_support.json")["names"].values() for name in names}
    listed |= {*read_table("support/torch_names.json")["tensor_members"]}
    of_torch = {name for name in full_names() if name.startswith("torch.") and not name.startswith("torch.ops.")}
    assert {name for name in of_torch if name.rpartition(".")[2] not in listed} == UNLISTED


def test_names_of_python_exist() -> None:
    assert [name for name in names_of("builtins") if not hasattr(builtins, name)] == []
    assert [name for name in names_of("pickle") if not hasattr(importlib.import_module("pickle"), name)] == []


def test_a_misspelt_question_is_an_error() -> None:
    with pytest.raises(KeyError, match="to_crad"):
        names_of(MODULE, "to_card", "to_crad")


@pytest.mark.parametrize("command", [["--help"], ["check", "--help"], ["--version"]])
def test_the_table_is_not_read_for_help(tmp_path: Path, command: list[str]) -> None:
    assert "transplt.rules.torch_callables" not in imported("", tmp_path, *command)[0]


@pytest.mark.parametrize(
    ("owner", "word", "names", "others"),
    [
        (MODULE, "to_card", "to cuda npu", "cpu type"),
        (MODULE, "returns_self", "cpu npu bfloat16 type apply share_memory", "compile zero_grad load_state_dict"),
        (MODULE, "alters", "cpu type load_state_dict compile", "train eval zero_grad state_dict"),
        (MODULE, "module_only", "parameters buffers named_modules train", "children state_dict zero_grad to"),
        (MODULE, "same_in_ddp", "parameters forward training", "named_parameters state_dict compile"),
        (MODULE, "runs_nothing", "register_forward_hook get_submodule compile", "forward"),
        (MODULE, "casts_to_16_bits", "half bfloat16 type", "float double to"),
        (TENSOR, "to_card", "to cuda npu", "cpu xpu type"),
        (TENSOR, "keeps_type", "cuda cpu detach data permute repeat requires_grad_", "to type_as float item bool"),
        (TENSOR, "same_tensor", "contiguous clone detach", "cpu view data"),
        (TENSOR, "cuts", "detach data item argmax argsort", "clone size"),
        (TENSOR, "asks", "dtype shape requires_grad data_ptr", "item detach"),
        (TENSOR, "shape", "size numel ndim", "dtype device"),
        (TENSOR, "moves", "to cuda xpu pin_memory record_stream", "contiguous clone detach type"),
        (TENSOR, "ports", "clone detach numpy _to_copy npu_format_cast", "requires_grad_ view"),
        (TENSOR, "fills", "zero_ normal_ new_full exponential_", "copy_ set_"),
        (TENSOR, "torch_only", "short type_as cuda scatter_", "to type view squeeze sum"),
        ("torch", "draws", "randperm normal poisson", "empty zeros"),
        ("torch", "default_type", "rand full logspace normal", "randint zeros_like"),
        ("builtins", "asks", "callable issubclass id", "len print float"),
        ("builtins", "shows", "print repr format", "len"),
        ("torch.ops", "on_npu", "aten npu torch_npu higher_order", "torchvision symm_mem quantized load_library"),
    ],
)  # fmt: skip
def test_what_was_decided(owner: str, word: str, names: str, others: str) -> None:
    assert set(names.split()) <= names_of(owner, word)
    assert set(others.split()) <= names_of(owner) - names_of(owner, word)


def test_wrappers_and_loaders() -> None:
    assert last_names("wraps") == {"DataParallel", "DistributedDataParallel", "FullyShardedDataParallel", "compile"}
    assert full_names("cuda_only") == full_names("replicates") | {"torch.nn.parallel.data_parallel"}
    assert last_names("orders") == {"RandomSampler", "SequentialSampler"}
    assert last_names("shuffles") == {"RandomSampler", "WeightedRandomSampler", "SubsetRandomSampler"}
    assert last_names("unwritten") >= {"empty", "new_empty_strided", "resize_"}


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("net.cuda()", "net"),
        ("net.bfloat16().cpu()", "net"),
        ("net.double().apply(init).share_memory()", "net"),
        ("net.type(torch.float16)", "net"),
        ("net.compile()", None),
        ("net.zero_grad()", None),
    ],
)
def test_a_model_behind_its_methods(text: str, model: str | None) -> None:
    node = ast.parse(text, mode="eval").body
    found = handed_on(node)
    assert (None if found is None else ast.unparse(found)) == model
    assert _name_of(node) == (model or "")


@pytest.mark.parametrize("wrapper", ["DataParallel", "FSDP.FullyShardedDataParallel", "nn.convert_sync_batchnorm"])
def test_a_model_in_its_wrapper(wrapper: str) -> None:
    found = handed_on(ast.parse(f"{wrapper}(net)", mode="eval").body)
    assert found is not None and ast.unparse(found) == "net"


@pytest.mark.parametrize(
    ("call", "seeds"),
    [("torch.manual_seed(1)", True), ("torch.npu.manual_seed_all(1)", True), ("torch.get_rng_state()", False)],
)
def test_what_seeds(call: str, seeds: bool) -> None:
    assert seeded(program_of(f"import torch\n{call}\n")) is seeds


@pytest.mark.parametrize(
    ("test", "asks"), [("hasattr(a, 'module')", True), ("type(a) is Wrapper", True), ("len(a) > 1", False)]
)
def test_a_condition_that_asks_what_a_model_is(test: str, asks: bool) -> None:
    program = program_of(f"net = a.module if {test} else a\n")
    assert _is_asked_for(program.files[0].scan.attributes["module"][0]) is asks


@pytest.mark.parametrize(
    ("method", "runs"),
    [("flatten", True), ("expand", True), ("head", True), ("register_forward_hook", False), ("bfloat16", False)],
)
def test_a_layer_may_be_called_like_a_method_of_tensors(method: str, runs: bool) -> None:
    program = program_of(f"class Net:\n    def run(self, x):\n        return self.{method}(x)\n")
    file = program.files[0]
    assert runs_network(program, file, file.scan.calls[0], set()) is runs


def test_the_probe_draws_what_the_table_says() -> None:
    """It runs beside a program, without transplt."""
    tree = ast.parse((PACKAGE / "precision" / "instrument" / "transplt_probe.py").read_bytes())
    told = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id in ("_DRAWS", "_FILLS")
    }
    assert set(told["_DRAWS"]) == names_of("torch", "draws")
    assert set(told["_FILLS"]) == names_of(TENSOR, "draws")


def test_recorded_draws_are_known_as_random() -> None:
    drawn = names_of("torch", "draws") | names_of(TENSOR, "draws")
    assert [name for name in sorted(drawn) if not _RANDOM.fullmatch(name)] == []


#: Words of other things among which these stand: what a class of the program does by itself; what changes nothing,
#: of texts and containers too.
MIXED = {"flow/own_cuda.py", "fixers/distributed/program/side_effects.py"}


def test_no_module_has_such_a_list_of_its_own() -> None:
    own = set()
    for path in PACKAGE.rglob("*.py"):
        if {"site", "site_cuda"} & {*path.parts}:
            continue
        for node in ast.walk(ast.parse(path.read_bytes())):
            words: set[Any] = set()
            if isinstance(node, (ast.Set, ast.Tuple, ast.List)):
                words = {getattr(each, "value", None) for each in node.elts}
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 2000:
                words = set(node.value.split())
            if {"to", "cuda", "npu"} <= words or {"isinstance", "hasattr"} <= words:
                own.add(path.relative_to(PACKAGE).as_posix())
    assert own == MIXED


# --- against an installed torch ---------------------------------------------------------------------------------------


@pytest.mark.torch
def test_names_exist_in_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    # setuptools, which torch.utils.cpp_extension imports, wants a distutils of its own, and another test may have
    # imported that of Python 3.11 already: it fails or warns, by its version.
    monkeypatch.setenv("SETUPTOOLS_USE_DISTUTILS", "stdlib")
    wanted = {name for name in full_names() if name.startswith("torch.")} - NOT_IN_TORCH
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in sorted(wanted):
            if not name.startswith("torch.ops."):
                pkgutil.resolve_name(name)


@pytest.mark.torch
def test_methods_that_give_the_module_back(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(torch, "compile", lambda function: function)
    given: dict[str, tuple[Any, ...]] = {
        "to": ("cpu",), "type": (torch.float32,), "apply": (lambda part: None,), "to_empty": (),
        "load_state_dict": (torch.nn.Linear(1, 1).state_dict(),),
    }  # fmt: skip
    for name in sorted(names_of(MODULE, "returns_self", "alters") | {"zero_grad"}):
        if name in ("cuda", "npu"):
            continue
        net = torch.nn.Linear(1, 1)
        result = getattr(net, name)(*given.get(name, ()), **({"device": "cpu"} if name == "to_empty" else {}))
        assert (result is net) == (name in names_of(MODULE, "returns_self")), name


@pytest.mark.torch
def test_methods_that_keep_the_type_and_that_cut() -> None:
    import torch

    given: dict[str, tuple[Any, ...]] = {
        "view": (6,), "reshape": (6,), "permute": (1, 0), "transpose": (0, 1), "unsqueeze": (0,), "expand": (2, 3),
        "expand_as": (torch.zeros(2, 3),), "repeat": (1, 1),
    }  # fmt: skip
    for name in sorted(names_of(TENSOR, "keeps_type") - {"cuda", "npu", "pin_memory"}):
        leaf = torch.rand(2, 3, dtype=torch.float64, requires_grad=True)
        result = getattr(leaf, name)
        result = result(*given.get(name, ())) if callable(result) and name != "data" else result
        assert result.dtype == leaf.dtype and sorted(result.flatten()) == sorted(leaf.flatten()), name
        assert result.requires_grad != (name in names_of(TENSOR, "cuts")), name
        if name in names_of(TENSOR, "same_tensor"):
            assert torch.equal(result, leaf), name


@pytest.mark.torch
def test_methods_that_tensors_alone_have() -> None:
    import numpy

    others = (numpy.ndarray, list, dict, tuple, str, bytes, set, int, float)
    only = names_of(TENSOR, "torch_only")
    assert [name for name in sorted(only) if any(hasattr(kind, name) for kind in others)] == []


@pytest.mark.torch
def test_what_writes_all_of_its_tensor() -> None:
    import torch

    for name in sorted(names_of(TENSOR, "draws") | {"zero_"}):
        tensor = torch.full((50,), 7.0)
        method = getattr(tensor, name)
        method(*([0.5] if name == "geometric_" else []))
        assert not (tensor == 7.0).all(), name
