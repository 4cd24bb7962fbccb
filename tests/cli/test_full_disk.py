"""`sonde run` with a full run folder, or with all folders full: recorded and dropped points add up
to all sent ones."""

import json
import os
import re
import subprocess
import unittest

from place import PATIENCE_S, SONDE, Place, main

POINTS = 60000

BURST = f"""
import random, subprocess
put = subprocess.Popen(['sonde', 'put'], stdin=subprocess.PIPE, text=True)
for i in range({POINTS}):
    put.stdin.write(f'noise {{random.random()}}\\n')
put.stdin.close()
raise SystemExit(put.wait())
"""

# A script that makes small file systems in a private namespace, and finally looks at their
# contents.
INSIDE = """
set -e
for folder in $SMALL; do mount -t tmpfs -o size=1m,mode=700 none "$folder"; done
"$SONDE" run -l 1 -- python3 -c "$BURST"
"$SONDE" query --list --json "$SONDE_RUNS"/*
ls -A "$SONDE_RUNS"/* "$TMPDIR"
"""


@unittest.skipIf(os.getuid() != 0, "only root can mount")
class FullDisk(Place):
    def run_in(self, *small):
        """Returns (recorded points, dropped points from the summary, all output)."""
        for folder in small:
            folder.mkdir(exist_ok=True)
        self.runs.mkdir(exist_ok=True)
        env = {"SMALL": " ".join(map(str, small)), "BURST": BURST, "SONDE": SONDE}
        process = subprocess.Popen(["unshare", "-m", "--propagation", "private", "sh", "-c", INSIDE], env=self.env | env, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.root)
        self.started.append(process)
        out, err = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 0, out + err)
        dropped = int(re.search(r"(\d+) dropped", err).group(1))
        listed = json.loads(out[:out.rindex("]") + 1])
        return sum(m["points"] for m in listed if m["metric"] == "noise"), dropped, out + err

    def test_the_other_place_is_used_when_the_run_folder_fills_up(self):
        recorded, dropped, said = self.run_in(self.tmp)
        self.assertEqual((recorded, dropped), (POINTS, 0), said)
        self.assertIn("there is no space for the data in", said)
        self.assertRegex(said, r"(?m)^\S+\.sonde$")
        self.assertNotRegex(said, r"(?m)^\.\S+\.sonde$")

    def test_every_loss_is_told_when_all_is_full(self):
        recorded, dropped, said = self.run_in(self.tmp, self.runs)
        self.assertEqual(recorded + dropped, POINTS, said)
        self.assertGreater(dropped, 0, said)


if __name__ == "__main__":
    main()
