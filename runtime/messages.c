/* Messages one by one, for editors: what sdc_error and sdc_warnings tell as text. */
#include "runtime/internal.h"

#include <stdlib.h>
#include <string.h>

void
messages_free(Messages *l)
{
    for (int i = 0; i < l->n; i++) {
        free(l->at[i].path);
        free(l->at[i].text);
        free(l->at[i].rendered);
    }
    free(l->at);
    *l = (Messages){0};
}

static Message *
messages_add(Messages *l)
{
    if (l->n == l->cap) {
        int cap = l->cap ? 2 * l->cap : 16;
        Message *more = realloc(l->at, (size_t)cap * sizeof *more);
        if (!more)
            return NULL;
        l->at = more;
        l->cap = cap;
    }
    l->at[l->n] = (Message){0};
    return &l->at[l->n++];
}

static void
take(Messages *l, const DiagItem *it, const char *text, const char *rendered)
{
    static const SdcSeverity severity[] = {
        [DIAG_ERROR] = SDC_SAYS_ERROR,
        [DIAG_WARNING] = SDC_SAYS_WARNING,
        [DIAG_NOTE] = SDC_SAYS_NOTE,
    };
    const Loc *at = it ? &it->loc : NULL;
    Message *m = messages_add(l);
    if (!m)
        return;
    m->text = strdup(text);
    m->rendered = strdup(rendered);
    m->path = at && at->src ? strdup(at->src->path) : NULL;
    if (!m->text || !m->rendered || (at && at->src && !m->path)) {
        free(m->text);
        free(m->rendered);
        free(m->path);
        l->n--;
        return;
    }
    m->m = (SdcMessage){
        .severity = it ? severity[it->level] : SDC_SAYS_ERROR,
        .text = m->text,
        .code = it && it->stage ? it->stage : "other",
    };
    if (m->path)
        m->m.place =
            (SdcPlace){m->path, at->line, at->col, at->end_line, at->end_col};
}

void
messages_take(Messages *l, Session *s, const char *failure, bool color)
{
    for (const DiagItem *it = s->diag.first; it; it = it->next) {
        Buf b;
        buf_init(&b, &s->tmp);
        diag_render_item(it, &b, color);
        take(l, it, it->text, b.s);
    }
    if (failure) {
        Buf b;
        buf_init(&b, &s->tmp);
        buf_printf(&b, "sdc: %s\n", failure);
        take(l, NULL, failure, b.s);
    }
}

void
messages_say(Messages *l, const char *text, const char *rendered)
{
    take(l, NULL, text, rendered);
}

static bool
is_same(const Message *a, const Message *b)
{
    const SdcPlace *p = &a->m.place, *q = &b->m.place;
    return a->m.severity == b->m.severity && p->line == q->line &&
           p->column == q->column && strcmp(a->text, b->text) == 0 &&
           strcmp(a->path ? a->path : "", b->path ? b->path : "") == 0;
}

void
messages_move(Messages *to, Messages *from)
{
    bool known = false;
    int before = to->n;
    for (int i = 0; i < from->n; i++) {
        Message *m = &from->at[i];
        if (m->m.severity != SDC_SAYS_NOTE) {
            known = false;
            for (int k = 0; k < before && !known; k++)
                known = is_same(&to->at[k], m);
        }
        Message *place = known ? NULL : messages_add(to);
        if (!place) {
            free(m->text);
            free(m->rendered);
            free(m->path);
            continue;
        }
        *place = *m;
    }
    free(from->at);
    *from = (Messages){0};
}

char *
messages_text(const Messages *l)
{
    size_t n = 0;
    for (int i = 0; i < l->n; i++)
        n += strlen(l->at[i].rendered);
    char *text = malloc(n + 1), *p = text;
    for (int i = 0; text && i < l->n; i++) {
        size_t len = strlen(l->at[i].rendered);
        memcpy(p, l->at[i].rendered, len);
        p += len;
    }
    if (text)
        *p = '\0';
    return text;
}

const SdcMessage *
sdc_message(SdcContext *cx, int i)
{
    Report *r = cx ? context_heard(cx) : NULL;
    return r && i >= 0 && i < r->messages.n ? &r->messages.at[i].m : NULL;
}

void
report_first_place(Report *r)
{
    r->has_place = false;
    for (int i = 0; i < r->messages.n && !r->has_place; i++) {
        const SdcMessage *m = &r->messages.at[i].m;
        if (m->severity != SDC_SAYS_ERROR)
            continue;
        if (!m->place.path)
            return;
        text_set(&r->place_path, m->place.path);
        r->place = m->place;
        r->place.path = r->place_path;
        r->has_place = true;
    }
}
