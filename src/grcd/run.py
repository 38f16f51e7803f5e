"""Runs are folders. What lies in one:

    run.json                 configuration, node names, normaliser, hashes of data and graph, versions, result
    model.safetensors        the weights, the reference and the graph; there once training has finished
    metrics.jsonl            one line a validation
    checkpoint.safetensors   the whole state of training at the last validation; gone once training has finished

Every file is written whole or not at all, and the log is cut back to the checkpoint on resuming, so a run that was
killed anywhere goes on from its last validation as if nothing had happened.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import shutil
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from .config import Config
from .errors import InputError, some
from .files import appending, make_folder, whole, write_json
from .training import State

FORMAT = 1  # of the folder; a reader refuses anything newer
MANIFEST, MODEL, METRICS, CHECKPOINT = "run.json", "model.safetensors", "metrics.jsonl", "checkpoint.safetensors"


class Run:
    """A run folder that is being written: made, or gone on with where it was."""

    def __init__(self, path: str | Path, manifest: dict, force: bool = False):
        self.path = Path(path)
        found = os.path.exists(self.path / MANIFEST)
        if found and force:
            _clear(self.path)
        elif found:
            self.manifest = read_manifest(self.path)
            self._refuse_another(manifest)
            return  # to go on where it was
        elif os.path.exists(self.path) and not _is_free(self.path):
            raise InputError(
                f"{self.path}, which exists and is no run", "a new folder or a run", "choose another --out"
            )
        make_folder(self.path)
        for left in filter(_temporary, self.path.iterdir()):
            left.unlink()
        self.manifest = {"format": FORMAT, **manifest, "status": "training", "versions": versions()}
        self.manifest.pop("result", None)
        write_json(self.path / MANIFEST, self.manifest)

    @property
    def finished(self) -> bool:
        return self.manifest["status"] == "finished"

    def _refuse_another(self, manifest: dict) -> None:
        there, here = _identity(self.manifest), _identity(manifest)
        keys = [key for key in {**there, **here} if there.get(key) != here.get(key)]
        if keys:
            listed = "; ".join(f"{key} is {there.get(key)} there and {here.get(key)} here" for key in keys)
            raise InputError(
                f"another configuration in {self.path}: {listed}",
                "the configuration this run began with",
                "choose another --out, or replace the run with --force",
            )

    # -- while training --------------------------------------------------------------------------------------------

    def log(self, state: State, record: dict) -> None:
        """Note a validation and keep the whole state. The log goes first: what is too long can be cut back."""
        with appending(self.path / METRICS) as file:
            file.write(json.dumps({**record, "seconds": round(state.seconds, 1)}) + "\n")
        scalars = {"update": state.update, "seconds": state.seconds, "plateau": state.plateau.to_dict()}
        with whole(self.path / CHECKPOINT) as temporary:
            _save(_on_host(state.tensors()), temporary, {"state": json.dumps(scalars)})

    def resume(self, state: State) -> None:
        """Restore the last checkpoint, if there is one, and cut the log back to it."""
        update = 0
        if os.path.exists(self.path / CHECKPOINT):
            tensors, scalars = read_tensors(self.path / CHECKPOINT, set(state.tensors()))
            state.restore(tensors)
            update = state.update = scalars["update"]
            state.seconds, state.plateau = scalars["seconds"], type(state.plateau)(**scalars["plateau"])
        lines = [line for line in _lines(self.path / METRICS) if line["update"] <= update]
        with whole(self.path / METRICS) as temporary:
            temporary.write_text("".join(json.dumps(line) + "\n" for line in lines))

    def finish(self, tensors: dict[str, Tensor], result: dict) -> None:
        """The model, then the word that it is there, then the checkpoint may go."""
        with whole(self.path / MODEL) as temporary:
            _save(_on_host(tensors), temporary)
        self.manifest |= {"status": "finished", "result": result}
        write_json(self.path / MANIFEST, self.manifest)
        (self.path / CHECKPOINT).unlink(missing_ok=True)


def read(path: str | Path) -> tuple[dict, dict[str, Tensor]]:
    """A finished run: what its manifest says, and its tensors."""
    path = Path(path)
    manifest = read_manifest(path)
    if manifest["status"] != "finished":
        raise InputError(f"{path}, whose training has not finished", "a finished run", "give the train command again")
    return manifest, read_tensors(path / MODEL)[0]


def is_finished(path: Path) -> bool:
    return os.path.exists(path / MANIFEST) and read_manifest(path)["status"] == "finished"


def read_manifest(path: Path) -> dict:
    if not os.path.isfile(path / MANIFEST):
        near = sorted(str(p.parent) for p in path.parent.glob(f"*/{MANIFEST}")) if os.path.isdir(path.parent) else []
        do = f"runs beside it: {some(near)}" if near else "make one with: grcd train"
        raise InputError(f"{path}, which is not a run folder (no {MANIFEST})", "a folder made by grcd train", do)
    try:
        manifest = json.loads((path / MANIFEST).read_text())
        number = int(manifest["format"])
        if number <= FORMAT:
            _ = manifest["status"], manifest["config"], manifest["graph"]
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise _damaged(path / MANIFEST, error) from None
    if number > FORMAT:
        raise InputError(
            f"{path}, written in format {number} by grcd {manifest.get('versions', {}).get('grcd', '?')}",
            f"format {FORMAT} or older",
            "update grcd",
        )
    return manifest


def read_tensors(path: Path, expected: set[str] | None = None) -> tuple[dict[str, Tensor], dict]:
    """All tensors of a file, and what its metadata says."""
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
            metadata = json.loads((file.metadata() or {}).get("state", "{}"))
    except (OSError, SafetensorError, ValueError) as error:
        raise _damaged(path, error) from None
    if expected is not None and set(tensors) != expected:
        raise _damaged(path, "other tensors than expected")
    return tensors, metadata


def versions() -> dict[str, str]:
    """What ran: for the record, not for comparison."""
    found = {"python": platform.python_version(), "numpy": np.__version__, "torch": torch.__version__}
    for package in ("grcd", "scipy", "scikit-learn"):
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:  # run from a source tree that was never installed
            found[package] = "unknown"
    return found


def _save(tensors: dict[str, Tensor], path: Path, metadata: dict[str, str] | None = None) -> None:
    try:
        save_file(tensors, path, metadata)
    except SafetensorError as error:  # how safetensors says that a disk is full
        raise OSError(str(error)) from error


def _is_free(path: Path) -> bool:
    """A folder with nothing of anyone's in it."""
    return os.path.isdir(path) and all(_temporary(entry) for entry in path.iterdir())


