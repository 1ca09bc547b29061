"""The method of the paper: ADMIT sets, the Venn predictor over them, and the decision that follows."""
