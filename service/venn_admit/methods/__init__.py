"""Methods of calibration: each makes a snapshot of mc and vp, and decides by it on many points, or on one at once."""
