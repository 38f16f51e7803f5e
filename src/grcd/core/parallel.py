"""Several processes that train one network, each on its share of every batch; torchrun starts them.

What is random is keyed by update and row (see ``streams``), so that K processes draw the batch of one. With ``n_k`` of
``n`` rows the gradient of process ``k`` counts ``n_k / n``, and the sum of all is that of the batch:

    mean over the batch = sum over k of (n_k / n) (mean over the rows of process k)

So they end with the weights of one process, up to the order of sums. All else, from the choice of a reference to the
optimiser's step, every process does for itself: it comes out alike, since all have the same numbers. Where work is in
parts it can be shared out (``each``), and what the first process has read or decided is passed on to the others
(``from_first``, ``follow``).

Where nobody else is, a ``Team`` of one does nothing of this, and costs nothing.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from . import device as devices
from . import memory, ranks
from .errors import InputError, some

TIMEOUT = datetime.timedelta(minutes=30)  # without a word from another process, which has not ended either

T = TypeVar("T")


class Team:
    """A process by itself."""

    rank, size = 0, 1

    def rows(self, count: int) -> slice:
        """Those of a batch of ``count`` that are for this process."""
        if count < self.size:
            got = f"{self.size} processes for a batch of {count}"
            do = "start fewer processes, or raise the batch (--set batch=...)"
            raise InputError(got, "a row for each of them", do)
        return slice(self.rank * count // self.size, (self.rank + 1) * count // self.size)

    def add(self, tensors: Sequence[Tensor]) -> None:
        """The sum over all processes, in place; tensors of one type."""

    def follow(self, tensors: Iterable[Tensor]) -> None:
        """What the first process has, in place."""

    def from_first(self, work: Callable[[], T]) -> T:
        """What ``work`` comes to in the first process, which alone does it; an InputError is everybody's."""
        return work()

    def each(self, count: int, work: Callable[[int], tuple[Tensor, ...]]) -> list[tuple[Tensor, ...]]:
        """``work`` of 0 to ``count - 1``, each done by one process and passed on to all: the same bits for any K."""
        return [work(number) for number in range(count)]

    def agree(self, facts: Mapping[str, object]) -> None:
        """Refuse to go on where processes know different things by these names."""


class Several(Team):
    """One of several processes, after ``torch.distributed`` has brought them together."""

    def __init__(self, device: torch.device):
        self.rank, self.size, self.device = dist.get_rank(), dist.get_world_size(), device

    def add(self, tensors: Sequence[Tensor]) -> None:
        """One message for all of them."""
        flat = torch.cat([tensor.detach().reshape(-1) for tensor in tensors])
        with self._together():
            dist.all_reduce(flat)
        parts = flat.split([tensor.numel() for tensor in tensors])
        for tensor, part in zip(tensors, parts, strict=True):
            tensor.detach().copy_(part.view_as(tensor))

    def follow(self, tensors: Iterable[Tensor]) -> None:
        """One after the other."""
        for tensor in tensors:
            self._pass_on(tensor, 0)

    def from_first(self, work: Callable[[], T]) -> T:
        """As pickled objects, between processes of one program."""
        parcel: list[Any] = [None]
        if self.rank == 0:
            try:
                with _as(Team()):  # the others wait, and take no part in anything
                    parcel = [work()]
            except InputError as error:
                parcel = [error]
        with self._together():
            dist.broadcast_object_list(parcel)
        if isinstance(parcel[0], InputError):
            raise parcel[0]
        return parcel[0]

    def each(self, count: int, work: Callable[[int], tuple[Tensor, ...]]) -> list[tuple[Tensor, ...]]:
        """In turn."""
        own = {number: work(number) for number in range(self.rank, count, self.size)}
        shapes = {number: [(tuple(part.shape), part.dtype) for part in parts] for number, parts in own.items()}
        every = {number: shape for each in self._gathered(shapes) for number, shape in each.items()}
        results = []
        for number in range(count):
            mine = own.pop(number, None)
            parts = mine or tuple(torch.empty(s, dtype=kind, device=self.device) for s, kind in every[number])
            for part in parts:
                self._pass_on(part, number % self.size)
            results.append(parts)
        return results

    def agree(self, facts: Mapping[str, object]) -> None:
        """All hear of all."""
        every = self._gathered(dict(facts))
        for number, other in enumerate(every):
            if names := [name for name in facts if other.get(name) != every[0].get(name)]:
                values = ((name, every[0].get(name), other.get(name)) for name in names)
                differ = "; ".join(f"{name} is {first!s:.12} and {second!s:.12}" for name, first, second in values)
                raise InputError(
                    f"processes 0 and {number} of a training that have different {some(names)} ({differ})",
                    "the same data and options in all of them",
                    "give every machine the same files, and start all processes with the same command",
                )

    def _pass_on(self, tensor: Tensor, source: int) -> None:
        whole = tensor.detach().contiguous()
        with self._together():
            dist.broadcast(whole, source)
        if whole.data_ptr() != tensor.data_ptr():
            tensor.detach().copy_(whole)

    def _gathered(self, value: T) -> list[T]:
        every: list[Any] = [None] * self.size
        with self._together():
            dist.all_gather_object(every, value)
        return every

    @contextmanager
    def _together(self) -> Iterator[None]:
        """Whoever waits for a process that has ended is told so by the backend, in words of its own."""
        try:
            yield
        except RuntimeError as error:
            if memory.is_out(error):
                raise
            raise InputError(
                f"a training of {self.size} processes, of which another one has ended",
                "all of them until the end",
                "see what that one said; the same command goes on from the last validation",
            ) from error


_team = Team()


@contextmanager
def _as(other: Team) -> Iterator[Team]:
    global _team
    before, _team = _team, other
    try:
        yield other
    finally:
        _team = before


def team() -> Team:
    """That of this process: of one, unless it has ``joined`` others."""
    return _team


@contextmanager
def joined(device: str = "auto") -> Iterator[Team]:
    """The processes that torchrun has started, as one team, as long as this lasts; gloo connects CPUs, nccl GPUs.

    Whoever torchrun has not started is a team of one.
    """
    if ranks.size() == 1 or _team.size > 1:  # by itself, or there already
        yield _team
        return
    where = _own(devices.find(device))
    try:
        dist.init_process_group("nccl" if where.type == "cuda" else "gloo", timeout=TIMEOUT)
    except RuntimeError as error:
        why = " ".join(str(error).split())
        got = f"{ranks.size()} processes that do not reach each other ({why:.200})"
        raise InputError(got, "a network between them", "see what torchrun and GLOO_SOCKET_IFNAME are told") from error
    try:
        with _as(Several(where)) as together:
            yield together
            together.add([torch.zeros(1, device=where)])  # nobody leaves before all are done: who waits would fail
    finally:
        dist.destroy_process_group()


def _own(device: torch.device) -> torch.device:
    """The GPU of this process: a machine's first process has its first."""
    if device.type == "cuda":
        if ranks.local() >= torch.cuda.device_count():
            raise InputError(
                f"process {ranks.local()} of this machine, which has GPUs 0 to {torch.cuda.device_count() - 1}",
                "a GPU for each process",
                "lower --nproc-per-node, or add --device cpu",
            )
        torch.cuda.set_device(ranks.local())
    return device
