#!/usr/bin/env python3
"""Checks the built site.

    check.py GEPOLAB SITE

Every link leads to a file and every anchor to an element; every image and style exists; ids are
unique; every command line in a block of code names a command of GEPOLAB and options that its help
has; no page loads anything from another host. Then headless Chromium opens pages at 400 and 1,400
pixels, light and dark, with scripts switched off: nothing may reach out of the window or be asked
for elsewhere; with scripts, the filter of a table keeps the rows that match. Screenshots stay in
SITE/../site-screens. Prints each complaint and exits 1 if there is any.
"""
import base64
import html.parser
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "report"))
from page import Pipe  # noqa: E402

SCREENS = ["index.html", "paths.html", "guide.html", "findings.html", "paper.html", "gallery.html", "methods.html",
           "browser.html", "algorithms/index.html", "algorithms/gepo.html", "fields.html", "metrics.html", "commands.html"]
WITH_FORMULAS = ["methods.html", "algorithms/gepo.html"]


class Page(html.parser.HTMLParser):
    """Links, resources, ids and blocks of code of one page."""

    def __init__(self, path):
        super().__init__()
        self.links, self.resources, self.ids, self.code, self.inside = [], [], [], [], 0
        with open(path, encoding="utf-8") as of:
            self.feed(of.read())

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if "id" in given:
            self.ids.append(given["id"])
        if tag == "a" and given.get("name"):
            self.ids.append(given["name"])
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if tag == "source" and given.get("srcset"):
            self.resources.append(given["srcset"])
        if tag in ("img", "script", "source", "iframe") and given.get("src"):
            self.resources.append(given["src"])
        if tag == "link" and given.get("rel") in ("stylesheet", "icon", "preconnect", "dns-prefetch"):
            self.resources.append(given["href"])
        if tag == "code":
            self.inside += 1
            self.code.append("")

    def handle_endtag(self, tag):
        if tag == "code" and self.inside:
            self.inside -= 1

    def handle_data(self, data):
        if self.inside:
            self.code[-1] += data


def pages_of(site):
    for folder, _, files in os.walk(site):
        for file in files:
            if file.endswith(".html"):
                path = os.path.join(folder, file)
                yield os.path.relpath(path, site), Page(path)


def check_links(site, pages):
    wrong, links = [], 0
    for name, page in pages.items():
        if len(set(page.ids)) != len(page.ids) and not name.startswith("c/"):
            twice = sorted({i for i in page.ids if page.ids.count(i) > 1})
            wrong.append(f"{name}: the id {twice[0]} occurs twice")
        for target in page.links + page.resources:
            parts = urllib.parse.urlsplit(target)
            links += 1
            if parts.scheme or parts.netloc:
                if target in page.resources and parts.scheme != "data":
                    wrong.append(f"{name}: loads {target} from another host")
                continue
            if parts.path.startswith("/") or name == "c/graph_legend.html":
                continue  # the root of the host, in the page for missing addresses; Doxygen's page for graphs, of which there are none
            to = os.path.normpath(os.path.join(os.path.dirname(name), urllib.parse.unquote(parts.path))) if parts.path else name
            if os.path.isdir(os.path.join(site, to)):
                to = os.path.join(to, "index.html")
            if not os.path.exists(os.path.join(site, to)):
                wrong.append(f"{name}: links to {target}, which does not exist")
            elif parts.fragment and parts.fragment != "__codelineno" and to in pages and parts.fragment not in pages[to].ids:
                wrong.append(f"{name}: links to {target}, which has no such anchor")
    return wrong, links


