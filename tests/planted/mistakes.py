"""Forty mistakes that people make when they port a training program, each planted in a right port that runs.

A mistake is a few replacements in what the tool writes for one of `programs/`. `cause` are pieces of the lines that a
person would have to change, as they stand in the mistaken program; `lost` of lines that the original has and the
mistaken program lacks. A proof has to name one of them.
"""

from __future__ import annotations

from dataclasses import dataclass

DIFFERS = frozenset({"differs"})
STOPS = frozenset({"stops"})
#: A fault of the collectives may end the program, or give it other numbers.
EITHER = DIFFERS | STOPS
#: Nothing that was compared is another, and yet the programs are not alike.
NOT_EQUAL = frozenset({"differs", "runs"})


@dataclass(frozen=True)
class Mistake:
    """One mistake. `port` is what is asked of the tool first: `plain`, `distributed` or `amp`; `swaps` are (old, new),
    each old text standing there once; `ends` is whether each process of the mistaken program ends by itself with 0."""

    name: str
    base: str
    port: str
    swaps: tuple[tuple[str, str], ...]
    cause: tuple[str, ...]
    lost: tuple[str, ...] = ()
    verdicts: frozenset[str] = DIFFERS
    nproc: int = 1
    ends: bool = True


def alone(name: str, base: str, *swaps: tuple[str, str], cause: str = "", lost: str = "", port: str = "plain",
          verdicts: frozenset[str] = DIFFERS, ends: bool = True) -> Mistake:  # fmt: skip
    """One process. Several pieces of lines are parted by `|`; without `cause`, the lines of the new texts are it."""
    return Mistake(name, base, port, swaps, _lines(cause, swaps), _pieces(lost), verdicts, 1, ends)


def ranks(name: str, base: str, *swaps: tuple[str, str], cause: str = "", lost: str = "", port: str = "distributed",
          verdicts: frozenset[str] = DIFFERS, ends: bool = True) -> Mistake:  # fmt: skip
    """Two processes."""
    return Mistake(name, base, port, swaps, _lines(cause, swaps), _pieces(lost), verdicts, 2, ends)


def _pieces(text: str) -> tuple[str, ...]:
    return tuple(piece.strip() for piece in text.split("|") if piece.strip())


