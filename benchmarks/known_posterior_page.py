"""``results/known-posterior.md`` from ``results/known-posterior.json``: every number is from there."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from grcd.core.tables import markdown

OURS, WIDE, GUIDED = "conditional", "conditional, masks to 95 %", "guidance, grcd-full"
DISTANCE, ERROR = "sliced Wasserstein", "mean error"
COLUMNS = {
    DISTANCE: lambda scores: scores[DISTANCE],
    ERROR: lambda scores: math.sqrt(max(0.0, scores["squared mean error"])),
    "signed": lambda scores: scores["signed mean error"],
    "50 % covers": lambda scores: scores["cover 50"],
    "90 % covers": lambda scores: scores["cover 90"],
}
HEAD = """\
# A posterior that is known

Written by `benchmarks/known_posterior.py`, which says what is compared and how. Distances and errors are in units of a
reading's posterior spread. The floor is what two sets of exact draws differ by; a mean error is free of what chance
adds to a mean of finitely many draws, so its floor is 0, but for what chance leaves. Every seed has signals to learn
from, test signals and networks of its own: the sd (after +-) is over all of them, and of three seeds itself uncertain.
"""


def page(result: dict[str, Any]) -> str:
    return "\n".join([HEAD, *(section(name, law) for name, law in result.items())])


def section(name: str, law: dict[str, Any]) -> str:
    seeds, setting = law["seeds"], law["setting"]
    rows = [["", "NFE", *COLUMNS, "seeds"]]
    for method, nfe in dict.fromkeys(
        (method, nfe) for own in seeds.values() for method, budgets in own["methods"].items() for nfe in budgets
    ):
        found = [figures(law, method, nfe, column) for column in COLUMNS]
        rows.append([method, nfe, *(told(each.values()) for each in found), str(len(found[0]))])
    return (
        f"## {name}\n\n{law['hidden']} of 24 readings are hidden. Seeds {', '.join(seeds)}, each with"
        f" {setting['draws']} draws of {setting['signals']} test signals and networks of {setting['updates']:,} updates"
        f" at most. {origin(seeds)}\n\n{markdown(rows)}\n\n{compared(law)}"
    )


def origin(seeds: dict[str, Any]) -> str:
    """Commands, dates and machines, each once; and what training took."""
    runs = dict.fromkeys(
        f"`{own['command']}`, {own['date']}, {own['hardware']}"
        f" ({', '.join(f'{key} {version}' for key, version in own['versions'].items())})"
        for own in seeds.values()
    )
    methods = dict.fromkeys(method for own in seeds.values() for method in own["seconds"])
    took = (
        f"{method} {np.mean([own['seconds'][method] for own in seeds.values() if method in own['seconds']]):.0f}"
        for method in methods
    )
    return f"{'; '.join(runs)}. Seconds of a processor that a training took, on average: {'; '.join(took)}."


def figures(law: dict[str, Any], method: str, nfe: str, column: str) -> dict[str, float]:
    """By seed, of those that have it."""
    found = {seed: own["methods"].get(method, {}).get(nfe) for seed, own in law["seeds"].items()}
    return {seed: COLUMNS[column](scores) for seed, scores in found.items() if scores}


def told(values: Any) -> str:
    """Mean and, of more than one, standard deviation."""
    values = list(values)
    return f"{np.mean(values):.3f}" + (f" +- {np.std(values, ddof=1):.3f}" if len(values) > 1 else "")


# -- who is ahead, and why ---------------------------------------------------------------------------------------------


def apart(law: dict[str, Any], one: str, other: str, nfe: str) -> list[float]:
    """The distance of one method less that of another, seed by seed."""
    first, second = (figures(law, method, nfe, DISTANCE) for method in (one, other))
    return [first[seed] - second[seed] for seed in first if seed in second]


def compared(law: dict[str, Any]) -> str:
    """What the table says of guidance and our sampler, and of why."""
    budgets = [nfe for own in law["seeds"].values() for nfe in own["methods"].get(OURS, {})]
    gaps = {nfe: gap for nfe in dict.fromkeys(budgets) if (gap := apart(law, GUIDED, OURS, nfe))}
    if not gaps:
        return ""
    each = "; ".join(f"NFE {nfe}: {told(gap)}" for nfe, gap in gaps.items())
    text = f"Guidance less our sampler, {DISTANCE} in the same seed (below 0: guidance is nearer): {each}.\n"
    most = list(gaps)[-1]
    mended = apart(law, WIDE, OURS, most), apart(law, WIDE, GUIDED, most)
    return text + (why(law, most, np.mean(gaps[most]), mended) if all(mended) else "")


def why(law: dict[str, Any], nfe: str, gap: float, mended: tuple[list[float], list[float]]) -> str:
    """Whether the masks that our sampler learned from are the reason, by what it is worth with others."""
    ours, wide, guided = (told(figures(law, method, nfe, DISTANCE).values()) for method in (OURS, WIDE, GUIDED))
    who = (
        "guidance is nearer to the posterior than our sampler" if gap < 0 else "guidance is no nearer than our sampler"
    )
    less, behind = (float(np.mean(each)) for each in mended)
    share = f"{100 * law['masks as sparse']:.2f} %"
    first = (
        f"At NFE {nfe} {who} ({guided}; {ours}). Here {law['hidden']} readings are hidden; of the masks that our"
        f" network learns from {share} hide as many or more (but for those that hide all), while the network that"
        " guidance steers knows no masks."
    )
    if gap >= 0:
        return f"\n{first}\n"
    if less >= 0:
        reason = "so masks are not the reason, which is not known"
    elif behind > 0:
        reason = f"so masks explain {less / gap:.0%} of the difference, and the rest is not explained"
    else:
        reason = "so masks explain the difference, and our sampler's default masks are the weaker choice here"
    second = f"Trained on points of up to 95 % of a signal in place of 60 %, the same network has {wide}: {reason}."
    return f"\n{first} {second}\n"
