"""Windows of METR-LA and AQI-36: gaps filled, forecasts and windows out of nothing, by one trained network each.

    python benchmarks/space_time.py --part metr-la --device cuda --out results/space-time.json
    python benchmarks/space_time.py --part choices,small,aqi36 --out results/space-time.json

Parts are merged into the file, and the page beside it is written anew. Nothing is chosen on test rows.

    metr-la   207 sensors, windows of 24, the masks and scores of ``grcd.evaluation.protocol``. Training sees all
              readings of the training rows, those that a mask hides too (as PriSTI does); validation rows choose the
              mean, the covariance, the weights that are kept and whether they are used. Test windows follow each other
              without overlap; and, for comparison, members that go on from what they drew (``tasks/windows``)
    small     its first 30 sensors and 5,000 rows (3,500, 500, 1,000), point masks, on a CPU
    aqi36     36 stations, windows of 36 hours, the benchmark's own mask, on a CPU
    reference the covariance of windows of METR-LA alone: how long its mean, its choice and its factors take
    choices   what validation windows of METR-LA say of the form of the covariance and of the spread by the clock
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import space_time_page
import torch
from provenance import provenance
from torch import Tensor

from grcd.core import device as devices
from grcd.core.files import write_json
from grcd.core.rows import evenly
from grcd.core.streams import Stream
from grcd.data.loading import load_series
from grcd.data.series import Series
from grcd.data.series_dataset import SeriesDataset
from grcd.diffusion.conditional import Conditional
from grcd.evaluation import protocol
from grcd.evaluation.baselines import straight
from grcd.graphs.space import SignalSpace
from grcd.references.stationary import Shrinkage, Trial, chosen_shrinkage, lag_covariances
from grcd.tasks import windows as tasks
from grcd.training import means as training_means
from grcd.training import windows
from grcd.training.conditional import Setting, fresh_network
from grcd.training.mean import Terms
from grcd.training.means import Means
from grcd.training.window_config import WindowConfig
from grcd.training.window_references import Choice
from grcd.training.windows import WindowModel, fit

NFE = (1, 2, 4, 8)
LINE = {"point": (311_473, 2.434, 14.80), "block": (112_339, 3.270, 33.84)}  # scored readings, MAE and MSE of a line
LAST = (3.50, 4.21, 5.38)  # MAE of the last non-zero reading, 3, 6 and 12 rows ahead
SAMPLES, LAGS = 256, (1, 3, 6, 12)


@dataclass
class Clock:
    """Seconds on the wall and on the processor since it was made."""

    wall: float
    own: float

    @classmethod
    def start(cls) -> Clock:
        return cls(time.monotonic(), time.process_time())

    def read(self) -> dict[str, float]:
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        wall, own = time.monotonic() - self.wall, time.process_time() - self.own
        return {"seconds": round(wall, 2), "processor seconds": round(own, 2)}


def say(*words: Any) -> None:
    print(f"[{time.monotonic() - BEGAN:6.1f} s]", *words, flush=True)


BEGAN = time.monotonic()


class Table:
    """A model, and rows that it fills; what is drawn is cut off at the range of the training readings."""

    def __init__(self, model: WindowModel, train: Series, device: torch.device):
        self.model, self.device = model, device
        self.bounds = float(np.nanmin(train.values)), float(np.nanmax(train.values))

    def scored(self, series: Series) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """z-scores, mean and spread (rows, columns), and what the network is told of rows."""
        mean, spread, features = self.model.about(series.times, len(series))
        x = torch.from_numpy(series.values.reshape(len(series), -1)).to(self.device, torch.float64)
        return ((x - mean) / spread).float(), mean.float(), spread.float(), features

    def apart(
        self, series: Series, conditional: Conditional, n: int, nfe: int, seed: int, every: int = 1, most: int = 100
    ) -> tuple[Tensor, Tensor]:  # (n, rows, columns) in units, (rows,)
        """Windows one after the other, each by itself; every so many of them. Which rows were drawn comes along."""
        z, mean, spread, features = self.scored(series)
        steps = conditional.space.steps
        starts, new = series.covering(steps)
        starts, new = starts[::every], new[::every]
        rows = torch.from_numpy(starts[:, None] + np.arange(steps)).to(self.device)
        drawn = torch.zeros(n, *z.shape, device=self.device)
        for first in range(0, len(starts), most):
            some = rows[first : first + most]
            window = z[some].flatten(1)

            def noise(purpose: str, shape: tuple[int, ...], first: int = first) -> Tensor:
                stream = Stream(seed, f"apart {purpose}", self.device)
                return stream.normal(range(first, first + shape[0]), shape[1] * shape[2]).view(shape)

            with devices.arithmetic("high"):
                x = conditional.draw(window, ~window.isnan(), features[some], n, nfe, noise).view(
                    -1, n, steps, z.shape[1]
                )
            for each, own, (low, high) in zip(some, x, new[first : first + most].tolist(), strict=True):
                drawn[:, each[low:high]] = own[:, low:high]
        chosen = torch.cat([each[low:high] for each, (low, high) in zip(rows, new.tolist(), strict=True)])
        return (mean + spread * drawn).clamp(*self.bounds), chosen

    def along(self, series: Series, conditional: Conditional, n: int, nfe: int, seed: int) -> Tensor:
        """Members that go on from what they drew: the package's own way to fill a table."""
        z, mean, spread, features = self.scored(series)
        parts = tasks.fill(conditional, z, features, series.stretches, n, nfe, seed)
        drawn = torch.cat([part for _, part in parts], dim=1)
        return (mean + spread * drawn).clamp(*self.bounds)

    def posterior(self, series: Series) -> tuple[Tensor, Tensor]:  # two of (rows, columns), in units
        """Mean and spread of the reference alone, windows one after the other."""
        z, mean, spread, _ = self.scored(series)
        steps = self.model.law.space.steps
        starts, new = series.covering(steps)
        rows = torch.from_numpy(starts[:, None] + np.arange(steps)).to(self.device)
        window = z[rows].flatten(1)
        posterior = self.model.law.reference.posterior(window, ~window.isnan())
        m, s = torch.zeros_like(z), torch.zeros_like(z)
        for each, own_m, own_s, (low, high) in zip(rows, posterior.mean, posterior.sd, new.tolist(), strict=True):
            own = slice(low, high)
            m[each[own]], s[each[own]] = (part.view(steps, -1)[own].float() for part in (own_m, own_s))
        return mean + spread * m, spread * s

    def calendar(self, series: Series) -> Tensor:
        return self.scored(series)[1]


