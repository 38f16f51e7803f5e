"""Many files: what comes of them is what the command makes of each, whoever does it, and whoever dies meanwhile."""

import shutil
import socket
import sys
import threading
import warnings
from contextlib import ExitStack, contextmanager, suppress
from importlib import metadata

import commands
import dask
import distributed
import dying
import numpy as np
import pandas as pd
import pytest
import scipy
import torch
from commands import refused
from hypothesis import given
from hypothesis import strategies as st
from laws import examples
from pandas.testing import assert_frame_equal

import grcd
from grcd.cli import filling, many
from grcd.cli.many import Job
from grcd.cluster import partitions, results, workers
from grcd.core.errors import InputError

NAMES = ["part-0.parquet", "part-1.parquet", "west/part-1.parquet"]
HOUR = np.timedelta64(1, "h")
INSIDE = {"processes": False, "protocol": "tcp", "dashboard_address": "127.0.0.1:0"}  # of a cluster in this process


@pytest.fixture(scope="module")
def folder(tmp_path_factory, tiny, fitted, six_hours):
    """A run of moments, one of windows, and three tables with gaps: as `moments` without times, as `rows` with them."""
    path = tmp_path_factory.mktemp("many")
    fitted.save(path / "run")
    six_hours.save(path / "windows")
    random = np.random.RandomState(0)
    for k, name in enumerate(NAMES):
        x = tiny.test[10 * k : 10 * k + 10].copy()
        whole = pd.DataFrame(x, columns=tiny.graph.node_ids)
        x[random.random_sample(x.shape) < 0.2] = np.nan
        frame = pd.DataFrame(x, columns=tiny.graph.node_ids)
        times = pd.Series(np.datetime64("2024-01-01", "ns") + np.arange(10 * k, 10 * k + 10) * HOUR, name="time")
        tables = {"moments": frame, "rows": pd.concat([times, frame], axis=1), "whole": whole}
        for kind, table in tables.items():
            (path / kind / name).parent.mkdir(parents=True, exist_ok=True)
            table.to_parquet(path / kind / name)
    return path


@pytest.fixture(scope="module")
def six_hours(tiny, quick):
    """A model of windows of three rows."""
    times = np.datetime64("2024-01-01", "ns") + np.arange(len(tiny.train)) * HOUR
    frame = pd.DataFrame(tiny.train, index=times, columns=tiny.graph.node_ids)
    small = {"width": 8, "blocks": 1, "max_updates": 2, "validate_every": 2, "pool": 16}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return grcd.GRCD(tiny.graph, window=3, calendar="none", device="cpu", **small).fit(frame)


@pytest.fixture(scope="module")
def scheduler():
    """The address of one with a worker, which is a thread of this process."""
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, memory_limit=None, **INSIDE) as cluster:
        yield cluster.scheduler_address


COMMANDS = {
    "impute": ["impute", "run", "--observed", "moments", "-n", 3, "--quantiles", "0.25,0.75"],
    "impute rows": ["impute", "windows", "--observed", "rows/**/*.parquet", "-n", 3, "--posterior", "reference"],
    "forecast": ["forecast", "windows", "--observed", "rows", "--horizon", 4, "-n", 3],
    "score": ["score", "run", "--observed", "whole/", "--posterior", "reference"],
    "score rows": ["score", "windows", "--observed", "rows", "--nodes"],
}


@pytest.mark.parametrize("which", COMMANDS)
def test_a_partition_is_what_the_command_makes_of_its_file(folder, here, which):
    """With the seed that the partition has."""
    command, out = COMMANDS[which], which.replace(" ", "-")
    done = here(*command, "--seed", 5, "--out", out, cwd=folder)
    assert done.returncode == 0, done.stderr
    place = command.index("--observed") + 1
    kind = str(command[place]).split("/")[0]
    assert f"{out}: 3 files" in done.stdout
    for name in NAMES:
        single = [*command[:place], f"{kind}/{name}", *command[place + 1 :]]
        file = "one.csv" if which.startswith("score") else "one.parquet"
        again = here(*single, "--seed", partitions.seed_of(5, name), "--out", file, "--force", cwd=folder)
        assert again.returncode == 0, again.stderr
        expected = (pd.read_csv if which.startswith("score") else pd.read_parquet)(folder / file)
        actual = pd.read_parquet(folder / out / name)
        if which.startswith("score"):  # as text, which has all digits
            actual = pd.read_csv(_text(actual))
        assert_frame_equal(actual, expected, check_exact=True)


