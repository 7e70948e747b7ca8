"""`--amp-flag`: the option `--amp` goes into the parser of a script that gets mixed precision."""

from __future__ import annotations

import ast

from transplt.base.settings import Settings
from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.fixers.amp.amp_writer import wanted, writer_for
from transplt.fixers.amp.apex.program import Apex
from transplt.fixers.amp.apex.together import read_program
from transplt.fixers.amp.flag import OPTION, Flag, find_flag, level_is_an_option, value_at
from transplt.fixers.amp.recognise import already
from transplt.fixers.amp.sigmoids import unsafe_under_autocast
from transplt.fixers.amp.training_units import units_of
from transplt.program.program import Program
from transplt.program.programs import programs_of
from transplt.syntax.scan import statement

fixer = Fixer(__name__, code="NPU748", rank=30, needs=(b"ArgumentParser",), theme="amp")


@fixer.on(ast.Module)
def script_gets_an_option(work: Work, tree: ast.Module) -> Finds:
    """Put the option into the parser of this file, when a program that it is the parser of gets mixed precision."""
    if not work.settings.amp_flag or not wanted(work) or work.once(already) is not None:
        return
    programs = programs_of(work.project)
    own = programs.own(work.file)
    writer = writer_for(work)
    for program in programs.around(own):
        flag = find_flag(program)
        if isinstance(flag, Flag) and flag.file is own and _follows(program, flag, work.settings):
            node = flag.after or flag.before
            apex = read_program(program, work.settings, own) if work.settings.amp == "apex" else None
            if apex is not None and not level_is_an_option(work.project, apex.place.file):
                apex = None
            lines = _lines(flag, work.settings, apex)
            message = f"the script gets an option {OPTION}"
            if flag.after is not None:
                writer.after(node, lines, fixer.code, message)
            else:
                writer.before(node, lines, fixer.code, message)
            yield from writer.found
            return


def _follows(program: Program, flag: Flag, settings: Settings) -> bool:
    """True when code of the program comes to read the option."""
    if settings.amp == "apex":
        apex = read_program(program, settings, flag.file)
        return apex is not None and bool(value_at(program, flag, apex.place.file, apex.place.after))
    scales = settings.amp_dtype == "float16"
    for file in program.files:
        for unit in units_of(program, file) if b".backward(" in file.source.utf8 else ():
            refused = any(scales or not problem.scaling for problem in unit.problems)
            if refused or unsafe_under_autocast(unit) is not None:
                continue
            beside = [region[0] for region in unit.regions] or [statement(unit.first)]
            beside += unit.making if settings.amp_dtype == "float16" else ()
            if all(value_at(program, flag, file, node) for node in beside):
                return True
    return False


def _lines(flag: Flag, settings: Settings, apex: Apex | None) -> list[str]:
    """The statements that go in; for apex with its level and its scale."""
    words = [(OPTION, "action", "store_true", "mixed precision on the NPU")]
    if apex is not None:
        levels = f"{apex.level} of apex: no other level is right here" if apex.only else "O1 or O2 of apex"
        words.append(("--opt-level", "default", apex.level, levels))
        words.append(("--loss-scale", "default", str(settings.loss_scale), "a number, or dynamic"))
    found = []
    for option, key, value, text in words:
        option, value, text = (f"{flag.quote}{word}{flag.quote}" for word in (option, value, text))
        found.append(f"{flag.parser}.add_argument({option}, {key}={value}, help={text})")
    return found
