#!/usr/bin/env python3
"""Writes the site's pages from the documents of the tree and from what `gepolab` prints.

    pages.py GEPOLAB TREE OUTPUT [BROWSER]

Documents are copied, with links that lead to other pages of the site or to the source. Pages of
algorithms, recipe fields, metrics, presets, recipes and commands come from the program's JSON and
help, so they cannot differ from it. The gallery runs each command of site/gallery.tsv and shows the
figure that it draws. paper.md is site/paper.md with its numbers filled from the stored results by
`gepolab results fill`. BROWSER is what site/browser/bundle.py made; without it the page of the tools
in the browser says that they are left out. Fails where a command fails.
"""
import html
import json
import os
import posixpath
import re
import shlex
import shutil
import subprocess
import sys

import formulas

# Document of the tree -> page of the site.
DOCUMENTS = {
    "README.md": "index.md", "GUIDE.md": "guide.md", "INSTALL.md": "install.md", "GLOSSARY.md": "glossary.md",
    "CHANGELOG.md": "changelog.md", "ARCHITECTURE.md": "architecture.md", "CONTRIBUTING.md": "contributing.md",
    "experiments/RECIPES.md": "recipes.md", "experiments/DATA.md": "data.md", "experiments/BENCHMARKS.md": "benchmarks.md",
    "paper/findings.md": "findings.md", "paper/FINDINGS-lab.md": "findings-lab.md",
    "paper/FINDINGS-llm.md": "findings-llm.md", "paper/methods.md": "methods.md", "python/README.md": "python.md",
    "site/paths.md": "paths.md", "site/paper.md": "paper.md",
}
WITH_FORMULAS = ("paper/methods.md", "GLOSSARY.md", "paper/FINDINGS-lab.md")
MATH_FONT = "/usr/share/texmf/fonts/opentype/public/lm-math/latinmodern-math.otf"  # Debian's fonts-lmodern
# Other files that documents link to: shown at the place where the source is published.
SOURCE = "https://github.com/gepolab/gepolab/blob/main/"


