"""The cyclic shift of Swin's windows, there and back."""

import torch


def partition(x, size):
    B, H, W, C = x.shape
    x = x.view(B, H // size, size, W // size, size, C)
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, size, size, C)


def reverse(windows, size, H, W):
    B = int(windows.shape[0] / (H * W / size / size))
    x = windows.view(B, H // size, W // size, size, size, -1)
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(B, H, W, -1)


def shifted(x, H, W, shift):
    B, _, C = x.shape
    x = x.view(B, H, W, C)
    moved = torch.roll(x, shifts=(-shift, -shift), dims=(1, 2))
    windows = partition(moved, 2) * 2
    merged = reverse(windows, 2, H, W)
    back = torch.roll(merged, shifts=(shift, shift), dims=(1, 2))
    return back.view(B, H * W, C)
