"""A position in a token tuple, and where clauses begin."""

from __future__ import annotations

from collections.abc import Callable

from headrace.errors import UserError, place_at
from headrace.sql.reader.syntax.query_shape import Query, Range
from headrace.sql.reader.syntax.tokens import Kind, Token, tokenize, words

_END = Token(Kind.OP, "", 0, 0, "")
_CLOSING = {"(": ")", "[": "]"}
_EXPECTS_OPERAND = words(
    """
    SELECT DISTINCT WHERE AND OR NOT ON BY HAVING WHEN THEN ELSE CASE IN LIKE ILIKE RLIKE REGEXP BETWEEN DIV AS
    FROM IS JOIN USING WITH UNION INTERSECT EXCEPT MINUS SETMINUS ESCAPE LIMIT OFFSET
    """
)
_BEFORE_SELECT = words("( ALL DISTINCT UNION INTERSECT EXCEPT MINUS SETMINUS |>")
_BEFORE_DISTINCT = words("( SELECT IS NOT UNION INTERSECT EXCEPT MINUS SETMINUS")
_OF_CASE = words("CASE THEN ELSE END")
_NOT_BEFORE_WHEN = words("THEN ELSE END , ;")
_WITHIN_TYPES = words("< > , : ( )")
_AFTER_INNER_TYPE = words("> , NOT COMMENT")
_AFTER_NOT = words("IN LIKE ILIKE RLIKE REGEXP BETWEEN")
_CLAUSES = words("WHERE HAVING LIMIT OFFSET UNION INTERSECT EXCEPT MINUS SETMINUS SELECT")
_BY_CLAUSES = words("GROUP ORDER SORT CLUSTER DISTRIBUTE")
_AFTER_QUERY = _CLAUSES | words("ORDER SORT CLUSTER DISTRIBUTE WINDOW ) |>")
_QUERY_STARTS = words("SELECT WITH FROM VALUES TABLE")


class Cursor:
    """Walks over tokens; `parser.Parser` is the one that can parse a whole query.

    Args:
        sql: The text, for places in errors.
        tokens: Its tokens, when they exist already.
    """

    def __init__(self, sql: str, tokens: tuple[Token, ...] | None = None) -> None:
        self.sql = sql
        self.tokens = tokenize(sql) if tokens is None else tokens
        self.at = 0

    def peek(self, ahead: int = 0) -> Token:
        """Return the token `ahead` of the current one; an empty one outside the text."""
        index = self.at + ahead
        return self.tokens[index] if 0 <= index < len(self.tokens) else _END

    @property
    def word(self) -> str:
        """Return the current token for comparing."""
        return self.peek().word

    @property
    def done(self) -> bool:
        """Return whether the text is used up."""
        return self.at >= len(self.tokens)

    def sees(self, *words: str) -> bool:
        """Return whether these words come next."""
        return all(self.peek(i).word == word for i, word in enumerate(words))

    def take(self, *words: str) -> bool:
        """Step over these words when they come next."""
        if not self.sees(*words):
            return False
        self.at += len(words)
        return True

    def expect(self, word: str) -> None:
        """Step over a word.

        Raises:
            UserError: `SYNTAX_ERROR` when another token stands there.
        """
        if not self.take(word):
            raise self.error(f"{word} was expected here")

    def name(self, what: str = "a name") -> str:
        """Step over one identifier and return it."""
        token = self.peek()
        if not token.is_name:
            raise self.error(f"{what} was expected here")
        self.at += 1
        return token.name

    def error(self, message: str, hint: str | None = None) -> UserError:
        """Return a syntax error at the current token."""
        token = self.peek()
        found = f", not '{token.text}'." if token is not _END else ", but the text ends."
        return UserError("SYNTAX_ERROR", message + found, place=place_at(self.sql, self.offset()), hint=hint)

    def offset(self, index: int | None = None) -> int:
        """Return where a token (the current one by default) begins in the text."""
        index = self.at if index is None else index
        if index < len(self.tokens):
            return self.tokens[index].start
        return self.tokens[-1].end if self.tokens else len(self.sql)

    def parse_query(self) -> Query:
        """Parse a query that begins here."""
        raise NotImplementedError

    def skip_group(self) -> Range:
        """Step over a balanced pair of brackets; the range is what is inside."""
        closing = _CLOSING.get(self.word)
        if closing is None:
            raise self.error("( was expected here")
        opened = self.at
        self.at += 1
        while self.word != closing:
            if self.done or self.word in (")", "]"):
                self.at = opened
                place = place_at(self.sql, self.offset())
                raise UserError("SYNTAX_ERROR", f"A bracket opens here that no {closing} closes.", place=place)
            if self.word in _CLOSING:
                self.skip_group()
            else:
                self.at += 1
        self.at += 1
        return opened + 1, self.at - 1

    def skip_until(self, stop: Callable[[Cursor], bool]) -> Range:
        """Step to the first token outside brackets at which `stop` holds.

        A closing bracket and the end stop it, too.
        """
        start = self.at
        while not self.done and self.word not in (")", "]", ";") and not stop(self):
            if self.word in _CLOSING:
                self.skip_group()
            else:
                self.at += 1
        return start, self.at

    def after_operand(self) -> bool:
        """Return whether the last token ends an operand, so that a keyword here is no column."""
        return ends_operand(self.tokens, self.at - 1)

    def at_clause(self) -> bool:
        """Return whether a new clause of the query begins here."""
        word = self.word
        if word == "|>":
            return True
        if not word or self.peek(-1).text == "." or not self.after_operand():
            return False
        following = self.peek(1).word
        if word == "FROM":
            return not (self.peek(-1).word == "DISTINCT" and self.peek(-2).word in ("IS", "NOT"))
        if word in _BY_CLAUSES:
            return following == "BY"
        if word == "LATERAL":
            return following == "VIEW"
        if word == "WINDOW":
            return self.peek(1).is_name and self.peek(2).word == "AS"
        if word == "EXCEPT" and self.peek(-1).text == "*":
            return self.opens_query(1)
        return word in _CLAUSES

    def opens_query(self, ahead: int = 0) -> bool:
        """Return whether a bracket here opens a query, not a mere expression."""
        if self.peek(ahead).word != "(" or (self.peek(ahead - 1).word, self.peek(ahead + 1).word) == ("TRIM", "FROM"):
            return False
        opened = ahead
        while self.peek(ahead).word == "(":
            ahead += 1
        starts = self.peek(ahead).word in _QUERY_STARTS and all(map(self._query_ends, range(opened + 1, ahead)))
        return starts and (
            self.peek(ahead + 1).is_name or self.peek(ahead + 1).kind is not Kind.OP or self._operand(ahead)
        )

    def _query_ends(self, ahead: int) -> bool:
        """Return whether no operator follows the bracket that opens here."""
        depth = 0
        for at in range(self.at + ahead, len(self.tokens)):
            depth += (self.tokens[at].word == "(") - (self.tokens[at].word == ")")
            if not depth:
                return at + 1 == len(self.tokens) or self.tokens[at + 1].word in _AFTER_QUERY
        return True

    def _operand(self, ahead: int) -> bool:
        following = self.peek(ahead + 1).word
        if self.peek(ahead).word in ("VALUES", "FROM", "TABLE"):
            return following == "("
        return following in ("(", "*", "-", "+", "~", "!", "[", ".") and self.peek(ahead).word == "SELECT"