class Commands:
    """Commands and options that the program's help has."""

    def __init__(self, program):
        self.program, self.helps = program, {}

    def help(self, *words):
        if words not in self.helps:
            done = subprocess.run([self.program, *words, "--help"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
            self.helps[words] = done.stdout if done.returncode == 0 else None
        return self.helps[words]

    def complaint(self, line):
        try:
            words = shlex.split(re.sub(r"\$\([^)]*\)|[;|&<>].*", "", line), comments=True)
        except ValueError:
            return None  # quotes that end on a later line
        while words and ("=" in words[0] or words[0] in ("$", "time", "nice", "nohup", "srun")):
            words.pop(0)
        if not words or os.path.basename(words[0]) != "gepolab" or len(words) < 2:
            return None
        if words[1].startswith("-") or words[1].endswith(":") or words[1] == "help" or line.endswith((".", ",")):
            return None  # an option of gepolab itself, the head of a help, a sentence
        text = self.help(words[1])
        if text is None:
            return f"no command {words[1]}"
        if len(words) > 2 and re.fullmatch("[a-z]+", words[2]):
            narrower = self.help(words[1], words[2])
            text = narrower if narrower and f"usage: gepolab {words[1]} {words[2]}" in narrower else text
        for word in words[2:]:
            option = re.match(r"--[a-z][a-z0-9-]*", word)
            if option and not re.search(re.escape(option[0]) + r"(?![a-z0-9-])", text) and option[0] not in ("--help", "--json"):
                return f"{words[1]} has no option {option[0]}"
        return None


def check_commands(program, pages):
    commands, wrong, lines = Commands(program), [], 0
    for name, page in pages.items():
        if name.startswith("c/") or name == "changelog.html":
            continue
        for block in page.code:
            for line in block.replace("\\\n", " ").splitlines():
                if re.match(r"\s*(\$ )?([\w./]*/)?gepolab [a-z]", line):
                    lines += 1
                    said = commands.complaint(line.strip().removeprefix("$ "))
                    if said:
                        wrong.append(f"{name}: `{line.strip()[:100]}`: {said}")
    return wrong, lines


LOOK = """(() => {
  const wrong = [], width = WIDTH, root = document.scrollingElement;
  if (root.scrollWidth > width) wrong.push(`the page is ${root.scrollWidth} px broad of ${width}`);
  const scrolls = e => { for (; e && e !== document.body; e = e.parentElement) {
    const how = getComputedStyle(e).overflowX;
    if (how === 'auto' || how === 'scroll' || how === 'hidden') return true; } return false; };
  const main = document.querySelector('article');
  if (!main || main.textContent.trim().length < 100) wrong.push('no text without script');
  for (const e of (main || document.body).querySelectorAll('*')) {
    const box = e.getBoundingClientRect();
    if (box.width && !scrolls(e) && box.right > width + 0.5)
      wrong.push(`<${e.tagName}> ${(e.textContent || '').trim().slice(0, 40)} reaches out of the window`);
  }
  for (const m of document.querySelectorAll('article math')) {
    const box = m.getBoundingClientRect();
    if (!box.width || !box.height) wrong.push(`an empty formula: ${m.textContent.slice(0, 40)}`);
  }
  for (const i of document.querySelectorAll('article img'))
    if (!i.alt) wrong.push(`an image without a text: ${i.src}`);
  return {wrong, height: root.scrollHeight};
})()"""

FILTER = """(() => {
  const field = document.querySelector('input.filter');
  if (!field || field.hidden) return 'the filter of the table is not shown';
  field.value = 'WORD'; field.dispatchEvent(new Event('input'));
  const rows = [...document.querySelectorAll('article table tbody tr')], shown = rows.filter(r => !r.hidden);
  return shown.length && shown.length < rows.length && shown.every(r => r.textContent.toLowerCase().includes('WORD'))
    ? '' : `the filter shows ${shown.length} of ${rows.length} rows`;
})()"""


def opened(pipe, site, name, width, dark, script):
    target = pipe.call("Target.createTarget", url="about:blank")["targetId"]
    session = pipe.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    for domain in ("Page", "Network", "Runtime", "Log"):
        pipe.call(domain + ".enable", session)
    pipe.call("Emulation.setDeviceMetricsOverride", session, width=width, height=900, deviceScaleFactor=1, mobile=False)
    pipe.call("Emulation.setEmulatedMedia", session,
              features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
    pipe.call("Emulation.setScriptExecutionDisabled", session, value=not script)
    pipe.events.clear()
    pipe.call("Page.navigate", session, url="file://" + os.path.abspath(os.path.join(site, name)))
    pipe.wait_for("Page.loadEventFired")
    return target, session


def check_browser(browser, site):
    screens = os.path.join(os.path.dirname(os.path.abspath(site)), "site-screens")
    shutil.rmtree(screens, ignore_errors=True)
    os.makedirs(screens)
    wrong, profile = [], tempfile.mkdtemp()
    pipe = Pipe(browser, profile)

    def evaluate(session, text):
        found = pipe.call("Runtime.evaluate", session, expression=text, returnByValue=True)
        return found["result"].get("value")

    try:
        for name in SCREENS:
            for width, dark in ((400, False), (1400, False), (1400, True)):
                target, session = opened(pipe, site, name, width, dark, script=dark)
                found = evaluate(session, LOOK.replace("WIDTH", str(width)))
                if name in WITH_FORMULAS and not evaluate(session, "document.querySelectorAll('article math mi').length"):
                    wrong.append(f"{name}: no formula")
                wrong += [f"{name} at {width} px: {w}" for w in found["wrong"]]
                for event in pipe.events:
                    if event["method"] == "Network.requestWillBeSent":
                        url = event["params"]["request"]["url"]
                        if not url.startswith(("file:", "data:", "blob:")):
                            wrong.append(f"{name}: asks for {url}")
                shot = pipe.call("Page.captureScreenshot", session, captureBeyondViewport=True, clip={
                    "x": 0, "y": 0, "width": width, "height": min(found["height"], 3000), "scale": 1})
                file = f"{name.replace('/', '-')}-{width}{'-dark' if dark else ''}.png"
                with open(os.path.join(screens, file), "wb") as to:
                    to.write(base64.b64decode(shot["data"]))
                pipe.call("Target.closeTarget", targetId=target)
        for name, word in (("fields.html", "latency"), ("metrics.html", "staleness"), ("algorithms/index.html", "gepo")):
            target, session = opened(pipe, site, name, 1400, False, script=True)
            said = evaluate(session, FILTER.replace("WORD", word))
            if said:
                wrong.append(f"{name}: {said}")
            pipe.call("Target.closeTarget", targetId=target)
        target, session = opened(pipe, site, "browser.html", 1400, False, script=True)
        # A site without the tools has nothing to wait for.
        said, waits = "loading" if evaluate(session, "!!document.querySelector('.gepolab')") else "answered", 600
        while said.startswith("loading") and waits > 0:
            said, waits = evaluate(session, "document.querySelector('#calculator .message').textContent"), waits - 1
            time.sleep(0.1)
        if not said.startswith("answered"):
            wrong.append(f"browser.html: the calculator says: {said}")
        pipe.call("Browser.close")
    finally:
        pipe.process.kill()
        pipe.process.wait()
        shutil.rmtree(profile, ignore_errors=True)
    return wrong


def main():
    program, site = os.path.abspath(sys.argv[1]), sys.argv[2]
    pages = dict(pages_of(site))
    wrong, links = check_links(site, pages)
    more, lines = check_commands(program, pages)
    wrong += more
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser:
        wrong += check_browser(browser, site)
    for what in wrong:
        print("site: " + what)
    print(f"site: {len(pages)} pages, {links} links and resources, {lines} command lines, "
          + (f"{len(SCREENS)} pages in a browser at three settings" if browser else "skipped: 1 of 1: no chromium, pages were not opened")
          + f": {len(wrong)} complaints")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
