"""The syntax tree of a Spark query, if it is certain that sqlglot read it as Spark does."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from dbt.adapters.ducklake.lake import fold
from dbt.adapters.ducklake.statements.reader import Reader, is_string, syntax_tree
from dbt.adapters.ducklake.statements.translation.dates import UNITS, UNITS_OF_TIME
from dbt.adapters.ducklake.statements.translation.precedence import check_precedence
from dbt.adapters.ducklake.statements.translation.typed import Untranslatable


def tree_of(sql: str) -> exp.Expr:
    """Return the tree. Untranslatable, SqlglotError, RecursionError."""
    _check_calls(list(Reader(sql).tokens))
    tree = syntax_tree(sql)
    check_precedence(tree)
    return tree


def _check_calls(tokens: list[Token]) -> None:
    """Refuse what the tree does not show: sqlglot replaces units of time by others, and drops an argument of first."""
    for at, token in enumerate(tokens):
        if token.text == "|>":
            raise Untranslatable(None, "a query in pipes")
        name = fold(token.text)
        if is_string(token) or name not in ("trunc", "date_trunc", "first") or tokens[at + 1 : at + 2] == []:
            continue
        if tokens[at + 1].token_type is not TokenType.L_PAREN:
            continue
        arguments = _arguments(tokens, at + 2)
        if name == "first" and len(arguments) > 1:
            raise Untranslatable(None, "first with a second argument")
        if name == "date_trunc":
            _check_unit(arguments[0], UNITS_OF_TIME)
        elif name == "trunc":
            _check_unit(arguments[-1], UNITS)


def _arguments(tokens: list[Token], start: int) -> list[list[Token]]:
    """The tokens of each argument of the call whose bracket ends before `start`."""
    found: list[list[Token]] = [[]]
    depth = 0
    for token in tokens[start:]:
        depth += (token.text in ("(", "[")) - (token.text in (")", "]")) if not is_string(token) else 0
        if depth < 0:
            break
        if depth == 0 and token.token_type is TokenType.COMMA:
            found.append([])
        else:
            found[-1].append(token)
    return found


def _check_unit(argument: list[Token], units: dict[str, str]) -> None:
    if len(argument) != 1 or not is_string(argument[0]) or fold(argument[0].text) not in units:
        raise Untranslatable(None, "a unit of time that Spark does not know, or no literal")
