"""Device and backend strings follow the data: they move together with all that shares their slot, or not at all."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, check_rewrite, codes, migrate, pattern
from transplt.base.settings import Settings
from transplt.engine.engine import migrate_source
from transplt.flow.facts import ProjectFacts

_USE = """
import torch
def use(x, i, n, cfg, args):
    {line}
    return x
"""
_USED = """
import torch
import torch_npu  # noqa: F401
def use(x, i, n, cfg, args):
    {line}
    return x
"""


def moves(line: str, after: str) -> None:
    check_rewrite(_USE.format(line=line), _USED.format(line=after))


def stays(line: str, *open_codes: str) -> None:
    check_noop(_USE.format(line=line), open_codes=open_codes)


@pytest.mark.parametrize(
    ("line", "after"),
    [
        pytest.param("x.to('cuda')", "x.to('npu')", marks=pattern("P23")),
        pytest.param("x.to('cuda:1', non_blocking=True)", "x.to('npu:1', non_blocking=True)", marks=pattern("P23")),
        pytest.param("x.to(device='cuda')", "x.to(device='npu')", marks=pattern("P23")),
        pytest.param("x.to(f'cuda:{i}')", "x.to(f'npu:{i}')", marks=pattern("P24")),
        pytest.param("x.to('cuda:%d' % i)", "x.to('npu:%d' % i)", marks=pattern("P24")),
        pytest.param("x.to('cuda:' + str(i))", "x.to('npu:' + str(i))", marks=pattern("P24")),
        pytest.param("x.to('cuda:{}'.format(i))", "x.to('npu:{}'.format(i))", marks=pattern("P24", "P28")),
        pytest.param("torch.device('cuda')", "torch.device('npu')", marks=pattern("P26")),
        pytest.param("torch.device('cuda:0')", "torch.device('npu:0')", marks=pattern("P26")),
        pytest.param("torch.device('cuda', i)", "torch.device('npu', i)", marks=pattern("P27")),
        pytest.param("torch.device(type='cuda', index=i)", "torch.device(type='npu', index=i)", marks=pattern("P27")),
        # a number that becomes that of an NPU is a device, wherever it goes
        ("run(f'cuda:{torch.cuda.current_device()}')", "run(f'npu:{torch.npu.current_device()}')"),
        pytest.param("torch.device(f'cuda:{i}')", "torch.device(f'npu:{i}')", marks=pattern("P28")),
        pytest.param("torch.device(':'.join(['cuda', str(i)]))", "torch.device(':'.join(['npu', str(i)]))"),
        pytest.param(
            "torch.device('cuda' if n else 'cpu')", "torch.device('npu' if n else 'cpu')", marks=pattern("P29")
        ),
        pytest.param(
            "torch.device('cuda' if n and not args.no_cuda else 'cpu')",
            "torch.device('npu' if n and not args.no_cuda else 'cpu')",
            marks=pattern("P30", "T6"),
        ),
        pytest.param("torch.zeros(2, device='cuda')", "torch.zeros(2, device='npu')", marks=pattern("P31")),
        pytest.param("torch.zeros(2, **{'device': 'cuda'})", "torch.zeros(2, **{'device': 'npu'})"),
        pytest.param("torch.zeros(2, **dict(device='cuda'))", "torch.zeros(2, **dict(device='npu'))"),
        pytest.param("torch.load(x, 'cuda')", "torch.load(x, 'npu')", marks=pattern("P49")),
        pytest.param(
            "torch.load(x, map_location='cuda:0')", "torch.load(x, map_location='npu:0')", marks=pattern("P49")
        ),
        pytest.param("torch.set_default_device('cuda')", "torch.set_default_device('npu')", marks=pattern("P68")),
        pytest.param("torch.Generator('cuda')", "torch.Generator('npu')"),
        pytest.param("torch.Generator(device='cuda')", "torch.Generator(device='npu')"),
        pytest.param(
            "init(backend='x', device_type='cuda')", "init(backend='x', device_type='npu')", marks=pattern("P32")
        ),
        pytest.param("y = getattr(cfg, 'device', 'cuda')", "y = getattr(cfg, 'device', 'npu')"),
        pytest.param("y = getattr(x.device, 'type', None) == 'cuda'", "y = getattr(x.device, 'type', None) == 'npu'"),
        pytest.param("y = cfg.get('device', 'cuda')", "y = cfg.get('device', 'npu')"),
        pytest.param("cfg['device'] = 'cuda'", "cfg['device'] = 'npu'"),
        pytest.param("x.to(d := 'cuda')", "x.to(d := 'npu')"),
        pytest.param("d = str('cuda'); x.to(d)", "d = str('npu'); x.to(d)"),
        pytest.param("d = 'cuda'; e = d; x.to(e)", "d = 'npu'; e = d; x.to(e)"),
        pytest.param("name, d = 'a', 'cuda'; x.to(d)", "name, d = 'a', 'npu'; x.to(d)"),
        pytest.param("d = {'where': 'cuda'}; x.to(d['where'])", "d = {'where': 'npu'}; x.to(d['where'])"),
        pytest.param("for d in ['cpu', 'cuda']: x.to(d)", "for d in ['cpu', 'npu']: x.to(d)"),
        pytest.param("[x.to(d) for d in ('cpu', 'cuda')]", "[x.to(d) for d in ('cpu', 'npu')]"),
        pytest.param("for k, d in enumerate(['cuda']): x.to(d)", "for k, d in enumerate(['npu']): x.to(d)"),
        pytest.param("for k, d in zip([1], ['cuda']): x.to(d)", "for k, d in zip([1], ['npu']): x.to(d)"),
        pytest.param(
            "for d in ['cpu'] + (['cuda'] if n else []): x.to(d)", "for d in ['cpu'] + (['npu'] if n else []): x.to(d)"
        ),
    ],
)
def test_a_string_that_reaches_a_device(line: str, after: str) -> None:
    moves(line, after)


@pytest.mark.parametrize(
    ("line", "after"),
    [
        pytest.param("x = x.device.type == 'cuda'", "x = x.device.type == 'npu'", marks=pattern("T2")),
        pytest.param("x = x.device.type != 'cuda'", "x = x.device.type != 'npu'", marks=pattern("T2")),
        pytest.param("x = cfg.device == 'cuda'", "x = cfg.device == 'npu'", marks=pattern("T3")),
        pytest.param("t = x.device.type; x = t == 'cuda'", "t = x.device.type; x = t == 'npu'", marks=pattern("T2")),
        pytest.param("x = str(x.device) == 'cuda:0'", "x = str(x.device) == 'npu:0'"),
        pytest.param("x = x.device == torch.device('cuda:0')", "x = x.device == torch.device('npu:0')"),
        pytest.param("x = cfg.device in ('cuda', 'gpu')", "x = cfg.device in ('npu', 'gpu')", marks=pattern("T4")),
        pytest.param("x = cfg.device.startswith('cuda')", "x = cfg.device.startswith('npu')", marks=pattern("T4")),
        pytest.param("x = 'cuda' in cfg.device", "x = 'npu' in cfg.device", marks=pattern("T4")),
        pytest.param("x = 'cuda' in str(x.device)", "x = 'npu' in str(x.device)", marks=pattern("T4")),
        pytest.param("x = cfg.device.find('cuda') >= 0", "x = cfg.device.find('npu') >= 0", marks=pattern("T4")),
        pytest.param("x = cfg.device.upper() == 'CUDA'", "x = cfg.device.upper() == 'NPU'"),
        pytest.param(
            "x = cfg.device.split(':')[0] == 'cuda'", "x = cfg.device.split(':')[0] == 'npu'", marks=pattern("T5")
        ),
        pytest.param(
            "x = int(cfg.device.replace('cuda:', ''))", "x = int(cfg.device.replace('npu:', ''))", marks=pattern("T5")
        ),
        pytest.param(
            "x = cfg.device.removeprefix('cuda:')", "x = cfg.device.removeprefix('npu:')", marks=pattern("T5")
        ),
        pytest.param("x = cfg.device[len('cuda:'):]", "x = cfg.device[len('npu:'):]", marks=pattern("T5")),
        pytest.param("self.assertEqual(x.device.type, 'cuda')", "self.assertEqual(x.device.type, 'npu')"),
        pytest.param(
            "import re; re.match(r'cuda:(\\d+)', cfg.device)", "import re; re.match(r'npu:(\\d+)', cfg.device)"
        ),
    ],
)
def test_a_string_that_is_compared_with_a_device(line: str, after: str) -> None:
    moves(line, after)


@pattern("T2")
def test_match_statements() -> None:
    check_rewrite(
        """
        def f(x, device):
            match device:
                case 'cuda' | 'gpu':
                    return 1
            match (x, x.device.type):
                case ('cuda', 'cuda'):
                    return 2
        """,
        """
        def f(x, device):
            match device:
                case 'npu' | 'gpu':
                    return 1
            match (x, x.device.type):
                case ('cuda', 'npu'):
                    return 2
        """,
        open_codes=["NPU203"],
    )


@pattern("T3")
@pytest.mark.parametrize(
    ("kind", "found"),
    [
        ("class A(Base):\n    KIND = 'cuda'\n", []),
        # read here, a name in small letters, a list of what a program is given
        ("class A(Base):\n    KIND = 'cuda'\n    def f(self):\n        return g(self.KIND)\n", ["NPU203"]),
        ("class A(Base):\n    kind = 'cuda'\n", ["NPU203"]),
        ("class A(enum.Enum):\n    KIND = 'cuda'\n", ["NPU203"]),
        ("KIND = 'cuda'\n", ["NPU203"]),
    ],
)
def test_a_constant_of_a_class_that_no_file_reads_as_a_device(kind: str, found: list[str]) -> None:
    result = migrate(f"import torch\n{kind}", files={"use.py": "if x.KIND == 'other':\n    pass\n"})
    assert codes(result, applied=False) == found and not result.changed


@pattern("T3")
@pytest.mark.parametrize(
    "line",
    [
        "x = cfg.impl == 'cuda'",
        "x = args.mode == 'cuda'",
        "kernel = 'cuda'; x = load(kernel)",
        "x = any(k in str(i) for k in ('cuda', 'mps'))",
        "x = any(k in cfg.kernels for k in ['cuda', unknown])",
        "x = cfg.prefetch_mode in ('cpu', 'cuda')",
        "x = load('cuda')",
        "x = [k for k in ('ref', 'cuda') if k in cfg.kernels]",
    ],
)
def test_a_string_that_reaches_no_device_is_reported(line: str) -> None:
    stays(line, "NPU203")


@pytest.mark.parametrize(
    "line",
    [
        "x = any(word in str(i).lower() for word in ['memory', 'cuda', 'insufficient'])",
        "x = [word for word in x if all(part not in word for part in ('out of', 'cuda'))]",
        "unused = 'cuda'",
    ],
)
def test_words_that_are_looked_for_and_what_nobody_reads(line: str) -> None:
    stays(line)


@pattern("T6", "T14")
@pytest.mark.parametrize(
    "line",
    [
        "x = cfg['cuda']",
        "cfg['cuda_rng_state'] = x",
        "x = cfg.get('cuda')",
        "print('cuda')",
        "raise ValueError('cuda')",
        "x = cfg['states_cuda']",
        "parser.add_argument('--cuda', action='store_true')",
        "parser.add_argument('--no-cuda', dest='cuda', action='store_false')",
        "__all__ = ['cuda']",
        "x = 'https://docs.nvidia.com/cuda/index.html'",
        "x = 'nvidia/cuda:11.8'",
        "x = 'my_cuda_kernel'",
    ],
)
def test_names_keys_and_text_stay_without_a_word(line: str) -> None:
    stays(line)


@pattern("T9")
@pytest.mark.parametrize("call", ["jax.devices('cuda')", "numba.jit(target='cuda')", "tf.device('cuda')"])
def test_another_librarys_device(call: str) -> None:
    check_noop(f"import jax, numba\nimport tensorflow as tf\nx = {call}\n", open_codes=["NPU273"])


@pattern("T9")
@pytest.mark.parametrize("call", ["dgl.graph(x, device='cuda')", "triton.testing.do_bench(f, device='cuda')"])
def test_a_device_of_a_library_that_rules_know(call: str) -> None:
    check_noop(f"x = {call}\n")


@pattern("P33", "P37", "T6")
def test_flags_keep_their_names_and_change_their_values() -> None:
    check_rewrite(
        """
        import argparse, torch
        parser = argparse.ArgumentParser()
        parser.add_argument('--where', default='cuda', choices=['cuda', 'cpu'])
        parser.add_argument('--no-cuda', action='store_true')
        parser.add_argument('--dist-backend', default='nccl')
        parser.add_argument('--mode', default='cuda')
        args = parser.parse_args()
        x = torch.zeros(2).to(args.where)
        if args.where == 'cuda' and args.dist_backend == 'nccl':
            pass
        """,
        """
        import argparse, torch
        import torch_npu  # noqa: F401
        parser = argparse.ArgumentParser()
        parser.add_argument('--where', default='npu', choices=['npu', 'cpu'])
        parser.add_argument('--no-cuda', action='store_true')
        parser.add_argument('--dist-backend', default='hccl')
        parser.add_argument('--mode', default='cuda')
        args = parser.parse_args()
        x = torch.zeros(2).to(args.where)
        if args.where == 'npu' and args.dist_backend == 'hccl':
            pass
        """,
        open_codes=["NPU203"],
    )


@pattern("P33")
def test_click_typer_and_absl() -> None:
    check_rewrite(
        """
        import click, torch, typer
        from absl import flags
        flags.DEFINE_enum('place', 'cuda', ['cuda', 'cpu'], 'where')
        torch.zeros(1).to(flags.FLAGS.place)
        @click.command()
        @click.option('--where', default='cuda', type=click.Choice(['cuda', 'cpu']))
        def run(where):
            torch.zeros(1).to(where)
        def go(where: str = typer.Option('cuda', '--where')):
            torch.zeros(1).to(where)
        """,
        """
        import click, torch, typer
        import torch_npu  # noqa: F401
        from absl import flags
        flags.DEFINE_enum('place', 'npu', ['npu', 'cpu'], 'where')
        torch.zeros(1).to(flags.FLAGS.place)
        @click.command()
        @click.option('--where', default='npu', type=click.Choice(['npu', 'cpu']))
        def run(where):
            torch.zeros(1).to(where)
        def go(where: str = typer.Option('npu', '--where')):
            torch.zeros(1).to(where)
        """,
    )


@pattern("P35", "T30")
def test_defaults_fields_and_literal_annotations() -> None:
    check_rewrite(
        """
        import torch
        from dataclasses import dataclass, field
        from typing import Literal, Optional
        @dataclass
        class Config:
            where: str = 'cuda'
            other: str = field(default='cuda')
            impl: Literal['cuda', 'ref'] = 'cuda'
        def put(x, place: Optional[Literal['cuda', 'cpu']] = 'cuda', *, backup='cuda:1'):
            return x.to(place) if x else x.to(backup)
        c = Config(where='cuda')
        torch.zeros(1).to(c.where)
        torch.zeros(1, device=c.other)
        """,
        """
        import torch
        import torch_npu  # noqa: F401
        from dataclasses import dataclass, field
        from typing import Literal, Optional
        @dataclass
        class Config:
            where: str = 'npu'
            other: str = field(default='npu')
            impl: Literal['cuda', 'ref'] = 'cuda'
        def put(x, place: Optional[Literal['npu', 'cpu']] = 'npu', *, backup='npu:1'):
            return x.to(place) if x else x.to(backup)
        c = Config(where='npu')
        torch.zeros(1).to(c.where)
        torch.zeros(1, device=c.other)
        """,
        open_codes=["NPU203"],
    )


@pattern("P31", "T11")
def test_parametrized_tests_and_fixtures() -> None:
    check_rewrite(
        """
        import pytest, torch
        @pytest.mark.parametrize('where', ['cpu', 'cuda'])
        def test_a(where):
            torch.zeros(1, device=where)
        @pytest.mark.parametrize('impl, where', [('cuda', 'cuda'), ('ref', 'cpu')])
        def test_b(impl, where):
            torch.zeros(1, device=where)
        @pytest.mark.parametrize(('n', 'where'), [pytest.param(1, 'cuda', id='one')])
        def test_c(n, where):
            torch.zeros(n, device=where)
        @pytest.fixture(params=['cpu', 'cuda'])
        def device(request):
            return request.param
        """,
        """
        import pytest, torch
        import torch_npu  # noqa: F401
        @pytest.mark.parametrize('where', ['cpu', 'npu'])
        def test_a(where):
            torch.zeros(1, device=where)
        @pytest.mark.parametrize('impl, where', [('cuda', 'npu'), ('ref', 'cpu')])
        def test_b(impl, where):
            torch.zeros(1, device=where)
        @pytest.mark.parametrize(('n', 'where'), [pytest.param(1, 'npu', id='one')])
        def test_c(n, where):
            torch.zeros(n, device=where)
        @pytest.fixture(params=['cpu', 'npu'])
        def device(request):
            return request.param
        """,
        open_codes=["NPU203"],
    )


@pattern("P36", "P38", "P39", "T24")
@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("torch.distributed.init_process_group('nccl')", "torch.distributed.init_process_group('hccl')"),
        (
            "torch.distributed.init_process_group(backend='nccl')",
            "torch.distributed.init_process_group(backend='hccl')",
        ),
        (
            "torch.distributed.init_process_group('cpu:gloo,cuda:nccl')",
            "torch.distributed.init_process_group('cpu:gloo,npu:hccl')",
        ),
        (
            "b = 'nccl' if n else 'gloo'; torch.distributed.init_process_group(b)",
            "b = 'hccl' if n else 'gloo'; torch.distributed.init_process_group(b)",
        ),
        ("x = torch.distributed.get_backend() == 'nccl'", "x = torch.distributed.get_backend() == 'hccl'"),
        ("x = args.dist_backend == 'nccl'", "x = args.dist_backend == 'hccl'"),
        ("torch.distributed.new_group([0], backend='nccl')", "torch.distributed.new_group([0], backend='hccl')"),
    ],
)
def test_backends(line: str, after: str) -> None:
    moves(line, after)


@pattern("T24")
@pytest.mark.parametrize("line", ["a = 'nccl'; x = load(a)", "x = kvstore('nccl')", "x = cfg.algorithm == 'nccl'"])
def test_nccl_that_is_no_backend(line: str) -> None:
    stays(line, "NPU302")


@pattern("T24")
@pytest.mark.parametrize("line", ["x = cfg['nccl']", "print('nccl')", "x = 'nccl_timeout'"])
def test_nccl_in_names_and_text(line: str) -> None:
    stays(line)


@pattern("P35")
def test_over_modules() -> None:
    files = {
        "config.py": "WHERE = 'cuda'\nclass Paths:\n    PLACE = 'cuda:0'\n",
        "use.py": (
            "import config, torch\ndef put(x, place):\n    return x.to(place)\ndef pick():\n    return config.WHERE\n"
        ),
    }
    main = """
    import torch
    from config import WHERE, Paths
    from use import pick, put
    put(torch.zeros(1), WHERE)
    put(torch.zeros(1), place=Paths.PLACE)
    if pick() == 'cuda':
        pass
    """
    result = migrate(main, files=files)
    assert "if pick() == 'npu':" in result.data.decode()
    assert (
        "WHERE = 'npu'"
        in migrate(files["config.py"], path="config.py", files={"train.py": main, **files}).data.decode()
    )
    assert (
        "PLACE = 'npu:0'"
        in migrate(files["config.py"], path="config.py", files={"train.py": main, **files}).data.decode()
    )


@pattern("T3")
def test_classes_do_not_answer_for_each_other() -> None:
    """`where` is a device in one class and the name of a kernel in the other."""
    check_rewrite(
        """
        import torch
        class A:
            def __init__(self):
                self.where = 'cuda'
            def put(self, x):
                return x.to(self.where)
        class B:
            def __init__(self):
                self.where = 'cuda'
            def kernel(self):
                return self.where == 'cuda'
        """,
        """
        import torch
        import torch_npu  # noqa: F401
        class A:
            def __init__(self):
                self.where = 'npu'
            def put(self, x):
                return x.to(self.where)
        class B:
            def __init__(self):
                self.where = 'cuda'
            def kernel(self):
                return self.where == 'cuda'
        """,
        open_codes=["NPU203"],
    )


@pattern("T3")
def test_a_base_class_and_its_children_are_one() -> None:
    check_rewrite(
        """
        class Base:
            def __init__(self):
                self.where = 'cuda'
        class Child(Base):
            def put(self, x):
                return x.to(self.where) if self.where == 'cuda' else x
        """,
        """
        class Base:
            def __init__(self):
                self.where = 'npu'
        class Child(Base):
            def put(self, x):
                return x.to(self.where) if self.where == 'npu' else x
        """,
    )


@pattern("T6")
def test_generic_names_tell_nothing() -> None:
    """That one object's `name` is a device says nothing of another object's."""
    check_rewrite(
        """
        def f(x, opt, kernel, device='cuda'):
            x.to(opt.name)
            if kernel.name == 'cuda':
                return device
        """,
        """
        def f(x, opt, kernel, device='npu'):
            x.to(opt.name)
            if kernel.name == 'cuda':
                return device
        """,
        open_codes=["NPU203"],
    )


@pattern("T32")
@pytest.mark.parametrize("literal", ["'cu' 'da'", "'\\x63uda'"])
def test_odd_literals_are_reported(literal: str) -> None:
    stays(f"x.to({literal})  # cuda", "NPU202")


@pytest.mark.parametrize("literal", ['"cuda"', "'''cuda'''", "r'cuda'", "u'cuda'", "f'cuda'", '"""cuda:0"""'])
def test_spellings_of_a_literal(literal: str) -> None:
    moves(f"x.to({literal})", f"x.to({literal.replace('cuda', 'npu')})")


@pattern("T26")
@pytest.mark.parametrize(
    "line",
    [
        "op.register_dispatch('cuda')(x)",
        "op.register_kernel('cuda')(x)",
    ],
)
def test_kernels_are_registered_for_a_device(line: str) -> None:
    stays(line, "NPU208")


@pattern("P73")
def test_configurations_written_in_python() -> None:
    check_rewrite(
        """
        import torch
        dist_params = dict(backend='nccl')
        env_cfg = dict(cudnn_benchmark=True, dist_cfg=dict(backend='nccl'))
        device = 'cuda'
        load = {'device': 'cuda', 'mode': 'fast'}
        """,
        """
        import torch
        import torch_npu  # noqa: F401
        dist_params = dict(backend='hccl')
        env_cfg = dict(cudnn_benchmark=True, dist_cfg=dict(backend='hccl'))
        device = 'npu'
        load = {'device': 'npu', 'mode': 'fast'}
        """,
    )


@pattern("T2")
@pytest.mark.parametrize("line", ["x = cfg.type == 'cuda'", "x = args.type == 'cuda'", "x = x.layer.type == 'cuda'"])
def test_a_type_that_is_no_devices(line: str) -> None:
    stays(line, "NPU203")


@pattern("T2")
def test_the_type_of_what_is_not_called_a_device() -> None:
    moves("x = n.type == 'cuda'", "x = n.type == 'npu'")


@pattern("P36", "P38")
@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("dist.init_process_group(backend='NCCL')", "dist.init_process_group(backend='HCCL')"),
        (
            "dist.init_process_group('NCCL' if ready else 'GLOO')",
            "dist.init_process_group('HCCL' if ready else 'GLOO')",
        ),
    ],
)
def test_a_backend_in_capitals(line: str, after: str) -> None:
    check_rewrite(
        f"import torch\nimport torch.distributed as dist\n{line}\n",
        f"import torch\nimport torch_npu  # noqa: F401\nimport torch.distributed as dist\n{after}\n",
    )


@pattern("T24")
@pytest.mark.parametrize("line", ["LABEL = 'NCCL'", "print('NCCL')", "columns = ['NCCL', 'MPI']"])
def test_a_label_in_capitals(line: str) -> None:
    check_noop(f"import torch\n{line}\n")


@pattern("P36", "P37")
def test_parameters_held_by_tensorflow() -> None:
    check_rewrite(
        """
        import tensorflow as tf

        hparams = tf.contrib.training.HParams(batch_size=4, dist_backend="nccl")
        """,
        """
        import tensorflow as tf
        import torch_npu  # noqa: F401

        hparams = tf.contrib.training.HParams(batch_size=4, dist_backend="hccl")
        """,
    )


@pattern("P14")
@pytest.mark.parametrize(
    "choice",
    [
        "scope = autocast if amp else nullcontext",
        "if amp:\n    scope = autocast\nelse:\n    scope = nullcontext",
    ],
)
def test_one_context_or_none(choice: str) -> None:
    head = "from contextlib import nullcontext\nimport torch\n{}from torch import autocast\n"
    check_rewrite(
        f"{head.format('')}{choice}\nwith scope('cuda'):\n    pass\n",
        f"{head.format('import torch_npu  # noqa: F401' + chr(10))}{choice}\nwith scope('npu'):\n    pass\n",
    )


@pattern("P14", "T24")
def test_one_of_two_contexts_is_not_known() -> None:
    check_noop(
        """
        import torch
        from torch import autocast
        from mine import profile

        scope = autocast if torch.rand(1) > 0 else profile
        with scope('cuda'):
            pass
        """,
        open_codes=["NPU203"],
    )


def test_a_module_named_in_a_string_moves_and_a_key_stays() -> None:
    keys = 'states["torch.cuda"] = 1\nstates.get("torch.cuda")\nstates = {"torch.cuda": 1}\n'
    source = '{}show("{name}")\nnames.index("{name}")\nmodules = {{1: "{name}"}}\n'
    check_noop(f"import torch\n{keys}")
    check_rewrite(
        source.format("import torch\n", name="torch.cuda"),
        source.format("import torch\nimport torch_npu  # noqa: F401\n", name="torch.npu"),
        codes_applied=["NPU205", "NPU403"],
    )


@pytest.mark.parametrize(
    "line",
    [
        'env = make(task="Ant", sim_device="cuda:0")',
        'isaacgym.create_sim("cuda:0")',
        'parser.add_argument("--sim_device", default="cuda:0")',
        'cfg.physics_device = "cuda"',
    ],
)
def test_the_device_of_a_simulator(line: str) -> None:
    check_noop(f"import torch\nimport isaacgym\n\n{line}\n", open_codes=["NPU273", "NPU510"])


@pytest.mark.parametrize(
    "lines",
    [
        'scene.preferences.compute_device_type = "CUDA"',
        'def select(device_type):\n    return device_type\n\nselect("CUDA")',
    ],
)
def test_the_device_of_blender(lines: str) -> None:
    check_noop(f"import bpy\n\n{lines}\n", open_codes=["NPU273"])


def test_a_device_that_a_script_without_torch_only_prints() -> None:
    lines = 'import onnxruntime\n\n\ndef run(path):\n    device = "CUDA:0"\n    print("device: %s" % device)\n'
    check_noop(lines, open_codes=[])
    assert b'"NPU:0"' in migrate(lines.replace("print(", "start(").replace(" % device", ", device")).data
    assert b'"NPU:0"' in migrate(lines.replace("onnxruntime", "torch")).data


def test_the_device_of_torch_in_a_script_of_blender() -> None:
    result = migrate("import bpy\nimport torch\n\nx = torch.ones(1, device='cuda')\n")
    assert b"device='npu'" in result.data


@pattern("P5")
def test_the_device_of_the_model_beside_a_simulator() -> None:
    check_rewrite(
        """
        import torch

        env = make(task="Ant", sim_device="cpu", rl_device="cuda:0")
        """,
        """
        import torch
        import torch_npu  # noqa: F401

        env = make(task="Ant", sim_device="cpu", rl_device="npu:0")
        """,
    )


@pytest.mark.parametrize(
    "line",
    [
        'torch.library.define("cuda_ops::b", "(Tensor x) -> Tensor")',
        'torch.library.define("mine::nms_cuda", "(Tensor x) -> Tensor")',
        'lib = torch.library.Library("cuda_ops", "DEF")',
        'custom = torch.library.custom_op("cuda_ops::c", mutates_args=())',
    ],
)
def test_the_name_of_an_operator_of_ones_own(line: str) -> None:
    check_noop(f"import torch\n\n{line}\n")


@pytest.mark.parametrize(
    "line", ['torch.library.register_kernel("mine::b", "cuda")', 'torch.library.impl("mine::b", "CUDA")']
)
def test_the_device_of_a_kernel_is_no_name(line: str) -> None:
    result = migrate(f"import torch\n\n{line}\n")
    assert result.data.endswith(f"{line}\n".encode())
    assert {"NPU208", "NPU555"} & {f.code for f in result.findings if f.open}


@pytest.mark.parametrize(
    "call",
    [
        'memory_allocated("{}:1")', 'memory.max_memory_allocated("{}")', 'get_rng_state("{}:0")',
        'random.set_rng_state(state, "{}:0")', 'default_stream("{}:1")', 'Stream("{}:1")', 'streams.Stream("{}:1")',
        'can_device_access_peer("{}:0", "{}:1")', 'reset_peak_memory_stats("{}")', '_get_device_index("{}:0")',
        'set_per_process_memory_fraction(0.5, "{}:0")',
    ],
)  # fmt: skip
def test_a_device_by_its_position_follows_the_function(call: str) -> None:
    """The call moves to torch.npu, which refuses the other's name."""
    before, after = (f"torch.{kind}.{call.replace('{}', kind)}\n" for kind in ("cuda", "npu"))
    check_rewrite(f"import torch\n{before}", f"import torch\nimport torch_npu  # noqa: F401\n{after}")


