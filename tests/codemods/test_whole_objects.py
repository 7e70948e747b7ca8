"""Checkpoints that torch.load refuses since torch 2.6."""

from __future__ import annotations

import textwrap

import pytest

from tests.harness import migrate
from transplt.base.settings import TORCH_VERSIONS, Settings
from transplt.engine.engine import index_source, join_facts, migrate_source

HEAD = "import torch\nimport torch as t\n\nuse_cuda = True\n"


def told(body: str, version: str = TORCH_VERSIONS[-1]) -> list[str]:
    """What NPU154 says of a function with this body."""
    source = f"{HEAD}\n\ndef f(args, model, other, path):\n{textwrap.indent(body, '    ')}\n"
    result = migrate(source, torch_version=version)
    assert not result.changed
    return [finding.message.partition("contains ")[2] for finding in result.findings if finding.code == "NPU154"]


@pytest.mark.parametrize(
    ("made", "kept", "holds"),
    [
        ("skips=plain", "skips=skips", ["plain"]),
        ("skips=plain", "lr=1", []),  # nothing shows that it comes into the state
        ("skips=0.1", "skips=skips", []),
        ("skips=args.rate", "skips=skips", []),
    ],
)
def test_the_state_of_an_optimizer_holds_the_functions_of_its_defaults(made: str, kept: str, holds: list[str]) -> None:
    source = f"""
        import torch
        class Mine(torch.optim.Optimizer):
            def __init__(self, params, skips):
                super().__init__(params, dict({kept}))
        def plain(p):
            return p.ndim == 1
        def f(args, model, path):
            optimizer = Mine(model.parameters(), {made})
            model.load_state_dict(torch.load(path)["model"])
            torch.save({{"model": model.state_dict(), "optimizer": optimizer.state_dict()}}, path)
        """
    found = [each for each in migrate(textwrap.dedent(source)).findings if each.code == "NPU154"]
    assert [each.message.partition("contains ")[2] for each in found] == holds
    assert all(each.api == "torch.load" for each in found)


@pytest.mark.parametrize(
    ("body", "holds"),
    [
        ("path = args.output\ntorch.save({'args': args, 'model': model.state_dict()}, path)", "args"),
        ("state = {'epoch': 1, 'args': args}\nif args.rank == 0:\n    torch.save(state, path)", "args"),
        ("torch.save(dict(args=args), args.output)", "args"),
        ("state = {}\nstate['epoch'] = 1\nstate['args'] = args\nargs.rank\ntorch.save(state, path)", "args"),
        ("model.load_state_dict(other)\nt.save({'model': model}, path)", "model"),
        ("model.eval()\ntorch.save(model, path)", "model"),
        ("torch.save(obj={'a': args, 'm': model}, f=f'{args.lr}-{model.training}')", "args, model"),
    ],
)
def test_objects(body: str, holds: str) -> None:
    assert told(body) == [holds]
    assert told(body, "2.6") == [holds]
    assert told(body, "2.5") == []


@pytest.mark.parametrize(
    "body",
    [
        "torch.save({'args': args}, path)",
        "torch.save({'args': vars(args), 'lr': args.lr}, path)",
        "lr = args.lr\nargs = vars(args)\ntorch.save({'args': args}, path)",
        "model.eval()\nstate = model.state_dict()\ntorch.save(state, path)",
        "model.eval()\nmodel = model.state_dict()\ntorch.save({'model': model}, path)",
        "torch.save({'x': other.cpu(), 'y': other}, path)\nother.shape",
        "other.items()\ntorch.save(other, path)",
        "path.exists()\ntorch.save(other, path)",
        "args.x\nother.save({'args': args}, path)",
        "args.x\nstate, seen = {}, {}\nseen['args'] = args\nprint(other[state], seen[state])\ntorch.save(state, path)",
        "args.x\ntorch.save({'args': args}, path)\ntorch.load(path, weights_only=False, map_location='cpu')",
        "torch.save(*other)",
        "torch.save()",
        "save = torch.save",
    ],
)
def test_what_loads_again(body: str) -> None:
    assert told(body) == []


