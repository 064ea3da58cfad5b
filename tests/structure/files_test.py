"""Where files lie, how long they are, and that none is forgotten by the build or the tests."""
import re
import unittest

import project

# Folders of tests/ that mirror no folder of purine/: the installed package, this, and what several tests share.
OTHER_TEST_FOLDERS = {"package", "structure", "support"}
LONGEST = 600


class FilesTest(unittest.TestCase):
    def test_test_folders_mirror_the_library(self):
        folders = {path.name for path in (project.ROOT / "tests").iterdir() if path.is_dir()}
        self.assertLessEqual(folders, set(project.LAYERS) | OTHER_TEST_FOLDERS)

    def test_every_source_is_compiled(self):
        """But for a folder that another one, `no_` and its name, takes the place of in this build: then nothing of it."""
        compiled = project.compiled_sources()
        folders = {path.parent for path in compiled}
        sources = project.files("purine", ".cpp") + [
            path for path in project.files("tests", ".cpp") if path.relative_to(project.ROOT).parts[1] != "package"]
        replaced = {folder.with_name(folder.name.removeprefix("no_")) for folder in folders if folder.name.startswith("no_")}
        replaced -= folders
        self.assertEqual([project.name(path) for path in sources if path not in compiled and path.parent not in replaced], [])

    def test_every_test_file_has_tests(self):
        empty = [project.name(path) for path in project.files("tests", ".cpp")
                 if path.stem.endswith("_test") and not re.search(r"^\s*(TYPED_)?TEST(_[FP])?\(", project.text(path), re.M)]
        self.assertEqual(empty, [])

    def test_every_example_is_run(self):
        names = project.test_names()
        examples = [path for path in project.files("examples", ".cpp") if f"examples.{path.stem}" not in names]
        if "PURINE_BUILD_EXAMPLES:BOOL=OFF" not in project.text(project.BUILD / "CMakeCache.txt"):
            self.assertEqual([project.name(path) for path in examples], [])

    def test_no_file_is_too_long(self):
        long = []
        for path in project.tracked_files():
            if path.suffix in (".h", ".cpp", ".cu", ".py", ".cmake", ".md"):
                lines = project.text(path).count("\n")
                if lines > LONGEST:
                    long.append(f"{project.name(path)}: {lines} lines")
        self.assertEqual(long, [])

    def test_no_file_names_a_machine(self):
        """Nothing depends on where one machine keeps its files or takes its packages from."""
        hosts = r"(deb|security|ftp|snapshot)\.debian\.org|pypi\.org|files\.pythonhosted\.org|registry\.npmjs\.org"
        paths = r"(?<![\w.}])/(work|root|home)/"
        found = []
        for path in project.tracked_files():
            if path.name == "files_test.py":
                continue
            try:
                lines = project.text(path).splitlines()
            except UnicodeDecodeError:
                continue
            found += [f"{project.name(path)}:{number}: {line.strip()}" for number, line in enumerate(lines, 1)
                      if re.search(hosts, line) or re.search(paths, line)]
        self.assertEqual(found, [])


if __name__ == "__main__":
    unittest.main()
