"""Programs for the Dragon Telemetry Service find in sonde what they find there: the facts of dragon_checks.py, which dragon_original.sh asks of the original."""

import json
import os
import pathlib
import sys
import unittest

from program import Program, main

HERE = pathlib.Path(os.environ["CHECKS"])

# What sonde does otherwise, on purpose (docs/dragon.md): the answer here, and why.
DIFFERENCES = {
    "name_long": ([[[1.0]], ["m" * 300], False], "a name of more than 255 bytes is shortened: get_metrics() has the short form"),
}


class SideBySide(Program):
    maxDiff = None

    def test_every_fact(self):
        answers = self.root / "answers.json"
        record = self.root / "recording"
        dumps = self.root / "dumps"
        dumps.mkdir()
        result = self.sonde("run", "--quiet", "-l", 2, "--record", record, "--dump-dir", dumps, "--", sys.executable, HERE / "dragon_checks.py", "sonde", answers)
        self.assertEqual(result.returncode, 0, result.stderr)
        found, wanted = json.loads(answers.read_text()), json.loads((HERE / "dragon_answers.json").read_text())
        self.assertEqual(sorted(found), sorted(wanted), "checks and recorded answers: run dragon_original.sh")
        for name, (answer, why) in DIFFERENCES.items():
            self.assertNotEqual(wanted[name], answer, f"{name} is no difference any more: {why}")
            wanted[name] = answer
        differ = [name for name in wanted if found[name] != wanted[name]]
        self.assertEqual({name: found[name] for name in differ}, {name: wanted[name] for name in differ})


class Restart(Program):
    def test_the_first_node_stays_and_no_message_says_otherwise(self):
        """The client needs no connect() before; after the restart Dragon's System().restarted is true."""
        self.write("""
            import os, socket, time, sonde
            print(os.environ["SONDE_RESTART"], "DRAGON_RESILIENT_RESTART" in os.environ, flush=True)
            if os.environ["SONDE_RESTART"] == "0":
                sonde.AnalysisClient().reboot(exclude_hostnames=[socket.gethostname().split(".")[0]])
                time.sleep(600)
        """)
        result = self.sonde("run", "--quiet", "-l", 1, "--no-record", "--resilient", "--", sys.executable, self.program)
        self.assertEqual((result.returncode, result.stdout), (0, "0 False\n1 True\n"), result.stderr)
        self.assertIn("which is the first node and stays", result.stderr)
        self.assertIn("a restart is asked for: starting it again on 1 node", result.stderr)


class Names(Program):
    def test_any_name_is_stored_by_the_rule(self):
        """By every way to emit from Python; each is found by the name as written, and by the stored one."""
        out = self.run_it("""
            import json, sonde
            sonde.gauge("g%")(1); sonde.emit("e e", 2); sonde.log({"l(0)": 3}); sonde.counter("c=c")(4)
            sonde.Telemetry().add_data("t*", 5); sonde.emit("tagged", 6, **{"my key": "v w"})
            with sonde.AnalysisClient() as client:
                def last(name): return next((s.values[-1] for s in client.query(metric=name)), None)
                deadline = __import__("time").monotonic() + 30
                names = ["g%", "e e", "l(0)", "c=c", "t*"]
                while __import__("time").monotonic() < deadline:
                    try: found = [last(n) for n in names]
                    except sonde.ClientError: continue
                    if None not in found: break
                print(json.dumps([found, sorted(set(names) & client.get_metrics()), client.get_data("tagged", tags="my key")[0]["tags"]["my key"], sonde.dropped()]))
        """)
        self.assertEqual(json.loads(out), [[1, 2, 3, 4, 5], sorted(["g%", "e e", "l(0)", "c=c", "t*"]), "v w", 0])
        self.assertEqual([self.values(n)[-1:] for n in ("g％", "e　e", "l（0）", "c＝c", "t＊")], [[1], [2], [3], [4], [5]])


if __name__ == "__main__":
    main()