class Site:
    def __init__(self, program, tree, output):
        self.program, self.tree, self.output = os.path.abspath(program), tree, output

    def run(self, *arguments, cwd=None):
        done = subprocess.run([self.program, *arguments], cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"site: `gepolab {shlex.join(arguments)}` fails: {done.stderr.strip()}")
        return done.stdout

    def json(self, *arguments):
        return json.loads(self.run(*arguments, "--json"))

    def write(self, page, text):
        path = os.path.join(self.output, page)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as to:
            to.write(text)

    def read(self, document):
        with open(os.path.join(self.tree, document), encoding="utf-8") as of:
            return of.read()

    # --- documents ---

    def link(self, document, target):
        """Where a link of a document leads on the site."""
        if target.startswith("site://"):  # a page of the site that no document makes
            return target[len("site://"):]
        if re.match(r"[a-z]+:|#", target):
            return target
        path, hash_, anchor = target.partition("#")
        path = posixpath.normpath(posixpath.join(posixpath.dirname(document), path))
        if path in DOCUMENTS:
            return DOCUMENTS[path] + hash_ + anchor
        if path == "library/gepolab.h":
            return "c.md"
        if re.search(r"\.(png|svg)$", path):
            to = os.path.join(self.output, "images", os.path.basename(path))
            os.makedirs(os.path.dirname(to), exist_ok=True)
            shutil.copyfile(os.path.join(self.tree, path), to)
            return "images/" + os.path.basename(path)
        if not os.path.exists(os.path.join(self.tree, path)):
            sys.exit(f"site: {document} links to {target}, which does not exist")
        return SOURCE + path

    def document(self, document, page):
        out, fenced = [], False
        for line in self.read(document).splitlines():
            if line.startswith("```"):
                fenced = not fenced
            if not fenced and not line.startswith("    "):
                line = re.sub(r"(\]\()([^)\s]+)(\))", lambda m: m[1] + self.link(document, m[2]) + m[3], line)
            out.append(line)
        text = "\n".join(out) + "\n"
        text = re.sub(r"^<!-- .*? -->$\n?", "", text, flags=re.M)
        self.write(page, formulas.typeset(separated(text)) if document in WITH_FORMULAS else separated(text))

    # --- pages of the program ---

    def algorithms(self):
        rows = self.json("list", "algorithms")
        trainers = sorted({s["trainer"] for row in rows for s in row["settings"]}, key=str.lower)
        table = ["# Algorithms", "", "An algorithm is a set of fields. Each card shows what differs from the defaults,",
                 "the paper, and the settings of trainers that compute the same.", "",
                 '<input class="filter" type="search" placeholder="filter the table" aria-label="filter the table" hidden>', "",
                 "| algorithm | source | objective | ratio | clip | notes |", "|---|---|---|---|---|---|"]
        for row in rows:
            f = row["fields"]
            table.append(f"| [{row['name']}]({row['name']}.md) | {cell(row['source'])} | {cell(f['objective'])} | "
                         f"{cell(f['ratio'])} | {cell(f['clip'])} | {cell(row['notes'])} |")
            self.card(row, rows, trainers)
        self.write("algorithms/index.md", "\n".join(table) + "\n")
        return rows

    def card(self, row, rows, trainers):
        text = self.run("list", "algorithms", row["name"])
        likely = {k: max((r["fields"][k] for r in rows), key=[r["fields"][k] for r in rows].count) for k in row["fields"]}
        lines = [f"# {row['name']}", "", f"Source: {paper_link(row['source'])}", ""]
        if row["notes"]:
            lines += [row["notes"] + ".", ""]
        lines += ["## Formulas", "", "Symbols are those of [methods](../methods.md).", ""]
        lines += [formulas.display([line for line in row["formula"] if not line.startswith("besides")]), ""]
        lines += ["Not in the formulas: " + ", ".join(f"`{field}`" for field in line[9:].split("; ")) + ".\n"
                  for line in row["formula"] if line.startswith("besides")]
        lines += ["## Settings in trainers", "", "On top of the trainer's defaults, as `gepolab list algorithms --from TRAINER` reads them. *Makes*: the algorithm that",
                  "they make by that reading; a name with brackets is the algorithm before them with the fields in them changed.", ""]
        lines += settings_table(row, trainers)
        lines += ["", "## Fields that few algorithms have", "", "| field | value | most algorithms |", "|---|---|---|"]
        odd = [(k, v) for k, v in row["fields"].items() if v != likely[k]]
        lines += [f"| `{k}` | {show(v)} | {show(likely[k])} |" for k, v in odd] or ["| none | | |"]
        lines += ["", "## What the program says", "", "```", text.rstrip(), "```", "",
                  "## As PyTorch", "", "```python", self.run("list", "algorithms", row["name"], "--torch").rstrip(), "```", "",
                  "## Commands", "", "```sh",
                  f"gepolab list algorithms {row['name']} --json       # all fields",
                  f"gepolab policy -a {row['name']} group.json         # loss and coefficients of a group",
                  f"gepolab lab bias four_arms algorithm={row['name']}  # its exact bias in a bandit", "```", ""]
        self.write(f"algorithms/{row['name']}.md", "\n".join(lines))

    def table(self, page, title, intro, columns, rows):
        """A page with one table whose rows have anchors, and a filter that needs script."""
        lines = [f"# {title}", "", intro, "",
                 '<input class="filter" type="search" placeholder="filter the table" aria-label="filter the table" hidden>', "",
                 '<div class="wide"><table markdown="0"><thead><tr>' + "".join(f"<th>{c}</th>" for c in columns) + "</tr></thead><tbody>"]
        anchors = set()
        for row in rows:
            anchor = re.sub(r"[^a-z0-9_]+", "-", row[0].lower()).strip("-")
            while anchor in anchors:
                anchor += "-again"
            anchors.add(anchor)
            cells = [f'<td id="{anchor}"><code>{html.escape(row[0])}</code></td>']
            lines.append("<tr>" + "".join(cells + [f"<td>{html.escape(str(c))}</td>" for c in row[1:]]) + "</tr>")
        self.write(page, "\n".join(lines + ["</tbody></table></div>", ""]))

    def catalogues(self):
        fields = {f["path"]: f for f in self.json("list", "fields")}
        self.table("fields.md", "Recipe fields", "Every field of a recipe, from `gepolab list fields`. "
                   "[Recipes](recipes.md) explains them by subject.", ["field", "kind", "default", "unit", "meaning"],
                   [(f["path"], f["kind"], f["default"], f["unit"], f["meaning"]) for f in fields.values()])
        self.table("metrics.md", "Metrics", "Every metric of an update, from `gepolab list metrics`. A column of an exported "
                   "table has the same name. How `ess` is misread: [effective sample size](glossary.md#algorithms).", ["metric", "unit", "meaning", "how it is misread", "computed by"],
                   [(m["name"], m["unit"], m["meaning"], m["misread"], m["source"]) for m in self.json("list", "metrics")])
        presets = self.json("list", "presets")
        keys = [k for k in presets[0] if isinstance(presets[0][k], str)]
        shown = [k for k in keys if k not in ("name", "about")]
        lines = ["# Presets of clusters", "", "Settings of published systems. Each says what of the system it does not model; `assumed` marks settings the source does not state.", ""]
        for p in presets:
            lines += [f"## {p['name']}", "", p["about"][:1].upper() + p["about"][1:] + ".", "", '<table markdown="0" class="preset"><tbody>']
            lines += [f"<tr><th>{k.replace('_', ' ')}</th><td>{html.escape(str(p[k]))}</td></tr>" for k in shown if p.get(k)]
            lines += ["</tbody></table>", ""]
        self.write("presets.md", "\n".join(lines))
        self.table("shipped.md", "Recipes inside the program", "`gepolab list recipes NAME --print` prints one.",
                   ["recipe", "for", "what it shows"],
                   [(r["name"], r.get("for", r.get("command", "")), r["description"]) for r in self.json("list", "recipes")])

    def commands(self):
        first = self.run("--help")
        names = re.findall(r"^(?:[a-z]+ +|          )([a-z]+)   *[a-zA-Z]", first, flags=re.M)
        lines = ["# Commands", "", "```", first.rstrip(), "```", ""]
        for name in names:
            lines += [f"## gepolab {name}", "", "```", self.run(name, "--help").rstrip(), "```", ""]
            said = self.run(name, "--help")
            for sub in re.findall(r"^  ([a-z]+)  +[a-z0-9]", said.split("options:")[0], flags=re.M):
                helped = subprocess.run([self.program, name, sub, "--help"], capture_output=True, text=True)
                if helped.returncode == 0 and f"usage: gepolab {name} {sub}" in helped.stdout:
                    lines += [f"### gepolab {name} {sub}", "", "```", helped.stdout.rstrip(), "```", ""]
        self.write("commands.md", "\n".join(lines))

    # --- gallery ---

    def gallery(self):
        rows = [line.split("\t") for line in self.read("site/gallery.tsv").splitlines()[1:]]
        findings = answers(self.read("paper/findings.md"))
        lines = ["# Gallery", "", "Each figure was drawn by the command below it when this site was built. The commands run in a",
                 "clone of the source; `-o FOLDER` or `-f FOLDER` chooses where the figure goes. Beside a figure lie its",
                 "numbers (`.tsv`) and its gnuplot script (`.gp`).", ""]
        for number, (question, command) in enumerate(rows, 1):
            words = shlex.split(command)[1:]
            folder = os.path.join(self.output, "images", f"gallery{number}")
            shutil.rmtree(folder, ignore_errors=True)
            words = [os.path.join(self.tree, w) if w.startswith("paper/") else w for w in words]
            figures = self.draw(command, words, folder)
            narrow = self.draw(command, [*words, "--width", "icml"], os.path.join(folder, "narrow"))
            lines += [f"## {question}", "", *answer_of(findings, words)]
            for figure in figures:
                image, other = f"images/gallery{number}/{figure}.svg", f"images/gallery{number}/narrow/{figure}.svg"
                source = f'<source media="(max-width: 45em)" srcset="{other}">' if figure in narrow else ""
                lines += [f'<picture class="figure">{source}<img alt="{html.escape(f"{question} ({figure})")}" src="{image}" loading="lazy"></picture>', "",
                          f"[numbers of {figure}](images/gallery{number}/{figure}.tsv)", ""]
            lines += ["```sh", command, "```", ""]
        self.write("gallery.md", "\n".join(lines))

    def draw(self, command, words, folder):
        """Draws the figures of a command of the gallery into a folder, where SVG and numbers stay; their names."""
        os.makedirs(folder)
        at = words.index("-f") + 1 if words[0] != "plot" else len(words)
        self.run(*words[:at], *([folder] if words[0] != "plot" else ["-o", folder]), *words[at:])
        for file in os.listdir(folder):
            if os.path.isfile(os.path.join(folder, file)) and not file.endswith((".svg", ".tsv")):
                os.remove(os.path.join(folder, file))
        figures = sorted(f[:-4] for f in os.listdir(folder) if f.endswith(".svg"))
        return figures or sys.exit(f"site: `{command}` draws nothing")

    def browser(self, made):
        """The tools in the browser, and the file with all of them; or how to have them."""
        head = "---\nhide: [navigation, toc]\n---\n\n# In the browser\n\n"
        if made is None:
            self.write("browser.md", head + "This site was built without the tools that compute in the browser (staleness calculator, loss lens, bias\n"
                       "dial, diagnosis of a log, collapse map). `make wasm` builds them; then `make site` includes them.\n")
            return
        files = ("engine.js", "tools.js", "browser.css", "gepolab.html")
        os.makedirs(os.path.join(self.output, "browser"), exist_ok=True)
        for name in files:
            shutil.copyfile(os.path.join(made, name), os.path.join(self.output, "browser", name))
        self.write("browser.md", head + "gepolab runs in this page, compiled to WebAssembly: the same program, and nothing leaves your browser.\n"
                   "[All tools in one file](browser/gepolab.html){ download } work without a network, too.\n\n"
                   '<link rel="stylesheet" href="browser/browser.css">\n<div class="gepolab" markdown="0">\n' + self.read("site/browser/tools.html")
                   + '</div>\n<script src="browser/engine.js"></script>\n<script src="browser/tools.js"></script>\n')


