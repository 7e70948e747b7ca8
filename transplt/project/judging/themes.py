"""What a statement says of a training, by theme, so that two programs can be compared by what decides how they train."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Hashable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import zip_longest

from transplt.project.judging.statements import Statement
from transplt.syntax.nodes import last_name

#: Words in names of options, arguments and variables, and what they are about; the first that is found decides.
_WORDS = tuple(
    (theme, re.compile(pattern))
    for theme, pattern in (
        ("", r"loss_?scale|opt_?level|(?:^|_)(?:log|print|save|out|output|port|addr|url|exp|root|file|dir)(?:_|s?$)|dist_"
             r"|(?:^|_)freq|world_size|local_rank|workers|(?:data|file|model|out|ckpt|log)_?path|profil|verbose|with_loss"),
        ("learning rate", r"(?:^|_|\b)lrs?(?:_|$|\d)|learning_?rate|warm_?up|^gamma$|milestones|step_size|lr$"),
        ("batch size", r"batch_?size|(?:^|_)bs$|(?:^|_)accum|batch$"),
        ("length", r"(?:^|_)epochs?$|(?:max|num|total|train)_?(?:steps?|iters?|iterations?)|n_?epochs?|stop_?steps?"),
        ("seed", r"(?:^|_)seed$"),
        ("optimizer", r"momentum|weight_?decay|^wd$|(?:^|_)betas?\d?$|(?:^|_)eps(?:ilon)?$|^optim(?:izer)?$|clip|max_norm"),
        ("precision", r"dtype|fp16|bf16|(?:^|_)half|precision"),
        ("loss", r"loss|criterion|smoothing|^reduction$"),
        ("metric", r"(?:^|_)(?:acc(?:uracy)?\d?|top\d|metrics?|scores?|bleu|perplexity|ppl|map|auc|correct)$"),
        ("data", r"shuffle|augment|drop_last|crop|(?:image|img|input)_?size|(?:max|seq)_?len|subset|num_samples|sampler"),
        ("model", r"drop_?(?:out|path|rate)|hidden|num_?layers|n_?layers|depth|heads|(?:^|_)dim$|num_?classes|vocab"
                  r"|embed|(?:^|_)arch$|backbone|activation"),
    )
)  # fmt: skip
#: Calls by their last names: the theme, under which key they are compared, and what of them.
_CALLS = tuple(
    (re.compile(pattern), *row)
    for pattern, *row in (
        (r"(?:SGD|Adam\w*|N?RAdam|NAdam|RMSprop|Adagrad|Adadelta|ASGD|LBFGS|Rprop|Lamb|LARS|Lion)$", "optimizer",
         "optimizer", "all"),
        (r"(?:(?:Multi)?Step|Exponential|Cyclic|OneCycle|Lambda|Linear|Constant|Sequential|Poly\w*|Multiplicative|\w*[Ww]arm"
         r"[Uu]p\w*|Cosine\w*)(?:LR|Scheduler)|CosineAnnealingWarmRestarts|ReduceLROnPlateau|get_\w*_?schedule\w*",
         "learning rate", "schedule", "all"),
        (r"(?:\w+Loss|cross_entropy|binary_cross_entropy\w*|mse_loss|l1_loss|smooth_l1_loss|nll_loss|kl_div)$", "loss",
         "loss", "named"),
        (r"DataLoader$", "data", "DataLoader", "named"),
        (r"(?:Random\w*(?:Crop|Flip|Rotation|Erasing|Affine|Apply|Perspective|Grayscale)|CenterCrop|Resize|Normalize"
         r"|ColorJitter|AutoAugment|RandAugment|Mixup|Pad|Subset|random_split)$", "data", "", "all"),
        (r"(?:Linear|(?:Lazy)?Conv(?:Transpose)?[123]d|BatchNorm[123]d|LayerNorm|GroupNorm|InstanceNorm[123]d|Embedding"
         r"|Dropout[123]?d?|LSTM|GRU|RNN|MultiheadAttention|Transformer\w*|(?:Max|Avg)Pool[123]d|ReLU6?|GELU|SiLU|Tanh"
         r"|Sigmoid|LeakyReLU|Hardswish)$", "model", "", "all"),
        (r"(?:backward|zero_grad)$", "training steps", "", "name"),
        (r"step$", "training steps", "", "name"),
        (r"clip_grad_(?:norm|value)_?$", "optimizer", "", "named"),
        (r"(?:manual_seed(?:_all)?|set_seed|seed_everything)$", "seed", "", "all"),
        (r"(?:half|bfloat16)$", "precision", "half precision", "name"),
        (r"(?:autocast|GradScaler|scale_loss)$", "precision", "", "name"),
    )
)  # fmt: skip
#: Methods of modules or tensors alone; functions of the same name are other things.
_METHODS = frozenset("backward zero_grad step half bfloat16".split())
#: What calls are given to work on: variables, whatever they are called.
_WHAT = ("dataset", "parameters")
_OPTIONS = frozenset("add_argument option".split())
#: What chooses a card, or asks whether there is one.
_CHOSEN = re.compile(r"npu|accelerator|\bif\b|\bor\b|is_available|device_?type", re.IGNORECASE)
_DOES = (ast.operator, ast.unaryop)
_READS = frozenset("float mean sum detach clone data numpy tolist".split())


class Grade(Enum):
    """What a change of a theme comes to: it speaks against the port, a person should know of it, or neither."""

    AGAINST = "against"
    TOLD = "told"
    NOTHING = "nothing"


#: For each theme what it comes to that something of it is another, is gone, is new.
GRADES = {
    "learning rate": (Grade.AGAINST, Grade.AGAINST, Grade.AGAINST),
    "batch size": (Grade.AGAINST, Grade.TOLD, Grade.TOLD),
    "length": (Grade.AGAINST, Grade.TOLD, Grade.TOLD),
    "seed": (Grade.AGAINST, Grade.TOLD, Grade.TOLD),
    "optimizer": (Grade.AGAINST, Grade.AGAINST, Grade.TOLD),
    "precision": (Grade.AGAINST, Grade.TOLD, Grade.TOLD),
    "loss": (Grade.AGAINST, Grade.AGAINST, Grade.TOLD),
    "metric": (Grade.AGAINST, Grade.TOLD, Grade.NOTHING),
    "data": (Grade.AGAINST, Grade.AGAINST, Grade.AGAINST),
    "model": (Grade.AGAINST, Grade.AGAINST, Grade.AGAINST),
    "training steps": (Grade.AGAINST, Grade.AGAINST, Grade.NOTHING),
    "options": (Grade.TOLD, Grade.AGAINST, Grade.TOLD),
    "device": (Grade.AGAINST, Grade.NOTHING, Grade.NOTHING),
}


@dataclass(frozen=True, slots=True, eq=False)
class Fact:
    """One thing of a theme that a statement says. Facts with one `key` are compared by their `value`; `shown` is what a
    person reads, `words` are named parts of it. A `weak` one says nothing where the other program has none."""

    theme: str
    key: str
    value: str
    shown: str
    at: Statement
    words: tuple[tuple[str, str], ...] = ()
    weak: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """A fact that is another in the port, or that only one of the two has."""

    theme: str
    before: Fact | None
    after: Fact | None

    @property
    def grade(self) -> Grade:
        return GRADES[self.theme][0 if self.before and self.after else 1 if self.before else 2]

    @property
    def sentence(self) -> str:
        """What changed."""
        if self.before is None or self.after is None:
            there = self.after or self.before
            assert there is not None
            return f"{there.shown} is {'new' if self.before is None else 'gone'}"
        return f"{self.before.shown} is {self.after.shown} now"


def name_of(target: ast.expr) -> str:
    """The last name of what is assigned to: `lr` of `group["lr"]`; empty where it has none."""
    match target:
        case ast.Subscript(slice=ast.Constant(value=str() as name)) | ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def theme_of(name: str) -> str:
    """What a name of an option, an argument or a variable is about; empty where it is about none of the themes."""
    word = name.lower().replace("-", "_").strip("_")
    return next((theme for theme, pattern in _WORDS if pattern.search(word)), "")


def facts_of(statement: Statement) -> Iterator[Fact]:
    """The facts that a statement says."""
    if statement.said:
        return
    for part in statement.parts:
        for node in ast.walk(part):
            if isinstance(node, ast.Call):
                yield from _of_call(node, statement)
            elif isinstance(node, ast.Dict):
                names = [each.value if isinstance(each, ast.Constant) else "" for each in node.keys]
                yield from _of_names(zip(map(str, names), node.values, strict=True), statement)
    match statement.node:
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
            *targets, value = [each for each in statement.parts if isinstance(each, ast.expr)]
            named = [(name_of(each), value) for each in targets]
            yield from _of_names(named, statement, operator=isinstance(statement.node, ast.AugAssign))
        case ast.For(iter=ast.Call(func=function)) if last_name(function) in ("range", "islice"):
            target, iterated = map(ast.unparse, statement.parts[:2])
            shown = f"for {target} in {iterated}"
            if re.search("epoch|step|iter|batch", shown):
                yield Fact("length", f"for {target}", _signed(statement.parts[1]), shown, statement, weak=True)


def _of_call(call: ast.Call, at: Statement) -> Iterator[Fact]:
    name = last_name(call.func)
    if name in _OPTIONS:
        yield from _of_option(call, at)
        return
    row = _row(name)
    if row is None or (name in _METHODS and not isinstance(call.func, ast.Attribute)):
        yield from _of_names(((each.arg or "", each.value) for each in call.keywords), at)
        return
    theme, key, what = row
    words = tuple((each.arg, ast.unparse(each.value)) for each in call.keywords if each.arg and each.arg not in _WHAT)
    words = () if what == "name" else words
    words += tuple((f"argument {n}", ast.unparse(each)) for n, each in enumerate(call.args) if what == "all")
    shown = f"{name}({', '.join(value if place.startswith('argument ') else f'{place}={value}' for place, value in words)})"
    yield Fact(theme, key or name, name if what == "name" else shown, shown, at, words)


def _row(name: str) -> list[str] | None:
    return next((row for pattern, *row in _CALLS if pattern.fullmatch(name)), None)


def _of_option(call: ast.Call, at: Statement) -> Iterator[Fact]:
    names = [each.value for each in call.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    name = max(names, key=len, default="")
    words = {each.arg: each.value for each in call.keywords}
    default = ast.unparse(words["default"]) if "default" in words else ""
    if not default and isinstance(words.get("action"), ast.Constant):
        default = {"store_true": "False", "store_false": "True"}.get(words["action"].value, "")
    if name and (theme := theme_of(name)) and theme != "metric":
        yield Fact(theme, f"{name} default", default, f"the default {default or 'None'} of {name}", at, weak=True)
    if name and "npu" not in name and "device" not in name:
        yield Fact("options", name, name, f"the option {name}", at)
    elif "device" in name:
        yield from _of_device(f"the default of {name}", at)


def _of_names(
    pairs: Iterable[tuple[str, ast.expr]], at: Statement, *, operator: bool = False
) -> Iterator[Fact]:
    """Values under names that say what they are."""
    for name, value in pairs:
        theme = theme_of(name)
        if "device" in name:
            yield from _of_device(name, at)
        if not theme or (theme in ("optimizer", "data", "model", "precision", "metric") and not _is_plain(value)):
            continue
        if theme == "loss" and (isinstance(value, ast.Constant) or (isinstance(value, ast.Call) and _row(last_name(value.func)))):
            continue  # what it begins with, or what the call says itself
        sign = "+= " if operator else ""
        shown = f"{name} {sign or '= '}{ast.unparse(value)}"
        yield Fact(theme, f"{name} =", sign + _signed(value), shown, at, weak=True)


def _of_device(name: str, at: Statement) -> Iterator[Fact]:
    card = _CHOSEN.search(at.raw) is not None
    if card or "cpu" in at.raw:
        yield Fact("device", name, "card" if card else "cpu", f"{name} {'on a card' if card else 'on the CPU'}", at,
                   weak=True)  # fmt: skip


def _is_plain(value: ast.expr) -> bool:
    return all(isinstance(each, (ast.Constant, ast.Tuple, ast.List, ast.expr_context, ast.unaryop, ast.UnaryOp))
               for each in ast.walk(value))  # fmt: skip


def _signed(value: ast.AST) -> str:
    """What decides what an expression computes, whatever its variables are called: numbers, operators, functions."""
    found = []
    for node in ast.walk(value):
        if isinstance(node, ast.Constant):
            found.append(repr(node.value))
        elif isinstance(node, _DOES):
            found.append(type(node).__name__)
        elif isinstance(node, ast.Call) and (name := last_name(node.func)) not in _READS:
            found.append(name if name[:1].isupper() or "loss" in name else "call")
    return " ".join(sorted(found))


def changes(gone: Iterable[Fact], new: Iterable[Fact], scopes: Container[tuple[str, str]]) -> Iterator[Change]:
    """Where the facts of two programs differ. What moved is no difference; what is another stands in the same file, and
    what a name stands for in the same function, if that is one of the `scopes` that both have."""
    before, after = [*gone], [*new]
    for key in (_same, _moved):
        before, after = _without(before, after, key), _without(after, before, key)
    both: dict[tuple[str, ...], tuple[list[Fact], list[Fact]]] = defaultdict(lambda: ([], []))
    for side, facts in enumerate((before, after)):
        for fact in facts:
            here = fact.at.path, fact.at.scope
            place = here if fact.weak and here in scopes else here[:1]
            both[(fact.theme, fact.key, *place)][side].append(fact)
    for (theme, *_), left in both.items():
        for one, other in zip_longest(*left):
            there = one or other
            if there is not None and not (there.weak and (one is None or other is None)):
                yield Change(_finer(theme, one, other), one, other)


def _same(fact: Fact) -> tuple[str, ...]:
    return (fact.theme, fact.key, fact.value, fact.at.path)


def _moved(fact: Fact) -> tuple[str, ...]:
    """What is the same wherever it stands: an option of one script is none of another."""
    own = (fact.at.path,) if fact.weak or fact.theme == "options" else ()
    return (fact.theme, fact.key, fact.value, *own)


def _without(facts: Iterable[Fact], others: Iterable[Fact], key: Callable[[Fact], Hashable]) -> list[Fact]:
    """Those that the others have not as often."""
    values = Counter(map(key, others))
    left = []
    for fact in facts:
        values[key(fact)] -= 1
        if values[key(fact)] < 0:
            left.append(fact)
    return left


def _finer(theme: str, one: Fact | None, other: Fact | None) -> str:
    """The theme of the arguments of a call that differ, where that is one."""
    if one is None or other is None or not one.words or not other.words:
        return theme
    differ = {name for name, _ in {*one.words} ^ {*other.words}}
    finer = {theme_of(name) for name in differ}
    return finer.pop() or theme if len(finer) == 1 else theme
