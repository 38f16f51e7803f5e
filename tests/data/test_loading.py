"""From files to a dataset: nodes meet by name, gaps and splits are as named, and nothing leaks."""

import json
import sys

import conftest
import numpy as np
import pandas as pd
import pytest

import grcd
from grcd.cli import main
from grcd.core.errors import InputWarning
from grcd.data import splits
from grcd.data.formats.exported import write_dataset
from grcd.data.formats.writing import write_signals
from grcd.data.observed import read_observed

pytestmark = pytest.mark.filterwarnings("ignore::grcd.core.errors.InputWarning")


@pytest.fixture
def files(tmp_path, tiny):
    """Signals with times, and the graph, in one folder."""
    times = pd.date_range("2024-01-01", periods=60, freq="h")
    frame = pd.DataFrame(tiny.train, columns=tiny.graph.node_ids)
    frame.insert(0, "time", times)
    frame.to_csv(tmp_path / "x.csv", index=False)
    np.savez(tmp_path / "g.npz", adjacency=tiny.graph.weights.toarray(), node_ids=tiny.graph.node_ids)
    return tmp_path


def load(files, name="x.csv", **options):
    return grcd.load_dataset(files / name, files / "g.npz", **options)


def edited(files, change, name="y.csv"):
    frame = pd.read_csv(files / "x.csv")
    change(frame).to_csv(files / name, index=False)
    return name


def everything(data):
    return np.concatenate([data.train, data.val, data.test])


def test_an_exported_dataset_is_the_dataset(tmp_path, tiny):
    write_dataset(tmp_path / "d.npz", tiny)
    again = grcd.load_dataset(tmp_path / "d.npz")
    assert again.graph.hash == tiny.graph.hash
    for split in ("train", "val", "test"):
        assert np.array_equal(again.split(split), tiny.split(split))
    with np.load(tmp_path / "d.npz") as file:
        assert sorted(file.files) == ["adjacency", "made", "mean", "node_ids", "std", "test", "train", "val"]
        assert file["mean"] == pytest.approx(tiny.train.mean(axis=0), rel=1e-14)
        assert file["std"] == pytest.approx(tiny.train.std(axis=0), rel=1e-14)


def test_an_export_keeps_what_was_filled_the_times_and_the_unit(files, tiny):
    name = edited(files, lambda frame: frame.mask(np.eye(60, 7, k=1).astype(bool)))
    data = load(files, name, fill="linear", unit="mph")
    write_dataset(files / "d.npz", data)
    again = grcd.load_dataset(files / "d.npz")
    assert again.unit == "mph"
    for split in ("train", "val", "test"):
        assert np.array_equal(again.filled[split], data.filled[split])
        assert np.array_equal(again.times[split], data.times[split])
        assert np.array_equal(again.split(split), data.split(split))


def test_the_order_of_columns_does_not_matter(files, tiny):
    shuffled = edited(files, lambda frame: frame.iloc[:, [3, 6, 1, 0, 2, 5, 4]])
    one, other = load(files), load(files, shuffled)
    assert np.array_equal(everything(one), tiny.train)
    assert np.array_equal(everything(other), tiny.train)
    assert one.graph.hash == other.graph.hash
    assert [len(one.split(split)) for split in ("train", "val", "test")] == [42, 6, 12]
    assert str(one.times["val"][0])[:13] == "2024-01-02T18"


def test_nodes_that_do_not_match_are_named_or_dropped_on_request(files, tiny):
    last = tiny.graph.node_ids[-1]
    name = edited(files, lambda frame: frame.rename(columns={last: "stranger"}))
    with pytest.raises(grcd.InputError, match=rf"1 missing \({last}\), 1 unknown \(stranger\)"):
        load(files, name)
    with pytest.warns(InputWarning, match=r"1 of the signals \(stranger\) and 1 of the graph \(station 5\): dropped"):
        data = load(files, name, common=True)
    assert data.graph.node_ids == tiny.graph.node_ids[:-1]
    assert np.array_equal(everything(data), tiny.train[:, :-1])
    assert np.array_equal(data.graph.weights.toarray(), tiny.graph.weights.toarray()[:-1, :-1])


