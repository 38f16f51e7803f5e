"""Sections 5.1 to 5.3 and the Gaussian controls: who is best, by how much, and what brings it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from grcd.bench.bands import TIGHT, Factor, factor
from grcd.bench.suites import LADDER, NEAR_ZERO

from .evidence import (
    BUDGETS,
    COMPARATORS,
    CONTROLS,
    EPSILON,
    GAUSSIANS,
    GRCD,
    SBMS,
    SETTINGS,
    Claim,
    contents,
    diagnostic,
    entry,
    facts,
    gains,
    less,
    listed,
    lowest,
    main,
    mean,
    near,
    number,
    ours,
    printed,
    rounds_to,
    same,
    times,
    yes,
)

# -- 5.1 ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Margin:
    """By how much GRCD is below the best comparator at four evaluations."""

    ours_best: str
    paper_best: str
    factor: Factor

    @property
    def parts(self) -> list[bool | None]:
        """Whether it is below at all, and whether by the paper's factor."""
        return [less(1.0, self.factor.ours), self.factor.holds()]


def margin(setting: str) -> Margin:
    """The best comparator is the paper's for its factor, and ours for ours."""
    grcd = main(setting, GRCD, 4)
    (own, value), (theirs, _) = (lowest(setting, COMPARATORS, 4, of) for of in (ours, printed))
    expected = factor(main(setting, theirs, 4), grcd)
    return Margin(own, theirs, Factor(value / grcd.mean, expected.paper, expected.spread))


def overall() -> Iterator[Claim]:
    """Section 5.1."""
    best = margin("metr-la")
    yield Claim(
        "5.1-strongest-4",
        "5.1: METR-LA, NFE 4: the strongest comparator is the graph-prior WSD, 23 times above GRCD",
        f"{best.paper_best}, {best.factor.paper:.1f}",
        f"{best.ours_best}, {times(best.factor, 1)}",
        [same(best.ours_best, best.paper_best), best.factor.holds()],
    )
    (own, value), (theirs, printed_value) = (lowest("metr-la", COMPARATORS, 64, of) for of in (ours, printed))
    yield Claim(
        "5.1-strongest-64",
        "5.1: METR-LA, NFE 64: the strongest comparator is the conjugate preconditioning",
        f"{theirs} {printed_value:.4f}",
        f"{own} {number(value)}",
        [same(own, theirs), near(value, printed_value, sd=main("metr-la", theirs, 64).paper[1])],
    )
    rows = (GRCD, "grcd-rho1", EPSILON)
    own, value = lowest("metr-la", (*rows, *COMPARATORS), 64, ours)
    below = [less(main("metr-la", EPSILON, 64).mean, main("metr-la", row, 64).mean) for row in COMPARATORS]
    yield Claim(
        "5.1-best-64",
        "5.1: METR-LA, NFE 64: GRCD without residual score is the best of all",
        f"{EPSILON} {printed(main('metr-la', EPSILON, 64)):.4f}",
        f"{own} {number(value)}; below every comparator: {yes(None if None in below else all(below))}",
        [same(own, EPSILON), None if None in below else all(below)],
    )
    yield below_everything()
    yield narrowing()
    yield from map(narrowed, SETTINGS[1:])
    yield from gad()
    for setting in SETTINGS:
        best = margin(setting)
        yield Claim(
            f"5.1-factor-{setting}",
            f"5.1, abstract: {setting}, NFE 4: GRCD is below the best comparator by a factor (below; in the band)",
            f"{best.factor.paper:.1f}, {best.paper_best}",
            f"{times(best.factor, 1)}, {best.ours_best}",
            best.parts,
        )
    for setting in SBMS:
        yield overtaking(setting)
    for setting in SETTINGS:
        yield gaussian(setting)


