#include <sonde.h>

int main(void)
{
    sonde_handle answer = sonde_gauge("answer", "");
    for (int i = 0; i <= 42; i++)
        sonde_emit(answer, i);
    sonde_annotate("hello");
    return 0;
}
