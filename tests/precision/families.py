"""Twelve faults and eight harmless pairs in three more families of models, labelled before `compare` had read any of
them: noise that is taken away, experts that a gate chooses, and twins that are to be alike. Form and marks are those of
`trained.py`.
"""

from __future__ import annotations

from tests.precision.trained import Harmless, Trained


def _fault(kind: str, name: str, old: str, new: str, lines: str, told: str = "", behind: bool = False) -> Trained:
    return Trained(kind, name, ((old, new),), lines, told, behind)


KINDS = ("noises", "experts", "twins")
FAULTS = [
    _fault("noises", "scale and shift swapped", "scale, shift = self.time", "shift, scale = self.time",
           "self.norm(self.conv(x))|.chunk(2, dim=1)"),
    _fault("noises", "a U that joins the other way round", "torch.cat((wide, kept), dim=1)",
           "torch.cat((kept, wide), dim=1)", "torch.cat((wide|torch.cat((kept|self.conv(x)"),
    _fault("noises", "the time of another wave", "times[step].to(device)", "times[step].roll(1).to(device)",
           "times[step]|share = shares|model(noisy, when)|angles ="),
    _fault("noises", "gradients that are not clipped", "    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n",
           "", "clip_grad_norm_|optimizer.step()", behind=True),
    _fault("experts", "weights that are not made one",
           "        weights = weights / weights.sum(dim=-1, keepdim=True)\n", "",
           "weights / weights.sum|scatter(-1, chosen"),
    _fault("experts", "the worst experts", "odds.topk(BEST, dim=-1)", "odds.topk(BEST, dim=-1, largest=False)",
           "odds.topk", "largest"),
    _fault("experts", "a balance that has no gradient", "0.01 * balance", "0.01 * balance.detach()",
           "0.01 * balance", "gradient|detach"),
    _fault("experts", "another eps in the last norm", "self.last = nn.RMSNorm(WIDTH, eps=1e-6)",
           "self.last = nn.RMSNorm(WIDTH, eps=1e-1)", "self.head(self.last(x))", "eps|0.1"),
    _fault("twins", "padding on both sides", "F.pad(x, (self.left, 0))", "F.pad(x, (self.left // 2, self.left // 2))",
           "F.pad(", "pad"),
    _fault("twins", "no dilation in the last layer", "Causal(12, 12, 4)", "Causal(12, 12, 1)",
           "F.pad(", ""),
    _fault("twins", "another temperature", "dim=1) / 0.2", "dim=1) / 0.07", "dim=1) / 0", "0.07|0.2"),
    _fault("twins", "a slow copy that stands still", "            old.mul_(0.9).add_(new, alpha=0.1)\n",
           "            pass\n", "old.mul_(0.9)|answers = slow(other)|self.conv(F.pad|return F.leaky_relu",
           behind=True),
]  # fmt: skip
QUIET = [
    Harmless("noises", "a lerp that is written out",
             (("old.lerp_(new, 0.1)", "old.add_(new - old, alpha=0.1)"),)),
    Harmless("noises", "a size for a factor",
             (('scale_factor=2.0, mode="nearest")', 'size=16, mode="nearest")'),)),
    Harmless("noises", "AdamW at once", (("weight_decay=0.01)", "weight_decay=0.01, foreach=True)"),)),
    Harmless("experts", "a sort for the best",
             (("weights, chosen = odds.topk(BEST, dim=-1)",
               "weights, chosen = (each[:, :BEST] for each in odds.sort(dim=-1, descending=True))"),)),
    Harmless("experts", "a matmul for an einsum",
             (('torch.einsum("nd,edh->enh", x, self.into)', "torch.matmul(x, self.into)"),)),
    Harmless("experts", "two threads", threads=2),
    Harmless("twins", "a product for a sum",
             (("(asked * answers).sum(dim=-1, keepdim=True)", "(asked[:, None] @ answers[:, :, None])[:, 0]"),)),
    Harmless("twins", "a normalization that is written out",
             (("return F.normalize(self.out(seen.amax(dim=-1)), dim=-1)",
               "y = self.out(seen.amax(dim=-1))\n        return y / y.norm(dim=-1, keepdim=True)"),)),
]  # fmt: skip
