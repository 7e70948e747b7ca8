"""Which loaders are shared out, and where: those that training reads, so that nothing else reads a share."""

from __future__ import annotations

import textwrap

import pytest

from tests.distributed.test_pairs import HEAD, distributed, left, output, script
from transplt.base.finding import FileResult

MODEL = "model = net().cuda()\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
LOADERS = "train_loader = DataLoader(dataset, 8, True)\nval_loader = DataLoader(net.val, 8)\n"
EPOCH = """\
for epoch in range(3):
    for x in {0}:
        model(x).backward()
        optimizer.step()
"""


def ported(*parts: str, files: dict[str, str] | None = None) -> FileResult:
    body = "".join(textwrap.dedent(part).strip("\n") + "\n" for part in parts)
    return distributed(f"{HEAD}\n\n{body}", files=files)


def shares(result: FileResult) -> list[str]:
    """The lines in which a share is taken."""
    return [line.strip() for line in result.data.decode().splitlines() if "npu_port.shard(" in line]


# --- where a share is taken -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("made", "read", "wanted"),
    [
        ("loader = DataLoader(dataset, 8, True)", "loader", "loader = npu_port.shard(loader)"),
        ("loader: object = DataLoader(dataset)", "loader", "loader: object = npu_port.shard(DataLoader(dataset))"),
        ("loader = other = DataLoader(dataset)", "loader", "loader = other = npu_port.shard(DataLoader(dataset))"),
        ("loaders = [DataLoader(dataset)]", "loaders[0]", "loaders = [npu_port.shard(DataLoader(dataset))]"),
        ('sets = {"a": DataLoader(dataset)}', 'sets["a"]', 'sets = {"a": npu_port.shard(DataLoader(dataset))}'),
        (
            "loader = DataLoader(dataset, 8) if net.big else DataLoader(dataset, 4)",
            "loader",
            "loader = npu_port.shard(DataLoader(dataset, 8)) if net.big else npu_port.shard(DataLoader(dataset, 4))",
        ),
        ("def made():\n    return DataLoader(dataset)", "made()", "return npu_port.shard(DataLoader(dataset))"),
        (
            "class Data:\n    def train(self):\n        return DataLoader(dataset)\n\n\ndata = Data()",
            "data.train()",
            "return npu_port.shard(DataLoader(dataset))",
        ),
        ("", "DataLoader(dataset, 8)", "for x in npu_port.shard(DataLoader(dataset, 8)):"),
    ],
)  # fmt: skip
def test_where_a_loader_is_made(made: str, read: str, wanted: str) -> None:
    result = ported(made, MODEL, EPOCH.format(read))
    assert shares(result) == [wanted] and not left(result)
    assert wanted.startswith("for ") or f"    for x in {read}:\n" in result.data.decode()


@pytest.mark.parametrize(
    "head",
    [
        "enumerate(loader)",
        "enumerate(loader, 1)",
        "tqdm(loader)",
        "tqdm(enumerate(loader), total=len(loader))",
        "enumerate(tqdm(loader, desc='train'))",
        "islice(loader, 10)",
        "zip(range(3), loader)",
        "net.meter.log_every(loader, 10)",
    ],
)
def test_what_goes_around_a_loader_stays(head: str) -> None:
    imports = "from itertools import islice\n\nfrom tqdm import tqdm\n\n"
    loop = EPOCH.format(head).replace("x in ", "i, x in ")
    result = ported(imports, "loader = DataLoader(dataset, 8, True)", MODEL, loop)
    assert shares(result) == ["loader = npu_port.shard(loader)"] and not left(result)
    assert head.partition("tqdm(")[0] in result.data.decode()


def test_a_loader_in_a_bar_that_has_a_name() -> None:
    bar = "from tqdm import tqdm\n\nloader = DataLoader(dataset, 8, True)\nbar = tqdm(loader)"
    result = ported(bar, MODEL, "for x in bar:\n    model(x).backward()\n    optimizer.step()")
    assert shares(result) == ["loader = npu_port.shard(loader)"] and not left(result)
    assert "bar = tqdm(loader, disable=not npu_port.is_first())\n" in result.data.decode()


