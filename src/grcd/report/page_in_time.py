"""The page on a run of windows: a verdict against the simplest competitors, pictures in time, tables, what was kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ..core.rows import evenly
from ..core.tables import html as table
from ..core.tables import number
from ..data.series import readable
from ..evaluation.competitors import TITLES
from ..evaluation.guesses import Guesses
from ..metrics.statistics import STATISTICS
from ..training.mean import in_words
from . import drawings, first_look
from . import drawings_in_time as pictures
from .drawings_in_time import NOISE, names
from .hover import script
from .layout import Section, cards, document, figure, headline, span, strongest, where_from
from .material_in_time import OURS, SeriesMaterial
from .pictures import Drawn
from .verdict_in_time import FEW, WORDS, comparisons, verdict

LEADS = 4  # lines of the table of forecasts


def html(material: SeriesMaterial) -> str:
    """The whole page."""
    data = material.data
    units = [", ".join(unit for unit in data.units if unit)] if any(data.units) else []
    about = [f"{len(data.graph):,} nodes", f"{len(data.series):,} rows", *span(data.series.times), *units]
    return document(data.name, about, _summary(material), _sections(material), _hovered(material))


def _hovered(material: SeriesMaterial) -> str:
    """The day, as it was and as it might have been."""
    picture, channel = material.day, material.shown[0]
    lines = {"held-out": picture.real[:, :, channel], "generated": picture.generated[:, :, channel]}
    ends = (pictures.when(material, int(picture.rows[k])) for k in (0, -1))
    return script(material.data.graph.node_ids, lines, (next(ends), next(ends)), material.data.units[channel])


def _summary(material: SeriesMaterial) -> str:
    data, compared = material.data, comparisons(material)
    first = [each for each in compared if each.channel == compared[0].channel]
    unit, name = (material.unit(first[0].channel), material.named(first[0].channel)) if first else ("", "")
    numbers = {}
    for each in first:
        if each.family in ("points", "spells", "future"):
            what = f"mean error, {WORDS[each.family]}{f' of {name}' if name else ''} ({TITLES[each.rival]}: "
            numbers[f"{what}{number(each.rival_error)})"] = f"{number(each.error)}{unit}"
    if material.scores is not None and material.scores.floor is not None:
        numbers[f"aMMD of windows (floor: {material.scores.floor.ammd:.4f})"] = f"{material.scores.ammd:.4f}"
    numbers["nodes"] = f"{len(data.graph):,}"
    numbers["rows a window"] = f"{material.steps:,}"
    interval = data.series.interval
    every = f", one every {readable(interval)}" if isinstance(interval, np.timedelta64) else ""
    drawn = [data.channels[channel] for channel in material.shown]
    several = (
        f" {len(drawn)} of {len(data.channels)} channels are drawn: {', '.join(drawn)}."
        if len(data.channels) > 1
        else ""
    )
    source = (
        f"Method {material.model.config.method}; {len(data.rows('train')):,} training rows and {len(material.test):,} "
        f"held-out ones{every}; {material.how}.{several}"
    )
    words = headline(source, verdict(material), material.same_data, data.notes)
    return f"{words}\n{_first(material)}\n{cards(numbers)}"


def _first(material: SeriesMaterial) -> str:
    """What it does, at a glance: no words are needed."""
    drawn = []
    if first_look.gap(material) is not None:
        drawn.append(figure("A gap filled, with its band", first_look.filled, material))
    if first_look.forecast(material) is not None:
        drawn.append(figure("A forecast, with its band", first_look.foretold, material))
    drawn.append(figure("Some hours, held-out and generated", first_look.made_up, material))
    return f'<div class="first">{"".join(drawn)}</div>'


def _sections(material: SeriesMaterial) -> Iterator[Section]:
    yield from _gaps(material)
    yield from _ahead(material)
    yield from _generated(material)
    yield Section("kept", "What was kept", "What validation rows decided on.", _kept(material))
    if material.curve:
        yield Section(
            "training",
            "Training",
            "The error in predicting noise in hidden readings. Most of it nobody could predict: what counts is the way "
            "below the dashed line, which is the reference without a network.",
            figure("Training curve", drawings.training, material),
        )
    yield Section(
        "provenance",
        "Where this comes from",
        "Enough to make it again.",
        where_from(material.model, material.command, {}),
    )


def _gaps(material: SeriesMaterial) -> Iterator[Section]:
    evaluated = f", {material.nfe} network evaluations each" if material.model.result.get("network", True) else ""
    how = f"{material.draws} draws{evaluated}"
    if "sensors" in material.gaps:
        many = len(np.unique(material.gaps["sensors"].node))
        yield Section(
            "series",
            "Nodes that fall silent",
            f"{many} node{'s' * (many > 1)} of {len(material.data.graph)} {'were' if many > 1 else 'was'} hidden in "
            f"{len(material.held):,} held-out rows, all the time, and filled from what the others read ({how}). Half "
            "of the rings should lie in the darker band, nine of ten in the lighter one.",
            figure("Silent nodes with bands", pictures.filled, material, "sensors"),
        )
    parts = [
        figure(f"Filled {WORDS[family]}", pictures.filled, material, family)
        for family in ("points", "spells")
        if family in material.gaps
    ]
    yield Section(
        "gaps",
        "Filled gaps",
        f"In {len(material.held):,} held-out rows readings were hidden by a seed, a quarter of them scattered, then "
        "about a tenth in spells of half a window to two windows, and filled from all others. The table has the mean "
        "absolute errors of all methods in the channel's own unit, lower is better, and for the model the share of "
        "readings within its intervals, with two standard errors: rows near each other count as one.",
        "\n".join([*parts, _errors(material, material.gaps)]) if material.gaps else "<p>There was nothing to hide.</p>",
    )


def _ahead(material: SeriesMaterial) -> Iterator[Section]:
    g = material.ahead
    if g is None:
        if material.steps > 1:
            nothing = "<p>No stretch of held-out rows is long enough for a past and a future.</p>"
            yield Section("forecasts", "Forecasts", "", nothing)
        return
    many = len(np.unique(g.group))
    little = f" {many} forecasts say little." if many < FEW else ""
    yield Section(
        "forecasts",
        "Forecasts",
        f"{many} forecasts of {material.horizon} rows, evenly spaced over the held-out rows, each from the rows before "
        f"it ({material.draws} draws); above each the node and the last row that was seen. Below them the mean "
        f"absolute error by lead, beside what needs no model.{little}",
        figure("Forecasts with bands", pictures.forecasts, material)
        + figure("Mean absolute error by lead", pictures.errors_by_lead, material)
        + _leads(material, g),
    )
    yield Section(
        "coverage",
        "Coverage by lead time",
        "The share of readings that lie within 50 and 90 % intervals; the dashed lines are where they should be. Bars "
        f"are two standard errors, over {many} forecasts of about {len(g) // (many * material.horizon):,} readings a "
        f"row: errors of one forecast are alike, so that it counts once.{little}",
        figure("Coverage by lead time", pictures.coverage, material),
    )


def _generated(material: SeriesMaterial) -> Iterator[Section]:
    if material.steps > 1:
        yield Section(
            "autocorrelation",
            "Autocorrelation",
            f"How alike readings of a node are that are so many rows apart, within {len(material.held_out):,} held-out "
            f"windows and {len(material.generated):,} generated ones; the mean over nodes. Training windows are the "
            "floor: as far as they are from held-out ones, generated ones may be.",
            figure("Autocorrelation by lag", pictures.autocorrelation, material),
        )
    what = "A day" if material.day.whole else f"{len(material.day.rows)} rows"
    yield Section(
        "day",
        f"{what} in the life of the network",
        "Left what was held out, right what was made up for the same times from nothing, on one scale of colours. "
        "Nodes stand in an order in which neighbours on the graph are near each other. They should look alike as a "
        "kind; neither foretells the other. Grey is a gap.",
        figure("A day of the network, held-out and generated", pictures.day, material),
    )
    yield _maps(material)
    yield Section(
        "scores",
        "Scores of windows",
        "aMMD averages three squared distances on the product graph of time and space (variation along edges, mean "
        "frequency, correlation with the degrees); lower is better. The floor is what training windows score: there is "
        "no need to be below it.",
        _scores(material),
    )


def _maps(material: SeriesMaterial) -> Section:
    """Four rows of the hours that are drawn first."""
    some, drawn = first_look.hours(material), Drawn(material.data.graph)
    rows = [int(row) for row in np.linspace(some.start, some.stop - 1, 4)]
    return Section(
        "map",
        "The network on the map",
        "Four moments of it, above as they were, below as they were made up. A ring is a gap. Point at a node for its "
        f"name and its day, held-out and generated.{strongest(drawn)}",
        figure("The network at four moments", pictures.maps, material, drawn, rows, names=material.data.graph.node_ids),
    )


def _errors(material: SeriesMaterial, families: Mapping[str, Guesses]) -> str:
    """A line a family and channel."""
    methods = list(next(iter(families.values())).draws)
    rows = []
    for family, g in families.items():
        for channel in np.unique(g.channel).tolist():
            rows.append([_label(material, WORDS[family], channel), *_line(g.of(g.channel == channel), methods)])
    return table(["mean absolute error", *map(names, methods), "CRPS", "in 50 %", "in 90 %", "readings"], rows)


def _leads(material: SeriesMaterial, g: Guesses) -> str:
    """A line a lead and channel: the first, the last and some between."""
    methods, leads = list(g.draws), np.unique(g.lead)
    rows = []
    for channel in np.unique(g.channel).tolist():
        for lead in leads[evenly(len(leads), LEADS)].tolist():
            one = g.of((g.lead == lead) & (g.channel == channel))
            if len(one):
                label = _label(material, f"{_time(material, lead)} ahead", channel)
                rows.append([label, *_line(one, methods)])
    return table(["mean absolute error", *map(names, methods), "CRPS", "in 50 %", "in 90 %", "readings"], rows)


def _time(material: SeriesMaterial, rows: int) -> str:
    """So many rows as a time, where rows have dates."""
    interval = material.data.series.interval
    return readable(rows * interval) if isinstance(interval, np.timedelta64) else f"{rows} row{'s' * (rows > 1)}"


def _line(g: Guesses, methods: list[str]) -> list[str]:
    """Errors of all methods, then CRPS, coverage and count of the model's."""
    own = g.errors(OURS)
    shares = []
    for share in (0.5, 0.9):
        inside, noise = g.covered(OURS, share)
        shares.append(f"{inside:.0%}" + (f" \u00b1 {100 * NOISE * noise:.0f}" if np.isfinite(noise) else ""))
    errors = [number(float(g.off(method).mean())) for method in methods]
    return [*errors, number(float(own["crps"])), *shares, f"{own['readings']:,}"]