def below_everything() -> Claim:
    four = main("metr-la", GRCD, 4).mean
    others = {
        (row, nfe): entry("main", "metr-la", row, nfe).mean for row in COMPARATORS for nfe in (*BUDGETS, 6, 12, 32)
    }
    (row, nfe), value = min(others.items(), key=lambda item: math.inf if math.isnan(item[1]) else item[1])
    return Claim(
        "1-below-everything",
        "introduction: METR-LA: GRCD at NFE 4 is below every comparator at every budget from 4 to 64",
        "yes",
        f"{yes(less(four, value))}: {number(four)} against {number(value)} ({row} at {nfe})",
        [less(four, value)],
    )


def margins(setting: str) -> list[list[float]]:
    """Over budgets of the main table: the best comparator over GRCD, ours and the paper's."""
    return [
        [lowest(setting, COMPARATORS, n, of)[1] / of(main(setting, GRCD, n)) for n in BUDGETS] for of in (ours, printed)
    ]


def narrowed(setting: str) -> Claim:
    here, theirs = margins(setting)
    return Claim(
        f"A.7-narrowing-{setting}",
        f"A.7: {setting}: the margin to the best comparator narrows with the budget (NFE 4, 8, 16, 64; from 4 to 64)",
        listed(theirs, 1),
        listed(here, 1),
        [less(here[-1], here[0])],
    )


def narrowing() -> Claim:
    both = margins("metr-la")
    known = not any(map(math.isnan, both[0]))
    falls = all(a > b for a, b in pairwise(both[0]))
    return Claim(
        "5.1-narrowing",
        "5.1: METR-LA: the gap to the best comparator narrows with the budget (NFE 4, 8, 16, 64)",
        listed(both[1], 1),
        listed(both[0], 1),
        [falls if known else None],
    )


def gad() -> Iterator[Claim]:
    outside = mean(diagnostic("outside", "metr-la", "gad", 4))
    yield Claim(
        "5.1-gad-range",
        "5.1: METR-LA, NFE 4: share of GAD's readings outside 0 to 120 mph (within one per cent)",
        "0.965",
        number(outside, 3),
        [None if math.isnan(outside) else abs(outside - 0.965) <= 0.01],
    )
    for nfe in (1000, 3000):
        shares = diagnostic("outside", "metr-la", "gad", nfe)
        yield Claim(
            f"5.1-gad-range-{nfe}",
            f"5.1: GAD at {nfe:,} steps has no reading out of range, in any seed",
            "0",
            f"{max(shares):g} ({len(shares)} seeds)" if shares else "-",
            [max(shares) == 0 if shares else None],
        )
        at = entry("gad-native", "metr-la", "gad", nfe)
        shares = at.sd / at.mean, at.paper[1] / at.paper[0]
        yield Claim(
            f"5.1-gad-{nfe}",
            f"5.1: GAD's aMMD at {nfe:,} steps, and that it varies a lot between seeds (sd over mean; at least half of"
            " the paper's)",
            f"{at.paper[0]:.2f} +- {at.paper[1]:.2f}; {shares[1]:.2f}",
            f"{number(at.mean, 2)} +- {number(at.sd, 2)}; {number(shares[0], 2)}",
            [TIGHT.holds(at), less(shares[1] / 2, shares[0])],
        )


def overtaking(setting: str) -> Claim:
    """Who is below GRCD at 64 evaluations, of EDM and the controls: a part each."""
    rows = ("edm", *CONTROLS)
    grcd = main(setting, GRCD, 64)
    theirs = {row: printed(main(setting, row, 64)) < printed(grcd) for row in rows}
    own = {row: less(main(setting, row, 64).mean, grcd.mean) for row in rows}
    return Claim(
        f"5.1-overtaking-{setting}",
        f"5.1, A.7: {setting}, NFE 64: GRCD is overtaken by (of EDM and the controls, a part each)",
        ", ".join(row for row, below in theirs.items() if below),
        ", ".join(row for row, below in own.items() if below) or "none",
        [None if own[row] is None else own[row] == theirs[row] for row in rows],
    )


