/* A statement of the text to an instruction. Arithmetic is in tables by name and format
   (ops_int, ops_float, ops_half); what touches memory, other lanes or time is decoded
   here by the parts of its name. What is not known is an error: a guess would be a wrong
   answer. */
#include "tests/sim/decode.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

/* ---------------------------------------------------------------- operands */

char *
trim(char *s)
{
    s += strspn(s, " \t\n");
    for (size_t n = strlen(s); n > 0 && isspace((unsigned char)s[n - 1]);)
        s[--n] = '\0';
    return s;
}

/* At commas outside of brackets. */
int
split_operands(char *text, char **out, int most)
{
    int n = 0, depth = 0;
    char *start = text = trim(text);
    if (!*text)
        return 0;
    for (;; text++) {
        depth += (*text == '{' || *text == '[') - (*text == '}' || *text == ']');
        if (*text && (*text != ',' || depth))
            continue;
        bool last = !*text;
        *text = '\0';
        if (n < most)
            out[n++] = trim(start);
        start = text + 1;
        if (last)
            return n;
    }
}

static bool
number(const char *s, int bits, uint64_t *out)
{
    char *end;
    if (s[0] == '0' && (s[1] == 'f' || s[1] == 'F' || s[1] == 'd' || s[1] == 'D')) {
        *out = strtoull(s + 2, &end, 16);
        return !*end && (bits == 64) == (tolower((unsigned char)s[1]) == 'd');
    }
    if (!isdigit((unsigned char)*s) && *s != '-')
        return false;
    *out = *s == '-' ? 0 - strtoull(s + 1, &end, 0) : strtoull(s, &end, 0);
    return !*end || (*end == 'U' && !end[1]);
}

/* The place of a register or constant of so many bits; 0: an error. */
uint32_t
operand(Parser *p, const char *s, int bits)
{
    Reg r;
    uint64_t v;
    Space space;
    if (strcmp(s, "_") == 0)
        return parse_fresh(p, bits);
    if (parse_register(p, s, &r)) {
        if (r.bits == bits)
            return r.at;
        parse_fail(p, "'%s' has %d bits, not %d", s, r.bits, bits);
        return 0;
    }
    if (number(s, bits, &v))
        return parse_const(p, v, bits);
    if (parse_symbol(p, s, &space, &v) && space != PARAM)
        return space == SHARED && bits >= 32 ? parse_shared(p, v, bits == 64)
                                             : parse_const(p, v, bits);
    parse_fail(p, "the operand '%s'", s);
    return 0;
}

static int
bits_of(char kind)
{
    return kind == 'd' ? 64 : kind == 'w' ? 32 : kind == 'h' ? 16 : 1;
}

/* Gives an instruction its places, results first. */
Insn *
emit(Parser *p, Exec *fn, const uint32_t *r, int nd, int ns)
{
    uint32_t *own = parse_own(p, (size_t)(nd + ns + 4) * sizeof *own);
    for (int k = 0; k < nd + ns; k++)
        own[k] = r[k];
    Insn *i = parse_emit(p);
    i->fn = fn;
    i->r = own;
    i->nd = (uint16_t)nd;
    i->ns = (uint16_t)ns;
    i->d = own[0];
    i->a = own[nd];
    i->b = own[nd + 1];
    i->c = own[nd + 2];
    return i;
}

static void
param_address(Warp *w, const Insn *i, uint32_t mask)
{
    uint64_t a = PARAM_WINDOW | (uint64_t)i->imm;
    EACH(mask, R64(w, i->d)[l] = a);
}

static void
add_const(Warp *w, const Insn *i, uint32_t mask)
{
    if (i->flags & WIDE_DST)
        EACH(mask, R64(w, i->d)[l] = R64(w, i->a)[l] + (uint64_t)i->imm);
    else
        EACH(mask, R32(w, i->d)[l] = R32(w, i->a)[l] + (uint32_t)i->imm);
}

