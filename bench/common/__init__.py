"""What the questions share: whom they ask, how, and what is built and fetched for that."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
