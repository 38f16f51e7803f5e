"""Files: what is written can be read back to the bit, and columns find their nodes by name."""

import numpy as np
import pytest

import grcd
from grcd.data.tables import open_dataset, read_graph, read_signals, write_dataset, write_signals


@pytest.mark.parametrize("ending", ["npz", "csv", "parquet", "nc"])
def test_signals_come_back_to_the_bit_with_their_names(tmp_path, ending):
    x = np.random.RandomState(0).standard_normal((5, 3)) * [1e-9, 1.0, 1e9]
    names = ("north", "17", "Brest-Guipavas")
    write_signals(tmp_path / f"x.{ending}", x, names)
    values, ids = read_signals(tmp_path / f"x.{ending}")
    assert np.array_equal(values, x)
    assert tuple(ids) == names


def test_an_exported_dataset_is_the_dataset(tmp_path, tiny):
    write_dataset(tmp_path / "d.npz", tiny)
    again = open_dataset(str(tmp_path / "d.npz"))
    assert again.graph.hash == tiny.graph.hash
    for split in ("train", "val", "test"):
        assert np.array_equal(again.split(split), tiny.split(split))
    with np.load(tmp_path / "d.npz") as file:
        assert sorted(file.files) == ["adjacency", "mean", "node_ids", "std", "test", "train", "val"]
        assert np.array_equal(file["mean"], tiny.train.mean(axis=0))
        assert np.array_equal(file["std"], tiny.train.std(axis=0))


def test_the_order_of_columns_does_not_matter(tmp_path, tiny):
    order = [2, 0, 1, 5, 4, 3]
    np.savez(tmp_path / "g.npz", adjacency=tiny.graph.weights.toarray(), node_ids=tiny.graph.node_ids)
    write_signals(tmp_path / "x.csv", tiny.train[:, order], tuple(tiny.graph.node_ids[i] for i in order))
    data = open_dataset(str(tmp_path / "x.csv"), str(tmp_path / "g.npz"))
    assert np.array_equal(np.concatenate([data.train, data.val, data.test]), tiny.train)
    assert (len(data.train), len(data.val), len(data.test)) == (42, 6, 12)  # 70 / 10 / 20 % of 60, in time order


def test_nodes_that_do_not_match_are_named(tmp_path, tiny):
    np.savez(tmp_path / "g.npz", adjacency=tiny.graph.weights.toarray(), node_ids=tiny.graph.node_ids)
    write_signals(tmp_path / "x.csv", tiny.train, (*tiny.graph.node_ids[:-1], "stranger"))
    with pytest.raises(grcd.InputError, match=rf"1 missing \({tiny.graph.node_ids[-1]}\), 1 unknown \(stranger\)"):
        open_dataset(str(tmp_path / "x.csv"), str(tmp_path / "g.npz"))


@pytest.mark.parametrize("named_rows", [False, True])
def test_an_adjacency_in_a_csv_has_a_header_of_names(tmp_path, named_rows):
    rows = ["a,b,c", "0,2,0", "2,0,0.5", "0,0.5,0"]
    if named_rows:
        rows = [f"{name},{row}" for name, row in zip(["node", "a", "b", "c"], rows, strict=True)]
    (tmp_path / "g.csv").write_text("\n".join(rows) + "\n")
    graph = read_graph(tmp_path / "g.csv")
    assert graph.node_ids == ("a", "b", "c")
    assert np.array_equal(graph.weights.toarray(), [[0, 2, 0], [2, 0, 0.5], [0, 0.5, 0]])


def test_a_directed_adjacency_needs_to_be_told_how_to_become_symmetric(tmp_path):
    np.save(tmp_path / "g.npy", [[0.0, 1.0], [0.0, 0.0]])
    with pytest.raises(grcd.InputError, match="asymmetric"):
        read_graph(tmp_path / "g.npy")
    assert read_graph(tmp_path / "g.npy", "half-sum").weights[0, 1] == 0.5
    assert read_graph(tmp_path / "g.npy", "max").weights[0, 1] == 1.0


def _text_column(path):
    path.write_text("time,a,b\nmonday,1,2\n")


def _truncated(path):
    np.savez(path, signals=np.ones((100, 3)))
    path.write_bytes(path.read_bytes()[:200])


@pytest.mark.parametrize(
    ("name", "make", "message"),
    [
        ("x.csv", _text_column, "columns that are not numbers: time"),
        ("x.csv", lambda path: path.write_text(""), "cannot be read"),
        ("x.npz", _truncated, "cannot be read"),
        ("x.npz", lambda path: np.savez(path, other=np.ones(3)), "an array `signals`"),
        ("x.npy", lambda path: np.save(path, np.array([{}], dtype=object)), "cannot be read"),
        ("x.parquet", lambda path: path.write_text("no"), "cannot be read"),
        ("x.nc", lambda path: path.write_text("no"), "cannot be read"),
        ("x.xlsx", lambda path: path.write_text("no"), r"expected one of \.npz, \.csv"),
        ("x.csv", lambda path: None, "no file"),
    ],
)
def test_files_that_cannot_be_read_say_so(tmp_path, name, make, message):
    make(tmp_path / name)
    with pytest.raises(grcd.InputError, match=message):
        read_signals(tmp_path / name)