def test_another_position_is_no_device() -> None:
    check_noop('import torch\ntorch.optim.swap(1, "cuda:0")\n', open_codes=["NPU203"])


@pytest.mark.parametrize(
    "line",
    [
        "x = torch.cuda.get_device_capability('cuda') == (9, 0)",
        "x = torch.cuda.get_device_capability(device='cuda:0') == (9, 0)",
        "x = torch.cuda.get_device_capability(torch.device('cuda')) == (9, 0)",
    ],
)
def test_the_device_of_a_question_that_stays(line: str) -> None:
    check_noop(f"import torch\n\n{line}\n", open_codes=["NPU503"])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("torch.cuda.get_device_properties('cuda').name", "torch.npu.get_device_properties('npu').name"),
        ("flash_attn.models.gpt.GPTLMHeadModel(device='cuda')", "flash_attn.models.gpt.GPTLMHeadModel(device='npu')"),
    ],
)
def test_the_device_of_a_call_that_moves(before: str, after: str) -> None:
    result = migrate(f"import torch, flash_attn\nx = {before}\n")
    assert f"x = {after}\n".encode() in result.data


PLACES = """
    import torch

    def build(size, where):
        return torch.zeros(size).to(where)

    class Trainer:
        def __init__(self, where):
            self.where = torch.device(where)

        def run(self, where):
            return torch.zeros(1, device=where)

    def label(size, text):
        return f"{text}: {size}"
"""


