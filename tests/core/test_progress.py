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
    """The lines of a bar that is told (seconds, done, note), and is to speak whenever it is time."""
    clock = Clock()
    lines = progress.Lines("training", total, start, clock)
    due = lines.pause()
    for now, done, note in advances:
        while due <= now:
            clock.now = due
            lines.say()
            due += lines.pause()
        clock.now = now
        lines.advance(done, note)
    lines.end()


def test_a_line_has_the_rate_and_the_time_left_and_comes_soon_and_then_every_ten_seconds(logged):
    said([(1, 4, "loss 2"), (11, 24, "loss 1.5"), (13, 50, ""), (21, 84, "loss 1.2"), (25, 100, "loss 1.1")])
    assert logged.messages == [
        "training 4 of 100, 2/s, 48 s left, loss 2",
        "training 24 of 100, 2/s, 38 s left, loss 1.5",
        "training 84 of 100, 3.8/s, 4 s left, loss 1.2",
        "training 100 of 100, 4/s, loss 1.1",
    ]


def test_of_work_that_takes_hours_lines_become_fewer(logged):
    said([(36_000, 1, "")])
    assert len(logged.messages) < 200
    assert logged.messages[:2] == ["training 0 of 100", "training 0 of 100, 12 s so far"]
    clock = Clock()
    lines = progress.Lines("training", 1, 0, clock)
    lines.say()
    pauses = []
    for clock.now in (0, 50, 100, 200, 3600, 36_000):
        pauses.append(lines.pause())
    assert pauses == [10, 10, 10, 20, 300, 300]


def test_what_was_done_before_does_not_count_for_the_rate(logged):
    said([(10, 60, ""), (12, 60, "")], total=360, start=50)
    assert logged.messages == [
        "training goes on from 50 of 360",
        "training 50 of 360",
        "training 60 of 360, 0.83/s, 6 min left",
    ]


def test_rates_of_several_hours_and_of_thousands_are_readable(logged):
    said([(1, 1, ""), (2, 1, "")], total=10_000)
    said([(1, 50_000, ""), (2, 50_000, "")], total=100_000)
    assert logged.messages == [
        "training 1 of 10,000, 0.5/s, 6 h left",
        "training 50,000 of 100,000, 25,000/s, 2 s left",
    ]


def test_lines_come_although_the_work_does_not_come_back_to_say_how_far_it_is(capsys, monkeypatch):
    monkeypatch.setattr(progress, "SOON", 0.0)
    with progress.on_command(), progress.bar("fitting", 3):
        assert until_said(capsys, "fitting 0 of 3") == ["grcd: fitting 0 of 3"]


def test_a_closed_standard_error_hears_nothing(capsys, monkeypatch):
    monkeypatch.setattr(progress.sys, "stderr", None)
    with progress.verbose(), progress.bar("filling", 3) as advance:
        advance(3, "")
    with progress.verbose(), progress.working("fitting"):
        pass
    progress.tell("nothing")
    assert capsys.readouterr().out == ""


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
