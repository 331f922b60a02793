"""MathML of formulas in the plain notation of methods.md.

x_i and x_{i,t} and x[i,t] are lowered, x^2 and x² raised, a / b is a fraction, √ covers what follows, Σ_i has its
index below; single letters are italic, words and names of functions upright. A division whose terms cannot be told
from the text stays a slash. Brackets that only hold an index, an exponent or a fraction's term disappear; every
other character of the text is kept, which mathml() checks.
"""
import html
import re
import unicodedata

FUNCTIONS = {"log", "ln", "exp", "max", "min", "mean", "clip", "sg", "softmax", "softplus", "tanh", "cosh", "cos",
             "round", "ceil", "floor", "sgn", "act", "open", "KL", "Var", "Cov", "Beta", "Bernoulli", "quantile", "tr", "sup",
             "norm", "rotary", "silu", "attention", "embed", "sd", "abs", "up", "down", "reach", "median", "std"}
SYMBOLS = {"lp", "lq", "lx", "lref", "lr", "wd", "SE", "ESS", "MSE", "SNR", "dlogp", "df", "dx", "dt", "rto", "rtt"}
BIG = {"Σ": "∑", "Π": "∏"}
WITH_LIMITS = {"max", "min", "mean", "sup"}
LONG = 30  # a formula of more characters scrolls by itself where the window is narrow
OPEN, CLOSE = "([{⟨⌊⌈", {"(": ")", "[": "]", "{": "}", "⟨": "⟩", "⌊": "⌋", "⌈": "⌉"}
RAISED = {"²": "2", "³": "3", "⁴": "4", "ᵀ": "T", "⁰": "0"}
LOWERED = {"₀": "0", "₁": "1", "₂": "2", "₊": "+", "₋": "−", "ᵢ": "i"}
ACCENTS = {"\u0302": "^", "\u0303": "~", "\u0304": "¯"}
RELATIONS = set("=<>≤≥∝≈≠←→∈∉+−±∓-,;:…|‖") | {"≤", "≥", ":="}
TOKEN = re.compile(r"\d+(?:\.\d+)?(?:e-?\d+)?|[A-Za-z]+(?:_[a-z]{2,}[a-z_]*)?\d?|[^\W\d_]|\s+|.", re.S)


def is_formula(text):
    """Whether a span of code is a formula, and not a name, a value, a command or a file."""
    if re.search(r": |\w/\w+[/.]|\.(py|md|c|h|yaml)\b|[`$\\*§]|\bgepolab\b|--|…$|^latency|^bandwidth|^[a-z]{2,}_\w+/", text):
        return False
    words = text.split()
    if re.fullmatch(r"[A-Za-z_][\w.+-]*'?", text, re.ASCII):
        return re.fullmatch(r"[A-Za-z]'?(_[A-Za-z0-9])?", text) is not None or text in SYMBOLS
    if re.search(r"[^\x00-\x7f]|[=<>^+/(\[|]", text):
        return re.search(r"[^\W\d]", text) is not None
    return all(len(w) == 1 or w in FUNCTIONS for w in words) and any(len(w) == 1 and w.isalpha() for w in words)


