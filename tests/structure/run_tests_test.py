"""scripts/run-tests notices tests that are missing."""
import contextlib
import importlib.machinery
import importlib.util
import io
import pathlib
import tempfile
import unittest
from unittest import mock

import project

SOURCE = """
TEST(Sum, AddsUp) {}
TEST_F(Sum, IsOrdered) {}
TEST_P(Sizes, Fit) {}
TYPED_TEST(Types, Fit) {}
"""
COMPLETE = ["core.Sum.AddsUp", "core.Sum.IsOrdered", "core.All/Sizes.Fit/0", "core.Types/0.Fit"]


def load():
    loader = importlib.machinery.SourceFileLoader("run_tests", str(project.ROOT / "scripts" / "run-tests"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("run_tests", loader))
    loader.exec_module(module)
    return module


class RunTestsTest(unittest.TestCase):
    def run_tests(self, tests, properties="", options=()):
        """Runs it on a project with SOURCE and these tests (name to program); its result and the lines it printed."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "tests" / "core").mkdir(parents=True)
            (root / "tests" / "core" / "sum_test.cpp").write_text(SOURCE, encoding="utf-8")
            build = root / "build"
            build.mkdir()
            lines = [f'add_test({name} "{program}")\n' for name, program in tests.items()]
            (build / "CTestTestfile.cmake").write_text("".join(lines) + properties, encoding="utf-8")
            module = load()
            printed = io.StringIO()
            with mock.patch.object(module, "ROOT", root), mock.patch("sys.argv", ["run-tests", str(build), *options]), \
                    contextlib.redirect_stdout(printed):
                result = module.main()
            return result, printed.getvalue().splitlines()

    def test_passes_where_all_ran(self):
        self.assertEqual(self.run_tests({name: "true" for name in COMPLETE}), (0, ["4 passed, 0 failed"]))

    def test_fails_where_one_fails(self):
        tests = {name: "true" for name in COMPLETE} | {"core.Sum.AddsUp": "false"}
        self.assertEqual(self.run_tests(tests), (1, ["run-tests: core.Sum.AddsUp failed", "3 passed, 1 failed"]))

    def test_fails_where_a_declared_test_is_unknown(self):
        declared = ["TEST(Sum, AddsUp)", "TEST_F(Sum, IsOrdered)", "TEST_P(Sizes, Fit)", "TYPED_TEST(Types, Fit)"]
        for missing, declaration in zip(COMPLETE, declared):
            result, lines = self.run_tests({name: "true" for name in COMPLETE if name != missing})
            self.assertEqual(result, 1)
            self.assertEqual(lines, [f"run-tests: tests/core/sum_test.cpp: {declaration} is in no test program",
                                     "3 passed, 1 failed"])

    def test_fails_where_a_test_did_not_run(self):
        tests = {name: "true" for name in COMPLETE} | {"core.Sum.AddsUp": "/nowhere/program"}
        result, lines = self.run_tests(tests)
        self.assertEqual(result, 1)
        self.assertEqual(lines[-1], "3 passed, 1 failed")

    def test_fails_where_a_test_is_skipped_or_disabled(self):
        for properties, status in (("PROPERTIES DISABLED TRUE", "disabled"),
                                   ("PROPERTIES SKIP_RETURN_CODE 0", "notrun")):
            result, lines = self.run_tests({name: "true" for name in COMPLETE},
                                           f"set_tests_properties(core.Sum.AddsUp {properties})\n")
            self.assertEqual(result, 1)
            self.assertEqual(lines, [f"run-tests: core.Sum.AddsUp did not run ({status})", "3 passed, 1 failed"])

    def test_names_what_may_be_skipped_and_is(self):
        properties = "set_tests_properties(core.Sum.AddsUp PROPERTIES SKIP_RETURN_CODE 0)\n"
        tests = {name: "true" for name in COMPLETE}
        result, lines = self.run_tests(tests, properties, ["--may-skip", "net.cluster", "core.Sum"])
        self.assertEqual(result, 0)
        self.assertEqual(lines, ["run-tests: core.Sum.AddsUp was skipped: it can't run here", "3 passed, 0 failed"])
        self.assertEqual(self.run_tests(tests, properties, ["--may-skip", "core.Other"])[0], 1)

    def test_fails_where_nothing_ran(self):
        result, lines = self.run_tests({})
        self.assertEqual(result, 1)
        self.assertEqual(lines[-2:], ["run-tests: no test ran", "0 passed, 5 failed"])


if __name__ == "__main__":
    unittest.main()
