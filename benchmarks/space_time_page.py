"""The page beside ``results/space-time.json``: what ``space_time`` measured, and what was learned on the way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from grcd.core.tables import markdown

PUBLISHED = {  # MAE, MSE, CRPS of METR-LA, point / block, as their papers say
    "VAR": ("2.69 / 3.11", "21.1 / 28.0", ""),
    "BRITS": ("2.34 / 2.34", "16.5 / 17.0", ""),
    "GRIN": ("1.91 / 2.03", "10.41 / 13.26", ""),
    "CSDI": ("1.79 / 1.98", "8.96 / 12.62", ".0235 / .0260"),
    "PriSTI": ("1.72 / 1.86", "8.24 / 10.70", ".0227 / .0244"),
}
FORECASTS = {
    "DCRNN": ("2.77", "3.15", "3.60"),
    "Graph WaveNet": ("2.69", "3.07", "3.53"),
    "STAEformer": ("2.65", "2.97", "3.34"),
}
HEAD = """# Windows in space and time

Written by `benchmarks/space_time.py`. One seed; choices are made by validation rows, and where
something was looked at on test rows first, it is said.
"""
LEARNED = Path(__file__).parent / "space_time_learned.md"


def written(whole: dict[str, Any]) -> str:
    """The page as text."""
    parts = [HEAD]
    parts += [section(whole[name]) for name, section in SECTIONS.items() if name in whole]
    return "\n".join([*parts, LEARNED.read_text()])


def origin(result: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    notes = "".join(f" {note}" for note in result.get("notes", []))
    what = f"`{result['command']}`, seed {result.get('seed', 0)}, {result['date']}, {result['hardware']}"
    return f"{what} ({versions}).{notes}\n"


def pair(scores: dict[str, dict], name: str, digits: int) -> str:
    """Point / block."""
    return " / ".join(f"{each[name]:.{digits}f}" if name in each else "" for each in scores.values())


def covers(scores: dict[str, dict]) -> str:
    return " | ".join(
        " / ".join(f"{100 * each[f'cover {share}']:.1f}" for share in (50, 90)) for each in scores.values()
    )


def metr_la(result: dict[str, Any]) -> str:
    summary, rows = result["summary"], list[list[str]]()

    def row(name: str, scores: dict[str, dict]) -> None:
        covered = covers(scores) if all("cover 50" in each for each in scores.values()) else ""
        seconds = pair(scores, "seconds", 0) if all("seconds" in each for each in scores.values()) else ""
        crps = pair(scores, "CRPS", 4) if all("CRPS" in each for each in scores.values()) else ""
        rows.append([name, pair(scores, "MAE", 3), pair(scores, "MSE", 2), crps, covered.replace(" | ", "; "), seconds])

    row("line in time", result["line in time"])
    row("the calendar's mean", result["calendar"])
    row("reference of this network", result["reference alone"])
    for nfe in sorted(result["filled"], key=int):
        row(f"network, NFE {nfe}", result["filled"][nfe])
    for nfe, scores in result.get("filled with overlaps", {}).items():
        row(f"network, NFE {nfe}, overlapping windows", scores)
    rows += [[name, mae, mse, crps, "", ""] for name, (mae, mse, crps) in PUBLISHED.items()]
    training, batch = summary["training"], summary["setting"]["batch"]
    text = f"""## METR-LA

{origin(result)}
Gaps, point / block: windows of 24 rows one after the other, 100 draws, intervals by ranks p (n + 1). Readings of
training rows that a mask hides are trained on, as PriSTI does; one network serves both masks, forecasts and generation.
{summary["updates"]:,} updates of {batch} windows, {training["seconds"]:.0f} s in all, choices, posteriors
and compiling included. Seconds are those of filling the test rows; the first that were filled include compiling.

