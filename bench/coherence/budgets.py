"""Whether a workload stays within its budget, which stands in budgets.json: what an operation may cost on 60 cores.

    python3 -m coherence.budgets PROGRAM WORKLOAD

`misses` are lines moved between cores, `holds` holds of locks that all threads share.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from coherence import measure

TABLE = Path(__file__).with_name("budgets.json")


def tells_nothing(counted: measure.Counted) -> bool:
    """Whether what looks like a very good allocator is a simulation that does not see it."""
    locks = counted.totals["locks"].values()
    return counted.totals["accesses"] == 0 or not any(lock["holds"] for lock in locks)


def over(counted: measure.Counted, budget: dict) -> list[str]:
    """What was exceeded, in words."""
    return [f"{counted.an_operation(name):.4f} {name} an operation; the budget is {budget[name]}"
            for name in ("misses", "holds") if counted.an_operation(name) > budget[name]]


def main(arguments: list[str]) -> int:
    program, workload = arguments
    budget = json.loads(TABLE.read_text())[workload]
    counted = measure.run(Path(program), workload, measure.CORES, budget["operations"])
    if tells_nothing(counted):
        raise measure.Failed(f"{workload}: nothing was seen of its accesses or its locks (src/platform/hold.h)")
    exceeded = over(counted, budget)
    said = ", ".join(f"{counted.an_operation(name):.4f} {name}" for name in ("misses", "holds"))
    print(f"{workload}: {said} an operation, of {counted.totals['operations']:,} operations on {measure.CORES} cores")
    for text in exceeded:
        print(f"{workload}: {text}")
    if exceeded:
        print(f"./dev bench coherence --only {workload} --lines says where the misses come from")
    return 1 if exceeded else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except measure.Failed as error:
        sys.exit(f"coherence: {error}")
