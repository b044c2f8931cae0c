/* Building and editing: lists of uses stay whole, clones are complete, effects of nested
   ops are seen from outside, wrong building is a bug that is caught. */
#include "ir/build.h"
#include "ir/edit.h"
#include "ir/text.h"
#include "ir/verify.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

typedef struct World {
    Session *s;
    Module *m;
    Func *f;
    Builder b;
    const Type *i32, *f32;
    Value *n, *p;
} World;

static World
world(void)
{
    World w = {.s = session_new(0)};
    w.m = module_new(w.s);
    w.f = func_new(w.m, "f", (Loc){0});
    w.i32 = type_scalar(w.s->types, SK_I32);
    w.f32 = type_scalar(w.s->types, SK_F32);
    w.n = func_param(w.f, "n", "i32", w.i32, 1);
    w.p = func_param(w.f, "p", "*fp32", type_ptr(w.s->types, w.f32, 0), 16);
    w.b = builder_at_end(w.f, w.f->body);
    return w;
}

static int
uses(const Value *v)
{
    int n = 0;
    for (const Use *u = v->uses; u; u = u->next) {
        ck_assert_ptr_eq(u->value, v);
        ck_assert_ptr_eq(*u->link, u);
        ck_assert_ptr_eq(op_operand(u->user, u->index), v);
        n++;
    }
    return n;
}

static void
finish(World *w)
{
    build_op(&w->b, OP_RETURN, NULL, 0, NULL, NULL, 0);
    ck_assert(func_verify(w->f));
}

START_TEST(uses_follow_every_edit)
{
    World w = world();
    Value *a = build_int(&w.b, w.i32, 3);
    Value *x = build_binary(&w.b, OP_ADD, w.n, w.n);
    Value *y = build_binary(&w.b, OP_MUL, x, a);
    ck_assert_int_eq(uses(w.n), 2);
    op_set_operand(y->op, 1, w.n);
    ck_assert_int_eq(uses(w.n), 3);
    ck_assert_int_eq(uses(a), 0);
    value_replace(w.n, a);
    ck_assert_int_eq(uses(w.n), 0);
    ck_assert_int_eq(uses(a), 3);
    Op *print = build_op(&w.b, OP_PRINT, NULL, 0, NULL, NULL, 0);
    for (int i = 0; i < 20; i++)
        op_add_operand(print, i % 2 ? x : y);
    ck_assert_int_eq(uses(y), 10);
    for (int i = 0; i < 19; i++)
        op_drop_operand(print, 0);
    ck_assert_int_eq(uses(x), 2);
    ck_assert_int_eq(uses(y), 0);
    op_erase(print);
    ck_assert_int_eq(uses(x), 1);
    op_move_before(x->op, a->op);
    ck_assert(op_before(x->op, y->op));
    ck_assert(!op_before(y->op, x->op));
    op_move_before(a->op, x->op);
    finish(&w);
    session_free(w.s);
}
END_TEST

/* for %i = 0, n, 1 (%x = 0) { store p, 1.0; yield %x + %i } */
static Op *
build_loop(World *w)
{
    Value *zero = build_int(&w->b, w->i32, 0), *one = build_int(&w->b, w->i32, 1);
    Op *loop = build_for(&w->b, zero, w->n, one, &zero, 1);
    Builder in = builder_at_end(w->f, loop->regions[0]);
    build_store(&in, w->p, build_float(&in, w->f32, 1.0), NULL, NULL);
    Value *sum =
        build_binary(&in, OP_ADD, loop->regions[0]->args[1], loop->regions[0]->args[0]);
    build_yield(&in, &sum, 1);
    return loop;
}

START_TEST(clones_are_complete)
{
    World w = world();
    Op *loop = build_loop(&w);
    Map map;
    map_init(&map, &w.s->tmp);
    Op *copy = op_clone(&w.b, loop, &map);
    ck_assert_ptr_eq(map_get(&map, &loop->results[0]), &copy->results[0]);
    Region *from = loop->regions[0], *to = copy->regions[0];
    ck_assert_int_eq(to->narg, 2);
    ck_assert_ptr_ne(to->args[1], from->args[1]);
    ck_assert_int_eq(uses(to->args[1]), 1);
    ck_assert_int_eq(uses(from->args[1]), 1);
    ck_assert(!value_outside(&to->first->results[0], to));
    ck_assert(value_outside(&from->first->results[0], to));
    ck_assert(region_within(to, w.f->body));
    op_erase(loop);
    finish(&w);
    session_free(w.s);
}
END_TEST