@pytest.mark.parametrize(
    ("head", "passed_on"),
    [
        ("from pkg import build, Trainer", "from .mod import build, Trainer"),
        ("from pkg import build, Trainer", "from .mod import *"),
        ("from pkg import build, Trainer", "from pkg.mod import make as build, Trainer"),
        ("from pkg import build, Trainer", "from .inner import build, Trainer"),
    ],
)
@pytest.mark.parametrize(
    "line",
    ['build(3, "cuda")', 'build(3, where="cuda:0")', 'Trainer("cuda")', 'Trainer(where="cuda")'],
)
def test_a_positional_device_through_what_a_package_passes_on(head: str, passed_on: str, line: str) -> None:
    files = {
        "src/pkg/__init__.py": f"{passed_on}\n",
        "src/pkg/inner/__init__.py": "from ..mod import build, Trainer\n",
        "src/pkg/mod.py": PLACES.replace("build", "make") if "make" in passed_on else PLACES,
    }
    check_rewrite(
        f"import torch\n{head}\n{line}\n",
        f"import torch\nimport torch_npu  # noqa: F401\n{head}\n{line.replace('cuda', 'npu')}\n",
        files=files,
    )


@pytest.mark.parametrize("line", ["pkg.build(3, 'cuda')", "pkg.Trainer('cuda').run(0)", "pkg.mod.build(1, 'cuda')"])
def test_a_positional_device_by_the_name_of_the_package(line: str) -> None:
    files = {"pkg/__init__.py": "from .mod import *\nfrom . import mod\n", "pkg/mod.py": PLACES}
    after = f"import torch\nimport torch_npu  # noqa: F401\nimport pkg\n{line.replace('cuda', 'npu')}\n"
    check_rewrite(f"import torch\nimport pkg\n{line}\n", after, files=files)


