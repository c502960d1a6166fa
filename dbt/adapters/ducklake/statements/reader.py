"""A statement's words, read from left to right. What follows them as a query stays as it was written."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import ClassVar, NamedTuple, TypeVar

import sqlglot
from sqlglot import TokenError, exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokens import Token, TokenType

from dbt.adapters.ducklake.statements.errors import NotUnderstood, Place, StatementError

T = TypeVar("T")


class _Tokenizer(Spark.Tokenizer):
    # sqlglot takes what follows SHOW and CALL for one word.
    COMMANDS: ClassVar[set[TokenType]] = set()


class _Dialect(Spark):
    Tokenizer = _Tokenizer


_GOES_ON = re.compile(r"--[^\n]*\\\r?\n")
_ENDINGS = {"'": "'", '"': '"', "`": "`", "--": "\n", "/*": "*/"}
_STRINGS = frozenset({TokenType.STRING, TokenType.RAW_STRING})
_OPENING = {"(": 1, ")": -1, "[": 1, "]": -1}


class Name(NamedTuple):
    """A name as it was written: of lake, schema and name, where a schema that lies in others has several parts."""

    parts: tuple[str, ...]
    place: Place | None = None

    def __str__(self) -> str:
        return ".".join(self.parts)


class Reader:
    def __init__(self, sql: str) -> None:
        self.sql = sql
        if _GOES_ON.search(sql):
            # What follows is still comment for Spark, and would be words here; or the other way round.
            raise NotUnderstood("A comment that ends in a backslash", "Spark goes on with it in the next line.")
        try:
            self.tokens: Sequence[Token] = _Dialect().tokenize(_with_escapes(sql))
        except TokenError as error:
            raise _not_closed(sql) from error
        self.at = 0

    @property
    def is_done(self) -> bool:
        return self.at >= len(self.tokens) or all(t.token_type is TokenType.SEMICOLON for t in self.tokens[self.at :])

    @property
    def place(self) -> Place:
        token = self.tokens[min(self.at, len(self.tokens) - 1)] if self.tokens else None
        return place_of(self.sql, token.start) if token else Place(1, 1)

    def word(self, ahead: int = 0) -> str:
        """A coming word in upper case; a quoted name or a string is no word."""
        index = self.at + ahead
        if index >= len(self.tokens) or is_quoted(self.tokens[index]):
            return ""
        return " ".join(self.tokens[index].text.upper().split())

    def sees(self, *words: str) -> bool:
        """Whether these words come next. Some that belong together are one token."""
        return self._after(words) is not None

    def accept(self, *words: str) -> bool:
        after = self._after(words)
        if after is None:
            return False
        self.at = after
        return True

    def expect(self, *words: str) -> None:
        if not self.accept(*words):
            raise self.unexpected(f"Here {' '.join(words)} should stand.")

    def unexpected(self, expected: str) -> NotUnderstood:
        found = "The end of the statement" if self.is_done else f"`{self.tokens[self.at].text}`"
        return NotUnderstood(found, expected, self.place)

    def name_part(self) -> str:
        if self.is_done:
            raise self.unexpected("Here a name should stand.")
        token = self.tokens[self.at]
        # In double quotes Spark has a string, but where only a name can stand it is one.
        is_quoted_name = token.token_type is TokenType.IDENTIFIER or self.sql[token.start] == '"'
        if not is_quoted_name and not (token.text[:1].isalnum() or token.text[:1] == "_"):
            raise self.unexpected("Here a name should stand; quote it with backticks.")
        if token.token_type in _STRINGS and not is_quoted_name:
            raise self.unexpected("Here a name should stand, and not a string.")
        self.at += 1
        return str(token.text) if is_quoted_name else self.sql[token.start : token.end + 1]

    def name(self) -> Name:
        place = self.place
        parts = [self.name_part()]
        while self.accept("."):
            parts.append(self.name_part())
        return Name(tuple(parts), place)

    def string(self) -> str:
        """A string literal; as in Spark, several in a row are one."""
        if self.is_done or self.tokens[self.at].token_type not in _STRINGS:
            raise self.unexpected("Here a string in quotes should stand.")
        parts = []
        while not self.is_done and self.tokens[self.at].token_type in _STRINGS:
            parts.append(self.tokens[self.at].text)
            self.at += 1
        return "".join(parts)

    def many(self, one: Callable[[], T]) -> tuple[T, ...]:
        """One or more, with commas between."""
        found = [one()]
        while self.accept(","):
            found.append(one())
        return tuple(found)

    def in_parentheses(self, one: Callable[[], T]) -> tuple[T, ...]:
        self.expect("(")
        found = self.many(one)
        self.expect(")")
        return found

    def text_until(self, *words: str) -> str:
        """The text up to one of the words at this depth of parentheses and CASE, or up to the end."""
        start, depth, cases = self.at, 0, 0
        while not self.is_done:
            word, before = self.word(), self.word(-1) if self.at > start else ""
            is_comparison = word == "FROM" and before == "DISTINCT"
            if depth == cases == 0 and word in words and not is_comparison and before != ".":
                break
            depth += _OPENING.get(word, 0)
            if depth < 0:
                raise self.unexpected("This parenthesis closes none.")
            # `t.case` is a column, and `end` is one where no CASE is open.
            if before != ".":
                cases += (word == "CASE") - (word == "END" and cases > 0)
            self.at += 1
            if word == "::":
                self._pass_type()
        return self.between(start, self.at)

    def _pass_type(self) -> None:
        """Go behind the angles of a type, in which commas and colons are the type's."""
        self.at += 1
        depth = 0
        while not self.is_done:
            depth += self.word().count("<") - self.word().count(">")
            if depth <= 0 and not self.word().startswith(">"):
                return
            self.at += 1

    def type_text(self, *words: str) -> str:
        """The text of a type, up to one of the words outside of its parentheses and angles."""
        start, depth = self.at, 0
        while not self.is_done:
            word = self.word()
            if depth == 0 and word.split(" ")[0] in words:
                break
            depth += word.count("(") + word.count("<") - word.count(")") - word.count(">")
            self.at += 1
        return self.between(start, self.at)

    def query(self) -> str:
        """The query that comes, with the lines before its first word: so an error's line is the model's.

        A line break right behind the word before it belongs to the statement around it.
        """
        start = self.tokens[self.at - 1].end + 1 if self.at else 0
        rest = self.rest()
        if not rest:
            raise self.unexpected("Here a query should stand.")
        text = self.sql[start : self.tokens[self._last()].end + 1]
        line, newline, after = text.partition("\n")
        return after if newline and not line.strip() else rest

    def _last(self) -> int:
        """The last word that is no semicolon."""
        return max(i for i, token in enumerate(self.tokens) if token.token_type is not TokenType.SEMICOLON)

    def rest(self) -> str:
        """All that comes, as it was written, but for a semicolon at the end."""
        start, depth = self.at, 0
        while not self.is_done:
            depth += _OPENING.get(self.word(), 0)
            self.at += 1
            if depth < 0:
                raise self.unexpected("This parenthesis closes none.")
        self.at = len(self.tokens)
        end = self.at
        while end > start and self.tokens[end - 1].token_type is TokenType.SEMICOLON:
            end -= 1
        return self.between(start, end)

    def between(self, first: int, after: int) -> str:
        return "" if first >= after else self.sql[self.tokens[first].start : self.tokens[after - 1].end + 1]

    def finish(self) -> None:
        if not self.is_done:
            raise self.unexpected("The statement should end here.")

    def _after(self, words: Sequence[str]) -> int | None:
        at = self.at
        wanted = list(words)
        while wanted:
            if at >= len(self.tokens) or is_quoted(self.tokens[at]):
                return None
            found = self.tokens[at].text.upper().split() or [""]
            if wanted[: len(found)] != found:
                return None
            wanted, at = wanted[len(found) :], at + 1
        return at


