"""Input/output pairs of `distributed`, one theme at a time: what goes in around a small training script."""

from __future__ import annotations

import textwrap

import pytest

from tests.harness import check_noop, codes, migrate
from transplt.base.finding import FileResult

HEAD = """\
import torch
from torch.utils.data import DataLoader

from project import dataset, net
"""


#: A loader that only training reads.
SHARED = "\nloader = npu_port.shard(loader)\n"


def script(
    *,
    loader: str = "loader = DataLoader(dataset, batch_size=8, shuffle=True)",
    model: str = "model = net().cuda()",
    loop: str = "for epoch in range(3):\n    for x in loader:\n        model(x).backward()",
    head: str = "",
    tail: str = "",
) -> str:
    parts = (HEAD, head, loader, model, "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)", loop, tail)
    return "\n".join(textwrap.dedent(part).strip("\n") for part in parts if part) + "\n"


def distributed(
    source: str, *targets: str, path: str = "train.py", files: dict[str, str] | None = None, check_ranks: int = 0
) -> FileResult:
    return migrate(
        source, path=path, files=files, entry="train.py", targets=targets, helper_file=True, check_ranks=check_ranks
    )


def output(source: str, *targets: str) -> str:
    return distributed(source, *targets).data.decode()


def left(result: FileResult) -> list[str]:
    """Codes of `distributed` that are left for a person or remarked, but for the remark on the learning rate."""
    return [code for code in codes(result, applied=False) if "NPU330" <= code <= "NPU349" and code != "NPU348"]


def test_the_whole_of_a_flat_script() -> None:
    assert output(script(tail='torch.save(model.state_dict(), "m.pt")')) == textwrap.dedent("""\
        import torch
        import torch_npu  # noqa: F401
        from torch.utils.data import DataLoader

        import npu_port

        from project import dataset, net

        npu_port.start()

        loader = DataLoader(dataset, batch_size=8, shuffle=True)
        loader = npu_port.shard(loader)
        model = net().npu()
        model = npu_port.wrap(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        npu_port.own_draws()
        for epoch in range(3):
            for x in loader:
                model(x).backward()
        if npu_port.is_first():
            torch.save(model.module.state_dict(), "m.pt")
        """)


@pytest.mark.parametrize("between", ["", "\n", "\n\n", "# data\n", "\n# data\n", "x = 1\n"])
def test_the_helper_is_imported_above_its_first_call(between: str) -> None:
    found = output(script().replace("dataset, net\n", f"dataset, net\n{between}"))
    lines = found.splitlines()
    assert lines.index("import npu_port") < lines.index("npu_port.start()")
    assert lines[lines.index("import npu_port") - 1] == "" and found.count("import npu_port\n") == 1


def test_a_function_of_its_own_for_the_backward_pass() -> None:
    loop = "def backward(loss):\n    loss.backward()\n\n\nfor x in loader:\n    backward(model(x))"
    found = output(script(loop=loop))
    assert SHARED in found and "model = npu_port.wrap(model)\n" in found


def test_without_the_command_nothing_of_it_happens() -> None:
    result = migrate(script())
    assert b"npu_port" not in result.data and b"dist" not in result.data and not left(result)


def test_files_that_the_main_file_does_not_reach_stay_out_of_it() -> None:
    result = distributed("print('hello')\n", path="other.py", files={"train.py": script()})
    assert not result.changed


# --- data -----------------------------------------------------------------------------------------------------------


SAMPLERS = "from torch.utils.data import BatchSampler, RandomSampler, SequentialSampler"


@pytest.mark.parametrize(
    "loader",
    [
        "loader = DataLoader(dataset, 8, True)",
        "loader = DataLoader(dataset, 8)",
        "loader = DataLoader(dataset=dataset, shuffle=False)",
        "loader = DataLoader(dataset, shuffle=net.mixed, drop_last=True)",
        "loader = DataLoader(dataset.train, sampler=None, shuffle=True)",
        'options = {"batch_size": 8}\noptions.update({"shuffle": True})\nloader = DataLoader(dataset, **options)',
        'options = {"num_workers": 1}\nloader = DataLoader(dataset, shuffle=True, **options)',
        'options = {"num_workers": 1}\nloader = DataLoader(dataset, **options)',
        'loader = DataLoader(dataset(\n    "data"), shuffle=True)',
        "loader = DataLoader(**net.options)",
        "class Stream(torch.utils.data.IterableDataset):\n    pass\n\nloader = DataLoader(Stream())",
        "loader = DataLoader(dataset, sampler=net.sampler)",
        "loader = DataLoader(dataset, batch_sampler=net.sampler)",
        "loader = DataLoader(dataset, 8, True, net.sampler)",
        "loader = DataLoader(dataset, sampler=RandomSampler(dataset))",
        "loader = DataLoader(dataset, 8, False, torch.utils.data.RandomSampler(data_source=dataset))",
        "loader = DataLoader(\n    dataset.rows, sampler=RandomSampler(dataset.rows, replacement=False)\n)",
        "loader = DataLoader(dataset, sampler=RandomSampler(dataset, generator=None))",
        "loader = DataLoader(dataset, sampler=SequentialSampler(dataset))",
        "loader = DataLoader(dataset, sampler=RandomSampler(dataset, replacement=True))",
        "loader = DataLoader(dataset, sampler=RandomSampler(dataset, True))",
        "loader = DataLoader(dataset, sampler=RandomSampler(dataset, num_samples=8))",
        "loader = DataLoader(dataset, sampler=RandomSampler(dataset, generator=net.generator))",
        "loader = DataLoader(dataset, sampler=RandomSampler(dataset, **net.options))",
        "loader = DataLoader(dataset, sampler=RandomSampler(net.rows()))",
        "loader = DataLoader(dataset, sampler=RandomSampler(dataset) if net.mixed else SequentialSampler(dataset))",
        "loader = DataLoader(dataset, batch_sampler=BatchSampler(RandomSampler(dataset), 8, False))",
        "order = RandomSampler(dataset)\nloader = DataLoader(dataset, sampler=order)",
        "order = RandomSampler(dataset)\nloader = DataLoader(dataset, sampler=order)",
        "order = None\nif net.mixed:\n    order = RandomSampler(dataset)\nloader = DataLoader(dataset, sampler=order)",
        "class RandomSampler:\n    pass\n\nloader = DataLoader(dataset, sampler=RandomSampler(dataset))",
    ],
)
def test_a_loader_stays_as_it_is_and_its_share_is_taken_behind_it(loader: str) -> None:
    result = distributed(script(head=SAMPLERS, loader=loader))
    found = result.data.decode()
    made = loader[loader.rindex("loader = ") :]
    assert f"{made}{SHARED}" in found and found.count("npu_port.shard(") == 1 and not left(result)
    assert all(f"\n{line}\n" in found for line in loader.splitlines())


@pytest.mark.parametrize("behind", ["other = net(order)", "print(len(order))"])
def test_a_sampler_that_others_ask_stays_whole(behind: str) -> None:
    loader = f"order = RandomSampler(dataset)\nloader = DataLoader(dataset, sampler=order)\n{behind}"
    result = distributed(script(head=SAMPLERS, loader=loader))
    assert "order = RandomSampler(dataset)\n" in result.data.decode() and not left(result)
    assert f"loader = DataLoader(dataset, sampler=order){SHARED}" in result.data.decode()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "loader = [DataLoader(part, shuffle=True) for part in dataset][0]",
            "loader = [npu_port.shard(DataLoader(part, shuffle=True)) for part in dataset][0]",
        ),
        (
            "loader = [DataLoader(part, sampler=RandomSampler(part)) for part in dataset][0]",
            "loader = [npu_port.shard(DataLoader(part, sampler=RandomSampler(part))) for part in dataset][0]",
        ),
        (
            "loader = DataLoader(dataset) if net.small else net.loader()",
            "loader = npu_port.shard(DataLoader(dataset)) if net.small else net.loader()",
        ),
    ],
)
def test_a_loader_that_no_name_is_given_is_shared_out_where_it_is_made(before: str, after: str) -> None:
    result = distributed(script(head=SAMPLERS, loader=before))
    assert f"\n{after}\n" in result.data.decode() and result.data.count(b"npu_port.shard(") == 1 and not left(result)