def ends_operand(tokens: tuple[Token, ...], index: int) -> bool:
    """Return whether the token ends an operand."""
    if index < 0:
        return False
    token = tokens[index]
    if token.kind is not Kind.OP:
        named = index > 0 and tokens[index - 1].word in (".", "AS")
        return named or token.word not in _EXPECTS_OPERAND or not _is_keyword(tokens, index)
    if token.text == "*":
        return not ends_operand(tokens, index - 1)
    return token.text in (")", "]") or (token.text == ">" and _ends_type(tokens, index))


def _is_keyword(tokens: tuple[Token, ...], index: int) -> bool:
    """Return whether a word that an operand follows is no operand itself.

    Where an operand stands, Spark takes most of them for columns.
    """
    word, before = tokens[index].word, tokens[index - 1].word if index else ""
    if word == "NOT" or ends_operand(tokens, index - 1):
        return True
    if word == "CASE":
        return opens_case(tokens, index, len(tokens))
    if word == "SELECT":
        return not before or before in _BEFORE_SELECT
    if word == "DISTINCT":
        return not before or before in _BEFORE_DISTINCT
    if word in _AFTER_NOT:
        return before == "NOT" and ends_operand(tokens, index - 2)
    if word == "FROM" and before == "DISTINCT":
        return tokens[index - 2].word in ("IS", "NOT")
    if word == "WHERE" and before == "(":
        return index > 1 and tokens[index - 2].word == "FILTER"
    return (word in ("FROM", "WITH") and before in ("", "(")) or (word == "WHEN" and before == "CASE")


def opens_case(tokens: tuple[Token, ...], index: int, end: int) -> bool:
    """Return whether the CASE at an index is one, with a WHEN before `end`, and no column."""
    depth, within = 0, 0
    for at in range(index + 1, end):
        word = tokens[at].word
        depth += (word in ("(", "[")) - (word in (")", "]"))
        if depth < 0:
            return False
        if depth or tokens[at - 1].text == "." or (at == index + 1 and word in _OF_CASE):  # a column called so
            continue
        if word == "CASE":
            within += 1
        elif within:
            within -= word == "END"
        elif word == "WHEN" or word in _NOT_BEFORE_WHEN:
            return word == "WHEN"
    return False


def _ends_type(tokens: tuple[Token, ...], index: int) -> bool:
    """Return whether the > at an index closes a type, as in `x::array<int>`."""
    depth = 0
    for at in range(index, -1, -1):
        token = tokens[at]
        depth += (token.text == ">") - (token.text == "<")
        if not depth:
            return at > 1 and tokens[at - 1].word in ("ARRAY", "MAP", "STRUCT") and tokens[at - 2].text == "::"
        described = token.kind is Kind.STRING and tokens[at - 1].word == "COMMENT"
        if not (token.is_name or token.kind is Kind.NUMBER or token.text in _WITHIN_TYPES or described):
            return False
        if token.text == ">" and at < index and tokens[at + 1].word not in _AFTER_INNER_TYPE:
            return False  # a comparison: the list of a thousand would be walked through for each
    return False
