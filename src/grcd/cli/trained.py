"""Commands on a trained model: sample, augment, score, report. ``commands`` puts them on the parser."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..core.errors import counted
from . import parsing, windows
from .many import Job, Scheduler, Workers
from .options import (
    Common,
    Covariates,
    Device,
    Every,
    Force,
    Json,
    Seed,
    Signals,
    Trained,
    of_run,
    on_data,
    refuse_without_data,
)

if TYPE_CHECKING:
    import numpy as np

    from ..data import Dataset
    from ..model import GRCD
    from ..series_model import SeriesModel
    from .scoring import Scores


def sample(
    run: Trained,
    out: Annotated[
        Path, typer.Option(help="The file to write: .npz, .csv, .parquet or .nc; with --partitions a folder.")
    ],
    n: Annotated[int, typer.Option("-n", help="How many signals.")] = 1000,
    nfe: Annotated[int, typer.Option(help="Network evaluations a signal.")] = 4,
    solver: Annotated[
        str | None,
        typer.Option(
            help="By default what validation signals chose: residual-2m, residual-3m, dpm++2m, dpm++3m, heun, ..."
        ),
    ] = None,
    rho: Annotated[float | None, typer.Option(help="Exponent of the power grid; by default as chosen.")] = None,
    grid: Annotated[
        str | None, typer.Option(help="power, log-snr, entropy, or noise levels as q0,q1,...; by default as chosen.")
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            help="Where to start: a share of the largest noise level; of a run with a window the time of the first row."
        ),
    ] = None,
    covariates: Covariates = None,
    seed: Seed = 0,
    device: Device = "auto",
    precision: Annotated[
        str, typer.Option(help="The network's: float32, or faster on a GPU tf32, bfloat16.")
    ] = "float32",
    partitions: Annotated[
        int | None, typer.Option(help="Write so many .parquet files into a folder.", show_default=False)
    ] = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    force: Force = False,
) -> None:
    """Generate signals from a trained model, in the units of the training signals.

    A run with a window generates windows: rows that follow each other, at times drawn from the training rows.
    """
    from ..cluster.partitions import generated
    from ..core.errors import InputError

    options = {
        "nfe": nfe,
        "solver": solver,
        "rho": rho,
        "grid": parsing.levels(grid),
        "start": start,
        "covariates": covariates,
        "precision": precision,
    }
    if partitions is not None:
        several = generated(n, partitions, seed)
        Job(_sample, run, device, options).each(several, out, seed, force, workers, scheduler)
        return
    if workers is not None or scheduler is not None:
        raise InputError("many workers for one file", "many files", "add --partitions P, and a folder as --out")
    Job(_sample, run, device, options | {"n": n}).done([], out, seed, force, None, None)


def _sample(
    model: GRCD,
    files: Sequence[str],  # none
    out: Path,
    seed: int,
    n: int,
    nfe: int,
    solver: str | None,
    rho: float | None,
    grid: str | list[float] | None,
    start: str | None,
    covariates: Path | None,
    precision: str,
) -> str:
    from ..core.errors import InputError
    from ..core.files import make_folder
    from ..data.formats.writing import write_signals

    make_folder(out.parent)
    series = windows.of(model)
    if series is not None:
        how = {"solver": solver, "rho": rho, "grid": grid, "precision": None if precision == "float32" else precision}
        if asked := [f"--{name}" for name, value in how.items() if value is not None]:
            got = f"{', '.join(asked)} for a run with a window"
            raise InputError(got, "its own way to sample", "leave them out; --nfe says how many evaluations")
        return _sample_windows(model, series, out, n, nfe, seed, start, covariates)
    windows.moments_only(["-"], "", covariates=covariates)
    share = parsing.share(start)
    signals = model.signals.sample(n, nfe, seed, solver, rho, grid, precision=precision, start=share)
    write_signals(out, signals, model.graph.node_ids, model.unit)
    evaluated = f"{counted(nfe, 'network evaluation')} each"
    by = "from the reference" if model.diffusion.adds_nothing else evaluated
    return f"{out}: {counted(n, 'signal')} on {counted(len(model.graph), 'node')}, {by}"


def _sample_windows(
    model: GRCD, series: SeriesModel, out: Path, n: int, nfe: int, seed: int, start: str | None, file: Path | None
) -> str:
    from ..core.errors import whole_number
    from ..data.formats.windows import Windows, write_windows
    from ..data.origin import Origin

    whole_number("n", n)
    known = windows.covariates(series, file)
    signals, times = series.sample(n, nfe, seed, parsing.moment(start), **known)
    clock = Origin.of_run(model.facts).clock
    made = Windows(signals, model.graph.node_ids, series.channels, series.units, times, clock)
    write_windows(out, made, windows.lacking(series))
    rows, nodes = counted(series.space.steps, "row"), counted(len(model.graph), "node")
    network = model.result.get("network", True)
    how = f"{counted(nfe, 'network evaluation')} each" if network else "from the reference"
    return f"{out}: {counted(n, 'window')} of {rows} on {nodes}, {how}"


def augment(
    run: Trained,
    signals: Signals,
    out: Annotated[Path, typer.Option(help="The file to write: .npz, .csv, .parquet or .nc.")],
    strength: Annotated[float, typer.Option(help="From 0, the signal itself, to 1, any signal.")] = 0.2,
    n: Annotated[int, typer.Option("-n", help="Variations of each signal.")] = 1,
    nfe: Annotated[int, typer.Option(help="Network evaluations for each of them.")] = 4,
    covariates: Covariates = None,
    every: Every = None,
    common: Common = False,
    seed: Seed = 0,
    device: Device = "auto",
    force: Force = False,
) -> None:
    """Vary given signals, complete ones: noise is added, and taken away again.

    Of several variations all first ones come first, then the second ones, without their times.
    """
    from ..core.files import refuse_existing
    from ..data.formats.writing import check_writable_ending, write_signals
    from ..data.observed import read_observed
    from ..data.origin import Origin
    from ..model import load

    refuse_existing(out, force)
    check_writable_ending(out)
    model = load(run, device)
    series = windows.of(model)
    if series is not None:
        _augment_rows(model, series, signals, out, strength, n, nfe, seed, common, every, covariates)
        return
    file = windows.moments_only(signals, "--signals", covariates=covariates, every=every)
    origin = Origin.of_run(model.facts)
    common = common or origin.common
    table = read_observed(file, model.graph, origin.markers or (), common, dropped=origin.dropped, label=origin.label)
    variations = model.augment(table.x, strength, n, nfe, seed)[:, :, table.order]
    times = table.times if n == 1 else None  # of several variations none is the one of that time
    write_signals(out, variations.reshape(-1, len(table.order)), tuple(table.node_ids), model.unit, times, table.clock)
    print(f"{out}: {counted(n, 'variation')} of {counted(len(table.x), 'signal')}, strength {strength:g}")


def _augment_rows(
    model: GRCD,
    series: SeriesModel,
    files: list[str],
    out: Path,
    strength: float,
    n: int,
    nfe: int,
    seed: int,
    common: bool,
    every: str | None,
    covariates: Path | None,
) -> None:
    """In time; of several variations all first ones come first."""
    table, known = windows.observed(model, series, files, common, False, every), windows.covariates(series, covariates)
    varied = table.laid_out(series.augment(table.series, strength, n, nfe, seed, **known))
    varied = varied.reshape(-1, *varied.shape[2:])
    windows.filled(series, table, table.series.times if n == 1 else None, ()).write_rows(out, varied)
    rows = counted(len(table.series), "row")
    print(f"{out}: {counted(n, 'variation')} of {rows}, strength {strength:g}")


def score(
    run: Trained,
    signals: Signals,
    out: Annotated[
        Path | None, typer.Option(help="A .csv to write: one line a signal; of many files the folder they go to.")
    ] = None,
    posterior: Annotated[
        str, typer.Option(help="diffusion: by the probability flow; reference: exact, under the reference alone.")
    ] = "diffusion",
    nodes: Annotated[
        bool, typer.Option("--nodes", help="A column for each node: its reading given all others of the signal.")
    ] = False,
    covariates: Covariates = None,
    every: Every = None,
    common: Common = False,
    seed: Seed = 0,
    device: Device = "auto",
    workers: Workers = None,
    scheduler: Scheduler = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """How probable signals are under a model: log-likelihoods, to rank anomalies by.

    A run with a window scores every row given those before and after it, under its reference. Many files are a folder
    or a glob of .parquet files; a table of scores comes of each.
    """
    from ..cluster.partitions import is_many
    from ..core.errors import InputError
    from ..core.files import refuse_existing, refuse_other_ending
    from ..model import load

    options: dict[str, Any] = {
        "posterior": posterior,
        "nodes": nodes,
        "covariates": covariates,
        "every": every,
        "common": common,
    }
    if is_many(signals) or workers is not None or scheduler is not None:
        if out is None or as_json:
            got = f"many files {'with --json' if as_json else 'without --out'}"
            raise InputError(got, "a folder for their scores", "give --out FOLDER, and no --json")
        Job(_score, run, device, options).done(signals, out, seed, force, workers, scheduler)
        return
    if out is not None:
        refuse_existing(out, force)
        refuse_other_ending(out, ".csv")
    scores = _scores(load(run, device), signals, out, seed, **options)
    scores.write(out)
    print(scores.json() if as_json else scores)


def _score(model: GRCD, files: Sequence[str], out: Path, seed: int, **options: Any) -> str:
    scores = _scores(model, files, out, seed, **options)
    scores.write(out)
    return f"{out}: {scores.summary}"


def _scores(
    model: GRCD,
    files: Sequence[str],
    out: Path | None,
    seed: int,
    posterior: str,
    nodes: bool,
    covariates: Path | None,
    every: str | None,
    common: bool,
) -> Scores:
    from . import scoring

    series = windows.of(model)
    if series is None:
        file = windows.moments_only(files, "--signals", covariates=covariates, every=every)
        return scoring.moments(model, file, posterior, nodes, common, seed, "" if out is None else str(out))
    table = windows.observed(model, series, files, common, False, every)
    return scoring.rows(series, table, windows.covariates(series, covariates), nodes)


@on_data
def report(
    run: Trained,
    options: dict,
    samples: Annotated[Path | None, typer.Option(help="Generated signals; else some are generated.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="The .html file to write; by default report.html in the run.")
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option("--data", help="The data, if they are not where they were when the run was trained."),
    ] = None,
    covariates: Covariates = None,
    n: Annotated[
        int | None, typer.Option("-n", help="How many signals to generate: 1000, or 200 windows.", show_default=False)
    ] = None,
    nfe: Annotated[int, typer.Option(help="Network evaluations for each of them.")] = 4,
    filled: Annotated[
        bool, typer.Option("--filled/--no-filled", help="Hide some readings, and show how they are filled.")
    ] = True,
    seed: Seed = 0,
    device: Device = "auto",
    force: Force = False,
) -> None:
    """One page on a run that a colleague can open: pictures, scores, where it comes from."""
    from .. import report as pages
    from ..core.errors import InputError
    from ..core.files import refuse_existing, refuse_other_ending
    from ..data import load_dataset, load_series
    from ..graphs.graph import LARGE
    from ..model import load

    out = run / "report.html" if out is None else out
    refuse_other_ending(out, ".html")
    if not data:
        refuse_without_data(options)
    model = load(run, device)
    if model.space.graph.large:
        got, expected = f"a report on {len(model.space.graph):,} nodes", f"up to {LARGE:,}, which pictures can show"
        raise InputError(got, expected, "use grcd evaluate and grcd score")
    refuse_existing(out, force or out == run / "report.html")
    series = windows.of(model)
    if series is None:
        windows.moments_only(data or ["-"], "--data", covariates=covariates)
    try:
        source = {"source": data if len(data) > 1 else data[0], **options} if data else of_run(model.facts, run)
        dataset: Any = load_dataset(**source) if series is None else load_series(**source)
    except InputError as error:
        do = error.do if data else "if the data have moved, say where they are: --data FILE --graph FILE"
        raise InputError(error.got, error.expected, do) from None
    material: Any
    if series is None:
        signals = None if samples is None else _signals(samples, dataset, options["common"])
        material = pages.Material.of(
            model, dataset, signals, run, 1000 if n is None else n, nfe, seed, filled, parsing.command()
        )
    else:
        signals = None if samples is None else windows.read_samples(samples, dataset, options["common"])
        known = windows.covariates(series, covariates or windows.remembered_covariates(model))
        how = {"command": parsing.command(), **known} | ({} if n is None else {"n": n})
        material = pages.SeriesMaterial.of(model, dataset, signals, run, nfe=nfe, seed=seed, **how)
    size = pages.write(out, material)
    print(f"{out}: {size / 1e6:.1f} MB. {pages.verdict(material)[1]}")


def _signals(file: Path, data: Dataset, common: bool) -> np.ndarray:  # (signals, nodes)
    from ..data.formats.signals import read_signals
    from ..data.matching import fitted

    table = read_signals(file, nodes=data.graph.node_ids)
    return fitted(table.values, table.node_ids, data.graph, str(file), common=common)[0]
