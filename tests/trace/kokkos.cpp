// A Kokkos program with known kernels, regions, fences, copies and allocations. It prints what
// Kokkos computed. ROUNDS: its argument.
#include <Kokkos_Core.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>

int main(int argc, char **argv)
{
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 10;
    Kokkos::initialize(argc, argv);
    {
        Kokkos::Profiling::pushRegion("outer");
        Kokkos::View<double *> values("values", 1000);
        Kokkos::View<double *>::HostMirror mirror = Kokkos::create_mirror(values);
        double sum = 0;
        for (int i = 0; i < rounds; i++) {
            Kokkos::Profiling::pushRegion("round");
            Kokkos::parallel_for("fill", 1000, KOKKOS_LAMBDA(const int k) { values(k) = k; });
            Kokkos::parallel_reduce(
                "sum up", 1000, KOKKOS_LAMBDA(const int k, double &s) { s += values(k); }, sum);
            Kokkos::parallel_scan(
                "scan", 1000,
                KOKKOS_LAMBDA(const int k, double &s, const bool last) { s += last ? k : k; });
            Kokkos::deep_copy(mirror, values);
            Kokkos::fence();
            Kokkos::Profiling::popRegion();
        }
        Kokkos::Profiling::popRegion();
        std::printf("%.0f\n", sum);
        for (int i = 0; i < 300; i++) // more kernels than a process has series for
            Kokkos::parallel_for(
                "kernel " + std::to_string(i), 1, KOKKOS_LAMBDA(const int) {});
    }
    Kokkos::finalize();
    return 0;
}
