"""Is `grcd impute` ever worse than a simple way of filling gaps? Every table as a user has it: a file, trained on with
`grcd train --minutes 10` and nothing else said, its held-out rows filled with what `impute` does by default.

python benchmarks/never_worse.py --out never-worse.json              (resumes; a table takes up to a quarter hour)
python benchmarks/never_worse.py --page results/never-worse.json     (writes a page beside a file: of one such command,
                                                                      or of several ``runs``, as the committed one is)

Tables: METR-LA, AQI-36, Molene, Beijing (eleven variables), the examples, and six families that are made up
(`benchmarks/generated.py`). The file has all rows; training takes the
first 80 % of them (70 to train, 10 to validate), and of the rest stretches of rows are scored (of tables with few rows,
rows that come after the file's, five tables together), in which readings are hidden in three families
(`evaluation/hiding.py`): points, spells, whole sensors; or others that are asked for, such as outages, rows of which
nothing is read. Competitors are fitted to the same 80 %: five of the contest at the end of training, and scikit-learn's
imputers as they are without settings.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import generated
import numpy as np
from provenance import provenance

import grcd
from grcd.core.files import whole, write_json
from grcd.core.tables import markdown, number
from grcd.data import load_series
from grcd.data.series import Series
from grcd.evaluation import competitors, guesses, hiding
from grcd.evaluation.windows import moments

SEED = 5501  # of what is made up: nobody looked at these before the code was as it is
FEW_SEEDS = (5501, 5502, 5503, 5504, 5505)  # tables of few rows say little by themselves
SIMPLE = ("mean", "calendar", "line", "neighbours", "iterative")
PLAIN = {"plain-neighbours": "KNNImputer, no settings", "plain-iterative": "IterativeImputer, no settings"}
MOST_PLAIN = 60  # columns: the iterative imputer without settings takes minutes on more
DRAWS = 100
ASKED = 1.02
KEYS = ("mae", "crps", "cover_90")
OURS = "ours"
LATER = "later.csv"  # rows that the file of a few does not have


@dataclass(frozen=True)
class Task:
    """A table as a file, how long a spell of it is, and how many held-out rows are scored."""

    name: str
    write: Callable[[Path], list[str]]  # into a folder -> options of `grcd train` that name the files
    steps: int = 24
    most: int = 600
    pieces: int = 4


def named(name: str) -> Callable[[Path], list[str]]:
    """A dataset with a name, as a file of one's own."""

    def write(folder: Path) -> list[str]:
        data = load_series(name)
        several = {"channels": list(data.channels)} if len(data.channels) > 1 else {}
        values = data.series.values if several else data.series.values[:, :, 0]
        weights = np.asarray(data.graph.weights.todense())
        ids = {"node_ids": list(data.node_ids)}
        np.savez(folder / "readings.npz", signals=values, timestamps=data.series.times, **ids, **several)
        np.savez(folder / "graph.npz", adjacency=weights, **ids)
        return ["--data", "readings.npz", "--graph", "graph.npz"]

    return write


def example(folder: Path) -> list[str]:
    """The tutorial's files."""
    here = Path(__file__).parent.parent / "examples"
    for file in ("readings.csv", "stations.csv"):
        (folder / file).write_bytes((here / file).read_bytes())
    return ["--data", "readings.csv", "--graph", "stations.csv"]


def made_up(name: str, seed: int) -> Callable[[Path], list[str]]:
    """One of the families."""

    def write(folder: Path) -> list[str]:
        readings, places, later = generated.made(name, seed)
        readings.to_csv(folder / "readings.csv", index=False)
        if later is not None:
            later.to_csv(folder / LATER, index=False)
        places.to_csv(folder / "stations.csv", index=False)
        return ["--data", "readings.csv", "--graph", "stations.csv"]

    return write


