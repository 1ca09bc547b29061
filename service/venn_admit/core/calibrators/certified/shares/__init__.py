"""Certificates for traffic with the classes in other shares than the calibration data, declared or estimated.

These arguments mean the same in all of its modules.

Args:
    confusion: (C, C) int64, how many labelled points are of each predicted and true class.
    declared: The class shares that were declared of traffic, or estimated.
    mixes: What is known of traffic and of the calibration data.
    ratios: (C, C) float64, bounds of the ratios of the calibration data's class shares, as `point_ratios` gives them.
    shares: The class shares of traffic.
"""
