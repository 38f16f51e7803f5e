"""Tables of single suites, by hand on invented cells: cost, distances, SNR, GAD's own budgets, grid, symmetrizer."""

import csv
import io

import numpy as np
import pytest
from commands import refused

from grcd.bench import cells as files
from grcd.bench import suites, tables
from grcd.bench.cells import Generated
from grcd.bench.measured import Cost, Entry
from grcd.bench.tables import cost, distances
from grcd.core.errors import InputError


@pytest.fixture
def measure(tmp_path):
    def measured(cell, ammd, **more):
        files.write(cell, tmp_path, scores={"ammd": ammd}, **more)

    return measured


def rows(text):
    """A Markdown table as lists."""
    return [[part.strip() for part in line.strip("| ").split("|")] for line in text.splitlines() if line[:1] == "|"]


def point(nfe, seconds, *values):
    return Cost(nfe, seconds, seconds / 2, Entry(dict(enumerate(values))))


def test_the_cheapest_that_reaches_a_target_need_not_be_the_smallest_budget():
    points = [point(4, 0.5, 0.3, 0.1), point(6, 0.9, 0.15, 0.05), point(8, 0.7, 0.1, 0.1), point(16, 1.5, 0.01)]
    assert cost.cheapest(points, 0.2).nfe == 4  # the mean, and equal is reached
    assert cost.cheapest(points, 0.19).nfe == 8
    assert cost.cheapest(points, 0.06).nfe == 16
    assert cost.cheapest(points, 0.001) is None


@pytest.fixture
def timed(measure, tmp_path):
    for method, nfe, ammd, seconds, network in (
        ("grcd-rho3", 4, 0.05, 0.5, 0.4),
        ("edm", 16, 0.15, 2.0, 1.9),
        ("edm", 32, 0.09, 4.0, 3.8),
        ("gad", 64, 2.9, 8.0, 7.0),
    ):
        for seed in (0, 1, 2):
            measure(Generated("metr-la", method, seed, nfe), ammd + 0.001 * (seed - 1))
        files.write(
            Generated("metr-la", method, 0, nfe, measure="time"),
            tmp_path,
            time={"sampling": seconds, "network": network},
        )
    return tmp_path


def test_cost_as_markdown(timed):
    assert rows(cost.table(["metr-la"], [0, 1, 2], timed, "md"))[2:] == [
        ["grcd-rho3", *["**0.5000** (NFE 4, network 80%)"] * 3],
        ["edm", "2.0000 (NFE 16, network 95%)", "4.0000 (NFE 32, network 95%)", "never"],
        ["gad", "never", "never", "never"],
    ]


def test_cost_as_csv_has_the_papers_seconds_where_it_reaches_the_target_at_the_same_budget(timed):
    found = list(csv.reader(io.StringIO(cost.table(["metr-la"], [0, 1, 2], timed, "csv"))))
    assert found[0] == ["setting", "method", "nfe", "mean", "sd", "seeds", "paper"]
    assert ["metr-la", "grcd-rho3 to 0.1", "4", "0.500000", "", "1", "0.52"] in found
    assert ["metr-la", "edm to 0.2", "16", "2.000000", "", "1", ""] in found  # the paper needs 32
    assert len(found) == 1 + 3 + 2


def test_cost_as_latex(timed):
    text = cost.table(["metr-la"], [0, 1, 2], timed, "tex")
    assert r"grcd-rho3 & $\mathbf{0.5000}$ (NFE 4) & $\mathbf{0.5000}$ (NFE 4) & $\mathbf{0.5000}$ (NFE 4) \\" in text
    assert r"edm & $2.0000$ (NFE 16) & $4.0000$ (NFE 32) & never \\" in text


