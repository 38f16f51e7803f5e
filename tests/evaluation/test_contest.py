"""Who wins: decisions on made-up guesses, where chance is known, and on data of which the best way to fill is known."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest

from grcd.core.errors import InputWarning
from grcd.evaluation import contest, hiding
from grcd.evaluation.contest import COLUMNS, MOMENTS, NETWORK, REFERENCE, Contest, merged, ways
from grcd.evaluation.guesses import Guesses, joined
from grcd.evaluation.winners import decided, foretold
from grcd.tasks.columns import Columns
from grcd.tasks.moments import Moments

PROCESS = {COLUMNS: Columns((0.5,), (1.0,))}


def guesses(groups=30, seed=0, **off):
    """Draws about the truth that are off by so much on the average, ours by five; ten readings a group."""
    random = np.random.RandomState(seed)
    n = 10 * groups
    off = {COLUMNS: 5.0, REFERENCE: 5.0, **off}
    truth, zeros = random.standard_normal(n), np.zeros(n, dtype=int)
    draws = {
        name: truth + size * random.standard_normal((20 if name in contest.OURS else 1, n)) + size
        for name, size in off.items()
    }
    return Guesses(truth, zeros, zeros, zeros, zeros, np.arange(n) // 10, draws)


def settled(own):
    return decided({"points": (own, own, PROCESS)})["points"]


def test_the_nearest_of_ours_is_used_and_the_network_only_if_it_gains_more_than_chance():
    simple = {"mean": 3.0, "line": 2.0}
    assert settled(guesses(**{COLUMNS: 1.0, REFERENCE: 2.0}, **simple)).won == COLUMNS
    assert settled(guesses(**{COLUMNS: 2.0, REFERENCE: 1.0}, **simple)).won == REFERENCE
    assert settled(guesses(**{COLUMNS: 2.0, REFERENCE: 1.0, NETWORK: 0.5}, **simple)).won == NETWORK
    assert settled(guesses(**{COLUMNS: 2.0, REFERENCE: 1.0, NETWORK: 1.0}, **simple)).won == REFERENCE
    # Of one group nothing can be said, and of two next to nothing.
    for groups in (1, 2):
        assert settled(guesses(groups, **{COLUMNS: 2.0, REFERENCE: 1.0, NETWORK: 0.9}, **simple)).won != NETWORK


@pytest.mark.parametrize("larger", [REFERENCE, NETWORK])
@pytest.mark.parametrize(("off", "groups", "taken"), [(1.02, 30, True), (1.02, 1, True), (1.6, 30, False)])
def test_what_gains_over_all_families_is_taken_in_each_unless_it_clearly_loses_there(larger, off, groups, taken):
    smaller = COLUMNS if larger == REFERENCE else REFERENCE
    beside = {"mean": 9.0} | ({COLUMNS: 9.0} if larger == NETWORK else {})
    clear = guesses(60, **{smaller: 2.0, larger: 0.5}, **beside)
    other = guesses(groups, 1, **{smaller: 1.0, larger: off}, **beside)
    found = decided({"points": (clear, clear, PROCESS), "spells": (other, other, PROCESS)})
    assert found["points"].won == larger
    assert (found["spells"].won == larger) is taken


@pytest.mark.parametrize(("off", "won"), [(0.5, MOMENTS), (0.98, REFERENCE), (1.5, REFERENCE)])
def test_rows_by_themselves_have_to_be_nearer_by_a_standard_error(off, won):
    own = guesses(**{COLUMNS: 2.0, REFERENCE: 1.0, MOMENTS: off, "mean": 3.0})
    process = PROCESS | {MOMENTS: Moments(0.1, 0.01, 1.2)}
    family = decided({"sensors": (own, own, process)})["sensors"]
    assert family.won == won
    contest = Contest.from_dict(json.loads(json.dumps(Contest({"sensors": family}, 300, 0, "").to_dict())))
    assert [*contest.ways(np.array([2]))] == [(won, process.get(won))]


def test_equals_are_rarely_told_apart():
    """Two networks' worth of the same noise: in one of forty trials is the second called better, about."""
    wins = [settled(guesses(8, k, **{REFERENCE: 1.0, NETWORK: 1.0, "mean": 2.0})).won == NETWORK for k in range(400)]
    assert 0 < sum(wins) < 0.06 * 400


