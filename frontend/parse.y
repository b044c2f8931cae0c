/* The grammar of Python modules, host code and all: what it does not accept is refused as
   Python refuses it. Levels of expression keep it free of conflicts: `arith` (no
   comparison: targets of for), `compare`, `expr` (no conditional: the iterable of a
   comprehension) and `test`; `namedtest` is one with `:=`. What depends on more than the
   shape (targets, the order of parameters) is checked in rules.c. */
%define api.pure full
%define api.location.type {Loc}
%define parse.error custom
%locations
%expect 0
%parse-param {Parser *p}
%lex-param {Parser *p}

%code requires {
#include "frontend/syntax.h"
}

%code {
#include "frontend/grammar.h"

#define YYMAXDEPTH 20000
/* An absent `async` in front of `for` has no place of its own. */
#define loc_first(Rhs, N) \
    ((N) > 1 && YYRHSLOC(Rhs, 1).line == YYRHSLOC(Rhs, 1).end_line && \
     YYRHSLOC(Rhs, 1).col == YYRHSLOC(Rhs, 1).end_col ? 2 : 1)
#define YYLLOC_DEFAULT(Cur, Rhs, N)                                      \
    do {                                                                 \
        if (N)                                                           \
            (Cur) = loc_span(YYRHSLOC(Rhs, loc_first(Rhs, N)), YYRHSLOC(Rhs, N)); \
        else                                                             \
            (Cur) = loc_after(YYRHSLOC(Rhs, 0));                         \
    } while (0)

static int yylex(YYSTYPE *val, Loc *loc, Parser *p);
static void yyerror(const Loc *loc, Parser *p, const char *text);
}

%union {
    Node *node;
    NodeList list;
    Name name;
    int sign;
    Dotted dotted;
}

%token START_FILE START_EXPR
%token NEWLINE "end of line" INDENT "indentation" DEDENT "end of block"
%token BAD_TOKEN
%token <name> IDENT "name"
%token <node> NUMBER "number" STRING "string"
%token KW_AND "and" KW_AS "as" KW_ASSERT "assert" KW_ASYNC "async" KW_AWAIT "await"
%token KW_BREAK "break" KW_CLASS "class" KW_CONTINUE "continue" KW_DEF "def" KW_DEL "del"
%token KW_ELIF "elif" KW_ELSE "else" KW_EXCEPT "except" KW_FALSE "False"
%token KW_FINALLY "finally" KW_FOR "for" KW_FROM "from" KW_GLOBAL "global" KW_IF "if"
%token KW_IMPORT "import" KW_IN "in" KW_IS "is" KW_LAMBDA "lambda" KW_NONE "None"
%token KW_NONLOCAL "nonlocal" KW_NOT "not" KW_OR "or" KW_PASS "pass" KW_RAISE "raise"
%token KW_RETURN "return" KW_TRUE "True" KW_TRY "try" KW_WHILE "while" KW_WITH "with"
%token KW_YIELD "yield" KW_MATCH "match" KW_CASE "case" KW_TYPE "type"
%token WITH_OPEN "(" WITH_CLOSE ")"
%token ELLIPSIS "..." POW "**" FLOORDIV "//" SHL "<<" SHR ">>" LE "<=" GE ">=" EQEQ "=="
%token IS_NOT "is not" NOT_IN "not in" NE "!=" ARROW "->" WALRUS ":="
%token POW_EQ "**=" FLOORDIV_EQ "//=" SHL_EQ "<<=" SHR_EQ ">>=" ADD_EQ "+=" SUB_EQ "-="
%token MUL_EQ "*=" DIV_EQ "/=" MOD_EQ "%=" AND_EQ "&=" OR_EQ "|=" XOR_EQ "^="
%token MATMUL_EQ "@="

%left KW_OR
%left KW_AND
%precedence KW_NOT
%left '|'
%left '^'
%left '&'
%left SHL SHR
%left '+' '-'
%left '*' '/' '%' '@' FLOORDIV
%precedence UNARY
%right POW

%type <list> stmts stmt simple_line small_list suite targets decorators else_opt
%type <list> params param_list lambda_params lambda_list args arg_list
%type <list> test_list star_list expr_list subscripts dict_items
%type <list> set_items comp_fors comp_ifs
%type <list> named_list arms handlers finally_opt with_items with_group aliases
%type <list> type_params type_list cases patterns pattern_args pattern_arg_list
%type <list> pattern_items
%type <list> from_aliases from_names names strings
%type <node> small compound test namedtest expr compare arith
%type <node> primary atom star_or_test star_or_arith
%type <node> tuple_tests tuple_stars tuple_named tuple_exprs yield_or_tuple yield_expr
%type <node> lambda param star_or_plain type_param bound_opt case pattern_top
%type <node> star_pattern pattern or_pattern closed_pattern pattern_name pattern_number
%type <node> signed_number pattern_literal pattern_arg guard_opt
%type <node> lambda_param arg subscript slice_part slice_opt
%type <node> comp_for with_item handler alias
%type <node> from_alias funcdef classdef annotation_opt
%type <node> default_opt cond_namedtest function
%type <sign> aug_op async_opt dots
%type <dotted> dotted

