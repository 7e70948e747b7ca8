"""The first hour on the card: start this file on the machine that has it, in the environment of the training.

    python card_pack.py [OUT]

It needs Python, torch and torch_npu; transplt is not needed. It looks at the host, calls each operator that the program
reached once on the card and compares it with the CPU, trains the first steps and compares them with the recording, and
writes one file (card_result.json in this folder, or OUT). Read it with `transplt card-read FILE`.
"""

from __future__ import annotations

import datetime
import json
import math
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from typing import Any

PACK = os.path.dirname(os.path.abspath(__file__))
ON_CARD = os.path.join(PACK, "on_card")
FORMAT = 1
#: Seconds in which a part has to come on by one line.
PATIENCE = 900.0
#: How far figures of training may be off, as shares: where all is float32, and where a half type computes.
TOLERANCES = {"loss": (0.005, 0.02), "gradient": (0.03, 0.15), "parameter": (0.005, 0.02)}
#: Gradients below this share of the norm of all are held against that share.
FLOOR = 0.02
#: Where a gradient is below this share, Adam makes steps of full length of its roundings: its parameter says nothing.
NOISE = 1e-4
#: Figures that are told of a step.
MOST_TOLD = 20
_ABOUT = """
import json, sys, torch
import torch_npu
card = torch.npu.get_device_name(0)
print(json.dumps({"torch": torch.__version__, "torch_npu": torch_npu.__version__, "card": card,
    "emulated": "npu_emulator" in sys.modules}))
"""


def start(name: str, *arguments: str, folder: str = PACK, environment: dict[str, str] | None = None) -> str:
    """Run a part of the pack to its end: why it did not come there, empty where it did. The last of `arguments` that
    exists as a file is where it tells how far it is."""
    told = next(each for each in arguments if os.path.isfile(each) and each.endswith(".lines"))
    command = [sys.executable, os.path.join(ON_CARD, name), *arguments]
    process = subprocess.Popen(command, cwd=folder, env={**os.environ, **(environment or {})})
    size, since = -1, time.monotonic()
    while True:
        try:
            code = process.wait(0.5)
            break
        except subprocess.TimeoutExpired:
            now = os.path.getsize(told)
            if now != size:
                size, since = now, time.monotonic()
            elif time.monotonic() - since > PATIENCE:
                process.kill()
                process.wait()
                return f"nothing came of it for {PATIENCE:.0f} seconds"
    return "" if not code else f"signal {-code}" if code < 0 else f"exit code {code}"


def rows_of(path: str) -> list[dict[str, Any]]:
    """The lines of JSON that a part wrote; the last one of a process that was killed may be cut."""
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.endswith("}\n")]


def host(folder: str) -> dict[str, Any]:
    """What `transplt doctor` says of this host."""
    out = _new(folder, "host.lines")
    why = start("card_host.py", out)
    found = rows_of(out)
    return found[-1] if found else {"failed": why or "it told nothing"}