def hide(series: Series, mask: np.ndarray) -> Series:
    return replace(series, values=np.where(mask[:, :, None], np.nan, series.values))


def truth(series: Series, mask: np.ndarray, device: torch.device) -> tuple[Tensor, Tensor]:
    """Readings (rows, columns), and which of them are scored."""
    values = torch.from_numpy(series.values[:, :, 0]).to(device)
    return values, torch.from_numpy(mask).to(device) & ~values.isnan()


def trained(data: SeriesDataset, steps: int, setting: WindowConfig, device: torch.device) -> tuple[WindowModel, dict]:
    """The model of windows of a table, trained; and how long that took."""
    space, clock, history = SignalSpace(data.graph, steps, len(data.channels)), Clock.start(), list[dict]()

    def log(state: Any, record: dict) -> None:
        history.append(record | {"seconds": round(time.monotonic() - clock.wall, 1)})
        say(f"update {record['update']:,}: training {record['train']:.4f}, validation {record['val']:.4f}")

    model, summary = fit(space, data.part("train"), data.part("val"), setting, device, log)
    summary |= {"training": clock.read(), "setting": asdict(setting), "history": history}
    say({key: value for key, value in summary.items() if key not in ("history", "setting")})
    return model, summary


# -- METR-LA -----------------------------------------------------------------------------------------------------------


