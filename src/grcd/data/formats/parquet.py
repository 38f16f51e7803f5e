"""Parquet files of readings, wide or long, decoded a few columns at a time.

Times are known as in a CSV file: by the column's name, or as an index that holds them, or as a first column that does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ...core.errors import InputError, some
from .. import times
from .arrays import held_in, names_of
from .claims import bytes_of, refuse_claim
from .columns import unreadable
from .signals import Table, extra, pivoted, refuse_no_label, role_of, roles_of

COLUMNS = 32  # decoded side by side: each keeps a dictionary and a page in memory


def read_parquet(path: Path, label: str | None) -> Table:
    try:
        import pyarrow.parquet
    except ImportError:
        raise extra("pyarrow", "parquet") from None
    try:
        with pyarrow.parquet.ParquetFile(path, pre_buffer=False, buffer_size=1 << 16) as file:
            return _arrow_table(file, path, label)
    except InputError:
        raise
    except Exception as error:  # parsers raise what they like on a damaged file
        raise unreadable(path, error) from None
    finally:
        pyarrow.default_memory_pool().release_unused()  # it would keep its buffers for another file


def _arrow_table(file: Any, path: Path, label: str | None) -> Table:
    schema = file.schema_arrow
    names = schema.names
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"column names that occur twice in {path}: {some(twice)}", "unique names", "rename them")
    refuse_no_label(label, names, path)
    indices = [name for name in (schema.pandas_metadata or {}).get("index_columns", []) if isinstance(name, str)]
    roles = roles_of([name for name in names if role_of(name) or name not in indices], label, path)
    labels = np.array(_arrow_names(file, label, path)) if label is not None and label in names else None
    if roles is not None:
        stamps = times.parsed(_arrow_column(file, roles["time"]), str(path))
        named, values = _arrow_names(file, roles["node"], path), _arrow_numbers(file, [roles["value"]], path)[:, 0]
        return pivoted(stamps, named, values, path, labels)
    clock, stamps, notes = _arrow_clock(file, [name for name in names if name != label], indices, path)
    nodes = [name for name in names if name not in {clock, label, *indices}]
    notes += tuple(f"the index {name!r} of {path.name} is no time: left out" for name in indices if name != clock)
    return Table(_arrow_numbers(file, nodes, path), tuple(nodes), stamps, labels, notes=notes)


def _arrow_clock(file: Any, names: list[str], indices: list[str], path: Path) -> tuple:
    """As in a CSV file: by its name, or an index of times, or a first column of times. Its name, times, what to say."""
    dated = [name for name in names if name in indices and _is_dated(file.schema_arrow.field(name).type)]
    clock = [name for name in names if times.is_time(name) or name in dated]
    if len(clock) > 1:
        raise InputError(f"several time columns in {path}: {some(clock)}", "one", "rename or remove the others")
    if clock:
        return clock[0], times.parsed(_arrow_column(file, clock[0]), str(path)), ()
    for name in [name for name in names if name in indices] + names[:1]:
        if _is_number(file.schema_arrow.field(name).type):
            continue
        try:
            stamps = times.parsed(_arrow_column(file, name), str(path))
        except InputError:
            continue  # text: said where numbers are read
        told = f"column {name!r} of {path.name} is taken as the time"
        return name, stamps, () if name in indices else (told,)
    return None, None, ()


def _is_dated(kind: Any) -> bool:
    import pyarrow.types as kinds

    return kinds.is_timestamp(kind) or kinds.is_date(kind)


def _is_number(kind: Any) -> bool:
    import pyarrow.types as kinds

    return kinds.is_floating(kind) or kinds.is_integer(kind)


def _arrow_column(file: Any, name: str) -> np.ndarray:
    return file.read(columns=[name]).column(name).to_numpy()


def _arrow_names(file: Any, name: str, path: Path) -> tuple[str, ...]:
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


def _arrow_numbers(file: Any, names: list[str], path: Path) -> np.ndarray:  # (rows, columns), streamed
    import pyarrow.types as kinds

    fields = [file.schema_arrow.field(name) for name in names]
    for field in fields:
        if not _is_number(field.type):
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
