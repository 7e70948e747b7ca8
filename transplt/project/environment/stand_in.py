"""The text of a module that stands for a package in an environment: it can be imported, nothing of it called."""

TEXT = '''"""Stands for the package {name}, made by `transplt run --setup --stub {name}`: it can only be imported."""

import importlib.abc
import importlib.machinery
import sys
import types

_NAME = "{name}"
try:
    from npu_emulator.record import record

    record.note(f"{{_NAME}} is a stand-in of `transplt run --setup --stub {{_NAME}}`, which can only be imported")
except Exception:
    pass


def _refuse(self, *args, **kwargs):
    name = f"{{type(self).__module__}}.{{type(self).__name__}}"
    raise RuntimeError(f"{{name}} is called, and {{_NAME}} is a stand-in that can only be imported")


def _member(module):
    def get(name):
        if name.startswith("__"):
            raise AttributeError(f"module {{module!r}} has no attribute {{name!r}}")
        return type(name, (), {{"__init__": _refuse, "__module__": module}})

    return get


class _Submodules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if name.startswith(_NAME + ".") else None

    def create_module(self, spec):
        module = types.ModuleType(spec.name)
        module.__getattr__ = _member(spec.name)
        return module

    def exec_module(self, module):
        pass


__getattr__ = _member(_NAME)
sys.meta_path.insert(0, _Submodules())
'''
