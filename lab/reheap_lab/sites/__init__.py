"""Who allocates, and why: from a trace with call stacks to functions and lines.

From the bottom up: `kinds` and `functions` know words, `images` ELF files, `symbols` gives addresses names, `profile`
is the whole, `groups` sums it up by site, function and module and `tree` by callers, `findings` says it in sentences;
`show`, `pprof` and `export` write it down.
"""