%%

start:
    START_FILE stmts          { p->body = $2; }
  | START_FILE                { p->body = (NodeList){0}; }
  | START_EXPR field          { }
  ;

field:
    yield_or_tuple NEWLINE    { p->expr = $1; }
  | yield_or_tuple            { p->expr = $1; }
  ;

stmts:
    stmt                      { $$ = $1; }
  | stmts stmt                { $$ = $1; ast_append(p, &$$, &$2); }
  ;

stmt:
    simple_line               { $$ = $1; }
  | compound                  { $$ = ast_list1(p, $1); }
  ;

simple_line:
    small_list NEWLINE        { $$ = $1; }
  | small_list ';' NEWLINE    { $$ = $1; }
  ;

small_list:
    small                     { $$ = ast_list1(p, $1); }
  | small_list ';' small      { $$ = $1; ast_push(p, &$$, $3); }
  ;

small:
    tuple_stars               { $$ = ast_unary(p, ND_EXPR, @$, $1); }
  | yield_expr                { $$ = ast_unary(p, ND_EXPR, @$, $1); }
  | targets yield_or_tuple    { $$ = ast_assign(p, @$, &$1, $2); }
  | tuple_stars aug_op yield_or_tuple  { $$ = ast_augassign(p, @$, $1, $2, $3); }
  | tuple_stars ':' test      { $$ = ast_annassign(p, @$, $1, $3, NULL); }
  | tuple_stars ':' test '=' yield_or_tuple  { $$ = ast_annassign(p, @$, $1, $3, $5); }
  | KW_PASS                   { $$ = ast_leaf(p, ND_PASS, @$); }
  | KW_BREAK                  { $$ = ast_leaf(p, ND_BREAK, @$); }
  | KW_CONTINUE               { $$ = ast_leaf(p, ND_CONTINUE, @$); }
  | KW_RETURN                 { $$ = ast_unary(p, ND_RETURN, @$, NULL); }
  | KW_RETURN tuple_stars     { $$ = ast_unary(p, ND_RETURN, @$, $2); }
  | KW_RAISE                  { $$ = ast_binary(p, ND_RAISE, @$, NULL, NULL); }
  | KW_RAISE test             { $$ = ast_binary(p, ND_RAISE, @$, $2, NULL); }
  | KW_RAISE test KW_FROM test  { $$ = ast_binary(p, ND_RAISE, @$, $2, $4); }
  | KW_ASSERT test            { $$ = ast_binary(p, ND_ASSERT, @$, $2, NULL); }
  | KW_ASSERT test ',' test   { $$ = ast_binary(p, ND_ASSERT, @$, $2, $4); }
  | KW_DEL expr_list          { $$ = ast_delete(p, @$, &$2); }
  | KW_DEL expr_list ','      { $$ = ast_delete(p, @$, &$2); }
  | KW_TYPE IDENT type_params '=' test  { $$ = ast_type(p, @$, $2, &$3, $5); }
  | KW_GLOBAL names           { $$ = ast_with_list(p, ND_GLOBAL, @$, &$2); }
  | KW_NONLOCAL names         { $$ = ast_with_list(p, ND_NONLOCAL, @$, &$2); }
  | KW_IMPORT aliases         { $$ = ast_with_list(p, ND_IMPORT, @$, &$2); }
  | KW_FROM dotted KW_IMPORT from_names       { $$ = ast_from(p, @$, 0, $2.name, &$4); }
  | KW_FROM dots dotted KW_IMPORT from_names  { $$ = ast_from(p, @$, $2, $3.name, &$5); }
  | KW_FROM dots KW_IMPORT from_names         { $$ = ast_from(p, @$, $2, NULL, &$4); }
  ;

targets:
    tuple_stars '='           { $$ = ast_list1(p, $1); }
  | targets tuple_stars '='   { $$ = $1; ast_push(p, &$$, $2); }
  ;

aug_op:
    ADD_EQ { $$ = OS_ADD; } | SUB_EQ { $$ = OS_SUB; } | MUL_EQ { $$ = OS_MUL; }
  | DIV_EQ { $$ = OS_DIV; } | FLOORDIV_EQ { $$ = OS_FLOORDIV; } | MOD_EQ { $$ = OS_MOD; }
  | POW_EQ { $$ = OS_POW; } | MATMUL_EQ { $$ = OS_MATMUL; } | SHL_EQ { $$ = OS_SHL; }
  | SHR_EQ { $$ = OS_SHR; } | AND_EQ { $$ = OS_AND; } | OR_EQ { $$ = OS_OR; }
  | XOR_EQ { $$ = OS_XOR; }
  ;

