"""Parquet files of readings, wide or long, decoded a few columns at a time.

Times are known as in a CSV file: by the column's name, or as an index that holds them, or as a first column that does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from ...core.errors import InputError, some
from ...core.files import whole
from .. import times
from ..notes import Note
from ..written_times import PLAIN, TimeColumn
from .output import Output
from .refusals import bytes_of, damage_is_refused, needed, refuse_claim
from .table import (
    Table,
    held_in,
    is_unnamed,
    names_of,
    only_clock,
    pivoted_channels,
    refuse_no_label,
    role_of,
    roles_of,
)

COLUMNS = 32  # decoded side by side: each keeps a dictionary and a page in memory


def read(path: Path, label: str | None, nodes: Collection[str]) -> Table:
    """Wide or long; ``label`` is the split column."""
    return next(iter(_read(path, label, False).values()))


def read_channels(path: Path, label: str | None, nodes: Collection[str]) -> dict[str, Table]:
    """The same, by channel: a long table may have a column that says which."""
    return _read(path, label, True)


def _read(path: Path, label: str | None, channels: bool) -> dict[str, Table]:
    arrow = need()
    try:
        with (
            damage_is_refused(path),
            arrow.parquet.ParquetFile(path, pre_buffer=False, buffer_size=1 << 16) as file,
        ):
            return _tables(file, path, label, channels)
    finally:
        arrow.default_memory_pool().release_unused()  # it would keep its buffers for another file


def need() -> ModuleType:
    needed("pyarrow.parquet", "parquet")
    return needed("pyarrow", "parquet")


def write(path: Path, output: Output) -> None:
    """A row a signal; of an ensemble a row for each draw of each signal, a draw at a time: all of them may not fit."""
    with whole(path) as temporary:
        if output.ensemble is None:
            output.frame().to_parquet(temporary)
            return
        arrow, writer = need(), None
        for number, draw in enumerate(output.ensemble):
            frame = output.frame(draw)
            frame.insert(0, "draw", number)
            part = arrow.Table.from_pandas(frame, preserve_index=False)
            writer = writer or arrow.parquet.ParquetWriter(temporary, part.schema)
            writer.write_table(part)
        if writer is not None:
            writer.close()


def _tables(file: Any, path: Path, label: str | None, channels: bool) -> dict[str, Table]:
    schema = file.schema_arrow
    names = schema.names
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise InputError(f"column names that occur twice in {path}: {some(twice)}", "unique names", "rename them")
    refuse_no_label(label, names, path)
    indices = [name for name in (schema.pandas_metadata or {}).get("index_columns", []) if isinstance(name, str)]
    roles = roles_of([name for name in names if role_of(name) or name not in indices], label, path, channels)
    labels = np.array(_names(file, label, path)) if label is not None and label in names else None
    if roles is not None:
        written = _column(file, roles["time"])
        stamps = times.parsed(written, str(path))
        named, values = _names(file, roles["node"], path), _numbers(file, [roles["value"]], path)[:, 0]
        variables = _names(file, roles["variable"], path) if "variable" in roles else None
        tables = pivoted_channels(stamps, named, variables, values, path, labels)
        column = TimeColumn.of(roles.pop("time"), written, **roles)
        return {name: replace(table, clock=column) for name, table in tables.items()}
    clock, stamps, notes = _clock(file, [name for name in names if name != label], indices, path)
    nodes = [name for name in names if name not in {clock, label, *indices}]
    notes += tuple(
        Note(f"the index {name!r} of {path.name} is no time", "left out") for name in indices if name != clock
    )
    called = clock if clock is not None and not is_unnamed(clock) and not clock.startswith("__") else "time"
    column = PLAIN if clock is None else TimeColumn.of(called, _column(file, clock))
    return {"": Table(_numbers(file, nodes, path), tuple(nodes), stamps, labels, notes=notes, clock=column)}


def _clock(file: Any, names: list[str], indices: list[str], path: Path) -> tuple:
    """As in a CSV file: by its name, or an index of times, or a first column of times. Its name, times, what to say."""
    schema = file.schema_arrow
    dated = [name for name in names if name in indices and _is_dated(schema.field(name).type)]
    clock = [name for name in names if times.is_time(name) or name in dated]
    if (only := only_clock(clock, path)) is not None:
        return only, times.parsed(_column(file, only), str(path)), ()
    for name in [name for name in names if name in indices] + names[:1]:
        if is_number(schema.field(name).type):
            continue
        try:
            stamps = times.parsed(_column(file, name), str(path))
        except InputError:
            continue  # text: said where numbers are read
        note = Note(f"column {name!r} of {path.name} is taken as the time")
        return name, stamps, () if name in indices else (note,)
    return None, None, ()


def _is_dated(kind: Any) -> bool:
    import pyarrow.types as kinds

    return kinds.is_timestamp(kind) or kinds.is_date(kind)


def is_number(kind: Any) -> bool:
    """Of a column's type."""
    import pyarrow.types as kinds

    return bool(kinds.is_floating(kind) or kinds.is_integer(kind))


def _column(file: Any, name: str) -> np.ndarray:
    return file.read(columns=[name]).column(name).to_numpy()


def _names(file: Any, name: str, path: Path) -> tuple[str, ...]:
    column = file.read(columns=[name]).column(name)
    if column.null_count:
        row = column.is_null().index(True).as_py()
        raise InputError(
            f"{path} with no {name!r} in row {row + 1} ({column.null_count} such rows)",
            "a name in every row",
            "complete or remove those rows",
        )
    cells = column.to_numpy()
    if cells.dtype.kind == "f" and (cells == np.round(cells)).all():
        cells = cells.astype(np.int64)  # pandas makes whole numbers floats where one was missing
    return names_of(cells, str(path), f"{name!r}")


def _numbers(file: Any, names: list[str], path: Path) -> np.ndarray:  # (rows, columns), streamed
    import pyarrow.types as kinds

    schema = file.schema_arrow  # made anew each time it is asked for
    fields = [schema.field(name) for name in names]
    for field in fields:
        if not is_number(field.type):
            what = "timestamps" if kinds.is_temporal(field.type) else field.type
            raise InputError(
                f"column {field.name!r} of {path}, which holds {what}", "numbers", "drop or convert the column"
            )
    rows = file.metadata.num_rows
    kind = np.result_type(*(field.type.to_pandas_dtype() for field in fields)) if fields else np.dtype(float)
    refuse_claim(bytes_of((rows, len(names)), kind), path.stat().st_size, str(path))
    values = np.empty((rows, len(names)), dtype=held_in(kind, rows * len(names)))
    for first in range(0, len(names), COLUMNS):
        group, start = names[first : first + COLUMNS], 0
        for batch in file.iter_batches(batch_size=1 << 14, columns=group):
            for place, name in enumerate(group, first):
                values[start : start + len(batch), place] = batch.column(name).to_numpy(zero_copy_only=False)
            start += len(batch)
        if start != rows:
            raise ValueError(f"{rows} rows by its header, {start} by its pages")
    return values
