"""Links a real C++ library with LLD and ThinLTO on the system heap and on reheap, and compares them.

Rounds are interleaved after a warm-up; each run is proven to be served by the allocator it stands for, and all outputs
must be the same bytes.
"""

from common import question, tables
from common.paths import CORPUS
from common.work import making
from corpus import link_command, prepare_corpus
from reheap_lab.export import all_warnings

OUTPUT = CORPUS / "linked.so"
SHOWN = [("wall_s", "wall time, s", 2, 1), ("cpu_s", "CPU time (user + system), s", 2, 1),
         ("peak_rss_kib", "peak resident memory, MiB", 1, 1 / 1024), ("minor_faults", "minor page faults", 0, 1)]

QUICK_EVERY = 8  # of the files


def main(arguments: list[str]) -> int:
    asked = question.ask(question.parser("link", __doc__, rounds=5), arguments)
    objects = prepare_corpus(QUICK_EVERY if asked.quick else 1)
    runs = (asked.rounds + 1) * len(asked.allocators)
    names = ", ".join(allocator.name for allocator in asked.allocators)
    tables.say(f"ThinLTO link of {len(objects)} files, {runs} runs on: {names}\n")
    made = asked.compare("link", link_command(objects, OUTPUT), making(OUTPUT), output="check")
    for figure, title, digits, scale in SHOWN:
        tables.show_figure(made, figure, title.ljust(28), digits, scale)
        print()
    for text in [*(verdict.text for verdict in made.verdicts if verdict.figure in ("cpu_s", "peak_rss_kib")),
                 *all_warnings(made)]:
        tables.say(text)
    tables.say(f"Ratios are taken round by round; rounds: {asked.rounds}, interleaved, after a warm-up.")
    tables.say("Every run was served by the allocator it is listed under, and made the same output.")
    return asked.end()