def metr_la(args: argparse.Namespace, device: torch.device) -> dict:
    data = load_series("metr-la")
    if args.rows:  # to try the recipe
        data = cut(data, args.rows, args.columns)
    masks = {kind: protocol.hidden((34_272, 207), kind)[: args.rows or None, : args.columns] for kind in protocol.MASKS}
    line = {kind: of_the_line(data, masks[kind], kind, whole=not args.rows) for kind in masks}
    say("line in time", line)
    setting = WindowConfig.on(device, window=24, seed=args.seed, **args.set)
    model, summary = trained(data, 24, setting, device) if args.load is None else loaded(data, 24, args.load, device)
    result: dict[str, Any] = {"seed": args.seed, "summary": summary, "line in time": line}
    if args.save:
        saved(model, summary, args.save)
    table = Table(model, data.part("train"), device)
    result["validation"] = validation(table, data, masks, args)
    note(args, "metr-la", result, device)
    test, rows = data.part("test"), data.rows("test")
    for name in ("reference alone", "calendar"):
        result[name] = {}
    for kind, mask in masks.items():
        values, scored = truth(test, mask[rows], device)
        seen = hide(test, mask[rows])
        mean, sd = table.posterior(seen)
        result["reference alone"][kind] = protocol.normal_scores(mean[scored], sd[scored], values[scored], table.bounds)
        result["calendar"][kind] = protocol.point_scores(table.calendar(seen)[scored], values[scored])
        say(
            kind, "reference alone", shown(result["reference alone"][kind]), "calendar", shown(result["calendar"][kind])
        )
    result["filled"] = {}
    for nfe in args.nfe:  # the first one compiles the network
        result["filled"][str(nfe)] = {kind: filled(table, test, mask[rows], nfe, args) for kind, mask in masks.items()}
        note(args, "metr-la", result, device)
    result["samples"] = samples(table, data, args)
    note(args, "metr-la", result, device)
    result["forecast"] = forecast(table, data, args)
    note(args, "metr-la", result, device)
    if args.overlap:
        result["filled with overlaps"] = {"4": {}}
        for kind, mask in masks.items():
            result["filled with overlaps"]["4"][kind] = filled(table, test, mask[rows], 4, args, along=True)
            note(args, "metr-la", result, device)
    return result


def cut(data: SeriesDataset, rows: int, columns: int, ends: tuple[int, int] | None = None) -> SeriesDataset:
    """The first rows and columns of a table, split at ``ends`` or as the whole is."""
    first, second = ends or (int(0.7 * rows), int(0.8 * rows))
    parts = {"train": (slice(0, first),), "val": (slice(first, second),), "test": (slice(second, rows),)}
    times = data.series.times
    series = Series(
        data.series.values[:rows, :columns], None if times is None else times[:rows], borders=(first, second)
    )
    graph = type(data.graph).from_adjacency(
        data.graph.weights.toarray()[:columns, :columns], data.graph.node_ids[:columns]
    )
    return replace(data, series=series, graph=graph, splits=parts, hidden=None)


def of_the_line(data: SeriesDataset, mask: np.ndarray, kind: str, whole: bool) -> dict[str, float]:
    """A line in time over the test rows alone; the protocol is checked by what it scores."""
    test, rows = data.part("test"), data.rows("test")
    values, scored = truth(test, mask[rows], torch.device("cpu"))
    guess = torch.from_numpy(straight(hide(test, mask[rows]).values[:, :, 0]))
    scores = {"scored": int(scored.sum())} | protocol.point_scores(guess[scored], values[scored])
    if whole:
        count, mae, mse = LINE[kind]
        assert scores["scored"] == count, scores
        assert round(scores["MAE"], 3) == mae, scores
        assert round(scores["MSE"], 2) == mse, scores
    return scores


def validation(table: Table, data: SeriesDataset, masks: dict[str, np.ndarray], args: argparse.Namespace) -> dict:
    """The protocol's masks in validation windows, every other one: what choices between trainings are made by."""
    val, rows, result = data.part("val"), data.rows("val"), {}
    for kind, mask in masks.items():
        values, scored = truth(val, mask[rows], table.device)
        x, chosen = table.apart(hide(val, mask[rows]), table.model.law, args.val_draws, 4, args.seed, args.val_every)
        scored = scored & torch.isin(torch.arange(len(val), device=table.device), chosen)[:, None]
        result[kind] = protocol.draw_scores(x[:, scored].float(), values[scored])
        say("validation", kind, shown(result[kind]))
    return result


