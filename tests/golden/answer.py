#!/usr/bin/env python3
"""Pairs of answers and what math_verify says of them: tests/golden/answer.txt.

    python tests/golden/answer.py > tests/golden/answer.txt      (needs math_verify; used: 0.9.0)

Each line holds, separated by tabs: what math_verify says (1 equal, 0 not), what llm/answer/answer.h
promises ("=" where that is the same, else the other digit and the reason), reference, response.
Both are given to math_verify as the contents of a box. The groups below are writings of one answer:
each is paired with the group's first in both directions, and with the first of the next group.
"""
import importlib.metadata
import itertools

from math_verify import parse, verify

GROUPS = [
    # integers
    ["5", "5.0", "+5", "05", "5.", r"\boxed{5}", "$5$", r"\(5\)", " 5 ", r"x = 5", r"x=5.0", r"\text{5}", "2+3", r"\frac{10}{2}",
     r"\sqrt{25}", "5^1", "{5}", "(5)", r"5\,", r"\displaystyle 5", r"5\text{ cm}", r"5\mbox{ dollars}", r"5 \mathrm{~kg}", r"\$5",
     "5 cm", "5 miles per hour", r"5^\circ", r"5^{\circ}", r"5\degree", r"5\text{ cm}^2", r"\textbf{5}", r"f(2)=5", r"x_1 = 5", "5!/4!"],
    ["-7", "−7", "- 7", "-7.0", r"-\frac{14}{2}", "(-7)", "-07", r"n=-7", "-(7)", "3-10", r"-\sqrt{49}", r"\left(-7\right)"],
    ["0", "0.0", "-0", "00", "1-1", r"\frac{0}{3}", "0.000", r"\ln 1", r"x=0"],
    ["1234", "1,234", r"1{,}234", r"1,\!234", "1234.0", "01234", r"1.234\times10^3", r"1.234 \cdot 10^{3}", "1.234e3", r"\$1,234", r"1\,234"],
    ["1000000", "1,000,000", "10^6", "10^{6}", r"1\times 10^6", "1e6", r"1{,}000{,}000", r"1,\!000,\!000"],
    ["123456789012345678901234567890", "123,456,789,012,345,678,901,234,567,890"],
    ["123456789012345678901234567891"],
    ["2^{100}", "1267650600228229401496703205376"],
    # fractions and decimals
    [r"\frac{1}{2}", r"\frac12", r"\dfrac{1}{2}", r"\tfrac{1}{2}", "1/2", "0.5", ".5", "0.50", r"\frac{2}{4}", "2/4", r"\frac 1 2", r"\frac{1}2", r"\frac1{2}",
     r"1 / 2", r"\left(\frac{1}{2}\right)", r"2^{-1}", r"\frac{1}{2}\text{ hour}", r"\frac{3}{2}-1", r"\frac{\frac{1}{2}}{1}", "5e-1", r"p = \frac{1}{2}", r"50\%"],
    [r"-\frac{3}{4}", r"\frac{-3}{4}", r"\frac{3}{-4}", "-3/4", "-0.75", r"-\dfrac34", r"-\left(\frac{3}{4}\right)", "−0.75"],
    [r"\frac{7}{3}", r"2\frac{1}{3}", "7/3", r"2 \frac13", "2 1/3", r"\frac{14}{6}", r"2+\frac{1}{3}", "2.3333333333"],
    [r"\frac{1}{3}", "1/3", "0.3333333333", r"0.\overline{3}", r"\frac{2}{6}"],
    ["0.333", "0.3330"],
    ["3.14", "3.140", r"\frac{157}{50}"],
    [r"\frac{10}{7}", "1.428571428571"],
    ["0.001", r"10^{-3}", "1e-3", r"\frac{1}{1000}", r"1\times10^{-3}", "0.1%"],
    ["25\\%", "25%", "25", "0.25", r"\frac{1}{4}"],
    [r"\frac{123}{1000}", "0.123", "12.3\\%"],
    # roots, pi, powers
    [r"\sqrt{2}", r"\sqrt2", r"2^{1/2}", r"2^{\frac12}", r"\frac{2}{\sqrt{2}}", "√2", "sqrt(2)", r"\sqrt[4]{4}", r"2^{0.5}"],
    [r"2\sqrt{3}", r"\sqrt{12}", r"2 \cdot \sqrt{3}", r"\frac{6}{\sqrt{3}}", r"2*\sqrt{3}", r"\sqrt{3} + \sqrt{3}", r"2\sqrt3"],
    [r"\frac{\sqrt{3}}{3}", r"\frac{1}{\sqrt{3}}", r"\frac{1}{3}\sqrt{3}", r"\sqrt{\frac{1}{3}}", r"\sqrt{3}/3"],
    [r"1+\sqrt{5}", r"\sqrt{5}+1", r"\frac{4}{\sqrt{5}-1}", r"\left(1+\sqrt{5}\right)"],
    [r"\sqrt[3]{-8}", "-2"],
    [r"\sqrt[3]{2}", r"2^{1/3}", r"\sqrt[3]2", r"2^{\frac{1}{3}}"],
    [r"\pi", "π", r"\pi\text{ cm}", r"1\pi", r"\frac{2\pi}{2}", r"\arccos(-1)"],
    [r"\frac{\pi}{6}", r"\pi/6", r"\frac{1}{6}\pi", r"\dfrac{\pi}{6}", r"30^\circ \cdot \frac{\pi}{180}"],
    [r"2\pi r", r"2 \cdot \pi \cdot r", r"r 2\pi", r"2r\pi"],
    [r"4\pi", r"4 \pi", r"\pi 4", r"4\pi \text{ square units}"],
    [r"e^2", r"e^{2}", r"e \cdot e", r"\exp(2)"],
    [r"\ln 2", r"\ln(2)", r"\ln{2}", r"\frac{\ln 4}{2}"],
    [r"\log_2 8", "3", r"\log_{2}(8)", r"3.0"],
    [r"\sin\frac{\pi}{6}", r"\frac12", r"\cos\frac{\pi}{3}", r"\sin 30^\circ", r"\cos 60^{\circ}", r"\sin(30°)"],
    [r"\arctan\frac{3}{4}", r"\tan^{-1}\frac{3}{4}", r"\tan^{-1}(3/4)"],
    [r"\log_2 5", r"\log_2 3\log_3 5", r"\frac{\ln 5}{\ln 2}"],
    [r"\ln 2\ln 3", r"\ln(2)\ln(3)", r"\ln 3 \ln 2", r"(\ln 2)(\ln 3)"],
    [r"1.6\times10^{-19}", r"1.6 \cdot 10^{-19}", r"\frac{16}{10^{20}}"],
    [r"1.7\times10^{-19}"],
    [r"\binom{5}{2}", "10", "5!/(2!3!)", r"\frac{5!}{2!3!}"],
    ["7!", "5040", r"7\cdot 6!"],
    # formulas
    ["x^2+2x+1", "1+2x+x^2", "(x+1)^2", r"x^2 + 2x + 1", "x^{2}+2x+1", r"x\cdot x+2x+1"],
    ["x^2+2x+2"],
    ["2x+3y", "3y+2x", r"2\cdot x + 3 \cdot y", "2x + 3y"],
    ["2x+3z"],
    [r"\frac{x+1}{2}", r"\frac{1}{2}(x+1)", r"\frac{x}{2}+\frac{1}{2}", "(x+1)/2", "0.5x+0.5"],
    [r"\frac{a}{b}", "a/b", r"a b^{-1}"],
    [r"\frac{b}{a}"],
    ["n(n+1)/2", r"\frac{n(n+1)}{2}", r"\frac{n^2+n}{2}", r"\binom{n+1}{2}"],
    [r"\sin^2 x", r"(\sin x)^2", r"1-\cos^2 x", r"\sin^2(x)"],
    [r"\sin x\cos x", r"\cos x\sin x", r"\frac{\sin 2x}{2}", r"\sin(x)\cos(x)"],
    [r"\sin(x\cos x)"],
    [r"\arcsin x", r"\sin^{-1} x", r"\sin^{-1}(x)"],
    [r"x_1+x_2", r"x_2+x_1", r"x_{1}+x_{2}"],
    [r"\alpha+\beta", r"\beta+\alpha"],
    ["a^2b", "ba^2", r"a^2 \cdot b", r"a a b"],
    [r"3x^2-5", r"-5+3x^2"],
    [r"\sqrt{x^2+y^2}", r"\sqrt{y^2+x^2}", r"(x^2+y^2)^{1/2}"],
    [r"2^n", r"2^{n}", r"2\cdot 2^{n-1}"],
    [r"\frac{1}{x-1}", r"(x-1)^{-1}"],
    # equations
    ["y=2x+1", "y = 2x + 1", "2x+1=y", "y=1+2x", "2x-y+1=0", "y-2x=1"],
    ["y=2x-1"],
    ["x^2+y^2=4", "y^2+x^2=4", "4=x^2+y^2"],
    ["x^2+y^2=9"],
    ["f(x)=x^2", "x^2", "f(x) = x^{2}"],
    ["x=5000000000", r"x=5\times 10^9", "5000000000", "x = 5,000,000,000"],
    ["x=7000000000"],
    ["n=2^{100}", "n=4^{50}", "2^{100}"],
    ["n=2^{101}"],
    [r"\sin^2 x+\cos^2 x=1"],
    # lists of equations
    ["a=1, b=2", "b=2, a=1", "a = 1, b = 2.0", r"a=1 \text{ and } b=2", "(1,2)", r"(a,b)=(1,2)"],
    ["a=3, b=2"],
    ["2"],
    ["x=-6 or x=6", "x=6, x=-6", r"x=\pm 6", "-6, 6", r"x=-6 \text{ or } x=6", "6,-6", r"\{-6,6\}"],
    ["x=6 or x=6"],
    ["x=3, y=-2, z=5", "(3,-2,5)", "y=-2, x=3, z=5"],
    ["x+y=3, x-y=1", "x-y=1, x+y=3"],
    ["(11,7),(7,11)", "(7,11),(11,7)", "(11,7)or(7,11)", r"(11,7) \text{ or } (7,11)"],
    # lists, sets, tuples, intervals
    ["(1,2)", "(1, 2)", r"\left(1,2\right)", r"(1.0,\frac{4}{2})", r"( 1 , 2 )", r"(x,y)=(1,2)"],
    ["(2,1)"],
    ["(1,2,3)", "(1, 2, 3)", r"\left( 1, 2, 3 \right)"],
    [r"\left(\frac{1}{2}, -\sqrt{3}\right)", r"(0.5, -\sqrt3)", r"(1/2,-\sqrt{3})"],
    [r"(3,\frac{\pi}{2})", r"\left( 3, \frac{\pi}{2} \right)", r"(3,\pi/2)"],
    ["1,2", "1, 2", "2,1", "2, 1", r"1\text{ and }2", r"1 \text{ or } 2", "x=1, x=2", r"\{1,2\}", r"\{2,1\}"],
    ["1,2,3", "3, 2, 1", "1,3,2"],
    [r"\{1,2,3\}", r"\{3,2,1\}", r"\left\{1,2,3\right\}", r"\{1, 2, 3\}"],
    [r"\{-1,0,1\}", r"\{0,-1,1\}", "-1,0,1"],
    ["[1,2]", r"\left[1,2\right]", "[1.0, 2.0]", r"x\in[1,2]", r"x \in \left[1,2\right]"],
    ["[1,2)", r"\left[1,2\right)", "[ 1, 2 )"],
    ["(1,2]", r"\left(1,2\right]"],
    [r"(-\infty,3]", r"\left(-\infty,3\right]", r"(-\infty, 3]", "(-∞,3]"],
    [r"(-\infty,3)"],
    [r"(3,\infty)", r"(3,+\infty)", r"\left(3,\infty\right)"],
    [r"(-\infty,1)\cup(2,\infty)", r"(-\infty, 1) \cup (2, \infty)", r"(2,\infty)\cup(-\infty,1)"],
    [r"[0,1]\cup[2,3]", r"\left[0,1\right]\cup\left[2,3\right]", r"[0, 1] ∪ [2, 3]"],
    [r"2\pm\sqrt{3}", r"2+\sqrt{3}, 2-\sqrt{3}", r"2-\sqrt3,2+\sqrt3", r"x=2\pm\sqrt{3}"],
    [r"\pm 2", r"2,-2", r"-2, 2", r"x=\pm2"],
    [r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}", r"\begin{bmatrix} 1 & 2 \\ 3 & 4 \end{bmatrix}", r"\begin{pmatrix}1&2\\3&4\end{pmatrix}",
     r"\left(\begin{array}{cc}1&2\\3&4\end{array}\right)", r"\begin{pmatrix} 1.0 & 2 \\ 3 & \frac{8}{2} \end{pmatrix}"],
    [r"\begin{pmatrix} 1 & 2 \\ 4 & 3 \end{pmatrix}"],
    [r"\begin{pmatrix} 1 \\ -2 \end{pmatrix}", r"\begin{bmatrix}1\\-2\end{bmatrix}"],
    [r"\emptyset", r"\varnothing"],
    [r"\infty", r"+\infty", "∞"],
    [r"-\infty", "-∞"],
    # words and choices
    [r"\text{Monday}", "Monday", r"\text{monday}", r"\textbf{Monday}", r"\mathrm{Monday}"],
    [r"\text{Tuesday}"],
    [r"\text{even}", "even"],
    [r"\text{Yes}", "yes", r"\text{Yes.}"],
    [r"\text{No}"],
    [r"\text{(A)}", "(A)", "A", r"\text{A}", r"\textbf{(A)}", "A.", "A) 12", r"(\text{A})"],
    [r"\text{(B)}", "B"],
    ["C", "(C)", r"\text{C}"],
    # other things that are equal only as text
    ["101_2", "101_{2}", r"101_2"],
    ["2:3", "2 : 3"],
    ["10:30", r"10:30", r"10\!:\!30"],
    ["x>3", "x > 3"],
    [r"x\le 3", r"x \leq 3", "x ≤ 3"],
    [r"1 < x < 2", "1<x<2"],
    ["3+4i", "4i+3", r"3 + 4i"],
    ["AB", "A B"],
    ["2^{10}", "1024", "2^10", "4^5"],
    ["12 \\text{ cm}", "12\\,\\mathrm{cm}", "12", "12cm", r"12 \text{ centimeters}", r"x = 12 \text{ cm}", "10+2=12"],
    [r"45\%", "45%", "0.45", "45", r"\frac{9}{20}"],
    [r"-\frac{\sqrt{2}}{2}", r"\frac{-\sqrt{2}}{2}", r"-\frac{1}{\sqrt{2}}"],
    [r"\frac{3}{2}x", "1.5x", r"\frac{3x}{2}", "3x/2"],
    [r"(x-1)(x+2)", "x^2+x-2", "(x+2)(x-1)"],
    [r"x=3 \text{ or } x=-3", "3,-3", r"x = \pm 3", r"\{3,-3\}", r"-3 \text{ and } 3"],
    [r"\left(0, \frac{1}{2}\right]", r"(0, 0.5]", r"(0,1/2]"],
    [r"|x|", r"\left|x\right|", r"\lvert x \rvert"],
    [r"\frac{x}{y}+\frac{y}{x}", r"\frac{x^2+y^2}{xy}"],
    [r"90", r"90^{\circ}", r"90 \text{ degrees}", r"90^\circ"],
    [r"8:00", r"8:00 \text{ a.m.}"],
    # near misses
    ["12", "1 2"], ["3x"], ["3"], ["0.4999999"], ["0.5000001"], ["99.99"], ["100"], ["1.41"], [r"\sqrt{2}"], ["3.14159"], [r"\pi"],
    ["22/7"], ["5 million"], ["5"], ["5000000"], ["x=5"], ["y=6"], ["1/(1/0)"], ["0"], ["0/0"], ["0^0"], ["1"],
]

