"""Beijing: six pollutants and five variables of the weather at 12 stations, hourly, March 2013 to February 2017.

Published as a CSV file a station (UCI, "Beijing Multi-Site Air Quality"). The wind direction, which is text, is left
out. The positions in those files are wrong (they lie in Taiwan): the right ones, of the city's public list, are in a
table of the user's with the columns station, latitude and longitude.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ...core.progress import bar
from ...graphs.graph import Graph
from ..channels import Channels
from ..formats.npz import Archive
from ..formats.table import Table
from .named import Published
from .sources import Arrays, Files, Home, Pin, Source, UnusableFiles

BEIJING, FILE = "beijing.npz", "PRSA_Data_{}_20130301-20170228.csv"
UCI = Home("MaureenOShea/SemesterProject2", "b3ff30d9b1eef7aff67d401511fb33b316463389", "data")
NAMES = (
    "Aotizhongxin Changping Dingling Dongsi Guanyuan Gucheng Huairou Nongzhanguan Shunyi Tiantan Wanliu Wanshouxigong"
)
STATIONS, PLACES = tuple(NAMES.split()), "beijing_stations.csv"
UNITS = dict.fromkeys(("PM2.5", "PM10", "SO2", "NO2", "CO", "O3"), "ug/m3")
UNITS |= {"TEMP": "degC", "PRES": "hPa", "DEWP": "degC", "RAIN": "mm", "WSPM": "m/s"}
PINS = {
    "values": Pin((35_064, 12, 11), "<f4", {None: "1255c71da046c53752aca89bd5f009d3835da1b253ebaa772f939908a6d8b654"}),
    "channels": Pin((11,), "<U5", {None: "4688e20fc5d503ff58a436744491abce205c1cd6930f54f881eccb27430854ac"}),
    "units": Pin((11,), "<U5", {None: "c1f4773aa70962023c999e9078216ba5ffc4c7c8936d950fa6c9d622310701cb"}),
    "station_ids": Pin((12,), "<U13", {None: "75e3c8b1dbdf8e96c539a01ca6facf0daf274557f47b9f6d683cc11e68acbb1c"}),
    "latitude": Pin((12,), "<f8", {None: "0731b7e438aaec4541eaf49a560cdfe0ac60db89010ebbeb5e17d4b6c8995895"}),
    "longitude": Pin((12,), "<f8", {None: "154205b40cddb5f71cd093cd996002bb3132791a71eab62fee3bf98f0fd2f86a"}),
    "timestamps": Pin((35_064,), "<M8[m]", {None: "028f449b8a9721478660300c9d50f77146351d9c34eb93f776a37ebfb6a7412c"}),
}


def read(folder: Path, symmetrize: str | None) -> tuple[Table, Graph]:
    """PM2.5, the first channel; the graph links the five nearest neighbours."""
    first = channels(folder)
    arrays = Archive(folder / BEIJING)
    places = np.stack([arrays["longitude"], arrays["latitude"]], axis=1)
    graph = Graph.from_coordinates(places, first.node_ids, k=5, metric="great-circle")
    return Table(first.values[:, :, 0].copy(), first.node_ids, first.times, unit=first.units[0]), graph


def channels(folder: Path) -> Channels:
    """All that was measured."""
    arrays = Archive(folder / BEIJING)
    names, units, ids = (tuple(map(str, arrays[key])) for key in ("channels", "units", "station_ids"))
    return Channels(arrays["values"], names, units, ids, arrays["timestamps"].astype("datetime64[ns]"))


# -- from the files as published --------------------------------------------------------------------------------------


def missing(files: Files) -> list[str]:
    """The raw files still wanted."""
    return [name for name in (*map(FILE.format, STATIONS), PLACES) if name not in files]


def assemble(files: Files) -> dict[str, Arrays]:
    """The one file of Beijing, from those of the stations."""
    values, clock = [], None
    with bar("reading", len(STATIONS)) as advance:
        for done, name in enumerate(STATIONS, 1):
            path = files[FILE.format(name)]
            times, readings = _station(path)
            clock = times if clock is None else clock
            if not np.array_equal(times, clock):
                what = f"{path}, whose times are not those of the other stations"
                raise UnusableFiles(what, "an hour a row, from 2013-03-01 on", "get the file again", [path])
            values.append(readings)
            advance(done, path.name)
    assert clock is not None
    places = _places(files[PLACES])
    return {
        BEIJING: {
            "values": np.stack(values, axis=1),
            "channels": np.array(list(UNITS)),
            "units": np.array(list(UNITS.values())),
            "station_ids": np.array(STATIONS),
            "latitude": places[:, 0],
            "longitude": places[:, 1],
            "timestamps": clock,
        }
    }


def faults(files: Mapping[str, Arrays]) -> list[str]:
    """What in the file is not as pinned."""
    return [f"{name} in {BEIJING}" for name, pin in PINS.items() if not pin.fits(files[BEIJING][name])]


def _places(path: Path) -> np.ndarray:  # (stations, 2)
    """Latitudes and longitudes of the stations."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = {row["station"]: (row["latitude"], row["longitude"]) for row in csv.DictReader(file)}
        return np.array([[float(cell) for cell in rows[name]] for name in STATIONS])
    except (OSError, ValueError, KeyError, TypeError, csv.Error) as error:
        expected = "the columns station, latitude, longitude, and a row for each of the 12 stations"
        raise UnusableFiles(f"{path}, which cannot be used ({error})", expected, "complete it", [path]) from None


def _station(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Times, and readings (rows, channels): NA is a gap."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            header, *rows = csv.reader(file)
        year, month, day, hour = (header.index(part) for part in ("year", "month", "day", "hour"))
        stamps = [f"{r[year]}-{int(r[month]):02}-{int(r[day]):02}T{int(r[hour]):02}:00" for r in rows]
        columns = [header.index(name) for name in UNITS]
        cells = [[float("nan" if r[place] == "NA" else r[place]) for place in columns] for r in rows]
        return np.array(stamps, dtype="datetime64[m]"), np.array(cells, dtype=np.float32)
    except (OSError, ValueError, IndexError, csv.Error) as error:
        raise UnusableFiles(
            f"{path}, which cannot be used ({error})",
            f"the columns year, month, day, hour, {', '.join(UNITS)}",
            "get the file again",
            [path],
        ) from None


SOURCE = Source(
    name="beijing",
    raw={**dict.fromkeys(map(FILE.format, STATIONS), UCI), PLACES: None},
    files={BEIJING: tuple(PINS)},
    missing=missing,
    assemble=assemble,
    faults=faults,
    licence='CC BY 4.0: UCI data set "Beijing Multi-Site Air Quality"; cite S. Zhang et al., Proceedings of the Royal '
    "Society A 473, 2017, doi 10.1098/rspa.2017.0457.",
    by_hand=f"or save the 12 files anywhere and give their folder with --from FOLDER; {PLACES} you have to make",
)
DATASETS = [
    Published(
        name="beijing",
        about="11 channels at 12 stations in Beijing, hourly, 2013 to 2017; moments are PM2.5 (grcd data get beijing)",
        source=SOURCE,
        read=read,
        channel="PM2.5",
        channels=channels,
    )
]
