"""Runs are folders. What lies in one:

    run.json                 configuration, node names, normaliser, hashes of data and graph, versions, result, seals
    model.safetensors        the weights, the reference and the graph; there once training has finished
    metrics.jsonl            one line a validation
    checkpoint.safetensors   the whole state of training at the last validation; gone once training has finished

Every file is written whole or not at all, and a checkpoint holds the log that led to it, so a run that was killed
anywhere goes on from its last validation as if nothing had happened. All are sealed (see ``seal``), and a checkpoint
knows whose it is: one of another run, left by a ``--force`` that was killed, is not gone on with. One process at a time
trains in a folder (see ``lock``).
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from ..core import provenance
from ..core.errors import InputError, InputWarning
from ..core.files import appending, make_folder, remove_leftovers, whole
from ..training.loop import Training
from . import lock, manifest, seal
from .manifest import damaged

MANIFEST, MODEL, METRICS, CHECKPOINT = manifest.NAME, "model.safetensors", "metrics.jsonl", "checkpoint.safetensors"


class Run:
    """A run folder that is being written: made, or gone on with where it was. ``with`` holds its lock."""

    def __init__(self, path: str | Path, about: dict, force: bool = False):
        self.path, self.about = Path(path), about
        self.records: list[dict] = []
        self._lock: lock.Lock | None = None
        _tidy(self.path)
        if not force and self._is_there() and self.finished:
            with suppress(OSError):  # killed when all was done but this
                (self.path / CHECKPOINT).unlink(missing_ok=True)
            return  # to be read
        self._refuse_foreign(force)
        make_folder(self.path)
        try:
            self._lock = lock.Lock(self.path)
            if force or not self._is_there():  # another process may have begun it meanwhile
                self._begin()
        except BaseException:
            self.close()
            lock.remove_stale(self.path)  # if an interrupt came before anybody held it
            raise

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def close(self) -> None:
        """Let others in."""
        if self._lock is not None:
            self._lock.release()

    @property
    def finished(self) -> bool:
        """Whether its training is over."""
        return self.manifest["status"] == "finished"

    def _is_there(self) -> bool:
        """Whether there is such a run already; another one is refused."""
        if not os.path.exists(self.path / MANIFEST):
            return False
        self.manifest = manifest.read(self.path)
        saved, wanted = manifest.identity(self.manifest), manifest.identity(self.about)
        keys = [key for key in {**saved, **wanted} if saved.get(key) != wanted.get(key)]
        if keys:
            differ = "; ".join(
                f"{key} is {_short(key, saved.get(key))} there and {_short(key, wanted.get(key))} here"
                + " (other readings, or others that teach: --hold-out, --split-by)" * (key == "data")
                for key in keys
            )
            raise InputError(
                f"another configuration in {self.path}: {differ}",
                "the configuration this run began with",
                "choose another --out, or replace the run with --force",
            )
        return True

    def _refuse_foreign(self, force: bool) -> None:
        """A folder that is no run is not ours to write into; what a run that was killed left is, on request."""
        if os.path.exists(self.path / MANIFEST) or not os.path.exists(self.path):
            return
        if not os.path.isdir(self.path) or not all(_is_ours(entry.name) for entry in self.path.iterdir()):
            raise InputError(
                f"{self.path}, which exists and is no run", "a new folder or a run", "choose another --out"
            )
        if not force and any((self.path / name).exists() for name in (MODEL, METRICS, CHECKPOINT)):
            raise InputError(
                f"{self.path}, in which a run lacks its {MANIFEST}",
                "a new folder or a run",
                "choose another --out, or replace what is left with --force",
            )

    def _begin(self) -> None:
        """The word that a run begins comes first: killed right after it, the folder is this run's."""
        self.manifest = {**self.about, "status": "training", "versions": provenance.versions()}
        for key in ("result", "tensors", "log"):  # of a model that is saved, which has been trained before
            self.manifest.pop(key, None)
        manifest.write(self.path, self.manifest)
        for name in (CHECKPOINT, METRICS, MODEL):
            (self.path / name).unlink(missing_ok=True)
        for left in filter(lambda entry: _is_temporary(entry.name), self.path.iterdir()):
            left.unlink()

    def settle(self, decide: Callable[[], dict]) -> dict:
        """What a budget of time decided when this run began: ``decide`` is asked once, and the answer kept."""
        if "settled" not in self.manifest:
            self.manifest["settled"] = decide()
            manifest.write(self.path, self.manifest)
        return self.manifest["settled"]

    # -- while training --------------------------------------------------------------------------------------------

    def log(self, state: Training, record: dict) -> None:
        """Note a validation and keep the whole state."""
        self.records.append({**record, "seconds": round(state.seconds, 1)})
        with appending(self.path / METRICS) as file:
            file.write(_text(self.records[-1:]))
        tensors = _on_host(state.tensors())
        about = {
            "run": manifest.owner(self.manifest),
            "update": state.update,
            "seconds": state.seconds,
            "plateau": state.plateau.to_dict(),
            "log": self.records,
            "tensors": seal.of_tensors(tensors),
        }
        text = json.dumps(about)
        with whole(self.path / CHECKPOINT) as temporary:
            save_file(tensors, temporary, {"state": text, "sha256": seal.of_bytes(text.encode())})

    def resume(self, state: Training) -> None:
        """Restore the last checkpoint, if there is one of this run, and write the log as it was then."""
        path = self.path / CHECKPOINT
        if os.path.exists(path):
            tensors, about = read_checkpoint(path)
            owner = self._owner if self.manifest.get("format") == 1 else None  # which did not say whose they are
            if about.get("run", owner) != self._owner:
                note = f"{path} is of another run, which was replaced: training begins anew"
                warnings.warn(note, InputWarning, stacklevel=2)
            else:
                self._restore(state, tensors, about)
        self._write_log()

    @property
    def _owner(self) -> str:
        return manifest.owner(self.manifest)

    def _restore(self, state: Training, tensors: dict[str, Tensor], about: dict) -> None:
        path, here = self.path / CHECKPOINT, state.tensors()
        if set(tensors) != set(here):
            raise damaged(path, "other tensors than expected")
        for name, tensor in here.items():
            if (tensors[name].shape, tensors[name].dtype) != (tensor.shape, tensor.dtype):
                raise damaged(path, f"{name} has another shape or type than it should")
        config = self.manifest["config"] | self.manifest.get("settled", {})
        most, every = config["max_updates"], config["validate_every"]
        try:
            update, seconds = about["update"], about["seconds"]
            plateau = state.plateau.restored(about["plateau"])
            validated = type(update) is int and 0 < update <= most and (update % every == 0 or update == most)
            if not validated or not 0 <= seconds < float("inf"):
                raise ValueError(f"update {update} of {most} after {seconds} seconds")
            records = _logged(about["log"], update) if "log" in about else _old_log(self.path / METRICS, update)
        except (KeyError, TypeError, ValueError) as error:
            raise damaged(path, error) from None
        state.restore(tensors)
        state.update, state.seconds, state.plateau, self.records = update, float(seconds), plateau, records

    def _write_log(self) -> None:
        """What led to the checkpoint and nothing else; what does not look like a log is not dropped without a word."""
        path, text = self.path / METRICS, _text(self.records)
        there = path.read_bytes() if os.path.isfile(path) else b""
        if not there.startswith(text.encode()) or not _is_log(there[len(text.encode()) :]):
            note = f"{path} had been damaged, or torn by a crash: it is written again as of the last checkpoint"
            warnings.warn(note, InputWarning, stacklevel=3)
        with whole(path) as temporary:
            temporary.write_text(text)

    def finish(self, tensors: dict[str, Tensor], result: dict) -> None:
        """The model and its log, then the word that they are there, then the checkpoint may go."""
        tensors = _on_host(tensors)
        if (name := seal.not_finite(tensors)) is not None:
            raise InputError(f"a model whose {name} is not finite", "finite numbers", "lower the learning rate (lr)")
        with whole(self.path / MODEL) as temporary:
            save_file(tensors, temporary)
        self.manifest |= {"status": "finished", "result": result, "tensors": seal.of_tensors(tensors)}
        if self.records:
            with whole(self.path / METRICS) as temporary:
                temporary.write_text(_text(self.records))
            self.manifest["log"] = seal.of_bytes(_text(self.records).encode())
        manifest.write(self.path, self.manifest)
        (self.path / CHECKPOINT).unlink(missing_ok=True)


