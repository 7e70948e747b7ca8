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
    Tuning("fused-optimizer", "NPU750", "transplt.tunings.fused_optimizer"),
    Tuning("fused-clip", "NPU751", "transplt.tunings.fused_clip"),
    Tuning("compile-mode", "NPU752", "transplt.tunings.compile_mode"),
    Tuning("internal-format", "NPU753", "transplt.tunings.internal_format"),
    Tuning("hf32", "NPU754", "transplt.tunings.hf32"),
    Tuning("ddp-arguments", "NPU755", "transplt.tunings.ddp"),
    Tuning("data-loader", "NPU756", "transplt.tunings.loaders"),
    Tuning("drop-last", "NPU757", "transplt.tunings.drop_last"),
    Tuning("non-blocking", "NPU758", "transplt.tunings.non_blocking"),
    Tuning("extensions", "NPU759", "transplt.tunings.extensions"),
    Tuning("fusion-attention", "NPU760", "transplt.tunings.fusion_attention"),
    Tuning("rms-norm", "NPU761", "transplt.tunings.rms_norm"),
    Tuning("rotary", "NPU762", "transplt.tunings.rotary"),
    Tuning("swiglu", "NPU763", "transplt.tunings.swiglu"),
    Tuning("finite-masks", "NPU764", "transplt.tunings.finite_masks"),
    Tuning("masked-assignment", "NPU765", "transplt.tunings.masked_assignment"),
    Tuning("window-roll", "NPU768", "transplt.tunings.window_roll"),
    Tuning("float32", "NPU770", "transplt.tunings.float32"),
    Tuning("int32", "NPU771", "transplt.tunings.int32"),
    Tuning("jit-script", "NPU772", "transplt.tunings.jit_script"),
    Tuning("max-steps", "NPU782", "transplt.tunings.max_steps", on_request=True, value=r"[1-9]\d*", example="100"),
    Tuning("step-time", "NPU780", "transplt.tunings.step_time", on_request=True),
    Tuning("profiler", "NPU781", "transplt.tunings.profiler", on_request=True, value=_SPAN, example="5-10"),
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
