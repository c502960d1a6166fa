"""Functions of text. If the two engines differ for some values only, those are an error rather than another answer."""

from __future__ import annotations

from sqlglot import exp

from dbt.adapters.ducklake.statements.translation import types as t
from dbt.adapters.ducklake.statements.translation.casts import cast
from dbt.adapters.ducklake.statements.translation.expressions import (
    Expressions,
    arguments,
    by_name,
    rule,
    value_node,
)
from dbt.adapters.ducklake.statements.translation.typed import Typed, Untranslatable, error, text_literal

# Letters whose other case is more than one letter for Spark, or that DuckDB does not know; found by asking both.
_UPPER = "ŉƛǰɤΐΰև\u1c8aẖẗẘẙẚὐὒὔὖᾀ-ᾯᾲᾳᾴᾶᾷᾼῂῃῄῆῇῌῒΐῖῗῢΰῤῦῧῲῳῴῶῷῼ\ua7cd\ua7dbﬀ-ﬆﬓ-ﬗ\U00010d70-\U00010d85"
_LOWER = "İΣ\u1c89\ua7cb\ua7cc\ua7da\ua7dc\U00010d50-\U00010d65"
_LEAST_INT = -(2**31)
_NO_WILDCARDS = frozenset("\\")


def _text(sql: str) -> Typed:
    return Typed(sql, t.STRING)


def as_text(to: Expressions, node: exp.Expr | str | None) -> Typed:
    """The value as text, to which Spark casts what is joined to another."""
    return cast(to.of(node), t.STRING, to.zone, value_node(node))


def literal_text(to: Expressions, node: exp.Expr | str | None) -> str:
    value = to.of(node)
    if value.text is None:
        raise Untranslatable(value_node(node), "it is no literal here")
    return value.text


def literal_number(to: Expressions, node: exp.Expr | str | None) -> int:
    value = to.of(node)
    if value.number is None:
        raise Untranslatable(value_node(node), "it is no literal here")
    return value.number


@rule(exp.Concat)
def _concat(to: Expressions, node: exp.Expr) -> Typed:
    return _joined([as_text(to, one) for one in node.expressions])


@rule(exp.DPipe)
def _pipes(to: Expressions, node: exp.Expr) -> Typed:
    return _joined([as_text(to, node.this), as_text(to, node.expression)])


def _joined(values: list[Typed]) -> Typed:
    """DuckDB's concat passes over NULLs, its || does not, as Spark."""
    texts = [value.text for value in values]
    if all(text is not None for text in texts):
        whole = "".join(text or "" for text in texts)
        return Typed(text_literal(whole), t.STRING, text=whole)
    # With a NULL among them it would be an integer to DuckDB.
    return _text(f"CAST({' || '.join(value.sql for value in values)} AS VARCHAR)")


@rule(exp.ConcatWs)
def _concat_ws(to: Expressions, node: exp.Expr) -> Typed:
    values = [as_text(to, one) for one in node.expressions]
    return _text(f"concat_ws({', '.join(value.sql for value in values)})")


@rule(exp.Upper, takes="this")
def _upper(to: Expressions, node: exp.Expr) -> Typed:
    value = to.text(node.this).sql
    return _text(_cased(value, _UPPER, f"upper(replace({value}, 'ß', 'SS'))"))


@rule(exp.Lower, takes="this")
def _lower(to: Expressions, node: exp.Expr) -> Typed:
    value = to.text(node.this).sql
    return _text(_cased(value, _LOWER, f"lower({value})"))


def _cased(value: str, odd: str, sql: str) -> str:
    refused = error("This text has letters of which DuckDB and Spark have different upper and lower cases.")
    return f"CASE WHEN regexp_matches({value}, '[{odd}]') THEN {refused} ELSE {sql} END"


@rule(exp.Length, takes="this")
def _length(to: Expressions, node: exp.Expr) -> Typed:
    value = to.typed(node.this, "varchar", "blob")
    function = "length" if value.kind == "varchar" else "octet_length"
    return Typed(f"CAST({function}({value.sql}) AS INTEGER)", t.INT)


