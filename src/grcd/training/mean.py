"""The mean and the spread of rows, by the calendar and by covariates: what was learned, and is kept in a run.

The calendar is that of the times as they stand, the user's clock (see ``data.clock``). How it was chosen: ``means``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..core.errors import InputError, some
from ..data.clock import Clock
from ..data.covariates import Covariates
from ..references.calendar import WEEK, CalendarMean


@dataclass(frozen=True)
class Terms:
    """What a mean is made of."""

    clock: bool = False  # the time of day, and working day or weekend
    week: bool = False  # the day of the week
    spread: bool = False  # by the clock
    year: bool = False
    covariates: tuple[str, ...] = ()

    @property
    def calendar(self) -> str:
        """In words."""
        words = {"mean": self.clock, "day of week": self.week, "year": self.year, "spread": self.spread}
        kept = [word for word, yes in words.items() if yes]
        return " and ".join([", ".join(kept[:-1]), kept[-1]] if len(kept) > 1 else kept) or "none"


WORDS = {"mean": "time of day and weekend", "spread": "spread by the time of day"}


def in_words(calendar: str | None) -> str:
    """What ``Terms.calendar`` says was kept, for people; empty where nothing was."""
    kept = (calendar or "none").replace(" and ", ", ").split(", ")
    return "" if kept == ["none"] else ", ".join(WORDS.get(word, word) for word in kept)


@dataclass(frozen=True, eq=False)
class Mean:
    """The mean and the spread of rows by their times and covariates, and what a network is told of them."""

    clock: Clock
    terms: Terms
    by_calendar: bool  # whether the network is told of the calendar
    usual: np.ndarray  # (4, covariates): mean, spread, least and most of those kept, over training rows
    table: CalendarMean

    @property
    def covariates(self) -> tuple[str, ...]:
        """The names of those kept."""
        return self.terms.covariates

    @property
    def told(self) -> int:
        """How many numbers the network is told of a row."""
        by_calendar = len(self.clock.names) + WEEK * self.terms.week
        return by_calendar * self.by_calendar + len(self.covariates)

    def rows(
        self, times: np.ndarray | None, rows: int, covariates: Covariates | np.ndarray | None = None, first: int = 0
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Mean, spread (rows, columns) and what the network is told (rows, features) of rows at these times.

        ``covariates`` are a table that has those kept, in which rows without times begin at ``first``; or the numbers
        of these rows (rows, covariates), in the order of ``self.covariates``.
        """
        calendar = RowCalendar.of(self.clock, times, rows, self.table.mean.device)
        known = torch.from_numpy(scored(self._numbers(times, rows, covariates, first), self.usual)).to(self.table.mean)
        slot, kind = calendar.cell(self.terms)
        mean, spread = self.table.rows(slot, kind, calendar.features(self.terms, known))
        return mean, spread, calendar.told(self.terms, self.by_calendar, known)

    def _numbers(
        self, times: np.ndarray | None, rows: int, covariates: Covariates | np.ndarray | None, first: int
    ) -> np.ndarray:  # (rows, covariates)
        names = self.covariates
        if not names:
            return np.zeros((rows, 0))
        if covariates is None:
            do = "give them for all rows, those to come too (--covariates)"
            raise InputError("no covariates", f"{some(names)}, which the model was trained with", do)
        if isinstance(covariates, Covariates):
            return covariates.named(names).at(times, rows, first)
        if np.shape(covariates) != (rows, len(names)):
            raise InputError(
                f"covariates of shape {np.shape(covariates)}", f"{(rows, len(names))}: {some(names)}", "one row a row"
            )
        return np.asarray(covariates, dtype=np.float64)

    def to(self, device: torch.device) -> Mean:
        """On a device."""
        return replace(self, table=self.table.map(lambda tensor: tensor.to(device)))

    def tensors(self) -> dict[str, Tensor]:
        """What ``from_parts`` takes, beside ``to_dict``."""
        return {"covariates": torch.from_numpy(self.usual)} | self.table.tensors()

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        terms = asdict(self.terms) | {"covariates": list(self.covariates)}
        return {"clock": self.clock.to_dict(), "terms": terms, "by_calendar": self.by_calendar}

    @classmethod
    def from_parts(cls, values: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Mean:
        """From what ``to_dict`` and ``tensors`` made."""
        table = {name: tensor for name, tensor in tensors.items() if name != "covariates"}
        terms = dict(values["terms"])
        return cls(
            Clock.from_dict(values["clock"]),
            Terms(**terms | {"covariates": tuple(terms["covariates"])}),
            bool(values["by_calendar"]),
            tensors["covariates"].cpu().numpy(),
            CalendarMean(**table),
        )


def scored(values: np.ndarray, usual: np.ndarray) -> np.ndarray:  # (rows, covariates)
    """Covariates as z-scores; beyond what training rows had, as the nearest that they had; 0 where not known."""
    centre, scale, least, most = usual
    return np.nan_to_num((values.clip(least, most) - centre) / scale)


@dataclass(frozen=True)
class RowCalendar:
    """The calendar of rows, on a device."""

    slot: Tensor  # (rows,)
    kind: Tensor  # (rows,) working day or weekend
    day: Tensor  # (rows,) of the week
    year: Tensor  # (rows, waves) float64
    clock: Tensor  # (rows, features) float32

    @classmethod
    def of(cls, clock: Clock, times: np.ndarray | None, rows: int, device: torch.device) -> RowCalendar:
        if clock == Clock():
            none = torch.zeros(rows, dtype=torch.long, device=device)
            return cls(none, none, none, torch.zeros(rows, 0, dtype=torch.float64, device=device), none[:, None][:, :0])
        if times is None or times.dtype.kind != "M":
            got = "rows without times" if times is None else "times that are numbers"
            raise InputError(got, "dates, by which the model was trained", "give every row its date and time")
        parts = clock.slot(times), clock.kind(times), clock.day(times), clock.year(times), clock.features(times)
        return cls(*(torch.from_numpy(part).to(device) for part in parts))

    def __getitem__(self, rows: Any) -> RowCalendar:
        return RowCalendar(*(part[rows] for part in (self.slot, self.kind, self.day, self.year, self.clock)))

    def cell(self, terms: Terms) -> tuple[Tensor, Tensor]:  # two of (rows,)
        """Slot and kind of day, as far as they count."""
        return self.slot * terms.clock, self.day if terms.week else self.kind * terms.clock

    def features(self, terms: Terms, known: Tensor) -> Tensor:  # (rows, features)
        """Waves of the year, as far as they count, and covariates."""
        return torch.cat([self.year, known], 1) if terms.year else known

    def told(self, terms: Terms, by_calendar: bool, known: Tensor) -> Tensor:  # (rows, features) float32
        """Features of the clock, the day of the week if it counts, and covariates."""
        parts = [known.float()]
        if by_calendar:
            days = [torch.nn.functional.one_hot(self.day, WEEK).float()] if terms.week else []
            parts = [self.clock.float(), *days, *parts]
        return torch.cat(parts, 1)
