"""What differs between ranks: values of a share, draws of a rank, and what neither reaches."""

from __future__ import annotations

import textwrap

import pytest

from tests.distributed.test_pairs import distributed, left, script
from tests.harness import codes

TRAIN = "for epoch in range(3):\n    for x in loader:\n        model(x).backward()\n        optimizer.step()\n"
PLATEAU = "schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)\n"


def ported(loop: str, loader: str = "", head: str = "") -> tuple[list[str], bool]:
    """What is left of a program, and whether its loader is shared out."""
    loaders = loader or "loader = DataLoader(dataset, 8, True)\nvalid = DataLoader(net.other, 8)"
    result = distributed(script(head=head, loader=loaders, loop=PLATEAU + loop))
    return left(result), b"npu_port.shard(" in result.data


def refused(loop: str, head: str = "") -> bool:
    return ported(loop, head=head)[0] == ["NPU332"]


def behind(source: str) -> str:
    """What follows the training in each epoch."""
    return TRAIN + textwrap.indent(textwrap.dedent(source).strip("\n"), "    ") + "\n"


# --- names that are bound anew ----------------------------------------------------------------------------------------

VALID = """\
total = 0.0
with torch.no_grad():
    for {0} in valid:
        total += model({0}).item()
schedule.step(total)
"""


@pytest.mark.parametrize("name", ["x", "y"])
def test_a_validation_may_read_its_batches_under_the_name_of_those_of_the_training(name: str) -> None:
    assert ported(behind(VALID.format(name))) == ([], True)


@pytest.mark.parametrize(
    "validation",
    [
        "x = net.check\nschedule.step(model(x).item())",
        "x, y = net.check, 2\nif y:\n    schedule.step(model(x).item())",
        "with net.check() as x:\n    schedule.step(model(x).item())",
        "while True:\n    x = net.check\n    schedule.step(model(x).item())\n    break",
    ],
)
def test_a_name_that_is_given_another_value(validation: str) -> None:
    assert ported(behind(validation)) == ([], True)


@pytest.mark.parametrize(
    "validation",
    [
        "schedule.step(model(x).item())",
        "if net.check:\n    x = net.check\nschedule.step(model(x).item())",
        "total = 0.0\ntotal += x.sum().item()\nschedule.step(total)",
        "total = 0.0\nfor y in valid:\n    total += model(x).item()\nschedule.step(total)",
        "for x in valid:\n    x = x\nschedule.step(model(x).item())",
        "x = x * 2\nschedule.step(model(x).item())",
    ],
)
def test_a_name_that_may_still_be_a_batch_of_the_share(validation: str) -> None:
    assert refused(behind(validation))


def test_a_value_of_an_earlier_round() -> None:
    body = "for epoch in range(3):\n    if epoch:\n        schedule.step(x.sum().item())\n" + TRAIN.partition("\n")[2]
    assert refused(body)


# --- what methods give back -------------------------------------------------------------------------------------------

MODEL = """\
class Model(torch.nn.Module):
    def score(self, x):
        z = self.layer(x)
        {}
        return z.sum()


net.model = Model
"""
SCORED = """\
total = 0.0
model.eval()
with torch.no_grad():
    for y in valid:
        total += model.score(y).item()
"""
TRAINED = TRAIN.replace("model(x)", "model.score(x)").replace("    for x", "    model.train()\n    for x")


def scored(method: str, validation: str = SCORED) -> list[str]:
    loop = TRAINED + textwrap.indent(validation + "schedule.step(total)\n", "    ")
    head = MODEL.format(textwrap.indent(method, " " * 8).strip())
    data = "loader = DataLoader(dataset, 8, True)\nvalid = DataLoader(net.other, 8)"
    return left(distributed(script(head=head, model="model = Model().cuda()", loader=data, loop=PLATEAU + loop)))


@pytest.mark.parametrize(
    "method",
    [
        "pass",
        "if self.training:\n    z = z + torch.randn_like(z)",
        "z = z + torch.randn_like(z) if self.training else z",
        "if not self.training:\n    return z.sum()\nz = z + torch.randn_like(z)",
        "if not self.training:\n    pass\nelse:\n    z = z + torch.randn_like(z)",
        "self.seen = x",
    ],
)
def test_a_method_that_draws_in_training_alone(method: str) -> None:
    assert scored(method) == []


