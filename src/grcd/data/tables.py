"""Signals, datasets and graphs in files, by file ending: read with their node names, written whole.

signals    .npz (`signals`, `node_ids`), .csv and .parquet (one column a node), .nc (variable `signals`), .npy
dataset    .npz as `grcd data export` writes it: train, val, test, mean, std, adjacency, node_ids
graph      .npz (`adjacency`, and `node_ids` if it has them), .csv (a header of node names, then the matrix), .npy
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from ..errors import InputError, some, unknown
from ..files import whole
from ..graph import Graph
from .dataset import BUILT_IN, SPLIT_NAMES, Dataset, load_dataset

Table = tuple[np.ndarray, list[str] | None]  # values (rows, nodes), and the nodes' names if the file has them


def open_dataset(source: str, graph: str | None = None, symmetrize: str | None = None) -> Dataset:
    """A built-in dataset by name, or one from a file: as exported, or signals with a graph file beside them."""
    if Path(source).suffix == "" and not Path(source).exists():
        if graph is not None and source in BUILT_IN:
            raise InputError(f"--graph for the built-in {source}", "no graph: it has its own", "leave --graph out")
        return load_dataset(source)
    path = _existing(source)
    if path.suffix == ".npz":
        arrays = _npz(path)
        if set(SPLIT_NAMES) <= set(arrays):
            return _exported(path, arrays, graph, symmetrize)
    if graph is None:
        raise InputError(f"signals in {path} without a graph", "a graph for them", "name its file with --graph")
    network = read_graph(graph, symmetrize)
    signals = matched(*read_signals(path), network, str(path))
    first, second = int(0.7 * len(signals)), int(0.8 * len(signals))  # chronological: 70 / 10 / 20 %
    return Dataset(path.stem, network, signals[:first], signals[first:second], signals[second:])


def _exported(path: Path, arrays: dict, graph: str | None, symmetrize: str | None) -> Dataset:
    ids = _ids(arrays)
    if graph is not None:
        network = read_graph(graph, symmetrize)
    elif "adjacency" in arrays:
        network = Graph.from_adjacency(arrays["adjacency"], ids, symmetrize, origin=f"adjacency in {path.name}")
    else:
        raise InputError(f"{path}, which holds no adjacency", "a graph", "name its file with --graph")
    splits = {split: matched(arrays[split], ids, network, f"{split} in {path}") for split in SPLIT_NAMES}
    return Dataset(path.stem, network, **splits)


def write_dataset(path: str | Path, data: Dataset) -> None:
    """Everything as used: splits in their own units, training statistics, the symmetrised adjacency, node names."""
    if Path(path).suffix != ".npz":
        raise InputError(f"the output {path}", "a name that ends in .npz", "a dataset has several arrays: use .npz")
    arrays = {split: data.split(split) for split in SPLIT_NAMES}
    arrays |= {"mean": data.normalizer.mean, "std": data.normalizer.std}
    _write_npz(path, adjacency=data.graph.weights.toarray(), node_ids=np.array(data.graph.node_ids), **arrays)


def matched(values: np.ndarray, ids: list[str] | None, graph: Graph, what: str) -> np.ndarray:
    """Columns in the graph's node order. With names on both sides the order in the file does not matter."""
    if ids is None or tuple(ids) == graph.node_ids:
        return values
    missing, extra = [i for i in graph.node_ids if i not in set(ids)], [i for i in ids if i not in set(graph.node_ids)]
    if missing or extra:
        parts = [f"{len(missing)} missing ({some(missing)})"] * bool(missing)
        parts += [f"{len(extra)} unknown ({some(extra)})"] * bool(extra)
        raise InputError(
            f"{what} with nodes that do not match the graph: {', '.join(parts)}",
            f"the graph's {len(graph)} node names",
            "rename the columns, or give the graph that belongs to these signals",
        )
    place = {name: i for i, name in enumerate(ids)}
    return values[:, [place[name] for name in graph.node_ids]]


# -- reading ---------------------------------------------------------------------------------------------------------


def read_signals(path: str | Path) -> Table:
    """Signals (samples, nodes) from a file, with node names where it has them."""
    path = _existing(path)
    return _by_ending(path, READERS, "signals")(path)


def read_graph(path: str | Path, symmetrize: str | None = None) -> Graph:
    """A graph from an adjacency file."""
    path = _existing(path)
    readers = {".npz": lambda p: _named_array(p, "adjacency"), ".csv": _adjacency_csv, ".npy": _npy}
    values, ids = _by_ending(path, readers, "graph")(path)
    return Graph.from_adjacency(values, ids, symmetrize, origin=f"adjacency in {path.name}")


def _named_array(path: Path, name: str) -> Table:
    arrays = _npz(path)
    if name not in arrays:
        raise InputError(f"{path} with the arrays {some(arrays)}", f"an array `{name}`", f"save it under `{name}`")
    return arrays[name], _ids(arrays)


