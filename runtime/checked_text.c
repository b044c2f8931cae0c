/* What a checked launch has found, in words. */
#include "runtime/checked.h"

#include <string.h>

bool
checker_has_news(const Checker *c)
{
    return c->fault != FAULT_NONE || c->equal.site;
}

static const char *
verb(const SdcrtSite *s)
{
    return !(s->access & SDCRT_WRITE)   ? "load"
           : s->access & SDCRT_ATOMIC ? "atomic operation"
                                      : "store";
}

/* "fp32[8,16]" of an array that is accessed by these elements. */
static const char *
shape_text(Session *s, const Checker *c, const SdcrtSite *site, const Span *p)
{
    Buf b;
    buf_init(&b, &s->tmp);
    if (site->param >= 0) {
        const char *sig = c->r->k->meta->params[site->param].sig;
        sig += *sig == '*';
        sig += *sig == 'k';
        buf_printf(&b, "%.*s[", (int)strcspn(sig, ":"), sig);
    } else {
        buf_printf(&b, "%d-byte elements [", site->bytes);
    }
    if (!p->rank)
        buf_printf(&b, "%lld", (long long)((p->hi - p->lo) / (uintptr_t)site->bytes));
    for (int d = 0; d < p->rank; d++)
        buf_printf(&b, "%s%lld", d ? "," : "", (long long)p->shape[d]);
    buf_str(&b, "]");
    return b.s;
}

/* Elements from the start of the array, rounded down. */
static int64_t
element_of(const SdcrtSite *site, const Span *p, uintptr_t at)
{
    int64_t by = (int64_t)(at - p->lo), size = site->bytes;
    return by >= 0 ? by / size : -((-by + size - 1) / size);
}

static void
tell_outside(Session *s, const Checker *c, const SdcrtSite *site)
{
    const Span *p = c->span;
    Loc loc = place_loc(s, &site->place);
    if (!p) {
        diag_error(&s->diag, loc, "%s outside of every array, at address 0x%llx",
                   verb(site), (unsigned long long)c->at);
        return;
    }
    const char *shape = shape_text(s, c, site, p);
    int64_t i = element_of(site, p, c->at);
    int64_t n = (int64_t)(p->hi - p->lo) / site->bytes, far = i < 0 ? -i : i - n + 1;
    diag_error(&s->diag, loc, "%s outside of '%s', %s: element %lld, %lld %s", verb(site),
               p->name, shape, (long long)i, (long long)far,
               i < 0 ? "before the start" : "past the end");
}

static void
tell_null(Session *s, const Checker *c, const SdcrtSite *site)
{
    Loc loc = place_loc(s, &site->place);
    if (c->span)
        diag_error(&s->diag, loc, "%s through '%s', which is a null pointer", verb(site),
                   c->span->name);
    else
        diag_error(&s->diag, loc, "%s through a null pointer", verb(site));
}

static void
tell_unwritten(Session *s, const Checker *c, const SdcrtSite *site)
{
    diag_error(&s->diag, place_loc(s, &site->place),
               "%s of element %lld of '%s', %s, which nothing has written", verb(site),
               (long long)element_of(site, c->span, c->at), c->span->name,
               shape_text(s, c, site, c->span));
}

/* The other access of a race: its place and its program. */
static void
tell_other(Session *s, const Running *r, const Meeting *m)
{
    char text[HOOK_LINE];
    hook_program(r, text, 0, m->other_program);
    diag_note(&s->diag, place_loc(s, &m->other->place), "the other one, a%s %s of %s",
              m->other->access & SDCRT_ATOMIC ? "n" : "", verb(m->other), text);
    place_callers(s, &m->other->place);
}

static void
tell_race(Session *s, const Checker *c)
{
    const Meeting *m = &c->race;
    diag_error(&s->diag, place_loc(s, &m->site->place),
               "race: this %s and another program's %s touch element %lld of '%s', %s, "
               "in any order",
               verb(m->site), verb(m->other),
               (long long)element_of(m->site, m->span, m->at), m->span->name,
               shape_text(s, c, m->site, m->span));
}

/* No fault: whichever comes last, the result is the same. */
static void
tell_equal(Session *s, const Running *r)
{
    const Meeting *m = &r->checker->equal;
    char text[HOOK_LINE];
    diag_warning(&s->diag, place_loc(s, &m->site->place),
                 "a race of equal values: element %lld of '%s', %s, has the value that "
                 "is stored here",
                 (long long)element_of(m->site, m->span, m->at), m->span->name,
                 shape_text(s, r->checker, m->site, m->span));
    place_callers(s, &m->site->place);
    tell_other(s, r, m);
    hook_program(r, text, 0, m->program);
    diag_note(&s->diag, (Loc){0}, "%s of '%s'", text, r->k->info->name);
}

/* Where it was made is the error, the store how it was found. */
static void
tell_nan(Session *s, const Checker *c, const SdcrtSite *site)
{
    const SdcrtSite *born = c->born[0];
    const char *name = site->param >= 0 ? c->of[site->param].name : "memory";
    diag_error(&s->diag, place_loc(s, &born->place),
               "'%s' makes a NaN out of numbers here, and it is stored", born->text);
    place_callers(s, &born->place);
    for (int i = 1; i < c->nborn; i++)
        diag_note(&s->diag, place_loc(s, &c->born[i]->place),
                  "or it comes from here, '%s'", c->born[i]->text);
    diag_note(&s->diag, place_loc(s, &site->place), "it is stored to '%s' here", name);
}

static void
tell_where(Session *s, const Running *r)
{
    char text[HOOK_LINE];
    place_callers(s, &r->failed->place);
    if (r->checker->fault == FAULT_RACE)
        tell_other(s, r, &r->checker->race);
    int n = hook_program(r, text, 0, r->program);
    hook_index(text, n, r->index, r->failed->rank, 1);
    diag_note(&s->diag, (Loc){0}, "%s of '%s'", text, r->k->info->name);
}

SdcStatus
checker_tell(Session *s, void *running)
{
    const Running *r = running;
    const Checker *c = r->checker;
    switch (c->fault) {
    case FAULT_OUTSIDE: tell_outside(s, c, r->failed); break;
    case FAULT_NULL: tell_null(s, c, r->failed); break;
    case FAULT_UNWRITTEN: tell_unwritten(s, c, r->failed); break;
    case FAULT_RACE: tell_race(s, c); break;
    case FAULT_NAN: tell_nan(s, c, r->failed); break;
    case FAULT_NONE: tell_equal(s, r); return SDC_OK;
    }
    tell_where(s, r);
    return SDC_ERROR_CHECK;
}
