"""What every shell works with: settings, the workspace that is made from them, and how a process logs and ends."""