def _temporary(path: Path) -> bool:
    """What files.whole leaves when it is killed."""
    return any(path.name.startswith(f".{name}.") for name in (MANIFEST, MODEL, METRICS, CHECKPOINT))


def _damaged(path: Path, why: object) -> InputError:
    return InputError(f"{path}, which is damaged or missing ({why})", "a whole file", "train again with --force")


def _clear(path: Path) -> None:
    """Remove a run, and only a run: other files in the folder are not ours."""
    for name in (MANIFEST, MODEL, METRICS, CHECKPOINT):
        (path / name).unlink(missing_ok=True)
    if not any(path.iterdir()):
        shutil.rmtree(path)


def _identity(manifest: dict) -> dict:
    """What has to agree for a run to go on; names and places of files do not.

    A setting that did not exist when the run began had what is its default now.
    """
    hashes = {what: manifest.get(what, {}).get("hash", "")[:12] for what in ("data", "graph")}
    return {**asdict(Config()), **manifest["config"], **hashes}


def _lines(path: Path) -> list[dict]:
    """The whole lines of the log; a torn last one is dropped."""
    found = []
    for line in path.read_text().splitlines() if os.path.exists(path) else []:
        try:
            found.append(json.loads(line))
        except ValueError:
            break
    return found


def _on_host(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
