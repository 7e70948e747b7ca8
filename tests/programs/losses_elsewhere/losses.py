import torch.nn as nn
import torch.nn.functional as F


class DetectionLoss(nn.Module):
    def __init__(self, weight=0.5):
        super().__init__()
        self.weight = weight

    def forward(self, boxes, scores, target_boxes, target_scores):
        box = F.smooth_l1_loss(boxes, target_boxes)
        score = F.binary_cross_entropy_with_logits(scores, target_scores)
        return box + self.weight * score, {"box": box, "score": score}


def compute_loss(model, criterion, batch):
    images, target_boxes, target_scores = batch
    boxes, scores = model(images)
    return criterion(boxes, scores, target_boxes, target_scores)