@pytest.mark.parametrize("head", ["zip(a, b)", "enumerate(zip(a, b))", "zip(a, cycle(b))", "zip(tqdm(a), b)"])
def test_two_loaders_at_once(head: str) -> None:
    made = "a, c = DataLoader(dataset, 8, True), 1\nb = DataLoader(net.other, 4, True)"
    imports = "from itertools import cycle\n\nfrom tqdm import tqdm\n\n"
    result = ported(imports, made, MODEL, EPOCH.format(head).replace("x in ", "x, y in "))
    wanted = ["a, c = npu_port.shard(DataLoader(dataset, 8, True)), 1", "b = npu_port.shard(b)"]
    assert shares(result) == wanted and not left(result)


def test_the_keyword_of_a_function() -> None:
    fit = """
        def fit(model, optimizer, train_loader=None, val_loader=None):
            for x in train_loader:
                model(x).backward()
                optimizer.step()
            for x in val_loader:
                net.score(model(x))


        """
    call = "fit(model, optimizer, train_loader=DataLoader(dataset, 8, True), val_loader=DataLoader(net.val, 8))"
    result = ported(fit, MODEL, call)
    wanted = call.replace("DataLoader(dataset, 8, True)", "npu_port.shard(DataLoader(dataset, 8, True))")
    assert shares(result) == [wanted] and not left(result)


def test_the_loaders_of_a_trainer() -> None:
    trainer = """
        class Trainer:
            def __init__(self, model, optimizer):
                self.model, self.optimizer = model, optimizer
                self.train_loader = DataLoader(dataset, 8, True)
                self.val_loader = DataLoader(net.val, 8)

            def fit(self):
                for epoch in range(3):
                    for x in self.train_loader:
                        self.model(x).backward()
                        self.optimizer.step()
                    self.validate()

            @torch.no_grad()
            def validate(self):
                for x in self.val_loader:
                    net.score(self.model(x))


        """
    result = ported(trainer, MODEL, "Trainer(model, optimizer).fit()")
    assert shares(result) == ["self.train_loader = npu_port.shard(self.train_loader)"] and not left(result)


# --- asked by hand ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        """
        batches = iter(loader)
        for step in range(100):
            x = next(batches)
            model(x).backward()
            optimizer.step()
        """,
        """
        batches = iter(loader)
        for step in range(100):
            try:
                x = next(batches)
            except StopIteration:
                batches = iter(loader)
                x = next(batches)
            model(x).backward()
            optimizer.step()
        """,
        """
        def train(loader, model, optimizer):
            batches = iter(loader)
            for step in range(100):
                model(next(batches)).backward()
                optimizer.step()


        train(loader, model, optimizer)
        """,
        """
        def endless(loader):
            while True:
                yield from loader


        batches = endless(loader)
        for step in range(100):
            model(next(batches)).backward()
            optimizer.step()
        """,
        """
        def endless(loader):
            while True:
                for x in loader:
                    yield x


        batches = endless(loader)
        for step in range(100):
            model(next(batches)).backward()
            optimizer.step()
        """,
    ],
)
def test_batches_that_training_asks_for(body: str) -> None:
    """All ranks make as many steps in each pass, and come by each of them."""
    result = ported("loader = DataLoader(dataset, 8, True)", MODEL, body)
    assert shares(result) == ["loader = npu_port.shard(loader)"] and not left(result)


# --- one function makes both ------------------------------------------------------------------------------------------

MADE = [
    "def make(data, shuffle):\n    return DataLoader(data, batch_size=8, shuffle=shuffle)\n\n\n",
    "def make(data, shuffle):\n    made = DataLoader(data, batch_size=8, shuffle=shuffle)\n    return made\n\n\n",
]
VALIDATED = "    with torch.no_grad():\n        for x in val:\n            net.score(model(x))"
EVALUATE = (
    "def evaluate(loader):\n    with torch.no_grad():\n        return sum(net.score(model(x)) for x in loader)\n\n\n"
)


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("validated", [VALIDATED, textwrap.dedent(VALIDATED), f"{EVALUATE}evaluate(val)"])
def test_a_function_that_makes_the_loader_of_the_validation_too(made: str, validated: str) -> None:
    both = "train = make(dataset, True)\nval = make(net.val, False)"
    if validated.startswith(" "):  # ported() takes the first column away
        epoch = EPOCH.format("train") + validated + "\n"
        result = ported(made, both, MODEL, epoch)
    else:
        result = ported(made, both, MODEL, EPOCH.format("train"), validated)
    assert shares(result) == ["train = npu_port.shard(train)"] and not left(result)


@pytest.mark.parametrize("validated", [VALIDATED, "    for x in val:\n        net.score(model(x))"])
def test_so_does_one_whose_loaders_share_a_statement(validated: str) -> None:
    both = "train, val = make(dataset, True), make(net.val, False)"
    result = ported(MADE[0], both, MODEL, EPOCH.format("train") + validated)
    assert shares(result) == ["for x in npu_port.shard(train):"] and not left(result)


def test_so_does_one_that_is_called_in_the_heads_of_the_loops() -> None:
    made = "def make(train):\n    return DataLoader(net.rows(train), 8, shuffle=train)\n\n\n"
    validated = VALIDATED.replace("val:", "make(False):")
    result = ported(made, MODEL, EPOCH.format("make(True)") + validated)
    assert shares(result) == ["for x in npu_port.shard(make(True)):"] and not left(result)


def test_a_function_that_returns_both_shares_out_one() -> None:
    made = """
        def loaders(size):
            train = DataLoader(dataset, size, True)
            val = DataLoader(net.val, size)
            return train, val


        train, val = loaders(8)
        """
    result = ported(made, MODEL, EPOCH.format("train") + VALIDATED)
    assert shares(result) == ["train = npu_port.shard(train)"] and not left(result)


# --- one function trains and evaluates --------------------------------------------------------------------------------

RUN = """
def run_epoch(model, loader, optimizer{0}):
    for x in loader:
        loss = model(x)
        {1}:
            loss.backward()
            optimizer.step()