def test_cost_on_the_command_line(timed, tmp_path, here):
    result = here("bench", "table", "cost", "--results", timed, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "| gad | never | never | never |" in result.stdout
    assert "grcd bench run cost" in refused(here("bench", "table", "cost", "--results", "none", cwd=tmp_path))
    with pytest.raises(InputError, match="one of md, tex, csv"):
        cost.table(["metr-la"], [0], timed, "html")


METRICS = [
    *("frozen_ammd", "energy", "sliced_wasserstein", "kolmogorov_smirnov", "correlation_error", "tail_coverage"),
    *("classifier_accuracy", "copies"),
]


def far(first, floor):
    """Metrics a tenth apart from each other, and their floors a hundredth."""
    numbers = {name: (first + k / 10, floor + k / 100) for k, name in enumerate(METRICS)}
    return {name: {"value": value, "floor": below, "spread": 0.001} for name, (value, below) in numbers.items()}


@pytest.fixture
def apart(tmp_path):
    """The default at two seeds; the paper's GRCD at one, at another budget, and failed."""
    for seed, p in ((0, 0.4), (1, 0.0125)):
        cell = Generated("metr-la", "grcd", seed, 4, measure="distances")
        files.write(cell, tmp_path, distances=far(0.01 + 0.02 * seed, 0.005), p=p, p_floor=p / 2)
    papers = Generated("metr-la", "grcd-rho3", 0, 64, measure="distances")
    files.write(papers, tmp_path, distances=far(2.0, 0.005), p=0.001, p_floor=0.002)
    files.write(
        Generated("metr-la", "grcd-rho3", 1, 64, measure="distances"), tmp_path, error="RuntimeError: no memory"
    )
    return tmp_path


def test_distances_as_markdown(apart):
    head, _, *lines = rows(distances.table(["metr-la"], [0, 1, 2], apart, "md"))
    assert head == [
        *("method", "aMMD, frozen", "energy", "sliced Wasserstein", "Kolmogorov-Smirnov", "correlation error"),
        *("tail coverage (0.02)", "classifier accuracy (0.5)", "memorisation (0.01)", "p", "p, floor"),
    ]
    # 0.01 and 0.03: mean 0.02, sd 0.02 / sqrt 2. Training signals are their own copies, and have no p.
    assert lines == [
        ["floor", "0.0050", "0.0150", "0.0250", "0.0350", "0.0450", "0.0550", "0.0650", "-", "-", "-"],
        ["grcd, NFE 4", *(f"{0.02 + k / 10:.4f} +- 0.0141" for k in range(8)), "0.013", "0.006"],
        ["grcd-rho3, NFE 64", *(f"{2 + k / 10:.4f}" for k in range(8)), "0.001", "0.002"],
    ]
    one = rows(distances.table(["metr-la"], [0], apart, "md"))[3]
    assert one == ["grcd, NFE 4", *(f"{0.01 + k / 10:.4f}" for k in range(8)), "0.400", "0.200"]


def test_distances_as_csv(apart):
    found = list(csv.reader(io.StringIO(distances.table(["metr-la"], [0, 1], apart, "csv"))))
    assert found[0] == ["setting", "method", "nfe", "metric", "mean", "sd", "seeds"]
    assert found[1] == ["metr-la", "floor", "", "frozen_ammd", "0.005000", "", "1"]
    assert found[8] == ["metr-la", "grcd", "4", "frozen_ammd", "0.020000", "0.014142", "2"]
    assert found[16] == ["metr-la", "grcd", "4", "p", "0.206250", "0.274004", "2"]
    assert found[19] == ["metr-la", "grcd-rho3", "64", "energy", "2.100000", "", "1"]
    assert len(found) == 1 + 7 + 10 + 10


def test_distances_as_latex(apart):
    first, begin, head, floor, ours, papers, end = distances.table(["metr-la"], [0, 1], apart, "tex").splitlines()
    assert (first, begin, end) == ("% metr-la", r"\begin{tabular}{lcccccccccc}", r"\end{tabular}")
    assert head.endswith(
        r"& tail coverage (0.02) & classifier accuracy (0.5) & memorisation (0.01) & p & p, floor \\ \hline"
    )
    assert floor.startswith("floor & 0.0050 & 0.0150 &")
    assert ours.startswith(r"grcd, NFE 4 & 0.0200 $\pm$ 0.0141 & 0.1200 $\pm$ 0.0141 &")
    assert papers.endswith(r" & 2.7000 & 0.001 & 0.002 \\")
    assert {line.count("&") for line in (head, floor, ours, papers)} == {10}


def test_distances_on_the_command_line(apart, tmp_path, here):
    result = here("bench", "table", "distances", "--settings", "metr-la", "--results", apart, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout == distances.table(["metr-la"], [0, 1, 2], apart, "md")
    missing = here("bench", "table", "distances", "--settings", "molene", "--results", apart, cwd=tmp_path)
    assert "grcd bench run distances --settings molene" in refused(missing)
    with pytest.raises(InputError, match="one of md, tex, csv"):
        distances.table(["metr-la"], [0], apart, "html")


@pytest.mark.parametrize(
    ("choices", "name"),
    [
        ({}, "grcd"),
        ({"solver": "heun"}, "grcd, heun"),
        ({"rho": 1.0}, "grcd, rho 1"),
        ({"grid": "entropy"}, "grcd, entropy"),
        ({"kappa": 4.0}, "grcd, kappa 4"),
        ({"symmetrize": "max"}, "grcd, max"),
        ({"support": "0,70"}, "grcd, within 0 to 70"),
        (
            {"symmetrize": "max", "kappa": 0.5, "grid": "log-snr", "rho": 2.5, "solver": "dpm++2m"},
            "grcd, dpm++2m, rho 2.5, log-snr, kappa 0.5, max",
        ),
    ],
)
def test_a_row_is_named_after_what_differs_from_the_method(choices, name):
    assert tables.row_name("ablation", Generated("metr-la", "grcd", 0, 4, **choices)) == name


def test_an_ablation_has_a_row_for_every_part(measure, tmp_path):
    cells = [cell for cell in suites.cells("ablation", seeds=[0]) if cell.needs_network]
    for k, cell in enumerate(cells):
        measure(cell, 0.01 + 0.001 * k)
    found = rows(tables.render(tables.collected("ablation", suites.cells("ablation", seeds=[0]), tmp_path), "md"))
    assert found[0] == ["method", *(f"NFE {nfe}" for nfe in (1, 2, 4, 8, 64))]
    shown = {row[0]: [float(entry.split()[0].strip("*~")) for entry in row[1:]] for row in found[2:] if len(row) == 6}
    expected = {
        tables.row_name("ablation", cells[k]): 0.01 + 0.001 * np.arange(k, k + 5) for k in range(0, len(cells), 5)
    }
    assert list(shown) == list(expected)
    for name, numbers in expected.items():
        assert shown[name] == pytest.approx(numbers)


def test_the_gain_of_a_fitted_reference_is_paired_by_seed(measure, tmp_path):
    for seed, (scalar, fitted) in enumerate([(0.4, 0.1), (0.2, 0.1)]):
        measure(Generated("molene", "clock", seed, 16), scalar)
        measure(Generated("molene", "clock+reference", seed, 16), fitted)
        measure(Generated("molene", "clock", seed, 16, kappa=32.64), 0.3)
        measure(Generated("molene", "clock+reference", seed, 16, kappa=32.64), 0.2)
    found = tables.collected("snr", suites.cells("snr", ["molene"], [0, 1]), tmp_path)
    assert found["molene", "scalar over fitted, kappa 2", 16].values == pytest.approx({0: 4.0, 1: 2.0})
    assert found["molene", "scalar over fitted, near zero SNR", 16].values == pytest.approx({0: 1.5, 1: 1.5})
    assert "| scalar over fitted, kappa 2 | 3.0000 +- 1.4142 |" in tables.render(found, "md")


def test_gads_native_budgets_say_what_is_out_of_range_and_how_long_it_takes(measure, tmp_path):
    for seed, ammd in enumerate((1.5, 1.7)):
        measure(
            Generated("metr-la", "gad", seed, 1000), ammd, outside=0.1 + 0.05 * seed, seconds_per_1000=26.1 + 20 * seed
        )
    found = tables.collected("gad-native", suites.cells("gad-native"), tmp_path)
    text = "1.6000** +- 0.1414 (1.5300, 1.05x); 12.5% out of range, 26.10 s per 1,000"
    assert text in tables.render(found, "md")
    measure(Generated("metr-la", "gad", 0, 3000), 1.8, seconds_per_1000=80.0)  # a dataset without a possible range
    found = tables.collected("gad-native", suites.cells("gad-native"), tmp_path)
    assert "0.99x); 80.00 s per 1,000" in tables.render(found, "md")


def test_the_grid_tells_validation_from_test_and_a_table_has_no_times(measure, tmp_path):
    measure(Generated("metr-la", "grcd-rho3", 0, 4, rho=3.0), 0.05)
    measure(Generated("metr-la", "grcd-rho3", 0, 4, rho=3.0, split="val"), 0.15)
    found = tables.collected("grid", suites.cells("grid"), tmp_path)
    assert found["metr-la", "rho3", 4].values == {0: 0.05}
    assert found["metr-la", "rho3, validation", 4].values == {0: 0.15}
    assert found["metr-la", "rho3", 4].paper == (0.0538, 0.0037)
    assert found["metr-la", "rho3, validation", 4].paper is None
    measure(Generated("metr-la", "grcd-rho3", 0, 4, rho=5.0, split="val"), 0.01)
    text = tables.render(tables.collected("grid", suites.cells("grid"), tmp_path), "md")
    assert "**0.0500**" in text  # validation scores do not compete with test scores
    assert "**0.0100**" not in text


def test_the_symmetrizer_is_part_of_the_rows_name(measure, tmp_path):
    measure(Generated("metr-la", "grcd-rho1", 0, 16, symmetrize="max"), 0.06)
    found = tables.collected("symmetrizer", suites.cells("symmetrizer"), tmp_path)
    assert found["metr-la", "grcd-rho1, max", 16].paper == (0.0536, None)
    assert found["metr-la", "conjugate-precond, max", 16].paper == (0.1295, None)
    assert found["metr-la", "grcd-rho1", 16].paper == (0.0499, 0.0032)
