"""Make the tutorial's two files: invented stations on a coast, and two months of their hourly temperatures.

Nothing here was measured. A daily cycle, a field of weather that is correlated in space and time, calm and windy spells
that change how much the coast differs from the inland, readings rounded to a tenth of a degree, and gaps: single ones,
and a station that was out for five days.
"""

from pathlib import Path

import numpy as np
import pandas as pd

NAMES = "Alder Birch Cedar Dune Elm Fern Gorse Heath Iris Juniper Kelp Larch Maple Nettle Oak Pine Quince Reed Sedge"
NAMES += " Thyme"
HERE = Path(__file__).parent


def main(hours: int = 1440, seed: int = 7) -> None:
    random = np.random.RandomState(seed)
    names = NAMES.split()
    longitude, latitude = -4.8 + 3.2 * random.rand(len(names)), 47.6 + 1.1 * random.rand(len(names))
    inland = (longitude + 4.8) / 3.2  # 0 at the coast
    place = np.stack([longitude * np.cos(np.radians(48.1)), latitude], axis=1)
    gap = np.linalg.norm(place[:, None] - place[None], axis=-1)
    root = np.linalg.cholesky(np.exp(-((gap / 0.6) ** 2)) + 1e-6 * np.eye(len(names)))

    weather, windy, level = np.zeros((hours, len(names))), np.zeros(hours), 0.0
    for t in range(1, hours):
        windy[t] = windy[t - 1] if random.rand() > 0.02 else 1 - windy[t - 1]
        level = 0.995 * level + 0.25 * random.randn()
        weather[t] = 0.93 * weather[t - 1] + 0.45 * root @ random.randn(len(names))
    hour = np.arange(hours)
    daily = np.cos(2 * np.pi * (hour % 24 - 15) / 24)[:, None] * (1.0 + 2.5 * inland)
    calm = (1 - windy)[:, None]
    readings = 9 + level + weather + daily * (0.35 + 0.65 * calm) - 2.5 * windy[:, None] * (1 - inland)
    readings += 0.15 * random.randn(*readings.shape)
    readings[random.rand(*readings.shape) < 0.02] = np.nan
    readings[700:820, names.index("Reed")] = np.nan

    times = pd.date_range("2024-03-01", periods=hours, freq="h").strftime("%Y-%m-%d %H:%M")
    frame = pd.DataFrame(np.round(readings, 1), columns=names)
    frame.insert(0, "time", times)
    frame.to_csv(HERE / "readings.csv", index=False, lineterminator="\n")
    stations = pd.DataFrame({"station": names, "longitude": np.round(longitude, 4), "latitude": np.round(latitude, 4)})
    stations.sort_values("longitude").to_csv(HERE / "stations.csv", index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