def _label(material: SeriesMaterial, what: str, channel: int) -> str:
    name, unit = material.named(channel), material.data.units[channel]
    about = ", ".join(part for part in (name, unit) if part)
    return f"{what} ({about})" if about else what


def _scores(material: SeriesMaterial) -> str:
    if material.scores is None:
        return f"<p>Left out: {len(material.held_out)} held-out windows that do not overlap are too few to compare.</p>"
    named = {"generated": material.scores, "floor": material.scores.floor}
    rows = [[name, *(f"{getattr(scores, key):.4f}" for key in ("ammd", *STATISTICS))] for name, scores in named.items()]
    return table(["", "aMMD", *(key.replace("_", " ") for key in STATISTICS)], rows, own=0)


def _kept(material: SeriesMaterial) -> str:
    result, config = material.model.result, material.model.config
    not_used = "not used: it is not better than the reference for certain" if result["updates"] else "none was trained"
    network = "used" if result.get("network", True) else not_used
    if "crps" in result and "crps_reference_alone" in result:
        network += (
            f" (CRPS of hidden validation readings {number(result['crps'])}, of the reference alone "
            f"{number(result['crps_reference_alone'])})"
        )
    facts = {
        "calendar": in_words(result.get("calendar")) or "none: every column has one mean",
        "covariates": _words(result.get("covariates")) or "none",
        "reference": _words((result.get("reference") or {}).get("words")) or config.method,
        "network": network,
        "window": f"{material.steps} rows",
        "channels": ", ".join(
            f"{name} ({unit})" if unit else name
            for name, unit in zip(material.data.channels, material.data.units, strict=True)
            if name
        ),
    }
    return table([], [[key, value] for key, value in facts.items() if value], kind="facts")


def _words(value: Any) -> str:
    """Something of a summary, for people."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key.replace('_', ' ')} {_words(part)}" for key, part in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_words, value))
    return f"{value:.3g}" if isinstance(value, float) else "" if value is None else str(value)
