"""The facts of one file: what it says to the rest of its project."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

from transplt.base.text.text_search import Texts
from transplt.flow.default_type import sets_double
from transplt.flow.facts import ModuleFacts
from transplt.flow.gates.code_facts import FileCode
from transplt.flow.gates.npu_choices import is_portable, mentions_npu
from transplt.flow.key_reads import key_reads
from transplt.flow.libraries import is_library
from transplt.flow.marks import BACKEND, DEVICE, marks_by_name
from transplt.flow.option_defaults import destination
from transplt.flow.own_cuda import own_cuda
from transplt.flow.slots import Slots
from transplt.rules.rule_set import RuleSet
from transplt.syntax.modules import import_base, module_name
from transplt.syntax.names import SELF
from transplt.syntax.nodes import is_property, last_name
from transplt.syntax.scan import Scan, parent

#: Values in device positions. A file without CUDA words matters to others only if such a value goes by a name that
#: does not say so itself (`x.to(place)`): what is called device is known for one everywhere.
_SINK = re.compile(
    rb"(?:\.to\(\s*|torch\.device\(\s*|\b(?:device|map_location|device_type|backend)\s*=\s*"
    rb"|(?:autocast|GradScaler|Generator|set_default_device|init_process_group|init_device_mesh)\(\s*"
    rb"|torch\.(?:jit\.)?load\([^,\n]*,\s*)(?!torch\.device\()([A-Za-z_][\w.]*)"
)
#: What stands in each of them.
_SINKS = Texts(*b".to( device map_location backend autocast GradScaler Generator init_process_group load(".split())
_PLAIN = re.compile(
    rb"device|dtype|^torch\.|^None$|backend|map_location|^(?:x|self|input|inputs|other|lambda|str|int|enabled)$", re.I
)
#: A module that builds or imports CUDA kernels.
_KERNELS = re.compile(
    rb"^\s*(?:import|from)\s+(?:triton|cupy|pycuda|flash_attn|flashinfer)\b|from numba import cuda|cpp_extension"
    rb"|load_inline",
    re.M,
)
_KERNEL_WORDS = Texts(*b"triton cupy pycuda flash numba cpp_extension load_inline".split())
#: What files say that wrap kernels, and how many bytes a file has that may be a wrapper whatever it says.
_LEADS = Texts(
    *rb"kernel fused plugin \b_C\b _ext\b _gpu\b \bffi\b CDLL torch.ops\b custom_op _scaled_mm \bapex\b triton cupy "
    rb"numba flash_attn xformers \bnms deform_conv import_module".split()
)
_SHORT = 4000
#: What is imported, by its first name. Of `import a, b` it is the first; wrappers import what they wrap by `from`.
_IMPORTS = re.compile(rb"^[ \t]*(?:from|import)[ \t]+(\.|[A-Za-z_]\w*)", re.M)
#: A function of a file that is not parsed, what stands at the margin of one, and the parts of its parameters.
_DEFINED = re.compile(rb"^([ \t]*)(?:async[ \t]+)?def[ \t]+(\w+)\(([^()]*(?:\bdevice|backend)[^()]*)\)", re.M)
_HEADS = re.compile(rb"^(?:class[ \t]+(\w+)|[^\s#)\]}\"'])", re.M)
_TEXTS_IN_IT = re.compile(rb"\"[^\"\n]*\"|'[^'\n]*'")
_NOT_PLAIN = re.compile(rb"[\"'#{]")
_NAME = re.compile(rb"\s*([A-Za-z_]\w*)\s*(?:[:=]|\Z)")
#: What a module of the project may have from torch.cuda.amp, and hand on: `utils.autocast()`.
_HANDED_ON = ("GradScaler", "autocast", "custom_fwd", "custom_bwd")
_READ_OF_ONE = re.compile(rb"\.(?:%s)\b" % "|".join(_HANDED_ON).encode())


def others_need(data: bytes, mentions_cuda: bool) -> bool:
    """False for a file that says nothing which another file's rewrite depends on: it need not be parsed."""
    if mentions_cuda or _READ_OF_ONE.search(data) is not None:
        return True
    if b"set_default_dtype" in data or b"set_default_tensor_type" in data:
        return True
    if b"triton" in data and _KERNEL_WORDS.in_(data) and _KERNELS.search(data) is not None:
        return True
    if b"torch" not in data and b"device" not in data:
        return False
    return _SINKS.in_(data) and any(not _PLAIN.search(match.group(1)) for match in _SINK.finditer(data))


