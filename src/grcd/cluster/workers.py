"""Whoever works on partitions: this process, workers of a local cluster, or those of a Dask scheduler somewhere.

A partition is computed by one thread, whoever does it: with more of them sums would be taken in another order, and no
two machines agree to the bit. A worker that dies is replaced, or another one does what it had begun.

An address may be anybody's: what listens there may be silent, or speak something else than Dask. So it is greeted
first, with a limit on the whole of it: Dask's own is one on parts of a greeting, and leaves one of them out.
"""

from __future__ import annotations

import asyncio
import logging
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..core import memory, provenance
from ..core.errors import InputError, InputWarning, some, whole_number
from ..core.progress import bar, quiet
from ..data.formats.refusals import needed

PATIENCE = 30.0  # seconds that a scheduler has to answer, and its first worker to come
LOST = 300.0  # seconds without any worker before it is said
LOOK = 0.05  # seconds between looks at what is done
ALIKE = ("grcd", "torch", "numpy", "scipy", "pymetis")  # what the bits of a file depend on


@dataclass(frozen=True)
class Where:
    """Which workers: this process, unless a number of local ones, or the address of a scheduler is given."""

    workers: int | None = None
    scheduler: str | None = None

    def __post_init__(self) -> None:
        if self.workers is not None:
            whole_number("workers", self.workers, 1, 4096)
            if self.scheduler is not None:
                raise InputError("--workers and --scheduler", "one of them", "leave one out")

    def __bool__(self) -> bool:
        return self.workers is not None or self.scheduler is not None


@dataclass(frozen=True)
class Answer:
    """What came of a partition: what is to be printed, and what is to be noted."""

    text: str
    notes: tuple[str, ...]


def each(work: Callable[[Any], str], items: Sequence[Any], where: Where, label: str) -> Iterator[tuple[int, Answer]]:
    """``work`` of all items, as they are done: their numbers, and what came of them."""
    with bar(label, len(items)) as advance, _answers(work, items, where) as answers:
        for done, answer in enumerate(answers, 1):
            yield answer
            advance(done, "")


@contextmanager
def _answers(work: Callable[[Any], str], items: Sequence[Any], where: Where) -> Iterator[Iterator[tuple[int, Answer]]]:
    with ExitStack() as stack:
        if not where:
            yield ((number, alone(work, item)) for number, item in enumerate(items))
        elif items:
            client = stack.enter_context(_client(where, len(items)))
            yield _gathered(client, work, items)
        else:
            yield iter(())


def alone(work: Callable[[Any], str], item: Any) -> Answer:
    """By one thread, without a bar of its own; runs in a worker, or here."""
    import torch
    from threadpoolctl import threadpool_limits

    memory.keep()  # Dask has its workers give back at once what is freed
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with quiet(), warnings.catch_warnings(record=True) as caught, threadpool_limits(1):
            warnings.simplefilter("always")
            text = work(item)
    finally:
        torch.set_num_threads(threads)
    notes = (str(each.message) for each in caught if issubclass(each.category, InputWarning))
    return Answer(text, tuple(dict.fromkeys(notes)))


# -- Dask ------------------------------------------------------------------------------------------------------------


@contextmanager
def _client(where: Where, items: int) -> Iterator[Any]:
    """Connected to workers that have what we have, and are no more than there are items."""
    try:
        distributed: Any = needed("distributed", "cluster")
    except InputError as error:
        raise InputError(error.got, "dask and distributed for many workers", error.do) from None
    _silence()
    with ExitStack() as stack:
        if where.scheduler is None:
            source: Any = stack.enter_context(
                distributed.LocalCluster(
                    n_workers=min(where.workers or 1, items),
                    threads_per_worker=1,
                    processes=True,
                    memory_limit=None,  # a worker that takes much is slow, not paused for good
                    dashboard_address="127.0.0.1:0",  # a port that is free
                    silence_logs=logging.CRITICAL,
                )
            )
        else:
            source = where.scheduler
        client = stack.enter_context(_connected(distributed, source, where))
        _refuse_other_versions(client)
        yield client


def _silence() -> None:
    """Dask, in this process: of workers that die, and of schedulers, it is said what matters. Its loggers have levels
    of their own, and more of them by its configuration."""
    for name in ("distributed", *logging.root.manager.loggerDict):
        if name.partition(".")[0] == "distributed":
            logging.getLogger(name).setLevel(logging.CRITICAL)


