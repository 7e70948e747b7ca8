"""What the package index of pip's settings tells of a package: versions, days, Pythons, machines, requirements.

pip itself asks, by its own settings (indexes, certificates, proxies, passwords): its process runs `_ASK`. The index
answers by PEP 691, with the days of PEP 700, or by PEP 503, without; requirements are the metadata of a wheel,
by PEP 658, or the end of the wheel, where the index gives parts of a file.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from transplt.base.grouped import grouped
from transplt.proof.launch import pip
from transplt.rules.package_releases import Build

#: What pip runs: `files` of names, or `metadata` of addresses; prints one JSON object. Written for pip 22.2 and newer,
#: whose functions these are.
_ASK = """
import json, sys
from pip._internal.commands.index import IndexCommand
from pip._internal.index.collector import parse_links
from pip._internal.models.link import Link
from pip._internal.network.lazy_wheel import dist_from_wheel_url

class Ask(IndexCommand):
    def run(self, options, args):
        with self._build_session(options) as session:
            collector = self._build_package_finder(options, session)._link_collector
            found = {}
            for address in args[1:] if args[0] == "metadata" else ():
                try:
                    got = session.get(address + ".metadata")
                    name = Link(address).filename.partition("-")[0]
                    found[address] = got.text if got.ok else str(dist_from_wheel_url(name, address, session).metadata)
                except Exception as why:
                    print(f"no metadata of {address}: {why!r}")
            for name in args[1:] if args[0] == "files" else ():
                for address in collector.search_scope.get_index_urls_locations(name):
                    page = collector.fetch_response(Link(address))
                    if page is None:
                        continue
                    more = {}
                    if "json" in page.content_type.lower():
                        more = {each["filename"]: each for each in json.loads(page.content)["files"]}
                    for each in parse_links(page):
                        if each.yanked_reason is None:
                            told = more.get(each.filename, {})
                            found.setdefault(name, []).append({
                                "file": each.filename, "python": each.requires_python or "",
                                "day": told.get("upload-time") or "", "address": each.url_without_fragment})
            print(json.dumps(found))
        return 0

sys.exit(Ask("index", "").main(sys.argv[1:]))
"""
#: The machines of NPU hosts.
_MACHINES = ("aarch64", "x86_64")
#: Of so many versions, the newest, it is read what they require.
_READ = 8
_Files = list[dict[str, Any]]


def builds_of(
    names: Sequence[str], wants: Callable[[str], bool], python: str = sys.executable
) -> dict[str, dict[str, Build]]:
    """The releases of each package that an index has, oldest first; of the newest build of a version also what it
    requires of packages that `wants` is true for. pip.Failed where no index can be asked.
    """
    files: dict[str, _Files] = _ask(python, "files", names)
    found = {name: _releases(each) for name, each in files.items()}
    wheels = {
        (name, version): [each for each in of_one if each["file"].endswith(".whl")]
        for name, releases in found.items() for version, of_one in sorted(releases.items())
    }  # fmt: skip
    newest = {(name, version.base_version): version for (name, version), each in wheels.items() if each}
    chosen = grouped((name, version) for (name, _), version in newest.items())
    first = {(name, version): wheels[name, version][0] for name in chosen for version in chosen[name][-_READ:]}
    texts: dict[str, str] = _ask(python, "metadata", [each["address"] for each in first.values()])
    return {
        name: {
            str(version): _build(of_one, texts.get(first.get((name, version), {}).get("address", ""), ""), wants)
            for version, of_one in sorted(releases.items())
        }
        for name, releases in found.items()
    }


def as_rows(found: dict[str, dict[str, Build]]) -> dict[str, dict[str, dict[str, Any]]]:
    """The releases as the table has them: what is empty is left out."""
    return {
        name: {version: {key: told for key, told in asdict(build).items() if told} for version, build in each.items()}
        for name, each in found.items()
    }


def _ask(python: str, what: str, arguments: Sequence[str]) -> Any:
    if not arguments:
        return {}
    printed = pip.carry_out([python, "-c", _ASK, what, *arguments])
    answer = next((line for line in printed.splitlines() if line.startswith("{")), "")
    if not answer:
        raise pip.Failed("pip printed no answer")
    return json.loads(answer)


def _releases(files: _Files) -> dict[Any, _Files]:
    """The files of each version: wheels for Linux, or for all, and sources."""
    from packaging.utils import InvalidSdistFilename, InvalidWheelFilename, parse_sdist_filename, parse_wheel_filename
    from packaging.version import InvalidVersion

    found: dict[Any, _Files] = {}
    for each in files:
        try:
            if each["file"].endswith(".whl"):
                version, tags = parse_wheel_filename(each["file"])[1::2]
                if not any(tag.platform == "any" or tag.platform.endswith(_MACHINES) for tag in tags):
                    continue
            else:
                version = parse_sdist_filename(each["file"])[1]
        except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
            continue
        found.setdefault(version, []).append(each)
    return found


def _build(files: _Files, metadata: str, wants: Callable[[str], bool]) -> Build:
    from packaging.utils import parse_wheel_filename

    wheels: dict[str, set[int]] = {}
    pure = False
    for each in files:
        for tag in parse_wheel_filename(each["file"])[3] if each["file"].endswith(".whl") else ():
            machine = next((each for each in _MACHINES if tag.platform.endswith(each)), "")
            pure = pure or tag.platform == "any"
            if machine:
                of_machine = wheels.setdefault(machine, set())
                of_machine |= {int(tag.interpreter[3:])} if tag.interpreter.startswith("cp3") else set()
    common = set.intersection(*wheels.values()) if wheels else set()
    return Build(
        day=min(each["day"] for each in files)[:10],
        python=max((each["python"] for each in files), default=""),
        pythons=tuple(f"3.{minor}" for minor in sorted(common)),
        machines=tuple(sorted(wheels)),
        sources=not wheels and not pure,
        requires=_requirements(metadata, wants),
    )


def _requirements(metadata: str, wants: Callable[[str], bool]) -> tuple[str, ...]:
    """What the head of some metadata asks for without an extra."""
    from email.parser import HeaderParser

    from packaging.requirements import InvalidRequirement, Requirement

    found = []
    for text in HeaderParser().parsestr(metadata).get_all("Requires-Dist", ()):
        try:
            each = Requirement(text)
        except InvalidRequirement:
            continue
        if wants(each.name) and "extra" not in str(each.marker or ""):
            marker = f"; {each.marker}" if each.marker else ""
            found.append(f"{each.name}{each.specifier}{marker}")
    return tuple(found)
