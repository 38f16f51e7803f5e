"""The tables of windows: gaps filled (imputation) and rows foretold (forecast), means over seeds, published rows below.

A forecast has a block for each lead that is reported, and one for all leads together. The lowest MAE and CRPS of a
block are bold once all of it has been measured, and only where no published number is as low; published rows, which
were computed elsewhere and mostly by a network for one kind of gap, are never bold.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import resources
from pathlib import Path

from ...core.tables import Lines, render
from .. import suites
from ..cells import measured
from ..measured import lacking
from ..windows.cells import Windowed

NUMBERS = {  # of a CSV file, and what a page calls them, with digits
    "mae": ("MAE", 3),
    "mse": ("MSE", 2),
    "crps": ("CRPS", 4),
    "energy": ("energy", 2),
    "cover50": ("within 50 %", 3),
    "cover90": ("within 90 %", 3),
    "seconds": ("seconds", 1),
    "train_minutes": ("training, min", 1),
}
COLUMNS = ("setting", "method", "nfe", "step", *NUMBERS, "seeds")
RANKED = ("mae", "crps")
LEGEND = (
    "Means over seeds; 100 draws of a window that is filled, 40 of one that is foretold. CRPS normalised, MAE and MSE"
    " of the median, energy score of all hidden readings of a window together; seconds for the whole test set. Networks"
    " train on readings that the public masks hide in training rows, as PriSTI's does, and are chosen by validation"
    " readings that masks of our own hide, out of all that were recorded; to grcd-unseen those of the public masks are"
    " shown in neither."
    " Windows of gaps overlap by a twelfth of their rows at either end; of our own gaps and of Beijing's every third"
    " one is scored, and seconds of networks and references are those of what is scored (competitors fill all of it)."
    " (published): as printed by their authors, on other machines. Bold: the lowest MAE and CRPS, where no published"
    " one is as low; -: not measured, or nothing to tell."
)


@dataclass
class Row:
    """A line: numbers by name, over how many seeds; without any it was not measured."""

    method: str
    nfe: int | None = None
    numbers: dict[str, float] = field(default_factory=dict)
    seeds: int | None = None
    published: bool = False

    @property
    def title(self) -> str:
        budget = "" if self.nfe is None else f", NFE {self.nfe}"
        return f"{self.method}{budget}" + " (published)" * self.published


Blocks = dict[tuple[str, str], list[Row]]  # by setting and step; "" stands for all steps, or none


def blocks(suite: str, settings: Sequence[str], seeds: Sequence[int], results: Path) -> Blocks:
    """What has been measured, and what was published."""
    by_row: dict[tuple[str, str], dict[tuple[str, int | None], list[dict[str, float]]]] = {}
    for cell in suites.cells(suite, settings, seeds):
        assert isinstance(cell, Windowed)
        content = (measured(cell, results) or {}).get("windows")
        for step in ("", *map(str, cell.about.steps)):
            lines = by_row.setdefault((cell.setting, step), {}).setdefault((cell.method, cell.nfe), [])
            if content is not None:
                taken = {name: content[name] for name in ("seconds", "train_minutes") if name in content}
                lines.append(content["scores"][step] | taken)
    if not any(lines for rows in by_row.values() for lines in rows.values()):
        raise lacking("of windows", suite, settings or list(dict.fromkeys(key[0] for key in by_row)), seeds, results)
    table = {place: [_row(*key, lines) for key, lines in rows.items()] for place, rows in by_row.items()}
    return {place: rows + published(*place) for place, rows in table.items()}


def _row(method: str, nfe: int | None, lines: list[dict[str, float]]) -> Row:
    numbers = {name: [line[name] for line in lines if line.get(name) is not None] for name in NUMBERS}
    means = {name: math.fsum(values) / len(values) for name, values in numbers.items() if values}
    return Row(method, nfe, means, len(lines) or None)


@cache
def _published() -> list[dict[str, str]]:
    text = (resources.files("grcd.bench.windows") / "published.csv").read_text()
    return list(csv.DictReader(io.StringIO(text)))


def published(setting: str, step: str) -> list[Row]:
    """What others printed for a block."""
    lines = [line for line in _published() if (line["setting"], line["step"]) == (setting, step)]
    return [
        Row(
            line["method"],
            _evaluations(line),
            {name: float(line[name]) for name in NUMBERS if line.get(name)},
            published=True,
        )
        for line in lines
    ]


def _evaluations(line: dict[str, str]) -> int | None:
    """How many a published row says it takes."""
    return int(line["nfe"]) if line["nfe"] else None


def table(suite: str, settings: Sequence[str], seeds: Sequence[int], results: Path, kind: str) -> str:
    """The table of some settings as md, tex or csv."""
    content = blocks(suite, settings, seeds, results)
    sheets = (
        (f"{setting}, step {step}" if step else setting, _lines(rows)) for (setting, step), rows in content.items()
    )
    return render(kind, sheets, LEGEND, _fields(content))


imputation, forecast = partial(table, "imputation"), partial(table, "forecast")


def _lines(rows: list[Row]) -> Lines:
    best = {name: _best(rows, name) for name in RANKED}
    lines = [["method", *(title for title, _ in NUMBERS.values()), "seeds"]]
    for row in rows:
        texts = {name: f"{row.numbers[name]:.{d}f}" if name in row.numbers else "-" for name, (_, d) in NUMBERS.items()}
        texts |= {name: f"**{texts[name]}**" for name in RANKED if row is best[name]}
        lines.append([row.title, *texts.values(), "-" if row.seeds is None else str(row.seeds)])
    return lines


def _best(rows: list[Row], name: str) -> Row | None:
    """The lowest of those measured here, if all were and none that was published is as low."""
    own, others = ([row for row in rows if row.published is published] for published in (False, True))
    if not all(name in row.numbers for row in own):
        return None
    best = min(own, key=lambda row: row.numbers[name])
    digits = NUMBERS[name][1]
    beaten = any(row.numbers[name] <= round(best.numbers[name], digits) for row in others if name in row.numbers)
    return None if beaten else best


def _fields(content: Blocks) -> Iterator[list[object]]:
    yield list(COLUMNS)
    for (setting, step), rows in content.items():
        for row in rows:
            if row.numbers:
                numbers = [f"{row.numbers[name]:.6g}" if name in row.numbers else "" for name in NUMBERS]
                method = f"{row.method} (published)" if row.published else row.method
                yield [setting, method, _or_empty(row.nfe), step, *numbers, _or_empty(row.seeds)]


def _or_empty(number: int | None) -> object:
    return "" if number is None else number
