"""Whether evaluating an expression does more than give a value: trains, draws, reads on, changes what others see."""

from __future__ import annotations

import ast

from transplt.program.models import Models
from transplt.program.program import File, Function
from transplt.syntax.nodes import last_name
from transplt.syntax.scan import FUNCTIONS, chain

_BUILTINS = frozenset(
    "abs all any bin bool bytes chr complex dict divmod enumerate filter float format frozenset getattr hasattr "
    "hash hex id int isinstance issubclass len list map max min oct ord pow range repr reversed round set slice "
    "sorted str sum tuple type vars zip".split()
)
_MODULES = ("math.", "time.", "datetime.", "os.path.", "os.environ", "os.getcwd", "os.getpid", "json.dumps", "copy.",
            "pprint.pformat", "numpy.", "torch.", "collections.", "itertools.", "functools.", "operator.", "re.",
            "textwrap.", "platform.", "sys.", "socket.gethostname", "torchvision.", "humanize.")  # fmt: skip
_NOT = ("numpy.random.", "torch.save", "torch.load", "torch.manual_seed", "torch.distributed.", "torch.optim.",
        "torch.autograd.", "sys.exit", "torch.rand", "torch.set_", "torch.hub.", "torch.utils.data.",
        "torch.multinomial", "torch.bernoulli", "torch.normal", "time.sleep", "torch.nn.utils.clip_grad")  # fmt: skip
#: Methods of texts, containers and tensors that change nothing.
_METHODS = frozenset(
    "format join item items keys values get mean sum max min std var norm abs sqrt exp log log2 log10 pow argmax "
    "argmin topk sort cpu cuda npu detach numpy tolist size dim numel strftime split rsplit strip lstrip rstrip "
    "replace upper lower title capitalize ljust rjust center zfill state_dict parameters named_parameters "
    "get_last_lr get_lr copy float int long double half bool byte view reshape squeeze unsqueeze permute transpose "
    "contiguous clone to eq ne gt lt ge le all any isoformat total_seconds timestamp round count index startswith "
    "endswith encode decode flatten expand repeat t type as_posix astype elapsed_time memory_allocated softmax "
    "sigmoid cumsum prod median dot matmul bit_length hexdigest resolve exists is_dir is_file with_suffix avg "
    "global_avg".split()
)


def acts(models: Models, file: File, node: ast.expr) -> bool:
    """True unless an expression surely gives a value only. What is unknown counts as acting."""
    seen: set[ast.AST] = set()
    for inner in ast.walk(node):
        if isinstance(inner, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)):
            return True
        if isinstance(inner, ast.Call) and _call_acts(models, file, inner, seen):
            return True
    return False


def _call_acts(models: Models, file: File, call: ast.Call, seen: set[ast.AST]) -> bool:
    if models.origin(file, call.func) is not None:
        return True
    callee = models.program.callee(file, call)
    if isinstance(callee, FUNCTIONS):
        return _function_acts(models, callee, seen)
    if callee is not None:
        return True
    name = file.names.qualified(call.func)
    if name is not None:
        return not name.startswith(_MODULES) or name.startswith(_NOT)
    if isinstance(call.func, ast.Name):
        return bool(file.names.bindings_of(call.func)) or call.func.id not in _BUILTINS
    return last_name(call.func) not in _METHODS


def _function_acts(models: Models, function: Function, seen: set[ast.AST]) -> bool:
    if function in seen:
        return False
    seen.add(function)
    owner = models.program.owner[function]
    for inner in ast.walk(function):
        match inner:
            case ast.Global() | ast.Nonlocal() | ast.Yield() | ast.YieldFrom() | ast.Attribute(ctx=ast.Store()):
                return True
            case ast.Call():
                decorates = any(each in function.decorator_list for each in (inner, *chain(inner)))
                if not decorates and _call_acts(models, owner, inner, seen):
                    return True
    return False