@pytest.mark.parametrize(
    "helper",
    [
        "return DataLoader(dataset, shuffle=True)",
        "loader = DataLoader(dataset, shuffle=True)\n    return loader",
        "made = DataLoader(dataset, shuffle=True)\n    return made",
    ],
)
def test_a_loader_from_a_helper(helper: str) -> None:
    found = output(script(head=f"def build():\n    {helper}", loader="loader = build()"))
    made = helper.partition(" = ")[0]
    shared = f"    {made} = DataLoader(dataset, shuffle=True)\n    {made} = npu_port.shard({made})\n    return {made}\n"
    if helper.startswith("return"):
        shared = "    return npu_port.shard(DataLoader(dataset, shuffle=True))\n"
    assert shared in found and "\nloader = build()\nmodel = " in found and found.count("npu_port.shard(") == 1


def test_loaders_in_a_tuple_and_a_dict() -> None:
    pair = output(
        script(
            loader="def build():\n    return DataLoader(dataset, 8, True), DataLoader(net.test, 8, False)\n"
            "loader, test = build()"
        )
    )
    assert "return npu_port.shard(DataLoader(dataset, 8, True)), DataLoader(net.test, 8, False)\n" in pair
    table = output(
        script(
            loader='loaders = {"train": DataLoader(dataset, 8, True), "test": DataLoader(net.test, 8, True)}',
            loop='for epoch in range(3):\n    for x in loaders["train"]:\n        model(x).backward()',
        )
    )
    assert '{"train": npu_port.shard(DataLoader(dataset, 8, True)), "test": DataLoader(net.test, 8, True)}' in table


def test_a_loader_of_another_file() -> None:
    data = (
        "from torch.utils.data import DataLoader\n\n\ndef build(points):\n    return DataLoader(points, shuffle=True)\n"
    )
    main = script(head="from data import build", loader="loader = build(dataset)")
    result = distributed(data, path="data.py", files={"train.py": main})
    assert b"import npu_port\n" in result.data and b"npu_port.start()" not in result.data
    assert b"return npu_port.shard(DataLoader(points, shuffle=True))\n" in result.data


STREAM = "class Stream(torch.utils.data.IterableDataset):\n    def __iter__(self):\n        {}\n\n{}"


@pytest.mark.parametrize(
    "loader",
    [
        "loader = dataset",
        STREAM.format("yield net.wire.recv(2)", "loader = DataLoader(Stream())"),
        STREAM.format("yield from net.subscribe()", "rows = Stream()\nloader = DataLoader(rows)"),
        STREAM.format("yield net.poll()", "class More(Stream):\n    pass\n\nloader = DataLoader(More())"),
    ],
)
def test_data_that_is_left_whole(loader: str) -> None:
    result = distributed(script(loader=loader))
    assert left(result) == ["NPU340"] and b"shard(" not in result.data
    assert all(f"\n{line}\n" in result.data.decode() for line in loader.splitlines())


@pytest.mark.parametrize("rows", ["yield from range(9)", "yield from self.rows", "return iter(net.rows)"])
def test_a_stream_that_is_the_same_on_all_ranks_is_shared_out(rows: str) -> None:
    result = distributed(script(loader=STREAM.format(rows, "loader = DataLoader(Stream(), batch_size=8)")))
    assert SHARED in result.data.decode() and not left(result)


def test_a_loader_in_the_header_of_its_loop() -> None:
    made = "DataLoader(dataset, sampler=RandomSampler(dataset))"
    loop = f"for i in range(3):\n    for x in {made}:\n        model(x).backward()"
    found = output(script(head=SAMPLERS, loader="", loop=loop))
    assert f"    for x in npu_port.shard({made}):\n" in found


def test_a_sampler_of_an_evaluation_stays() -> None:
    made = "DataLoader(net.test, sampler=SequentialSampler(net.test))"
    test = f"test_loader = {made}\nfor x in test_loader:\n    print(model(x))"
    result = distributed(script(head=SAMPLERS, tail=test))
    assert f"\ntest_loader = {made}\nfor x in test_loader:\n" in result.data.decode() and not left(result)
    assert SHARED in result.data.decode() and result.data.count(b"npu_port.shard(") == 1


def test_data_of_a_loop_that_calls_a_step_is_left_to_the_user() -> None:
    step = "def step(x):\n    loss = model(x)\n    loss.backward()\n    optimizer.step()"
    result = distributed(script(loader="", loop=f"{step}\nfor epoch in range(3):\n    step(dataset)"))
    assert left(result).count("NPU340") == 1 and b"shard(" not in result.data
    result = distributed(script(loop=f"{step}\nfor x in loader:\n    step(x)"))
    assert not left(result) and SHARED in result.data.decode()


@pytest.mark.parametrize(
    ("head", "files"),
    [
        ("from steps import *", {}),
        ("from steps import train", {}),
        ("from kit import train", {"kit.py": "from steps import train\n"}),
        ("from kit import learn as train", {"kit.py": "from steps import train as learn\n"}),
        ("from kit import *", {"kit.py": "from steps import *\n"}),
        ("from kit import train", {"kit/__init__.py": "from .a import *\n", "kit/a.py": "from steps import *\n"}),
    ],
)
def test_a_function_that_trains_is_found_through_modules_that_pass_it_on(head: str, files: dict[str, str]) -> None:
    steps = (
        "def train(model, optimizer, loader):\n    for x in loader:\n        optimizer.zero_grad()\n"
        "        model(x.cuda()).backward()\n        optimizer.step()\n        print('step')\n"
    )
    main = script(head=head, loop="for epoch in range(3):\n    train(model, optimizer, loader)")
    found = distributed(main, files={"steps.py": steps, **files})
    assert b"model = npu_port.wrap(model)\n" in found.data
    assert SHARED in found.data.decode()
    other = distributed(steps, path="steps.py", files={"train.py": main, **files})
    assert b"        if npu_port.is_first():\n            print('step')\n" in other.data


def test_a_name_that_the_file_has_itself_is_not_that_of_a_star() -> None:
    noisy = "def say():\n    print('there')\n"
    main = script(head="from noisy import *\ndef say():\n    pass", tail="say()")
    assert b"npu_port" not in distributed(noisy, path="noisy.py", files={"train.py": main}).data


def test_what_is_downloaded_first_is_downloaded_behind_the_start() -> None:
    lines = "with requests.get('http://data') as answer:\n    open('data', 'wb').write(answer.content)"
    locked = f'with npu_port.first_on_host("downloads"):\n{textwrap.indent(lines, "    ")}\n'
    now = distributed(script(head=f"import requests\n{lines}"))
    assert f"npu_port.start()\n\n{locked}" in now.data.decode() and left(now) == []
    later = distributed(script(head=f"import requests\ndef fetch():\n{textwrap.indent(lines, '    ')}\nfetch()"))
    assert textwrap.indent(locked, "    ") in later.data.decode() and left(later) == []
    assert "npu_port.start()\n\nfetch()\n" in later.data.decode()


def test_a_loader_that_does_not_train_stays_whole() -> None:
    found = output(script(head="test = DataLoader(net.test, shuffle=False)", tail="for x in test:\n    model(x)"))
    assert "test = DataLoader(net.test, shuffle=False)\nloader = " in found and "for x in test:\n" in found
    assert SHARED in found and found.count("npu_port.shard(") == 1


def test_a_model_that_trains_in_one_pass_without_a_loop_is_wrapped() -> None:
    found = output(script(loader="", loop="model(dataset).backward()"))
    assert "model = npu_port.wrap(model)\n" in found and "shard(" not in found
    assert "\nmodel(dataset).backward()\n" in found


# --- epochs ---------------------------------------------------------------------------------------------------------
#
# Each pass over a share draws its order anew, so that nobody has to tell a loader the epoch.


TRAIN = "def train(model, loader, epoch):\n    for x in loader:\n        model(x).backward()"


@pytest.mark.parametrize(
    ("head", "loop"),
    [
        ("", "for _ in range(3):\n    for x in loader:\n        model(x).backward()"),
        ("", "while net.goes_on():\n    for x in loader:\n        model(x).backward()"),
        (TRAIN, "for i in range(3):\n    train(model, loader, i)"),
        (TRAIN.replace("loader", "batches"), "for i in range(3):\n    train(model, loader, i)"),
    ],
)
def test_nobody_tells_a_share_the_epoch(head: str, loop: str) -> None:
    found = output(script(head=head, loop=loop))
    assert f"npu_port.own_draws()\n{loop}\n" in found and head in found
    assert SHARED in found and found.count("npu_port.") == 4


def test_nor_does_the_file_that_trains() -> None:
    engine = "def train(model, loader):\n    for x in loader:\n        model(x).backward()\n"
    main = script(head="from engine import train", loop="for i in range(3):\n    train(model, loader)")
    assert not distributed(engine, path="engine.py", files={"train.py": main}).changed
    assert SHARED in distributed(main, files={"engine.py": engine}).data.decode()


