import torch
import torch.nn as nn
import torch.nn.functional as F


def train_one_epoch(model, loader, optimizer, device, accumulate):
    model.train()
    total = 0.0
    optimizer.zero_grad()
    for step, (tokens, labels) in enumerate(loader):
        loss = F.cross_entropy(model(tokens.to(device)), labels.to(device))
        (loss / accumulate).backward()
        if (step + 1) % accumulate == 0:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        total += loss.item()
    return total / len(loader)


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    correct, count = 0, 0
    for tokens, labels in loader:
        logits = model(tokens.to(device))
        correct += (logits.argmax(dim=1).cpu() == labels).sum().item()
        count += len(labels)
    return correct / count
