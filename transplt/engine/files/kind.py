"""The kind of a file that is not Python, by its name and, where it has no suffix, by its first line."""

from __future__ import annotations

import re
from enum import Enum


class FileKind(str, Enum):
    """What a file is to a migration."""

    PYTHON = "python"
    SHELL = "shell"
    CONFIG = "config"
    NOTEBOOK = "notebook"
    REQUIREMENTS = "requirements"
    DOCKER = "docker"
    NATIVE = "native"  # C, C++, CUDA and what builds them
    SCRIPT = "script"  # Python in no .py file: stubs, templates, what a system starts by its first line
    PROSE = "prose"  # text that nothing runs
    BINARY = "binary"


_SUFFIXES = {
    **dict.fromkeys((".sh", ".bash", ".zsh", ".ksh", ".slurm", ".sbatch", ".pbs", ".bat", ".ps1"), FileKind.SHELL),
    **dict.fromkeys((".yaml", ".yml", ".json", ".jsonc", ".json5", ".toml", ".ini", ".cfg", ".conf"), FileKind.CONFIG),
    **dict.fromkeys((".env", ".hcl", ".tf", ".gin", ".libsonnet", ".jsonnet", ".properties"), FileKind.CONFIG),
    ".ipynb": FileKind.NOTEBOOK,
    ".dockerfile": FileKind.DOCKER,
    **dict.fromkeys((".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx", ".inl", ".cu", ".cuh"), FileKind.NATIVE),
    **dict.fromkeys((".cmake", ".mk", ".ninja", ".bazel", ".bzl", ".pyx", ".pxd", ".ptx"), FileKind.NATIVE),
    **dict.fromkeys((".pyi", ".pyw", ".j2", ".jinja", ".jinja2"), FileKind.SCRIPT),
}
#: How Cog builds an image: a list of packages, and the version of CUDA.
COG = ("cog.yaml", "cog.yml")
_NAMES = {
    **dict.fromkeys(("makefile", "gnumakefile", "cmakelists.txt", "build", "workspace"), FileKind.NATIVE),
    **dict.fromkeys(("setup.cfg", "pipfile", "pyproject.toml", *COG), FileKind.REQUIREMENTS),
    **dict.fromkeys((".env", ".envrc"), FileKind.CONFIG),
    **dict.fromkeys((".bashrc", ".bash_profile", ".zshrc"), FileKind.SHELL),
}
_REQUIREMENTS = re.compile(
    r"(.*[-_.])?(requirements?|constraints?).*\.(txt|in)"
    r"|(conda|env|environment)([-_.].*)?\.ya?ml|(poetry|uv|pdm|pipfile|conda)\.lock|pixi\.(toml|lock)"
    r"|pylock([-_.].*)?\.toml|conda-lock\.ya?ml"
)
#: What a tool makes a .py file of.
_TEMPLATE = re.compile(r".+\.py\.(in|j2|jinja2?|tmpl|tpl|template|mako|example|sample|dist|default)")
#: What is copied to the name before it, or filled in: `.env.example`, `train.yaml.sample`, `config.cmake.in`.
_PATTERN_OF = re.compile(r"(.*\.\w+|makefile)\.(?:in|template|tmpl|tpl|example|sample|dist|default)")
_DOCKER = re.compile(r"(.*[-_.])?(docker|container)file([-_.].*)?|(docker-)?compose([-_.].*)?\.ya?ml")
_SHELL_LINE = re.compile(rb"#!.*\b(ba|z|k|da|a|c)?sh\b")
_PYTHON_LINE = re.compile(rb"#!.*\bpython")
#: An environment of conda has a list of packages at its top, and channels, or Python or pip among the packages.
_ENVIRONMENT = re.compile(rb"^dependencies:[ \t]*(?:#[^\n]*)?\r?\n(?:[ \t]*(?:#[^\n]*)?\r?\n)*[ \t]*-[ \t]", re.M)
_OF_CONDA = re.compile(rb"^channels:|^[ \t]*-[ \t]+[\"']?(?:[\w./-]+::)?(?:python|pip)(?=[ \t\r\n<>=!~:\"']|\Z)", re.M)
#: Folders of forms that people fill in on GitHub, GitLab and Gitee: nothing runs what they ask for.
_FORMS = (
    "/.github/issue_template", "/.github/discussion_template", "/.gitlab/issue_templates", "/.gitee/issue_template",
)  # fmt: skip
#: JSON that is longer than this is data, and no configuration.
LONGEST_JSON = 2_000_000
#: A file that has a NUL this early is binary.
_HEAD_BYTES = 8192
_HEAD_OF_RECORDS = 65_536


#: Records of a data set of texts, one behind the other: JSON Lines, or a list.
_RECORDS = re.compile(
    rb"""\s*(?P<list>\[)?\s*\{\s*"(?:id|instruction|conversations?|messages|prompt|question|context|text)"\s*:"""
    rb"""(?:(?(list)[^\n]*\n[^\[\]]*|[^\n]*)\}[ \t]*(?(list),)\s*\{)"""
)


def is_data(kind: FileKind, data: bytes) -> bool:
    """True for JSON that is no configuration: words of a tokenizer, if it is too long for one, or texts to learn."""
    if kind is not FileKind.CONFIG:
        return False
    return (len(data) > LONGEST_JSON and b'"vocab"' in data) or _RECORDS.match(data, 0, _HEAD_OF_RECORDS) is not None


def kind_of(path: str, data: bytes) -> FileKind:
    """The kind of the file at `path` (forward slashes) with the content `data`."""
    if b"\0" in data[:_HEAD_BYTES]:
        return FileKind.BINARY
    folder, _, name = path.lower().rpartition("/")
    if f"/{folder}".endswith(_FORMS):
        return FileKind.PROSE
    if _DOCKER.fullmatch(name):
        return FileKind.DOCKER
    if _REQUIREMENTS.fullmatch(name) or (name.endswith((".txt", ".in")) and folder.endswith("requirements")):
        return FileKind.REQUIREMENTS
    if _TEMPLATE.fullmatch(name):
        return FileKind.SCRIPT
    if name.endswith((".yml", ".yaml")) and is_environment(data):
        return FileKind.REQUIREMENTS
    if name in _NAMES:
        return _NAMES[name]
    suffix = name[name.rfind(".") :] if "." in name else ""
    known = _SUFFIXES.get(suffix)
    if known is not None:
        return known
    if (filled := name_filled(name)) != name:
        return kind_of(filled, data)
    if data[:2] == b"#!":
        line = data[:256].split(b"\n", 1)[0]
        if _PYTHON_LINE.match(line):
            return FileKind.SCRIPT
        if _SHELL_LINE.match(line):
            return FileKind.SHELL
    return FileKind.PROSE


def name_filled(name: str) -> str:
    """The name under which a pattern of a file is used: `train.yaml` for `train.yaml.example`; others are their own."""
    pattern = _PATTERN_OF.fullmatch(name)
    return name if pattern is None else pattern[1]


def is_environment(data: bytes) -> bool:
    """True for the text of an environment of conda, whatever its file is called.

    >>> is_environment(b"channels: [pytorch]\\ndependencies:\\n  - pytorch=1.8\\n")
    True
    >>> is_environment(b"dependencies:\\n  - name: redis\\n")  # a chart of Helm
    False
    """
    return b"dependencies:" in data and _ENVIRONMENT.search(data) is not None and _OF_CONDA.search(data) is not None
