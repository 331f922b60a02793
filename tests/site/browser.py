#!/usr/bin/env python3
"""Uses the tools that run in the browser, in headless Chromium, from a file.

    browser.py GEPOLAB FOLDER

FOLDER is what site/browser/bundle.py made. The page gepolab.html is opened at 400 and 1,400 pixels, light and dark: every
tool has to answer, nothing may be asked for, reach out of the window or be reported to the console. What the tools show
is compared with what GEPOLAB prints for the recipe that the page gives. Markup in the address and in a file's name has to
stay text, and a link has to restore its state. Then sliders are moved, and the time until the page shows the answer is
printed. Screenshots stay in FOLDER/screens. Prints each complaint and exits 1 if there is any; skips without Chromium.
"""
import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "report"))
from page import Pipe  # noqa: E402

TOOLS = ("calculator", "lens", "dial", "log", "map")
READY = """(() => { const place = document.getElementById('NAME'), said = place.querySelector('.message');
  return place.hidden || place.getAttribute('aria-busy') || /loading/.test(said.textContent) ? null
    : {error: said.classList.contains('error') ? said.textContent : '', text: place.innerText.length}; })()"""
WIDE = """(() => { const wrong = [], width = WIDTH, root = document.scrollingElement;
  if (root.scrollWidth > width) wrong.push(`the page is ${root.scrollWidth} px broad`);
  const scrolls = e => { for (; e && e !== document.body; e = e.parentElement) {
    const how = getComputedStyle(e).overflowX; if (how === 'auto' || how === 'scroll' || how === 'hidden') return true; } return false; };
  for (const e of document.body.querySelectorAll('*')) { const box = e.getBoundingClientRect();
    if (box.width && !scrolls(e) && box.right > width + 0.5) wrong.push(`<${e.tagName}> ${(e.textContent || '').trim().slice(0, 40)} reaches out`); }
  return {wrong, height: root.scrollHeight}; })()"""
# Moves the slider of a field to and fro, as a hand does, and waits for each answer.
MOVE = """(async () => { const place = document.getElementById('TOOL'), slider = place.querySelector('[data-for=FIELD]'), took = [];
  const low = Number(slider.min), high = Number(slider.max);
  for (let i = 0; i < 20; ++i) {
    slider.value = low + (high - low) * (0.2 + 0.6 * ((i * 7) % 20) / 20);
    const answered = new Promise(done => place.addEventListener('answered', done, {once: true})), from = performance.now();
    slider.dispatchEvent(new Event('input', {bubbles: true}));
    await answered;
    took.push(performance.now() - from);
  }
  return took.sort((a, b) => a - b); })()"""
GIVE = """(() => { const input = document.querySelector('#log input[type=file]'), give = new DataTransfer();
  give.items.add(new File([CONTENT], NAME)); input.files = give.files; input.dispatchEvent(new Event('change')); })()"""
LOG = "\n".join(json.dumps({"step": s, "time_s": 30 * s, "groups": [{
    "rewards": [1, 0, 0, 1], "logp": [[-0.5 - 0.01 * s, -1.2], [-0.9, -0.3], [-2.1, -0.7], [-0.4, -0.2]],
    "logq": [[-0.6, -1.1], [-0.8 - 0.02 * s, -0.35], [-2.0, -0.9], [-0.45, -0.2]],
    "version_gap": [[s % 5, s % 5], [1, 1], [2, 3], [0, 0]]}]}) for s in range(60)) + "\n"