def read(path: str | Path) -> tuple[dict, dict[str, Tensor]]:
    """A finished run: what its manifest says, and its tensors."""
    path = Path(path)
    about = manifest.read(path)
    if about["status"] != "finished":
        raise InputError(f"{path}, whose training has not finished", "a finished run", "give the train command again")
    tensors, _ = read_tensors(path / MODEL)
    if "tensors" in about and (why := seal.broken(tensors, about["tensors"])):
        raise damaged(path / MODEL, why)
    return about, tensors


def is_finished(path: Path) -> bool:
    """Whether a folder holds a run whose training is over."""
    return os.path.exists(path / MANIFEST) and manifest.read(path)["status"] == "finished"


def read_log(path: str | Path) -> list[dict]:
    """What training logged, one record a validation; a run may be without its log."""
    path, about = Path(path) / METRICS, manifest.read(Path(path))
    if not os.path.isfile(path):
        if "log" in about:
            warnings.warn(f"{path} is gone: nothing is known of how training went", InputWarning, stacklevel=2)
        return []
    try:
        text = path.read_bytes()
        if "log" in about and seal.of_bytes(text) != about["log"]:
            raise ValueError("it is not what was written")
        return _logged([json.loads(line) for line in text.decode().splitlines()], about["result"]["updates"])
    except (ValueError, OSError, RecursionError) as error:
        do = "remove it: all else goes without it; or train again with --force"
        raise InputError(f"{path}, which is damaged ({error})", "the log of its run", do) from None


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """All tensors of a file, which must be finite, and its metadata."""
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
            metadata = file.metadata() or {}
    except (OSError, SafetensorError, ValueError, RuntimeError) as error:
        raise damaged(path, error) from None
    if (name := seal.not_finite(tensors)) is not None:
        raise damaged(path, f"{name} is not finite")
    return tensors, metadata


