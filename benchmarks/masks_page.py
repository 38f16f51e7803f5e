"""``results/masks.json`` as a section of results/README.md: every number is from there."""

from __future__ import annotations

from statistics import mean, stdev

from grcd.core.tables import markdown


def section(variants: dict[str, dict[str, dict]]) -> str:
    """By what was hidden: the reference, every variant, and the second over the first in the same seeds."""
    first, second = variants
    seeds = [seed for seed in variants[first] if seed in variants[second]]
    rows = [["hidden", "reference alone, MAE", *(f"{name}, MAE" for name in variants), "MAE over", "CRPS over"]]
    rows[0] += [f"90 % hold, {name}" for name in variants]
    for what in variants[first][seeds[0]]["scores"]:
        found = {name: [variants[name][seed]["scores"][what] for seed in seeds] for name in variants}
        alone = mean(variants[first][seed]["reference"][what]["mae"] for seed in seeds)
        over = [
            [b[key] / a[key] - 1 for a, b in zip(found[first], found[second], strict=True)] for key in ("mae", "crps")
        ]
        rows.append(
            [
                what,
                f"{alone:.3f}",
                *(f"{mean(each['mae'] for each in some):.3f}" for some in found.values()),
                *(f"{100 * mean(each):+.2f} +- {100 * _sd(each):.2f} %" for each in over),
                *(f"{mean(each['cover90'] for each in some):.1%}" for some in found.values()),
            ]
        )
    return (
        f"METR-LA's first 30 sensors, validation rows; networks of a CPU's default size and length, seeds "
        f"{', '.join(seeds)}. `{first}` of a window's points is what training masks hide at most by default; "
        f"`{second}`: in a fifth of such windows more. `over`: the second over the first, mean and sd over seeds; "
        "above 0 the second is worse.\n\n" + markdown(rows) + "\n"
    )


def _sd(values: list[float]) -> float:
    return stdev(values) if len(values) > 1 else 0.0
