"""What each of two processes does that torchrun starts for `test_two_processes`; in the end one of them is killed."""

import contextlib
import os
import signal
import sys
from pathlib import Path

from safetensors.torch import save_file

QUICK = ["--graph", "g.csv", "--device", "cpu", "--set", "width=8", "--set", "batch=13"]  # no process has half of 13
MOMENTS = ["train", "--data", "gaps.csv", "--window", 1, "--method", "grcd-exponential", *QUICK]
MOMENTS += ["--max-updates", 15, "--set", "validate_every=5"]
WINDOWS = ["train", "--data", "rows.csv", "--window", 3, *QUICK, "--set", "blocks=1", "--set", "pool=60"]
WINDOWS += ["--max-updates", 8, "--set", "validate_every=4"]
TIMED = [*MOMENTS[: MOMENTS.index("--set")], "--minutes", 0.03]  # clocks differ, and what they decide must not
LAST = 7  # updates of a process that does not come to its end


def command(*args):
    """A `grcd` command in this process; returns its exit status."""
    from grcd.cli import main

    sys.argv = ["grcd", *map(str, args)]
    try:
        main()
    except SystemExit as stopped:
        return stopped.code


def keep_states(folder, patch=setattr):
    """The whole state at every validation goes into a file beside the run."""
    from grcd.runs.folder import Run

    usual = Run.log

    def log(self, state, record):
        usual(self, state, record)
        tensors = {name: tensor.contiguous() for name, tensor in state.tensors().items()}
        save_file(tensors, Path(folder) / f"{self.path.name}-{state.update}.safetensors")

    patch(Run, "log", log)


def killed():
    os.kill(os.getpid(), signal.SIGKILL)


def interrupted():
    raise KeyboardInterrupt


def stop_after(updates, how, patch=setattr):
    """As a process that the system ends, or its user."""
    from grcd.training.loop import Update

    usual = Update.__call__

    def update(self, *draws):
        if self.state.update >= updates:
            how()
        usual(self, *draws)

    patch(Update, "__call__", update)


def main(folder):
    os.chdir(folder)
    import torch

    from grcd.core import parallel

    torch.set_num_threads(1)
    keep_states(folder)
    with parallel.joined("cpu") as team, open(f"said-{team.rank}", "w") as said:

        def step(*args):
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                status = command(*args)
                print(f"status {status}", flush=True)

        step(*MOMENTS, "--out", "two")
        step(*WINDOWS, "--out", "windows-two")
        step(*MOMENTS, "--out", "two")
        step("train", "--data", f"other-{team.rank}.csv", "--window", 1, *QUICK, "--out", "other")
        step(*MOMENTS, "--set", "batch=1", "--out", "few")
        step(*MOMENTS, "--out", "begun")
        step(*TIMED, "--out", "timed")
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # torchrun's, which may come before the other is missed
        if team.rank == 1:
            stop_after(LAST, killed)
        step(*MOMENTS, "--out", "killed")


if __name__ == "__main__":
    main(sys.argv[1])
