"""A module in which every name is there and does nothing; other stubs are links to it by name."""


class _Anything:
    def __init__(self, *args, **kwargs):
        pass

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything()

    def __call__(self, *args, **kwargs):
        return args[0] if len(args) == 1 and callable(args[0]) else _Anything()

    def __iter__(self):
        return iter(())

    def __enter__(self):
        return self

    def __exit__(self, *args):
        return None

    def __getitem__(self, key):
        return _Anything()

    def __setitem__(self, key, value):
        pass


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return _Anything()
