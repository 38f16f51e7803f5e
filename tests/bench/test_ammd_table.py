"""Tables of aMMD in three formats, by hand on invented cells, and the paper's numbers in them."""

import csv
import io
import re
from dataclasses import replace
from importlib import resources
from itertools import accumulate

import pytest

from grcd.bench import cells as files
from grcd.bench import suites, tables
from grcd.bench.cells import Control, Floor, Generated
from grcd.bench.measured import Entry
from grcd.bench.tables.ammd import tied
from grcd.core.errors import InputError

# Suites whose table is one of aMMD: of distances and of fillings there are others.
SCORED = [name for name in suites.SUITES if any(cell.measure == "ammd" for cell in suites.cells(name))]


def networks(cells):
    """Without controls and floor, of which every suite has the same."""
    return [cell for cell in cells if cell.needs_network]


# -- tables ------------------------------------------------------------------------------------------------------------

# Logarithms of ratios to the best: TIED 0, 0, 0, ln 2, ln 2, mean 0.277, half-width 2.7764 x 0.380 / sqrt 5 = 0.471;
# APART 0, ln 2 four times, mean 0.555, half-width 2.7764 x 0.310 / sqrt 5 = 0.385. FEW is as TIED, of four seeds.
BEST, TIED, APART = [0.01, 0.02, 0.03, 0.04, 0.05], [0.01, 0.02, 0.03, 0.08, 0.10], [0.01, 0.04, 0.06, 0.08, 0.10]
FEW = [0.01, 0.02, 0.06, 0.08]
MEASURED = {
    Generated("metr-la", "grcd-rho3", 0, 4): BEST,
    Generated("metr-la", "grcd-rho1", 0, 4): TIED,
    Generated("metr-la", "grcd", 0, 4): APART,
    Generated("metr-la", "wsd-graph", 0, 4): FEW,
    Generated("metr-la", "edm", 0, 6): [0.5],
    Generated("metr-la", "grcd", 0, 8): [-0.0003],  # below the floor, or as near as chance brings: neither is better
    Generated("metr-la", "grcd-rho3", 0, 8): [0.0008],
    Generated("metr-la", "edm", 0, 8): [0.4],
    Control("metr-la", "control-full"): [0.1921, 0.1925, 0.1929],
    Floor("metr-la"): [-0.0001],
}


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Cells written by hand, and one that failed."""
    results, cells = tmp_path_factory.mktemp("measured"), []
    for cell, values in MEASURED.items():
        for seed, value in enumerate(values):
            cells.append(replace(cell, seed=seed))
            files.write(cells[-1], results, scores={"ammd": value})
    cells.append(Generated("metr-la", "edm", 1, 6))
    files.write(cells[-1], results, error="RuntimeError: no memory")
    cells.append(Generated("metr-la", "gad", 0, 4))  # never computed
    return tables.collected("main", cells, results)


def test_markdown(measured):
    lines = tables.render(measured, "md").splitlines()
    assert lines[2:4] == ["### metr-la", ""]
    assert lines[4:] == [
        "| method | NFE 4 | NFE 6 | NFE 8 |",
        "| --- | --- | --- | --- |",
        "| grcd-rho3 | **0.0300** +- 0.0158 (0.0538, 0.56x) | - | 0.0008= (0.0503, 0.02x) |",
        "| grcd-rho1 | 0.0480~ +- 0.0396 (0.5298, 0.09x) | - | - |",
        "| grcd | 0.0580 +- 0.0349 | - | -0.0003= |",
        "| wsd-graph | 0.0425 +- 0.0330 (1.2431, 0.03x) | - | - |",
        "| edm | - | **0.5000**, 1 failed | 0.4000 (1.3996, 0.29x) |",
        "| gad | - | - | - |",
        "",
        "| without a network | aMMD |",
        "| --- | --- |",
        "| control-full | 0.1925 +- 0.0004 (0.1921, 1.00x) |",
        "| floor | -0.0001 |",
    ]


def test_controls_that_are_shown_elsewhere_leave_all_else_as_it_is(measured):
    whole = tables.render(measured, "md")
    assert tables.render(measured, "md", alone=False).strip() == whole.partition("\n| without a network |")[0].strip()


def test_csv(measured):
    text = tables.render(measured, "csv")
    assert text.splitlines()[0] == "setting,method,nfe,mean,sd,seeds,paper"
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [tuple(row.values()) for row in rows] == [
        ("metr-la", "grcd-rho3", "4", "0.030000", "0.015811", "5", "0.0538"),
        ("metr-la", "grcd-rho1", "4", "0.048000", "0.039623", "5", "0.5298"),
        ("metr-la", "grcd", "4", "0.058000", "0.034928", "5", ""),
        ("metr-la", "wsd-graph", "4", "0.042500", "0.033040", "4", "1.2431"),
        ("metr-la", "edm", "6", "0.500000", "", "1", ""),
        ("metr-la", "grcd", "8", "-0.000300", "", "1", ""),
        ("metr-la", "grcd-rho3", "8", "0.000800", "", "1", "0.0503"),
        ("metr-la", "edm", "8", "0.400000", "", "1", "1.3996"),
        ("metr-la", "control-full", "", "0.192500", "0.000400", "3", "0.1921"),
        ("metr-la", "floor", "", "-0.000100", "", "1", ""),
    ]


def test_latex(measured):
    text = tables.render(measured, "tex")
    assert text.splitlines() == [
        "% metr-la",
        r"\begin{tabular}{lccc}",
        r"method & NFE 4 & NFE 6 & NFE 8 \\ \hline",
        r"grcd-rho3 & $\mathbf{0.0300} \pm 0.0158\;(0.0538)$ & -- & $0.0008^{=}\;(0.0503)$ \\",
        r"grcd-rho1 & $0.0480^{\sim} \pm 0.0396\;(0.5298)$ & -- & -- \\",
        r"grcd & $0.0580 \pm 0.0349$ & -- & $-0.0003^{=}$ \\",
        r"wsd-graph & $0.0425 \pm 0.0330\;(1.2431)$ & -- & -- \\",
        r"edm & -- & $\mathbf{0.5000}$ & $0.4000\;(1.3996)$ \\",
        r"gad & -- & -- & -- \\",
        r"\hline",
        r"control-full & $0.1925 \pm 0.0004\;(0.1921)$ \\",
        r"floor & $-0.0001$ \\",
        r"\end{tabular}",
    ]


@pytest.mark.parametrize("suite", SCORED)
def test_latex_is_well_formed_for_every_suite(tmp_path, suite):
    cells = suites.cells(suite)
    for k, cell in enumerate(cells):
        files.write(cell, tmp_path, scores={"ammd": 0.001 * (k % 97) + 0.01}, seconds_per_1000=0.5)
    text = tables.render(tables.collected(suite, cells, tmp_path), "tex")
    depth = list(accumulate((c == "{") - (c == "}") for c in text))
    assert (min(depth), depth[-1]) == (0, 0)
    for table in text.strip().split("\n\n"):
        first, columns, *lines, last = table.splitlines()
        assert first.startswith("% ")
        assert last == r"\end{tabular}"
        wide = columns.removeprefix(r"\begin{tabular}{").rstrip("}")
        for line in lines:
            assert line.count("&") < len(wide)
            assert line.count("$") % 2 == 0
            assert re.search(r"(?<!\\)[_#%]", line) is None  # special where text is expected
    names = {"floor", *suites.CONTROLS}
    for kind in ("md", "tex", "csv"):
        shown = tables.render(tables.collected(suite, cells, tmp_path), kind)
        assert [name for name in names if name not in shown] == []


def test_names_with_special_characters_are_escaped(tmp_path):
    cell = Generated("my_data", "50%_ve", 0, 4)
    files.write(cell, tmp_path, scores={"ammd": 0.5})
    text = tables.render(tables.collected("main", [cell], tmp_path), "tex")
    assert r"50\%\_ve & $\mathbf{0.5000}$ \\" in text


def test_a_tie_takes_five_seeds_that_both_have():
    four, ours = {1: 0.5, 2: 0.7, 3: 0.5, 4: 0.7}, {1: 0.6, 2: 0.6, 3: 0.6, 4: 0.6}
    assert not tied(Entry(four | {7: 0.1}), Entry(ours | {8: 9.0}))
    assert tied(Entry(four | {7: 0.1, 9: 0.6}), Entry(ours | {8: 9.0, 9: 0.6}))
    assert tied(Entry(dict.fromkeys(range(5), 4e-4)), Entry(dict.fromkeys(range(5), -2e-4)))  # noise about zero


def test_nothing_measured_is_an_error(tmp_path):
    with pytest.raises(InputError, match="grcd bench run quick"):
        tables.collected("quick", suites.cells("quick"), tmp_path)
    files.write(suites.cells("quick")[0], tmp_path, error="RuntimeError: no memory")
    with pytest.raises(InputError, match="no cells of quick"):
        tables.collected("quick", suites.cells("quick"), tmp_path)


# -- the paper's numbers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("suite", "setting", "row", "nfe", "printed"),
    [
        ("main", "metr-la", "grcd-rho3", 4, (0.0538, 0.0037)),
        ("main", "sbm-c16", "edm", 64, (0.0204, 0.0049)),
        ("quick", "sbm-c16", "edm", 64, (0.0204, 0.0049)),
        ("controls", "metr-la", "control-full", None, (0.1921, 0.0014)),
        ("main", "metr-la", "control-full", None, (0.1921, 0.0014)),
        ("grid", "metr-la", "rho1", 4, (0.5298, 0.1303)),
        ("solvers", "metr-la", "dpm++2m-rho3", 4, (0.0523, 0.0010)),
        ("controls", "metr-la", "control-spectral", None, (0.4134, None)),
        ("main", "metr-la", "grcd-rho3", 6, None),
        ("main", "metr-la", "grcd", 4, None),
        ("main", "metr-la", "floor", None, None),
    ],
)
def test_the_papers_value(suite, setting, row, nfe, printed):
    assert tables.paper(suite, setting, row, nfe) == printed


def test_every_number_of_the_paper_has_its_place_in_a_table():
    text = (resources.files("grcd.bench") / "paper.csv").read_text()
    printed = [
        (row["suite"], row["setting"], row["method"], int(row["nfe"]) if row["nfe"] else None)
        for row in csv.DictReader(io.StringIO(text))
    ]
    assert len(set(printed)) == len(printed)
    produced = {
        (suite, cell.setting, tables.row_name(suite, cell), cell.budget)
        for suite in suites.SUITES
        for cell in suites.cells(suite)
    }
    produced |= {  # what is timed has a row for each target
        ("cost", cell.setting, f"{cell.method} to {target:g}", cell.nfe)
        for cell in suites.generated("cost")
        for target in tables.cost.TARGETS
        if cell.measure == "time"
    }
    assert set(printed) - produced == set()
    for suite in SCORED:  # one row name a choice: two choices under one name would be averaged
        cells = [cell for cell in networks(suites.cells(suite, seeds=[0])) if cell.measure == "ammd"]
        assert len({(cell.setting, tables.row_name(suite, cell), cell.nfe) for cell in cells}) == len(cells)