def _text(frame):
    import io

    return io.StringIO(frame.to_csv(index=False))


@pytest.mark.parametrize("which", ["impute", "forecast", "score"])
def test_workers_make_the_same_files_to_the_byte(folder, here, scheduler, which):
    outs = f"{which}-here", f"{which}-there"
    for out, where in zip(outs, ([], ["--scheduler", scheduler]), strict=True):
        done = here(*COMMANDS[which], *where, "--out", out, cwd=folder)
        assert done.returncode == 0, done.stderr
        assert [line.split(":")[0] for line in done.stdout.splitlines()] == [*(f"{out}/{name}" for name in NAMES), out]
    for name in NAMES:
        assert (folder / outs[0] / name).read_bytes() == (folder / outs[1] / name).read_bytes()


def test_samples_come_in_partitions_that_are_alike_whoever_makes_them(folder, here, scheduler, fitted):
    command = ["sample", "run", "-n", 10, "--partitions", 3, "--seed", 1]
    for out, where in (("s-here", []), ("s-there", ["--scheduler", scheduler])):
        assert here(*command, *where, "--out", out, cwd=folder).returncode == 0
    frames = []
    for k, size in enumerate((3, 3, 4)):
        name = f"part-{k:05d}.parquet"
        frames.append(pd.read_parquet(folder / "s-here" / name))
        assert np.array_equal(frames[-1], fitted.sample(size, seed=partitions.seed_of(1, name)))
        assert (folder / "s-here" / name).read_bytes() == (folder / "s-there" / name).read_bytes()
    assert len(np.unique(pd.concat(frames), axis=0)) == 10  # no two partitions have the same noise


def test_the_partition_of_a_killed_worker_is_done_again_and_nothing_is_left_of_it(folder, here, monkeypatch):
    """One of two, while it writes."""
    monkeypatch.chdir(folder)
    shutil.copytree("moments", "mortal")
    command = ["impute", "run", "--observed", "mortal", "-n", 3, "--posterior", "reference"]
    assert here(*command, "--out", "alive", cwd=folder).returncode == 0
    options = {"n": 3, "nfe": None, "posterior": "reference", "levels": [], "ensemble": False, "marks": []}
    options |= {"covariates": None, "every": None, "common": False}
    files = partitions.read("mortal", folder / "killed", 0)
    Job(dying.impute, folder / "run", "cpu", options).each(files, folder / "killed", 0, False, 2, None)
    assert sorted(path.name for path in folder.glob("mortal/**/*.tried")) == ["part-1.parquet.tried"]
    there = (path for path in (folder / "killed").rglob("*") if path.is_file())
    assert sorted(path.relative_to(folder / "killed").as_posix() for path in there) == ["_grcd.json", *NAMES]
    for name in NAMES:
        assert (folder / "alive" / name).read_bytes() == (folder / "killed" / name).read_bytes()


# -- going on ----------------------------------------------------------------------------------------------------------