"""


@pytest.mark.parametrize(
    ("parameter", "guard", "training", "validation"),
    [
        (", train", "if train", "optimizer, True", "optimizer, False"),
        (", train", "if train", "optimizer, train=True", "None, train=False"),
        (", train=True", "if train", "optimizer", "optimizer, train=False"),
        (", train=False", "if train", "optimizer, train=True", "optimizer"),
        (", *, train", "if train", "optimizer, train=True", "optimizer, train=False"),
        (", test", "if not test", "optimizer, False", "optimizer, True"),
        (', mode="train"', 'if mode == "train"', "optimizer", 'optimizer, mode="val"'),
        (", mode", 'if mode != "val"', 'optimizer, "train"', 'optimizer, "val"'),
        ("", "if optimizer is not None", "optimizer", "None"),
        ("=None", "if optimizer is not None", "optimizer", ""),
        ("=None", "if optimizer", "optimizer", ""),
        (", train", "if train and optimizer is not None", "optimizer, True", "optimizer, False"),
    ],
)
def test_one_function_for_both(parameter: str, guard: str, training: str, validation: str) -> None:
    calls = f"""
        for epoch in range(3):
            run_epoch(model, train_loader, {training})
            run_epoch(model, val_loader, {validation})
        """
    result = ported(RUN.format(parameter, guard), LOADERS, MODEL, calls.replace(", )", ")"))
    assert shares(result) == ["train_loader = npu_port.shard(train_loader)"] and not left(result)


def test_one_that_goes_on_before_its_step() -> None:
    run = """
        def run_epoch(model, loader, optimizer, train):
            for x in loader:
                loss = model(x)
                if not train:
                    continue
                loss.backward()
                optimizer.step()


        """
    calls = "for epoch in range(3):\n    run_epoch(model, train_loader, optimizer, True)\n"
    result = ported(run, LOADERS, MODEL, f"{calls}    run_epoch(model, val_loader, optimizer, False)")
    assert shares(result) == ["train_loader = npu_port.shard(train_loader)"] and not left(result)


def test_one_that_is_called_under_no_grad() -> None:
    calls = """
        for epoch in range(3):
            run_epoch(model, train_loader, optimizer, train=True)
            with torch.no_grad():
                run_epoch(model, val_loader, optimizer, train=net.trains)
        """
    result = ported(RUN.format(", train", "if train"), LOADERS, MODEL, calls)
    assert shares(result) == ["train_loader = npu_port.shard(train_loader)"] and not left(result)


@pytest.mark.parametrize("train", ["net.trains", "net.trains(epoch)", "epoch % 2 == 0", "flag", "bool(epoch)"])
def test_whether_it_trains_may_be_unclear(train: str) -> None:
    head = "from project import flag\n\n"
    calls = f"for epoch in range(3):\n    run_epoch(model, train_loader, optimizer, {train})"
    result = ported(head, RUN.format(", train", "if train"), LOADERS, MODEL, calls)
    assert not shares(result) and left(result) == ["NPU340"]


def test_so_it_is_where_one_loader_serves_for_both() -> None:
    calls = """
        for epoch in range(3):
            run_epoch(model, train_loader, optimizer, True)
            run_epoch(model, train_loader, optimizer, False)
        """
    result = ported(RUN.format(", train", "if train"), LOADERS, MODEL, calls)
    assert not shares(result) and left(result) == ["NPU340"]


# --- phases -----------------------------------------------------------------------------------------------------------

PHASES = """\
for epoch in range(3):
    for phase in ["train", "val"]:
        for x in loaders[phase]:
            with torch.set_grad_enabled(phase == "train"):
                loss = model(x)
                if phase == "train":
                    loss.backward()
                    optimizer.step()