@pytest.mark.parametrize(
    ("passed_on", "line"),
    [
        ("from .mod import label as build", 'build(3, "cuda")'),  # takes a text
        ("from .other import build", 'build(3, "cuda")'),  # no file of that name
        ("from .mod import build as _build", 'build(3, "cuda")'),
    ],
)
def test_a_positional_word_that_no_device_is_made_of(passed_on: str, line: str) -> None:
    files = {"pkg/__init__.py": f"{passed_on}\n", "pkg/mod.py": PLACES}
    result = migrate(f"from pkg import build\n{line}\n", files=files)
    assert not result.changed and any(finding.open for finding in result.findings)


@pytest.mark.parametrize(
    "line",
    [
        'x = glob(os.path.join(here, "cuda", "*.cu"))',
        'x = osp.join("cuda", "kernels")',
        'x = Path(here) / "cuda" / "kernels"',
        'x = Path("cuda", "kernels")',
        'x = Path(here).joinpath("cuda")',
    ],
)
def test_a_part_of_a_path_is_no_device(line: str) -> None:
    check_noop(f"import os\nimport os.path as osp\nfrom pathlib import Path\n{line}\n")


@pytest.mark.parametrize("line", ['x = "/".join([here, "cuda"])', 'x = join(here, "cuda")', 'x = [here, "cuda"]'])
def test_a_word_beside_a_path_may_be_one(line: str) -> None:
    check_noop(f"import os\n{line}\n", open_codes=["NPU203"])


