/* Layouts as text. Printing looks for the short spelling whose constructor gives exactly
   this map (so the text never depends on how the layout was made) and falls back to the
   general form, the images of all bits. Reading is one small grammar for all spellings:

       name '<' field {',' field} '>'      field: [key '='] (int | list | word | spelling)

   The shape is not in the text: it comes from the type that the layout stands in. */
#include "ir/base/util.h"
#include "ir/layout_make.h"

#include <ctype.h>
#include <string.h>

/* ------------------------------------------------------------------ printing */

static void
print_list(Buf *b, const char *key, const int *v, int n)
{
    buf_printf(b, "%s=[", key);
    for (int i = 0; i < n; i++)
        buf_printf(b, "%s%d", i ? "," : "", v[i]);
    buf_char(b, ']');
}

static void
shape_of(const Layout *l, int64_t shape[MAX_RANK])
{
    for (int i = 0; i < l->rank; i++)
        shape[i] = (int64_t)1 << l->log_shape[i];
}

/* Takes bases of d from *at on as long as they walk up dimension dim; a full dimension
   takes zero bases (copies). Returns 1 << their number. */
static int
take(const Layout *l, int d, int *at, int dim, int next[MAX_RANK])
{
    int n = 0;
    for (; *at < l->nbasis[d]; ++*at, n++, next[dim]++) {
        uint32_t v = l->basis[d][*at];
        bool full = next[dim] >= l->log_shape[dim];
        if (full ? v != 0 : v != (uint32_t)1 << (layout_shift(l, dim) + next[dim]))
            break;
    }
    return 1 << n;
}

static bool
is_blocked(const Layout *l, const int *order, int parts[3][MAX_RANK])
{
    int64_t shape[MAX_RANK];
    int next[MAX_RANK] = { 0 };
    shape_of(l, shape);
    for (int d = LD_REG; d <= LD_WARP; d++) {
        int at = 0;
        for (int i = 0; i < l->rank; i++)
            parts[d][order[i]] = take(l, d, &at, order[i], next);
        if (d != LD_REG && at < l->nbasis[d])
            return false;
    }
    Layout made;
    fill_blocked(&made, l->rank, shape, parts[LD_REG], parts[LD_LANE], parts[LD_WARP],
                 order);
    return layout_same(&made, l);
}

/* Tries the orders of the dimensions, row-major first. */
static bool
print_blocked(Buf *b, const Layout *l, int *order, int n)
{
    int parts[3][MAX_RANK];
    if (n == l->rank) {
        if (!is_blocked(l, order, parts))
            return false;
        buf_str(b, "blocked<");
        print_list(b, "size", parts[LD_REG], l->rank);
        print_list(b, ", lanes", parts[LD_LANE], l->rank);
        print_list(b, ", warps", parts[LD_WARP], l->rank);
        print_list(b, ", order", order, l->rank);
        buf_char(b, '>');
        return true;
    }
    for (int dim = l->rank - 1; dim >= 0; dim--) {
        bool used = false;
        for (int i = 0; i < n; i++)
            used |= order[i] == dim;
        if (used)
            continue;
        order[n] = dim;
        if (print_blocked(b, l, order, n + 1))
            return true;
        if (l->rank > 4 && n >= 2)
            break; /* 8! orders are too many; the general form serves those */
    }
    return false;
}

