/* A PTX module: its tables, functions and entries. A called function is put in the place
   of its call, its parameters being registers of the caller: nothing here recurses, and
   sdc's PTX calls little. */
#include "tests/sim/parser.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

/* ---------------------------------------------------------------- calls */

static bool
give(Parser *p, const char *name, const char *var)
{
    Reg r;
    if (!parse_register(p, var, &r))
        return parse_fail(p, "'%s' is not known", var);
    Family *f = parse_declare(p, name, 0, r.bits);
    f->at = r.at;
    return true;
}

/* The function's body, with its parameters being registers of the caller. */
static bool
put_in_place(Parser *p, const Function *f, const char *result, char **args, int n)
{
    uint32_t *outer = p->returns;
    int nouter = p->nreturns;
    size_t length = p->length, where = p->statement;
    if (p->inlined == INLINE_DEPTH || p->pred != NO_PRED || n != f->nparam)
        return parse_fail(p, "a call of '%s' that is not understood", f->name);
    p->returns = NULL;
    p->nreturns = 0;
    if (!parse_open(p))
        return false;
    for (int k = 0; k < n; k++)
        if (!give(p, f->param[k], args[k]))
            return false;
    if (result && *f->result && !give(p, f->result, result))
        return false;
    p->inlined++;
    bool ok = parse_body(p, f->from, f->to);
    p->inlined--;
    for (int k = 0; k < p->nreturns; k++)
        p->code->insn[p->returns[k]].imm = p->code->ninsn;
    free(p->returns);
    p->returns = outer;
    p->nreturns = nouter;
    p->length = length;
    p->statement = where;
    return ok && parse_close(p);
}

/* "(retval0), name, (param0, param1)" or "name, (..)" */
bool
parse_call(Parser *p, char *operands)
{
    char *part[20], *at = operands + strspn(operands, " \t\n"), *result = NULL;
    bool has_result = *at == '(';
    int n = 0;
    while (n < 19 && *(at += strspn(at, "(), \t\n"))) {
        part[n++] = at;
        at += strcspn(at, "(), \t\n");
        if (*at)
            *at++ = '\0';
    }
    int first = has_result && n ? 1 : 0;
    const char *name = n > first ? part[first] : "nothing";
    if (first)
        result = part[0];
    if (strcmp(name, "vprintf") == 0)
        return true; /* what it prints is nobody's business here */
    if (strcmp(name, "__assertfail") == 0) {
        parse_emit(p)->fn = op_trap;
        return true;
    }
    for (int k = 0; k < p->nfunction; k++)
        if (p->function[k].to && strcmp(p->function[k].name, name) == 0)
            return put_in_place(p, &p->function[k], result, part + first + 1,
                                n - first - 1);
    return parse_fail(p, "a call of '%s'", name);
}

/* ---------------------------------------------------------------- the module */

/* Past the bracket that closes the one here. */
static void
skip_brackets(Parser *p, char open, char close)
{
    int depth = 0;
    for (; p->at < p->end; p->at++) {
        depth += p->text[p->at] == open;
        if (p->text[p->at] == close && --depth == 0) {
            p->at++;
            return;
        }
    }
}

enum { TABLE_ALIGN = 128 };

static bool
table(Parser *p)
{
    char w[NAME];
    int bits = 8;
    for (parse_word(p, w); *w == '.'; parse_word(p, w)) {
        if (strcmp(w, ".align") == 0)
            parse_word(p, w);
        else if (isdigit((unsigned char)w[2]))
            bits = atoi(w + 2);
    }
    parse_space(p);
    size_t count = p->text[p->at] == '[' ? strtoul(p->text + p->at + 1, NULL, 10) : 1;
    size_t bytes = count * (size_t)bits / 8, n = 0;
    SimModule *m = p->m;
    m->global = realloc(m->global, (size_t)(m->nglobal + 1) * sizeof *m->global);
    Global *g = &m->global[m->nglobal++];
    unsigned char *room = parse_own(p, bytes + 2 * TABLE_ALIGN);
    *g = (Global){.bytes = bytes,
                  .data = room + (TABLE_ALIGN - (uintptr_t)room % TABLE_ALIGN)};
    snprintf(g->name, sizeof g->name, "%s", w);
    parse_define(p, w, GLOBAL, (uint64_t)(uintptr_t)g->data);
    while (p->text[p->at] != ';' && p->text[p->at] != '=' && p->at < p->end)
        p->at++;
    g->constant = p->text[p->at] == '=';
    if (g->constant)
        for (p->at++; p->at < p->end && p->text[p->at] != ';';) {
            char *end;
            uint64_t v = strtoull(p->text + p->at, &end, 0);
            if (end == p->text + p->at) {
                p->at++;
                continue;
            }
            p->at = (size_t)(end - p->text);
            if ((n + 1) * (size_t)bits / 8 <= bytes)
                memcpy(g->data + n * (size_t)bits / 8, &v, (size_t)bits / 8);
            n++;
        }
    parse_past(p, ';');
    return true;
}

