"""docs/command-line.md has the help text of every command."""
import os
import pathlib
import re
import unittest

from command import CommandTest

PATH = pathlib.Path(__file__).resolve().parents[2] / "docs" / "command-line.md"
# A heading with the command's name, then whatever, then a block of text: the command's help.
BLOCK = re.compile(r"^## `(purine[a-z ]*)`\n(?:(?!## |```)[^\n]*\n)*```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class DocumentationTest(CommandTest):
    def help_of(self, name):
        text = self.purine(*name.split()[1:], "--help").output
        # The keys of a job file have a document of their own.
        return text.split("\nKeys of a job file:\n")[0].rstrip("\n") + "\n"

    def commands(self):
        names = ["purine"]
        for name in re.findall(r"^  ([a-z]+) ", self.purine("--help").output.split("Commands:\n")[1].split("\n\n")[0], re.MULTILINE):
            text = self.purine(name, "--help").output
            inner = text.split("\nCommands:\n")
            if len(inner) == 1:
                names.append(f"purine {name}")
            else:
                names += [f"purine {name} {each}" for each in re.findall(r"^  ([a-z]+) ", inner[1], re.MULTILINE)]
        return names

    def test_help_texts_agree(self):
        """With PURINE_UPDATE_DOCS=1 in the environment the document is brought up to date."""
        document = PATH.read_text(encoding="utf-8")
        if "PURINE_UPDATE_DOCS" in os.environ:
            def renew(match):
                return match.group(0)[:-len(match.group(2)) - 3] + self.help_of(match.group(1)) + "```"
            document = BLOCK.sub(renew, document)
            PATH.write_text(document, encoding="utf-8")
        documented = {match.group(1): match.group(2) for match in BLOCK.finditer(document)}
        self.assertEqual(list(documented), self.commands())
        for name, text in documented.items():
            self.assertEqual(text, self.help_of(name), name)

    def test_examples_are_jobs(self):
        """Every job under examples/jobs can be read: what is missing is at most its data."""
        for path in sorted((PATH.parents[1] / "examples" / "jobs").glob("*.toml")):
            error = self.purine("graph", path, "--set", "data.folder=nowhere", status=2).error
            self.assertIn("nowhere", error, path.name)


if __name__ == "__main__":
    unittest.main()