def test_the_same_command_goes_on_and_another_one_is_refused(folder, here):
    def run(*more):
        return here(*COMMANDS["impute"], "--out", "again", *more, cwd=folder)

    assert run().returncode == 0
    out = folder / "again"
    before = {name: (out / name).stat().st_mtime_ns for name in NAMES}
    (out / NAMES[1]).unlink()
    done = run()
    assert f"{out.name}: 3 files, 2 of which were there already" in done.stdout
    assert [(out / name).stat().st_mtime_ns == before[name] for name in NAMES] == [True, False, True]
    assert "seed is 0 there and 1 here" in refused(run("--seed", 1))
    for name in NAMES:
        assert (out / name).stat().st_mtime_ns >= before[name]
    assert run("--seed", 1, "--force").returncode == 0
    assert not np.array_equal(pd.read_parquet(out / NAMES[0]), pd.read_parquet(folder / "impute-here" / NAMES[0]))


def test_other_input_of_the_same_name_is_refused(folder, here):
    shutil.copytree(folder / "moments", folder / "changing")
    command = ["impute", "run", "--observed", "changing", "-n", 2, "--posterior", "reference", "--out", "changed"]
    assert here(*command, cwd=folder).returncode == 0
    frame = pd.read_parquet(folder / "changing" / NAMES[0])
    frame.iloc[:5].to_parquet(folder / "changing" / NAMES[0])
    assert f"{NAMES[0]} has changed since" in refused(here(*command, cwd=folder))
    shutil.copy(folder / "moments" / NAMES[1], folder / "changing" / "new.parquet")
    (folder / "changing" / NAMES[0]).unlink()
    assert f"{NAMES[0]} is gone" in refused(here(*command, cwd=folder))


def test_what_was_begun_by_nobody_is_not_in_the_way(tmp_path):
    """A command that failed before its first partition leaves a record, and no results."""
    parts = partitions.generated(4, 2, 0)
    with results.Results(tmp_path / "out", {"seed": 0}, parts, False) as first:
        assert first.missing == parts
    with results.Results(tmp_path / "out", {"seed": 1}, parts, False) as second:
        second.place(parts[0]).touch()
        assert second.missing == parts[1:]
        with pytest.raises(InputError, match="another process is at work"):
            results.Results(tmp_path / "out", {"seed": 1}, parts, False)
    with pytest.raises(InputError, match="seed is 1 there and 0 here"):
        results.Results(tmp_path / "out", {"seed": 0}, parts, False)


# -- what ends before it is done ---------------------------------------------------------------------------------------

FILL = ["impute", "run", "--observed", "moments", "-n", 2, "--posterior", "reference"]


BEGUN, OVER = threading.Event(), threading.Event()


def wait(*args, **options):
    """In place of filling a partition, by a worker that is a thread of this process."""
    BEGUN.set()
    OVER.wait(60)
    return "nothing"


@pytest.fixture
def halfway(monkeypatch):
    """Whoever fills a partition in this process has begun, and waits until the test is over."""
    BEGUN.clear()
    OVER.clear()
    monkeypatch.setattr(filling, "_impute", wait)
    yield
    OVER.set()


@contextmanager
def meanwhile(act):
    """In a thread of its own, when a partition has been begun; then whoever waits may go."""

    def run():
        if BEGUN.wait(60):
            act()
        OVER.set()

    thread = threading.Thread(target=run)
    thread.start()
    yield
    thread.join()


def test_a_scheduler_that_goes_meanwhile_is_refused_in_three_lines(folder, halfway, monkeypatch):
    """By a command in a process of its own, of less patience: what Dask's loggers print is not seen in this one."""
    script = "from grcd import cli; from grcd.cluster import workers; workers.PATIENCE = 3.0; cli.main()"
    monkeypatch.setattr(commands, "MAIN", [sys.executable, "-c", script])
    cluster = distributed.LocalCluster(n_workers=1, threads_per_worker=1, memory_limit=None, **INSIDE)
    soon = dask.config.set({"distributed.comm.timeouts.connect": "1s"})  # of a cluster that ends its scheduler again
    with soon, cluster, meanwhile(lambda: cluster.sync(cluster.scheduler.close)):
        done = commands.run(*FILL, "--out", "gone", "--scheduler", cluster.scheduler_address, cwd=folder)
    assert BEGUN.is_set(), done.stderr
    assert refused(done) == (
        "grcd: got a scheduler that has gone\nexpected workers until all is done\n"
        "to fix: start it, and give the same command again: it goes on\n"
    )