def test_a_generator_that_goes_round_and_round() -> None:
    endless = "def batches(loader):\n    while True:\n        for x in loader:\n            yield x\n\n"
    endless += "\nstream = batches(loader)"
    loop = "for i in range(9):\n    x = next(stream)\n    model(x).backward()"
    result = distributed(script(model=f"{endless}\nmodel = net().cuda()", loop=loop))
    found = result.data.decode()
    assert f"npu_port.own_draws()\n{loop}\n" in found and endless in found
    assert SHARED in found and not left(result)


def test_a_loader_that_is_made_anew_in_each_epoch() -> None:
    found = output(
        script(loop="for i in range(9):\n    it = DataLoader(dataset)\n    for x in it:\n        model(x).backward()")
    )
    assert "    it = DataLoader(dataset)\n    it = npu_port.shard(it)\n    for x in it:\n" in found
    assert found.count("npu_port.shard(") == 1  # the other loader is read by nobody


def test_a_loader_without_a_name_that_is_made_anew() -> None:
    loop = "    total = 0\n    for x in DataLoader(dataset, shuffle=True):\n        model(x).backward()"
    found = output(script(loop=f"for i in range(9):\n{loop}"))
    shared = "    total = 0\n    for x in npu_port.shard(DataLoader(dataset, shuffle=True)):\n        model(x)"
    assert shared in found and found.count("npu_port.shard(") == 1


def test_data_that_nobody_seeds_is_drawn_behind_the_start() -> None:
    split = "points = torch.randn(8)\ntrain, test = torch.utils.data.random_split(points, [6, 2])"
    assert f"\nimport npu_port\n\nnpu_port.start()\n\n{split}\n" in output(script(head=split))


def test_so_is_a_split_of_what_is_there() -> None:
    split = "train, test = torch.utils.data.random_split(dataset, [6, 2])"
    assert f"dataset, net\n\nnpu_port.start()\n\n{split}\n" in output(script(head=split))


# --- models ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        "model = net()\nmodel.cuda()",
        'model = net().cuda()\nif net.path:\n    model.load_state_dict(torch.load(net.path, map_location="cuda"))',
        "model = net().cuda()\nmodel = torch.compile(model)",
    ],
)
def test_a_model_is_wrapped_behind_its_set_up(model: str) -> None:
    found = output(script(model=model))
    assert f"{model.replace('cuda', 'npu')}\nmodel = npu_port.wrap(model)\noptimizer = " in found


@pytest.mark.parametrize(
    ("model", "after"),
    [
        ("model = torch.nn.DataParallel(net()).cuda()", "model = npu_port.wrap(net().to(npu_port.card()))"),
        (
            "model = net()\nmodel = torch.nn.DataParallel(model, device_ids=[0, 1])",
            "model = net()\nmodel = npu_port.wrap(model.to(npu_port.card()))",
        ),
        (
            "model = net().cuda()\nif torch.cuda.device_count() > 1:\n    model = torch.nn.DataParallel(model)",
            "model = net().npu()\nmodel = npu_port.wrap(model)",
        ),
    ],
)
def test_data_parallel_is_replaced(model: str, after: str) -> None:
    result = distributed(script(model=model, tail="isinstance(model, torch.nn.DataParallel)"))
    found = result.data.decode()
    assert f"\n{after}\noptimizer" in found
    assert found.count("npu_port.wrap(") == 1
    assert found.endswith("isinstance(model, (torch.nn.DataParallel, DistributedDataParallel))\n")
    assert not result.tokens.manual


def test_data_parallel_goes_out_of_a_file_that_handles_the_npu_too() -> None:
    """Its own edits of such a file are taken back; lines that go in or out are not."""
    head = """
        if torch.npu.is_available():
            device = "npu"
        else:
            device = "cuda" if torch.cuda.is_available() else "cpu"
    """
    model = """
        model = net()
        if torch.cuda.device_count() > 1:
            model = torch.nn.DataParallel(model)
        model.to(device)
    """
    found = output(script(head=head, model=model))
    assert "model = net()\nmodel.to(device)\nmodel = npu_port.wrap(model)\n" in found


NETS = """\
class Nets:
    def __init__(self):
        self.critic = net().cuda()
        self.optimizer = torch.optim.SGD(self.critic.parameters(), lr=0.1)

    def keep(self, name):
        {}
"""


@pytest.mark.parametrize(
    ("line", "wrapped"),
    [
        ("net.keep(getattr(self, name).state_dict())", False),
        ("m = getattr(self, 'net_' + name); net.keep(m.cpu().state_dict())", False),
        ("getattr(self, name).load_state_dict(net.kept)", False),
        ("net.keep(self.critic.cpu().state_dict()); self.critic.cuda()", False),
        ("getattr(self, name).eval()", True),
        ("net.keep(getattr(net, name).state_dict())", True),
        ("net.keep(getattr(self, 'head').state_dict())", True),
        ("self.critic.cuda()", True),
    ],
)
def test_what_a_wrapper_does_not_stand(line: str, wrapped: bool) -> None:
    """States by a name that is made when the program runs, and moves to and fro, which take the hooks off."""
    loop = "nets = Nets()\nfor x in loader:\n    nets.critic(x).backward()\n    nets.optimizer.step()"
    found = output("\n".join((HEAD, NETS.format(line), "loader = DataLoader(dataset, 8, True)", loop)) + "\n")
    assert ("npu_port.wrap(self.critic)" in found) is wrapped
    assert ("npu_port.average(nets.optimizer)" in found) is not wrapped


def test_a_model_that_is_saved_from_the_cpu_is_the_bare_one() -> None:
    found = output(script(tail='torch.save(model.cpu().state_dict(), "m.pt")'))
    assert '    torch.save(model.module.cpu().state_dict(), "m.pt")\n' in found


def test_lengths_stay_on_the_cpu() -> None:
    """A wrapper with device_ids moves each tensor that it is given to the card, as DataParallel does."""
    head = "def packed(x, lengths):\n    return torch.nn.utils.rnn.pack_padded_sequence(x, lengths)"
    assert "model = npu_port.wrap(model, device_ids=None)\n" in output(script(head=head))
    assert "device_ids" not in output(script(head=head, model="model = torch.nn.DataParallel(net()).cuda()"))
    assert "device_ids" not in output(script())


def test_a_checkpoint_of_data_parallel_keeps_its_names() -> None:
    """DataParallel and its successor both say `module.` in front of each name."""
    tail = 'torch.save(model.state_dict(), "a")\ntorch.save(model.module.state_dict(), "b")'
    found = output(script(model="model = torch.nn.DataParallel(net())", tail=tail))
    assert '    torch.save(model.state_dict(), "a")\n    torch.save(model.module.state_dict(), "b")\n' in found


def test_a_model_without_an_optimizer_in_sight() -> None:
    source = script().replace("torch.optim.SGD(model.parameters(), lr=0.1)", "net.train_with(list(model.parameters()))")
    assert "model = npu_port.wrap(model)\n" in output(source)


def test_a_model_that_is_loaded_anew_stays_wrapped() -> None:
    found = output(script(tail='model = torch.load("best.pt")\nmodel.eval()'))
    assert (
        "npu_port.wait()  # rank 0 has written it\n"
        'model.module = torch.load("best.pt", map_location=npu_port.to_own_card)\nmodel.eval()\n'
    ) in found


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("model = torch.load(net.path)", "torch.load(net.path, map_location=npu_port.to_own_card)"),
        ("w = torch.load(net.path, weights_only=True)", "weights_only=True, map_location=npu_port.to_own_card)"),
        ('w = torch.load(net.path, map_location="cuda")', 'torch.load(net.path, map_location="npu")'),
        ('w = torch.load(net.path, "cpu")', 'torch.load(net.path, "cpu")'),
        ("w = torch.load(net.path, map_location=None)", "torch.load(net.path, map_location=None)"),
        ("w = torch.load(net.path, **net.how)", "torch.load(net.path, **net.how)"),
        ("w = torch.jit.load(net.path)", "torch.jit.load(net.path)"),
    ],
)
def test_what_was_saved_on_a_card_is_loaded_to_that_of_the_rank(before: str, after: str) -> None:
    found = output(script(model=f"{before}\nmodel = net().cuda()"))
    assert after in found and found.count("to_own_card") == after.count("to_own_card")