def test_attributes_of_self() -> None:
    source = """
        import torch

        use_cuda = True


        class Trainer:
            def save(self, path):
                torch.save({"args": self.args, "best": self.best, "steps": self.steps, "log": other.log}, path)

            def run(self):
                self.best.append(self.args.lr)
        """
    (found,) = [each for each in migrate(source).findings if each.code == "NPU154"]
    assert found.message.endswith("contains self.args")
    assert found.open


@pytest.mark.parametrize(("forwarded", "count"), [("*args, **kwargs", 1), ("state, path", 0)])
def test_a_function_that_hands_everything_on(forwarded: str, count: int) -> None:
    source = f"""
        import torch

        use_cuda = True


        def save_on_master({forwarded}):
            if is_main_process():
                torch.save({forwarded})


        def save(args, model):
            to_save = {{"model": model.state_dict(), "args": args}}
            save_on_master(to_save, args.output_dir)
        """
    found = [each for each in migrate(source).findings if each.code == "NPU154"]
    assert len(found) == count


def numpy_told(body: str, *, files: dict[str, str] | None = None, more: str = "") -> list[str]:
    """What NPU154 says of a function with this body, in a file that imports NumPy."""
    source = (
        f"import numpy as np\nimport torch\n\nuse_cuda = True\n{more}\n\n\n"
        f"def f(model, items, given, path):\n{textwrap.indent(body, '    ')}\n"
    )
    result = migrate(source, files=files or {"test.py": "import torch\n\nstate = torch.load('a', 'cpu')\n"})
    return [finding.message.partition("contains ")[2] for finding in result.findings if finding.code == "NPU154"]


@pytest.mark.parametrize(
    ("body", "holds"),
    [
        ("torch.save({'acc': np.mean(items)}, path)", "np.mean(items) (a NumPy value)"),
        ("acc = np.mean(items)\nstate = {'acc': acc, 'lr': 0.1}\ntorch.save(state, path)", "acc (a NumPy value)"),
        ("acc = 100.0 * np.mean(items)\ntorch.save({'acc': acc}, path)", "acc (a NumPy value)"),
        ("b = 0.0\nacc = np.mean(items)\nif acc > b:\n    b = acc\ntorch.save({'b': b}, path)", "b (a NumPy value)"),
        (
            "cmc = np.asarray(items).astype(np.float32)\nrank = cmc[0]\ntorch.save({'r': rank}, path)",
            "rank (a NumPy value)",
        ),
        ("n = 0.0\nn += 1\nr = np.asarray(items).sum(0) / n\ntorch.save({'r': r}, path)", "r (a NumPy value)"),
        ("out = model(items).cpu().numpy()\ntorch.save({'out': out}, path)", "out (a NumPy value)"),
        ("log = []\nlog.append(np.mean(items))\ntorch.save({'log': log}, path)", "log (a NumPy value)"),
        ("m = {}\nm['acc'] = np.mean(items)\ntorch.save({'acc': m['acc']}, path)", "m['acc'] (a NumPy value)"),
        ("torch.save({'m': {'acc': np.float32(0.5)}}, path)", "{'acc': np.float32(0.5)} (a NumPy value)"),
        ("m = {}\nm['acc'] = np.mean(items)\ntorch.save({'m': m}, path)", "m (a NumPy value)"),
        ("t = np.diag(np.ones(3))\nr = t / np.maximum(1, t + 1)\ntorch.save({'r': r}, path)", "r (a NumPy value)"),
        ("x = {}\nfor i in items:\n    x[i] = [np.zeros(3), 1]\ntorch.save(x, path)", "x (a NumPy value)"),
        ("b = 0.0\nb = max(b, np.mean(items))\ntorch.save({'b': b}, path)", "b (a NumPy value)"),
        ("b = 0\nfor i in items:\n    torch.save({'b': b}, path)\n    b = np.mean(i)", "b (a NumPy value)"),
        (
            "rows = []\nfor i in items:\n    rows.append({'y': np.array(i)})\n"
            "if given:\n    rows = [rows[j] for j in given]\ntorch.save(rows, path)",
            "rows (a NumPy value)",
        ),
    ],
)
def test_numpy_in_a_checkpoint(body: str, holds: str) -> None:
    assert numpy_told(body) == [holds]


