"""The network approximated: the KNN and the localizer, and how their parameters are fitted."""
