"""What gaps are filled with: our candidates beside simple competitors, on readings that were hidden in held-out rows.

Our **candidates**, from the smallest: ``columns``, every node by itself between its mean and a line in time (see
``tasks/columns``); ``moments``, every row by itself (see ``tasks/moments``); the ``reference``; and the network
(``diffusion``). Beside them the **competitors** that anybody can have: the column's mean, the calendar's, a line in
time, the nearest rows, the iterative imputer. Readings are hidden in several families (see ``hiding``), for what is
best at one need not be at another, and each has a winner of ours (see ``winners``).

**Several variables** have one winner, but for those in which another candidate without a network is nearer by more than
a standard error: that fills them.

**Chance.** Errors in rows near each other are alike, and so are those of one silent sensor: they count once, as a
group (see ``metrics/chance``). A competitor **is ahead** in a family where its mean absolute error is lower by more
than chance; else nobody is.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from ..core.errors import InputError, InputWarning
from ..core.progress import bar, quiet
from ..core.tables import aligned, number
from ..metrics.chance import chance, standard_error
from ..tasks.columns import Columns
from ..tasks.moments import Moments
from . import competitors
from .guesses import Guesses
from .hiding import KINDS, OUTAGES

COLUMNS, MOMENTS, REFERENCE, NETWORK = "columns", "moments", "reference", "diffusion"
OURS = (COLUMNS, MOMENTS, REFERENCE, NETWORK)
SIMPLE = ("mean", "calendar", "line", "neighbours", "iterative", "regression")
OF_TIME, KNOWS = ("calendar", "line"), "; a model of windows knows of time (--window T, in Python window=T)"
TITLES = {
    **{name: competitors.TITLES[name] for name in SIMPLE},
    COLUMNS: "ours: node by node",
    MOMENTS: "ours: row by row",
    REFERENCE: "ours: the reference",
    NETWORK: "ours: the network",
}
WORDS = {
    **{"points": "scattered readings", "spells": "silent spells", "sensors": "silent sensors"},
    **{"channels": "single silent variables", OUTAGES: "rows of which nothing was read", "future": "rows to come"},
}
Process = Columns | Moments
PROCESSES: dict[str, type[Process]] = {COLUMNS: Columns, MOMENTS: Moments}
Way = tuple[str, Process | None]  # a candidate, with its process if it has one
Found = tuple[Guesses, Guesses, dict[str, Process]]  # on all held-out rows, on those of validation; and the processes
SLIGHT = 0.02  # of an error: a competitor that is nearer by less, and not more than chance, is as near
HARDLY = 0.002  # of an error: by less nobody is ahead, for certain as it may be
ABREAST = 3  # families beside each other in a table
LITTLE = 10  # groups of rows below which it is said that they say little


@dataclass(frozen=True)
class Family:
    """How one family of hidden readings was filled."""

    errors: dict[str, dict[str, float]]  # by method: mae, crps, cover_90
    won: str  # of ours
    rival: str  # the best competitor
    ours: float  # mean absolute error of the winner,
    theirs: float  # of the best competitor in the same readings,
    noise: float | None  # and what chance makes of their difference; None where it cannot be told
    readings: int
    groups: int  # of rows, whose errors are alike
    columns: dict[str, list[float]] = field(default_factory=dict)  # see ``tasks/columns``
    moments: dict[str, float] = field(default_factory=dict)  # see ``tasks/moments``; empty where there are none
    validated: dict[str, dict[str, float]] = field(default_factory=dict)  # on validation rows alone, with the network
    behind: dict[str, list[Any]] = field(default_factory=dict)  # where not in all channels: rival, ours, theirs of each
    apart: dict[str, str] = field(default_factory=dict)  # by channel: of ours, where it is not the one that won

    @property
    def ahead(self) -> int:
        """1 where ours is by more than chance, -1 where the competitor is, else 0."""
        gain = self.theirs - self.ours
        return 0 if self.noise is None or abs(gain) <= self.noise else int(np.sign(gain))

    @classmethod
    def of(cls, found: Found, small: str, network: bool, by_channel: bool = True) -> Family:
        """What was ``found`` on held-out rows has all methods but the network's, on those of validation all; where all
        rows validate they are the same. ``small`` is the best of ours without a network; ``network``: whether that is
        better; ``by_channel``: whether channels may have a winner of their own."""
        held, validated, processes = found
        won, on = (NETWORK, validated) if network else (small, held)
        rival = min((name for name in SIMPLE if name in on.draws), key=lambda name: on.off(name).mean())
        apart = dict(_apart(on, won)) if by_channel else {}
        own_off, off = _own_off(on, won, apart), on.off(rival)
        noise = chance(off - own_off, on.group)
        errors = {name: _errors(held, name) for name in held.draws}
        alone = dict[str, dict[str, float]]()
        if NETWORK in validated.draws and NETWORK not in errors:
            errors[NETWORK] = _errors(validated, NETWORK)
            alone = {small: _errors(validated, small)}
        known = noise if np.isfinite(noise) else None
        count = len(held), len(np.unique(held.group))
        own = {name: process.to_dict() for name, process in processes.items()}
        means, behind = (float(own_off.mean()), float(off.mean())), dict(_behind(on, own_off))
        return cls(errors, won, rival, *means, known, *count, validated=alone, behind=behind, apart=apart, **own)  # type: ignore[arg-type]

    @property
    def smaller(self) -> bool:
        """Whether a larger candidate has a lower error, and was not taken."""
        own = [name for name in OURS if name in self.errors]
        return any(self.errors[name]["mae"] < self.errors[self.won]["mae"] for name in own[own.index(self.won) + 1 :])

    @property
    def tuned(self) -> list[str]:
        """Candidates with numbers that were chosen on the readings that they are judged by; the mean with the spread of
        training rows has none."""
        columns = any(self.columns.get("rho", ())) or any(spread != 1 for spread in self.columns.get("spread", ()))
        return [COLUMNS] * columns + [MOMENTS] * bool(self.moments)

    def way(self, channel: int | None = None) -> Way:
        """The winner, or that of a channel, with its process if it has one."""
        won = self.apart.get(str(channel), self.won)
        own = PROCESSES.get(won)
        return won, None if own is None else own.of(getattr(self, won))


@dataclass(frozen=True)
class Contest:
    """All families; ``rows`` were held out, ``stretches`` of them by models that were fitted to the others."""

    families: dict[str, Family]
    rows: int
    stretches: int  # of training rows, beside those of validation
    unit: str
    channels: list[str] = field(default_factory=list)  # their names, where there are several
    future: Family | None = None  # rows to come, after so many as a forecast sees; None where there are none
    horizon: int = 0  # how many
    single: bool = False  # of a model that takes every row by itself

    def to_dict(self) -> dict[str, Any]:
        """For a file."""
        return asdict(self)

    @classmethod
    def from_dict(cls, numbers: dict[str, Any]) -> Contest:
        """The way back."""
        families = {name: Family(**family) for name, family in numbers["families"].items()}
        ahead = Family(**numbers["future"]) if numbers.get("future") else None
        return cls(**numbers | {"families": families, "future": ahead})

    def near(self, family: str) -> Family:
        """A family, or the one nearest to it that was tried."""
        if family in self.families:
            return self.families[family]
        place = KINDS.index("spells" if family == OUTAGES else family)
        return self.families[min(self.families, key=lambda name: abs(KINDS.index(name) - place))]

    def lost(self) -> dict[str, list[str]]:
        """Where a competitor is ahead, or seems to be by more than ``SLIGHT``: by how much, in sentences, by family."""
        words = dict[str, list[str]]()
        for name, family in (self.families | ({"future": self.future} if self.future else {})).items():
            more = family.ours / max(family.theirs, 1e-300) - 1
            if (family.ahead < 0 and more > HARDLY) or more > SLIGHT:
                told = "" if family.ahead < 0 else "; which may be chance"
                said = self._nearer(name, family.rival, family.won, family.ours, family.theirs) + told
                words.setdefault(name, []).append(said)
            for channel, (rival, ours, theirs) in family.behind.items():
                won, of = family.way(int(channel))[0], f" of {self.channels[int(channel)]}"
                words.setdefault(name, []).append(self._nearer(name, rival, won, ours, theirs, of))
        return words

    def _nearer(self, family: str, rival: str, won: str, ours: float, theirs: float, of: str = "") -> str:
        more = ours / max(theirs, 1e-300) - 1
        share = f"{more:.0%}" if more >= 0.01 else f"{more:.1%}"
        knows = KNOWS if self.single and rival in OF_TIME else ""
        return (
            f"{_title(rival, family)} is nearer to {WORDS[family]}{of} than {TITLES[won]}, in held-out rows: "
            f"mean error {number(theirs)} against {number(ours)}{self.unit} ({share} more){knows}"
        )

    def ways(self, families: np.ndarray) -> dict[Way, np.ndarray]:
        """What the gaps of a table are filled by: a candidate, with its process if it has one, and where; of gaps by
        family (any shape; see ``hiding.families``)."""
        ways = dict[Way, np.ndarray]()
        for place, name in enumerate(KINDS):
            where = families == place
            family = self.near(name)
            for channel in map(int, family.apart):
                own = where & (np.arange(where.shape[-1]) == channel)
                _put(ways, family.way(channel), own)
                where = where & ~own
            _put(ways, family.way(), where)
        return ways

    def with_outages(self) -> Contest:
        """Of a model of windows that did not try outages (an older run): as spells, but never row by row, since rows of
        which nothing was read say nothing of themselves."""
        near = self.near(OUTAGES)
        if self.single or OUTAGES in self.families or MOMENTS not in {near.won, *near.apart.values()}:
            return self
        own = replace(near, won=REFERENCE if near.won == MOMENTS else near.won, apart={})
        return replace(self, families=self.families | {OUTAGES: own})

    def warn(self, families: np.ndarray) -> None:
        """Say so where a competitor is ahead in families of these gaps."""
        there = {name for place, name in enumerate(KINDS) if (families == place).any()}
        for name, sentences in self.lost().items():
            for words in sentences if name in there else ():
                warnings.warn(words, InputWarning, stacklevel=4)

    def outlook(self, horizon: int = 0) -> tuple[str, Process | None]:
        """What foretells, "diffusion" unless another one of ours was better; where a competitor is, that is said, and
        that rows are further ahead than those that were compared."""
        if self.future is None:
            return NETWORK, None
        if horizon > self.horizon:
            what = f"{horizon} rows to come, and training compared the first {self.horizon} alone"
            do = "beyond them neither errors nor intervals were tried"
            warnings.warn(f"{what}: {do} (a longer window tries more)", InputWarning, stacklevel=4)
        for words in self.lost().get("future", ()):
            warnings.warn(words, InputWarning, stacklevel=4)
        return self.future.way()

    def lines(self) -> Iterator[str]:
        """For a screen: a table of all methods and families, and what is used."""
        names = list(self.families)
        methods = [name for name in TITLES if any(name in family.errors for family in self.families.values())]
        several = f" and {self.stretches} stretches of training rows" if self.stretches else ""
        yield f"hidden of {self.rows:,} rows of validation{several}, and filled:"
        for some in (names[first : first + ABREAST] for first in range(0, len(names), ABREAST)):
            head = [["", *(cell for name in some for cell in (name, "", ""))]]
            head.append(["", *(cell for _ in some for cell in (f"MAE{self.unit}", "CRPS", "in 90 %"))])
            yield from aligned([*head, *(self._line(method, some) for method in methods)], 10).splitlines()
        yield f"* is used by impute (--posterior auto): {self.used()}"
        if any(family.smaller for family in self.families.values()):
            yield "a larger candidate of ours with a lower error is not used where it gains no more than chance may"
        if absent := [TITLES[name] for name in SIMPLE if name not in methods and name != "calendar"]:
            yield f"{_listed(absent)}: not asked, there are too many columns"
        chosen = {name for family in self.families.values() for name in family.tuned}
        if tuned := [TITLES[name].removeprefix("ours: ") for name in OURS if name in chosen]:
            yield (
                f"{_listed(tuned)}: shrinkage and spread were chosen on these same held-out rows, which flatters; "
                "competitors have nothing to choose"
            )
        for name, family in self.families.items():
            if family.validated:
                (beside, errors), *_ = family.validated.items()
                yield (
                    f"{name}: the network on validation rows alone, where {TITLES[beside].removeprefix('ours: ')} has "
                    f"MAE {number(errors['mae'])}, CRPS {number(errors['crps'])}"
                )
        if self.future is not None:
            yield from self._foretold(self.future)
        yield from (words for sentences in self.lost().values() for words in sentences)
        few = min(family.groups for family in self.families.values())
        if few < LITTLE:
            yield f"{self.rows:,} rows, {few} that do not lie near each other, say little"

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def used(self) -> str:
        """As "the reference for sensors, the network for points and spells; of level: node by node for points"."""
        words = _by_winner({name: family.won for name, family in self.families.items()})
        for k, channel in enumerate(self.channels):
            if own := {name: each.apart[str(k)] for name, each in self.families.items() if str(k) in each.apart}:
                words += f"; of {channel}: {_by_winner(own)}"
        return words

    def _foretold(self, future: Family) -> Iterator[str]:
        """In a line."""
        rows = "row" if self.horizon == 1 else f"{self.horizon} rows"
        each = [
            f"{_title(name, 'future').removeprefix('ours: ')} {'*' * (name == future.won)}{number(errors['mae'])}"
            for name in TITLES
            if (errors := future.errors.get(name)) is not None
        ]
        inside = f"{future.errors[future.won]['cover_90']:.0%}"
        yield f"the next {rows} foretold, MAE{self.unit}: {', '.join(each)}"
        yield f"* is used by forecast (--posterior auto); its 90 % intervals hold {inside} of them"

    def _line(self, method: str, names: Sequence[str]) -> list[str]:
        cells = list[str]()
        for family in (self.families[name] for name in names):
            errors = family.errors.get(method)
            if errors is None:
                cells += ["-", "-", "-"]
                continue
            star = "*" if family.won == method else ""
            inside = f"{errors['cover_90']:.0%}" if method in OURS else "-"
            cells += [star + number(errors["mae"]), number(errors["crps"]), inside]
        return [TITLES[method], *cells]


def _apart(on: Guesses, won: str) -> Iterator[tuple[str, str]]:
    """Channels of several in which another one of ours is nearer by more than a standard error."""
    for channel, where in _channels(on):
        part = on.of(where)
        others = [name for name in OURS if name in part.draws and name != NETWORK]
        best = min(others, key=lambda name: part.loss(name).mean())
        gain = part.loss(won) - part.loss(best)
        if gain.mean() > standard_error(gain, part.group):
            yield channel, best


def _own_off(on: Guesses, won: str, apart: Mapping[str, str]) -> np.ndarray:  # (readings,)
    """How far what fills each channel is from each reading."""
    off = on.off(won)
    for channel, name in apart.items():
        off = np.where(on.channel == int(channel), on.off(name), off)
    return off


def _behind(on: Guesses, off: np.ndarray) -> Iterator[tuple[str, list[Any]]]:
    """Channels of several in which a competitor is ahead, by more than chance, of ours, which is ``off`` by so much."""
    for channel, where in _channels(on):
        part, own = on.of(where), off[where]
        rival = min((name for name in SIMPLE if name in part.draws), key=lambda name: part.off(name).mean())
        gain = own - part.off(rival)
        if gain.mean() > max(chance(gain, part.group), HARDLY * part.off(rival).mean()):
            yield channel, [rival, float(own.mean()), float(part.off(rival).mean())]


def _channels(on: Guesses) -> Iterator[tuple[str, np.ndarray]]:
    """Each of several, and where its readings are."""
    channels = np.unique(on.channel)
    for channel in channels if len(channels) > 1 else ():
        yield str(channel), on.channel == channel


def _put(ways: dict[Way, np.ndarray], way: Way, where: np.ndarray) -> None:
    """One more place that is filled so, if there is any."""
    if where.any():
        ways[way] = ways.get(way, False) | where


def _by_winner(won: Mapping[str, str]) -> str:
    """As "node by node for points, the reference for spells and sensors", from the smallest."""
    by = {name: [family for family, winner in won.items() if winner == name] for name in OURS}
    return ", ".join(
        f"{TITLES[name].removeprefix('ours: ')} for {_listed(which)}" for name, which in by.items() if which
    )


def _title(method: str, family: str) -> str:
    """Beyond the last reading a line is the last value."""
    return competitors.TITLES["last"] if (method, family) == ("line", "future") else TITLES[method]


def _listed(names: list[str]) -> str:
    """As "points, spells and sensors"."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def ways(contest: Contest | None, posterior: str, families: np.ndarray) -> dict[Way, np.ndarray]:
    """What gaps by family are filled by, and where: for "auto" each by the candidate that won at its kind, and it is
    said where a competitor is ahead; else all by a candidate that was tried, which has numbers of its own for each
    kind. Empty for "auto" where there was no contest."""
    if posterior == "auto":
        if contest is not None:
            contest.warn(families)
        return {} if contest is None else contest.with_outages().ways(families)
    tried = {} if contest is None else contest.families
    own = {
        name: replace(family, won=posterior, apart={}) for name, family in tried.items() if getattr(family, posterior)
    }
    if contest is None or not own:
        got = f"posterior {posterior!r} of a run that did not try it at the end of training"
        why = "train it again" if contest is None else "trainings try it where there are rows enough"
        raise InputError(got, "one of auto, diffusion, reference", f"take auto; {why}")
    return replace(contest, families=own).ways(families)


def merged(
    parts: Mapping[Way, Iterator[tuple[np.ndarray, np.ndarray]]], ways: Mapping[Way, np.ndarray]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Fillings of the same rows in several ways, each where it is wanted (rows, ...); with one bar for all of them."""
    (first, where), *_ = ways.items()
    others, done = [way for way in parts if way != first], 0
    with bar("filling", len(where)) as advance, quiet():
        for (rows, drawn), *more in zip(parts[first], *(parts[way] for way in others), strict=True):
            for way, (same, other) in zip(others, more, strict=True):
                assert np.array_equal(rows, same)
                drawn = np.where(ways[way][rows], other, drawn)
            done += len(rows)
            advance(done, "")
            yield rows, drawn


def _errors(guesses: Guesses, method: str) -> dict[str, float]:
    errors = guesses.errors(method)
    return {name: float(errors[name]) for name in ("mae", "crps", "cover_90")}