def test_a_graph_without_names_takes_those_of_the_columns_and_says_so(files, tiny):
    np.save(files / "g.npy", tiny.graph.weights.toarray())
    with pytest.warns(InputWarning, match="the graph has no node names"):
        data = grcd.load_dataset(files / "x.csv", files / "g.npy")
    assert data.graph.node_ids == tiny.graph.node_ids
    np.save(files / "x.npy", tiny.train)
    assert grcd.load_dataset(files / "x.npy", files / "g.npz").graph.node_ids == tiny.graph.node_ids


def test_signals_and_graph_may_share_a_file(files, tiny):
    np.savez(
        files / "both.npz", signals=tiny.train, adjacency=tiny.graph.weights.toarray(), node_ids=tiny.graph.node_ids
    )
    assert grcd.load_dataset(files / "both.npz").graph.hash == tiny.graph.hash


def test_a_random_split_and_a_column_that_says_it(files, tiny):
    drawn = load(files, split_by="random", split_seed=3)
    assert not np.array_equal(drawn.train, tiny.train[:42])
    assert sorted(map(tuple, everything(drawn))) == sorted(map(tuple, tiny.train))
    labels = np.array(["train", "val", "test"] * 20)
    name = edited(files, lambda frame: frame.assign(fold=labels))
    data = load(files, name, split_by="fold")
    for k, split in enumerate(("train", "val", "test")):
        assert np.array_equal(data.split(split), tiny.train[k::3])
    with pytest.raises(grcd.InputError, match="without a column 'flod'"):
        load(files, name, split_by="flod")


def test_validation_and_test_signals_from_files_of_their_own(files, tiny):
    reordered = [2, 0, 1, 5, 4, 3]
    write_signals(files / "val.csv", tiny.val[:, reordered], tuple(tiny.graph.node_ids[i] for i in reordered))
    write_signals(files / "test.parquet", tiny.test, tiny.graph.node_ids)
    data = load(files, val=files / "val.csv", test=files / "test.parquet")
    assert np.array_equal(data.train, tiny.train)
    assert np.array_equal(data.val, tiny.val)
    assert np.array_equal(data.test, tiny.test)
    some = load(files, val=files / "val.csv")
    assert np.array_equal(some.train, tiny.train[:46])
    assert np.array_equal(some.test, tiny.train[46:])


def test_caps_are_evenly_spaced(files, tiny):
    data = load(files, cap=(10, 3, 5))
    assert np.array_equal(data.train, tiny.train[:42][[0, 4, 9, 13, 18, 22, 27, 31, 36, 41]])
    assert (len(data.val), len(data.test)) == (3, 5)
    assert [len(load(files, cap=(8,)).split(split)) for split in ("train", "val", "test")] == [8, 6, 8]


def test_gaps_stay_open_by_default_and_are_said_out_loud(files):
    name = edited(files, lambda frame: frame.mask(np.eye(60, 7, k=1).astype(bool)))
    with pytest.warns(InputWarning, match=r"1\.67% of the readings are missing.*trained on what is there"):
        data = load(files, name)
    assert np.isnan(data.train).sum() == 6
    assert np.array_equal(data.observed("train"), ~np.isnan(data.train))
    assert data.observed("test") is None
    filled = load(files, name, fill="forward-backward")
    assert np.array_equal(filled.filled["train"], np.isnan(data.train))
    assert np.array_equal(filled.observed("train"), ~np.isnan(data.train))
    assert not np.isnan(filled.train).any()
    assert filled.facts["missing"] == pytest.approx(6 / 360)


def test_rows_without_a_reading_are_left_out_unless_filled(files):
    def outage(frame):
        frame.iloc[[5, 50], 1:] = np.nan
        return frame

    name = edited(files, outage)
    with pytest.warns(InputWarning, match="2 rows have no reading at all: left out of single rows"):
        data = load(files, name)
    assert [len(data.split(split)) for split in ("train", "val", "test")] == [41, 6, 11]
    assert len(load(files, name, fill="linear").train) == 42


def test_zeros_that_look_like_a_marker_get_a_warning_that_names_the_option(files, tiny):
    name = edited(files, _zeros)
    with pytest.warns(InputWarning, match="--missing 0"):
        load(files, name)
    with pytest.warns(InputWarning) as said:
        data = load(files, name, missing=[0])
    assert not any("--missing" in str(entry.message) for entry in said)
    assert data.facts["missing"] == pytest.approx(10 / 360)


