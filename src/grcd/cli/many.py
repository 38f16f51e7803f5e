"""Commands on many files: each is done as the command does one, here or by workers (see ``cluster``).

A command hands over its work, a function of a model, files and an output that returns what is to be printed; and its
options, which travel with it.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..core.errors import counted

if TYPE_CHECKING:
    from ..cluster.partitions import Partition
    from ..model import GRCD

Workers = Annotated[
    int | None, typer.Option(help="Many files: so many processes of this machine work on them.", show_default=False)
]
Scheduler = Annotated[
    str | None,
    typer.Option(help="Many files: the workers of this Dask scheduler work on them, e.g. tcp://10.0.0.1:8786."),
]

Work = Callable[..., str]  # (model, files, out, seed, **options), all but the model picklable: what is to be printed
LISTED = 20  # lines that are printed for as many files


@dataclass(frozen=True)
class Job:
    """What is done with a run."""

    work: Work
    run: Path
    device: str
    options: dict[str, Any]

    def done(
        self, files: Sequence[str], out: Path, seed: int, force: bool, workers: int | None, scheduler: str | None
    ) -> None:
        """On one file, or several channels, or on many files that are a folder or a glob."""
        from ..cluster.partitions import is_many, read
        from ..core.errors import InputError
        from ..core.files import refuse_existing
        from ..data.formats.writing import check_writable_ending
        from ..model import load

        if is_many(files):
            self.each(read(files[0], out, seed), out, seed, force, workers, scheduler)
            return
        if workers is not None or scheduler is not None:
            got = f"{' '.join(files)} for many workers"
            raise InputError(got, "a folder or a glob of .parquet files", "leave --workers and --scheduler out")
        refuse_existing(out, force)
        check_writable_ending(out)
        print(self.work(load(self.run, self.device), files, out, seed, **self.options))

    def each(
        self,
        partitions: Sequence[Partition],
        out: Path,
        seed: int,
        force: bool,
        workers: int | None,
        scheduler: str | None,
    ) -> None:
        """All partitions that are not there yet; what is said of them comes in their order."""
        from ..cluster import workers as crew
        from ..cluster.results import Results
        from ..core.errors import InputWarning
        from ..runs.folder import read

        where = crew.Where(workers, scheduler)
        read(self.run)  # whatever is wrong with the run is said once, and here
        command = self.work.__name__.removeprefix("_")
        recipe = _plain(self.options) | {"command": command, "run": _sum(self.run), "seed": seed}
        texts = dict[int, str]()
        with Results(out, recipe, partitions, force) as results:
            todo = results.missing
            task = _Task(self, str(self.run.absolute()), str(out.absolute()), recipe["run"])
            for number, answer in crew.each(task, todo, where, "files"):
                texts[number] = answer.text.replace(str(out.absolute()), str(out))
                for note in answer.notes:
                    warnings.warn(note, InputWarning, stacklevel=2)
        lines = [texts[number] for number in sorted(texts)]
        print("\n".join(lines[:LISTED] + [f"... and {len(lines) - LISTED} more"] * (len(lines) > LISTED)))
        before = len(partitions) - len(todo)
        there = f", {before} of which were there already" if before else ""
        print(f"{out}: {counted(len(partitions), 'file')}{there}")


@dataclass(frozen=True)
class _Task:
    """What a worker does with a partition; it keeps the model for the next one."""

    job: Job
    run: str
    out: str
    sum: str

    def __call__(self, partition: Partition) -> str:
        model, out = _loaded(self.run, self.job.device, self.sum), Path(self.out, partition.name)
        out.parent.mkdir(parents=True, exist_ok=True)
        files = [] if partition.source is None else [partition.source]
        return self.job.work(model, files, out, partition.seed, **self.job.options, **partition.own)


@lru_cache(maxsize=1)
def _loaded(run: str, device: str, sum: str) -> GRCD:
    from ..core.errors import InputError
    from ..model import load

    if not Path(run).is_dir() or _sum(Path(run)) != sum:
        raise InputError(
            f"a worker that does not see {run} as it is here",
            "files that all workers see under the same paths",
            "put the run, the partitions and --out on a file system that all machines share",
        )
    return load(run, device)


def _sum(run: Path) -> str:
    """Of what a run says of itself, the sums of its tensors included."""
    from ..runs.manifest import NAME

    return hashlib.sha256((run / NAME).read_bytes()).hexdigest()


def _plain(options: dict[str, Any]) -> dict[str, Any]:
    """As JSON holds them."""
    return {name: str(value) if isinstance(value, Path) else value for name, value in options.items()}