def test_a_device_that_names_a_folder_too_is_one() -> None:
    result = migrate(
        """
        import os
        import torch

        def run(out, device="cuda"):
            torch.save(torch.zeros(2, device=device), os.path.join(out, device))
        """
    )
    assert b'device="npu"' in result.data


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_plain_function_may_call_its_first_parameter_self(elsewhere: bool) -> None:
    """As the helpers of a test class that stand beside it."""
    step = "def step(self, device, n):\n    make(n).to(device)\n"
    own, files = ("from steps import step\n", {"steps.py": f"import torch\n\n{step}"}) if elsewhere else (step, {})
    call = "class T:\n    def test(self):\n        step(self, '{}', n=1)\n"
    before, after = (f"import torch\n{own}\n{call.format(device)}" for device in ("cuda", "npu"))
    head = "import torch\nimport torch_npu  # noqa: F401\n"
    check_rewrite(before, after.replace("import torch\n", head, 1), files=files)


def test_the_self_of_a_plain_function_is_no_device() -> None:
    source = "def step(self, device):\n    make(self).to(device)\n\nstep('cuda', 'cpu')\n"
    check_noop(source, open_codes=["NPU203"])


def test_the_self_of_a_method_is_given_by_no_caller() -> None:
    source = "class T:\n    def step(self, name, device):\n        make(name).to(device)\n\nT().step('cuda', 'cpu')\n"
    check_noop(source, open_codes=["NPU203"])


