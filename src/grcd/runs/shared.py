"""A run folder for a training that several processes may share: the first one has it, the others follow."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from torch import Tensor

from ..core.parallel import team
from ..training.loop import Training
from . import manifest
from .folder import Run


class Following:
    """What a process that is not the first has of a run folder: it writes nothing, and hears what was read."""

    def __init__(self, path: str | Path, finished: bool):
        self.path, self.finished = Path(path), finished

    def __enter__(self) -> Following:
        return self

    def __exit__(self, *failure: object) -> None:
        """Nothing is held."""

    def settle(self, decide: Callable[[], dict]) -> dict:
        """The first one does, and passes it on."""
        return decide()

    def log(self, state: Training, record: dict) -> None:
        """The first one does."""

    def resume(self, state: Training) -> None:
        """The first one does, and passes it on (see ``Training.follow``)."""

    def finish(self, tensors: dict[str, Tensor], result: dict) -> None:
        """The first one does."""


def opened(run: str | Path | None, facts: dict, force: bool) -> AbstractContextManager[Run | Following | None]:
    """The folder ``run``, or none; processes that have other data or settings than the first are refused."""
    team().agree(manifest.identity(facts))
    if run is None:
        return nullcontext()
    folders = list[Run]()

    def begin() -> bool:
        folders.append(Run(run, facts, force))
        return folders[0].finished

    finished = team().from_first(begin)
    return folders[0] if folders else Following(run, finished)
