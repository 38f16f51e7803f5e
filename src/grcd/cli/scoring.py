"""What `grcd score` prints and writes: a line a signal, or a row in time, and the least probable first."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas

from ..core.errors import counted
from ..core.files import whole
from ..data.formats.writing import refuse_not_finite, warn_of_formulas
from ..data.observed import read_observed
from ..data.origin import Origin

if TYPE_CHECKING:
    from ..data.observed_series import ObservedSeries
    from ..model import GRCD
    from ..series_model import SeriesModel

LISTED = 5


@dataclass(frozen=True)
class Scores:
    """Log-likelihoods of signals, and of single readings where they were asked for."""

    about: pandas.DataFrame  # time or number, log_likelihood, ...
    each: pandas.DataFrame | None  # (signals, readings of one), log-densities
    summary: str  # of all
    given: str  # what a reading is judged by

    @property
    def frame(self) -> pandas.DataFrame:
        """Everything side by side."""
        return self.about if self.each is None else pandas.concat([self.about, self.each], axis=1)

    def write(self, out: Path | None) -> None:
        if out is not None:
            with whole(out) as temporary:
                if out.suffix == ".parquet":
                    self.frame.to_parquet(temporary)
                else:
                    self.frame.to_csv(temporary, index=False)
            warn_of_formulas(out, self.frame.columns)

    def json(self) -> str:
        return self.frame.to_json(orient="columns", date_format="iso")

    def __str__(self) -> str:
        least = self.about.nsmallest(LISTED, "log_likelihood").to_string(index=False)
        lines, key = [self.summary, "the least probable:", least], str(self.about.columns[0])
        if self.each is not None:
            readings = self.each.set_axis(self.about[key]).stack().rename_axis([key, "node"]).nsmallest(LISTED)
            lines.append(f"the least probable readings, given {self.given}:")
            lines.append(readings.rename("log_likelihood").reset_index().to_string(index=False))
        return "\n".join(lines)


def moments(model: GRCD, file: str, posterior: str, nodes: bool, common: bool, seed: int, out: str) -> Scores:
    """Of signals by themselves."""
    origin = Origin.of_run(model.facts)
    table = read_observed(
        file, model.graph, origin.markers or (), common or origin.common, dropped=origin.dropped, label=origin.label
    )
    readings = (~np.isnan(table.x)).sum(axis=1)
    likelihood, error = model.log_prob(table.x, posterior, seed=seed)
    refuse_not_finite(np.stack([likelihood, error]), out or "the log-likelihoods")
    times = table.times
    columns: dict[str, Any] = {"signal": range(len(table.x))} if times is None else table.clock.column(times)
    columns |= {"log_likelihood": likelihood, "error": error}
    columns |= {} if (readings == len(model.graph)).all() else {"readings": readings}
    each = pandas.DataFrame(model.node_log_prob(table.x)[:, table.order], columns=table.node_ids) if nodes else None
    summary = f"{counted(len(table.x), 'signal')}, log-likelihood {likelihood.mean():.2f} on average"
    summary += f", each known to {error.mean():.2f} (95 %)"
    return Scores(pandas.DataFrame(columns), each, summary, "all others of their signals")


def rows(series: SeriesModel, table: ObservedSeries, covariates: dict[str, Any], nodes: bool) -> Scores:
    """Of rows in their context: each given those before and after it."""
    x, times = table.series.values, table.series.times
    readings = (~np.isnan(x)).sum(axis=(1, 2))
    likelihood = series.log_prob(table.series, **covariates)
    refuse_not_finite(likelihood[readings > 0], "the log-likelihoods")
    columns: dict[str, Any] = {"row": range(len(x))} if times is None else table.clock.column(times)
    columns |= {"log_likelihood": likelihood}
    columns |= {} if (readings == x[0].size - len(series.lacking)).all() else {"readings": readings}
    each = None
    if nodes:
        values = table.laid_out(series.node_log_prob(table.series, **covariates))
        names = [f"{node} {name}" for node in table.node_ids for name in table.variables] or table.node_ids
        each = pandas.DataFrame(values.reshape(len(values), -1), columns=names)
    mean = likelihood[readings > 0].mean() if readings.any() else 0.0
    summary = f"{counted(len(x), 'row')}, log-likelihood {mean:.2f} on average, each given the rows about it,"
    return Scores(pandas.DataFrame(columns), each, f"{summary} under the reference", "the other nodes in their windows")