def _connected(distributed: Any, source: Any, where: Where) -> Any:
    address = "local workers" if where.scheduler is None else where.scheduler or "''"
    try:
        if where.scheduler is not None:
            asyncio.run(_greeted(distributed, source))
        client = distributed.Client(source, timeout=PATIENCE)
    except Exception as error:  # Dask's parsers raise what they like on what is not Dask
        raise _no_scheduler(address, error) from None
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError:
        client.close()
        got = f"the scheduler {address}, which has no workers"
        raise InputError(got, "one worker at the least", f"start some: dask worker {address}") from None
    return client


async def _greeted(distributed: Any, address: str) -> None:
    """A scheduler that is there answers in time."""
    client = distributed.Client(address, asynchronous=True, timeout=PATIENCE, set_as_default=False)
    try:
        await asyncio.wait_for(client, PATIENCE)
    finally:
        await client.close(PATIENCE)


def _no_scheduler(address: str, error: Exception) -> InputError:
    why = "what is there speaks otherwise"  # Dask takes its first bytes for a length, or for a number of parts
    if isinstance(error, OSError | ValueError | TypeError | RuntimeError):
        why = " ".join(str(error).split()) or f"no answer in {PATIENCE:g} seconds"
    return InputError(
        f"{address}, where no scheduler answers ({why:.160})",
        "the address of a Dask scheduler (by default its port is 8786; 8787 is that of its dashboard)",
        "start one (dask scheduler) and give the address that it prints, or use --workers K on this machine",
    )


def _refuse_other_versions(client: Any) -> None:
    """Of the workers that are there: with other versions other files would come out."""
    here = _versions()
    for worker, there in client.run(_versions_there, on_error="return").items():
        if isinstance(there, Exception):
            raise InputError(
                f"the worker {worker}, which does not say its versions ({' '.join(str(there).split()):.160})",
                "grcd on all machines",
                "install the same version on all of them",
            )
        if differ := [f"{name} {there.get(name, 'missing')}" for name in here if there.get(name) != here[name]]:
            raise InputError(
                f"the worker {worker} with {some(differ)}",
                f"what is here: {some(f'{name} {number}' for name, number in here.items())}",
                "install the same versions on all machines",
            )


def _versions() -> dict[str, str]:
    everything = _versions_there()
    return {name: everything[name] for name in ALIKE}


def _versions_there() -> dict[str, str]:
    """Of whoever calls; runs in a worker, or here."""
    try:
        import pymetis  # noqa: F401  as the order of elimination asks for it
    except ImportError:
        return {**provenance.versions(), "pymetis": "none"}
    return {**provenance.versions(), "pymetis": provenance.version("pymetis")}


def _gathered(client: Any, work: Callable[[Any], str], items: Sequence[Any]) -> Iterator[tuple[int, Answer]]:
    distributed: Any = needed("distributed", "cluster")
    futures = client.map(partial(alone, work), items, pure=False)
    numbers, seen = {future: number for number, future in enumerate(futures)}, time.monotonic()
    ready = distributed.as_completed(futures)
    try:
        while numbers:
            if ready.has_ready():
                for future in ready.next_batch(block=False):
                    yield numbers.pop(future), _result(distributed, future)
                seen = time.monotonic()
                continue
            time.sleep(LOOK)
            if time.monotonic() - seen > LOST:
                if not client.scheduler_info(n_workers=-1)["workers"]:
                    do = "start workers, and give the same command again: it goes on"
                    raise _lost("a cluster of which no worker is left", do)
                seen = time.monotonic()
    finally:
        client.cancel([*numbers])


def _result(distributed: Any, future: Any) -> Answer:
    try:
        return future.result()
    except distributed.scheduler.KilledWorker as error:
        got = f"a partition that ended every worker which tried it ({' '.join(str(error).split()):.160})"
        raise _lost(got, "give the workers more memory, or make smaller partitions") from None
    except (distributed.CancelledError, OSError) as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise  # a file's, not the cluster's
        raise _lost("a scheduler that has gone", "start it, and give the same command again: it goes on") from None


def _lost(got: str, do: str) -> InputError:
    return InputError(got, "workers until all is done", do)
