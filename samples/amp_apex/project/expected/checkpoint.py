import torch
from apex import amp


def save(path, model, optimizer, epoch):
    torch.save(
        {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "amp": amp.state_dict(),
            "epoch": epoch,
        },
        path,
    )


def load(path, model, optimizer):
    checkpoint = torch.load(path, map_location="npu")
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    if "amp" in checkpoint:
        amp.load_state_dict(checkpoint["amp"])
    return checkpoint["epoch"] + 1
