"""The commands of the benchmark. Library imports are inside: the parser must answer at once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..core.errors import counted
from . import parsing
from .options import Device

app = typer.Typer(help="The benchmark: run its suites, print its tables, draw its figures.", no_args_is_help=True)

Suite = Annotated[
    str,
    typer.Argument(
        help="main, ladder, solvers, grid, snr, controls, cost, symmetrizer, gad-native, ablation, distances, impute, "
        "imputation, forecast or quick."
    ),
]
Settings = Annotated[
    str | None, typer.Option("--settings", help="Which datasets, with commas; by default the suite's.")
]
Methods = Annotated[str | None, typer.Option("--methods", help="Only these methods, with commas.")]
Seeds = Annotated[
    str | None,
    typer.Option(help="Which seeds, with commas; by default 0 to 2, and 0 to 4 of the paper's small settings."),
]
Results = Annotated[Path, typer.Option(help="Where the cells are. (Those of the project itself: results.)")]
REASONS = 5  # that are printed of what went wrong
OWN = Path("runs/bench-results")  # not the project's, which hold all cells already


@app.command("run")
def run(
    suite: Suite,
    settings: Settings = None,
    seeds: Seeds = None,
    methods: Methods = None,
    nfe: Annotated[
        str | None, typer.Option(help="Of what has a network, only these numbers of evaluations, with commas.")
    ] = None,
    device: Device = "auto",
    jobs: Annotated[int, typer.Option(help="Trainings side by side.")] = 1,
    results: Results = OWN,
    runs: Annotated[Path, typer.Option(help="Where the trained networks are kept.")] = Path("runs/bench"),
    chosen: Annotated[
        list[str] | None, typer.Option("--set", help="A training setting for all, as key=value; may be repeated.")
    ] = None,
) -> None:
    """Compute the cells of a suite that are not there yet. Interrupt it anywhere: the same command goes on."""
    from ..bench import runner, suites

    cells = suites.cells(suite, parsing.listed(settings), _chosen(seeds), parsing.listed(methods))
    if nfe is not None:
        budgets = parsing.numbers(nfe, "--nfe")
        cells = [cell for cell in cells if cell.budget is None or cell.budget in budgets]
    computed, failed = runner.run(cells, results, runs, device, jobs, parsing.settings(chosen or []))
    print(f"{suite}: {counted(len(cells), 'cell')}, {computed} computed now, {failed} failed")
    for reason, count in list(runner.failures(cells, results).items())[:REASONS]:
        print(f"failed: {counted(count, 'cell')}: {reason}")
    print(f"next: grcd bench table {suite} --results {results}" + (f" --settings {settings}" if settings else ""))


@app.command("table")
def table(
    suite: Suite,
    settings: Settings = None,
    seeds: Seeds = None,
    kind: Annotated[str, typer.Option("--format", help="md, tex or csv.")] = "md",
    results: Results = OWN,
) -> None:
    """Print a suite as a table: mean and sd over seeds, the paper's value and the ratio, controls and floor."""
    from ..bench import suites, tables

    _refuse_file(results)
    cells = suites.cells(suite, parsing.listed(settings), _chosen(seeds))
    over = _chosen(seeds) or sorted({cell.seed for cell in cells if cell.needs_network})
    print(tables.table(suite, cells, over, results, kind), end="")


@app.command("figures")
def figures(
    settings: Annotated[str | None, typer.Option(help="Which datasets, with commas; by default all.")] = None,
    seeds: Seeds = None,
    results: Results = OWN,
    out: Annotated[Path | None, typer.Option(help="Where to draw; by default RESULTS/figures.")] = None,
) -> None:
    """Draw what has been measured: terminal references (snr), quality against time (cost) and budget (main)."""
    from ..bench import figures as drawing

    _refuse_file(results)
    written, lacking = drawing.draw(results, out or results / "figures", parsing.listed(settings), _chosen(seeds))
    for path in written:
        print(f"drawn: {path}")
    for name, error in lacking.items():
        print(f"left out: {name}: {error.got}; {error.do}")


def _chosen(seeds: str | None) -> list[int] | None:
    """None: the suite's own."""
    return None if seeds is None else parsing.numbers(seeds)


def _refuse_file(results: Path) -> None:
    from ..core.errors import InputError

    if results.is_file():
        raise InputError(f"a file as --results: {results}", "a folder of cells", "choose the folder")