def _zeros(frame):
    frame.iloc[:, 1:] = frame.iloc[:, 1:].abs() + 100.0  # never near zero, but for a spell
    frame.iloc[20:30, 2] = 0.0
    return frame


@pytest.mark.parametrize(
    ("fill", "split_by"),
    [
        ("none", "chronological"),
        ("none", "random"),
        ("linear", "chronological"),
        ("mean", "random"),
        ("forward-backward", "chronological"),
    ],
)
def test_nothing_in_the_test_data_changes_a_trained_model(files, tiny, quick, fill, split_by):
    """By default, with enough validation signals for a plan: weights, reference, plan and samples stay the same."""
    frame = pd.DataFrame(conftest.signals(tiny.graph, 300, 5), columns=tiny.graph.node_ids)
    frame.insert(0, "time", pd.date_range("2024-01-01", periods=300, freq="h"))
    gaps = np.random.RandomState(0).rand(300, 7) < 0.1
    gaps[:, 0] = False
    frame = frame.mask(gaps)
    frame.to_csv(files / "holes.csv", index=False)
    held_out = np.r_[240:300] if split_by == "chronological" else splits.drawn(300, 0)["test"]
    frame.iloc[held_out, 1:] = np.random.RandomState(1).standard_normal((60, 6))
    frame.to_csv(files / "other.csv", index=False)
    models, tests = [], []
    for name in ("holes.csv", "other.csv"):
        data = load(files, name, fill=fill, split_by=split_by, cap=(60, 30, 10))
        models.append(grcd.GRCD(data.graph, device="cpu", **quick).fit(data.train, data.val))
        tests.append(data.test)
    assert not np.isclose(*tests).any()
    one, other = (model.trained.tensors() for model in models)  # the network, the reference, the graph
    assert all((one[key] == other[key]).all() for key in one)
    assert one.keys() == other.keys() > {"reference.v"}
    assert {**models[0].result, "seconds": 0} == {**models[1].result, "seconds": 0}
    assert models[0].plan == models[1].plan != {}
    assert np.array_equal(models[0].sample(5, seed=1), models[1].sample(5, seed=1))


OTHER_VALIDATION = (lambda val: val, lambda val: val[::-1] * 1.5 - 3.0)


@pytest.mark.parametrize("method", ["grcd-exponential", "grcd-full"])
def test_validation_data_decide_which_update_is_kept_and_how_it_samples_and_nothing_else(tiny, quick, tmp_path, method):
    logs, models = [], []
    for k, other in enumerate(OTHER_VALIDATION):
        run = tmp_path / str(k)
        model = grcd.GRCD(tiny.graph, method, device="cpu", **quick)
        models.append(model.fit(tiny.train, other(tiny.val), run=run))
        logs.append([json.loads(line)["train"] for line in (run / "metrics.jsonl").read_text().splitlines()])
    assert logs[0] == logs[1]  # the training losses, to the last digit
    tensors = [model.trained.tensors() for model in models]
    one, other = ({k: t for k, t in each.items() if not k.startswith(("network", "plain"))} for each in tensors)
    assert one.keys() == other.keys() > {"reference.v"}
    assert all((one[key] == other[key]).all() for key in one)
    assert (tensors[0]["plain.C0"] != tensors[1]["plain.C0"]).any()  # of all rows: nothing is bound to it
    assert np.array_equal(models[0].normalizer.mean, models[1].normalizer.mean)
    assert models[0].result["val"] != models[1].result["val"]
    last = [json.loads((tmp_path / str(k) / "run.json").read_text())["result"]["updates"] for k in range(2)]
    assert last == [60, 60]


def test_with_the_default_other_validation_data_of_the_same_kind_leave_training_as_it_is(tiny, sides, quick, tmp_path):
    """They have a say in how many components there are, which is the same here, and then only in what is kept."""
    logs, models = [], []
    for k, val in enumerate((sides[1], sides[1][:30])):
        run = tmp_path / str(k)
        models.append(grcd.GRCD(tiny.graph, device="cpu", **quick).fit(sides[0], val, run=run))
        logs.append([json.loads(line)["train"] for line in (run / "metrics.jsonl").read_text().splitlines()])
    assert len(models[0].reference.parts) == len(models[1].reference.parts) == 2
    one, other = ({k: t for k, t in model.trained.tensors().items() if k.startswith("reference")} for model in models)
    assert all((one[key] == other[key]).all() for key in one)
    assert logs[0] == logs[1]
    assert models[0].result["val"] != models[1].result["val"]