"""


def test_phases_over_a_dict() -> None:
    made = 'loaders = {"train": DataLoader(dataset, 8, True), "val": DataLoader(net.val, 8)}'
    result = ported(made, MODEL, PHASES)
    assert shares(result) == [
        made.replace("DataLoader(dataset, 8, True)", "npu_port.shard(DataLoader(dataset, 8, True))")
    ]
    assert not left(result)


@pytest.mark.parametrize("over", ["enumerate(loader)", "loader"])
def test_phases_over_the_items_of_a_dict(over: str) -> None:
    made = 'loaders = {"train": DataLoader(dataset, 8, True), "val": DataLoader(net.val, 8)}'
    items = PHASES.replace('phase in ["train", "val"]', "phase, loader in loaders.items()")
    target = "_, x" if over != "loader" else "x"
    result = ported(made, MODEL, items.replace("x in loaders[phase]", f"{target} in {over}"))
    assert shares(result) == [
        made.replace("DataLoader(dataset, 8, True)", "npu_port.shard(DataLoader(dataset, 8, True))")
    ]
    assert not left(result)


def test_phases_over_loaders_that_have_names() -> None:
    result = ported(LOADERS, 'loaders = {"train": train_loader, "val": val_loader}', MODEL, PHASES)
    assert shares(result) == ["train_loader = npu_port.shard(train_loader)"] and not left(result)


NAMED = 'loaders = {name: DataLoader(net.sets[name], 4, True) for name in ["train", "val"]}'
LOOPED = 'loaders = {}\nfor name in ("train", "val"):\n    loaders[name] = DataLoader(net.sets[name], 4, True)'
GIVEN = f"def made():\n    return {NAMED.partition(' = ')[2]}\n\n\nloaders = made()"
TRAINS = 'trains = phase == "train"'
SHARED = "loaders['train'] = npu_port.shard(loaders['train'])"


@pytest.mark.parametrize(
    ("made", "phases"),
    [
        (NAMED, PHASES),
        (LOOPED, PHASES),
        (GIVEN, PHASES),
        (NAMED.replace('["train", "val"]', "kept"), PHASES),
        (NAMED, PHASES.replace('== "train"', '!= "val"')),
        (NAMED, PHASES.replace('== "train"', 'in ("train",)')),
        (
            NAMED,
            PHASES.replace('if phase == "train"', "if trains").replace("        for", f"        {TRAINS}\n        for"),
        ),
        (NAMED, PHASES.replace("for x in loaders[phase]", "loader = loaders[phase]\n        for x in loader")),
        (NAMED, PHASES.replace('if phase == "train"', 'if phase == "train" and epoch > 0')),
        (NAMED, EPOCH.format('loaders["train"]') + '    for x in loaders["val"]:\n        net.score(model(x))'),
        (NAMED, "train, val = loaders['train'], loaders['val']\n" + EPOCH.format("train") + "    net.rows(list(val))"),
    ],
)
def test_the_entry_that_trains_of_loaders_that_one_expression_makes(made: str, phases: str) -> None:
    kept = 'kept = {"train": net.train, "val": net.val}' if "kept" in made else ""
    result = ported(kept, made, MODEL, phases)
    assert shares(result) == [SHARED] and not left(result)


@pytest.mark.parametrize(
    ("made", "phases"),
    [
        (NAMED, PHASES + '    net.rows(list(loaders["train"]))'),
        (NAMED, PHASES + "    for name in net.names:\n        net.rows(list(loaders[name]))"),
        (NAMED.replace('["train", "val"]', "net.names"), PHASES),
        (NAMED, PHASES.replace('phase == "train"', "phase == net.trained")),
        (NAMED, PHASES.replace('["train", "val"]', "net.phases").replace('== "train"', '!= "val"')),
        (f"{NAMED[:-1]} if net.asked(name)}}", PHASES),
    ],
)
def test_entries_that_something_else_may_read_stay_whole(made: str, phases: str) -> None:
    result = ported(made, MODEL, phases)
    assert not shares(result) and left(result) == ["NPU340"]


@pytest.mark.parametrize(
    "read",
    [
        'loader = train_loader if phase == "train" else val_loader\n        for x in loader',
        'both = (train_loader, val_loader)\n        for x in both[0] if phase == "train" else both[1]',
    ],
)
def test_phases_that_choose_one_of_two_loaders(read: str) -> None:
    result = ported(LOADERS, MODEL, PHASES.replace("for x in loaders[phase]", read))
    assert shares(result) == ["train_loader = npu_port.shard(train_loader)"] and not left(result)


FIGURES = """\
for epoch in range(3):
    for phase in ["train", "val"]:
        total, hits = 0.0, 0
        for x in loaders[phase]:
            loss = model(x)
            if phase == "train":
                loss.backward()
                optimizer.step()
            total += loss.item()
            hits += (loss > 0.5).sum()
        mean = total / {0}
        share = hits / {0}
        if phase == "val" and share > net.best:
            net.best = share
            torch.save(model.state_dict(), "best.pt")