yield_or_tuple:
    tuple_stars               { $$ = $1; }
  | yield_expr                { $$ = $1; }
  ;

yield_expr:
    KW_YIELD                  { $$ = ast_unary(p, ND_YIELD, @$, NULL); }
  | KW_YIELD tuple_stars      { $$ = ast_unary(p, ND_YIELD, @$, $2); }
  | KW_YIELD KW_FROM test     { $$ = ast_yield_from(p, @$, $3); }
  ;

/* ---- imports */

dotted:
    IDENT                     { $$ = ast_dotted1(p, $1); }
  | dotted '.' IDENT          { $$ = ast_dotted(p, &$1, $3); }
  ;
dots:
    '.' { $$ = 1; } | ELLIPSIS { $$ = 3; }
  | dots '.' { $$ = $1 + 1; } | dots ELLIPSIS { $$ = $1 + 3; }
  ;
aliases:
    alias                     { $$ = ast_list1(p, $1); }
  | aliases ',' alias         { $$ = $1; ast_push(p, &$$, $3); }
  ;
alias:
    dotted                    { $$ = ast_alias(p, @$, $1.name, NULL, @1); }
  | dotted KW_AS IDENT        { $$ = ast_alias(p, @$, $1.name, $3, @3); }
  ;
from_names:
    '*'                       { $$ = (NodeList){0}; }
  | from_aliases              { $$ = $1; }
  | '(' from_aliases ')'      { $$ = $2; }
  | '(' from_aliases ',' ')'  { $$ = $2; }
  ;
from_aliases:
    from_alias                { $$ = ast_list1(p, $1); }
  | from_aliases ',' from_alias  { $$ = $1; ast_push(p, &$$, $3); }
  ;
from_alias:
    IDENT                     { $$ = ast_alias(p, @$, $1, NULL, @1); }
  | IDENT KW_AS IDENT         { $$ = ast_alias(p, @$, $1, $3, @3); }
  ;
names:
    IDENT                     { $$ = ast_list1(p, ast_name(p, @1, $1)); }
  | names ',' IDENT           { $$ = $1; ast_push(p, &$$, ast_name(p, @3, $3)); }
  ;

/* ---- compound statements */

compound:
    KW_IF arms else_opt       { $$ = ast_if(p, @$, &$2, &$3); }
  | async_opt KW_FOR tuple_exprs KW_IN tuple_stars ':' suite else_opt
                              { $$ = ast_for(p, @$, $1, $3, $5, &$7, &$8); }
  | KW_WHILE namedtest ':' suite else_opt  { $$ = ast_while(p, @$, $2, &$4, &$5); }
  | async_opt KW_WITH with_items ':' suite { $$ = ast_with(p, @$, $1, &$3, &$5); }
  | KW_TRY ':' suite handlers else_opt finally_opt
                              { $$ = ast_try(p, @$, &$3, &$4, &$5, &$6); }
  | KW_MATCH tuple_named ':' NEWLINE INDENT cases DEDENT
                              { $$ = ast_match(p, @$, $2, &$6); }
  | async_opt KW_WITH with_group ':' suite { $$ = ast_with(p, @$, $1, &$3, &$5); }
  | KW_TRY ':' suite KW_FINALLY ':' suite
                              { $$ = ast_try(p, @$, &$3, NULL, NULL, &$6); }
  | function                  { $$ = $1; }
  ;

function:
    funcdef                   { $$ = $1; }
  | classdef                  { $$ = $1; }
  | decorators funcdef        { $$ = ast_decorate(p, @$, &$1, $2); }
  | decorators classdef       { $$ = ast_decorate(p, @$, &$1, $2); }
  ;

async_opt:
    %empty { $$ = 0; } | KW_ASYNC { $$ = 1; }
  ;

/* if and every elif; a list, so that a thousand of them nest no deeper than one */
arms:
    cond_namedtest suite      { $$ = ast_list1(p, ast_arm(p, @$, $1, &$2)); }
  | arms KW_ELIF cond_namedtest suite
    { $$ = $1; ast_push(p, &$$, ast_arm(p, @3, $3, &$4)); }
  ;
cond_namedtest:
    namedtest ':'             { $$ = $1; }
  ;
else_opt:
    %empty                    { $$ = (NodeList){0}; }
  | KW_ELSE ':' suite         { $$ = $3; }
  ;
finally_opt:
    %empty                    { $$ = (NodeList){0}; }
  | KW_FINALLY ':' suite      { $$ = $3; }
  ;
