"""Tokens of 10,000 strings by Hugging Face's `tokenizers`, for the byte-level BPE of gepolab.

Trains a small BPE with Qwen3's normaliser, splitting rule and kind of added tokens on the sentences
below and writes

  tokenizer.json         the tokenizer, as the library writes it but without indentation
  tokenizer_cases.json   pieces of text with their tokens under this tokenizer and variants of it;
                         sets of code points; and for each of the 10,000 strings hashes of the text,
                         of its tokens, and of what decoding gives

The strings are not stored: text i is made of addressed draws (Philox4x32-10 as core/random/rng.h has it,
seed 20, purpose 0, entity i), here and in tests/llm/text/tokenizer_golden.c alike.
`tokenizer.py --show I` prints text I and its tokens.

Unicode: PCRE2 10.42 has the categories of Unicode 14 and utf8proc 2.8 the normal forms of 15, while
the library (0.23) has the categories of 16 and the normal forms of 9. So only characters assigned in
14 are drawn, and no combining mark is that the library's normaliser does not know; on all others the
two agree. Letters assigned later are letters for the library and symbols for PCRE2 10.42.

Decoding: the library takes an added token's content for byte letters where all of its characters are
such, so that "<é>" becomes an ill-formed "<\\xe9>"; and it gives the normal form of those it looks for
after normalisation. gepolab gives the content; no token here shows these differences.
"""
import json
import pathlib
import sys
import unicodedata
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, trainers
from tokenizers import pre_tokenizers as pre, processors

assert unicodedata.unidata_version == "14.0.0", "run with a Python of Unicode 14, such as 3.11"
HERE = pathlib.Path(__file__).parent
STRINGS, SEED, VOCABULARY = 10_000, 20, 1200
QWEN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+")

SENTENCES = [line.replace("\\n", "\n").replace("\\r", "\r") for line in r"""
The learner waits for a batch that the sampler drew under older parameters, and the weights of that batch drift.
A group of responses shares one prompt; each response's reward is compared with the mean of its group's rewards.
Let's see what it'll take: they've said they're ready, I'm not, and we'd rather don't. DON'T SHOUT, IT'S LATE.
Compute (12 + 7) * 3 = 57. Then 57 - 19 = 38; 38 / 2 = 19. The answer is 19. So 2 + 2 = 4, isn't it?
for (size_t i = 0; i < n; ++i) {\n    sum += weight[i] * reward[i];\n    if (sum > limit) return -1;\n}\n
def mean(values):\n    total = 0.0\n    for value in values:\n        total += value\n    return total / len(values)\n\n
SELECT name, delay FROM cells WHERE seed = 7 AND status = 'done' ORDER BY delay DESC LIMIT 100;\r\n
<p class="note">Latency &amp; variance: see <a href="https://example.org/a?b=1&c=2">the table</a>.</p>
Die Verzögerung zwischen Sampler und Lerner ist größer geworden; die Gewichte müssen überprüft werden.
Le modèle a été entraîné à côté; où est passé l'élève? Ça dépend du délai, déjà très élevé, n'est-ce pas?
El niño pequeño preguntó: ¿cuánto cuesta? ¡Mañana será otro día! La señora contestó que no sabía nada.
Większość próbek przyszła później; żółw idzie powoli, źdźbło trawy drży. Příliš žluťoučký kůň úpěl ďábelské ódy.
Tiếng Việt có nhiều dấu: một, hai, ba, bốn, năm; người ta nói rằng điều đó rất khó đọc.
Модель обучается на старых данных, поэтому веса меняются. Задержка сети увеличивает дисперсию оценки.
Η καθυστέρηση του δικτύου αυξάνει τη διακύμανση· το μοντέλο μαθαίνει πιο αργά από όσο θέλαμε.
השהיית הרשת מגדילה את השונות, והמודל לומד לאט יותר. שָׁלוֹם עוֹלָם
تأخير الشبكة يزيد التباين، والنموذج يتعلم ببطء. السَّلَامُ عَلَيْكُمْ ٠١٢٣٤٥
नेटवर्क की देरी से प्रसरण बढ़ता है और मॉडल धीरे सीखता है। नमस्ते दुनिया १२३
নেটওয়ার্কের বিলম্ব বাড়লে মডেল ধীরে শেখে। আমার সোনার বাংলা
தாமதம் அதிகமானால் மாதிரி மெதுவாகக் கற்கும். வணக்கம் உலகம்
ความล่าช้าของเครือข่ายทำให้แบบจำลองเรียนรู้ช้าลง สวัสดีชาวโลก ๑๒๓
網路延遲會增加方差，模型因此學得更慢。网络延迟会增加方差，模型因此学得更慢。你好，世界！一二三四五六七八九十
ネットワークの遅延は分散を増やし、モデルの学習を遅くする。こんにちは、世界。カタカナとひらがな。
네트워크 지연은 분산을 키우고 모델은 더 느리게 배운다. 안녕하세요, 세계. 가각간갇갈
მოდელი ნელა სწავლობს. Մոդելը դանդաղ է սովորում։ ሰላም ለዓለም ခရီး ភាសាខ្មែរ ພາສາລາວ བོད་སྐད
∀x∈ℝ: ⌈x⌉ = −⌊−x⌋, α ∧ ¬β ≡ ¬(¬α ∨ β), ∫₀^∞ e^(−x²) dx = √π/2 ≈ 0.886; H₂O, x², ½, Ⅷ
🙂 😀 👍🏽 👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪🇯🇵 ❤️ ✈️ 1️⃣ 🤷🏾‍♀️ ok 🙂🙂🙂
""".strip().splitlines()]