def filled(
    table: Table, test: Series, mask: np.ndarray, nfe: int, args: argparse.Namespace, along: bool = False
) -> dict[str, float]:
    """Scores of the gaps of test rows, and how long filling them took."""
    (values, scored), clock, seen = truth(test, mask, table.device), Clock.start(), hide(test, mask)
    if along:
        n = args.draws if table.device.type == "cuda" else args.cpu_draws
        x = table.along(seen, table.model.law, n, nfe, args.seed)
    else:
        x, chosen = table.apart(seen, table.model.law, args.draws, nfe, args.seed, args.every)
        scored = scored & torch.isin(torch.arange(len(test), device=table.device), chosen)[:, None]
    taken = clock.read()
    result = {"scored": int(scored.sum())} | protocol.draw_scores(x[:, scored].float(), values[scored]) | taken
    say("overlapping" if along else "apart", f"NFE {nfe}", shown(result))
    return result


def forecast(table: Table, data: SeriesDataset, args: argparse.Namespace) -> dict:
    """12 rows from the 12 before them, every twelfth of DCRNN's test windows; zeros are not scored."""
    z, mean, spread, features = table.scored(data.series)
    values = torch.from_numpy(data.series.values[:, :, 0])
    rows = len(values)
    every = np.arange(rows - 23)[-round(0.2 * (rows - 23)) :]
    past = protocol.last_reading(data.series.values[:, :, 0])
    naive = {}
    for lead, right in zip(protocol.LEADS, LAST, strict=True):
        target = values[every + 11 + lead]
        naive[str(lead)] = float(np.nanmean(np.abs(past[every + 11] - target.numpy())))
        assert args.rows or round(naive[str(lead)], 2) == right, naive
    ends, clock = every[:: args.forecast_every] + 12, Clock.start()
    pasts = [slice(end - 12, end) for end in ends.tolist()]
    draws = tasks.forecasts(table.model.law, z, features, pasts, 12, args.draws, args.forecast_nfe, args.seed)
    by_lead: dict[int, list[tuple[Tensor, Tensor]]] = {lead: [] for lead in range(1, 13)}
    for end, x in zip(ends.tolist(), draws, strict=True):
        ahead = slice(end, end + 12)
        x = (mean[ahead] + spread[ahead] * x).clamp(*table.bounds)
        for lead in by_lead:
            target = values[end + lead - 1].to(table.device)
            seen = ~target.isnan()
            by_lead[lead].append((x[:, lead - 1, seen].float(), target[seen]))
    taken = clock.read()
    scores = {
        str(lead): protocol.draw_scores(torch.cat([x for x, _ in parts], dim=1), torch.cat([y for _, y in parts]))
        for lead, parts in by_lead.items()
    }
    say("forecasts", {lead: shown(scores[str(lead)]) for lead in protocol.LEADS}, taken)
    return {"windows": len(ends), "last reading, all windows": naive, "by lead": scores} | taken


def samples(table: Table, data: SeriesDataset, args: argparse.Namespace) -> dict:
    """Windows of which nothing is known, at the times of test windows: spread and memory, beside those of the data."""
    test = data.part("test")
    _, mean, spread, features = table.scored(test)
    steps = table.model.law.space.steps
    starts = test.starts(steps)
    starts = starts[np.linspace(0, len(starts) - 1, min(SAMPLES, len(starts))).astype(int)]
    rows = torch.from_numpy(starts[:, None] + np.arange(steps)).to(table.device)
    clock = Clock.start()
    z = tasks.sample(table.model.law, features[rows], 8, args.seed)
    result: dict[str, Any] = {"windows": len(starts), **clock.read(), "finite": bool(z.isfinite().all())}
    real = torch.from_numpy(test.values[:, :, 0]).to(table.device)[rows]
    for name, x in (("generated", mean[rows] + spread[rows] * z), ("real", real.float())):
        about = x.double() - mean[rows]
        seen = ~about.isnan()
        zero = about.nan_to_num()
        node_sd = (zero.square().sum((0, 1)) / seen.sum((0, 1)).clamp(min=1)).sqrt()
        between = ((zero.sum((1)) / seen.sum(1).clamp(min=1)).square().mean()).sqrt()
        correlation = {}
        for lag in LAGS:
            both = seen[:, lag:] & seen[:, :-lag]
            product = (zero[:, lag:] * zero[:, :-lag] * both).sum() / both.sum()
            correlation[str(lag)] = float(product / (zero.square().sum() / seen.sum()))
        result[name] = {
            "mean": float(x[seen].mean()),
            "sd": float(x[seen].std()),
            "sd about the calendar": float((zero.square().sum() / seen.sum()).sqrt()),
            "sd of a window's mean": float(between),
            "median sd of a sensor": float(node_sd.median()),
            "outside": float(((x[seen] < table.bounds[0]) | (x[seen] > table.bounds[1])).double().mean()),
            "autocorrelation": correlation,
        }
    say("samples", result)
    return result


