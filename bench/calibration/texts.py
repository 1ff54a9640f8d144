"""A Python program of the usual kind: texts are written as JSON, read again and searched. Argument: how many rounds."""

import json
import random
import re
import sys

KEPT = 25  # rounds whose results live on
WORDS = [f"word{number}" for number in range(500)]


def record(source: random.Random, number: int) -> dict:
    text = " ".join(source.choices(WORDS, k=30))
    return {"id": number, "text": text, "tags": source.choices(WORDS, k=5), "score": source.random()}


def main(rounds: int) -> None:
    source = random.Random(1)
    kept = []
    for _ in range(rounds):
        lines = [json.dumps(record(source, number)) for number in range(200)]
        records = [json.loads(line) for line in lines]
        found = [re.findall(r"word(\d+)", entry["text"]) for entry in records]
        kept.append((found, [re.sub(r"word(\d)", r"\1-", entry["text"]) for entry in records]))
        if len(kept) > KEPT:
            kept.pop(source.randrange(KEPT))
    print(len(kept))


main(int(sys.argv[1]))
