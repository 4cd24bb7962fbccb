#include "cli/nearest.h"

static char fold(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

// Computes the optimal string alignment. Three rows of its table are enough.
size_t nearest_distance(struct str a, struct str b)
{
    size_t rows[3][NEAREST_SIZE_MAX + 1];
    if (a.size > NEAREST_SIZE_MAX || b.size > NEAREST_SIZE_MAX)
        return SIZE_MAX;
    size_t *before = rows[0], *last = rows[1], *now = rows[2];
    for (size_t j = 0; j <= b.size; j++)
        last[j] = j;
    for (size_t i = 1; i <= a.size; i++) {
        now[0] = i;
        for (size_t j = 1; j <= b.size; j++) {
            char x = fold(a.data[i - 1]), y = fold(b.data[j - 1]);
            now[j] = least(last[j - 1] + (x != y), least(last[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && x == fold(b.data[j - 2]) && fold(a.data[i - 2]) == y)
                now[j] = least(now[j], before[j - 2] + 1);
        }
        size_t *free_row = before;
        before = last;
        last = now;
        now = free_row;
    }
    return last[b.size];
}

void nearest_offer(struct nearest *n, struct str candidate)
{
    size_t distance = nearest_distance(n->typed, candidate);
    // Allow one edit in short words, and one for each three letters in longer ones.
    size_t allowed = n->typed.size < 3 ? 1 : least(n->typed.size / 3 + 1, 4);
    if (distance > allowed && n->typed.size >= 2 && str_starts(candidate, n->typed))
        distance = allowed;
    if (distance <= allowed && (!n->best.data || distance < n->distance)) {
        n->best = candidate;
        n->distance = distance;
    }
}
