"""The data of the errors is in form; each error is recognised in the texts in which it was seen, and in no others."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.diagnose.diagnoses import diagnosed
from transplt.precision.diagnose.anchors import STOPS
from transplt.precision.diagnose.operators import BEFORE_OPERATORS
from transplt.rules.errors import (
    error_called,
    errors_by_code,
    errors_predicted_by,
    family_of,
    is_error_code,
    known_errors,
    predicted_errors,
)
from transplt.rules.pages import all_codes


def test_there_are_enough() -> None:
    assert len(known_errors()) >= 150
    assert sum(len(error.seen) for error in known_errors()) >= 150


def test_names_and_codes_are_unique() -> None:
    assert Counter(error.name for error in known_errors()).most_common(1)[0][1] == 1
    assert len(errors_by_code()) == sum(bool(error.code) for error in known_errors())


def test_an_error_says_all(subtests: pytest.Subtests) -> None:
    for error in known_errors():
        with subtests.test(error.name):
            assert error.signs or error.code
            assert error.seen or error.form
            assert error.means.endswith(".") and error.cause.endswith(".") and error.do and error.title and error.source
            assert {*error.predicted_by} <= {*all_codes()}
            assert "## What to do" in error.text()


def test_it_is_recognised_where_it_was_seen(subtests: pytest.Subtests) -> None:
    """And nothing else is: a pattern that is found in the text of another error has to be named there."""
    for error in known_errors():
        for text, _, others in error.seen:
            with subtests.test(error.name, text=text):
                said = diagnosed(text)
                assert said.first in (error.name, *others)
                assert said.named == {error.name, *others}


def test_it_is_recognised_in_its_form(subtests: pytest.Subtests) -> None:
    for error in known_errors():
        with subtests.test(error.name):
            said = diagnosed(error.form)
            assert not error.form or error.name in said.named | said.clues


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("EZ9999", "cann-ez9999"), ("ei0002", "hccl-ei0002"), ("ERR00100", "err-100"), ("err01002", "err-002"),
        ("507015", "acl-507015"), ("npu-out-of-memory", "npu-out-of-memory"), ("EI0999", ""), ("999999", ""),
    ],
)  # fmt: skip
def test_an_error_is_found_by_its_code(written: str, name: str) -> None:
    error = error_called(written)
    assert (error.name if error else "") == name


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("RuntimeError: aclnnAddGetWorkspaceSize failed with aclnnStatus=561002.", "acl-561002"),
        ("        launch failed for Equal, errno:561000.", "acl-561000"),
        ("[ERROR]  acl set device 0 failed, errorCode = 507033", "acl-507033"),
        ("OSError: (External) ACL error, the error code is : 500002", "acl-500002"),
        ("RuntimeError: ACL stream synchronize failed, error code:507018", "acl-507018"),
        ("wait for compute device to finish failed, runtime result = 507018.[FUNC:ReportCallError]", "acl-507018"),
        ("[ERROR] [AscPlugin] AscendKernelLaunchWithFlagV2 ret 107000", "acl-107000"),
        ("AclNN_Runtime_Error(EZ9903): aclrtLaunchKernelWithHostArgs failed, return: 507018", "acl-507018"),
        ("[ERROR] aclrtSynchronizeStream(stream) failed: 507035 (main.cpp:92)", "acl-507035"),
    ],
)
def test_a_number_is_read_in_each_form_in_which_it_is_written(written: str, name: str) -> None:
    assert name in diagnosed(written).named


@pytest.mark.parametrize("text", ["NPU201", "torch.cuda", "E1", "12345", "1234567", "own-name", "ERR"])
def test_other_names_are_no_codes_of_errors(text: str) -> None:
    assert not is_error_code(text)


def test_families_and_findings() -> None:
    assert "HCCL" in family_of("EI0999") and family_of("XX") == ""
    assert "npu-out-of-memory" in {error.name for error in errors_predicted_by("NPU792")}
    assert "The card ran out of memory" in predicted_errors("NPU792") and predicted_errors("NPU001") == ""


def test_the_search_for_literals_stops_at_rare_bytes_alone() -> None:
    """A literal without one of them has the search stop at a byte of its own, which makes each log slower to read."""
    literals = {sign.literal for error in known_errors() for sign in error.signs} | set(BEFORE_OPERATORS)
    assert not [text for text in literals if not set(text[:-2].encode()) & set(STOPS)]