@pytest.mark.parametrize(
    ("silent", "line"),
    [
        ("def run(model, device):\n    model.to(device)\n", "run(net, 'cuda')"),
        ("class Run:\n    def __init__(self, n, device=None):\n        pass\n", "Run(2, 'cuda')"),
        ("def run(size: list[int, int], device):\n    pass\n", "run([1, 2], 'cuda')"),
    ],
)
def test_a_positional_device_of_a_file_without_cuda(silent: str, line: str) -> None:
    """What its parameter is called says it, and where that stands is read in the text."""
    name = line.partition("(")[0]
    head = f"from helpers import {name}\n{line}\n"
    after = f"import torch\nimport torch_npu  # noqa: F401\n{head.replace('cuda', 'npu')}"
    check_rewrite(f"import torch\n{head}", after, files={"helpers.py": f"import torch\n\n{silent}"})


@pytest.mark.parametrize(
    ("silent", "line"),
    [
        ("def run(name, device):\n    pass\n", "run('cuda', None)"),
        ("def run(name, *, device):\n    pass\n", "run('a', 'cuda')"),
        ("def run(name, n=(1, 2), device=None):\n    pass\n", "run('a', 3, 'cuda')"),  # not plain
        ("def out():\n    def run(device):\n        pass\n", "run('cuda')"),
    ],
)
def test_another_argument_of_a_file_without_cuda(silent: str, line: str) -> None:
    source = f"from helpers import run\n{line}\n"
    check_noop(source, files={"helpers.py": f"import torch\n\n{silent}"}, open_codes=["NPU203"])