def test_with_one_validation_any_validation_data_leave_the_same_model(tiny, quick):
    once = {**quick, "validate_every": quick["max_updates"]}  # the only update that can be kept is the last
    one, other = (
        grcd.GRCD(tiny.graph, "grcd-exponential", device="cpu", **once).fit(tiny.train, other(tiny.val))
        for other in OTHER_VALIDATION
    )
    assert one.result["val"] != other.result["val"]
    assert np.array_equal(one.sample(5), other.sample(5))


def test_how_the_data_and_the_graph_were_made_is_written_into_the_run(files, quick):
    data = load(files, missing=[-99], fill="linear")
    model = grcd.GRCD(data.graph, device="cpu", **quick)
    model.fit(data.train, data.val, run=files / "run", name=data.name, about=data.facts)
    manifest = json.loads((files / "run/run.json").read_text())
    assert manifest["data"]["made"]["fill"] == "linear"
    assert manifest["data"]["made"]["markers"] == [-99.0]
    assert "g.npz" in manifest["graph"]["origin"]


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("x.csv", {"fil": "mean"}, "option 'fil'.*\n.*\n.*did you mean 'fill'"),
        ("x.csv", {"fill": "spline"}, "fill policy 'spline'"),
        ("x.csv", {"cap": (1,)}, "cap ="),
        ("x.csv", {"cap": (5, 5)}, "cap ="),
        ("sbm-c16", {"fill": "mean"}, "--fill for the built-in sbm-c16"),
        ("sbm-c61", {}, "dataset 'sbm-c61'"),
        ("nothing.csv", {}, "no file"),
    ],
)
def test_what_the_user_can_correct(files, source, options, message):
    source = files / source if "." in source else source
    graph = None if "sbm" in str(source) else files / "g.npz"
    with pytest.raises(grcd.InputError, match=message):
        grcd.load_dataset(source, graph, **options)


def test_signals_without_a_graph(files):
    with pytest.raises(grcd.InputError, match="without a graph"):
        grcd.load_dataset(files / "x.csv")


def test_an_array_without_a_graph_is_not_printed_in_the_message():
    with pytest.raises(grcd.InputError) as raised:
        grcd.load_dataset(np.arange(12.0).reshape(4, 3))
    assert raised.value.got == "signals without a graph"


def test_infinite_readings_are_refused(files):
    def infinite(frame):
        frame.iloc[3, 2] = np.inf
        return frame

    with pytest.raises(grcd.InputError, match="infinite"):
        load(files, edited(files, infinite))


# -- what a review found -----------------------------------------------------------------------------------------------


def _edges(path, edges):
    pd.DataFrame(edges, columns=["source", "target", "weight"]).to_csv(path, index=False)
    return path


def test_a_graph_whose_names_are_numbers_is_matched_by_name_all_the_same(tmp_path):
    x = np.random.RandomState(0).standard_normal((30, 3))
    write_signals(tmp_path / "x.csv", x, ("1", "2", "3"))
    for edges in ([(0, 1, 1), (1, 2, 5)], [(1, 2, 5), (0, 1, 1)]):
        with pytest.raises(grcd.InputError, match=r"1 missing \(0\), 1 unknown \(3\)"):
            grcd.load_dataset(tmp_path / "x.csv", _edges(tmp_path / "g.csv", edges))


def test_files_of_their_own_need_every_node_by_name(tmp_path, tiny):
    np.save(tmp_path / "x.npy", tiny.train)
    np.save(tmp_path / "g.npy", tiny.graph.weights.toarray())
    write_signals(tmp_path / "val.csv", tiny.val, tiny.graph.node_ids)  # names that the other two lack
    with pytest.raises(grcd.InputError, match=r"val\.csv with nodes that do not match"):
        grcd.load_dataset(tmp_path / "x.npy", tmp_path / "g.npy", val=tmp_path / "val.csv")