class Parser:
    def __init__(self, text, tight):
        self.tight = tight  # whether a/b without blanks is a fraction, too
        self.tokens, self.at = TOKEN.findall(unicodedata.normalize("NFD", text)), 0

    def peek(self, ahead=0):
        return self.tokens[self.at + ahead] if self.at + ahead < len(self.tokens) else ""

    def next(self):
        self.at += 1
        return self.tokens[self.at - 1]

    def group(self, opened):
        """What stands up to the bracket that closes, and whether there was one."""
        inner = self.row(CLOSE[opened])
        closed = self.peek() == CLOSE[opened]
        if closed:
            self.at += 1
        return inner, closed

    def script(self):
        """What stands behind _ or ^: a group in { } or ( ), or one name or number with its sign."""
        if self.peek() in "{(" and self.peek():
            return self.group(self.next())[0]
        sign = f"<mo>{self.next()}</mo>" if self.peek() in ("−", "-") else ""
        letters = self.next() if self.peek() else ""
        return sign + name(letters)

    def factor(self):
        """One base with its scripts. -> (kind, MathML, MathML without its brackets)"""
        token = self.next()
        bare = None
        if token in OPEN:
            inner, closed = self.group(token)
            bare = inner if token in "({" and closed else None
            node, kind = bracketed(token, inner, closed), "group"
        elif token == "√":
            kind, inner, within = self.factor() if self.peek().strip() else ("", "", None)
            node, kind = f"<msqrt>{within or inner}</msqrt>", "atom"
        elif token in BIG:
            node, kind = f"<mo>{BIG[token]}</mo>", "big"
        elif token[0].isalpha():
            node, kind = name(token), "function" if token in FUNCTIONS else "atom"
            if len(token) > 1 and token not in SYMBOLS and kind == "atom":
                kind = "word"
        elif token[0].isdigit():
            node, kind = f"<mn>{token}</mn>", "atom"
        elif token in "∇∂½∞#":
            node, kind = f"<mi>{token}</mi>", "prefix" if token in "∇∂#" else "atom"
        else:
            return "operator", mo(token), None
        return self.scripts(token, kind, node, bare)

    def scripts(self, token, kind, node, bare):
        low = high = ""
        while self.peek():
            ahead = self.peek()
            if ahead in ACCENTS:
                node = f'<mover accent="true">{node}<mo>{ACCENTS[self.next()]}</mo></mover>'
            elif ahead == "'":
                self.at += 1
                high += "<mo>′</mo>"
            elif ahead in RAISED:
                high += f"<mn>{RAISED[self.next()]}</mn>"
            elif ahead in LOWERED:
                low += f"<mn>{LOWERED[self.next()]}</mn>"
            elif ahead in ("_", "^") and self.peek(1).strip():
                self.at += 1
                part = self.script()
                low, high = (low + part, high) if ahead == "_" else (low, high + part)
            elif ahead == "[" and token not in ("E", "Var", "Cov", "KL") and kind != "group" and self.index():
                self.at += 1
                low += self.group("[")[0]
            else:
                break
        if low or high:
            bare = None
            kind = "atom" if kind in ("group", "word") else kind
            limits = token in BIG or token in WITH_LIMITS
            tag = ("munder" if limits else "msub") if not high else "msup" if not low else "munderover" if limits else "msubsup"
            node = f"<{tag}>{node}" + "".join(f"<mrow>{part}</mrow>" for part in (low, high) if part) + f"</{tag}>"
        if self.peek() in ("(", "[") and kind in ("atom", "function", "word") and not token[0].isdigit() and token not in OPEN:
            opened = self.next()  # the arguments of a function, or what a bracket of an expectation holds
            inner, closed = self.group(opened)
            node = f"<mrow>{node}{bracketed(opened, inner, closed)}</mrow>"
            kind = "atom"
            again = self.scripts(")", "group", node, None) if self.peek() in ("^", *RAISED) else None
            return ("atom", again[1], None) if again else ("atom", node, None)
        return kind, node, bare

    def index(self):
        """Whether the bracket ahead holds an index such as i,t and no expression."""
        rest = "".join(self.tokens[self.at + 1:])
        return re.match(r"[a-z](,[a-z])?\]", rest) is not None

    def row(self, until=""):
        """Factors and operators up to a closing bracket; divisions become fractions where their terms are clear."""
        items, space = [], False
        while self.peek() and self.peek() != until:
            if self.peek().isspace():
                self.at += 1
                space = True
                continue
            token = self.peek()
            kind, node, bare = self.factor()
            items.append({"kind": kind, "node": node, "bare": bare, "space": space, "text": token})
            space = False
        return joined(fractions(items, self.tight))


def fractions(items, with_tight):
    """Replaces `a / b` by fractions: a is the product before the slash, b the one factor behind it (or the sum or
    product that begins with Σ or Π); `a/b` without blanks has one factor on either side, and stays in running text."""
    out = []
    while items:
        item = items.pop(0)
        if item["text"] != "/" or not out or not items or items[0]["kind"] == "operator":
            out.append(item)
            continue
        tight = not item["space"] and not items[0]["space"]
        if tight and not with_tight:
            out.append(item)
            continue
        first = len(out)
        while first and out[first - 1]["kind"] not in ("operator", "word") and (not tight or first == len(out)
                                                                               or out[first - 1]["kind"] in ("function", "prefix")):
            first -= 1
        if not tight:
            while first < len(out) and out[first]["text"] == "/":
                first += 1
        last = 1
        if items[0]["kind"] in ("big", "function", "prefix"):
            while last < len(items) and items[last]["kind"] not in ("operator", "word"):
                last += 1
        follows = items[last]["kind"] if last < len(items) else "operator"
        above, below = out[first:], items[:last]
        words = any(i["kind"] == "word" for i in above + below)
        if not above or words or (follows not in ("operator", "word") and not tight) or (
                last < len(items) and items[last]["text"] == "/"):
            out.append(item)
            continue
        del out[first:], items[:last]
        out.append({"kind": "atom", "bare": None, "space": above[0]["space"], "text": "fraction",
                    "node": f"<mfrac displaystyle=\"true\"><mrow>{inside(above)}</mrow><mrow>{inside(below)}</mrow></mfrac>"})
    return out


def inside(items):
    """A term of a fraction: the brackets of a single group are not needed."""
    return items[0]["bare"] if len(items) == 1 and items[0]["bare"] else joined(items)


