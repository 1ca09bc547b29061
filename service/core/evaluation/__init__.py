"""How good decisions are on labelled points: shares, intervals, curves."""
