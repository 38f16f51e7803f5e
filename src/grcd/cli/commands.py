"""The commands of section 4 of the design. Library imports are inside: the parser must answer at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from .options import on_data

app = typer.Typer(
    help="Generative models for signals on graphs: train, sample, score, in four network evaluations.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
data_app = typer.Typer(help="Datasets: list, get, inspect and export them.", no_args_is_help=True)
bench_app = typer.Typer(help="The benchmark: run its suites, print its tables, draw its figures.", no_args_is_help=True)
app.add_typer(data_app, name="data")
app.add_typer(bench_app, name="bench")

Data = Annotated[str, typer.Option("--data", help="A dataset's name, or a file of signals.")]
Seed = Annotated[int, typer.Option(help="Every random number follows from it.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
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

    chosen = _settings(settings or [])
    if max_updates is not None:
        chosen["max_updates"] = max_updates
    dataset = load_dataset(data, **options)
    run = out or Path("runs") / f"{dataset.name}-{method}-s{seed}"
    before = is_finished(run) and not force
    model = GRCD(dataset.graph, method, seed, device, **chosen)
    model.fit(dataset.train, dataset.val, run=run, force=force, name=dataset.name, about=dataset.facts)
    result = model.result
    print(f"{run}: {'has finished already' if before else 'finished'}")
    print(f"  {result['updates']} updates in {result['seconds']:.0f} s; {result['stopped']}")
    print(f"  validation error {result['val']:.4f}, of the reference alone {result['val_reference_alone']:.4f}")
    if result["val"] >= result["val_reference_alone"]:
        print("  The network is not yet better than its Gaussian reference: train longer (--max-updates, --force).")
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
            help="By default the method's: exponential, exponential-paper, heun, heun-paper, dpm++2m, dpm++3m."
        ),
    ] = None,
    rho: Annotated[float | None, typer.Option(help="Exponent of the power grid; by default the method's.")] = None,
    grid: Annotated[str, typer.Option(help="power, log-snr, or noise levels as q0,q1,...")] = "power",
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
    signals = model.sample(n, nfe, seed, solver, rho, _levels(grid), precision=precision)
    write_signals(out, signals, model.graph.node_ids, model.unit)
    print(f"{out}: {n} signals on {len(model.graph)} nodes, {nfe} network evaluations each")


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
        print("control-...: Gaussians fitted to the training signals, no network; what a model has to beat")
    if distances:
        print(f"\n{laid_out(beyond)}")
        print("ratio: value over floor, where the floor is more than chance; ideal: what the same distribution scores")
    if scores.n < FEW:
        print(f"{scores.n} signals say little: score {FEW} or more")


Suite = Annotated[
    str,
    typer.Argument(help="main, ladder, solvers, grid, snr, controls, cost, symmetrizer, gad-native, beyond or quick."),
]
Settings = Annotated[
    str | None, typer.Option("--settings", help="Which datasets, with commas; by default the suite's.")
]
Methods = Annotated[str | None, typer.Option("--methods", help="Only these methods, with commas.")]
Seeds = Annotated[str, typer.Option(help="Which seeds, with commas.")]
Results = Annotated[Path, typer.Option(help="Where the cells are.")]


@bench_app.command("run")
def bench_run(
    suite: Suite,
    settings: Settings = None,
    seeds: Seeds = "0,1,2",
    methods: Methods = None,
    device: Device = "auto",
    jobs: Annotated[int, typer.Option(help="Trainings side by side.")] = 1,
    results: Results = Path("results"),
    runs: Annotated[Path, typer.Option(help="Where the trained networks are kept.")] = Path("runs/bench"),
    chosen: Annotated[
        list[str] | None, typer.Option("--set", help="A training setting for all, as key=value; may be repeated.")
    ] = None,
) -> None:
    """Compute the cells of a suite that are not there yet. Interrupt it anywhere: the same command goes on."""
    from ..bench import runner, suites

    cells = suites.cells(suite, _listed(settings), _numbers(seeds), _listed(methods))
    computed, failed = runner.run(cells, results, runs, device, jobs, _settings(chosen or []))
    print(f"{suite}: {len(cells)} cells, {computed} computed now, {failed} failed")
    print(f"next: grcd bench table {suite} --results {results}" + (f" --settings {settings}" if settings else ""))


@bench_app.command("table")
def bench_table(
    suite: Suite,
    settings: Settings = None,
    seeds: Seeds = "0,1,2",
    kind: Annotated[str, typer.Option("--format", help="md, tex or csv.")] = "md",
    results: Results = Path("results"),
) -> None:
    """Print a suite as a table: mean and sd over seeds, the paper's value and the ratio, controls and floor."""
    from ..bench import cost, suites, tables

    cells = suites.cells(suite, _listed(settings), _numbers(seeds))
    if suite == "cost":
        print(cost.table(list(dict.fromkeys(cell.setting for cell in cells)), _numbers(seeds), results, kind), end="")
        return
    print(tables.render(tables.collected(suite, cells, results), kind), end="")


@bench_app.command("figures")
def bench_figures(
    settings: Annotated[str | None, typer.Option(help="Which datasets, with commas; by default all.")] = None,
    seeds: Seeds = "0,1,2",
    results: Results = Path("results"),
    out: Annotated[Path | None, typer.Option(help="Where to draw; by default RESULTS/figures.")] = None,
) -> None:
    """Draw what has been measured: terminal references (snr), quality against time (cost) and budget (main)."""
    from ..bench import figures

    written, lacking = figures.draw(results, out or results / "figures", _listed(settings), _numbers(seeds))
    for path in written:
        print(f"drawn: {path}")
    for name, error in lacking.items():
        print(f"left out: {name}: {error.got}; {error.do}")


def _listed(text: str | None) -> list[str]:
    return [part.strip() for part in text.split(",")] if text else []


def _numbers(text: str) -> list[int]:
    from ..errors import InputError

    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"--seeds {text}", "whole numbers with commas", "for example --seeds 0,1,2") from None


def _settings(pairs: list[str]) -> dict[str, str]:
    """`--set key=value` options; their keys and types are checked where the configuration is made."""
    from ..errors import InputError

    for pair in pairs:
        if "=" not in pair:
            raise InputError(f"--set {pair}", "key=value", "for example --set lr=1e-3")
        if pair.split("=")[0] in ("method", "seed"):
            raise InputError(f"--set {pair}", f"--{pair.replace('=', ' ')}", "give it as an option of its own")
    return dict(pair.split("=", 1) for pair in pairs)


def _levels(grid: str) -> str | list[float]:
    """`--grid`: a name, or numbers."""
    try:
        return [float(level) for level in grid.split(",")]
    except ValueError:
        return grid
