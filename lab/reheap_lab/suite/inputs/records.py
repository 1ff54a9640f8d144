"""What scripts do: records are read, searched, grouped, sorted and written. The same in each language of the suite."""

import json
import re
import sys

for _ in range(int(sys.argv[2])):
    with open(sys.argv[1], encoding="utf-8") as file:
        records = [json.loads(line) for line in file]
    groups: dict[str, list] = {}
    for record in records:
        record["text"] = re.sub(r"\b(\w+)(a|or)\b", r"\1-\2", record["text"])
        for tag in record["tags"]:
            groups.setdefault(tag, []).append(record)
    counts: dict[str, int] = {}
    for record in records:
        for word in record["text"].split():
            counts[word] = counts.get(word, 0) + 1
    for group in groups.values():
        group.sort(key=lambda record: (record["name"], record["id"]))
    written = json.dumps([[tag, len(group), group[0]["name"]] for tag, group in sorted(groups.items())])
print(len(written), len(counts))
