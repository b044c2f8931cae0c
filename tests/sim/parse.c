/* The text of a function: scopes of registers and labels, statements. What a statement
   does, decode.c says. */
#include "tests/sim/parser.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static uint32_t
line_of(const Parser *p, size_t at)
{
    uint32_t n = 1;
    for (size_t k = 0; k < at; k++)
        n += p->text[k] == '\n';
    return n;
}

bool
parse_fail(Parser *p, const char *format, ...)
{
    va_list args;
    if (p->failed)
        return false;
    p->failed = true;
    int n = snprintf(p->message, p->size, "line %u: ", line_of(p, p->statement));
    va_start(args, format);
    if (n > 0 && (size_t)n < p->size)
        vsnprintf(p->message + n, p->size - (size_t)n, format, args);
    va_end(args);
    return false;
}

void *
parse_own(Parser *p, size_t bytes)
{
    SimModule *m = p->m;
    GROW(m->owned, m->nowned, m->owned_room);
    return m->owned[m->nowned++] = calloc(1, bytes ? bytes : 1);
}

Code *
parse_code(Parser *p)
{
    return p->code;
}

/* ---------------------------------------------------------------- registers */

uint32_t
parse_fresh(Parser *p, int bits)
{
    uint32_t at = p->next_reg;
    p->next_reg += bits == 64 ? 2 * SLOT : SLOT;
    return at;
}

static bool
is_address(const Parser *p, uint32_t slot)
{
    for (int k = 0; k < p->code->naddress; k++)
        if (p->code->address[k] == slot * SLOT)
            return true;
    return false;
}

uint32_t
parse_const(Parser *p, uint64_t value, int bits)
{
    if (bits < 64)
        value &= ((uint64_t)1 << bits) - 1;
    int kind = bits == 64 ? 64 : bits == 1 ? 1 : 32;
    if (bits == 1)
        value = value ? 0xffffffff : 0;
    uint32_t last = p->next_const / SLOT;
    for (uint32_t k = 1; k < last; k++)
        if (p->const_value[k] == value && p->const_bits[k] == kind && !is_address(p, k))
            return k * SLOT;
    if (p->next_const + 2 * SLOT > CONST_ROOM)
        parse_fail(p, "too many constants");
    else
        p->next_const += kind == 64 ? 2 * SLOT : SLOT;
    p->const_value[last] = value;
    p->const_bits[last] = (uint8_t)kind;
    return last * SLOT;
}

/* An address of shared memory, which is another one for each program of a cluster. */
uint32_t
parse_shared(Parser *p, uint64_t address, bool wide)
{
    Code *c = p->code;
    uint32_t at = p->next_const;
    for (int k = 0; k < c->naddress; k++)
        if (c->wide[k] == wide && p->const_value[c->address[k] / SLOT] == address)
            return c->address[k];
    if (c->naddress == (int)(sizeof c->address / sizeof *c->address) ||
        at + 2 * SLOT > CONST_ROOM) {
        parse_fail(p, "too many constants");
        return 0;
    }
    p->next_const += wide ? 2 * SLOT : SLOT;
    p->const_value[at / SLOT] = address;
    p->const_bits[at / SLOT] = wide ? 64 : 32;
    c->address[c->naddress] = at;
    c->wide[c->naddress++] = wide;
    return at;
}

Family *
parse_declare(Parser *p, const char *name, int count, int bits)
{
    GROW(p->family, p->nfamily, p->family_room);
    Family *f = &p->family[p->nfamily++];
    *f = (Family){.count = count, .at = p->next_reg, .bits = bits};
    snprintf(f->name, sizeof f->name, "%s", name);
    for (int k = 0; k < (count ? count : 1); k++)
        parse_fresh(p, bits);
    return f;
}

static bool
special(Parser *p, const char *name, Reg *out)
{
    static const char *const masks[] = {"eq", "lt", "le", "gt", "ge"};
    static const char *const nothing[] = {"%clock", "%smid", "%dynamic_smem_size"};
    Code *c = p->code;
    uint32_t *place = NULL;
    const struct {
        const char *name;
        uint32_t *place;
    } vectors[] = {{"%tid.", c->tid},
                   {"%ctaid.", c->ctaid},
                   {"%nctaid.", c->nctaid},
                   {"%ntid.", c->ntid}};
    for (int k = 0; k < 4; k++) {
        size_t n = strlen(vectors[k].name);
        if (strncmp(name, vectors[k].name, n) == 0 && name[n] >= 'x' && name[n] <= 'z')
            place = vectors[k].place + (name[n] - 'x');
    }
    if (strcmp(name, "%laneid") == 0)
        place = &c->laneid;
    if (strcmp(name, "%warpid") == 0)
        place = &c->warpid;
    for (int k = 0; k < 5; k++)
        if (strncmp(name, "%lanemask_", 10) == 0 && strcmp(name + 10, masks[k]) == 0)
            place = &c->lanemask[k];
    if (strcmp(name, "%cluster_ctarank") == 0)
        place = &c->rank;
    if (strcmp(name, "%cluster_nctarank") == 0)
        place = &c->cluster;
    for (int k = 0; k < 3; k++)
        if (strcmp(name, nothing[k]) == 0) {
            *out = (Reg){parse_const(p, 0, 32), 32};
            return true;
        }
    if (!place)
        return false;
    if (!*place)
        *place = parse_fresh(p, 32);
    *out = (Reg){*place, 32};
    return true;
}