# --- who takes a backend ---------------------------------------------------------------------------------------------

TAKERS = """
import functools
import torch
import torch.distributed as dist
from ray.util import collective
from somelib import Group, Base
from vllm import LLM
from vllm.config import WeightTransferConfig
from helpers import own, Worker
"""
#: The project's own, in a file that says nothing of CUDA.
HELPERS = """
def own(backend=None):
    pass

class Worker:
    def begin(self, n, backend=None):
        pass

    def end(self, *, transport_backend):
        self.x = transport_backend
"""


def taken(lines: str, *open_codes: str, after: str = "") -> None:
    """What becomes of lines below imports of packages that take backends; without `after` nothing."""
    imports = {"NPU512", "NPU513"}  # what is said of ray and vllm
    result = migrate(TAKERS + lines, files={"helpers.py": HELPERS})
    written = result.data.decode().replace("import torch_npu  # noqa: F401\n", "")
    assert written == (TAKERS + (after or lines)).lstrip("\n")
    assert sorted({each.code for each in result.findings if not each.applied} - imports) == sorted(open_codes)


@pytest.mark.parametrize(
    "line",
    [
        "dist.init_process_group(backend='nccl')",
        "dist.new_group([0], backend='nccl')",
        "begin = functools.partial(dist.init_process_group, backend='nccl')",
        "own(backend='nccl')",
        "own('nccl')",
        "Worker().begin(2, backend='nccl')",
        "def f(x):\n    x.begin(2, backend='nccl')",  # whatever x is, the project has such a method
        "def f(x):\n    x.begin.remote(2, backend='nccl')",
        "def f(x):\n    x.begin.options(num_cpus=1).remote(2, backend='nccl')",
        "class A:\n    def f(self):\n        self.setup(backend='nccl')",
        "settings = dict(backend='nccl')",
        "settings = {'dist': {'backend': 'nccl'}}",
        "Group(options=dict(backend='nccl'))",
        "parser.add_argument('--backend', default='nccl')",
        "def f(backend='nccl'):\n    Group(backend=backend)",
        "class A:\n    backend: str = 'nccl'",
        "backend = 'nccl'\nown(backend=backend)",
        "x.backend = 'nccl'",
    ],
)
def test_a_backend_that_torch_or_the_project_takes(line: str) -> None:
    taken(line + "\n", after=line.replace("nccl", "hccl") + "\n")


@pytest.mark.parametrize(
    "line",
    [
        "Group(backend='nccl')",
        "Group(comm_backend='nccl' if n else 'gloo')",
        "make = functools.partial(Group, backend='nccl')",
        "Group.remote(backend='nccl')",
        "backend = 'nccl'\nGroup(backend=backend)",
        "backend = 'nccl' if n else 'gloo'\nown(backend)\nGroup(backend=backend)",
        "for backend in ('nccl', 'gloo'):\n    Group(backend=backend)",
        "def f(x):\n    x.launch(backend='nccl')",  # no class of the project has it
        "class A(Base):\n    def __init__(self):\n        super().__init__(backend='nccl')",
        "collective.init_collective_group(2, 0, backend='nccl')",
        "collective.init_collective_group(2, 0, 'nccl', 'group')",
        "collective.create_collective_group([], 2, [0, 1], backend='nccl')",
        "import ignite.distributed as idist\nwith idist.Parallel(backend='nccl') as run:\n    pass",
    ],
)
def test_a_backend_that_another_package_takes_is_a_finding(line: str) -> None:
    taken(line + "\n", "NPU302")


def test_the_finding_names_the_taker_and_what_to_do() -> None:
    (said,) = [each for each in migrate(f"{TAKERS}Group(backend='nccl')\n").findings if each.code == "NPU302"]
    assert "somelib.Group may not pass it to torch.distributed" in said.message
    source = f"{TAKERS}collective.init_collective_group(2, 0, backend='nccl')\n"
    (said,) = [each for each in migrate(source).findings if each.code == "NPU302"]
    assert "ray.util.collective has no hccl of its own" in said.message and "ray-ascend" in said.help