handlers:
    handler                   { $$ = ast_list1(p, $1); }
  | handlers handler          { $$ = $1; ast_push(p, &$$, $2); }
  ;
handler:
    KW_EXCEPT ':' suite       { $$ = ast_handler(p, @$, NULL, NULL, &$3); }
  | KW_EXCEPT tuple_tests ':' suite  { $$ = ast_handler(p, @$, $2, NULL, &$4); }
  | KW_EXCEPT test KW_AS IDENT ':' suite  { $$ = ast_handler(p, @$, $2, $4, &$6); }
  | KW_EXCEPT '*' tuple_tests ':' suite
                              { $$ = ast_group(p, ast_handler(p, @$, $3, NULL, &$5)); }
  | KW_EXCEPT '*' test KW_AS IDENT ':' suite
                              { $$ = ast_group(p, ast_handler(p, @$, $3, $5, &$7)); }
  ;
with_items:
    with_item                 { $$ = ast_list1(p, $1); }
  | with_items ',' with_item  { $$ = $1; ast_push(p, &$$, $3); }
  ;
with_group:
    WITH_OPEN with_items WITH_CLOSE      { $$ = $2; }
  | WITH_OPEN with_items ',' WITH_CLOSE  { $$ = $2; }
  ;
with_item:
    test                      { $$ = ast_with_item(p, @$, $1, NULL); }
  | test KW_AS arith          { $$ = ast_with_item(p, @$, $1, $3); }
  ;

/* ---- match */

cases:
    case                      { $$ = ast_list1(p, $1); }
  | cases case                { $$ = $1; ast_push(p, &$$, $2); }
  ;
case:
    KW_CASE pattern_top guard_opt ':' suite  { $$ = ast_case(p, @$, $2, $3, &$5); }
  ;
guard_opt:
    %empty                    { $$ = NULL; }
  | KW_IF namedtest           { $$ = $2; }
  ;
pattern_top:
    patterns                  { $$ = ast_tuple(p, @$, &$1, false); }
  | patterns ','              { $$ = ast_tuple(p, @$, &$1, true); }
  ;
patterns:
    star_pattern              { $$ = ast_list1(p, $1); }
  | patterns ',' star_pattern { $$ = $1; ast_push(p, &$$, $3); }
  ;
star_pattern:
    pattern                   { $$ = $1; }
  | '*' IDENT      { $$ = ast_unary(p, ND_STARRED, @$, ast_name(p, @2, $2)); }
  ;
pattern:
    or_pattern                { $$ = $1; }
  | or_pattern KW_AS IDENT    { $$ = ast_named(p, @$, $3, $1); }
  ;
or_pattern:
    closed_pattern            { $$ = $1; }
  | or_pattern '|' closed_pattern  { $$ = ast_binop(p, @$, OS_OR, $1, $3); }
  ;
closed_pattern:
    pattern_literal           { $$ = $1; }
  | pattern_name              { $$ = $1; }
  | pattern_name '(' pattern_args ')'  { $$ = ast_call(p, @$, $1, &$3); }
  | '(' ')'                   { $$ = ast_with_list(p, ND_TUPLE, @$, &(NodeList){0}); }
  | '(' patterns ')'          { $$ = ast_tuple(p, @$, &$2, false); }
  | '(' patterns ',' ')'      { $$ = ast_tuple(p, @$, &$2, true); }
  | '[' ']'                   { $$ = ast_with_list(p, ND_LIST, @$, &(NodeList){0}); }
  | '[' patterns ']'          { $$ = ast_with_list(p, ND_LIST, @$, &$2); }
  | '[' patterns ',' ']'      { $$ = ast_with_list(p, ND_LIST, @$, &$2); }
  | '{' '}'                   { $$ = ast_dict(p, @$, &(NodeList){0}); }
  | '{' pattern_items '}'     { $$ = ast_dict(p, @$, &$2); }
  | '{' pattern_items ',' '}' { $$ = ast_dict(p, @$, &$2); }
  ;
pattern_literal:
    pattern_number            { $$ = $1; }
  | strings                   { $$ = ast_strings(p, @$, &$1); }
  | KW_TRUE                   { $$ = ast_constant(p, @$, CK_TRUE); }
  | KW_FALSE                  { $$ = ast_constant(p, @$, CK_FALSE); }
  | KW_NONE                   { $$ = ast_constant(p, @$, CK_NONE); }
  ;
pattern_number:
    signed_number             { $$ = $1; }
  | signed_number '+' NUMBER  { $$ = ast_binop(p, @$, OS_ADD, $1, $3); }
  | signed_number '-' NUMBER  { $$ = ast_binop(p, @$, OS_SUB, $1, $3); }
  ;
signed_number:
    NUMBER                    { $$ = $1; }
  | '-' NUMBER                { $$ = ast_sign(p, @$, OS_NEG, $2); }
  ;