@pytest.mark.parametrize(
    ("effect", "removes"),
    [
        ("shutil.rmtree('run')", True),
        ("os.rename('run', 'old')", True),
        ("pathlib.Path('run').rename('old')", True),
        ("pathlib.Path('run').rmdir()", True),
        ("name = 'a-b'.replace('-', '_')", False),
        ("net.text.replace('-', '_')", False),
        ("net.table.rename(columns={'a': 'b'})", False),
    ],
)
def test_rank_0_removes_files_before_the_others_go_on(effect: str, removes: bool) -> None:
    found = output(script(head=f"import os\nimport pathlib\nimport shutil\n\nif net.anew:\n    {effect}\nnet.begin()"))
    begin = "npu_port.start()\n\nif net.anew"
    guarded = f"{begin} and npu_port.is_first():\n    {effect}\nnpu_port.wait()  # rank 0 has changed it\nnet.begin()\n"
    assert (guarded in found) is removes and (f"\nif net.anew:\n    {effect}\nnet.begin()\n" in found) is not removes


CHANGED = """
for epoch in range(3):
    for x in loader:
        model(x).backward()
        optimizer.step()
    {}
"""
READ = 'state = torch.load(path, map_location="npu")\n'
RENAME = 'torch.save(x, path)\nstate = torch.load(path, map_location="npu")\nprint(1)\nos.rename(path, "last.pt")'


@pytest.mark.parametrize(
    ("effect", "waits"),
    [
        (f"{READ}os.remove(path)", True),
        (f"{READ}print(1)\nos.rename(path, 'old.pt')", True),
        (f"{READ}shutil.move(path, 'old.pt')", True),
        (f"{READ}torch.save(state, path)", True),
        (f"{READ}Path(path).unlink()\nother.unlink()", False),
        ("state = net.load_state(path)\nos.remove(path)", True),
        (f"if epoch > 1:\n    {READ}    os.remove(path)", True),
        (f"{READ}os.remove('other.pt')", False),
        (f"{READ}for x in loader:\n    model(x).backward()\n    optimizer.step()\nos.remove(path)", False),
        (f"torch.save(x, path)\n{READ}", False),  # the next round trains first
        ("os.remove(path)", False),
        (f"{READ}print(path)", False),
    ],
)
def test_rank_0_changes_a_file_when_all_have_read_it(effect: str, waits: bool) -> None:
    found = output(
        script(
            head="import os, shutil\nfrom pathlib import Path\nfrom project import path, other",
            loop=CHANGED.format(textwrap.indent(effect, " " * 4).lstrip()),
        )
    )
    assert ("npu_port.wait()  # all ranks have read it\n" in found) is waits
    if waits:
        assert "# all ranks have read it\n    if npu_port.is_first():\n" in found.replace("        ", "    ")


def test_what_one_rank_changes_while_others_read_is_left() -> None:
    effect = f"{READ}if x.sum() > 1:\n    os.remove(path)"
    source = script(
        head="import os\nfrom project import path", loop=CHANGED.format(textwrap.indent(effect, " " * 4).lstrip())
    )
    assert left(distributed(source)) == ["NPU344"]


VALIDATED = """
for epoch in range(3):
    for x in loader:
        loss = model(x)
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        for x in DataLoader(net.valid):
            {}
            total += loss.item()
"""


@pytest.mark.parametrize(("body", "mean"), [("loss = model(x)", False), ("print(x)", True)])
def test_a_loss_of_an_evaluation_is_the_same_on_all_ranks(body: str, mean: bool) -> None:
    found = output(script(head="total = 0", loop=VALIDATED.format(body)))
    assert ("mean_over_ranks" in found) is mean


SHARED_FILE = """
    import os

    import torch
    from torch.utils.data import DataLoader

    from project import dataset, net


    def evaluate(model):
        model.load_state_dict(torch.load("best.pt"))
        return model.score()


    def main():
        model = net().cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        {0}
        for epoch in range(3):
            for x in DataLoader(dataset, batch_size=8, shuffle=True):
                model(x).backward()
                optimizer.step()
            torch.save(model.state_dict(), "best.pt")
        {1}


    if __name__ == "__main__":
        main()
"""


def test_what_a_function_behind_the_training_loads_is_there() -> None:
    found = output(SHARED_FILE.format("", "print(evaluate(model))"))
    assert "def evaluate(model):\n    npu_port.wait()  # rank 0 has written it\n    model.load_state_dict(" in found


@pytest.mark.parametrize(
    ("tail", "waits"),
    [
        (
            'if os.path.isfile("best.pt"):\n            model.load_state_dict(torch.load("best.pt"))',
            "    npu_port.wait()  # rank 0 has written it\n"
            '    if os.path.isfile("best.pt"):\n        model.module.load',
        ),
        (
            'if os.path.isfile("best.pt"):\n            print(evaluate(model))',
            '    npu_port.wait()  # rank 0 has written it\n    if os.path.isfile("best.pt"):\n',
        ),
        (
            'if epoch < 0:\n            pass\n        elif os.path.isfile("best.pt"):\n'
            '            model.load_state_dict(torch.load("best.pt"))',
            "    npu_port.wait()  # rank 0 has written it\n    if epoch < 0:\n",
        ),
        (
            'if not os.path.isfile("best.pt"):\n            return\n'
            '        model.load_state_dict(torch.load("best.pt"))',
            '    npu_port.wait()  # rank 0 has written it\n    if not os.path.isfile("best.pt"):\n        return\n',
        ),
        (
            'model.freeze()\n        model.load_state_dict(torch.load("best.pt"))',
            "    model.module.freeze()\n    npu_port.wait()  # rank 0 has written it\n    model.module.load",
        ),
    ],
)
def test_who_asks_whether_a_file_is_there_waits_first(tail: str, waits: str) -> None:
    """A rank that asks before rank 0 has written goes past the barrier that the others wait in."""
    found = output(SHARED_FILE.format("", tail))
    assert waits in found
    assert found.count("npu_port.wait()") == 1


def test_a_resume_is_not_waited_for_by_what_follows_training() -> None:
    resumed = 'if os.path.isfile("best.pt"):\n            evaluate(model)'
    found = output(SHARED_FILE.format(resumed, "print(evaluate(model))"))
    assert found.index("    for epoch in range(3):") < found.index("npu_port.wait()") < found.index("value = evaluate")
    assert found.count("npu_port.wait()") == 1


def test_what_an_epoch_loads_that_it_has_saved() -> None:
    found = output(SHARED_FILE.format("", "    evaluate(model)"))
    assert "def evaluate(model):\n    npu_port.wait()  # rank 0 has written it\n    model.load_state_dict(" in found


def test_what_is_loaded_before_training_is_waited_for_by_nobody() -> None:
    found = output(SHARED_FILE.format('if os.path.exists("best.pt"):\n            evaluate(model)', ""))
    assert "npu_port.wait()" not in found


def test_what_is_loaded_instead_of_training_is_waited_for_by_nobody() -> None:
    source = SHARED_FILE.replace("def main():", "def train():").replace(
        "        main()", "        train() if net.trains else evaluate(net())"
    )
    assert "npu_port.wait()" not in output(source.format("", ""))
    source = source.replace(
        "train() if net.trains else evaluate(net())",
        "if net.trains:\n            train()\n        else:\n            evaluate(net())",
    )
    assert "npu_port.wait()" not in output(source.format("", ""))


def test_a_file_is_asked_for_by_all_ranks_before_one_writes_it() -> None:
    ask = """if os.path.exists("start.pt"):
            model.load_state_dict(torch.load("start.pt"))
        else:
            torch.save(optimizer.state_dict(), "start.pt")"""
    assert (
        "    else:\n        npu_port.wait()  # all ranks have asked\n        if npu_port.is_first():\n"
        '            torch.save(optimizer.state_dict(), "start.pt")\n'
    ) in output(SHARED_FILE.format(ask, ""))


def test_a_file_that_is_asked_for_again_is_waited_for_by_all_who_ask() -> None:
    ask = """    if os.path.exists("start.pt"):
                model.load_state_dict(torch.load("start.pt"))
            else:
                torch.save(optimizer.state_dict(), "start.pt")"""
    found = output(SHARED_FILE.format("", ask))
    assert '    npu_port.wait()  # rank 0 has written it\n        if os.path.exists("start.pt"):\n' in found
    assert "        else:\n            npu_port.wait()  # all ranks have asked\n" in found
    assert found.count("npu_port.wait()") == 2


