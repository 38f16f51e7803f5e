"""Options that several commands share; those that say which data one works on are the fields of `load_dataset`."""

from __future__ import annotations

import functools
import inspect
import math
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

Data = Annotated[str, typer.Option("--data", help="A dataset's name, or a file of signals.")]
Trained = Annotated[Path, typer.Argument(help="A finished run folder.")]
Common = Annotated[bool, typer.Option("--common", help="Drop columns that the model does not know.")]
Seed = Annotated[int, typer.Option(help="Every random number follows from it.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Force = Annotated[bool, typer.Option("--force", help="Replace what is there.")]


def _option(kind: Any, help: str, *names: str) -> Any:
    return Annotated[kind, typer.Option(*names, help=help, rich_help_panel="Data")]


# In the order of the help; the defaults are those of `load_dataset`.
DATA: dict[str, tuple[object, object]] = {
    "graph": (_option(str | None, "The graph's file, if the data do not hold it.", "--graph"), None),
    "symmetrize": (_option(str | None, "half-sum or max, for a graph with directed weights."), None),
    "k": (_option(int | None, "Positions: link each node to so many nearest ones [5].", "--neighbours", "--k"), None),
    "bandwidth": (_option(float | None, "Positions, distances: width of the Gaussian weights."), None),
    "metric": (_option(str | None, "Positions: euclidean or great-circle."), None),
    "threshold": (_option(float | None, "Distances: smallest weight that is kept [0.1]."), None),
    "drop": (_option(list[str] | None, "A node to leave out; may be repeated."), None),
    "common": (_option(bool, "Drop nodes that only the signals or only the graph have.", "--common"), False),
    "missing": (_option(list[float] | None, "A value that marks a missing reading; may be repeated."), None),
    "fill": (_option(str | None, "forward-backward, linear, mean or none."), None),
    "split_by": (_option(str | None, "chronological, random, or the column that says train, val, test."), None),
    "split_seed": (_option(int, "For a random split."), 0),
    "val": (_option(str | None, "A file of validation signals."), None),
    "test": (_option(str | None, "A file of test signals."), None),
    "cap": (_option(str | None, "At most so many signals a split: N, or TRAIN,VAL,TEST."), None),
    "unit": (_option(str | None, "The signals' unit, for labels."), None),
    "data_dir": (_option(Path | None, "Where metr-la and molene lie; else GRCD_DATA, then the cache."), None),
}


def on_data(command: Callable) -> Callable:
    """Add the data options to a command, which gets them in one dictionary, ``options``."""

    @functools.wraps(command)
    def wrapper(**given: Any) -> Any:
        options = {key: given.pop(key) for key in DATA}
        return command(**given, options=_parsed(options))

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


def _parsed(options: dict) -> dict:
    from ..core.errors import InputError

    cap = options["cap"]
    try:
        options["cap"] = None if cap is None else [int(part) for part in cap.split(",")]
    except ValueError:
        raise InputError(f"--cap {cap}", "a number, or three with commas", "give e.g. --cap 20000,3000,5000") from None
    options["missing"], options["drop"] = markers(options["missing"]) or None, options["drop"] or ()
    return options


def markers(values: list[float] | None) -> list[float]:
    """Of missing readings; NaN is one anyway."""
    from ..core.errors import InputError

    if any(math.isinf(value) for value in values or []):
        raise InputError("--missing inf", "a finite number", "empty those cells: an infinite reading is none")
    return [value for value in values or [] if not math.isnan(value)]


def marked(facts: dict) -> list[float]:
    """What marked a missing reading when the run was trained."""
    return facts["data"].get("made", {}).get("markers", [])


def asked(data: str, options: dict) -> dict:
    """What a command was asked to work on, as a run remembers it: the fields of `load_dataset` that were given."""
    given = {key: value for key, value in options.items() if value not in (DATA[key][1], ())}
    return {"source": data, **{key: str(value) if isinstance(value, Path) else value for key, value in given.items()}}


def found_again(facts: dict, run: Path) -> dict:
    """The data of a run, as it remembers them."""
    from ..core.errors import InputError
    from ..data.catalog.recipes import NAMES

    data = facts["data"]
    remembered = data.get("made", {}).get("asked", {})
    if remembered and {*remembered} <= {"source", *DATA}:
        return remembered
    if data["name"] in NAMES:
        return {"source": data["name"]}
    raise InputError(
        f"{run}, which does not say where its data are", "data to compare with", "name them: --data FILE --graph FILE"
    )