#: Tests of the text of an error.
_LOOKS_FOR = ("assertRaisesRegex", "assertWarnsRegex")


def facts_of(slots: Slots, rules: RuleSet) -> ModuleFacts:
    """The facts of a scanned file."""
    links, marks = _shared(slots)
    scan, root = slots.scan, slots.scan.root
    parameters = ((key, names) for key, names in slots.own.parameters().items()
                  if any(slots.marks_of(f"p:{key}.{name}") & {DEVICE, BACKEND} for name in names))  # fmt: skip
    every = scan.calls_by_last_name(("add_argument", "add_option"))
    flags = [call for call in every if isinstance(call.func, ast.Attribute)]
    first = {name: bindings[0] for name, bindings in root.bindings.items()}
    return ModuleFacts(
        path=scan.path,
        module=module_name(scan.path),
        imports=tuple(sorted((name, each.target) for name, each in first.items() if each.kind == "import")),
        stars=tuple(sorted(set(root.stars))),
        defined=tuple(sorted(name for name, each in first.items() if each.kind != "import")),
        used_from=tuple(sorted(_used_from(slots))),
        links=links,
        marks=marks,
        parameters=tuple(sorted(parameters)),
        own_cuda=tuple(sorted(own_cuda(slots))),
        cuda_data=tuple(sorted(_cuda_data(scan))),
        flags=tuple(sorted({name for call in flags if "cuda" in (name := destination(call))})),
        matched=tuple(sorted(_matched(scan))),
        instances=tuple(sorted(_instances(slots))),
        code=FileCode.of(slots, rules).facts(),
        sets_double=sets_double(scan, slots.names),
        uses_cuda=b"cuda" in scan.source.utf8.lower() or mentions_npu(scan.source.utf8),
        reads=key_reads(slots, {*(slot for group in links for slot in group), *(slot for slot, _ in marks)}),
        scales=b"GradScaler" in scan.source.utf8,
        handles_npu=mentions_npu(scan.source.utf8) and is_portable(scan.source, scan),
    )


def _shared(slots: Slots) -> tuple[tuple[tuple[str, ...], ...], tuple[tuple[str, str], ...]]:
    """Groups of slots that other files see, linked here or holding a CUDA string here, and their marks; both sorted."""
    groups: list[tuple[str, ...]] = []
    marks: list[tuple[str, str]] = []
    held = {slots.find(slot) for slot in slots.held}
    for root in {slots.find(slot) for slot in [*slots.components.above, *slots.marks]} | held:
        members = slots.members.get(root, [root])
        shared = sorted({member for member in members if member[0] in "gprsnk" and not member.startswith("k:[")})
        if not shared or (len(shared) == 1 and root not in held and root not in slots.marks):
            continue
        found = slots.marks_of(root)
        if len(shared) > 1 or root in held:
            groups.append(tuple(shared))
        if found and (len(shared) > 1 or found - marks_by_name(shared[0])):
            marks += [(shared[0], mark) for mark in sorted(found)]
    return tuple(sorted(groups)), tuple(sorted(marks))


def _used_from(slots: Slots) -> set[str]:
    """Full names that a file takes from other modules; of those it reaches by attributes only the CUDA-bound ones, and
    those of mixed precision, which a module may hand on.
    """
    used: set[str] = set()
    scan = slots.scan
    for node in scan.imports:
        if isinstance(node, ast.ImportFrom):
            base = import_base(scan.path, node)
            used.update(f"{base}.{alias.name}" for alias in node.names)
    for name, nodes in scan.attributes.items():
        if "cuda" in name.lower() or name in _HANDED_ON:
            used.update(full for node in nodes if (full := slots.names.qualified(node)) is not None)
    return used