def saved(model: WindowModel, summary: dict, file: Path) -> None:
    """The network, and what the rest is fitted by again from the same rows."""
    from safetensors.torch import save_file

    network = model.law.network
    about = {key: summary[key] for key in ("reference", "setting", "network", "history", "training", "updates")}
    about["terms"] = asdict(model.mean.terms)
    tensors = {} if network is None else {name: value.cpu() for name, value in network.state_dict().items()}
    save_file(tensors, file, {"about": json.dumps(about)})


def loaded(data: SeriesDataset, steps: int, file: Path, device: torch.device) -> tuple[WindowModel, dict]:
    """The way back: mean and reference are fitted with the choices that were made."""
    from safetensors import safe_open

    with safe_open(file, "pt") as tensors:
        about = json.loads(tensors.metadata()["about"])
        weights = {name: tensors.get_tensor(name) for name in tensors.keys()}  # noqa: SIM118
    space = SignalSpace(data.graph, steps, len(data.channels))
    means = Means(space, data.part("train"), data.part("val"), device)
    terms = Terms(**about["terms"] | {"covariates": tuple(about["terms"]["covariates"])})
    model = of_the_reference(means, terms, Choice.of(about["reference"]))
    names = {entry.name for entry in fields(Setting)}
    setting = Setting(**{name: value for name, value in about["setting"].items() if name in names})
    network = fresh_network(space, model.mean.told, setting)
    if weights:
        network.load_state_dict(weights)
        model = replace(model, law=replace(model.law, network=network.to(device).eval()))
    return model, about


def of_the_reference(means: Means, terms: Terms, choice: Choice) -> WindowModel:
    """A mean and a reference of the training rows, no network."""
    table, stretches = windows._Table(means, terms), means.train.stretches
    z, _ = table.scored(stretches)
    reference = table.references().fit(choice, z, stretches)
    return WindowModel(Conditional(means.space, reference), means.fitted(terms, stretches))


def reference(args: argparse.Namespace, device: torch.device) -> dict:
    """Seconds of every stage of the model of METR-LA that comes before its network."""
    data, result = load_series("metr-la"), dict[str, Any]()

    def timed(name: str, work: Callable[[], Any]) -> Any:
        clock = Clock.start()
        value = work()
        result[name] = clock.read()
        say(name, result[name])
        return value

    torch.linalg.cholesky(torch.eye(8, device=device))  # libraries are loaded before the clock starts
    means = Means(SignalSpace(data.graph, 24), data.part("train"), data.part("val"), device)
    terms, _ = timed("mean", means.chosen)
    table, stretches = windows._Table(means, terms), means.train.stretches
    z, _ = table.scored(stretches)
    references = table.references()
    choice = timed("choice", references.choose)  # whole windows are judged by it: it is factored then
    references.fit(choice, z, stretches)
    about = {name: value for name, value in provenance(str(device)).items() if name != "command"}
    return {device.type: result | about | {"readings a window": means.space.d, "threads": torch.get_num_threads()}}


# -- choices -----------------------------------------------------------------------------------------------------------


