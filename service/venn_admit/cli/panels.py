"""Under which headings `--help` lists the verbs."""

SETTING_UP = "Set up and calibrate"
DECIDING = "Decide and report"
STORED = "See and manage what is stored"
RUNNING = "Run and maintain"