static bool
print_mma(Buf *b, const Layout *l)
{
    int64_t shape[MAX_RANK];
    Layout made;
    shape_of(l, shape);
    for (int wn = 0; wn <= l->nbasis[LD_WARP]; wn++) {
        int warps[2] = { 1 << (l->nbasis[LD_WARP] - wn), 1 << wn };
        fill_mma(&made, shape, warps);
        if (layout_same(&made, l)) {
            buf_printf(b, "mma<m=16, n=8, warps=[%d,%d]>", warps[0], warps[1]);
            return true;
        }
        for (int n = 8; n <= 256 && warps[0] >= 4; n *= 2) {
            fill_wgmma(&made, shape, n, warps);
            if (layout_same(&made, l)) {
                buf_printf(b, "mma<m=64, n=%d, warps=[%d,%d]>", n, warps[0], warps[1]);
                return true;
            }
        }
        for (int k = 1; k <= 4; k *= 2) {
            for (int op = 0; op < 2; op++) {
                fill_mma_operand(&made, shape, warps, op, k);
                if (layout_same(&made, l)) {
                    buf_printf(b, "dot<m=16, op=%d, k=%d, warps=[%d,%d]>", op, k,
                               warps[0], warps[1]);
                    return true;
                }
            }
            fill_wgmma_operand(&made, shape, warps, k);
            if (warps[0] >= 4 && layout_same(&made, l)) {
                buf_printf(b, "dot<m=64, op=0, k=%d, warps=[%d,%d]>", k, warps[0],
                           warps[1]);
                return true;
            }
        }
    }
    return false;
}

static bool
print_shared(Buf *b, const Layout *l)
{
    static const char *const words[] = {
        [1] = "f8e5", [2] = "f16", [4] = "f32", [8] = "f64"
    };
    int64_t shape[MAX_RANK];
    Layout made;
    shape_of(l, shape);
    for (int flip = 0; flip <= (l->rank > 1); flip++) {
        int order[MAX_RANK];
        for (int i = 0; i < l->rank; i++)
            order[i] = l->rank - 1 - i;
        if (flip) {
            order[0] = l->rank - 2;
            order[1] = l->rank - 1;
        }
        for (int bytes = 1; bytes <= 8; bytes *= 2) {
            for (int swizzle = 128; swizzle >= 16; swizzle /= 2) {
                int w = swizzle == 16 ? 0 : swizzle; /* 128, 64, 32, none */
                fill_nvmma(&made, l->rank, shape, bytes * 8, w, order);
                if (!layout_same(&made, l))
                    continue;
                buf_printf(b, "shared<%s, swizzle=%d", words[bytes], w);
                print_list(b, ", order", order, l->rank);
                buf_char(b, '>');
                return true;
            }
        }
    }
    return false;
}

static void
print_linear(Buf *b, const Layout *l)
{
    static const char *const keys[] = { "reg", "lane", "warp", "block" };
    buf_str(b, "linear<");
    for (int d = 0; d < LD_COUNT; d++) {
        if (d > 0 && l->kind == LK_SHARED)
            break;
        if (d == LD_BLOCK && !l->nbasis[d])
            break;
        buf_printf(b, "%s%s=[", d ? ", " : "", l->kind == LK_SHARED ? "offset" : keys[d]);
        for (int i = 0; i < l->nbasis[d]; i++) {
            buf_str(b, i ? ",[" : "[");
            for (int k = 0; k < l->rank; k++)
                buf_printf(b, "%s%d", k ? "," : "",
                           (int)layout_part(l, l->basis[d][i], k));
            buf_char(b, ']');
        }
        buf_char(b, ']');
    }
    buf_char(b, '>');
}

void
layout_print(Buf *b, const Layout *l)
{
    int order[MAX_RANK];
    bool done = false;
    if (l->kind == LK_SHARED)
        done = print_shared(b, l);
    else if (!l->nbasis[LD_BLOCK] && l->nbasis[LD_LANE] == 5)
        done = print_blocked(b, l, order, 0) || (l->rank == 2 && print_mma(b, l));
    if (!done)
        print_linear(b, l);
}

/* ------------------------------------------------------------------ reading */

enum { MAX_FIELDS = 8, MAX_INTS = LAYOUT_MAX_BITS * MAX_RANK, MAX_NESTING = 8 };

typedef struct Field {
    char key[12];  /* "" when there is none */
    char word[12]; /* a word such as f16 */
    int v[MAX_INTS], n;
    int rows;         /* of a list of lists; -1: not one */
    const char *text; /* of a nested spelling */
    size_t size;
} Field;

typedef struct Reader {
    Session *s;
    const char *at, *end;
    Buf *why;
    char name[12];
    Field field[MAX_FIELDS];
    int nfield;
    int rank;
    const int64_t *shape;
    int depth;
} Reader;

