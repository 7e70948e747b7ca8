"""Forty faults and twenty harmless pairs, written before `compare` had read any of them, in five more programs.

Four families (a decoder, a residual network, numbers that look things up, a recurrent encoder with a teacher) and a
network on two ranks. Form and marks are those of `trained.py`.
"""

from __future__ import annotations

from tests.precision.trained import Harmless, Trained


def _fault(kind: str, name: str, old: str, new: str, lines: str, told: str = "", behind: bool = False) -> Trained:
    return Trained(kind, name, ((old, new),), lines, told, behind)


KINDS = ("chat", "photos", "shop", "voices", "halves")
_Q, _K = "        q = rotated(q, cos, sin)\n", "        k = rotated(k, cos, sin)\n"
CAUSES = [
    # a decoder
    _fault("chat", "keys that are not rotated", _K, "", "rotated(q, cos|scaled_dot_product|x * cos"),
    _fault("chat", "cosines for sines", "layer(x, angles.cos(), angles.sin())", "layer(x, angles.sin(), angles.cos())",
           "layer(x, angles|x * cos"),
    _fault("chat", "positions rolled by one", "device=words.device)\n        steps",
           "device=words.device).roll(1)\n        steps", "torch.arange(words.shape[1]|places[:, None]"),
    _fault("chat", "heads in another order", ".permute(2, 0, 3, 1, 4)", ".permute(2, 0, 3, 1, 4).flip(2)",
           "self.qkv(self.norm(x))|rotated(q, cos|x.chunk(2|torch.cat((-second"),
    _fault("chat", "an attention that sees the future", "is_causal=True", "is_causal=False", "scaled_dot_product",
           "is_causal"),
    _fault("chat", "a head in bfloat16", "return F.linear(x, self.head)",
           "return F.linear(x.bfloat16(), self.head.bfloat16()).float()", "F.linear(x", "bfloat16"),
    _fault("chat", "padding that is learnt", "goal.masked_fill(goal == 0, -100)", "goal.masked_fill(goal == 0, 0)",
           "goal.masked_fill|F.cross_entropy"),
    _fault("chat", "the goals of another place", "batch[:, :-1], batch[:, 1:]", "batch[:, :-1], batch[:, 1:].flip(1)",
           "batch[:, :-1], batch[:, 1:]|goal.masked_fill"),
    _fault("chat", "a gate that is cut off", "F.silu(self.gate(y)) * self.up(y)",
           "F.silu(self.gate(y)).detach() * self.up(y)", "F.silu(self.gate(y))", "gradient|detach"),
    # a residual network
    _fault("photos", "batch norm in eval", "model.train()\n", "model.eval()\n", "self.norm(self.stem(x))|model.train()|model.eval()",
           "eval"),
    _fault("photos", "a lost momentum", "        optimizer.load_state_dict(kept)\n", "",
           "optimizer.step()|torch.optim.SGD|optimizer_of(model)", "momentum", behind=True),
    _fault("photos", "a residual that is cut off", "F.relu(x + y)", "F.relu(x.detach() + y)", "F.relu(x + y)|F.relu(x.detach",
           "gradient|detach"),
    _fault("photos", "no mean taken off", "((x - mean) / 64.0)", "(x / 64.0)", "(x - mean)|(x / 64.0)|self.norm(self.stem(x))"),
    _fault("photos", "classes of another picture", "classes[step].to(device)", "classes[step].roll(1).to(device)",
           "classes[step]|F.cross_entropy"),
    _fault("photos", "an average for a largest", "nn.MaxPool2d(2)", "nn.AvgPool2d(2)", "self.pool(self.block(x))", "avg_pool2d"),
    _fault("photos", "another momentum of the norm", "self.norm = nn.BatchNorm2d(8)", "self.norm = nn.BatchNorm2d(8, momentum=0.5)",
           "self.norm(self.stem(x))", "0.5"),
    _fault("photos", "a sum over places", "x.mean(dim=(2, 3))", "x.sum(dim=(2, 3))", "x.mean(dim=|x.sum(dim="),
    _fault("photos", "decay that is left out", ", weight_decay=5e-4", "", "torch.optim.SGD|optimizer.step()|optimizer_of(model)",
           "weight_decay", behind=True),
    # numbers that look things up
    _fault("shop", "other people", "(who, what, friends, edges)]\n    guess", "(who.roll(1, 1), what, friends, edges)]\n    guess",
           "given = [|self.people(who)|model(*given)"),
    _fault("shop", "other things", "given = [each[step].to(device) for each in (who, what,",
           "given = [each[step].to(device) for each in (who, what.flip(1),", "given = [|self.things(what)|model(*given)"),
    _fault("shop", "friends of somebody else", "friends.flatten()", "friends.roll(1, 0).flatten()",
           "self.table.index_select"),
    _fault("shop", "edges the wrong way", "b[edges[1]]", "b[edges[1].flip(0)]", "scatter_add|b[edges[1]"),
    _fault("shop", "the smallest for the largest", "a.topk(3, dim=-1)", "a.topk(3, dim=-1, largest=False)", "a.topk(3",
           "largest"),
    _fault("shop", "goals of others", "bought[step].to(device)", "bought[step].flip(0).to(device)",
           "bought[step]|binary_cross_entropy"),
    _fault("shop", "no gradient to the table", "self.table.index_select", "self.table.detach().index_select",
           "index_select", "gradient|detach"),
    _fault("shop", "a stronger penalty", "1e-3 * model.table", "2e-3 * model.table", "model.table.pow(2)|loss = loss"),
    _fault("shop", "an accumulated gradient", "    optimizer.zero_grad()\n", "    optimizer.zero_grad() if step == 0 else None\n",
           "optimizer.zero_grad()|optimizer.step()|loss.backward()", behind=True),
    # a recurrent encoder with a teacher
    _fault("voices", "a mask that is one too long", ">= lengths[:, None]", "> lengths[:, None]", "lengths[:, None]|masked_fill(hidden"),
    _fault("voices", "lengths of another sound", "lengths[step].to(device)", "lengths[step].roll(1).to(device)",
           "lengths[step]|lengths[:, None]|pupil(x, size)"),
    _fault("voices", "a colder teacher", "teacher(x, size) / 2.0", "teacher(x, size) / 1.0", "teacher(x, size)"),
    _fault("voices", "a pupil without its teacher", "+ 0.5 * near", "+ 0.5 * near.detach()", "0.5 * near|F.kl_div", "gradient|detach"),
    _fault("voices", "another way to average", 'reduction="batchmean"', 'reduction="mean"', "F.kl_div", "reduction"),
    _fault("voices", "a teacher that does not follow", "            old.mul_(0.9).add_(new, alpha=0.1)\n", "            pass\n",
           "old.mul_(0.9)|zip(teacher.parameters()|teacher(x, size)|self.conv(x)", behind=True),
    _fault("voices", "a softmax over sounds", "scores.softmax(dim=-1)", "scores.softmax(dim=0)", "scores.softmax("),
    _fault("voices", "another alpha", ", alpha=0.9)\nschedule", ", alpha=0.99)\nschedule", "torch.optim.RMSprop|optimizer.step()", "alpha",
           behind=True),
    # two ranks
    _fault("halves", "both ranks with one share", "slice(rank * 4, rank * 4 + 4)", "slice(0, 4)",
           "texts[step][share]|model(x)|self.words(x)", "rank 1"),
    _fault("halves", "labels of the other rank", "y = classes[step][share].to(device)", "y = classes[step][slice(4 - rank * 4, 8 - rank * 4)].to(device)",
           "classes[step]|F.cross_entropy"),
    _fault("halves", "a mean for the sum", "op=dist.ReduceOp.SUM", "op=dist.ReduceOp.AVG", "dist.all_reduce(parameter.grad|optimizer.step()",
           behind=True),
    _fault("halves", "one rank in bfloat16", "F.gelu(self.one(y))",
           "F.gelu(F.linear(y.bfloat16(), self.one.weight.bfloat16(), self.one.bias.bfloat16()).float() if rank else self.one(y))",
           "self.one(y)", "bfloat16"),
    _fault("halves", "a rank that adds nothing", "        dist.all_reduce(parameter.grad, op=dist.ReduceOp.SUM)\n",
           "        dist.all_reduce(parameter.grad if rank == 0 else parameter.grad.clone(), op=dist.ReduceOp.SUM)\n",
           "dist.all_reduce(parameter.grad|optimizer.step()", "rank 1", behind=True),
]  # fmt: skip

