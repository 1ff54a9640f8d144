"""Work that allocates, and says the same in every run."""

import hashlib
import json
import queue
import random
import re
import threading

TIMES = 200
THREADS = 4


def document(chance: random.Random, depth: int):
    if depth == 0:
        return chance.choice([None, True, chance.random(), chance.randrange(10 ** 30), "x" * chance.randrange(300)])
    if chance.random() < 0.5:
        return [document(chance, depth - 1) for _ in range(chance.randrange(8))]
    return {f"key {number}": document(chance, depth - 1) for number in range(chance.randrange(8))}


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def by_json(seed: int) -> str:
    text = json.dumps(document(random.Random(seed), 5), indent=1)
    assert json.dumps(json.loads(text), indent=1) == text
    return text


def by_expressions(seed: int) -> str:
    chance = random.Random(seed)
    words = " ".join(f"{chance.choice('abc')}{chance.randrange(1000)}-{'z' * chance.randrange(20)}"
                     for _ in range(2000))
    return re.sub(r"(?P<letter>[ab])(\d+)-(z{3,})", lambda found: f"<{found['letter']}{len(found[3])}>", words)


def on_threads() -> list[str]:
    """Blocks made by one thread are freed by another."""
    asked, answered = queue.Queue(), queue.Queue()

    def work():
        while (seed := asked.get()) is not None:
            answered.put((seed, by_json(seed), by_expressions(seed)))

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for seed in range(40):
        asked.put(seed)
    for _ in threads:
        asked.put(None)
    for thread in threads:
        thread.join()
    return [digest(json_text + text) for _, json_text, text in sorted(answered.queue)]


print("json", TIMES, "times", digest("".join(map(by_json, range(TIMES)))))
print("expressions", digest("".join(map(by_expressions, range(20)))))
print(*on_threads(), sep="\n")
print("threads ended", threading.active_count())
print("numbers", digest(hex(pow(3, 30000))))
