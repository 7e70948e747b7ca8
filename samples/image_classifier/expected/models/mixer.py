import torch.nn as nn


class MlpBlock(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, hidden), nn.GELU(), nn.Linear(hidden, dim))

    def forward(self, x):
        return self.net(x)


class MixerLayer(nn.Module):
    def __init__(self, tokens, dim):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.token_mix = MlpBlock(tokens, tokens * 2)
        self.norm2 = nn.LayerNorm(dim)
        self.channel_mix = MlpBlock(dim, dim * 4)

    def forward(self, x):
        x = x + self.token_mix(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channel_mix(self.norm2(x))


class MLPMixer(nn.Module):
    def __init__(self, image_size=32, patch_size=4, dim=64, depth=4, num_classes=10):
        super().__init__()
        if image_size % patch_size:
            raise ValueError('image size must be a multiple of the patch size')
        tokens = (image_size // patch_size) ** 2
        self.patches = nn.Conv2d(3, dim, kernel_size=patch_size, stride=patch_size)
        self.layers = nn.Sequential(*[MixerLayer(tokens, dim) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, num_classes)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = self.norm(self.layers(x))
        return self.head(x.mean(dim=1))
