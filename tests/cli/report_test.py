"""`purine report` and `purine why`: what they write, and the report in a browser."""
import json
import os
import struct
import unittest
import zlib

from browser import CHROMIUM, Browser
from command import CommandTest, write_idx


def colours(path):
    """How many different colours a PNG file of 8 bits a channel has."""
    content = path.read_bytes()
    width, height, depth, kind = struct.unpack(">2I2B", content[16:26])
    assert (depth, kind) in ((8, 2), (8, 6)), "of colours, perhaps with transparency"
    size = 3 if kind == 2 else 4
    data, at = b"", 8
    while at < len(content):
        length, name = struct.unpack(">I4s", content[at:at + 8])
        if name == b"IDAT":
            data += content[at + 8:at + 8 + length]
        at += 12 + length
    rows = zlib.decompress(data)
    stride = size * width
    # Filters work on differences, which are enough to tell an empty picture from one that is not.
    lines = {rows[y * (stride + 1) + 1:(y + 1) * (stride + 1)] for y in range(height)}
    return len({line[i:i + size] for line in lines for i in range(0, stride, size)})


class ReportTest(CommandTest):
    def trained(self):
        """The folder of a run that was traced."""
        write_idx(self.folder / "set")
        self.write_job(trace={"first_step": 2, "steps": 6})
        self.purine("train", "job.toml", "--workers", "2")
        return self.folder / "runs/job"

    def browser(self, **options):
        if CHROMIUM is None:
            if os.environ.get("PURINE_REQUIRE_BROWSER"):
                self.fail("there is no chromium")
            self.skipTest("there is no chromium")
        browser = Browser(**options)
        self.addCleanup(browser.__exit__)
        return browser

    def bench_page(self):
        self.purine("bench", "small_convnet", "--batch", 8, "--steps", 4, "--workers", 2, "--trace", "trace.json")
        self.assertEqual(self.purine("report", "trace.json").output, "trace.html\n")
        return self.folder / "trace.html"

    def test_why_tells_the_path_and_causes(self):
        self.bench_page()
        text = self.purine("why", "trace.json").output
        self.assertRegex(text, r"^A step takes [\d.]+ ms, over 3 steps of the trace\.\n")
        self.assertRegex(text, r"\ncompute +[\d.]+ +[\d.]+%\n  \w+ +[\d.]+ +[\d.]+%\n")
        self.assertRegex(text, r"\nWhat takes the most:\n1\. [\d.]+% of a step, [\d.]+ .s: .*\n   Hint: ")
        why = self.purine("why", "trace.json", "--json").json()
        self.assertAlmostEqual(sum(use["share"] for use in why["path"]), 1, places=9)
        self.assertAlmostEqual(sum(use["seconds"] for use in why["path"]), why["step_seconds"], places=9)
        self.assertTrue(why["has_dependencies"])
        self.assertRegex(self.error_of("why", "nothing.json", status=1), r"nothing\.json")
        (self.folder / "bad.json").write_text('{"traceEvents": [\n', encoding="utf-8")
        for command in ("why", "report"):
            self.assertEqual(self.error_of(command, "bad.json", status=1),
                             "[trace] bad.json: is not JSON (line 1, column 18); hint: name a trace, as a job with trace.steps "
                             "above 0 leaves and purine bench --trace writes")

    def test_a_run_folder_has_all(self):
        run = self.trained()
        self.assertEqual(self.purine("report", "runs/job").output, "runs/job/report.html\n")
        data = self.data_of("runs/job/report.html")
        self.assertEqual(data["title"], "job")
        self.assertEqual(data["job"], (run / "job.toml").read_text(encoding="utf-8"))
        lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        self.assertEqual(data["metrics"], [json.loads(line) for line in lines])
        trace = json.loads((run / "trace.json").read_text(encoding="utf-8"))
        drawn = sum(len(rank["packed"]["op"]) for rank in data["ranks"])
        self.assertEqual(drawn, sum(event["ph"] == "X" for event in trace["traceEvents"]))
        self.assertEqual([lane["name"] for lane in data["ranks"][0]["lanes"]], ["worker 0", "worker 1"])
        (memory,) = data["memory"]
        self.assertLessEqual(max(memory["bytes"]), memory["arena"])
        self.assertGreater(max(memory["bytes"]), memory["arena"] / 2)
        self.assertEqual(memory["bytes"][-1], 0, "nothing is in use after the last step")
        why = self.purine("why", "runs/job", "--json").json()
        self.assertEqual(data["why"], why)
        self.assertGreater(why["replayed_seconds"], 0)

    def data_of(self, page):
        text = (self.folder / page).read_text(encoding="utf-8")
        return json.loads(text.split('<script id="data" type="application/json">')[1].split("</script>")[0])

    def test_a_run_can_leave_its_report(self):
        write_idx(self.folder / "set")
        self.write_job()
        self.assertIn("\nreport         runs/job/report.html\n", self.purine("train", "job.toml", "--report").output)
        trained = self.data_of("runs/job/report.html")
        self.purine("bench", "lenet", "--batch", 8, "--steps", 3, "--report", "bench.html")
        benched = self.data_of("bench.html")
        for data in (trained, benched):
            self.assertGreater(data["why"]["steps"], 0)
            self.assertGreater(len(data["ranks"][0]["packed"]["op"]), 0)
            self.assertIn('name = "', data["job"])
        self.assertGreater(len(trained["metrics"]), 0)
        self.assertTrue((self.folder / "bench.json").is_file(), "its trace")

    def test_a_text_cannot_end_its_element(self):
        self.bench_page()
        (self.folder / "job.toml").write_text("# </script><script>alert(1)</script>\n", encoding="utf-8")
        self.purine("report", "trace.json", "--job", "job.toml", "--output", "page.html")
        page = (self.folder / "page.html").read_text(encoding="utf-8")
        self.assertNotIn("</script><script>alert", page)
        browser = self.browser()
        browser.open(self.folder / "page.html")
        self.assertEqual(browser.value("document.getElementById('job').textContent"), "# </script><script>alert(1)</script>\n")
        self.assertEqual(browser.messages, [])

    def test_the_page_draws_zooms_and_finds(self):
        page = self.bench_page()
        browser = self.browser()
        browser.open(page)
        browser.settle()
        # How many are merged to one that can be seen depends on what they took.
        self.assertGreaterEqual(browser.value("purine.timeline.rectangles"), browser.value("purine.timeline.rows.length"))
        # Pixels of a lane that are not its background.
        painted = browser.value("""(() => {
          const t = purine.timeline, row = t.rows[0];
          const pixels = t.context.getImageData(labelWidth, row.y + 2, t.width - labelWidth, 1).data;
          const counts = new Map();
          for (let i = 0; i < pixels.length; i += 4) {
            const colour = pixels.slice(i, i + 3).join();
            counts.set(colour, (counts.get(colour) || 0) + 1);
          }
          return counts.size;
        })()""")
        self.assertGreater(painted, 5)

        # The wheel zooms about the pointer.
        browser.value("document.getElementById('lanes').scrollIntoView({block: 'center', behavior: 'instant'})")
        x, y = browser.value("(() => { const b = document.getElementById('lanes').getBoundingClientRect(); "
                             "return [b.left + 500, b.top + 80]; })()")
        whole = browser.value("purine.timeline.end - purine.timeline.begin")
        under = browser.value("purine.timeline.time(500)")
        browser.mouse("mouseMoved", x, y)
        browser.mouse("mouseWheel", x, y, deltaX=0, deltaY=-200)
        self.assertLess(browser.value("purine.timeline.end - purine.timeline.begin"), 0.8 * whole)
        self.assertAlmostEqual(browser.value("purine.timeline.time(500)") / under, 1, places=3)
        # Dragging moves.
        begin = browser.value("purine.timeline.begin")
        browser.mouse("mousePressed", x, y, button="left", clickCount=1)
        browser.mouse("mouseMoved", x - 100, y, button="left")
        browser.mouse("mouseReleased", x - 100, y, button="left", clickCount=1)
        self.assertGreater(browser.value("purine.timeline.begin"), begin)

        # What other jobs would take.
        what_ifs = browser.value("document.getElementById('what-ifs').textContent")
        self.assertIn("By simulating the job", what_ifs)
        self.assertIn(", twice as large", what_ifs)

        # Finding: the match is shown, and told of under the pointer.
        browser.value("document.getElementById('search').focus()")
        browser.write("conv2d_weight_gradient block2")
        count = browser.value("purine.timeline.found.length")
        self.assertGreaterEqual(count, 4, "one a step, or a few parts")
        self.assertEqual(browser.value("document.getElementById('found').textContent"), str(count))
        browser.key("Enter")
        self.assertEqual(browser.value("document.getElementById('found').textContent"), f"1 of {count}")
        place = browser.value("""(() => {
          const t = purine.timeline, {row, index} = t.selected, b = t.canvas.getBoundingClientRect();
          return [b.left + t.x((row.start[index] + row.end[index]) / 2), b.top + row.y + row.height / 2];
        })()""")
        browser.mouse("mouseMoved", *place)
        tip = browser.value("document.getElementById('tip').textContent")
        self.assertIn("block2", tip)
        for word in ("conv2d_weight_gradient", "step", "took", "shapes", "f32[", "cost", "flop", "flop/s"):
            self.assertIn(word, tip)
        browser.value("document.getElementById('search').select()")
        browser.write("no such operator")
        self.assertEqual(browser.value("document.getElementById('found').textContent"), "none")
        self.assertEqual(browser.messages, [])

    def test_the_graph_opens_by_scopes(self):
        browser = self.browser()
        browser.open(self.bench_page())
        self.assertEqual(browser.value("purine.graph.scope.join('/')"), "")
        names = "[...document.querySelectorAll('#graph-view .scope text:not(.small)')].map((e) => e.textContent)"
        self.assertIn("small_convnet", browser.value(names))
        browser.value("""[...document.querySelectorAll('#graph-view .scope')].find(
            (e) => e.textContent.startsWith('small_convnet')).dispatchEvent(new MouseEvent('click'))""")
        self.assertEqual(browser.value("purine.graph.scope.join('/')"), "small_convnet")
        self.assertIn("block1", browser.value(names))
        self.assertGreater(browser.value("document.querySelectorAll('#graph-view rect.tensor').length"), 0)
        browser.value("document.querySelector('#crumbs a').click()")
        self.assertIn("gradient", browser.value(names))
        self.assertEqual(browser.messages, [])

    def test_it_is_drawn_in_both_themes(self):
        run = self.trained()
        self.purine("report", "runs/job")
        backgrounds = []
        for dark in (False, True):
            browser = self.browser(dark=dark)
            browser.open(run / "report.html")
            browser.settle()
            backgrounds.append(browser.value("getComputedStyle(document.body).backgroundColor"))
            self.assertEqual(browser.value("[...document.querySelectorAll('section')].filter((e) => e.hidden).length"), 0)
            self.assertGreater(browser.value("document.querySelectorAll('#curve-charts svg').length"), 2)
            self.assertLessEqual(browser.value("document.documentElement.scrollWidth"), 1366, "no sideways scrolling")
            picture = self.folder / f"{'dark' if dark else 'light'}.png"
            browser.screenshot(picture)
            self.assertGreater(colours(picture), 100)
            self.assertEqual(browser.messages, [])
        self.assertEqual(backgrounds, ["rgb(244, 245, 247)", "rgb(18, 21, 26)"])

    def test_a_hundred_thousand_events(self):
        """Events that are there many times cost a picture hardly more than pixels."""
        page = self.bench_page().read_text(encoding="utf-8")
        start, rest = page.split('<script id="data" type="application/json">')
        text, end = rest.split("</script>", 1)
        data = json.loads(text)
        (rank,) = data["ranks"]
        packed = rank["packed"]
        copies = -(-100_000 // len(packed["op"]))
        data["path"] = []
        rank["packed"] = {name: values * copies for name, values in packed.items()}
        length = sum(packed["start"]) + packed["length"][-1]
        for copy in range(1, copies):  # one copy after the other
            rank["packed"]["start"][copy * len(packed["op"])] = length - sum(packed["start"]) + packed["start"][0]
        (self.folder / "large.html").write_text(
            start + '<script id="data" type="application/json">' + json.dumps(data) + "</script>" + end, encoding="utf-8")
        browser = self.browser()
        browser.open(self.folder / "large.html")
        browser.settle()
        self.assertGreaterEqual(browser.value("purine.timeline.ranks[0].events.count"), 100_000)
        lanes = len(rank["lanes"])
        pixels = browser.value("purine.timeline.width")
        self.assertLess(browser.value("purine.timeline.rectangles"), 2 * lanes * pixels, "of all that is drawn as pixels")
        self.assertEqual(browser.messages, [])


if __name__ == "__main__":
    unittest.main()