def _not_closed(sql: str) -> StatementError:
    """Where the text, the quoted name or the comment begins that is not closed."""
    start, at, ending = 0, 0, ""
    while at < len(sql):
        if not ending:
            opened = next((one for one in _ENDINGS if sql.startswith(one, at)), None)
            start, ending = at, _ENDINGS.get(opened or "", "")
            at += len(opened or " ")
        elif sql[at] == "\\" and ending in "'\"":
            at += 2
        elif sql.startswith(ending, at):
            at, ending = at + len(ending), ""
        else:
            at += 1
    what = {"`": "The name in backticks", "*/": "The comment"}.get(ending, "The text in quotes")
    first = _start_of_query(sql[:start])
    return StatementError(f"{what} that begins here is not closed.", place_of(sql[first:], start - first))


def _start_of_query(before: str) -> int:
    """Where the query of CREATE ... AS begins, whose lines are the model's; 0 in another statement."""
    reader, depth = Reader(before), 0
    if reader.word() != "CREATE":
        return 0
    while not reader.is_done:
        if depth == 0 and reader.accept("AS"):
            after = reader.tokens[reader.at - 1].end + 1
            line, newline, _ = before[after:].partition("\n")
            return after + len(line) + 1 if newline and not line.strip() else after
        depth += _OPENING.get(reader.word(), 0)
        reader.at += 1
    return 0