def tasks(seed: int, few_seeds: Iterable[int]) -> list[Task]:
    """All tables; of few rows several, which are scored together."""
    few = [
        Task(f"{name} {each}", made_up(name, each), steps=4, pieces=1)
        for name in generated.MAKERS
        if name.startswith("few-rows")
        for each in few_seeds
    ]
    made = [Task(name, made_up(name, seed)) for name in generated.MAKERS if not name.startswith("few-rows")]
    real = [Task("molene", named("molene")), Task("aqi36", named("aqi36"))]
    large = [Task("beijing", named("beijing"), most=480), Task("metr-la", named("metr-la"), most=384)]
    return [*few, *made, Task("examples", example), *real, *large]


def measured(task: Task, minutes: float, families: tuple[str, ...], folder: Path) -> dict:
    """Errors of all methods in every family; what `impute` used, and the seconds it all took."""
    files = task.write(folder)
    command = [sys.executable, "-m", "grcd", "train", *files, "--minutes", str(minutes), "--out", "run"]
    began = time.perf_counter()
    said = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if said.returncode:
        raise RuntimeError(said.stdout[-2000:] + said.stderr[-2000:])
    trained = time.perf_counter() - began
    model, data = grcd.load(folder / "run"), load_series(str(folder / files[1]), graph=str(folder / files[3]))
    learned = data.series.rows(slice(0, data.splits["test"][0].start))
    later = folder / LATER
    held_out = data.part("test")
    if later.exists():
        series = load_series(str(later), graph=str(folder / files[3])).series
        held_out = Series(series.values, series.times)
    test = picked(held_out, task)
    result = {"train_seconds": trained, "rows": len(learned), "scored_rows": len(test), "said": said.stdout[-3000:]}
    began = time.perf_counter()
    simple = {name: guesses.filler(fill) for name, fill in fitted(learned).items()}
    result["competitors_seconds"] = time.perf_counter() - began
    sd = moments(learned)[1].mean(axis=0) if len(data.channels) > 1 else np.ones(1)
    errors, spent = {}, 0.0
    for family in families:
        hidden = hiding.hidden(family, test, task.steps, 1000 + hiding.KINDS.index(family))
        began = time.perf_counter()
        own = guesses.gaps(test, hidden, {OURS: ours(model)}, task.steps)
        spent += time.perf_counter() - began
        found = guesses.gaps(test, hidden, simple, task.steps)
        both = replace(found, draws=own.draws | found.draws).over(sd)
        errors[family] = {name: summed(both, name) for name in both.draws}
    return result | {"fill_seconds": spent, "errors": errors}


