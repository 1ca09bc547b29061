"""The methods that an evaluation compares against: split conformal, LocalConf, APS and RAPS."""