def _lines(cause: str, swaps: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    return _pieces(cause) or tuple(line.strip() for _, new in swaps for line in new.splitlines() if line.strip())


_SCALED_CLIP = (
    "        scaler.unscale_(optimizer)\n        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)\n",
    "        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)\n        scaler.unscale_(optimizer)\n",
)
_MEAN = "        right = mean_over_ranks(right, world)\n"
_BARRIER = "        if world > 1:\n            dist.barrier()\n"
_SHARE = "    train_loader = npu_port.shard(train_loader)\n"
#: A sampler of one's own in place of the share of `functions`.
_SAMPLED = (
    "    train_loader = DataLoader(train_set, batch_size=args.batch_size, drop_last=True, "
    "sampler=torch.utils.data.DistributedSampler(train_set{}))\n"
)
_SUMMED = (
    '            for parameter in (each for group in optimizer.param_groups for each in group["params"]):\n'
    "                torch.distributed.all_reduce(parameter.grad)\n"
)

MISTAKES = [
    # What a loop of training does in its order.
    alone("zero_grad_missing", "flat",
          ("        optimizer.zero_grad()\n", ""),
          cause="loss = criterion(net(x), y)|loss.backward()", lost="optimizer.zero_grad()"),
    alone("zero_grad_at_every_batch", "accumulation",
          ("        loss.backward()\n", "        optimizer.zero_grad()\n        loss.backward()\n")),
    alone("eval_missing", "flat",
          ("    net.eval()\n", ""),
          cause="correct = total = 0|(net(x).argmax(1)", lost="net.eval()"),
    alone("train_only_once", "flat",
          ("for epoch in range(2):\n    net.train()\n", "net.train()\nfor epoch in range(2):\n"),
          cause="net.train()", lost="net.train()"),
    alone("no_grad_missing", "functions",
          ("    with torch.no_grad():\n", "    if True:\n"),
          lost="with torch.no_grad():", verdicts=NOT_EQUAL),
    alone("detached_loss", "gan",
          ("loss_g = criterion(discriminator(fake), ones)", "loss_g = criterion(discriminator(fake.detach()), ones)")),
    alone("learning_rate_doubled", "functions",
          ("lr=args.lr)", "lr=args.lr * 2)")),
    alone("schedule_in_batches", "flat",
          ("        optimizer.step()\n    scheduler.step()\n", "        optimizer.step()\n        scheduler.step()\n"),
          cause="scheduler.step()"),
    alone("weight_decay_lost", "trainer",
          (", weight_decay=0.05)", ")"),
          cause="torch.optim.AdamW("),
    alone("one_network_not_optimized", "gan",
          ("list(generator.parameters()) + list(encoder.parameters()), lr", "generator.parameters(), lr"),
          cause="optimizer_g = |generator.parameters(), lr"),
    alone("optimizer_of_the_copy_before", "rnn_lm",
          ("model = Model().to(device)\n", "import copy\n\nmodel = Model()\n"),
          ("optimizer = torch.optim.SGD(model.parameters(), lr=1.0)\n",
           "optimizer = torch.optim.SGD(model.parameters(), lr=1.0)\nmodel = copy.deepcopy(model).to(device)\n"),
          cause="optimizer = torch.optim.SGD|copy.deepcopy"),
    # Data and random numbers.
    alone("seed_lost", "functions",
          ("    torch.manual_seed(11)\n", ""),
          ("    torch.npu.manual_seed_all(11)\n", ""),
          cause='device = torch.device("npu")|args = parser.parse_args()', lost="torch.manual_seed(11)"),
    alone("drop_last_lost", "functions",
          (", drop_last=True)", ")"),
          cause="train_loader = DataLoader("),
    # Checkpoints and buffers.
    alone("buffer_not_saved", "flat",
          ('self.register_buffer("mean", images.mean())',
           'self.register_buffer("mean", images.mean(), persistent=False)')),
    alone("statistics_left_out_of_the_checkpoint", "trainer",
          ('"model": self.model.state_dict(),', '"model": dict(self.model.named_parameters()),'),
          ('load_state_dict(checkpoint["model"])', 'load_state_dict(checkpoint["model"], strict=False)')),
    alone("resume_loads_nothing", "trainer",
          ("if not os.path.isfile(self.path):", 'if not os.path.isfile(self.path + "h"):'),
          cause="os.path.isfile|            return", lost="torch.load(|load_state_dict("),
    # Devices and types.
    alone("gate_left_on_cuda", "gates",
          ("if product.is_npu:", "if product.is_cuda:")),
    # `weight.double()` would be float32 on the card; what is made as float64 there is not.
    alone("double_product", "gates",
          ("    centred = weight - weight.mean(0)\n",
           "    basis = torch.eye(weight.size(1), dtype=torch.float64, device=weight.device)\n"
           "    basis = (basis @ basis.t()).float()\n"
           "    centred = (weight - weight.mean(0)) @ basis\n"),
          cause="basis = ", verdicts=STOPS, ends=False),
    alone("leftover_cuda", "amp_native",
          ("x, y = x.npu(), y.npu()", "x, y = x.npu(), y.cuda()"),
          verdicts=STOPS, ends=False),
    alone("asks_for_cuda", "rnn_lm",
          ('device = torch.device("npu" if torch.npu.is_available()',
           'device = torch.device("npu" if torch.cuda.is_available()'),
          verdicts=frozenset({"not run", "differs", "stops"})),
    alone("model_in_bfloat16", "flat",
          ("net = Net().to(device)", "net = Net().to(device).bfloat16()"),
          ("loss = criterion(net(x), y)", "loss = criterion(net(x.bfloat16()).float(), y)"),
          ("(net(x).argmax(1)", "(net(x.bfloat16()).argmax(1)")),
    # Mixed precision.
    alone("clip_before_unscale", "rnn_lm", _SCALED_CLIP, port="amp"),
    alone("scaler_made_in_the_loop", "functions",
          ("        scaler.scale(loss).backward()\n",
           "        scaler = torch.npu.amp.GradScaler()\n        scaler.scale(loss).backward()\n"),
          cause="        scaler = torch.npu.amp.GradScaler()|scaler.scale(loss)|scaler.update()", port="amp"),
    alone("update_missing", "amp_native",
          ("            scaler.update()\n", ""),
          cause="scaler.unscale_(|scaler.step(|total += loss.item()", lost="scaler.update()",
          verdicts=STOPS, ends=False),
    alone("loss_not_scaled", "amp_native",
          ("scaler.scale(loss).backward()", "scaler.scale(loss)\n            loss.backward()")),
    # The mean of means of batches of 5, 5 and 2.
    alone("mean_of_unequal_batches", "functions",
          (', reduction="sum").item()', ").item()"),
          ("return error / len(loader.dataset)", "return error / len(loader)"),
          cause="error += |return error / len(loader)"),
    # Ranks: what keeps them together.
    ranks("ranks_not_synchronised", "flat",
          ("net = npu_port.wrap(net)\n", ""),
          ("net.module.state_dict()", "net.state_dict()"),
          cause="net = Net().to(device)|optimizer = torch.optim.SGD|loss.backward()|optimizer.step()"),
    ranks("past_the_wrapper", "functions",
          ("        output = model(data)\n        loss", "        output = model.module(data)\n        loss"),
          cause="output = model.module(data)"),
    ranks("third_network_not_wrapped", "gan",
          ("    encoder = npu_port.wrap(encoder)\n", ""),
          cause="encoder = mlp(|optimizer_g = |list(generator.parameters())|fake = generator(encoder(code))"
                "|optimizer_g.step()"),
    ranks("seed_of_each_rank", "accumulation",
          ("torch.manual_seed(4)", "torch.manual_seed(4 + npu_port.rank())"),
          ("    npu_port.alike(optimizer)\n", ""),
          cause="torch.manual_seed(4 + |model = Classifier()|optimizer = torch.optim.Adam"),
    ranks("broadcast_lost", "ranks",
          ("        dist.broadcast(center, src=0)\n", ""),
          cause="center.copy_(|center = torch.zeros|loss = criterion(model(x - center), y)",
          lost="dist.broadcast(center", port="plain"),
    ranks("all_ranks_on_one_card", "ranks",
          ('local_rank = int(os.environ.get("LOCAL_RANK", "0"))', "local_rank = 0"),
          cause="local_rank = 0|set_device(local_rank)|torch.device(|init_process_group(", port="plain",
          verdicts=EITHER),
    # Ranks: collectives.
    ranks("collective_under_a_rank", "ranks",
          (_MEAN, f"        if rank == 0:\n    {_MEAN}"),
          cause="right = mean_over_ranks|dist.all_reduce(|if rank == 0:", port="plain", verdicts=EITHER, ends=False),
    ranks("collectives_in_another_order", "ranks",
          (_MEAN, f"        if world > 1 and rank == 1:\n            dist.barrier()\n{_MEAN}"),
          (_BARRIER, "        if world > 1 and rank != 1:\n            dist.barrier()\n"),
          cause="dist.barrier()|right = mean_over_ranks|dist.all_reduce(|and rank", port="plain", verdicts=EITHER,
          ends=False),
    ranks("another_dtype_on_one_rank", "ranks",
          ("mean_over_ranks(loss.detach().clone(), world)",
           "mean_over_ranks(loss.detach().clone().to(torch.float16 if rank else torch.float32), world)"),
          cause="torch.float16 if rank|dist.all_reduce(", port="plain", verdicts=EITHER, ends=False),
    # Ranks: who gets which data, and sums over all.
    ranks("no_sampler", "flat",
          (_SHARE.lstrip(), ""),
          cause="train_loader = DataLoader("),
    ranks("sampler_of_rank_0_for_all", "functions",
          (_SHARE, _SAMPLED.format(", 2, 0"))),
    ranks("set_epoch_missing", "functions",
          (_SHARE, _SAMPLED.format("")),
          cause="sampler=|for epoch in range(|loss = train(|for data, target in loader:"),
    ranks("divided_by_the_ranks_twice", "functions",
          ("        mean_loss = npu_port.mean_over_ranks(loss)\n",
           "        mean_loss = npu_port.mean_over_ranks(loss)\n        mean_loss /= npu_port.world_size()\n"),
          cause="mean_loss = npu_port.mean_over_ranks(|mean_loss /= |total += mean_loss"),
    ranks("sum_of_gradients", "accumulation",
          ("            npu_port.average(optimizer)\n", _SUMMED),
          cause="torch.distributed.all_reduce(parameter.grad)|for parameter in (each for group"),
]  # fmt: skip