pattern_name:
    IDENT                     { $$ = ast_name(p, @1, $1); }
  | pattern_name '.' IDENT    { $$ = ast_attribute(p, @$, $1, $3); }
  ;
pattern_args:
    %empty                    { $$ = (NodeList){0}; }
  | pattern_arg_list          { $$ = $1; }
  | pattern_arg_list ','      { $$ = $1; }
  ;
pattern_arg_list:
    pattern_arg               { $$ = ast_list1(p, $1); }
  | pattern_arg_list ',' pattern_arg  { $$ = $1; ast_push(p, &$$, $3); }
  ;
pattern_arg:
    pattern                   { $$ = $1; }
  | IDENT '=' pattern         { $$ = ast_keyword(p, @$, $1, $3); }
  ;
pattern_items:                /* as dict_items */
    pattern_literal ':' pattern  { $$ = ast_list1(p, $1); ast_push(p, &$$, $3); }
  | pattern_name ':' pattern  { $$ = ast_list1(p, $1); ast_push(p, &$$, $3); }
  | POW IDENT                 { $$ = ast_list1(p, NULL);
                                ast_push(p, &$$, ast_name(p, @2, $2)); }
  | pattern_items ',' pattern_literal ':' pattern
    { $$ = $1; ast_push(p, &$$, $3); ast_push(p, &$$, $5); }
  | pattern_items ',' pattern_name ':' pattern
    { $$ = $1; ast_push(p, &$$, $3); ast_push(p, &$$, $5); }
  | pattern_items ',' POW IDENT
    { $$ = $1; ast_push(p, &$$, NULL); ast_push(p, &$$, ast_name(p, @4, $4)); }
  ;

/* ---- functions and classes */

suite:
    simple_line               { $$ = $1; }
  | NEWLINE INDENT stmts DEDENT  { $$ = $3; }
  ;

decorators:
    '@' namedtest NEWLINE             { $$ = ast_list1(p, $2); }
  | decorators '@' namedtest NEWLINE  { $$ = $1; ast_push(p, &$$, $3); }
  ;
funcdef:
    async_opt KW_DEF IDENT type_params '(' params ')' annotation_opt ':' suite
                              { $$ = ast_function(p, @$, $1, $3, @3, &$6, $8, &$10); }
  ;
annotation_opt:
    %empty                    { $$ = NULL; }
  | ARROW test                { $$ = $2; }
  ;
classdef:
    KW_CLASS IDENT type_params ':' suite  { $$ = ast_class(p, @$, $2, NULL, &$5); }
  | KW_CLASS IDENT type_params '(' args ')' ':' suite
                              { $$ = ast_class(p, @$, $2, &$5, &$8); }
  ;
type_params:                  /* read for their syntax; nothing depends on them */
    %empty                    { $$ = (NodeList){0}; }
  | '[' type_list ']'         { $$ = $2; }
  | '[' type_list ',' ']'     { $$ = $2; }
  ;
type_list:
    type_param                { $$ = ast_list1(p, $1); }
  | type_list ',' type_param  { $$ = $1; ast_push(p, &$$, $3); }
  ;
type_param:
    IDENT bound_opt default_opt  { $$ = ast_param(p, @$, PK_PLAIN, $1, $2, $3); }
  | '*' IDENT                 { $$ = ast_param(p, @$, PK_ARGS, $2, NULL, NULL); }
  | '*' IDENT '=' star_or_plain  { $$ = ast_param(p, @$, PK_ARGS, $2, NULL, $4); }
  | POW IDENT default_opt     { $$ = ast_param(p, @$, PK_KWARGS, $2, NULL, $3); }
  ;
bound_opt:
    %empty                    { $$ = NULL; }
  | ':' test                  { $$ = $2; }
  ;

params:
    %empty                    { $$ = (NodeList){0}; }
  | param_list                { $$ = $1; rules_params(p, &$$); }
  | param_list ','            { $$ = $1; rules_params(p, &$$); }
  ;
param_list:
    param                     { $$ = ast_list1(p, $1); }
  | param_list ',' param      { $$ = $1; ast_push(p, &$$, $3); }
  ;
param:
    IDENT default_opt         { $$ = ast_param(p, @$, PK_PLAIN, $1, NULL, $2); }
  | IDENT ':' test default_opt  { $$ = ast_param(p, @$, PK_PLAIN, $1, $3, $4); }
  | '*'                       { $$ = ast_param(p, @$, PK_BARE_STAR, NULL, NULL, NULL); }
  | '/'                       { $$ = ast_param(p, @$, PK_SLASH, NULL, NULL, NULL); }
  | '*' IDENT                 { $$ = ast_param(p, @$, PK_ARGS, $2, NULL, NULL); }
  | '*' IDENT ':' star_or_test  { $$ = ast_param(p, @$, PK_ARGS, $2, $4, NULL); }
  | POW IDENT                 { $$ = ast_param(p, @$, PK_KWARGS, $2, NULL, NULL); }
  | POW IDENT ':' test        { $$ = ast_param(p, @$, PK_KWARGS, $2, $4, NULL); }
  ;
