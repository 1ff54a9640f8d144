"""What the lab says of things whose truth is known (docs/lab-calibration.md)."""
