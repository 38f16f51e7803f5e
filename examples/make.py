"""Make the tutorial's two files: invented stations on a coast, and three months of their hourly temperatures.

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


def main(hours: int = 2160, seed: int = 7) -> None:
    random = np.random.RandomState(seed)
    names = NAMES.split()
    longitude, latitude = -4.8 + 3.2 * random.rand(len(names)), 47.6 + 1.1 * random.rand(len(names))
    inland = (longitude + 4.8) / 3.2  # 0 at the coast
    place = np.stack([longitude * np.cos(np.radians(48.1)), latitude], axis=1)
    gap = np.linalg.norm(place[:, None] - place[None], axis=-1)
    root = np.linalg.cholesky(np.exp(-((gap / 0.6) ** 2)) + 1e-6 * np.eye(len(names)))

    weather, local, windy = np.zeros((hours, len(names))), np.zeros((hours, len(names))), np.zeros(hours)
    for t in range(1, hours):
        windy[t] = windy[t - 1] if random.rand() > 0.05 else 1 - windy[t - 1]
        weather[t] = 0.95 * weather[t - 1] + 0.3 * root @ random.randn(len(names))
        local[t] = 0.8 * local[t - 1] + 0.6 * random.randn(len(names))
    hour, calm = np.arange(hours), (1 - windy)[:, None]
    daily = np.cos(2 * np.pi * (hour % 24 - 15) / 24)[:, None] * (0.5 + inland)
    readings = 9 + weather + daily + (0.15 + 1.85 * calm) * local - 3 * windy[:, None] * (1 - inland)
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