default_opt:
    %empty                    { $$ = NULL; }
  | '=' test                  { $$ = $2; }
  ;

/* ---- expressions */

tuple_stars:                  /* a, *b or one expression */
    star_list                 { $$ = ast_tuple(p, @$, &$1, false); }
  | star_list ','             { $$ = ast_tuple(p, @$, &$1, true); }
  ;
star_list:
    star_or_plain             { $$ = ast_list1(p, $1); }
  | star_list ',' star_or_plain  { $$ = $1; ast_push(p, &$$, $3); }
  ;
star_or_plain:
    test                      { $$ = $1; }
  | '*' arith                 { $$ = ast_unary(p, ND_STARRED, @$, $2); }
  ;
tuple_named:                  /* the same with :=, inside of brackets */
    named_list                { $$ = ast_tuple(p, @$, &$1, false); }
  | named_list ','            { $$ = ast_tuple(p, @$, &$1, true); }
  ;
named_list:
    star_or_test              { $$ = ast_list1(p, $1); }
  | named_list ',' star_or_test  { $$ = $1; ast_push(p, &$$, $3); }
  ;
star_or_test:
    namedtest                 { $$ = $1; }
  | '*' arith                 { $$ = ast_unary(p, ND_STARRED, @$, $2); }
  ;
tuple_tests:
    test_list                 { $$ = ast_tuple(p, @$, &$1, false); }
  ;
test_list:
    test                      { $$ = ast_list1(p, $1); }
  | test_list ',' test        { $$ = $1; ast_push(p, &$$, $3); }
  ;
tuple_exprs:                  /* targets of for */
    expr_list                 { $$ = ast_tuple(p, @$, &$1, false); }
  | expr_list ','             { $$ = ast_tuple(p, @$, &$1, true); }
  ;
expr_list:
    star_or_arith             { $$ = ast_list1(p, $1); }
  | expr_list ',' star_or_arith { $$ = $1; ast_push(p, &$$, $3); }
  ;
star_or_arith:
    arith                     { $$ = $1; }
  | '*' arith                 { $$ = ast_unary(p, ND_STARRED, @$, $2); }
  ;

namedtest:
    test                      { $$ = $1; }
  | IDENT WALRUS test         { $$ = ast_named(p, @$, $1, $3); }
  ;
test:
    expr                      { $$ = $1; }
  | expr KW_IF expr KW_ELSE test  { $$ = ast_ifexp(p, @$, $3, $1, $5); }
  | lambda                    { $$ = $1; }
  ;
lambda:
    KW_LAMBDA lambda_params ':' test  { $$ = ast_lambda(p, @$, &$2, $4); }
  ;
lambda_params:
    %empty                    { $$ = (NodeList){0}; }
  | lambda_list               { $$ = $1; rules_params(p, &$$); }
  | lambda_list ','           { $$ = $1; rules_params(p, &$$); }
  ;
lambda_list:
    lambda_param              { $$ = ast_list1(p, $1); }
  | lambda_list ',' lambda_param  { $$ = $1; ast_push(p, &$$, $3); }
  ;
lambda_param:
    IDENT default_opt         { $$ = ast_param(p, @$, PK_PLAIN, $1, NULL, $2); }
  | '*'                       { $$ = ast_param(p, @$, PK_BARE_STAR, NULL, NULL, NULL); }
  | '/'                       { $$ = ast_param(p, @$, PK_SLASH, NULL, NULL, NULL); }
  | '*' IDENT                 { $$ = ast_param(p, @$, PK_ARGS, $2, NULL, NULL); }
  | POW IDENT                 { $$ = ast_param(p, @$, PK_KWARGS, $2, NULL, NULL); }
  ;

expr:
    compare                   { $$ = $1; }
  | expr KW_OR expr           { $$ = ast_bool(p, @$, OS_LOR, $1, $3); }
  | expr KW_AND expr          { $$ = ast_bool(p, @$, OS_LAND, $1, $3); }
  | KW_NOT expr               { $$ = ast_sign(p, @$, OS_NOT, $2); }
  ;