def parameters_in_text(data: bytes, path: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """As `facts_of` says them, of a file that is not parsed: those of functions of the module, and of the methods of
    its classes, that have a parameter called device or backend.
    """
    found = []
    heads: list[re.Match[bytes]] | None = None
    indents: dict[str, int] = {}
    for match in _DEFINED.finditer(data) if b"device" in data or b"backend" in data else ():
        names = _parameter_names(match.group(3))
        if not any(marks_by_name(name) for name in names):
            continue
        parts = [match.group(2).decode()]
        if match.group(1):
            heads = heads or [*_HEADS.finditer(data)]
            head = next((each for each in reversed(heads) if each.start() < match.start()), None)
            owner = head.group(1).decode() if head is not None and head.group(1) else ""
            if not owner or indents.setdefault(owner, len(match.group(1))) != len(match.group(1)):
                continue  # a function in a function
            parts.insert(0, owner)
        elif names[0] in SELF:
            names[0] = ""
        found.append((".".join((module_name(path), *parts)), tuple(names)))
    return tuple(sorted(found))


def _parameter_names(text: bytes) -> list[str]:
    """The names of positional parameters; none where the text is not as plain as it mostly is."""
    plain = _TEXTS_IN_IT.sub(b"", text)
    names: list[str] = []
    depth = 0
    for part in plain.split(b",") if not _NOT_PLAIN.search(plain) else ():
        if not depth and part.strip() and part.strip() != b"/":
            match = _NAME.match(part)
            if match is None:
                break  # what stands behind a star is given by its name
            names.append(match.group(1).decode())
        depth += part.count(b"[") - part.count(b"]")
    return names


def _instances(slots: Slots) -> Iterator[tuple[str, str]]:
    """Module-level names whose only value is a call of a class that may be the project's own."""
    for name, bindings in slots.scan.root.bindings.items():
        if len(bindings) == 1 and bindings[0].kind == "assign" and isinstance(bindings[0].node, ast.Name):
            known = slots.own.class_named(bindings[0].node)
            if known is not None:
                yield f"{slots.own.module}.{name}", known


def _cuda_data(scan: Scan) -> set[str]:
    """`cuda` where the file stores into an attribute of that name, or has a property: data, no method."""
    found = any(isinstance(node.ctx, ast.Store) for node in scan.attributes.get("cuda", ()))
    for scope in scan.scopes.values():
        bindings = scope.bindings.get("cuda", ()) if scope.kind == "class" else ()
        found = found or any(binding.kind == "assign" or is_property(binding.node) for binding in bindings)
    return {"cuda"} if found else set()


def _matched(scan: Scan) -> set[str]:
    """The texts of errors that tests look for: `pytest.raises(ValueError, match="must be cuda")`."""
    found = set()
    for node in scan.strings:
        above = parent(node)
        by_keyword = isinstance(above, ast.keyword) and above.arg == "match"
        if by_keyword or (isinstance(above, ast.Call) and last_name(above.func) in _LOOKS_FOR):
            found.add(str(node.value))
    return found


def code_facts(slots: Slots, rules: RuleSet) -> ModuleFacts:
    """The facts of a scanned file that tells others of its code alone."""
    return replace(empty_facts(slots.scan.path), code=FileCode.of(slots, rules).facts())


def leads_to_code(data: bytes, path: str) -> bool:
    """True for a file without CUDA words that may lead to kernels, be it through others.

    It speaks of kernels or of what wraps them, or it is short and imports something of the project: wrappers are.
    """
    if _LEADS.in_(data):
        return True
    if len(data) >= _SHORT and not path.endswith("__init__.py"):
        return False
    return any(not is_library(match.group(1).decode()) for match in _IMPORTS.finditer(data))


def empty_facts(path: str) -> ModuleFacts:
    """The facts of a file that says nothing to others, or cannot be read."""
    return ModuleFacts(path, module_name(path))
