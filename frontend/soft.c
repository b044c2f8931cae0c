/* Words that are keywords in some places only: `match`, `case`, `type`, and parentheses
   around the items of a `with`. A parser with one token of look-ahead cannot tell
   `match (x):` from a call, nor `with (a) as b` from `with (a as b)`; a look at the end
   of the line or at the closing parenthesis can. So the tokens are gone through once
   before they are parsed, and those words get kinds of their own. */
#include "frontend/parse.h"
#include "frontend/syntax.h"

#include <string.h>

static bool
is_word(const Tok *t, const char *word)
{
    return t->kind == IDENT && strcmp(t->name, word) == 0;
}

/* No other statement has a line that begins with a name and ends with a colon, and below
   it one that begins with `case`. */
static bool
begins_match(const Tok *t, const Tok *end)
{
    const Tok *line = t;
    while (t < end && t->kind != NEWLINE)
        t++;
    return t + 2 < end && t - line > 2 && t[-1].kind == ':' && t[1].kind == INDENT &&
           is_word(&t[2], "case");
}

/* `with (` at t: when its parenthesis closes in front of the colon and there is an `as`
   directly inside, it stands around the items. */
static void
mark_with(Tok *t, const Tok *end)
{
    Tok *open = t + 1, *close = open;
    int depth = 0;
    bool any_as = false;
    for (; close < end && close->kind != NEWLINE; close++) {
        int k = close->kind;
        depth += k == '(' || k == '[' || k == '{' ? 1 : 0;
        depth -= k == ')' || k == ']' || k == '}' ? 1 : 0;
        any_as |= depth == 1 && k == KW_AS;
        if (!depth)
            break;
    }
    if (any_as && close + 1 < end && close->kind == ')' && close[1].kind == ':') {
        open->kind = WITH_OPEN;
        close->kind = WITH_CLOSE;
    }
}

void
syntax_soft_keywords(TokList *toks)
{
    bool is_match[MAX_NESTING + 2] = {false}; /* of the blocks around */
    int level = 0;
    Tok *end = toks->at + toks->n;
    bool first = true, match = false;
    for (Tok *t = toks->at; t < end; t++) {
        if (t->kind == INDENT) {
            level += level <= MAX_NESTING;
            is_match[level] = match;
            match = false;
        } else if (t->kind == DEDENT) {
            level -= level > 0;
        } else if (first && is_word(t, "match") && begins_match(t, end)) {
            t->kind = KW_MATCH;
            match = true;
        } else if (first && is_match[level] && is_word(t, "case")) {
            t->kind = KW_CASE;
        } else if (first && is_word(t, "type") && t + 2 < end && t[1].kind == IDENT &&
                   (t[2].kind == '=' || t[2].kind == '[')) {
            t->kind = KW_TYPE;
        } else if (t->kind == KW_WITH && t + 1 < end && t[1].kind == '(') {
            mark_with(t, end);
        }
        first = t->kind == NEWLINE || t->kind == INDENT || t->kind == DEDENT ||
                t->kind == ';' || t->kind == ':';
    }
}
