"""Writes rules/support/torch_names.json: what an installed torch calls its public objects, by introspection.

    python scripts/torch_names.py

Needs torch; the version it was made with stands in the file. `aliases` are other public names of a documented object
(`torch.nn.modules.conv.Conv2d` is `torch.nn.Conv2d`), by the module they are in; `tensor_results` are the functions
and methods all of whose overloads return one tensor, and the layers whose forward says that it does; `values` are
public names that hold no function or class (dtypes, constants); `modules` are the public modules, with those that the
wheels of newer versions have (torch_modules.py); `stars` is what `from module import *` brings, of the modules from
which programs take everything.
"""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import sys
import types
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "scripts"))

import torch_modules  # noqa: E402

#: Modules of which tutorials and old programs import everything.
STARS = (
    "torch.nn", "torch.nn.init", "torch.nn.parallel", "torch.optim", "torch.optim.lr_scheduler",
    "torch.optim.swa_utils", "torch.utils.data",
)  # fmt: skip


def exported(module: types.ModuleType) -> list[str]:
    """What `from module import *` brings."""
    names = getattr(module, "__all__", None)
    return sorted(names if names is not None else (name for name in vars(module) if not name.startswith("_")))


def public_modules() -> dict[str, types.ModuleType]:
    """Every public module of torch that can be imported."""
    found: dict[str, types.ModuleType] = {"torch": torch}
    for info in pkgutil.walk_packages(torch.__path__, "torch.", onerror=lambda name: None):
        name = info.name
        if not torch_modules.is_public(name):
            continue
        try:
            found[name] = importlib.import_module(name)
        except BaseException:
            continue
    return found


def resolve(name: str) -> Any:
    """The object behind a dotted name, None where there is none."""
    value: Any = torch
    for part in name.split(".")[1:]:
        try:
            value = getattr(value, part)
        except Exception:
            return None
    return value


def returns_tensor(operator: str) -> bool:
    """True when every overload of an operator returns exactly one tensor."""
    schemas = torch._C._jit_get_schemas_for_operator(f"aten::{operator}")
    schemas = [schema for schema in schemas if not any(argument.is_out for argument in schema.arguments)]
    return bool(schemas) and all(
        len(schema.returns) == 1 and str(schema.returns[0].type) == "Tensor" for schema in schemas
    )


def annotated_tensor(function: Any) -> bool:
    """True for a Python function that says it returns a tensor."""
    try:
        return inspect.signature(function).return_annotation in (torch.Tensor, "Tensor", "torch.Tensor")
    except (TypeError, ValueError):
        return False


def tensor_results() -> dict[str, list[str]]:
    """Names by owner (torch, torch.nn.functional, torch.Tensor, torch.nn) whose result is one tensor."""
    found: dict[str, list[str]] = {}
    for owner, where in (
        ("torch", torch),
        ("torch.nn.functional", torch.nn.functional),
        ("torch.Tensor", torch.Tensor),
    ):
        found[owner] = sorted(
            name
            for name in dir(where)
            if not name.startswith("_")
            and callable(getattr(where, name, None))
            and not isinstance(getattr(where, name), type)
            and (returns_tensor(name) or annotated_tensor(getattr(where, name)))
        )
    found["torch"] = sorted({*found["torch"], "tensor", "as_tensor", "from_numpy"})
    found["torch.nn"] = sorted(
        name
        for name in dir(torch.nn)
        if isinstance(getattr(torch.nn, name), type)
        and issubclass(getattr(torch.nn, name), torch.nn.Module)
        and annotated_tensor(getattr(torch.nn, name).forward)
    )
    return found


def main() -> None:
    """Write the table."""
    documented = json.loads((ROOT / "rules" / "support" / "api_support.json").read_bytes())["names"]
    names = [f"{owner}.{name}" for owner, listed in documented.items() for name in listed]
    objects: dict[int, str] = {}
    for name in sorted(names, key=lambda text: (text.count("."), text)):
        value = resolve(name)
        if value is not None and (callable(value) or isinstance(value, type)):
            objects.setdefault(id(value), name)
    modules = public_modules()
    aliases: dict[str, dict[str, str]] = defaultdict(dict)
    values: dict[str, list[str]] = defaultdict(list)
    known = set(names)
    for module, where in modules.items():
        listed = set(getattr(where, "__all__", ()))
        for name in sorted(vars(where)):
            value = vars(where)[name]
            full = f"{module}.{name}"
            if name.startswith("_") or full in modules:
                continue
            if isinstance(value, types.ModuleType):
                continue
            if callable(value) or isinstance(value, type):
                own = getattr(value, "__module__", None) == module
                canonical = objects.get(id(value))
                package = hasattr(where, "__path__")
                if canonical and canonical != full and full not in known and (own or name in listed or package):
                    aliases[module][name] = canonical
            elif type(value).__module__ != "typing":
                values[module].append(name)
    compact: dict[str, dict[str, list[str]]] = {}
    for module, table in sorted(aliases.items()):
        groups: dict[str, list[str]] = defaultdict(list)
        for name, canonical in sorted(table.items()):
            owner, _, last = canonical.rpartition(".")
            groups[owner].append(name if name == last else f"{name}={last}")
        compact[module] = dict(sorted(groups.items()))
    table = {
        "source": f"torch {torch.__version__.split('+')[0]}, by introspection (scripts/torch_names.py)",
        "modules": sorted(modules),
        "aliases": compact,
        "values": {module: names for module, names in sorted(values.items()) if names},
        "tensor_results": tensor_results(),
        "tensor_members": sorted(name for name in dir(torch.Tensor) if not name.startswith("_")),
        "module_members": sorted(name for name in dir(torch.nn.Module) if not name.startswith("_")),
    }
    table["stars"] = {name: exported(modules[name]) for name in STARS}
    torch_modules.write(table, ROOT / torch_modules.TABLE)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
