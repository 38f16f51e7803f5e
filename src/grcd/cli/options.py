"""Options that several commands share; those that say which data one works on are `data.options`."""

from __future__ import annotations

import functools
import inspect
import os
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from ..data import options

Data = Annotated[
    list[str],
    typer.Option("--data", help="A dataset's name, or a file; NAME=FILE for each of several channels."),
]
Observed = Annotated[
    list[str],
    typer.Option("--observed", help="Readings with gaps, in any format; NAME=FILE for each of several channels."),
]
Signals = Annotated[
    list[str],
    typer.Option("--signals", "--observed", help="Signals, in any format; NAME=FILE for each of several channels."),
]
Covariates = Annotated[
    Path | None,
    typer.Option(help="Numbers known of every row, of those to come too: a column each, with times."),
]
Every = Annotated[
    str | None, typer.Option(help="Windows: put rows with irregular times on a clock, e.g. 5min, 1h; gaps elsewhere.")
]
Trained = Annotated[Path, typer.Argument(help="A finished run folder.")]
Common = Annotated[bool, typer.Option("--common", help="Drop columns that the model does not know.")]
Seed = Annotated[int, typer.Option(help="Every random number follows from it.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Force = Annotated[bool, typer.Option("--force", help="Replace what is there.")]


FILES = ("source", "graph", "val", "test", "data_dir")  # options that name files

# Those that say which data one works on, by name: annotation and default.
DATA: dict[str, tuple[Any, Any]] = {
    name: (Annotated[typed, typer.Option(*help.flags, help=help.text, rich_help_panel="Data")], default)
    for name, typed, default, help in options.listed()
}


def on_data(command: Callable) -> Callable:
    """Add the data options to a command, which gets them in one dictionary, ``options``."""

    @functools.wraps(command)
    def wrapper(**values: Any) -> Any:
        chosen = {key: values.pop(key) for key in DATA}
        return command(**values, options=_parsed(chosen))

    hints = typing.get_type_hints(command, include_extras=True)
    own = [p.replace(annotation=hints[p.name]) for p in inspect.signature(command).parameters.values()]
    own = [p for p in own if p.name != "options"]
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, (kind, default) in DATA.items()
    ]
    own = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own]
    shown: Any = wrapper  # what typer asks
    shown.__signature__ = inspect.Signature([*own, *shared])
    wrapper.__annotations__ = {p.name: p.annotation for p in (*own, *shared)}
    del wrapper.__wrapped__
    return wrapper


def _parsed(values: dict) -> dict:
    from ..core.errors import InputError

    cap = values["cap"]
    try:
        values["cap"] = None if cap is None else [int(part) for part in cap.split(",")]
    except ValueError:
        raise InputError(f"--cap {cap}", "a number, or three with commas", "give e.g. --cap 20000,3000,5000") from None
    values["missing"], values["drop"] = options.markers(values["missing"]) or None, values["drop"] or ()
    return values


def changed(values: dict) -> dict:
    """The data options that were given, as a run remembers them."""
    chosen = {key: value for key, value in values.items() if value not in (DATA[key][1], ())}
    return {key: str(value) if isinstance(value, Path) else value for key, value in chosen.items()}


def refuse_without_data(values: dict) -> None:
    """Data options beside a run, whose data have theirs: only ``common`` is of what is compared with them."""
    from ..core.errors import InputError

    if others := {*changed(values)} - {"common"}:
        names = ", ".join(options.flag(name) for name in sorted(others))
        raise InputError(f"{names} without --data", "both, or neither", "add --data FILE, or leave it out")


def located(file: str, folder: str | None) -> str:
    """A file that a run remembers, NAME=FILE too: where it lies from here or, if nowhere, from where it was trained."""
    name, equals, path = file.rpartition("=")
    there = os.path.join(folder or "", path)
    return file if os.path.exists(path) or not os.path.exists(there) else f"{name}{equals}{there}"


def _found(value: Any, folder: str | None) -> Any:
    return [located(part, folder) for part in value] if isinstance(value, list) else located(str(value), folder)


def of_run(manifest: dict, run: Path) -> dict:
    """What ``load_dataset`` takes to bring the data of a run again, as far as the run remembers."""
    from ..core.errors import InputError
    from ..data.catalog import DATASETS
    from ..data.origin import Origin

    origin, name = Origin.of_run(manifest), manifest["data"]["name"]
    if origin.options and {*origin.options} <= {"source", *DATA}:
        return {key: _found(value, origin.folder) if key in FILES else value for key, value in origin.options.items()}
    if name in DATASETS:
        return {"source": name}
    raise InputError(
        f"{run}, which does not say where its data are", "data to compare with", "name them: --data FILE --graph FILE"
    )