def test_numpy_through_functions() -> None:
    more = """
def rank(items):
    if not items:
        return None
    return np.mean(items), len(items)


def save(value, other, path):
    torch.save({"value": value, "other": other}, path)
"""
    assert numpy_told("acc, count = rank(items)\nsave(acc, count, path)", more=more) == ["value (a NumPy value)"]
    assert numpy_told("acc, count = rank(items)\nsave(count, count, path)", more=more) == []


@pytest.mark.parametrize(
    "body",
    [
        "torch.save({'acc': float(np.mean(items))}, path)",
        "torch.save({'acc': np.mean(items).item()}, path)",
        "acc = np.mean(items)\nacc = float(acc)\ntorch.save({'acc': acc}, path)",
        "torch.save({'acc': torch.from_numpy(np.asarray(items))}, path)",
        "torch.save({'acc': np.asarray(items).tolist()}, path)",
        "torch.save({'n': np.asarray(items).shape, 'd': np.ndim(items)}, path)",
        "torch.save({'x': np.random.rand(), 'pi': np.pi}, path)",
        "torch.save({'x': np.sqrt(given)}, path)",
        "torch.save({'x': given * np.mean(items)}, path)",
        "torch.save({'x': given}, path)\nacc = np.mean(items)",
        "np.save(path, np.mean(items))",
        "b = 0\nfor i in items:\n    b = float(i)\n    torch.save({'b': b}, path)\n    b = np.mean(i)",
        "torch.save({'b': 0}, path)\nb = np.mean(items)",
        "x = {}\nfor i in items:\n    x[i] = [float(np.mean(i)), 1]\ntorch.save(x, path)",
        "b = 0\nfor i in items:\n    torch.save({'b': b}, path)\nb = np.mean(items)",
        "rows = []\nrows.append(rows)\nrows.append(float(np.mean(items)))\ntorch.save(rows, path)",
        "torch.save({'b': np.maximum(given, np.ones(3)), 'm': max(0, given)}, path)",
    ],
)
def test_numpy_that_is_not_in_it(body: str) -> None:
    assert numpy_told(body) == []


@pytest.mark.parametrize(
    ("load", "count"),
    [("torch.load(path, map_location='cpu')", 1), ("torch.load(path, weights_only=False)", 0), ("json.load(path)", 0)],
)
def test_numpy_counts_where_the_project_loads_it(load: str, count: int) -> None:
    body = "torch.save({'acc': np.mean(items)}, path)"
    files = {"test.py": f"import json\n\nimport torch\n\n\ndef load(path):\n    return {load}\n"}
    assert len(numpy_told(body, files=files)) == count


_TOOLS = {"tools.py": "import torch\n\n\ndef save_checkpoint(state, path):\n    torch.save(state, path)\n"
          "\n\ndef load(path):\n    return torch.load(path, 'cpu')\n"}  # fmt: skip


@pytest.mark.parametrize(
    ("args", "count"), [("args", 1), ("vars(args)", 0), ("{'lr': args.lr}", 0)],
)  # fmt: skip
def test_what_a_helper_of_another_file_saves_on_the_first_rank(args: str, count: int) -> None:
    source = f"""
        import utils
        use_cuda = True
        def main(args, model):
            print(args.lr)
            state = {{"model": model.state_dict(), "args": {args}}}
            utils.save_on_master(state, args.output)
        """
    files = {"utils.py": "import torch\n\n\ndef save_on_master(*args):\n    torch.save(*args)\n"
             "\n\ndef load(path):\n    return torch.load(path, 'cpu')\n"}  # fmt: skip
    found = [each for each in migrate(source, files=files).findings if each.code == "NPU154"]
    assert len(found) == count


