"""Files of signals and graphs as they should be, one for every format and layout; and some that must not be read."""

from __future__ import annotations

import io
import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path

import h5py
import networkx
import numpy as np
import pandas
import pyarrow.parquet  # noqa: F401 (loaded once, here)
import scipy.sparse as sp
import xarray

from .stage import NODES

ROWS = 40
X = np.random.default_rng(1).normal(size=(ROWS, len(NODES))).cumsum(axis=1).round(3)
W = np.diag(np.ones(len(NODES) - 1), 1) + np.diag(np.ones(len(NODES) - 1), -1)
TIMES = np.datetime64("2024-01-01T00:00", "ns") + np.arange(ROWS) * np.timedelta64(1, "h")
FRAME = pandas.DataFrame(X, columns=NODES, index=pandas.DatetimeIndex(TIMES, name="time"))
PLACES = np.stack([np.arange(5.0), np.arange(5.0) ** 2], axis=1)


def csv(header: list[str], rows: list) -> bytes:
    return "\n".join(",".join(map(str, row)) for row in [header, *rows]).encode() + b"\n"


def npz(**arrays: np.ndarray) -> bytes:
    with io.BytesIO() as file:
        np.savez(file, **arrays)
        return file.getvalue()


def npy(array: np.ndarray) -> bytes:
    with io.BytesIO() as file:
        np.save(file, array)
        return file.getvalue()


def sparse() -> bytes:
    with io.BytesIO() as file:
        sp.save_npz(file, sp.csr_array(W))
        return file.getvalue()


def pickled(protocol: int) -> bytes:
    return pickle.dumps((NODES, {name: i for i, name in enumerate(NODES)}, W.astype("f4")), protocol)


def written(ending: str, write: Callable[[Path], None]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"x{ending}"
        write(path)
        return path.read_bytes()


def hdf5(path: Path, **storage) -> None:
    """As pandas writes a frame; ``storage`` says how its numbers are stored."""
    with h5py.File(path, "w") as file:
        group = file.create_group("df")
        group.attrs["pandas_type"] = np.bytes_(b"frame")
        group.attrs.update(axis0_variety=np.bytes_(b"regular"), axis1_variety=np.bytes_(b"regular"), nblocks=1, ndim=2)
        for name in ("axis0", "block0_items"):
            node = group.create_dataset(name, data=np.char.encode(NODES, "utf-8"))
            node.attrs.update(kind=np.bytes_(b"string"), name=np.bytes_(b"N."), transposed=True)
        rows = storage.get("shape", X.shape)[0]
        chunks = {"data": TIMES.astype("i8")} if rows == ROWS else {"shape": (rows,), "dtype": "i8", "chunks": (1000,)}
        node = group.create_dataset("axis1", **chunks)
        node.attrs.update(kind=np.bytes_(b"datetime64"), name=np.bytes_(b"N."), transposed=True)
        if "virtual" in storage:
            layout = h5py.VirtualLayout(X.shape, X.dtype)
            layout[:] = h5py.VirtualSource(storage["virtual"], "secret", X.shape)
            group.create_virtual_dataset("block0_values", layout)
        elif "link" in storage:
            group["block0_values"] = h5py.ExternalLink(storage["link"], "secret")
        elif storage:
            group.create_dataset("block0_values", **storage)
        else:
            group.create_dataset("block0_values", data=X)
        if "link" not in storage:
            group["block0_values"].attrs["transposed"] = True


def netcdf(path: Path) -> None:
    array = xarray.DataArray(X, dims=("time", "node"), coords={"time": TIMES, "node": NODES}, name="signals")
    array.to_dataset().to_netcdf(path, engine="scipy")


def graph(ending: str) -> bytes:
    G = networkx.relabel_nodes(networkx.path_graph(len(NODES)), dict(enumerate(NODES)))
    networkx.set_edge_attributes(G, 1.5, "weight")
    return written(
        ending, lambda path: {".gml": networkx.write_gml, ".graphml": networkx.write_graphml}[ending](G, path)
    )


def whole() -> dict[str, tuple[str, bytes]]:
    """By name: what it is read as, and its bytes."""
    long = [(t, name, X[i, j]) for i, t in enumerate(TIMES) for j, name in enumerate(NODES)]
    edges = [(NODES[i], NODES[i + 1], 1.5 + i) for i in range(len(NODES) - 1)]
    signals = {
        "wide.csv": csv(["time", *NODES], [[t, *row] for t, row in zip(TIMES, X, strict=True)]),
        "plain.csv": csv(NODES, X),
        "long.csv": csv(["time", "node", "value"], long),
        "named.npz": npz(signals=X, node_ids=np.array(NODES), timestamps=TIMES, unit=np.array("m")),
        "exported.npz": npz(train=X[:28], val=X[28:32], test=X[32:], adjacency=W, node_ids=np.array(NODES)),
        "plain.npy": npy(X),
        "frame.parquet": written(".parquet", lambda path: FRAME.to_parquet(path)),
        "frame.h5": written(".h5", hdf5),
        "packed.h5": written(".h5", lambda path: hdf5(path, data=X, chunks=(4, 2), compression="gzip")),
        "array.nc": written(".nc", netcdf),
    }
    graphs = {
        "edges.csv": csv(["source", "target", "weight"], edges),
        "distances.csv": csv(["from", "to", "cost"], edges),
        "places.csv": csv(["node", "x", "y"], [(name, *xy) for name, xy in zip(NODES, PLACES, strict=True)]),
        "stations.csv": csv(
            ["station", "longitude", "latitude"], [(n, *xy) for n, xy in zip(NODES, PLACES, strict=True)]
        ),
        "matrix.csv": csv(["node", *NODES], [[name, *row] for name, row in zip(NODES, W, strict=True)]),
        "matrix.npy": npy(W),
        "matrix.npz": npz(adjacency=W, node_ids=np.array(NODES), coords=PLACES),
        "places.npz": npz(coords=PLACES, node_ids=np.array(NODES)),
        "sparse.npz": sparse(),
        "graph.gml": graph(".gml"),
        "graph.graphml": graph(".graphml"),
        **{f"dcrnn-{protocol}.pkl": pickled(protocol) for protocol in (0, 2, 4)},
    }
    return {n: ("signals", data) for n, data in signals.items()} | {n: ("graph", data) for n, data in graphs.items()}


# -- files that must not be read -------------------------------------------------------------------------------------


FORBIDDEN = {  # how the numbers of a frame are stored
    "virtual.h5": {"virtual": "secret.h5"},
    "link.h5": {"link": "secret.h5"},
    "external.h5": {"shape": X.shape, "dtype": X.dtype, "external": [("secret.bin", 0, X.nbytes)]},
    "tall.h5": {"shape": (10**8, 5), "dtype": "f8", "chunks": (1000, 5)},
    "packed-tall.h5": {"shape": (10**8, 5), "dtype": "f8", "chunks": (1000, 5), "compression": "gzip"},
}


def write_forbidden(name: str, folder: Path) -> Path:
    """A file that points at another one of the machine, or that claims much more than it holds."""
    with h5py.File(folder / "secret.h5", "w") as file:
        file["secret"] = X
    (folder / "secret.bin").write_bytes(X.tobytes())
    hdf5(folder / name, **FORBIDDEN[name])
    return folder / name