def choices(args: argparse.Namespace, device: torch.device) -> dict:
    """Validation windows of METR-LA, no network: how much of the spread goes by the clock, and whether weak
    correlations are taken for noise (``local``). Weights of each are those of the highest likelihood of short windows;
    every form is then judged by readings hidden by the protocol's masks, whole windows."""
    data = load_series("metr-la")
    if args.rows:
        data = cut(data, args.rows, args.columns)
    space, train, val = SignalSpace(data.graph, 24), data.part("train"), data.part("val")
    rows, forms = data.rows("val"), list[dict]()
    masks = {kind: protocol.hidden((34_272, 207), kind)[: args.rows or None, : args.columns] for kind in protocol.MASKS}
    filled_in = {kind: (truth(val, mask[rows], device), hide(val, mask[rows])) for kind, mask in masks.items()}
    means = Means(space, train, val, device)
    for power in (None, 0.0, 0.25, 0.5, 0.75, 1.0):
        name, terms = (
            "none" if power is None else f"clock, power {power:g}",
            Terms(power is not None, spread=bool(power)),
        )
        training_means.POWER = power or 0.0
        trial, spread = short_windows(means, terms)
        for local in (True, False):
            clock, start = Clock.start(), Shrinkage() if local else Shrinkage(local=0.0)  # a walk keeps a zero
            by, tried = chosen_shrinkage([trial], start=start)
            form: dict[str, Any] = {"calendar": name, "local": local, "shrinkage": asdict(by)}
            form["log-likelihood a reading"] = -tried[by] - spread
            for label, weights in (("likelihood", by), ("usual", start)):
                table = Table(of_the_reference(means, terms, Choice("stationary", weights)), train, device)
                for kind, ((values, scored), seen) in filled_in.items():
                    centre, sd = table.posterior(seen)
                    scores = protocol.normal_scores(centre[scored], sd[scored], values[scored], table.bounds)
                    form[f"{kind}, weights by {label}"] = scores
            forms.append(form | clock.read())
            say(name, "local" if local else "not local", by, f"{form['log-likelihood a reading']:.4f}")
            say({label: shown(scores) for label, scores in form.items() if "weights" in label})
    return {"forms": forms}


def short_windows(means: Means, terms: Terms, steps: int = 6, most: int = 256) -> tuple[Trial, float]:
    """Of validation rows, with the lag covariances of training rows; and the mean log of their spread."""
    z, spread = windows._Table(means, terms).scored(means.train.stretches)
    starts = means.val.starts(steps) + len(means.train)
    rows = torch.from_numpy(starts[evenly(len(starts), most)][:, None] + np.arange(steps)).to(z.device)
    x = z[rows].flatten(1)
    observed = ~x.isnan()
    trial = Trial(lag_covariances(z, steps, means.train.stretches), x.nan_to_num(), observed)
    return trial, float(spread[rows].flatten(1).log()[observed].mean())


# -- small tables ------------------------------------------------------------------------------------------------------


def small(args: argparse.Namespace, device: torch.device) -> dict:
    """The first 30 sensors and 5,000 rows of METR-LA; point masks cut from those of the whole table."""
    data = cut(load_series("metr-la"), 5_000, 30, (3_500, 4_000))
    mask = protocol.hidden((34_272, 207), "point")[:5_000, :30]
    return on_a_processor(data, 24, mask, (1, 2), args, device)


def aqi36(args: argparse.Namespace, device: torch.device) -> dict:
    """36 stations; readings hidden in training months are trained on, as PriSTI and CSDI do."""
    data = load_series("aqi36")
    assert data.hidden is not None
    values = data.series.values[:, :, 0]
    scored = data.hidden[:, :, 0].copy()
    scored[np.setdiff1d(np.arange(len(values)), data.rows("test"))] = False
    line = straight(np.where(data.hidden[:, :, 0], np.nan, values))
    off = np.abs(line - values)[scored]
    assert (len(off), round(float(off.mean()), 2)) == (20_434, 14.68)
    result = on_a_processor(data, 36, data.hidden[:, :, 0], (1,), args, device)
    result["line in time"]["MAE, whole series"] = float(off.mean())
    return result