def picked(test: Series, task: Task) -> Series:
    """Stretches of held-out rows, evenly spaced."""
    each = min(len(test) // task.pieces, task.most // task.pieces)
    starts = np.linspace(0, len(test) - each, task.pieces).astype(int) if task.pieces > 1 else [0]
    return test.picked([slice(start, start + each) for start in starts])


def ours(model: grcd.GRCD) -> guesses.Filler:
    """`grcd impute`, without options."""

    def fill(series: Series) -> list[tuple[np.ndarray, np.ndarray]]:
        values = series.values if series.values.shape[2] > 1 else series.values[:, :, 0]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            drawn = model.impute(values, n=DRAWS, **({"times": series.times} if model.in_time else {}))
        return [(np.arange(len(series)), np.asarray(drawn).reshape(DRAWS, *series.values.shape))]

    return fill


def fitted(learned: Series) -> dict[str, competitors.Fill]:
    """By name, all that anybody can have."""
    found = {name: competitors.fitted(name, learned, learned) for name in SIMPLE}
    if learned.values[0].size <= MOST_PLAIN:
        found |= {name: plain(name, learned) for name in PLAIN}
    return found


def plain(name: str, learned: Series) -> competitors.Fill:
    """scikit-learn's, on rows as they stand."""
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer, KNNImputer

    imputer = KNNImputer(keep_empty_features=True)
    if name == "plain-iterative":
        imputer = IterativeImputer(keep_empty_features=True, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        imputer.fit(learned.values.reshape(len(learned), -1))

    def fill(series: Series) -> np.ndarray:
        return imputer.transform(series.values.reshape(len(series), -1)).reshape(series.values.shape)

    return fill


def summed(found: guesses.Guesses, name: str) -> dict[str, float]:
    return {
        key: float(value) for key, value in found.errors(name).items() if key in ("mae", "crps", "cover_90", "readings")
    }


# -- the table ---------------------------------------------------------------------------------------------------------


def pooled(cells: dict[str, dict]) -> dict[str, dict]:
    """Errors by table and family; those of few rows over their seeds together."""
    tables = dict[str, list[dict]]()
    for name, cell in cells.items():
        tables.setdefault(name.partition(" ")[0], []).append(cell)
    return {
        name: {family: mean([cell["errors"][family] for cell in several]) for family in several[0]["errors"]}
        for name, several in tables.items()
    }


def mean(errors: list[dict]) -> dict[str, dict[str, float]]:
    """Over tables, weighed by the readings of each."""
    weights = np.array([next(iter(each.values()))["readings"] for each in errors])
    methods = [name for name in errors[0] if all(name in each for each in errors)]
    return {
        name: {key: float(np.average([each[name][key] for each in errors], weights=weights)) for key in KEYS}
        for name in methods
    }


def lines(cells: dict[str, dict]) -> list[list[str]]:
    """A row a table and family: ours, the best of the simple ways, and the ratios."""
    rows = [["table", "hidden", "ours, MAE", "best simple", "", "ratio", "CRPS", "ratio", "in 90 %"]]
    for table, families in pooled(cells).items():
        for family, errors in families.items():
            own, others = errors[OURS], {name: each for name, each in errors.items() if name != OURS}
            best = min(others, key=lambda name: others[name]["mae"])
            mae, crps = own["mae"] / others[best]["mae"], own["crps"] / min(each["crps"] for each in others.values())
            bold = "**" if max(mae, crps) > ASKED else ""
            title = PLAIN.get(best) or competitors.TITLES[best]
            numbers = number(own["mae"]), number(others[best]["mae"]), title, f"{bold}{mae:.3f}{bold}"
            rows.append([table, family, *numbers, number(own["crps"]), f"{crps:.3f}", f"{own['cover_90']:.0%}"])
    return rows


SEEN = """By the code of the time, and looked at before it was changed, so they do not count above. Seeds 1201 to 1205
were fixed beforehand, but their results were then seen four times, and two decisions followed what they showed: the law
of single rows is not fitted where training rows are few (tables of 35 rows had got worse by it), and it was built at
all because silent sensors of `trend` lost, here by 9 % and on another seed by 6 %."""
SEEN_AGAIN = """By the code of the time. What was missed here was then mended with these tables and with seeds 1 to 5 in
sight: the law of single rows took over how far the reference goes towards distance along the graph, and it knew
readings on their scale alone, not as they stand."""
FRESH = """Seeds {seeds}. Since the tables below were seen, all within 1.02, gaps of short tables are told apart by
their length and filled with what is read around them in the contest, each of several variables has a winner of its own,
and few rows keep their mean unless another process is nearer for more than chance. That was decided on other tables:
walks and autoregressions of 35 to 364 rows (seeds 101 to 104), independent ones (9000 on), those of two newcomers."""
SEEN_THIRD = """By the code of the time, and fresh then. Since the tables below were seen, spreads got tails, skew
readings a median of their own, and a law of single rows is fitted from forty training rows on. That was decided with
other seeds (7 to 42) of these families and of tables like those of other people: rivers, meters, docks, solar power,
walks, groups that no graph knows. Seeds from 3301 on were to be the fresh ones: they were begun, and given up with the
first tables of 35 and 61 rows in sight, when the median had to be mended."""
REAL = """Their held-out rows cannot be drawn again, and they are not untouched. Shrinkage towards distance along the
graph was tried on the last fifth of Molene, AQI-36, METR-LA and Beijing before it was built, and the law of single rows
on that of the examples; how much of either is used is decided on validation rows. Those of Beijing were in sight when a
fault was found (silent sensors 1.38 times the best simple way: on a processor, noise was raised until the lags of a
large window made a covariance), and when it was mended. AQI-36's silent sensors had been at 1.143, which is why
covariances of single rows go through gaps and the contest fills more validation rows; that was tried on its validation
rows, and the held-out ones were seen once, half way, at 1.045. Candidates that were averaged were tried on those of
AQI-36, Molene and the examples, and given up."""


def as_runs(record: dict) -> list[dict]:
    """Those of a file; what one command wrote is two of them, made-up tables and real ones."""
    if "runs" in record:
        return record["runs"]
    made = {name: cell for name, cell in record["cells"].items() if name.partition(" ")[0] in generated.MAKERS}
    real = {name: cell for name, cell in record["cells"].items() if name not in made}
    about = {"commands": [record["command"]], "how": f"{record['date']}, {record['hardware']}."}
    return [{"kind": "fresh", **about, "cells": made}, {"kind": "real", **about, "cells": real}]


def page(record: dict) -> str:
    """Markdown, of a file with several ``runs``: what each was asked for, and its ``cells``."""
    parts = ["# Never worse than the simple thing", __doc__.split("\n\n")[2]]
    titles = {
        "fresh": "Made up, with seeds that nobody had seen",
        "real": "Real tables, and the examples",
        "seen third": "Seen before, with seeds from 4401 on",
        "seen again": "Seen before, with seeds from 2201 on",
        "seen": "Seen before, with seeds from 1201 on",
    }
    seeds = f"{SEED}, and {FEW_SEEDS[0]} to {FEW_SEEDS[-1]} of few rows"
    words = {"fresh": FRESH.format(seeds=seeds), "real": REAL, "seen third": SEEN_THIRD}
    words |= {"seen again": SEEN_AGAIN, "seen": SEEN}
    words = words if "runs" in record else dict.fromkeys(titles, "")
    titles |= {} if "runs" in record else {"fresh": "Made up", "real": "Real tables, and the examples"}
    for kind, title in titles.items():
        runs = [run for run in as_runs(record) if run["kind"] == kind]
        cells = {name: cell for run in runs for name, cell in run["cells"].items()}
        if not cells:
            continue
        rows = lines(cells)
        within = sum("**" not in row[5] for row in rows[1:])
        took = [cell["train_seconds"] / 60 for cell in cells.values()]
        parts += [f"## {title}", words[kind]] if words[kind] else [f"## {title}"]
        parts.append(
            f"**{within} of {len(rows) - 1} within {ASKED} of the best of the simple ways**, which is chosen with its "
            f"test errors in sight, ours on validation rows. Beyond it is bold. Training took {min(took):.1f} to "
            f"{max(took):.1f} minutes."
        )
        parts.append(markdown(rows))
        parts += [f"Run: {', '.join(f'`{each}`' for each in run['commands'])}; {run['how']}" for run in runs]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--out", type=Path)
    options.add_argument("--page", type=Path)
    options.add_argument("--minutes", type=float, default=10.0)
    options.add_argument("--only", default="", help="tables whose names begin so, with commas")
    options.add_argument("--families", default=",".join(hiding.FAMILIES), help="what is hidden, with commas")
    options.add_argument("--seed", type=int, default=SEED)
    options.add_argument("--few-seeds", type=lambda text: tuple(map(int, text.split(","))), default=FEW_SEEDS)
    args = options.parse_args()
    if args.out:
        done = json.loads(args.out.read_text()) if args.out.exists() else {"cells": {}}
        for task in tasks(args.seed, args.few_seeds):
            if task.name in done["cells"] or not task.name.startswith(tuple(args.only.split(","))):
                continue
            with tempfile.TemporaryDirectory() as folder:
                cell = measured(task, args.minutes, tuple(args.families.split(",")), Path(folder))
            done["cells"][task.name] = cell
            write_json(args.out, {**provenance("cpu"), "minutes": args.minutes, "cells": done["cells"]})
            for row in lines({task.name: cell})[1:]:
                print("  ".join([task.name, *row[1:], f"{cell['train_seconds']:.0f} s"]), flush=True)
    if args.page:
        with whole(args.page.with_suffix(".md")) as file:
            file.write_text(page(json.loads(args.page.read_text())))


if __name__ == "__main__":
    main()
