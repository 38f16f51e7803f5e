"""What the paper derives (section 3, appendix A.1 to A.5): no numbers to compare, tests that fail if it is wrong."""

from __future__ import annotations

from pathlib import Path

from grcd.bench.bands import OPEN
from grcd.core.tables import markdown

TESTS = Path(__file__).parent.parent.parent / "tests"
DERIVED = {
    "Proposition 1: with A_t the process is isotropic in conjugate coordinates": (
        "diffusion/test_process.py",
        "test_conjugate_coordinates_have_the_same_noise_in_every_direction",
    ),
    "Corollary 1: the clock of each mode": (
        "diffusion/test_process.py",
        "test_the_conjugate_process_runs_every_mode_on_the_clock_it_needs",
    ),
    "A.1: C_i is the integral of c_i": (
        "diffusion/test_process.py",
        "test_the_clock_rate_is_the_derivative_of_the_integrated_clock",
    ),
    "A.1: conditional SNR is the same for every mode": (
        "diffusion/test_process.py",
        "test_conditional_snr_is_the_same_for_every_mode",
    ),
    "A.1: no shared clock serves two modes": (
        "diffusion/test_process.py",
        "test_no_shared_clock_serves_two_modes",
    ),
    "A.2: gamma_i is the variance of the propagated reference": (
        "diffusion/test_process.py",
        "test_variances_obey_the_linear_variance_equation",
    ),
    "3.2: near zero SNR every reference becomes N(0, sigma^2 L_delta^-1)": (
        "references/test_gaussian.py",
        "test_as_noise_grows_every_reference_becomes_the_gmrf_in_graph_coordinates",
    ),
    "A.3: the target of the residual": (
        "diffusion/test_parameterisation.py",
        "test_the_residual_target_is_the_papers_mode_by_mode",
    ),
    "A.3: its minimiser is the score of the marginal": (
        "diffusion/test_parameterisation.py",
        "test_the_best_network_gives_the_score_of_the_marginal_in_graph_coordinates",
    ),
    "A.3: without a reference the target is the noise": (
        "diffusion/test_parameterisation.py",
        "test_the_epsilon_target_is_the_noise_itself",
    ),
    "A.3: nothing is left to learn where the data are the reference": (
        "diffusion/test_parameterisation.py",
        "test_nothing_is_left_to_learn_where_the_reference_is_the_data",
    ),
    "A.4: the propagator in closed form": (
        "references/test_gaussian.py",
        "test_in_graph_coordinates_propagation_is_the_papers_propagator",
    ),
    "A.4: it composes": (
        "references/test_gaussian.py",
        "test_propagation_composes_over_all_levels_and_carries_a_draw_to_the_draw_from_the_same_noise",
    ),
    "A.4: without a residual the sampler is exact": (
        "diffusion/test_solvers.py",
        "test_exponential_solvers_are_exact_where_the_reference_is_the_whole_score",
    ),
    "A.5: predictor, corrector and their weights": (
        "diffusion/test_solvers.py",
        "test_predictor_corrector_solvers_equal_their_equations_and_odd_budgets_end_on_a_predictor",
    ),
    "5.4: DPM-Solver++ applies, since the SNR is the same for every mode": (
        "diffusion/test_solvers.py",
        "test_dpm_multistep_equals_the_printed_updates_on_any_grid",
    ),
    "A.6.2: with one seed all configurations get the same batches, noise and times": (
        "training/test_loop.py",
        "test_draws_depend_on_the_seed_and_the_update_and_on_nothing_else",
    ),
    "A.6.5: the grid": ("diffusion/test_grids.py", "test_power_is_the_papers_law_step_by_step"),
}


def lines() -> list[str]:
    """A section of the page; a test that is not there any more is said to be missing."""
    rows = [["what is derived", "test"]]
    for says, (file, test) in DERIVED.items():
        there = (TESTS / file).exists() and f"def {test}(" in (TESTS / file).read_text()
        rows.append([says, f"`tests/{file}`, `{test}`" if there else f"**{OPEN}**"])
    text = "Nothing to measure: these hold by tests, against formulas written out a second time."
    return ["### Derivations (section 3, appendix A.1 to A.6)", "", text, "", markdown(rows), ""]