compare:
    arith                     { $$ = $1; }
  | compare '<' arith         { $$ = ast_compare(p, @$, OS_LT, $1, $3); }
  | compare '>' arith         { $$ = ast_compare(p, @$, OS_GT, $1, $3); }
  | compare LE arith          { $$ = ast_compare(p, @$, OS_LE, $1, $3); }
  | compare GE arith          { $$ = ast_compare(p, @$, OS_GE, $1, $3); }
  | compare EQEQ arith        { $$ = ast_compare(p, @$, OS_EQ, $1, $3); }
  | compare NE arith          { $$ = ast_compare(p, @$, OS_NE, $1, $3); }
  | compare KW_IN arith       { $$ = ast_compare(p, @$, OS_IN, $1, $3); }
  | compare NOT_IN arith      { $$ = ast_compare(p, @$, OS_NOT_IN, $1, $3); }
  | compare KW_IS arith       { $$ = ast_compare(p, @$, OS_IS, $1, $3); }
  | compare IS_NOT arith      { $$ = ast_compare(p, @$, OS_IS_NOT, $1, $3); }
  ;

arith:
    primary                   { $$ = $1; }
  | arith '|' arith           { $$ = ast_binop(p, @$, OS_OR, $1, $3); }
  | arith '^' arith           { $$ = ast_binop(p, @$, OS_XOR, $1, $3); }
  | arith '&' arith           { $$ = ast_binop(p, @$, OS_AND, $1, $3); }
  | arith SHL arith           { $$ = ast_binop(p, @$, OS_SHL, $1, $3); }
  | arith SHR arith           { $$ = ast_binop(p, @$, OS_SHR, $1, $3); }
  | arith '+' arith           { $$ = ast_binop(p, @$, OS_ADD, $1, $3); }
  | arith '-' arith           { $$ = ast_binop(p, @$, OS_SUB, $1, $3); }
  | arith '*' arith           { $$ = ast_binop(p, @$, OS_MUL, $1, $3); }
  | arith '/' arith           { $$ = ast_binop(p, @$, OS_DIV, $1, $3); }
  | arith FLOORDIV arith      { $$ = ast_binop(p, @$, OS_FLOORDIV, $1, $3); }
  | arith '%' arith           { $$ = ast_binop(p, @$, OS_MOD, $1, $3); }
  | arith '@' arith           { $$ = ast_binop(p, @$, OS_MATMUL, $1, $3); }
  | arith POW arith           { $$ = ast_binop(p, @$, OS_POW, $1, $3); }
  | '-' arith %prec UNARY     { $$ = ast_sign(p, @$, OS_NEG, $2); }
  | '+' arith %prec UNARY     { $$ = ast_sign(p, @$, OS_POS, $2); }
  | '~' arith %prec UNARY     { $$ = ast_sign(p, @$, OS_INVERT, $2); }
  ;

primary:
    atom                      { $$ = $1; }
  | KW_AWAIT atom             { $$ = ast_unary(p, ND_AWAIT, @$, $2); }
  | primary '.' IDENT         { $$ = ast_attribute(p, @$, $1, $3); }
  | primary '(' args ')'      { $$ = ast_call(p, @$, $1, &$3); }
  | primary '[' subscripts ']'      { $$ = ast_subscript(p, @$, $1, &$3, @3, false); }
  | primary '[' subscripts ',' ']'  { $$ = ast_subscript(p, @$, $1, &$3, @3, true); }
  ;

atom:
    IDENT                     { $$ = ast_name(p, @1, $1); }
  | NUMBER                    { $$ = $1; }
  | strings                   { $$ = ast_strings(p, @$, &$1); }
  | KW_TRUE                   { $$ = ast_constant(p, @$, CK_TRUE); }
  | KW_FALSE                  { $$ = ast_constant(p, @$, CK_FALSE); }
  | KW_NONE                   { $$ = ast_constant(p, @$, CK_NONE); }
  | ELLIPSIS                  { $$ = ast_constant(p, @$, CK_ELLIPSIS); }
  | '(' ')'                   { $$ = ast_with_list(p, ND_TUPLE, @$, &(NodeList){0}); }
  | '(' tuple_named ')'       { $$ = ast_paren(p, @$, $2); }
  | '(' yield_expr ')'        { $$ = ast_paren(p, @$, $2); }
  | '(' namedtest comp_fors ')'
    { $$ = ast_paren(p, @$, ast_comp(p, @$, COMP_GENERATOR, $2, NULL, &$3)); }
  | '[' ']'                   { $$ = ast_with_list(p, ND_LIST, @$, &(NodeList){0}); }
  | '[' named_list ']'        { $$ = ast_with_list(p, ND_LIST, @$, &$2); }
  | '[' named_list ',' ']'    { $$ = ast_with_list(p, ND_LIST, @$, &$2); }
  | '[' namedtest comp_fors ']'   { $$ = ast_comp(p, @$, COMP_LIST, $2, NULL, &$3); }
  | '{' '}'                   { $$ = ast_dict(p, @$, &(NodeList){0}); }
  | '{' dict_items '}'        { $$ = ast_dict(p, @$, &$2); }
  | '{' dict_items ',' '}'    { $$ = ast_dict(p, @$, &$2); }
  | '{' set_items '}'         { $$ = ast_with_list(p, ND_SET, @$, &$2); }
  | '{' set_items ',' '}'     { $$ = ast_with_list(p, ND_SET, @$, &$2); }
  | '{' test ':' test comp_fors '}'  { $$ = ast_comp(p, @$, COMP_DICT, $2, $4, &$5); }
  | '{' namedtest comp_fors '}'   { $$ = ast_comp(p, @$, COMP_SET, $2, NULL, &$3); }
  ;