def on_a_processor(
    data: SeriesDataset,
    steps: int,
    mask: np.ndarray,
    evaluations: tuple[int, ...],
    args: argparse.Namespace,
    device: torch.device,
) -> dict:
    """Trained and filled in minutes, beside what needs no model of ours."""
    test, rows = data.part("test"), data.rows("test")
    seen = hide(test, mask[rows])
    values, scored = truth(test, mask[rows], device)

    def points(guess: np.ndarray | Tensor) -> dict[str, float]:
        return protocol.point_scores(torch.as_tensor(guess, device=device)[scored], values[scored])

    result: dict[str, Any] = {"seed": args.seed, "scored": int(scored.sum())}
    result["line in time"] = points(np.concatenate([straight(seen.values[s, :, 0]) for s in seen.stretches]))
    result |= {name: points(guess()) for name, guess in imputers(data, seen).items()} if args.imputers else {}
    say({name: shown(value) for name, value in result.items() if isinstance(value, dict)})
    model, summary = trained(data, steps, WindowConfig.on(device, window=steps, seed=args.seed, **args.set), device)
    table = Table(model, data.part("train"), device)
    result |= {"summary": summary, "calendar": points(table.calendar(seen))}
    mean, sd = table.posterior(seen)
    result["reference alone"] = protocol.normal_scores(mean[scored], sd[scored], values[scored], table.bounds)
    say("reference alone", shown(result["reference alone"]))
    for nfe in evaluations:
        name = f"filled, NFE {nfe}, {args.cpu_draws} draws"
        result[name] = filled(table, test, mask[rows], nfe, args, along=True)
    return result


def imputers(data: SeriesDataset, seen: Series) -> dict[str, Callable[[], np.ndarray]]:
    """scikit-learn's, learned from the training rows: of a row, and of a row with the ones before and after it."""
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer, KNNImputer

    def beside(values: np.ndarray) -> np.ndarray:
        empty = np.full_like(values[:1], np.nan)
        return np.concatenate(
            [np.concatenate([empty, values[:-1]]), values, np.concatenate([values[1:], empty])], axis=1
        )

    train, test, width = data.part("train").values[:, :, 0], seen.values[:, :, 0], len(data.graph)

    def by(make: Callable[[], Any], three: bool) -> np.ndarray:
        learn, fill = (beside(train), beside(test)) if three else (train, test)
        imputer = make().set_params(keep_empty_features=True)
        guess = imputer.fit(learn).transform(fill)
        return guess[:, width : 2 * width] if three else guess

    kinds = {
        "IterativeImputer": lambda: IterativeImputer(max_iter=10, random_state=0),
        "KNNImputer": lambda: KNNImputer(n_neighbors=10),
    }
    return {
        f"{name}, {'three rows' if three else 'one row'}": (lambda make=make, three=three: by(make, three))
        for name, make in kinds.items()
        for three in (False, True)
    }


# -- running it --------------------------------------------------------------------------------------------------------

PARTS = {"metr-la": metr_la, "reference": reference, "choices": choices, "small": small, "aqi36": aqi36}


def shown(scores: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in scores.items())


def note(args: argparse.Namespace, part: str, result: dict, device: torch.device) -> None:
    """A part into the file, beside the others."""
    whole = json.loads(args.out.read_text()) if args.out.exists() else {}
    about = provenance(str(device))
    about["command"] = re.sub(r" --(save|load) \S+", "", about["command"])  # folders mean nothing elsewhere
    write_json(args.out, whole | {part: whole.get(part, {}) | about | result})


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",") if part]


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", default="small", help=f"some of {', '.join(PARTS)}; none: the page alone")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, default=Path("results/space-time.json"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--nfe", type=numbers, default=list(NFE))
    parser.add_argument("--cpu-draws", type=int, default=50, help="of small tables")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of training")
    parser.add_argument("--save", type=Path, help="the trained network of METR-LA")
    parser.add_argument("--load", type=Path, help="the same, in place of training")
    parser.add_argument("--forecast-nfe", type=int, default=4)
    parser.add_argument("--overlap", action="store_true", help="fill METR-LA with overlapping windows too")
    parser.add_argument("--no-imputers", dest="imputers", action="store_false")
    parser.add_argument("--every", type=int, default=1, help="fill every so many test windows")
    parser.add_argument("--val-every", type=int, default=2)
    parser.add_argument("--val-draws", type=int, default=40)
    parser.add_argument("--forecast-every", type=int, default=12)
    parser.add_argument("--rows", type=int, help="of METR-LA, to try the recipe")
    parser.add_argument("--columns", type=int)
    args = parser.parse_args()
    args.set = dict(each.split("=", 1) for each in args.set)
    return args


def main() -> None:
    args = parsed()
    device = devices.find(args.device)
    for part in filter(None, args.part.split(",")):
        note(args, part, PARTS[part](args, device), device)
    args.out.with_suffix(".md").write_text(space_time_page.written(json.loads(args.out.read_text())))
    say("done")


if __name__ == "__main__":
    main()
