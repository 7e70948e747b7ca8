"""A loss of the kind that detection has: features sampled at boxes by grid_sample, focal and box losses."""

from __future__ import annotations

from functools import partial

import torch
from both import assert_same
from torch import nn
from torch.nn import functional

torch.manual_seed(0)


class Detector(nn.Module):
    """Scores and boxes (left, top, right, bottom in 0 to 1) from features at the places of queries."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.Hardswish(), nn.Conv2d(8, 12, 3))
        self.centres = nn.Parameter(torch.rand(6, 2) * 2 - 1)
        self.query = nn.Linear(12, 12)
        self.scores, self.boxes = nn.Linear(12, 4), nn.Linear(12, 4)

    def forward(self, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        features = self.backbone(images)
        theta = torch.eye(2, 3, device=images.device).expand(len(images), 2, 3)
        turned = functional.grid_sample(
            features, functional.affine_grid(theta, list(features.shape), align_corners=False), align_corners=False
        )
        places = self.centres.expand(len(images), 1, -1, -1)
        sampled = functional.grid_sample(turned, places, padding_mode="border", align_corners=True)
        queries = self.query(sampled[:, :, 0].transpose(1, 2))
        centre, size = self.boxes(queries).sigmoid().chunk(2, -1)
        return self.scores(queries), torch.cat([centre - size / 2, centre + size / 2], -1)


def generalized_overlap(one: torch.Tensor, two: torch.Tensor) -> torch.Tensor:
    def area(boxes: torch.Tensor) -> torch.Tensor:
        return (boxes[..., 2:] - boxes[..., :2]).clamp(min=0).prod(-1)

    shared = torch.cat([torch.maximum(one[..., :2], two[..., :2]), torch.minimum(one[..., 2:], two[..., 2:])], -1)
    around = torch.cat([torch.minimum(one[..., :2], two[..., :2]), torch.maximum(one[..., 2:], two[..., 2:])], -1)
    union = area(one) + area(two) - area(shared)
    return area(shared) / union - (area(around) - union) / area(around)


def loss(model: nn.Module, images: torch.Tensor, classes: torch.Tensor, boxes: torch.Tensor) -> torch.Tensor:
    scores, found = model(images)
    wanted = functional.one_hot(classes, 4).float()
    each = functional.binary_cross_entropy_with_logits(scores, wanted, reduction="none")
    focal = ((1 - torch.exp(-each)) ** 2 * each).sum() / wanted.sum()
    distance = torch.cdist(found, boxes, p=1).diagonal(dim1=1, dim2=2).mean()
    return (
        focal
        + functional.smooth_l1_loss(found, boxes, beta=0.1)
        + functional.huber_loss(found, boxes)
        + functional.l1_loss(found, boxes)
        + (1 - generalized_overlap(found, boxes)).mean()
        + distance
    )


corners = torch.rand(3, 2, 6, 2).mul(0.4)
boxes = torch.cat([corners[:, 0], corners[:, 0] + corners[:, 1] + 0.1], -1)
batches = [(torch.randn(2, 3, 18, 20), torch.randint(0, 4, (2, 6)), boxes[:2]) for _ in range(3)]
assert_same("detector", Detector(), batches, loss, partial(torch.optim.AdamW, lr=0.01))
