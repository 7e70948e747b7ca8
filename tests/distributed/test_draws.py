"""What is drawn at random: by each rank for itself while it trains, and alike on all of them before and behind that."""

from __future__ import annotations

import textwrap

import pytest

from tests.distributed.test_pairs import HEAD, distributed, left

LOADER = "loader = DataLoader(dataset, 8, True)\n"
MODEL = "model = net().cuda()\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
EPOCHS = """\
for epoch in range(3):
    for x in loader:
        model(x).backward()
        optimizer.step()
"""


def draws(*parts: str) -> list[str]:
    """Where draws become those of each rank, and alike again: each line with its column and what stands next to it."""
    body = "".join(textwrap.dedent(part).strip("\n") + "\n" for part in parts)
    result = distributed(f"{HEAD}\n\n{body}")
    assert not left(result)
    lines = result.data.decode().splitlines()
    found = []
    for at, line in enumerate(lines):
        column = len(line) - len(line.lstrip())
        if line.strip() == "npu_port.own_draws()":
            found.append(f"{column} own, {lines[at + 1].strip()}")
            assert len(lines[at + 1]) - len(lines[at + 1].lstrip()) == column
        elif line.strip() == "npu_port.same_draws()":
            found.append(f"{column} same")
    return found


# --- one training -----------------------------------------------------------------------------------------------------

EPOCH = """\
def epoch(model, loader, optimizer):
    for x in loader:
        model(x).backward()
        optimizer.step()


"""
IN_EPOCHS = "0 own, for epoch in range(3):"


@pytest.mark.parametrize(
    ("loop", "wanted"),
    [
        (EPOCHS, IN_EPOCHS),
        ("for x in loader:\n    model(x).backward()\n    optimizer.step()", "0 own, for x in loader:"),
        (f"e = 0\nwhile e < 3:\n    e += 1\n{textwrap.indent(EPOCHS, '    ')}", "0 own, while e < 3:"),
        (f"with torch.autograd.detect_anomaly():\n{textwrap.indent(EPOCHS, '    ')}", "4 own, for epoch in range(3):"),
        (f"if net.trains:\n{textwrap.indent(EPOCHS, '    ')}", "4 own, for epoch in range(3):"),
        (f"# train\n{EPOCHS}# the end", IN_EPOCHS),
        (f"{EPOCHS}    net.score(model)", IN_EPOCHS),
        (f"{EPOCHS}    for x in net.val:\n        model(x)", IN_EPOCHS),
        (f"{EPOCHS}    for x in loader:\n        (model(x) * 2).backward()\n        optimizer.step()", IN_EPOCHS),
        (f"{EPOCHS}z = torch.randn(8)\nnet.save(model(z))", IN_EPOCHS),
        (
            f"{EPOCH}for i in range(3):\n    epoch(model, loader, optimizer)\n    net.show(model)",
            "0 own, for i in range(3):",
        ),
        (
            f"{EPOCH}def main():\n    for i in range(3):\n        epoch(model, loader, optimizer)\n\n\nmain()",
            "4 own, for i in range(3):",
        ),
        (f"{EPOCH}epoch(model, loader, optimizer)", "4 own, for x in loader:"),
    ],
)  # fmt: skip
def test_one_training(loop: str, wanted: str) -> None:
    """Its epochs are one training, whichever function has them; nothing is made behind it that has to be alike."""
    assert draws(LOADER, MODEL, loop) == [wanted]


def test_a_trainer() -> None:
    trainer = """
        class Trainer:
            def __init__(self):
                self.model = net().cuda()
                self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
                self.loader = DataLoader(dataset, 8, True)

            def fit(self):
                for epoch in range(3):
                    self.epoch()

            def epoch(self):
                for x in self.loader:
                    self.model(x).backward()
                    self.optimizer.step()


        Trainer().fit()
        """
    assert draws(trainer) == ["8 own, for epoch in range(3):"]


READS = "batches = iter(loader)\n"
ENDLESS = """\
while True:
    try:
        x = next(batches)
    except StopIteration:
        batches = iter(loader)
        x = next(batches)
    x = [t.cuda() for t in x]
    model(x).backward()
    optimizer.step()
"""


@pytest.mark.parametrize("between", ["", "step = 0\n", "import time\nbegin = time.time()\nmodel.train()\n"])
def test_what_reads_data_before_the_loop_draws_the_seeds_of_the_workers(between: str) -> None:
    assert draws(LOADER, MODEL, READS, between, ENDLESS) == ["0 own, batches = iter(loader)"]


@pytest.mark.parametrize("between", ["teacher = net()\n", "late = torch.nn.Linear(3, 3)\n", "def f():\n    pass\n"])
def test_what_is_made_behind_that_is_drawn_alike(between: str) -> None:
    assert draws(LOADER, MODEL, READS, between, ENDLESS) == ["0 own, while True:"]