# Few of these are equal: all pairs.
DISTINCT = ["1", "-1", "2", "12", "21", "1.2", "1,2", "(1,2)", "[1,2]", r"\{1,2,3\}", r"\frac{1}{2}", r"\frac{2}{1}x", "1/12", "x", "2x", "x^2", "x=2y",
            r"\sqrt{3}", r"\pi", r"\frac{\pi}{4}", r"2\sqrt{2}", "e", "1e2", "0.1", r"\text{no}", r"\text{yes}", "D", r"\infty",
            r"(-\infty, 2)", r"2\pi", "x+y", "x-y", r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}", "3!", "1:2", "2^x"]

# Where llm/answer/answer.h decides otherwise: (reference, response) -> our verdict and why.
# A pair is decided otherwise if one of these writings is in it and the oracle says what is on the left.
EQUAL = {  # math_verify says no
    "5.": "a point at the end closes a sentence",
    "5 miles per hour": "a unit of several words",
    r"5\degree": "degrees",
    "f(2)=5": "a value's name",
    "1.234e3": "scientific notation of programs",
    "1e6": "scientific notation of programs",
    "5e-1": "scientific notation of programs",
    "1e-3": "scientific notation of programs",
    r"1\,234": "a thin space between thousands",
    "2 1/3": "a mixed number in plain text",
    r"0.\overline{3}": "a repeating decimal",
    "√2": "a root without braces in Unicode",
    "2^{0.5}": "the square root as a decimal power",
    r"\sqrt[3]{-8}": "the real cube root",
    r"\sqrt[3]2": "a root without braces",
    "a a b": "a factor, not the article",
    "(-∞,3]": "Unicode's infinity",
    "∞": "Unicode's infinity",
    "-∞": "Unicode's infinity",
    r"\varnothing": "two signs of the empty set",
    r"\text{Yes.}": "a point at the end closes a sentence",
    "A.": "a choice with what follows it",
    "A) 12": "a choice with what follows it",
    r"\sin 30^\circ": "degrees in a function's argument",
    r"\cos 60^{\circ}": "degrees in a function's argument",
    r"\sin(30°)": "degrees in a function's argument",
    "x = 5,000,000,000": "thousands behind a name",
}
DIFFERENT = {  # math_verify says yes
    "0.4999999": "both are exact decimals, and not the same",
    "1/(1/0)": "division by zero",
    "1:2": "a ratio is compared as text",
    r"1.7\times10^{-19}": "small numbers differ as large ones do",
}

