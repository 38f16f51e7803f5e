"""The commands of section 4 of the design. Library imports are inside: the parser must answer at once."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from ..core.errors import counted
from . import bench, data, filling, parsing, trained
from .options import Covariates, Data, Device, Force, Json, Seed, changed, of_run, on_data, refuse_without_data

app = typer.Typer(
    help="Generative models for signals on graphs: train, sample, score, in four network evaluations.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(data.app, name="data")
app.add_typer(bench.app, name="bench")

FEW = 200  # signals below which a score is mostly chance
OVER = 1.1  # times the minutes that were given: then it is said what took more


@app.callback(invoke_without_command=True)
def root(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        from ..core.provenance import version as number

        print(f"grcd {number('grcd')}")
        raise typer.Exit


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Where its output goes; an earlier demo there is replaced.")] = Path("demo"),
    paper: Annotated[
        bool, typer.Option("--paper", help="The paper's method and ours on one of its benchmarks, in its place.")
    ] = False,
    seed: Seed = 0,
) -> None:
    """Fill gaps, foretell and make up days of a simulated city: minutes on a laptop, nothing needed."""
    from . import demo as in_time
    from . import paper_demo

    (paper_demo.demo if paper else in_time.demo)(out, seed)


@app.command()
@on_data
def train(
    data: Data,
    options: dict,
    method: Annotated[str, typer.Option(help="What to train; see the README for the table of methods.")] = "grcd",
    window: Annotated[
        str | None,
        typer.Option(
            help="Rows of a window in time, or auto, the default for files with regular times; 1: single rows."
        ),
    ] = None,
    calendar: Annotated[
        str,
        typer.Option(
            help="Windows: auto keeps what of the day and the week (by your clock) validation rows gain by; or none."
        ),
    ] = "auto",
    covariates: Covariates = None,
    out: Annotated[
        Path | None, typer.Option(help="The run folder; by default runs/DATA-METHOD-sSEED, with -wROWS for a window.")
    ] = None,
    seed: Seed = 0,
    device: Device = "auto",
    max_updates: Annotated[int | None, typer.Option(help="Stop after so many updates at the latest.")] = None,
    minutes: Annotated[
        float | None,
        typer.Option(help="End in so many minutes on this machine: the size of the network and the updates that fit."),
    ] = None,
    support: Annotated[
        tuple[float, float] | None, typer.Option(help="LOW HIGH: no generated reading is ever outside.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Any other setting, as key=value: width, lr, kappa, batch, ...; may be repeated."),
    ] = None,
    force: Force = False,
) -> None:
    """Train a model. Interrupt it anywhere: the same command goes on where it was.

    On several devices or machines: torchrun --nproc-per-node K -m grcd train ...
    """
    from ..core.errors import InputError, unknown
    from ..core.parallel import joined
    from ..core.progress import telling
    from ..data.catalog import DATASETS
    from ..model import GRCD
    from ..model import train as fit
    from ..runs.folder import METRICS, is_finished
    from ..training import budget
    from ..training.window_config import AS_THEY_ARE
    from . import windows

    chosen: dict[str, Any] = parsing.settings(settings or [])
    if max_updates is not None:
        chosen["max_updates"] = max_updates
    if minutes is not None:
        if not minutes > 0:
            raise InputError(f"--minutes {minutes:g}", "a time above zero", "leave it out, or give more")
        chosen["minutes"] = minutes
    if support is not None:
        chosen["support"] = ",".join(map(repr, support))
    if calendar not in ("auto", "none"):
        raise unknown("calendar", calendar, ["auto", "none"])
    asked = parsing.window(window)
    if asked is None and method == "grcd" and windows.of_moments(chosen):
        asked = 1
    dataset, steps = windows.load(data, options, asked)
    in_time = windows.is_series(dataset)
    if not in_time and method == "grcd" and chosen.get("max_updates") == 0:  # as of windows: the reference alone
        chosen = {name: value for name, value in chosen.items() if name != "max_updates"} | {"backbone": "none"}
    if covariates is not None and not in_time:
        do = "leave one of them out: --window 12, say, takes rows in time"
        raise InputError(f"--covariates {covariates} for single moments", "a window", do)
    length = f"-w{steps}" if in_time else ""
    run = out or Path("runs") / f"{dataset.name}-{method}{length}-s{seed}"
    before = is_finished(run) and not force
    more: dict[str, Any] = {"window": steps, "calendar": calendar} if in_time else {}
    dataset = windows.remembered(dataset, data, changed(options), parsing.command(), covariates)
    known: dict[str, Any] = {"covariates": windows.read(covariates)} if covariates is not None else {}
    if data[0] in DATASETS:  # as their benchmark takes them
        chosen = AS_THEY_ARE | chosen
    began = time.monotonic()
    with joined(device) as team, telling():
        model = GRCD(dataset.graph, method, seed, device, **more, **chosen)
        fit(model, dataset, run, force, **known)
    if team.rank > 0:
        return
    result = model.result
    print(f"{run}: {'has finished already' if before else 'finished'}")
    print(f"  {windows.divided(dataset)}")
    if minutes and "settled" in model.facts:
        print(f"  for {minutes:g} minute{'s' * (minutes != 1)} on this machine: {budget.words(model.facts['settled'])}")
    took = (time.monotonic() - began) / 60
    if minutes and not before and took > OVER * minutes:
        print(f"  it took {took:.1f}: reading, choosing a reference and comparing with simple ways are never cut short")
    print(f"  {counted(result['updates'], 'update')} in {result['seconds']:.0f} s; {result['stopped']}")
    if model.contest is not None:
        print("\n".join(f"  {line}" for line in model.contest.lines()))
    log = f"log: {run / METRICS}   " if (run / METRICS).exists() else ""  # without a network there is none
    if in_time:
        print("\n".join(f"  {line}" for line in windows.kept(model, steps)))
        print(f"  {log}next: grcd impute {run} --observed FILE --out filled.csv")
        return
    print(f"  validation error {result['val']:.4f}, of the reference alone {result['val_reference_alone']:.4f}")
    if result["updates"] and result["val"] >= result["val_reference_alone"]:
        print(
            "  no network is used: what it learned gains no more than chance in validation rows. Where there are many,"
        )
        print("  train longer (--max-updates, --force); else the reference says all there is to say of these signals.")
    print(f"  {log}next: grcd sample {run} -n 1000 --nfe 4 --out samples.npz")


for command in (
    trained.sample,
    filling.impute,
    filling.forecast,
    trained.augment,
    trained.score,
    trained.report,
):
    app.command()(command)


@app.command()
@on_data
def evaluate(
    file: Annotated[Path, typer.Argument(help="Generated signals, in any of the formats that signals are read from.")],
    options: dict,
    data: Annotated[str | None, typer.Option("--data", help="A dataset's name, or a file of signals.")] = None,
    run: Annotated[
        Path | None, typer.Option("--run", help="In place of --data: the run, which knows its data and their options.")
    ] = None,
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
    """Score generated signals against held-out ones: aMMD and its parts, with the floor beside.

    Windows, of a run with one, are scored as signals on the product of time and graph.
    """
    from ..core.errors import InputError
    from ..data import load_dataset
    from ..data.formats.signals import read_signals
    from ..data.matching import fitted
    from ..evaluation import beside as besides
    from ..evaluation import distances as measured
    from ..evaluation import evaluate as score
    from ..evaluation.beside import Beside, of_signals
    from ..evaluation.comparison import table as laid_out
    from ..model import load
    from . import windows

    if (data is None) == (run is None):
        got = "no data to compare with" if data is None else "--data and --run"
        raise InputError(got, "one of --data FILE and --run RUN", "give one of them")
    source, common, support, own, alone = {"source": data, **options}, options["common"], None, None, False
    if run is not None:
        refuse_without_data(options)
        model = load(run, "cpu")
        source, support = of_run(model.facts, run), model.config.limits().bounds[0]
        if windows.of(model) is not None:
            extra = {"--observed-only": observed_only, "--controls": controls, "--distances": distances}
            asked = [name for name, wanted in extra.items() if wanted]
            windows.evaluate(file, model, source, split, common, as_json, asked)
            return
        alone = model.diffusion.adds_nothing

        def own(signals: Any, dataset: Any, split: str) -> Beside:
            return of_signals(signals, model.signals.sample_reference(len(signals)), dataset, split)

    dataset = load_dataset(**source)
    table = read_signals(file, nodes=dataset.graph.node_ids)
    signals, _ = fitted(table.values, table.node_ids, dataset.graph, str(file), common=common)
    scores = score(signals, dataset, split, observed_only=observed_only, controls=controls, support=support)
    beside = None if own is None or alone or dataset.graph.large else own(signals, dataset, split)
    beyond = measured(signals, dataset, split) if distances else {}
    if as_json:
        named = {name: distance.to_dict() for name, distance in beyond.items()}
        more: dict[str, Any] = ({"distances": named} if distances else {}) | ({"network": False} if alone else {})
        print(json.dumps(scores.to_dict() | more | ({} if beside is None else {"reference": beside.to_dict()})))
        return
    print(f"{file}: {counted(scores.n, 'signal')} against the {split} split of {dataset.name} (MMD^2, lower is better)")
    print(scores if beside is None else replace(scores, controls={"reference": beside.scores, **scores.controls}))
    if beside is not None:
        print(beside.words())
    if alone:
        print(besides.alone(len(getattr(dataset, split)), "signals"))
    print("floor: training signals against the same split; unbiased estimates may come out below zero")
    if controls:
        print(
            "control-...: Gaussians, and a mixture of them, fitted to the training signals; what a network has to beat"
        )
    if distances:
        print(f"\n{laid_out(beyond)}")
        print("ratio: value over floor, where the floor is more than chance; ideal: what the same distribution scores")
    if scores.n < FEW:
        print(f"{counted(scores.n, 'signal says', 'signals say')} little: score {FEW} or more")
