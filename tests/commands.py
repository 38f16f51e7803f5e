"""The `grcd` command: in a process of its own, as a user meets it, or in this one (the fixture `here`), in no time."""

import subprocess
import sys
import warnings

import pytest

QUICK = ["--set", "width=8", "--set", "validate_every=20", "--device", "cpu"]
MAIN = [sys.executable, "-m", "grcd"]


def run(*args, cwd=None, **settings):
    """In a process of its own."""
    return subprocess.run([*MAIN, *map(str, args)], capture_output=True, text=True, cwd=cwd, timeout=300, **settings)


def inside(monkeypatch, capsys):
    """`run` in this process, where everything is loaded already."""
    from grcd.cli import main

    def run(*args, cwd):
        monkeypatch.chdir(cwd)
        monkeypatch.setattr(sys, "argv", ["grcd", *map(str, args)])
        monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # the command line has one of its own
        capsys.readouterr()
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            with pytest.raises(SystemExit) as stopped:
                main()
        return subprocess.CompletedProcess(args, stopped.value.code, *capsys.readouterr())

    return run


def refused(result):
    """What the user can correct: status 2, a message in three parts, and nothing else."""
    assert result.returncode == 2, result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
    assert all(part in result.stderr for part in ("got ", "\nexpected ", "\nto fix: "))
    return result.stderr
