"""The tunings by name, and what `--tune` accepts."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

from transplt.errors import UsageError
from transplt.settings import TORCH_VERSIONS


@dataclass(frozen=True, slots=True)
class Tuning:
    """One tuning: `module` has its `plan(writer, value)`, `code` its page.

    `versions` are the torch versions whose torch_npu has what it writes. One `on_request` is not among `all`.
    `value` is a regular expression for what may follow the name after `=`, `example` shows it; none where empty.
    """

    name: str
    code: str
    module: str
    versions: tuple[str, ...] = TORCH_VERSIONS
    on_request: bool = False
    value: str = ""
    example: str = ""


#: Steps from the first to the last.
_SPAN = r"[1-9]\d*-[1-9]\d*"
_TUNINGS: tuple[Tuning, ...] = (
    Tuning("fused-optimizer", "NPU750", "transplt.themes.tunings.fused_optimizer"),
    Tuning("fused-clip", "NPU751", "transplt.themes.tunings.fused_clip"),
    Tuning("compile-mode", "NPU752", "transplt.themes.tunings.compile_mode"),
    Tuning("internal-format", "NPU753", "transplt.themes.tunings.internal_format"),
    Tuning("hf32", "NPU754", "transplt.themes.tunings.hf32"),
    Tuning("ddp-arguments", "NPU755", "transplt.themes.tunings.ddp"),
    Tuning("data-loader", "NPU756", "transplt.themes.tunings.loaders"),
    Tuning("drop-last", "NPU757", "transplt.themes.tunings.drop_last"),
    Tuning("non-blocking", "NPU758", "transplt.themes.tunings.non_blocking"),
    Tuning("extensions", "NPU759", "transplt.themes.tunings.extensions"),
    Tuning("fusion-attention", "NPU760", "transplt.themes.tunings.fusion_attention"),
    Tuning("rms-norm", "NPU761", "transplt.themes.tunings.rms_norm"),
    Tuning("rotary", "NPU762", "transplt.themes.tunings.rotary"),
    Tuning("swiglu", "NPU763", "transplt.themes.tunings.swiglu"),
    Tuning("finite-masks", "NPU764", "transplt.themes.tunings.finite_masks"),
    Tuning("masked-assignment", "NPU765", "transplt.themes.tunings.masked_assignment"),
    Tuning("window-roll", "NPU768", "transplt.themes.tunings.window_roll"),
    Tuning("float32", "NPU770", "transplt.themes.tunings.float32"),
    Tuning("int32", "NPU771", "transplt.themes.tunings.int32"),
    Tuning("jit-script", "NPU772", "transplt.themes.tunings.jit_script"),
    Tuning("max-steps", "NPU782", "transplt.themes.tunings.max_steps", on_request=True, value=r"[1-9]\d*", example="100"),
    Tuning("step-time", "NPU780", "transplt.themes.tunings.step_time", on_request=True),
    Tuning("profiler", "NPU781", "transplt.themes.tunings.profiler", on_request=True, value=_SPAN, example="5-10"),
)
TUNINGS = {tuning.name: tuning for tuning in _TUNINGS}


def parse_tunings(text: str, torch_version: str) -> tuple[tuple[str, str], ...]:
    """(name, value) of each tuning that a list such as `all,-drop-last,max-steps=100` asks for, in the table's order.

    A name with `-` in front is left out. UsageError for what is unknown, or named and missing in that torch_npu.
    """
    wanted: dict[str, str] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = item.partition("=")
        if name == "all":
            wanted.update(
                (each.name, "")
                for each in TUNINGS.values()
                if not each.on_request and torch_version in each.versions and each.name not in wanted
            )
            continue
        tuning = TUNINGS.get(name.removeprefix("-"))
        if tuning is None:
            close = difflib.get_close_matches(name.removeprefix("-"), ("all", *TUNINGS), n=1, cutoff=0.5)
            hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(('all', *TUNINGS))}"
            raise UsageError(f"--tune: there is no tuning {name.removeprefix('-')!r}; {hint}")
        if name.startswith("-"):
            wanted.pop(tuning.name, None)
            continue
        if torch_version not in tuning.versions:
            raise UsageError(f"--tune {name}: torch_npu for torch {torch_version} does not have what it writes")
        if (equals or (tuning.value and not re.fullmatch(tuning.value, ""))) and not re.fullmatch(tuning.value, value):
            example = f"write {name}={tuning.example}" if tuning.example else "it takes no value"
            raise UsageError(f"--tune {item}: {example}")
        if tuning.value == _SPAN and int(value.partition("-")[0]) > int(value.partition("-")[2]):
            raise UsageError(f"--tune {item}: the last step comes before the first")
        wanted[name] = value
    return tuple((name, wanted[name]) for name in TUNINGS if name in wanted)