static bool
fail(Reader *r, const char *text)
{
    if (r->why && !r->why->n)
        buf_str(r->why, text);
    return false;
}

static void
blanks(Reader *r)
{
    while (r->at < r->end && isspace((unsigned char)*r->at))
        r->at++;
}

static bool
accept(Reader *r, char c)
{
    blanks(r);
    if (r->at == r->end || *r->at != c)
        return false;
    r->at++;
    return true;
}

static bool
read_word(Reader *r, char out[12])
{
    size_t n = 0;
    blanks(r);
    while (r->at < r->end && (isalnum((unsigned char)*r->at) || *r->at == '_')) {
        if (n + 1 >= 12)
            return fail(r, "a word is too long");
        out[n++] = *r->at++;
    }
    out[n] = 0;
    return n > 0 || fail(r, "expected a word");
}

static bool
read_int(Reader *r, Field *f)
{
    int64_t v = 0;
    blanks(r);
    if (r->at == r->end || !isdigit((unsigned char)*r->at))
        return fail(r, "expected a number");
    while (r->at < r->end && isdigit((unsigned char)*r->at)) {
        v = v * 10 + (*r->at++ - '0');
        if (v > MAX_NUMEL)
            return fail(r, "a number is too large");
    }
    if (f->n == MAX_INTS)
        return fail(r, "a list is too long");
    f->v[f->n++] = (int)v;
    return true;
}

/* After '['. Lists of lists are rows of equal length. */
static bool
read_list(Reader *r, Field *f)
{
    f->rows = -1;
    if (accept(r, ']'))
        return true;
    do {
        if (!accept(r, '[')) {
            if (f->rows >= 0 || !read_int(r, f))
                return fail(r, "expected a list of coordinates");
            continue;
        }
        if (f->rows < 0 && f->n)
            return fail(r, "expected a number");
        f->rows = f->rows < 0 ? 1 : f->rows + 1;
        do {
            if (!read_int(r, f))
                return false;
        } while (accept(r, ','));
        if (!accept(r, ']') || f->n != f->rows * r->rank)
            return fail(r, "a basis needs one coordinate per dimension");
    } while (accept(r, ','));
    return accept(r, ']') || fail(r, "expected ']'");
}

/* A nested spelling: everything up to its matching '>'. */
static bool
read_nested(Reader *r, Field *f, const char *start)
{
    int open = 0;
    f->text = start;
    for (; r->at < r->end; r->at++) {
        open += *r->at == '<' ? 1 : *r->at == '>' ? -1 : 0;
        if (open == 0) {
            f->size = (size_t)(++r->at - start);
            return true;
        }
    }
    return fail(r, "expected '>'");
}

static bool
read_field(Reader *r, Field *f)
{
    f->rows = -1;
    blanks(r);
    const char *start = r->at;
    if (start < r->end && isalpha((unsigned char)*start)) {
        if (!read_word(r, f->word))
            return false;
        if (accept(r, '=')) {
            memcpy(f->key, f->word, sizeof f->key);
            f->word[0] = 0;
        } else {
            blanks(r);
            return r->at < r->end && *r->at == '<' ? read_nested(r, f, start) : true;
        }
    }
    return accept(r, '[') ? read_list(r, f) : read_int(r, f);
}

static bool
read_fields(Reader *r)
{
    if (!read_word(r, r->name))
        return false;
    if (!accept(r, '<'))
        return fail(r, "expected '<'");
    do {
        if (r->nfield == MAX_FIELDS)
            return fail(r, "too many fields");
        if (!read_field(r, &r->field[r->nfield]))
            return false;
        r->nfield++;
    } while (accept(r, ','));
    if (!accept(r, '>'))
        return fail(r, "expected '>'");
    blanks(r);
    return r->at == r->end || fail(r, "text after the layout");
}

static const Field *
field(const Reader *r, const char *key)
{
    for (int i = 0; i < r->nfield; i++)
        if (strcmp(r->field[i].key, key) == 0)
            return &r->field[i];
    return NULL;
}

