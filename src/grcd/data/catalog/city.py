"""A small city that does not exist: a month of speeds at 20 sensors, every quarter of an hour, with gaps. Simulated.

Nothing here was measured. The city is made to have what a network of sensors has and an average does not: jams.

**Roads.** Four lead to the centre, with four sensors each, 2 km apart (``North 1`` is the innermost, 2 km from it). A
ring of four sensors, 3 km from the centre, is driven clockwise; it meets a road between its first two sensors, where
traffic goes on or turns. Edges of the graph weigh ``1 / km``, whichever way traffic goes.

**Speeds** of sensor ``v`` in row ``t``, in km/h, at least ``CRAWL``, rounded to a tenth:

    free_v (1 - max(rush_v(t), jam_v(t))) + weather(t) + noise_v(t)

``rush`` is a dip on workdays around 8:00 and 17:30, deeper on some days and at some sensors; weekends have a shallow
one in the afternoon. ``weather`` is common to all and slow; ``noise`` is independent, normal, of spread ``NOISE``.

**Jams** begin at a sensor and travel along the roads against the traffic, at ``JAM_SPEED``. One that begins at ``s`` at
the time ``b``, and lasts for ``l`` hours there, holds a sensor that is ``d`` km upstream

    from  b + d / JAM_SPEED  until  b + d / JAM_SPEED + l (1 - d / reach)        for d < reach

and takes ``depth`` of its speed. Of several the worst counts; a row has the mean over its quarter of an hour. They
begin at random, mostly in rush hours, on bad days more often: in the morning near the centre, in the afternoon on the
ring too. **Incidents** are jams that begin at any time, anywhere, and are deeper and longer.

**Gaps.** A sensor falls silent about once a week, for one to ten hours; beside that ``SCATTERED`` readings are lost.

All random numbers come from a stream that numpy has frozen (``RandomState``), and speeds are rounded: the data are the
same on every machine. A test holds their checksum, others hold them to what is said here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph

from ...graphs.graph import Graph
from .. import splits
from ..dataset import Dataset
from .named import Generated

ARMS, OUTWARD, APART = ("North", "East", "South", "West"), 4, 2.0  # roads, their sensors, km between those
CORNERS, RADIUS = ("N", "E", "S", "W"), 3.0  # of the ring
START, DAYS, PER_DAY = np.datetime64("2024-04-01T00:00", "s"), 30, 96  # a Monday
HOURS = 24 / PER_DAY  # a row
JAM_SPEED = 8.0  # km/h, against the traffic
NOISE, WEATHER, CRAWL = 1.2, 1.5, 4.0  # km/h
SCATTERED, SILENT_HOURS, SPELLS_A_DAY = 0.03, (1.0, 10.0), 1 / 7
SEED = 0


@dataclass(frozen=True, eq=False)
class Roads:
    """Where the sensors are, and how traffic gets from one to the next."""

    names: tuple[str, ...]
    place: np.ndarray  # (sensors, 2) km east and north of the centre
    downstream: sp.csr_array  # (sensors, sensors) km from a sensor to those that its traffic meets next

    @cached_property
    def upstream(self) -> np.ndarray:  # (sensors, sensors)
        """Km that a jam of a sensor (row) travels to another (column), against the traffic; infinite: it never does."""
        return np.asarray(csgraph.dijkstra(self.downstream.T))

    @property
    def graph(self) -> Graph:
        """For models, which do not know which way traffic goes."""
        near = self.downstream.copy()
        near.data = 1 / near.data
        origin = "the roads of a simulated city, 1 / km"
        return Graph.from_adjacency(near.maximum(near.T), self.names, coords=self.place, origin=origin)


def roads() -> Roads:
    """The city's."""
    names = [f"{arm} {k + 1}" for arm in ARMS for k in range(OUTWARD)] + [f"Ring {corner}" for corner in CORNERS]
    angle = np.pi / 2 - 2 * np.pi * np.arange(len(CORNERS)) / len(CORNERS)  # clockwise from the north
    out = APART * np.arange(1, OUTWARD + 1)
    towards = np.round(np.stack([np.cos(angle), np.sin(angle)], axis=1), 6)
    place = np.concatenate([*(out[:, None] * towards[arm] for arm in range(len(ARMS))), RADIUS * towards])
    at = {name: k for k, name in enumerate(names)}
    drives = [(f"{arm} {k + 1}", f"{arm} {k}") for arm in ARMS for k in range(1, OUTWARD)]
    drives += [(f"Ring {a}", f"Ring {b}") for a, b in zip(CORNERS, (*CORNERS[1:], CORNERS[0]), strict=True)]
    for arm, corner in zip(ARMS, CORNERS, strict=True):
        drives += [(f"Ring {corner}", f"{arm} 1"), (f"{arm} 2", f"Ring {corner}")]
    ends = np.array([(at[a], at[b]) for a, b in drives])
    km = np.round(np.linalg.norm(place[ends[:, 0]] - place[ends[:, 1]], axis=1), 3)
    return Roads(tuple(names), place, sp.csr_array((km, (ends[:, 0], ends[:, 1])), shape=2 * (len(names),)))


