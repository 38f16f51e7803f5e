"""What the errors of a run of windows mean: the model beside the best of the simplest competitors, in sentences."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass

import numpy as np

from ..core.tables import number
from ..evaluation import contest
from ..evaluation.beside import LEAST
from ..evaluation.competitors import TITLES
from ..metrics.chance import chance
from .material_in_time import OURS, REFERENCE, SeriesMaterial

FEW = 10  # held-out windows, or forecasts, that say little
MENTIONED = 3  # comparisons in a headline
WORDS = contest.WORDS | {"future": "forecasts"}  # what was hidden


@dataclass(frozen=True)
class Comparison:
    """The model beside the best of the simplest competitors, in one family of hidden readings and one channel."""

    family: str
    channel: int
    rival: str
    error: float  # mean absolute, of the model
    rival_error: float
    noise: float  # what chance makes of their difference; infinite where it cannot be told

    @property
    def ahead(self) -> int:
        """1 if the model is nearer by more than chance, -1 if the competitor is, else 0."""
        gain = self.rival_error - self.error
        return int(np.sign(gain)) if abs(gain) > self.noise else 0


def comparisons(material: SeriesMaterial, rivals: Container[str] | None = None) -> list[Comparison]:
    """One for every family and channel of which anything was hidden; with the best of the simplest competitors, or of
    these ``rivals``."""
    families = material.gaps | ({"future": material.ahead} if material.ahead is not None else {})
    compared = []
    for family, g in families.items():
        for channel in np.unique(g.channel).tolist():
            one = g.of(g.channel == channel)
            off = {method: float(one.off(method).mean()) for method in one.draws}
            among = TITLES if rivals is None else rivals
            if not any(method in among for method in off):
                continue
            rival = min((method for method in off if method in among), key=lambda method: off[method])
            noise = chance(one.off(rival) - one.off(OURS), one.group)
            compared.append(Comparison(family, channel, rival, off[OURS], off[rival], noise))
    return compared


def verdict(material: SeriesMaterial) -> tuple[str, str]:
    """What the errors mean, in a word (good, fair, bad) and in sentences; where a simple competitor wins, that."""
    compared = comparisons(material)
    if len(material.test) < LEAST:
        many = f"{len(material.held_out)} window{'s' * (len(material.held_out) != 1)}"
        return "fair", f"{len(material.test):,} held-out rows ({many}): nothing can be said."
    lost, even = ([each for each in compared if each.ahead == sign] for sign in (-1, 0))
    if lost:
        each = max(lost, key=lambda c: c.error / c.rival_error)
        unit, others = material.unit(each.channel), len(lost) - 1
        kind, sentence = (
            "bad",
            (
                f"{TITLES[each.rival].capitalize()} is nearer to the truth than the model in {_where(material, each)}: "
                f"{number(each.rival_error)} against {number(each.error)}{unit}"
                + (f"; a simple competitor wins in {others} more of {len(compared)} comparisons." if others else ".")
            ),
        )
    elif even:
        where = "; ".join(
            f"{_where(material, each)} ({number(each.error)} against {number(each.rival_error)}"
            f"{material.unit(each.channel)}, {TITLES[each.rival]})"
            for each in even[:MENTIONED]
        )
        more = f"; and {len(even) - MENTIONED} more" if len(even) > MENTIONED else ""
        kind = "fair"
        sentence = (
            f"In {len(compared) - len(even)} of {len(compared)} comparisons the model is nearer to the truth than any "
            f"simple competitor; in the others the best of them is as near, as far as can be told: {where}{more}."
        )
    elif compared:
        what = "filled gaps and forecasts are" if material.ahead is not None else "filled gaps are"
        kind, sentence = "good", f"{what.capitalize()} nearer to the truth than those of {_asked(material)}."
    else:
        kind, sentence = "fair", "There is no held-out reading to compare with."
    return kind, " ".join([sentence, *_caveats(material)])


def _asked(material: SeriesMaterial) -> str:
    """Every competitor, or those that there are where there are too many columns for the others."""
    names = [name for name in TITLES if any(name in guesses.draws for guesses in material.gaps.values())]
    if "iterative" in names:
        return "every simple competitor"
    *first, last = [TITLES[name] for name in names]
    return f"{', '.join(first)} and {last} (there are too many columns for scikit-learn's imputers)"


def _where(material: SeriesMaterial, each: Comparison) -> str:
    name = material.named(each.channel)
    return WORDS[each.family] + (f" of {name}" if name else "")


def _caveats(material: SeriesMaterial) -> Iterator[str]:
    if not material.model.result.get("network", True):
        trained = material.model.result["updates"] > 0
        why = "The network found nothing to add, so" if trained else "No network was trained:"
        yield f"{why} the reference is used alone."
    elif own := comparisons(material, {REFERENCE}):
        nearer, further = (sum(each.ahead == sign for each in own) for sign in (1, -1))
        told = f"as near in {len(own) - nearer - further}, as far as can be told"
        yield (
            f"Beside this run's own reference, which has no network, it is nearer in {nearer} of {len(own)}, {told}"
            + (f", and further off in {further}." if further else ".")
        )
    if len(material.held_out) < FEW:
        many = f"{len(material.held_out)} held-out window{'s' * (len(material.held_out) != 1)}"
        yield f"There are only {many} ({len(material.test):,} rows): all of this says little."
    else:
        yield f"{len(material.held_out):,} held-out windows speak ({len(material.test):,} rows)."
