"""diffprivlib 0.6.6 in an environment of its own, beside scikit-learn 1.7."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

__all__ = ["python_of_diffprivlib"]

_HOME = Path(".venv-diffprivlib")


def python_of_diffprivlib() -> str:
    """The interpreter of that environment, which is made when it is not there."""
    python = _HOME / "bin/python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(_HOME)], check=True)
        subprocess.run(
            [str(python), "-m", "pip", "install", "-q", "diffprivlib==0.6.6", "scikit-learn==1.7.*"], check=True
        )
    return str(python)