def read_checkpoint(path: Path) -> tuple[dict[str, Tensor], dict]:
    """Its tensors and what it says of them, both as they were written. (Format 1 had no seals.)"""
    tensors, metadata = read_tensors(path)
    text = metadata.get("state", "")
    try:
        about = json.loads(text)
        if not isinstance(about, dict):
            raise ValueError("no state of training")
    except (ValueError, RecursionError) as error:
        raise damaged(path, error) from None
    if "sha256" in metadata or "tensors" in about:
        why = "it is not what was written" if seal.of_bytes(text.encode()) != metadata.get("sha256") else None
        why = why or seal.broken(tensors, about.get("tensors", {}))
        if why:
            raise damaged(path, why)
    return tensors, about


def save_file(tensors: dict[str, Tensor], path: Path, metadata: dict[str, str] | None = None) -> None:
    """Not safetensors' own, which leaves a temporary file of another name when it is killed."""
    path.write_bytes(save(tensors, metadata))


def _tidy(path: Path) -> None:
    """Remove what killed processes left in a run folder, if anything, and if that is possible."""
    if os.path.exists(path / MANIFEST):
        with suppress(OSError):
            remove_leftovers(path)
            lock.remove_stale(path)


def _is_ours(name: str) -> bool:
    return name in (MODEL, METRICS, CHECKPOINT, lock.NAME) or _is_temporary(name)


def _is_temporary(name: str) -> bool:
    """What files.whole leaves when it is killed."""
    return any(name.startswith(f".{ours}.") for ours in (MANIFEST, MODEL, METRICS, CHECKPOINT))


def _short(key: str, value: object) -> object:
    """Hashes by their first digits."""
    return str(value)[:12] if key in ("data", "graph") else value


def _text(records: list[dict]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def _logged(records: object, update: int) -> list[dict]:
    """Records of validations up to an update, or a ValueError."""
    if not isinstance(records, list) or not all(_is_record(record) for record in records):
        raise ValueError("lines that are no validations")
    return [record for record in records if record["update"] <= update]


def _is_record(record: object) -> bool:
    return isinstance(record, dict) and all(
        isinstance(record.get(key), int | float) and not isinstance(record[key], bool)
        for key in ("update", "train", "val")
    )


def _is_log(tail: bytes) -> bool:
    """Whether this is what a run logged after its last checkpoint: whole lines, each a validation."""
    try:
        records = [json.loads(line) for line in tail.decode().splitlines()]
        return (not tail or tail.endswith(b"\n")) and all(map(_is_record, records))
    except (ValueError, RecursionError):
        return False


def _old_log(path: Path, update: int) -> list[dict]:
    """Of a run of format 1, whose checkpoint does not hold the log: the lines up to the first that is none."""
    records = []
    for line in path.read_bytes().splitlines() if os.path.isfile(path) else []:
        if not _is_log(line + b"\n"):
            break
        records.append(json.loads(line))
    return _logged(records, update)


def _on_host(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
