"""A table of facts about OpenTSDB's semantics and of pitfalls of Grafana's newest client. Each row
names the tests that would fail if sonde behaved differently.

A test is named "fact NAME" (a row of FACTS or ON_M in test_facts.py, which runs with live, closed,
sealed, crashed and spread files) or "FILE.CLASS.TEST". The test below fails if a named one does not
exist."""
import importlib
import unittest

import test_facts

UNEVEN = "test_facts.Facts.test_aggregators_on_two_uneven_series"
FACTS_ERRORS = "test_facts.Facts.test_errors"
SUGGEST = "test_answers.Answers.test_suggest"

SPEC = [
    # Facts. L, Lo and M are the data sets "l", "lo" and "m" of test_facts.py.
    ("L, sum: 300 × 301", ["fact sum"]),
    ("L, rate of web01: 299 points, the first at T+60", ["fact rate"]),
    ("counter over its maximum: 1.0, 1.0", ["fact counter over its maximum"]),
    ("counter past its reset value: 1.0, 0", ["fact counter reset"]),
    ("1000s-avg: buckets are multiples of the interval", ["fact buckets are multiples of the interval"]),
    ("1000s-avg: those before the start are dropped", ["fact buckets before the start are dropped"]),
    ("powers, 10s-sum", ["fact 10s-sum"]),
    ("0all-sum of [15, 45): 14 @15", ["fact 0all leaves out the end"]),
    ("L web01 1m-avg: 151 points", ["fact 1m-avg"]),
    ("L web01 1m-count", ["fact 1m-count"]),
    ("L web01 0all-sum: 45150 @T", ["fact 0all-sum"]),
    ("L, dev", ["fact dev"]),
    ("Lo, zimsum: 600 points", ["fact zimsum"]),
    ("M: each aggregator on two series with different holes", [UNEVEN, "fact sum on M", "fact pfsum on M", "fact zimsum on M", "fact mimmin on M"]),
    ("sum interpolates: 40, 87, 108, 70", ["fact sum interpolates"]),
    ("pfsum holds: 40, 77, 88, 70", ["fact pfsum holds"]),
    ("p50 of 1..1000: 500", ["fact p50 of a bucket", "fact p50 of series"]),
    ("p95 of 1..1000: 950", ["fact p95 of a bucket", "fact p95 of series"]),
    ("p999 of 1..1000: 999", ["fact p999 of a bucket", "fact p999 of series"]),
    ("median of 5, 2, -1, 400, 3: 3", ["fact median"]),
    ("2012/12/20-12:42:42 is 1356007362000 ms", ["fact a date", "fact ms stamps"]),
    ("10m-avg-badbadbad: 400, Unrecognized fill policy", [FACTS_ERRORS]),
    ("no start, or no query: 400", [FACTS_ERRORS]),
    ("an empty result is []", ["fact nothing there", "test_answers.Answers.test_empty_is_a_list"]),
    ("wildcard ogg*ops*ank*com", ["fact wildcard"]),
    ("Ogg* only as iwildcard", ["fact wildcard minds case", "fact iwildcard does not"]),
    ("suggest with max=1: one entry", [SUGGEST]),
    ("suggest of an unknown type, with max=foo: 400", [SUGGEST]),
    # Pitfalls of the client.
    ("null as a value shows 0: only on request", ["test_answers.Answers.test_gaps_are_left_out", "test_answers.Answers.test_requested_gaps_have_two_elements"]),
    ("\"NaN\" as text, bare NaN and 1e400 fail the query: only on request", ["test_answers.Answers.test_gaps_are_left_out", "test_answers.Answers.test_client_c"]),
    ("dps: an object, or an array where it was asked for", ["test_answers.Answers.test_object_and_array", "test_answers.Answers.test_client_c"]),
    ("tags are an object, also without any", ["test_facts.Facts.test_tags"]),
    ("a tag's value is text", ["test_answers.Answers.test_tag_values_are_text"]),
    ("[] is \"No data\", no error", ["test_answers.Answers.test_empty_is_a_list"]),
    ("a row of an array has two elements", ["test_answers.Answers.test_requested_gaps_have_two_elements", "test_answers.Answers.test_client_c"]),
    ("client C reads whole seconds only", ["test_answers.Answers.test_client_c", "fact of a second the last point counts"]),
]


def is_there(holder):
    if holder.startswith("fact "):
        name = holder.removeprefix("fact ")
        return name in {row[0] for row in test_facts.FACTS} | {f"{row[0]} on M" for row in test_facts.ON_M}
    module, case, test = holder.split(".")
    return callable(getattr(getattr(importlib.import_module(module), case, None), test, None))


class Spec(unittest.TestCase):
    def test_every_row_is_held(self):
        self.assertEqual(len({what for what, _ in SPEC}), len(SPEC))
        for what, holders in SPEC:
            self.assertTrue(holders, what)
            for holder in holders:
                self.assertTrue(is_there(holder), f"{what}: {holder} is gone")

    def test_a_test_that_is_gone_is_seen(self):
        for holder in ("fact no such", "test_facts.Facts.test_no_such", "test_facts.NoSuch.test_facts", "fact sum on N"):
            self.assertFalse(is_there(holder), holder)


unittest.main()
