"""What a run folder says of its run, ``run.json``: configuration, data, graph, normaliser, and how training went.

It is sealed: ``sha256`` covers all its other entries, and ``tensors`` and ``log`` hold the seals of the two other
files. Format 1 had no seals; such runs are still read, with a note, and every entry is looked at before it is used.
"""

from __future__ import annotations

import json
import math
import os
import warnings
from pathlib import Path
from typing import Any

from ..core.errors import InputError, InputWarning, some
from ..core.files import write_json
from ..data.origin import ENTRIES as ORIGIN
from ..training import window_config
from . import seal

NAME = "run.json"
FORMAT = 2  # of the folder; a reader refuses anything newer
STATUS = ("training", "finished")

# What has to be in it: types, lists of a type, and in braces what has to be in an entry; those with ? may be absent.
ENTRIES: dict = {
    "format": int,
    "status": STATUS,
    "config": {},
    "node_ids": [str],
    "normalizer": {"mean": [float], "std": [float]},
    "data": {
        "name": str,
        "train": int,
        "val": int,
        "hash": str,
        "made?": ORIGIN,
    },
    "graph": {"nodes": int, "hash": str, "origin?": str, "one_way?": int, "one_way_share?": float},
    "versions?": {},
    "tensors?": {},
    "log?": str,
}
RESULT: dict = {
    "updates": int,
    "best_update": int,
    "val?": float,  # where there was a network to judge
    "val_reference_alone?": float,
    "seconds": float,
    "stopped": str,
    "plan?": {},
}


def write(path: Path, manifest: dict) -> None:
    """Whole, in the present format, and sealed."""
    manifest = json.loads(json.dumps(manifest | {"format": FORMAT}))  # as it will be read
    manifest.pop("sha256", None)
    write_json(path / NAME, manifest | {"sha256": seal.of_record(manifest)})


def read(path: Path) -> dict:
    """Of a run folder; an error in three parts whatever the file holds."""
    if not os.path.isfile(path / NAME):
        near = sorted(str(p.parent) for p in path.parent.glob(f"*/{NAME}")) if os.path.isdir(path.parent) else []
        do = f"runs beside it: {some(near)}" if near else "make one with: grcd train"
        raise InputError(f"{path}, which is not a run folder (no {NAME})", "a folder made by grcd train", do)
    try:
        manifest = seal.read_record(path / NAME)
        _refuse_newer(path, manifest)
        _refuse_broken(path, manifest)
        _check(manifest, ENTRIES | ({"result": RESULT} if manifest.get("status") == "finished" else {}), "")
    except InputError:
        raise
    except (ValueError, OSError, RecursionError) as error:
        raise damaged(path / NAME, error) from None
    return manifest


def identity(manifest: dict) -> dict:
    """What has to agree for a run to go on; names and places of files do not.

    A setting that did not exist when the run began had what is its default now.
    """
    config, hashes = manifest["config"], {what: manifest[what]["hash"] for what in ("data", "graph")}
    return {**window_config.defaults(config).to_dict(), **config, **hashes}


def owner(manifest: dict) -> str:
    """The seal of a run's identity: whose a checkpoint is."""
    return seal.of_record(identity(manifest))


def damaged(path: Path, why: object) -> InputError:
    """The error for a file of a run that cannot be used."""
    return InputError(f"{path}, which is damaged or missing ({why})", "a whole file", "train again with --force")


def _refuse_newer(path: Path, manifest: dict) -> None:
    number = manifest.get("format")
    if not isinstance(number, int) or isinstance(number, bool):
        raise ValueError(f"format is {number!r:.40}")
    if number > FORMAT:
        versions = manifest.get("versions")
        writer = versions.get("grcd", "?") if isinstance(versions, dict) else "?"
        got = f"{path}, written in format {number} by grcd {writer!s:.40}"
        raise InputError(got, f"format {FORMAT} or older", "update grcd")


def _refuse_broken(path: Path, manifest: dict) -> None:
    if "sha256" in manifest:
        rest = {key: value for key, value in manifest.items() if key != "sha256"}
        if seal.of_record(rest) != manifest["sha256"]:
            raise ValueError("it is not what was written")
    elif manifest["format"] > 1:
        raise ValueError("it lacks its sha256")
    else:
        note = f"{path} was written by an older grcd, without checksums: damage to its files may go unnoticed"
        warnings.warn(note, InputWarning, stacklevel=4)


def _check(value: object, kind: Any, where: str) -> None:
    """Refuse what is not of its kind (see ``ENTRIES``)."""
    if isinstance(kind, dict):
        if not isinstance(value, dict):
            raise _other(where, value, "entries")
        for key, inner in kind.items():
            name = key.removesuffix("?")
            if name in value:
                _check(value[name], inner, f"{where}{name}.")
            elif not key.endswith("?"):
                raise ValueError(f"it lacks {where}{name}")
    elif isinstance(kind, list):
        if not isinstance(value, list):
            raise _other(where, value, "a list")
        for entry in value:
            _check(entry, kind[0], where)
    elif isinstance(kind, tuple):
        if value not in kind:
            raise _other(where, value, f"one of {', '.join(kind)}")
    elif not _is(value, kind):
        raise _other(where, value, {int: "a whole number", float: "a finite number", str: "text"}[kind])


def _is(value: object, kind: type) -> bool:
    if isinstance(value, bool):
        return False
    if kind is float:
        return isinstance(value, int | float) and abs(value) < math.inf
    return isinstance(value, kind)


def _other(where: str, value: object, expected: str) -> ValueError:
    return ValueError(f"{where.rstrip('.') or 'it'} is {value!r:.40}, not {expected}")