def about() -> dict[str, Any]:
    """Versions and the name of the card, or why there is none."""
    done = subprocess.run([sys.executable, "-c", _ABOUT], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    lines = done.stdout.decode("utf-8", "replace").strip().splitlines()
    if done.returncode == 0 and lines:
        found: dict[str, Any] = json.loads(lines[-1])
        return found
    told = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return {"failed": told[-1][:500] if told else f"exit code {done.returncode}"}


def operators(folder: str, recorded: dict[str, Any]) -> list[dict[str, Any]]:
    """Each call with its outcome. A process that died goes on, in a new one, behind the call that killed it."""
    out, first, total = _new(folder, "operators.lines"), 0, len(recorded["calls"])
    outcomes: dict[int, dict[str, Any]] = {}
    while first < total:
        why = start("card_operators.py", os.path.join(PACK, "recorded.json"), out, str(first))
        rows = rows_of(out)
        outcomes.update((row["call"], row) for row in rows if "call" in row)
        begun = max((row["begun"] for row in rows if "begun" in row), default=-1)
        if begun < first:  # it did not come to a call
            for number in range(first, total):
                outcomes[number] = {"state": "not tried", "message": f"the card cannot be used: {why}"}
            break
        outcomes.setdefault(begun, {"state": "raised", "message": f"the process ended: {why}"})
        first = begun + 1
    found = []
    for number, call in enumerate(recorded["calls"]):
        outcome = {key: value for key, value in outcomes[number].items() if key != "call"}
        found.append({"op": call["op"], "types": call["types"], "shapes": call["shapes"], **outcome})
    left = [{"op": each["op"], "types": [], "shapes": [], "state": "not tried", "message": each["why"]}
            for each in recorded["left"]]  # fmt: skip
    return found + left


def training(folder: str, settings: dict[str, Any], *extra: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The steps of the program, run in a copy of its folder; and how it ended."""
    out = _new(folder, "training.lines")
    copy = os.path.join(folder, "program")
    shutil.copytree(os.path.join(PACK, "program"), copy, symlinks=True)
    environment = {"PYTHONHASHSEED": str(settings["seed"])}
    if settings["torchrun"]:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        ranks = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1"}
        environment.update(ranks, MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    why = start("card_training.py", PACK, out, *extra, folder=copy, environment=environment)
    rows = rows_of(out)
    ended = next((row for row in reversed(rows) if "stopped" in row), {"stopped": f"the process ended: {why}"})
    return [row for row in rows if "step" in row], ended


def compared(recorded: dict[str, Any], here: list[dict[str, Any]], ended: dict[str, Any]) -> dict[str, Any]:
    """The steps beside those of the recording."""
    half = any(kind in ("float16", "bfloat16") for call in recorded["calls"] for kind in call["types"])
    steps, wanted = [], recorded["steps"]
    noisy: set[tuple[int, int]] = set()
    for one, other in zip(wanted, here):
        least = NOISE * _norm_of(one["gradients"])
        noisy.update((one["optimizer"], at) for at, each in enumerate(one["gradients"]) if each is None or each < least)
        steps.append({
            "optimizer": one["optimizer"], "step": one["step"], "recorded": one["losses"], "losses": other["losses"],
            "seconds": other["seconds"], **_off(one, other, int(half), noisy),
        })  # fmt: skip
    if any(step["off"] for step in steps):
        state = "differs"
    elif ended["stopped"]:
        state = "stopped"
    elif len(steps) < len(wanted):
        state = "differs"
    else:
        state = "equal" if steps else "nothing recorded"
    message = ended["stopped"] or (f"{len(steps)} of {len(wanted)} steps" if len(steps) < len(wanted) else "")
    tolerances = {name: both[half] for name, both in TOLERANCES.items()}
    return {"state": state, "message": message, "steps": steps, "wanted": len(wanted), "tolerances": tolerances,
            "bytes": ended.get("bytes", 0)}  # fmt: skip


def _norm_of(norms: list[Any]) -> float:
    return math.sqrt(sum(each * each for each in norms if each is not None))


def _off(
    one: dict[str, Any], other: dict[str, Any], half: int, noisy: set[tuple[int, int]]
) -> dict[str, Any]:
    """The figures of a step that are off by more than the tolerance, and how many were compared."""
    off, count = [], 0
    for kind, key in (("loss", "losses"), ("gradient", "gradients"), ("parameter", "parameters")):
        least = FLOOR * _norm_of(one[key]) if kind == "gradient" else 1e-6
        if len(one[key]) != len(other[key]):
            off.append({"what": f"number of {key}", "recorded": len(one[key]), "here": len(other[key])})
        for number, (theirs, ours) in enumerate(zip(one[key], other[key])):
            if kind == "parameter" and (one["optimizer"], number) in noisy:
                continue
            count += 1
            if theirs is None or ours is None:
                agrees = theirs is ours
            elif not math.isfinite(theirs):
                agrees = theirs == ours or (theirs != theirs and ours != ours)
            else:
                agrees = abs(ours - theirs) <= TOLERANCES[kind][half] * max(abs(theirs), least)
            if not agrees:
                what = kind if kind == "loss" and len(one[key]) == 1 else f"{kind} {number}"
                off.append({"what": what, "recorded": theirs, "here": ours})
    return {"figures": count, "off": off[:MOST_TOLD], "more": max(len(off) - MOST_TOLD, 0)}


def _new(folder: str, name: str) -> str:
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8"):
        return path


def _read(name: str) -> Any:
    with open(os.path.join(PACK, name), encoding="utf-8") as file:
        return json.load(file)


def _finite(value: Any) -> Any:
    """JSON has no NaN and no infinities: they become texts."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return {key: _finite(each) for key, each in value.items()} if isinstance(value, dict) else value


def record() -> int:
    """Make the recording: what `transplt prove --card-pack` asks for on the emulated card."""
    with tempfile.TemporaryDirectory() as folder:
        steps, ended = training(folder, _read("pack.json"), "--calls")
    for step in steps:
        del step["seconds"]  # of another machine, and others each time
    recorded = {"steps": steps, "calls": [], "left": [], **ended}
    with open(os.path.join(PACK, "recorded.json"), "w", encoding="utf-8") as file:
        json.dump(recorded, file)
    return 0


def main(out: str) -> int:
    """All parts, and the file: 0 where all that was compared holds, 1 otherwise."""
    settings, recorded = _read("pack.json"), _read("recorded.json")
    result: dict[str, Any] = {"format": FORMAT, "kind": "transplt card result", "pack": settings}
    result["date"] = datetime.datetime.now(datetime.timezone.utc).date().isoformat()  # not datetime.UTC: older Pythons
    print("1. the host\n")
    with tempfile.TemporaryDirectory() as folder:
        result["host"] = host(folder)
        result["about"] = about()
        print(f"\n2. {len(recorded['calls'])} calls of operators, on the card and on the CPU")
        result["operators"] = operators(folder, recorded)
        print(f"\n3. {len(recorded['steps'])} steps of {settings['main']}\n")
        result["training"] = compared(recorded, *training(folder, settings))
    with open(out + ".part", "w", encoding="utf-8") as file:
        json.dump(_finite(result), file, indent=1, allow_nan=False)
        file.write("\n")
    os.replace(out + ".part", out)
    states = [each["state"] for each in result["operators"]]
    counts = ", ".join(f"{states.count(state)} {state}" for state in sorted({*states}))
    print(f"\noperators: {counts}\ntraining: {result['training']['state']} {result['training']['message']}".rstrip())
    print(f"send back: {out}")
    return int(bool({"differs", "raised"} & {*states}) or result["training"]["state"] != "equal")


if __name__ == "__main__":
    words = sys.argv[1:]
    if words == ["--record"]:
        sys.exit(record())
    if words and words[0].startswith("-"):
        sys.exit(str(__doc__))
    sys.exit(main(os.path.abspath(words[0]) if words else os.path.join(PACK, "card_result.json")))
