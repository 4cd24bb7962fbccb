! Prints "CALL ns" for each call and round; see languages.py.
program loops
    use sonde
    use, intrinsic :: iso_c_binding, only: c_int
    use, intrinsic :: iso_fortran_env, only: int64
    implicit none
    interface
        function usleep(microseconds) bind(c)
            import
            integer(c_int), value :: microseconds
            integer(c_int) :: usleep
        end function
    end interface
    integer(sonde_handle) :: gauge, counter, off
    integer :: round, i
    integer(int64) :: start
    gauge = sonde_gauge('bench_emit')
    counter = sonde_counter('bench_add')
    off = sonde_gauge('bench_off', level=4)
    do round = 1, 101
        call measure_emit('emit', gauge)
        call system_clock(start)
        do i = 1, 20000
            call sonde_add(counter, 1)
        end do
        call report('add', 20000)
        call measure_emit('off', off)
        call system_clock(start)
        do i = 1, 1000
            call sonde_span_begin('step', [sonde_tag('number', i)])
            call sonde_span_end()
        end do
        call report('span', 1000)
    end do
contains
    subroutine measure_emit(name, metric)
        character(len=*), intent(in) :: name
        integer(sonde_handle), intent(in) :: metric
        integer :: k
        call system_clock(start)
        do k = 1, 20000
            call sonde_emit(metric, real(k))
        end do
        call report(name, 20000)
    end subroutine

    subroutine report(name, times)
        character(len=*), intent(in) :: name
        integer, intent(in) :: times
        integer(int64) :: now, rate
        integer(c_int) :: unused
        call system_clock(now, rate)
        print '(a, f12.2)', name, real(now - start) * 1e9 / real(rate) / real(times)
        unused = usleep(2000_c_int) ! the agent drains the ring meanwhile
    end subroutine
end program
