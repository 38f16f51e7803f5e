"""Signals and datasets into files, by ending, whole or not at all."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from ...core.errors import InputError, InputWarning, some, unknown
from ...core.files import refuse_other_ending, whole
from ..dataset import Dataset
from ..splits import NAMES as SPLIT_NAMES
from ..times import as_text
from .arrays import Archive
from .signals import extra, need_xarray

FORMULAS = ("=", "+", "-", "@")  # what a spreadsheet takes for one by its first letter


def check_writable_ending(path: str | Path) -> None:
    """Before signals are made: is there a writer for this ending, and is what it needs installed?"""
    _writer(path)
    if Path(path).suffix == ".nc":
        need_xarray()
    if Path(path).suffix == ".parquet":
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            raise extra("pyarrow", "parquet") from None


def write_signals(
    path: str | Path, signals: np.ndarray, node_ids: tuple[str, ...], unit: str = "", times: np.ndarray | None = None
) -> None:
    """Signals (n, nodes) with their node names, and their times if they have any."""
    refuse_not_finite(signals, path)
    _writer(path)(path, signals, node_ids, unit, times)
    warn_of_formulas(path, node_ids)


def refuse_not_finite(values: np.ndarray, path: str | Path) -> None:
    """What was generated may be no number where a network diverged or a file was damaged: it is never written."""
    if wrong := int(values.size - np.isfinite(values).sum()):
        raise InputError(
            f"{wrong} of {values.size} numbers for {path} that are not finite",
            "finite ones",
            "take the settings of training and sampling nearer to their defaults, or train again",
        )


def write_dataset(path: str | Path, data: Dataset) -> None:
    """Everything as used: splits in their own units, training statistics, the symmetrised adjacency, node names."""
    check_dataset_ending(path)
    arrays = {split: data.split(split) for split in SPLIT_NAMES}
    arrays |= {"mean": data.normalizer.mean, "std": data.normalizer.std}
    arrays |= {f"{split}_filled": mask for split, mask in data.filled.items()}
    arrays |= {f"{split}_times": times for split, times in data.times.items()}
    if data.graph.coords is not None:
        arrays["coords"] = data.graph.coords
    graph = {key: getattr(data.graph, key) for key in ("origin", "one_way", "one_way_share")}
    arrays["made"] = np.array(json.dumps(data.facts | {"unit": data.unit, "graph": graph}))
    _write_npz(path, adjacency=data.graph.weights.toarray(), node_ids=np.array(data.graph.node_ids), **arrays)


def check_dataset_ending(path: str | Path) -> None:
    refuse_other_ending(path, ".npz", "a dataset has several arrays: use .npz")


def read_made(arrays: Archive) -> dict:
    """How an exported dataset was made, as far as its file says."""
    try:
        made = json.loads(str(arrays["made"])) if "made" in arrays else {}
        return made if isinstance(made, dict) and isinstance(made.get("graph", {}), dict) else {}
    except ValueError:
        return {}


def warn_of_formulas(path: str | Path, names: Iterable[str]) -> None:
    """Names are written as they are; whoever opens the table in a spreadsheet should know what that makes of some."""
    found = [name for name in names if str(name).startswith(FORMULAS)]
    if found and Path(path).suffix == ".csv":
        note = f"names in {Path(path).name} start like formulas ({some(found, 3)}): a spreadsheet would compute them;"
        warnings.warn(f"{note} import such columns as text", InputWarning, stacklevel=3)


def _writer(path: str | Path) -> Callable[..., None]:
    path = Path(path)
    if path.suffix not in WRITERS:
        raise unknown("ending of an output file", path.suffix, WRITERS)
    return WRITERS[path.suffix]


def _write_npz(path: str | Path, **arrays: Any) -> None:
    with whole(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **arrays)


def _write_signals_npz(
    path: str | Path, signals: np.ndarray, node_ids: tuple[str, ...], unit: str, times: np.ndarray | None
) -> None:
    about = ({"unit": np.array(unit)} if unit else {}) | ({} if times is None else {"times": times})
    _write_npz(path, signals=signals, node_ids=np.array(node_ids), **about)


def _write_frame(
    path: str | Path, signals: np.ndarray, node_ids: tuple[str, ...], unit: str, times: np.ndarray | None
) -> None:
    import pandas

    frame = pandas.DataFrame(signals, columns=list(node_ids))
    if times is not None:
        frame.insert(0, "time", times if Path(path).suffix == ".parquet" else as_text(times))
    with whole(path) as temporary:
        frame.to_csv(temporary, index=False) if Path(path).suffix == ".csv" else frame.to_parquet(temporary)


def _write_netcdf(
    path: str | Path, signals: np.ndarray, node_ids: tuple[str, ...], unit: str, times: np.ndarray | None
) -> None:
    row, clock = ("sample", {}) if times is None else ("time", {"time": times})
    coords = {"node": list(node_ids), **clock}
    array = need_xarray().DataArray(signals, dims=(row, "node"), coords=coords, name="signals")
    array.attrs |= {"units": unit} if unit else {}
    with whole(path) as temporary:
        array.to_dataset().to_netcdf(temporary, engine="scipy")


WRITERS: dict[str, Callable[..., None]] = {
    ".npz": _write_signals_npz,
    ".csv": _write_frame,
    ".parquet": _write_frame,
    ".nc": _write_netcdf,
}
