"""`grcd data`: list, get, inspect and export datasets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ..core.errors import counted
from .options import Force, Json, on_data

app = typer.Typer(help="Datasets: list, get, inspect and export them.", no_args_is_help=True)


@app.command("list")
def list_data() -> None:
    """The datasets that have a name."""
    from ..data.catalog import DATASETS

    for name, dataset in DATASETS.items():
        print(f"{name:10}{dataset.about}")
    print(
        "\nYour own: --data FILE --graph FILE; grcd data inspect FILE --graph FILE tells whether they suit the method."
    )


@app.command()
def get(
    name: Annotated[str, typer.Argument(help="aqi36, beijing, metr-la or molene.")],
    data_dir: Annotated[
        Path | None, typer.Option(help="Where to put it; by default GRCD_DATA, or else the user's cache folder.")
    ] = None,
    own: Annotated[
        list[Path] | None, typer.Option("--from", help="A file or folder you have already; may be repeated.")
    ] = None,
    mirror: Annotated[
        str | None, typer.Option(help="Download from here in place of https://raw.githubusercontent.com.")
    ] = None,
) -> None:
    """Bring published data from their public homes, checked against known sums. Goes on where it was interrupted.

    METR-LA: speeds from the repository thanhquanse/PGAIN-VS, which states no licence; graph and positions from
    liyaguang/DCRNN (MIT), with which the data were published. Molene: Meteo-France, Licence Ouverte / Open Licence.
    AQI-36: LMZZML/PriSTI, which states no licence. Beijing: UCI, CC BY 4.0, through MaureenOShea/SemesterProject2.
    """
    from ..data import catalog
    from ..data.catalog.sources import folders

    source = catalog.source(name)
    for path in source.get(folders(data_dir)[0], own or [], mirror):
        print(f"{path}: {path.stat().st_size / 1e6:.1f} MB")
    print(source.licence)


@app.command("inspect")
@on_data
def inspect_data(
    files: Annotated[
        list[str], typer.Argument(help="Files of signals, or names of datasets; NAME=FILE ... for several channels.")
    ],
    options: dict,
    as_json: Json = False,
    picture: Annotated[Path | None, typer.Option(help="Draw it too: a .png file.")] = None,
    force: Force = False,
) -> None:
    """One screen on your data: what is there, what can be done with it, and a remedy for whatever is wrong.

    Exits with status 2 where data cannot be trained on as they are.
    """
    from ..core.errors import InputError
    from ..core.files import refuse_existing
    from ..data.formats.channels import named
    from ..report.inspection import inspect

    channels = [file for file in files if named(file)[0]]  # together they are one dataset
    sources: dict[str, str | list[str]] = {file: file for file in files if file not in channels}
    sources |= {" ".join(channels): channels} if channels else {}
    files = list(sources)
    if picture is not None:
        if len(files) > 1:
            raise InputError(f"--picture for {len(files)} files", "one file", "draw one at a time")
        refuse_existing(picture, force)
    inspections = {file: inspect(source, picture=picture, **options) for file, source in sources.items()}
    if as_json:
        values = {file: inspection.to_dict() for file, inspection in inspections.items()}
        print(json.dumps(values[files[0]] if len(files) == 1 else values))
    else:
        print("\n\n".join(str(inspection) for inspection in inspections.values()))
        if picture is not None and picture.exists():
            print(f"drawn: {picture}")
    if not all(inspection.ready for inspection in inspections.values()):
        raise typer.Exit(2)


@app.command()
@on_data
def export(
    name: Annotated[str, typer.Argument(help="A dataset's name, or a file of signals.")],
    options: dict,
    out: Annotated[Path, typer.Option(help="The file to write, F.npz.")],
    force: Force = False,
) -> None:
    """Write a dataset as used (filled, split, capped) to one file: train, val, test, mean, std, adjacency, node_ids."""
    from ..core.files import refuse_existing
    from ..data import load_dataset
    from ..data.formats.exported import check_dataset_ending, write_dataset

    check_dataset_ending(out)
    refuse_existing(out, force)
    data = load_dataset(name, **options)
    write_dataset(out, data)
    print(
        f"{out}: {len(data.train)} / {len(data.val)} / {len(data.test)} signals on {counted(len(data.graph), 'node')}"
    )
