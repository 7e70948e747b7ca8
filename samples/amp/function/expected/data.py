"""Synthetic pictures of ten classes."""

import torch
from torch.utils.data import DataLoader, TensorDataset


def get_loaders(batch_size):
    centres = torch.randn(10, 1, 8, 8)
    labels = torch.arange(200) % 10
    images = centres[labels] + 0.3 * torch.randn(200, 1, 8, 8)
    train = TensorDataset(images[:160], labels[:160])
    test = TensorDataset(images[160:], labels[160:])
    return DataLoader(train, batch_size=batch_size, shuffle=True), DataLoader(test, batch_size=40)