/* "[base+offset]". Base: a register, symbol or number. */
bool
memory(Parser *p, char *s, Address *out)
{
    Reg r;
    uint64_t v;
    Space space;
    size_t n = strlen(s);
    if (n < 2 || s[0] != '[' || s[n - 1] != ']')
        return parse_fail(p, "'%s' is no address", s);
    s[n - 1] = '\0';
    s = trim(s + 1);
    *out = (Address){.offset = 0};
    char *plus = s + strcspn(s, "+");
    if (plus == s + strlen(s) && *s != '-')
        plus = strchr(s, '-') ? strchr(s, '-') : plus;
    if (*plus) {
        out->offset = strtoll(plus + (*plus == '+'), NULL, 0);
        *plus = '\0';
        trim(s);
    }
    if (parse_register(p, s, &r)) {
        out->wide = r.bits == 64;
        out->at = r.at;
        return r.bits >= 32 || parse_fail(p, "'%s' is no address", s);
    }
    if (parse_symbol(p, s, &space, &v)) {
        out->is_param = space == PARAM;
        out->offset += out->is_param ? (int64_t)v : 0;
        out->wide = space == GLOBAL;
        out->at = out->is_param     ? 0
                  : space == SHARED ? parse_shared(p, v, false)
                                    : parse_const(p, v, out->wide ? 64 : 32);
        return true;
    }
    if (number(s, 32, &v)) {
        out->at = parse_const(p, v, 32);
        return true;
    }
    return parse_fail(p, "the address '%s'", s);
}

/* The same in a register, the offset added. */
bool
plain_memory(Parser *p, char *s, Address *out)
{
    if (!memory(p, s, out))
        return false;
    if (out->is_param)
        return parse_fail(p, "an address of a parameter");
    if (!out->offset)
        return true;
    uint32_t r[2] = {parse_fresh(p, out->wide ? 64 : 32), out->at};
    Insn *i = emit(p, add_const, r, 1, 1);
    i->imm = out->offset;
    i->flags = out->wide ? WIDE_DST : 0;
    *out = (Address){.at = r[0], .wide = out->wide};
    return true;
}

/* "{a, b}" or one; their places and, of registers, their bits. */
int
list(Parser *p, char *s, int bits, uint32_t *r, int *found)
{
    char *part[MAX_LIST];
    int n = 1;
    if (*s == '{') {
        s[strlen(s) - 1] = '\0';
        n = split_operands(s + 1, part, MAX_LIST);
    } else {
        part[0] = s;
    }
    for (int k = 0; k < n; k++) {
        Reg x;
        int b = bits;
        if (parse_register(p, part[k], &x)) {
            b = x.bits;
            if (found)
                *found = b;
        }
        if (!(r[k] = operand(p, part[k], b)))
            return 0;
    }
    return n;
}

/* ---------------------------------------------------------------- names in parts */

int
parts_of(char *name, char **part)
{
    int n = 0;
    for (char *s = name; s && n < MAX_PARTS;) {
        part[n++] = s;
        s = strchr(s, '.');
        if (s)
            *s++ = '\0';
    }
    return n;
}

bool
has(const Op *o, const char *s)
{
    for (int k = 1; k < o->n; k++)
        if (strcmp(o->part[k], s) == 0)
            return true;
    return false;
}

const char *
last(const Op *o)
{
    return o->part[o->n - 1];
}

int
type_bytes(const char *type)
{
    while (*type && !isdigit((unsigned char)*type))
        type++;
    int bits = atoi(type);
    return strstr(type, "x2") ? 2 * bits / 8 : bits / 8;
}

/* ---------------------------------------------------------------- arithmetic */

static const OpEntry *
lookup(const char *name)
{
    static const OpEntry *const tables[] = {ops_int, ops_float, ops_half};
    for (int t = 0; t < 3; t++)
        for (const OpEntry *e = tables[t]; e->name; e++)
            if (strcmp(e->name, name) == 0)
                return e;
    return NULL;
}

/* The name without what does not change the operation, and flags for the rest. */
static uint16_t
plain_name(const Op *o, char *out, size_t size)
{
    static const struct {
        const char *name;
        uint16_t flag;
    } mods[] = {{"rn", 0}, {"ftz", FTZ}, {"sat", SAT}, {"relu", RELU}, {"uni", 0}};
    bool is_float = last(o)[0] == 'f' || last(o)[0] == 'b';
    uint16_t flags = 0;
    size_t n = (size_t)snprintf(out, size, "%s", o->part[0]);
    for (int k = 1; k < o->n; k++) {
        bool dropped = false;
        for (int m = 0; m < 5 && is_float; m++)
            if (strcmp(o->part[k], mods[m].name) == 0)
                dropped = true, flags |= mods[m].flag;
        if (!dropped && n < size)
            n += (size_t)snprintf(out + n, size - n, ".%s", o->part[k]);
    }
    return flags;
}