def syntax_tree(sql: str) -> exp.Expr:
    """The syntax tree of a text of Spark's SQL, with the places of names in it. SqlglotError, RecursionError."""
    try:
        return _parsed(_with_escapes(sql))
    except (AttributeError, TypeError, ValueError, LookupError) as error:
        # sqlglot stumbles over some texts, such as queries in pipes, without an error of its own.
        if isinstance(error, SqlglotError):
            raise
        raise ParseError(f"it cannot be parsed: {error}") from error


def _parsed(sql: str) -> exp.Expr:
    """sqlglot knows paths into a VARIANT, as in `v:a`, in Databricks' Spark alone; elsewhere some are a name to it."""
    failed, tree = None, None
    try:
        tree = sqlglot.parse_one(sql, dialect="spark")
        if not tree.find(exp.Placeholder):
            return tree
    except SqlglotError as error:
        failed = error
    if any(token.token_type is TokenType.COLON for token in _Dialect().tokenize(sql)):
        with suppress(SqlglotError):
            tree = sqlglot.parse_one(sql, dialect="databricks")
            if not tree.find(exp.Placeholder):
                return tree
    raise failed or ParseError("it has parameters")


def _with_escapes(sql: str) -> str:
    """The text, at the same places, with a backslash before a quote in a text that is written twice: sqlglot takes it
    for the end of one text and the beginning of another."""
    if "''" not in sql and '""' not in sql:
        return sql
    tokens = [token for token in _Dialect().tokenize(sql) if token.token_type in _STRINGS]
    for one, other in itertools.pairwise(tokens):
        if one.end + 1 == other.start and sql[one.end] == sql[other.start] and sql[one.start] in "'\"":
            sql = f"{sql[: one.end]}\\{sql[other.start :]}"
    return sql


def statements_in(sql: str) -> list[str]:
    """The statements of a text, with semicolons between them; the text itself where there is only one."""
    reader = Reader(sql)
    ends = [index for index, token in enumerate(reader.tokens) if token.token_type is TokenType.SEMICOLON]
    if all(index >= len(reader.tokens) - len(ends) for index in ends):
        return [sql]
    starts = [0, *(index + 1 for index in ends)]
    spans = zip(starts, [*ends, len(reader.tokens)], strict=True)
    return [reader.between(start, end) for start, end in spans if end > start]


def without_semicolon(sql: str) -> str:
    """A statement without the semicolons at its end, and what stands behind them."""
    tokens = list(Reader(sql).tokens)
    end = len(sql)
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        end = tokens.pop().start
    return sql[:end]


def is_string(token: Token) -> bool:
    return token.token_type in _STRINGS


def is_quoted(token: Token) -> bool:
    return token.token_type in _STRINGS or token.token_type is TokenType.IDENTIFIER


def place_of(sql: str, start: int) -> Place:
    before = sql[:start]
    return Place(before.count("\n") + 1, start - (before.rfind("\n") + 1) + 1)