def oracle(reference, response):
    box = lambda s: r"\boxed{" + s + "}"
    try:
        return int(verify(parse(box(reference)), parse(box(response))))
    except Exception:
        return 0

def pairs():
    seen = set()
    for k, group in enumerate(GROUPS):
        first, following = group[0], GROUPS[(k + 1) % len(GROUPS)][0]
        for other in group:
            for pair in ((first, other), (other, first), (following, other)):
                if pair not in seen:
                    seen.add(pair)
                    yield pair
    for pair in itertools.permutations(DISTINCT, 2):
        if pair not in seen:
            seen.add(pair)
            yield pair

def decided(says, reference, response):
    """'=', or our verdict and the reason."""
    for verdict, table in ((1, EQUAL), (0, DIFFERENT)):
        for writing in (response, reference):
            if writing in table and says != verdict and same_group(reference, response) == verdict:
                return f"{verdict} {table[writing]}"
    return "="

def same_group(reference, response):
    return reference == response or any(reference in group and response in group for group in GROUPS)

def main():
    print("# math_verify", importlib.metadata.version("math-verify"), "by tests/golden/answer.py")
    for reference, response in pairs():
        says = oracle(reference, response)
        print(says, decided(says, reference, response), reference, response, sep="\t")

if __name__ == "__main__":
    main()