@pytest.mark.parametrize("more", ["net.pretrain(model)", "for fold in range(3):\n    net.score(model)", "evaluate()"])
def test_what_does_not_train_changes_no_draws(more: str) -> None:
    evaluate = "def evaluate():\n    for x in loader:\n        net.score(model(x))\n\n\n"
    assert draws(evaluate, LOADER, MODEL, EPOCHS, more) == ["0 own, for epoch in range(3):"]


# --- training again ---------------------------------------------------------------------------------------------------

ROWS = LOADER.replace("dataset", "rows")
TRAIN = f"def train(rows):\n{textwrap.indent(ROWS + MODEL + EPOCHS, '    ')}    return model\n\n\n"
TRAINER = """
class Trainer:
    def __init__(self, size):
        self.model = net(size).cuda()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.loader = DataLoader(dataset, 8, True)

    def fit(self):
        for epoch in range(3):
            for x in self.loader:
                self.model(x).backward()
                self.optimizer.step()


"""


def test_folds() -> None:
    fold = LOADER.replace("dataset", "net.fold(i)") + MODEL + EPOCHS
    assert draws(f"for i in range(5):\n{textwrap.indent(fold, '    ')}") == ["4 own, for epoch in range(3):", "4 same"]


@pytest.mark.parametrize(
    "calls",
    [
        "for fold in range(5):\n    train(net.folds[fold])",
        "models = [train(fold) for fold in net.folds]",
        "train(net.half)\ntrain(dataset)",
        "def main():\n    first = train(net.half)\n    return train(first)\n\n\nmain()",
        "while net.goes_on():\n    train(dataset)",
    ],
)
def test_a_function_that_is_called_to_train_anew(calls: str) -> None:
    assert draws(TRAIN, calls) == ["4 own, for epoch in range(3):", "4 same"]


@pytest.mark.parametrize(
    "calls",
    [
        "for size in (1, 2):\n    Trainer(size).fit()",
        "Trainer(1).fit()\nTrainer(2).fit()",
        "workers = [Trainer(1), Trainer(2)]\nfor turn in net.turns:\n    workers[turn].fit()",
    ],
)
def test_a_trainer_that_is_made_anew(calls: str) -> None:
    assert draws(TRAINER, calls) == ["8 own, for epoch in range(3):", "8 same"]


@pytest.mark.parametrize(
    "anew",
    ["model.apply(net.init)", "torch.nn.init.normal_(model.weight)", "model.reset_parameters()"],
)
def test_restarts_draw_their_weights_alike(anew: str) -> None:
    """The optimizer stays, and the weights are drawn anew: not by each rank for itself."""
    loop = f"for restart in range(5):\n    {anew}\n{textwrap.indent(EPOCHS, '    ')}"
    assert draws(LOADER, MODEL, loop) == ["4 own, for epoch in range(3):", "4 same"]


@pytest.mark.parametrize("between", ["model.freeze()", "rows = torch.randn(3)", "optimizer = net.second(model)"])
def test_two_trainings_one_behind_the_other(between: str) -> None:
    found = draws(LOADER, MODEL, EPOCHS, between, EPOCHS.replace("range(3)", "range(5)"))
    assert found[:3] == ["0 own, for epoch in range(3):", "0 same", "0 own, for epoch in range(5):"]


def test_a_pretraining_in_a_function_and_a_training_in_another() -> None:
    both = f"def first():\n{textwrap.indent(EPOCHS, '    ')}\n\ndef second():\n{textwrap.indent(EPOCHS, '    ')}\n\n"
    found = draws(LOADER, MODEL, both, "first()\nrows = torch.randn(3)\nsecond()")
    assert found[:3] == ["4 own, for epoch in range(3):", "4 same", "4 own, for epoch in range(3):"]


def test_a_training_that_may_return_early_draws_alike_again_there_too() -> None:
    early = TRAIN.replace(
        "    return model\n", "        if epoch == net.last:\n            return model\n    return model\n"
    )
    result = distributed(f"{HEAD}\n\n{early}for fold in range(5):\n    train(net.folds[fold])\n")
    lines = [line.strip() for line in result.data.decode().splitlines()]
    at = lines.index("if epoch == net.last:")
    assert (
        lines[at + 1 : at + 3] == ["npu_port.same_draws()", "return model"]
        and lines.count("npu_port.same_draws()") == 2
    )


# --- the last training ------------------------------------------------------------------------------------------------


def test_behind_the_last_training_nothing_is_made() -> None:
    found = draws(LOADER, MODEL, EPOCHS, "rows = torch.randn(3)", EPOCHS.replace("range(3)", "range(5)"))
    assert found == ["0 own, for epoch in range(3):", "0 same", "0 own, for epoch in range(5):"]


def test_the_last_training_may_stand_in_a_function() -> None:
    last = f"def last():\n{textwrap.indent(EPOCHS, '    ')}\n\n"
    own = "own, for epoch in range(3):"
    assert draws(LOADER, MODEL, last, EPOCHS, "last()") == [f"4 {own}", f"0 {own}", "0 same"]
    assert draws(LOADER, MODEL, last, "last()", EPOCHS) == [f"4 {own}", "4 same", f"0 {own}"]


