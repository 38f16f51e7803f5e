"""What every measured number is kept with."""

import datetime
import json
import os
import platform

import numpy as np
import pytest
import torch

from grcd.core import provenance


def test_a_record_says_when_where_and_with_what():
    before = datetime.date.today()
    found = json.loads(json.dumps(provenance.record(torch.device("cpu"))))
    assert before.isoformat() <= found["date"] <= datetime.date.today().isoformat()
    assert found["hardware"].endswith(f", {os.cpu_count()} cores, {torch.get_num_threads()} threads")
    assert found["versions"] == {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
    }


@pytest.mark.parametrize("device", ["cuda", "cuda:0", torch.device("cuda")])
def test_a_gpu_goes_by_its_name(monkeypatch, device):
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda *which: "NVIDIA Test")
    assert provenance.record(device)["hardware"] == "NVIDIA Test"


def test_a_cpu_by_its_model_and_else_by_its_kind(monkeypatch, tmp_path):
    info = tmp_path / "cpuinfo"
    monkeypatch.setattr(provenance, "Path", lambda name: info)
    monkeypatch.setattr(platform, "processor", lambda: "")
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    assert provenance.hardware("cpu").startswith("riscv64, ")  # no such file, as on a Mac
    info.write_text("processor\t: 0\nflags\t: fpu\n")
    assert provenance.hardware("cpu").startswith("riscv64, ")
    info.write_text("processor\t: 0\nmodel name\t: Chip: the 2nd\nprocessor\t: 1\nmodel name\t: Other\n")
    assert provenance.hardware("cpu").startswith("Chip: the 2nd, ")