@pytest.mark.parametrize(
    "method",
    [
        "z = z + torch.randn_like(z)",
        "if not self.training:\n    z = z + torch.randn_like(z)",
        "if self.training:\n    pass\nelse:\n    z = z + torch.randn_like(z)",
        "if self.training:\n    self.seen = x\nelse:\n    z = z + self.seen",
        "if self.training:\n    self.seen = z\nz = z + 1\ny = self.seen\nreturn y",
    ],
)
def test_a_method_that_draws_in_an_evaluation_too(method: str) -> None:
    assert scored(method) == ["NPU332"]


FORCED = """\
def run(x, ratio):
    {}
    y = model(x)
    return y.mean() if forced else y.sum()


"""


@pytest.mark.parametrize(
    ("draw", "given", "kept"),
    [
        ("forced = random.random() < ratio", "0.0", []),
        ("forced = ratio > 0 and random.random() < ratio", "0", []),
        ("forced = random.random() < ratio", "0.5", ["NPU332"]),
        ("forced = random.random() <= ratio", "0.0", ["NPU332"]),
        ("forced = random.random() > ratio", "0.0", ["NPU332"]),
        ("ratio = ratio + 0.1; forced = random.random() < ratio", "0.0", ["NPU332"]),
    ],
)
def test_a_draw_that_holds_in_training_alone(draw: str, given: str, kept: list[str]) -> None:
    trained = TRAINED.replace("model.score(x)", "run(x, 0.5)")
    validation = SCORED.replace("model.score(y)", f"run(y, {given})")
    loop = trained + textwrap.indent(validation + "schedule.step(total)\n", "    ")
    data = "loader = DataLoader(dataset, 8, True)\nvalid = DataLoader(net.other, 8)"
    head = "import random\n\n\n" + FORCED.format(draw)
    assert left(distributed(script(head=head, loader=data, loop=PLATEAU + loop))) == kept


@pytest.mark.parametrize(
    "validation", [SCORED.replace("model.eval()\n", ""), SCORED.replace("eval()", "train()"),
                   SCORED.replace("with torch.no_grad():", "if True:")],
)  # fmt: skip
def test_a_method_that_draws_where_no_evaluation_is_seen(validation: str) -> None:
    assert scored("if self.training:\n    z = z + torch.randn_like(z)", validation) == ["NPU332"]


# --- models that draw whenever they run -------------------------------------------------------------------------------

DRAWN = """\
class Part(torch.nn.Module):
    def noise(self, x):
        return {}

    def forward(self, x):
        return self.layer(x) + self.noise(x)


class Model(torch.nn.Module):
    def __init__(self):
        self.part = {{"part": Part}}["part"]()

    def forward(self, x):
        return self.part(x)


net.model = Model
"""


@pytest.mark.parametrize(
    ("noise", "steers", "found"),
    [
        ("torch.rand_like(x)", "schedule.step(total)\n", ["NPU332"]),
        ("torch.randint(4, (2,))", "if total > 3:\n    break\n", ["NPU332"]),
        # What each rank finds is printed by one, and a checkpoint is that of rank 0.
        ("torch.rand_like(x)", "print(total)\n", []),
        # They draw nothing in an evaluation, or nothing at all.
        ("torch.rand_like(x) if self.training else 0", "schedule.step(total)\n", []),
        ("self.rows[x]", "schedule.step(total)\n", []),
    ],
)
def test_what_a_model_that_draws_gives_in_an_evaluation(noise: str, steers: str, found: list[str]) -> None:
    validation = SCORED.replace("model.score(y)", "model(y).sum()")
    loop = TRAINED.replace("model.score(x)", "model(x).sum()") + textwrap.indent(validation + steers, "    ")
    data = "loader = DataLoader(dataset, 8, True)\nvalid = DataLoader(net.other, 8)"
    source = script(head=DRAWN.format(noise), model="model = Model().cuda()", loader=data, loop=PLATEAU + loop)
    assert left(distributed(source)) == found


# --- data that a draw chooses -----------------------------------------------------------------------------------------

CHOSEN = [
    "[each for each in net.rows if random.random() < 0.5]",
    "[each for each in net.rows if np.random.rand() < 0.5]",
    "list(each for each in net.rows if torch.rand(1) < 0.5)",
    "{each: 1 for each in net.rows if random.random() < 0.5}",
    "random.sample(net.rows, 10)",
]
DRAWS = "import random\n\nimport numpy as np\n\nrandom.seed(1)\n"


