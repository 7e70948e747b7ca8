"""A progress bar that shows nothing."""


class tqdm:
    def __init__(self, iterable=(), *args, **kwargs):
        self.iterable = iterable

    def __iter__(self):
        return iter(self.iterable)

    def __len__(self):
        return len(self.iterable)

    def __enter__(self):
        return self

    def __exit__(self, *args):
        return None

    def __getattr__(self, name):
        return lambda *args, **kwargs: None

    write = staticmethod(lambda *args, **kwargs: None)


def trange(*args, **kwargs):
    return tqdm(range(*args))