class Browser:
    def __init__(self, program, page):
        self.profile, self.page, self.wrong = tempfile.mkdtemp(), "file://" + os.path.abspath(page), []
        self.pipe, self.session, self.target = Pipe(program, self.profile), None, None

    def open(self, address, width=1400, dark=False):
        if self.target:
            self.pipe.call("Target.closeTarget", targetId=self.target)
        self.target = self.pipe.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.pipe.call("Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.pipe.call(domain + ".enable", self.session)
        self.pipe.call("Emulation.setDeviceMetricsOverride", self.session, width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.pipe.call("Emulation.setEmulatedMedia", self.session, features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.pipe.events.clear()
        self.pipe.call("Page.navigate", self.session, url=self.page + address)
        self.pipe.wait_for("Page.loadEventFired")

    def evaluate(self, text):
        found = self.pipe.call("Runtime.evaluate", self.session, expression=text, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            self.wrong.append(f"a script of the test fails: {found['exceptionDetails'].get('exception', {}).get('description')}")
        return found["result"].get("value")

    def processor_time(self):
        """Seconds that the pages' processes have run."""
        return sum(process["cpuTime"] for process in self.pipe.call("SystemInfo.getProcessInfo")["processInfo"] if process["type"] == "renderer")

    def answer(self, tool, seconds=120):
        """Waits until a tool has answered; its complaint, or ''."""
        for _ in range(seconds * 10):
            found = self.evaluate(READY.replace("NAME", tool))
            if found:
                return found["error"]
            time.sleep(0.1)
        return f"no answer within {seconds} s"

    def reported(self, where):
        """What the page asked for, and what it reported, since it was opened."""
        for event in self.pipe.events:
            method, said = event.get("method"), event.get("params", {})
            if method == "Network.requestWillBeSent" and not said["request"]["url"].startswith((self.page, "data:", "blob:")):
                self.wrong.append(f"{where}: asks for {said['request']['url'][:200]}")
            if method == "Runtime.exceptionThrown":
                self.wrong.append(f"{where}: {said['exceptionDetails'].get('exception', {}).get('description', 'an exception')[:300]}")
            if method == "Log.entryAdded" and said["entry"]["level"] == "error":
                self.wrong.append(f"{where}: {said['entry']['text'][:300]}")

    def close(self):
        self.pipe.call("Browser.close")
        self.pipe.process.kill()
        self.pipe.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)


def look(browser, screens):
    for width, dark in ((400, False), (1400, False), (1400, True)):
        browser.open("", width, dark)
        for tool in TOOLS:
            where = f"{tool} at {width} px{', dark' if dark else ''}"
            browser.evaluate(f"location.hash = '#{tool}'")
            time.sleep(0.2)
            said = browser.answer(tool)
            if tool == "log" and not said:
                browser.evaluate(GIVE.replace("CONTENT", json.dumps(LOG)).replace("NAME", "'run <img src=x>.jsonl'"))
                time.sleep(0.5)
                said = browser.answer(tool)
                if not browser.evaluate("!!document.querySelector('#log iframe.page')"):
                    browser.wrong.append(f"{where}: no page of the diagnosis")
            if tool == "calculator" and not said:
                time.sleep(2)  # the timeline waits until the sliders rest
                if not browser.evaluate("document.querySelectorAll('#calculator .timeline rect').length"):
                    browser.wrong.append(f"{where}: no timeline")
            if tool == "map" and not said:
                browser.evaluate("document.querySelector('#map button.share').click()")
                time.sleep(0.2)
                said = browser.answer(tool)
                if not browser.evaluate("document.querySelectorAll('#map .about polyline.run').length"):
                    browser.wrong.append(f"{where}: no runs of a cell")
            if said:
                browser.wrong.append(f"{where}: {said}")
            found = browser.evaluate(WIDE.replace("WIDTH", str(width)))
            browser.wrong += [f"{where}: {w}" for w in found["wrong"]]
            shot = browser.pipe.call("Page.captureScreenshot", browser.session, captureBeyondViewport=True,
                                     clip={"x": 0, "y": 0, "width": width, "height": min(found["height"], 3000), "scale": 1})
            with open(os.path.join(screens, f"{tool}-{width}{'-dark' if dark else ''}.png"), "wb") as to:
                to.write(base64.b64decode(shot["data"]))
        browser.reported(f"{width} px")


def compare(browser, program):
    """What the page shows is what the command prints for the page's own recipe."""
    browser.open("#calculator?preset=prime_rl&samplers=6&median=1500&more=cluster.learner.publish_every%3D2")
    said = browser.answer("calculator")
    recipe = browser.evaluate("document.querySelector('#calculator .recipe').textContent")
    folder = tempfile.mkdtemp()
    with open(os.path.join(folder, "calculator.yaml"), "w", encoding="utf-8") as to:
        to.write(recipe)
    done = subprocess.run([program, "sim", "calculator.yaml", "cluster.learner.publish_every=2", "--json"], cwd=folder, capture_output=True, text=True)
    shutil.rmtree(folder)
    shown = browser.evaluate("[...document.querySelectorAll('#calculator .histogram rect title')].map(t => Number(/: (\\d+) \\w+,/.exec(t.textContent)[1]))")
    if said or done.returncode or shown != json.loads(done.stdout)["staleness"]["histogram"]:
        browser.wrong.append(f"calculator: shows {shown}, the command says {said or done.stderr or json.loads(done.stdout)['staleness']['histogram']}")
    if browser.evaluate("document.querySelector('#calculator [name=samplers]').value") != "6":
        browser.wrong.append("a link does not restore the number of samplers")
    browser.open("#calculator?speeds=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E")
    said = browser.answer("calculator")
    if "<img src=x" not in said or browser.evaluate("document.querySelectorAll('img').length"):
        browser.wrong.append(f"markup in the address: {said!r}")
    browser.open("#calculator?window=-3")
    if "window" not in browser.answer("calculator"):
        browser.wrong.append("a window of -3 is not refused")
    browser.open("#lens?methods=grpo")
    browser.answer("lens")
    group = browser.evaluate("document.querySelector('#lens [name=group]').value")
    done = json.loads(subprocess.run([program, "policy", "-a", "grpo", "-", "--json"], input=group, capture_output=True, text=True, check=True).stdout)
    titles = browser.evaluate("[...document.querySelectorAll('#lens .token')].map(t => /coefficient (.*?)(:|$)/.exec(t.title)[1])")
    if len(titles) != sum(map(len, done["coefficients"])) or any(abs(float(t) - c) > 5.1e-3 * abs(c) + 1e-12 for t, c in zip(titles, sum(done["coefficients"], []))):
        browser.wrong.append(f"lens: coefficients {titles} differ from the command's {done['coefficients']}")
    browser.open("#lens?methods=gspo&fields=eps_low%3D0.2+eps_high%3D0.2")
    browser.answer("lens")
    said = browser.evaluate("document.querySelector('#lens .answer').textContent")
    if "clip 0.8 to 1.2 of the sequence ratio" not in said:
        browser.wrong.append(f"lens: the caption has other fields than those in effect: {said[:200]!r}")
    browser.open("#map?study=long_regime&chosen=gspo%200.2%7C16%7C0.0002")
    browser.answer("map")
    runs = browser.evaluate("[...document.querySelectorAll('#map .about polyline.run')].length")
    if runs != 24:
        browser.wrong.append(f"map: a cell of 24 runs draws {runs}")
    browser.reported("comparisons")


def main():
    program, folder = os.path.abspath(sys.argv[1]), sys.argv[2]
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not chromium:
        print("skipped: 1 of 1: browser: no chromium found")
        return
    screens = os.path.join(folder, "screens")
    shutil.rmtree(screens, ignore_errors=True)
    os.makedirs(screens)
    browser = Browser(chromium, os.path.join(folder, "gepolab.html"))
    try:
        look(browser, screens)
        compare(browser, program)
        print("milliseconds of an answer to a moved slider, of 20: processor time of the page and its thread; time until the answer is shown,")
        print("30 of it the pause that ends a movement, and all of it longer on a busy machine:")
        for tool, field, what in (("calculator", "generation", "areal, 300 updates"), ("calculator", "samplers", "areal, 300 updates"),
                                  ("dial", "kl", "another divergence of a computed dial"), ("dial", "group_size", "six methods, 14 divergences, new groups")):
            browser.open("#" + tool)
            browser.answer(tool)
            before = browser.processor_time()
            took = browser.evaluate(MOVE.replace("TOOL", tool).replace("FIELD", field))
            processor = (browser.processor_time() - before) / len(took) * 1000
            print(f"  {tool} {field} ({what}): processor {processor:.0f} on average; shown after {took[10]:.0f} (median), {took[19]:.0f} (largest)")
    finally:
        browser.close()
    for what in browser.wrong:
        print("browser: " + what)
    print(f"browser: {len(TOOLS)} tools at three settings: {len(browser.wrong)} complaints")
    sys.exit(1 if browser.wrong else 0)


if __name__ == "__main__":
    main()
