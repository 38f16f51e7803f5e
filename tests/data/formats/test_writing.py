"""Writing: every format survives a full disk, and a format from outside takes a row in each table."""

import os
import subprocess
import sys

import numpy as np
import pytest

import grcd
from grcd.data.formats.signals import READERS, read_signals
from grcd.data.formats.table import Table
from grcd.data.formats.writing import WRITERS, Writer, write_signals

FULL = """
import resource, signal, sys
import numpy as np
from grcd.core.errors import InputError
from grcd.data.formats.filled import Filled
from grcd.data.formats.writing import WRITERS

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
draws, filled = np.random.default_rng(0).normal(size=(5, 300, 20)), Filled([*"abcdefghijklmnopqrst"], None, ())
for ending in WRITERS:
    for size in (0, 3_000, 30_000):
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
        try:
            filled.write(sys.argv[1] + "/x" + ending, [(np.arange(300), draws)], draws.shape)
        except InputError as error:
            print(ending, size, str(error).splitlines()[0])
        except Exception as error:
            print(ending, size, "not foreseen:", type(error).__name__, error)
"""


@pytest.mark.skipif(os.name == "nt", reason="no such limit there")
def test_where_there_is_no_room_every_writer_says_so_and_leaves_nothing(tmp_path):
    """In a process of its own, whose files may grow to so many bytes: a writer that crashes takes it along."""
    done = subprocess.run([sys.executable, "-c", FULL, tmp_path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    lines = done.stdout.splitlines()
    assert [line.split()[:2] for line in lines] == [[ending, str(n)] for ending in WRITERS for n in (0, 3_000, 30_000)]
    assert all(" got " in line and "while writing" in line for line in lines), done.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_format_from_outside_is_a_row_in_each_table(tmp_path, monkeypatch):
    def read(path, label, nodes):
        names, *rows = path.read_text().splitlines()
        return Table(np.array([row.split("|") for row in rows], dtype=float), tuple(names.split("|")))

    def write(path, output):
        rows = [output.node_ids, *output.signals.tolist()]
        path.write_text("\n".join("|".join(map(str, row)) for row in rows))

    monkeypatch.setitem(READERS, ".bar", read)
    monkeypatch.setitem(WRITERS, ".bar", Writer(write))
    x = np.random.default_rng(0).normal(size=(30, 3))
    write_signals(tmp_path / "x.bar", x, ("a", "b", "c"))
    assert np.array_equal(read_signals(tmp_path / "x.bar").values, x)
    data = grcd.load_dataset(tmp_path / "x.bar", grcd.Graph.from_edges([("b", "a"), ("b", "c")]))
    assert data.graph.node_ids == ("b", "a", "c")
    assert np.array_equal(data.test, x[24:, [1, 0, 2]])
