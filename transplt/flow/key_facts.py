"""Which keys of configurations, options of command lines and variables the code of a project reads, and into what."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, NamedTuple

#: A name that a configuration goes by: `cfg`, `train_args`, `self.opt`, `FLAGS`, `hparams`.
CONFIGURATION = re.compile(
    r"(?:cfgs?|conf|configs?|configuration|args|arguments|opts?|options?|h_?params?|params|parameters|flags|settings?"
    r"|kwargs|namespace|(?:^|_)(?:hps?|ns))_?\d*$",
    re.I,
)

How = Literal["key", "field", "spread", "option", "variable", "name", "cudnn"]


class KeyRead(NamedTuple):
    """One place that reads a value from outside.

    key: `root` is what is read from, `path` the keys from there; field: of a class that holds settings; spread:
    `f(**root[path])`, whose keys are parameters of the callee; option: of the command line of the script `root`;
    variable: of the environment, `root` that its parts are counted; name: one that speaks of CUDA and holds anything;
    cudnn: one that is named after cuDNN, `root` where its value goes (cudnn_settings.py). `slot` holds the value
    (transplt/flow/slots.py); of a spread it begins with `p:` and the project's own callee, or with `f:` and the name
    of somebody else's. `marks`: what its file alone says of it.
    """

    how: How
    root: str
    path: tuple[str, ...]
    slot: str
    marks: tuple[str, ...] = ()


@dataclass(slots=True)
class KeyReads:
    """Those of all files whose value is a device or a backend, with all others of the same last key.

    `keys` by the last key, `spreads` by the last key of what is spread, `options` and `variables` by name. `names` are
    those of attributes, keys and options that speak of CUDA; `cudnn` those whose values only go to the settings of
    torch.backends.cudnn.
    """

    keys: dict[str, tuple[KeyRead, ...]] = field(default_factory=dict)
    spreads: dict[str, tuple[KeyRead, ...]] = field(default_factory=dict)
    options: dict[str, tuple[KeyRead, ...]] = field(default_factory=dict)
    variables: dict[str, tuple[KeyRead, ...]] = field(default_factory=dict)
    names: frozenset[str] = frozenset()
    cudnn: frozenset[str] = frozenset()

    def named(self) -> set[str]:
        """The last keys, options and variables, as Python names them."""
        return {name.replace("-", "_") for table in (self.keys, self.options, self.variables) for name in table}

    def counts(self, variable: str) -> bool:
        """True for a variable of the environment whose parts are counted."""
        return any(read.root for read in self.variables.get(variable, ()))

    @classmethod
    def join(cls, reads: Iterable[KeyRead], marks_of: Callable[[str], frozenset[str]]) -> KeyReads:
        """The sum of what all files read; `marks_of` says what the values of a slot are."""
        joined = cls()
        tables: dict[How, dict[str, tuple[KeyRead, ...]]] = {
            "key": joined.keys,
            "spread": joined.spreads,
            "option": joined.options,
            "variable": joined.variables,
        }
        by_name: dict[tuple[How, str], list[KeyRead]] = {}
        every = set(reads)
        joined.names = frozenset(read.path[-1] for read in every if read.how == "name")
        of_cudnn = [(read.path[-1], read.root) for read in every if read.how == "cudnn"]
        joined.cudnn = frozenset(name for name, _ in of_cudnn) - {name for name, root in of_cudnn if not root}
        for read in sorted(each for each in every if each.how not in ("name", "cudnn")):
            how: How = "key" if read.how == "field" else read.how
            by_name.setdefault((how, read.path[-1] if read.path else read.root), []).append(read)
        for (how, name), found in by_name.items():
            if how == "spread" or any(read.marks or marks_of(read.slot) for read in found):
                tables[how][name] = tuple(found)
        return joined


@lru_cache(maxsize=10_000)
def names_a_configuration(name: str) -> bool:
    """True for a name that a configuration goes by."""
    return CONFIGURATION.search(name) is not None
