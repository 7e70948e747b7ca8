"""Images of random points, the same for the same path; a file that NumPy wrote is that image."""

import zlib

import numpy as np

NEAREST, LANCZOS, BILINEAR, BICUBIC, ANTIALIAS, FLIP_LEFT_RIGHT = 0, 1, 2, 3, 1, 0
SIDE = 32
_file = open


class Image:
    def __init__(self, points):
        self.points = np.asarray(points)

    @property
    def size(self):
        return self.points.shape[1], self.points.shape[0]

    @property
    def mode(self):
        return "L" if self.points.ndim == 2 else "RGB"

    def __array__(self, dtype=None, copy=None):
        return self.points.astype(dtype) if dtype else self.points

    def convert(self, mode):
        grey = self.points if self.points.ndim == 2 else self.points[..., 0]
        if mode == "L":
            return Image(grey)
        return self if self.points.ndim == 3 else Image(np.stack([grey] * 3, -1))

    def split(self):
        return tuple(Image(self.points[..., each]) for each in range(3))

    def copy(self):
        return Image(self.points.copy())

    def resize(self, size, *args, **kwargs):
        width, height = (int(each) for each in size)
        rows = np.arange(height) * self.points.shape[0] // height
        columns = np.arange(width) * self.points.shape[1] // width
        return Image(self.points[rows][:, columns])

    def transpose(self, way):
        return Image(self.points[:, ::-1])

    def save(self, path, *args, **kwargs):
        with _file(path, "w"):
            pass


def open(path, *args):
    with _file(path, "rb") as file:
        if file.read(6) == b"\x93NUMPY":
            return Image(np.load(str(path)))
    drawn = np.random.default_rng(zlib.crc32(str(path).encode()))
    return Image(drawn.integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8))


def fromarray(points, *args):
    return Image(points)
