"""A program in C finds its emitted data in the answer to its next query."""

import os
import sys

sys.path.insert(0, os.environ["PLACE"])
from place import Place, main  # noqa: E402

TIMES = 50


class ReadBack(Place):
    def test_every_kind_of_emitting(self):
        result = self.sonde("run", "--quiet", "-l", 1, "--", os.environ["READBACK"], TIMES)
        self.assertEqual(result.stdout, "".join(f"{what} {TIMES} " for what in ("points", "cells", "totals", "rows", "spans", "notes")) + f"of {TIMES}\n", result.stderr)


if __name__ == "__main__":
    main()
