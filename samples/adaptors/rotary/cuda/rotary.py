import torch


def frequencies(dim, length, theta=10000.0):
    inverse = 1.0 / theta ** (torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    angles = torch.outer(torch.arange(length, dtype=torch.float64), inverse)
    return torch.polar(torch.ones_like(angles), angles).to(torch.complex64)


class Rotary(torch.nn.Module):
    def __init__(self, dim, length):
        super().__init__()
        self.register_buffer("table", frequencies(dim, length), persistent=False)

    def forward(self, x, positions):
        pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        turned = pairs * self.table[positions].unsqueeze(1)
        return torch.view_as_real(turned).flatten(-2).type_as(x)
