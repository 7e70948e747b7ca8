"""What optimizers take and leave in a step, in the file that a probe copy writes as well."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..trace.figures import host_alias
from ..trace.log import quiet
from . import steps

#: The same code as that of a probe copy, which lies beside its script.
_PROBES = Path(__file__).resolve().parents[4] / "precision" / "instrument"
_recorder: Any = None
_shared: Any = None
_configuration: Any = None
_written = False


def install() -> None:
    """Know where optimizers are made from here on."""
    global _recorder, _shared, _configuration
    _shared, _configuration = _loaded("transplt_optimizers"), _loaded("transplt_configuration")
    _shared.note_made()
    _configuration.note_loaders()
    _recorder = _shared.Optimizers(lambda: steps.asked()["task"] != "overflow", _names, host_alias)


def _loaded(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, _PROBES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def before(optimizer: Any) -> None:
    """An optimizer is about to step; before the first one, how the training is set up is written."""
    global _written
    with steps.busy(), quiet():
        if not _written:
            _written = True
            weights = {name: host_alias(parameter) for name, parameter in _named()}
            found = _configuration.configuration(_shared.all_made(), weights, steps.rank())
            _configuration.write(steps.asked()["folder"], found)
        _recorder.before(optimizer)


def after(optimizer: Any) -> None:
    """It has stepped."""
    with steps.busy(), quiet():
        _recorder.after(optimizer)


def write(folder: str) -> None:
    """The file of a step."""
    with steps.busy(), quiet():
        _shared.write(folder, _recorder.take())


def _names() -> dict[int, str]:
    """The names of parameters, by their ids."""
    found: dict[int, str] = {}
    for name, parameter in _named():
        found.setdefault(id(parameter), name)
    return found


def _named() -> Iterator[tuple[str, Any]]:
    from .modules import paths

    for module, path in paths():
        below = path.rpartition(".")[0]
        for key, value in module._parameters.items():
            if value is not None:
                yield (f"{below}.{key}" if below else key), value
