"""The commands of section 4 of the design. Library imports are inside: the parser must answer at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from . import bench, parsing
from .options import Device, asked, found_again, on_data

app = typer.Typer(
    help="Generative models for signals on graphs: train, sample, score, in four network evaluations.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
data_app = typer.Typer(help="Datasets: list, get, inspect and export them.", no_args_is_help=True)
app.add_typer(data_app, name="data")
app.add_typer(bench.app, name="bench")

Data = Annotated[str, typer.Option("--data", help="A dataset's name, or a file of signals.")]
Seed = Annotated[int, typer.Option(help="Every random number follows from it.")]
FEW = 200  # signals below which a score is mostly chance
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Force = Annotated[bool, typer.Option("--force", help="Replace what is there.")]


@app.callback(invoke_without_command=True)
def root(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        import grcd

        print(f"grcd {grcd.__version__}")
        raise typer.Exit


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Where its output goes; an earlier demo there is replaced.")] = Path("demo"),
    seed: Seed = 0,
) -> None:
    """Train, sample, score and draw on built-in data: two minutes on a laptop, nothing needed."""
    from ..demo import demo as run_demo

    run_demo(out, seed)


@data_app.command("list")
def list_data() -> None:
    """The datasets that have a name."""
    from ..data.recipes import NAMES

    for name, about in NAMES.items():
        print(f"{name:10}{about}")
    print(
        "\nYour own: --data FILE --graph FILE; grcd data inspect FILE --graph FILE tells whether they suit the method."
    )


@data_app.command()
def get(
    name: Annotated[str, typer.Argument(help="metr-la or molene.")],
    data_dir: Annotated[
        Path | None, typer.Option(help="Where to put it; by default GRCD_DATA, or else the user's cache folder.")
    ] = None,
    given: Annotated[
        list[Path] | None, typer.Option("--from", help="A file or folder you have already; may be repeated.")
    ] = None,
    mirror: Annotated[
        str | None, typer.Option(help="Download from here in place of https://raw.githubusercontent.com.")
    ] = None,
) -> None:
    """Bring METR-LA or Molene from their public homes, checked against known sums. Goes on where it was interrupted.

    METR-LA: speeds from the repository thanhquanse/PGAIN-VS, which states no licence; graph and positions from
    liyaguang/DCRNN (MIT), with which the data were published. Molene: Meteo-France, Licence Ouverte / Open Licence.
    """
    from ..data import sources
    from ..data.recipes import folders

    paths = sources.get(name, folders(data_dir)[0], given or [], mirror)
    for path in paths:
        print(f"{path}: {path.stat().st_size / 1e6:.1f} MB")
    print(sources.SOURCES[name].licence)


@data_app.command("inspect")
@on_data
def inspect_data(
    files: Annotated[list[str], typer.Argument(help="Files of signals, or names of datasets.")],
    options: dict,
    as_json: Json = False,
    picture: Annotated[Path | None, typer.Option(help="Draw it too: a .png file.")] = None,
    force: Force = False,
) -> None:
    """One screen that tells whether these data suit the method, with a remedy for whatever does not."""
    from ..errors import InputError
    from ..files import refuse_existing
    from ..inspection import inspect

    if picture is not None:
        if len(files) > 1:
            raise InputError(f"--picture for {len(files)} files", "one file", "draw one at a time")
        refuse_existing(picture, force)
    found = {file: inspect(file, picture=picture, **options) for file in files}
    if as_json:
        values = {file: inspection.to_dict() for file, inspection in found.items()}
        print(json.dumps(values[files[0]] if len(files) == 1 else values))
        return
    print("\n\n".join(str(inspection) for inspection in found.values()))
    if picture is not None and picture.exists():
        print(f"drawn: {picture}")


@data_app.command()
@on_data
def export(
    name: Annotated[str, typer.Argument(help="A dataset's name, or a file of signals.")],
    options: dict,
    out: Annotated[Path, typer.Option(help="The file to write, F.npz.")],
    force: Force = False,
) -> None:
    """Write a dataset as used (filled, split, capped) to one file: train, val, test, mean, std, adjacency, node_ids."""
    from ..data import load_dataset
    from ..data.writing import check_dataset_ending, write_dataset
    from ..files import refuse_existing

    check_dataset_ending(out)
    refuse_existing(out, force)
    data = load_dataset(name, **options)
    write_dataset(out, data)
    print(f"{out}: {len(data.train)} / {len(data.val)} / {len(data.test)} signals on {len(data.graph)} nodes")


@app.command()
@on_data
def train(
    data: Data,
    options: dict,
    method: Annotated[str, typer.Option(help="What to train; see the README for the table of methods.")] = "grcd",
    out: Annotated[Path | None, typer.Option(help="The run folder; by default runs/DATA-METHOD-sSEED.")] = None,
    seed: Seed = 0,
    device: Device = "auto",
    max_updates: Annotated[int | None, typer.Option(help="Stop after so many updates at the latest.")] = None,
    support: Annotated[
        tuple[float, float] | None, typer.Option(help="LOW HIGH: no generated reading is ever outside.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Any other setting, as key=value: width, lr, kappa, batch, ...; may be repeated."),
    ] = None,
    force: Force = False,
) -> None:
    """Train a model. Interrupt it anywhere: the same command goes on where it was."""
    from ..data import load_dataset
    from ..model import GRCD
    from ..run import METRICS, is_finished

    chosen = parsing.settings(settings or [])
    if max_updates is not None:
        chosen["max_updates"] = max_updates
    if support is not None:
        chosen["support"] = ",".join(map(repr, support))
    dataset = load_dataset(data, **options)
    run = out or Path("runs") / f"{dataset.name}-{method}-s{seed}"
    before = is_finished(run) and not force
    model = GRCD(dataset.graph, method, seed, device, **chosen)
    about = dataset.facts | {"asked": asked(data, options), "command": parsing.command()}
    model.fit(dataset.train, dataset.val, run=run, force=force, name=dataset.name, about=about)
    result = model.result
    print(f"{run}: {'has finished already' if before else 'finished'}")
    print(f"  {result['updates']} updates in {result['seconds']:.0f} s; {result['stopped']}")
    print(f"  validation error {result['val']:.4f}, of the reference alone {result['val_reference_alone']:.4f}")
    if result["val"] >= result["val_reference_alone"]:
        print("  The network is not better than its reference: train longer (--max-updates, --force), or the reference")
        print("  says all there is to say of these signals; grcd evaluate --controls tells.")
    print(f"  log: {run / METRICS}   next: grcd sample {run} -n 1000 --nfe 4 --out samples.npz")


@app.command()
def sample(
    run: Annotated[Path, typer.Argument(help="A finished run folder.")],
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
    from ..data.writing import check_writable_ending, write_signals
    from ..files import make_folder, refuse_existing
    from ..model import load

    refuse_existing(out, force)
    check_writable_ending(out)
    make_folder(out.parent)
    model = load(run, device)
    signals = model.sample(n, nfe, seed, solver, rho, parsing.levels(grid), precision=precision, start=start)
    write_signals(out, signals, model.graph.node_ids, model.unit)
    print(f"{out}: {n} signals on {len(model.graph)} nodes, {nfe} network evaluations each")


@app.command()
def impute(
    run: Annotated[Path, typer.Argument(help="A finished run folder.")],
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
    common: Annotated[bool, typer.Option("--common", help="Drop columns that the model does not know.")] = False,
    seed: Seed = 0,
    device: Device = "auto",
    force: Force = False,
) -> None:
    """Fill the gaps of a table, with uncertainty: the median of many draws, quantiles, or all of them."""
    from ..data.filled import Filled
    from ..data.given import read_given
    from ..data.writing import check_writable_ending
    from ..files import refuse_existing
    from ..model import load

    refuse_existing(out, force)
    check_writable_ending(out)
    levels = parsing.shares(quantiles)
    model = load(run, device)
    given = read_given(observed, model.graph, missing or [], common, absent=True)
    found = model.fillings(given.x, n, nfe, seed, posterior)
    draws = ((rows, drawn[:, :, given.order]) for rows, drawn in found)
    shape = (n, len(given.x), len(given.order))
    Filled(given.node_ids, given.times, levels, model.unit).write(out, draws, shape, ensemble)
    gaps = int((given.x != given.x).sum())
    print(f"{out}: {gaps} gaps in {len(given.x)} signals on {len(given.order)} nodes filled, {n} draws each")


@app.command()
def augment(
    run: Annotated[Path, typer.Argument(help="A finished run folder.")],
    signals: Annotated[Path, typer.Option(help="Complete signals, in any format that signals are read from.")],
    out: Annotated[Path, typer.Option(help="The file to write: .npz, .csv, .parquet or .nc.")],
    strength: Annotated[float, typer.Option(help="From 0, the signal itself, to 1, any signal.")] = 0.2,
    n: Annotated[int, typer.Option("-n", help="Variations of each signal.")] = 1,
    nfe: Annotated[int, typer.Option(help="Network evaluations for each of them.")] = 4,
    common: Annotated[bool, typer.Option("--common", help="Drop columns that the model does not know.")] = False,
    seed: Seed = 0,
    device: Device = "auto",
    force: Force = False,
) -> None:
    """Vary given signals: noise is added, and taken away again. First variations come first, then second ones."""
    from ..data.given import read_given
    from ..data.writing import check_writable_ending, write_signals
    from ..files import refuse_existing
    from ..model import load

    refuse_existing(out, force)
    check_writable_ending(out)
    model = load(run, device)
    given = read_given(signals, model.graph, common=common)
    found = model.augment(given.x, strength, n, nfe, seed)[:, :, given.order]
    write_signals(out, found.reshape(-1, len(given.order)), tuple(given.node_ids), model.unit)
    print(f"{out}: {n} variation{'s' * (n > 1)} of {len(given.x)} signals, strength {strength:g}")


@app.command()
def score(
    run: Annotated[Path, typer.Argument(help="A finished run folder.")],
    signals: Annotated[Path, typer.Option(help="Signals, in any format that signals are read from.")],
    out: Annotated[Path | None, typer.Option(help="A .csv to write: one line a signal.")] = None,
    posterior: Annotated[
        str, typer.Option(help="diffusion: by the probability flow; reference: exact, under the reference alone.")
    ] = "diffusion",
    nodes: Annotated[
        bool, typer.Option("--nodes", help="A column for each node: its reading given all others of the signal.")
    ] = False,
    common: Annotated[bool, typer.Option("--common", help="Drop columns that the model does not know.")] = False,
    seed: Seed = 0,
    device: Device = "auto",
    force: Force = False,
    as_json: Json = False,
) -> None:
    """How probable signals are under a model: log-likelihoods, to rank anomalies by."""
    import pandas

    from ..data.given import read_given
    from ..files import refuse_existing, whole
    from ..model import load

    if out is not None:
        refuse_existing(out, force)
    model = load(run, device)
    given = read_given(signals, model.graph, common=common)
    likelihood, error = model.log_prob(given.x, posterior, seed=seed)
    table = {"signal": range(len(given.x))} if given.times is None else {"time": given.times}
    table |= {"log_likelihood": likelihood, "error": error}
    if nodes:
        table |= dict(zip(given.node_ids, model.node_log_prob(given.x)[:, given.order].T, strict=True))
    frame = pandas.DataFrame(table)
    if out is not None:
        with whole(out) as temporary:
            frame.to_csv(temporary, index=False)
    if as_json:
        print(frame.to_json(orient="columns", date_format="iso"))
        return
    print(
        f"{len(frame)} signals, log-likelihood {likelihood.mean():.2f} on average, {error.mean():.2f} the error of one"
    )
    print("the least probable:")
    print(frame.iloc[:, :3].nsmallest(5, "log_likelihood").to_string(index=False))


@app.command()
@on_data
def report(
    run: Annotated[Path, typer.Argument(help="A finished run folder.")],
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
    from ..data import load_dataset
    from ..data.matching import fitted
    from ..data.signals import read_signals
    from ..errors import InputError
    from ..files import refuse_existing
    from ..model import load

    out = run / "report.html" if out is None else out
    model = load(run, device)
    refuse_existing(out, force or out == run / "report.html")
    found = found_again(model.facts, run) if data is None else {"source": data, **options}
    try:
        dataset, signals = load_dataset(**found), None
    except InputError as error:
        do = error.do if data else "if the data have moved, say where they are: --data FILE --graph FILE"
        raise InputError(error.got, error.expected, do) from None
    if samples is not None:
        table = read_signals(samples)
        signals, _ = fitted(table.values, table.node_ids, dataset.graph, str(samples), common=options["common"])
    material = pages.Material.of(model, dataset, signals, run, n, nfe, seed, filled, parsing.command())
    size = pages.write(out, material)
    print(f"{out}: {size / 1e6:.1f} MB. {pages.verdict(material)[1]}")


@app.command()
@on_data
def evaluate(
    file: Annotated[Path, typer.Argument(help="Generated signals, in any of the formats that signals are read from.")],
    data: Data,
    options: dict,
    split: Annotated[str, typer.Option(help="What to compare with: test, val or train.")] = "test",
    observed_only: Annotated[
        bool, typer.Option("--observed-only", help="Leave out what was missing in the data, and filled.")
    ] = False,
    controls: Annotated[
        bool, typer.Option("--controls", help="Score as many signals of the Gaussian controls beside.")
    ] = False,
    distances: Annotated[
        bool, typer.Option("--distances", help="Distances of whole signals too, which no covariance can fool.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Score generated signals against held-out ones: aMMD and its parts, with the floor beside."""
    from ..data import load_dataset
    from ..data.matching import fitted
    from ..data.signals import read_signals
    from ..evaluation import distances as measured
    from ..evaluation import evaluate as score
    from ..evaluation.distances import table as laid_out

    dataset, table = load_dataset(data, **options), read_signals(file)
    signals, _ = fitted(table.values, table.node_ids, dataset.graph, str(file), common=options["common"])
    scores = score(signals, dataset, split, observed_only=observed_only, controls=controls)
    beyond = measured(signals, dataset, split) if distances else {}
    if as_json:
        named = {name: distance.to_dict() for name, distance in beyond.items()}
        print(json.dumps(scores.to_dict() | ({"distances": named} if distances else {})))
        return
    print(f"{file}: {scores.n} signals against the {split} split of {dataset.name} (MMD^2, lower is better)")
    print(scores)
    print("floor: training signals against the same split; unbiased estimates may come out just below zero")
    if controls:
        print(
            "control-...: Gaussians, and a mixture of them, fitted to the training signals; what a network has to beat"
        )
    if distances:
        print(f"\n{laid_out(beyond)}")
        print("ratio: value over floor, where the floor is more than chance; ideal: what the same distribution scores")
    if scores.n < FEW:
        print(f"{scores.n} signals say little: score {FEW} or more")
