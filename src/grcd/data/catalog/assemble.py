"""METR-LA and Molene from the files they are published in, recognised and checked by sha256.

METR-LA    speeds from 207 CSV files or from metr-la.h5, columns in the sensor order of DCRNN's adj_mx.pkl, which is the
           graph; positions from graph_sensor_locations.csv. Stored as codes into the 2,165 distinct speeds: lossless.
Molene     temperatures and positions from a MATLAB file (v5 or v7.3) that is searched through: an array is known by its
           sum, not by its place. Kelvin become degrees C, rounded to 0.01, which undoes floating-point noise only.

A `Pin` is what an array must be. Some are pinned twice, as published and rounded. The speeds are fractions k/n, n up
to 10, but 205 of the 2,165 in the CSV files are one or two units in the last place away from the double nearest to k/n
(2.333333333333333 for 7/3). Why is not known, and other copies may have them right: that is the same data all the same.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...core.errors import InputError, some
from ...core.progress import bar
from ..formats import pickles
from ..formats.matlab import children, leaves, read_matlab

Arrays = dict[str, np.ndarray]
Files = Mapping[str, Path]  # raw files by the name they are published under

SPEED, GRAPH, MOLENE = "metr_la_speed.npz", "metr_la_graph.npz", "molene.npz"
H5, PICKLE, LOCATIONS = "metr-la.h5", "adj_mx.pkl", "graph_sensor_locations.csv"
COLUMN = "urn_ngsi-ld_Sensor_TrafficLA_peed_{}.csv"  # one a sensor
MATLAB = ("gsp_molene_data.mat", "grasp_molene_data.mat")
KELVIN = 273.15


@dataclass(frozen=True)
class Pin:
    """What an array must be: shape, type, and the sha256 of its bytes in C order, as it is or rounded to decimals."""

    shape: tuple[int, ...]
    dtype: str
    sums: dict[int | None, str]  # decimals (None: as it is) -> sha256

    def fits(self, array: np.ndarray) -> bool:
        if array.shape != self.shape or array.dtype.kind != np.dtype(self.dtype).kind:
            return False
        typed = array.astype(self.dtype)
        return np.array_equal(typed, array) and any(total == sha256(typed, d) for d, total in self.sums.items())


def sha256(array: np.ndarray, decimals: int | None = None) -> str:
    rounded = array if decimals is None else np.round(array, decimals) + 0.0  # no negative zeros
    return hashlib.sha256(np.ascontiguousarray(rounded).view(np.uint8).data).hexdigest()


PINS = {
    "speeds": Pin(
        (34_272, 207),
        "<f8",
        {
            None: "6c239ccb59c2968a8964643eaca4726fb51f00ec8646f1fb28e5e511b9020fd9",
            9: "920dd12631e3076447b64cc55226c99be3e3567ff0bd5c59625dac3836eeee74",
        },
    ),
    "timestamps": Pin((34_272,), "<M8[m]", {None: "306d7369b2cca094fb3ffdd0bcbf0599cb3ec23e3e600accc389344ae36a86df"}),
    "sensor_ids": Pin((207,), "<U6", {None: "8c3be645e972544265b83076fd4971d734b4e756be05ffed266bfd430fdd1b9b"}),
    "adjacency": Pin((207, 207), "<f4", {None: "dda879e31ba37b9f5b351639546197ab57c98812478895a496ef7fdb9004b698"}),
    "sensor coords": Pin((207, 2), "<f8", {5: "50cd751ca5ea0f74b9436080b116062e77d2010aed1cfc10ca891ea94a32dee9"}),
    "signals": Pin((744, 37), "<f8", {None: "e38aa66e2e54d9724cea87dd4a319d660cc8e47e6dd69350a092b3f6dbd46904"}),
    "coords": Pin(
        (37, 2),
        "<f8",
        {
            None: "38e3a2eeb4af071019fe8d0b97714706f7be730f1e13fc263dd70cbda62c92cb",
            0: "561703666b6fed224f883f5511f6bf485d57ed3e19241b89b16e858efe5ee31b",
        },
    ),
    "altitude": Pin((37,), "<f8", {0: "ae48cc76481ca07df255450a6a824dbbd76387f97993e98d893f1ba98ecf5d5b"}),
    "distances": Pin(
        (37, 37),
        "<f8",
        {
            None: "a4457a13ce6e2a3c5db2dec548de1d5eccf8a6d1da1018553439fb589cf49f1e",
            0: "aab44a3218d0a4baf02bdc8f1b845310c5098d9e1f8b2a2ab6edd06de96ff421",
        },
    ),
}


# -- METR-LA ---------------------------------------------------------------------------------------------------------


def metr_la_missing(files: Files) -> list[str]:
    """The raw files still wanted. The sensors' files can only be named once the pickle, which lists them, is there."""
    graph = [name for name in (PICKLE, LOCATIONS) if name not in files]
    if graph or H5 in files:
        return graph
    return [name for name in map(COLUMN.format, _sensors(files[PICKLE])[0]) if name not in files]