@pytest.mark.parametrize(("failures", "words"), [(3, "of which no worker is left"), (0, "ended every worker which")])
def test_workers_that_do_not_come_again_are_refused(folder, here, halfway, monkeypatch, failures, words):
    """The only one is lost with its partition, which is tried again, or is not."""
    monkeypatch.setattr(workers, "LOST", 0.2)
    with dask.config.set({"distributed.scheduler.allowed-failures": failures}):
        cluster = distributed.LocalCluster(n_workers=1, threads_per_worker=1, memory_limit=None, **INSIDE)

    def lose():
        (address,) = cluster.scheduler.workers
        cluster.sync(cluster.scheduler.remove_worker, address, stimulus_id="test")

    with cluster:
        with meanwhile(lose):
            done = here(*FILL, "--out", f"lost-{failures}", "--scheduler", cluster.scheduler_address, cwd=folder)
        assert words in refused(done)


def test_a_worker_that_does_not_see_the_run_is_refused(folder, scheduler, tmp_path):
    """As it is here: there is none under this path, or another one."""
    where, job = workers.Where(scheduler=scheduler), Job(dying.impute, folder / "run", "cpu", {})
    tasks = [
        many._Task(job, str(tmp_path / "run"), str(tmp_path), many._sum(folder / "run")),
        many._Task(job, str(folder / "run"), str(tmp_path), many._sum(folder / "windows")),
    ]
    for task in tasks:
        with pytest.raises(InputError, match="a worker that does not see") as refusal:
            list(workers.each(task, partitions.generated(1, 1, 0), where, "files"))
        assert task.run in refusal.value.got


# -- bad input ---------------------------------------------------------------------------------------------------------

CHANGES = {
    "without station 2": lambda frame: frame.drop(columns="station 2"),
    "with station 7": lambda frame: frame.assign(**{"station 7": 1.0}),
    "without station 2 and with station 7": lambda frame: frame.rename(columns={"station 2": "station 7"}),
}


@pytest.mark.parametrize("differ", CHANGES)
def test_partitions_with_different_columns_are_refused_before_any_work(folder, here, tmp_path, differ):
    shutil.copytree(folder / "moments", tmp_path / "parts")
    last = tmp_path / "parts" / NAMES[2]
    CHANGES[differ](pd.read_parquet(last)).to_parquet(last)
    done = here("impute", folder / "run", "--observed", "parts", "--out", "out", cwd=tmp_path)
    assert f"partitions with different columns: parts/{NAMES[2]} is {differ}, unlike parts/{NAMES[0]}" in refused(done)
    assert not (tmp_path / "out").exists()


