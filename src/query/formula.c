// formula.c - precedence climbing over one table of operators; the result is in the order in which
// a stack machine executes it.
#include "query/formula.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>

enum operation {
    PUSH_NUMBER,
    PUSH_NAME,
    NEGATE,
    NOT,
    OR,
    AND,
    EQUAL,
    UNEQUAL,
    AT_MOST,
    AT_LEAST,
    BELOW,
    ABOVE,
    ADD,
    SUBTRACT,
    MULTIPLY,
    DIVIDE,
    REMAINDER,
};

struct formula_step {
    enum operation operation;
    size_t name;
    double number;
};

// Longer operators come first: "<=" must not be read as "<".
static const struct {
    struct str text;
    int strength;
    enum operation operation;
} operators[] = {
    {STR("||"), 1, OR},       {STR("&&"), 2, AND},     {STR("=="), 3, EQUAL},
    {STR("!="), 3, UNEQUAL},  {STR("<="), 4, AT_MOST}, {STR(">="), 4, AT_LEAST},
    {STR("<"), 4, BELOW},     {STR(">"), 4, ABOVE},    {STR("+"), 5, ADD},
    {STR("-"), 5, SUBTRACT},  {STR("*"), 6, MULTIPLY}, {STR("/"), 6, DIVIDE},
    {STR("%"), 6, REMAINDER},
};

struct compiler {
    struct str text;
    size_t at, depth;
    struct formula_step *steps;
    size_t step_count, stack;
    struct str *names;
    size_t name_count;
    struct error *e;
};

static int wrong(const struct compiler *c, const char *what)
{
    enum { SHOWN_MAX = 60 };
    struct str rest = str_slice(c->text, c->at, c->at + SHOWN_MAX);
    return error_set(c->e, -EINVAL, "%s at character %zu of the expression%s%.*s%s", what,
                     c->at + 1, rest.size ? ": '" : "", STR_ARG(rest), rest.size ? "'" : "");
}

static void skip_blanks(struct compiler *c)
{
    while (c->at < c->text.size && isspace((unsigned char)c->text.data[c->at]))
        c->at++;
}

static int emit(struct compiler *c, struct formula_step step)
{
    if (c->step_count == FORMULA_STEPS_MAX)
        return error_set(c->e, -EINVAL, "An expression may have %d operands and operators",
                         FORMULA_STEPS_MAX);
    if (step.operation <= PUSH_NAME && ++c->stack > FORMULA_STACK_MAX)
        return wrong(c, "Too many operands wait for their operator");
    c->stack -= step.operation > NOT; // pops two, pushes one
    c->steps[c->step_count++] = step;
    return 0;
}

static size_t span(const struct compiler *c, bool number)
{
    size_t end = c->at;
    for (; end < c->text.size; end++) {
        unsigned char byte = (unsigned char)c->text.data[end];
        bool sign = number && end > c->at && (byte == '+' || byte == '-') &&
                    (c->text.data[end - 1] | 32) == 'e';
        if (!(isalnum(byte) || sign || byte == (number ? '.' : '_')))
            break;
    }
    return end;
}

static int take_number(struct compiler *c)
{
    size_t end = span(c, true);
    struct formula_step step = {.operation = PUSH_NUMBER};
    if (!str_to_double(str_slice(c->text, c->at, end), &step.number))
        return wrong(c, "A number is not understood");
    c->at = end;
    return emit(c, step);
}

static int take_name(struct compiler *c)
{
    size_t end = span(c, false), i = 0;
    struct str name = str_slice(c->text, c->at, end);
    while (i < c->name_count && !str_eq(c->names[i], name))
        i++;
    if (i == FORMULA_NAMES_MAX)
        return error_set(c->e, -EINVAL, "An expression may have %d names", FORMULA_NAMES_MAX);
    c->names[i] = name;
    c->name_count += i == c->name_count;
    c->at = end;
    return emit(c, (struct formula_step){.operation = PUSH_NAME, .name = i});
}

static int take_operations(struct compiler *c, int weakest);