@pytest.mark.parametrize(
    ("made", "line"),
    [
        ('os.makedirs("out")\n            torch.save(optimizer.state_dict(), "out/start.pt")', "os.makedirs("),
        ('open("out", "w").write("x")\n        net.show(open("out").read())', "open("),
        ('torch.save(0, "out")\n        model.begin = torch.load("out")', "if npu_port.is_first():"),
    ],
)
def test_whether_something_is_made_is_asked_once(made: str, line: str) -> None:
    """A rank that comes first must not keep rank 0, which writes, out of the branch."""
    found = output(SHARED_FILE.format(f'if not os.path.exists("out"):\n            {made}', ""))
    assert f'    if npu_port.of_first(not os.path.exists("out")):\n        {line}' in found
    assert ("    npu_port.wait()  # rank 0 has written it\n" in found) is ("load" in made or "read" in made)


FILLED = """\
import glob
import json
import numpy as np


def prepare(at):
    for part in range(3):
        {writes}


def parts(at):
    return {reads}


{before}prepare("parts")
"""


@pytest.mark.parametrize(
    ("writes", "reads", "waits"),
    [
        ('np.save(f"{at}/{part}.npy", part)', 'sorted(glob.glob(at + "/*.npy"))', True),
        ('np.savez(f"{at}/{part}", part)', 'np.load(at + "/0.npz")', True),
        ('json.dump(part, open("p.json", "w"))', 'json.load(open("p.json"))', True),
        ('np.save(f"{at}/{part}.npy", part)', 'torch.load(at + "/0.pt")', False),
        ("print(part)", 'sorted(glob.glob(at + "/*.npy"))', False),
    ],
)
def test_files_that_a_function_writes_before_others_list_or_load_them(writes: str, reads: str, waits: bool) -> None:
    head = FILLED.replace("{writes}", writes).replace("{reads}", reads)
    found = output(script(head=head.replace("{before}", "")))
    assert ('\nprepare("parts")\nnpu_port.wait()  # rank 0 has written it\n' in found) is waits
    assert "wait()" not in output(script(head=head.replace("{before}", "if net.rank:\n    pass\nelse:\n    x = ")))


PREPARED = """\
import os


class Data:
    def prepare(self):
        if not os.path.exists({asked}):
            torch.save(net.points(), {asked})

    def setup(self):
        {before}
        return {reads}


"""


@pytest.mark.parametrize(
    ("asked", "reads", "waits"),
    [
        ('"d.pt"', 'torch.load("d.pt")', True),
        ("self.path", "torch.load(self.path)", True),
        ("PATH", 'net.parse(open(PATH, "rb"))', True),
        ('"d.pt"', 'torch.load("other.pt")', False),
        ('"d.pt"', 'open("d.pt", "w")', False),
        ("path", "torch.load(path)", False),  # another one, for all that is known
    ],
)
def test_what_is_made_where_it_is_missing_and_read_by_another_function(asked: str, reads: str, waits: bool) -> None:
    head = PREPARED.format(asked=asked, before="self.prepare()", reads=reads)
    made = f"if npu_port.of_first(not os.path.exists({asked})):\n"
    found = output(script(head=head, model="data = Data().setup()\nmodel = net().cuda()"))
    assert (f"        {made}" in found) is waits
    assert (f", {asked})\n        npu_port.wait()  # rank 0 has written it\n" in found) is waits


@pytest.mark.parametrize(
    "made",
    [
        'os.makedirs("out")',
        'os.makedirs("out")\n            net.show(model)',
        'torch.save(0, "out")\n        model.begin = torch.load("other")',
        'raise FileNotFoundError("out")\n        model.begin = torch.load("out")',
    ],
)
def test_what_each_rank_may_find_for_itself_is_not_asked_once(made: str) -> None:
    found = output(SHARED_FILE.format(f'if not os.path.exists("out"):\n            {made}', ""))
    assert "of_first" not in found


@pytest.mark.parametrize("opens", ["gzip.open", "bz2.open", "lzma.open", "io.open"])
def test_a_stream_that_is_written_is_opened_by_rank_0(opens: str) -> None:
    head = f"import {opens.partition('.')[0]}\nimport pickle"
    found = output(script(head=head, tail=f'with {opens}("m", "wb") as f:\n    pickle.dump(epoch, f)'))
    assert f'if npu_port.is_first():\n    with {opens}("m", "wb") as f:\n        pickle.dump(epoch, f)' in found
    assert f'f = {opens}("m" if npu_port.is_first() else os.devnull, "wb")\n' in output(
        script(head=head, tail=f'f = {opens}("m", "wb")\nnet.keep(f)')
    )


@pytest.mark.parametrize("call", ["logging.basicConfig(filename={}, level=1)", "handler = logging.FileHandler({})"])
def test_a_log_is_a_file_of_rank_0(call: str) -> None:
    found = output(script(head="import logging\nimport os\n" + call.format('"log.txt"')))
    assert call.format('"log.txt" if npu_port.is_first() else os.devnull') in found


@pytest.mark.parametrize("call", ["logging.basicConfig(level=1)", "h = logging.StreamHandler()", "net.FileHandler(1)"])
def test_a_log_without_a_file_stays(call: str) -> None:
    assert "devnull" not in output(script(head="import logging\n" + call))


@pytest.mark.parametrize("opens", ['gzip.open("m")', 'gzip.open("m", "rb")', 'net.open("m", "wb")', 'Image.open("m")'])
def test_a_stream_that_is_read_is_opened_by_all(opens: str) -> None:
    found = output(script(head="import gzip", tail=f"with {opens} as f:\n    net.keep(f)"))
    assert f"\nwith {opens} as f:\n    net.keep(f)\n" in found


def test_a_file_that_is_only_taken_away_needs_no_waiting() -> None:
    taken = 'if os.path.exists("old.pt"):\n            os.remove("old.pt")'
    assert "npu_port.wait()" not in output(SHARED_FILE.format(taken, ""))


def test_a_model_that_another_function_makes_anew_gets_no_argument_of_torch_load() -> None:
    found = output(script(tail='model = net.restore("best.pt")\nmodel.eval()'))
    assert '\nmodel.module = net.restore("best.pt")\nmodel.eval()\n' in found


def test_a_method_that_uses_the_model_too_early() -> None:
    result = distributed("""
        import torch
        from torch.utils.data import DataLoader

        from project import dataset, net


        class Trainer:
            def __init__(self):
                self.model = net()
                self.restore()
                self.model.cuda()
                self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

            def restore(self):
                self.model.load_state_dict(torch.load("m.pt"))

            def fit(self):
                for epoch in range(2):
                    for x in DataLoader(dataset, shuffle=True):
                        self.model(x).backward()
                        self.optimizer.step()


        if __name__ == "__main__":
            Trainer().fit()
    """)
    assert b"npu_port.wrap(" not in result.data
    assert b"                npu_port.average(self.optimizer)\n                self.optimizer.step()\n" in result.data


def test_the_bare_model() -> None:
    found = output(
        script(
            tail="""
        model.train()
        model.head.weight
        for name, value in model.named_parameters():
            pass
        net.evaluate(model)
    """
        )
    )
    assert "\nmodel.train()\n" in found
    assert "model.module.head.weight" in found
    assert "model.module.named_parameters()" in found
    assert "net.evaluate(model.module)" in found


def test_targets() -> None:
    two = script(
        model="model = net().cuda()\ncritic = net.critic.cuda()\nother = torch.optim.SGD(critic.parameters(), lr=0.1)",
        loop="for epoch in range(3):\n    for x in loader:\n        critic(model(x)).backward(); optimizer.step()",
    )
    assert output(two).count("npu_port.wrap(") == 2
    only = distributed(two, "critic")
    assert b"npu_port" not in only.data and left(only) == ["NPU332"]
    assert "npu_port.start()" in output(two, "critic", "model")


def test_a_model_that_runs_twice_in_a_step() -> None:
    loop = "for epoch in range(3):\n    for x in loader:\n        (model(x) + model(-x)).backward()"
    assert "broadcast_buffers=False" in output(script(loop=loop, model="model = net(torch.nn.BatchNorm1d).cuda()"))
    assert "broadcast_buffers" not in output(script(loop=loop))


# --- start ----------------------------------------------------------------------------------------------------------


def body(end: str) -> str:
    inner = textwrap.indent(script()[len(HEAD) :], "    ")
    return f"{HEAD}\n\ndef main():\n{inner}\n\n{end}\n"


def test_start_in_the_main_guard() -> None:
    found = output(body('if __name__ == "__main__":\n    main()'))
    assert found.endswith('\nif __name__ == "__main__":\n    npu_port.start()\n    main()\n')
    assert found.count("npu_port.start()") == 1


