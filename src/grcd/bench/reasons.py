"""Why numbers are not the paper's: reasons in prose, each with the places it is for, so that stale ones are noticed.

    ### Title
    Covers: main/sbm-*/edm/*, claim/5.4-strongest
    Cells of: 2026-11-15

    Prose. {main/metr-la/edm/16} stands for what was measured there.

Places are paths, SUITE/SETTING/ROW/NFE of a number and claim/KEY of a claim, with the wildcards of ``fnmatch``. Where
nothing that a pattern covers is off any more, the pattern is idle; where nothing of a reason's is, the reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from ..core.errors import InputError


@dataclass(frozen=True)
class Reason:
    """Prose, the patterns of the places it is for, and the day of the cells that it was written about."""

    title: str
    covers: tuple[str, ...]
    day: str
    text: str

    def of(self, places: Iterable[str]) -> list[str]:
        """Those places that it covers."""
        return [place for place in places if any(fnmatchcase(place, pattern) for pattern in self.covers)]

    def idle(self, off: Sequence[str]) -> list[str]:
        """Its patterns that cover nothing which is off."""
        return [pattern for pattern in self.covers if not any(fnmatchcase(place, pattern) for place in off)]

    def filled(self, value: Callable[[str], str]) -> str:
        """Its prose, what was measured put in for every place in braces."""
        return re.sub(r"\{([^{}]+)\}", lambda match: value(match[1]), self.text)


def parsed(text: str) -> list[Reason]:
    """The reasons of a page."""
    return [_reason(part) for part in re.split(r"^### ", text, flags=re.MULTILINE)[1:]]


def unexplained(reasons: Iterable[Reason], off: Sequence[str]) -> list[str]:
    """What is off and covered by no reason."""
    covered = {place for reason in reasons for place in reason.of(off)}
    return [place for place in off if place not in covered]


def _reason(part: str) -> Reason:
    title, _, body = part.partition("\n")
    fields = dict(re.findall(r"^(Covers|Cells of): (.+)$", body, flags=re.MULTILINE))
    if set(fields) != {"Covers", "Cells of"}:
        raise InputError(
            f"a reason without {'what it covers' if 'Covers' not in fields else 'the day of its cells'}: {title}",
            "'Covers: PATTERN, PATTERN' and 'Cells of: YEAR-MONTH-DAY' below its title",
            "add the line",
        )
    prose = re.sub(r"^(Covers|Cells of): .+\n", "", body, flags=re.MULTILINE)
    patterns = tuple(pattern.strip(" `") for pattern in fields["Covers"].split(","))
    return Reason(title.strip(), patterns, fields["Cells of"].strip(), prose.strip())
