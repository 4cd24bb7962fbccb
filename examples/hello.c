#include <sonde.h>
#include <unistd.h>

int main(void)
{
    sonde_handle loss = sonde_gauge("loss", "");
    for (int step = 1; step <= 20; step++) {
        sonde_emit(loss, 1.0 / step);
        usleep(100000);
    }
    sonde_annotate("done");
    return 0;
}