@pytest.mark.parametrize("chosen", CHOSEN)
def test_data_that_all_ranks_choose_alike_before_training(chosen: str) -> None:
    loader = f"rows = {chosen}\nloader = DataLoader(rows, 8, True)"
    assert ported(TRAIN, loader, DRAWS) == ([], True)


KEPT = "rows = []\n    for each in net.rows:\n        if random.random() < 0.5:\n            rows.append(each)"


@pytest.mark.parametrize("chosen", [*(f"rows = {each}" for each in CHOSEN), KEPT])
def test_data_that_each_rank_chooses_for_itself_while_it_trains(chosen: str) -> None:
    head, _, rest = TRAIN.partition("\n")
    loop = f"{head}\n    {chosen}\n    loader = DataLoader(rows, 8, True)\n{rest}"
    # More of them on one rank would be more steps.
    assert ported(loop, "valid = DataLoader(dataset)", DRAWS) == (["NPU332" if chosen == KEPT else "NPU340"], False)


@pytest.mark.parametrize(("made", "shared"), [("default_rng()", False), ("default_rng(3)", True),
                                              ("RandomState()", False), ("RandomState(seed=3)", True)])  # fmt: skip
def test_a_generator_that_each_process_seeds_for_itself(made: str, shared: bool) -> None:
    loader = f"draws = np.random.{made}\nrows = draws.permutation(10)\nloader = DataLoader(rows, 8, True)"
    assert ported(TRAIN, loader, DRAWS) == ([] if shared else ["NPU340"], shared)


# --- orders and parts ------------------------------------------------------------------------------------------------

SAMPLERS = """\
from torch.utils.data import BatchSampler, RandomSampler, SequentialSampler, SubsetRandomSampler

rows = range(32)
"""
ROUND = """\
order = {0}
for epoch in range(3):
    for index in {1}:
        if data[index].sum() > 3:
            break
        model(data[index]).backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("order", "over", "own"),
    [
        ("BatchSampler(SubsetRandomSampler(rows), 8, True)", "order", True),
        ("RandomSampler(rows)", "order", True),
        ("RandomSampler(rows)", "enumerate(order)", True),
        ("RandomSampler(rows)", "list(BatchSampler(order, 8, True))", True),
        ("torch.utils.data.WeightedRandomSampler(net.weights, 8)", "order", True),
        ("SequentialSampler(rows)", "order", False),
        ("BatchSampler(SequentialSampler(rows), 8, True)", "order", False),
        ("list(RandomSampler(rows))", "order", False),  # in front of the training all ranks draw alike
        ("net.order", "order", False),
    ],
)
def test_the_order_of_a_random_sampler_is_drawn_where_it_is_gone_over(order: str, over: str, own: bool) -> None:
    loop = "data = net.rows\n" + ROUND.format(order, over)
    assert refused(loop, head=SAMPLERS) is own


def test_a_loader_draws_the_order_of_its_sampler_for_all_ranks() -> None:
    loader = "order = RandomSampler(dataset)\nloader = DataLoader(dataset, 8, sampler=order)"
    assert ported(TRAIN, loader, SAMPLERS) == ([], True)


PLAYED = """\
def play(model):
    return [{0}, net.second], net.score


for epoch in range(3):
    {1} = play(model)
    if {2} > 3:
        break
    model(first).backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("played", "target", "compared", "own"),
    [
        ("torch.randn(3)", "(first, second), score", "first.sum()", True),
        ("torch.randn(3)", "[first, *second], score", "second[0]", True),
        ("torch.randn(3)", "first, *second", "second[0]", True),
        ("torch.randn(3)", "(first, second), score", "score", True),  # which part it is is not seen
        ("net.first", "(first, second), score", "first.sum()", False),
    ],
)
def test_a_part_in_a_nested_target_is_what_the_whole_is(played: str, target: str, compared: str, own: bool) -> None:
    assert refused(PLAYED.format(played, target, compared)) is own


def test_parts_that_are_written_out_are_told_apart() -> None:
    loop = PLAYED.partition("\n\n\n")[2].replace("play(model)", "(torch.randn(3), net.second), net.score")
    found = [refused(loop.format("", "(first, second), score", each)) for each in ("first.sum()", "score")]
    assert found == [True, False]


# --- how many the values of one rank let through ----------------------------------------------------------------------

PICKED = """\
for epoch in range(3):
    for x in loader:
        out = model(x)
        {0}
        if {1}:
            continue
        out.sum().backward()
        optimizer.step()
"""
HARD = "def hardest(out):\n    hard = out > 0.2\n    return out[hard], hard\n"