strings:
    STRING                    { $$ = ast_list1(p, $1); }
  | strings STRING            { $$ = $1; ast_push(p, &$$, $2); }
  ;

/* keys and values one after another; ** has a NULL key */
dict_items:
    test ':' test             { $$ = ast_list1(p, $1); ast_push(p, &$$, $3); }
  | POW arith                 { $$ = ast_list1(p, NULL); ast_push(p, &$$, $2); }
  | dict_items ',' test ':' test  { $$ = $1; ast_push(p, &$$, $3); ast_push(p, &$$, $5); }
  | dict_items ',' POW arith  { $$ = $1; ast_push(p, &$$, NULL); ast_push(p, &$$, $4); }
  ;
set_items:
    star_or_test              { $$ = ast_list1(p, $1); }
  | set_items ',' star_or_test  { $$ = $1; ast_push(p, &$$, $3); }
  ;

comp_fors:
    comp_for                  { $$ = ast_list1(p, $1); }
  | comp_fors comp_for        { $$ = $1; ast_push(p, &$$, $2); }
  ;
comp_for:
    KW_FOR tuple_exprs KW_IN expr comp_ifs
                              { $$ = ast_generator(p, @$, 0, $2, $4, &$5); }
  | KW_ASYNC KW_FOR tuple_exprs KW_IN expr comp_ifs
                              { $$ = ast_generator(p, @$, 1, $3, $5, &$6); }
  ;
comp_ifs:
    %empty                    { $$ = (NodeList){0}; }
  | comp_ifs KW_IF expr       { $$ = $1; ast_push(p, &$$, $3); }
  ;

args:
    %empty                    { $$ = (NodeList){0}; }
  | arg_list                  { $$ = $1; }
  | arg_list ','              { $$ = $1; }
  ;
arg_list:
    arg                       { $$ = ast_list1(p, $1); }
  | arg_list ',' arg          { $$ = $1; ast_push(p, &$$, $3); }
  ;
arg:
    namedtest                 { $$ = $1; }
  | namedtest comp_fors       { $$ = ast_comp(p, @$, COMP_GENERATOR, $1, NULL, &$2); }
  | IDENT '=' test            { $$ = ast_keyword(p, @$, $1, $3); }
  | '*' test                  { $$ = ast_unary(p, ND_STARRED, @$, $2); }
  | POW test                  { $$ = ast_keyword(p, @$, NULL, $2); }
  ;

subscripts:
    subscript                 { $$ = ast_list1(p, $1); }
  | subscripts ',' subscript  { $$ = $1; ast_push(p, &$$, $3); }
  ;
subscript:
    star_or_test              { $$ = $1; }
  | slice_opt ':' slice_opt   { $$ = ast_slice(p, @$, $1, $3, NULL); }
  | slice_opt ':' slice_opt ':' slice_opt  { $$ = ast_slice(p, @$, $1, $3, $5); }
  ;
slice_opt:
    %empty                    { $$ = NULL; }
  | slice_part                { $$ = $1; }
  ;
slice_part:
    test                      { $$ = $1; }
  ;

%%

static int
yylex(YYSTYPE *val, Loc *loc, Parser *p)
{
    Node *node = NULL;
    Name name = NULL;
    int kind = grammar_next(p, loc, &node, &name);
    if (node)
        val->node = node;
    else
        val->name = name;
    return kind;
}

static void
yyerror(const Loc *loc, Parser *p, const char *text)
{
    /* bison calls this for an exhausted stack only; syntax errors go below */
    (void)text;
    parse_limit(p, *loc, "nested too deeply");
}

static int
yyreport_syntax_error(const yypcontext_t *cx, Parser *p)
{
    yysymbol_kind_t found = yypcontext_token(cx);
    yysymbol_kind_t wanted[5];
    int n = yypcontext_expected_tokens(cx, wanted, 5);
    const char *names[5];
    for (int i = 0; i < n && i < 5; i++)
        names[i] = yysymbol_name(wanted[i]);
    grammar_report(p, *yypcontext_location(cx),
                   found == YYSYMBOL_YYEMPTY ? "" : yysymbol_name(found), names, n);
    return 0;
}
