"""Images become files of nothing."""


def save_image(tensor, path, *args, **kwargs):
    with open(path, "w"):
        pass


def make_grid(tensor, *args, **kwargs):
    return tensor[0] if tensor.ndim == 4 else tensor