# Commands of the gallery whose section of the findings has another name than their recipe.
SECTIONS = {"bias_groups": "laboratory", "bias_directions": "laboratory", "bias_staleness": "laboratory", "published": "published_*"}


def answers(document):
    """Of every section of the findings with an answer: the recipes that its heading names, and the answer with a link."""
    found = {}
    for title, section in re.findall(r"^####? (.*)\n((?:(?!^####? ).*\n)*)", document, flags=re.M):
        answer = re.search(r"^\*\*Answer\.\*\* (.*\n(?:.+\n)*)", section, flags=re.M)
        anchor = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower())
        for name in re.findall(r"`([^`]+)`", title) if answer else []:
            text = " ".join(answer[1].split()).replace("](#", "](findings.md#")
            found[name] = f"Answer of the study: {text} [Findings](findings.md#{anchor})"
    return found


def answer_of(findings, words):
    """The answer to a question of the gallery; nothing where the findings have none."""
    stem = next((re.sub(r"(_evals|_runs|_ends)?\.tsv$", "", os.path.basename(w)) for w in words if w.endswith(".tsv")), None)
    name = stem or next((w for w in words[1:] if w in findings or w in SECTIONS), "")
    text = findings.get(SECTIONS.get(name, name))
    return [text, ""] if text else []