def test_start_in_a_main_function_that_does_not_come_back() -> None:
    found = output(body('if __name__ == "__main__":\n    raise SystemExit(main())'))
    assert "def main():\n    npu_port.start()\n    loader = " in found
    assert found.endswith('\nif __name__ == "__main__":\n    raise SystemExit(main())\n')


def test_start_before_a_main_function_that_is_called_under_a_condition() -> None:
    found = output(body('if __name__ == "__main__":\n    net.ready and main()'))
    assert found.endswith('\nif __name__ == "__main__":\n    npu_port.start()\n    net.ready and main()\n')


def test_a_lambda_that_moves_to_a_card_does_not_start_the_group() -> None:
    found = output(script(head="to_card = lambda x: x.cuda()"))
    assert "\nto_card = lambda x: x.npu()\n\nnpu_port.start()\n\nloader = " in found


def test_nothing_stands_at_the_end() -> None:
    """The start sees to that."""
    for tail in ("", "raise SystemExit(0)", "x = 1"):
        assert output(script(tail=tail)).endswith(f"        model(x).backward()\n{tail}\n".replace("\n\n", "\n"))


@pytest.mark.parametrize(
    "source",
    [
        body('if __name__ == "__main__":\n    print(1)'),
        f"{HEAD}\n\ndef train(model):\n    for x in DataLoader(dataset):\n        model(x).backward()\n",
    ],
)
def test_a_main_file_that_does_not_call_its_training(source: str) -> None:
    result = distributed(source)
    assert left(result) == ["NPU332"] and b"npu_port" not in result.data
    said = "could not follow the main file to its training code"
    assert any(said in finding.message for finding in result.findings)


def test_cards_by_number() -> None:
    result = distributed(
        script(
            head="""
        import os
        os.environ["CUDA_VISIBLE_DEVICES"] = "0"
        torch.cuda.set_device(0)
        device = torch.device("cuda:0")
    """,
            model="model = net().cuda(0)",
        )
    )
    found = result.data.decode()
    assert "VISIBLE_DEVICES" not in found and "set_device" not in found and "npu_port.start()" in found
    assert 'torch.device("npu")' in found and "net().npu()" in found
    assert not left(result)


def test_a_second_card_leaves_the_program_whole() -> None:
    result = distributed(script(tail='net.teacher.to("cuda:1")'))
    assert b"npu_port" not in result.data and left(result) == ["NPU335"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('torch.device(f"cuda:{net.card}")', 'torch.device("npu")'),
        ('torch.device("cuda:" + str(net.card))', 'torch.device("npu")'),
        ('torch.device("cuda:%d" % net.card)', 'torch.device("npu")'),
        ('torch.device("cuda:{}".format(net.card))', 'torch.device("npu")'),
        ('torch.device("cuda", net.card)', 'torch.device("npu")'),
        ("torch.ones(2).cuda(net.card)", "torch.ones(2).npu()"),
        ("torch.ones(2).cuda(net.card, non_blocking=True)", "torch.ones(2).npu(non_blocking=True)"),
    ],
)
def test_a_card_by_a_number_that_the_user_gives_is_that_of_the_rank(before: str, after: str) -> None:
    assert f"place = {after}\n" in output(script(head=f"place = {before}"))


def test_a_card_that_is_set_under_a_condition_is_left_to_the_user() -> None:
    result = distributed(script(head="net.placed or torch.cuda.set_device(0)"))
    assert b"\nnet.placed or torch.npu.set_device(0)\n" in result.data and b"npu_port" not in result.data
    assert left(result) == ["NPU335"]


@pytest.mark.parametrize(
    "setup",
    [
        "import torch.distributed as dist\ndist.init_process_group('nccl')",
        "from accelerate import Accelerator\naccelerator = Accelerator()",
        "import pytorch_lightning as pl\ntrainer = pl.Trainer()",
        "from transformers import Seq2SeqTrainer\ntrainer = Seq2SeqTrainer()",
        "import deepspeed\nengine = deepspeed.initialize(model=None)",
        "from mmengine.runner import Runner\nrunner = Runner()",
        "from composer import Trainer\ntrainer = Trainer()",
        "from transformers import Trainer\n\n\nclass Mine(Trainer):\n    pass",
        "from fairscale.nn.data_parallel import ShardedDataParallel\nnet = ShardedDataParallel(1, 2)",
    ],
)
def test_programs_that_are_distributed_already(setup: str) -> None:
    result = distributed(script(head=setup))
    assert b"npu_port" not in result.data and b"LOCAL_RANK" not in result.data
    assert left(result) == ["NPU330"]


def test_a_script_that_trains_nothing() -> None:
    check_noop("import torch\n\nprint(torch.zeros(1))\n", open_codes=["NPU332"], entry="train.py")


# --- effects --------------------------------------------------------------------------------------------------------


def test_neighbours_share_a_condition() -> None:
    found = output(script(tail="print(1)\nprint(2)\nx = 3\nprint(x)"))
    assert (
        "if npu_port.is_first():\n    print(1)\n    print(2)\nx = 3\nif npu_port.is_first():\n    print(x)\n" in found
    )


def test_a_condition_gets_one_more_term() -> None:
    found = output(script(tail="if net.loud or net.verbose:\n    print(1)"))
    assert "if (net.loud or net.verbose) and npu_port.is_first():\n    print(1)\n" in found


def test_strings_over_several_lines_stay() -> None:
    found = output(script(tail='print("""a\n  b\nc""")'))
    assert 'if npu_port.is_first():\n    print("""a\n  b\nc""")\n' in found


def test_a_model_that_runs_for_a_line_of_output_runs_on_all_ranks() -> None:
    found = output(script(tail="print(model(dataset[0]))"))
    assert "\nvalue = model(dataset[0])\nif npu_port.is_first():\n    print(value)\n" in found


def test_progress_tensorboard_and_wandb() -> None:
    found = output(
        script(
            head="import wandb\nfrom torch.utils.tensorboard import SummaryWriter\nfrom tqdm import tqdm",
            model='model = net().cuda()\nwriter = SummaryWriter("runs")\nwandb.init(project="p")',
            loop="for epoch in range(3):\n    for x in tqdm(loader):\n        model(x).backward()\n"
            "    writer.add_scalar('e', epoch)",
            tail="writer.close()",
        )
    )
    assert "tqdm(loader, disable=not npu_port.is_first())" in found
    assert 'writer = SummaryWriter("runs") if npu_port.is_first() else None\n' in found
    assert 'wandb.init(project="p", mode=None if npu_port.is_first() else "disabled")' in found
    assert "    if npu_port.is_first():\n        writer.add_scalar('e', epoch)\n" in found
    assert found.endswith("if npu_port.is_first():\n    writer.close()\n")


def test_downloads_and_folders() -> None:
    found = output(
        script(
            head='import os\nos.mkdir("out")\nos.makedirs("new", exist_ok=False)\n'
            'images = net.MNIST("data", download=True)',
            loader="loader = DataLoader(images, shuffle=True)",
        )
    )
    assert 'os.makedirs("out", exist_ok=True)' in found and 'os.makedirs("new", exist_ok=True)' in found
    assert 'with npu_port.first_on_host("downloads"):\n    images = net.MNIST("data", download=True)\nloader' in found


# --- losses ---------------------------------------------------------------------------------------------------------

LOOP = (
    "for epoch in range(3):\n    for i, x in enumerate(loader):\n        loss = model(x)\n        loss.backward()\n{}"
)


MEAN = "mean_loss = npu_port.mean_over_ranks(loss)\n"


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("if loss.item() < best:\n    best = 0", "if mean_loss.item() < best:\n    best = 0\n"),
        ("if loss.item() > 9:\n    break", "if mean_loss.item() > 9:\n    break\n"),
        ("if i % 2:\n    x = 1\nelif loss.item() > 9:\n    break", "if i % 2:\n    x = 1\nelif mean_loss.item() > 9:"),
        ("for k in range(int(loss.item())):\n    x = k", "for k in range(int(mean_loss.item())):\n    x = k\n"),
    ],
)
def test_a_condition_reads_the_mean_that_all_ranks_have_taken_above_it(body: str, wanted: str) -> None:
    found = output(script(head="best = 9.0", loop=LOOP.format(textwrap.indent(body, " " * 8))))
    assert textwrap.indent(MEAN + wanted, " " * 8) in found and found.count("npu_port.mean_over_ranks(") == 1