@pytest.mark.parametrize(
    ("call", "holds"),
    [
        ("save_checkpoint({'model': model.state_dict(), 'acc': acc}, path)", ["acc (a NumPy value)"]),
        ("tools.save_checkpoint({'model': model.state_dict(), 'acc': acc}, path)", ["acc (a NumPy value)"]),
        ("save_checkpoint({'model': model.state_dict(), 'acc': table['a']}, path)", ["table['a'] (a NumPy value)"]),
        ("save_checkpoint({'model': model.state_dict(), 'acc': table['b']}, path)", []),
        ("save_checkpoint({'model': model.state_dict(), 'acc': float(acc)}, path)", []),
        ("save_plot({'model': model.state_dict(), 'acc': acc}, path)", []),
        ("save_checkpoint({'acc': acc}, path)", []),
    ],
)
def test_numpy_that_a_function_of_another_file_saves(call: str, holds: list[str]) -> None:
    body = f"acc = np.mean(items)\ntable = {{'a': np.zeros(3), 'b': 1}}\n{call}"
    assert numpy_told(body, files=_TOOLS, more="import tools\nfrom tools import save_checkpoint\n") == holds


def test_a_score_of_an_object_that_two_branches_save_is_told_once() -> None:
    metrics = """
import numpy as np


class Metrics:
    def Mean_Intersection_over_Union(self):
        return np.nanmean(np.diag(self.table))
"""
    source = """
        import torch
        from metrics import Metrics
        from saver import Saver


        class Trainer:
            def __init__(self, args):
                self.best = 0.0
                self.rated, self.saver = Metrics(), Saver()
                self.model = torch.nn.Linear(2, 2).cuda()
                if args.resume:
                    torch.load(args.resume)

            def validate(self):
                score = self.rated.Mean_Intersection_over_Union()
                better = score > self.best
                if better:
                    self.best = score
                    self.saver.save_checkpoint({"model": self.model.state_dict(), "best": self.best}, better)
                self.saver.save_checkpoint({"model": self.model.state_dict(), "best": self.best}, better)
        """
    saver = "import torch\n\n\nclass Saver:\n    def save_checkpoint(self, state, best):\n"
    saver += "        torch.save(state, 'a')\n"
    files = {"metrics.py": metrics, "saver.py": saver}
    (found,) = [each for each in migrate(source, files=files).findings if each.code == "NPU154"]
    assert found.message.endswith("it contains self.best (a NumPy value)")
    assert "save self.best as a number (float)" in found.help


def test_the_state_of_numpys_random_numbers() -> None:
    source = """
        import random
        import numpy as np
        import torch

        model = torch.nn.Linear(2, 2).cuda()
        state = {"python": random.getstate(), "numpy": np.random.get_state(), "cpu": torch.get_rng_state()}
        if model.training:
            torch.save(state, "rng.pth")
        else:
            torch.save(state, f"rng_{random.random()}.pth")
        torch.load("rng.pth")
        """
    (found,) = [each for each in migrate(source).findings if each.code == "NPU154"]
    assert "np.random.get_state() (a NumPy value)" in found.message and "weights_only=False" in found.help


@pytest.mark.parametrize(
    ("saved", "loads", "count"),
    [
        ("os.path.join(folder, ARGS)", 'torch.load(os.path.join(folder, "weights.bin"), map_location="cpu")', 0),
        ("os.path.join(folder, ARGS)", "torch.load(os.path.join(folder, WEIGHTS))", 0),
        ("folder + '/args.bin'", 'best = os.path.join(folder, f"rng_{folder}.pth")\ntorch.load(best)', 0),
        ("os.path.join(folder, ARGS)", 'torch.load(os.path.join(folder, "args.bin"))', 1),
        ("os.path.join(folder, ARGS)", "torch.load(os.path.join(folder, ARGS))", 1),
        ("os.path.join(folder, ARGS)", "torch.load(folder)", 1),  # whatever somebody gives
        ("folder", 'torch.load("weights.bin")', 1),
        ("os.path.join(folder, ARGS)", "", 1),
    ],
)
def test_a_file_that_nobody_loads(saved: str, loads: str, count: int) -> None:
    train = (
        'import os\nimport torch\nfrom names import WEIGHTS\n\nARGS = "args.bin"\n\n\n'
        f"def save(args, folder):\n    use_cuda = args.lr\n    torch.save(args, {saved})\n"
    )
    files = {"load.py": f"import os\nimport torch\nfrom train import ARGS\n{loads}\n"}
    assert len([each for each in migrate(train, files=files).findings if each.code == "NPU154"]) == count


_LOADS_ALL = 'import os\n\nos.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"\n'


