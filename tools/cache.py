"""Where lies what was fetched or made once, for every checkout on this machine."""

import os


def cache_folder() -> str:
    return os.environ.get("REHEAP_CACHE") or os.path.expanduser("~/.cache/reheap")