def _npz(path: Path) -> dict[str, np.ndarray]:
    try:
        with path.open("rb") as handle, np.load(handle, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except Exception as error:  # zipfile, zlib, numpy and the OS each have their own for a damaged file
        raise _unreadable(path, error) from None


def _npy(path: Path) -> Table:
    try:
        return np.load(path, allow_pickle=False), None
    except (OSError, ValueError, EOFError) as error:
        raise _unreadable(path, error) from None


def _csv(path: Path) -> Table:
    return _frame(path, lambda pandas: pandas.read_csv(path))


def _parquet(path: Path) -> Table:
    return _frame(path, lambda pandas: pandas.read_parquet(path))


def _frame(path: Path, read: Callable) -> Table:
    import pandas

    try:
        frame = read(pandas)
    except ImportError:
        raise _extra("pyarrow", "parquet") from None
    except Exception as error:  # parsers raise what they like on a damaged file
        raise _unreadable(path, error) from None
    text = [str(column) for column, kind in frame.dtypes.items() if not pandas.api.types.is_numeric_dtype(kind)]
    if text:
        raise InputError(
            f"{path} with columns that are not numbers: {some(text)}", "one numeric column a node", "drop them"
        )
    return frame.to_numpy(np.float64), [str(column) for column in frame.columns]


def _adjacency_csv(path: Path) -> Table:
    import pandas

    try:
        frame = pandas.read_csv(path)
        if frame.shape[1] == len(frame) + 1:  # the first column names the rows
            frame = frame.set_index(frame.columns[0])
        return frame.to_numpy(np.float64), [str(column) for column in frame.columns]
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None


def _netcdf(path: Path) -> Table:
    xarray = _xarray()
    try:
        with xarray.open_dataset(path, engine="scipy") as file:
            return file["signals"].to_numpy(), [str(name) for name in file["node"].to_numpy()]
    except Exception as error:  # as above
        raise _unreadable(path, error) from None


def _ids(arrays: dict[str, np.ndarray]) -> list[str] | None:
    return [str(name) for name in arrays["node_ids"]] if "node_ids" in arrays else None


READERS: dict[str, Callable[[Path], Table]] = {
    ".npz": lambda path: _named_array(path, "signals"),
    ".csv": _csv,
    ".parquet": _parquet,
    ".nc": _netcdf,
    ".npy": _npy,
}

# -- writing ---------------------------------------------------------------------------------------------------------


def check_writable_ending(path: str | Path) -> None:
    """Before signals are made: is there a writer for this ending, and is what it needs installed?"""
    _by_ending(Path(path), WRITERS, "output")
    if Path(path).suffix == ".nc":
        _xarray()
    if Path(path).suffix == ".parquet":
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            raise _extra("pyarrow", "parquet") from None


def write_signals(path: str | Path, signals: np.ndarray, node_ids: tuple[str, ...]) -> None:
    """Signals (n, nodes) with their node names."""
    _by_ending(Path(path), WRITERS, "output")(path, signals, node_ids)


def _write_npz(path: str | Path, **arrays: np.ndarray) -> None:
    with whole(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **arrays)


def _write_frame(path: str | Path, signals: np.ndarray, node_ids: tuple[str, ...]) -> None:
    import pandas

    frame = pandas.DataFrame(signals, columns=list(node_ids))
    with whole(path) as temporary:
        frame.to_csv(temporary, index=False) if Path(path).suffix == ".csv" else frame.to_parquet(temporary)


def _write_netcdf(path: str | Path, signals: np.ndarray, node_ids: tuple[str, ...]) -> None:
    array = _xarray().DataArray(signals, dims=("sample", "node"), coords={"node": list(node_ids)}, name="signals")
    with whole(path) as temporary:
        array.to_dataset().to_netcdf(temporary, engine="scipy")


WRITERS: dict[str, Callable[[str | Path, np.ndarray, tuple[str, ...]], None]] = {
    ".npz": lambda path, signals, ids: _write_npz(path, signals=signals, node_ids=np.array(ids)),
    ".csv": _write_frame,
    ".parquet": _write_frame,
    ".nc": _write_netcdf,
}

# -- errors ----------------------------------------------------------------------------------------------------------


def _by_ending(path: Path, table: dict[str, Callable], kind: str) -> Callable:
    if path.suffix not in table:
        raise unknown(f"{kind} file ending of {path.name}:", path.suffix, table)
    return table[path.suffix]


def _existing(path: str | Path) -> Path:
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}, which is no file", "an existing file", "check the path")
    return path


def _xarray():
    try:
        import xarray
    except ImportError:
        raise _extra("xarray", "netcdf") from None
    return xarray


def _extra(package: str, extra: str) -> InputError:
    return InputError(
        f"no {package} on this machine", f"{package} for this file ending", f'pip install "grcd[{extra}]"'
    )


def _unreadable(path: Path, error: Exception) -> InputError:
    return InputError(f"{path}, which cannot be read ({error})", "a whole file of its kind", "make the file again")
