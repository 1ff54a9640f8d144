"""What every benchmark shares: finding allocators, running programs, statistics, tables."""