"""
    text += markdown([["", "MAE", "MSE", "CRPS", "50 and 90 % intervals cover", "seconds"], *rows]) + "\n"
    return text + forecasts(result) + samples(result)


def forecasts(result: dict[str, Any]) -> str:
    if "forecast" not in result:
        return ""
    about = result["forecast"]
    rows = [
        [
            "last reading, all windows",
            *(f"{value:.2f}" for value in about["last reading, all windows"].values()),
            "",
            "",
        ]
    ]
    ours = [about["by lead"][lead] for lead in ("3", "6", "12")]
    rows.append(
        [
            "the same network, median",
            *(f"{each['MAE']:.2f}" for each in ours),
            ", ".join(f"{each['CRPS']:.4f}" for each in ours),
            "; ".join(f"{100 * each['cover 50']:.1f} / {100 * each['cover 90']:.1f}" for each in ours),
        ]
    )
    rows += [[name, *values, "", ""] for name, values in FORECASTS.items()]
    header = ["", "3 steps", "6 steps", "12 steps", "CRPS", "50 and 90 % intervals cover"]
    windows = f"{about['windows']:,} test windows evenly spaced, 12 rows in and 12 out; "
    windows += f"NFE 4, 100 draws, {about['seconds']:.0f} s."
    return f"\nForecasts, MAE: {windows}{about.get('note', '')}\n\n" + markdown([header, *rows]) + "\n"


def samples(result: dict[str, Any]) -> str:
    if "samples" not in result:
        return ""
    about, rows = result["samples"], list[list[str]]()
    for name in ("real", "generated"):
        each = about[name]
        correlation = ", ".join(f"{value:.2f}" for value in each["autocorrelation"].values())
        rows.append([name, f"{each['sd']:.2f}", f"{each['sd about the calendar']:.2f}", correlation])
    lags = ", ".join(about["real"]["autocorrelation"])
    text = (
        f"\nWindows of which nothing is observed ({about['windows']}, NFE 8), beside test windows at their times.\n\n"
    )
    return (
        text + markdown([["", "sd", "sd about the calendar", f"autocorrelation about it, lags {lags}"], *rows]) + "\n"
    )


def reference(result: dict[str, Any]) -> str:
    rows = [["", "its mean by the clock, chosen and fitted, s", "which covariance, chosen and factored, s"]]
    for each in (result[name] for name in ("cuda", "cpu") if name in result):
        rows.append([each["hardware"], *(f"{each[stage]['seconds']:.1f}" for stage in ("mean", "choice"))])
    size = next(result[name]["readings a window"] for name in ("cuda", "cpu") if name in result)
    return f"## The reference alone: {size:,} readings a window\n\n{origin(result)}\n{markdown(rows)}\n"


def choices(result: dict[str, Any]) -> str:
    rows = []
    for form in result["forms"]:
        by = form["shrinkage"]
        weights = ", ".join(f"{name} {by[name]:g}" for name in ("nodes", "separable", "local", "noise"))
        cells = [form[f"{kind}, weights by likelihood"] for kind in ("point", "block")]
        rows.append(
            [
                form["calendar"],
                "yes" if form["local"] else "no",
                weights,
                f"{form['log-likelihood a reading']:.4f}",
                " / ".join(f"{each['MAE']:.3f}" for each in cells),
                " / ".join(f"{each['CRPS']:.4f}" for each in cells),
            ]
        )
    text = f"""## The form of the reference, by validation windows

{origin(result)}
METR-LA, no network. How much of the spread goes by the clock, and whether weak correlations are taken for noise
(`local`), with the weights that make short validation windows most probable; MAE and CRPS are those of the protocol's
masks in validation rows, whole windows.

"""
    header = ["calendar", "local", "weights", "log-likelihood a reading", "MAE", "CRPS"]
    return text + markdown([header, *rows]) + "\n"


def on_a_processor(title: str, what: str) -> Any:
    def section(result: dict[str, Any]) -> str:
        rows = []
        for name, scores in result.items():
            if isinstance(scores, dict) and "MAE" in scores:
                cover = (
                    f"{100 * scores['cover 50']:.1f} / {100 * scores['cover 90']:.1f}" if "cover 50" in scores else ""
                )
                seconds = f"{scores['seconds']:.0f} ({scores['processor seconds']:.0f})" if "seconds" in scores else ""
                crps = f"{scores['CRPS']:.4f}" if "CRPS" in scores else ""
                rows.append([name, f"{scores['MAE']:.3f}", f"{scores['MSE']:.2f}", crps, cover, seconds])
        summary = result["summary"]
        used = "used" if summary["network"] else "not used: it does not beat its reference in validation windows"
        took = summary["training"]
        text = f"""## {title}

{origin(result)}
{what} {result["scored"]:,} readings are scored. {summary["updates"]:,} updates, {took["seconds"]:.0f} s
({took["processor seconds"]:.0f} s of processors); the network is {used}.

"""
        header = ["", "MAE", "MSE", "CRPS", "50 and 90 % intervals cover", "seconds (of processors)"]
        return text + markdown([header, *rows]) + "\n"

    return section


SECTIONS = {
    "metr-la": metr_la,
    "small": on_a_processor(
        "Thirty sensors, 5,000 rows, a CPU",
        "METR-LA's first: 3,500 rows train, 500 validate, 1,000 test; point masks; overlapping windows.",
    ),
    "aqi36": on_a_processor(
        "AQI-36, a CPU",
        "Windows of 36 hours; readings hidden in training months are trained on; overlapping windows.",
    ),
    "reference": reference,
    "choices": choices,
}
