"""The folder that partitions go to, and what it was made with: ``_grcd.json``, which readers of partitions pass over.

The same command goes on where it was interrupted: partitions that are there are whole (see ``core/files``), and are
not done again. Another command, another run or other input is refused.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ..core.errors import InputError, some
from ..core.files import make_folder, remove_leftovers, write_json
from ..runs import lock, seal
from .partitions import Partition

NAME = "_grcd.json"


class Results:
    """A folder of partitions that is being written; ``with`` holds its lock."""

    def __init__(self, path: Path, recipe: dict, partitions: Sequence[Partition], force: bool):
        self.path, self.partitions = path, partitions
        if os.path.exists(path) and not os.path.isdir(path):
            raise InputError(f"the output {path}, which is a file", "a folder, for many files", "choose another --out")
        make_folder(path)
        self._lock = lock.Lock(path)
        try:
            self._begin(recipe, force)
        except BaseException:
            self._lock.release()
            raise

    def __enter__(self) -> Results:
        return self

    def __exit__(self, *failure: object) -> None:
        for folder in {self.place(partition).parent for partition in self.partitions}:
            if folder.is_dir():
                remove_leftovers(folder)  # of workers that were killed
        self._lock.release()

    def place(self, partition: Partition) -> Path:
        """Where a partition goes."""
        return self.path / partition.name

    @property
    def missing(self) -> list[Partition]:
        """Those that are still to be done."""
        return [partition for partition in self.partitions if not self.place(partition).exists()]

    def _begin(self, recipe: dict, force: bool) -> None:
        stamps, path = {partition.name: partition.stamp for partition in self.partitions}, self.path / NAME
        if not force:
            self._refuse_other(recipe, stamps)
        write_json(path, {"recipe": recipe, "partitions": stamps})
        if force:
            for partition in self.partitions:
                self.place(partition).unlink(missing_ok=True)

    def _refuse_other(self, recipe: dict, stamps: dict[str, list[int]]) -> None:
        path, do = self.path / NAME, "choose another --out, or begin anew with --force"
        if not path.exists():
            if others := [entry.name for entry in self.path.iterdir() if entry.name != lock.NAME]:
                raise InputError(f"the output {self.path}, which holds {some(others, 3)}", "a new or empty folder", do)
            return
        try:
            record = seal.read_record(path)
            before, inputs = dict(record["recipe"]), dict(record["partitions"])
        except (ValueError, KeyError, TypeError, OSError) as error:
            raise InputError(f"{path}, which is damaged ({error})", "what such a command has written", do) from None
        if not any((self.path / name).exists() for name in inputs):
            return  # nothing had been done
        keys = [key for key in {**before, **recipe} if before.get(key) != recipe.get(key)]
        differ = [f"{key} is {before.get(key)!s:.40} there and {recipe.get(key)!s:.40} here" for key in keys]
        differ += [f"{name} has changed since" for name in stamps if name in inputs and inputs[name] != stamps[name]]
        differ += [f"{name} is gone" for name in inputs if name not in stamps]
        if differ:
            got = f"results of another command in {self.path}: {'; '.join(differ[:5])}"
            raise InputError(got, "the command that they were begun with", do)