def test_partitions_with_different_kinds_of_columns_are_refused_before_any_work(folder, here, tmp_path):
    """Numbers of any kind, times of any kind and an index that is left out are no difference."""
    shutil.copytree(folder / "rows", tmp_path / "parts")
    second, last = (tmp_path / "parts" / name for name in NAMES[1:])
    frame = pd.read_parquet(second)
    frame.assign(time=frame["time"].astype(str)).astype({"station 2": np.float32}).to_parquet(second)
    command = ["impute", folder / "windows", "--observed", "parts", "-n", 2, "--posterior", "reference", "--out"]
    done = here(*command, "kinds", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    frame = pd.read_parquet(last)
    frame.assign(**{"station 2": frame["station 2"].astype(str)}).to_parquet(last)
    message = refused(here(*command, "out", cwd=tmp_path))
    assert "different kinds of columns: 'station 2' holds " in message
    assert f"string in parts/{NAMES[2]} and double in parts/{NAMES[0]}" in message
    assert not (tmp_path / "out").exists()


def test_names_in_a_long_table_may_be_numbers_here_and_text_there(tmp_path):
    """And so may be an index, which is left out."""
    for name, nodes in {"a": [2, 3, 1], "b": ["x", "y", "z"]}.items():
        frame = pd.DataFrame({"time": ["2024-01-01", "2024-01-02", "2024-01-03"], "node": nodes, "value": 1.0})
        frame.set_index(pd.Index(nodes, name="id")).to_parquet(tmp_path / f"{name}.parquet")
    assert len(partitions.read(str(tmp_path), tmp_path.parent / "out", 0)) == 2
    frame.assign(value="low").to_parquet(tmp_path / "b.parquet")
    frame.to_parquet(tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"'value' holds (large_)?string in .*b.parquet and double in .*a.parquet"):
        partitions.read(str(tmp_path), tmp_path.parent / "out", 0)


@pytest.mark.parametrize(
    ("index", "advice"),
    [
        (
            pd.Index([5, 7, 1]),
            "__index_level_0__ is the index that pandas keeps: write all of them with to_parq",
        ),
        (pd.date_range("2024", periods=3), "__index_level_0__ is an index that has no name: give it the same one in a"),
    ],
    ids=["numbers", "times"],
)
def test_an_index_that_some_partitions_have_comes_with_advice_that_helps(tmp_path, index, advice):
    """Without an index of times the times are gone."""
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0]})
    frame.to_parquet(tmp_path / "b.parquet")
    frame.set_index(index).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"b.parquet is without __index_level_0__") as refusal:
        partitions.read(str(tmp_path), tmp_path.parent / "out", 0)
    assert refusal.value.do.startswith(advice)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--observed", "moments/part-0.parquet", "--workers", 2, "--out", "x"], "for many workers"),
        (["--observed", "moments", "--workers", 0, "--out", "x"], "workers = 0"),
        (["--observed", "moments", "--workers", 1, "--scheduler", "tcp://x:1", "--out", "x"], "one of them"),
        (["--observed", "moments", "--out", "moments"], "within moments, which is read"),
        (["--observed", "moments", "--out", "moments/filled"], "within moments, which is read"),
        (["--observed", "moments", "--out", "run"], "which holds"),
        (["--observed", "moments", "--out", "run/run.json"], "which is a file"),
        (["--observed", "mome*.csv", "--out", "x"], "no file that matches mome*.csv"),
        (["--observed", "run/*", "--out", "x"], "among many files"),
        (["--observed", "run", "--out", "x"], "no .parquet file in run"),
    ],
)
def test_what_cannot_be_done_is_refused(folder, here, options, words):
    assert words in refused(here("impute", "run", *options, cwd=folder))
    assert not (folder / "x").exists() or not [*(folder / "x").glob("**/*.parquet")]


def test_samples_of_many_workers_want_partitions_and_scores_a_folder(folder, here):
    assert "add --partitions P" in refused(here("sample", "run", "--workers", 2, "--out", "x.npz", cwd=folder))
    assert "partitions = 11" in refused(here("sample", "run", "-n", 10, "--partitions", 11, "--out", "x", cwd=folder))
    assert "without --out" in refused(here("score", "run", "--observed", "whole", cwd=folder))


def test_a_scheduler_that_does_not_answer_or_has_no_workers_is_refused(folder, here, monkeypatch):
    monkeypatch.setattr(workers, "PATIENCE", 0.3)
    command = ["impute", "run", "--observed", "moments", "--out", "nobody", "--scheduler"]
    assert "tcp://127.0.0.1:9, where no scheduler answers" in refused(here(*command, "tcp://127.0.0.1:9", cwd=folder))
    assert "nonsense://, where no scheduler answers" in refused(here(*command, "nonsense://", cwd=folder))
    with distributed.LocalCluster(n_workers=0, **INSIDE) as cluster:
        assert "which has no workers" in refused(here(*command, cluster.scheduler_address, cwd=folder))