static int take_operand(struct compiler *c)
{
    skip_blanks(c);
    unsigned char first = c->at < c->text.size ? (unsigned char)c->text.data[c->at] : 0;
    if (isdigit(first) || first == '.')
        return take_number(c);
    if (isalpha(first) || first == '_')
        return take_name(c);
    if (first != '(' && first != '-' && first != '!')
        return wrong(c, first ? "A name, a number or ( is expected"
                              : "A name, a number or ( is missing");
    if (c->depth == FORMULA_DEPTH_MAX)
        return wrong(c, "Too deeply nested");
    c->depth++;
    c->at++;
    int r = first == '(' ? take_operations(c, 1) : take_operand(c);
    if (!r && first != '(')
        r = emit(c, (struct formula_step){.operation = first == '-' ? NEGATE : NOT});
    if (!r && first == '(') {
        skip_blanks(c);
        if (c->at == c->text.size || c->text.data[c->at] != ')')
            return wrong(c, "A ) is missing");
        c->at++;
    }
    c->depth--;
    return r;
}

// Index of the operator at the current place; the size of the table if there is no operator.
static size_t operator_here(struct compiler *c)
{
    size_t i = 0;
    skip_blanks(c);
    while (i < sizeof operators / sizeof *operators &&
           !str_starts(str_slice(c->text, c->at, c->text.size), operators[i].text))
        i++;
    return i;
}

// Parses operands joined by operators at least as strong as `weakest`. Operators of equal strength
// associate to the left. The recursion is at most one call deep for every strength between two
// parentheses.
static int take_operations(struct compiler *c, int weakest)
{
    int r = take_operand(c);
    while (!r) {
        size_t i = operator_here(c);
        if (i == sizeof operators / sizeof *operators || operators[i].strength < weakest)
            return 0;
        c->at += operators[i].text.size;
        r = take_operations(c, operators[i].strength + 1);
        if (!r)
            r = emit(c, (struct formula_step){.operation = operators[i].operation});
    }
    return r;
}

int formula_parse(struct str text, struct arena *arena, struct formula *out, struct error *e)
{
    if (text.size > FORMULA_TEXT_MAX)
        return error_set(e, -EINVAL, "An expression may have %d bytes, not %zu", FORMULA_TEXT_MAX,
                         text.size);
    // A step or a name takes at least one byte of the text.
    size_t most_steps = text.size < FORMULA_STEPS_MAX ? text.size : FORMULA_STEPS_MAX;
    struct compiler c = {.text = arena_str(arena, text), .e = e};
    c.steps = arena_array(arena, most_steps, sizeof *c.steps);
    c.names = arena_array(arena, FORMULA_NAMES_MAX + 1, sizeof *c.names);
    if (!c.text.data || !c.steps || !c.names)
        return error_set(e, -ENOMEM, "no memory for the expression");
    int r = take_operations(&c, 1);
    if (!r && c.at < c.text.size)
        r = wrong(&c, "An operator is expected");
    if (r)
        return r;
    *out = (struct formula){c.steps, c.step_count, c.names, c.name_count};
    return 0;
}

static double apply(enum operation operation, double a, double b)
{
    if (isnan(a) || isnan(b))
        return NAN;
    switch (operation) {
    case OR:
        return a != 0 || b != 0;
    case AND:
        return a != 0 && b != 0;
    case EQUAL:
        return a == b;
    case UNEQUAL:
        return a != b;
    case AT_MOST:
        return a <= b;
    case AT_LEAST:
        return a >= b;
    case BELOW:
        return a < b;
    case ABOVE:
        return a > b;
    case ADD:
        return a + b;
    case SUBTRACT:
        return a - b;
    case MULTIPLY:
        return a * b;
    case DIVIDE:
        return b == 0 ? 0 : a / b; // like OpenTSDB
    default:
        return b == 0 ? 0 : fmod(a, b);
    }
}

double formula_value(const struct formula *f, const double *values)
{
    double stack[FORMULA_STACK_MAX];
    size_t top = 0;
    for (size_t i = 0; i < f->step_count; i++) {
        const struct formula_step *s = &f->steps[i];
        if (s->operation == PUSH_NUMBER) {
            stack[top++] = s->number;
        } else if (s->operation == PUSH_NAME) {
            stack[top++] = values[s->name];
        } else if (s->operation == NEGATE) {
            stack[top - 1] = -stack[top - 1];
        } else if (s->operation == NOT) {
            stack[top - 1] = isnan(stack[top - 1]) ? NAN : stack[top - 1] == 0;
        } else {
            top--;
            stack[top - 1] = apply(s->operation, stack[top - 1], stack[top]);
        }
    }
    return stack[0];
}
