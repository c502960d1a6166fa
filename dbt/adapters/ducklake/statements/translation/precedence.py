"""Whether sqlglot took a text apart as Spark does: in some places its operators bind in another order.

A tree is Spark's if each operand binds at least as tightly as Spark's grammar lets it without parentheses.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from dbt.adapters.ducklake.statements.translation.typed import Untranslatable

_PRIMARY, _UNARY, _COMPARISON, _PREDICATE, _NOT = 100, 12, 5, 4, 3
_BINARY: dict[type[exp.Expr], int] = {
    exp.Or: 1, exp.And: 2,
    exp.EQ: 5, exp.NEQ: 5, exp.LT: 5, exp.LTE: 5, exp.GT: 5, exp.GTE: 5, exp.NullSafeEQ: 5, exp.NullSafeNEQ: 5,
    exp.BitwiseOr: 6, exp.BitwiseXor: 7, exp.BitwiseAnd: 8, exp.Add: 10, exp.Sub: 10, exp.DPipe: 10,
    exp.Mul: 11, exp.Div: 11, exp.IntDiv: 11, exp.Mod: 11,
    exp.Union: 1, exp.Except: 1, exp.Intersect: 2,
}  # fmt: skip
_PREDICATES = (exp.Is, exp.In, exp.Between, exp.Like, exp.ILike, exp.RegexpLike, exp.Escape)
_UNARIES = (exp.Neg, exp.BitwiseNot)


def check_precedence(tree: exp.Expr) -> None:
    for node in tree.walk():
        for operand, least in _operands(node):
            if _binding(operand) < least:
                raise Untranslatable(node, "it needs parentheses to mean the same to all readers")


def _binding(node: exp.Expr) -> int:
    """How tightly the operator of a node binds; of what may be spelled in two ways, the looser one."""
    # IS DISTINCT FROM has the node of <=>.
    if isinstance(node, (*_PREDICATES, exp.NullSafeEQ, exp.NullSafeNEQ)):
        return _PREDICATE
    if isinstance(node, exp.Not):
        return _NOT
    return _UNARY if isinstance(node, _UNARIES) else _BINARY.get(type(node), _PRIMARY)


def _operands(node: exp.Expr) -> Iterator[tuple[exp.Expr, int]]:
    """The operands of a node that are not within brackets of its own, with how tightly each has to bind."""
    own = _BINARY.get(type(node))
    if own is not None:
        is_either = isinstance(node, exp.And | exp.Or)
        yield node.this, own
        yield node.expression, own if is_either else own + 1
    elif isinstance(node, exp.Not):
        yield node.this, _NOT
    elif isinstance(node, _UNARIES):
        yield node.this, _UNARY
    elif isinstance(node, exp.Escape):
        yield from _operands(node.this)
    elif isinstance(node, _PREDICATES):
        for part in (node.this, node.args.get("expression"), node.args.get("low"), node.args.get("high")):
            if isinstance(part, exp.Expr):
                yield part, _COMPARISON