@by_name("octet_length")
def _bytes(to: Expressions, node: exp.Expr) -> Typed:
    value = to.typed(node.expressions[0], "varchar", "blob")
    function = "strlen" if value.kind == "varchar" else "octet_length"
    return Typed(f"CAST({function}({value.sql}) AS INTEGER)", t.INT)


@rule(exp.Trim, takes="this position expression")
def _trim(to: Expressions, node: exp.Expr) -> Typed:
    # Without a second argument DuckDB also takes off other spaces than the plain one.
    given = node.args.get("expression")
    signs = "' '" if given is None else text_literal(literal_text(to, given))
    function = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position") or "BOTH"), "trim")
    return _text(f"{function}({to.text(node.this).sql}, {signs})")


@by_name("btrim")
def _btrim(to: Expressions, node: exp.Expr) -> Typed:
    value, *signs = arguments(node)
    return _text(f"trim({to.text(value).sql}, {text_literal(literal_text(to, signs[0]) if signs else ' ')})")


@rule(exp.Substring, takes="this start length")
def _substring(to: Expressions, node: exp.Expr) -> Typed:
    value, start = to.text(node.this).sql, to.whole(node.args["start"])
    count = to.whole(node.args["length"]) if node.args.get("length") is not None else None
    if start.number is not None and start.number >= 0 and (count is None or (count.number or -1) >= 0):
        # Spark begins at 1 if it is told 0.
        more = "" if count is None else f", {count.number}"
        return _text(f"substring({value}, {max(1, start.number)}{more})")
    if start.number is not None and start.number <= _LEAST_INT:
        raise Untranslatable(node, "Spark's count of letters overflows")
    # DuckDB's greatest and least pass over NULLs.
    known = f"{start.sql} IS NOT NULL" + ("" if count is None else f" AND {count.sql} IS NOT NULL")
    refused = f"WHEN {start.sql} <= {_LEAST_INT} THEN {error('With this start, the place overflows in Spark.')}"
    size = f"length({value})"
    first = f"CASE WHEN {start.sql} < 0 THEN {size} + {start.sql} ELSE greatest({start.sql} - 1, 0) END"
    if count is None:
        return _text(f"CASE {refused} WHEN {known} THEN substring({value}, greatest({first}, 0) + 1) END")
    after = f"least({size}, ({first}) + greatest({count.sql}, 0))"
    cut = f"substring({value}, greatest({first}, 0) + 1, greatest(0, {after} - greatest({first}, 0)))"
    return _text(f"CASE {refused} WHEN {known} AND {value} IS NOT NULL THEN {cut} END")


@rule(exp.Left)
def _left(to: Expressions, node: exp.Expr) -> Typed:
    count = to.whole(node.expression)
    return _text(f"left({to.text(node.this).sql}, {_not_below_zero(count)})")


@rule(exp.Right)
def _right(to: Expressions, node: exp.Expr) -> Typed:
    count = to.whole(node.expression)
    return _text(f"right({to.text(node.this).sql}, {_not_below_zero(count)})")


def _not_below_zero(count: Typed) -> str:
    return f"CASE WHEN {count.sql} < 0 THEN 0 ELSE {count.sql} END"


@rule(exp.Replace, takes="this expression replacement")
def _replace(to: Expressions, node: exp.Expr) -> Typed:
    given = node.args.get("replacement")
    other = "''" if given is None else to.text(given).sql
    return _text(f"replace({to.text(node.this).sql}, {to.text(node.expression).sql}, {other})")


@rule(exp.Repeat, takes="this times")
def _repeat(to: Expressions, node: exp.Expr) -> Typed:
    return _text(f"repeat({to.text(node.this).sql}, {_not_below_zero(to.whole(node.args['times']))})")


@rule(exp.Pad, takes="this expression fill_pattern is_left")
def _pad(to: Expressions, node: exp.Expr) -> Typed:
    given = node.args.get("fill_pattern")
    fill = " " if given is None else literal_text(to, given)
    count = literal_number(to, node.expression)
    if not fill or count < 0:
        raise Untranslatable(node, "it pads with nothing, or to less than nothing")
    function = "lpad" if node.args.get("is_left") else "rpad"
    return _text(f"{function}({to.text(node.this).sql}, {count}, {text_literal(fill)})")


