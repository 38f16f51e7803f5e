"""Commands on a trained model: sample, impute, augment, score, report. ``commands`` puts them on the parser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from . import parsing
from .options import Common, Device, Force, Json, Seed, Trained, changed, of_run, on_data


def sample(
    run: Trained,
    out: Annotated[Path, typer.Option(help="The file to write: .npz, .csv, .parquet or .nc.")],
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
        float | None, typer.Option(help="Where to start, as a share of the largest noise level; by default as chosen.")
    ] = None,
    seed: Seed = 0,
    device: Device = "auto",
    precision: Annotated[str, typer.Option(help="The network's: float32, or bfloat16 (faster on a GPU).")] = "float32",
    force: Force = False,
) -> None:
    """Generate signals from a trained model, in the units of the training signals."""
    from ..core.files import make_folder, refuse_existing
    from ..data.formats.writing import check_writable_ending, write_signals
    from ..model import load

    refuse_existing(out, force)
    check_writable_ending(out)
    make_folder(out.parent)
    model = load(run, device)
    signals = model.sample(n, nfe, seed, solver, rho, parsing.levels(grid), precision=precision, start=start)
    write_signals(out, signals, model.graph.node_ids, model.unit)
    print(f"{out}: {parsing.counted(n, 'signal')} on {len(model.graph)} nodes, {nfe} network evaluations each")


def impute(
    run: Trained,
    observed: Annotated[Path, typer.Option(help="Signals with gaps, in any format that signals are read from.")],
    out: Annotated[Path, typer.Option(help="The file to write: .csv, .parquet, .npz or .nc.")],
    n: Annotated[int, typer.Option("-n", help="How many times each signal is filled.")] = 100,
    nfe: Annotated[int, typer.Option(help="Network evaluations for each of them.")] = 8,
    posterior: Annotated[
        str, typer.Option(help="diffusion, or reference: that of the fitted reference alone, exact and quick.")
    ] = "diffusion",
    quantiles: Annotated[str | None, typer.Option(help="Levels to write beside the median, e.g. 0.05,0.95.")] = None,
    ensemble: Annotated[bool, typer.Option("--ensemble", help="Write all draws too: .npz, .parquet or .nc.")] = False,
    missing: Annotated[
        list[float] | None, typer.Option(help="A value that marks a missing reading; may be repeated.")
    ] = None,
    common: Common = False,
    seed: Seed = 0,
    device: Device = "auto",
    force: Force = False,
) -> None:
    """Fill the gaps of a table, with uncertainty: the median of many draws, quantiles, or all of them."""
    from ..core.files import refuse_existing
    from ..data.formats.filled import Filled
    from ..data.formats.writing import check_writable_ending
    from ..data.observed import read_observed
    from ..data.options import markers
    from ..data.origin import Origin
    from ..model import load

    refuse_existing(out, force)
    check_writable_ending(out)
    levels = parsing.shares(quantiles)
    model = load(run, device)
    marks = markers(missing) or Origin.of_run(model.facts).markers or ()
    table = read_observed(observed, model.graph, marks, common, absent=True)
    fillings = model.fillings(table.x, n, nfe, seed, posterior)
    draws = ((rows, drawn[:, :, table.order]) for rows, drawn in fillings)
    shape = (n, len(table.x), len(table.order))
    Filled(table.node_ids, table.times, levels, model.unit).write(out, draws, shape, ensemble)
    gaps, signals, each = (
        parsing.counted(count, what)
        for count, what in ((int((table.x != table.x).sum()), "gap"), (len(table.x), "signal"), (n, "draw"))
    )
    print(f"{out}: {gaps} in {signals} on {len(table.order)} nodes filled, {each} each")


def augment(
    run: Trained,
    signals: Annotated[Path, typer.Option(help="Complete signals, in any format that signals are read from.")],
    out: Annotated[Path, typer.Option(help="The file to write: .npz, .csv, .parquet or .nc.")],
    strength: Annotated[float, typer.Option(help="From 0, the signal itself, to 1, any signal.")] = 0.2,
    n: Annotated[int, typer.Option("-n", help="Variations of each signal.")] = 1,
    nfe: Annotated[int, typer.Option(help="Network evaluations for each of them.")] = 4,
    common: Common = False,
    seed: Seed = 0,
    device: Device = "auto",
    force: Force = False,
) -> None:
    """Vary given signals: noise is added, and taken away again.

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
    table = read_observed(signals, model.graph, Origin.of_run(model.facts).markers or (), common)
    variations = model.augment(table.x, strength, n, nfe, seed)[:, :, table.order]
    times = table.times if n == 1 else None  # of several variations none is the one of that time
    write_signals(out, variations.reshape(-1, len(table.order)), tuple(table.node_ids), model.unit, times)
    print(
        f"{out}: {parsing.counted(n, 'variation')} of {parsing.counted(len(table.x), 'signal')}, strength {strength:g}"
    )