"""
TWO = 'loaders = {"train": DataLoader(net.sets["train"], 8, True), "val": DataLoader(net.sets["val"], 8)}'


@pytest.mark.parametrize("made", [TWO, NAMED])
@pytest.mark.parametrize(
    ("sizes", "divisor"),
    [
        ("", "len(loaders[phase].dataset)"),
        ("sizes = {name: len(sets[name]) for name in ['train', 'val']}", "sizes[phase]"),
        ("sizes = {'train': len(sets['train']), 'val': len(sets['val'])}", "sizes[phase]"),
    ],
)
def test_figures_of_phases_are_those_of_all_ranks(made: str, sizes: str, divisor: str) -> None:
    result = ported("sets = net.sets", made.replace("net.sets", "sets"), sizes, MODEL, FIGURES.format(divisor))
    text = result.data.decode()
    assert "        mean = total / len(loaders[phase].sampler)\n" in text
    assert "        share = npu_port.mean_over_ranks(hits / len(loaders[phase].sampler))\n" in text
    assert not left(result)


COUNTED = """\
best, stale = 0.0, 0
for epoch in range(3):
    for phase in ["train", "val"]:
        hits, seen = 0, 0
        for x in loaders[phase]:
            loss = model(x)
            if phase == "train":
                loss.backward()
                optimizer.step()
            hits += (loss > 0.5).sum()
            seen += len(x)
        share = hits / {0}
        stale = stale + 1 if phase == "val" and share < best else 0
    if stale > 2:
        break