def metr_la(files: Files) -> dict[str, Arrays]:
    """The two files of METR-LA, from the raw ones."""
    ids, weights = _sensors(files[PICKLE])
    speeds, times = _from_h5(files[H5], ids) if H5 in files else _from_columns(files, ids)
    values = np.unique(speeds)
    codes = np.searchsorted(values, speeds).astype(np.uint16)  # three times as fast as unique's own inverse
    names, coords = np.array(ids), _locations(files[LOCATIONS], ids)
    return {
        SPEED: {"codes": codes, "values": values, "sensor_ids": names, "timestamps": times.astype("datetime64[m]")},
        GRAPH: {"adjacency": weights, "sensor_ids": names, "coords": coords},
    }


def metr_la_faults(files: Mapping[str, Arrays]) -> list[str]:
    """What in the two files is not as pinned."""
    speed, graph = files[SPEED], files[GRAPH]
    try:
        speeds = speed["values"][speed["codes"]]
    except IndexError:
        speeds = np.empty(0)
    arrays = {
        "speeds": (SPEED, speeds),
        "timestamps": (SPEED, speed["timestamps"]),
        "sensor_ids": (SPEED, speed["sensor_ids"]),
        "adjacency": (GRAPH, graph["adjacency"]),
        "sensor coords": (GRAPH, graph["coords"]),
    }
    faults = [f"{pin} in {file}" for pin, (file, array) in arrays.items() if not PINS[pin].fits(array)]
    same = np.array_equal(speed["sensor_ids"], graph["sensor_ids"])
    return faults + [f"sensor_ids in {GRAPH}"] * (not same)


def _sensors(path: Path) -> tuple[list[str], np.ndarray]:
    ids, weights = pickles.adjacency(path)
    # At once, not with the rest: names of files are made of these.
    if ids is None or not PINS["sensor_ids"].fits(np.array(ids)):
        raise InputError(f"{path} with other sensors than METR-LA's", "DCRNN's adj_mx.pkl", "get the file again")
    return ids, weights


def _from_h5(path: Path, ids: list[str]) -> tuple[np.ndarray, np.ndarray]:
    from ..formats.hdf5 import read_frame

    values, columns, times = read_frame(path)
    absent = sorted(set(ids) - set(columns))
    if absent or times is None:
        lack = f"the sensors {some(absent)}" if absent else "times"
        raise InputError(f"{path} without {lack}", "METR-LA's speeds, one column a sensor", "get metr-la.h5 again")
    return values[:, [columns.index(name) for name in ids]], times


def _from_columns(files: Files, ids: list[str]) -> tuple[np.ndarray, np.ndarray]:
    columns, first = [], files[COLUMN.format(ids[0])]
    with bar("reading", len(ids)) as advance:
        for done, name in enumerate(ids, 1):
            path = files[COLUMN.format(name)]
            try:
                stamps, speeds = _column(path.read_text("utf-8"), name)
                if path == first:
                    clock, times = stamps, np.array(stamps, dtype="datetime64[s]")
                if stamps != clock:
                    raise ValueError(f"its times are not those of {first}")
            except (OSError, ValueError) as error:
                raise InputError(
                    f"{path}, which cannot be used ({error})",
                    f"a header `timestamp,{name}`, then a time and a speed a row",
                    "get the file again",
                ) from None
            columns.append(speeds)
            advance(done, path.name)
    return np.stack(columns, axis=1), times


