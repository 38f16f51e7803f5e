"""METR-LA: traffic speeds in Los Angeles, 207 sensors, every five minutes, March to June 2012.

Published as speeds in 207 CSV files or in metr-la.h5, columns in the sensor order of DCRNN's adj_mx.pkl, which is the
graph, and positions in graph_sensor_locations.csv. Stored as codes into the 2,165 distinct speeds: lossless.

Some arrays are pinned twice, as published and rounded. The speeds are fractions k/n, n up to 10, but 205 of the 2,165
in the CSV files are one or two units in the last place away from the double nearest to k/n (2.333333333333333 for 7/3).
Why is not known, and other copies may have them right: that is the same data all the same.

It is taken exactly as the paper's figures pin it down: zeros are missing readings, filled forward and then backward,
70, 10 and 20 % of the rows, capped, weights made symmetric by half-sum. All of these are options of ``load_dataset``,
and what stands here is only their defaults: ``load_dataset("metr-la", fill="none")`` leaves the gaps open.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ...core.errors import InputError, some
from ...core.progress import bar
from ...graphs.graph import Graph
from ..formats import pickles
from ..formats.hdf5 import read_frame
from ..formats.npz import Archive
from ..formats.table import Table
from .named import Published, Setting
from .sources import Arrays, Files, Home, Pin, Source, UnusableFiles, reading

SPEED, GRAPH = "metr_la_speed.npz", "metr_la_graph.npz"
H5, PICKLE, LOCATIONS = "metr-la.h5", "adj_mx.pkl", "graph_sensor_locations.csv"
COLUMN = "urn_ngsi-ld_Sensor_TrafficLA_peed_{}.csv"  # one a sensor
PGAIN = Home("thanhquanse/PGAIN-VS", "f1bed1b48f18b6959442901e04d3b2fafde99854", "data/traffic_speed")
DCRNN = Home("liyaguang/DCRNN", "602afd9d767d3aa1c9b3eac51710d6aeee12c227", "data/sensor_graph")
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
}


def read(folder: Path, symmetrize: str | None) -> tuple[Table, Graph]:
    """From the two files; the graph is directed, so that ``symmetrize`` is needed."""
    speed, graph = (Archive(folder / name) for name in (SPEED, GRAPH))
    ids = tuple(str(name) for name in speed["sensor_ids"])
    values = speed["values"][speed["codes"]]
    times = speed["timestamps"].astype("datetime64[ns]")
    network = Graph.from_adjacency(
        graph["adjacency"],
        [str(name) for name in graph["sensor_ids"]],
        symmetrize,
        graph["coords"][:, ::-1],  # longitude to the right, latitude upwards
        "DCRNN's road-distance weights",
    )
    return Table(values, ids, times, unit="mph"), network


# -- from the files as published --------------------------------------------------------------------------------------


def missing(files: Files) -> list[str]:
    """The raw files still wanted. The sensors' files can only be named once the pickle, which lists them, is there."""
    graph = [name for name in (PICKLE, LOCATIONS) if name not in files]
    if graph or H5 in files:
        return graph
    return [name for name in map(COLUMN.format, _sensors(files[PICKLE])[0]) if name not in files]


def assemble(files: Files) -> dict[str, Arrays]:
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


def faults(files: Mapping[str, Arrays]) -> list[str]:
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
    wrong = [f"{pin} in {file}" for pin, (file, array) in arrays.items() if not PINS[pin].fits(array)]
    same = np.array_equal(speed["sensor_ids"], graph["sensor_ids"])
    return wrong + [f"sensor_ids in {GRAPH}"] * (not same)


def _sensors(path: Path) -> tuple[list[str], np.ndarray]:
    with reading(path):
        ids, weights = pickles.adjacency(path)
        # At once, not with the rest: names of files are made of these.
        if ids is None or not PINS["sensor_ids"].fits(np.array(ids)):
            raise InputError(f"{path} with other sensors than METR-LA's", "DCRNN's adj_mx.pkl", "get the file again")
        return ids, weights


def _from_h5(path: Path, ids: list[str]) -> tuple[np.ndarray, np.ndarray]:
    with reading(path):
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
            path, blamed = files[COLUMN.format(name)], {files[COLUMN.format(name)]}
            try:
                stamps, speeds = _column(path.read_text("utf-8"), name)
                if path == first:
                    clock, times = stamps, np.array(stamps, dtype="datetime64[s]")
                if stamps != clock:
                    blamed |= {first}  # either may be wrong
                    raise ValueError(f"its times are not those of {first}")
            except (OSError, ValueError) as error:
                raise UnusableFiles(
                    f"{path}, which cannot be used ({error})",
                    f"a header `timestamp,{name}`, then a time and a speed a row",
                    "get the file again",
                    [*blamed],
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
        raise UnusableFiles(
            f"{path}, which cannot be read or lacks a sensor or column ({error})",
            "the columns sensor_id, latitude, longitude and a row a sensor",
            "get the file again",
            [path],
        ) from None


SOURCE = Source(
    name="metr-la",
    raw={H5: None, PICKLE: DCRNN, LOCATIONS: DCRNN, COLUMN: PGAIN},
    files={
        SPEED: ("codes", "values", "sensor_ids", "timestamps"),
        GRAPH: ("adjacency", "sensor_ids", "coords"),
    },
    missing=missing,
    assemble=assemble,
    faults=faults,
    licence="METR-LA was published with DCRNN (github.com/liyaguang/DCRNN); that repository, which has the graph, "
    "is under the MIT licence and states no separate licence for the data. The speeds come from the repository "
    "thanhquanse/PGAIN-VS, which states none.",
    by_hand="The speeds come after that, 207 files. Give what you have with --from FILE or FOLDER: "
    f"{H5} in place of all CSV files, or the folder data/traffic_speed of a clone of "
    "https://github.com/thanhquanse/PGAIN-VS",
)
DATASETS = [
    Published(
        name="metr-la",
        about="traffic speeds in Los Angeles, 207 sensors, every 5 minutes, March to June 2012 (grcd data get metr-la)",
        setting=Setting(bounds="0,70", possible=(0.0, 120.0), near_zero_kappa=32.6356),  # mph
        channel="speed",
        source=SOURCE,
        read=read,
        defaults={
            "missing": (0.0,),
            "fill": "forward-backward",
            "symmetrize": "half-sum",
            "cap": (20_000, 3_000, 5_000),
        },
    )
]
