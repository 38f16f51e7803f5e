"""Work on partitions by a worker that is killed on the way, in the middle of writing."""

import os
import signal
from pathlib import Path

from grcd.cli.filling import _impute
from grcd.core.files import whole


def impute(model, files, out, seed, marks, **options):
    """As the command does, the second time."""
    mark = Path(f"{files[0]}.tried")
    if "west" in mark.parts and not mark.exists():
        mark.touch()
        with whole(out) as temporary:
            temporary.write_text("half of it")
            os.kill(os.getpid(), signal.SIGKILL)
    return _impute(model, files, out, seed, marks=marks, **options)