def gaussian(setting: str) -> Claim:
    """The best of the paper's four Gaussian controls, and over GRCD; our mixture stands beside."""
    means = {name: entry("controls", setting, name, None).mean for name in GAUSSIANS}
    known = {name: value for name, value in means.items() if not math.isnan(value)}
    best = min(known, key=known.__getitem__, default="-")
    theirs = {name: printed(entry("controls", setting, name, None)) for name in GAUSSIANS}
    paper_best = min((name for name in theirs if not math.isnan(theirs[name])), key=theirs.__getitem__)
    grcd, mixture = main(setting, GRCD, 4), entry("controls", setting, "control-mixture", None).mean
    ratio = factor(entry("controls", setting, paper_best, None), grcd)
    own = Factor(known.get(best, math.nan) / grcd.mean, ratio.paper, ratio.spread)
    return Claim(
        f"A.8-gaussian-{setting}",
        f"5.1, A.8.1: {setting}: the best of four Gaussian controls is above GRCD at NFE 4 (which; above; factor)",
        f"{paper_best.removeprefix('control-')}, {ratio.paper:.2f}",
        f"{best.removeprefix('control-')}, {times(own)} (beside: mixture {number(mixture)}, GRCD {number(grcd.mean)})",
        [best == paper_best if known else None, less(1.0, own.ours), own.holds()],
    )


# -- 5.2 ---------------------------------------------------------------------------------------------------------------


def mechanism() -> Iterator[Claim]:
    """Section 5.2."""
    for arm, row in zip(("scalar", "fitted"), LADDER[:2], strict=True):
        heun = {nfe: entry("ladder", "metr-la", row, nfe) for nfe in (8, 12, 16, 64)}
        over = {nfe: heun[nfe].mean / heun[64].mean for nfe in (8, 12, 16)}
        theirs = {nfe: printed(heun[nfe]) / printed(heun[64]) for nfe in (8, 12, 16)}
        known = not any(map(math.isnan, over.values()))
        yield Claim(
            f"5.2-converged-{arm}",
            f"5.2: {arm} reference: NFE 16 is the smallest budget at which Heun has converged: aMMD over that at 64 for"
            " NFE 8, 12, 16 (within 5 % at 16, not before)",
            listed(theirs.values(), 2),
            listed(over.values(), 2),
            [over[16] < 1.05 <= min(over[8], over[12]) if known else None],
        )
    yield one_score()
    yield from gained()
    for label, paper, near_zero in (("kappa 2", 2.663, False), ("kappa 32.6", 0.010, True)):
        snr = facts()["settings"]["metr-la"]["snr"]["near zero" if near_zero else "kappa 2"]
        yield Claim(
            f"5.2-snr-{label.replace(' ', '-')}",
            f"5.2, A.6.3: METR-LA: terminal SNR at {label}",
            f"{paper:.3f}",
            f"{snr:.3f}",
            [rounds_to(snr, paper, 3)],
        )
    yield from dispersions()


def one_score() -> Claim:
    """Scalar and fitted arm: trained once, or twice to the same end."""

    def trained(row: str, setting: str, kappa: float | None) -> dict[int, list[float]]:
        return {
            content["config"]["seed"]: [content["training"][key] for key in ("updates", "val")]
            for content in contents(setting, row, 16, kappa=kappa)
        }

    alike = list[bool]()
    for setting, kappa in [(s, kappa) for s in SETTINGS for kappa in (None, NEAR_ZERO.get(s, 32.64))]:
        scalar, fitted = (trained(row, setting, kappa) for row in LADDER[:2])
        for seed in scalar.keys() & fitted.keys():
            alike += [a == b for a, b in zip(scalar[seed], fitted[seed], strict=True)]
    return Claim(
        "4-one-score",
        "4: fitted against scalar: the score model is the same, only the terminal draw differs (updates and validation"
        " error of both networks agree, five settings, both regimes)",
        "yes",
        f"{sum(alike)} of {len(alike)} numbers",
        [all(alike) if alike else None],
    )


