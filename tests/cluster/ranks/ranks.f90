! ranks LANGUAGE: the MPI program of test_programs.py in Fortran. LANGUAGE is a tag of all data.
program ranks
    use mpi
    use sonde
    implicit none
    type(sonde_tag) :: language
    integer(sonde_handle) :: part, steps, total
    character(len=32) :: argument
    integer :: rank, summed, status, i

    call MPI_Init(status)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, status)
    call get_command_argument(1, argument)
    language = sonde_tag('language', trim(argument))
    part = sonde_gauge('part', tags=[language])
    steps = sonde_counter('steps', tags=[language])
    total = sonde_gauge('total', tags=[language])

    call sonde_span_begin('solve', [language])
    do i = 0, 9
        call sonde_emit(part, real(100*rank + i))
        call sonde_add(steps, 1)
    end do
    call sonde_span_begin('exchange', [language])
    call MPI_Allreduce(rank, summed, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, status)
    call sonde_span_end()
    call sonde_span_end()
    call sonde_emit(total, real(summed))
    call MPI_Finalize(status)
end program
