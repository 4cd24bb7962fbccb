// demo.c - the program of `make run`: an artificial training job that emits its own metrics.
//
// It fits a line to noisy data by stochastic gradient descent, so that `loss` is real and the
// processor has work. It pauses between epochs, which the node's cpu_percent shows. DEMO_SECONDS
// (default: 20) is its duration.
#include <sonde.h>

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { EPOCHS = 5, BATCH = 256 };

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void pause_s(double seconds)
{
    struct timespec t = {(time_t)seconds, (long)(fmod(seconds, 1) * 1e9)};
    nanosleep(&t, NULL);
}

static double noise(void)
{
    static uint64_t state = 0x9e3779b97f4a7c15u;
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (double)(state >> 11) * 0x1p-53 - 0.5;
}

struct line {
    double slope, offset;
};

// Does a step of gradient descent on the squared error of a batch of samples of y = 3x - 1 + noise.
// Returns the error.
static double step(struct line *fit, double rate)
{
    double loss = 0, by_slope = 0, by_offset = 0;
    for (int i = 0; i < BATCH; i++) {
        double x = 2 * noise(), error = fit->slope * x + fit->offset - (3 * x - 1 + noise());
        loss += error * error / BATCH;
        by_slope += 2 * error * x / BATCH;
        by_offset += 2 * error / BATCH;
    }
    fit->slope -= rate * by_slope;
    fit->offset -= rate * by_offset;
    return loss;
}

int main(void)
{
    const char *wish = getenv("DEMO_SECONDS");
    double epoch_s = (wish ? atof(wish) : 20) / EPOCHS;

    sonde_handle loss = sonde_gauge("loss", "");
    sonde_handle steps = sonde_counter("steps_total", "steps");
    sonde_handle rate = sonde_gauge("learning_rate", "1/s");

    struct line fit = {0, 0};
    for (int epoch = 1; epoch <= EPOCHS; epoch++) {
        char number[16];
        snprintf(number, sizeof number, "%d", epoch);
        sonde_span_begin("epoch", "n", number);
        // The rate depends on the time, not on the steps, so that the chart is the same on fast and
        // slow machines.
        double speed = 2.0 / epoch_s / epoch, last_loss = 0, last = now_s(), next_point = last;
        sonde_set(rate, speed);
        for (double end = last + 0.75 * epoch_s, now = last; now < end; last = now) {
            now = now_s();
            last_loss = step(&fit, speed * (now - last));
            sonde_add(steps, 1);
            if (now >= next_point) {
                sonde_emit(loss, last_loss);
                next_point += 0.05;
            }
        }
        sonde_span_end();
        printf("epoch %d of %d: loss %.4f, y = %.3f x %+.3f\n", epoch, EPOCHS, last_loss, fit.slope,
               fit.offset);
        fflush(stdout);
        sonde_span_begin("checkpoint");
        pause_s(0.25 * epoch_s);
        sonde_span_end();
    }
    sonde_annotate("done");
}
