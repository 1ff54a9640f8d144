"""How many cores an allocator keeps busy: a queueing model, fed with what was counted.

It is a discrete-event simulation of cores that share one lock. Each works for a while (the program, the allocator's
instructions outside the lock, and its misses there), asks for the lock, holds it, and begins again. Who finds it held
tries again as platform::back_off has it: it spins, then yields, then sleeps. All cases of a table are simulated side by
side, a row of an array each; a step is one hold in every row.

A miss that the core waits for (a read, or a read-modify-write) takes its whole time; of those that only write, several
are under way at a time. The model takes all shared locks for one, and has any number of cores miss as often as 60. The
program does next to nothing between its operations: one that works in between keeps more cores busy.
"""

from dataclasses import dataclass

import numpy as np

CORES = (8, 16, 36, 64, 128)
MISS_NS = (50.0, 100.0, 150.0)

NS_PER_INSTRUCTION = 1 / 3  # one a cycle at 3 GHz: a core's own memory is not always near
WRITES_AT_A_TIME = 4

# platform::back_off (src/platform/linux/thread.cpp): so many pauses, so many yields, then sleeps. How long each takes
# where nothing else wants to run; a sleep of 50 microseconds has the kernel's 50 of slack, and the way back.
SPINS, SPIN_NS = 64, 52.0
YIELDS, YIELD_NS = 32, 350.0
SLEEP_NS = 105_000.0

STEPS = 5_000
UNSETTLED = 1_000  # the first steps, which do not count


@dataclass(frozen=True)
class Load:
    """What an operation asks of a core, and a hold of the lock."""

    instructions: float
    misses_outside: float  # in those that the core waits for; so below
    holds: float
    hold_instructions: float = 0
    hold_misses: float = 0

    def alone_ns(self) -> float:
        """An operation on the only core there is: no line moves, and the lock is free."""
        return self.instructions * NS_PER_INSTRUCTION

    def think_ns(self, miss_ns: float) -> float:
        """An operation's time outside the lock."""
        outside = self.instructions - self.holds * self.hold_instructions
        return max(outside, 0) * NS_PER_INSTRUCTION + self.misses_outside * miss_ns

    def hold_ns(self, miss_ns: float) -> float:
        return self.hold_instructions * NS_PER_INSTRUCTION + self.hold_misses * miss_ns


def in_turn(misses: int, stalls: int) -> float:
    """How many misses one after another take as long."""
    return stalls + (misses - stalls) / WRITES_AT_A_TIME


def load_of(totals: dict, instructions: float) -> Load:
    """Of a run's counts, and the instructions of an operation. Those within holds are told by their accesses."""
    operations, holds = totals["operations"], totals["holds"]
    an_access = instructions / (totals["accesses"] / operations)
    all_misses = in_turn(totals["misses"], totals["stalls"])
    in_holds = in_turn(totals["hold_misses"], totals["hold_stalls"])
    return Load(instructions=instructions,
                misses_outside=(all_misses - in_holds) / operations,
                holds=holds / operations,
                hold_instructions=an_access * totals["hold_accesses"] / holds if holds else 0,
                hold_misses=in_holds / holds if holds else 0)


def next_try(asked: np.ndarray, free_at: np.ndarray) -> np.ndarray:
    """When those who asked for the lock at `asked` first find it free: by the way they back off."""
    waited = free_at - asked
    spinning = SPINS * SPIN_NS
    yielding = spinning + YIELDS * YIELD_NS
    later = np.where(waited <= spinning, np.ceil(waited / SPIN_NS) * SPIN_NS,
                     np.where(waited <= yielding, spinning + np.ceil((waited - spinning) / YIELD_NS) * YIELD_NS,
                              yielding + np.ceil((waited - yielding) / SLEEP_NS) * SLEEP_NS))
    return asked + np.where(waited <= 0, 0, later)


def holds_a_ns(think_ns: np.ndarray, hold_ns: np.ndarray, miss_ns: np.ndarray, cores: np.ndarray,
               seed: int = 1) -> np.ndarray:
    """How often the lock is held, for each row. `think_ns` is the time between two holds of a core."""
    random = np.random.default_rng(seed)
    rows = np.arange(len(cores))
    there = np.arange(cores.max()) < cores[:, None]
    asked = np.where(there, random.exponential(size=there.shape) * think_ns[:, None], np.inf)
    free_at = np.zeros(len(cores))
    settled = free_at
    for step in range(STEPS):
        tries = np.where(there, next_try(np.where(there, asked, 0), free_at[:, None]), np.inf)
        who = tries.argmin(axis=1)
        begins = tries[rows, who]
        # The line of a lock that others look at has to come back before it can be released.
        looked_at = np.where(begins > asked[rows, who], miss_ns, 0)
        free_at = begins + hold_ns * (0.5 + 0.5 * random.exponential(size=len(cores))) + looked_at
        asked[rows, who] = free_at + think_ns * random.exponential(size=len(cores))
        if step == UNSETTLED - 1:
            settled = free_at
    return (STEPS - UNSETTLED) / (free_at - settled)


def useful_cores(loads: list[Load], cores: tuple = CORES, miss_ns: tuple = MISS_NS) -> np.ndarray:
    """How many times the work of one core all of them do: [load, cost of a miss, number of cores]."""
    shape = (len(loads), len(miss_ns), len(cores))
    at = [(load, cost, count) for load in loads for cost in miss_ns for count in cores]
    alone = np.array([load.alone_ns() for load, _, _ in at])
    think = np.array([load.think_ns(cost) for load, cost, _ in at])
    hold = np.array([load.hold_ns(cost) for load, cost, _ in at])
    holds = np.array([load.holds for load, _, _ in at])
    count = np.array([number for _, _, number in at])
    speedup = count * alone / think  # of those that hold no lock
    locked = holds > 0
    if locked.any():
        rate = holds_a_ns(think[locked] / holds[locked], hold[locked],
                          np.array([cost for _, cost, _ in at])[locked], count[locked])
        speedup[locked] = rate / holds[locked] * alone[locked]
    return speedup.reshape(shape)