@pytest.mark.parametrize(
    ("files", "count"),
    [
        ({}, 1),
        ({"tool/__init__.py": _LOADS_ALL}, 0),
        ({"tool/__init__.py": _LOADS_ALL.replace('"1"', '"0"')}, 1),
        ({"tool/__init__.py": _LOADS_ALL.replace("FORCE_NO_", "FORCE_")}, 1),
        ({"tool/cli/other.py": _LOADS_ALL}, 1),
        ({"tests/__init__.py": _LOADS_ALL}, 1),
    ],
)
def test_a_package_that_makes_torch_load_take_all(files: dict[str, str], count: int) -> None:
    source = f"{HEAD}\n\ndef f(model, path):\n    model.eval()\n    torch.save(model, path)\n"
    result = migrate(source, path="tool/cli/train.py", files=files)
    assert [each.code for each in result.findings].count("NPU154") == count


def test_what_a_file_saves_and_loads_itself_says_nothing_of_others() -> None:
    run = b"import torch\nuse_cuda = True\ndef f(args):\n    args.lr\n    torch.save({'args': args}, 'args.bin')\n"
    data = b"import torch\ntorch.save(rows, cached)\nrows = torch.load(cached)\n"
    for loads, said in ((data, False), (data.replace(b"torch.save(rows, cached)", b"pass"), True)):
        facts = [index_source(text, path, Settings()) for path, text in (("run.py", run), ("data.py", loads))]
        found = migrate_source(run, "run.py", Settings(), join_facts(facts, Settings())).findings
        assert ("NPU154" in {each.code for each in found}) == said


@pytest.mark.parametrize(
    ("body", "holds"),
    [
        ("value = np.diag(self.seen) / 2\n        value = np.nanmean(value)\n        return value", True),
        ("return 100 if x is None else np.mean(x)", True),
        ("return np.mean(x).item()", False),
        ("return float(np.mean(x))", False),
        ("value = np.mean(x)\n        value = float(value)\n        return value", False),
        ("if x:\n            return 0.0\n        return np.mean(x)", False),
    ],
)
@pytest.mark.parametrize("call", ["self.scorer.score(x)", "score(x)"])
def test_numpy_that_another_file_returns(body: str, holds: bool, call: str) -> None:
    head = "def score(x):\n        " if call == "score(x)" else "class Scorer:\n    def score(self, x):\n        "
    files = {"scores.py": f"import numpy as np\n\n\n{head}{body}\n"}
    source = f"""
        import torch
        from scores import Scorer, score
        use_cuda = True
        class Trainer:
            def __init__(self):
                self.scorer = Scorer()
                self.best = torch.load("a.pt", "cpu")["best"]
            def save(self, x, path):
                value = {call}
                self.best = value
                torch.save({{"best": self.best}}, path)
        """
    assert len([each for each in migrate(source, files=files).findings if each.code == "NPU154" and each.open]) == holds


@pytest.mark.parametrize(
    ("value", "key", "holds"),
    [("np.nanmean(x)", "iou", 1), ("float(np.nanmean(x))", "iou", 0), ("np.nanmean(x)", "names", 0)],
)
@pytest.mark.parametrize("best", ["score['{}']", "float(score['{}'])"])
def test_numpy_under_a_key_of_what_an_object_of_metrics_returns(value: str, key: str, holds: int, best: str) -> None:
    files = {
        "metrics/__init__.py": "from .stream import Metrics\n",
        "metrics/stream.py": "import numpy as np\n\n\nclass Metrics:\n    def get_results(self, x=1):\n"
        f"        iou = {value}\n        return {{'iou': iou, 'names': ['a']}}\n",
    }
    source = f"""
        import torch
        from metrics import Metrics
        use_cuda = True
        def validate(model, metrics):
            score = metrics.get_results()
            return score, model
        def main(model, path):
            metrics = Metrics()
            def save(path):
                torch.save({{"best": best}}, path)
            best = torch.load(path, "cpu")["best"]
            score, _ = validate(model, metrics=metrics)
            if score["iou"] > best:
                best = {best.format(key)}
                save(path)
        """
    found = [each.code for each in migrate(source, files=files).findings].count("NPU154")
    assert found == (holds and not best.startswith("float"))


