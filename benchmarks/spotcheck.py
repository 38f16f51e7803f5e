"""Do published cells come out again? Twenty of them, computed afresh and compared with their files under results/cells.

    python benchmarks/spotcheck.py --out results/spotcheck.json                 one core, a few minutes
    python benchmarks/spotcheck.py --device cuda --out results/spotcheck.json

What needs no network (controls, floors, baselines of filling, the reference's own posterior) is computed in float64 and
must agree to ``ROUNDING`` on any machine. Networks are trained again, but only up to the update whose weights were
kept, for what came after it changed nothing; they were trained on a GPU, and elsewhere the same sums are rounded
otherwise: ``TRAINED`` says how much that may matter. Differences are relative to the number in the file, or to
``LEAST`` if it is nearer to zero than chance decides. Exit status 1 if a cell differs by more.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from provenance import provenance

from grcd.bench import runner
from grcd.bench.cells import Baseline, Cell, Control, Filled, Floor, Generated, measured
from grcd.bench.measured import LEAST
from grcd.core.files import write_json

RESULTS = Path(__file__).parent.parent / "results"
ROUNDING, TRAINED = 1e-9, 1e-2
CELLS: list[Cell] = [
    *(Floor(setting) for setting in ("metr-la", "molene", "sbm-c16")),
    Control("metr-la", "control-spectral", 0),
    Control("molene", "control-full", 0),
    Control("molene", "control-full", 0, measure="distances"),
    Control("sbm-c1", "control-diagonal", 3),
    Control("sbm-c4", "control-gmrf", 2),
    Control("sbm-c16", "control-mixture", 1),
    Baseline("metr-la", "fill-last", mask="random-25"),
    Baseline("metr-la", "fill-linear", mask="blocks"),
    Baseline("molene", "fill-mean", mask="blocks"),
    Baseline("molene", "fill-tikhonov", mask="random-25"),
    Baseline("molene", "fill-neighbours", mask="sensors"),
    Baseline("molene", "fill-gaussian", mask="random-75"),
    Filled("molene", "grcd", 0, mask="sensors"),
    Generated("molene", "grcd", 0, 1),
    Generated("molene", "grcd", 0, 4),
    Generated("sbm-c4", "grcd", 0, 4),
    Generated("sbm-c16", "wsd-graph", 2, 4),
]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--device", default="cpu")
    options.add_argument("--out", default="results/spotcheck.json")
    args = options.parse_args()
    checks = []
    with tempfile.TemporaryDirectory() as folder:
        for cell in CELLS:
            checks.append(check(cell, Path(folder), args.device))
            print("{cell}: {difference:.1e} of {tolerance:g}".format(**checks[-1]), flush=True)
    write_json(args.out, {**provenance(args.device), "least": LEAST, "checks": checks})
    sys.exit(int(any(not check["difference"] <= check["tolerance"] for check in checks)))


def check(cell: Cell, folder: Path, device: str) -> dict:
    """A cell computed afresh: the largest difference from its file, the number that has it, then and now."""
    published = measured(cell, RESULTS)
    assert published is not None, f"{cell} was not published"
    updates = last_update(published)
    results = folder / f"results-{updates}"  # networks of other lengths are other cells
    runner.run(
        [cell], results, folder / f"runs-{updates}", device, settings={"max_updates": updates} if updates else {}
    )
    computed = measured(cell, results) or {}
    numbers, again = dict(leaves(published[cell.key])), dict(leaves(computed.get(cell.key, {})))
    numbers = {name: x for name, x in numbers.items() if not name.startswith("memorisation")}  # a share of copies now
    apart = {name: abs(again.get(name, float("inf")) - x) / max(abs(x), LEAST) for name, x in numbers.items()}
    worst = max(apart, key=apart.__getitem__)
    return {
        "cell": str(cell.path(Path()).relative_to("cells")),
        "number": worst,
        "published": numbers[worst],
        "computed": again.get(worst),
        "difference": apart[worst],
        "tolerance": TRAINED if isinstance(cell, Generated) else ROUNDING,
        "published_on": published["hardware"],
    }


def last_update(published: dict) -> int | None:
    """The update whose weights were kept, and one validation at least."""
    training = published.get("training")
    return max(training["best_update"], published["config"]["validate_every"]) if training else None


def leaves(content: dict, before: str = "") -> Iterator[tuple[str, float]]:
    """The numbers of nested dictionaries, by their keys."""
    for key, value in content.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{before}{key}.")
        elif value is not None:
            yield f"{before}{key}", float(value)


if __name__ == "__main__":
    main()
