"""The seven conclusions of the abstract and of section 5, each put together from what the sections below it check."""

from __future__ import annotations

from collections.abc import Iterator

from grcd.bench.bands import TIGHT

from . import efficiency, results, solvers
from .evidence import GRCD, SBMS, SETTINGS, Claim, main, number, printed, times

# What is said in one breath of solvers and grids; the rest of that section is said in passing.
SOLVERS = ("5.4-exponential", "5.4-small", "5.4-grid-2m", "5.4-grid-3m", "5.4-grid-larger")


def claims() -> Iterator[Claim]:
    margins = {setting: results.margin(setting) for setting in SETTINGS}
    yield Claim(
        "conclusion-1",
        "1. With four evaluations GRCD is 22 to 36 times below the best comparator, on all five settings (below it, and"
        " the factor in its band, a part each)",
        ", ".join(f"{margin.factor.paper:.1f}" for margin in margins.values()),
        ", ".join(f"{setting} {times(margin.factor, 1)}" for setting, margin in margins.items()),
        [part for margin in margins.values() for part in margin.parts],
    )
    four = main("metr-la", GRCD, 4)
    below, narrowing = results.below_everything(), results.narrowing()
    overtaken = [results.overtaking(setting) for setting in SBMS]
    yield Claim(
        "conclusion-2",
        "2. On METR-LA that is 0.054, below every comparator at any budget; the gap narrows as evaluations are added,"
        " and on the SBMs EDM and controls overtake at 64",
        f"{printed(four):.4f}; yes; {narrowing.paper}",
        f"{number(four.mean)}; {below.ours}; {narrowing.ours}; overtaken by the same: "
        + ", ".join(f"{setting} {claim.verdict}" for setting, claim in zip(SBMS, overtaken, strict=True)),
        [TIGHT.holds(four), *below.parts, *narrowing.parts, *(part for claim in overtaken for part in claim.parts)],
    )
    controls = [results.gaussian(setting) for setting in SETTINGS]
    yield Claim(
        "conclusion-3",
        "3. A Gaussian fitted to the data does not explain it: the best of four is above GRCD on all five settings"
        " (over GRCD; above 1)",
        "; ".join(control.paper for control in controls),
        "; ".join(control.ours for control in controls),
        [control.parts[1] for control in controls],
    )
    yield _joined(
        "conclusion-4",
        "4. Fitting the terminal reference gains a factor of 2.7 to 7.3 at finite terminal SNR, and nothing near zero",
        list(results.gained()),
    )
    yield _joined(
        "conclusion-5",
        "5. Of GRCD's parts it is the fitted reference that lowers aMMD; the residual score leaves it; the exponential"
        " solver brings the same quality at fewer evaluations",
        list(results.components()),
    )
    yield _joined(
        "conclusion-6",
        "6. The exponential solver is competitive with DPM-Solver++, not consistently better; with few evaluations the"
        " grid matters more than the solver",
        [claim for claim in solvers.claims() if claim.key in SOLVERS],
    )
    yield _joined(
        "conclusion-7",
        "7. GRCD reaches aMMD 0.1 in 87 % less time than the cheapest comparator that reaches it",
        [efficiency.saved()],
    )


def _joined(key: str, says: str, parts: list[Claim]) -> Claim:
    """A conclusion whose parts are claims of their own."""
    return Claim(
        key,
        says,
        "; ".join(dict.fromkeys(claim.paper for claim in parts)),
        "; ".join(claim.ours for claim in parts),
        [part for claim in parts for part in claim.parts],
    )