def gained() -> Iterator[Claim]:
    """What fitting the terminal reference gains in both regimes; only the range over settings is printed."""
    for near_zero, low, high in ((False, 2.7, 7.3), (True, 1.00, 1.01)):
        means = {setting: mean(gains(setting)[near_zero]) for setting in SETTINGS}
        known = [value for value in means.values() if not math.isnan(value)]
        if near_zero:  # to the two digits printed: a band of 20 % would say nothing
            parts = [None if math.isnan(value) else low - 0.005 <= value < high + 0.005 for value in means.values()]
        else:  # in every setting, and its range is the paper's
            ends = [near(min(known), low), near(max(known), high)] if known else [None, None]
            parts = [*(less(1.0, value) for value in means.values()), *ends]
        yield Claim(
            "5.2-gain-near-zero" if near_zero else "5.2-gain",
            "5.2, abstract: scalar over fitted terminal reference, NFE 16, five settings, "
            + (
                "near zero SNR (each rounds into the range)"
                if near_zero
                else "kappa 2 (above 1; both ends in the band)"
            ),
            f"{low:.2f} to {high:.2f}" if near_zero else f"{low} to {high}",
            ", ".join(f"{setting} {number(value, 3 if near_zero else 2)}" for setting, value in means.items()),
            parts,
        )


def dispersions() -> Iterator[Claim]:
    """Mean per-sensor standard deviation; what is claimed is the step from scalar to fitted."""
    kappa = NEAR_ZERO["metr-la"]
    for at, regime, papers in ((None, "kappa 2", (0.795, 0.913)), (kappa, "near zero SNR", (0.916, 0.918))):
        own = [mean(diagnostic("node_std", "metr-la", row, 16, kappa=at)) for row in LADDER[:2]]
        step, paper_step = own[1] - own[0], papers[1] - papers[0]
        yield Claim(
            f"5.2-dispersion-{'near-zero' if at else 'finite'}",
            f"5.2: METR-LA: mean per-sensor standard deviation, scalar to fitted, {regime} (each within 0.02; the step"
            " within 0.02)",
            f"{papers[0]} to {papers[1]}",
            f"{number(own[0], 3)} to {number(own[1], 3)}",
            [None if math.isnan(a) else abs(a - b) <= 0.02 for a, b in ((*own[:1], papers[0]), (own[1], papers[1]))]
            + [None if math.isnan(step) else abs(step - paper_step) <= 0.02],
        )


# -- 5.3 ---------------------------------------------------------------------------------------------------------------


def components() -> Iterator[Claim]:
    """Section 5.3."""
    rungs = [entry("ladder", "metr-la", row, 16) for row in LADDER]
    steps = [factor(before, after) for before, after in pairwise(rungs)]
    known = not any(math.isnan(step.ours) for step in steps)
    steps[0] = replace(steps[0], paper=7.25)  # as printed
    yield Claim(
        "5.3-reference",
        "5.3: NFE 16: fitting the terminal reference lowers aMMD by a factor, the largest of the three steps"
        " (in the band; largest)",
        listed((step.paper for step in steps), 2),
        " / ".join(map(times, steps)),
        [steps[0].holds(), steps[0].ours > max(step.ours for step in steps[1:]) if known else None],
    )
    change = Factor(1 / steps[1].ours, 1 / steps[1].paper)
    yield Claim(
        "5.3-residual",
        "5.3: NFE 16: the residual score by itself changes little (aMMD with it over without; within 20 %)",
        f"{change.paper:.2f}",
        number(change.ours, 2),
        [change.holds()],
    )
    budgets = (8, 12, 16, 64)
    pairs = {nfe: [entry("ladder", "metr-la", row, nfe) for row in LADDER[2:]] for nfe in budgets}
    gain = {nfe: factor(*pair) for nfe, pair in pairs.items()}
    known = not any(math.isnan(each.ours) for each in gain.values())
    yield Claim(
        "5.3-exponential",
        "5.3: the exponential solver brings comparable quality at smaller NFE: Heun's aMMD over its own at NFE 8, 12,"
        " 16, 64 (above 1 up to 16; largest at 8)",
        listed((each.paper for each in gain.values()), 2),
        listed((each.ours for each in gain.values()), 2),
        [less(1.0, gain[nfe].ours) for nfe in (8, 12, 16)]
        + [gain[8].ours == max(each.ours for each in gain.values()) if known else None],
    )