@pytest.mark.parametrize(
    ("picks", "asks", "apart"),
    [
        ("hard = out[out > 0.2]", "len(hard) == 0", True),
        ("hard = out[(out > 0.2) & ~(out > 0.9)]", "hard.numel() == 0", True),
        ("hard = (out > 0.2).nonzero()", "hard.shape[0] == 0", True),
        ("hard = torch.nonzero(out > 0.2)", "hard.size(0) == 0", True),
        ("hard, _ = hardest(out)", "not len(hard)", True),
        ("hard = hardest(out)[0].sum(0)", "hard.shape[0] == 0", False),
        ("hard = out[:4]", "len(hard) == 0", False),
        ("hard = out[net.order]", "len(hard) == 0", False),
        ("hard = net.weight[net.weight > 0]", "len(hard) == 0", False),  # the same on all ranks
        ("hard = out.masked_fill(out > 0.2, 0)", "len(hard) == 0", False),
        ("hard = torch.where(out > 0.2, out, x)", "len(hard) == 0", False),
    ],
)
def test_a_batch_that_is_left_out_where_nothing_was_picked(picks: str, asks: str, apart: bool) -> None:
    assert refused(PICKED.format(picks, asks), head=HARD) is apart


# --- noise in what has been exchanged ---------------------------------------------------------------------------------

NOISY = """\
for epoch in range(3):
    for x in loader:
        model(x).backward()
        {0}
        optimizer.step()
"""
EACH = "for p in model.parameters():\n            "


@pytest.mark.parametrize(
    ("changes", "apart"),
    [
        ("p.grad.add_(torch.randn_like(p), alpha=0.1)", True),
        ("p.grad += 0.1 * torch.randn(p.shape)", True),
        ("noise = torch.randn_like(p.grad)\n            p.grad.add_(noise)", True),
        ("p.data.mul_(0.9).add_(torch.randn_like(p))", True),
        ("p.mul_(0.9).add_(torch.randn_like(p))", True),
        ("p.data = p.data + torch.randn_like(p)", True),
        ("p.grad.add_(torch.randn(p.shape, generator=net.generator))", False),
        ("p.grad.mul_(0.5)", False),
        ("noise = torch.randn_like(p)\n            p.grad.mul_(0.5)", False),
        ("x = x + torch.randn_like(x)", False),
        ("x.mul_(torch.rand_like(x))", False),
    ],
)
def test_noise_of_a_rank_in_gradients_or_parameters(changes: str, apart: bool) -> None:
    assert refused(NOISY.format(EACH + changes)) is apart


def test_noise_that_is_drawn_before_training() -> None:
    assert not refused("for p in model.parameters():\n    p.data.add_(torch.randn_like(p))\n" + TRAIN)


# --- what a function changes for its caller ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keeps", "own"),
    [
        ("kept.append(loss.item())", True),
        ("heapq.heappush(kept, (loss.item(), 1))", True),
        ("kept[0] = loss.item()", True),
        ("kept = [loss.item()]", False),  # another list
        ("kept.append(1)", False),
    ],
)
def test_data_that_are_chosen_by_what_a_function_was_given_to_fill(keeps: str, own: bool) -> None:
    head = f"import heapq\ndef note(loss, kept):\n    {keeps}\n"
    loop = """
        for epoch in range(3):
            kept = []
            for x in loader:
                loss = model(x)
                note(loss, kept)
                loss.backward()
                optimizer.step()
            for x in DataLoader(Subset(dataset, sorted(kept)), 8, True):
                model(x).backward()
                optimizer.step()
    """
    assert ("NPU340" in ported(textwrap.dedent(loop), head=head)[0]) is own


@pytest.mark.parametrize(("weighs", "told"), [("w.now", True), ("1.0", False)])
def test_a_state_of_an_object_that_a_function_is_given(weighs: str, told: bool) -> None:
    head = (
        "class Weight:\n    def __init__(self):\n        self.now = 1.0\n\n    def follow(self, value):\n"
        "        self.now = 0.9 * self.now + 0.1 * value.max().item()\n\n"
        "def run(model, loader, optimizer, w):\n    for x in loader:\n        loss = model(x.cuda())\n"
        f"        (loss * {weighs}).sum().backward()\n        optimizer.step()\n        w.follow(loss)\n"
    )
    loop = "weight = Weight()\nfor epoch in range(3):\n    run(model, loader, optimizer, weight)\n"
    assert ("NPU353" in codes(distributed(script(head=head, loop=loop)), applied=False)) is told