"""
ITEMS = "loaders = {name: DataLoader(each, 4, True) for name, each in sets.items()}"


@pytest.mark.parametrize(
    ("made", "divisor", "written"),
    [
        (TWO.replace("net.sets", "sets"), "seen", "seen"),
        (TWO.replace("net.sets", "sets"), "len(sets[phase])", "len(loaders[phase].sampler)"),
        (ITEMS, "len(sets[phase])", "len(loaders[phase].sampler)"),
    ],
)
def test_all_ranks_end_by_the_figure_of_a_phase(made: str, divisor: str, written: str) -> None:
    """What they decide by it makes them run alike, and that it is one."""
    result = ported('sets = {"train": net.train, "val": net.val}', made, MODEL, COUNTED.format(divisor))
    assert f"        share = npu_port.mean_over_ranks(hits / {written})\n" in result.data.decode()
    assert not left(result)


def test_a_ratio_that_rank_0_shows_is_that_of_all_ranks() -> None:
    shown = EPOCH.format("train_loader").replace("    for", "    hits = 0\n    for") + "        hits += (x > 0).sum()\n"
    result = ported(LOADERS, MODEL, shown + "    print(hits / len(train_loader.dataset))")
    assert "    mean_hits = npu_port.mean_over_ranks(hits / len(train_loader.sampler))\n" in result.data.decode()
    assigned = ported(LOADERS, MODEL, shown + "    share = hits / len(train_loader.dataset)\n    print(share)")
    assert "    share = npu_port.mean_over_ranks(hits / len(train_loader.sampler))\n" in assigned.data.decode()


@pytest.mark.parametrize(
    ("given", "divisor", "written"),
    [
        ("batch_sampler=order", "len(order)", "len(loader.batch_sampler)"),
        ("sampler=order", "len(order)", "len(loader.sampler)"),
        ("batch_sampler=order", "len(net.other)", "len(net.other)"),
        ("shuffle=True", "len(loader)", "len(loader)"),
    ],
)
def test_a_sum_over_the_share_is_divided_by_what_its_sampler_gives(given: str, divisor: str, written: str) -> None:
    shown = EPOCH.format("loader").replace("    for", "    total = 0\n    for") + "        total += net.loss(x)\n"
    made = f"order = net.made()\nloader = DataLoader(dataset, {given})"
    result = ported(made, MODEL, f'{shown}    print(f"{{total / {divisor}:.3f}}")')
    text = result.data.decode()
    mean = f"    mean_total = npu_port.mean_over_ranks(total / {written})\n"
    assert mean in text or f'    print(f"{{total / {written}:.3f}}")\n' in text


@pytest.mark.parametrize("sizes", ["sizes = {'train': 64, 'val': 8}", "sizes = net.sizes", "sizes = dict(net.sizes)"])
def test_sizes_that_are_not_known_are_named(sizes: str) -> None:
    result = ported(TWO, sizes, MODEL, FIGURES.format("sizes[phase]"))
    assert left(result) == ["NPU346"] and "share = hits / sizes[phase]" in result.data.decode()


# --- what else goes through a loader that trains ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "head",
    [
        "with torch.no_grad():\n        for x in loader:\n            net.score(model(x))",
        "for x in loader:\n        net.score(x)",
        "with torch.inference_mode():\n        for i, x in enumerate(loader):\n            net.score(model(x))",
        "total = sum(net.score(x) for x in loader)",
        "rows = list(loader)",
    ],
)
def test_an_evaluation_over_the_data_of_the_training_reads_all_of_them(head: str) -> None:
    result = ported("loader = DataLoader(dataset, 8, True)", MODEL, f"{EPOCH.format('loader')}    {head}")
    assert shares(result) == ["for x in npu_port.shard(loader):"] and not left(result)


def test_so_does_a_function_that_evaluates() -> None:
    result = ported(EVALUATE, LOADERS, MODEL, EPOCH.format("train_loader") + "    evaluate(train_loader)")
    assert shares(result) == ["for x in npu_port.shard(train_loader):"] and not left(result)
    both = ported(EVALUATE, LOADERS, MODEL, EPOCH.format("train_loader") + "    evaluate(val_loader)")
    assert shares(both) == ["train_loader = npu_port.shard(train_loader)"] and not left(both)


@pytest.mark.parametrize(
    "peek",
    [
        "x = next(iter(loader))",
        "print(next(iter(loader)).shape)",
        "if net.debug:\n    net.show(next(iter(loader)))",
    ],
)
def test_a_look_that_all_ranks_take_may_be_one_at_the_share(peek: str) -> None:
    result = ported("loader = DataLoader(dataset, 8, True)", peek, MODEL, EPOCH.format("loader"))
    assert shares(result) == ["loader = npu_port.shard(loader)"] and not left(result)


@pytest.mark.parametrize(
    "reads",
    [
        "for x in loader:\n    break",
        "mean = torch.stack([x.mean() for x in loader]).mean()",
        "for part in range(2):\n    net.show(next(iter(loader)))",
    ],
)
def test_what_goes_through_the_data_sees_all_of_it(reads: str) -> None:
    result = ported("loader = DataLoader(dataset, 8, True)", reads, MODEL, EPOCH.format("loader"))
    assert shares(result) == ["for x in npu_port.shard(loader):"] and not left(result)


def test_a_length_of_all_data_is_named_where_the_share_is_taken_in_the_head() -> None:
    reads = "mean = torch.stack([x.mean() for x in loader]).mean()\nsteps = len(loader) * 3"
    result = ported("loader = DataLoader(dataset, 8, True)", reads, MODEL, EPOCH.format("loader"))
    assert shares(result) == ["for x in npu_port.shard(loader):"] and left(result) == ["NPU346"]


@pytest.mark.parametrize(
    "peek",
    [
        'if int(os.environ.get("RANK", 0)) == 0:\n    net.show(next(iter(loader)))',
        "if time.time() % 2 > 1:\n    net.show(next(iter(loader)))",
        "try:\n    net.check(model)\nexcept RuntimeError:\n    net.show(next(iter(loader)))",
        "for i in range(int(time.time()) % 3):\n    net.show(next(iter(loader)))",
    ],
)
def test_a_look_that_not_every_rank_takes(peek: str) -> None:
    result = ported(
        "import os\nimport time\n\nloader = DataLoader(dataset, 8, True)", MODEL, peek, EPOCH.format("loader")
    )
    assert left(result) == ["NPU332"] and b"npu_port" not in result.data
    assert any("some ranks may not reach this" in finding.message for finding in result.findings)


def test_nor_one_that_hangs_on_the_share() -> None:
    loop = EPOCH.format("loader") + "        if x.max() > 3:\n            net.show(next(iter(loader)))"
    result = ported("loader = DataLoader(dataset, 8, True)", MODEL, loop)
    assert left(result) == ["NPU332"] and b"npu_port" not in result.data


# --- what is not shared out -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "other",
    [
        "test = DataLoader(net.test)\nfor x in test:\n    net.score(model(x))",
        "test = DataLoader(net.test, shuffle=True)\nwith torch.no_grad():\n    for x in test:\n        model(x)",
        "unused = DataLoader(net.test, 8, shuffle=True)",
        "scores = [net.score(model(x)) for x in DataLoader(net.test)]",
        "class Loader(DataLoader):\n    pass\n\n\nfor x in Loader(net.test):\n    model(x)",
        f"{EVALUATE}evaluate(DataLoader(net.test, 8))",
        "def rows():\n    return DataLoader(net.test)\n\n\nnet.evaluate(model, rows())",
        "net.evaluate(model, DataLoader(net.test))",
    ],
)
def test_other_loaders_stay_whole_and_nothing_is_said_of_them(other: str) -> None:
    result = ported(LOADERS, MODEL, EPOCH.format("train_loader"), other)
    assert shares(result) == ["train_loader = npu_port.shard(train_loader)"] and not left(result)


@pytest.mark.parametrize(
    "rows",
    ["dataset", "net.rows()", "range(9)", "[dataset[i] for i in range(9)]", "zip(net.a, net.b)", "net.loader"],
)
def test_training_over_what_is_no_loader(rows: str) -> None:
    result = ported(MODEL, EPOCH.format(rows))
    assert not shares(result) and left(result) == ["NPU340"]


def test_training_in_a_forward_pass_over_what_is_no_loader() -> None:
    meta = """
    class Meta(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = torch.nn.Linear(2, 2)
            self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

        def forward(self, x):
            self.net(x).sum().backward()
            self.optimizer.step()


    meta = Meta().cuda()
    for step in range(9):
        meta(net.task())
    """
    result = ported(meta)
    assert left(result) == ["NPU340"] and "npu_port.own_draws()" in result.data.decode()


@pytest.mark.parametrize(
    ("made", "loop"),
    [
        ("net.loader = DataLoader(dataset, 8, True)", EPOCH.format("net.loader")),
        ("sets = dict(train=DataLoader(dataset))", EPOCH.format('sets["train"]')),
        (
            'sets = {"train": DataLoader(dataset), "val": DataLoader(net.val)}',
            "for loader in sets.values():\n    for x in loader:\n        if net.phase == 'train':\n"
            "            model(x).backward()\n            optimizer.step()",
        ),
    ],
)
def test_loaders_whose_way_to_the_training_is_not_seen(made: str, loop: str) -> None:
    result = ported(made, MODEL, loop)
    assert not shares(result) and left(result) == ["NPU340"] and made in result.data.decode()


@pytest.mark.parametrize(
    ("data", "drawn"),
    [
        ("torch.rand(8, 2)", True),
        ("rows[torch.randint(9, (8,))]", True),
        ("rows", False),
        ("rows[step]", False),
        ("rows[:len(torch.rand(8))]", False),
    ],
)
def test_what_is_said_of_data_that_each_rank_draws(data: str, drawn: bool) -> None:
    loop = f"for step in range(9):\n    model(({data}).cuda()).backward()\n    optimizer.step()"
    result = ported("rows = torch.randn(99, 2, generator=net.generator)", MODEL, loop)
    told = [each for each in result.findings if each.code == "NPU340"]
    assert ["the global batch is W times as large" in each.message for each in told] == [drawn]
    assert ["every rank trains with all of the data" in each.message for each in told] == [not drawn]
    assert [bool(each.detail("NPU340")) for each in told] == [drawn]


# --- a step that is handed over ---------------------------------------------------------------------------------------

FIT = """
    def gradient_step(model, optimizer, x):
        model(x).backward()
        optimizer.step()


    def look(model, optimizer, x):
        return model(x)


    def fit(model, optimizer, loader, step={0}):
        for epoch in range(3):
            for x in loader:
                step(model, optimizer, x)
    """


@pytest.mark.parametrize(
    ("default", "given", "shared"),
    [
        ("None", "step=gradient_step", True),
        ("None", "gradient_step", True),
        ("gradient_step", "", True),
        ("look", "", False),
        ("None", "net.step", False),
        ("None", "step=look", False),
    ],
)
def test_a_loop_that_is_given_its_step(default: str, given: str, shared: bool) -> None:
    result = ported(FIT.format(default), LOADERS, MODEL, f"fit(model, optimizer, train_loader, {given})")
    assert (shares(result) == ["train_loader = npu_port.shard(train_loader)"]) is shared
    assert (b"npu_port.own_draws()" in result.data) is shared


@pytest.mark.parametrize(
    ("made", "wanted"),
    [
        ("_, loader = get('train')\n_, other = get('val')", "loader"),
        ("_, loader = get('train')\n_, other = get('val')\n_, loader = get('more')", ""),
        ("_, loader = get('train')\n_, other = get('val')\nfor x in loader:\n    print(x)", ""),
    ],
)
def test_an_item_of_what_a_call_returns_is_shared_out_behind_its_statement(made: str, wanted: str) -> None:
    head = "def get(name):\n    return name, DataLoader(dataset, batch_size=8, shuffle=name == 'train')\n"
    train = "for x in loader:\n    model(x).backward()\n    optimizer.step()"
    loop = f"{made}\nsteps = len(loader)\n{train}\nfor x in other:\n    print(x)"
    found = output(script(head=head, loader="", loop=loop))
    line = "_, loader = get('train')\nloader = npu_port.shard(loader)\n"
    assert (line in found) is bool(wanted) and found.count("npu_port.shard(") == 1, found


@pytest.mark.parametrize(
    ("use", "open_"),
    [
        ("plan = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, steps_per_epoch=steps, epochs=3)", True),
        ("print(steps)", False),
    ],
)
def test_a_length_of_all_data_by_which_the_learning_rate_is_planned_is_left(use: str, open_: bool) -> None:
    head = "def get(name):\n    return name, DataLoader(dataset, batch_size=8, shuffle=True)\n"
    loop = f"_, loader = get('a')\nfor x in loader:\n    print(x)\nsteps = len(loader)\n{use}\n"
    loop += "for x in loader:\n    model(x).backward()\n    optimizer.step()"
    result = distributed(script(head=head, loader="", loop=loop))
    assert [each.open for each in result.findings if "counts the batches of all" in each.message] == [open_]


@pytest.mark.parametrize(("loader", "told"), [("loader", True), ("net.other", False)])
def test_statistics_of_batch_norm_over_a_share_are_left(loader: str, told: bool) -> None:
    tail = f"from torch.optim.swa_utils import update_bn\nupdate_bn({loader}, model)"
    found = distributed(script(tail=tail)).findings
    assert [each.open for each in found if "statistics of batch norm from one" in each.message] == [True] * told