/* The parameters of a function or an entry, between parentheses. */
static int
parameters(Parser *p, char name[][NAME], int *bytes, int *align, int most)
{
    char w[NAME];
    int n = 0;
    p->at++;
    for (parse_space(p); p->at < p->end && p->text[p->at] != ')'; parse_space(p)) {
        int bits = 0, al = 0;
        for (parse_word(p, w); *w == '.'; parse_word(p, w)) {
            if (strcmp(w, ".align") == 0) {
                parse_word(p, w);
                al = bits && !al ? al : atoi(w);
            } else if (!bits && isdigit((unsigned char)w[2])) {
                bits = atoi(w + 2);
            }
        }
        parse_space(p);
        int count = p->text[p->at] == '[' ? atoi(p->text + p->at + 1) : 1;
        if (n < most) {
            snprintf(name[n], NAME, "%s", w);
            bytes[n] = bits / 8 * count;
            align[n++] = count > 1 && al ? al : bits / 8;
        }
        while (p->at < p->end && p->text[p->at] != ',' && p->text[p->at] != ')')
            p->at++;
        p->at += p->text[p->at] == ',';
    }
    p->at++;
    return n;
}

static bool
function(Parser *p)
{
    char w[NAME], result[1][NAME] = {""};
    int bytes[16], align[16];
    p->function = realloc(p->function, (size_t)(p->nfunction + 1) * sizeof *p->function);
    Function f = {.nparam = 0};
    parse_space(p);
    if (p->text[p->at] == '(')
        parameters(p, result, bytes, align, 1);
    parse_word(p, w);
    snprintf(f.name, sizeof f.name, "%s", w);
    snprintf(f.result, sizeof f.result, "%s", result[0]);
    parse_space(p);
    if (p->text[p->at] == '(')
        f.nparam = parameters(p, f.param, bytes, align, 16);
    while (p->at < p->end && p->text[p->at] != '{' && p->text[p->at] != ';')
        p->at++;
    if (p->text[p->at] == '{') {
        f.from = p->at + 1;
        skip_brackets(p, '{', '}');
        f.to = p->at - 1;
    } else {
        p->at++;
    }
    for (int k = 0; k < p->nfunction; k++)
        if (strcmp(p->function[k].name, f.name) == 0) {
            if (f.to)
                p->function[k] = f;
            return true;
        }
    p->function[p->nfunction++] = f;
    return true;
}

static bool
entry(Parser *p)
{
    static const Code none;
    char names[128][NAME], w[NAME];
    int align[128], at = 0;
    SimModule *m = p->m;
    m->code = realloc(m->code, (size_t)(m->ncode + 1) * sizeof *m->code);
    Code *c = p->code = &m->code[m->ncode++];
    *c = none;
    c->cell = 16;
    c->text = m->text;
    parse_word(p, w);
    snprintf(c->name, sizeof c->name, "%s", w);
    parse_space(p);
    if (p->text[p->at] == '(')
        c->nparam = parameters(p, names, c->param_bytes, align, 128);
    p->nsymbol = p->nglobal_symbols;
    for (int k = 0; k < c->nparam; k++) {
        at = (at + align[k] - 1) / align[k] * align[k];
        c->param_at[k] = at;
        parse_define(p, names[k], PARAM, (uint64_t)at);
        at += c->param_bytes[k];
    }
    c->param_size = at;
    for (parse_word(p, w); *w == '.'; parse_word(p, w)) {
        parse_space(p);
        int x = atoi(p->text + p->at);
        if (strcmp(w, ".reqntid") == 0)
            c->threads = x;
        while (p->at < p->end && p->text[p->at] != '\n' && p->text[p->at] != '{')
            p->at++;
    }
    parse_space(p);
    size_t from = p->at + 1;
    skip_brackets(p, '{', '}');
    p->next_const = SLOT;
    p->next_reg = CONST_ROOM;
    p->nfamily = p->nlabel = p->nfixup = p->depth = 0;
    if (!parse_body(p, from, p->at - 1))
        return false;
    p->pred = NO_PRED;
    parse_emit(p)->fn = op_ret;
    c->reg_bytes = p->next_reg;
    c->const_bytes = p->next_const;
    c->initial = parse_own(p, p->next_const);
    for (uint32_t k = 1; k < p->next_const / SLOT; k++)
        for (int l = 0; l < LANES && p->const_bits[k]; l++) {
            if (p->const_bits[k] == 64)
                memcpy(c->initial + k * SLOT + 8 * l, &p->const_value[k], 8);
            else
                memcpy(c->initial + k * SLOT + 4 * l, &p->const_value[k], 4);
        }
    memset(p->const_bits, 0, sizeof p->const_bits);
    return true;
}