static int
field_int(const Reader *r, const char *key, int otherwise)
{
    const Field *f = field(r, key);
    return f && f->n == 1 ? f->v[0] : otherwise;
}

/* A list of `n` powers of two whose product is at most `most` (0: any). */
static const int *
field_pow2(Reader *r, const char *key, int n, int most)
{
    const Field *f = field(r, key);
    int64_t product = 1;
    for (int i = 0; f && i < f->n; i++) {
        product *= f->v[i];
        if (!is_pow2(f->v[i]) || product > MAX_NUMEL)
            f = NULL;
    }
    if (f && f->n == n && f->rows < 0 && (!most || product <= most))
        return f->v;
    fail(r, "a list must have one power of two per dimension");
    return NULL;
}

static bool
read_order(Reader *r, int order[MAX_RANK])
{
    const Field *f = field(r, "order");
    unsigned seen = 0;
    for (int i = 0; i < r->rank; i++) {
        int dim = f && i < f->n ? f->v[i] : r->rank - 1 - i;
        if (dim >= r->rank || seen >> dim & 1)
            return fail(r, "order must be a permutation of the dimensions");
        seen |= 1u << dim;
        order[i] = dim;
    }
    return !f || f->n == r->rank || fail(r, "order must name every dimension");
}

static bool
make_linear(Reader *r, Layout *out)
{
    static const char *const keys[] = { "reg", "lane", "warp", "block" };
    const Field *offset = field(r, "offset");
    fill_shape(out, offset ? LK_SHARED : LK_DISTRIBUTED, r->rank, r->shape);
    for (int d = 0; d < LD_COUNT; d++) {
        const Field *f = d == LD_REG && offset ? offset : field(r, keys[d]);
        int rows = f && f->rows > 0 ? f->rows : 0;
        if (f && f->n && !rows)
            return fail(r, "expected a list of coordinates");
        if (rows > LAYOUT_MAX_BITS)
            return fail(r, "too many bases");
        for (int i = 0; i < rows; i++) {
            uint32_t v = 0;
            for (int k = 0; k < r->rank; k++) {
                int part = f->v[i * r->rank + k];
                if (part >= r->shape[k])
                    return fail(r, "a basis lies outside of the tile");
                v |= (uint32_t)part << layout_shift(out, k);
            }
            if (!v && d == LD_REG)
                return fail(r, "a register basis is zero");
            fill_basis(out, (LayoutDim)d, v);
        }
    }
    return true;
}

static bool
make_mma(Reader *r, Layout *out)
{
    const int *warps = field_pow2(r, "warps", 2, 32);
    int m = field_int(r, "m", 16), n = field_int(r, "n", 8);
    int op = field_int(r, "op", 0), k = field_int(r, "k", 2);
    if (r->rank != 2)
        return fail(r, "needs a tile of rank 2");
    if (!warps)
        return false;
    if ((m != 16 && m != 64) || !is_pow2(n) || n < 8 || n > 256 || op > 1 ||
        !is_pow2(k) || k > 8 || (m == 64 && (warps[0] < 4 || op != 0)) ||
        (m == 16 && n != 8))
        return fail(r, "no such matrix unit");
    bool operand = strcmp(r->name, "dot") == 0;
    if (m == 16 && operand)
        fill_mma_operand(out, r->shape, warps, op, k);
    else if (m == 16)
        fill_mma(out, r->shape, warps);
    else if (operand)
        fill_wgmma_operand(out, r->shape, warps, k);
    else
        fill_wgmma(out, r->shape, n, warps);
    return true;
}

static bool
make_blocked(Reader *r, Layout *out)
{
    int order[MAX_RANK];
    const int *size = field_pow2(r, "size", r->rank, 0);
    const int *lanes = field_pow2(r, "lanes", r->rank, 32);
    const int *warps = field_pow2(r, "warps", r->rank, 32);
    if (!size || !lanes || !warps || !read_order(r, order))
        return false;
    fill_blocked(out, r->rank, r->shape, size, lanes, warps, order);
    return true;
}

