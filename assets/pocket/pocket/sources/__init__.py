"""Sources of labelled training screens: web forms, kiosk pages, toolkit windows and MiniWoB++ episodes."""

import os
import pathlib
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[3]  # the repository


def state_dir():
    """Returns the directory of data, runs and logs: $POCKET_STATE, or build/pocket of the repository."""
    return pathlib.Path(os.environ.get("POCKET_STATE", ROOT / "build" / "pocket"))


def pause():
    """Blocks while the file PAUSE exists in the state directory."""
    while (state_dir() / "PAUSE").exists():
        time.sleep(5)
