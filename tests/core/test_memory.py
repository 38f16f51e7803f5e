"""What does not fit is refused before memory is asked for, or said in three parts where it was."""

import platform
import subprocess
import sys

import numpy as np
import pytest
import torch

import grcd
from grcd.core import memory
from grcd.core.errors import whole_number


@pytest.mark.parametrize("settings", [{"width": 60_000, "blocks": 900}, {"batch": 1 << 24, "width": 4096}])
def test_a_training_that_does_not_fit_is_refused_before_its_folder_is_made(tiny, tmp_path, settings):
    with pytest.raises(grcd.InputError, match=r"which takes [\d,.]+ GB\nexpected what fits into memory, [\d,.]+ GB"):
        grcd.GRCD(tiny.graph, device="cpu", **settings).fit(tiny.train, tiny.val, run=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_signals_that_do_not_fit_are_refused_before_they_are_made(fitted, tiny):
    for call in (
        lambda: fitted.sample(10**12),
        lambda: fitted.augment(tiny.test, 0.5, n=10**12),
        lambda: fitted.impute(tiny.test, n=10**12),
    ):
        with pytest.raises(grcd.InputError, match=r"which takes .* GB"):
            call()


def test_a_container_has_less_memory_than_its_machine(tmp_path, monkeypatch):
    (tmp_path / "limit").write_text("123456\n")
    monkeypatch.setattr(memory, "GROUPS", (str(tmp_path / "none"), str(tmp_path / "limit")))
    assert memory.total() == 123456
    (tmp_path / "limit").write_text("max\n")
    assert memory.total() > 2**20


@pytest.mark.parametrize(
    ("error", "asked", "there"),
    [
        (MemoryError("Unable to allocate 7.45 GiB for an array with shape (1000000000,)"), "7.45 GiB", "memory, "),
        (
            RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 4000 bytes."),
            "4000 bytes",
            "GB",
        ),
        (
            torch.OutOfMemoryError(
                "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 79.10 GiB of which ..."
            ),
            "20.00 GiB",
            "79.10 GiB of the GPU",
        ),
        (MemoryError(), "too little memory\n", "memory, "),
    ],
)
def test_out_of_memory_says_what_was_asked_for_and_what_there_is(error, asked, there):
    assert memory.is_out(error)
    said = str(memory.refusal(error, "lower it"))
    assert asked in said.splitlines()[0] + "\n"
    assert there in said.splitlines()[1]
    assert said.endswith("to fix: lower it")


def test_an_error_that_came_of_too_little_memory_is_one_of_memory():
    error = RuntimeError("operation failed due to a previous error during capture")
    assert not memory.is_out(error)
    error.__context__ = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB.")
    assert memory.is_out(error)


def test_another_error_is_not_taken_for_one_of_memory():
    assert not memory.is_out(RuntimeError("shapes do not match"))
    assert not memory.is_out(ValueError("out of memory"))


def test_an_allocation_beyond_what_there_is_fails_and_does_not_end_the_process(tmp_path):
    """In a process of its own: limits cannot be taken back."""
    code = """
import numpy
from grcd.core import memory
memory.total = lambda: 2.0**30
memory.limit()
try:
    kept = [numpy.ones(2**26) for _ in range(4)]  # half a gigabyte each
except MemoryError as error:
    print(memory.refusal(error, "lower -n"))
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == [
        "got too little memory: 512. MiB more were asked for",
        "expected what fits into memory, 1.1 GB",
        "to fix: lower -n",
    ]


@pytest.mark.parametrize("value", [0, 1.0, True, "3", None, 10**20, -1, np.nan])
def test_what_is_no_whole_number_in_range_is_refused(value):
    with pytest.raises(grcd.InputError, match="a whole number from 1 to 1,000"):
        whole_number("n", value, 1, 1000)


def test_whole_numbers_of_numpy_are_whole_numbers():
    assert whole_number("n", np.int32(7)) == 7


@pytest.mark.parametrize("seed", [1.5, "x", True, None, -1, 2**63])
def test_a_seed_is_a_whole_number_everywhere(fitted, tiny, seed):
    for call in (
        lambda: fitted.sample(2, seed=seed),
        lambda: fitted.impute(np.where(tiny.test > 12, np.nan, tiny.test), n=2, seed=seed),
        lambda: fitted.augment(tiny.test, 0.5, seed=seed),
        lambda: grcd.GRCD(tiny.graph, seed=seed),
    ):
        with pytest.raises(grcd.InputError, match="seed = "):
            call()


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="it is glibc that gives large arrays back at once")
def test_what_is_freed_is_used_again():
    """Pages that the system had to bring, while an array of 64 MB is made and dropped ten times."""
    code = """
import resource, sys
from grcd.core import memory
if sys.argv[1] == "keep":
    memory.keep()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    bytearray(b"x") * (1 << 26)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
    kept, given_back = (
        int(subprocess.run([sys.executable, "-c", code, how], capture_output=True, text=True, check=True).stdout)
        for how in ("keep", "leave")
    )
    assert kept < 0.2 * given_back
