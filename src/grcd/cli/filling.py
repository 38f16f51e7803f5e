"""Commands that fill what is missing: gaps of a table, and the rows after its last. ``commands`` puts them there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..core.errors import counted
from . import parsing, windows
from .many import Job, Scheduler, Workers
from .options import Common, Covariates, Device, Every, Force, Observed, Seed, Trained

if TYPE_CHECKING:
    from ..data.observed_series import ObservedSeries
    from ..model import GRCD
    from ..series_model import SeriesModel

COPIES = 3  # of a forecast that are in memory at once
Draws = Annotated[int, typer.Option("-n", help="How many draws of each reading.")]
Evaluations = Annotated[
    int | None,
    typer.Option(help="Network evaluations for each of them [8; of rows in time 4 on a GPU, 2 on a CPU]."),
]
Posterior = Annotated[
    str,
    typer.Option(
        help="auto: what foretold held-out rows best at the end of training; diffusion; or reference: that of the "
        "fitted reference alone, and quick."
    ),
]
Filling = Annotated[
    str,
    typer.Option(
        help="auto: what filled hidden readings best at the end of training; or for all gaps diffusion, reference, "
        "columns (every node by itself) or moments (every row by itself)."
    ),
]
Levels = Annotated[str | None, typer.Option(help="Levels to write beside the median, e.g. 0.05,0.95.")]
Ensemble = Annotated[bool, typer.Option("--ensemble", help="Write all draws too: .npz, .parquet or .nc.")]
Out = Annotated[
    Path, typer.Option(help="The file to write: .csv, .parquet, .npz or .nc; of many files the folder they go to.")
]
Missing = Annotated[list[float] | None, typer.Option(help="A value that marks a missing reading; may be repeated.")]


def impute(
    run: Trained,
    observed: Observed,
    out: Out,
    n: Draws = 100,
    nfe: Evaluations = None,
    posterior: Filling = "auto",
    quantiles: Levels = None,
    ensemble: Ensemble = False,
    missing: Missing = None,
    covariates: Covariates = None,
    every: Every = None,
    common: Common = False,
    seed: Seed = 0,
    device: Device = "auto",
    workers: Workers = None,
    scheduler: Scheduler = None,
    force: Force = False,
) -> None:
    """Fill the gaps of a table, with uncertainty: the median of many draws, quantiles, or all of them.

    A run with a window fills them from the rows before and after too. Many tables are a folder or a glob of .parquet
    files, each filled by itself.
    """
    from ..data.options import markers

    options = {
        "n": n,
        "nfe": nfe,
        "posterior": posterior,
        "levels": parsing.shares(quantiles),
        "ensemble": ensemble,
        "marks": list(markers(missing) or ()),
        "covariates": covariates,
        "every": every,
        "common": common,
    }
    Job(_impute, run, device, options).done(observed, out, seed, force, workers, scheduler)


def _impute(
    model: GRCD,
    files: Sequence[str],
    out: Path,
    seed: int,
    n: int,
    nfe: int | None,
    posterior: str,
    levels: list[float],
    ensemble: bool,
    marks: list[float],
    covariates: Path | None,
    every: str | None,
    common: bool,
) -> str:
    series, draws = windows.of(model), (n, nfe, seed, posterior)
    if series is None:
        file = windows.moments_only(files, "--observed", covariates=covariates, every=every)
        return _moments(model, file, out, levels, ensemble, marks, common, draws)
    table = windows.observed(model, series, files, common, True, every, marks)
    known = windows.covariates(series, covariates)
    fillings = series.fillings(table.series, *draws, **known)
    laid_out = ((rows, table.laid_out(drawn)) for rows, drawn in fillings)
    shape = (n, len(table.series), *table.shape)
    windows.filled(series, table, table.series.times, levels).write(out, laid_out, shape, ensemble)
    gaps = int(((table.series.values != table.series.values) & ~windows.lacking(series)).sum())
    rows, each = counted(len(table.series), "row"), counted(n, "draw")
    where = f"{counted(len(table.order), 'node')}{windows.in_channels(table)}"
    return f"{out}: {counted(gaps, 'gap')} in {rows} of {where} filled, {each} each{_open(series, table)}"


def _open(series: SeriesModel, table: ObservedSeries) -> str:
    """Columns that nothing is known of, and that are left as they were."""
    empty = (table.series.values != table.series.values).all(axis=0) & windows.lacking(series)
    what = counted(int(empty.sum()), "column", "columns")
    gone = ", and out of a long table" * table.long
    return f"; {what} without any reading, in training or here, left open{gone}" if empty.any() else ""


def _moments(
    model: GRCD,
    file: str,
    out: Path,
    levels: list[float],
    ensemble: bool,
    marks: Sequence[float],
    common: bool,
    draws: tuple[int, int | None, int, str],
) -> str:
    """Each row by itself."""
    from ..data.formats.filled import Filled
    from ..data.observed import read_observed
    from ..data.origin import Origin
    from ..model import EVALUATIONS

    origin = Origin.of_run(model.facts)
    marks, common = marks or origin.markers or (), common or origin.common
    table = read_observed(file, model.graph, marks, common, True, origin.dropped, origin.label)
    n, nfe, *others = draws
    parts = model.fillings(table.x, n, EVALUATIONS if nfe is None else nfe, *others)
    fillings = ((rows, drawn[:, :, table.order]) for rows, drawn in parts)
    shape = (draws[0], len(table.x), len(table.order))
    Filled(table.node_ids, table.times, levels, model.unit, clock=table.clock).write(out, fillings, shape, ensemble)
    gaps, signals, each = (
        counted(count, what)
        for count, what in ((int((table.x != table.x).sum()), "gap"), (len(table.x), "signal"), (draws[0], "draw"))
    )
    return f"{out}: {gaps} in {signals} on {counted(len(table.order), 'node')} filled, {each} each"


def forecast(
    run: Trained,
    observed: Observed,
    horizon: Annotated[int, typer.Option(help="How many rows to come.")],
    out: Out,
    n: Draws = 100,
    nfe: Evaluations = None,
    posterior: Posterior = "auto",
    quantiles: Levels = None,
    ensemble: Ensemble = False,
    missing: Missing = None,
    covariates: Covariates = None,
    every: Every = None,
    common: Common = False,
    seed: Seed = 0,
    device: Device = "auto",
    workers: Workers = None,
    scheduler: Scheduler = None,
    force: Force = False,
) -> None:
    """The rows after the last of a table, with their times and their uncertainty; by a run with a window.

    Many tables are a folder or a glob of .parquet files; each has rows to come.
    """
    from ..core.errors import whole_number
    from ..data.options import markers

    whole_number("horizon", horizon), whole_number("n", n)
    options = {
        "run": run,
        "horizon": horizon,
        "n": n,
        "nfe": nfe,
        "posterior": posterior,
        "levels": parsing.shares(quantiles),
        "ensemble": ensemble,
        "marks": list(markers(missing) or ()),
        "covariates": covariates,
        "every": every,
        "common": common,
    }
    Job(_forecast, run, device, options).done(observed, out, seed, force, workers, scheduler)


def _forecast(
    model: GRCD,
    files: Sequence[str],
    out: Path,
    seed: int,
    run: Path,
    horizon: int,
    n: int,
    nfe: int | None,
    posterior: str,
    levels: list[float],
    ensemble: bool,
    marks: list[float],
    covariates: Path | None,
    every: str | None,
    common: bool,
) -> str:
    import numpy as np

    from ..core import memory

    series = windows.needed(model, run)
    table = windows.observed(model, series, files, common, False, every, marks)
    known = windows.covariates(series, covariates)
    size = COPIES * 8 * n * horizon * len(table.order) * len(table.channel_order)
    what = f"{counted(n, 'draw')} of {counted(horizon, 'row')} on {counted(len(table.order), 'node')}"
    memory.refuse_over(size, what, "lower -n or --horizon")
    draws = series.forecast(table.series, horizon, n, nfe, seed, posterior, **known)
    times = series.ahead(table.series, horizon)
    shape = (n, horizon, *table.shape)
    parts = [(np.arange(horizon), table.laid_out(draws))]
    windows.filled(series, table, times, levels).write(out, parts, shape, ensemble)
    return f"{out}: {_ahead(times, horizon)}, {counted(n, 'draw')} each"


def _ahead(times: Any, horizon: int) -> str:
    """As "12 rows to come, 2024-03-01 00:05 to 2024-03-01 01:00"."""
    from ..data.times import as_text

    rows = f"{counted(horizon, 'row')} to come"
    return rows if times is None else f"{rows}, {as_text(times)[0]} to {as_text(times)[-1]}"
