"""Synthetic images: a coloured shape on a noisy background; the class is shape x colour."""
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

MEAN = (0.5, 0.5, 0.5)
STD = (0.25, 0.25, 0.25)
COLOURS = np.array([[0.9, 0.2, 0.2], [0.2, 0.9, 0.2], [0.2, 0.2, 0.9], [0.9, 0.9, 0.2], [0.9, 0.2, 0.9]], dtype=np.float32)


class Shapes(Dataset):
    """`length` images, the same ones for the same seed."""

    def __init__(self, length, image_size=32, num_classes=10, seed=0, train=True):
        self.length = length
        self.image_size = image_size
        self.num_classes = num_classes
        self.seed = seed
        self.train = train

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        rng = np.random.RandomState((self.seed * 1_000_003 + index) % (2 ** 31))
        label = index % self.num_classes
        size = self.image_size
        image = rng.normal(0.4, 0.15, (size, size, 3)).astype(np.float32)
        centre = rng.uniform(size * 0.35, size * 0.65, 2)
        radius = rng.uniform(size * 0.15, size * 0.3)
        yy, xx = np.mgrid[:size, :size]
        if label // len(COLOURS) % 2 == 0:
            mask = (yy - centre[0]) ** 2 + (xx - centre[1]) ** 2 < radius ** 2
        else:
            mask = (np.abs(yy - centre[0]) < radius) & (np.abs(xx - centre[1]) < radius)
        image[mask] = COLOURS[label % len(COLOURS)] + rng.normal(0, 0.05, (mask.sum(), 3)).astype(np.float32)
        if self.train and rng.rand() < 0.5:
            image = image[:, ::-1]
        tensor = torch.from_numpy(np.ascontiguousarray(image.transpose(2, 0, 1)))
        return tensor, label


def seed_worker(worker_id):
    np.random.seed(torch.initial_seed() % 2 ** 32)


def build_loaders(cfg, device):
    use_cuda = device.type == 'npu'
    train_set = Shapes(cfg.samples, cfg.image_size, cfg.num_classes, cfg.seed, train=True)
    val_set = Shapes(max(cfg.samples // 4, cfg.num_classes), cfg.image_size, cfg.num_classes, cfg.seed + 1, train=False)
    kwargs = {'num_workers': cfg.workers, 'pin_memory': use_cuda, 'worker_init_fn': seed_worker}
    if cfg.workers > 0:
        kwargs['persistent_workers'] = True
    generator = torch.Generator()
    generator.manual_seed(cfg.seed)
    train = DataLoader(train_set, batch_size=cfg.batch_size, shuffle=True, drop_last=len(train_set) >= cfg.batch_size,
                       generator=generator, **kwargs)
    val = DataLoader(val_set, batch_size=cfg.batch_size, shuffle=False, **kwargs)
    return train, val


class Normalizer:
    """Normalisation on the device: uint8 or float batches in, normalised float batches out."""

    def __init__(self, device):
        self.mean = torch.tensor(MEAN, device=device).view(1, 3, 1, 1)
        self.std = torch.tensor(STD, device=device).view(1, 3, 1, 1)

    def __call__(self, images):
        if images.dtype == torch.uint8:
            images = images.float().div_(255)
        return (images - self.mean) / self.std


class CUDAPrefetcher:
    """Copies the next batch while the current one is computed. Only for CUDA devices."""

    def __init__(self, loader, device, normalize):
        self.loader = loader
        self.device = device
        self.normalize = normalize
        self.stream = torch.npu.Stream(device=device)

    def __len__(self):
        return len(self.loader)

    def __iter__(self):
        first = True
        for next_images, next_target in self.loader:
            with torch.npu.stream(self.stream):
                next_images = next_images.to(self.device, non_blocking=True)
                next_target = next_target.to(self.device, non_blocking=True)
                next_images = self.normalize(next_images)
            if not first:
                yield images, target
            else:
                first = False
            torch.npu.current_stream().wait_stream(self.stream)
            images, target = next_images, next_target
            images.record_stream(torch.npu.current_stream())
            target.record_stream(torch.npu.current_stream())
        if not first:
            yield images, target


class PlainFetcher:
    """The same interface without a side stream; works on any device."""

    def __init__(self, loader, device, normalize):
        self.loader = loader
        self.device = device
        self.normalize = normalize

    def __len__(self):
        return len(self.loader)

    def __iter__(self):
        for images, target in self.loader:
            if self.device.type == 'npu':
                images = images.npu(self.device, non_blocking=True)
                target = target.npu(self.device, non_blocking=True)
            else:
                images, target = images.to(self.device), target.to(self.device)
            yield self.normalize(images), target


def build_fetcher(cfg, loader, device, normalize):
    if cfg.prefetch and device.type == 'npu':
        return CUDAPrefetcher(loader, device, normalize)
    return PlainFetcher(loader, device, normalize)
