"""The settings of a run: frozen, picklable, the same for every file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fnmatch import fnmatch

from transplt.base.finding import Finding
from transplt.base.npus_alone import FOR_NPUS_ALONE
from transplt.base.plan_decisions import Decided

#: Minor versions of PyTorch that a migration can aim at (of torch_npu for 2.2 no wheel was read).
TORCH_VERSIONS = (
    "2.1", "2.2", "2.3", "2.4", "2.5", "2.6", "2.7", "2.8", "2.9", "2.10", "2.11", "2.12", "2.13", "2.14",
)  # fmt: skip
DEFAULT_TORCH_VERSION = "2.14"
#: What edits are for: NPUs alone, or NPUs and what the program ran on before.
STYLES = ("npu", "portable")
#: Where `import torch_npu` goes: what the version of torch needs, each file that uses torch, or where programs begin.
IMPORTS = ("auto", "each-file", "entry")


@dataclass(frozen=True, slots=True)
class TorchTarget:
    """The torch that a migration aims at, why, and the releases that go with it (empty where they are not known).

    `gap` says that the project pins a version for which there is no torch_npu; this is the nearest that has one.
    `changes` are sentences on what PyTorch changed between the version that the project was written for and this one.
    `weighed` are lines on what the files of the project ask for, where more than one does, and on what else decided;
    `disagreements` are findings of files that exclude each other. `oldest` is the first torch that a requirement with a
    lower bound admits; empty where none is older than `version`, and where that was asked for. `of_parts`: it is the
    default, since folders of the project pin torch of their own.
    """

    version: str
    why: str
    torch_npu: str = ""
    cann: str = ""
    release: str = ""
    changes: tuple[str, ...] = ()
    gap: bool = False
    weighed: tuple[str, ...] = ()
    disagreements: tuple[Finding, ...] = ()
    oldest: str = ""
    of_parts: bool = False

    @property
    def pin(self) -> str:
        """The full version of torch to install, where it is known."""
        return self.release or self.version


@dataclass(frozen=True, slots=True)
class Settings:
    """What the engine needs to know besides a file's bytes.

    `user_rules` holds the texts of the user's rule files in the order given (name, JSON text), a later one wins; they
    were validated before. `fixers` of other packages are (name, distribution, version, digest of the sources); so are
    `codemods`, classes of LibCST by their full names.
    `per_file_ignores` maps a glob of paths to code prefixes; the paths are relative to the
    folder of the settings, and `base` leads from there to the input: empty, or a folder with a trailing slash.
    `analysis` also looks up what the project uses of torch (engine/analysis), for the card `hardware` (A2, A3 or
    950DT); `library` holds names of other projects that need a compiled extension, with its name. `entry`, the path of
    a main file relative to the input, makes the program that it starts distributed; `targets` are the models to wrap,
    as they are spelled (all that train when there are none), `check_ranks` the steps between two comparisons of all
    ranks (0: none), `refusal` says why that program is left as it is. `amp` is native, apex or off; `loss_scale` is
    `dynamic` or a number; `tune` and `adapt` hold (name, value) of the tunings and of the adaptors. `in_place` says
    that the file stays where it is, so that comments which ignore nothing may go. `texts`: text for people is edited
    too; `docs`: so are commands and code in documents. `taken_back`: (theme, path, proof) of what was asked for and
    left out, because what it had written stopped or differed. `pins`: packages with the versions that the project asks
    for (`==4.46.0`), those of its parts as `part/numpy`. `helper_file`: functions that a port needs go into a file of
    the project (npu_port.py), else into each file that calls them; `helper` is the module's in the portable style,
    `line_length` the project's own.
    `completes`: (path, names) of what other files take from modules of the project that choose the device; None where
    these stay as they are. `own_card`: (operator, type) of calls that ran on such a card of the user's own.
    `only_lines` maps paths to the lines (first, last) that are looked at, None for all. `decided` is what a plan says
    (`transplt plan`). `picked` maps paths to the byte ranges of the edits that are made, of all that could be; None for
    all.
    """

    torch_version: str = DEFAULT_TORCH_VERSION
    oldest_torch: str = ""  # the first that the project admits, where it says so: for the portable style
    specify_device: bool = False
    similar: bool = False
    unsafe_fixes: bool = False
    annotate: bool = False
    annotate_edits: bool = False
    texts: bool = False
    docs: bool = False
    style: str = "npu"  # one of STYLES
    torch_npu_import: str = "auto"  # one of IMPORTS
    user_rules: tuple[tuple[str, str], ...] = ()
    fixers: tuple[tuple[str, str, str, str], ...] = ()
    codemods: tuple[tuple[str, str, str, str], ...] = ()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    base: str = ""
    analysis: bool = False
    hardware: str = "A2"
    library: tuple[tuple[str, str], ...] = ()
    entry: str = ""
    targets: tuple[str, ...] = ()
    check_ranks: int = 0
    refusal: str = ""
    amp: str = "off"
    amp_dtype: str = "float16"
    opt_level: str = ""  # O1 or O2; empty where each program gets the one that is right for it
    loss_scale: str = "dynamic"
    amp_flag: bool = False
    combine_ddp: bool = False
    tune: tuple[tuple[str, str], ...] = ()
    adapt: tuple[tuple[str, str], ...] = ()
    in_place: bool = False
    pins: tuple[tuple[str, str], ...] = ()
    only_lines: tuple[tuple[str, tuple[tuple[int, int], ...]], ...] | None = None
    taken_back: tuple[tuple[str, str, str], ...] = ()
    helper_file: bool = False
    helper: str = ""
    line_length: int = 88
    completes: tuple[tuple[str, tuple[str, ...]], ...] | None = ()
    own_card: tuple[tuple[str, str], ...] = ()
    decided: Decided | None = None
    picked: tuple[tuple[str, tuple[tuple[int, int], ...]], ...] | None = None

    @property
    def adds_code(self) -> bool:
        """True when an option asks for more than a migration does, also in files that do not name CUDA."""
        return bool(self.entry or self.amp != "off" or self.tune or self.adapt or self.taken_back)

    def asks_for(self, theme: str) -> bool:
        """True for a theme of fixers that was asked for: `distributed`, `amp`, `amp:apex`, `tune:fused-optimizer`,
        `adapt:rope`.
        """
        if self.style == "portable" and theme in FOR_NPUS_ALONE:
            return False
        kind, _, name = theme.partition(":")
        if kind in ("tune", "adapt"):
            return any(name == each for each, _ in (self.tune if kind == "tune" else self.adapt))
        return bool(self.entry) if kind == "distributed" else self.amp != "off" and name in ("", self.amp)

    def without_themes(self, *kept: str) -> Settings:
        """The same settings for a migration alone, with those of the tunings that are `kept`."""
        tune = tuple(each for each in self.tune if each[0] in kept)
        return replace(self, entry="", refusal="", amp="off", tune=tune, adapt=(), taken_back=(), decided=None)

    def ignored_codes(self, path: str) -> tuple[str, ...]:
        """Prefixes of the codes that are switched off for a file (relative to the input); `NPU` stands for all.

        A pattern names whole paths from the folder of the settings, and its `*` goes through folders: as in
        .gitignore, `legacy.py` would also mean `sub/legacy.py`, and `src/*.py` no longer `src/sub/x.py`.
        """
        full = self.base + path
        off = self.decided.codes_off(path) if self.decided is not None else ()
        return off + tuple(
            code for pattern, codes in self.per_file_ignores if fnmatch(full, pattern) for code in codes or ("NPU",)
        )

    def pins_at(self, path: str) -> dict[str, str]:
        """The pins that hold for a file: those of the folders that it lies in over those of the project."""
        each_with_folder = ((name.rpartition("/"), asked) for name, asked in self.pins)
        return {name: asked for (at, slash, name), asked in each_with_folder if path.startswith(at + slash)}

    @property
    def whole(self) -> bool:
        """True where all edits of a file are made that can be: no lines and no numbers of edits were asked for."""
        return self.only_lines is None and self.picked is None

    def picks(self, path: str, start: int, end: int) -> bool:
        """True when the edit of a byte range is among those that are made, as far as somebody picks some."""
        return self.picked is None or (start, end) in dict(self.picked).get(path, ())

    def leaves(self, path: str) -> bool:
        """True for a file that a plan leaves as it is."""
        return self.decided is not None and self.decided.leaves(path)


def listed(named: tuple[tuple[str, str], ...]) -> str:
    """Names with their values as an option takes them: `fused-optimizer,max-steps=100`."""
    return ",".join(f"{name}={value}" if value else name for name, value in named)
