"""The approximations of the network: the KNN and the localizer, and how their parameters are fitted."""
