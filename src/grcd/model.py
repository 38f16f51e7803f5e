"""What users touch: a model that is fitted to signals on a graph and generates new ones, in the signals' own units.

It checks what comes in, holds one trained ``Diffusion``, converts between units and z-scores, and calls tasks. With a
window, or several channels, signals are rows in time, and it hands over to a ``SeriesModel``.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from torch import nn

from . import contests, long_frames, readings
from .core import device as devices
from .core import progress
from .core.errors import InputError, counted, whole_number
from .data.covariates import Covariates
from .data.dataset import Dataset
from .data.graph_source import graph_of
from .data.layout import Layout
from .data.marginals import Marginals
from .data.normalizer import check_signals
from .data.origin import Origin
from .data.series import Series
from .data.series_dataset import SeriesDataset, refuse_unseen
from .diffusion import solvers
from .diffusion.diffusion import Diffusion
from .diffusion.plan import Choice, Plan
from .diffusion.process import Process
from .evaluation.contest import Contest
from .graphs.space import SignalSpace
from .readings import Answer, Readings
from .references import Reference
from .runs import contents
from .runs import series as in_time
from .runs import train as runs
from .runs.contents import Trained
from .runs.folder import Run, read
from .runs.series import TrainedSeries, Variables
from .series_model import SeriesModel
from .signal_model import SignalModel
from .tasks.fill import refuse_unknown
from .tasks.sample import Memory
from .training import fit, marginals, methods, window_config
from .training.config import Config
from .training.window_config import configured

COPIES = 3  # of generated signals that are in memory at once

EVALUATIONS = 8  # of the network, for a filled signal


class GRCD:
    """Graph Residual Conjugate Diffusion: graph + method + settings, then ``fit``, then ``sample``.

    ``graph``       a ``Graph``, or what one is made of: weights (nodes, nodes), dense, sparse or as a frame; a networkx
                    graph; a frame of edges (source, target[, weight or distance]) or of positions (node, latitude and
                    longitude, or x and y)
    ``method``      a name from the table in ``training/methods.py``
    ``seed``        decides all that is random in training; that of a method below, all that is random there
    ``device``      "auto", "cpu" or "cuda"
    ``window``      steps in time that are one signal; 1: every row is a signal by itself
    ``channels``    variables at each node, if data in time have several; they tell by themselves
    ``settings``    fields of ``grcd.Config`` (``width=64``, ``lr=1e-3``, ``max_updates=5000``, ...); ``minutes=10``
                    chooses those that time depends on so that training ends in time on this machine

    Arguments that several methods have:
    ``n``           how many signals, or draws of each signal
    ``nfe``         network evaluations for each of them
    ``posterior``   "diffusion", the model's own, or "reference": that of its reference, exact and without network; of
                    ``impute`` and ``forecast`` also "auto": what was nearest to hidden readings at the end of training
                    (``contest``); of gaps "columns", every node by itself, or "moments", every row by itself
    ``solver``      a name from the table in ``diffusion/solvers.py``, where the usual one is not wanted
    ``batch``       how many signals are worked on at a time
    ``verbose``     says how far it is, how fast, and how long it will take, where there is no terminal too

    Signals may be arrays, data frames or labelled arrays (xarray): what comes out is what went in, with its own index,
    columns, dimensions and order, and what is sampled is as the training signals were.
    """

    def __init__(
        self,
        graph: Any,
        method: str = "grcd",
        seed: int = 0,
        device: str = "auto",
        window: int = 1,
        channels: int = 1,
        **settings: Any,
    ):
        self.graph = graph_of(graph)
        self.method = methods.find(method)
        methods.on(method, self.graph)  # refuses one that a large graph cannot have
        self.device = devices.find(device)
        self._settings = (method, seed, window), settings
        self._trained: Trained | TrainedSeries | None = None
        self._memory = Memory()
        self._shape(whole_number("channels", channels))

    def _shape(self, channels: int) -> None:
        """The space of signals, and what decides how they are trained on, once the number of channels is known."""
        common, settings = self._settings
        self.config = configured(*common, channels, self.device, settings)
        self.space = SignalSpace(self.graph, self.config.window, channels)

    def __repr__(self) -> str:
        state = "not fitted yet"
        if self._trained is not None:
            data, result = self.facts["data"], self.result
            what = f"rows in windows of {self.window}" if self.in_time else "signals"
            state = f"trained on {data['train']:,} {what} ({data['name']}), {counted(result['updates'], 'update')}"
        return f"GRCD(method={self.config.method!r}, nodes={len(self.graph)}, device={str(self.device)!r})\n  {state}"

    # -- what was trained ------------------------------------------------------------------------------------------

    @property
    def window(self) -> int:
        """Steps of a signal."""
        return self.space.steps

    @property
    def in_time(self) -> bool:
        """Whether signals are rows in time: of several steps, or of several channels."""
        return self.space.d > len(self.graph)

    def _fitted(self) -> Trained | TrainedSeries:
        if self._trained is None:
            raise InputError("a model that has not been fitted", "a fitted one", "call fit, or load a run")
        return self._trained

    @property
    def trained(self) -> Trained:
        """All that training has brought; an error before that, and of a model of series, whose is ``series``."""
        trained = self._fitted()
        if isinstance(trained, TrainedSeries):
            raise InputError("a model of rows in time", "one of signals by themselves", "train with a window of 1")
        return trained

    @property
    def signals(self) -> SignalModel:
        """What it says of signals by themselves, as arrays in the graph's order of nodes."""
        return SignalModel(self.trained, self._config.limits(), self._memory)

    def fillings(self, x: np.ndarray, *options: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """``impute`` for some of the checked signals ``x`` at a time: their rows, and their draws (n, rows, nodes)."""
        return self.signals.fillings(x, *options)

    @property
    def series(self) -> SeriesModel:
        """What it says of rows in time, if that is what it was trained on."""
        trained = self._fitted()
        if isinstance(trained, Trained):
            raise InputError(
                "a model of signals by themselves", "one of rows in time", "train with a window of 2 or more"
            )
        return SeriesModel(trained)

    @property
    def diffusion(self) -> Diffusion:
        """The parts of the method, trained and bound together: what tasks take."""
        return self.trained.diffusion

    @property
    def process(self) -> Process:
        """The forward process: how noise comes in."""
        return self.diffusion.process

    @property
    def reference(self) -> Reference:
        """The fitted law of signals that needs no network, of z-scores."""
        return self.diffusion.reference

    @property
    def network(self) -> nn.Module:
        """The trained network."""
        return self.diffusion.network

    @property
    def plan(self) -> Plan:
        """How to sample, by budget, where validation signals chose."""
        return self.diffusion.plan

    @property
    def normalizer(self) -> Marginals:
        """The map between the signals' units and z-scores."""
        return self.trained.normalizer

    @property
    def result(self) -> dict:
        """How training went."""
        return self._fitted().result

    @property
    def contest(self) -> Contest | None:
        """How our candidates and simple competitors filled hidden readings at the end of training, to print or to look
        into; None of a run that is older than that."""
        numbers = self.result.get("contest")
        return None if numbers is None else Contest.from_dict(numbers)

    @property
    def facts(self) -> dict:
        """What a run folder says of it."""
        return self._fitted().facts

    @property
    def unit(self) -> str:
        """The unit of the signals, if it is known."""
        return "" if self._trained is None else Origin.of_run(self.facts).unit or ""

    # -- training --------------------------------------------------------------------------------------------------

    def fit(
        self,
        train: Any,  # (samples, nodes) in their own units
        val: Any = None,
        run: str | Path | None = None,
        force: bool = False,
        name: str = "signals",
        about: dict | None = None,
        times: ArrayLike | None = None,
        covariates: Any = None,
        verbose: bool = False,
    ) -> GRCD:
        """Fit the reference and train the network; returns the model itself.

        ``train``   training signals (samples, nodes), NaN where a reading is missing; or rows in time
                    (time, nodes[, channels]); an array, a data frame or a labelled array
        ``val``     validation signals; without them the last tenth of ``train`` validates
        ``times``   of the rows of an array in time (with ``val``: of both, one after the other)
        ``covariates``   numbers known of every row in time, of those to come too: a data frame, or (rows, covariates)
        ``run``, ``force``, ``name`` and ``about`` are deprecated: ``grcd.train`` trains in a run folder.
        """
        if run is not None or force or name != "signals" or about is not None:
            warnings.warn("fit(run=...) is deprecated: call grcd.train", DeprecationWarning, stacklevel=2)
        folder = run, force, name, None if about is None else Origin.of(about)
        self._name_nodes(train)
        with progress.verbose(verbose):
            if self._settings[0][2] > 1 or readings.in_channels(train):
                parts, variables, form = readings.split(train, val, self.graph, self._settings[0][2], times)
                refuse_unseen(parts["train"].values, self.graph)
                self._fit_series(parts, variables, *folder, readings.known(covariates))
            else:
                if times is not None:
                    do = "GRCD(graph, window=24), or leave them out"
                    raise InputError("times of signals by themselves", "a window", do)
                refuse_choices("signals by themselves", covariates=covariates)
                x, form = readings.signals(train, self.graph)
                y = None if val is None else readings.signals(val, self.graph)[0]
                self._fit(x, y, *folder, times={"train": readings.dates(train), "val": readings.dates(val)})
        if (layout := Layout.of(form)) is not None:
            self.facts["data"]["layout"] = layout.to_dict()
        return self

    def _name_nodes(self, train: Any) -> None:
        """A graph without names takes those of the training signals."""
        graph = readings.named(self.graph, train)
        if graph is not self.graph:
            self.graph = graph
            self._shape(self.space.channels)

    def _fit(
        self,
        train: ArrayLike,
        val: ArrayLike | None,
        run: str | Path | None,
        force: bool,
        name: str,
        origin: Origin | None,
        contest: bool = True,
        times: Mapping[str, np.ndarray | None] | None = None,
    ) -> GRCD:
        x_train = check_signals(train, self.space, "training signals", gaps=True)
        stamps = {"train": None, "val": None, **(times or {})}
        if val is None:
            cut = max(1, len(x_train) // 10)
            x_train, val = x_train[:-cut], x_train[-cut:]
            if (own := stamps["train"]) is not None:
                stamps = {"train": own[:-cut], "val": own[-cut:]}
            check_signals(x_train, self.space, "training signals left after a tenth was kept for validation", gaps=True)
        x_val = check_signals(val, self.space, "validation signals", least=1, gaps=True)
        self._shape(1)
        said = self._settle(Series(x_train[:, :, None]), Series(x_val[:, :, None]))
        unit = "" if origin is None else origin.unit or ""

        def judge(trained: Trained) -> dict | None:
            if not contest:
                return None
            config, parts = contents.settled(self._config, trained.facts), {"train": x_train, "val": x_val}
            timed = {split: Series.of_signals(x, stamps[split]) for split, x in parts.items()}
            return contests.of_signals(trained, config, timed, unit)

        what = self.space, self._config, self.device, x_train, x_val
        self._trained = runs.train(*what, run, force, name, origin, readings=said, judge=judge)
        self.config = contents.settled(self._config, self.facts)
        self._memory = Memory()
        return self

    def _fit_series(
        self,
        series: dict[str, Series],
        variables: Variables,
        run: str | Path | None,
        force: bool,
        name: str,
        origin: Origin | None,
        covariates: Covariates | None,
        contest: bool = True,
    ) -> GRCD:
        self._shape(len(variables.channels))
        said = self._settle(series["train"], series["val"], variables.channels)

        def judge(trained: TrainedSeries) -> dict | None:
            return contests.of_series(trained, series, covariates)

        what, judged = (self.space, self.config, self.device, series, variables), judge if contest else None
        self._trained = in_time.train(*what, run, force, name, origin, covariates, readings=said, judge=judged)
        self.config = contents.settled(self.config, self.facts)
        return self

    def _settle(self, train: Series, val: Series, channels: Sequence[str] = ("",)) -> list[str]:
        """Decide what was left to the readings; and what there is to say of them, in words."""
        self.config, verdicts = marginals.settled(self.config, self.space, train, val, not self.in_time)
        said = marginals.words(verdicts, self.config.limits(len(channels)), channels)
        for line in said:
            progress.tell(line)
        return said

    @property
    def _config(self) -> Config:
        if not isinstance(self.config, Config):
            raise InputError("a model of rows in time", "one of signals by themselves", "take a window of 1")
        return self.config

    def fresh_network(self) -> nn.Module:
        """The network before training."""
        return fit.fresh_network(self.space, self._config, self.device)

    # -- sampling --------------------------------------------------------------------------------------------------

    def sample(
        self,
        n: int,
        nfe: int = 4,
        seed: int = 0,
        solver: str | None = None,
        rho: float | None = None,
        grid: str | Sequence[float] | None = None,
        batch: int | None = None,
        precision: str = "float32",
        start: Any = None,
        covariates: Any = None,
        verbose: bool = False,
    ) -> Any:  # (n, nodes), or (n, steps, nodes[, channels])
        """New signals (n, nodes), in the units of the training signals, with ``nfe`` network evaluations each.

        ``solver``, ``grid`` (name or levels), ``rho`` and ``start`` (share of the largest level) default to the plan's,
        or the method's. On a GPU ``precision`` "tf32" is faster, "bfloat16" more so. The first signals of a seed are
        the same for every ``n``.
        In time: windows, of which ``start`` is the first time; else that of some training window each. Of a model that
        was fitted to a data frame a frame, one row a signal, or a row for each (sample, time) of windows; to a labelled
        array one with the dimension ``draw`` in front.
        """
        with progress.verbose(verbose):
            if self.in_time:
                refuse_choices("windows", solver=solver, rho=rho, grid=grid)
                drawn, times = self.series.sample(n, nfe, seed, start, covariates=readings.known(covariates))
                channels = self.series.channels
            else:
                rows = self.signals.sample(n, nfe, seed, solver, rho, grid, batch, precision, start)
                drawn, times, channels = rows[:, None, :, None], None, ("",)
        layout = Layout.from_dict(self.facts["data"].get("layout"))
        if layout is not None:
            return layout.sampled(drawn, times, self.graph.node_ids, channels)
        return self.space.shaped(drawn.reshape(n, -1))

    def impute(
        self,
        signals: Any,  # (signals, nodes) in their own units, NaN where missing; or rows in time
        n: int | None = None,
        nfe: int | None = None,
        seed: int = 0,
        posterior: str = "auto",
        solver: str | None = None,
        batch: int | None = None,
        quantiles: Sequence[float] | None = None,
        draws: int | None = None,
        times: ArrayLike | None = None,
        covariates: Any = None,
        verbose: bool = False,
    ) -> Any:  # (n, signals, nodes)
        """Fill the gaps (NaN) of ``signals`` (signals, nodes) ``n`` times over: (n, signals, nodes).

        What was observed comes out as it went in. A data frame comes back as one, filled by the median of 100 draws, or
        with columns (node, quantile) for ``quantiles``; with ``n`` (or ``draws``) all draws (draw, time, nodes[,
        channels]) in its order. Arrays, labelled or not, are draws, or quantiles; in time they may have ``times``.
        """
        n = _draws(n, draws)
        with progress.verbose(verbose):
            if self.in_time:
                refuse_choices("rows in time", solver=solver, batch=batch)
                rows = self._readings(signals, times, absent=True)
                answer, known = Answer(rows.form, n, quantiles), readings.known(covariates)
                parts = self.series.fillings(rows.series, answer.count, nfe, seed, posterior, known)
                return answer.filled(parts, rows.series.values.shape)
            refuse_choices("signals by themselves", times=times, covariates=covariates)
            values, form = readings.signals(signals, self.graph, absent=True)
            x, answer = self._checked(values, "signals to fill"), Answer(form, n, quantiles)
            budget = EVALUATIONS if nfe is None else nfe
            parts = self.signals.fillings(x, answer.count, budget, seed, posterior, solver, batch)
            return answer.filled(((rows, drawn[..., None]) for rows, drawn in parts), (*x.shape, 1))

    def _checked(self, signals: Any, what: str) -> np.ndarray:
        return check_signals(signals, self.space, what, least=1, gaps=True)

    def forecast(
        self,
        rows: Any,  # a data frame, or (time, nodes[, channels])
        horizon: int,
        quantiles: Sequence[float] | None = None,
        n: int | None = None,
        nfe: int | None = None,
        seed: int = 0,
        posterior: str = "auto",
        times: ArrayLike | None = None,
        draws: int | None = None,
        covariates: Any = None,
        verbose: bool = False,
    ) -> Any:
        """The ``horizon`` rows after the last, in the ways that ``impute`` answers; beyond a window it rolls on."""
        n, known = _draws(n, draws), readings.known(covariates)
        options = {"nfe": nfe, "seed": seed, "posterior": posterior, "covariates": known}
        with progress.verbose(verbose):
            return readings.forecast(self.series, self._readings(rows, times), horizon, n, quantiles, **options)

    def predict_df(
        self,
        df: Any,
        id_column: str = "item_id",
        timestamp_column: str = "timestamp",
        target: str | Sequence[str] = "target",
        prediction_length: int | None = None,
        quantile_levels: Sequence[float] = long_frames.LEVELS,
        **options: Any,
    ) -> Any:
        """Forecasts of a long frame (a row a reading) as a long frame, as Chronos has them.

        ``df``       columns of nodes (``id_column``), times (``timestamp_column``) and readings (``target``; of several
                     channels one each, called after it); others are left alone
        ``prediction_length``   rows to come; without, half a window
        ``options``  those of ``forecast``: ``n``, ``nfe``, ``seed``, ``posterior``, ``covariates``, ``verbose``
        Returns a row for each node, target and time to come: both columns, ``target_name``, ``predictions`` (the
        median) and a column for each of the ``quantile_levels``, called after it.
        """
        long = long_frames.Long(df, id_column, timestamp_column, target)
        horizon = max(self.series.space.steps // 2, 1) if prediction_length is None else prediction_length
        levels = sorted({*quantile_levels, 0.5})
        bands = self.forecast(long.wide(self.series.channels), horizon, quantiles=levels, **options)
        return long.predicted(bands, quantile_levels)

    def _readings(self, rows: Any, times: ArrayLike | None, absent: bool = False) -> Readings:
        channels, lacking = self.series.channels, self.series.lacking
        pairs = [(node, channel) for node in self.graph.node_ids for channel in channels] if lacking else []
        return Readings.of(rows, self.graph, channels, times, absent, {pairs[column] for column in lacking})

    def infer(
        self,
        y: ArrayLike,  # (signals, m) linear readings, NaN where there is none
        H: ArrayLike | sp.sparray,  # (m, nodes): what each of them is made of; dense or sparse
        noise: ArrayLike = 0.0,  # standard deviation of each, or of all
        n: int = 100,
        nfe: int = 8,
        seed: int = 0,
        posterior: str = "diffusion",
        solver: str | None = None,
    ) -> np.ndarray:  # (n, signals, nodes)
        """Draw signals ``x`` (n, signals, nodes) given sums, averages or other linear readings ``y = H x + noise``.

        ``y`` (signals, m) has NaN where there is no reading, ``H`` (m, nodes) may be sparse, and ``noise`` is the
        standard deviation of each of the ``m``, or of all. All in the signals' units. It approximates, by guidance:
        with a wrong reference, more evaluations do not make it exact.
        """
        return self.signals.infer(y, H, noise, n, nfe, seed, posterior, solver)

    def augment(
        self,
        signals: Any,
        strength: float,
        n: int | None = None,
        nfe: int = 4,
        seed: int = 0,
        times: ArrayLike | None = None,
        covariates: Any = None,
        verbose: bool = False,
    ) -> Any:  # (n, signals, nodes)
        """``n`` variations (n, signals, nodes) of ``signals``: at ``strength`` 0 the signal itself, at 1 any signal.

        In time, of complete rows. Without ``n`` one, which of a data frame is a frame like it.
        """
        count = 1 if n is None else n
        with progress.verbose(verbose):
            if self.in_time:
                rows = self._readings(signals, times)
                drawn = self.series.augment(rows.series, strength, count, nfe, seed, readings.known(covariates))
                return readings.varied(rows.form, n, drawn)
            values, form = readings.signals(signals, self.graph)
            return readings.varied(form, n, self.signals.augment(values, strength, count, nfe, seed)[..., None])

    def log_prob(
        self,
        signals: Any,
        posterior: str = "diffusion",
        steps: int = 16,
        probes: int = 4,
        seed: int = 0,
        times: ArrayLike | None = None,
        covariates: Any = None,
        verbose: bool = False,
    ) -> tuple[Any, Any]:  # two of (signals,)
        """Log-likelihood of each of ``signals`` (signals, nodes) in nats, and half of its 95 % interval.

        Under the reference alone it is exact, and that of what was observed where there are gaps. Under the model more
        ``steps`` of its flow, and more ``probes`` of its divergence, make the interval narrower. In time it is that of
        a row given all other rows of the window about it, under the reference, and exact.
        """
        with progress.verbose(verbose):
            if self.in_time:
                refuse_unknown(posterior)
                rows = self._readings(signals, times)
                scores, form = self.series.log_prob(rows.series, readings.known(covariates)), rows.form
                error = np.zeros_like(scores)
            else:
                values, form = readings.signals(signals, self.graph)
                scores, error = self.signals.log_prob(values, posterior, steps, probes, seed)
        return form.scores(scores, "log_prob"), form.scores(error, "error")

    def node_log_prob(
        self, signals: Any, times: ArrayLike | None = None, covariates: Any = None, verbose: bool = False
    ) -> Any:  # (signals, nodes)
        """How probable each reading is given all others of its signal, under the reference: low ones stand out.

        Log-densities (signals, nodes) of ``signals`` (signals, nodes); NaN where there is no reading. In time, given
        what all other nodes read in the window about it: so a sensor that is stuck stands out.
        """
        with progress.verbose(verbose):
            if self.in_time:
                rows = self._readings(signals, times)
                return rows.form.table(self.series.node_log_prob(rows.series, readings.known(covariates)))
            values, form = readings.signals(signals, self.graph)
            return form.table(self.signals.node_log_prob(values)[..., None])

    def choice(self, nfe: int, **own: Any) -> Choice:
        """How to sample with a budget of ``nfe``: one's ``own`` choices, else the plan's, or the method's."""
        return self.diffusion.choice(nfe, **own)

    def as_method(self, name: str) -> GRCD:
        """The same network, sampled as the method ``name`` would: one that shares its training."""
        other = methods.find(name)
        if other.network != self.method.network:
            raise InputError(
                f"a network of {self.config.method!r} for the method {name!r}",
                f"one that is trained alike: {', '.join(methods.sharing(self.method))}",
                "train that method",
            )
        model = copy.copy(self)
        model.method, model._memory = other, Memory()
        model._trained = replace(self.trained, diffusion=fit.sampled_as(self.diffusion, name))
        return model

    def spends(self, nfe: int, solver: str | None = None) -> int:
        """Network evaluations that a budget of ``nfe`` comes to with a ``solver``: EDM's last step leaves one out."""
        return solvers.find(solver or self.method.solver).spends(nfe)

    # -- saving ----------------------------------------------------------------------------------------------------

    def save(self, path: str | Path, force: bool = False) -> None:
        """Write the model to ``path`` as a finished run folder; ``force`` replaces another run that is there."""
        trained = self._fitted()
        with Run(path, trained.facts, force) as folder:
            if not folder.finished:
                folder.finish(trained.tensors(), trained.result)


def _draws(n: int | None, draws: int | None) -> int | None:
    """Two names for one number."""
    if n is not None and draws is not None and n != draws:
        raise InputError(f"n = {n} and draws = {draws}", "one of them", "leave one out")
    return draws if n is None else n


def refuse_choices(what: str, **choices: Any) -> None:
    """Refuse arguments that mean nothing for a kind of model."""
    for name, value in choices.items():
        if value is not None:
            raise InputError(f"{name} = {value!r} for {what}", f"no {name}", "leave it out")


def train(
    model: GRCD,
    data: Dataset | SeriesDataset,
    run: str | Path,
    force: bool = False,
    covariates: Any = None,
    contest: bool = True,
) -> GRCD:
    """Train a ``model`` in a run folder; interrupted anywhere, the same call goes on where it was. Returns the model.

    ``data``    its training and validation signals are used, and where they came from is noted in the folder
    ``run``     the folder; ``force`` begins anew where there is another run
    ``covariates``   of rows in time, as ``GRCD.fit`` takes them
    ``contest``      whether hidden readings are filled at the end, beside simple competitors: what ``impute`` goes by;
                     without, of rows in time, validation rows choose and teach nothing
    """
    if isinstance(data, SeriesDataset):
        parts, variables = {split: data.part(split) for split in ("train", "val")}, Variables(data.channels, data.units)
        folder = run, force, data.name, data.origin
        return model._fit_series(parts, variables, *folder, readings.known(covariates), contest=contest)
    if not isinstance(data, Dataset):
        raise InputError(f"data of type {type(data).__name__}", "a Dataset", "make one with grcd.load_dataset, or fit")
    refuse_choices("signals by themselves", covariates=covariates)
    return model._fit(data.train, data.val, run, force, data.name, data.origin, contest, data.times)


def load(path: str | Path, device: str = "auto") -> GRCD:
    """A model from the finished run folder ``path``, on ``device``: "auto", "cpu" or "cuda"."""
    manifest, tensors = read(path)
    with contents.fitting(path):
        graph = contents.graph(manifest, tensors)
        config = contents.settled(window_config.read(manifest["config"]), manifest)
        channels = len(manifest["data"].get("channels", [""]))
    model = GRCD(graph, device=device, channels=channels, **config.to_dict())
    with contents.fitting(path):
        space, where = model.space, model.device
        Layout.from_dict(manifest["data"].get("layout"))  # refuses what is none
        if model.in_time:
            model._trained = in_time.restored(space, config, where, manifest, tensors)
        else:
            model._trained = contents.restored(space, model._config, where, manifest, tensors)
    return model