@dataclass(frozen=True)
class Jams:
    """One entry a jam."""

    at: np.ndarray  # the sensor where it begins
    begins: np.ndarray  # hours since the first row
    lasts: np.ndarray  # hours, where it begins
    reach: np.ndarray  # km upstream
    depth: np.ndarray  # share of the speed that it takes

    def severity(self, upstream: np.ndarray, rows: int) -> np.ndarray:  # (rows, sensors)
        """The share of the speed that the worst jam takes, as a mean over each row's quarter of an hour."""
        worst, begin = np.zeros((rows, len(upstream))), HOURS * np.arange(rows)[:, None]
        for at, begins, lasts, reach, depth in zip(
            self.at, self.begins, self.lasts, self.reach, self.depth, strict=True
        ):
            km = np.minimum(upstream[at], reach)  # at its reach it lasts for no time
            first = begins + km / JAM_SPEED
            last = first + lasts * (1 - km / reach)
            inside = np.minimum(begin + HOURS, last) - np.maximum(begin, first)
            worst = np.maximum(worst, depth * np.clip(inside / HOURS, 0, 1))
        return worst


def hump(hour: np.ndarray, middle: float, width: float) -> np.ndarray:
    """From 0 to 1 and back within ``width`` hours of ``middle``, smooth."""
    return np.clip(1 - ((hour - middle) / width) ** 2, 0, 1) ** 2


def demand(rows: int, bad: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # two of (rows,)
    """How much traffic there is, by how bad each day is: of mornings, and of afternoons."""
    day, hour = np.divmod(np.arange(rows), PER_DAY)
    hour, work = hour * HOURS, day % 7 < 5
    morning = np.where(work, hump(hour, 8.0, 2.5), 0.0)
    evening = np.where(work, hump(hour, 17.5, 3.0), 0.4 * hump(hour, 15.0, 4.0))
    return morning * bad[day], evening * bad[day]


def drawn_jams(random: np.random.RandomState, morning: np.ndarray, evening: np.ndarray) -> Jams:
    """In mornings mostly where roads reach the centre, in afternoons mostly on the ring; incidents anywhere."""
    arms, ring = len(ARMS) * OUTWARD, len(CORNERS)
    inner = np.concatenate([np.tile(np.array([3.0, 2.0, 1.0, 0.3]), len(ARMS)) / 4, np.full(ring, 0.3)])
    round_about = np.concatenate([np.tile(np.array([0.8, 0.6, 0.5, 0.3]), len(ARMS)) / 2, np.full(ring, 1.2)])
    ordinary = 0.05 * morning[:, None] * inner + 0.03 * evening[:, None] * round_about
    incident = np.full_like(ordinary, 2.2 / (arms + ring) / PER_DAY)  # two or so a day in the whole city
    u = random.random_sample(ordinary.shape)
    row, at = np.nonzero(u < ordinary + incident)
    deep = u[row, at] < incident[row, at]
    part = random.random_sample((4, len(row)))
    return Jams(
        at,
        begins=HOURS * (row + part[0]),
        lasts=1 + 2 * part[1] + 0.5 * deep,
        reach=5 + 6 * part[2],
        depth=0.5 + 0.25 * part[3] + 0.1 * deep,
    )


def drawn_gaps(random: np.random.RandomState, rows: int, sensors: int) -> np.ndarray:  # (rows, sensors) of bool
    """Spells of silence, and readings lost here and there."""
    least, most = (round(hours / HOURS) for hours in SILENT_HOURS)
    lost = random.random_sample((rows, sensors)) < SCATTERED
    row, sensor = np.nonzero(random.random_sample((rows, sensors)) < SPELLS_A_DAY / PER_DAY)
    for begin, at, u in zip(row, sensor, random.random_sample(len(row)), strict=True):
        lost[begin : begin + least + int(u * (most - least + 1)), at] = True
    return lost


def simulated(seed: int = SEED, days: int = DAYS) -> tuple[np.ndarray, np.ndarray]:  # two of (rows, sensors)
    """Speeds as they were, and which of them were lost."""
    random, city, rows = np.random.RandomState(seed), roads(), days * PER_DAY
    sensors = len(city.names)
    free = np.round(random.uniform(55, 75, sensors))
    busy = random.uniform(0.2, 0.35, sensors)
    bad = random.uniform(0.6, 1.4, days)
    morning, evening = demand(rows, bad)
    jams = drawn_jams(random, morning, evening)
    slowed = np.maximum(busy * (morning + evening)[:, None], jams.severity(city.upstream, rows))
    weather, drift = np.zeros(rows), random.standard_normal(rows)
    for row in range(1, rows):
        weather[row] = (
            0.98 * weather[row - 1] + 0.199 * drift[row]
        )  # a spread of one, and half of it left in nine hours
    speeds = free * (1 - slowed) + WEATHER * weather[:, None] + NOISE * random.standard_normal((rows, sensors))
    return np.round(np.maximum(speeds, CRAWL), 1), drawn_gaps(random, rows, sensors)


def load(seed: int = SEED, days: int = DAYS) -> Dataset:
    """A month of it, gaps left open."""
    speeds, lost = simulated(seed, days)
    values = np.where(lost, np.nan, speeds)
    times = START + np.arange(len(values)) * np.timedelta64(round(3600 * HOURS), "s")
    parts = splits.cut(len(values))
    train, val, test = (values[part] for part in parts.values())
    when = {name: times[part] for name, part in parts.items()}
    return Dataset("city", roads().graph, train, val, test, unit="km/h", times=when)


ABOUT = f"simulated, {len(ARMS) * OUTWARD + len(CORNERS)} road sensors for a month: rush hours, jams that travel, gaps"
DATASETS = [Generated(name="city", about=ABOUT, make=load)]