def test_a_loss_that_a_block_works_out_is_averaged_within_it() -> None:
    loop = """
        for x in loader:
            with torch.no_grad():
                loss = model(x)
                if loss.item() > 9:
                    break
            loss.backward()
            optimizer.step()
        """
    assert "        loss = model(x)\n" + textwrap.indent(MEAN, " " * 8) in output(script(loop=loop))


def test_what_a_loop_asks_anew_in_each_round_is_that_of_one_rank() -> None:
    result = distributed(script(loop=LOOP.format("        while loss.item() > 9:\n            x = 1")))
    assert left(result) == ["NPU346"] and b"mean_over_ranks" not in result.data
    steps = "        while loss.item() > 9:\n            loss = model(x)\n            loss.backward()"
    assert left(distributed(script(loop=LOOP.format(steps)))) == ["NPU332"]


def test_a_loader_that_a_function_makes_anew_is_shared_out_there() -> None:
    loop = """
        def learn(data):
            for x in DataLoader(data, batch_size=8, shuffle=True):
                model(x).backward()
                optimizer.step()

        for epoch in range(3):
            learn(dataset)
        """
    result = distributed(script(loader="", loop=loop))
    shared = b"    for x in npu_port.shard(DataLoader(data, batch_size=8, shuffle=True)):\n"
    assert not left(result) and shared in result.data and b"for epoch in range(3):\n    learn(dataset)\n" in result.data


def loop(*lines: str) -> str:
    return LOOP.format("\n".join("        " + line for line in lines))


def test_the_mean_is_taken_where_all_ranks_come_by() -> None:
    found = output(script(loop=loop("if i % 10 == 0:", "    print(loss.item())")))
    assert (
        "        if i % 10 == 0:\n            mean_loss = npu_port.mean_over_ranks(loss)\n"
        "            if npu_port.is_first():\n                print(mean_loss.item())\n"
    ) in found


IN_FUNCTION = """\
def fit(loader):
    for x in loader:
        loss = model(x)
        loss.backward()
        optimizer.step()
    {}


print(fit(loader))
"""


@pytest.mark.parametrize(
    ("last", "after"),
    [
        ("return loss.item()", "return mean_loss.item()"),
        ("return loss", "return mean_loss"),
        ("return loss.detach(), 1", "return mean_loss.detach(), 1"),
        ("net.last = float(loss)", "net.last = float(mean_loss)"),
    ],
)
def test_a_loss_that_leaves_its_loop_is_that_of_all_ranks(last: str, after: str) -> None:
    mean = f"    mean_loss = npu_port.mean_over_ranks(loss)\n    {after}\n"
    assert mean in output(script(loop=IN_FUNCTION.format(last)))


@pytest.mark.parametrize("last", ["return 1", "loss = net.check()\n    return loss.item()", "net.show(loss)"])
def test_what_is_no_loss_of_the_loop_leaves_as_it_is(last: str) -> None:
    assert "mean_over_ranks" not in output(script(loop=IN_FUNCTION.format(last)))


def test_the_mean_under_a_condition_that_a_setting_decides() -> None:
    found = output(script(head="every = net.every", loop=loop("if i % every == 0:", "    print(loss.item())")))
    assert "        if i % every == 0:\n            mean_loss = npu_port.mean_over_ranks(loss)\n" in found


@pytest.mark.parametrize(
    ("lines", "after"),
    [
        (["print(float(loss))"], "print(float(mean_loss))"),
        (["net.total = loss * 2", "print(loss.item())"], "print(mean_loss.item())"),
    ],
)
def test_forms_of_a_loss_that_is_read(lines: list[str], after: str) -> None:
    found = output(script(loop=loop(*lines)))
    mean = ("mean_loss = npu_port.mean_over_ranks(loss)", "if npu_port.is_first():", f"    {after}")
    assert "\n" + "".join(f"        {line}\n" for line in (*lines[:-1], *mean)) in found


def test_a_sum_over_the_share_of_a_card_is_divided_by_the_length_of_the_share() -> None:
    train = """
        def train():
            total = 0
            for x in loader:
                loss = model(x)
                loss.backward()
                total += loss.item()
            print(total / len(loader.dataset))
        train()
    """
    found = output(script(loop=train))
    assert "        print(total / len(loader.sampler))\n" in found


@pytest.mark.parametrize("counted", ["loader.dataset", "rows"])
def test_so_is_one_of_a_flat_script(counted: str) -> None:
    loop = """
        for epoch in range(3):
            total = 0
            for x in loader:
                loss = model(x)
                loss.backward()
                total += loss.item()
            print(total / len({0}))
    """
    loader = "rows = net.rows()\nloader = DataLoader(rows, batch_size=8, shuffle=True)"
    found = output(script(loader=loader, loop=loop.format(counted)))
    assert "        print(total / len(loader.sampler))\n" in found


@pytest.mark.parametrize(
    ("loader", "shown"),
    [
        ("loader = DataLoader(dataset, batch_size=8, shuffle=True)", "score / len(dataset)"),  # of a loop of its own
        ("loader = DataLoader(dataset, batch_size=8, shuffle=True)", "total / len(net.other)"),
        ("loader = DataLoader(dataset, batch_size=8, sampler=net.sampler)", "total / len(loader.dataset)"),
    ],
)
def test_a_sum_over_other_data_is_not(loader: str, shown: str) -> None:
    loop = """
        for epoch in range(3):
            total, score = 0, 0
            for x in loader:
                loss = model(x)
                loss.backward()
                total += loss.item()
            for x in dataset:
                score += net.judge(x)
            print({0})
    """
    assert f"    print({shown})\n" in output(script(loader=loader, loop=loop.format(shown)))


SUMMED = """
    for epoch in range(3):
        correct, count, began = 0, 0, 0.0
        for i, (x, y) in enumerate(loader):
            out = model(x)
            net.loss(out, y).backward()
            correct += (out.argmax(1) == y).sum().item()
            count += len(y)
            {0}
        {1}
"""
ROWS = "from torch.utils.data import TensorDataset\nrows, marks = net.rows()\n"


@pytest.mark.parametrize(
    ("loader", "shown", "after"),
    [
        (
            "DataLoader(TensorDataset(rows, marks), 8, True)",
            "print(correct / len(rows))",
            "correct / len(loader.sampler)",
        ),
        (
            "DataLoader(TensorDataset(rows, marks))",
            "print(100. * correct / len(marks))",
            "correct / len(loader.sampler)",
        ),
        ("DataLoader(dataset, 8, True)", "correct /= len(loader.dataset)", "correct /= len(loader.sampler)\n"),
        ("DataLoader(rows, 8, True)", "correct /= len(rows)", "correct /= len(loader.sampler)\n"),
    ],
)
def test_so_is_one_that_is_divided_by_the_length_of_a_tensor_or_in_place(loader: str, shown: str, after: str) -> None:
    result = distributed(script(head=ROWS, loader=f"loader = {loader}", loop=SUMMED.format("pass", shown)))
    assert after in result.data.decode() and not left(result)


@pytest.mark.parametrize("counted", ["len(rows)", "len(loader.dataset)"])
@pytest.mark.parametrize(
    ("before", "share"), [("for x, y in loader:\n    net.weigh(y)", True), ("net.weigh(rows)", False)]
)
def test_it_is_the_share_that_counts_where_the_loader_stays_whole(counted: str, before: str, share: bool) -> None:
    loader = f"loader = DataLoader(rows, 8, True)\n{before}"
    text = output(script(head=ROWS, loader=loader, loop=SUMMED.format("pass", f"print(correct / {counted})")))
    shared = "npu_port.shard(loader)" if share else "loader"
    assert f"in enumerate({shared}):\n" in text and f"mean_over_ranks(correct / len({shared}.sampler))\n" in text


@pytest.mark.parametrize(
    "shown",
    [
        "print(correct / 48)",
        "print('%.1f' % (100. * correct / 10000))",
        "correct /= 48",
        "print(correct / len(rows))",
        "print(correct / rows.shape[0])",
        "print(correct / marks.size(0))",
        "length = len(dataset)\n        print(correct / length)",
        "print(correct / (len(dataset) // 8))",
    ],
)
def test_a_sum_that_is_divided_by_what_may_be_all_of_the_data_is_remarked(shown: str) -> None:
    source = script(head=ROWS, loop=SUMMED.format("pass", shown))
    result = distributed(source)
    assert left(result) == ["NPU346"] and shown.splitlines()[-1].strip() in result.data.decode()
    remark = next(finding for finding in result.findings if finding.code == "NPU346")
    line = source.splitlines()[remark.span.line - 1]
    assert "correct" in line and "/" in line