@contextmanager
def stranger(words):
    """The address of one who accepts, and says this and no more."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve():
            with suppress(OSError), ExitStack() as accepted:  # until it is shut down
                while True:
                    accepted.enter_context(listening.accept()[0]).sendall(words)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"tcp://127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (b"", "no answer in 0.3 seconds"),
        (b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", "what is there speaks otherwise"),
        (bytes(64), "what is there speaks otherwise"),
    ],
    ids=["silent", "HTTP", "zeros"],
)
def test_an_address_where_something_else_listens_is_refused(folder, here, monkeypatch, words, why):
    """Whether it is silent, or speaks; and no thread is left that would keep the process."""
    monkeypatch.setattr(workers, "PATIENCE", 0.3)
    before = {*threading.enumerate()}
    with stranger(words) as address:
        message = refused(here(*FILL, "--out", "nobody", "--scheduler", address, cwd=folder))
    assert f"{address}, where no scheduler answers ({why})" in message
    assert "8787 is that of its dashboard" in message
    assert all(thread.daemon for thread in {*threading.enumerate()} - before)


def test_an_address_of_another_kind_is_refused(folder, here, scheduler):
    with distributed.Client(scheduler) as client:
        (worker,) = client.scheduler_info()["workers"]
    for address, why in {"": "missing port", "tls://127.0.0.1:9": "TLS expects", worker: "Worker."}.items():
        message = refused(here(*FILL, "--out", "nobody", "--scheduler", address, cwd=folder))
        assert f"{address or repr(address)}, where no scheduler answers ({why}" in message


def test_what_a_worker_refuses_is_said_as_here(folder, here, scheduler):
    command = ["impute", "run", "--observed", "moments", "--posterior", "nonsense", "--out", "wrong"]
    one, other = (refused(here(*command, *more, cwd=folder)) for more in ([], ["--scheduler", scheduler]))
    assert one == other
    assert "posterior 'nonsense'" in one


def test_without_dask_the_extra_is_named(folder, here, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    done = here("impute", "run", "--observed", "moments", "--workers", 2, "--out", "undone", cwd=folder)
    assert 'pip install "grcd[cluster]"' in refused(done)


def test_workers_with_other_versions_are_refused(folder, here, scheduler, monkeypatch):
    monkeypatch.setattr(workers, "_versions", lambda: {"grcd": "0.0", "torch": "1.0"})
    command = ["impute", "run", "--observed", "moments", "--out", "undone", "--scheduler", scheduler]
    assert "expected what is here: grcd 0.0, torch 1.0" in refused(here(*command, cwd=folder))


def test_what_a_worker_cannot_say_is_refused(folder, here, scheduler, monkeypatch):
    """One without grcd cannot be asked."""

    def there():
        raise ModuleNotFoundError("No module named 'grcd'")

    known = workers._versions()
    monkeypatch.setattr(workers, "_versions", lambda: known)
    monkeypatch.setattr(workers, "_versions_there", there)
    message = refused(here(*FILL, "--out", "undone", "--scheduler", scheduler, cwd=folder))
    assert "which does not say its versions (No module named 'grcd')" in message


def test_versions_are_those_that_the_order_of_elimination_depends_on_too(monkeypatch):
    for name in ("pymetis", "scipy"):
        assert workers._versions()[name] == metadata.version(name)
    monkeypatch.setitem(sys.modules, "pymetis", None)
    assert workers._versions() == {
        "grcd": grcd.__version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "pymetis": "none",
    }


# -- laws --------------------------------------------------------------------------------------------------------------


@examples(40)
@given(n=st.integers(1, 500), count=st.integers(1, 40), seed=st.integers(0, 2**63 - 1))
def test_samples_are_shared_out_evenly_with_seeds_of_their_own(n, count, seed):
    count = min(n, count)
    parts = partitions.generated(n, count, seed)
    sizes = [part.own["n"] for part in parts]
    assert sum(sizes) == n
    assert max(sizes) - min(sizes) <= 1
    assert len({part.seed for part in parts}) == len({part.name for part in parts}) == count
    assert all(0 <= part.seed < 2**63 for part in parts)
