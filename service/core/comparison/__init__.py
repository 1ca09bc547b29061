"""The methods that an evaluation compares with: split conformal, LocalConf, APS and RAPS."""