def test_common_nodes_in_files_of_their_own(files, tiny):
    names = tiny.graph.node_ids
    write_signals(files / "more.csv", np.c_[tiny.val, tiny.val[:, 0]], (*names, "extra"))
    with pytest.warns(InputWarning, match=r"1 of the signals \(extra\): dropped"):
        data = load(files, val=files / "more.csv", common=True)
    assert np.array_equal(data.val, tiny.val)
    write_signals(files / "less.csv", tiny.val[:, :-1], names[:-1])
    with pytest.raises(grcd.InputError, match=rf"1 missing \({names[-1]}\)"):
        load(files, val=files / "less.csv", common=True)


def test_a_file_called_like_a_dataset_is_warned_of_like_any_other(files):
    edited(files, _zeros, "metr-la.csv")
    with pytest.warns(InputWarning, match="--missing 0"):
        load(files, "metr-la.csv")


def test_zeros_are_looked_for_after_other_markers_are_gone(files):
    def marked(frame):
        frame = _zeros(frame)
        frame.iloc[40:44, 3] = -1.0
        return frame

    with pytest.warns(InputWarning, match=r"2\.8% of the readings are exactly 0"):  # 10 of 356
        load(files, edited(files, marked), missing=-1)


def test_an_export_says_how_it_was_made_and_so_does_a_run_on_it(files, quick):
    np.savez(files / "directed.npz", adjacency=np.triu(np.load(files / "g.npz")["adjacency"]), node_ids=range(6))
    names = [f"station {i}" for i in range(6)]
    np.savez(files / "directed.npz", adjacency=np.triu(np.load(files / "g.npz")["adjacency"]), node_ids=names)
    data = grcd.load_dataset(files / "x.csv", files / "directed.npz", symmetrize="max", unit="mph", fill="linear")
    write_dataset(files / "d.npz", data)
    again = grcd.load_dataset(files / "d.npz")
    assert (again.graph.origin, again.graph.one_way, again.unit) == (data.graph.origin, 7, "mph")
    assert again.facts["fill"] == "linear"
    model = grcd.GRCD(again.graph, device="cpu", **quick).fit(again.train, again.val, about=again.facts)
    assert model.unit == "mph"


def test_times_of_another_kind_in_a_file_of_its_own(files, tiny):
    np.savez(files / "val.npz", signals=tiny.val, node_ids=tiny.graph.node_ids, timestamps=np.arange(30.0))
    with pytest.raises(grcd.InputError, match="times of another kind"):
        load(files, val=files / "val.npz")
    np.savez(files / "val.npz", signals=tiny.val, node_ids=tiny.graph.node_ids)
    with pytest.warns(InputWarning, match="only one of .* has times: they are left out"):
        assert load(files, val=files / "val.npz").times == {}


@pytest.mark.parametrize(
    ("name", "array"),
    [("test_filled", np.zeros((3, 6), dtype=bool)), ("test_filled", np.zeros((40, 6))), ("val_times", np.arange(3))],
)
def test_an_export_whose_parts_do_not_fit_is_refused(tmp_path, tiny, name, array):
    write_dataset(tmp_path / "d.npz", tiny)
    with np.load(tmp_path / "d.npz") as file:
        np.savez(tmp_path / "bad.npz", **dict(file), **{name: array})
    with pytest.raises(grcd.InputError, match="export again"):
        grcd.load_dataset(tmp_path / "bad.npz")


def test_a_straight_line_is_one_in_time(tmp_path):
    frame = pd.DataFrame({"time": [*range(19), 28], "a": np.arange(20.0), "b": np.arange(20.0) ** 2})
    frame.loc[18, "a"] = np.nan  # a reading of 17 at time 17 and of 19 at time 28
    frame.to_csv(tmp_path / "x.csv", index=False)
    W = [[0, 1], [1, 0]]
    data = grcd.load_dataset(tmp_path / "x.csv", W, fill="linear")
    assert data.test[2, 0] == pytest.approx(17 + 2 / 11)


def test_one_number_is_a_list_of_one_and_none_is_none(files, tiny):
    assert len(load(files, cap=10).train) == 10
    assert load(files, missing=0).facts["markers"] == [0.0]
    assert load(files, missing=[np.nan]).facts["markers"] == []
    with pytest.raises(grcd.InputError, match="finite"):
        load(files, missing=[np.inf])
    with pytest.raises(grcd.InputError, match="split column and files"):
        load(files, split_by="fold", val=files / "x.csv")
    assert np.array_equal(grcd.load_dataset(files / "x.csv", tiny.graph).train, tiny.train[:42])


