"""An interrupt at any moment: exit status 130, one line, no traceback, nothing half-written."""

import os
import signal
import subprocess
import sys

import pytest

# A command whose module is a stranger's, and which interrupts itself at a place of its choice.
COMMAND = """
import os, signal, sys, types
from grcd.core import interrupts
interrupts.watch()
sys.argv = ["grcd", {command!r}]
def strike(): os.kill(os.getpid(), signal.{number})
{work}
import grcd.cli.commands
grcd.cli.commands.app = lambda standalone_mode: work()
grcd.cli.main()
"""
PLACES = {
    "while it works": """
def work():
    while True: strike()
""",
    "while a module loads": """
class Finder:
    def find_spec(self, *_):
        try:
            strike()
            while True: pass
        except BaseException:
            raise ImportError("multiarray failed to import")
def work():
    sys.meta_path.insert(0, Finder())
    import nothing
""",
    "in a finaliser": """
class Late:
    def __del__(self):
        strike()
        while True: pass
def work():
    Late()
    while True: pass
""",
    "and is turned into another error": """
def work():
    try:
        strike()
        while True: pass
    except KeyboardInterrupt:
        raise RuntimeError("initialisation failed")
""",
    "and is swallowed": """
def work():
    try:
        strike()
        while True: pass
    except BaseException:
        pass
""",
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_an_interrupt_leaves_with_130_and_a_line(place, number):
    command = {"SIGINT": "train", "SIGTERM": "sample"}[number]
    code = COMMAND.format(command=command, number=number, work=PLACES[place])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 130
    assert done.stdout == ""
    resumed = ". The same command goes on from here" if command == "train" else ""
    assert done.stderr.strip() == f"grcd: interrupted; nothing is left half-written{resumed}"


def test_temporary_files_do_not_outlive_a_process_that_is_left_while_a_module_loads(tmp_path):
    work = PLACES["while a module loads"].replace("    import nothing", "    with held(): import nothing")
    held = f"""
from contextlib import contextmanager
from pathlib import Path
from grcd.core import files
from grcd.runs import lock
@contextmanager
def held():
    folder = Path({str(tmp_path)!r})
    lock.Lock(folder)
    with files.whole(folder / "x.npz"):
        yield
"""
    code = COMMAND.format(command="impute", number="SIGTERM", work=held + work)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, list(tmp_path.iterdir())) == (130, [])


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no device that is always full")
def test_output_that_nobody_reads_or_that_has_no_room_ends_in_a_known_way():
    command = [sys.executable, "-m", "grcd", "--version"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode in (0, 2)
    assert "Exception ignored" not in done.stderr
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


def test_another_failure_of_a_finaliser_is_told_as_ever():
    work = "class Late:\n    def __del__(self): raise ValueError('of ours')\ndef work():\n    Late()"
    code = COMMAND.format(command="sample", number="SIGINT", work=work)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert "ValueError: of ours" in done.stderr


def test_the_command_is_watched_before_anything_large_is_loaded():
    code = """
import sys
import grcd.__main__
heavy = {"typer", "rich", "numpy", "torch", "pandas", "importlib.metadata"} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL  # importing alone changes nothing