START_TEST(carried_values_can_go)
{
    World w = world();
    Op *loop = build_loop(&w);
    Region *r = loop->regions[0];
    op_set_operand(r->last, 0, r->args[1]);
    op_erase(r->last->prev);
    op_drop_operand(r->last, 0);
    op_drop_operand(loop, 3);
    op_drop_result(loop, 0);
    region_drop_arg(r, 1);
    finish(&w);
    session_free(w.s);
}
END_TEST

START_TEST(effects_of_bodies)
{
    World w = world();
    Op *loop = build_loop(&w);
    OpEffects e = op_effects(loop);
    ck_assert_uint_eq(e.writes, 1u << RES_GLOBAL);
    ck_assert_uint_eq(e.reads, 0);
    ck_assert(!op_is_pure(loop));
    op_erase(loop->regions[0]->first->next); /* the store */
    ck_assert(op_is_pure(loop));
    session_free(w.s);
}
END_TEST

START_TEST(walks_see_every_region_in_order)
{
    World w = world();
    Value *c = build_cmp(&w.b, OP_CMPI, "slt", w.n, w.n);
    Op *outer = build_if(&w.b, c, NULL, 0);
    Builder then = builder_at_end(w.f, outer->regions[0]);
    Op *inner = build_if(&then, c, NULL, 0);
    Region *arms[] = {inner->regions[0], inner->regions[1], outer->regions[0],
                      outer->regions[1]};
    for (int i = 0; i < 4; i++) {
        Builder in = builder_at_end(w.f, arms[i]);
        build_yield(&in, NULL, 0);
    }
    finish(&w);
    const Op *want[] = {c->op,
                        outer,
                        inner,
                        inner->regions[0]->last,
                        inner->regions[1]->last,
                        outer->regions[0]->last,
                        outer->regions[1]->last,
                        w.f->body->last};
    int n = 0, in = 0;
    region_each_deep(w.f->body, op) ck_assert_ptr_eq(op, want[n++]);
    ck_assert_int_eq(n, 8);
    region_each_deep(outer->regions[0], op) in++;
    ck_assert_int_eq(in, 4); /* the walk ends with its region */
    ck_assert_ptr_eq(op_in_region(want[3], w.f->body), outer);
    ck_assert_ptr_eq(op_in_region(outer, w.f->body), outer);
    ck_assert_ptr_null(op_in_region(outer, inner->regions[0]));
    session_free(w.s);
}
END_TEST

START_TEST(ill_typed_building_is_a_bug)
{
    World w = world();
    if (setjmp(w.s->fail.env) == 0) {
        w.s->fail.set = 1;
        build_binary(&w.b, OP_ADD, w.n, w.p);
        ck_abort_msg("was built");
    }
    ck_assert_int_eq(w.s->fail.reason, FAIL_BUG);
    ck_assert_ptr_nonnull(strstr(w.s->fail.message, "add"));
    session_free(w.s);
}
END_TEST

START_TEST(integers_are_kept_sign_extended)
{
    World w = world();
    Value *v = build_int(&w.b, type_scalar(w.s->types, SK_I8), 200);
    ck_assert_int_eq(attr_int(&v->op->attrs, ATTR_VALUE, 0), -56);
    v = build_int(&w.b, type_scalar(w.s->types, SK_I1), -1);
    ck_assert_int_eq(attr_int(&v->op->attrs, ATTR_VALUE, 0), 1);
    session_free(w.s);
}
END_TEST

/* The table itself: what every op must have. */
START_TEST(table_is_sane)
{
    for (int k = 0; k < OP_COUNT; k++) {
        const OpInfo *i = &op_info[k];
        ck_assert_int_eq(op_by_name(i->name, strlen(i->name)), k);
        ck_assert(i->doc[0] && i->min >= 0 && (i->max == -1 || i->max >= i->min));
        ck_assert_msg(!(i->traits & T_PURE) || !i->effects, "%s", i->name);
        ck_assert_msg(!(i->traits & T_SPEC) || (i->traits & T_PURE), "%s", i->name);
        ck_assert_msg(!!i->nregion == !!(i->traits & T_STRUCTURED), "%s", i->name);
    }
    ck_assert_int_eq(op_by_name("ad", 2), OP_COUNT);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("ir_build");
    TCase *c = tcase_create("ir_build");
    tcase_add_test(c, uses_follow_every_edit);
    tcase_add_test(c, clones_are_complete);
    tcase_add_test(c, carried_values_can_go);
    tcase_add_test(c, effects_of_bodies);
    tcase_add_test(c, walks_see_every_region_in_order);
    tcase_add_test(c, ill_typed_building_is_a_bug);
    tcase_add_test(c, integers_are_kept_sign_extended);
    tcase_add_test(c, table_is_sane);
    suite_add_tcase(suite, c);
    SRunner *r = srunner_create(suite);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