def test_the_same_opened_files_give_the_same_dataset_twice(files):
    from grcd.data.loading import opened

    found = opened(files / edited(files, lambda frame: frame.iloc[:, [3, 6, 1, 0, 2, 5, 4]]), files / "g.npz")
    assert np.array_equal(everything(found.dataset), everything(found.dataset))


def test_arrays_and_frames_are_data_too(tiny):
    frame = pd.DataFrame(tiny.train[::-1], columns=tiny.graph.node_ids).iloc[:, [2, 0, 1, 5, 4, 3]]
    frame.index = pd.date_range("2024-01-01", periods=60, freq="h")[::-1]
    for signals in (tiny.train, frame):
        data = grcd.load_dataset(signals, tiny.graph)
        assert np.array_equal(everything(data), tiny.train)
    assert str(data.times["train"][0])[:13] == "2024-01-01T00"
    for bad in (None, ["a", "b"], np.ones(3), np.ones((0, 6)), {"a": 1}):
        with pytest.raises(grcd.InputError, match=r"one column a node|no file|dataset"):
            grcd.load_dataset(bad, tiny.graph)


def test_a_frame_finds_its_nodes_by_name_in_fit_and_evaluate(tiny, quick):
    mixed = [2, 0, 1, 5, 4, 3]
    train, val = (pd.DataFrame(part, columns=tiny.graph.node_ids).iloc[:, mixed] for part in (tiny.train, tiny.val))
    one = grcd.GRCD(tiny.graph, device="cpu", **quick).fit(tiny.train, tiny.val)
    other = grcd.GRCD(tiny.graph, device="cpu", **quick).fit(train, val)
    x = one.sample(20)
    assert np.array_equal(x[:, mixed], other.sample(20))
    shuffled = pd.DataFrame(x, columns=tiny.graph.node_ids).iloc[:, mixed]
    assert grcd.evaluate(shuffled, tiny) == grcd.evaluate(x, tiny)
    with pytest.raises(grcd.InputError, match="columns that the model does not know: stranger"):
        one.fit(train.rename(columns={"station 5": "stranger"}), val)
    W = pd.DataFrame(tiny.graph.weights.toarray(), index=tiny.graph.node_ids, columns=tiny.graph.node_ids)
    assert grcd.Graph.from_adjacency(W).hash == tiny.graph.hash


def test_nodes_can_be_dropped_on_both_sides(files, tiny):
    write_signals(files / "val.csv", tiny.val, tiny.graph.node_ids)
    data = load(files, drop=["station 1"], val=files / "val.csv")
    kept = [0, 2, 3, 4, 5]
    assert data.graph.node_ids == tuple(tiny.graph.node_ids[i] for i in kept)
    assert np.array_equal(data.val, tiny.val[:, kept])
    assert np.array_equal(data.graph.weights.toarray(), tiny.graph.weights.toarray()[np.ix_(kept, kept)])
    assert "without station 1" in data.graph.origin
    with pytest.raises(grcd.InputError, match="nowhere: station 9"):
        load(files, drop=["station 9"])


def test_names_and_readings_that_are_whole_numbers_are_told_apart_by_the_graph(tmp_path, tiny, monkeypatch, capsys):
    names = [str(773869 + 7 * i) for i in range(6)]
    counts = np.random.RandomState(0).poisson(50, (60, 6))
    graph = grcd.Graph.from_adjacency(tiny.graph.weights.toarray(), names)
    np.savez(tmp_path / "g.npz", adjacency=graph.weights.toarray(), node_ids=names)
    pd.DataFrame(counts, columns=names).to_csv(tmp_path / "x.csv", index=False)
    data = load(tmp_path)
    assert np.array_equal(everything(data), counts)
    data = load(tmp_path, test=tmp_path / "x.csv")
    assert np.array_equal(data.test, counts)
    assert np.array_equal(read_observed(tmp_path / "x.csv", graph).x, counts)
    files = ["--data", tmp_path / "x.csv", "--graph", tmp_path / "g.npz"]
    monkeypatch.setattr(sys, "argv", ["grcd", "evaluate", *map(str, [tmp_path / "x.csv", *files]), "--json"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 0
    assert json.loads(capsys.readouterr().out)["n"] == 60