def joined(items):
    out, before = [], None
    for item in items:
        if before and item["kind"] == "word" and before["kind"] == "word":
            out[-1] = out[-1].removesuffix("</mtext>") + "\u00a0" + re.sub("</?mtext>", "", item["node"]) + "</mtext>"
            before = item
            continue
        wide = before and item["space"] and "operator" not in (before["kind"], item["kind"])
        if wide and "word" in (before["kind"], item["kind"]):
            out.append('<mspace width="0.35em"/>')
        elif wide:
            out.append('<mspace width="0.17em"/>')
        out.append(item["node"])
        before = item
    return "".join(out)


def bracketed(opened, inner, closed):
    """Brackets grow around fractions, roots and sums only; around a line of text their small form is closer."""
    tall = re.search("<(mfrac|msqrt|munder|munderover)", inner) is not None
    return f"<mrow>{mo(opened, tall)}{inner}{mo(CLOSE[opened], tall) if closed else ''}</mrow>"


def mo(token, tall=False):
    fence = ' stretchy="false"' if not tall and token in "|‖()[]{}⟨⟩⌊⌋⌈⌉" else ""
    fence = ' lspace="0.08em" rspace="0.08em"' if token == "/" else fence
    return f"<mo{fence}>{'&#124;' if token == '|' else html.escape(token)}</mo>"


def name(token):
    if not token or not token[0].isalpha():
        return f"<mn>{token}</mn>" if token[:1].isdigit() else mo(token) if token else ""
    base, _, low = token.partition("_")
    if low and (len(base) == 1 or base in SYMBOLS or base in ("clip", "max", "min")):
        return f"<msub>{name(base)}<mrow><mtext>{low.replace('_', chr(0xa0))}</mtext></mrow></msub>"
    number = re.fullmatch(r"([A-Za-z])(\d)", token)
    if number:
        return f"<msub><mi>{number[1]}</mi><mn>{number[2]}</mn></msub>"
    if len(token) == 1 or token in FUNCTIONS:
        return f"<mi>{token}</mi>"
    if token in SYMBOLS:
        return f'<mi class="name">{token}</mi>'
    return f"<mtext>{token}</mtext>"


def letters(text):
    """What a formula must not lose: its characters but blanks, brackets, accents and the marks of scripts."""
    text = unicodedata.normalize("NFKD", text.replace("∑", "Σ").replace("∏", "Π"))
    return re.sub(r"[\s()\[\]{}_^~¯'′/√\u0300-\u036f\u00a0]", "", text)


def mathml(text, tight):
    """MathML of one formula. Fails if a character of it would be lost."""
    node = Parser(text, tight).row()
    shown = html.unescape(re.sub("<[^>]*>", "", node))
    slashes = node.count("<mfrac") + shown.count("/")
    if letters(shown) != letters(text) or node.count("<msqrt>") != text.count("√") or slashes != text.count("/"):
        raise ValueError(f"formula {text!r} would be shown as {shown!r}")
    return f"<mrow>{node}</mrow>"


def inline(text):
    kind = "formula long" if len(text) > LONG else "formula"
    return f'<span class="{kind}"><math>{mathml(text, False)}</math></span>'


def display(lines):
    """A block of formulas; blanks in runs of two or more separate columns."""
    rows = [re.split(r" {2,}", line.strip()) for line in lines]
    indents = [len(line) - len(line.lstrip()) for line in lines]
    if len(rows) == 1 and len(rows[0]) == 1:
        body = mathml(rows[0][0], True)
    else:
        body = "<mtable>" + "".join(
            "<mtr>" + ("<mtd></mtd>" if indent else "") + "".join(f"<mtd>{mathml(cell, True)}</mtd>" for cell in row) + "</mtr>"
            for row, indent in zip(rows, indents)) + "</mtable>"
    return f'<div class="formula" markdown="0"><math display="block" alttext="{html.escape(" ".join(lines))}">{body}</math></div>'


def typeset(text):
    """Markdown with its formulas as MathML: spans of code that are formulas, and blocks indented by four blanks."""
    out, block, fenced = [], [], False
    for line in text.splitlines() + [""]:
        if line.startswith("```"):
            fenced = not fenced
        if line.startswith("    ") and not fenced and (block or (out and not out[-1].strip())) and not in_list(out):
            block.append(line[4:])
            continue
        if block:
            out += [display(block), ""]
            block = []
        out.append(line)
    parts = re.split(r"(^```.*?^```$|^#.*?$)", "\n".join(out), flags=re.S | re.M)
    for i in range(0, len(parts), 2):
        parts[i] = re.sub(r"(?<!`)`([^`]+)`(?!`)", span, parts[i])
    return "".join(parts)


def span(match):
    text = re.sub(r"\s+", " ", match[1]).replace("\\|", "|")
    return inline(text) if is_formula(text) else match[0]


def in_list(out):
    last = next((line for line in reversed(out) if line.strip() and not line.startswith(" ")), "")
    return bool(re.match(r"(- |\d+\. )", last))
