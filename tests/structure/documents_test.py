"""What README.md and docs/ name is there."""
import re
import unittest

import project

# Named as a file of another place: of the user's cache folder.
ELSEWHERE = {"purine/convolutions.json"}
# Of a file that a document may name by the end of its path.
SUFFIXES = ("h", "cpp", "cu", "py", "cmake", "md")


class DocumentsTest(unittest.TestCase):
    def setUp(self):
        self.documents = [project.ROOT / "README.md", *project.files("docs", ".md")]
        self.tracked = [project.name(path) for path in project.tracked_files()]

    def find(self, pattern):
        """(document, `document:line`, text) of every match of the pattern's one group."""
        for document in self.documents:
            for number, line in enumerate(project.text(document).splitlines(), 1):
                for found in re.findall(pattern, line):
                    yield document, f"{project.name(document)}:{number}", found

    def test_paths_from_the_root_exist(self):
        """In text, commands and code alike; a header that the build makes counts as one that is there."""
        folders = sorted({path.split("/")[0] for path in self.tracked if "/" in path})
        pattern = rf"(?<![\w./~-])((?:{'|'.join(map(re.escape, folders))})/[\w./-]*)"
        found = [(place, path.rstrip(".")) for _, place, path in self.find(pattern)]
        self.assertGreater(len(found), 50)
        missing = [f"{place}: {path}" for place, path in found
                   if path not in ELSEWHERE and not (project.ROOT / path).exists()
                   and not (project.BUILD / "generated" / path).is_file()]
        self.assertEqual(missing, [])

    def test_names_of_files_are_ends_of_paths(self):
        ends = {"/".join(parts[begin:]) for parts in (path.split("/") for path in self.tracked) for begin in range(len(parts))}
        found = list(self.find(rf"`([\w./-]+\.(?:{'|'.join(SUFFIXES)}))`"))
        self.assertGreater(len(found), 20)
        built = project.BUILD / "generated"
        self.assertEqual([f"{place}: {name}" for _, place, name in found if name not in ends and not (built / name).is_file()],
                         [])

    def test_links_lead_somewhere(self):
        found = list(self.find(r"\]\(([\w./-]+\.\w+)(?:#[\w-]*)?\)"))
        self.assertGreater(len(found), 2)
        self.assertEqual([f"{place}: {link}" for document, place, link in found if not (document.parent / link).is_file()], [])


if __name__ == "__main__":
    unittest.main()