def score(
    run: Trained,
    signals: Annotated[Path, typer.Option(help="Signals, in any format that signals are read from.")],
    out: Annotated[Path | None, typer.Option(help="A .csv to write: one line a signal.")] = None,
    posterior: Annotated[
        str, typer.Option(help="diffusion: by the probability flow; reference: exact, under the reference alone.")
    ] = "diffusion",
    nodes: Annotated[
        bool, typer.Option("--nodes", help="A column for each node: its reading given all others of the signal.")
    ] = False,
    common: Common = False,
    seed: Seed = 0,
    device: Device = "auto",
    force: Force = False,
    as_json: Json = False,
) -> None:
    """How probable signals are under a model: log-likelihoods, to rank anomalies by."""
    import numpy as np
    import pandas

    from ..core.files import refuse_existing, refuse_other_ending, whole
    from ..data.formats.writing import refuse_not_finite, warn_of_formulas
    from ..data.observed import read_observed
    from ..data.origin import Origin
    from ..data.times import as_text
    from ..model import load

    if out is not None:
        refuse_existing(out, force)
        refuse_other_ending(out, ".csv")
    model = load(run, device)
    table = read_observed(signals, model.graph, Origin.of_run(model.facts).markers or (), common)
    readings = (~np.isnan(table.x)).sum(axis=1)
    likelihood, error = model.log_prob(table.x, posterior, seed=seed)
    refuse_not_finite(np.stack([likelihood, error]), "the log-likelihoods" if out is None else out)
    columns: dict[str, Any] = {"signal": range(len(table.x))} if table.times is None else {"time": as_text(table.times)}
    columns |= {"log_likelihood": likelihood, "error": error}
    columns |= {} if (readings == len(model.graph)).all() else {"readings": readings}
    about, each = list(columns), None
    if nodes:
        each = pandas.DataFrame(model.node_log_prob(table.x)[:, table.order], columns=table.node_ids)
        columns |= dict(each.items())
    frame = pandas.DataFrame(columns)
    if out is not None:
        with whole(out) as temporary:
            frame.to_csv(temporary, index=False)
        warn_of_formulas(out, frame.columns)
    if as_json:
        print(frame.to_json(orient="columns", date_format="iso"))
        return
    count = parsing.counted(len(frame), "signal")
    print(f"{count}, log-likelihood {likelihood.mean():.2f} on average, each known to {error.mean():.2f} (95 %)")
    print("the least probable:")
    print(frame[about].nsmallest(5, "log_likelihood").to_string(index=False))
    if each is not None:
        least = each.set_axis(frame[about[0]]).stack().rename_axis([about[0], "node"]).nsmallest(5)
        print("the least probable readings, given all others of their signals:")
        print(least.rename("log_likelihood").reset_index().to_string(index=False))


@on_data
def report(
    run: Trained,
    options: dict,
    samples: Annotated[Path | None, typer.Option(help="Generated signals; else some are generated.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="The .html file to write; by default report.html in the run.")
    ] = None,
    data: Annotated[
        str | None, typer.Option("--data", help="The data, if they are not where they were when the run was trained.")
    ] = None,
    n: Annotated[int, typer.Option("-n", help="How many signals to generate.")] = 1000,
    nfe: Annotated[int, typer.Option(help="Network evaluations for each of them.")] = 4,
    filled: Annotated[bool, typer.Option("--filled", help="Hide some readings, and show how they are filled.")] = False,
    seed: Seed = 0,
    device: Device = "auto",
    force: Force = False,
) -> None:
    """One page on a run that a colleague can open: pictures, scores, where it comes from."""
    from .. import report as pages
    from ..core.errors import InputError
    from ..core.files import refuse_existing, refuse_other_ending
    from ..data import load_dataset
    from ..data.formats.signals import read_signals
    from ..data.matching import fitted
    from ..data.options import flag
    from ..model import load

    out = run / "report.html" if out is None else out
    refuse_other_ending(out, ".html")
    if data is None and (others := {*changed(options)} - {"common"}):
        names = ", ".join(flag(name) for name in sorted(others))
        raise InputError(f"{names} without --data", "both, or neither", "add --data FILE, or leave it out")
    model = load(run, device)
    refuse_existing(out, force or out == run / "report.html")
    try:
        dataset = load_dataset(**(of_run(model.facts, run) if data is None else {"source": data, **options}))
    except InputError as error:
        do = error.do if data else "if the data have moved, say where they are: --data FILE --graph FILE"
        raise InputError(error.got, error.expected, do) from None
    signals = None
    if samples is not None:
        table = read_signals(samples, nodes=dataset.graph.node_ids)
        signals, _ = fitted(table.values, table.node_ids, dataset.graph, str(samples), common=options["common"])
    material = pages.Material.of(model, dataset, signals, run, n, nfe, seed, filled, parsing.command())
    size = pages.write(out, material)
    print(f"{out}: {size / 1e6:.1f} MB. {pages.verdict(material)[1]}")
