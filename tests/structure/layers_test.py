"""A folder of purine/ uses only itself and the folders before it, and headers ask nothing of who includes them."""
import pathlib
import unittest

import project


class LayersTest(unittest.TestCase):
    def test_every_folder_has_a_place(self):
        folders = {path.name for path in (project.ROOT / "purine").iterdir() if path.is_dir()}
        self.assertLessEqual(folders, set(project.LAYERS), "give the folder a place in LAYERS in project.py")

    def test_includes_point_to_earlier_folders(self):
        wrong = []
        for path in project.files("purine", ".h", ".cpp", ".cu"):
            own = path.relative_to(project.ROOT / "purine").parts[0]
            for _, target in project.includes(path):
                parts = pathlib.PurePosixPath(target).parts
                if parts[0] == "purine" and len(parts) > 2 and (
                        project.LAYERS.index(parts[1]) > project.LAYERS.index(own)):
                    wrong.append(f"{project.name(path)} includes {target}")
        self.assertEqual(wrong, [])

    def test_includes_name_our_files_from_the_root(self):
        wrong = []
        for folder in ("purine", "tests", "bench", "examples"):
            for path in project.files(folder, ".h", ".cpp", ".cu"):
                for angle, target in project.includes(path):
                    if not angle and not target.startswith(("purine/", "tests/", "bench/")):
                        wrong.append(f"{project.name(path)} includes \"{target}\"")
        self.assertEqual(wrong, [])

    def test_headers_need_no_library_but_fmt(self):
        """What users include builds with the standard library and fmt alone; neither backends nor helpers are that."""
        wrong = []
        for path in project.files("purine", ".h"):
            if path.relative_to(project.ROOT / "purine").parts[0] in ("backend", "cli") or path.match("*_helpers.h"):
                continue
            for angle, target in project.includes(path):
                standard = "/" not in target and not target.endswith(".h")
                if angle and not standard and not target.startswith("fmt/"):
                    wrong.append(f"{project.name(path)} includes <{target}>")
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    unittest.main()
