"""How good decisions are on labelled points: shares, intervals and curves."""
