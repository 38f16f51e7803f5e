"""Rows in time on the command line: which window a training has, what was kept of it, and series for a trained run."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core import ranks
from ..core.errors import counted
from ..core.progress import quiet
from .options import located

if TYPE_CHECKING:
    import numpy as np

    from ..data import Dataset, SeriesDataset
    from ..data.covariates import Covariates
    from ..data.formats.filled import Filled
    from ..data.observed_series import ObservedSeries
    from ..evaluation.beside import Beside
    from ..model import GRCD
    from ..series_model import SeriesModel


# -- training --------------------------------------------------------------------------------------------------------


def load(
    sources: Sequence[str], options: dict[str, Any], window: int | str | None
) -> tuple[Dataset | SeriesDataset, int]:
    """The data of a training, and how many rows a window has: the number asked for, or ``auto``; by default auto for
    files with regular times and for several channels, 1 for everything else. What was decided is printed."""
    from ..data import SeriesDataset, load_dataset, load_series
    from ..data.formats.channels import named
    from ..data.formats.table import SeveralChannels
    from ..data.loading import load_rows

    several = len(sources) > 1 or bool(named(sources[0])[0])
    data: Dataset | SeriesDataset
    if window == 1 and not several:
        try:
            return load_dataset(sources[0], **options), 1
        except SeveralChannels:
            return load_series(sources[0], **options), 1
    with _saying_once():
        if several:
            data = load_series(sources, **options)
        else:
            data = load_rows(sources[0], **options) if window is None else load_series(sources[0], **options)
        if not isinstance(data, SeriesDataset):
            return data, 1
        steps = window if isinstance(window, int) else _suggested(data)
        data.refuse_short(steps)
        if steps == 1 and len(data.channels) == 1 and not several:
            return load_dataset(sources[0], **options), 1
    return data, steps


@contextmanager
def _saying_once() -> Iterator[None]:
    """What is said of data twice, because they are read as rows in time and then as moments, is said once."""
    said, say = set[str](), warnings.showwarning

    def once(message: Warning | str, *where: Any, **more: Any) -> None:
        if str(message) not in said:
            said.add(str(message))
            say(message, *where, **more)

    warnings.showwarning = once
    try:
        yield
    finally:
        warnings.showwarning = say


def of_moments(settings: Iterable[str]) -> bool:
    """Whether there are settings that only a model of single moments has, which is said; none may be unknown."""
    from ..core.errors import unknown
    from ..training.config import Config
    from ..training.window_config import WindowConfig

    of_rows, of_windows = ({entry.name for entry in fields(kind)} for kind in (Config, WindowConfig))
    if strange := [name for name in settings if name not in of_rows | of_windows]:
        raise unknown("setting", strange[0], sorted(of_rows | of_windows))
    apart = [name for name in settings if name not in of_windows]
    if apart:
        _decided(f"window: 1 row, for --set {apart[0]} is a setting of single rows; --window T takes T rows")
    return bool(apart)


def _suggested(data: SeriesDataset) -> int:
    """What the inspection says of these data, too."""
    from ..report.window import Window

    window = Window.of(data)
    if window.steps == 1:
        _decided(f"window: 1 row, for {window.why}; --window T takes T all the same")
    else:
        rows = spell(window.steps, data.series.interval)
        _decided(f"window: {rows}; {window.why}. --window 1 takes single rows")
    return window.steps


def _decided(what: str) -> None:
    """At once: a training may take long."""
    if ranks.rank() == 0:
        print(what, file=sys.stderr)


def divided(data: Any) -> str:
    """Which rows teach, and which do not."""
    from ..data.splits import LEAST, NAMES

    train, val, test = (len(data.rows(split) if is_series(data) else getattr(data, split)) for split in NAMES)
    origin = data.origin
    kept = f"the last {test:,}" if origin.split_by == "chronological" else f"{test:,}"
    ours = origin.split_by in ("chronological", "random") and "test" not in (origin.files or {}) and test > LEAST
    return (
        f"{counted(train, 'row')} for training, {val:,} for validation; {kept} are held out for evaluate and report"
        + " (--hold-out 0: they teach too)" * ours
    )


def spell(steps: int, interval: Any) -> str:
    """As "12 rows (1h)"."""
    from ..data.series import readable

    rows = counted(steps, "row")
    return rows if interval is None else f"{rows} ({readable(steps * interval)})"


def is_series(data: Dataset | SeriesDataset) -> bool:
    """Whether rows are in time."""
    from ..data import SeriesDataset

    return isinstance(data, SeriesDataset)


def remembered(
    data: Any, sources: Sequence[str], options: dict[str, Any], command: str, covariates: Path | None
) -> Any:
    """A dataset, of either kind, with what brings it again."""
    source = sources[0] if len(sources) == 1 else list(sources)
    origin = replace(data.origin, options={"source": source, **options}, command=command, folder=os.getcwd())
    if covariates is not None:
        origin = replace(origin, further={**origin.further, "covariates": str(covariates)})
    return replace(data, origin=origin)


def kept(model: GRCD, steps: int) -> list[str]:
    """What training has kept and chosen, in plain words."""
    from ..data.origin import Origin
    from ..training.mean import in_words

    result, lines = model.result, [f"window: {spell(steps, model.series.interval)}"]
    without = "none, held-out readings do not gain by it for certain"
    without = "none, as was asked for" if model.config.calendar == "none" else without
    lines.append(f"calendar: {in_words(result.get('calendar')) or without}")
    if "covariates" in Origin.of_run(model.facts).further:
        nothing = "none, held-out readings do not gain by them for certain"
        lines.append(f"covariates kept: {_named(result.get('covariates'), nothing)}")
    reference = result.get("reference")
    words = reference.get("words", reference) if isinstance(reference, dict) else reference
    lines.append(f"reference: {_named(words, 'as the method has it')}")
    scores = result.get("crps"), result.get("crps_reference_alone")
    crps = f"CRPS {scores[0]:.4f} in validation windows, of the reference alone {scores[1]:.4f}" if all(scores) else ""
    if "network" in result:
        not_used = "the network is not clearly better, so the reference is used alone"
        not_used = not_used if result["updates"] else "no network was trained: the reference is used alone"
        used = "the network is kept" if result["network"] else not_used
        again = (
            f"fitted once more, to all {rows:,} rows that train and validate"
            if (rows := result.get("fitted_again"))
            else ""
        )
        lines.append("; ".join(part for part in (used, again, crps) if part))
    return lines


def _named(value: Any, nothing: str) -> str:
    """Whatever was chosen, on a line."""
    if isinstance(value, dict):
        texts = {key: f"{part:g}" if isinstance(part, float) else str(part) for key, part in value.items()}
        return ", ".join(f"{key.replace('_', ' ')} {text}" for key, text in texts.items()) or nothing
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or nothing
    return nothing if value in (None, "", "none") else str(value)


# -- trained runs ----------------------------------------------------------------------------------------------------


def of(model: GRCD) -> SeriesModel | None:
    """The model of windows that a run holds; None for a run of single moments."""
    from ..core.errors import InputError

    try:
        return model.series
    except InputError:
        return None


def needed(model: GRCD, run: Path) -> SeriesModel:
    """The model of windows that a run holds."""
    from ..core.errors import InputError

    series = of(model)
    if series is None:
        do = "train one on rows in time with --window T, T rows at a time: at most as many as validation has"
        raise InputError(f"{run}, a run of single moments", "a run with a window: only that knows of time", do)
    return series


def observed(
    model: GRCD,
    series: SeriesModel,
    files: Sequence[str],
    common: bool = False,
    absent: bool = False,
    every: str | None = None,
    missing: Sequence[float] = (),
) -> ObservedSeries:
    """Rows in time from files, as a run of windows takes them."""
    from ..data.observed_series import Wanted, read_observed_series
    from ..data.origin import Origin

    wanted = Wanted(series.space.graph, series.channels, series.units, series.interval)
    origin = Origin.of_run(model.facts)
    marks, common = missing or origin.markers or (), common or origin.common
    return read_observed_series(files, wanted, marks, common, absent, every, origin.dropped, origin.label)


def filled(series: SeriesModel, table: ObservedSeries, times: Any, levels: Sequence[float]) -> Filled:
    """What is written of draws, in the layout of the table that came in."""
    from ..data.formats.filled import Filled

    unit = table.units[0] if table.units and not table.variables else ""
    units = table.units if table.variables else ()
    absent = table.laid_out(lacking(series))
    return Filled(table.node_ids, times, levels, unit, table.variables, units, table.long, absent, table.clock)


def lacking(series: SeriesModel) -> np.ndarray:  # (nodes, channels) of bool
    """Channels that a node never had in training, and has none of now."""
    import numpy as np

    mask = np.zeros((len(series.space.graph), series.space.channels), dtype=bool)
    mask.ravel()[series.lacking] = True
    return mask


def in_channels(table: ObservedSeries) -> str:
    """As " and 3 channels"; nothing for one."""
    return f" and {len(table.channel_order)} channels" if len(table.channel_order) > 1 else ""


def covariates(series: SeriesModel, file: Path | None) -> dict[str, Any]:
    """As a keyword: what a file says of those that a run has kept; a run without takes none."""
    from ..core.errors import InputError, some

    if file is None:
        if series.covariates:
            names = some(series.covariates)
            raise InputError(f"no covariates for a run that has kept {names}", "their values", "--covariates FILE")
        return {}
    if not series.covariates:
        raise InputError(f"--covariates {file} for a run that has kept none", "no covariates", "leave --covariates out")
    return {"covariates": read(file)}


def remembered_covariates(model: GRCD) -> Path | None:
    """The file that a run was trained with."""
    from ..data.origin import Origin

    origin = Origin.of_run(model.facts)
    file = origin.further.get("covariates")
    return None if file is None or not model.series.covariates else Path(located(file, origin.folder))


def read(file: Path) -> Covariates:
    """From a file, and what is to be said of it."""
    from ..data.covariates import Covariates
    from ..data.notes import warn

    table = Covariates.read(file)
    warn(table.notes)
    return table


def moments_only(files: Sequence[str], flag: str, **others: Any) -> str:
    """The one file of a command on a run of moments, which takes no channels and none of these ``others``."""
    from ..core.errors import InputError
    from ..data.formats.channels import named

    for name, value in others.items():
        if value is not None:
            do = f"leave --{name} out, or train a run with --window"
            raise InputError(f"--{name} for a run of single moments", "a run with a window", do)
    if len(files) > 1 or named(files[0])[0]:
        got = f"{flag} {' '.join(files)} for a run of single moments"
        raise InputError(got, "one file, of one variable", "give one file, without a name")
    return files[0]


# -- evaluation ------------------------------------------------------------------------------------------------------


def evaluate(
    file: Path, model: GRCD, source: dict[str, Any], split: str, common: bool, as_json: bool, asked: list[str]
) -> None:
    """Windows of a file against those of a run's data, printed; ``asked`` are options that only moments have."""
    from ..core.errors import InputError
    from ..data import load_series
    from ..evaluation import beside as besides
    from ..evaluation import windows as evaluation

    if asked:
        do = f"leave {'it' if len(asked) == 1 else 'them'} out: a network has the run's own reference beside it anyway"
        raise InputError(f"{', '.join(asked)} for windows", "aMMD and the floor: the rest is of single rows", do)
    data = load_series(**source)
    signals = read_samples(file, data, common)
    scores = evaluation.evaluate(signals, data, split)
    alone = not model.result.get("network", True)
    beside = None if alone else _reference(model, signals, data, split)
    if as_json:
        more = {"network": False} if alone else {} if beside is None else {"reference": beside.to_dict()}
        print(json.dumps(scores.to_dict() | more))
        return
    made = counted(scores.n, "window")
    print(f"{file}: {made} against those of the {split} split of {data.name} (MMD^2, lower is better)")
    print(scores if beside is None else replace(scores, controls={"reference": beside.scores}))
    if beside is not None:
        print(beside.words())
    if alone:
        print(besides.alone(len(evaluation.held_out(data, split, model.series.space.steps)), "windows"))
    print("floor: training windows against the same split; unbiased estimates may come out below zero")


