"""What APIs of torch come to when they are executed: the operators they reach, as scripts/facts/executed_apis.json.

    pip install '.[emulator]' expecttest && transplt emulator install
    transplt run --cuda off scripts/executed_apis.py [NAME ...]

Needs `expecttest`, which torch's own tests import. Each API is run by the released torch_npu on the emulated card: its
dispatcher decides what PyTorch takes apart, and an operator that PyTorch composes is followed into what it is composed
of; what has a kernel on the CPU alone (mkldnn, flash attention of the CPU) is not reached. Forward and backward; the
arguments are the samples of torch's own tests (`op_db`, `module_db`), and `executed_recipes.py` for what has none
there. Names given restrict the run, for a look: nothing is written.
"""

from __future__ import annotations

import datetime
import itertools
import re
import signal
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "scripts"))

import fact_store  # noqa: E402
from build_emulator_tables import operators_table  # noqa: E402
from support_decisions import NO_KERNEL_NEEDED  # noqa: E402

#: Samples of one entry of torch's tests that are run, and seconds that one may take.
_MOST, _SECONDS = 12, 20
_REFUSED = re.compile(r"operator '(aten::\S+)' is not currently supported on the NPU backend")
#: What PyTorch says where it asks for a device by name, and the operator that does.
_BY_NAME = {"Unsupported device type for mkldnn layout": "to_mkldnn"}
#: What the emulated card says of a type or shape that it refuses: the operators until there are reached all the same.
_TYPES = "NPU function error: call aclnn"
#: Kernels that PyTorch composes for a device that has none of its own.
_COMPOSED = ("CompositeImplicitAutograd", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional")
Run = Callable[[], Any]


def start() -> Any:
    """What counts the operators that torch_npu's dispatcher gives to a device, as long as this process lives."""
    import torch
    import torch_npu  # noqa: F401
    from torch.utils._python_dispatch import TorchDispatchMode

    class Reached(TorchDispatchMode):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.operators: Counter[str] = Counter()
            self.composing: list[Any] = []

        def __torch_dispatch__(self, operator: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            name, given = operator.name(), kwargs or {}
            has = partial(torch._C._dispatch_has_kernel_for_dispatch_key, name)
            dense = all(each.layout is torch.strided for each in args if isinstance(each, torch.Tensor))
            key = next(filter(has, _COMPOSED), None) if dense and not has("PrivateUse1") else None
            if key is not None and operator not in self.composing:
                self.composing.append(operator)
                try:
                    with self:  # what it is composed of is reached
                        return operator._op_dk(getattr(torch._C.DispatchKey, key), *args, **given)
                finally:
                    self.composing.pop()
            result = operator(*args, **given)
            self.operators[name] += not name.startswith("npu::")  # those are its own, which it has
            return result

    reached = Reached()
    reached.__enter__()
    return reached


def base_of(name: str) -> str:
    """`aten::add_.Tensor` -> `add`."""
    return name.removeprefix("aten::").partition(".")[0].rstrip("_")


@cache
def _overloads() -> dict[str, list[str]]:
    import torch

    found: dict[str, list[str]] = {}
    for full in torch._C._dispatch_get_all_op_names():
        if full.startswith("aten::"):
            found.setdefault(base_of(full), []).append(full)
    return found


def all_have(name: str, keys: tuple[str, ...]) -> bool:
    """Whether each overload of an operator has a kernel for one of the keys."""
    import torch

    has = torch._C._dispatch_has_kernel_for_dispatch_key
    return name in _overloads() and all(any(has(each, key) for key in keys) for each in _overloads()[name])


def composed(name: str) -> bool:
    """Whether PyTorch composes an operator of others where a device has no kernel for it."""
    return all_have(name, _COMPOSED)


class Executed:
    """The operators of each API: in every run, and in some."""

    def __init__(self, record: Any) -> None:
        self._record = record
        self._known = set(operators_table()["aten"])
        self.always: dict[str, set[str]] = {}
        self.some: dict[str, set[str]] = {}
        self.failed: dict[str, str] = {}

    def _lacks(self, name: str) -> bool:
        return name not in self._known and name not in NO_KERNEL_NEEDED and not composed(name)

    def run(self, apis: Iterable[str], run: Run) -> None:
        """Run it once, forward and backward, for all its names."""
        before = self._record.operators.copy()
        error, refused = "", None
        try:
            with _limit(_SECONDS):
                _backward(run())
        except Exception as raised:
            error = f"{type(raised).__name__}: {raised}".splitlines()[0][:160]
            refused = _REFUSED.search(str(raised))
        reached = {base_of(name) for name in self._record.operators - before}
        if refused:
            reached.add(f"sparse:{base_of(refused[1])}")
        reached.update(name for words, name in _BY_NAME.items() if words in error)
        if refused or _TYPES in error or any(self._lacks(name) for name in reached):
            error = ""  # what it came to until there is enough to know
        for api in apis:
            if error:
                self.failed[api] = error
                continue
            self.always[api] = self.always.get(api, reached) & reached
            self.some[api] = self.some.get(api, set()) | reached


class _limit:
    """Raises TimeoutError in the block after so many seconds."""

    def __init__(self, seconds: int) -> None:
        self._seconds = seconds

    def __enter__(self) -> None:
        def over(*_: object) -> None:
            raise TimeoutError(f"more than {self._seconds} s")

        signal.signal(signal.SIGALRM, over)
        signal.alarm(self._seconds)

    def __exit__(self, *_: object) -> None:
        signal.alarm(0)


def _tensors(value: Any) -> Iterator[Any]:
    import torch

    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _tensors(each)


def _backward(result: Any) -> None:
    import torch

    outputs = [each for each in _tensors(result) if each.requires_grad and each.grad_fn is not None]
    if outputs:
        torch.autograd.backward(outputs, [torch.ones_like(each) for each in outputs])


def _moved(value: Any) -> Any:
    """The same on the card, as leaves."""
    import torch

    if isinstance(value, torch.Tensor):
        if value.device.type != "cpu":
            return value
        moved = value.detach().to("npu")
        return moved.requires_grad_() if value.requires_grad else moved
    if isinstance(value, dict):
        return {key: _moved(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        parts = [_moved(each) for each in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return torch.device("npu") if value == torch.device("cpu") or value == "cpu" else value


def operators() -> Iterator[tuple[list[str], Run]]:
    """The samples of `op_db`: functions, methods, and methods that write."""
    import torch
    from torch.testing._internal.common_methods_invocations import op_db

    for op in op_db:
        names = [op.name, *(alias.name.removeprefix("torch.") for alias in op.aliases)]
        apis = [f"torch.{name}" for name in names if _there(torch, name)]
        for name in names:
            apis += [f"torch.Tensor.{name}"] if op.method_variant and hasattr(torch.Tensor, name) else []
            apis += [f"torch.Tensor.{name}_"] if op.inplace_variant and hasattr(torch.Tensor, f"{name}_") else []
        if not apis or op.name.startswith("_"):
            continue
        dtype = next((d for d in (torch.float32, torch.int64, torch.bool, torch.complex64) if d in op.dtypes), None)
        if dtype is None:
            continue
        grad = op.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
        samples = op.sample_inputs("cpu", dtype, requires_grad=grad)
        for sample in _first(samples):
            given = _moved([sample.input, list(sample.args), sample.kwargs])
            if any(each.numel() == 0 for each in _tensors(given)):
                continue
            yield apis, lambda op=op, given=given: op.op(given[0], *given[1], **given[2])


def modules() -> Iterator[tuple[list[str], Run]]:
    """The samples of `module_db`: a module is made before, its call is what is recorded."""
    import torch
    from torch.testing._internal.common_modules import module_db

    for info in module_db:
        name = f"torch.{info.name}"
        inputs = info.module_inputs_func(info, "cpu", torch.float32, requires_grad=True, training=True)
        for sample in _first(iter(inputs)):
            made, called = sample.constructor_input, sample.forward_input
            if called is None:
                continue
            module = info.module_cls(*_moved(list(made.args)), **_moved(made.kwargs)).to("npu").train()
            given = _moved([list(called.args), called.kwargs])
            yield [name, f"{name}.forward"], lambda module=module, given=given: module(*given[0], **given[1])


def _first(samples: Iterator[Any]) -> Iterator[Any]:
    try:
        yield from itertools.islice(samples, _MOST)
    except Exception:  # a generator of samples that needs what is not installed
        return


def _there(torch: Any, name: str) -> bool:
    found = torch
    for part in name.split("."):
        found = getattr(found, part, None)
    return callable(found)


def _runs(executed: Executed) -> list[dict[str, str]]:
    """APIs that reach the same operators together: a function, its method, and the one that writes."""
    groups: dict[tuple[str, str], list[str]] = {}
    for api in sorted(executed.some):
        always, some = executed.always[api], executed.some[api]
        groups.setdefault((" ".join(sorted(always)), " ".join(sorted(some - always))), []).append(api)
    return [
        {"apis": " ".join(apis), "always": always, **({"some": some} if some else {})}
        for (always, some), apis in groups.items()
    ]


def main(names: list[str]) -> None:
    """Run everything and write the facts; with names, print what these reach."""
    import torch

    record = start()
    from executed_recipes import recipes

    warnings.simplefilter("ignore")
    executed = Executed(record)
    for apis, run in itertools.chain(operators(), modules(), recipes()):
        if not names or set(names) & set(apis):
            torch.manual_seed(0)
            executed.run(apis, run)
    failed = {api: why for api, why in sorted(executed.failed.items()) if api not in executed.some}
    if names:
        for api in names:
            print(api, sorted(executed.always.get(api, ())), sorted(executed.some.get(api, ())), failed.get(api, ""))
        return
    reached = sorted(set().union(*executed.some.values()))
    whole = [name for name in operators_table()["aten"] if all_have(name, ("CompositeImplicitAutograd",))]
    table = {
        "about": "What APIs of torch come to when they are executed on the emulated card (scripts/executed_apis.py). "
        "`runs`: APIs and the operators that they reach, without overloads and the underscore of those that write: "
        "`always` with all arguments that were tried, `some` with some of them. sparse: the operator was called with a "
        "sparse tensor, and torch_npu has none for it. `composed`: PyTorch composes all overloads of others. `whole`: "
        "so it would do with these, but some torch_npu has a kernel for them: it never comes to what an API of that "
        "name reached. `failed`: what could not be executed, and why.",
        "torch": torch.__version__,
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "composed": " ".join(name for name in reached if composed(name)),
        "whole": " ".join(whole),
        "runs": _runs(executed),
        "failed": failed,
    }
    fact_store.write("executed_apis", table)
    print(f"{len(executed.some)} APIs executed, {len(failed)} not, {len(reached)} operators")


if __name__ == "__main__":
    main(sys.argv[1:])
