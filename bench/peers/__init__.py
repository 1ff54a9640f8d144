"""Other allocators, fetched from package registries and built here."""
