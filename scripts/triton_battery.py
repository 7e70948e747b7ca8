"""Compiles a small kernel for each of Triton's operations and types: scripts/facts/triton_compiled.json, by hand.

    python -m venv ENV && ENV/bin/pip install triton-ascend==3.2.0 ascendnpu-ir==1.2.0 pybind11
    ENV/bin/python scripts/triton_battery.py

Python 3.10 or 3.11, Linux, no CANN, no card, no torch: 3,000 compiles for two chips, some 15 minutes; what the file has
of the same versions is not compiled again, so that a run that was stopped goes on. scripts/build_triton.py reads it: by
operation the types that the compiler refuses on each chip, and what each chip has. A kernel has passed where the
compiler wrote the module whose memory is planned; the closed step behind it is not there.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import tempfile
from datetime import date
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import fact_store

#: The file of facts.
_NAME = "triton_compiled"
TYPES = {
    "bool": "i1", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16",
    "uint32": "u32", "uint64": "u64", "float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64",
    "float8e4": "fp8e4nv", "float8e5": "fp8e5",
}  # fmt: skip
#: Chips by the cards of rules/support/triton_types.json, and what the compiler for each is called.
CHIPS = {
    "910B": ("Ascend910B3", "bishengir-compile"),
    "950": ("Ascend910_9589", "bishengir-compile-a5"),
}
#: Chips of which only the specification is wanted.
SPECIFIED = {"910B": "Ascend910B2", "A3": "Ascend910_9391", "950": "Ascend910_9589"}
_ELEMENTWISE = {
    "abs": "tl.abs(x)", "add": "x + y", "sub": "x - y", "mul": "x * y", "div": "x / y", "floordiv": "x // y",
    "mod": "x % y", "cdiv": "tl.cdiv(x, y)", "neg": "-x", "and": "x & y", "or": "x | y", "xor": "x ^ y",
    "invert": "~x", "lshift": "x << 2", "rshift": "x >> 2", "lshift by a tile": "x << y", "rshift by a tile": "x >> y",
    "maximum": "tl.maximum(x, y)", "minimum": "tl.minimum(x, y)", "clamp": "tl.clamp(x, y, x)",
    "where": "tl.where(y == y, x, y)", "ceil": "tl.ceil(x)", "floor": "tl.floor(x)", "exp": "tl.exp(x)",
    "exp2": "tl.exp2(x)", "log": "tl.log(x)", "log2": "tl.log2(x)", "sqrt": "tl.sqrt(x)", "sqrt_rn": "tl.sqrt_rn(x)",
    "rsqrt": "tl.rsqrt(x)", "sin": "tl.sin(x)", "cos": "tl.cos(x)", "erf": "tl.erf(x)", "sigmoid": "tl.sigmoid(x)",
    "softmax": "tl.softmax(x)", "fma": "tl.fma(x, y, x)", "fdiv": "tl.fdiv(x, y)", "div_rn": "tl.div_rn(x, y)",
    "umulhi": "tl.umulhi(x, y)", "flip": "tl.flip(x)", "cumsum": "tl.cumsum(x, 0)", "cumprod": "tl.cumprod(x, 0)",
    "sort": "tl.sort(x)", "associative_scan": "tl.associative_scan(x, 0, _sum)",
    "full": "tl.full((64,), 3, x.dtype) + x",
    "zeros": "tl.zeros((64,), x.dtype) + x", "zeros_like": "tl.zeros_like(x) + x",
    "gather": "tl.gather(x, tl.arange(0, 64), 0)", "reshape": "tl.reshape(tl.reshape(x, (8, 8)) + 0, (64,))",
    "ravel": "tl.ravel(tl.reshape(x, (8, 8)) + 0)",
}  # fmt: skip
_COMPARED = {"eq": "x == y", "ne": "x != y", "lt": "x < y", "le": "x <= y", "gt": "x > y", "ge": "x >= y",
             "logical_and": "x.logical_and(y)", "logical_or": "x.logical_or(y)", "not": "not x"}  # fmt: skip
_REDUCED = {"sum": "tl.sum(x, 0)", "max": "tl.max(x, 0)", "min": "tl.min(x, 0)", "argmax": "tl.argmax(x, 0)",
            "argmin": "tl.argmin(x, 0)", "xor_sum": "tl.xor_sum(x, 0)", "reduce": "tl.reduce(x, 0, _sum)"}  # fmt: skip
_ATOMICS = {
    **{f"atomic_{each}": f"tl.atomic_{each}(O + at, x)" for each in "add max min and or xor xchg".split()},
    "atomic_cas": "tl.atomic_cas(O + at, x, y)",
    "atomic_add sem": 'tl.atomic_add(O + at, x, sem="relaxed")',
    "atomic_add scope": 'tl.atomic_add(O + at, x, scope="cta")',
}
_READ = ["at = tl.arange(0, 64)", "x = tl.load(X + at)", "y = tl.load(Y + at)"]
_SQUARES = [
    "m = tl.arange(0, 32)", "at = m[:, None] * 32 + m[None, :]", "x = tl.load(X + at)", "y = tl.load(Y + at)",
]  # fmt: skip
_POINTERS = [
    "p = tl.make_block_ptr(X, (64, 64), (64, 1), (0, 0), (16, 16), (1, 0))", "{}", "x = tl.load(p)",
    "q = tl.make_block_ptr(O, (64, 64), (64, 1), (0, 0), (16, 16), (1, 0))", "tl.store(q, x)",
]  # fmt: skip
_DESCRIBED = [
    "p = tl.make_tensor_descriptor(X, [64, 64], [64, 1], [16, 16])", "x = p.load([0, 0])",
    "q = tl.make_tensor_descriptor(O, [64, 64], [64, 1], [16, 16])", "q.store([0, 0], x)",
]  # fmt: skip
_DOT = "tl.store(O + at, tl.dot(x, y{}))"
#: Operation -> the lines of its kernel, and the type of what it writes (empty: that of its operands).
KERNELS = {
    **{name: ([*_READ, f"tl.store(O + at, {text})"], "") for name, text in _ELEMENTWISE.items()},
    **{name: ([*_READ, f"tl.store(O + at, ({text}).to(tl.int32))"], "int32") for name, text in _COMPARED.items()},
    **{
        name: ([*_READ, f"tl.store(O, {text})"], "int32" if name.startswith("arg") else "")
        for name, text in _REDUCED.items()
    },
    **{name: ([*_READ, text], "") for name, text in _ATOMICS.items()},
    **{
        f"cast to {name}": ([*_READ, f"tl.store(O + at, x.to(tl.{'int1' if name == 'bool' else name}))"], name)
        for name in TYPES
        if not name.startswith("float8")
    },
    "load": ([*_READ, "tl.store(O + at, x, mask=at < 50)"], ""),
    "store": (["at = tl.arange(0, 64)", "tl.store(O + at, tl.load(X + at, mask=at < 50, other=0))"], ""),
    "load of a number": (["tl.store(O, tl.load(X))"], ""),
    "make_block_ptr": ([line.format("") for line in _POINTERS if line != "{}"], ""),
    "advance": ([line.format("p = tl.advance(p, (16, 16))") for line in _POINTERS], ""),
    **dict.fromkeys(("make_tensor_descriptor", "load_tensor_descriptor", "store_tensor_descriptor"), (_DESCRIBED, "")),
    "histogram": ([*_READ, "tl.store(O + at, tl.histogram(x, 64))"], "int32"),
    "join": ([*_READ, "i = tl.arange(0, 2)", "tl.store(O + at[:, None] * 2 + i[None, :], tl.join(x, y))"], ""),
    "interleave": ([*_READ, "tl.store(O + tl.arange(0, 128), tl.interleave(x, y))"], ""),
    "cat": ([*_READ, "tl.store(O + tl.arange(0, 128), tl.cat(x, y, can_reorder=True))"], ""),
    "split": ([*_READ, "a, b = tl.split(tl.reshape(x, (32, 2)))", "tl.store(O + tl.arange(0, 32), a + b)"], ""),
    "expand_dims": (
        [*_READ, "z = tl.expand_dims(x, 1) + tl.zeros((64, 4), x.dtype)",
         "tl.store(O + at[:, None] * 4 + tl.arange(0, 4)[None, :], z)"], "",
    ),
    **{
        name: (
            [*_READ, f"z = tl.{name}({given}) + 0", "tl.store(O + at[:, None] * 4 + tl.arange(0, 4)[None, :], z)"], "",
        )
        for name, given in {"broadcast_to": "x[:, None], (64, 4)"}.items()
    },
    **{
        name: (
            [*_READ, f"z = tl.{name}(tl.reshape(x, (8, 8)), (1, 0)) + 0", "i = tl.arange(0, 8)",
             "tl.store(O + i[:, None] * 8 + i[None, :], z)"], "",
        )
        for name in ("trans", "permute")
    },
    "topk": ([*_READ, "tl.store(O + tl.arange(0, 8), tl.topk(x, 8))"], ""),
    "dot": ([*_SQUARES, _DOT.format("")], "dot"),
    "dot acc float16": ([*_SQUARES, _DOT.format(", tl.zeros((32, 32), tl.float16), out_dtype=tl.float16")], "float16"),
    "dot out_dtype float16": ([*_SQUARES, _DOT.format(", out_dtype=tl.float16")], "float16"),
    "dot allow_tf32": ([*_SQUARES, _DOT.format(", allow_tf32=True")], "dot"),
    **{
        f"dot {each}": ([*_SQUARES, _DOT.format(f', input_precision="{each}"')], "dot")
        for each in ("tf32", "tf32x3", "ieee", "hf32")
    },
}  # fmt: skip
#: Operations that are compiled for these types alone.
_OF_FLOATS = {name: ("float16", "bfloat16", "float32") for name in KERNELS if name.startswith("dot ")}
_TIMEOUT = 60


def _module(folder: Path) -> ModuleType:
    """The kernels, as a module: Triton reads their text."""
    head = "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef _sum(a, b):\n    return a + b"
    lines = [head]
    for number, (body, _) in enumerate(KERNELS.values()):
        lines += ["", "", "@triton.jit", f"def kernel_{number}(X, Y, O):", *(f"    {line}" for line in body)]
    path = folder / "battery.py"
    path.write_text("\n".join(lines) + "\n")
    spec = importlib.util.spec_from_file_location("battery", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Compiler:
    """The compiler for a chip; nothing of it asks for a card."""

    def __init__(self, chip: str, program: str) -> None:
        from triton.backends import backends
        from triton.backends.compiler import GPUTarget

        home = importlib.util.find_spec("ascendnpuir")
        assert home is not None and home.origin is not None
        self.program, self.chip = str(Path(home.origin).parent / "bin" / program), chip
        self.target = GPUTarget("npu", chip, 0)
        self.backend = backends["ascend"].compiler(self.target)
        self.newer = program.endswith("-a5")
        self.asked = {"compile_on_910_95": True, "enable_select_analysis": True} if self.newer else {}

    def linalg(self, function: object, signature: dict[str, str], constants: dict[str, object]) -> str:
        """The module that the front end makes of a kernel."""
        from triton._C.libtriton import ir
        from triton.compiler import ASTSource

        source = ASTSource(fn=function, signature=signature, constants=constants)
        options = self.backend.parse_options({**self.asked, **source.parse_options()})
        context = ir.context()
        ir.load_dialects(context)
        self.backend.load_dialects(context)
        stages: dict[str, object] = {}
        self.backend.add_stages(stages, options)
        metadata = {"target": self.target, **options.__dict__}
        module = source.make_ir(options, self.backend.get_codegen_implementation(), {}, context)
        module = stages["ttir"](module, metadata)  # type: ignore[operator]
        text: str = stages["ttadapter"](module, metadata)  # type: ignore[operator]
        return re.sub(r', (?:mix|parallel)_mode = "\w+"|(?:mix|parallel)_mode = "\w+", ', "", text)

    def planned(self, linalg: str) -> tuple[str, str]:
        """The module whose memory is planned, empty where there is none; and what the compiler says."""
        with tempfile.TemporaryDirectory() as folder:
            written = Path(folder, "kernel.mlir")
            written.write_text(linalg)
            command = [
                self.program, str(written), f"--target={self.chip}", "--enable-hfusion-compile=true",
                *(() if self.newer else ("--enable-hivm-compile=true",)), "--enable-triton-kernel-compile=true",
                f"--save-temps={folder}", "-o", f"{folder}/kernel.o",
            ]  # fmt: skip
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT, check=False)
            except subprocess.TimeoutExpired:
                return "", ""  # not judged
            planned = Path(folder, "module.hivm.opt.mlir")
            return planned.read_text() if planned.exists() else "", done.stderr + done.stdout


def _refusal(compiler: Compiler, function: object, signature: dict[str, str]) -> str:
    """What the compiler refuses of a kernel, empty for nothing."""
    try:
        linalg = compiler.linalg(function, signature, {})
    except subprocess.CalledProcessError as error:
        return f"triton-adapter-opt: {_first_error((error.stderr or b'').decode())}"
    except Exception as error:  # whatever the front end raises is its answer
        return str(error).strip().splitlines()[-1][-200:] or type(error).__name__
    planned, said = compiler.planned(linalg)
    return "" if planned or not said else _first_error(said)


def _first_error(said: str) -> str:
    lines = (re.sub(r"^.*?(?=error: |LLVM ERROR)", "", line) for line in said.splitlines() if "rror: " in line)
    return next((line[:200] for line in lines if "hivmc" not in line and "BiShengHIR" not in line), "refused")


def _specification(compiler: Compiler, linalg: str) -> dict[str, int]:
    """Cores and memories of a chip, bytes, as the compiler has them."""
    planned, _ = compiler.planned(linalg)
    found = {name: int(value) for name, value in re.findall(r'dl_entry<"(\w+)", (\d+) : i32>', planned)}
    return {
        "cube_cores": found["CUBE_CORE_COUNT"], "vector_cores": found["VECTOR_CORE_COUNT"],
        "unified_buffer": found["UB_SIZE"] // 8, "l1": found["L1_SIZE"] // 8, "l0c": found["L0C_SIZE"] // 8,
    }  # fmt: skip


def main() -> None:
    """Compile what the file does not have yet of these versions, and write it after each operation."""
    os.environ["TRITON_CACHE_DIR"] = tempfile.mkdtemp()
    versions = {name: version(name) for name in ("triton-ascend", "ascendnpu-ir")}
    result = fact_store.read(_NAME)
    if result["versions"] != versions:
        result |= {"versions": versions, "date": date.today().isoformat(), "chips": {}, "operations": {}}
    with tempfile.TemporaryDirectory() as folder:
        module = _module(Path(folder))
        for card, (chip, program) in CHIPS.items():
            compiler = Compiler(chip, program)
            for number, (name, (_, written)) in enumerate(KERNELS.items()):
                row = result["operations"].setdefault(name, {})
                if card in row:
                    continue
                refused = {}
                for dtype in _OF_FLOATS.get(name, TYPES):
                    given = f"*{TYPES[dtype]}"
                    to = "int32" if written == "dot" and dtype in ("int8", "uint8") else "float32"
                    to = f"*{TYPES[to if written == 'dot' else written or dtype]}"
                    signature = {"X": given, "Y": given, "O": to}
                    said = _refusal(compiler, getattr(module, f"kernel_{number}"), signature)
                    if said:
                        refused[dtype] = said
                row[card] = " ".join(refused)
                print(card, name, refused or "-", flush=True)
                fact_store.write(_NAME, result)
        for card, chip in SPECIFIED.items():
            compiler = Compiler(chip, CHIPS["950" if card == "950" else "910B"][1])
            number = list(KERNELS).index("abs")
            linalg = compiler.linalg(getattr(module, f"kernel_{number}"), dict.fromkeys("XYO", "*fp32"), {})
            result["chips"][card] = {"chip": chip, **_specification(compiler, linalg)}
    fact_store.write(_NAME, result)


if __name__ == "__main__":
    main()
