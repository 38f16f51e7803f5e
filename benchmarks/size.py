"""How large data may be: a million signals on 500 nodes are written, read and trained on; time and peak memory of each.

The signals are low rank plus noise, in float32, made and written in blocks. Every file is read and trained on in a
process of its own, whose peak resident memory the kernel counts; two copies of the signals (as read, and normalised)
are what training needs. Files are written in a process of their own too: a child starts with the peak of its parent.

    python benchmarks/size.py --out results/size.json
    python benchmarks/size.py --rows 20000 --formats parquet npz npz-compressed npy --missing 0.08
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

RANK, BLOCK, SEED = 8, 1 << 13, 0
SETTINGS = {"width": 16, "max_updates": 40, "validate_every": 40, "seed": SEED, "device": "cpu"}


# -- data --------------------------------------------------------------------------------------------------------------


def signals(rows: int, nodes: int, missing: float) -> Iterator[np.ndarray]:
    """Blocks of signals, each from a generator of its own: any block can be made again."""
    mix = np.random.default_rng(SEED).standard_normal((RANK, nodes), dtype=np.float32)
    for start in range(0, rows, BLOCK):
        random = np.random.default_rng([SEED, start])
        count = min(BLOCK, rows - start)
        x = random.standard_normal((count, RANK), dtype=np.float32) @ mix
        x += random.standard_normal((count, nodes), dtype=np.float32)
        x[random.random((count, nodes), dtype=np.float32) < missing] = np.nan
        yield 50 + 10 * x


def write(path: Path, blocks: Iterator[np.ndarray], rows: int, nodes: int) -> None:
    {".parquet": write_parquet, ".npy": write_npy, ".npz": write_npz}[path.suffix](path, blocks, (rows, nodes))


def write_parquet(path: Path, blocks: Iterator[np.ndarray], shape: tuple[int, int]) -> None:
    """Row groups as large as pandas makes them by default: that is the hard case for a reader."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(str(node), pa.float32()) for node in range(shape[1])])
    with pq.ParquetWriter(path, schema) as writer:
        for x in blocks:
            writer.write_batch(pa.record_batch([pa.array(column) for column in x.T], schema=schema))


def write_npy(path: Path, blocks: Iterator[np.ndarray], shape: tuple[int, int]) -> None:
    with path.open("wb") as file:
        _write_array(file, blocks, shape)


def write_npz(path: Path, blocks: Iterator[np.ndarray], shape: tuple[int, int]) -> None:
    kind = zipfile.ZIP_DEFLATED if "compressed" in path.stem else zipfile.ZIP_STORED
    with (
        zipfile.ZipFile(path, "w", kind, compresslevel=1) as archive,
        archive.open("signals.npy", "w", force_zip64=True) as file,
    ):
        _write_array(file, blocks, shape)


def _write_array(file, blocks: Iterator[np.ndarray], shape: tuple[int, int]) -> None:
    np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": shape})
    for x in blocks:
        file.write(np.ascontiguousarray(x, dtype="<f4").data)


def write_graph(path: Path, nodes: int) -> None:
    """A ring in which each node has four neighbours."""
    W = sum(np.roll(np.eye(nodes), step, axis=1) for step in (1, 2))
    np.save(path, W + W.T)


# -- one process a file ------------------------------------------------------------------------------------------------


def trained(file: Path, graph: Path) -> dict:
    """Read and train; seconds of each part and the peak of memory after it."""
    peaks, seconds = {"start": peak()}, {}

    @contextmanager
    def stage(name: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        seconds[name] = seconds.get(name, 0.0) + time.perf_counter() - began
        peaks[name] = peak()

    def staged(owner, attribute: str, name: str) -> None:
        """Count every call of a function of the package as that stage."""
        plain = getattr(owner, attribute)

        def counted(*args, **kwargs):
            with stage(name):
                return plain(*args, **kwargs)

        setattr(owner, attribute, counted)

    with stage("import"):
        import grcd
        from grcd import model
        from grcd.training import loop as training
    staged(model, "ledoit_wolf", "covariance")
    staged(training.Update, "__call__", "updates")
    staged(training.Validation, "__call__", "validation")
    with stage("read"):
        data = grcd.load_dataset(str(file), str(graph))
    with stage("fit"):
        fitted = grcd.GRCD(data.graph, **SETTINGS).fit(data.train, data.val)
    size = 4 * sum(len(data.split(split)) for split in ("train", "val", "test")) * len(data.graph)
    return {
        "file_mb": round(file.stat().st_size / 1e6, 1),
        "signals_mb": round(size / 1e6, 1),
        "held_in": str(data.train.dtype),
        "peak_mb": {name: round(value, 1) for name, value in peaks.items()},
        "copies": round((peaks["fit"] - peaks["import"]) * 1e6 / size, 3),  # of the signals in float32
        "seconds": {name: round(value, 3) for name, value in seconds.items()},
        "ms_per_update": round(1e3 * seconds["updates"] / fitted.result["updates"], 2),
        "val": fitted.result["val"],
        "val_reference_alone": fitted.result["val_reference_alone"],
    }


def peak() -> float:
    """Peak resident memory of this process in MB."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / 1e6 if sys.platform == "darwin" else most * 1024 / 1e6


def child(*arguments: object) -> str:
    command = [sys.executable, __file__, *(str(argument) for argument in arguments)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=dict(os.environ)).stdout


def measured(folder: Path, kind: str, size: list[object]) -> dict:
    name = {"npz-compressed": "compressed.npz"}.get(kind, f"signals.{kind}")
    file, graph = folder / name, folder / "graph.npy"
    began = time.perf_counter()
    child("--write", file, *size)
    written = time.perf_counter() - began
    measured = json.loads(child("--train", file, "--graph", graph).splitlines()[-1])
    file.unlink()
    return {**measured, "write_seconds": round(written, 1)}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--nodes", type=int, default=500)
    options.add_argument("--missing", type=float, default=0.0, help="share of entries that are NaN")
    options.add_argument("--formats", nargs="+", default=["parquet", "npz"])
    options.add_argument("--out", default="results/size.json")
    options.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    options.add_argument("--train", type=Path, help=argparse.SUPPRESS)
    options.add_argument("--graph", type=Path, help=argparse.SUPPRESS)
    args = options.parse_args()
    if args.write:
        write(args.write, signals(args.rows, args.nodes, args.missing), args.rows, args.nodes)
    elif args.train:
        print(json.dumps(trained(args.train, args.graph)))
    else:
        compare(args)


def compare(args: argparse.Namespace) -> None:
    size = ["--rows", args.rows, "--nodes", args.nodes, "--missing", args.missing]
    with tempfile.TemporaryDirectory() as folder:
        write_graph(Path(folder) / "graph.npy", args.nodes)
        files = {kind: measured(Path(folder), kind, size) for kind in args.formats}
    from provenance import provenance

    from grcd.core.files import write_json

    shape = {"rows": args.rows, "nodes": args.nodes, "missing": args.missing}
    write_json(args.out, {**provenance("cpu"), **shape, "settings": SETTINGS, "files": files})
    print(json.dumps(files, indent=1))


if __name__ == "__main__":
    main()