static void
number_lines(SimModule *m)
{
    for (int k = 0; k < m->ncode; k++) {
        Code *c = &m->code[k];
        size_t at = 0;
        uint32_t line = 1;
        for (uint32_t i = 0; i < c->ninsn; i++) {
            if (c->insn[i].at < at)
                at = 0, line = 1;
            for (; at < c->insn[i].at; at++)
                line += m->text[at] == '\n';
            c->insn[i].line = line;
        }
    }
}

/* Twice: functions and tables first, since entries use what stands behind them. */
static bool
module(Parser *p, bool entries)
{
    char w[NAME];
    p->at = 0;
    for (parse_space(p); p->at < p->end; parse_space(p)) {
        p->statement = p->at;
        parse_word(p, w);
        if (strcmp(w, ".visible") == 0 || strcmp(w, ".weak") == 0 ||
            strcmp(w, ".extern") == 0)
            continue;
        bool ok = true;
        if (strcmp(w, ".entry") == 0 && entries) {
            ok = entry(p);
        } else if (strcmp(w, ".func") == 0 && !entries) {
            ok = function(p);
        } else if (strcmp(w, ".entry") == 0 || strcmp(w, ".section") == 0) {
            skip_brackets(p, '{', '}');
        } else if (strcmp(w, ".func") == 0) {
            while (p->at < p->end && p->text[p->at] != '{' && p->text[p->at] != ';')
                p->at++;
            if (p->text[p->at] == '{')
                skip_brackets(p, '{', '}');
        } else if ((strcmp(w, ".global") == 0 || strcmp(w, ".const") == 0) && !entries) {
            ok = table(p);
        } else if (strcmp(w, ".shared") == 0 && !entries) {
            do
                parse_word(p, w);
            while (*w == '.' || isdigit((unsigned char)*w));
            parse_define(p, w, SHARED, SHARED_BASE);
            parse_past(p, ';');
        } else if (strcmp(w, ".version") == 0 || strcmp(w, ".target") == 0 ||
                   strcmp(w, ".address_size") == 0 || strcmp(w, ".file") == 0) {
            while (p->at < p->end && p->text[p->at] != '\n')
                p->at++;
        } else if (*w == '.') {
            parse_past(p, ';');
        } else {
            p->at++;
            ok = *w == '\0';
        }
        if (!ok)
            return parse_fail(p, "not understood: '%.40s'", w);
    }
    p->nglobal_symbols = p->nsymbol;
    return true;
}

/* Comments become spaces, so that places stay what they are. */
static void
drop_comments(char *s)
{
    for (; *s; s++) {
        bool line = s[0] == '/' && s[1] == '/', block = s[0] == '/' && s[1] == '*';
        if (line)
            while (*s && *s != '\n')
                *s++ = ' ';
        else if (block) {
            while (*s && !(s[0] == '*' && s[1] == '/')) {
                *s = *s == '\n' ? '\n' : ' ';
                s++;
            }
            if (*s)
                s[0] = s[1] = ' ';
        }
        if (!*s)
            return;
    }
}

SimModule *
sim_load(const char *ptx, char *message, size_t size)
{
    SimModule *m = calloc(1, sizeof *m);
    Parser *p = calloc(1, sizeof *p);
    size_t n = strlen(ptx);
    m->text = malloc(n + 1);
    memcpy(m->text, ptx, n + 1);
    drop_comments(m->text);
    *p = (Parser){.m = m, .text = m->text, .end = n, .message = message, .size = size};
    bool ok = module(p, false) && module(p, true);
    if (ok && !m->ncode)
        ok = parse_fail(p, "there is no kernel");
    free(p->family);
    free(p->label);
    free(p->fixup);
    free(p->function);
    free(p->symbol);
    free(p->returns);
    free(p);
    if (!ok) {
        sim_unload(m);
        return NULL;
    }
    number_lines(m);
    return m;
}

void
sim_unload(SimModule *m)
{
    if (!m)
        return;
    for (int k = 0; k < m->ncode; k++)
        free(m->code[k].insn);
    for (int k = 0; k < m->nowned; k++)
        free(m->owned[k]);
    free(m->owned);
    free(m->code);
    free(m->global);
    free(m->text);
    free(m);
}