PIECES = (
    "the¦ the¦The¦ delay¦ reward¦weights¦ing¦'s¦'S¦'re¦'RE¦'ll¦'d¦'m¦'ve¦'t¦'\u017f¦'\u212a¦don't¦DON'T¦it's¦'¦''¦'x¦"
    " 'so¦can't've¦0¦7¦42¦1234567¦3.14159¦ 12¦ 0x1F¦١٢٣¦१२३¦½¦²¦Ⅷ¦１２¦𝟙𝟚¦①¦ 5th¦1st2nd¦"
    "{¦}¦();¦ != ¦ ++i¦---¦===¦...¦…¦“quoted”¦‘a’¦— ¦–¦¿?¦!!!\n¦;\r\n¦:\n\n¦#$%^&*¦|¦//¦/*¦@¦a@b.c¦_¦__init__¦$\u0301¦"
    " ¦  ¦    ¦\t¦\t\t¦\n¦\n\n¦\r¦\r\n¦\r\n\r\n¦\n  ¦ \n¦ \n ¦  \n\n  ¦\x0b¦\x0c¦\x85¦\xa0¦\u1680¦\u180e¦\u180e\u180ea¦"
    "\u2000¦\u2003\u2003¦\u2028¦\u2029¦\u202f¦\u205f¦\u3000¦\u3000\u3000你¦\u200b¦\ufeff¦\x1c\x1d¦\x1f¦\x01\x02¦\x7f¦"
    "\x80\x9f¦\xad¦a  b¦a   ¦   a¦"
    "é¦e\u0301¦\u00c5¦A\u030a¦\u212b¦\u2126¦\u0344¦\u0958¦\u0929¦a\u0323\u0302¦a\u0302\u0323¦\u1ea7¦\u0307\u0323s¦"
    "q\u0307\u0323¦\u0301¦\u0301\u0301\u0301¦\u0345\u0301\u0300\u0327¦\ufb01¦\ufb03¦\ufb06¦\uf900¦\U0002f800¦"
    "\U0001d15e¦\u1100\u1161¦\u1100\u1161\u11a8¦\uac00\u11a8¦\uac00\u11a7¦\uac01\u11a8¦\u1112\u1175\u11c2¦\u3099¦"
    "か\u3099¦\u0cc6\u0cc2\u0cd5¦\u0f71\u0f72\u0f74¦\U000110a5\U000110ba¦\u0b47\u0b3e¦"
    "größer¦ Größe¦ﬂöße¦straße¦déjà¦niño¦żółw¦kůň¦người¦điều¦модель¦ Задержка¦ДИСПЕРСИЯ¦καθυστέρηση¦שָׁלוֹם¦السَّلَامُ¦नमस्ते¦"
    "क्षत्रिय¦বাংলা¦வணக்கம்¦สวัสดี¦๑๒๓¦你好¦世界！¦一二三¦網路延遲¦こんにちは¦カタカナ¦ﾊﾝｶｸ¦안녕하세요¦각¦ሰላም¦မြန်မာ¦ភាសាខ្មែរ¦"
    "བོད་སྐད¦ᚠᚢᚦ¦𐌰𐌱¦𓀀¦𠀀¦ꙮ¦ǅ¦İ¦ı¦ß¦ẞ¦ſ¦"
    "🙂¦😀😀¦👍🏽¦👩‍👩‍👧‍👦¦🏳️‍🌈¦🇩🇪¦🇩🇪🇯🇵¦❤️¦✈️¦1️⃣¦🤷🏾‍♀️¦\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f¦"
    "a🙂b¦\u200d¦\ufe0f¦\u20e3¦🙂\n¦"
    "∀x∈ℝ¦≈¦√π¦x²¦H₂O¦αβ¦∫₀¦€5¦£¦£3¦°C¦№¦™¦\ufffd¦\ufffc¦\uffff¦\ufdd0¦\U0010ffff¦\ue000¦\U000f0000¦"
    "<|endoftext|>¦<|im_start|>¦<|im_end|>¦<|im_end|>\n¦<|im_¦<|<<|im_end|>¦<|IM_END|>¦<tool_call>¦</tool_call>¦<tool_call¦"
    "<tool_calls>¦<think>¦</think>¦<|im_start|>user\n¦<|im_end|> ¦x<|im_end|>y¦<think>\n\n</think>¦<z\u0323>¦<ẓ>¦<ǽ>long¦<æ\u0301>long"
).split("¦")
ADDED = [  # content, special, normalized; as Qwen3's, and the last two in normal form
    ("<|endoftext|>", 1, 0), ("<|im_start|>", 1, 0), ("<|im_end|>", 1, 0), ("<tool_call>", 0, 0),
    ("</tool_call>", 0, 0), ("<think>", 0, 0), ("</think>", 0, 0), ("<ẓ>", 0, 1), ("<ǽ>long", 1, 1)]