bool
parse_register(Parser *p, const char *name, Reg *out)
{
    size_t n = strlen(name), digits = n;
    while (digits > 0 && isdigit((unsigned char)name[digits - 1]))
        digits--;
    long number = digits < n ? strtol(name + digits, NULL, 10) : -1;
    for (int k = p->nfamily - 1; k >= 0; k--) {
        const Family *f = &p->family[k];
        uint32_t step = f->bits == 64 ? 2 * SLOT : SLOT;
        bool many = f->count && number >= 0 && number < f->count &&
                    strlen(f->name) == digits && strncmp(f->name, name, digits) == 0;
        if (many || (!f->count && strcmp(f->name, name) == 0)) {
            *out = (Reg){f->at + (many ? (uint32_t)number * step : 0), f->bits};
            return true;
        }
    }
    return *name == '%' && special(p, name, out);
}

bool
parse_symbol(Parser *p, const char *name, Space *space, uint64_t *address)
{
    for (int k = p->nsymbol - 1; k >= 0; k--)
        if (strcmp(p->symbol[k].name, name) == 0) {
            *space = p->symbol[k].space;
            *address = p->symbol[k].address;
            return true;
        }
    return false;
}

void
parse_define(Parser *p, const char *name, Space space, uint64_t address)
{
    p->symbol = realloc(p->symbol, (size_t)(p->nsymbol + 1) * sizeof *p->symbol);
    Symbol *s = &p->symbol[p->nsymbol++];
    *s = (Symbol){.space = space, .address = address};
    snprintf(s->name, sizeof s->name, "%s", name);
}

/* ---------------------------------------------------------------- instructions */

Insn *
parse_emit(Parser *p)
{
    Code *c = p->code;
    GROW(c->insn, c->ninsn, c->room);
    Insn *i = &c->insn[c->ninsn++];
    *i = (Insn){.pred = p->pred,
                .negated = p->negated,
                .at = (uint32_t)p->statement,
                .length = (uint32_t)p->length};
    return i;
}

void
parse_target(Parser *p, const char *label, Insn *branch)
{
    GROW(p->fixup, p->nfixup, p->fixup_room);
    Fixup *f = &p->fixup[p->nfixup++];
    *f = (Fixup){.scope = p->scope[p->depth - 1].id,
                 .insn = (uint32_t)(branch - p->code->insn)};
    snprintf(f->name, sizeof f->name, "%s", label);
}

bool
parse_return(Parser *p, Insn *i)
{
    if (!p->inlined)
        return false;
    p->returns = realloc(p->returns, (size_t)(p->nreturns + 1) * sizeof *p->returns);
    p->returns[p->nreturns++] = (uint32_t)(i - p->code->insn);
    i->fn = op_bra;
    return true;
}

bool
parse_open(Parser *p)
{
    if (p->depth == DEPTH)
        return parse_fail(p, "braces are nested too deep");
    p->scope[p->depth].id = ++p->scopes;
    p->scope[p->depth++].nfamily = p->nfamily;
    return true;
}

/* Branches to labels of the scope get their targets; others look further out. */
bool
parse_close(Parser *p)
{
    if (!p->depth)
        return parse_fail(p, "a brace too many");
    uint32_t id = p->scope[--p->depth].id;
    for (int k = 0; k < p->nfixup; k++) {
        Fixup *f = &p->fixup[k];
        bool found = false;
        if (f->scope != id)
            continue;
        for (int j = 0; j < p->nlabel && !found; j++)
            if (p->label[j].scope == id && strcmp(p->label[j].name, f->name) == 0) {
                p->code->insn[f->insn].imm = p->label[j].pc;
                found = true;
            }
        if (!found && !p->depth)
            return parse_fail(p, "there is no label '%s'", f->name);
        if (found)
            *f = p->fixup[--p->nfixup], k--;
        else
            f->scope = p->scope[p->depth - 1].id;
    }
    for (int j = p->nlabel - 1; j >= 0 && p->label[j].scope == id; j--)
        p->nlabel--;
    p->nfamily = p->scope[p->depth].nfamily;
    return true;
}

