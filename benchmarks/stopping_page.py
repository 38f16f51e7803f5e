"""``results/stopping.md`` from ``results/stopping.json``: every number is from there (see ``stopping.py``)."""

from __future__ import annotations

from collections import Counter

TEXT = """\
# Stopping: which reading of the paper's rule gives the paper's numbers

`{command}`; {trainings} trainings of 25,000 updates, none stopped, {trained}, {minutes:.0f} minutes.

The paper: "validation denoising error is evaluated every 250 updates using EMA weights, and training stops after
eight consecutive evaluations without a relative improvement greater than 0.2 %". **Taken**, as `stopping="paper"`:
the squared error of the denoised signal, on every validation signal at eight levels (the middles of eighths of the
training distribution), the same noise every time, improvement against the last milestone, best weights kept. It
says what the words say, and of {readings} readings none has more cells in band ({in_band} of {of}; band: 30 % or
two of the paper's sd). **It was chosen by test aMMD, namely by the figures that the paper prints**, not by which of
ours are best; METR-LA and epsilon-Heun had no part in it ("beside"). The lead is small: the same number of updates
for every training, no rule at all, has up to {fixed} of {of}.

| reading | in band | beside | misfit | most updates |
| --- | --- | --- | --- | --- |
{table}

The paper: no arm needs more than 25,000 updates, where these trainings end: a reading that lets one go on to there
breaks that limit. The one taken does (EDM on c = 16), and of trainings with it that have no such end some stop later
([REPRODUCTION.md](REPRODUCTION.md)).

Misfit: mean squared log ratio in units of 15 % and the paper's sd, each at most 25.

The reading taken, ours (paper), `!` out of band:

| training | seeds | updates at the stop | aMMD at NFE |
| --- | --- | --- | --- |
{arms}

Still out: {out} the paper's.
"""


def page(study: dict, others: dict[str, str]) -> str:
    """The study in words; ``others`` are readings by what is different about them."""
    readings, fixed = study["readings"], study["fixed_numbers"]
    chosen = readings[study["chosen"]]
    tried = [("taken", chosen), *((name, readings[reading]) for name, reading in others.items())]
    table = [(name, entry, _most(entry)) for name, entry in tried]
    table += [(f"no rule, {n:,} updates for all", fixed[str(n)], n) for n in (6000, 9000, 15_000, 25_000)]
    lines, out = _arms(chosen, Counter(name.rsplit("/", 1)[0] for name in study["trainings"]))
    return TEXT.format(
        command=study["command"],
        trainings=len(study["trainings"]),
        trained=study["trained"],
        minutes=study["seconds"] / 60,
        readings=len(readings),
        in_band=chosen["searched"]["in_band"],
        of=chosen["searched"]["of"],
        fixed=max(each["searched"]["in_band"] for each in fixed.values()),
        table="\n".join(_totals(*row) for row in table),
        arms="\n".join(lines),
        out="; ".join(out),
    )


def _most(entry: dict) -> int:
    """Updates of the longest training that decided."""
    return max(arm["updates"][2] for arm in entry["searched"]["arms"].values())


def _totals(name: str, entry: dict, most: int) -> str:
    searched, beside = entry["searched"], entry["beside"]
    shares = [f"{part['in_band']} of {part['of']}" for part in (searched, beside)]
    return f"| {name} | {' | '.join(shares)} | {searched['misfit']:.2f} | {most:,} |"


def _arms(chosen: dict, seeds: Counter) -> tuple[list[str], list[str]]:
    """A line for each training, and what is out of band."""
    lines, out = [], []
    for name, arm in (chosen["searched"]["arms"] | chosen["beside"]["arms"]).items():
        cells = []
        for row, (ours, paper, near) in arm["cells"].items():
            cells.append(f"{row.replace('/', ' ')}: {ours:.3f} ({paper:.3f}){'' if near else ' !'}")
            out += [] if near else [f"{name.split('/')[0]} {row.replace('/', ' NFE ')} at {ours / paper:.1f} times"]
        low, _, high = (f"{n:,}" for n in arm["updates"])
        lines.append(f"| {name} | {seeds[name]} | {low if low == high else f'{low} to {high}'} | {', '.join(cells)} |")
    return lines, out