def _column(text: str, name: str) -> tuple[list[str], np.ndarray]:
    """Times and speeds of one sensor. Python's float is exact to the last bit, not every CSV parser's is."""
    cells = text.rstrip("\n").replace("\n", ",").split(",")
    if cells[:2] != ["timestamp", name] or len(cells) < 4 or len(cells) % 2:
        raise ValueError(f"it begins with {','.join(cells[:2])[:40]!r} and has {len(cells)} cells")
    return cells[2::2], np.array(list(map(float, cells[3::2])))


def _locations(path: Path, ids: list[str]) -> np.ndarray:  # (sensors, 2) latitude, longitude
    try:
        with path.open(newline="", encoding="utf-8") as file:
            places = {
                row["sensor_id"]: (float(row["latitude"]), float(row["longitude"])) for row in csv.DictReader(file)
            }
        return np.array([places[name] for name in ids])
    except (OSError, ValueError, TypeError, KeyError, csv.Error) as error:
        raise InputError(
            f"{path}, which cannot be read or lacks a sensor or column ({error})",
            "the columns sensor_id, latitude, longitude and a row a sensor",
            "get the file again",
        ) from None


# -- Molene ----------------------------------------------------------------------------------------------------------


def molene_missing(files: Files) -> list[str]:
    return [] if any(name in files for name in MATLAB) else [MATLAB[0]]


def molene(files: Files) -> dict[str, Arrays]:
    """The file of Molene: what the MATLAB file has of it, and nothing that it has not."""
    path = next(files[name] for name in MATLAB if name in files)
    tree = read_matlab(path)
    graph = _holder(tree)
    if graph is None:
        raise InputError(f"{path} without the pinned temperatures", "Molene's 744 hours at 37 stations", "get it again")
    found = {"signals": _first(graph, "signals")}
    for pin in ("coords", "altitude", "distances"):
        # Beside the temperatures first: the other graphs of the file have positions of their own.
        array = _first(graph, pin)
        found[pin] = _first(tree, pin) if array is None else array
    if found["coords"] is None:
        raise InputError(f"{path} without the pinned positions", "the positions of the 37 stations", "get it again")
    found["station_names"] = _names(graph)
    return {MOLENE: {name: array for name, array in found.items() if array is not None}}


def molene_faults(files: Mapping[str, Arrays]) -> list[str]:
    """What in the file is not as pinned; altitudes and distances may be absent."""
    arrays = files[MOLENE]
    pins = ["signals", "coords"] + [pin for pin in ("altitude", "distances") if pin in arrays]
    return [f"{pin} in {MOLENE}" for pin in pins if not PINS[pin].fits(arrays[pin])]


def _first(tree: object, pin: str) -> np.ndarray | None:
    """The first array in the tree that is the pinned one, in any of its readings."""
    readings = (array for leaf in leaves(tree) if isinstance(leaf, np.ndarray) for array in _readings(leaf, pin))
    return next((np.ascontiguousarray(array) for array in readings if PINS[pin].fits(array)), None)


def _readings(leaf: np.ndarray, pin: str) -> Iterator[np.ndarray]:
    """MATLAB's arrays may be transposed, positions may have a third coordinate, and vectors are matrices to it."""
    for array in (leaf, leaf.T):
        if pin == "signals":
            if array.shape == PINS[pin].shape:
                yield np.round(array - KELVIN, 2) + 0.0
        elif pin == "coords":
            yield array[..., :2]
        elif pin == "altitude" and array.ndim == 2:
            yield from array.T
        else:
            yield array


def _holder(tree: object) -> dict | None:
    """The innermost struct that holds the temperatures."""
    inner = next((found for child in children(tree) if (found := _holder(child)) is not None), None)
    return inner or (tree if isinstance(tree, dict) and _first(tree, "signals") is not None else None)


def _names(graph: dict) -> np.ndarray | None:
    """The stations' names: a cell of as many texts as there are stations, all different."""
    stations = PINS["coords"].shape[0]
    cells = ([text.strip() for text in leaf] for leaf in leaves(graph) if _is_text(leaf))
    return next((np.array(cell) for cell in cells if len(cell) == len(set(cell)) == stations), None)


def _is_text(leaf: object) -> bool:
    return isinstance(leaf, list) and all(isinstance(text, str) for text in leaf)