static bool
arithmetic(Parser *p, const Op *o)
{
    char name[96];
    uint32_t r[6];
    uint16_t flags = plain_name(o, name, sizeof name);
    const OpEntry *e = lookup(name);
    if (!e)
        return parse_fail(p, "the instruction '%s' is not known", o->full);
    int n = (int)strlen(e->format);
    if (o->count != n)
        return parse_fail(p, "'%s' with %d operands", o->full, o->count);
    for (int k = 0; k < n; k++)
        if (!(r[k] = operand(p, o->arg[k], bits_of(e->format[k]))))
            return false;
    emit(p, e->fn, r, 1, n - 1)->flags = (uint16_t)(flags | e->flags);
    return true;
}

/* ---------------------------------------------------------------- mov, cvt */

/* r: n parts, then the whole; and transposed. sub: bits of a part. */
static void
take_apart(Warp *w, const Insn *i, uint32_t mask)
{
    for (uint32_t m = mask; m; m &= m - 1) {
        int l = __builtin_ctz(m);
        uint64_t v = i->n * i->sub == 64 ? R64(w, i->r[i->n])[l] : R32(w, i->r[i->n])[l];
        for (int k = 0; k < i->n; k++, v >>= i->sub)
            R32(w, i->r[k])[l] = i->sub == 16 ? v & 0xffff : (uint32_t)v;
    }
}

static void
put_together(Warp *w, const Insn *i, uint32_t mask)
{
    for (uint32_t m = mask; m; m &= m - 1) {
        int l = __builtin_ctz(m);
        uint64_t v = 0;
        for (int k = 0; k < i->n; k++)
            v |= (uint64_t)R32(w, i->r[1 + k])[l] << k * i->sub;
        if (i->n * i->sub == 64)
            R64(w, i->d)[l] = v;
        else
            R32(w, i->d)[l] = (uint32_t)v;
    }
}

/* An instruction a nanosecond, of all warps: each reads another time. */
static void
read_timer(Warp *w, const Insn *i, uint32_t mask)
{
    EACH(mask, R64(w, i->d)[l] = w->b->steps);
}

static bool
mov(Parser *p, const Op *o)
{
    int bits = type_bytes(last(o)) * 8, n;
    uint32_t r[MAX_LIST];
    Space space;
    uint64_t v;
    if (o->count != 2)
        return parse_fail(p, "mov with %d operands", o->count);
    if (parse_symbol(p, o->arg[1], &space, &v) && space == PARAM) {
        if (!(r[0] = operand(p, o->arg[0], 64)))
            return false;
        emit(p, param_address, r, 1, 0)->imm = (int64_t)v;
        return true;
    }
    if (strcmp(o->arg[1], "%clock64") == 0 || strcmp(o->arg[1], "%globaltimer") == 0) {
        if (!(r[0] = operand(p, o->arg[0], 64)))
            return false;
        emit(p, read_timer, r, 1, 0);
        return true;
    }
    bool apart = o->arg[0][0] == '{';
    if (!apart && o->arg[1][0] != '{')
        return arithmetic(p, o);
    char *many = strchr(o->arg[apart ? 0 : 1], '{'), *comma = many;
    int count = 1;
    while ((comma = strchr(comma, ',')))
        count++, comma++;
    int each = bits / count;
    n = list(p, many, each, r + !apart, NULL);
    uint32_t whole = operand(p, o->arg[apart ? 1 : 0], bits);
    if (n != count || !whole || (each != 16 && each != 32))
        return parse_fail(p, "'%s' of parts of %d bits", o->full, each);
    r[apart ? n : 0] = whole;
    Insn *i = emit(p, apart ? take_apart : put_together, r, apart ? n : 1, apart ? 1 : n);
    i->n = (uint8_t)n;
    i->sub = (uint16_t)each;
    return true;
}

