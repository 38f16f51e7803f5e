"""A plan: how to spend a few network evaluations well, chosen on validation signals once training is over.

What a sampler can be asked to do differently, with the same network and the same number of evaluations:

    start    the noise level it begins at, as a share of the largest one trained on. ``kappa`` by another name: a good
             reference can be drawn from at a lower level, and leaves less to integrate
    grid     where the levels lie
    solver   how the evaluations are joined up

For a budget of 1, 2 and 4 evaluations one of them after the other is varied, the others held, and what brings the
generated signals nearest to validation signals in energy distance (see ``evaluation.metrics``) is kept, if the gain is
``NOTICEABLE``. All candidates get the same noise. A larger budget takes the choice of four: the more evaluations, the
less any of this matters. With fewer than ``LEAST`` validation signals nothing can be told apart, and the first of each
is taken.

All candidates are exact where the residual is zero: whatever validation signals prefer, a network that has learned
nothing gives draws of its reference. A solver without that property, such as DPM-Solver++, could please validation
signals from another season by its error alone (on Molene, at two evaluations, it does).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

BUDGETS = (1, 2, 4)
SIGNALS = 1000  # generated for each candidate, and at most so many validation signals
LEAST = 30
LARGEST = 1e6  # exponent that a grid can have
NOTICEABLE = 0.01  # of the distance of the first candidate: less than that is chance, or rounding


@dataclass(frozen=True)
class Choice:
    """How to sample."""

    start: float = 1.0
    grid: str = "power"
    rho: float = 3.0
    solver: str = "residual-2m"


CANDIDATES: tuple[tuple[dict, ...], ...] = (
    ({"start": 1.0}, {"start": 0.5}, {"start": 0.25}),
    ({"grid": "power", "rho": 3.0}, {"grid": "power", "rho": 1.0}, {"grid": "entropy", "rho": 3.0}),
    ({"solver": "residual-2m"}, {"solver": "residual-3m"}),
)
Plan = dict[int, Choice]  # by budget


def choose(distance: Callable[[Choice, int], float]) -> Plan:
    """The plan with the smallest distances; ``distance`` is that of a choice at a budget."""
    return {nfe: _best(distance, nfe) for nfe in BUDGETS}


def _best(distance: Callable[[Choice, int], float], nfe: int) -> Choice:
    best = Choice()
    least = distance(best, nfe)
    gain = NOTICEABLE * abs(least)
    for options in _varied(nfe):
        for option in (replace(best, **option) for option in options[1:]):
            other = distance(option, nfe)
            if other < least - gain:
                best, least = option, other
    return best


def _varied(nfe: int) -> tuple[tuple[dict, ...], ...]:
    """What there is to vary: one step has no grid, and with two every solver joins up the same two evaluations."""
    return CANDIDATES[:nfe]


def count() -> int:
    """How many candidates there are."""
    return sum(1 + sum(len(options) - 1 for options in _varied(nfe)) for nfe in BUDGETS)


def at(plan: Plan, nfe: int) -> Choice | None:
    """What a plan says of a budget; None if there is none."""
    affordable = [budget for budget in plan if budget <= nfe]
    return plan[max(affordable)] if affordable else None


def to_dict(plan: Plan) -> dict[str, dict]:
    return {str(nfe): asdict(choice) for nfe, choice in plan.items()}


def of(saved: dict[str, dict]) -> Plan:
    """From what was saved."""
    if not isinstance(saved, dict):
        raise ValueError(f"a plan {saved!r}")
    return {int(nfe): _choice(**choice) for nfe, choice in saved.items()}


def _choice(start: float, grid: str, rho: float, solver: str) -> Choice:
    numbers = all(isinstance(number, int | float) and 0 < number <= LARGEST for number in (start, rho))
    if not numbers or not isinstance(grid, str) or not isinstance(solver, str):
        raise ValueError(f"a choice of start {start!r:.40}, grid {grid!r:.40}, rho {rho!r:.40}, solver {solver!r:.40}")
    return Choice(start, grid, rho, solver)
