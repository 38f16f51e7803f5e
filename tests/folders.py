"""Run folders that are changed on purpose and sealed again, so that what is wrong with them is not the seal."""

import json

from safetensors.torch import load_file, save_file

from grcd.runs import manifest, seal


def record(folder):
    return json.loads((folder / "run.json").read_text())


def edit(folder, change):
    """Let ``change`` alter what the manifest says."""
    told = record(folder)
    change(told)
    manifest.write(folder, told)


def edit_tensors(folder, change):
    """Let ``change`` alter the tensors of a finished run."""
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors")
    edit(folder, lambda told: told.update(tensors=seal.of_tensors(tensors)))


def unsealed(folder, **changes):
    """As a run of format 1, which had no seals."""
    told = record(folder) | {"format": 1, **changes}
    for key in ("sha256", "tensors", "log"):
        told.pop(key, None)
    (folder / "run.json").write_text(json.dumps(told))