@rule(exp.StrPosition, takes="this substr")
def _position(to: Expressions, node: exp.Expr) -> Typed:
    return Typed(f"CAST(instr({to.text(node.this).sql}, {to.text(node.args['substr']).sql}) AS INTEGER)", t.INT)


_PARTS: dict[type[exp.Expr], str] = {
    exp.Contains: "contains", exp.StartsWith: "starts_with", exp.EndsWith: "ends_with",
}  # fmt: skip


@rule(*_PARTS)
def _part(to: Expressions, node: exp.Expr) -> Typed:
    part = to.text(node.expression).sql
    return Typed(f"{_PARTS[type(node)]}({to.text(node.this).sql}, {part})", t.BOOLEAN)


@rule(exp.Like, takes="this expression negate")
def _like(to: Expressions, node: exp.Expr) -> Typed:
    no = "NOT " if node.args.get("negate") else ""
    return Typed(f"({to.text(node.this).sql} {no}LIKE {_pattern(to, node.expression, '')})", t.BOOLEAN)


@rule(exp.Escape)
def _like_with_escape(to: Expressions, node: exp.Expr) -> Typed:
    like, escape = node.this, literal_text(to, node.expression)
    if type(like) is not exp.Like or len(escape) != 1:
        raise Untranslatable(node, "ESCAPE stands behind something unknown")
    no = "NOT " if like.args.get("negate") else ""
    pattern = _pattern(to, like.expression, escape)
    return Typed(f"({to.text(like.this).sql} {no}LIKE {pattern})", t.BOOLEAN)


def _pattern(to: Expressions, node: exp.Expr, escape: str) -> str:
    """A pattern with its escape: a backslash in Spark, none in DuckDB."""
    sign, pattern = escape or "\\", literal_text(to, node)
    rest = pattern.replace(sign * 2, "")
    pairs = [rest[at + 1 : at + 2] for at in range(len(rest)) if rest[at] == sign]
    if any(following not in ("%", "_") for following in pairs) or (sign in pattern and sign in "%_"):
        raise Untranslatable(node, "Spark refuses this pattern")
    return text_literal(pattern) + (f" ESCAPE {text_literal(sign)}" if sign in pattern else "")


@rule(exp.SplitPart, takes="this delimiter part_index")
def _split_part(to: Expressions, node: exp.Expr) -> Typed:
    part, delimiter = literal_number(to, node.args["part_index"]), literal_text(to, node.args["delimiter"])
    if part == 0 or not delimiter:
        raise Untranslatable(node, "Spark refuses part 0, and DuckDB takes an empty delimiter for another thing")
    return _text(f"split_part({to.text(node.this).sql}, {text_literal(delimiter)}, {part})")


@rule(exp.Translate, takes="this from_ to")
def _translate(to: Expressions, node: exp.Expr) -> Typed:
    before, after = literal_text(to, node.args["from_"]), literal_text(to, node.args["to"])
    if len(set(before)) < len(before):
        raise Untranslatable(node, "a letter is there twice")
    return _text(f"translate({to.text(node.this).sql}, {text_literal(before)}, {text_literal(after)})")


@rule(exp.MD5, takes="this")
def _md5(to: Expressions, node: exp.Expr) -> Typed:
    return _text(f"md5({to.text(node.this).sql})")


@rule(exp.SHA2, takes="this length")
def _sha2(to: Expressions, node: exp.Expr) -> Typed:
    if node.args.get("length") is not None and literal_number(to, node.args["length"]) not in (0, 256):
        raise Untranslatable(node, "DuckDB has SHA-2 with 256 bits only")
    return _text(f"sha256({to.text(node.this).sql})")


@rule(exp.SHA, takes="this")
def _sha1(to: Expressions, node: exp.Expr) -> Typed:
    return _text(f"sha1({to.text(node.this).sql})")
