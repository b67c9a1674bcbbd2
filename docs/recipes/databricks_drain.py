"""Runs a command in a folder, as a task that fails where the command fails: databricks_drain.py FOLDER COMMAND ..."""

import subprocess
import sys

folder, *command = sys.argv[1:]
subprocess.run(command, cwd=folder, check=True)
