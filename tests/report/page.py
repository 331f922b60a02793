#!/usr/bin/env python3
"""Opens a report in headless Chromium through the DevTools protocol and looks at it.

    page.py CHROMIUM PAGE.html WIDTH SCREENSHOT.png [no-figures]

Fails, naming each, on: anything but the page itself that is requested; messages of the console and
exceptions; a document broader than the window; boxes and texts that reach out of the window outside
of boxes that scroll; text below 12 pixels outside of figures; figures that are missing, empty or not
as broad as their box; ids that occur twice; and a page that is no well-formed XML. The page is read
with scripts switched off, as it has to be whole without them; then with them on: tables sort, figures
enlarge, charts show values under the pointer and their legends fade lines. Only Python's own library is used.
"""
import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import xml.dom.minidom


class Pipe:
    """Chromium's --remote-debugging-pipe: messages of JSON, each ended by a NUL."""

    def __init__(self, browser, profile):
        to_read, self.to = os.pipe()
        self.of, of_write = os.pipe()

        def give():
            os.dup2(to_read, 13), os.dup2(of_write, 14)
            os.dup2(13, 3), os.dup2(14, 4)

        self.process = subprocess.Popen(
            [browser, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
             "--disable-extensions", "--disable-background-networking", "--hide-scrollbars",
             f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank"],
            preexec_fn=give, close_fds=False, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read), os.close(of_write)
        self.rest, self.number, self.events = b"", 0, []

    def receive(self):
        while b"\0" not in self.rest:
            more = os.read(self.of, 1 << 20)
            if not more:
                sys.exit("page.py: the browser ended early")
            self.rest += more
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, session=None, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                if "error" in answer:
                    sys.exit(f"page.py: {method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def wait_for(self, method):
        while not any(e.get("method") == method for e in self.events):
            self.events.append(self.receive())


# What is looked at in the page: a list of complaints.
LOOK = """(() => {
  const wrong = [], width = WIDTH, all = document.body.querySelectorAll('*');
  const root = document.scrollingElement;
  if (root.scrollWidth > width) wrong.push(`the document is ${root.scrollWidth} px broad of ${width}`);
  const scrolls = e => { for (; e && e !== document.body; e = e.parentElement) {
    const how = getComputedStyle(e).overflowX;
    if (how === 'auto' || how === 'scroll') return true; } return false; };
  for (const e of all) {
    const box = e.getBoundingClientRect(), name = `<${e.tagName}> ${(e.textContent || '').trim().slice(0, 40)}`;
    if (!scrolls(e) && (box.right > width + 0.5 || box.left < -0.5)) wrong.push(`${name} reaches out of the window`);
    const text = [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim());
    if (text && parseFloat(getComputedStyle(e).fontSize) < 12) wrong.push(`${name} is in small letters`);
    if (getComputedStyle(e).overflowX === 'hidden' && e.scrollWidth > e.clientWidth + 1)
      wrong.push(`${name} is cut off`);
  }
  const figures = document.querySelectorAll('figure');
  for (const f of figures) {
    const img = f.querySelector('img'), box = img && img.getBoundingClientRect();
    const name = f.querySelector('figcaption').textContent;
    if (!img) { wrong.push(`no drawing: ${name}`); continue; }
    if (!img.naturalWidth || box.height < 40) wrong.push(`an empty drawing: ${name}`);
    // The drawing itself, laid over the image for a moment, so that its texts can be measured.
    const bytes = Uint8Array.from(atob(img.src.split(',')[1]), c => c.charCodeAt(0));
    const drawing = new DOMParser().parseFromString(new TextDecoder().decode(bytes), 'image/svg+xml').documentElement;
    const svg = f.appendChild(document.importNode(drawing, true));
    svg.style.width = `${box.width}px`, svg.style.height = `${box.height}px`;
    if (Math.abs(box.width / box.height - svg.viewBox.baseVal.width / svg.viewBox.baseVal.height) > 0.02)
      wrong.push(`a drawing out of shape: ${name}`);
    if (svg.querySelectorAll('path').length < 5) wrong.push(`a drawing with nothing in it: ${name}`);
    if (!img.alt) wrong.push(`nothing to read out: ${name}`);
    const view = svg.getBoundingClientRect(), small = [];
    for (const t of svg.querySelectorAll('text')) {
      const at = t.getBoundingClientRect();
      if (at.width && (at.left < view.left - 1 || at.right > view.right + 1 || at.top < view.top - 1 || at.bottom > view.bottom + 1))
        wrong.push(`text outside its drawing: ${t.textContent} in ${name}`);
      if (at.height && parseFloat(getComputedStyle(t).fontSize) * view.width / svg.viewBox.baseVal.width < 7)
        small.push(t.textContent);
    }
    svg.remove();
    if (small.length) wrong.push(`text below 7 px in ${name}: ${small[0]}`);
  }
  const ids = [...document.querySelectorAll('[id]')].map(e => e.id);
  if (new Set(ids).size !== ids.length) wrong.push('two elements have one id');
  for (const a of document.querySelectorAll('a[href^="#"]'))
    if (!document.getElementById(a.getAttribute('href').slice(1))) wrong.push(`a link to nothing: ${a.textContent}`);
  for (const t of document.querySelectorAll('table'))
    if (!t.caption || [...t.querySelectorAll('th')].some(h => !h.scope)) wrong.push('a table without caption or scopes');
  if (!document.documentElement.lang || !document.querySelector('main') || document.querySelectorAll('h1').length !== 1)
    wrong.push('no language, no main part, or not one heading of the first level');
  return {wrong, figures: figures.length, tables: document.querySelectorAll('table').length, height: root.scrollHeight};
})()"""

# With scripts on: tables sort both ways, every figure enlarges, a chart's legend fades a line and the pointer shows values.
PLAY = """(async () => {
  const wrong = [], wait = () => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
  const number = text => { const n = parseFloat(text.replace('−', '-')); return Number.isNaN(n) ? text : n; };
  const text = rows => rows.map(row => row.textContent).sort().join('|');
  let sorted = 0, charts = 0, tips = 0;
  for (const head of document.querySelectorAll('th.sorts')) {
    const body = head.closest('table').tBodies[0], before = text([...body.rows]), column = head.cellIndex;
    if (body.querySelector('.group')) continue;
    for (const sign of [1, -1]) {
      head.click();
      const cells = [...body.rows].map(row => number(row.cells[column].textContent.trim()));
      const right = cells.every((c, i) => !i || typeof c !== typeof cells[i - 1] || (c - cells[i - 1]) * sign >= 0 || typeof c === 'string');
      if (!right || text([...body.rows]) !== before) wrong.push(`the table is not sorted by ${head.textContent}`);
    }
    sorted++;
  }
  for (const button of document.querySelectorAll('figure .enlarge')) {
    const figure = button.closest('figure'), name = figure.querySelector('figcaption').firstChild.textContent;
    button.click();
    await wait();
    const dialog = document.querySelector('dialog.enlarged');
    if (!dialog || !dialog.open) { wrong.push(`does not enlarge: ${name}`); continue; }
    const canvases = [...dialog.querySelectorAll('canvas')];
    if (!canvases.length && !dialog.querySelector('img')) wrong.push(`nothing in the enlarged figure: ${name}`);
    for (const canvas of canvases) {
      const chart = Chart.getChart(canvas), box = canvas.getBoundingClientRect();
      const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
      if (box.width < 200 || !pixels.some(v => v)) { wrong.push(`an empty chart: ${name}`); continue; }
      const set = chart.data.datasets.findIndex(d => !d.interval), point = chart.getDatasetMeta(set).data[0];
      charts++;
      canvas.dispatchEvent(new MouseEvent('mousemove', {clientX: box.left + point.x, clientY: box.top + point.y, bubbles: true}));
      await wait();
      const lines = (chart.tooltip.body || []).flatMap(b => b.lines);
      if (chart.tooltip.opacity && lines.length && lines.every(l => l.includes(': '))) tips++;
      else wrong.push(`no value under the pointer: ${name}`);
    }
    const entry = dialog.querySelector('.legend button');
    if (entry && canvases.length) {
      const colours = () => canvases.flatMap(c => Chart.getChart(c).data.datasets.map(d => d.borderColor)).join();
      const before = colours();
      entry.click();
      if (colours() === before) wrong.push(`the legend fades nothing: ${name}`);
      entry.click();
      if (colours() !== before) wrong.push(`the legend does not restore a line: ${name}`);
    }
    if (dialog.getBoundingClientRect().right > innerWidth + 0.5) wrong.push(`the enlarged figure reaches out of the window: ${name}`);
    dialog.querySelector('.close').click();
    await wait();
    if (document.querySelector('dialog')) wrong.push(`does not close: ${name}`);
  }
  return {wrong, sorted, charts, tips, library: typeof Chart !== 'undefined'};
})()"""


def opened(pipe, page, width, script):
    """Opens the page and waits until it is loaded."""
    target = pipe.call("Target.createTarget", url="about:blank")["targetId"]
    session = pipe.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    for domain in ("Page", "Network", "Runtime", "Log"):
        pipe.call(domain + ".enable", session)
    pipe.call("Emulation.setDeviceMetricsOverride", session, width=width, height=900,
              deviceScaleFactor=1, mobile=False)
    pipe.call("Emulation.setScriptExecutionDisabled", session, value=not script)
    pipe.events.clear()
    pipe.call("Page.navigate", session, url="file://" + os.path.abspath(page))
    pipe.wait_for("Page.loadEventFired")
    return session


def evaluated(pipe, session, text):
    found = pipe.call("Runtime.evaluate", session, expression=text, returnByValue=True, awaitPromise=True)
    if "exceptionDetails" in found:
        sys.exit("page.py: " + json.dumps(found["exceptionDetails"])[:400])
    return found["result"].get("value")


def shoot(pipe, session, file, width, height):
    shot = pipe.call("Page.captureScreenshot", session, captureBeyondViewport=True,
                     clip={"x": 0, "y": 0, "width": width, "height": height, "scale": 1})
    with open(file, "wb") as to:
        to.write(base64.b64decode(shot["data"]))


def complaints(pipe, page):
    """What the page asked for besides itself, and messages of the console."""
    address = "file://" + os.path.abspath(page)
    for event in pipe.events:
        what = event.get("params", {})
        if event["method"] == "Network.requestWillBeSent" and what["request"]["url"] != address \
                and not what["request"]["url"].startswith("data:"):
            yield "it asks for " + what["request"]["url"]
        if event["method"] in ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown"):
            yield "the console says " + json.dumps(what)[:200]


def look(pipe, page, width, screenshot):
    session = opened(pipe, page, width, script=False)
    result = evaluated(pipe, session, LOOK.replace("WIDTH", str(width)))
    shoot(pipe, session, screenshot, width, min(result["height"], 12000))
    result["wrong"] += complaints(pipe, page)
    return result


def play(pipe, page, width, screenshot):
    session = opened(pipe, page, width, script=True)
    result = evaluated(pipe, session, PLAY)
    if evaluated(pipe, session, "!!document.querySelector('figure .enlarge')"):
        evaluated(pipe, session, "document.querySelector('figure .enlarge').click()")
        shoot(pipe, session, screenshot.replace(".png", "-enlarged.png"), width, 900)
    result["wrong"] += complaints(pipe, page)
    return result


def main():
    browser, page, width, screenshot = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
    xml.dom.minidom.parse(page)
    profile = tempfile.mkdtemp()
    pipe = Pipe(browser, profile)
    try:
        result = look(pipe, page, width, screenshot)
        played = play(pipe, page, width, screenshot)
        pipe.call("Browser.close")
    finally:
        pipe.process.kill()
        pipe.process.wait()
        shutil.rmtree(profile, ignore_errors=True)
    with open(page, encoding="utf-8") as f:
        drawn = f.read().count("<img ")
    if (result["figures"] == 0) != ("no-figures" in sys.argv[5:]) or drawn != result["figures"]:
        result["wrong"].append(f"{drawn} drawings are in {result['figures']} figures")
    result["wrong"] += played["wrong"]
    if not played["sorted"]:
        result["wrong"].append("no table sorts")
    if result["figures"] and played["library"] and not played["charts"]:
        result["wrong"].append("no figure is a chart")
    for what in result["wrong"]:
        print(f"{page} at {width} px: {what}")
    if result["wrong"]:
        sys.exit(1)
    print(f"{page} at {width} px: {result['figures']} figures, {result['tables']} tables, "
          f"{result['height']} px high: nothing reaches out, nothing is asked for; "
          f"{played['sorted']} headings sort, "
          + (f"{played['charts']} charts enlarge, {played['tips']} of them show values" if played["library"] else
             "charts skipped: 1 of 1: built without Chart.js" if result["figures"] else "no figures"))


if __name__ == "__main__":
    main()
