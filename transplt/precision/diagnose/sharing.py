"""A log without names of people, hosts and folders, and without secrets, so that it can be given to others.

What is replaced is called the same at each place; file names, packages, CANN's folders, versions and times stay.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import BinaryIO

from transplt.base.render.cell import many

#: `before` stays, `value` (or all) is replaced, nothing where `kept` is. Numbers and printed settings are no secrets.
_SECRET = re.compile(
    r"\b(?:hf_|gh[pousr]_|glpat-|sk-|xox[bp]-|AKIA)[\w-]{12,}|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*|"
    r"(?P<before>(?i:\b\w*(?:token|secret|passw(?:or)?d|api_?key|access_?key|authorization|credential)\w*)['\"]?\s*"
    r"(?:[:=]|\s(?=Bearer\b))\s*['\"]?(?:Bearer\s+)?)"
    r"(?P<value>(?!(?:[\d.]+|(?i:none|null|true|false)|(?:tensor|torch|<)[^\s,;]*)(?:[\s'\",;&)\]}]|$))[^\s'\",;&)\]}]{6,})|"
    r"(?<![\w/.-])(?!_Z)(?=[\w-]*\d)(?=[\w-]*[a-z])(?=[\w-]*[A-Z])[A-Za-z0-9-]{40,}(?![\w/.])"
)
_URL = re.compile(r"(?P<scheme>\b\w{1,20})://(?:[^\s/@]+@)?(?P<host>[\w.-]+)(?P<rest>[^\s'\"<>)]*)")
#: Where the public goes; other hosts are somebody's own.
_PUBLIC = re.compile(
    r"(?:.*\.)?(?:github\.com|githubusercontent\.com|gitcode\.com|gitee\.com|pytorch\.org|python\.org|huggingface\.co|"
    r"hf-mirror\.com|modelscope\.cn|hiascend\.com|huaweicloud\.com|readthedocs\.io|pypa\.io|docker\.com|quay\.io|"
    r"vllm\.ai|localhost)|127\.0\.0\.1|0\.0\.0\.0"
)
_MAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,6}")
#: `[user@host dir]$`, `user@host:~/dir#`: a shell's prompt.
_PROMPT = re.compile(
    r"(?<=\[)[\w.-]{1,64}@[\w.-]{1,64}|^ *(?:\(\w{1,64}\) ?)?[\w.-]{1,64}@[\w.-]{1,64}(?=:\S{0,300}[#$])", re.M
)
_HOST = re.compile(
    r"(?P<before>\b(?i:host(?:name)?|node(?:_?name|_?ip)?|server|master_?addr(?:ess)?|master|machine)['\"]?\s*[:=]\s*['\"]?)"
    r"(?P<value>[A-Za-z][\w.-]{0,120}\d[\w.-]{0,120}|[A-Za-z][\w-]{1,63}(?:\.[\w-]{1,63}){2,8})"
)
_ADDRESS = re.compile(
    r"(?P<kept>(?i:\b(?:version\W{1,3}|npu-smi |driver\W{1,3}))\d[\d.]+|(?<![\w.])(?:127|255|0\.0\.0)\.[\d.]+)|"
    r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.]\d|\w)|"
    r"(?<![\w:])(?:[0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}(?![\w:])|"
    r"(?<![\w:])(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}(?![\w:])|"
    r"(?<![\w:])(?:fe80|fd[0-9a-f]{2}|fc[0-9a-f]{2}|2[0-9a-f]{3})(?::{1,2}[0-9a-fA-F]{1,4}){2,}(?![\w:])"
)
_PATH = re.compile(r"(?<![\w.:/<>~-])(?P<path>~?(?:/[\w.@+~=-]+){2,})/?|\b[A-Za-z]:(?P<windows>(?:\\[\w.@+ ~=-]+){2,})")
#: Folders that each system has: what lies in them is nobody's.
_SYSTEM = re.compile(
    r"/(?:usr/(?!src/)|lib|bin|sbin|dev|proc|sys|etc/(?:ascend|hccn|os-release|ld)|opt/(?:conda|py)|tmp/torchinductor|"
    r"vllm-workspace|sgl-workspace|__w)"
)
#: Where what everybody has begins: packages, CANN, clones of public projects.
_PACKAGES = re.compile(
    r"/(?=(?:(?:site|dist)-packages|Ascend|ascend-toolkit|nnal|vllm(?:-ascend|-omni)?|sglang|verl|ms-swift|LLaMA-Factory|"
    r"MindSpeed[\w-]*|Megatron[\w-]*|transformers|DeepSpeed|triton-ascend)/)"
)
#: Users that many systems have, and whose names tell nothing.
_COMMON = frozenset({"root", "user", "ubuntu", "admin", "work", "ma-user", "HwHiAiUser", "test", "data"})
_AT_HOME = re.compile(r"(?:/home/|/Users/|\\Users\\)([\w.-]{3,})")
#: So much of the beginning and of the end of a log is given.
_HEAD, _TAIL = 200_000, 800_000


class Anonymous:
    """Replaces what names somebody; `told` says what was replaced, and how often it was another thing."""

    def __init__(self, hosts: Iterable[str] = (), users: Iterable[str] = ()) -> None:
        self._names: dict[str, dict[str, str]] = {}
        self._words: dict[str, str] = {}
        self._know("host", hosts)
        self._know("user", users)

    def text(self, text: str) -> str:
        """A text without names. Who has a home in it is not named elsewhere in it either."""
        self._know("user", _AT_HOME.findall(text))
        for pattern, replaced in _STEPS:
            text = pattern.sub(partial(replaced, self), text)
        words = "|".join(map(re.escape, sorted(self._words, key=len, reverse=True)))
        known = re.compile(rf"(?<![\w-])(?:{words or '(?!)'})(?![\w-])")
        return known.sub(lambda match: self.named(kind := self._words[match[0]], f"{kind}{{}}", match[0]), text)

    def _know(self, kind: str, names: Iterable[str]) -> None:
        self._words.update((name, kind) for name in names if len(name) > 2 and name not in _COMMON)

    def told(self) -> list[str]:
        """What was replaced: kind and number, the most first."""
        return [many(len(names), kind) for kind, names in sorted(self._names.items(), key=lambda row: -len(row[1]))]

    def named(self, kind: str, form: str, value: str) -> str:
        """What takes the place of a value, the same each time."""
        names = self._names.setdefault(kind, {})
        return names.setdefault(value, form.format(len(names) + 1))

    def url(self, match: re.Match[str]) -> str:
        if _PUBLIC.fullmatch(match["host"]):
            return f"{match['scheme']}://{match['host']}{match['rest']}"
        port = re.match(r":\d+", match["rest"])
        where = self.named("host", "host{}", match["host"])
        return f"{match['scheme']}://{where}{port[0] if port else ''}" + ("/..." if "/" in match["rest"] else "")

    def prompt(self, match: re.Match[str]) -> str:
        user, _, host = match[0].strip().rpartition(" ")[2].partition("@")
        self._know("user", [user])
        self._know("host", [host])
        who = user if user in _COMMON else self.named("user", "user{}", user)
        return f"{who}@{self.named('host', 'host{}', host)}"

    def path(self, match: re.Match[str]) -> str:
        path = (match["path"] or match["windows"]).replace("\\", "/")
        if _SYSTEM.match(path):
            return match[0]
        known = _PACKAGES.search(path)
        folder, rest = (path[: known.start()], path[known.start() :]) if known else path.rsplit("/", 1)
        return self.named("folder", "/folder{}", folder or "/") + (rest if known else f"/{rest}")


def _plain(kind: str, form: str) -> Callable[[Anonymous, re.Match[str]], str]:
    def replaced(anonymous: Anonymous, match: re.Match[str]) -> str:
        held = match.groupdict("")
        value = anonymous.named(kind, form, held.get("value") or match[0]) if not held.get("kept") else match[0]
        return held.get("before", "") + value

    return replaced


_STEPS: tuple[tuple[re.Pattern[str], Callable[[Anonymous, re.Match[str]], str]], ...] = (
    (_URL, Anonymous.url), (_SECRET, _plain("secret", "<secret{}>")), (_MAIL, _plain("user", "user{}")),
    (_PROMPT, Anonymous.prompt), (_HOST, _plain("host", "host{}")), (_ADDRESS, _plain("IP", "<address{}>")),
    (_PATH, Anonymous.path),
)  # fmt: skip


def ends_of(file: BinaryIO) -> str:
    """A log as text; of a long one the beginning and the end."""
    head, size = file.read(_HEAD), file.seek(0, 2)
    start = max(len(head), size - _TAIL)
    file.seek(start)
    between = f"\n... {start - len(head)} bytes are left out here ...\n" if start > len(head) else ""
    return head.decode("utf-8", "backslashreplace") + between + file.read(_TAIL).decode("utf-8", "backslashreplace")


def bundle(replaced: list[str], diagnosis: str, logs: Iterable[tuple[str, str]]) -> str:
    """What is given to others: what was replaced, the diagnosis, and the logs by their names."""
    head = (
        f"transplt diagnose --share replaced {', '.join(replaced) or 'no names'}. File names, versions, numbers "
        "and messages are unchanged: read it before you share it.\n"
    )
    return "\n".join([head, diagnosis, *(f"==== {name} ====\n\n{text}" for name, text in logs)])
