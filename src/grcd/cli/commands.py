"""The commands of section 4 of the design. Library imports are inside: the parser must answer at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="Generative models for signals on graphs: train, sample, score, in four network evaluations.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
data_app = typer.Typer(help="Datasets: list them, export them.", no_args_is_help=True)
app.add_typer(data_app, name="data")

Data = Annotated[str, typer.Option("--data", help="A dataset's name, or a file of signals.")]
GraphFile = Annotated[str | None, typer.Option("--graph", help="The graph's file, if the data do not hold it.")]
Symmetrize = Annotated[str | None, typer.Option(help="half-sum or max, for a graph file with directed weights.")]
Seed = Annotated[int, typer.Option(help="Every random number follows from it.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
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
    """The datasets there are."""
    from ..data.dataset import BUILT_IN

    for name, about in BUILT_IN.items():
        print(f"{name:10}{about}")


@data_app.command()
def export(
    name: Annotated[str, typer.Argument(help="A dataset's name.")],
    out: Annotated[Path, typer.Option(help="The file to write, F.npz.")],
    force: Force = False,
) -> None:
    """Write a dataset as used to one file: train, val, test, mean, std, adjacency, node_ids."""
    from ..data import load_dataset
    from ..data.tables import write_dataset
    from ..files import refuse_existing

    refuse_existing(out, force)
    data = load_dataset(name)
    write_dataset(out, data)
    print(f"{out}: {len(data.train)} / {len(data.val)} / {len(data.test)} signals on {len(data.graph)} nodes")


@app.command()
def train(
    data: Data,
    graph: GraphFile = None,
    symmetrize: Symmetrize = None,
    method: Annotated[str, typer.Option(help="What to train; see the README for the table of methods.")] = "grcd",
    out: Annotated[Path | None, typer.Option(help="The run folder; by default runs/DATA-METHOD-sSEED.")] = None,
    seed: Seed = 0,
    device: Device = "auto",
    max_updates: Annotated[int | None, typer.Option(help="Stop after so many updates at the latest.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Any other setting, as key=value; may be repeated.")
    ] = None,
    force: Force = False,
) -> None:
    """Train a model. Interrupt it anywhere: the same command goes on where it was."""
    from ..data.tables import open_dataset
    from ..model import GRCD
    from ..run import METRICS, is_finished

    chosen = _settings(settings or [])
    if max_updates is not None:
        chosen["max_updates"] = max_updates
    dataset = open_dataset(data, graph, symmetrize)
    run = out or Path("runs") / f"{dataset.name}-{method}-s{seed}"
    before = is_finished(run) and not force
    model = GRCD(dataset.graph, method, seed, device, **chosen)
    model.fit(dataset.train, dataset.val, run=run, force=force, name=dataset.name)
    result = model.result
    print(f"{run}: {'has finished already' if before else 'finished'}")
    print(f"  {result['updates']} updates in {result['seconds']:.0f} s; {result['stopped']}")
    print(f"  validation error {result['val']:.4f}, of the reference alone {result['val_reference_alone']:.4f}")
    if result["val"] >= result["val_reference_alone"]:
        print("  The network is not yet better than its Gaussian reference: train longer (--max-updates).")
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
    from ..data.tables import check_writable_ending, write_signals
    from ..files import make_folder, refuse_existing
    from ..model import load

    refuse_existing(out, force)
    check_writable_ending(out)
    make_folder(out.parent)
    model = load(run, device)
    signals = model.sample(n, nfe, seed, solver, rho, _levels(grid), precision=precision)
    write_signals(out, signals, model.graph.node_ids)
    print(f"{out}: {n} signals on {len(model.graph)} nodes, {nfe} network evaluations each")


@app.command()
def evaluate(
    file: Annotated[Path, typer.Argument(help="Generated signals: .npz, .csv, .parquet, .nc or .npy.")],
    data: Data,
    graph: GraphFile = None,
    symmetrize: Symmetrize = None,
    split: Annotated[str, typer.Option(help="What to compare with: test, val or train.")] = "test",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Score generated signals against held-out ones: aMMD and its parts, with the floor beside."""
    from ..data.tables import matched, open_dataset, read_signals
    from ..evaluation import evaluate as score

    dataset = open_dataset(data, graph, symmetrize)
    scores = score(matched(*read_signals(file), dataset.graph, str(file)), dataset, split)
    if as_json:
        print(json.dumps(scores.to_dict()))
        return
    print(f"{file}: {scores.n} signals against the {split} split of {dataset.name} (MMD^2, lower is better)")
    print(scores)
    print("floor: training signals against the same split; unbiased estimates may come out just below zero")


def _settings(pairs: list[str]) -> dict[str, str]:
    """`--set key=value` options; their keys and types are checked where the configuration is made."""
    from ..errors import InputError

    for pair in pairs:
        if "=" not in pair:
            raise InputError(f"--set {pair}", "key=value", "for example --set lr=1e-3")
    return dict(pair.split("=", 1) for pair in pairs)


def _levels(grid: str) -> str | list[float]:
    """`--grid`: a name, or numbers."""
    try:
        return [float(level) for level in grid.split(",")]
    except ValueError:
        return grid
