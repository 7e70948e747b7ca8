"""Properties that hold for every program, on programs that Hypothesis puts together."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.held import compiles, rebuilt
from tests.fuzz.programs import programs
from transplt.base.finding import Status
from transplt.base.settings import TORCH_VERSIONS, Settings
from transplt.engine.engine import migrate_source

#: Every combination that changes what is written.
SETTINGS = st.builds(
    Settings,
    torch_version=st.sampled_from(["2.1", "2.6", TORCH_VERSIONS[-1]]),
    specify_device=st.booleans(),
    similar=st.booleans(),
    unsafe_fixes=st.booleans(),
    annotate=st.booleans(),
    annotate_edits=st.booleans(),
    style=st.sampled_from(["npu", "npu", "portable"]),
)


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@given(programs(), SETTINGS)
def test_output_is_the_input_with_the_recorded_edits(data: bytes, settings: Settings) -> None:
    result = migrate_source(data, "m.py", settings)
    assert rebuilt(data, result) == result.data
    assert result.changed == (result.data != data)


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@given(programs(), SETTINGS)
def test_output_compiles_where_the_input_does(data: bytes, settings: Settings) -> None:
    result = migrate_source(data, "m.py", settings)
    if compiles(data):
        assert result.status is Status.OK
        assert compiles(result.data)
    elif result.status is not Status.OK:
        assert result.data == data


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@given(programs(), SETTINGS)
def test_second_run_changes_nothing(data: bytes, settings: Settings) -> None:
    once = migrate_source(data, "m.py", settings).data
    # Without markers: a portable file may have other things to say about itself than the file it came from.
    twice = migrate_source(once, "m.py", replace(settings, annotate=False, annotate_edits=False))
    assert twice.data == once


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@given(programs(), SETTINGS)
def test_every_token_is_accounted_for(data: bytes, settings: Settings) -> None:
    tokens = migrate_source(data, "m.py", settings).tokens
    assert tokens.found == tokens.converted + tokens.manual + tokens.unknown + tokens.ignored


@given(
    st.one_of(
        st.binary(max_size=200),
        st.text(max_size=100).map(lambda text: ("torch.cuda\n" + text).encode("utf-8", "surrogatepass")),
    )
)
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_no_bytes_stop_the_run(data: bytes) -> None:
    """Whatever a file holds, there is a result, and what cannot be read stays as it is."""
    result = migrate_source(data, "m.py", Settings())
    assert result.status is not Status.INTERNAL
    if result.status is Status.UNREADABLE:
        assert result.data == data
        assert result.findings, "an unreadable file has to be mentioned"
