"""Builds rules/support/gone_names.json: names that packages had, and have no more; read from wheels, nothing is run.

    python scripts/build_gone_names.py FOLDER [--used REPOSITORIES]

FOLDER holds wheels of each package of the table, old ones and one new one (`pip download --no-deps`); of a release that
has none, its sources in a zip of such a name (gym). Gone is a module that the new wheel does not have, and a name that
no statement of its module binds there. Where a module makes its names as it is imported (`__getattr__`, lazy loaders,
compiled code) a name counts as there, unless the stub beside it spells out `__all__` (NumPy): what is neither there nor
in the stub is gone. With `--used` the table keeps what public programs use, and what has an answer below: the .py files
below each folder or in each bare git repository are searched for the names. What a migration renames itself
is left out. Of twenty packages it needs 6 GiB and six minutes.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "scripts"))

from packaging.version import Version  # noqa: E402
from wheel_reader import Wheel  # noqa: E402

from transplt.base.settings import TORCH_VERSIONS  # noqa: E402
from transplt.fixers.codemods.old_names import _TYPES  # noqa: E402
from transplt.rules.companions import first_wheel  # noqa: E402
from transplt.rules.rule_set import builtin_rules  # noqa: E402

TABLE = ROOT / "rules" / "support" / "gone_names.json"
#: The folder of a package in its wheel, where that has another name.
_FOLDERS = {"scikit_image": "skimage", "scikit_learn": "sklearn", "pillow": "PIL", "Pillow": "PIL"}
#: What makes names as a module is imported.
_OFFERED = re.compile(r"(?:def|class)\s+(\w+)|^(\w+)\s*=|[\"'](\w+)[\"']", re.M)
_DYNAMIC = re.compile(r"def __getattr__|_LazyModule|lazy_loader|lazy\.attach|globals\(\)|\bexec\(|sys\.modules\[")
#: What a stub binds at its top; it may be written for a newer Python than this one.
_BOUND_IN_A_STUB = re.compile(r"^(?:def|class|type)\s+(\w+)|^(\w+)\s*[:=]|^    (?:\w+ as )?(\w+),(?: .*)?$", re.M)
#: What packages are called where they are imported.
_ALIASES = {"numpy": "np", "pandas": "pd", "networkx": "nx", "pytorch_lightning": "pl"}
#: Packages whose release goes with that of torch, which a migration writes.
_BESIDE_TORCH = ("torchvision", "torchaudio")
#: How deep the names lie that a package offers to all, of those that nearly every program of its field imports.
_FRONT = {"skimage": 3, "torchvision": 3, "networkx": 2, "pandas": 2, "torchmetrics": 2}
_NEWEST_TORCH = TORCH_VERSIONS[-1]
#: The first release that can be imported beside torch 2 (third_party.json).
_OLDEST = {"timm": "0.4.5"}
#: What takes the place of a name, where it has another one.
_HELP = {
    "timm.data.transforms._pil_interp": "import str_to_pil_interp from timm.data.transforms, and call that",
    "timm.models.apply_test_time_pool": "import apply_test_time_pool from timm.layers, with timm 0.9 or newer",
    "timm.models.convert_splitbn_model": "import convert_splitbn_model from timm.layers, with timm 0.9 or newer",
    "timm.models.efficientnet_blocks": "import from timm.models._efficientnet_blocks, with timm 0.9 or newer",
    "timm.optim.Nadam": "write torch.optim.NAdam",
    "timm.optim.nadam.Nadam": "write torch.optim.NAdam",
    "timm.optim.radam.RAdam": "write torch.optim.RAdam",
    "torchvision.models.model_urls": "write ResNet50_Weights.IMAGENET1K_V1.url, with the class of each model",
    "torchvision.models.resnet.model_urls": "write ResNet50_Weights.IMAGENET1K_V1.url, with the class of each model",
    "numpy.trapz": "write np.trapezoid, which NumPy has since 2.0, or scipy.integrate.trapezoid",
    "pytorch_lightning.utilities.distributed": "import rank_zero_only from pytorch_lightning.utilities",
    "pytorch_lightning.utilities.seed.seed_everything": "import seed_everything from pytorch_lightning",
    "numpy.asscalar": "write x.item()",
    "numpy.msort": "write np.sort(x, axis=0)",
    "skimage.measure.marching_cubes_lewiner": "write skimage.measure.marching_cubes",
    "pandas.np": "import numpy",
    "pandas.value_counts": "write pandas.Series(x).value_counts()",
    "networkx.from_numpy_matrix": "write networkx.from_numpy_array",
    "networkx.to_numpy_matrix": "write networkx.to_numpy_array, and @ for the product of two",
    "networkx.from_scipy_sparse_matrix": "write networkx.from_scipy_sparse_array",
    "networkx.to_scipy_sparse_matrix": "write networkx.to_scipy_sparse_array",
    "networkx.read_gpickle": "write pickle.load(open(path, 'rb'))",
    "networkx.write_gpickle": "write pickle.dump(graph, open(path, 'wb'))",
    "scipy.integrate.simps": "write scipy.integrate.simpson(y, x=x)",
    "scipy.linalg.pinv2": "write scipy.linalg.pinv",
    "scipy.misc.face": "import face from scipy.datasets, which needs pooch",
    "scipy.misc.ascent": "import ascent from scipy.datasets, which needs pooch",
    "scipy.ndimage.imread": "write imageio.imread(path)",
    "scipy.signal.hanning": "import hann from scipy.signal.windows",
    "numpy.row_stack": "write np.vstack",
    "numpy.VisibleDeprecationWarning": "write np.exceptions.VisibleDeprecationWarning, from NumPy 1.25 on",
    "numpy.in1d": "write np.isin, which keeps the shape of its first argument",
    "numpy.NINF": "write -np.inf",
    "numpy.asfarray": "write np.asarray(x, dtype=float)",
    "numpy.find_common_type": "write np.result_type, which promotes Python numbers otherwise",
    "numpy.safe_eval": "write ast.literal_eval",
    "sklearn.preprocessing.Imputer": "import SimpleImputer from sklearn.impute",
    "sklearn.cross_validation": "import from sklearn.model_selection, whose splitters take the data in split()",
    "sklearn.grid_search": "import from sklearn.model_selection",
    "torchmetrics.IoU": "write torchmetrics.JaccardIndex(task=..., num_classes=...)",
    "torchmetrics.F1": "write torchmetrics.F1Score(task=..., num_classes=...)",
    "torchmetrics.PSNR": "import PeakSignalNoiseRatio from torchmetrics.image",
    "torchmetrics.SSIM": "import StructuralSimilarityIndexMeasure from torchmetrics.image",
    "torchmetrics.FID": "import FrechetInceptionDistance from torchmetrics.image.fid",
    "torchmetrics.AverageMeter": "write torchmetrics.MeanMetric",
    "datasets.load_metric": "install evaluate, and write evaluate.load",
    "huggingface_hub.cached_download": "write huggingface_hub.hf_hub_download(repo_id, filename)",
    "skimage.feature.greycomatrix": "write graycomatrix",
    "skimage.feature.greycoprops": "write graycoprops",
    **{
        f"timm.models.layers.{name}": "import from timm.layers instead of timm.models.layers, with timm 0.9 or newer"
        for name in "activations attention_pool2d helpers linear mlp norm_act patch_embed".split()
    },
}
#: What the rules and old_names.py rename.
_RENAMED = {f"numpy.{name}" for name in _TYPES} | builtin_rules(_NEWEST_TORCH).names.keys()
_LEFT_OUT = re.compile(r"(?:^|\.)(?:tests?|testing|conftest|_?vendor(?:ed)?|externals?|_\w+|setup)(?:\.|$)")


class Package:
    """The modules of one wheel and what stands in them."""

    def __init__(self, path: Path) -> None:
        self.wheel = Wheel(path)
        self.name = self.wheel.package = _FOLDERS.get(self.wheel.package, self.wheel.package)
        self.version = self.wheel.version

    @cached_property
    def compiled(self) -> set[str]:
        """Modules that are compiled, and those of the folders around all modules."""
        found = set()
        for name in self.wheel.archive.namelist():
            if name.startswith(f"{self.name}/") and name.endswith((".so", ".pyd", ".pyi")):
                found.add(name.partition(".")[0].replace("/", "."))
        return found

    @cached_property
    def folders(self) -> set[str]:
        modules = [*self.wheel.sources, *self.compiled]
        return {".".join(each.split(".")[:end]) for each in modules for end in range(1, each.count(".") + 2)}

    @cached_property
    def defined(self) -> set[str]:
        """The names of all functions and classes, and all words in strings: what a lazy module may offer."""
        kept = (member for module, member in self.wheel.sources.items() if "_expired_" not in module)
        text = "\n".join(map(self.wheel.text, kept))
        stubs = [each for each in self.wheel.archive.namelist() if each.endswith(".pyi")]
        named = {name for each in stubs for name in re.findall(r"\w+", self.wheel.text(each))}
        return named | {name for each in _OFFERED.findall(text) for name in each if name}

    @cache  # noqa: B019
    def stub(self, module: str) -> tuple[frozenset[str], frozenset[str]]:
        """What the stub of a package binds at its top, and what its `__all__` spells out."""
        member = f"{module.replace('.', '/')}/__init__.pyi"
        text = self.wheel.text(member) if member in self.wheel.archive.namelist() else ""
        spelled = {name for all_ in re.findall(r"^__all__ = \[(.*?)^\]", text, re.M | re.S)
                   for name in re.findall(r'"(\w+)"', all_)}  # fmt: skip
        bound = {name for found in _BOUND_IN_A_STUB.findall(text) for name in found if name}
        return frozenset(bound | spelled), frozenset(spelled)

    @cache  # noqa: B019
    def bound(self, module: str, seen: frozenset[str] = frozenset()) -> tuple[frozenset[str], frozenset[str], bool]:
        """What a module binds, which of it is of this package, and whether it may have more names than that."""
        try:
            tree = self.wheel.tree(module)
        except SyntaxError:
            return frozenset(), frozenset(), True
        names, own = set(), set()
        open_ = bool(_DYNAMIC.search(self.wheel.text(self.wheel.sources[module])))
        is_package = self.wheel.sources[module].endswith("/__init__.py")
        for node in ast.walk(tree):
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    names.add(node.name)
                    if node in tree.body:
                        own.add(node.name)
                case ast.Import():
                    names.update((each.asname or each.name).split(".")[0] for each in node.names)
                case ast.ImportFrom():
                    parts = module.split(".")
                    parts = parts[: len(parts) - node.level + is_package] if node.level else []
                    base = ".".join([*parts, *([node.module] if node.module else [])])
                    inside = base.split(".")[0] == self.name
                    for each in node.names:
                        if each.name != "*":
                            names.add(each.asname or each.name)
                            if inside and is_package:
                                own.add(each.asname or each.name)
                        elif not inside or base in self.compiled - self.wheel.sources.keys():
                            open_ = True
                        elif base in self.wheel.sources and base not in seen:
                            more, theirs, loose = self.bound(base, seen | {module})
                            names |= more
                            own |= {name for name in theirs if is_package and not name.startswith("_")}
                            open_ |= loose
                case ast.Name(ctx=ast.Store()):
                    names.add(node.id)
        own |= {each.id for node in tree.body if isinstance(node, ast.Assign) for each in node.targets
                if isinstance(each, ast.Name) and not each.id.startswith("__")}
        return frozenset(names), frozenset(own), open_

    def has(self, name: str) -> bool:
        """Whether a full name is there, or may be."""
        parts = name.split(".")
        for end in range(len(parts), 0, -1):
            module = ".".join(parts[:end])
            if module in self.folders:
                break
        else:
            return False
        if end == len(parts):
            return True
        if module not in self.wheel.sources:
            return module in self.compiled
        names, _, loose = self.bound(module)
        if parts[end] in names:
            return True
        there, spelled = self.stub(module)
        if spelled:
            return parts[end] in there
        return loose and (parts[end] in self.defined or module in self.compiled or not self.wheel.sources)

    def offers(self) -> Iterator[str]:
        """The full names of modules, and of what is defined in them or handed on by a package."""
        for module in self.wheel.sources:
            if not _LEFT_OUT.search(module):
                yield module
                yield from (f"{module}.{name}" for name in self.bound(module)[1] | self.stub(module)[0])


def gone(wheels: list[Package]) -> dict[str, tuple[str, str]]:
    """Names -> the newest of the older wheels that has one, and the oldest behind it that has not."""
    *older, newest = sorted(wheels, key=lambda each: Version(each.version))
    found: dict[str, tuple[str, str]] = {}
    for at, package in enumerate(older):
        for name in package.offers():
            if not newest.has(name):
                without = next(each for each in [*older[at + 1 :], newest] if not each.has(name))
                if without is newest or not any(each.has(name) for each in older[older.index(without) :]):
                    found[name] = package.version, without.version
    return {name: row for name, row in found.items() if not _inside(name, found)}


def _inside(name: str, found: dict[str, Any]) -> bool:
    parts = name.split(".")
    return any(".".join(parts[:end]) in found for end in range(1, len(parts)))


def used(repositories: list[Path], roots: set[str]) -> tuple[set[str], set[str]]:
    """What programs import from modules of packages, as full names; and pairs such as `np.trapz`."""
    names, pairs = set(), set()
    start = rf"^[ \t]*(from|import)[ \t]+({'|'.join(sorted(roots))})\b"
    for each in repositories:
        text = _lines(each, "-E", "-A12", start)
        for module, listed in re.findall(r"from\s+([\w.]+)\s+import\s+(\([^)]*\)|[^\n(]+)", text):
            names.add(module)
            names.update(f"{module}.{name}" for name in re.findall(r"(\w+)(?:\s+as\s+\w+)?", listed))
        names.update(re.findall(r"import\s+([\w.]+)", text))
        pairs.update(_lines(each, "-oE", r"[A-Za-z_][A-Za-z_0-9]*\.[A-Za-z_][A-Za-z_0-9]*").split())
    return names, pairs


def _lines(repository: Path, *how: str) -> str:
    bare = (repository / "HEAD").exists()
    where, tree = (["--git-dir", str(repository), "grep"], ["HEAD"]) if bare else (["grep", "--no-index"], [])
    command = ["git", *where, "-hI", *how, *tree, "--", "*.py"]
    run = subprocess.run(command, capture_output=True, check=False, cwd=None if bare else repository)
    return run.stdout.decode("utf-8", "replace")


def kept(name: str, seen: tuple[set[str], set[str]]) -> bool:
    """Whether programs use a name, or it stands in the front of a package that nearly all of them import."""
    if name in _RENAMED or name in _HELP:
        return name not in _RENAMED
    parts = name.split(".")
    alias = _ALIASES.get(parts[0], parts[0]) if len(parts) == 2 else parts[-2]
    front = len(parts) <= _FRONT.get(parts[0], 0) and not parts[-1].startswith("_")
    return front or name in seen[0] or f"{alias}.{parts[-1]}" in seen[1]


def rows_of(package: list[Package], seen: tuple[set[str], set[str]]) -> Iterator[dict[str, Any]]:
    """What the table says of one package: a row for the names that went together and have one answer."""
    newest = max(package, key=lambda each: Version(each.version))
    dist = newest.wheel.archive.filename.rpartition("/")[2].split("-")[0].replace("_", "-").lower()  # type: ignore[union-attr]
    oldest = first_wheel(dist, "3.10") or _OLDEST.get(dist, "0")
    found: dict[tuple[str, str, str], list[str]] = {}
    for name, (had, without) in sorted(gone(package).items()):
        if kept(name, seen):
            found.setdefault((had, without, _HELP.get(name, "")), []).append(name)
    for (had, without, answer), names in sorted(found.items()):
        older = f"require {dist}<={had}" if Version(had) >= Version(oldest) else "keep a copy"
        row: dict[str, Any] = {"names": names, "python": "3.10", "until": [dist, without, oldest]}
        if dist in _BESIDE_TORCH:  # that of torch 2.1 has all that the newest alone is without
            row, older = {"names": names, "since": "2.1" if without != newest.version else _NEWEST_TORCH}, "keep a copy"
        yield row | {
            "each": True,
            "message": f"{dist} no longer has this name: {had} had it, {without} does not",
            "help": answer or f"look for a replacement in the release notes of {dist}, or {older}",
            "source": f"the wheels of {dist} {had} and {without}",
        }


def write(packages: dict[str, list[Package]], rows: list[dict[str, Any]]) -> None:
    """Write the table, with the wheels that it was read from."""
    versions = {name: sorted({each.version for each in found}, key=Version) for name, found in sorted(packages.items())}
    about = (
        "Names that packages had and have no more, in the form of refused_calls.json, `packages`. Written by "
        "scripts/build_gone_names.py: names that public programs use, of the wheels in `source`."
    )
    lines = ",\n".join(f"  {json.dumps(row)}" for row in rows)
    meta = json.dumps({"about": about, "source": versions})
    TABLE.write_text(f'{{\n "_meta": {meta},\n "packages": [\n{lines}\n ]\n}}\n', encoding="utf-8")


def main() -> None:
    """Read the wheels and the programs, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--used", type=Path, nargs="*", default=[])
    given = parser.parse_args()
    packages: dict[str, list[Package]] = {}
    for path in sorted(given.folder.rglob("*.whl")):
        package = Package(path)
        packages.setdefault(package.name, []).append(package)
    seen = used(given.used, packages.keys())
    rows = [row for _, each in sorted(packages.items()) if len(each) > 1 for row in rows_of(each, seen)]
    write(packages, rows)


if __name__ == "__main__":
    main()
