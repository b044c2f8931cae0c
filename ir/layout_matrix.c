/* The test is a look at the images of single bits. */
#include "ir/layout_matrix.h"

enum { ROW = 16, WORD = 4 };

typedef struct Map {
    const F2 *map;
    int regs, bytes;
} Map;

static uint32_t
image(const Map *m, int bit)
{
    return (uint32_t)m->map->col[bit] * (uint32_t)m->bytes;
}

/* Do all bits but those in `low` (a bit set) move by whole rows? */
static bool
rest_moves_rows(const Map *m, uint64_t low)
{
    for (int i = 0; i < m->map->nin; i++)
        if (!(low >> i & 1) && image(m, i) % ROW)
            return false;
    return true;
}

static bool
is_plain(const Map *m, MatrixForm *out)
{
    int lane = m->regs;
    uint64_t low = (uint64_t)3 << lane;
    *out = (MatrixForm){.word_bits = m->bytes == 1 ? 2 : m->bytes == 2 ? 1 : 0};
    if (m->bytes > WORD || image(m, lane) != WORD || image(m, lane + 1) != 2 * WORD)
        return false;
    for (int i = 0; i < out->word_bits; i++) {
        int at = 0;
        while (at < m->regs && image(m, at) != (uint32_t)m->bytes << i)
            at++;
        if (at == m->regs)
            return false;
        out->word[i] = at;
        low |= (uint64_t)1 << at;
    }
    for (int i = 0; i < 3; i++)
        out->row[i] = image(m, lane + 2 + i);
    return rest_moves_rows(m, low);
}

static bool
is_trans(const Map *m, MatrixForm *out)
{
    int lane = m->regs;
    *out = (MatrixForm){.trans = true, .word_bits = 1};
    if (m->bytes != 2 || m->regs < 1)
        return false;
    for (int i = 0; i < 3; i++)
        if (image(m, lane + 2 + i) != 2u << i)
            return false;
    out->row[0] = image(m, 0);
    out->row[1] = image(m, lane);
    out->row[2] = image(m, lane + 1);
    return rest_moves_rows(m, (uint64_t)7 << (lane + 2));
}

bool
matrix_form(const F2 *map, int regs, int bytes, MatrixForm *out)
{
    Map m = {map, regs, bytes};
    return is_plain(&m, out) || is_trans(&m, out);
}