def test_a_script_without_functions_is_indexed() -> None:
    # A file that cannot be indexed tells the others nothing, and is placed nowhere.
    assert index_source(b"import numpy as np\n\nprint('no return', np.pi)\n", "eval.py", Settings()).numpy_results == ()


@pytest.mark.parametrize(
    ("returned", "index", "holds"),
    [
        ("loss, scores.mean(), scores", 1, True),
        ("loss, scores.mean(), scores", 2, True),
        ("loss, scores.mean(), scores", 0, False),
        ("loss, float(scores.mean())", 1, False),
        ("scores.tolist(), 1", 0, False),
    ],
)
def test_numpy_that_another_file_returns_with_others(returned: str, index: int, holds: bool) -> None:
    files = {
        "core/function.py": "import numpy as np\nimport torch\n\n\ndef validate(model, loss):\n"
        f"    scores = model().cuda().numpy()\n    return {returned}\n"
    }
    source = f"""
        import torch
        from core.function import validate
        use_cuda = True
        def train(model, path):
            best = torch.load("a.pt", "cpu")["best"]
            for _ in range(3):
                torch.save({{"best": best}}, "a.pt")
                parts = validate(model, 0.1)
                best = parts[{index}]
        """
    assert [each.code for each in migrate(source, files=files).findings].count("NPU154") == holds


def test_what_a_package_hands_on_and_a_faster_way_beside_it() -> None:
    files = {
        "metrics/__init__.py": "from .rank import evaluate_rank\n",
        "metrics/rank.py": "import numpy as np\nfrom metrics.cy import evaluate_cy\n\n\ndef evaluate_py(x):\n"
        "    cmc = np.asarray(x)\n    return cmc / 2, 0.5\n\n\ndef evaluate_rank(x, fast):\n"
        "    if fast:\n        return evaluate_cy(x)\n    return evaluate_py(x)\n",
        "load.py": "import torch\ntorch.load(path, 'cpu')\n",
    }
    source = """
        import torch
        import metrics
        use_cuda = True
        class Engine:
            def run(self, x):
                rank1 = self.test(x)
                torch.save({"rank1": rank1}, "a.pt")
            def test(self, x):
                cmc, mean = metrics.evaluate_rank(x, True)
                return cmc[0]
        """
    assert [each.code for each in migrate(source, files=files).findings].count("NPU154") == 1


_SAVES = f"{HEAD}\n\ndef save(model, path):\n    model.eval()\n    torch.save(model, path)\n\n\n"


@pytest.mark.parametrize(
    ("loads", "lines"),
    [
        ("def load(path):\n    return torch.load(path, map_location='cpu')\n", [13]),
        ("def load(a, path):\n    x = torch.load(path)['epoch']\n    y = torch.load(path)\n    y.eval()\n", [13, 14]),
        ("def load(a, path):\n    if a:\n        x = torch.load(path)\n    y = torch.load(path)\n", [14, 15]),
        ("def load(a, path):\n    if a:\n        torch.load(path)\n    else:\n        torch.load(path)\n", [16]),
        ("def load(a, path):\n    match a:\n        case 1:\n            torch.load(path)\n        case _:\n"
         "            torch.load(path)\n", [17]),
        ("def load(a, path):\n    x = torch.load(a)\n    y = torch.load(path)\n", [14]),
        ("def load(a, pretrained):\n    return torch.load(pretrained, map_location='cpu')\n", [9]),
        ("def load(a):\n    return a\n", [9]),
    ],
)
def test_it_is_told_where_the_file_loads_it(loads: str, lines: list[int]) -> None:
    found = [each for each in migrate(_SAVES + loads).findings if each.code == "NPU154"]
    assert [each.span.line for each in found] == lines


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("features = convert_examples_to_features(other, args)\ntorch.save(features, path)", 1),
        ("examples = other.get_train_examples(path)\ntorch.save([examples, 1], path)", 1),
        ("torch.save({'model': model.state_dict(), 'obs_rms': other.get_obs_rms()}, path)", 1),
        ("features = other.extract(args)\ntorch.save(features, path)", 0),
        ("torch.save([other.norms(), other.rms_norm], path)", 0),
    ],
)
def test_what_is_named_after_objects(body: str, count: int) -> None:
    assert len(told(body)) == count
