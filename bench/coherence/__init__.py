"""How an allocator scales to more cores than this machine has: by the cache lines that would move between them."""
