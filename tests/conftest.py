"""What every test shares: repeatable property tests, skips that say what is missing, and what the pairs showed."""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.scheduler import Scheduling
    from xdist.workermanage import WorkerController

    from transplt.proof.launch.warm import Warm

# Before anything imports it: a pair that fails shows its values.
pytest.register_assert_rewrite("tests.harness", "tests.support.harness", "tests.golden")

# The long checks draw a hundred.
EXAMPLES = 100 if os.environ.get("TRANSPLT_TESTS_COLD") else 30
settings.register_profile("default", deadline=None, max_examples=EXAMPLES)
settings.register_profile(
    "ci", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], max_examples=EXAMPLES
)
settings.load_profile("ci" if os.environ.get("CI") else "default")
# Else it reads the source of every module that is imported for its constants, seconds in each worker, and what is drawn
# depends on which tests ran before.
if hasattr(providers, "_get_local_constants"):
    providers._get_local_constants = lambda: providers._local_constants

# Syntax trees are many objects and few cycles: with the usual thresholds a sixth of the time is the collector's.
gc.set_threshold(50_000, 10, 10)

# Tests check what is worked out; those of the cache bring a folder of their own.
os.environ["TRANSPLT_NO_CACHE"] = "1"
# Else the first use of inductor starts a process that imports torch, for the little that is compiled.
os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"

HAS_TORCH = importlib.util.find_spec("torch") is not None


@cache
def _has_torch_npu() -> bool:
    """Whether `transplt emulator install` was called for this interpreter."""
    from transplt.base.disk.cache_folder import NoCache, cache_folder
    from transplt.proof.launch import interpreter, torch_npu_wheel

    try:
        found = interpreter.whole_of(sys.executable)
        return torch_npu_wheel.is_there(torch_npu_wheel.wheel_for(found), cache_folder() / "torch_npu")
    except (torch_npu_wheel.NoWheel, NoCache):
        return False


@cache
def _has_compiler() -> bool:
    """Whether `transplt compiler install` was called, or a compiler is named."""
    from transplt.proof.compiler import place
    from transplt.proof.launch.options import UsageError

    with contextlib.suppress(UsageError):
        return place.find() is not None
    return False


@pytest.fixture(scope="session")
def warm() -> Iterator[Warm]:
    """Processes that have imported torch, and fork the runs of all tests that ask for them."""
    from tests import forked
    from transplt.proof.launch.warm import Warm

    if (processes := forked.warm()) is not None:
        yield processes
    else:
        with Warm() as processes:
            yield processes


#: A file of each kind that is migrated in many tests.
TREE = {
    "main.py": "import torch\nx = torch.zeros(3).cuda()\n",
    "kernel.cu": "__global__ void f() {}\n",
    "run.sh": "CUDA_VISIBLE_DEVICES=0 python main.py\n",
    "requirements.txt": "torch==2.1\n",
    "README.md": "Run `nvidia-smi`.\n",
    "Dockerfile": "FROM nvidia/cuda:12.1.0-base\n",
    "config.yaml": "device: cuda\n",
}


def _migrate_here() -> None:
    """Import and read what migrations do: a tree in a test is migrated by a fork of this process, which then has it."""
    from transplt.project.options import Options, make_plan
    from transplt.project.tree import migrate_tree

    for style in ("npu", "portable"):
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder, "source")
            source.mkdir()
            for name, text in TREE.items():
                (source / name).write_text(text, encoding="utf-8")
            migrate_tree(make_plan(Options(source, Path(folder, "out"), style=style, analysis=style == "npu", jobs=0)))


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Each worker imports a share of the modules before it collects all: none rewrites the asserts of all of them."""
    worker = getattr(session.config, "workerinput", None)
    if worker is not None:
        with contextlib.suppress(Exception):  # said by tests of it
            _migrate_here()
    if worker is None or session.config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return
    every = sorted(Path(__file__).parent.rglob("test_*.py"))
    for path in every[int(worker["workerid"][2:]) :: worker["workercount"]]:
        name = ".".join(path.relative_to(session.config.rootpath).with_suffix("").parts)
        with contextlib.suppress(Exception, pytest.skip.Exception):  # said when it is collected
            importlib.import_module(name)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """xdist 3.8 writes the group of a test where pytest 9.2 no longer looks: no group would stay together."""
    for item in items if getattr(config.option, "loadgroup", False) else ():
        group = item.get_closest_marker("xdist_group")
        if group is not None and hasattr(item, "_id") and not item.nodeid.endswith(f"@{group.args[0]}"):
            item._id = type(item._id).parse(f"{item.nodeid}@{group.args[0]}")


def pytest_collection_finish() -> None:
    """What was collected stays: no collection of garbage goes through it again, nor copies it in a forked process."""
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling | None:
    """For `--dist loadgroup`: what is done is forgotten, else it is counted again after each of the tests."""
    if config.getvalue("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadGroupScheduling

    class Forgetful(LoadGroupScheduling):
        def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
            super().mark_test_complete(node, item_index, duration)
            scope = self._split_scope(self.registered_collections[node][item_index])
            if all(self.assigned_work[node][scope].values()):
                del self.assigned_work[node][scope]

    return Forgetful(config, log)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if not HAS_TORCH and item.get_closest_marker("torch") is not None:
        pytest.skip("needs the extra: pip install '.[emulator]'")
    if item.get_closest_marker("card") is not None and not _has_torch_npu():
        pytest.skip("needs torch_npu: transplt emulator install")
    if item.get_closest_marker("compiler") is not None and not _has_compiler():
        pytest.skip("needs the compiler for Ascend cards: transplt compiler install")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Keep what the pairs of a measured pattern showed with the report of its test, for scripts/coverage_table.py."""
    names = sorted({name for mark in item.iter_markers("pattern") for name in mark.args})
    # What a property test or a conditional one shows depends on the run.
    if not names or hasattr(getattr(item, "function", None), "hypothesis") or item.get_closest_marker("skipif"):
        return (yield)
    from tests import harness

    harness.RECORDS.clear()
    result = yield
    item.user_properties.append(("patterns", json.dumps([names, harness.RECORDS])))
    return result