def test_a_competitor_is_ahead_only_beyond_chance_and_then_it_is_said():
    lost = settled(guesses(**{REFERENCE: 2.0, "mean": 3.0, "line": 1.0}))
    won = settled(guesses(**{REFERENCE: 1.0, "mean": 3.0, "line": 2.0}))
    tie = settled(guesses(**{REFERENCE: 1.0, "mean": 3.0, "line": 1.0}))
    assert [each.ahead for each in (lost, won, replace(tie, noise=None), replace(lost, noise=None))] == [-1, 1, 0, 0]
    told = Contest({"points": lost, "spells": won}, 300, 0, " mph")
    assert list(told.lost()) == ["points"]
    share = f"{lost.ours / lost.theirs - 1:.0%} more"
    slight = replace(lost, ours=1.004 * lost.theirs, noise=0.0)
    assert "(0.4% more)" in Contest({"points": slight}, 300, 0, "").lost()["points"][0]
    assert share in told.lost()["points"][0]
    assert "a line in time" in told.lost()["points"][0]
    unsure = Contest({"points": replace(lost, noise=None)}, 300, 0, "").lost()["points"][0]
    assert unsure.endswith(f"({share}); which may be chance")
    assert not Contest({"points": replace(lost, noise=None, ours=1.01 * lost.theirs)}, 300, 0, "").lost()
    with pytest.warns(InputWarning, match="a line in time is nearer to scattered readings"):
        told.warn(np.array([0, -1]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        told.warn(np.array([1, 2]))  # gaps of other kinds


def test_it_comes_back_from_a_file_and_families_that_were_not_tried_have_their_neighbours():
    families = {
        name: settled(guesses(**{own: 1.0, "mean": 2.0})) for name, own in (("points", COLUMNS), ("spells", REFERENCE))
    }
    own = Contest(families, 300, 4, "")
    assert Contest.from_dict(own.to_dict()) == own
    kinds = np.array([[0, -1], [1, 2]])
    ways = own.ways(kinds)
    assert np.array_equal(ways[COLUMNS, PROCESS[COLUMNS]], kinds == 0)
    assert np.array_equal(ways[REFERENCE, None], kinds > 0)
    assert all(name in "\n".join(own.lines()) for name in ("points", "spells", "node by node", "column's mean"))


def test_what_was_chosen_on_the_rows_of_the_table_is_said_and_where_nothing_was_it_is_not():
    family = settled(guesses(**{REFERENCE: 1.0, "mean": 2.0}))
    plain = replace(family, columns={"rho": [0.0], "spread": [1.0]}, moments={})
    line = replace(plain, columns={"rho": [0.9], "spread": [1.0]})
    wide = replace(plain, columns={"rho": [0.0], "spread": [1.2]}, moments=Moments(0.1, 0.01).to_dict())
    said = {}
    for name, families in {"plain": [plain], "line": [plain, line], "both": [line, wide]}.items():
        contest = Contest(dict(zip(("points", "spells"), families, strict=False)), 300, 0, "")
        said[name] = [text.split(":")[0] for text in contest.lines() if "chosen on these same held-out rows" in text]
    assert said == {"plain": [], "line": ["node by node"], "both": ["node by node and row by row"]}


def test_each_gap_is_filled_in_the_way_of_its_kind():
    rows = [np.arange(3), np.arange(3, 5)]
    parts = {way: iter([(some, np.full((2, len(some), 2), value)) for some in rows]) for value, way in enumerate("abc")}
    where = np.array([[1, 0], [0, 2], [0, 0], [2, 2], [1, 0]])
    filled = np.concatenate([x for _, x in merged(parts, {way: where == k for k, way in enumerate("abc")})], axis=1)
    assert np.array_equal(filled, np.broadcast_to(where, (2, 5, 2)))


def test_groups_of_several_tables_are_apart():
    one, two = guesses(3, **{REFERENCE: 1.0, "mean": 1.0, NETWORK: 1.0}), guesses(2, 1, **{REFERENCE: 1.0, "mean": 1.0})
    both = joined([one, two])
    assert len(both) == 50
    assert len(np.unique(both.group)) == 5
    assert NETWORK not in both.draws
    assert both.loss("mean").sum() == pytest.approx(one.loss("mean").sum() + two.loss("mean").sum(), rel=1e-12)


def test_what_is_used_is_said_by_kind():
    one, other = (settled(guesses(**{own: 1.0, "mean": 2.0})) for own in (COLUMNS, REFERENCE))
    families = dict(zip(hiding.FAMILIES, (one, one, one), strict=True))
    assert Contest(families, 9, 0, "").used() == "node by node for points, spells and sensors"
    mixed = "node by node for spells, the reference for points and sensors"
    assert Contest(families | {"points": other, "sensors": other}, 9, 0, "").used() == mixed


@pytest.mark.parametrize(
    ("off", "taken"),
    [
        ({COLUMNS: 2.0, REFERENCE: 2.0, NETWORK: 1.0}, NETWORK),
        ({COLUMNS: 2.0, REFERENCE: 1.1, NETWORK: 1.0}, NETWORK),
        ({COLUMNS: 2.0, REFERENCE: 0.5, NETWORK: 1.0}, REFERENCE),
        ({COLUMNS: 0.5, REFERENCE: 1.0, NETWORK: 1.0}, COLUMNS),
        ({COLUMNS: 0.5, REFERENCE: 1.0}, COLUMNS),
        ({COLUMNS: 1.0, REFERENCE: 1.0}, REFERENCE),
    ],
)
def test_rows_to_come_are_foretold_by_the_model_unless_another_is_clearly_nearer(off, taken):
    own = guesses(**off, line=3.0)
    future = foretold((own, own, PROCESS))
    assert future.won == taken
    told = Contest({"points": future}, 300, 0, " mph", [], future, 6)
    again = Contest.from_dict(json.loads(json.dumps(told.to_dict())))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert again.outlook() == (taken, PROCESS[COLUMNS] if taken == COLUMNS else None)
    (line,) = [line for line in again.lines() if line.startswith("the next 6 rows foretold")]
    assert "the last value 3" in line  # and not a line
    assert line.count("*") == 1
    lost = replace(told, future=replace(future, ours=9.0, theirs=3.0))
    with pytest.warns(InputWarning, match="the last value is nearer to rows to come than ours"):
        lost.outlook()
    assert Contest({"points": future}, 300, 0, "").outlook() == (NETWORK, None)  # of an older run
    tried = Contest({"points": future}, 300, 0, "", future=future, horizon=6)
    assert tried.outlook(6) == tried.outlook()
    with pytest.warns(InputWarning, match="7 rows to come, and training compared the first 6 alone"):
        tried.outlook(7)


def test_a_competitor_that_is_ahead_in_one_variable_is_named_although_ours_is_over_all():
    one, two = guesses(**{REFERENCE: 1.0}, line=9.0), guesses(seed=1, **{REFERENCE: 1.0}, line=0.3)
    both = joined([one, replace(two, channel=np.ones_like(two.channel))])
    family = settled(both)
    assert family.ahead > 0
    assert list(family.behind) == ["1"]
    told = Contest.from_dict(json.loads(json.dumps(Contest({"points": family}, 9, 0, " sd", ["a", "b"]).to_dict())))
    ((words,),) = told.lost().values()
    assert words.startswith("a line in time is nearer to scattered readings of b than ours: the reference")
    assert not settled(guesses(**{REFERENCE: 1.0}, line=9.0)).behind


def test_a_variable_in_which_another_candidate_is_nearer_is_filled_by_that():
    of_a = guesses(**{COLUMNS: 9.0, REFERENCE: 1.0}, mean=12.0, line=12.0)
    of_b = guesses(seed=1, **{COLUMNS: 0.5, REFERENCE: 1.0}, mean=12.0, line=0.8)
    both = joined([of_a, replace(of_b, channel=np.ones_like(of_b.channel))])
    family = settled(both)
    assert (family.won, family.apart) == (REFERENCE, {"1": COLUMNS})
    off = np.concatenate([of_a.off(REFERENCE), of_b.off(COLUMNS)])
    assert family.ours == pytest.approx(off.mean(), rel=1e-12)
    assert not family.behind  # the line is ahead of the reference there, and not of what is used
    told = Contest.from_dict(json.loads(json.dumps(Contest({"points": family}, 9, 0, " sd", ["a", "b"]).to_dict())))
    assert told.used() == "the reference for points; of b: node by node for points"
    gaps = np.array([[[0, 0], [-1, 0]], [[2, -1], [0, 0]]])  # rows, nodes, channels
    by = told.ways(gaps)
    assert {way[0]: where.tolist() for way, where in by.items()} == {
        COLUMNS: [[[False, True], [False, True]], [[False, False], [False, True]]],
        REFERENCE: [[[True, False], [False, False]], [[True, False], [True, False]]],
    }
    assert settled(of_a).apart == {}  # of one variable
    named = ways(told, COLUMNS, gaps)  # whoever is asked for by name fills all
    assert [where.sum() for where in named.values()] == [6]
    future = foretold((both, both, PROCESS))
    assert future.apart == {}  # rows are foretold together


def test_a_larger_candidate_that_is_nearer_by_chance_alone_is_not_used_and_that_is_said():
    few = guesses(2, **{COLUMNS: 1.0, REFERENCE: 0.97}, mean=2.0)
    family = replace(settled(few), won=COLUMNS)
    assert family.smaller == (family.errors[REFERENCE]["mae"] < family.errors[COLUMNS]["mae"])
    family = replace(family, errors=family.errors | {REFERENCE: family.errors[COLUMNS] | {"mae": 0.0}})
    lines = [*Contest({"points": family}, 9, 0, "").lines()]
    assert sum("a larger candidate of ours with a lower error is not used" in line for line in lines) == 1
    larger = Contest({"points": replace(family, won=REFERENCE)}, 9, 0, "")
    assert not any("larger candidate" in line for line in larger.lines())
