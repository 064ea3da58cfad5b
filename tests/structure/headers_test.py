"""Every header compiles on its own."""
import concurrent.futures
import os
import subprocess
import tempfile
import unittest

import project


def included_first(header):
    """True where the build itself shows that a header stands alone: its source file includes it first."""
    source = header.with_suffix(".cpp")
    return source.exists() and project.includes(source)[:1] == [(False, project.name(header))]


def compile_error(header, folder):
    """What the compiler says of a source file that includes the header alone; empty if nothing."""
    source = f"{folder}/{project.name(header).replace('/', '_')}.cpp"
    with open(source, "w", encoding="utf-8") as file:
        file.write(f'#include "{project.name(header)}"\n')
    result = subprocess.run([project.CXX, "-std=c++20", "-fsyntax-only", f"-I{project.ROOT}", source],
                            stderr=subprocess.PIPE, text=True, check=False)
    return "" if result.returncode == 0 else f"{project.name(header)}:\n{result.stderr}"


class HeadersTest(unittest.TestCase):
    def test_each_compiles_on_its_own(self):
        headers = [header for header in project.files("purine", ".h") if not included_first(header)]
        with tempfile.TemporaryDirectory() as folder:
            with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
                errors = list(pool.map(lambda header: compile_error(header, folder), headers))
        self.assertEqual("".join(errors), "")

    def test_each_is_guarded_and_says_what_it_is(self):
        wrong = [project.name(header) for header in project.files("purine", ".h")
                 if not project.text(header).startswith("// ") or "\n#pragma once\n" not in project.text(header)]
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    unittest.main()