def _reference(model: GRCD, signals: np.ndarray, data: SeriesDataset, split: str) -> Beside | None:
    """As many windows of the run's own reference beside; None of another length than the run's, or where covariates,
    which it would need, are not where they were."""
    from ..evaluation.beside import of_windows

    known, series = remembered_covariates(model), model.series
    if signals.shape[1] != series.space.steps or (series.covariates and (known is None or not known.exists())):
        return None
    with quiet():
        drawn, _ = series.sample(len(signals), posterior="reference", **covariates(series, known))
    return of_windows(signals, drawn, data, split)


def read_samples(file: Path, data: SeriesDataset, common: bool) -> np.ndarray:  # (n, steps, nodes, channels)
    """Windows of a file, in the data's order of nodes and channels."""
    import numpy as np

    from ..core.errors import InputError, some
    from ..data.formats.windows import read_windows
    from ..data.matching import fitted
    from ..data.observed_series import NAMELESS

    windows, where = read_windows(file), str(file)
    names, columns = windows.channels, np.arange(windows.signals.shape[2], dtype=float)[None]
    if len(names) == len(data.channels) == 1 and (names[0] in NAMELESS or data.channels[0] in NAMELESS):
        names = data.channels
    if {*names} != {*data.channels}:
        got = f"{where} with the channels {some(name or 'without a name' for name in names)}"
        raise InputError(got, some(data.channels), "sample from the run that they are compared with")
    places = fitted(columns, windows.node_ids, data.graph, where, common=common)[0][0].astype(int)
    return windows.signals[:, :, places][..., [names.index(name) for name in data.channels]]
