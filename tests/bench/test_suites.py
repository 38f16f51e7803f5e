"""Which cells a suite consists of, and that they are the ones that were published."""

from dataclasses import replace
from pathlib import Path

import pytest

from grcd.bench import suites, tables
from grcd.bench.cells import Control, Floor, Generated, done
from grcd.core.errors import InputError
from grcd.diffusion.solvers import SOLVERS
from grcd.training.methods import METHODS

ROOT = Path(__file__).parents[2]
# Suites with cells that are yet to be measured, or to be measured again: a name goes once they are there.
# Of the ablation three cells were never computed.
PENDING = {"solvers", "cost", "gad-native", "ablation", "distances", "impute", "imputation", "forecast"}
# Suites whose table is one of aMMD: of distances and of fillings there are others.
SCORED = [name for name in suites.SUITES if any(cell.measure == "ammd" for cell in suites.cells(name))]


# -- the border --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "parts"),
    [
        (lambda: suites.cells("qick"), ["suite 'qick'", ", ".join(suites.SUITES), "did you mean 'quick'?"]),
        (lambda: suites.cells("main", ["sbm-c2"]), ["setting 'sbm-c2'", ", ".join(suites.SETTINGS)]),
        (lambda: suites.cells("main", methods=["emd"]), ["method 'emd'", *METHODS, *suites.CONTROLS, "floor"]),
        (lambda: tables.render({}, "html"), ["format 'html'", "md, tex, csv"]),
    ],
)
def test_unknown_names_are_errors_that_list_the_known_ones(call, parts):
    with pytest.raises(InputError) as error:
        call()
    assert [part for part in parts if part not in str(error.value)] == []


def test_cells_are_chosen_by_setting_seed_and_method():
    cells = suites.cells("main", ["molene", "sbm-c1"], [3, 5], ["edm", "control-gmrf"])
    assert {(c.setting, c.method, c.seed, c.budget) for c in cells} == {
        *((s, "edm", seed, nfe) for s in ("molene", "sbm-c1") for seed in (3, 5) for nfe in (4, 6, 8, 12, 16, 32, 64)),
        *((s, "control-gmrf", seed, None) for s in ("molene", "sbm-c1") for seed in range(5)),
    }


def test_where_networks_take_seconds_the_papers_tables_have_five_seeds():
    def seeds(suite, setting):
        return {cell.seed for cell in networks(suites.cells(suite, [setting]))}

    for suite in ("main", "ladder", "solvers", "grid", "snr", "symmetrizer", "gad-native"):
        assert seeds(suite, "metr-la") == {0, 1, 2}
        assert all(seeds(suite, name) == {0, 1, 2, 3, 4} for name in ("molene", "sbm-c1", "sbm-c4", "sbm-c16"))
    assert seeds("distances", "molene") == seeds("impute", "molene") == {0, 1, 2}
    assert {cell.seed for cell in networks(suites.cells("main", ["molene"], [7]))} == {7}


def networks(cells):
    """Without controls and floor, of which every suite has the same."""
    return [cell for cell in cells if cell.needs_network]


@pytest.mark.parametrize("suite", SCORED)
def test_controls_and_floor_are_part_of_every_suite_with_scores(suite):
    chosen = suites.cells(suite, ["molene", "sbm-c1"])
    beside = [cell for cell in chosen if not cell.needs_network]
    names = ("diagonal", "full", "gmrf", "spectral", "mixture")
    drawn = [Control(s, f"control-{name}", seed) for s in ("molene", "sbm-c1") for name in names for seed in range(5)]
    assert {*beside} == {*drawn, Floor("molene"), Floor("sbm-c1")}
    assert len(beside) == 52


@pytest.mark.parametrize("suite", suites.SUITES)
def test_a_suite_is_made_of_the_cells_that_were_published(suite):
    lacking = [cell for cell in suites.cells(suite) if not done(cell, ROOT / "results")]
    assert (lacking == []) == (suite not in PENDING), len(lacking)


def test_every_published_cell_belongs_to_a_suite():
    """Else a suite has lost it, and nobody would compute it again."""
    known = {cell.path(ROOT / "results") for suite in suites.SUITES for cell in suites.cells(suite)}
    published = {*(ROOT / "results/cells").rglob("*.json")}
    assert len(published) > 2000
    assert published - known == set()


def test_an_ablation_takes_one_part_back_at_a_time():
    cells = networks(suites.cells("ablation", seeds=[0]))
    assert {cell.setting for cell in cells} == {"metr-la"}
    assert {cell.nfe for cell in cells} == {1, 2, 4, 8, 64}
    plain = Generated("metr-la", "grcd", 0, 4)
    varied = {replace(cell, nfe=4) for cell in cells}
    assert len(cells) == 5 * len(varied)
    assert plain in varied
    for cell in varied - {plain}:  # one thing about a cell is another one
        assert sum(getattr(cell, key) != getattr(plain, key) for key in vars(plain)) == 1
    assert {cell.method for cell in varied} == {"grcd", "grcd-full", "grcd-spectral", "grcd-gnn", "grcd-rho3"}
    for cell in varied:
        if cell.solver:
            assert not SOLVERS[cell.solver].gaussian  # it has to serve a mixture


def test_the_main_table_has_the_default_at_one_and_two_evaluations_too():
    budgets = {}
    for cell in networks(suites.cells("main", ["molene"], [0])):
        budgets.setdefault(cell.method, []).append(cell.nfe)
    assert budgets.pop("grcd") == [1, 2, 4, 6, 8, 12, 16, 32, 64]
    assert set(map(tuple, budgets.values())) == {(4, 6, 8, 12, 16, 32, 64)}
    assert set(suites.PARTS) & set(budgets) == set()


def test_what_is_timed_has_its_quality_beside_it():
    cells = networks(suites.cells("cost", seeds=[2, 1]))
    quality, timed = ([cell for cell in cells if cell.measure == kind] for kind in ("ammd", "time"))
    assert {*quality} == {*networks(suites.cells("main", ["metr-la"], [1, 2]))} | {
        *networks(suites.cells("ladder", seeds=[1, 2]))
    }
    native = Generated("metr-la", "gad-native", 1, 5000, measure="time")  # whose quality is a suite of its own
    assert {*timed} == {replace(cell, measure="time") for cell in quality if cell.seed == 1} | {native}  # one seed
    assert (len(timed) - 1) * 2 == len(quality) == len({*quality})


def test_gad_at_its_authors_size_is_a_suite_of_its_own():
    suite_of = {s: {cell.method for cell in suites.cells(s) if cell.measure != "time"} for s in suites.SUITES}
    assert [name for name, methods in suite_of.items() if "gad-native" in methods] == ["gad-native"]
    assert suite_of["main"] | suite_of["ladder"] | suite_of["gad-native"] | suite_of["ablation"] == {
        *METHODS,
        *suites.CONTROLS,
        "floor",
    } - {"grcd-sparse"}