static bool
make_shared(Reader *r, Layout *out)
{
    int order[MAX_RANK], swizzle = field_int(r, "swizzle", -1);
    if (!read_order(r, order))
        return false;
    if (swizzle >= 0) {
        int bits = 16;
        for (int i = 0; i < r->nfield; i++) {
            const char *word = r->field[i].word;
            ScalarKind k = scalar_by_name(word, strlen(word));
            if (word[0])
                bits = k == SK_NONE ? 0 : scalar_bits(k);
        }
        if ((swizzle && swizzle != 32 && swizzle != 64 && swizzle != 128) || bits < 8)
            return fail(r,
                        "swizzle must be 0, 32, 64 or 128 bytes of 8 to 64-bit elements");
        fill_nvmma(out, r->rank, r->shape, bits, swizzle, order);
        return true;
    }
    int vec = field_int(r, "vec", 1), per = field_int(r, "per", 1);
    int max = field_int(r, "max", 1);
    if (!is_pow2(vec) || !is_pow2(per) || !is_pow2(max) || max > 32 || vec > 256)
        return fail(r, "vec, per and max must be powers of two");
    fill_swizzled(out, r->rank, r->shape, vec, per, max, order);
    return true;
}

static const Layout *read_spelling(Reader *r);

/* slice<dim=1, size=64, SPELLING>: the larger tile has `size` along the new dimension. */
static const Layout *
read_slice(Reader *r)
{
    int dim = field_int(r, "dim", -1), size = field_int(r, "size", 0);
    const Field *inner = NULL;
    for (int i = 0; i < r->nfield; i++)
        if (r->field[i].text)
            inner = &r->field[i];
    if (dim < 0 || dim > r->rank || !is_pow2(size) || !inner || r->rank >= MAX_RANK ||
        r->depth >= MAX_NESTING) {
        fail(r, "needs slice<dim=, size=, layout>");
        return NULL;
    }
    int64_t shape[MAX_RANK];
    for (int i = 0; i <= r->rank; i++)
        shape[i] = i < dim ? r->shape[i] : i > dim ? r->shape[i - 1] : size;
    Reader parent = { .s = r->s,
                      .at = inner->text,
                      .end = inner->text + inner->size,
                      .why = r->why,
                      .rank = r->rank + 1,
                      .shape = shape,
                      .depth = r->depth + 1 };
    const Layout *l = read_spelling(&parent);
    return l ? layout_slice(r->s, l, dim) : NULL;
}

static const Layout *
read_spelling(Reader *r)
{
    static const struct {
        const char *name;
        bool (*make)(Reader *r, Layout *out);
    } forms[] = { { "blocked", make_blocked },
                  { "mma", make_mma },
                  { "dot", make_mma },
                  { "shared", make_shared },
                  { "linear", make_linear } };
    int64_t numel = 1;
    for (int i = 0; i < r->rank; i++) {
        numel = is_pow2(r->shape[i]) && numel <= MAX_NUMEL ? numel * r->shape[i] : -1;
        if (numel < 1 || numel > MAX_NUMEL) {
            fail(r, "the tile's shape must be powers of two");
            return NULL;
        }
    }
    if (!read_fields(r))
        return NULL;
    if (strcmp(r->name, "slice") == 0)
        return read_slice(r);
    for (int i = 0; i < COUNT_OF(forms); i++) {
        Layout l;
        if (strcmp(r->name, forms[i].name) != 0)
            continue;
        if (!forms[i].make(r, &l) || !layout_check(&l, r->why))
            return NULL;
        return layout_intern(r->s, &l);
    }
    fail(r, "no such layout");
    return NULL;
}

const Layout *
layout_read(Session *s, const char *text, size_t n, int rank, const int64_t *shape,
            Buf *why)
{
    if (rank < 1 || rank > MAX_RANK)
        return NULL;
    Reader r = {
        .s = s, .at = text, .end = text + n, .why = why, .rank = rank, .shape = shape
    };
    return read_spelling(&r);
}
