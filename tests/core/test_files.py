"""Files are written whole or not at all, and what the file system refuses is said in words."""

import errno
import json
import os
import stat
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from grcd.cli import main
from grcd.core.errors import InputError
from grcd.core.files import make_folder, refuse_existing, refused, scratch, whole, write_json
from grcd.data.formats.filled import Filled
from grcd.data.formats.writing import WRITERS, write_signals


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def old(tmp_path):
    """A file that is there already."""
    path = tmp_path / "table.csv"
    path.write_text("old")
    return path


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        (errno.ENOSPC, "free some space, or choose another place"),
        (errno.EDQUOT, "free some space, or choose another place"),
        (errno.EACCES, "choose another place, or allow writing there"),
        (errno.ENOTDIR, "choose another place, or allow writing there"),
    ],
)
def test_advice_is_about_what_went_wrong(tmp_path, code, advice):
    assert f"to fix: {advice}" in str(refused(tmp_path, OSError(code, os.strerror(code))))


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
        OSError("160000 requested and 25584 written"),  # numpy
        RuntimeError("Error while serializing: I/O error: No space left on device (os error 28)"),  # safetensors
    ],
)
def test_a_full_disk_is_called_full_whoever_says_so(old, error):
    def write():
        with whole(old):
            raise error

    with pytest.raises(
        InputError, match=r"got a full disk \(No space left on device\) while writing .*table\.csv"
    ) as caught:
        write()
    assert "free some space" in str(caught.value)
    assert names(old.parent) == ["table.csv"]


@pytest.mark.parametrize("error", [RuntimeError("stop"), KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left")])
def test_a_writer_that_fails_leaves_the_old_file_and_nothing_else(old, error):
    def write():
        with whole(old) as temporary:
            temporary.write_text("half of the new")
            raise error

    with pytest.raises(InputError if isinstance(error, OSError) else type(error)):
        write()
    assert old.read_text() == "old"
    assert names(old.parent) == ["table.csv"]


def test_the_target_is_untouched_until_the_writer_is_done(old):
    with whole(old) as temporary:
        temporary.write_text("new")
        assert old.read_text() == "old"
        assert temporary.parent == old.parent  # a move within one folder is one step
        assert temporary.suffix == ".csv"  # writers that go by the ending see the same one
    assert old.read_text() == "new"
    assert names(old.parent) == ["table.csv"]


def test_a_reader_that_holds_the_old_file_keeps_the_old_file(old):
    with old.open() as reader:
        with whole(old) as temporary:
            temporary.write_text("new")
        assert reader.read() == "old"


def test_folders_on_the_way_are_made(tmp_path):
    with whole(tmp_path / "a" / "b" / "c.txt") as temporary:
        temporary.write_text("there")
    assert (tmp_path / "a" / "b" / "c.txt").read_text() == "there"


def test_files_have_the_permissions_that_the_umask_leaves(tmp_path):
    before = os.umask(0o027)
    try:
        with whole(tmp_path / "x") as temporary:
            temporary.write_text("x")
        assert os.umask(0o027) == 0o027
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o640


@pytest.mark.parametrize(
    ("where", "code"),
    [
        ((os, "fsync"), errno.ENOSPC),
        ((os, "fsync"), errno.EDQUOT),
        ((Path, "replace"), errno.EACCES),
        ((Path, "write_text"), errno.ENOSPC),
    ],
)
def test_a_full_disk_is_an_input_error_that_names_the_file_and_leaves_nothing_behind(old, monkeypatch, where, code):
    def full(*_, **__):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(*where, full)
    with pytest.raises(InputError) as caught:
        write_json(old, {"new": 1})
    assert os.strerror(code) in str(caught.value)
    assert str(old) in str(caught.value)
    assert "another place" in str(caught.value)
    monkeypatch.undo()
    assert old.read_text() == "old"
    assert names(old.parent) == ["table.csv"]


def test_a_file_cannot_replace_a_folder(tmp_path):
    (tmp_path / "taken" / "inner").mkdir(parents=True)
    with pytest.raises(InputError, match="taken"):
        write_json(tmp_path / "taken", {})
    assert names(tmp_path) == ["taken"]
    assert names(tmp_path / "taken") == ["inner"]


def test_json_comes_back_as_it_went(tmp_path):
    value = {"a": [0.1, 1e-300, 3], "b": {"c": None, "d": "größe"}}
    write_json(tmp_path / "x.json", value)
    assert json.loads((tmp_path / "x.json").read_text()) == value
    assert (tmp_path / "x.json").read_bytes().endswith(b"}\n")


def test_a_folder_that_exists_is_taken_as_it_is(tmp_path):
    (tmp_path / "kept").write_text("kept")
    assert make_folder(str(tmp_path)) == tmp_path
    assert names(tmp_path) == ["kept"]


@pytest.mark.parametrize("below", ["table.csv", "table.csv/folder", "table.csv/folder/deeper"])
def test_a_folder_in_place_of_or_below_a_file_is_refused(old, below):
    path = old.parent / below
    with pytest.raises(InputError) as caught:
        make_folder(path)
    assert str(path) in str(caught.value)
    assert old.read_text() == "old"


def test_a_name_that_is_too_long_is_refused(tmp_path):
    refuse_existing(tmp_path / ("x" * 300), force=False)  # it is not there
    with pytest.raises(InputError, match="File name too long while writing"):
        write_json(tmp_path / ("x" * 300), {})


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (PermissionError(errno.EACCES, "Permission denied", "/nowhere/x"), "got Permission denied: /nowhere/x\n"),
        (OSError("no words of the system"), "got no words of the system\n"),
        (OSError(errno.ENOSPC, "No space left on device"), "to fix: free some space"),
        (MemoryError("Unable to allocate 74.5 GiB"), "got too little memory: 74.5 GiB more were asked for\n"),
        (MemoryError(), "got too little memory"),
    ],
)
def test_what_no_reader_has_foreseen_is_a_message_too(monkeypatch, capsys, error, message):
    def app(**_):
        raise error

    monkeypatch.setattr("grcd.cli.commands.app", app)
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 2
    said = capsys.readouterr().err
    assert message in said
    assert "\nexpected " in said
    assert "\nto fix: " in said