@pytest.mark.parametrize("again", ["for i in range(2):", "while net.goes_on():"])
def test_none_is_the_last_in_a_loop(again: str) -> None:
    found = draws(LOADER, f"{again}\n{textwrap.indent(MODEL + EPOCHS + EPOCHS, '    ')}")
    assert found[1::2] == ["4 same", "4 same"]


# --- models that are made one after the other -------------------------------------------------------------------------

ONE = EPOCHS.replace("model(x)", "{0}").replace("optimizer.step", "{1}.step")


def test_a_model_that_is_made_anew_under_its_name_is_averaged() -> None:
    written = distributed(f"{HEAD}\n{LOADER}{MODEL}{EPOCHS}{MODEL}{EPOCHS}").data.decode()
    assert "npu_port.wrap(" not in written and written.count("npu_port.average(optimizer)") == 2
    assert written.count("lr=0.1)\nnpu_port.alike(optimizer)\nnpu_port.own_draws()\n") == 2


@pytest.mark.parametrize("later", ["model = net()", "model = torch.load('x.pt')"])
def test_one_that_is_not_trained_again_is_wrapped(later: str) -> None:
    assert b"npu_port.wrap(" in distributed(f"{HEAD}\n{LOADER}{MODEL}{EPOCHS}{later}\n").data


def test_each_training_begins_with_the_parameters_of_rank_0() -> None:
    second = MODEL.replace("model", "other").replace("optimizer", "step")
    trained = ONE.format("model.loss(x)", "optimizer"), ONE.format("other.loss(x)", "step")
    apart = distributed(f"{HEAD}\n{LOADER}{MODEL}{trained[0]}{second}{trained[1]}").data.decode()
    assert apart.index("alike(optimizer)") < apart.index("own_draws()") < apart.index("alike(step)")
    together = distributed(f"{HEAD}\n{LOADER}{MODEL}{second}{trained[0]}{trained[1]}").data.decode()
    assert together.count("npu_port.alike(optimizer, step)") == 1


# --- evaluation by the statistics of rank 0 ---------------------------------------------------------------------------

TEACHER = "def load():\n    teacher = net(torch.nn.BatchNorm1d(3)).cuda()\n    {}\n\n\nteacher = load()\n"


@pytest.mark.parametrize(
    ("last", "wanted"),
    [
        ("teacher.eval()\n    return teacher", "teacher.eval()"),
        ("return teacher.eval()", "return teacher.eval()"),
        ("return teacher.train(False)", "return teacher.train(False)"),
        ("return teacher.train()", ""),
        ("return net().eval()", ""),
    ],
)
def test_statistics_of_what_a_function_returns(last: str, wanted: str) -> None:
    body = f"{HEAD}\n\n{TEACHER.format(last)}{LOADER}{MODEL}{EPOCHS}"
    found = distributed(body).data.decode()
    assert (f"    npu_port.buffers_of_first(teacher)\n    {wanted}\n" in found) is bool(wanted)
    assert wanted or "buffers_of_first" not in found


# --- seeds in a training ----------------------------------------------------------------------------------------------

SEEDS = """\
def seed_all(seed):
    random.seed(seed)
    torch.manual_seed(seed)


def epoch(model):
    {inner}
    for x in loader:
        {batch}
        model(x).backward()
        optimizer.step()


def sample():
    torch.manual_seed(0)
    return torch.randn(3)


for e in range(3):
    {outer}
    epoch(model)
    {behind}
"""
AGAIN = "npu_port.same_draws()\n{0}npu_port.own_draws()\n"


@pytest.mark.parametrize(
    ("at", "seeds", "again", "finding"),
    [
        ("outer", "torch.manual_seed(e)", True, False),
        ("outer", "seed_all(e)", True, False),
        ("outer", "random.seed(e); torch.manual_seed(e)", True, False),
        ("inner", "seed_all(0)", True, False),
        ("behind", "y = sample()", True, False),
        ("batch", "torch.manual_seed(0)", False, True),  # a rank would wait for the others in each step
        ("outer", "random.seed(e); a = net.crop(); random.seed(e)", False, True),  # the same crop twice
        ("outer", "net.seed_everything(e)", False, False),
        ("outer", "g = torch.Generator().manual_seed(e)", False, False),
    ],
)
def test_seeds_in_a_training(at: str, seeds: str, again: bool, finding: bool) -> None:
    places = dict.fromkeys(("inner", "batch", "outer", "behind"), "pass")
    column = "        " if at == "batch" else "    "
    body = SEEDS.format(**places | {at: seeds.replace("; ", f"\n{column}")})
    result = distributed(f"{HEAD}import random\n\n{LOADER}{MODEL}{body}")
    last = seeds.rpartition("; ")[2]
    assert (f"{column}{last}\n{column}{AGAIN.format(column)}" in result.data.decode()) is again
    assert result.data.decode().count("same_draws") == again
    assert bool(left(result)) is finding