/* ---------------------------------------------------------------- words */

void
parse_space(Parser *p)
{
    while (p->at < p->end && isspace((unsigned char)p->text[p->at]))
        p->at++;
}

static bool
is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '.' || c == '%' ||
           c == ':';
}

void
parse_word(Parser *p, char *out)
{
    size_t n = 0;
    parse_space(p);
    while (p->at < p->end && is_word(p->text[p->at])) {
        if (n + 1 < NAME)
            out[n++] = p->text[p->at];
        p->at++;
    }
    out[n] = '\0';
}

static int
type_bits(const char *type)
{
    if (strcmp(type, ".pred") == 0)
        return 1;
    const char *d = type;
    while (*d && !isdigit((unsigned char)*d))
        d++;
    int n = atoi(d);
    return n == 8 ? 16 : n;
}

void
parse_past(Parser *p, char c)
{
    while (p->at < p->end && p->text[p->at] != c)
        p->at++;
    p->at++;
}

/* .reg .b32 %r<5>; .reg .b64 a, b; .param .b64 x; .local .align 8 .b8 depot[16]; */
static bool
variable(Parser *p, const char *kind)
{
    char w[NAME], type[NAME] = "";
    for (parse_word(p, w); *w == '.'; parse_word(p, w)) {
        if (strcmp(w, ".align") == 0)
            parse_word(p, w);
        else
            snprintf(type, sizeof type, "%s", w);
    }
    for (;; parse_word(p, w)) {
        int count = 0;
        parse_space(p);
        char c = p->text[p->at];
        if (c == '<' || c == '[')
            count = atoi(p->text + p->at + 1);
        if (strcmp(kind, ".local") == 0) {
            parse_define(p, w, LOCAL, p->code->local_bytes);
            p->code->local_bytes += (uint32_t)(count + 15) / 16 * 16;
        } else if (strcmp(kind, ".param") == 0 && count) {
            return parse_fail(p, "arrays are not passed to functions");
        } else {
            parse_declare(p, w, count, type_bits(type));
        }
        while (p->at < p->end && p->text[p->at] != ',' && p->text[p->at] != ';')
            p->at++;
        if (p->text[p->at++] != ',')
            return true;
    }
}

/* ---------------------------------------------------------------- statements */

static bool
predicate(Parser *p)
{
    char name[NAME];
    Reg r;
    p->pred = NO_PRED;
    if (p->text[p->at] != '@')
        return true;
    p->at++;
    p->negated = p->text[p->at] == '!';
    p->at += p->negated;
    parse_word(p, name);
    if (!parse_register(p, name, &r) || r.bits != 1)
        return parse_fail(p, "'%s' is not a predicate", name);
    p->pred = r.at;
    parse_space(p);
    return true;
}

static bool
statement(Parser *p)
{
    char w[NAME], *operands;
    size_t start = p->at;
    p->statement = start;
    if (!predicate(p))
        return false;
    parse_word(p, w);
    size_t n = strlen(w);
    if (n > 1 && w[n - 1] == ':' && w[n - 2] != ':') {
        w[n - 1] = '\0';
        GROW(p->label, p->nlabel, p->label_room);
        Label *l = &p->label[p->nlabel++];
        *l = (Label){.scope = p->scope[p->depth - 1].id, .pc = p->code->ninsn};
        snprintf(l->name, sizeof l->name, "%s", w);
        return true;
    }
    if (strcmp(w, ".reg") == 0 || strcmp(w, ".param") == 0 || strcmp(w, ".local") == 0)
        return variable(p, w);
    if (strcmp(w, ".loc") == 0 || strcmp(w, ".file") == 0) {
        while (p->at < p->end && p->text[p->at] != '\n')
            p->at++;
        return true;
    }
    size_t from = p->at;
    parse_past(p, ';');
    if (*w == '.')
        return true; /* .pragma */
    p->length = p->at - start;
    operands = malloc(p->at - from);
    memcpy(operands, p->text + from, p->at - from - 1);
    operands[p->at - from - 1] = '\0';
    bool ok = decode(p, w, operands);
    free(operands);
    return ok;
}

bool
parse_body(Parser *p, size_t from, size_t to)
{
    size_t at = p->at, end = p->end;
    p->at = from;
    p->end = to;
    if (!parse_open(p))
        return false;
    for (parse_space(p); p->at < p->end && !p->failed; parse_space(p)) {
        char c = p->text[p->at];
        p->statement = p->at;
        if (c == '{' || c == '}' || c == ';') {
            p->at++;
            if (c == '{' ? !parse_open(p) : c == '}' && !parse_close(p))
                return false;
        } else if (!statement(p)) {
            return false;
        }
    }
    bool ok = !p->failed && parse_close(p);
    p->at = at;
    p->end = end;
    return ok;
}
