"""AQI-36: PM2.5 at 36 stations in Beijing, hourly, May 2014 to April 2015, with the readings that everybody hides.

Published as three text tables: the readings, the same without those that the benchmark hides, and positions. The test
months are March, June, September and December; the last tenth of February, May, August and November validates, the rest
trains. What is scored are the hidden readings of the test months.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ...graphs.graph import Graph
from ..formats.npz import Archive
from ..formats.table import Table
from .named import Published
from .sources import Arrays, Files, Home, Pin, Source, UnusableFiles

AQI = "aqi36.npz"
GROUND, SHOWN, PLACES = "pm25_ground.txt", "pm25_missing.txt", "pm25_latlng.txt"
PRISTI = Home("LMZZML/PriSTI", "8ba37cc1a84cf706e767ae071101b3f02c921c9a", "data/pm25/SampleData")
TEST_MONTHS, VALIDATION_MONTHS = (3, 6, 9, 12), (2, 5, 8, 11)
PINS = {
    "pm25": Pin((8759, 36), "<f4", {None: "e2b4910998909ae6cd3dc2a0127d629ab5ea898f3a23e4d6986c07f97e64c06b"}),
    "hidden": Pin((8759, 36), "|b1", {None: "8cf50b95a0de2f2b6fff009537971d3ffbedabc3e7c8006bf5cd64cc0c568704"}),
    "station_ids": Pin((36,), "<U6", {None: "35fa67c8050fad6d84025baba930b8762f8f66915241ec698b880a89b4404073"}),
    "latitude": Pin((36,), "<f8", {None: "d82274df21697fa13a483874edc58733d48bf60424b2304c0f976450a015e6f5"}),
    "longitude": Pin((36,), "<f8", {None: "3e714a6b21a6812b8231a5819d9fa4685ae712d8cc81a1294eee9912d8488760"}),
    "timestamps": Pin((8759,), "<M8[m]", {None: "0ec0fa2771a5c84bd53875729432aad27cc2627489efa058702da2861b7fb0ce"}),
}


def read(folder: Path, symmetrize: str | None) -> tuple[Table, Graph]:
    """All readings, those that the benchmark hides too; the graph links the five nearest neighbours."""
    arrays = Archive(folder / AQI)
    ids = tuple(str(name) for name in arrays["station_ids"])
    times = arrays["timestamps"].astype("datetime64[ns]")
    places = np.stack([arrays["longitude"], arrays["latitude"]], axis=1)
    graph = Graph.from_coordinates(places, ids, k=5, metric="great-circle")
    return Table(arrays["pm25"], ids, times, by_month(times), unit="ug/m3"), graph


def hidden(folder: Path) -> np.ndarray:  # (rows, nodes)
    """The readings that the benchmark hides."""
    return Archive(folder / AQI)["hidden"]


def by_month(times: np.ndarray) -> np.ndarray:  # (rows,) of train, val, test
    """The split of each row."""
    months = times.astype("datetime64[M]")
    labels = np.full(len(times), "train", dtype=object)
    for month in np.unique(months):
        rows, number = np.flatnonzero(months == month), int(month.astype(int)) % 12 + 1
        if number in TEST_MONTHS:
            labels[rows] = "test"
        elif number in VALIDATION_MONTHS:
            labels[rows[len(rows) * 9 // 10 :]] = "val"
    return labels


# -- from the files as published --------------------------------------------------------------------------------------


def missing(files: Files) -> list[str]:
    """The raw files still wanted."""
    return [name for name in (GROUND, SHOWN, PLACES) if name not in files]


def assemble(files: Files) -> dict[str, Arrays]:
    """The one file of AQI-36, from the raw ones."""
    (ids, times, readings), (_, _, shown) = (_table(files[name]) for name in (GROUND, SHOWN))
    if readings.shape != shown.shape:
        raise UnusableFiles(
            f"{GROUND} and {SHOWN} of different sizes",
            "one table, and the same with gaps",
            "get both again",
            [files[GROUND], files[SHOWN]],
        )
    places = _places(files[PLACES], ids)
    return {
        AQI: {
            "pm25": readings,
            "hidden": ~np.isnan(readings) & np.isnan(shown),
            "station_ids": np.array(ids),
            "latitude": places[:, 0],
            "longitude": places[:, 1],
            "timestamps": times,
        }
    }


def faults(files: Mapping[str, Arrays]) -> list[str]:
    """What in the file is not as pinned."""
    return [f"{name} in {AQI}" for name, pin in PINS.items() if not pin.fits(files[AQI][name])]


def _table(path: Path) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Stations, times, and readings (rows, stations): an empty cell is a gap."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            (_, *ids), *rows = csv.reader(file)
        times = np.array([row[0].replace("/", "-") for row in rows], dtype="datetime64[m]")
        return ids, times, np.array([[float(cell or "nan") for cell in row[1:]] for row in rows], dtype=np.float32)
    except (OSError, ValueError, IndexError, csv.Error) as error:
        raise UnusableFiles(
            f"{path}, which cannot be used ({error})",
            "a header `datetime,001001,...`, then a time and a reading a station in every row",
            "get the file again",
            [path],
        ) from None


def _places(path: Path, ids: list[str]) -> np.ndarray:  # (stations, 2) latitude, longitude
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = {row["sensor_id"]: (float(row["latitude"]), float(row["longitude"])) for row in csv.DictReader(file)}
        return np.array([rows[name] for name in ids])
    except (OSError, ValueError, TypeError, KeyError, csv.Error) as error:
        raise UnusableFiles(
            f"{path}, which cannot be read or lacks a station or column ({error})",
            "the columns sensor_id, latitude, longitude and a row a station",
            "get the file again",
            [path],
        ) from None


SOURCE = Source(
    name="aqi36",
    raw=dict.fromkeys((GROUND, SHOWN, PLACES), PRISTI),
    files={AQI: tuple(PINS)},
    missing=missing,
    assemble=assemble,
    faults=faults,
    licence="From the repository LMZZML/PriSTI, which states no licence. Original: Urban Air; cite Yi et al., ST-MVL, "
    "IJCAI 2016.",
    by_hand="or save the three files anywhere and give their folder with --from FOLDER",
)
DATASETS = [
    Published(
        name="aqi36",
        about="PM2.5 at 36 stations in Beijing, hourly, May 2014 to April 2015 (grcd data get aqi36)",
        source=SOURCE,
        read=read,
        defaults={"split_by": "months"},
        channel="PM2.5",
        hidden=hidden,
    )
]