def separated(text):
    """A list behind a paragraph needs an empty line in the site's Markdown."""
    out, fenced = [], False
    for line in text.splitlines():
        if line.startswith("```"):
            fenced = not fenced
        item = re.match(r"(- |\d+\. )", line)
        if item and not fenced and out and out[-1].strip() and not re.match(r"(- |\d+\. |  )", out[-1]):
            out.append("")
        out.append(line)
    return "\n".join(out) + "\n"


def cell(text):
    return str(text).replace("|", "\\|").replace("\n", " ")


def settings_table(row, trainers):
    """A line for each trainer: its switches, what they make, how its code differs, and where that was read."""
    of, lines = {s["trainer"]: s for s in row["settings"]}, []
    if of:
        lines += ["| trainer | switches | makes | differs | read at |", "|---|---|---|---|---|"]
    for name in trainers:
        s = of.get(name)
        if s:
            makes = s["makes"] or (row["name"] if "=" in s["setting"] else "")
            switches = " ".join(w if w[0] == "(" or "=" not in w else f"`{w}`" for w in re.findall(r"\([^)]*\)|\S+", s["setting"]))
            lines.append(f"| {name} | {cell(switches)} | {'`' + makes + '`' if makes else ''} | {cell(s['differs'])} | {cell(s['place'])}, {s['basis']} |")
    none = [name for name in trainers if name not in of]
    return lines + (["", "None at the version that was read: " + ", ".join(none) + "."] if none else [])


def show(value):
    return "unset" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def paper_link(source):
    return re.sub(r"\b(\d{4}\.\d{5})\b", r"[\1](https://arxiv.org/abs/\1)", source)


def main():
    program, tree, output = sys.argv[1:4]
    shutil.rmtree(output, ignore_errors=True)
    site = Site(program, tree, output)
    for document, page in DOCUMENTS.items():
        site.document(document, page)
    site.algorithms()
    site.catalogues()
    site.commands()
    site.gallery()
    site.browser(sys.argv[4] if len(sys.argv) > 4 else None)
    site.write("c.md", "# C reference\n\n`libgepolab` has one header. [Its functions, structures and constants](c/gepolab_8h.html){ .md-button }\n\n"
               "```c\n" + site.read("library/gepolab.h").split("*/")[0] + "*/\n```\n")
    site.write("python-reference.md", "# Python reference\n\n::: gepolab\n    options:\n      members_order: source\n      show_root_heading: false\n")
    for path in ("site/extra.css", "site/extra.js", MATH_FONT):
        shutil.copy(os.path.join(tree, path), output)


if __name__ == "__main__":
    main()
