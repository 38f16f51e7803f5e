"""Write results/README.md from the files the other scripts left there: no number is typed by hand.

python benchmarks/report.py
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import masks_page

from grcd.bench import suites, tables
from grcd.bench.cells import Cell, read
from grcd.bench.tables import purpose
from grcd.core.tables import markdown
from grcd.data.catalog.sbm import sbm_graph

RESULTS = Path(__file__).parent.parent / "results"
PAGES = {  # beside this one
    "space-time": "Windows in time",
    "known-posterior": "gaps filled where the posterior is known",
    "never-worse": "`grcd impute` beside simple ways, on real tables and made-up ones",
}


def load(name: str) -> dict:
    return json.loads((RESULTS / f"{name}.json").read_text())


def origin(result: dict) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    return f"`{result['command']}`, {result['date']}, {result['hardware']} ({versions}).\n"


def table(header: list[str], rows: list[list[str]]) -> str:
    return markdown([header, *rows]) + "\n"


def words(key: str) -> str:
    return key.removesuffix("_ms").replace("_", " ")


def standin() -> str:
    result, in_use = load("sbm-standin"), sbm_graph().hash
    figures = ("control-spectral", "gad-4", "gad-8", "gad-16")
    paper = [" / ".join(f"{mean:.4f}" for mean, _ in result["paper"][figure]) for figure in figures]
    spread = [" / ".join(f"{sd:.4f}" for sd in result["spread"][figure]) for figure in figures]
    rows = [["paper", "", *paper, "positive"], ["spread", "", *spread, ""]]
    for r in result["ranked"]:
        cells = [" / ".join(f"{mean:.4f}" for mean in r["means"][figure]) for figure in figures]
        margin = " / ".join(f"{mean:+.4f}" for mean in r["margin"]["mean"])
        name = f"{r['way']}, seed {r['seed']}{' (in use)' * (r['hash'] == in_use)}"
        rows.append([name, f"{r['distance']:.1f}, {r['distance_beside']:.1f}", *cells, margin])
    off = [abs(value) for values in result["substitute"].values() for setting in values for value in setting]
    text = (
        f"aMMD at c = 1 / 4 / 16, means over {len(result['signal_seeds']['last'])} draws of signals, of the nearest of"
        f" {result['graphs']:,} graphs and of two that were named before. GAD has a Gaussian in place of its network:"
        f" trained networks are at most {max(off):.4f} away from it on the graph that was in use then. Distances are in"
        " spreads, the sd over draws of signals: of the spectral control and GAD at NFE 4, which choose who is near,"
        " and of GAD at NFE 8 and 16, which choose among these. Either would be about 2.4 for the paper's graph.\n\n"
    )
    header = ["graph", "distances", "spectral control", "GAD, NFE 4", "NFE 8", "NFE 16", "full less spectral control"]
    return text + table(header, rows)


def whitened() -> str:
    rows = []
    for setting, of in load("whitened")["settings"].items():
        for row in ("wsd-graph", "wsd-scalar"):
            readings = {name: each[row] for name, each in of["readings"].items() if row in each}
            paper = next(iter(readings.values()))["paper"]
            rows.append([setting, f"paper, {row}", *(f"{value:.3f}" for value in paper), ""])
            for name, each in sorted(readings.items(), key=lambda item: item[1]["misfit"])[:4]:
                rows.append(["", name, *(f"{value:.3f}" for value in each["ammd"]), f"{each['misfit']:.2f}"])
    text = (
        "The four nearest readings of each row, with the score of a Gaussian mixture in place of the network. Misfit:"
        " mean of |log(ours / paper)|.\n\n"
    )
    return text + table(["setting", "reading", "NFE 4", "NFE 8", "NFE 16", "NFE 64", "misfit"], rows)


def speed(name: str) -> str:
    result = load(name)
    ours, plain = result["times"]["ours"], result["times"]["plain"]
    rows = [
        [
            words(key),
            f"{ours[key]:.2f}",
            f"{plain[key]:.2f}",
            f"{result['ratios'][key]:.2f}",
        ]
        for key in ours
    ]
    need, bound, ceiling = result["counts"]["ours"], result["bound_ms"], result["ceilings"]
    text = table(["milliseconds", "ours", "plain network", "ratio"], rows)
    for ours_key in ("sample_float32_ms", "sample_bfloat16_ms"):
        for plain_key in ("sample_float32_ms", "sample_float32_at_once_ms"):
            if plain_key in plain:
                ratio = plain[plain_key] / ours[ours_key]
                text += f"\nOurs ({words(ours_key)}) is {ratio:.1f} times as fast as plain ({words(plain_key)}).\n"
    for name, what, key in (("An update", "update", "step_ms"), ("Sampling", "sample", "sample_float32_ms")):
        text += (
            f"\n{name} needs {need[f'{what}_gflop']:.1f} GFLOP and {need[f'{what}_gbyte']:.2f} GB in float32; at "
            f"{ceiling['product_gflops']:.0f} GFLOP/s and {ceiling['copy_gbyte_s']:.0f} GB/s (measured beside it) "
            f"that is {bound[what]:.2f} ms at least, {ours[key] / bound[what]:.1f} times faster than measured."
        )
    return text + f"\n\naMMD of 5,000 against 5,000 signals: {result['times']['ammd_5000_s']:.2f} s.\n"


def facts() -> str:
    rows = []
    for setting, of in load("facts")["settings"].items():
        sizes = [f"{number:,}" for number in (of["nodes"], *of["signals"], of["pairs"])]
        snr = [f"{of['snr'][regime]:.4f}" for regime in ("kappa 2", "near zero")]
        rows.append([setting, *sizes, f"{of['off_diagonal_energy']:.4f}", *snr])
    header = ["", "nodes", "train", "validate", "test", "edges", "discarded covariance", "SNR, kappa 2", "near zero"]
    return table(header, rows)


SECTIONS = {
    "facts": ("Data, graphs and references", facts),
    "sbm-standin": ("Which stochastic block model stands in for the paper's", standin),
    "whitened": ("How the whitened scores were sampled", whitened),
    "speed-cpu": ("Speed on two cores", lambda: speed("speed-cpu")),
    "speed-gpu": ("Speed on a GPU", lambda: speed("speed-gpu")),
    "speed-gpu-earlier": (
        "Speed on a GPU, an earlier commit on another machine of the same kind",
        lambda: speed("speed-gpu-earlier"),
    ),
    "limit-cpu": ("How far from what two cores allow", lambda: limit("limit-cpu")),
    "limit-gpu": ("How far from what a GPU allows", lambda: limit("limit-gpu")),
    "size": ("A million signals on 500 nodes", lambda: size()),
    "masks": ("How much point masks of training hide", lambda: masks_page.section(load("masks")["variants"])),
    "scale": ("Large graphs", lambda: scale("scale")),
    "scale-gpu": ("Large graphs, the network on a GPU", lambda: scale("scale-gpu")),
    "cluster": ("Past one process", lambda: cluster()),
    "demo": ("The demo over three seeds", lambda: demo()),
    "attack": ("Accidents", lambda: attack()),
    "spotcheck": ("Published cells, computed afresh", lambda: spotcheck()),
}


def limit(name: str) -> str:
    result, rows = load(name), []
    parts = {f"1,000 moments, {how}": each for how, each in result.get("moments", {}).items()}
    parts |= {"an update": result.get("update", {}), "METR-LA's test set filled": result.get("fill", {})}
    for what, each in parts.items():
        if each:
            ms = each["ms"] if "ms" in each else 1e3 * each["seconds"]
            alone, mixture = each.get("network alone, float32, ms"), each.get("mixture alone, float64, ms")
            bounds = [1e3 * each["bound_s"][key] if "bound_s" in each else None for key in ("operations", "bytes")]
            numbers = (ms, alone, mixture, each.get("gflop"), each.get("gbyte"), *bounds)
            shares = ", ".join(f"{event['operation']} {event['share']:.0%}" for event in each["longest"][:4])
            rows.append([what, *("-" if number is None else f"{number:,.1f}" for number in numbers), shares])
    header = [
        "",
        "ms",
        "network alone, ms",
        "mixture alone, ms",
        "GFLOP",
        "GB",
        "bound by operations, ms",
        "by bytes, ms",
        "longest",
    ]
    rates, fill = result["rates"], result.get("fill", {})
    text = (
        f"Rates measured beside: {rates['product_gflops']:,.0f} GFLOP/s, {rates['copy_gbyte_s']:,.0f} GB/s. Filling"
        f" was timed on {fill.get('windows', 0)} windows, and is as much more for all{_count(fill.get('pieces'))}."
        f" {result.get('note', '')}\n\n"
    )
    scores = [each["scores of the mixture"] for each in parts.values() if "scores of the mixture" in each]
    times = " or ".join(map(str, sorted({*scores})))
    what = (
        "\nWhat a moment costs beside its network is the mixture: between evaluations signals are carried along its"
        f" flow by a Runge-Kutta scheme, which asks for its score {times} times in float64, however many evaluations"
        " there are.\n"
    )
    return text + table(header, rows) + (what if scores else "")


def _count(number: int | None) -> str:
    """Of files that say it."""
    return "" if number is None else f" {number:,}"


def size() -> str:
    result = load("size")
    rows = [
        [
            name,
            f"{file['peak_mb']['fit']:,.0f}",
            f"{file['peak_mb']['import']:,.0f}",
            f"{file['copies']:.2f}",
            *(f"{file['seconds'][key]:.1f}" for key in ("read", "covariance")),
            f"{file['ms_per_update']:.0f}",
        ]
        for name, file in result["files"].items()
    ]
    header = ["file", "peak MB", "of it imports", "copies beyond", "read s", "covariance s", "update ms"]
    return (
        f"{result['rows']:,} signals on {result['nodes']} nodes, {result['files']['npz']['signals_mb']:,.0f} MB,"
        f" read and trained on in a process of its own.\n\n" + table(header, rows)
    )


CALLED = ("fit", "sample", "impute")


ASKED = {"graph": 1.2, "fit": 1.5, "draws": 1.5, "draws again": 1.2, "posterior": 1.5, "level": 1.5, "network": 1.2}


def missed(growth: list[dict]) -> str:
    """Which exponents from 10,000 to a million nodes are larger than asked for."""
    whole = [each for each in growth if (each["from"], each["to"]) == (10_000, 1_000_000)]
    over = [f"{name} {each[name]:.2f}" for each in whole for name, most in ASKED.items() if each[name] > most]
    return f"\nLarger than asked for: {', '.join(over) or 'none'}.\n" if whole else ""


def scale(name: str) -> str:
    from scale import exponents

    result = load(name)
    stages = ("graph", "fit", "draws", "draws again", "posterior", "level", "network")
    rows = [
        [
            f"{each['nodes']:,}",
            f"{each['signals']:,}",
            f"{each['draws']}",
            f"{each['rank']}",
            *(f"{each['seconds'][name]:.2f}" for name in stages),
            f"{max(each['peak_mb'].values()) / 1e3:.1f}",
            *(f"{ours:.3f} ({truth:.3f})" for ours, truth in (each["rmse_hidden"], each["posterior_spread"])),
        ]
        for each in result["sizes"]
    ]
    times = [f"{name} s" for name in stages]
    header = ["nodes", "signals", "draws", "modes", *times, "peak GB", "rmse hidden", "spread"]
    steps = [
        [f"{g['from']:,} to {g['to']:,}, {g['of_signals']:,} signals", *(f"{g[name]:.2f}" for name in stages)]
        for g in exponents(result["sizes"])
    ]
    text = (
        "Fit, draws, posterior draws of one signal (a quarter missing), the reference at one noise level, one"
        " evaluation of the network; in brackets what the true law has (see `benchmarks/scale.py`)."
        " Of a million nodes there are fewer signals and draws, and no modes.\n\n" + table(header, rows)
    )
    text += (
        "\nExponents of growth, where the work is the same; asked for, from 10,000 to a million nodes: 1.2, and 1.5"
        " where a factor is made (fit, posterior, level, draws for the first time):\n\n"
        + table(["", *stages], steps)
        + missed(exponents(result["sizes"]))
    )
    called = [
        [
            f"{each['model']:,}",
            f"{each['signals']:,}",
            *(f"{each['seconds'][name]:.2f}" for name in CALLED),
            f"{max(each['peak_mb'].values()) / 1e3:.1f}",
        ]
        for each in result.get("models", [])
    ]
    if called:
        names = ["nodes", "signals", *(f"{name} s" for name in CALLED), "peak GB"]
        text += f"\nAs a user calls it, without a network, {result['models'][0]['draws']} draws:\n\n"
        text += table(names, called)
    real = [
        [
            f"`{each['method']}`: {each['reference']}",
            f"{each['fit_seconds']:.0f}",
            *(f"{each[kind][what]:.4g}" for kind in ("point", "block") for what in ("MAE", "CRPS", "seconds")),
        ]
        for each in result["metr_la"]
    ]
    columns = [f"{kind}: {what}" for kind in ("points", "spells") for what in ("MAE", "CRPS", "seconds")]
    names = ["reference of METR-LA, windows of 24 rows", "fit s", *columns]
    return text + ("\n" + table(names, real) if real else "")


def cluster() -> str:
    result = load("cluster")
    names = {"moments": "`grcd`, moments", "paper": "`grcd-rho3`, moments", "windows": "`grcd`, windows of 12 rows"}
    rows = [
        [
            names[kind],
            f"{each['updates']:,}",
            *(f"{each['seconds'][name]:.1f}" for name in ("one", "two")),
            f"{each['ratio']:.2f}",
            f"{each['command_ratio']:.2f}",
            f"{each['validation_error_differs_by']:.0e}",
        ]
        for kind, each in result["training"].items()
    ]
    header = [
        "training",
        "updates",
        "one process s",
        "two s",
        "ratio",
        "of whole commands",
        "validation error differs by",
    ]
    filled = [
        [
            names[kind],
            f"{each['partitions']} x {each['rows_each']} rows",
            *(f"{each['command_seconds'][name]:.0f}" for name in ("in-process", "one worker", "two workers")),
            f"{each['command_ratio']:.2f}",
            f"{each['seconds_first_to_last']['one worker'] / each['seconds_first_to_last']['two workers']:.2f}",
            "yes" if each["files_alike_to_the_byte"] else "no",
        ]
        for kind, each in result["filling"].items()
    ]
    columns = ["filling", "files", "in this process s", "one worker s", "two workers s", "ratio"]
    columns += ["from the first file to the last", "same bytes"]
    return (
        f"{result['nodes']} nodes, {result['rows']:,} rows, a thread a process, the quickest of {result['repeats']}."
        " Asked for: 1.7 for training, 1.8 for filling. Seconds of training are those of updates and validations;"
        " those of filling are of whole commands, the start of the workers included, some ten seconds; beside their"
        f" ratio that of the time from the first file to the last. {result['note']}\n\n"
        f"{table(header, rows)}\n\n{table(columns, filled)}"
    )


def demo() -> str:
    cells = load("demo")["cells"]
    columns = [key for key in cells[0] if key not in ("seed", "seconds")]
    rows = [[str(c["seed"]), *(f"{c[key]:.4f}" for key in columns), f"{c['seconds']:.0f}"] for c in cells]
    text = "The paper's arm has settings chosen by hand, with test scores in sight: an illustration, no benchmark.\n\n"
    return text + table(["seed", *columns, "seconds, all of it"], rows)


def attack() -> str:
    result = load("attack")
    columns = [key for key in next(iter(result["kinds"].values())) if key not in ("examples", "seconds")]
    rows = [[kind, *(f"{ends[column]:,}" for column in columns)] for kind, ends in result["kinds"].items()]
    rows.append(["all", *(f"{sum(ends[column] for ends in result['kinds'].values()):,}" for column in columns)])
    text = (
        f"Commit {result['commit']}, seed {result['seed']}. *ok*: the command did what it does undisturbed; *refused*:"
        " exit status 2 and a message in three parts. Everything to the right of them is a fault; what each word means"
        " says `benchmarks/attacks/verdict.py`.\n\n"
    )
    return text + table(["", *columns], rows)


def spotcheck() -> str:
    checks = load("spotcheck")["checks"]
    rows = [
        [
            check["cell"],
            check["number"],
            *(f"{check[key]:.6g}" for key in ("published", "computed")),
            *(f"{check[key]:.0e}" for key in ("difference", "tolerance")),
            check["published_on"],
        ]
        for check in checks
    ]
    text = (
        "The number of each cell that differs most from its file, relative to it; networks are trained again up to the"
        " update whose weights were kept.\n\n"
    )
    return text + table(["cell", "number", "published", "now", "difference", "allowed", "published on"], rows)


def origins(cells: list[Cell], results: Path) -> str:
    """What cells were computed on, and when; for times also which methods were timed there."""
    dates, timed = {}, {}
    for cell in cells:
        content = json.loads(cell.path(results).read_text())
        dates.setdefault(content["hardware"], []).append(content["date"])
        if cell.measure == "time":
            timed.setdefault(content["hardware"], {})[cell.method] = None
    ordered = sorted(dates.items(), key=lambda item: -len(item[1]))
    text = "; ".join(f"{name}, {' to '.join(sorted({min(when), max(when)}))}" for name, when in ordered)
    times = "; ".join(f"{name} ({', '.join(methods)})" for name, methods in timed.items())
    return f"{text}. Times: {times}" if times else text


def suite(name: str, results: Path) -> str | None:
    """A table of the benchmark, from the cells that are there."""
    cells = [cell for cell in suites.cells(name) if read(cell, results) is not None]
    trained = [cell for cell in cells if cell.needs_network and (cell.measure == "time") == (name == "cost")]
    settings = dict.fromkeys(cell.setting for cell in trained or cells)
    cells = [cell for cell in cells if cell.setting in settings]
    if not cells or (name != "controls" and not trained):
        return None
    seeds = sorted(
        {cell.seed for cell in cells if cell.needs_network} or {cell.seed for cell in cells}
    )  # without a network they are of draws
    command = f"grcd bench run {name} --settings {','.join(settings)} --results results"
    recipe = f"`{command}`, seeds {', '.join(map(str, seeds))}. {origins(cells, results)}."
    text = tables.table(name, cells, seeds, results, "md", alone=name == "controls")
    once = name == "controls" or name in tables.OWN
    return f"{recipe}\n\n{text}" + ("" if once else "\nWithout a network, and the floor: [controls](#controls).\n")


def leading() -> str:
    """What the network is for, in one table."""
    lines = purpose.lines(None, RESULTS)
    verdicts = Counter(line[-1] for line in lines[1:])
    counts = ", ".join(f"{verdict} in {count}" for verdict, count in verdicts.most_common())
    text = (
        f"Does a network pay? Of {len(lines) - 1} rows: {counts}.\n\n"
        "Lower is better. The gain is that over the better of its two neighbours (of generated signals, over the"
        " reference), with its 95 % interval: over test weeks (block bootstrap) where scores were kept by day and there"
        " are two weeks of them, else over seeds (log ratios, five seeds at least). METR-LA's test rows are 24 days, so"
        " its intervals are rough. A network pays where all of the interval is above zero. `-`: not measured yet."
        " Generated windows are not among the tasks: what is generated here are moments.\n\n"
    )
    return text + markdown(lines) + "\n"


def main() -> None:
    pages = [f"{title}: [{name}.md]({name}.md)" for name, title in PAGES.items() if (RESULTS / f"{name}.md").exists()]
    parts = [
        "# Results\n\nWritten by `benchmarks/report.py` from the JSON files beside it."
        f" The paper claim by claim: [REPRODUCTION.md](REPRODUCTION.md). {'; '.join(pages)}.\n\n"
        f"## What the network is for\n\n{leading()}\n## All tables\n"
    ]
    for name in (name for name in suites.SUITES if name != "quick"):
        text = suite(name, RESULTS)
        parts += [f"## {name}\n\n{text}"] if text else []
    for name, (title, section) in SECTIONS.items():
        if (RESULTS / f"{name}.json").exists():
            parts.append(f"## {title}\n\n{origin(load(name))}\n{section()}")
    parts[0] += f"\n{contents(parts[1:])}\n"
    (RESULTS / "README.md").write_text("\n".join(parts))


def contents(parts: list[str]) -> str:
    """Links to the sections, and to the figures."""
    titles = [part.splitlines()[0].removeprefix("## ") for part in parts]
    anchors = [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles]
    figures = sorted((RESULTS / "figures").glob("*.png"))
    return "\n".join(
        [
            "Networks are trained as the paper says, but for `grcd` and its parts, which have their own settings."
            " The floor is what training signals score.\n",
            *(f"- [{title}](#{anchor})" for title, anchor in zip(titles, anchors, strict=True)),
            "- Figures: " + ", ".join(f"[{path.stem}](figures/{path.name})" for path in figures),
        ]
    )


if __name__ == "__main__":
    main()