@pytest.mark.parametrize(
    ("inside", "shown"),
    [
        ("pass", "print(correct / count)"),
        ("pass", "print(correct / count / 2)"),
        ("pass", "print(correct / len(loader))"),
        ("pass", "print(correct / (2 * len(loader)))"),
        ("pass", "print(correct / len(loader.sampler))"),
        ("pass", "print(correct / (i + 1))"),
        ("pass", "batches = len(loader)\n        print(correct / batches)"),
        ("pass", "print(count / 48, correct / 1)"),
        ("if i % 10 == 9:\n                print(correct / 10)\n                correct = 0", "pass"),
        ("print(correct / 10)", "pass"),
        ("began += net.time(x)", "print(began / 1000, began / 60)"),
        (
            "pass",
            "correct = 0\n        for x in net.test:\n            correct += net.judge(x)\n        print(correct / 48)",
        ),
    ],
)
def test_other_sums_and_divisors_are_not(inside: str, shown: str) -> None:
    result = distributed(script(head=ROWS, loop=SUMMED.format(inside, shown)))
    assert not left(result) and SHARED in result.data.decode()
    assert (b"len(loader.sampler)" in result.data) is ("sampler" in shown)


def test_a_sum_over_data_that_is_not_shared_out_is_not() -> None:
    loader = STREAM.format("yield net.wire.recv(2)", "loader = DataLoader(Stream())")
    for shown in ("print(correct / 48)", "print(correct / len(rows))", "print(correct / len(loader.dataset))"):
        result = distributed(script(head=ROWS, loader=loader, loop=SUMMED.format("pass", shown)))
        assert {*left(result)} <= {"NPU340", "NPU346"} and shown in result.data.decode()


def test_nor_is_one_of_an_evaluation_with_the_variable_of_the_training() -> None:
    test = (
        "correct = 0\n        for x in whole:\n            correct += net.judge(x)\n        print(correct / len(rows))"
    )
    loader = "rows = net.rows()\nloader = DataLoader(rows, 8, shuffle=True)\nwhole = DataLoader(rows, 8)"
    result = distributed(script(loader=loader, loop=SUMMED.format("pass", test)))
    assert not left(result) and b"print(correct / len(rows))" in result.data


def test_each_division_is_remarked_once_also_of_losses_of_which_the_mean_is_taken() -> None:
    sums = "for x in loader:\n        loss = model(x)\n        loss.backward()\n        total += loss.item()"
    step = f"total = 0\n    {sums}\n    print(total / 48)"
    loop = f"def train():\n    {step}\n\n\nfor epoch in range(3):\n    train()\n    {step}"
    result = distributed(script(loop=loop))
    lines = [finding.span.line for finding in result.findings if finding.code == "NPU346"]
    assert len(lines) == len(set(lines)) == 2 and result.data.count(b"print(total / 48)") == 2


def test_nor_is_one_by_a_tensor_that_is_cut_later() -> None:
    loader = "loader = DataLoader(TensorDataset(rows, marks), shuffle=True)\nrows = rows[:8]"
    result = distributed(script(head=ROWS, loader=loader, loop=SUMMED.format("pass", "print(correct / len(rows))")))
    assert left(result) == ["NPU346"] and b"print(correct / len(rows))" in result.data


def test_a_loss_that_is_read_below_its_loop() -> None:
    found = output(script(loop=loop("optimizer.step()") + "\n    print(epoch, loss.item())"))
    assert (
        "        optimizer.step()\n    mean_loss = npu_port.mean_over_ranks(loss)\n"
        "    if npu_port.is_first():\n        print(epoch, mean_loss.item())\n"
    ) in found


def test_no_rank_waits_in_a_condition_of_another() -> None:
    result = distributed(script(loop=loop("if loss > 2:", "    print(loss.item())")))
    assert b"mean_over_ranks" not in result.data
    assert left(result) == ["NPU346"]


def test_accumulated_gradients() -> None:
    found = output(script(loop=loop("if (i + 1) % 4 == 0:", "    optimizer.step()")))
    assert (
        "        with contextlib.nullcontext() if (i + 1) % 4 == 0 else model.no_sync():\n"
        "            loss = model(x)\n            loss.backward()\n"
    ) in found
    other = distributed(
        script(
            loop=loop("if (i + 1) % 4 == 0:", "    optimizer.step()").replace(
                "loss = model(x)", "i = i + 1\n        loss = model(x)\n        i = i + 0"
            )
        )
    )
    assert "NPU332" in left(other) and b"no_sync" not in other.data


def test_the_condition_of_a_step_over_two_lines_is_copied_on_one() -> None:
    found = output(script(loop=loop("if ((i + 1)", "        % 4 == 0):", "    optimizer.step()")))
    assert "        with contextlib.nullcontext() if (i + 1) % 4 == 0 else model.no_sync():\n" in found


def test_a_counter_that_goes_up_behind_the_pass_cannot_be_asked_before_it() -> None:
    lines = ["done += 1", "if done % 4 == 0:", "    optimizer.step()"]
    result = distributed(script(head="done = 0", loop=loop(*lines)))
    assert left(result) == ["NPU332"] and b"no_sync" not in result.data


@pytest.mark.parametrize(
    "head",
    [
        "",
        "torch.manual_seed(0)",
        "train, test = torch.utils.data.random_split(dataset, [8, 2], generator=net.generator)",
        "import numpy as np\ntorch.manual_seed(0)\nnoise = np.random.rand(3)",
        "import random\nrandom.seed(0)\norder = random.sample(range(9), 3)",
    ],
)
def test_no_seed_is_touched(head: str) -> None:
    """The ranks begin with the streams of rank 0, and each draws its own numbers from the training loop on."""
    found = output(script(head=head))
    drawn = [line for line in head.splitlines() if "import" not in line]
    assert all(found.count(f"{line}\n") == 1 for line in drawn)
    assert "npu_port.own_draws()\nfor epoch in range(3):\n" in found and "same_draws" not in found
    assert found.count("seed") == head.count("seed")


def test_what_nobody_seeds_is_drawn_behind_the_start() -> None:
    found = output(script(head="import numpy as np\n\nnoise = np.random.rand(3)\nrows = torch.rand(3)"))
    assert "npu_port.start()\n\nnoise = np.random.rand(3)\nrows = torch.rand(3)\n" in found


@pytest.mark.parametrize(
    ("head", "tail", "shown"),
    [
        ("npu_port = net.port", "print(npu_port)", "print(npu_port)"),
        ("def show():\n    npu_port = 1\n    return npu_port", "print(show())", "print(show())"),
        ("def show(npu_port):\n    return npu_port", "print(show(1))", "print(show(1))"),
        ("from project import port as npu_port", "print(npu_port)", "print(npu_port)"),
    ],
)
def test_names_that_are_taken(head: str, tail: str, shown: str) -> None:
    found = output(script(head=head, tail=tail))
    assert "import npu_port as npu_helper\n" in found and "npu_helper.start()\n" in found
    assert f"if npu_helper.is_first():\n    {shown}\n" in found and "npu_port.start()" not in found


def test_a_name_of_the_user_that_nobody_writes_any_more() -> None:
    found = output(script(head="dist = net.distance", tail="print(dist)"))
    assert "if npu_port.is_first():\n    print(dist)\n" in found and "torch.distributed" not in found


def test_a_line_of_several_statements_is_parted() -> None:
    found = output(script(model="model = net(); model.cuda()"))
    assert "model = net(); model.npu()\nmodel = npu_port.wrap(model)\n" in found
    start = output(script(loader="import random; loader = DataLoader(dataset, shuffle=True)  # data"))
    assert "\nimport random\n" in start
    assert "npu_port.start()\n\nloader = DataLoader(dataset, shuffle=True)  # data\nloader = npu_port.shard(" in start
    step = "loss = model(x); loss.backward(); print(loss.item())"
    loop = output(script(loop=f"for epoch in range(3):\n    for x in loader: {step}"))
    assert "    for x in loader:\n        loss = model(x); loss.backward()\n        mean_loss = npu_port" in loop
    assert "        if npu_port.is_first():\n            print(mean_loss.item())\n" in loop


def test_what_stands_before_the_start_on_its_line_asks_for_no_rank() -> None:
    found = output(script(loader="print('hello'); loader = DataLoader(dataset, shuffle=True)"))
    assert "\nprint('hello')\n" in found


def test_a_line_with_a_comment_that_switches_edits_off_is_not_parted() -> None:
    result = distributed(script(model="model = net(); model.cuda()  # transplt: ignore"))
    assert b"model = net(); model.cuda()  # transplt: ignore\n" in result.data
