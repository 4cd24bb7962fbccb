// quickselect.c - partitions the values and continues in the part that contains the rank, so
// only one or two values reach their sorted place. After too many unbalanced partitions it sorts
// the rest with heapsort, so that no data makes it quadratic.
#include "base/quickselect.h"

enum { INSERTION_MAX = 16 };

static void swap(double *a, double *b)
{
    double t = *a;
    *a = *b;
    *b = t;
}

static void insertion_sort(double *v, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        double x = v[i];
        size_t j = i;
        for (; j > 0 && v[j - 1] > x; j--)
            v[j] = v[j - 1];
        v[j] = x;
    }
}

static void sift_down(double *v, size_t i, size_t n)
{
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        child += child + 1 < n && v[child + 1] > v[child];
        if (v[i] >= v[child])
            return;
        swap(&v[i], &v[child]);
    }
}

static void heap_sort(double *v, size_t n)
{
    for (size_t i = n / 2; i-- > 0;)
        sift_down(v, i, n);
    for (size_t end = n; end-- > 1;) {
        swap(&v[0], &v[end]);
        sift_down(v, 0, end);
    }
}

void quickselect(double *v, size_t n, size_t k)
{
    size_t bad_left = 2; // unbalanced partitions allowed: at most twice the logarithm of n
    for (size_t m = n; m > 1; m /= 2)
        bad_left += 2;
    while (n > INSERTION_MAX) {
        if (bad_left-- == 0) {
            heap_sort(v, n);
            return;
        }
        size_t middle = n / 2;
        if (v[middle] < v[0])
            swap(&v[middle], &v[0]);
        if (v[n - 1] < v[0])
            swap(&v[n - 1], &v[0]);
        if (v[n - 1] < v[middle])
            swap(&v[n - 1], &v[middle]);
        double pivot = v[middle];
        size_t i = 0, j = n - 1;
        // Hoare's partition: both scans stop at values equal to the pivot, so that many equal
        // values split evenly.
        for (;;) {
            while (v[i] < pivot)
                i++;
            while (v[j] > pivot)
                j--;
            if (i >= j)
                break;
            swap(&v[i++], &v[j--]);
        }
        // v[0..i) <= pivot <= v[i..n), and both parts are shorter than n: the median of three left
        // one value on each side.
        if (k < i) {
            n = i;
        } else {
            v += i;
            n -= i;
            k -= i;
        }
    }
    insertion_sort(v, n);
}