# --- the tokenizer and its variants ---------------------------------------------------------------

def train():
    t = Tokenizer(models.BPE())
    t.normalizer = normalizers.NFC()
    t.pre_tokenizer = pre.Sequence([pre.Split(Regex(QWEN), "isolated"),
                                    pre.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel(add_prefix_space=False, use_regex=False)
    t.post_processor = processors.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)
    corpus = [s for i, s in enumerate(SENTENCES) for _ in range(1 + i % 7)]
    t.train_from_iterator(corpus, trainers.BpeTrainer(
        vocab_size=VOCABULARY, show_progress=False, initial_alphabet=pre.ByteLevel.alphabet()))
    for content, special, normalized in ADDED:
        token = AddedToken(content, special=bool(special), normalized=bool(normalized))
        (t.add_special_tokens if special else t.add_tokens)([token])
    return t


VARIANTS = {  # what is replaced at which JSON pointer
    "rule of GPT-2, no normaliser": {
        "/normalizer": None,
        "/pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}},
    "no rule": {
        "/pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}},
    "pieces first": {"/model/ignore_merges": True},
    "three digits, lines apart": {
        "/normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "NFC"}]},
        "/pre_tokenizer/pretokenizers/0/pattern/Regex": r"\p{N}{1,3}|(?=\n)|[\p{Lu}\p{Lt}]?[\p{Ll}\p{Lo}\p{M}]+|\S"},
    "half of the merges": {},  # filled in by main()
}


def replaced(document, changes):
    document = json.loads(json.dumps(document))
    for pointer, value in changes.items():
        *path, last = pointer.split("/")[1:]
        at = document
        for key in path:
            at = at[int(key)] if isinstance(at, list) else at[key]
        at[last] = value
    return document


def tokens(t, text):
    return t.encode(text, add_special_tokens=False).ids


# --- strings --------------------------------------------------------------------------------------

def draw(entity, index):
    """The four words of block `index` of the stream (SEED, 0, entity)."""
    c, k = [index & 0xffffffff, entity & 0xffffffff, entity >> 32, index >> 32], [SEED, 0]
    for _ in range(10):
        a, b = 0xd2511f53 * c[0], 0xcd9e8d57 * c[2]
        c = [b >> 32 ^ c[1] ^ k[0], b & 0xffffffff, a >> 32 ^ c[3] ^ k[1], a & 0xffffffff]
        k = [k[0] + 0x9e3779b9 & 0xffffffff, k[1] + 0xbb67ae85 & 0xffffffff]
    return c


def ranges_of(codes):
    out = []
    for u in sorted(codes):
        if out and out[-1][1] == u - 1:
            out[-1][1] = u
        else:
            out.append([u, u])
    return out


def code_sets():
    """Five sets of code points, each with how often it is chosen and how long its runs are."""
    library, probes = normalizers.NFC(), ("a%s\u0301", "%s\u0301\u0323", "\u0301%s\u0323b")
    scalars = [u for u in range(1, 0x110000) if not 0xd800 <= u < 0xe000]
    unknown = {u for u in scalars if unicodedata.combining(chr(u)) and
               any(library.normalize_str(p % chr(u)) != unicodedata.normalize("NFC", p % chr(u)) for p in probes)}
    known = [u for u in scalars if unicodedata.category(chr(u)) != "Cn" and u not in unknown]
    space = [u for u in known if chr(u).isspace()] + [0x180e, 0x200b, 0xfeff]
    return [{"weight": w, "longest": n, "ranges": ranges_of(codes)} for w, n, codes in (
        (3, 4, space), (2, 3, [u for u in known if u < 0x3000]), (1, 1, known),
        (2, 4, [u for u in known if unicodedata.combining(chr(u))]), (2, 8, range(1, 128)))]


def pick(ranges, word):
    word %= sum(b - a + 1 for a, b in ranges)
    for a, b in ranges:
        if word <= b - a:
            return chr(a + word)
        word -= b - a + 1


def text_of(i, sets):
    """1 to 12 parts; a part is a piece (6 times of 16) or a run of characters of one set."""
    out = []
    for part in range(1, 2 + draw(i, 0)[0] % 12):
        kind, which, length, _ = draw(i, part << 8)
        kind %= 16
        if kind < 6:
            out.append(PIECES[which % len(PIECES)])
            continue
        s = next(s for n, s in enumerate(sets) if kind - 6 < sum(x["weight"] for x in sets[:n + 1]))
        out += [pick(s["ranges"], draw(i, part << 8 | j + 1)[0]) for j in range(1 + length % s["longest"])]
    return "".join(out)


def fnv(data, h=0xcbf29ce484222325):
    for byte in data:
        h = (h ^ byte) * 0x100000001b3 & 0xffffffffffffffff
    return h


def case_of(t, i, sets):
    """32 hexadecimal digits: 8 of the text, 16 of its tokens, 8 of what decoding gives."""
    text = text_of(i, sets)
    ids = tokens(t, text)
    stray = [w % t.get_vocab_size() for w in draw(i, 1) + draw(i, 2)]
    decoded = [t.decode(ids, skip_special_tokens=False), t.decode(ids), t.decode(stray, skip_special_tokens=False)]
    return (f"{fnv(text.encode()) & 0xffffffff:08x}"
            f"{fnv(b''.join(x.to_bytes(4, 'little') for x in ids)):016x}"
            f"{fnv(''.join(decoded).encode()) & 0xffffffff:08x}")


# --- main -----------------------------------------------------------------------------------------

def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def lines(values):
    return "[\n" + ",\n".join(compact(v) for v in values) + "]"


def main():
    sets = code_sets()
    if sys.argv[1:2] == ["--show"]:
        t, text = Tokenizer.from_file(str(HERE / "tokenizer.json")), text_of(int(sys.argv[2]), sets)
        print(ascii(text), tokens(t, text), sep="\n")
        return
    document = json.loads(train().to_str())
    t = Tokenizer.from_str(compact(document))
    merges = document["model"]["merges"]
    VARIANTS["half of the merges"] = {"/model/merges": merges[:len(merges) // 2]}
    variants = []
    for name, changes in {"as it is": {}, **VARIANTS}.items():
        v = Tokenizer.from_str(compact(replaced(document, changes)))
        variants.append({"name": name, "changes": changes, "tokens": [tokens(v, p) for p in PIECES]})
    cases = [case_of(t, i, sets) for i in range(STRINGS)]
    (HERE / "tokenizer.json").write_text(compact(document) + "\n")
    (HERE / "tokenizer_cases.json").write_text(
        f'{{"seed":{SEED},\n"pieces":{compact(PIECES)},\n"sets":{lines(sets)},\n'
        f'"variants":{lines(variants)},\n"cases":{lines(cases)}}}\n')


main()