def test_a_file_below_a_file_is_refused(old):
    with pytest.raises(InputError, match=r"Not a directory|File exists"):
        write_json(old / "run.json", {})


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_write_permission_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(InputError, match="Permission denied"):
            make_folder(tmp_path)
    finally:
        tmp_path.chmod(0o700)


def test_an_output_that_exists_is_replaced_only_on_request(old):
    with pytest.raises(InputError, match=r"(?s)table\.csv.*--force"):
        refuse_existing(old, force=False)
    with pytest.raises(InputError):
        refuse_existing(str(old.parent), force=False)
    refuse_existing(old, force=True)
    refuse_existing(old.with_name("new.csv"), force=False)
    assert old.read_text() == "old"


# -- leftovers ---------------------------------------------------------------------------------------------------------


def test_what_a_killed_command_left_is_removed_by_the_next_that_writes_there(tmp_path):
    """Of this machine and of processes that are gone; whatever else there is stays."""
    code = """
import os, sys
from grcd.core.files import scratch, whole
with scratch(sys.argv[1], "ensemble.npy"), whole(sys.argv[1] + "/e.npz"):
    os.kill(os.getpid(), 9)
"""
    killed = subprocess.run([sys.executable, "-c", code, tmp_path])
    assert killed.returncode == -9
    left = sorted(path.name for path in tmp_path.iterdir())
    assert [name.split(".")[1:3] for name in left] == [["e", "npz"], ["ensemble", "npy"]]
    with whole(tmp_path / "mine.csv") as alive:
        others = [tmp_path / left[0].replace("-", "-other", 1), tmp_path / "e.npz.1-x-y.npz", tmp_path / ".profile"]
        for path in others:
            path.write_text("")
        with whole(tmp_path / "f.csv") as temporary:
            temporary.write_text("new")
        assert alive.exists()
    assert {*tmp_path.iterdir()} == {*others, tmp_path / "f.csv", tmp_path / "mine.csv"}


def test_a_scratch_file_is_gone_whatever_happens(tmp_path):
    with suppress(KeyboardInterrupt), scratch(tmp_path, "ensemble.npy") as path:
        path.write_text("half")
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", WRITERS)
@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_signals_that_are_not_finite_are_never_written(tmp_path, ending, wrong):
    with pytest.raises(InputError, match=r"1 of 6 numbers for .* that are not finite"):
        write_signals(tmp_path / f"x{ending}", np.array([[1, wrong, 3], [4, 5, 6]]), ("a", "b", "c"))
    draws = np.ones((4, 2, 3))
    draws[3, 0, 1] = wrong  # of one draw: the median is finite
    with pytest.raises(InputError, match=r"1 of 24 numbers for .* that are not finite"):
        Filled("abc", None, ()).write(tmp_path / f"y{ending}", [(np.arange(2), draws)], draws.shape)
    assert list(tmp_path.iterdir()) == []