@pytest.mark.parametrize(
    "lines",
    [
        "def f(backend='nccl'):\n    collective.init_collective_group(2, 0, backend=backend)",
        "def f(backend='nccl'):\n    collective.init_collective_group(2, 0, backend)",
        "def f(args):\n    kind = getattr(args, 'sync_backend', 'nccl')\n    join(kind)\n\n"
        "def join(kind):\n    collective.init_collective_group(2, 0, kind)",
        "parser.add_argument('--a.sync_backend', default='nccl')\n"
        "collective.create_collective_group([], 2, [0, 1], args.a.sync_backend)",
        "class A:\n    backend: str = 'nccl'\n\n    def f(self):\n"
        "        collective.init_collective_group(2, 0, backend=self.backend)",
        "import ignite.distributed as idist\ndef f(backend='nccl'):\n    idist.initialize(backend)",
        "class W:\n    @ray.method(tensor_transport='nccl')\n    def f(self):\n        pass\nimport ray",
    ],
)
def test_a_backend_that_reaches_a_library_through_the_project_is_its_own(lines: str) -> None:
    taken(lines + "\n", "NPU302")


def test_a_backend_that_reaches_vllms_registry_through_the_project_stays() -> None:
    taken("def f(backend='nccl'):\n    WeightTransferConfig(backend=backend)\n")


def test_what_is_compared_with_such_a_backend_stays_beside_it() -> None:
    lines = "def f(backend='nccl'):\n    if backend == 'nccl':\n        x = 1\n"
    join = "    collective.init_collective_group(2, 0, backend=backend)\n"
    taken(lines + join, "NPU302")
    taken(lines, after=lines.replace("nccl", "hccl"))


def test_what_is_compared_with_a_variable_stays_beside_it() -> None:
    taken("backend = 'nccl'\nif backend == 'nccl':\n    Group(backend=backend)\n", "NPU302")


@pytest.mark.parametrize(
    "line",
    [
        "WeightTransferConfig(backend='nccl')",
        "WeightTransferConfig('nccl')",
        "backend = 'nccl'\nWeightTransferConfig(backend=backend)",
        "LLM('m', weight_transfer_config={'backend': 'nccl'})",
        "LLM('m', weight_transfer_config=dict(backend='nccl'))",
        "kwargs = {'weight_transfer_config': {'backend': 'nccl', 'n': 1}}",
        "cfg['weight_transfer_config']['backend'] = 'nccl'",
        "args.weight_transfer_config.backend = 'nccl'",
        "x = args.weight_transfer_config.get('backend') == 'nccl'",
        "def f(weight_transfer_config={'backend': 'nccl'}):\n    pass",
        "parser.add_argument('--weight-transfer-config', default={'backend': 'nccl'})",
        "args = ['vllm', 'serve', 'm', '--weight-transfer-config', '{\"backend\": \"nccl\"}']",
        "args = ['vllm', 'serve', 'm', '--weight-transfer-config', json.dumps({'backend': 'nccl'})]",
        "args = ['python', 'train.py', '--weight-transfer-config.backend', 'nccl']",
        "os.system('vllm serve m --weight-transfer-config \\'{\"backend\": \"nccl\"}\\'')",
    ],
)
def test_a_backend_of_vllms_own_registry_stays_without_a_word(line: str) -> None:
    taken(line + "\n")


def test_a_command_with_both_kinds_of_backend() -> None:
    command = "python train.py --weight-transfer-config {{\"backend\":\"nccl\"}} --backend {}"
    line = f"subprocess.run('{command}', shell=True)\n"
    head = "import subprocess\nimport torch.distributed as dist\nparser.add_argument('--backend')\n"
    use = "dist.init_process_group(args.backend)\n"
    check_rewrite(head + use + line.format("nccl"), head + use + line.format("hccl"))


def test_a_file_seen_alone_does_not_know_whose_function_it_is() -> None:
    source = "from helpers import own\nown(backend='nccl')\n"
    facts = ProjectFacts()
    result = migrate_source(source.encode(), "train.py", Settings(), facts)
    assert not result.changed and [each.code for each in result.findings] == ["NPU302"]


@pattern("T30")
def test_a_literal_within_another_type() -> None:
    check_rewrite(
        """
        import torch
        from typing import List, Literal
        def devices() -> List[Literal["cpu", "cuda"]]:
            found: List[Literal["cpu", "cuda"]] = ["cpu"]
            found.append("cuda")
            return [torch.zeros(1, device=each) for each in found]
        """,
        """
        import torch
        import torch_npu  # noqa: F401
        from typing import List, Literal
        def devices() -> List[Literal["cpu", "npu"]]:
            found: List[Literal["cpu", "npu"]] = ["cpu"]
            found.append("npu")
            return [torch.zeros(1, device=each) for each in found]
        """,
    )


_LATER = """
import threading
import torch
import torch.distributed.rpc as rpc
import torch.multiprocessing as mp
class Shard(torch.nn.Module):
    def __init__(self, kind, n):
        self.net = torch.nn.Linear(n, n).to(kind)
def work(rank, kind, name="cuda"):
    torch.ones(1, device=kind)
"""


@pytest.mark.parametrize(
    "call",
    [
        'rpc.remote("w", Shard, args=("cuda:0",) + more)',
        'rpc.rpc_sync("w", Shard, args=("cuda:1", 2))',
        'mp.spawn(work, args=("cuda", n), nprocs=2)',
        'threading.Thread(target=work, args=(0, "cuda:0")).start()',
        'mp.Process(target=work, args=(0, "cuda:0")).start()',
    ],
)
def test_arguments_of_a_call_that_is_made_later(call: str) -> None:
    after = migrate(_LATER + call + "\n").data.decode()
    assert call.replace("cuda", "npu") in after


@pytest.mark.parametrize(
    "call",
    [
        'mp.spawn(work, args=(1, "cuda"), nprocs=2)',  # a name
        'threading.Thread(target=work, args=more + ("cuda:0",)).start()',  # which one it is, is not known
        'threading.Thread(target=work, args=["cuda:0"]).start()',
        'threading.Thread(target=unknown, args=(0, "cuda:0")).start()',
        'own.Thread(target=work, args=(0, "cuda:0")).start()',
    ],
)
def test_arguments_of_a_call_whose_parameter_is_no_device(call: str) -> None:
    result = migrate(_LATER + call + "\n")
    assert call in result.data.decode() and "NPU203" in codes(result, applied=False)
