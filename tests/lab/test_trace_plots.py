"""The page of a trace."""

import copy

import numpy as np
from test_report import HOSTILE, Page

from reheap_lab.report import trace_plots


def made_up() -> dict:
    """What `reheap-trace info` prints for a program of eight threads."""
    random = np.random.default_rng(3)
    tops = [16 * k for k in range(1, 9)] + [(8 + j) << s for s in range(4, 18) for j in range(1, 9)]
    sizes, lower = [], 0
    for top in tops:
        blocks = int(9e6 * np.exp(-((np.log2(top) - 5.6) / 1.7) ** 2) * random.uniform(0.4, 1.4))
        if blocks:
            sizes.append({"from": lower, "to": top, "blocks": blocks, "bytes": int(blocks * top * 0.95),
                          "peak_live_bytes": blocks * top // 40})
        lower = top + 1
    lifetimes = [{"from_ns": 1 << k, "to_ns": 2 << k, "blocks": int(1e6 * np.exp(-((k - 13) / 6) ** 2)),
                  "bytes": int(1e8 * np.exp(-((k - 22) / 7) ** 2))} for k in range(5, 35)]
    time = np.linspace(0, 21e6, 900)
    live = 3.1e8 * np.clip(time / 9e6, 0, 1) * (1 + 0.15 * np.sin(time / 4e5)) * np.where(time > 19e6, 0.3, 1)
    threads = [{"process": 71, "thread": k, "events": 9_000_000 // (k + 1), "blocks": 4_600_000 // (k + 1),
                "bytes": 330_000_000 // (k + 1), "frees": 4_000_000 // (k + 1), "first_us": k * 900_000,
                "last_us": 21_000_000 - k * 400_000} for k in range(8)]
    return {"type": "info", "events": 48_120_411, "duration_us": 21_000_000, "thread_count": 8,
            "files": [{"path": "link.rht", "process": 71, "parent": 70, "command": ["ld.lld", "-o", "out file"],
                       "forked": False, "ended": True, "lost": 0, "stopped": 0, "bytes": 310_000_000}],
            "kinds": {"malloc": 20_111_000, "calloc": 1_002_000, "free": 24_000_000, "realloc": 2_007_411, "failed": 0},
            "allocated": {"blocks": 23_120_411, "bytes": 4_411_203_112},
            "peak": {"live_bytes": 356_500_000, "live_blocks": 2_400_000, "t_us": 12_300_000},
            "never_freed": {"blocks": 10_233, "bytes": 61_000_000},
            "frees": {"blocks": 23_000_000, "bytes": 4_350_000_000, "of_unknown": 0, "missed": 0},
            "cross_thread": {"blocks": 2_100_000, "bytes": 9e8, "share": 0.0913, "bytes_share": 0.2},
            "fragmentation": {"potential": 0.231, "held_peak_bytes": 463_000_000},
            "sizes": sizes, "hot_classes": sorted(sizes, key=lambda row: -row["blocks"])[:16], "lifetimes": lifetimes,
            "threads": threads, "series": {"t_us": time.astype(int).tolist(), "live_bytes": live.astype(int).tolist(),
                                           "live_blocks": (live / 140).astype(int).tolist()},
            "damage": {"count": 0, "told": []}}


def page_of(info: dict, tmp_path) -> tuple[Page, str]:
    path = tmp_path / "trace.html"
    trace_plots.write_html(info, path)
    text = path.read_text(encoding="utf-8")
    return Page(text), text


def test_it_says_what_info_found(tmp_path):
    page, text = page_of(made_up(), tmp_path)
    for said in ("ld.lld -o 'out file'", "48,120,411", "cross-thread 9.1% of the frees", "peak live 340.0 MiB after",
                 "potential 23.1% of", "10,233 blocks", "link.rht"):
        assert said in page.text, said
    assert page.tags.count("svg") == 6 and all(page.alts)
    assert all(address.startswith("#") for address in page.loads)
    assert len(page.ids) == len(set(page.ids)) and "damaged" not in page.text
    assert len(text) < 500_000


def test_what_is_missing_is_left_out(tmp_path):
    whole = {name: value for name, value in made_up().items() if name not in ("sizes", "lifetimes", "series")}
    for gone in ("peak", "cross_thread", "fragmentation", "hot_classes", "threads", "kinds",
                 "never_freed", "allocated", "damage"):
        info = copy.deepcopy(whole)
        del info[gone]
        assert "Lifetimes" not in page_of(info, tmp_path)[0].text
    page, _ = page_of({"type": "info", "files": [], "events": 0}, tmp_path)
    assert "peak live" not in page.text and "What was alive" not in page.text


def test_damage_and_hostile_names_are_told_as_text(tmp_path):
    info = made_up()
    info["files"][0] |= {"command": [HOSTILE], "path": HOSTILE}
    info["damage"] = {"count": 2, "told": [HOSTILE]}
    page, text = page_of(info, tmp_path)
    assert "damaged: 2 places" in page.text and HOSTILE in "".join(page.texts)
    assert page.tags.count("script") == 1 and "<script>alert" not in text
