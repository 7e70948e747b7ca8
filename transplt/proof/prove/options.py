"""The options of `transplt prove`, as one record."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from transplt.base.render.options import argument, flag, option, shared
from transplt.proof.launch.options import RunOptions, Trace
from transplt.proof.launch.shared_options import CARD_PACK, COMPILE, DATA, NPUS, PYTHON, SECONDS, STUBS, TORCH_VERSION
from transplt.proof.prove.witness import WITNESSES

#: What a report is written to.
REPORT = click.Path(dir_okay=False, path_type=Path)


@dataclass(frozen=True)
class Prove:
    """What is proved, how, and where it is reported."""

    main: str = option("The script to run in both folders (default: main.py).", default="", metavar="FILE")
    nproc: str = option(
        "Numbers of processes to try, one after another.", default="1", show_default=True, metavar="N,..."
    )
    npus: int = shared(NPUS)
    steps: int = option(
        "Stop the programs after N optimizer steps; 0: let them finish.",
        type=click.IntRange(0), default=20, show_default=True, metavar="N",
    )
    style: str | None = option(
        "portable: also run MIGRATED on the stand-in for CUDA, equal to the bit (default: what MIGRATED records).",
        type=click.Choice(("npu", "portable")),
    )
    against: str = option(
        "What ORIGINAL runs on: the stand-in for CUDA, or the emulated NPU by torch_npu's own one-line way, "
        "torch_npu.contrib.transfer_to_npu.",
        type=click.Choice(tuple(WITNESSES)), default="cuda", show_default=True,
    )
    tests: str | None = option(
        "Also run the project's own tests on the CPU, before and after: arguments of pytest.", metavar="WORDS"
    )
    shuffle_ranks: bool = flag("With several processes: also delay each at random (by --seed), to find races.")
    seed: int = option("Random seed, if the program sets none.", type=int, default=1234, show_default=True)
    threads: int = option("Threads per process.", type=click.IntRange(1), default=1, show_default=True)
    stubs: tuple[str, ...] = shared(STUBS)
    data: tuple[str, ...] = shared(DATA)
    torch_version: str | None = shared(TORCH_VERSION)
    timeout: float = option(
        "Stop a run after this time.", type=SECONDS, default=600.0, show_default=True, metavar="SECONDS"
    )
    python: str = shared(PYTHON)
    no_cache: bool = flag("Run the original again instead of using its cached runs.", envvar="TRANSPLT_NO_CACHE")
    reports: tuple[Path, ...] = option(
        "Write a report, FILE.json or FILE.html, and add the result to report.html of MIGRATED.",
        "--report", multiple=True, type=REPORT, metavar="FILE",
    )
    card_pack: Path | None = shared(CARD_PACK)
    kernels: bool = flag("Only compare the Triton kernels: repeat the launches of ORIGINAL with the kernels of both.")
    calls: Path | None = option(
        "With --kernels: use the calls in FILE (from --save-calls) instead of running the script.",
        type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE"
    )
    save_calls: Path | None = option("With --kernels: write the recorded calls.", type=REPORT, metavar="FILE")
    programs: int = option(
        "With --kernels: only run N programs of a larger grid (first, last and a sample); 0: all.",
        type=click.IntRange(0), default=512, show_default=True, metavar="N"
    )
    tolerance: float = option(
        "With --kernels: allowed difference of floats, as a share of the largest in the tensor (default: not at all, "
        "and by roundings where a kernel or its launch was changed).",
        type=click.FloatRange(0), default=0.0, metavar="SHARE",
    )
    compiled: bool = shared(COMPILE)
    compile_mode: bool = flag(
        "Also run MIGRATED eagerly and with torch.compile, to see where the graph breaks and what is recompiled."
    )
    exit_zero: bool = flag("Exit with 0 instead of 1.")
    original: Path = argument(type=click.Path(exists=True, path_type=Path))
    migrated: Path = argument(type=click.Path(exists=True, path_type=Path))
    args: tuple[str, ...] = argument(nargs=-1, type=click.UNPROCESSED)
    json_path: Path | None = None
    html_path: Path | None = None

    @property
    def json_report(self) -> Path | None:
        """Where the record is written as JSON: the last one named for it."""
        return next((each for each in reversed(self.reports) if each.suffix != ".html"), self.json_path)

    @property
    def html_report(self) -> Path | None:
        return next((each for each in reversed(self.reports) if each.suffix == ".html"), self.html_path)

    @property
    def folders(self) -> tuple[str, str]:
        """The two programs as they were named."""
        return str(self.original), str(self.migrated)

    def run_options(self) -> RunOptions:
        return RunOptions(
            self.main, self.args, self.python, torch_version=self.torch_version or "", random="cpu", stubs=self.stubs,
            timeout=self.timeout, trace=Trace(self.seed, self.steps), threads=self.threads, npus=self.npus,
            portable=self.style == "portable", compiled=self.compiled,
        )  # fmt: skip
