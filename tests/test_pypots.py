"""GRCD as PyPOTS' models are: the same calls, the same shapes, the model's own draws."""

import inspect
import warnings

import h5py
import numpy as np
import pytest
from laws import close

import grcd
from grcd.core.errors import InputError, InputWarning
from grcd.data.series import Series

STEPS, FEATURES = 4, 3
QUICK = {"width": 8, "blocks": 1, "heads": 2, "pool": 100, "max_updates": 2, "validate_every": 1, "device": "cpu"}
FAST = {"nfe": 1, "posterior": "reference"}


def samples(count, gaps=0.0, seed=0):
    """(samples, steps, features): lines of their own slope and height, and noise."""
    random = np.random.RandomState(seed)
    lines = random.standard_normal((count, 1, 1)) + random.standard_normal((count, 1, 1)) * np.arange(STEPS)[:, None]
    x = lines * np.arange(1, FEATURES + 1) + 0.1 * random.standard_normal((count, STEPS, FEATURES))
    return np.where(random.random_sample(x.shape) < gaps, np.nan, x)


def trained(*sets):
    model = grcd.pypots.GRCD(STEPS, FEATURES, verbose=False, **QUICK)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)  # whether its network is used is another matter
        assert model.fit(*sets) is None
    return model


@pytest.fixture(scope="module")
def model():
    return trained({"X": samples(120, 0.1)})


def test_what_comes_back_has_the_shapes_of_pypots(model):
    x = samples(7, 0.3, seed=1)
    result = model.predict({"X": x}, **FAST)
    assert {*result} == {"imputation"}
    assert result["imputation"].shape == x.shape
    np.testing.assert_array_equal(model.impute({"X": x}, **FAST), result["imputation"])
    np.testing.assert_array_equal(result["imputation"][~np.isnan(x)], x[~np.isnan(x)])
    draws = model.predict({"X": x}, n_sampling_times=100, **FAST)["imputation"]
    assert draws.shape == (7, 100, STEPS, FEATURES)
    close(np.median(draws, axis=1), result["imputation"])


def test_gaps_are_filled_from_their_own_sample_and_no_other(model):
    x = samples(6, 0.3, seed=2)
    other = x.copy()
    other[3] = samples(1, seed=3)[0]
    one, two = (model.impute({"X": each}, **FAST) for each in (x, other))
    np.testing.assert_array_equal(np.delete(one, 3, axis=0), np.delete(two, 3, axis=0))
    whole = samples(40, seed=4)
    hidden = whole.copy()
    hidden[:, 1, :2] = np.nan
    off = np.abs(model.impute({"X": hidden}, **FAST) - whole)[:, 1, :2].mean()
    assert off < 0.2 * np.abs(whole[:, 1, :2]).mean()


def test_it_is_the_model_on_rows_with_a_border_before_each_sample(model):
    x = samples(5, 0.3, seed=5)
    series = Series(x.reshape(-1, FEATURES, 1), borders=tuple(range(STEPS, 5 * STEPS, STEPS)))
    expected = model.model.impute(series, n=3, **FAST)
    got = model.predict({"X": x}, n_sampling_times=3, **FAST)["imputation"]
    np.testing.assert_array_equal(got, expected.reshape(3, *x.shape).swapaxes(0, 1))


def test_files_and_saved_models_do_as_well(model, tmp_path):
    x = samples(4, 0.3, seed=6)
    with h5py.File(tmp_path / "test.h5", "w") as file:
        file["X"] = x
    model.save(tmp_path / "run")
    again = grcd.pypots.GRCD(STEPS, FEATURES, verbose=False, **QUICK)
    again.load(tmp_path / "run")
    np.testing.assert_array_equal(again.impute(str(tmp_path / "test.h5"), **FAST), model.impute({"X": x}, **FAST))
    with pytest.raises(InputError, match="windows of 4 steps"):
        grcd.pypots.GRCD(STEPS + 1, FEATURES, **QUICK).load(tmp_path / "run")


def test_an_array_is_taken_for_x(model):
    x = samples(7, 0.3, seed=1)
    expected = model.impute({"X": x}, **FAST)
    np.testing.assert_array_equal(model.impute(x, **FAST), expected)
    np.testing.assert_array_equal(model.predict(x.tolist(), **FAST)["imputation"], expected)
    again = trained(samples(120, 0.1))  # as the model was
    np.testing.assert_array_equal(again.impute(x, **FAST), expected)
    beside = trained(samples(40), samples(10, seed=1))
    assert beside.model.result["val"] == trained({"X": samples(40)}, {"X": samples(10, seed=1)}).model.result["val"]


def test_validation_samples_are_taken_whole_where_they_are():
    sets = {"X": samples(40), "val": samples(10, 0.5, seed=1), "whole": samples(10, seed=1)}
    beside = trained({"X": sets["X"]}, {"X": sets["val"], "X_ori": sets["whole"]})
    whole = trained({"X": sets["X"]}, {"X": sets["whole"]})
    assert beside.model.result["val"] == whole.model.result["val"]


def test_the_arguments_come_in_the_order_of_pypots():
    calls = {"fit": ["train_set", "val_set", "file_type"], "predict": ["test_set", "file_type"]}
    calls["impute"] = calls["predict"]
    for name, arguments in calls.items():
        assert [*inspect.signature(getattr(grcd.pypots.GRCD, name)).parameters][1 : len(arguments) + 1] == arguments
    assert [*inspect.signature(grcd.pypots.GRCD).parameters][:2] == ["n_steps", "n_features"]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"Y": samples(4)}, "a data set with Y"),
        ({"X": samples(4)[:, :2]}, r"X of shape \(4, 2, 3\)"),
        ({"X": samples(4)[0]}, "X of shape"),
        (samples(4)[0], r"X of shape \(4, 3\)"),
        (None, r"X of shape \(\)"),
        ({"X": np.full((4, STEPS, FEATURES), np.inf)}, "infinite"),
        ({"X": [["text"]]}, "not all numbers"),
        ("nowhere.h5", "no file"),
    ],
)
def test_data_that_do_not_fit_are_refused(model, data, words):
    with pytest.raises(InputError, match=words):
        model.impute(data)
