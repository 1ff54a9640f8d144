"""Many comparisons in one go: sweeps over parameters, files that name several commands, and the ready suite."""