static bool
cvt(Parser *p, const Op *o)
{
    uint16_t flags = 0;
    uint32_t r[3];
    Reg reg;
    int code = cvt_decode(o->full, &flags);
    if (code < 0 || o->count < 2 || o->count > 3)
        return parse_fail(p, "the instruction '%s' is not known", o->full);
    for (int k = 0; k < o->count; k++) {
        int bits = 32;
        if (parse_register(p, o->arg[k], &reg))
            bits = reg.bits;
        else if (k)
            bits = type_bytes(last(o)) * 8;
        if (!(r[k] = operand(p, o->arg[k], bits)))
            return false;
        if (k == 0)
            flags |= bits == 64 ? WIDE_DST : bits == 16 ? HALF_DST : 0;
        else
            flags |= bits == 64 ? TRANSPOSE : 0;
    }
    Insn *i = emit(p, op_cvt, r, 1, o->count - 1);
    i->sub = (uint16_t)code;
    i->flags = flags;
    return true;
}

static bool
cvta(Parser *p, const Op *o)
{
    uint32_t r[2];
    Reg reg;
    bool to = has(o, "to"), wide = true;
    int64_t window = has(o, "shared")  ? (int64_t)SHARED_WINDOW
                     : has(o, "local") ? (int64_t)LOCAL_WINDOW
                                       : 0;
    if (o->count != 2)
        return parse_fail(p, "'%s' with %d operands", o->full, o->count);
    if (parse_register(p, o->arg[1], &reg))
        wide = reg.bits == 64;
    if (!(r[0] = operand(p, o->arg[0], 64)) ||
        !(r[1] = operand(p, o->arg[1], wide ? 64 : 32)))
        return false;
    Insn *i = emit(p, has(o, "param") ? op_from_param : op_to_window, r, 1, 1);
    i->imm = window;
    i->sub = to && window;
    i->flags = wide ? WIDE_DST : 0;
    return true;
}

/* ---------------------------------------------------------------- control */

static bool
control(Parser *p, const Op *o)
{
    const char *name = o->part[0];
    uint32_t none[1] = {0};
    if (strcmp(name, "bra") == 0) {
        Insn *i = emit(p, op_bra, none, 0, 0);
        parse_target(p, o->arg[0], i);
        return true;
    }
    Insn *i = emit(p, strcmp(name, "trap") == 0 ? op_trap : op_ret, none, 0, 0);
    if (strcmp(name, "ret") == 0)
        parse_return(p, i);
    return true;
}

bool
decode(Parser *p, const char *name, char *operands)
{
    static const struct {
        const char *name;
        bool (*fn)(Parser *p, const Op *o);
    } kinds[] = {
        {"mov", mov},
        {"cvt", cvt},
        {"cvta", cvta},
        {"bra", control},
        {"ret", control},
        {"exit", control},
        {"trap", control},
        {"ld", decode_load},
        {"ldu", decode_load},
        {"st", decode_store},
        {"atom", decode_atomic},
        {"red", decode_atomic},
        {"shfl", decode_shfl},
        {"vote", decode_vote},
        {"match", decode_vote},
        {"redux", decode_vote},
        {"elect", decode_vote},
        {"activemask", decode_vote},
        {"ldmatrix", decode_matrix},
        {"stmatrix", decode_matrix},
        {"mma", decode_mma},
        {"wgmma", decode_wgmma},
        {"bar", decode_bar},
        {"barrier", decode_bar},
        {"mbarrier", decode_mbarrier},
        {"mapa", decode_mapa},
        {"cp", decode_cp},
        {"tensormap", decode_tensormap},
        {"fence", decode_quiet},
        {"membar", decode_quiet},
        {"prefetch", decode_quiet},
        {"prefetchu", decode_quiet},
        {"nanosleep", decode_quiet},
        {"griddepcontrol", decode_quiet},
        {"setmaxnreg", decode_quiet},
        {"pmevent", decode_quiet},
        {"createpolicy", decode_policy},
        {"applypriority", decode_quiet},
        {"discard", decode_quiet},
    };
    char text[128];
    Op o = {.full = name};
    if (strncmp(name, "call", 4) == 0)
        return parse_call(p, operands);
    snprintf(text, sizeof text, "%s", name);
    o.n = parts_of(text, o.part);
    o.count = split_operands(operands, o.arg, MAX_ARGS);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (strcmp(o.part[0], kinds[k].name) == 0)
            return kinds[k].fn(p, &o);
    return arithmetic(p, &o);
}