QUIET = [
    Harmless("chat", "a split for a chunk", (("x.chunk(2, dim=-1)", "x.split(x.shape[-1] // 2, dim=-1)"),)),
    Harmless("chat", "the same angles by another way", (("places[:, None] * steps[None, :]", "torch.outer(places.float(), steps)"),)),
    Harmless("chat", "a fused AdamW", (("weight_decay=0.1)", "weight_decay=0.1, fused=True)"),)),
    Harmless("chat", "a view for a flatten", (("logits.flatten(0, 1)", "logits.view(-1, WORDS)"),)),
    Harmless("chat", "a module for a function", (("F.linear(x, self.head)", "x @ self.head.t()"),)),
    Harmless("chat", "two threads", threads=2),
    Harmless("photos", "a relu of torch", (("y = F.relu(self.norm1", "y = torch.relu(self.norm1"),)),
    Harmless("photos", "a relu in place", (("F.relu(x + y)", "F.relu(x + y, inplace=True)"),)),
    Harmless("photos", "an adaptive pool for a mean", (("x.mean(dim=(2, 3))", "F.adaptive_avg_pool2d(x, 1).flatten(1)"),)),
    Harmless("photos", "SGD for all at once", (("weight_decay=5e-4)", "weight_decay=5e-4, foreach=True)"),)),
    Harmless("photos", "an accuracy that is shown", (("    optimizer.zero_grad()\n", "    print(float((model.fc.weight.detach() > 0).float().mean()))\n    optimizer.zero_grad()\n"),)),
    Harmless("shop", "an index for a lookup", (("b[edges[1]]", "b.index_select(0, edges[1])"),)),
    Harmless("shop", "Adam one by one", (("lr=1e-2)", "lr=1e-2, foreach=False)"),), (("lr=1e-2)", "lr=1e-2, foreach=True)"),)),
    Harmless("shop", "an embedding by its function", (("self.people(who)", "F.embedding(who, self.people.weight)"),)),
    Harmless("shop", "a square for a power", (("model.table.pow(2).sum()", "model.table.square().sum()"),)),
    Harmless("voices", "an unsqueeze for None", (("weights[..., None] * x", "weights.unsqueeze(-1) * x"),)),
    Harmless("voices", "two threads", threads=2),
    Harmless("voices", "another way to write the average", (("old.mul_(0.9).add_(new, alpha=0.1)", "old.mul_(0.9)\n            old.add_(new, alpha=0.1)"),)),
    Harmless("halves", "a barrier", (("    optimizer.step()\n", "    optimizer.step()\n    dist.barrier()\n"),)),
    Harmless("halves", "gradients that become zero", (("optimizer.zero_grad()", "optimizer.zero_grad(set_to_none=False)"),)),
]  # fmt: skip
