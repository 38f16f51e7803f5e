"""Progress without a terminal: lines with the share done, the rate and the time left, where they are wanted."""

import logging
import threading
import time

import pytest

from grcd.core import progress


class Clock:
    """A clock that is told the time."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def logged(caplog):
    caplog.set_level(logging.INFO, logger="grcd")
    return caplog


def said(advances, total=100, start=0):
    """The lines of a bar that is told (seconds, done, note)."""
    clock = Clock()
    lines = progress.Lines("training", total, start, clock)
    for clock.now, done, note in advances:
        lines.advance(done, note)
    lines.end()


def test_a_line_has_the_rate_and_the_time_left_and_comes_every_ten_seconds(logged):
    said([(4, 8, ""), (10, 20, "loss 1.5"), (12, 24, ""), (20, 50, "loss 1.2"), (25, 100, "loss 1.1")])
    assert logged.messages == [
        "training 20 of 100, 2/s, 40 s left, loss 1.5",
        "training 50 of 100, 2.5/s, 20 s left, loss 1.2",
        "training 100 of 100, 4/s, loss 1.1",
    ]


def test_what_was_done_before_does_not_count_for_the_rate(logged):
    said([(10, 60, "")], total=360, start=50)
    assert logged.messages == ["training goes on from 50 of 360", "training 60 of 360, 1/s, 5 min left"]


def test_rates_of_several_hours_and_of_thousands_are_readable(logged):
    said([(10, 1, "")], total=1000)
    said([(10, 50_000, "")], total=100_000)
    assert logged.messages == ["training 1 of 1,000, 0.1/s, 3 h left", "training 50,000 of 100,000, 5,000/s, 10 s left"]


def test_nothing_is_said_unless_it_is_wanted(capsys):
    with progress.bar("filling", 3) as advance:
        advance(3, "")
    assert capsys.readouterr().err == ""
    with progress.verbose(), progress.verbose(False), progress.bar("filling", 3) as advance:  # wanted outside
        advance(3, "")
    assert capsys.readouterr().err.startswith("grcd: filling 3 of 3, ")
    with progress.bar("filling", 3) as advance:
        advance(3, "")
    assert capsys.readouterr().err == ""


def test_the_command_line_says_nothing_of_what_is_done_soon(capsys):
    def ends(seconds):
        clock = Clock()
        lines = progress.Lines("sampling", 10, 0, clock)
        clock.now = seconds
        lines.advance(10)
        lines.end()
        return capsys.readouterr().err

    with progress.on_command():
        assert ends(progress.SOON - 0.1) == ""
        assert ends(progress.SOON + 0.1).startswith("grcd: sampling 10 of 10, ")
        with progress.verbose():
            assert ends(0.1).startswith("grcd: sampling 10 of 10, ")


def test_work_of_unknown_length_says_that_it_goes_on_and_no_more_once_it_is_done(capsys, monkeypatch):
    monkeypatch.setattr(progress, "SOON", 0.0)
    monkeypatch.setattr(progress, "EVERY", 0.01)
    before = threading.active_count()
    with progress.on_command(), progress.telling(), progress.working("fitting a reference"):
        lines = until_said(capsys, "so far")
    assert lines[0] == "fitting a reference ..."
    assert lines[-1] == "fitting a reference: 0 s so far"
    assert threading.active_count() == before
    capsys.readouterr()
    time.sleep(0.05)
    assert capsys.readouterr().err == ""


def until_said(capsys, words):
    """Lines on standard error until one ends with ``words``."""
    said = ""
    for _ in range(1000):
        said += capsys.readouterr().err
        if words in said:
            return said.splitlines()
        time.sleep(0.01)
    raise AssertionError(said)


def test_work_that_is_done_soon_or_that_nobody_asked_about_says_nothing(capsys, monkeypatch):
    with progress.on_command(), progress.working("fitting"):
        pass
    monkeypatch.setattr(progress, "SOON", 0.0)
    monkeypatch.setattr(progress, "EVERY", 0.01)
    with progress.working("fitting"):
        time.sleep(0.05)
    with progress.verbose(), progress.quiet(), progress.working("fitting"):
        time.sleep(0.05)
    assert capsys.readouterr().err == ""


def test_what_goes_wrong_inside_work_comes_out_of_it(monkeypatch):
    monkeypatch.setattr(progress, "SOON", 0.0)
    before = threading.active_count()
    with pytest.raises(ZeroDivisionError), progress.verbose(), progress.working("fitting"):
        _ = 1 / 0
    assert threading.active_count() == before


def test_a_logger_that_listens_gets_the_lines_and_standard_error_none(logged, capsys):
    with progress.verbose(), progress.bar("sampling", 5) as advance:
        advance(5, "")
    assert [record.name for record in logged.records] == ["grcd"]
    assert capsys.readouterr().err == ""
